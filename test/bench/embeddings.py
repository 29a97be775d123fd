#!/usr/bin/env python3
"""Searches of embeddings in tables that the service keeps, in the running server of PGHOST, which has gpujoin: by one session, by
many, and after an update; so on a machine with a GPU (test/device/run searches). Prints a table of whole queries by pgbench and psql.

SIZES='1000000x768 10000000x128' says how many rows, and numbers a row; SECONDS=5 how long pgbench runs."""
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from common import THREADS, WITHOUT_NODE, assignments, number, processor, psql_of, revision, table, times_of, versions
from search import OWN, measure, pgbench

SIZES = [tuple(map(int, size.split('x'))) for size in os.environ.get('SIZES', '1000000x768 10000000x128').split()]
SECONDS = int(os.environ.get('SECONDS', 5))
SESSIONS, TURNS, CHANGED, WANTED, CENTRES = 64, 9, 1000, 1000, 1000
QUERY = 'SELECT id FROM vectors ORDER BY v <-> {} LIMIT 10'
SCRIPT = f'\\set i random(1, {WANTED})\n' + QUERY.format('(SELECT v FROM wanted WHERE id = :i)') + ';\n'
psql = psql_of('')


def make_vectors(rows, dims):
    """Vectors around centres, and those that are looked for."""
    psql('DROP TABLE IF EXISTS centres, vectors, wanted;\nSELECT setseed(0.25) \\g /dev/null\n'
         f'CREATE UNLOGGED TABLE centres AS SELECT i AS id, (SELECT array_agg(random()) FROM generate_series(1, {dims}) n WHERE i = i) AS c FROM generate_series(0, {CENTRES - 1}) i;\n'
         'CREATE TABLE vectors (id int, v float4[]);\nCREATE TABLE wanted (id int PRIMARY KEY, v float4[]);\n')

    def fill(name, first, end, seed):
        psql(f'SELECT setseed({seed}) \\g /dev/null\n'
             f'INSERT INTO {name} SELECT i, (SELECT array_agg((x + 0.6 * random())::float4) FROM unnest(c) x WHERE i = i) FROM generate_series({first}, {end - 1}) i JOIN centres ON centres.id = i % {CENTRES};\n')
    steps = [rows * i // THREADS for i in range(THREADS + 1)]
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda i: fill('vectors', steps[i] + 1, steps[i + 1] + 1, i / THREADS), range(THREADS)))
    fill('wanted', 1, WANTED + 1, -0.5)
    psql('VACUUM ANALYZE vectors;\nVACUUM ANALYZE wanted;\n')


def session(script, settings):
    return psql(f"LOAD 'gpujoin';\n{assignments(settings)}{script}")


def queries_a_second(sessions, settings):
    said = pgbench(SCRIPT, settings, '-c', str(sessions), '-j', str(THREADS), '-T', str(SECONDS))
    return float(re.search(r'^tps = ([0-9.]+)', said, re.MULTILINE)[1])


def same_answers(count):
    """Whether the first queries find what PostgreSQL finds."""
    script = ''.join(QUERY.format(f'(SELECT v FROM wanted WHERE id = {i})') + ';\n' for i in range(1, count + 1))
    return session(script, OWN) == session(script, WITHOUT_NODE)


def lines_of(rows, dims):
    what = f'10 nearest of {rows:,} x {dims}'
    began = time.monotonic()
    make_vectors(rows, dims)
    print(f'{what}: made in {time.monotonic() - began:.0f} s', file=sys.stderr, flush=True)
    one = QUERY.format('(SELECT v FROM wanted WHERE id = {})')
    first = times_of(session('\\timing on\n' + ''.join(one.format(i) + ' \\g /dev/null\n' for i in (1, 2, 3)), OWN))
    yield [f'{what}: the first three queries', ', '.join(number(ms) for ms in first), '']
    print(session(f'EXPLAIN (ANALYZE, COSTS OFF) {one.format(7)};', OWN), file=sys.stderr, flush=True)
    yield [f'{what}: PostgreSQL without the node', number(min(times_of(session('\\timing on\n' + 2 * (one.format(5) + ' \\g /dev/null\n'), WITHOUT_NODE)))), '']
    middle, most = measure(1, {'gpujoin': (SCRIPT, OWN)})['gpujoin']
    yield [what, number(middle), number(most)]
    for sessions in (8, SESSIONS):
        yield [f'{what}: {sessions} sessions, queries a second', f'{queries_a_second(sessions, OWN):,.0f}', '']
    # The numbers have no common factor, so that rows around all centres change.
    update = f'UPDATE vectors SET v = v WHERE id % {rows // CHANGED - 1} = 1;\n'
    after = times_of(session(''.join(f'{update}\\timing on\n{one.format(i)} \\g /dev/null\n\\timing off\n' for i in range(1, TURNS + 1)), OWN))
    yield [f'{what}: after the first update of {CHANGED:,} rows all over the table', number(after[0]), '']
    yield [f'{what}: after further updates of the same rows', number(median(after[1:])), number(max(after[1:]))]
    yield [f'{what}: 5 answers compared with PostgreSQL', 'the same' if same_answers(5) else 'NOT THE SAME', '']


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
    psql('CREATE EXTENSION IF NOT EXISTS gpujoin;')
    device = psql("SELECT name FROM gpu_devices() WHERE engine = 'cuda' AND available LIMIT 1").strip()
    print(f'{time.strftime("%Y-%m-%d")}: {processor()}, {THREADS} processors, {device or "no GPU"}; {versions(psql, False)}; revision {revision()}\n', flush=True)
    lines = []
    for rows, dims in SIZES:
        for line in lines_of(rows, dims):
            print(' | '.join(line), file=sys.stderr, flush=True)
            lines.append(line)
    print(table(['search', 'median, ms', '99 %, ms'], lines), flush=True)


if __name__ == '__main__':
    main()
