"""Whether the planner chooses well: random joins over size, selectivity, order of rows, filters, LIMIT, kinds of joins and
indexes, dimensions, widths of rows, keys and tables without statistics, each as it is planned, by the node, and without it."""
import json
import math
import random
import re

from common import WITHOUT_NODE, assignments, cluster, number, say, table

CASES = 200
SIZES = (300, 3000, 30000)
# Tables of vectors: dimensions, and rows. Those of "wide" have text of 3 kB in each row, those of "new" no statistics.
VECTORS = [(2, 300), (2, 30000), (8, 3000), (8, 30000), (64, 300), (64, 10000), (128, 3000), (512, 300), (512, 3000)]
KINDS = ('plain', 'wide', 'new')
MOST_SECONDS = 20
PREFERRED = {'gpujoin.prefer_node': 'on'}

# Points are densest at x = 0: rows 'late' lie by x, so that what matches rarely comes last. Of the vectors of 32 dimensions
# every fiftieth is near the others like it.
TABLES = '''
CREATE FUNCTION make(size int, late boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  name text := format('points_%s_%s', size, CASE WHEN late THEN 'late' ELSE 'mixed' END);
BEGIN
  EXECUTE format('CREATE TABLE %s (id int PRIMARY KEY, v float8[], p point, b box, e float4[], name text, day int, kind int)', name);
  EXECUTE format('INSERT INTO %s SELECT i, ARRAY[x, y], point(x, y), box(point(x, y), point(x + 1, y + 1)),
      (SELECT array_agg((random() + CASE WHEN k = 1 AND i %% 50 <> 0 THEN 3 * (i %% 1000) ELSE 0 END)::float4) FROM generate_series(1, 32) k),
      ''name '' || i, i %% 10, i %% 10
    FROM (SELECT row_number() OVER (ORDER BY CASE WHEN %L THEN x ELSE random() END) AS i, x, y
      FROM (SELECT 100 * random() ^ 2 AS x, 100 * random() AS y FROM generate_series(1, %s)) raw) s', name, late, size);
  EXECUTE format('CREATE INDEX ON %s USING gist (p)', name);
  EXECUTE format('CREATE INDEX ON %s USING gist (b)', name);
END $$;
-- Twenty rows and more are near the same centre, at distances of 0.03 * sqrt(dims) or so.
CREATE FUNCTION make_vectors(dims int, size int, kind text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  name text := format('vectors_%s_%s_%s', dims, size, kind);
BEGIN
  EXECUTE format('CREATE TABLE %s (id int PRIMARY KEY, e float4[], k int, t int, name text, day int, kind int, pad text)
                  WITH (autovacuum_enabled = %s)', name, kind <> 'new');
  EXECUTE format('INSERT INTO %s SELECT i, (SELECT array_agg((c.x[d] + 0.07 * random())::float4 ORDER BY d) FROM generate_series(1, %s) d),
      i %% 50, i / 10, ''name '' || i, i %% 10, i %% 10, repeat(md5(i::text), %s)
    FROM (SELECT k, array_agg(3 * random()) AS x FROM generate_series(1, %s) k, generate_series(1, %s) GROUP BY k) c
    JOIN generate_series(1, %s) i ON i %% %s + 1 = c.k ORDER BY random()', name, dims, CASE kind WHEN 'wide' THEN 94 ELSE 0 END,
    greatest(size / 20, 10), dims, size, greatest(size / 20, 10));
END $$;
SELECT setseed(0.5);
'''


def condition(rng, left, right):
    """A similarity condition that about a chosen share of pairs meets."""
    share = 10 ** rng.uniform(-6.5, -1)
    radius = 100 * math.sqrt(share / math.pi)
    return rng.choice([
        f'{left}.v <-> {right}.v <= {radius:.4g}', f'gpu_within({left}.v, {right}.v, {radius:.4g})',
        f'{left}.p <-> {right}.p <= {radius:.4g}', f'{left}.p <@ circle({right}.p, {radius:.4g})',
        f'{left}.b && {right}.b', f'{left}.e <-> {right}.e <= {rng.choice([0.5, 1.0, 1.6, 2.3])}'])


def filters(rng, row):
    """Conditions on one row, some of which PostgreSQL estimates well."""
    return rng.choice([
        [], [], [], [f'{row}.id <= {rng.choice([5, 50, 1000])}'], [f'{row}.id = {rng.randint(1, 300)}'],
        [f"{row}.name LIKE '%{rng.randint(0, 9)}'"], [f'{row}.day = 3', f'{row}.kind = 3'],
        [f'{row}.day + {row}.kind = 6'], [f'{row}.id % 7 = 0']])


def near_vectors(rng, dims):
    """A condition on vectors, and maybe keys beside it."""
    radius = 0.03 * math.sqrt(dims) * rng.choice([0.5, 0.9, 1.0, 1.3])
    keys = rng.choice(['', '', ' AND a.k = b.k', ' AND a.t BETWEEN b.t - 3 AND b.t + 3', ' AND a.k = b.k AND abs(a.t - b.t) <= 20'])
    return f'a.e <-> b.e <= {radius:.4g}{keys}'


def random_sides(rng):
    """Two tables, and a condition on their rows a and b."""
    if rng.random() < 0.5:
        left, right = (f"points_{rng.choice(SIZES)}_{rng.choice(['late', 'mixed'])}" for _ in range(2))
        return left, right, condition(rng, 'a', 'b'), 'v'
    dims = rng.choice(VECTORS)[0]
    left, right = (f'vectors_{dims}_{rng.choice([size for of, size in VECTORS if of == dims])}_{rng.choice(KINDS)}' for _ in range(2))
    return left, right, near_vectors(rng, dims), 'e'


def random_query(rng):
    left, right, near, vector = random_sides(rng)
    where = filters(rng, 'a')
    kind = rng.choice(['pairs', 'pairs', 'limit', 'limit', 'count', 'left', 'exists', 'not exists', 'nearest'])
    shown = rng.choice(['a.id, b.id', 'a.id, b.id', 'a.id, b.*'])
    if kind in ('exists', 'not exists'):
        where.append(f'{kind.upper()} (SELECT FROM {right} b WHERE {" AND ".join([near] + filters(rng, "b"))})')
        sql = f'SELECT a.id FROM {left} a'
    elif kind == 'left':
        sql = f'SELECT {shown} FROM {left} a LEFT JOIN {right} b ON {near}'
    else:
        near += rng.choice(['', '', ' AND a.id < b.id']) if left == right else ''
        where += filters(rng, 'b')
        sql = f'SELECT {"count(*)" if kind == "count" else shown} FROM {left} a JOIN {right} b ON {near}'
    if where:
        sql += ' WHERE ' + ' AND '.join(where)
    if kind == 'nearest':
        sql += f' ORDER BY a.{vector} <-> b.{vector} LIMIT 10'
    elif kind == 'limit':
        sql += f' LIMIT {rng.choice([1, 10, 1000])}'
    return kind, sql


def milliseconds(psql, sql, settings, most):
    """Of running it, the least of three times; and whether the node was used. None if that takes longer than `most`
    each time."""
    script = "LOAD 'gpujoin';\n\\set ON_ERROR_STOP 0\n" + assignments(settings)
    script += f"SET statement_timeout = '{math.ceil(most)}ms';\n"
    script += f'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql};\n\\echo @turn\n' * 3
    times, uses_node = [], False
    for part in psql(script).split('@turn'):
        if part.strip().startswith('['):
            plan = json.loads(part)[0]
            times.append(plan['Execution Time'])
            uses_node = 'GpuSimilarityJoin' in part
    return (min(times), uses_node) if times else (None, None)


def tables(count=CASES, seed=1):
    """Markdown."""
    rng = random.Random(seed)
    rows, ratios = [], []
    with cluster() as psql:
        say('Loading tables')
        psql('CREATE EXTENSION IF NOT EXISTS gpujoin;\n' + TABLES + ''.join(
            f'SELECT make({size}, {late});\n' for size in SIZES for late in (True, False)) + ''.join(
            f"SELECT make_vectors({dims}, {size}, '{kind}');\n" + ('ANALYZE;\n' if kind == 'wide' and (dims, size) == VECTORS[-1] else '')
            for kind in KINDS for dims, size in VECTORS))
        for case in range(count):
            kind, sql = random_query(rng)
            chosen, by_node = milliseconds(psql, sql, {}, 1000 * MOST_SECONDS)
            most = chosen or 1000 * MOST_SECONDS
            others = [milliseconds(psql, sql, settings, most)[0] for settings in (PREFERRED, WITHOUT_NODE)]
            best = min([most] + [other for other in others if other])
            ratios.append((most / best, most, best, kind, by_node, sql))
            say(f'{case + 1}: {most:.2f} ms, best {best:.2f} ({most / best:.2f}), {"node" if by_node else "other"}: {sql}')
    worst = sorted(ratios, reverse=True)
    for kind in sorted({kind for _, _, _, kind, _, _ in ratios}):
        own = [(taken, by_node) for taken, _, _, of, by_node, _ in ratios if of == kind]
        rows.append([kind, str(len(own)), str(sum(by_node is True for _, by_node in own)), str(sum(taken > 2 for taken, _ in own)),
                     str(sum(taken > 5 for taken, _ in own)), number(max(taken for taken, _ in own))])
    rows.append(['all', str(count), str(sum(by_node is True for *_, by_node, _ in ratios)), str(sum(taken > 2 for taken, *_ in ratios)),
                 str(sum(taken > 5 for taken, *_ in ratios)), number(worst[0][0])])
    return (f'{count} random joins (seed {seed}): the plan that was chosen against the best of it, the node, and PostgreSQL\'s own '
            'plan, by the least of three times of running each.\n\n' +
            table(['joins', 'number', 'by the node', '> 2 times slower', '> 5 times', 'worst'], rows) +
            table(['times slower', 'ms', 'best, ms', 'chosen', 'join'], [
                [number(taken), number(ms), number(best), 'node' if by_node else 'other', f'`{re.sub("[|]", "", sql)}`']
                for taken, ms, best, _, by_node, sql in worst[:8]]))
