#!/usr/bin/env python3
"""The rows part of make bench: seconds of one self-join by the number of rows, written to docs/pictures/rows.csv, of which
make pictures draws a picture. It counts the pairs of uniform points within a radius that leaves each some ten neighbours. And the
eps part: the same of the ionosphere sample by the radius, written to eps.csv.

Run by itself it measures the rows by gpujoin alone in the running server of PGHOST, and prints lines to append to that file: so on a
machine with a GPU (test/device/run rows)."""
import math
import os
import subprocess
import sys

from common import THREADS, WITHOUT_NODE, cluster, has_postgis, load, measured_by, median_ms, psql_of, say, table, take_turns, uses_node, versions
from figures import by_line, origins, replace_lines, text_of
from sample import load_sample

SIZES = [1000, 3000, 10000, 30000, 100000, 300000, 1000000, 3000000, 10000000]
LARGE_SIZES = [30000000, 100000000]
RADII = [0.003, 0.01, 0.03, 0.1, 0.3, 1, 3]
NEIGHBORS = 10
FEW = 1000  # rows, which may be joined without the node
TURNS, MORE_TURNS, QUICK_MS = 3, 20, 1000
SLOW_SECONDS, MOST_SECONDS = 10, 60  # a line ends behind what took the first, and before what takes the second
SETTINGS = {'jit': 'off', 'statement_timeout': MOST_SECONDS * 1000}
PARALLEL = {'parallel_setup_cost': 0, 'parallel_tuple_cost': 0, 'min_parallel_table_scan_size': 0,
            'max_parallel_workers_per_gather': THREADS}
NAMES = {'PostgreSQL': 'PostgreSQL, nested loop', 'PostGIS': 'PostGIS, GiST index', 'cube': 'cube, GiST index', 'point': 'point, GiST index'}


def make_tables(psql, rows, others):
    """The same points for all. Each contender has a table of its own, with nothing in it but what it needs."""
    script = ('DROP TABLE IF EXISTS points, numbers, geometries;\nSELECT setseed(0.5) \\g /dev/null\n'
              'CREATE UNLOGGED TABLE numbers AS SELECT n AS id, random() AS x, random() AS y '
              f'FROM generate_series(1, {rows}) n;\n'
              'CREATE UNLOGGED TABLE points AS SELECT id, ARRAY[x, y] AS v FROM numbers;\n')
    if 'PostGIS' in others:
        script += ('CREATE UNLOGGED TABLE geometries AS SELECT id, ST_MakePoint(x, y) AS g FROM numbers;\n'
                   'CREATE INDEX ON geometries USING gist (g);\nVACUUM ANALYZE geometries;\n')
    psql(script + 'VACUUM ANALYZE points;\nVACUUM ANALYZE numbers;\n')


def condition(name, eps):
    return {'PostgreSQL': 'numbers a JOIN numbers b ON '
                          f'(a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) <= {eps} * {eps}',
            'PostGIS': f'geometries a JOIN geometries b ON ST_DWithin(a.g, b.g, {eps})',
            'cube': f'cubes a JOIN cubes b ON a.c <@ cube_enlarge(b.c, {eps}, 2) AND a.c <-> b.c <= {eps}',
            'point': f'native_points a JOIN native_points b ON a.p <@ circle(b.p, {eps})',
            'gpujoin': f'points a JOIN points b ON a.v <-> b.v <= {eps}'}[name]


def turns_of(psql, name, sql):
    """Turns of the query, which others may run in parallel or not, whichever is faster; None when it takes too long."""
    ways = {'as it is': (sql, SETTINGS)}
    if name != 'gpujoin':
        ways = {'alone': (sql, {**SETTINGS, **WITHOUT_NODE, 'max_parallel_workers_per_gather': 0}),
                'parallel': (sql, {**SETTINGS, **WITHOUT_NODE, **PARALLEL})}
    first = {}
    for way, query in ways.items():
        try:
            first.update(take_turns(psql, 1, {way: query}))
        except subprocess.CalledProcessError:
            pass  # not in time
    if not first:
        return None
    best = min(first, key=lambda way: median_ms(first[way]))
    if median_ms(first[best]) > QUICK_MS:
        return first[best] + take_turns(psql, TURNS - 1, {best: ways[best]})[best]
    return min(take_turns(psql, MORE_TURNS, {way: ways[way] for way in first}).values(), key=median_ms)


def device_of(psql):
    """The device's name where gpujoin runs on one, else ''."""
    return psql("SELECT name FROM gpu_devices() WHERE engine = 'cuda' AND available LIMIT 1").strip()


def measure(psql, contenders, cases):
    """{contender: [[x, seconds, pairs], ...]} of cases, each an x and a function that makes the tables of what it is told, and returns
    the radius."""
    lines = {name: [] for name in contenders}
    going = list(contenders)
    for x, make in cases:
        if not going:
            break
        eps, counted = make(going), set()
        for name in list(going):
            sql = f'SELECT count(*) FROM {condition(name, eps)}'
            if name == 'gpujoin' and x != FEW and not uses_node(psql, sql):
                sys.exit(f'test/bench/run: not by the node: {sql}')
            turns = turns_of(psql, name, sql)
            if turns is None:
                say(f'{name}, {x:,}: not within {MOST_SECONDS} seconds')
                going.remove(name)
                continue
            seconds = min(ms for _, ms, _ in turns) / 1e3
            counted.add(turns[0][0])
            say(f'{name}, {x:,}: {seconds:.4g} s, {turns[0][0]} pairs')
            lines[name].append([x, f'{seconds:.4g}', turns[0][0]])
            if seconds > SLOW_SECONDS:
                going.remove(name)
        if len(counted) > 1:
            sys.exit(f'test/bench/run: other numbers of pairs: {", ".join(counted)}')
    return lines


def extensions(psql, contenders):
    """Makes those that are needed, and leaves out contenders that are not to be had."""
    psql('CREATE EXTENSION IF NOT EXISTS gpujoin')
    if 'PostGIS' not in contenders:
        return contenders
    if has_postgis(psql):
        psql('CREATE EXTENSION IF NOT EXISTS postgis')
        return contenders
    return [name for name in contenders if name != 'PostGIS']


def block(psql, measured, command, *more):
    """A block of the file: a comment, and lines."""
    device = device_of(psql)
    names = {**NAMES, 'gpujoin': f'gpujoin, {device}' if device else f'gpujoin, {THREADS} cores'}
    comment = '# ' + measured_by(command, f'least of {TURNS} turns or more, {load()}', *[device] * bool(device),
                                 f'{versions(psql, "PostGIS" in measured)}, shared_buffers {psql("SHOW shared_buffers").strip()}', *more)
    return comment, [[names[name], *line] for name, values in measured.items() for line in values]


def run(psql, contenders, sizes, command):
    def case(rows):
        def make(going):
            make_tables(psql, rows, going)
            return f'{math.sqrt(NEIGHBORS / (math.pi * rows)):.3g}'
        return rows, make
    contenders = extensions(psql, contenders)
    return block(psql, measure(psql, contenders, map(case, sizes)), command)


def measure_rows(scale, large):
    sizes = [size for size in SIZES + LARGE_SIZES * large if large or size <= max(FEW, scale * SIZES[-1])]
    with cluster() as psql:
        replace_lines('rows', *run(psql, ['PostgreSQL', 'PostGIS', 'gpujoin'], sizes, 'test/bench/run rows'))


def rows_text():
    """All that the file holds, as Markdown."""
    return ('Seconds of `SELECT count(*)` of the self-join of uniform points, within a radius that leaves each some '
            f'{NEIGHBORS} neighbours ([rows.csv](pictures/rows.csv)).\n\n![Rows against seconds](pictures/rows.svg)\n\n' +
            table(*by_line('rows')) + origins('rows'))


def measure_eps(scale):
    with cluster() as psql:
        postgis = has_postgis(psql)
        points = load_sample(psql, postgis, scale)
        contenders = ['PostGIS'] * postgis + ['cube', 'point', 'gpujoin']
        measured = measure(psql, contenders, [(eps, lambda _, eps=eps: f'{eps:g}') for eps in RADII])
        replace_lines('eps', *block(psql, measured, 'test/bench/run eps', points))


def eps_text():
    return ('Seconds of `SELECT count(*)` of a self-join of the same points by the radius; [eps.csv](pictures/eps.csv) has the numbers of pairs.\n\n'
            '![Eps against seconds](pictures/eps.svg)\n\n' + table(*by_line('eps')) + origins('eps'))


if __name__ == '__main__':
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
    print(text_of(*run(psql_of(''), ['gpujoin'], SIZES, 'test/device/run rows')), end='')
