#!/usr/bin/env python3
"""The first part of make bench: a count over a table that nobody has read yet, the same once its rows stay in the service, and the
same in the session alone, by the number of rows; written to docs/pictures/first.csv, of which make pictures draws a picture.

Run by itself it measures the running server of PGHOST and prints lines to append to that file: so on a machine with a GPU
(test/device/run first). Needs numpy."""
import math
import os

from by_rows import device_of
from common import THREADS, cluster, load, measured_by, median_ms, psql_of, say, table, take_turns, versions
from figures import by_line, origins, replace_lines, text_of
from sessions import wait_for_service
from workloads import counts, load as load_table, uniform

SIZES = [10000, 30000, 100000, 300000, 1000000, 3000000]
NEIGHBORS = 10
TURNS = 9  # the first one is not counted
KINDS = {'first': 'first query', 'later': 'later queries', 'session': 'each query by its session'}


def run(psql, sizes, command):
    """A block of the file: a comment, and lines."""
    psql('CREATE EXTENSION IF NOT EXISTS gpujoin')
    found = {kind: [] for kind in KINDS}
    for rows in sizes:
        load_table(psql, 'places', 'v float4[]', rows, uniform('places'))
        query = counts(f'{math.sqrt(NEIGHBORS / (math.pi * rows)):.3g}')['function']
        wait_for_service(query)
        turns = {'first': take_turns(psql, TURNS, {'first': (query, {})}, "SELECT gpu_evict('places')")['first'],
                 'later': take_turns(psql, TURNS, {'later': (query, {})})['later'],
                 'session': take_turns(psql, TURNS, {'session': (query, {'gpujoin.service': 'off'})})['session']}
        if len({turn[0] for others in turns.values() for turn in others}) != 1:
            raise SystemExit('test/bench/run: other numbers of pairs')
        for kind, others in turns.items():
            seconds = median_ms(others[1:]) / 1e3
            say(f'{rows:,} rows, {KINDS[kind]}: {seconds:.4g} s')
            found[kind].append([rows, f'{seconds:.4g}', others[0][0]])
    device = device_of(psql)
    comment = '# ' + measured_by(command, f'medians of {TURNS - 1} turns, {load()}', *[device] * bool(device), versions(psql, False))
    return comment, [[f'{KINDS[kind]}, {device or f"{THREADS} cores"}', *line] for kind, lines in found.items() for line in lines]


def measure(scale):
    with cluster() as psql:
        replace_lines('first', *run(psql, [size for size in SIZES if size <= SIZES[-1] * scale], 'test/bench/run first'))


def text():
    """All that the file holds, as Markdown."""
    return ("Seconds of `SELECT count(*) FROM gpu_selfjoin('places', eps)`, `float4[]` of two dimensions, within a radius that leaves each row some "
            f'{NEIGHBORS} neighbours: the first query of a table (behind `gpu_evict`), later ones, whose rows and index stay in the service, and '
            'each by its own session, with `gpujoin.service = off` ([first.csv](pictures/first.csv)).\n\n'
            '![Rows against seconds of first and later queries](pictures/first.svg)\n\n' + table(*by_line('first')) + origins('first'))


if __name__ == '__main__':
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
    print(text_of(*run(psql_of(''), SIZES, 'test/device/run first')), end='')
