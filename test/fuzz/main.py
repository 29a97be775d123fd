#!/usr/bin/env python3
"""make fuzz: random schemas and queries, each with the node and without it. See CONTRIBUTING.md."""
import argparse
import itertools
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter

from compare import Case, compare, plan, run
from functions import Call, compare_call, limits_of, random_call
from pq import CONNECTION_LOST, HANGS, Connection
from query import Query
from schema import READER, Schema
from searches import Search
from settings import random_settings
from speed import LargeQuery, compare_speed, large_cases
from stale import run_stale
from tree import Items, reduce

OPTIONS = ('-c search_path=fuzz,public -c statement_timeout=4s -c client_min_messages=error -c jit=off -c extra_float_digits=1 '
           '-c max_parallel_workers_per_gather=0 -c session_preload_libraries=gpujoin')
SHOWN_PER_KIND = 5
CALLS = 0.07  # share of calls of gpujoin's functions
SEARCHES = 0.2  # and of queries that search a table


class Session:
    """A database of its own, and a connection to it."""

    def __init__(self, arguments):
        database = f'fuzz_{arguments.seed}'
        maintenance = Connection(options='-c client_min_messages=error')
        maintenance.run(f'DROP DATABASE IF EXISTS {database}')
        maintenance.must(f'CREATE DATABASE {database}')
        maintenance.run(f'CREATE ROLE {READER}')
        self.database = database
        maintenance.close()
        engine = f' -c gpujoin.engine={arguments.engine}' if arguments.engine else ''
        self.connection = Connection(dbname=database, options=OPTIONS + engine)
        self.connection.must('SET statement_timeout = 0')  # until the tables of the first case
        self.extensions = []
        for name in arguments.extensions.split(','):
            if not self.connection.must(f"SELECT FROM pg_available_extensions WHERE name = '{name}'"):
                continue
            # Some releases of PostgreSQL refuse the operators of some releases of pg_sphere.
            create = self.connection.run if name == 'pg_sphere' else self.connection.must
            create(f'CREATE EXTENSION {name}')
            if self.connection.must(f"SELECT FROM pg_extension WHERE extname = '{name}'"):
                self.extensions.append(name)

    def close(self):
        self.connection.close()
        Connection().run(f'DROP DATABASE {self.database}')


def cases(seed, arguments, extensions):
    """The cases of a seed, always the same: a schema, and queries over it."""
    rng, queries = random.Random(seed), arguments.queries
    if arguments.mode == 'speed':
        yield from large_cases(rng, extensions, queries // 4, Case)
        return
    schema = Schema(rng, extensions)
    tables = Items(schema.tables, '')
    forms = [table.form for table in schema.tables]
    for _ in range(queries):
        ask = rng.choices([random_call, Search, Query], [CALLS, SEARCHES, 1 - CALLS - SEARCHES])[0]
        query = ask(rng, schema)
        yield Case(tables, random_settings(rng, forms, limits_of(getattr(query, 'function', None)), ask is Search), query)


def judge(connection, case, counts):
    """The Difference, or None."""
    if isinstance(case.query, LargeQuery):
        return compare_speed(connection, case, counts)
    if isinstance(case.query, Call):
        counts['calls'] += 1
        return compare_call(connection, case, run, counts)
    return compare(connection, case, counts)


def note_plan(counts, lines):
    text = '\n'.join(lines)
    if 'GpuSimilarity' not in text:
        return
    counts['node'] += 1
    counts['searches'] += 'GpuSimilarityScan' in text
    for name, sign in [('counting', 'Counts:'), ('sums', 'Added Up:'), ('top-k', 'Top-k Join'), ('boxes', 'Box Join')]:
        counts[name] += sign in text


def copy(seed, number, arguments, extensions):
    """A case made once more from its seed, to be reduced."""
    return next(itertools.islice(cases(seed, arguments, extensions), number, None))


def revive(connection):
    """Connects anew after a crash, or where a statement hangs."""
    if connection.run('SELECT').state in (CONNECTION_LOST, HANGS):
        connection.reconnect()


def shrink(session, case, kind, seconds):
    connection = session.connection

    def still_fails():
        if case.set_up(connection):
            return False
        difference = judge(connection, case, Counter())
        revive(connection)
        return difference is not None and difference.kind == kind
    if still_fails():
        reduce(case, still_fails, seconds)
        case.set_up(connection)
    difference = judge(connection, case, Counter())
    revive(connection)
    return difference


def report(seed, number, arguments, extensions, difference, case, again):
    print(f'not ok {difference.kind}, seed {seed}, query {number}: {difference.detail}')
    mode = '' if arguments.mode == 'joins' else f' MODE={arguments.mode}'
    print(f'# make fuzz SEED={seed} ROUNDS=1{mode} runs it again where the extensions are {",".join(extensions)}; the smallest that was found, {again.detail if again else "none"}:')
    for line in case.sql().splitlines():
        print('#   ' + line)
    print(flush=True)


def run_round(session, seed, arguments, deadline, counts, kinds):
    connection = session.connection
    ready = False
    for number, case in enumerate(cases(seed, arguments, session.extensions)):
        if time.monotonic() > deadline:
            return
        if not ready:
            problem = case.set_up(connection)
            if problem:
                print(f'not ok the tables of seed {seed}: {problem[:300]}')
                counts['differences'] += 1
                revive(connection)
                return
            ready = True
        note_plan(counts, plan(connection, case))
        counts['queries'] += 1
        difference = judge(connection, case, counts)
        if difference is None:
            continue
        counts['differences'] += 1
        kinds[difference.kind] += 1
        revive(connection)
        if kinds[difference.kind] <= arguments.shown:
            small = copy(seed, number, arguments, session.extensions)
            again = shrink(session, small, difference.kind, arguments.reduce)
            report(seed, number, arguments, session.extensions, difference, small, again)
        ready = False


def run_jobs(arguments):
    """Runs so many processes at once, each with seeds of its own; prints what they print, one after the other."""
    options = sys.argv[1:] + ['--jobs', '1', '--seed']
    outputs = [tempfile.TemporaryFile() for _ in range(arguments.jobs)]
    processes = [subprocess.Popen([sys.executable, '-B', __file__, *options, str(arguments.seed + 1000 * number)], stdout=output)
                 for number, output in enumerate(outputs)]
    failed = sum(process.wait() != 0 for process in processes)
    for output in outputs:
        output.seek(0)
        sys.stdout.write(output.read().decode())
    sys.exit(failed > 0)


def run_stale_mode(arguments):
    session = Session(arguments)
    run = run_stale(session.database, arguments.seconds, arguments.seed, arguments.kills, arguments.level)
    session.close()
    for name in sorted(run.counts):
        print(f'# {name}: {run.counts[name]}')
    for problem in run.problems:
        print(f'not ok {problem}')
    print(f"{'not ok' if run.problems else 'ok'} fuzz: {run.counts['comparisons']} comparisons, {len(run.problems)} differences")
    sys.exit(bool(run.problems))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seconds', type=float, default=60, help='after which no query is started')
    parser.add_argument('--seed', type=int, help='of the first round; each round after it has the next one')
    parser.add_argument('--rounds', type=int, default=10 ** 9)
    parser.add_argument('--queries', type=int, default=60, help='of a round, which has one schema')
    parser.add_argument('--mode', choices=['joins', 'speed', 'stale'], default='joins',
                        help='what is compared: rows and errors, times, or rows that stay with rows that are read')
    parser.add_argument('--kills', type=int, default=0, help='in mode stale: how often the service is killed meanwhile')
    parser.add_argument('--level', default='', help='in mode stale: the isolation level of all readers')
    parser.add_argument('--engine', default='', help='cpu or cuda')
    parser.add_argument('--reduce', type=float, default=20, help='seconds spent on making a difference small')
    parser.add_argument('--shown', type=int, default=SHOWN_PER_KIND, help='differences of a kind that are reduced and shown')
    parser.add_argument('--extensions', default='gpujoin,cube,postgis,vector,earthdistance,q3c,pg_sphere', help='those of them that the server has are used')
    parser.add_argument('--jobs', type=int, default=1, help='processes at once')
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(10 ** 6) * 1000
    if arguments.jobs > 1:
        run_jobs(arguments)
    print(f'# seed {arguments.seed}', flush=True)
    if arguments.mode == 'stale':
        run_stale_mode(arguments)
    session = Session(arguments)
    counts, kinds = Counter(), Counter()
    deadline = time.monotonic() + arguments.seconds
    for round_number in range(arguments.rounds):
        if time.monotonic() > deadline:
            break
        counts['rounds'] += 1
        run_round(session, arguments.seed + round_number, arguments, deadline, counts, kinds)
    session.close()
    for name in sorted(counts):
        print(f'# {name}: {counts[name]}')
    for kind in sorted(kinds):
        print(f'# {kind}: {kinds[kind]}')
    words = f"fuzz: {counts['queries']} queries, {counts['node']} with the node in the plan, {counts['differences']} differences"
    few = arguments.mode == 'joins' and counts['node'] < counts['queries'] / 3
    print(('not ok ' if counts['differences'] or few else 'ok ') + words)
    sys.exit(bool(counts['differences'] or few))


if __name__ == '__main__':
    main()
