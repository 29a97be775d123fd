"""The search part of make bench: one value against a table, by prepared statements of pgbench, with what else answers them."""
import os
import tempfile
from statistics import median, quantiles

from common import WITHOUT_NODE, assignments, cluster, has_postgis, number, output_of, ratio, say, table, times_of, versions

SECONDS = 3
OWN, SCAN = {'gpujoin.service': 'on', 'gpujoin.prefer_node': 'on'}, {**WITHOUT_NODE, 'enable_indexscan': 'off', 'enable_bitmapscan': 'off'}
AT = '\\set x random(0, 1000)\n\\set y random(0, 1000)\n'
HERE, THERE = 'point(:x::float8, :y::float8)', 'ST_SetSRID(ST_MakePoint(:x::float8, :y::float8), 3857)'
PICK = '\\set i random(1, {vectors})\n'
PICKED = '(SELECT v FROM wanted WHERE id = :i)'
CLUSTERS = 1000


def make_points(psql, rows, postgis):
    shapes = ', ST_SetSRID(ST_MakePoint(x, y), 3857) AS g' if postgis else ''
    psql(f'SELECT setseed(0.5) \\g /dev/null\nCREATE TABLE points AS SELECT i AS id, point(x, y) AS p{shapes} FROM (SELECT i, 1000 * random() AS x, '
         f'1000 * random() AS y FROM generate_series(1, {rows}) i OFFSET 0) s;\nCREATE INDEX by_p ON points USING gist (p);\n' +
         ('CREATE INDEX by_g ON points USING gist (g);\n' if postgis else '') + 'VACUUM ANALYZE points;\n')


def make_vectors(psql, rows, dims):
    """Vectors around centres, and those that are looked for."""
    noise = f'(SELECT array_agg(random() ORDER BY n) FROM generate_series(1, {dims}) n WHERE i = i)'
    psql(f'SELECT setseed(0.25) \\g /dev/null\nCREATE TABLE centres AS SELECT i AS id, {noise} AS c FROM generate_series(0, {CLUSTERS - 1}) i;\n'
         f'CREATE TABLE drawn AS SELECT i AS id, (SELECT array_agg(c + 0.6 * random() ORDER BY n) FROM unnest(c) WITH ORDINALITY u(c, n) WHERE i = i)::vector({dims}) AS v '
         f'FROM generate_series(1, {rows + 1000}) i JOIN centres ON centres.id = i % {CLUSTERS};\n'
         f'CREATE TABLE vectors AS SELECT * FROM drawn WHERE id <= {rows};\nCREATE TABLE wanted AS SELECT id - {rows} AS id, v FROM drawn WHERE id > {rows};\n'
         'ALTER TABLE wanted ADD PRIMARY KEY (id);\nVACUUM ANALYZE vectors;\nVACUUM ANALYZE wanted;\n')


def keep(psql, sql):
    """Has the service keep the table that the query searches for each of some rows."""
    psql(f"LOAD 'gpujoin';\nSET gpujoin.service = on;\nSET gpujoin.prefer_node = on;\n{sql} \\g /dev/null\n")


def pgbench(script, settings, *options):
    """What pgbench says of prepared statements of the script, in sessions with these settings."""
    given = ' '.join(f'-c {key}={value}' for key, value in {'session_preload_libraries': 'gpujoin', **settings}.items())
    return output_of('pgbench', '-n', '-M', 'prepared', *options, '-f', '-', input=script,
                     env={**os.environ, 'PGOPTIONS': f"{os.environ.get('PGOPTIONS', '')} {given}"})


def latencies(script, settings):
    """Milliseconds of each transaction."""
    with tempfile.TemporaryDirectory() as folder:
        pgbench(script, settings, '-T', str(SECONDS), '-l', '--log-prefix', f'{folder}/log')
        names = [name for name in os.listdir(folder) if name.startswith('log')]
        return [int(line.split()[2]) / 1e3 for name in names for line in open(f'{folder}/{name}')]


def measure(rounds, contenders):
    """{name: (median, 99th percentile)} of scripts with settings, which take turns; the first turn of each warms caches."""
    times = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, (script, settings) in contenders.items():
            found = latencies(script, settings)
            times[name] += found if turn > 0 else []
    return {name: (median(found), quantiles(found, n=100)[98]) for name, found in times.items()}


def rows_of(what, rounds, contenders):
    """Rows of the table: the first contender is ours."""
    say(f'Searching: {what}')
    found = measure(rounds, contenders)
    own = next(iter(found.values()))[0]
    lines = []
    for name, (middle, most) in found.items():
        lines.append([what if not lines else '', name, number(middle), number(most), ratio(middle / own) if lines else ''])
    return lines


def recall(psql, sql, count):
    """The share of the true first rows that an index finds."""
    def ids(settings, wanted):
        return set(psql(f"LOAD 'gpujoin';\n{assignments(settings)}{sql.replace(':i', str(wanted))};\n").split())
    found = [(ids(WITHOUT_NODE, i), ids(SCAN, i)) for i in range(1, count + 1)]
    return sum(len(some & all_) for some, all_ in found) / sum(len(all_) for _, all_ in found)


def vector_rows(psql, rounds, scale):
    rows, dims = round(100000 * scale), 384
    make_vectors(psql, rows, dims)
    keep(psql, 'SELECT (SELECT v.id FROM vectors v ORDER BY v.v <-> w.v LIMIT 1) FROM wanted w LIMIT 20;')
    sql = f'SELECT id FROM vectors ORDER BY v <-> {PICKED} LIMIT 10'
    script = PICK.format(vectors=1000) + sql + ';\n'
    lines = rows_of(f'10 nearest of {rows:,} vectors, {dims}-D', rounds, {'gpujoin': (script, OWN), 'pgvector, sequential scan': (script, SCAN)})
    say('An HNSW index')
    seconds = psql('\\timing on\nCREATE INDEX ON vectors USING hnsw (v vector_l2_ops);\n')
    seconds = times_of(seconds)[0] / 1e3
    share = recall(psql, sql, 100)
    found = rows_of('the same', rounds, {'gpujoin': (script, OWN), f'pgvector HNSW, recall {share:.3f}, built in {seconds:.0f} s': (script, WITHOUT_NODE)})
    return lines + found[1:]


def statement_ms(psql, rounds, statement, settings):
    """The median of a whole statement, rolled back."""
    output = psql(f"LOAD 'gpujoin';\n{assignments(settings)}" + f'BEGIN;\n\\timing on\n{statement};\n\\timing off\nROLLBACK;\n' * (rounds + 1))
    return median(times_of(output)[1:])


def statement_row(psql, rounds, what, searched, other):
    say(f'Searching: {what}')
    own, joined = statement_ms(psql, rounds, searched, OWN), statement_ms(psql, rounds, other[1], OWN)
    return [[what, 'gpujoin', number(own), '', ''], ['', other[0], number(joined), '', ratio(joined / own)]]


def tables(rounds, scale):
    """The tables, as Markdown."""
    rows, lines = round(1000000 * scale), []
    with cluster() as psql:
        postgis = has_postgis(psql)
        vectors = psql("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'").strip() == '1'
        psql('CREATE EXTENSION gpujoin;\n' + 'CREATE EXTENSION postgis;\n' * postgis + 'CREATE EXTENSION vector;\n' * vectors)
        make_points(psql, rows, postgis)
        radius = 1000 * (10 / 3.1416 / rows) ** 0.5
        keep(psql, 'SELECT (SELECT b.id FROM points b ORDER BY b.p <-> a.p LIMIT 1) FROM points a LIMIT 20;')
        near, within = f'{AT}SELECT id FROM points ORDER BY p <-> {HERE} LIMIT 10;\n', f'{AT}SELECT id FROM points WHERE p <-> {HERE} < {radius};\n'
        lines += rows_of(f'10 nearest of {rows:,} points', rounds, {'gpujoin': (near, OWN), 'GiST': (near, WITHOUT_NODE), 'sequential scan': (near, SCAN)})
        lines += rows_of(f'about 10 of {rows:,} points within a radius', rounds, {'gpujoin': (within, OWN), 'GiST, `p <@ circle`': (
            f'{AT}SELECT id FROM points WHERE p <@ circle({HERE}, {radius});\n', WITHOUT_NODE), 'sequential scan': (within, SCAN)})
        if postgis:
            keep(psql, 'SELECT (SELECT b.id FROM points b ORDER BY b.g <-> a.g LIMIT 1) FROM points a LIMIT 20;')
            near, within = f'{AT}SELECT id FROM points ORDER BY g <-> {THERE} LIMIT 10;\n', f'{AT}SELECT id FROM points WHERE ST_DWithin(g, {THERE}, {radius});\n'
            lines += rows_of(f'10 nearest of {rows:,} geometries', rounds, {'gpujoin': (near, OWN), 'PostGIS, GiST': (near, WITHOUT_NODE)})
            lines += rows_of(f'about 10 of {rows:,} geometries, `ST_DWithin`', rounds, {'gpujoin': (within, OWN), 'PostGIS, GiST': (within, WITHOUT_NODE)})
            psql('DROP INDEX by_g;\n')
            psql(f'CREATE TABLE stops AS SELECT * FROM points WHERE id <= {round(3000 * scale)};\nANALYZE stops;\n')
            count = f'(SELECT count(*) FROM points p WHERE ST_DWithin(p.g, s.g, {radius}))'
            lines += statement_row(psql, rounds, f'{round(3000 * scale):,} rows, each with its count of {rows:,} geometries', f'SELECT sum(n) FROM (SELECT {count} AS n FROM stops s OFFSET 0) q',
                                   ('gpujoin, LEFT JOIN', f'SELECT sum(n) FROM (SELECT s.id, count(p.id) AS n FROM stops s LEFT JOIN points p ON ST_DWithin(p.g, s.g, {radius}) GROUP BY 1) q'))
        psql(f'CREATE TABLE places AS SELECT id, p, 0 AS nearest FROM points WHERE id <= {round(20000 * scale)};\nCREATE TABLE few AS SELECT id, p FROM points WHERE id > {rows - round(100000 * scale)};\n'
             'VACUUM ANALYZE places;\nVACUUM ANALYZE few;\n')
        first = '(SELECT id FROM few ORDER BY few.p <-> places.p LIMIT 1)'
        lines += statement_row(psql, rounds, f'UPDATE of {round(20000 * scale):,} rows, the nearest of {round(100000 * scale):,}', f'UPDATE places SET nearest = {first}',
                               ('gpujoin, LATERAL join', f'SELECT sum(n.id) FROM places, LATERAL {first} n'))
        if vectors:
            lines += vector_rows(psql, rounds, scale)
        origin = versions(psql, postgis) + (', pgvector ' + psql("SELECT extversion FROM pg_extension WHERE extname = 'vector'").strip() if vectors else '')
    return (f'One value against a table that the service keeps, by prepared statements of one session of pgbench, {SECONDS} seconds a turn; whole statements by psql. Vectors lie '
            f'around {CLUSTERS:,} centres. {origin}.\n\n' + table(['search', 'by', 'median, ms', '99 %, ms', 'ratio'], lines))
