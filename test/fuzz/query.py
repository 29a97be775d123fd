"""Random queries over the tables of a schema: what is joined and how (Joins), what is asked of it (Query), and how it
is sent (WRAPPERS: alone, prepared, in a cursor, below another query, ...)."""
from schema import READER
from tree import Items, Limit, Part

KNOBS = {
    'index': ['grid', 'reference_points', 'tiles', 'none'], 'indexed_dimensions': ['1', '2', '4', '6'],
    'reference_points': ['1', '3', '16'], 'reference_placement': ['outer', 'inner'],
    'reorder_dimensions': ['on', 'off'], 'sort_unindexed': ['on', 'off'], 'short_circuit': ['on', 'off'],
    'access_pattern': ['full', 'linear_id', 'unicomp'], 'cell_order': ['linear', 'zorder', 'hilbert'],
    'work_order': ['none', 'sorted', 'queue'], 'threads_per_point': ['1', '8', '32'], 'streams': ['1', '3'],
    'batch_pairs': ['1', '3', '64', '1000'], 'topk_method': ['threshold', 'heap', 'sort'],
    'box_method': ['layered_grid', 'sort_sweep', 'none'], 'cpu_threads': ['1', '2', '5'],
    'host_memory_limit': ["'64kB'", "'200kB'", "'1MB'", "'20MB'"], 'device_memory_limit': ["'1MB'", "'4MB'"]}
PLANNER = ["work_mem = '64kB'", 'enable_seqscan = off', 'enable_hashagg = off', 'enable_sort = off', 'geqo_threshold = 2',
           'enable_partitionwise_join = on', 'enable_partitionwise_aggregate = on', 'join_collapse_limit = 1',
           'enable_material = off', 'enable_memoize = off', 'enable_indexscan = off', 'cursor_tuple_fraction = 1']
PARALLEL = ['parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0',
            'max_parallel_workers_per_gather = 2']


def random_settings(rng, forms):
    """SET statements; without the ordinary joins the node is what is left."""
    settings = []
    if rng.random() < 0.88:
        settings.append('enable_nestloop = off')
        settings += [f'enable_{join} = off' for join in ('hashjoin', 'mergejoin') if rng.random() < 0.8]
    if rng.random() < 0.4:
        settings += [f'gpujoin.{knob} = {rng.choice(KNOBS[knob])}' for knob in rng.sample(sorted(KNOBS), rng.randint(1, 3))]
    if rng.random() < 0.25:
        settings += rng.sample(PLANNER, rng.randint(1, 2))
    if rng.random() < 0.06:
        settings += PARALLEL
    if rng.random() < 0.01:
        settings += ['jit = on', 'jit_above_cost = 0']
    settings = [f'SET {setting};\n' for setting in settings]
    if rng.random() < (0.5 if 'rls' in forms else 0.05):
        settings.append(f'SET ROLE {READER};\n')
    return Items(settings, '')


class Query(Part):
    """`mode` says how results compare: 'bag', 'keys' (the first `keys` columns in order; which of equal ones is open)
    or 'some' (LIMIT without ORDER BY)."""

    def __init__(self, rng, schema):
        self.rng, self.schema, self.numbers = rng, schema, schema.numbers
        self.mode, self.keys = 'bag', 0
        self.guards = 0.12
        self.wrapper = rng.choice(WRAPPERS)
        self.outer = {'lateral': 'o.r', 'correlated': 'o.s', 'prepared': '$1'}.get(self.wrapper)
        self.values = [self.literal_radius() for _ in range(2)]
        self.limits = [rng.choice([0, 1, 3, 10, 1000]) for _ in range(2)]
        self.plan_mode = rng.choice(['auto', 'force_generic_plan', 'force_custom_plan'])
        self.outer_table = rng.choice(schema.tables).name
        super().__init__(self.select(top=True))
        if self.wrapper == 'union':
            self.pieces += [' UNION ALL ', Part(self.same_shape())]

    # ---- Conditions

    def literal_radius(self):
        return self.rng.choice([f"'{self.numbers.radius()!r}'"] * 12 + ["'NaN'", "'Infinity'", "'-1'", 'NULL', "'1e200'", "'-0'"])

    def radius(self):
        rng, value = self.rng, self.literal_radius()
        if self.outer and rng.random() < 0.8:
            return self.outer
        table = rng.choice(self.schema.tables).name
        return rng.choice([f'{value}::float8'] * 40 + [
            f'(SELECT {value}::float8)', f'(SELECT max(s) FROM {table} WHERE s < 5)', f'(SELECT s FROM {table} WHERE id = 3)',
            f'{value}::float8 * 1.5', f'abs({value}::float8)', f'{value}::real::float8',
            '1 / (SELECT 0.0::float8)', f'(SELECT s FROM {table})', f"(SELECT 'x' || t FROM {table} LIMIT 1)::float8"])

    def similarity(self, left, right, outer_join=False):
        """Conditions that end with a similarity; sometimes a guard and an operand that needs it."""
        rng = self.rng
        kind = rng.choice(self.schema.kinds)
        a, b = kind.operand(left), kind.operand(right)
        guards = []
        if rng.random() < self.guards * (2 if outer_join else 1):
            guard, a = kind.guarded(left)
            guards.append(guard)
        if rng.random() < self.guards / 2:
            guard, b = kind.guarded(right)
            guards.append(guard)
        self.last = kind, a, b
        if rng.random() < 0.3:
            a, b = b, a
        return guards + [kind.test(a, b, self.radius())]

    def on_one(self, t):
        rng = self.rng
        return rng.choice([f'{t}.id < {rng.randint(1, 60)}', f'{t}.grp = {rng.randint(0, 4)}', f'{t}.grp IN (0, 2, 3)',
                           f'{t}.s IS NOT NULL', f"{t}.t <> 'no'", f'{t}.id % 3 = 0', f'{t}.x > 2', f'{t}.s > 0',
                           f'{t}.id = {rng.randint(1, 20)}', f'{t}.id < 0', f'({t}.grp = 1 OR {t}.y < 3)',
                           f'{t}.grp = (SELECT min(grp) FROM {self.outer_table})'])

    def on_both(self, a, b):
        return self.rng.choice([f'{a}.id < {b}.id'] * 4 + [
            f'{a}.id <> {b}.id', f'{b}.id > {a}.id', f'{a}.id <= {b}.id', f'{a}.x < {b}.x', f'{a}.grp = {b}.grp', f'{a}.grp IS DISTINCT FROM {b}.grp',
            f'({a}.grp = 1 OR {b}.grp = 2)', f'{a}.id + {b}.id > 20', f'{a}.t = {b}.t', f'{a}.s < {b}.s',
            f'CASE WHEN {b}.grp = 0 THEN true ELSE {a}.grp / {b}.grp < 2 END', f'coalesce({a}.grp, 0) >= coalesce({b}.grp, 1)'])

    def conditions(self, a, b, kind='inner'):
        rng = self.rng
        found = self.similarity(a, b, kind != 'inner')
        if rng.random() < 0.1:
            found += self.similarity(a, b, kind != 'inner')
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
            extra = self.on_both(a, b) if rng.random() < 0.6 else self.on_one(rng.choice([a, b]))
            found.insert(rng.choice([0, len(found)]), extra)
        return found

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
        where = [self.on_one(rng.choice('ab'))] if rng.random() < 0.3 else []
        return Part(f'{first.name} a JOIN {second.name} b', Items(conditions, ' AND ', ' ON ', empty=' ON true')), where, 'ab'

    def joined(self):
        """FROM and the conditions of WHERE; the aliases that may be selected."""
        rng = self.rng
        kind = rng.choice(['inner'] * 12 + ['comma', 'left', 'exists', 'not exists'] * 4 +
                          ['left', 'right', 'right', 'three', 'three', 'three', 'in', 'lateral', 'left lateral', 'full'])
        a, b = self.relation('a'), self.relation('b')
        where = [self.on_one('a')] if rng.random() < 0.25 else []
        if kind == 'comma':
            return Part(a, ', ', b), self.conditions('a', 'b') + where, 'ab'
        if kind == 'exists' or kind == 'not exists':
            inner = Items(self.conditions('a', 'b', kind), ' AND ', ' WHERE ')
            return Part(a), [Part(f'{kind.upper()} (SELECT FROM ', b, inner, ')')] + where, 'a'
        if kind == 'in':
            inner = Items(self.conditions('a', 'b', kind), ' AND ', ' WHERE ')
            column = rng.choice(['id', 'grp'])
            return Part(a), [Part(f'a.{column} IN (SELECT b.{column} FROM ', b, inner, ')')] + where, 'a'
        if kind in ('lateral', 'left lateral'):
            inner = Items(self.conditions('a', 'b'), ' AND ', ' WHERE ')
            tail = rng.choice(['', '', '', '', ' OFFSET 0', ' ORDER BY b.grp, b.id, b.s, b.t LIMIT 3'])
            below = Part('(SELECT b.id, b.grp, b.s, b.t, b.n, b.x, b.y FROM ', b, inner, tail, ') b')
            self.last = None
            if kind == 'lateral':
                return Part(a, ', LATERAL ', below), where, 'ab'
            return Part(a, ' LEFT JOIN LATERAL ', below, ' ON true'), where, 'ab'
        if kind == 'three':
            first = Items(self.conditions('a', 'b'), ' AND ', ' ON ', empty=' ON true')
            link = self.conditions('b', 'c') if rng.random() < 0.6 else [rng.choice(['c.id = a.id', 'c.grp = b.id'])]
            word = rng.choice([' JOIN ', ' JOIN ', ' LEFT JOIN '])
            third = Part(word, self.relation('c'), Items(link, ' AND ', ' ON ', empty=' ON true'), simpler=[['']])
            self.last = None
            return Part(a, ' JOIN ', b, first, third), where, 'ab'
        if kind == 'full':
            return Part(a, ' FULL JOIN ', b, Items(['a.id = b.id'] + self.conditions('a', 'b'), ' AND ', ' ON ')), where, 'ab'
        word = {'left': ' LEFT JOIN ', 'right': ' RIGHT JOIN '}.get(kind, ' JOIN ')
        if kind != 'inner' and rng.random() < 0.3:
            where.append(rng.choice(['b.grp IS DISTINCT FROM a.grp', 'b.id IS NULL', 'a.id IS NOT NULL', 'coalesce(b.s, 1) > 0']))
        on = Items(self.conditions('a', 'b', kind), ' AND ', ' ON ', empty=' ON true')
        return Part(a, Part(word, simpler=[[' JOIN ']]), b, on), where, 'ab'

    # ---- SELECT

    def same_shape(self):
        """The second branch of a UNION ALL: one column, as the first has."""
        return self.select(top=False)

    def select(self, top):
        rng = self.rng
        if self.wrapper == 'union':
            ask = rng.choice([self.count, self.one_column])
        elif self.wrapper == 'correlated':
            ask = self.count
        elif self.wrapper in ('plain', 'prepared'):
            ask = rng.choice([self.rows] * 5 + [self.count] * 3 + [self.by_key] * 3 + [self.by_groups] + [self.distinct] +
                             [self.window] + [self.best] * 5 + [self.some])
        else:
            ask = rng.choice([self.rows] * 4 + [self.count] * 2 + [self.by_key] * 2 + [self.by_groups, self.distinct])
        simple = ask in (self.count, self.by_key, self.best) and rng.random() < 0.5
        source, where, aliases = self.pair() if simple else self.joined()
        return ask(source, Items(where, ' AND ', ' WHERE '), aliases)

    @staticmethod
    def named(columns):
        return Items([f'{column} AS c{number}' for number, column in enumerate(columns)])

    def columns(self, aliases):
        found = [f'{t}.id' for t in aliases]
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            found.append(self.rng.choice(aliases) + '.' + self.rng.choice(['grp', 's', 't', 'n', 'x']))
        return found

    def rows(self, source, where, aliases):
        columns = self.columns(aliases)
        distance = self.distance() if len(aliases) == 2 and self.rng.random() < 0.2 else None
        return Part('SELECT ', self.named(columns + ([distance] if distance else [])), ' FROM ', source, where)

    def one_column(self, source, where, aliases):
        return Part('SELECT ', self.rng.choice(aliases), '.id AS c0 FROM ', source, where)

    def count(self, source, where, aliases):
        what = self.rng.choice(['count(*)'] * 6 + [f'count({aliases[-1]}.id)', f'count({aliases[-1]}.s)',
                                                    f'count(DISTINCT {aliases[-1]}.id)'])
        return Part('SELECT ', what, ' AS c0 FROM ', source, where)

    def by_key(self, source, where, aliases):
        rng, t = self.rng, self.rng.choice(aliases)
        keys = [f'{t}.id'] + rng.choice([[], [], [f'{t}.grp'], [f'{t}.t', f'{t}.grp'], [f'{t}.id % 2'], ['1 + 0'], ['random()']])
        shown = [key for key in keys if key != 'random()' and key != '1 + 0']
        having = Items([rng.choice(['count(*) > 1', f'count(*) < 5 AND {t}.id > 3'])] if rng.random() < 0.2 else [], before=' HAVING ')
        return Part('SELECT ', self.named(shown + ['count(*)']), ' FROM ', source, where, Items(keys, before=' GROUP BY '), having)

    def by_groups(self, source, where, aliases):
        rng = self.rng
        keys = [f'{rng.choice(aliases)}.{name}' for name in rng.sample(['grp', 't', 'id'], rng.choice([1, 2]))]
        aggregate = rng.choice(['count(*)', f'min({aliases[0]}.id)', f'count(DISTINCT {aliases[-1]}.id)', f'sum({aliases[-1]}.id)',
                                f'bool_or({aliases[0]}.grp = 1)', f'array_agg({aliases[-1]}.id ORDER BY {aliases[-1]}.id)'])
        grouping = rng.choice([' GROUP BY ', ' GROUP BY ', ' GROUP BY ROLLUP (', ' GROUP BY CUBE ('])
        after = ')' if '(' in grouping else ''
        return Part('SELECT ', self.named(keys + [aggregate]), ' FROM ', source, where, Items(keys, before=grouping, after=after))

    def distinct(self, source, where, aliases):
        columns = [f'{self.rng.choice(aliases)}.{name}' for name in self.rng.sample(['id', 'grp', 't'], 2)]
        return Part('SELECT DISTINCT ', self.named(columns), ' FROM ', source, where)

    def window(self, source, where, aliases):
        return Part('SELECT ', self.named([f'{t}.id' for t in aliases] + [f'count(*) OVER (PARTITION BY {aliases[0]}.id)']),
                    ' FROM ', source, where)

    def limit(self):
        if self.wrapper == 'prepared':
            return Limit(' LIMIT $2')
        offset = f' OFFSET {self.rng.randint(0, 5)}' if self.rng.random() < 0.25 else ''
        return Limit(f' LIMIT {self.limits[0]}', Part(offset, simpler=[['']]))

    def best(self, source, where, aliases):
        self.mode, self.keys = 'keys', 1
        score = self.score() if len(aliases) == 2 else 'a.s'
        order = self.rng.choice(['c0', 'c0', 'c0 DESC', 'c0 DESC NULLS LAST', 'c0 NULLS FIRST'])
        more = [f', {t}.id' for t in aliases] if self.rng.random() < 0.4 else []
        return Part('SELECT ', Items([f'{score} AS c0'] + [f'{t}.id' for t in aliases]), ' FROM ', source, where,
                    f' ORDER BY {order}', Items(more, ''), self.limit())

    def some(self, source, where, aliases):
        self.mode = 'some'
        return Part('SELECT ', self.named(self.columns(aliases)), ' FROM ', source, where, self.limit())

    def distance(self):
        if not self.last or not self.last[0].distance:
            return None
        kind, a, b = self.last
        return kind.distance(a, b)

    def score(self):
        rng, distance = self.rng, self.distance()
        return rng.choice([distance or 'a.x + b.x'] * 6 + [
            'a.s + b.s', 'a.s + b.s', 'a.s - b.s', 'a.s * b.s', 'least(a.s, b.s)', 'greatest(b.s, a.s)', 'a.n + b.n', 'b.s - a.n::float8',
            'a.n::float8 + b.grp', 'a.s * a.s + b.grp', 'a.s / 2 + b.s * 3', 'a.id + b.id', 'a.x + b.y', 'coalesce(a.s, 0) + b.s',
            'a.grp * b.n', 'CASE WHEN a.grp = 1 THEN a.s ELSE 1 END + b.s', '-a.s + b.s', 'a.n * 1e200 + b.n', 'a.s::real + b.s'])

    # ---- Statements

    def reductions(self):
        if self.wrapper != 'plain':
            def make_plain():
                before = self.wrapper
                self.wrapper = 'plain'
                return lambda: setattr(self, 'wrapper', before)
            yield make_plain

    def sql(self, full=False):
        return ';\n'.join(self.statements(full)) + ';\n'

    def text(self, full=False):
        text = super().sql(full)
        if self.wrapper != 'prepared':
            text = text.replace('$1', f'{self.values[0]}::float8').replace('$2', str(self.limits[0]))
        return text

    def statements(self, full=False):
        """Those that run; the rows of each that returns any are compared. With `full` nothing ends the query early."""
        text, wrapper = self.text(full), 'plain' if full and self.wrapper == 'exists' else self.wrapper
        if wrapper == 'prepared':
            calls = [f'EXECUTE q({value}, {limit})' for value, limit in zip(self.values, self.limits)]
            if self.plan_mode == 'auto':
                calls = [calls[0]] * 5 + calls
            return [f'SET plan_cache_mode = {self.plan_mode}', f'PREPARE q(float8, int) AS {text}'] + calls
        if wrapper == 'cursor':
            return ['BEGIN', f'DECLARE c SCROLL CURSOR FOR {text}', 'FETCH ALL FROM c', 'MOVE ABSOLUTE 0 FROM c', 'FETCH ALL FROM c',
                    'COMMIT']
        if wrapper == 'table':
            return [f'CREATE TEMP TABLE result AS {text}', 'TABLE result']
        if wrapper == 'serializable':
            return ['BEGIN ISOLATION LEVEL SERIALIZABLE', text, 'COMMIT']
        if wrapper == 'delete':
            return ['BEGIN', f'WITH r AS ({text}), d AS (DELETE FROM {self.outer_table} WHERE id IN (SELECT c0 FROM r) RETURNING id) '
                    f'SELECT count(*) FROM d', f'SELECT count(*) FROM {self.outer_table}', 'ROLLBACK']
        return [WRAPPED.get(wrapper, '{}').format(text, table=self.outer_table, values=', '.join(f'({v}::float8)' for v in self.values + ["'1'"]))]

    def explained(self):
        """Statements of which the last one explains the plan."""
        text = self.text()
        if self.wrapper == 'prepared':
            return self.statements()[:2] + [f'EXPLAIN EXECUTE q({self.values[0]}, {self.limits[0]})']
        wrapped = WRAPPED.get(self.wrapper, '{}').format(text, table=self.outer_table, values="('1'::float8)")
        return ['EXPLAIN (COSTS OFF) ' + wrapped]


WRAPPED = {
    'subquery': 'SELECT * FROM ({}) s', 'barrier': 'SELECT * FROM ({} OFFSET 0) s',
    'cte': 'WITH s AS ({}) SELECT * FROM s', 'materialized': 'WITH s AS MATERIALIZED ({}) SELECT x.* FROM s x, (SELECT 1) y',
    'exists': 'SELECT EXISTS ({})', 'twice': 'SELECT count(*) FROM ({0}) s UNION ALL SELECT count(*) FROM ({0}) s',
    'lateral': 'SELECT o.r, s.* FROM (VALUES {values}) o(r), LATERAL ({} OFFSET 0) s',
    'correlated': 'SELECT o.id, ({}) FROM {table} o WHERE o.id < 6',
    'array': 'SELECT cardinality(ARRAY(SELECT c0 FROM ({}) s))'}
WRAPPERS = (['plain'] * 24 + ['prepared'] * 7 + ['subquery', 'barrier', 'cte', 'materialized', 'exists', 'twice', 'array', 'table',
                                                  'serializable', 'delete', 'union', 'union', 'union'] +
            ['lateral'] * 3 + ['correlated'] * 2 + ['cursor'] * 2)
