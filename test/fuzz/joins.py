"""What is joined, and how: relations, kinds of joins, conditions, radii."""
from tree import Items, Part
from values import ANY_MOVE, COLUMN, MOVES


# Around a distance and a number, which implied_distance() takes apart, or has to leave. {a} and {b} are the tables.
ARITHMETIC = ['({}) * 2 <= {!r}', '({}) / 4 < {!r}', '({}) + 1 <= {!r}', '3 * ({}) - 1 < {!r}', '{1!r} >= ({0})::numeric', 'round(({})::numeric, 1) <= {!r}',
              'coalesce({}, 1e9) < {!r}', 'coalesce({}, 0) < {!r}', '({}) * -1 < {!r}', '5 - ({}) >= {!r}', '64 - ({}) >= 60', '1 - ({}) / 64.0 >= 0.9', 'round({}) <= {!r}',
              '-({}) >= -{!r}', '1 - ({}) > 1 - {!r}', '1 - ({}) >= 0.9', '({}) = {!r}', '0.5 * ({}) + abs({a}.grp - {b}.grp) < {!r}', 'sqrt(({}) ^ 2 + ({a}.grp - {b}.grp) ^ 2) <= {!r}',
              '({}) / 10 <= {a}.s', '1 - ({}) >= 1 - {b}.s', '2 * ({}) < {b}.s + 1', 'radians({}) < {!r}', 'abs(({}) - 1) <= {!r}', 'greatest({}, 0) <= {!r}', 'coalesce({}, {b}.s) <= {!r}',
              '({}) + {b}.grp <= {!r}', '2 - coalesce({}, 1) >= {!r}', 'coalesce({}, 0.5) = 0.5', '1 - ({}) >= 1 - {!r} * 0.5']
# Around a condition, c, and another one about the same values, d. {b} is an operand of both, {t} a table.
AROUND = ['({c}) IS TRUE', 'coalesce({c}, false)', 'CASE WHEN {c} THEN true ELSE false END', '({c} OR {d})', '({c} AND {t}.grp > 1 OR {d})', 'CASE WHEN {t}.grp > 1 THEN {c} ELSE {d} END',
          'CASE {t}.grp WHEN 1 THEN {c} WHEN 2 THEN false ELSE {d} END', 'coalesce({c}, {d})', '({c} OR {b} IS NULL)', 'coalesce({c}, {t}.grp = 1)', '({c} OR {t}.grp = 1)',
          'CASE WHEN {c} THEN {t}.grp > 1 END', '({c} AND {d}) IS TRUE']


class Joins(Part):
    """The part of a Query below SELECT. `outer` are numbers that come from above, `last` the similarity whose distance
    may be a score: its kind and its operands. `whole_joins`: what joins of two are in its joins of three, and those that
    end at the first pair with all of theirs."""
    whole_joins = ()

    # ---- Conditions

    def literal_radius(self):
        return self.rng.choice([f"'{self.numbers.radius()!r}'"] * 12 + ["'NaN'", "'Infinity'", "'-1'", 'NULL', "'1e200'", "'-0'"])

    def moved(self, text, share=0.25):
        """Returns the text, sometimes with one of its columns moved by a number from above."""
        columns = list(COLUMN.finditer(text)) if self.outer and self.rng.random() < share else []
        if not columns:
            return text
        column = self.rng.choice(columns)
        move = MOVES.get(column[1], ANY_MOVE).format(column[0], self.rng.choice(self.outer))
        return text[:column.start()] + move + text[column.end():]

    def radius(self):
        rng, value = self.rng, self.literal_radius()
        if self.outer and rng.random() < 0.6:
            outer = rng.choice(self.outer)
            return rng.choice([outer] * 6 + [f'({outer} * 2)', f'(1 / {outer})'])
        table = rng.choice(self.schema.tables).name
        return rng.choice([f'{value}::float8'] * 40 + [
            f'(SELECT {value}::float8)', f'(SELECT max(s) FROM {table} WHERE s < 5)', f'(SELECT s FROM {table} WHERE id = 3)',
            f'(SELECT {value}::float8) * 2', f'{value}::float8 * 1.5', f'abs({value}::float8)', f'{value}::real::float8',
            '1 / (SELECT 0.0::float8)', f'(SELECT s FROM {table})', f"(SELECT 'x' || t FROM {table} LIMIT 1)::float8"])

    def row_radius(self, a, b):
        """A radius that comes from rows."""
        if self.rng.random() < 0.5:
            a, b = b, a
        return self.rng.choice([f'{b}.s'] * 4 + [f'({a}.s + {b}.s)', f'{b}.grp', f'({a}.grp + {b}.grp)', f'abs({b}.s)', f'{b}.s::real', f'({a}.s::real + {b}.s::real)',
                                f'({b}.s + 1)', f'({a}.s + {b}.s + 0.5)', f'(1 + {a}.s)', f'{b}.n::float8', f'{b}.n', f'{b}.m', f'({b}.m * 2)', f'({a}.m + {b}.m)', f'nullif({b}.s, 1e200)',
                                f'CASE WHEN {b}.grp > 1 THEN {b}.s ELSE 2 END', f'({a}.s * {b}.grp)', f'({a}.grp * 0.5)', f'({b}.s * 2)', f'({b}.s / 4 + {a}.s)',
                                f'({b}.grp * 2)', f'({a}.grp + {b}.grp * 2)', f'({b}.grp + 3)', f'(0.5 * {b}.s - 1 + {a}.s)', f'abs({b}.s - {b}.x)', f'({b}.s * 1e9)',
                                f'({b}.grp * 1000000000)', f'({b}.grp + 2147483645)',
                                f'(0.5 * sqrt({a}.s ^ 2 + {b}.s ^ 2))', f'sqrt({a}.s * {a}.s + 4 * {b}.s ^ 2)', f'least({a}.s, {b}.s)', f'greatest({a}.s, {b}.grp)',
                                f'CASE WHEN {a}.grp > 1 THEN {a}.s ELSE {b}.s END', f'({a}.s - {b}.s)', f'coalesce({a}.s, {b}.s)', f'least({a}.s * 2, {b}.n::float8 + 1)'])

    def similarity(self, left, right, outer_join=False):
        """Conditions that end with a similarity; sometimes a guard and an operand that needs it."""
        rng = self.rng
        kind = rng.choice(self.schema.kinds)
        a, b = self.moved(kind.operand(left)), self.moved(kind.operand(right))
        guards = []
        if rng.random() < self.guards * (2 if outer_join else 1):
            guard, a = map(self.moved, kind.guarded(left))
            if rng.random() < 0.5:  # no input can check it before the join
                guard = f'CASE WHEN {guard} THEN {right}.id > 0 END'
            guards.append(guard)
        if rng.random() < self.guards / 2:
            guard, b = kind.guarded(right)
            guards.append(guard)
        self.last = kind, a, b
        if rng.random() < 0.3:
            a, b = b, a
        radius = self.row_radius(left, right) if rng.random() < 0.15 else self.radius()
        if kind.distance and rng.random() < 0.08:
            return guards + [self.moved(rng.choice(ARITHMETIC).format(kind.distance(a, b), abs(self.numbers.radius()), a=left, b=right), 0.1)]
        condition = self.moved(kind.test(a, b, radius), 0.1)
        if rng.random() < 0.2:
            other = kind.test(a, b, self.radius())
            condition = rng.choice(AROUND).format(c=condition, d=other, b=b if '.' in b else f'{b}.id', t=rng.choice((left, right)))
        return guards + [condition]

    def on_one(self, t):
        rng = self.rng
        return self.moved(rng.choice([f'{t}.id < {rng.randint(1, 60)}', f'{t}.grp = {rng.randint(0, 4)}', f'{t}.grp IN (0, 2, 3)',
                           f'{t}.s IS NOT NULL', f"{t}.t <> 'no'", f'{t}.id % 3 = 0', f'{t}.x > 2', f'{t}.s > 0',
                           f'{t}.id = {rng.randint(1, 20)}', f'{t}.id < 0', f'({t}.grp = 1 OR {t}.y < 3)',
                           f'{t}.grp = (SELECT min(grp) FROM {self.outer_table})']))

    def on_both(self, a, b):
        return self.moved(self.plain_on_both(a, b))

    def plain_on_both(self, a, b):
        if self.rng.random() < (0.6 if self.schema.intervals else 0.3):
            return self.key(a, b)
        if self.schema.wide and self.rng.random() < 0.2:
            return self.rng.choice([f'right({a}.w, 1) < right({b}.w, 1)', f'left({b}.w, 1) IS DISTINCT FROM left({a}.w, 1)'])
        return self.rng.choice([f'{a}.id < {b}.id'] * 4 + [
            f'{a}.id <> {b}.id', f'{b}.id > {a}.id', f'{a}.id <= {b}.id', f'{a}.x < {b}.x', f'{a}.grp = {b}.grp', f'{a}.grp = {b}.grp + 9', f'{a}.grp IS DISTINCT FROM {b}.grp',
            f'({a}.grp = 1 OR {b}.grp = 2)', f'{a}.id + {b}.id > 20', f'{a}.t = {b}.t', f'{a}.s < {b}.s',
            f'CASE WHEN {b}.grp = 0 THEN true ELSE {a}.grp / {b}.grp < 2 END', f'coalesce({a}.grp, 0) >= coalesce({b}.grp, 1)'])

    def key(self, a, b):
        """An equality, a band or an overlap, which may be a key of the index."""
        rng = self.rng
        if rng.random() < 0.5:
            a, b = b, a
        if self.schema.intervals and rng.random() < 0.6:
            return self.schema.intervals.condition(a, b)
        if rng.random() < 0.3:
            return rng.choice([f'{a}.grp = {b}.grp', f'{a}.t = {b}.t', f'{a}.n = {b}.n', f'{a}.m = {b}.m', f'{a}.m = {b}.n', f'{a}.x = {b}.x', f'{a}.s = {b}.x', f'{a}.n = {b}.grp'])
        column, width = rng.choice([('id', '3'), ('id', '10'), ('grp', '1'), ('x', '2::float8'), ('s', '1.5::float8'), ('n', '2.5'), ('m', '1.25'), ('grp', '0')])
        x, y = f'{a}.{column}', f'{b}.{column}'
        if rng.random() < 0.15:
            day = "date '2026-03-01'"
            x, y, width = f'({day} + {x}::int)', f'({day} + {y}::int)', '4'
        less = rng.choice(['<', '<='])
        return rng.choice([f'abs({x} - {y}) {less} {width}', f'{width} > abs({x} - {y})', f'{x} BETWEEN {y} - {width} AND {y} + {width}',
                           f'{x} - {y} <= {width} AND {x} - {y} >= -({width})', f'{x} {less} {y} + {width} AND {y} {less} {x} + {width}',
                           f'{x} {less} {y} AND {x} > {y} - {width}', f'{x} + {width} >= {y}'])

    def conditions(self, a, b, kind='inner'):
        rng = self.rng
        found = self.similarity(a, b, kind != 'inner')
        if rng.random() < 0.1:
            found += self.similarity(a, b, kind != 'inner')
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
            extra = self.on_both(a, b) if rng.random() < 0.6 else self.on_one(rng.choice([a, b]))
            found.insert(rng.choice([0, len(found)]), extra)
        return found

    def nearest(self, conditions):
        """The first rows by the distance of the similarity, and the conditions on them, mostly without it."""
        rng, (kind, a, b) = self.rng, self.last
        if rng.random() < 0.7:
            conditions = [self.on_both('a', 'b') if rng.random() < 0.4 else self.on_one('b') for _ in range(rng.choice([0, 0, 0, 1, 2]))]
        order = rng.choice(['{}'] * 8 + ['1 - ({}) DESC', '-({}) DESC', '({}) * 3 + 1', '2 - ({}) * 0.5 DESC', '1 - ({}) DESC NULLS LAST']).format(kind.distance(a, b))
        return conditions, f' ORDER BY {order}, b.id, b.grp, b.s, b.t, b.n, b.m, b.x, b.y LIMIT {rng.choice([1, 1, 2, 5, 5, 30, 1000])}'

    # ---- FROM

    def relation(self, alias):
        rng, name = self.rng, self.rng.choice(self.schema.tables).name
        more = [f'(SELECT * FROM {name} WHERE {self.on_one(name)}) {alias}', f'(SELECT * FROM {name} OFFSET 0) {alias}']
        simple = [f'{name} {alias}']
        return Part(rng.choice(simple * 9 + more), simpler=[simple])

    def pair(self):
        """As joined(), but what may be counted or ranked without making all pairs, or nearly so."""
        rng = self.rng
        first = rng.choice(self.schema.tables)
        second = first if rng.random() < 0.5 else rng.choice(self.schema.tables)
        conditions = self.similarity('a', 'b')
        if rng.random() < 0.3:
            conditions.append(rng.choice(['a.id < b.id', 'a.id < b.id', 'b.id < a.id', 'a.id <= b.id', 'a.id <> b.id', 'a.grp < b.grp']))
        for _ in range(rng.choice([0, 0, 1, 2]) if self.schema.intervals else rng.random() < 0.3):
            conditions.append(self.moved(self.key('a', 'b')))
        where = [self.on_one(rng.choice('ab'))] if rng.random() < 0.3 else []
        return Part(f'{first.name} a JOIN {second.name} b', Items(conditions, ' AND ', ' ON ', empty=' ON true')), where, 'ab'

    def ranked_pair(self):
        """What is ranked: mostly all pairs."""
        rng, a, b = self.rng, self.relation('a'), self.relation('b')
        conditions = self.conditions('a', 'b')
        if rng.random() < 0.7:
            conditions = [self.on_both('a', 'b') if rng.random() < 0.4 else self.on_one('b') for _ in range(rng.choice([0, 0, 0, 1, 2]))]
        return Part(a, rng.choice([' JOIN '] * 5 + [' LEFT JOIN ']), b, Items(conditions, ' AND ', ' ON ', empty=' ON true')), [], 'ab'

    def joined(self):
        """FROM and the conditions of WHERE; the aliases that may be selected."""
        rng = self.rng
        kind = rng.choice(['inner'] * 12 + ['comma', 'left', 'exists', 'not exists'] * 4 +
                          ['left', 'right', 'right', 'three', 'three', 'three', 'in', 'lateral', 'lateral', 'lateral', 'left lateral', 'left lateral', 'full'])
        a, b = self.relation('a'), self.relation('b')
        where = [self.on_one('a')] if rng.random() < 0.25 else []
        if kind == 'comma':
            return Part(a, ', ', b), self.conditions('a', 'b') + where, 'ab'
        if kind in ('exists', 'not exists', 'in'):
            inner = Items(self.conditions('a', 'b', kind), ' AND ', ' WHERE ')
            self.whole_joins = [*self.whole_joins, Part(a, ', ', b, inner)]
        if kind == 'exists' or kind == 'not exists':
            return Part(a), [Part(f'{kind.upper()} (SELECT FROM ', b, inner, ')')] + where, 'a'
        if kind == 'in':
            column = rng.choice(['id', 'grp'])
            return Part(a), [Part(f'a.{column} IN (SELECT b.{column} FROM ', b, inner, ')')] + where, 'a'
        if kind in ('lateral', 'left lateral'):
            conditions = self.conditions('a', 'b')
            tail = rng.choice(['', '', '', '', ' OFFSET 0', ' ORDER BY b.grp, b.id, b.s, b.t LIMIT 3'])
            columns = 'b.id, b.grp, b.s, b.t, b.n, b.m, b.x, b.y' + (', b.w' if self.schema.wide else '')
            known = rng.random() < 0.7 and self.last[0].distance
            if known:
                conditions, tail = self.nearest(conditions)
            if known and rng.random() < 0.5:
                columns = 'b.*'  # so that the distance can be computed again
            else:
                self.last = None
            inner = Items(conditions, ' AND ', ' WHERE ')
            below = Part(f'(SELECT {columns} FROM ', b, inner, tail, ') b')
            if kind == 'lateral':
                return Part(a, ', LATERAL ', below), where, 'ab'
            return Part(a, ' LEFT JOIN LATERAL ', below, ' ON true'), where, 'ab'
        if kind == 'three':
            first = Items(self.conditions('a', 'b'), ' AND ', ' ON ', empty=' ON true')
            link = self.conditions('b', 'c') if rng.random() < 0.6 else [rng.choice(['c.id = a.id', 'c.grp = b.id'])]
            word = rng.choice([' JOIN ', ' JOIN ', ' LEFT JOIN '])
            third = Part(word, self.relation('c'), Items(link, ' AND ', ' ON ', empty=' ON true'), simpler=[['']])
            self.last = None
            self.whole_joins = [*self.whole_joins, Part(a, ' JOIN ', b, first), Part(b, third)]
            return Part(a, ' JOIN ', b, first, third), where, 'ab'
        if kind == 'full':
            return Part(a, ' FULL JOIN ', b, Items(['a.id = b.id'] + self.conditions('a', 'b'), ' AND ', ' ON ')), where, 'ab'
        word = {'left': ' LEFT JOIN ', 'right': ' RIGHT JOIN '}.get(kind, ' JOIN ')
        if kind != 'inner' and rng.random() < 0.3:
            where.append(rng.choice(['b.grp IS DISTINCT FROM a.grp', 'b.id IS NULL', 'a.id IS NOT NULL', 'coalesce(b.s, 1) > 0']))
        on = Items(self.conditions('a', 'b', kind), ' AND ', ' ON ', empty=' ON true')
        return Part(a, Part(word, simpler=[[' JOIN ']]), b, on), where, 'ab'
