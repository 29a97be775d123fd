#!/usr/bin/env python3
"""The rows part of make bench: seconds of one self-join by the number of rows, written to docs/pictures/rows.csv, of which
make pictures draws a picture. It counts the pairs of uniform points within a radius that leaves each some ten neighbours.

Run by itself it measures gpujoin alone in the running server of PGHOST, and prints lines to append to that file: so on a
machine with a GPU (test/device/run rows)."""
import csv
import math
import os
import subprocess
import sys
import time

from common import (THREADS, WITHOUT_NODE, cluster, has_postgis, median_ms, processor, psql_of, revision, say, table,
                    take_turns, uses_node, versions)

FILE = 'docs/pictures/rows.csv'
SIZES = [1000, 3000, 10000, 30000, 100000, 300000, 1000000, 3000000, 10000000]
NEIGHBORS = 10
TURNS, MORE_TURNS, QUICK_MS = 3, 20, 1000
SLOW_SECONDS, MOST_SECONDS = 10, 60  # a line ends behind what took the first, and before what takes the second
SETTINGS = {'jit': 'off', 'statement_timeout': MOST_SECONDS * 1000}
PARALLEL = {'parallel_setup_cost': 0, 'parallel_tuple_cost': 0, 'min_parallel_table_scan_size': 0,
            'max_parallel_workers_per_gather': THREADS}


def make_tables(psql, rows, others):
    """The same points for all. Each contender has a table of its own, with nothing in it but what it needs."""
    script = (f'SET client_min_messages = warning;\nDROP TABLE IF EXISTS points, numbers, geometries;\n'
              'SELECT setseed(0.5) \\g /dev/null\n'
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


def gpu(psql):
    """The device's name where gpujoin runs on one, else ''."""
    return psql("SELECT name FROM gpu_devices() WHERE engine = 'cuda' AND available LIMIT 1").strip()


def measure(psql, contenders):
    """{contender: [[rows, seconds, pairs], ...]}"""
    lines = {name: [] for name in contenders}
    going = list(contenders)
    for rows in SIZES:
        if not going:
            break
        eps = f'{math.sqrt(NEIGHBORS / (math.pi * rows)):.3g}'
        make_tables(psql, rows, going)
        counted = set()
        for name in list(going):
            sql = f'SELECT count(*) FROM {condition(name, eps)}'
            if name == 'gpujoin' and rows > SIZES[0] and not uses_node(psql, sql):
                sys.exit(f'test/bench/run: not by the node: {sql}')
            turns = turns_of(psql, name, sql)
            if turns is None:
                say(f'{name}, {rows:,} rows: not within {MOST_SECONDS} seconds')
                going.remove(name)
                continue
            seconds = min(ms for _, ms, _ in turns) / 1e3
            counted.add(turns[0][0])
            say(f'{name}, {rows:,} rows: {seconds:.4g} s, {turns[0][0]} pairs')
            lines[name].append([rows, f'{seconds:.4g}', turns[0][0]])
            if seconds > SLOW_SECONDS:
                going.remove(name)
        if len(counted) > 1:
            sys.exit(f'test/bench/run: other numbers of pairs: {", ".join(counted)}')
    return lines


def run(psql, contenders, command):
    """A block of the file: a comment, and lines of CSV."""
    psql('CREATE EXTENSION IF NOT EXISTS gpujoin')
    device = gpu(psql)
    postgis = 'PostGIS' in contenders and has_postgis(psql)
    if postgis:
        psql('CREATE EXTENSION IF NOT EXISTS postgis')
    else:
        contenders = [name for name in contenders if name != 'PostGIS']
    names = {'PostgreSQL': 'PostgreSQL, nested loop', 'PostGIS': 'PostGIS, GiST index',
             'gpujoin': f'gpujoin, {device}' if device else f'gpujoin, {THREADS} cores'}
    lines = measure(psql, contenders)
    comment = (f'# Measured by `{command}` on {time.strftime("%Y-%m-%d")}: {processor()}, {THREADS} processors'
               f'{", " + device if device else ""}; {versions(psql, postgis)}, '
               f'shared_buffers {psql("SHOW shared_buffers").strip()}; revision {revision()}; '
               f'least of {TURNS} turns or more, at a load of {os.getloadavg()[2]:.1f}')
    return comment, [[names[name], *line] for name, values in lines.items() for line in values]


# ---- The file: blocks, each of which begins with a comment that says where its lines come from

def read_blocks(path=FILE):
    """[(comment, [[line, rows, seconds, pairs], ...]), ...]"""
    blocks = []
    if os.path.exists(path):
        with open(path, newline='') as file:
            for line in file:
                if line.startswith('#'):
                    blocks.append((line.rstrip(), []))
                elif line.strip() and blocks:
                    blocks[-1][1].extend(csv.reader([line]))
    return blocks


def text_of(comment, rows):
    return comment + '\n' + ''.join(f'"{name}",{",".join(str(value) for value in values)}\n' for name, *values in rows)


def replace_lines(comment, rows):
    """Writes the block, instead of what the file has of its lines."""
    measured = {row[0] for row in rows}
    blocks = [(c, [row for row in lines if row[0] not in measured]) for c, lines in read_blocks()]
    blocks = [block for block in blocks if block[1]] + [(comment, rows)]
    os.makedirs(os.path.dirname(FILE), exist_ok=True)
    with open(FILE, 'w') as file:
        file.write(''.join(text_of(*block) for block in blocks))
    say(f'Wrote {FILE}')


def tables():
    """Measures, writes the file, and returns a table of all that it holds, as Markdown."""
    with cluster() as psql:
        replace_lines(*run(psql, ['PostgreSQL', 'PostGIS', 'gpujoin'], 'test/bench/run rows'))
    blocks = read_blocks()
    names = list(dict.fromkeys(row[0] for _, rows in blocks for row in rows))
    cells = {(row[0], int(row[1])): row[2] for _, rows in blocks for row in rows}
    rows = [[f'{size:,}'] + [cells.get((name, size), '') for name in names]
            for size in SIZES]
    return (f'Seconds of `SELECT count(*)` of the self-join of uniform points, within a radius that leaves each some '
            f'{NEIGHBORS} neighbours. The picture docs/pictures/rows.svg is '
            'drawn of it by `make pictures`; docs/pictures/rows.csv says where each line was measured.\n\n' +
            table(['rows', *names], rows))


if __name__ == '__main__':
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
    print(text_of(*run(psql_of(''), ['gpujoin'], 'test/device/run rows')), end='')
