"""The clusters part of make bench: DBSCAN by gpujoin, by PostGIS, and by scikit-learn where it is installed."""
import json
import sys
import tempfile

from common import WITHOUT_NODE, cluster, has_module, has_postgis, median_ms, number, output_of, ratio, say, table, take_turns, versions
from figures import compare
from sample import load_sample

MIN_POINTS = 5
COUNTS = 'SELECT coalesce(max(c) + 1, 0), count(c) FROM ({}) s'  # all number their clusters from 0; count(DISTINCT c) would sort
OWN, FIRST, NODE, POSTGIS, SKLEARN = ('`gpu_dbscan`', '`gpu_dbscan`, `gpujoin.service = off`', '`ST_ClusterDBSCAN(...) OVER ()` by gpujoin', '`ST_ClusterDBSCAN(...) OVER ()` by PostGIS',
                               'scikit-learn, `DBSCAN`')
HEADER = ['query', 'points', 'eps', 'clusters', 'rows in them', 'ms', 'to gpu_dbscan']
AREA_HEADER = ['query', 'areas', 'eps', 'clusters', 'rows in them', 'ms', 'to gpujoin']


def windows(geometries, eps):
    window = COUNTS.format(f'SELECT ST_ClusterDBSCAN(g, {eps}, {MIN_POINTS}) OVER () AS c FROM {geometries}')
    return {NODE: (window, {}), POSTGIS: (window, WITHOUT_NODE)}


def queries(name, geometries, eps, postgis):
    by_function = COUNTS.format(f"SELECT nullif(cluster, -1) AS c FROM gpu_dbscan('{name}', {eps}, {MIN_POINTS})")
    ways = {
        OWN: (by_function, {}), FIRST: (by_function, {'gpujoin.service': 'off'}),
        '`gpu_cluster_dbscan(...) OVER ()`': (COUNTS.format(f'SELECT gpu_cluster_dbscan(v, {eps}, {MIN_POINTS}) OVER () AS c FROM {name}'), {})}
    return {**ways, **(windows(geometries, eps) if postgis else {})}


def sklearn_turn(path, eps):
    """As take_turns() has them, from coordinates in memory."""
    turn = json.loads(output_of(sys.executable, 'test/bench/sklearn_dbscan.py', path, str(eps), str(MIN_POINTS)))
    return turn['result'], turn['ms'], turn['version']


def rows_of(psql, rounds, points, name, geometries, eps, postgis):
    count = int(psql(f'SELECT count(*) FROM {name}'))
    say(f'Clusters of {count:,} {points}, eps {eps}')
    turns = take_turns(psql, rounds, queries(name, geometries, eps, postgis))
    if has_module('sklearn'):
        with tempfile.NamedTemporaryFile('w', suffix='.csv') as file:
            file.write(psql(f"COPY (SELECT v[1], v[2] FROM {name}) TO STDOUT (FORMAT csv)"))
            file.flush()
            turns[SKLEARN] = [sklearn_turn(file.name, eps) for _ in range(rounds)]
    return rows_of_turns(turns, OWN, f'{count:,} {points}', eps)


def rows_of_turns(turns, own, what, eps):
    """Rows of a table, of which all have the same answer."""
    results = {turn[0] for others in turns.values() for turn in others}
    if len(results) != 1:
        raise SystemExit(f'test/bench/run: clusters differ: {", ".join(results)}')
    own_ms, found = median_ms(turns[own]), [f'{int(value):,}' for value in results.pop().split('|')]
    for way, peer in (POSTGIS, 'PostGIS'), (SKLEARN, 'scikit-learn'):
        if way in turns:
            compare(f'DBSCAN of {what}, eps {eps}', peer, own_ms, median_ms(turns[way]))
    return [[way, what, f'{eps:g}', *found, number(median_ms(others)), '' if way == own else ratio(median_ms(others) / own_ms)]
            for way, others in turns.items()]


def area_table(psql, rounds, scale):
    """Circles of radius 1, of 17 corners, whose middles are uniform."""
    count, rows = round(100000 * scale), []
    psql(f'CREATE TABLE areas AS SELECT ST_Buffer(ST_MakePoint(v[1] * {scale ** 0.5} * 1000, v[2] * {scale ** 0.5} * 1000), 1, 4) AS g FROM uniform '
         f'WHERE id <= {count};\nVACUUM ANALYZE areas;')
    for eps in 1, 3:
        say(f'Clusters of {count:,} areas, eps {eps}')
        rows += rows_of_turns(take_turns(psql, rounds, windows('areas', eps)), NODE, f'{count:,} circles of 17 corners', eps)
    return f'\nLikewise areas: circles of radius 1 in a square of {1000 * scale ** 0.5:.0f}, as polygons.\n\n' + table(AREA_HEADER, rows)


def tables(rounds, scale):
    """The table, as Markdown."""
    with cluster() as psql:
        postgis = has_postgis(psql)
        sample = load_sample(psql, postgis, scale)
        psql('SELECT setseed(0.5) \\g /dev/null\nCREATE TABLE uniform AS SELECT i AS id, ARRAY[random(), random()] AS v '
             f'FROM generate_series(1, {round(1000000 * scale)}) i;\nALTER TABLE uniform ADD PRIMARY KEY (id);\n' +
             ('CREATE TABLE uniform_geometries AS SELECT id, ST_MakePoint(v[1], v[2]) AS g FROM uniform;\n' if postgis else '') + 'VACUUM ANALYZE;')
        rows = []
        for eps in 0.002, 0.005:
            rows += rows_of(psql, rounds, 'uniform', 'uniform', 'uniform_geometries', float(f'{eps / scale ** 0.5:.3g}'), postgis)
        for eps in 0.05, 1:
            rows += rows_of(psql, rounds, 'of the sample', 'points', 'geometries', eps, postgis)
        library = output_of(sys.executable, '-c', 'import sklearn; print(sklearn.__version__)').strip() if has_module('sklearn') else 'is not installed'
        return (f'{versions(psql, postgis)}, as configured out of the box; scikit-learn {library}, from coordinates in memory, with its defaults but '
                f'for all processors. DBSCAN of two dimensions, min_points {MIN_POINTS}; with `gpujoin.service = off` a query reads its '
                f'table and builds its index, which later ones find in the service: uniform points in a unit square, and {sample}; the numbers of '
                'clusters and of rows in them have to be the same.\n\n' +
                table(HEADER, rows) + (area_table(psql, rounds, scale) if postgis else ''))
