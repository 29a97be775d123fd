"""Random tables: their rows, and the forms in which a query may meet them (partitions, views, row-level security,
...). A table is a tree of parts, so that rows, columns and forms can be reduced like the query."""
import math

from tree import Items, Part
from values import KINDS, Intervals, Numbers, float8

READER = 'fuzz_reader'  # a role whom row-level security binds
FORMS = ['plain'] * 8 + ['partitions', 'partitions', 'inheritance', 'rls', 'rls', 'barrier', 'matview', 'union', 'temp',
                         'view', 'dropped']


class Row(Part):
    """Literals by the names of columns."""

    def __init__(self, table, values):
        super().__init__()
        self.table, self.values = table, values

    def sql(self, full=False):
        return '(' + ', '.join(self.values[name] for name in self.table.names()) + ')'


class Table(Part):
    """A relation called `name`; where its form needs a base table, name_base is that."""

    def __init__(self, name, form, columns, unique, rows, indexes, analyze):
        self.name, self.form, self.unique = name, form, unique
        self.columns = Items(columns)
        self.rows = Items([], ',\n  ')
        self.rows.pieces = [Row(self, row) for row in rows]
        self.indexes = Items(indexes, '')
        self.tail = Items([f'ANALYZE {self.base()};\n'] if analyze else [], '')
        super().__init__(self.columns, self.rows, self.indexes, self.tail)

    def base(self):
        return self.name + '_base' if self.form in ('rls_view', 'barrier', 'matview', 'union', 'view') else self.name

    def names(self):
        return [column.split()[0] for column in self.columns.pieces]

    def reductions(self):
        if self.form not in ('plain', 'rls'):
            def make_plain():
                before = self.form, self.tail.pieces
                self.form = 'plain'
                self.tail.pieces = [f'ANALYZE {self.name};\n'] if before[1] else []
                return lambda: (setattr(self, 'form', before[0]), setattr(self.tail, 'pieces', before[1]))
            yield make_plain

    def sql(self, full=False):
        names, base = self.names(), self.base()
        columns = [column + {'primary': ' PRIMARY KEY', 'unique': ' UNIQUE'}.get(self.unique, '')
                   if column.startswith('id ') else column for column in self.columns.pieces]
        definition = ', '.join(columns)
        insert = ''
        rows = [row.sql() for row in self.rows.pieces]
        if rows:
            insert = f"INSERT INTO {base} ({', '.join(names)}) VALUES\n  " + ',\n  '.join(rows) + ';\n'
        indexes = self.indexes.sql().replace('@', base)
        create = f'CREATE TABLE {base} ({definition});\n'
        if self.form == 'temp':
            create = f'CREATE TEMP TABLE {base} ({definition});\n'
        elif self.form == 'dropped':
            create = f'CREATE TABLE {base} (gone text, {definition});\nALTER TABLE {base} DROP COLUMN gone;\n'
        elif self.form == 'partitions':
            turned = ', '.join(reversed(columns))
            create = (f'CREATE TABLE {base} ({definition}) PARTITION BY HASH (id);\n'
                      f'CREATE TABLE {base}_0 PARTITION OF {base} FOR VALUES WITH (MODULUS 3, REMAINDER 0);\n'
                      f'CREATE TABLE {base}_1 ({turned});\n'
                      f'ALTER TABLE {base} ATTACH PARTITION {base}_1 FOR VALUES WITH (MODULUS 3, REMAINDER 1);\n'
                      f'CREATE TABLE {base}_2 PARTITION OF {base} FOR VALUES WITH (MODULUS 3, REMAINDER 2);\n')
        elif self.form == 'inheritance':
            create += f'CREATE TABLE {base}_child (more int) INHERITS ({base});\n'
            half = len(rows) // 2
            insert = ''.join(f"INSERT INTO {into} ({', '.join(names)}) VALUES\n  " + ',\n  '.join(some) + ';\n'
                             for into, some in ((base, rows[:half]), (base + '_child', rows[half:])) if some)
        text = create + insert + indexes
        if self.form == 'rls':
            text += (f'ALTER TABLE {base} ENABLE ROW LEVEL SECURITY;\n'
                     f'CREATE POLICY visible ON {base} USING (grp IS DISTINCT FROM 1);\n')
        elif self.form == 'barrier':
            text += f'CREATE VIEW {self.name} WITH (security_barrier) AS SELECT * FROM {base} WHERE id IS DISTINCT FROM 3;\n'
        elif self.form == 'matview':
            text += f'CREATE MATERIALIZED VIEW {self.name} AS SELECT * FROM {base};\n'
        elif self.form == 'union':
            text += (f'CREATE VIEW {self.name} AS SELECT * FROM {base} WHERE id < 20\n'
                     f'  UNION ALL SELECT * FROM {base} WHERE id >= 20;\n')
        elif self.form == 'view':
            text += f'CREATE VIEW {self.name} AS SELECT * FROM {base} WHERE id IS DISTINCT FROM 5;\n'
        return text + f'GRANT SELECT ON {self.name} TO {READER};\n' + self.tail.sql()


class Schema:
    """Tables that have the same columns."""

    def __init__(self, rng, extensions):
        self.rng, self.numbers = rng, Numbers(rng)
        self.dimensions = rng.choice([1, 2, 2, 2, 2, 3, 3, 4, 6, 9, 17, 40])
        known = [kind for kind in KINDS if kind.needs is None or kind.needs in extensions]
        chosen = {kind.__name__: kind for kind in rng.sample(known, 2)}
        self.kinds = [kind(rng, self.numbers, self.dimensions) for kind in chosen.values()]
        self.odd_share = rng.choice([0, 0, 0, 0.01, 0.05])
        self.null_share = rng.choice([0, 0.02, 0.2])
        self.intervals = Intervals(rng) if rng.random() < 0.4 else None
        self.zeros = rng.random() < 0.2  # s is mostly -0
        self.wide = rng.random() < 0.4  # a column so wide that a few rows exceed the least work_mem
        self.tables = [self.table(f't{number}') for number in range(1, rng.choice([2, 3, 3]) + 1)]

    def table(self, name):
        rng = self.rng
        columns = ['id int', 'grp int', 'x float8', 'y float8', 'z float8', 's float8', 'n numeric', 'm numeric(9,6)', 't text']
        columns += self.intervals.columns if self.intervals else []
        columns += ['w text'] if self.wide else []
        columns += [column for kind in self.kinds for column in kind.columns]
        unique = rng.choice(['primary', 'primary', 'primary', 'unique', 'none'])
        size = rng.choice([0, 1, 2, 15, 40, 40, 80, 80, 150, 300])
        form = rng.choice(FORMS)
        if form == 'inheritance':
            unique = 'none'
        rows = [self.row(number, unique) for number in range(1, size + 1)]
        rng.shuffle(rows)
        indexes = []
        if rng.random() < 0.3:
            indexes.append('CREATE INDEX ON @ (grp);\n')
        for kind in self.kinds:
            if kind.columns[0].split()[1] in ('point', 'box', 'cube', 'geometry') and rng.random() < 0.3:
                indexes.append(f'CREATE INDEX ON @ USING gist ({kind.columns[0].split()[0]});\n')
        return Table(name, form, columns, unique, rows, indexes, rng.random() < 0.75)

    def row(self, number, unique):
        rng = self.rng
        identity = str(number)
        if unique == 'none' and rng.random() < 0.3:
            identity = str(rng.randint(1, number))
        if unique != 'primary' and rng.random() < self.null_share / 10:
            identity = 'NULL'
        row = {'id': identity, 'grp': self.or_null(str(rng.randint(0, 4)))}
        for name in 'xyz':
            row[name] = self.or_null(f"'{float8(self.numbers.number())}'", 0.1)
        row['s'] = self.or_null(rng.choice([f"'{float8(rng.uniform(-5, 5))}'"] * 9 + [str(rng.randint(-3, 3))] * 9 +
                                           ["'1e200'", "'NaN'", "'Infinity'", "'-0'"]), 0.2)
        if self.zeros and rng.random() < 0.9:
            row['s'] = "'-0'"
        row['m'] = self.or_null(rng.choice([f'{math.remainder(self.numbers.number(odd=False), 999):.6f}'] * 40 + ["'NaN'"]), 0.2)
        row['n'] = self.or_null(rng.choice([str(rng.randint(0, 50) / 4)] * 20 + ["'1e400'", "'NaN'"]), 0.2)
        row['t'] = self.or_null(rng.choice([f"'{rng.randint(0, 9)}'"] * 5 + ["'no'"]))
        if self.intervals:
            row.update({name: self.or_null(value) for name, value in self.intervals.values().items()})
        if self.wide:
            row['w'] = self.or_null(rng.choice([f"(SELECT string_agg(md5((k * {number})::text), '') FROM generate_series(1, {n}) k)"
                                                for n in (1, 40, 40, 40, 40, 58, 58, 400)]))
        for kind in self.kinds:
            values = kind.odd_values() if rng.random() < self.odd_share else kind.values()
            row.update(zip((column.split()[0] for column in kind.columns), map(self.or_null, values)))
        return row

    def or_null(self, literal, weight=1.0):
        return 'NULL' if self.rng.random() < self.null_share * weight else literal
