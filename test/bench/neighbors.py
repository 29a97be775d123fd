"""The neighbors part of make bench: the k nearest of each point by the CPU engine and by scipy's k-d tree, and clusters of points by
gpujoin and by PostGIS."""
import json
import subprocess
from statistics import median

from common import THREADS, cluster, has_postgis, median_ms, number, output_of, ratio, say, table, take_turns, versions

CASES = [(2, 1000000, 1), (2, 1000000, 8), (2, 1000000, 64), (3, 500000, 1), (3, 500000, 8), (6, 200000, 8)]
PYTHON = '/usr/bin/python3'

MAKE = """
CREATE EXTENSION gpujoin;
SELECT setseed(0.5) \\g /dev/null
CREATE TABLE points AS SELECT i AS id, ARRAY[random(), random()] AS v FROM generate_series(1, 1000000) i;
"""
MAKE_GEOMETRIES = """
CREATE EXTENSION postgis;
CREATE TABLE geometries AS SELECT id, ST_MakePoint(v[1], v[2]) AS g FROM points;
"""
COUNTS = 'SELECT count(DISTINCT c), count(c) FROM ({}) s'


def own_turn(build, case):
    dims, count, k = case
    line = output_of(f'{build}/gpujoin_measure_nearest', f'threads={THREADS}', 'rounds=1', 'check=0', f'unif,{dims},{count},0,{k}')
    return {'ms': float(line.splitlines()[-1].split('|')[4]) * 1e3}


def scipy_turn(case):
    return json.loads(output_of(PYTHON, 'test/bench/scipy_nearest.py', *map(str, case), str(THREADS)))


def nearest_table(rounds, build):
    say('Building gpujoin_measure_nearest')
    output_of('cmake', '-S', '.', '-B', build, '-DCMAKE_BUILD_TYPE=Release')
    output_of('cmake', '--build', build, '-j', str(THREADS), '--target', 'gpujoin_measure_nearest')
    has_scipy = subprocess.run([PYTHON, '-c', 'import scipy'], capture_output=True, check=False).returncode == 0
    version, rows = '', []
    for case in CASES:
        dims, count, k = case
        say(f'The {k} nearest of {count:,} points in {dims} dimensions')
        own, others = [], []
        for _ in range(rounds):
            own.append(own_turn(build, case)['ms'])
            if has_scipy:
                turn = scipy_turn(case)
                others.append(turn['ms'])
                version = turn['version']
        row = [f'{dims} dimensions', f'{count:,}', str(k), number(median(own))]
        rows.append(row + ([number(median(others)), ratio(median(others) / median(own))] if others else ['', '']))
    return (f'The k nearest others of each of so many uniform random points, index included, {THREADS} threads each; scipy '
            f'{version or "is not installed"}, cKDTree, has other such points.\n\n' +
            table(['points', 'number', 'k', 'gpujoin, ms', 'scipy, ms', 'ratio'], rows))


def cluster_queries(eps, postgis):
    queries = {
        '`gpu_dbscan`': (COUNTS.format(f"SELECT nullif(cluster, -1) AS c FROM gpu_dbscan('points', {eps}, 5, 'id', 'v')"), {}),
        '`gpu_cluster_dbscan(...) OVER ()`': (COUNTS.format(f'SELECT gpu_cluster_dbscan(v, {eps}, 5) OVER () AS c FROM points'), {})}
    if postgis:
        window = COUNTS.format(f'SELECT ST_ClusterDBSCAN(g, {eps}, 5) OVER () AS c FROM geometries')
        queries['`ST_ClusterDBSCAN(...) OVER ()` by gpujoin'] = (window, {})
        queries['`ST_ClusterDBSCAN(...) OVER ()` by PostGIS'] = (window, {'gpujoin.enable_customscan': 'off'})
    return queries


def cluster_table(rounds):
    rows = []
    with cluster() as psql:
        postgis = has_postgis(psql)
        psql(MAKE + (MAKE_GEOMETRIES if postgis else '') + 'VACUUM ANALYZE;')
        for eps in 0.002, 0.005:
            say(f'Clusters, eps {eps}')
            turns = take_turns(psql, rounds, cluster_queries(eps, postgis))
            results = {turn[0] for others in turns.values() for turn in others}
            if len(results) != 1:
                raise SystemExit(f'clusters differ: {results}')
            own_ms = median_ms(turns['`gpu_dbscan`'])
            found = results.pop().split('|')
            for name, others in turns.items():
                ms = median_ms(others)
                rows.append([name, f'{eps:g}', f'{int(found[0]):,}', f'{int(found[1]):,}', number(ms), '' if ms == own_ms else ratio(ms / own_ms)])
        return (f'{versions(psql, postgis)}, as configured out of the box. DBSCAN of 1,000,000 uniform points in a unit square, min_points 5, '
                'clusters and rows in clusters counted.\n\n' +
                table(['query', 'eps', 'clusters', 'rows in them', 'ms', 'to gpu_dbscan'], rows))


def tables(rounds, build):
    """The tables, as Markdown."""
    return nearest_table(rounds, build) + cluster_table(rounds)
