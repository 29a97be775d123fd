"""The shapes part of make bench: counts of neighbours where points are not uniform, by gpujoin and by PostGIS with a GiST index."""
import subprocess

import numpy

from common import WITHOUT_NODE, cluster, has_postgis, median_ms, number, ratio, say, table, take_turns, versions
from figures import compare
from workloads import exponential, galaxies, load, radius, random_of, scaled, uniform

ROWS = 100000
MOST_SECONDS = 60


def with_outlier(chunk, ids):
    points = uniform('outlier')(chunk, ids)[0].astype(numpy.float64)
    points[ids == 0] = 1e9
    return [points]


def equal(chunk, ids):
    return [numpy.full((len(ids), 2), 0.5, numpy.float32)]


def copies(chunk, ids):
    return [random_of('copied', 0).random((1000, 2), numpy.float32)[random_of('copies', chunk).integers(0, 1000, len(ids))]]


# {points: (rows, a type, what makes them, the radius)}
SHAPES = {
    'uniform': (ROWS, 'float4', uniform('uniform'), 0.006),
    'exponential, lambda 40': (ROWS, 'float4', exponential(2), 0.0004),
    'half uniform, half in 1,000 clusters': (ROWS, 'float4', galaxies(2), 0.003),
    'uniform, one row at 1e9': (ROWS, 'float8', with_outlier, 0.006),
    '1,000 places, each again and again': (ROWS, 'float4', copies, 0.001),
    'all equal': (ROWS // 10, 'float4', equal, 0.001)}


def gist_turns(psql, rounds, eps):
    """None where it takes too long."""
    sql = f'SELECT count(*) FROM geometries a JOIN geometries b ON ST_DWithin(a.g, b.g, {eps!r})'
    try:
        return take_turns(psql, rounds, {'PostGIS': (sql, {**WITHOUT_NODE, 'statement_timeout': f"'{MOST_SECONDS}s'"})})['PostGIS']
    except subprocess.CalledProcessError:
        return None


def tables(rounds, scale):
    """The table, as Markdown."""
    rows = []
    with cluster() as psql:
        postgis = has_postgis(psql)
        psql('CREATE EXTENSION gpujoin;' + 'CREATE EXTENSION postgis;' * postgis)
        for name, (count, kind, make, eps) in SHAPES.items():
            count, eps = scaled(count, scale), radius(eps, 2, scale)
            load(psql, 'shape', f'v {kind}[]', count, make)
            join = f'shape a JOIN shape b ON a.v <-> b.v <= {eps!r}'
            turns = take_turns(psql, rounds, {
                'count': (f'SELECT count(*) FROM {join}', {}),
                'by row': (f'SELECT sum(n) FROM (SELECT a.id, count(*) AS n FROM {join} GROUP BY a.id) s', {})})
            pairs = {turn[0] for others in turns.values() for turn in others}
            own_ms, gist = median_ms(turns['count']), None
            if postgis:
                psql('DROP TABLE IF EXISTS geometries;\nCREATE TABLE geometries AS SELECT id, ST_MakePoint(v[1], v[2]) AS g FROM shape;\n'
                     'CREATE INDEX ON geometries USING gist (g);\nVACUUM ANALYZE geometries;\n')
                say(f'{name} by PostGIS')
                gist = gist_turns(psql, rounds, eps)
            if gist:
                pairs |= {turn[0] for turn in gist}
                compare(f'{name} ({count:,})', 'PostGIS', own_ms, median_ms(gist))
            if len(pairs) != 1:
                raise SystemExit(f'test/bench/run: {name}: other numbers of pairs: {pairs}')
            rows.append([name, f'{count:,}', f'{eps:g}', f'{int(pairs.pop()):,}', number(own_ms), number(median_ms(turns['by row'])),
                         *([number(median_ms(gist)), ratio(median_ms(gist) / own_ms)] if gist else [f'> {MOST_SECONDS},000' if postgis else '', ''])])
        return (f'{versions(psql, postgis)}, as configured out of the box. `SELECT count(*)` of the self-join, and the neighbours of each row '
                'counted, by the node; the same number by `ST_DWithin` with a GiST index, in one process, which is stopped after '
                f'{MOST_SECONDS} s.\n\n' +
                table(['points of two dimensions', 'rows', 'eps', 'pairs', 'count, ms', 'by row, ms', 'PostGIS, count, ms', 'to gpujoin'], rows))
