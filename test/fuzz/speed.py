"""Larger tables and ordinary settings: no plan that takes much longer than PostgreSQL's, none that takes much longer
to be made. What is quick in itself is never compared, and what seems slow is measured again."""
from compare import Difference, run
from pq import HANGS
from service import stopped
from tree import Items, Part

FLOOR = 0.2  # seconds; quicker plans are quick enough
TIMES = 5  # slower than PostgreSQL's
LONGEST = 4.0  # seconds that are waited
PLANNING = 0.01  # seconds that planning may take longer
WAIT = 0.5  # seconds that a join may take longer because the service hangs
TRAP = 20  # slower than the plan with the node that runs where nested loops are disabled
NO_LOOPS = ['enable_nestloop = off']


def noise(column):
    """A number from 0 to 1 of row i, the same every time."""
    return f'(hashint4(i * 61 + {column})::float8 / 4294967296 + 0.5)'


class LargeTable(Part):
    """Rows by a formula, then some odd ones."""

    def __init__(self, rng, name, kind):
        self.name, self.kind = name, kind
        self.style = rng.choice(['uniform', 'uniform', 'clusters', 'duplicates', 'line'])
        self.size = rng.choice(kind.sizes)
        x, y = self.coordinate(1), self.coordinate(2)
        self.rows = (f'INSERT INTO {name} SELECT i, i % 10, {noise(9)}, {kind.value(self, x, y)} '
                     f'FROM generate_series(1, {self.size}) i;\n')
        self.odd = Items([f'INSERT INTO {name} VALUES ({-number}, {rng.randint(0, 9)}, 1, {odd});\n' for number, odd in
                          enumerate(rng.sample(kind.odd, min(len(kind.odd), rng.choice([0, 0, 1, 2]))), 1)], '')
        self.indexes = Items([f'CREATE INDEX ON {name} USING gist (v);\n'] * (kind.indexed and rng.random() < 0.6) +
                             [f'CREATE INDEX ON {name} (grp);\n'] * (rng.random() < 0.4), '')
        super().__init__(f'CREATE TABLE {name} (id int PRIMARY KEY, grp int, s float8, v {kind.type});\n', self.rows,
                         self.odd, self.indexes, Items([f'ANALYZE {name};\n'] * (rng.random() < 0.75), ''))

    def coordinate(self, number):
        return {'uniform': f'100 * {noise(number)}', 'clusters': f'(i % 20) * 50 + {noise(number)}',
                'duplicates': f'(i * ({number} + 2) % 40)::float8', 'line': f'i * 0.01 * {number}'}[self.style]


class LargeKind:
    """A type: how a value is made of two coordinates, odd literals, conditions, and distances that rows are ordered by.
    `second`: the kind of the second table, if it has one of its own."""

    def __init__(self, type, value, odd, tests, indexed=False, sizes=(500, 2000, 4000, 10000), orders=('{} <-> {}',), needs=None, second=None):
        self.type, self.value, self.odd, self.tests, self.indexed = type, value, odd, tests, indexed
        self.sizes, self.orders, self.needs, self.second = sizes, orders, needs, second


def arrays(type, dimensions, odd, tests, **more):
    def value(table, x, y):
        return f'ARRAY(SELECT {table.coordinate("j")} FROM generate_series(1, {dimensions}) j)::{type}'
    return LargeKind(type, value, [text.format(', '.join(['1'] * (dimensions - 1))) for text in odd], tests,
                     sizes=[500, 2000, 4000, 10000] if dimensions < 100 else [200, 1000], **more)


DISTANCE = ['{} <-> {} <= {e}'] * 3 + ['{} <-> {} < {e}']
VECTOR_ORDERS = ['{} <-> {}', '{} <=> {}', '{} <#> {}']
NEAR_SHAPES = ['ST_DWithin({}, {}, {e})', 'ST_Intersects({}, {})', 'ST_Contains({1}, {0})', 'ST_Within({}, {})']
# Few polygons of thousands of vertices, which are stored out of line.
POLYGONS = LargeKind('geometry', lambda t, x, y: f'ST_Buffer(ST_MakePoint({x}, {y}), {noise(3)} * 30, 1 + 1500 / (1 + i % 3))', ["'POLYGON EMPTY'"],
                     NEAR_SHAPES, True, sizes=[1, 5, 20])
ODD_ARRAYS = ["'{{1e9, {}}}'", "'{{NaN, {}}}'", "'{{Infinity, {}}}'", "'{{-1e30, {}}}'"]
KINDS = [arrays('float8[]', dimensions, ODD_ARRAYS, DISTANCE + ['gpu_within({}, {}, {e})']) for dimensions in (2, 3, 16, 200)]
KINDS += [
    arrays('float4[]', 1536, ODD_ARRAYS, DISTANCE),
    arrays('vector', 16, ["'[1e9, {}]'"], DISTANCE + ['{} <=> {} <= {e} / 100', '{} <#> {} < -100'], orders=VECTOR_ORDERS, needs='vector'),
    arrays('halfvec', 16, ["'[60000, {}]'"], DISTANCE + ['{} <=> {} <= {e} / 100'], orders=VECTOR_ORDERS, needs='vector'),
    LargeKind('bit(64)', lambda t, x, y: f'(hashint8extended(({x})::bigint, 1) # (1::bigint << (i % 50)))::bit(64)', ["B'0'::bit(64)"],
              ['bit_count({} # {}) <= 2 * {e}'], orders=['bit_count({} # {})']),
    LargeKind('point', lambda t, x, y: f'point({x}, {y})', ["'(1e9,0)'", "'(Infinity,0)'", "'(1e160,0)'", "'(NaN,1)'"], DISTANCE, True),
    LargeKind('point', lambda t, x, y: f'point(({x})::numeric(9,6), ({y})::numeric(9,6))', [], DISTANCE, True),
    LargeKind('box', lambda t, x, y: f'box(point({x}, {y}), point({x} + 0.5, {y} + 0.5))',
              ["'(-1e6,-1e6),(1e6,1e6)'", "'(Infinity,0),(0,0)'", "'(NaN,1),(1,1)'"], ['{} && {}'], True, orders=['a.s + b.s']),
    LargeKind('cube', lambda t, x, y: f'cube(ARRAY[{x}, {y}])', ["cube('NaN'::float8)", "'(1e9,1)'", "'(1,2,3)'", "'(-1e6,-1e6),(1e6,1e6)'"],
              DISTANCE + ['{} && {}'], True, needs='cube'),
    LargeKind('geometry', lambda t, x, y: f'ST_MakePoint({x}, {y})',
              ["ST_MakePoint('Infinity', 0)", 'ST_MakeEnvelope(-1000, -1000, 2000, 2000)', "'POINT EMPTY'", 'ST_MakePoint(1e9, 1)'],
              ['ST_DWithin({}, {}, {e})'] * 2 + ['{} && {}', 'ST_Intersects({}, {})'], True, needs='postgis'),
    LargeKind('geometry', lambda t, x, y: f'ST_MakePoint({x}, {y})', ["'POINT EMPTY'"], NEAR_SHAPES, True, sizes=(4000, 12000, 20000), needs='postgis', second=POLYGONS),
    LargeKind('geometry', lambda t, x, y: f'ST_Buffer(ST_MakePoint({x}, {y}), 0.7, 2)',
              ["ST_MakeEnvelope(-1000, -1000, 2000, 2000)", "'POLYGON EMPTY'"], ['ST_Intersects({}, {})', '{} && {}'], True, needs='postgis')]


class LargeQuery(Part):
    """One join, asked for as users would."""
    mode, keys, wrapper = 'bag', 0, 'plain'

    def __init__(self, rng, tables):
        a, b = tables if tables[0].kind is not tables[1].kind and rng.random() < 0.9 else (rng.choice(tables), rng.choice(tables))
        self.stops = rng.random() < 0.1  # the service
        e = rng.choice([0, 0.1, 1, 1, 5])
        radius = rng.choice([f"'{e}'::float8"] * 5 + [f'(SELECT {e}::float8)', f'(SELECT {e}::float8) * 2', 'b.s', 'a.s + b.s', 'CASE WHEN b.grp = 3 THEN 5 ELSE b.s END'])
        test = rng.choice(a.kind.tests).format('a.v', 'b.v', e=radius)
        conditions = Items([test] + rng.choice([[], [], ['a.id < b.id'], ['a.id <> b.id'], ['a.grp = b.grp'], ['a.grp + 20 = b.grp'], ['a.id = 7'], ['a.grp = 3'],
                                                ['a.id % 100 = 0'], ['a.id < 50', 'b.id < 50'], ['a.s < b.s'], ['a.id + 1 = b.id']]), ' AND ')
        ask = rng.choice(['pairs', 'pairs', 'count', 'groups', 'group', 'unused', 'left', 'exists', 'not exists', 'limit', 'limit', 'nearest', 'best', 'lateral', 'early', 'three'])
        join = f'FROM {a.name} a JOIN {b.name} b ON '
        below = f'(SELECT FROM {b.name} b WHERE '
        order = rng.choice(a.kind.orders).format('a.v', 'b.v')
        near = rng.choice([[' WHERE ', conditions], []])
        nearest = [f'SELECT a.id, n.id FROM {a.name} a, LATERAL (SELECT b.id FROM {b.name} b', *near, f' ORDER BY {order} LIMIT 3) n']
        pieces = {
            'pairs': ['SELECT a.id, b.id ', join, conditions], 'count': ['SELECT count(*) ', join, conditions],
            'groups': ['SELECT a.id, count(*) ', join, conditions, ' GROUP BY a.id'],
            'group': ['SELECT a.grp ', join, conditions, ' GROUP BY a.grp'],
            'unused': ['SELECT count(*) FROM (SELECT a.grp, sum(b.s) ', join, conditions, ' GROUP BY 1) s'],
            'three': ['SELECT count(*), sum(c.s) ', join, conditions, f' JOIN {a.name} c ON c.id + 0 = b.id'],
            'left': [f'SELECT a.id, b.s FROM {a.name} a LEFT JOIN {b.name} b ON ', conditions],
            'exists': [f'SELECT a.id FROM {a.name} a WHERE EXISTS ', below, conditions, ')'],
            'not exists': [f'SELECT count(*) FROM {a.name} a WHERE NOT EXISTS ', below, conditions, ')'],
            'limit': ['SELECT a.id, b.id ', join, conditions, ' LIMIT 10'],
            'nearest': ['SELECT a.id, b.id ', join, conditions, f' ORDER BY {order}, 1, 2 LIMIT 10'],
            'best': ['SELECT a.id, b.id ', join, conditions, ' ORDER BY a.s + b.s DESC LIMIT 10'],
            'lateral': [*nearest, ' WHERE a.id < 100'], 'early': [*nearest, ' ORDER BY a.id LIMIT 5']}
        super().__init__(*pieces[ask])

    def text(self, full=False):
        return super().sql(full)

    def sql(self, full=False):
        return '-- the service is stopped: kill -STOP\n' * self.stops + f'EXPLAIN (ANALYZE, TIMING OFF) {self.text()};\n'

    def statements(self, full=False):
        return ['EXPLAIN (ANALYZE, TIMING OFF) ' + self.text()]

    def explained(self):
        return ['EXPLAIN ' + self.text()]


def large_cases(rng, extensions, queries, make_case):
    kind = rng.choice([kind for kind in KINDS if kind.needs is None or kind.needs in extensions])
    tables = [LargeTable(rng, 't1', kind), LargeTable(rng, 't2', kind.second or kind)]
    for _ in range(queries):
        settings = [f'SET {setting};\n' for setting in
                    rng.choice([[], [], [], [], ["work_mem = '64kB'"], ["gpujoin.host_memory_limit = '1MB'"], ['max_parallel_workers_per_gather = 2'],
                                ['enable_indexscan = off', 'enable_bitmapscan = off'], ['jit = on']])]
        yield make_case(Items(tables, ''), Items(settings, ''), LargeQuery(rng, tables))


def seconds(connection, case, node, explain=False, limit=LONGEST, more=()):
    """Of the statement, as it ran; more than any where it raised an error."""
    outcome = run(connection, case, node, explain=explain, more=[f'statement_timeout = {int(1000 * limit) + 1}', *more])
    return 1e9 if outcome.state else outcome.seconds, outcome


def compare_speed(connection, case, counts):
    return (compare_waits if case.query.stops else compare_times)(connection, case, counts)


def compare_waits(connection, case, counts):
    """Of some joins beside a service that hangs, only the first may wait for it."""
    seconds(connection, case, True)  # starts the service
    with stopped(connection) as processes:
        counts['with a stopped service'] += processes > 0
        found = min(seconds(connection, case, True)[0] for _ in range(3))
    alone = min(seconds(connection, case, True, more=['gpujoin.service = off'])[0] for _ in range(2))
    if found > alone + WAIT:
        return Difference('waits', f'{min(found, LONGEST):.3f} s, {alone:.3f} s without the service')
    return None


def is_trap(connection, case, found):
    """Whether the plan is much slower than one with the node that is there."""
    other, outcome = seconds(connection, case, True, limit=min(LONGEST, found) / TRAP, more=NO_LOOPS)
    return found > TRAP * other and any('GpuSimilarityJoin' in line for rows in outcome.rows for line, in rows)


def compare_times(connection, case, counts):
    planning = [min(seconds(connection, case, node, explain=True)[0] for _ in range(2)) for node in (True, False)]
    if planning[0] > planning[1] + PLANNING:
        planning = [min(seconds(connection, case, node, explain=True)[0] for _ in range(6)) for node in (True, False)]
        if planning[0] > planning[1] + PLANNING:
            return Difference('planning', '{:.1f} ms, {:.1f} ms without the node'.format(*(1000 * p for p in planning)))
    found, outcome = seconds(connection, case, True)
    if outcome.state == HANGS:
        return Difference('hangs', outcome.message)
    if found < FLOOR:
        counts['quick'] += 1
        return None
    if is_trap(connection, case, found):
        return Difference('trap', f'{min(found, LONGEST):.3f} s, much quicker where nested loops are disabled')
    without, other = seconds(connection, case, False, limit=min(LONGEST, found) / TIMES)
    if other.state == '57014':
        counts['PostgreSQL no quicker'] += 1
        return None
    if other.state:
        counts['errors'] += 1
        return None
    if outcome.state and outcome.state != '57014':
        return Difference(f'error {outcome.state}', outcome.message)
    for _ in range(2):
        without = min(without, seconds(connection, case, False)[0])
        found = min(found, seconds(connection, case, True)[0])
    if found > FLOOR and found > TIMES * without:
        return Difference('slow', f'{min(found, LONGEST):.3f} s, {without:.3f} s without the node')
    return None
