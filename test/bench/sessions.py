#!/usr/bin/env python3
"""The sessions part of make bench: joins of many sessions over one table, with the service that they share and without it.

Run by itself it measures the running server of PGHOST, which has gpujoin, and prints tables: so on a machine with a GPU
(test/device/run sessions). ROWS=2000000 EPS=0.002 change the table; NEIGHBORS=off leaves the joins of many pairs out."""
import math
import os
import re
import subprocess
import sys
import time
from statistics import median

from common import cluster, output_of, ratio, say, table, times_of, versions

ROWS = int(os.environ.get('ROWS', 2000000))
EPS = os.environ.get('EPS') or f'{0.002 * math.sqrt(2000000 / ROWS):.3g}'
ROUNDS = int(os.environ.get('ROUNDS', 11))
SESSIONS, BUSY_SESSIONS, BUSY_JOINS = 64, 16, 20
CHANGED = 1000

FUNCTION = f"SELECT count(*) FROM gpu_selfjoin('places', {EPS})"
PLAIN = f'SELECT count(*) FROM places a JOIN places b ON a.v <-> b.v <= {EPS}'
SUM = f"SELECT sum(id1) FROM gpu_selfjoin('places', {EPS})"
UPDATE = f'UPDATE places SET v = v WHERE id % {max(1, ROWS // CHANGED)} = 1'


def start(script, mode):
    """A session of its own, which ends with its script."""
    options = f"-c gpujoin.service={mode} {os.environ.get('PGOPTIONS', '')}"
    process = subprocess.Popen(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1'], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env={**os.environ, 'PGOPTIONS': options})
    process.stdin.write(script)
    process.stdin.flush()
    return process


def end(process):
    output, _ = process.communicate()
    if process.returncode != 0:
        sys.exit('a session failed')
    return output


def run(script, mode='auto'):
    return end(start(script, mode))


def answers(output):
    return {line for line in output.split('\n') if re.fullmatch(r'[0-9]+', line)}


class Results:
    """Answers of all runs of a query are the same, whatever the mode."""

    def __init__(self):
        self.seen = {}

    def check(self, query, output):
        expected = self.seen.setdefault(query, answers(output))
        if answers(output) != expected or len(expected) != 1:
            sys.exit(f'{query}: {answers(output)} in the place of {expected}')


def make_table():
    say(f'A table of {ROWS} points')
    run('SET client_min_messages = warning; CREATE EXTENSION IF NOT EXISTS gpujoin; DROP TABLE IF EXISTS places;\n'
        'SELECT setseed(0.5) \\g /dev/null\n'
        'CREATE TABLE places (id int PRIMARY KEY, v float4[]);\n'
        f'INSERT INTO places SELECT n, ARRAY[random(), random()]::float4[] FROM generate_series(1, {ROWS}) n;\n'
        'VACUUM ANALYZE places;\n', 'off')


def fresh(results, query, mode):
    """Each in a session of its own, the first one not counted."""
    times = []
    for _ in range(ROUNDS):
        output = run(f'\\timing on\n{query};\n', mode)
        results.check(query, output)
        times += times_of(output)
    return median(times[1:])


def same(results, query, mode, settings='', between=''):
    """One after the other in one session, the first one not counted."""
    turn = f'{between}{query};\n'
    output = run(f"LOAD 'gpujoin';\n{settings}\\timing on\n" + turn * ROUNDS, mode)
    results.check(query, output)
    times = times_of(output)
    return median(times[1:] if not between else times[3::2])


def together(results, sessions, joins, mode):
    """Seconds until all have ended."""
    begin = time.monotonic()
    running = [start(f'{FUNCTION};\n' * joins, mode) for _ in range(sessions)]
    for process in running:
        process.stdin.close()
    outputs = []
    for process in running:
        outputs.append(process.stdout.read())
        if process.wait() != 0:
            sys.exit('a session failed')
    seconds = time.monotonic() - begin
    for output in outputs:
        results.check(FUNCTION, output)
    return seconds


def device_megabytes():
    try:
        used = output_of('nvidia-smi', '--query-gpu=memory.used', '--format=csv,noheader,nounits')
    except (OSError, subprocess.CalledProcessError):
        return None
    return int(used.split('\n')[0])


def idle_memory(mode):
    """Megabytes of the device that so many sessions hold once they have joined and wait."""
    running = [start(f'{FUNCTION};\n', mode) for _ in range(SESSIONS)]
    for process in running:
        process.stdout.readline()
    used = device_megabytes()
    for process in running:
        end(process)
    return used


def wait_for_service(query=FUNCTION):
    """Until the join runs in the service, or for ten seconds."""
    for _ in range(100):
        run(f'{query};\n')
        if 'service' in run(f'{query};\nSELECT to_json(j) FROM gpu_last_join() j;\n'):
            return
        time.sleep(0.1)
    say('no service: without it')


def tables():
    make_table()
    wait_for_service()
    results = Results()
    steps = [
        ('count, fresh session, ms', lambda mode: fresh(results, FUNCTION, mode)),
        ('count, same session, ms', lambda mode: same(results, FUNCTION, mode)),
        ('count in plain SQL, ms', lambda mode: same(results, PLAIN, mode)),
        (f'count after an update of {CHANGED} rows, ms',
         lambda mode: same(results, FUNCTION, mode, between=UPDATE + ';\n')),
        ('count after a vacuum, ms',
         lambda mode: (run('VACUUM places;', 'off'), same(results, FUNCTION, mode))[1]),
        (f'{SESSIONS} fresh sessions, a count each, s', lambda mode: together(results, SESSIONS, 1, mode)),
        (f'{BUSY_SESSIONS} sessions, {BUSY_JOINS} counts each, s',
         lambda mode: together(results, BUSY_SESSIONS, BUSY_JOINS, mode)),
        ('all pairs through sum(id1), ms', lambda mode: same(results, SUM, mode)),
    ]
    if device_megabytes() is not None:
        steps.append((f'device memory of {SESSIONS} idle sessions, MB', idle_memory))
    lines = []
    for name, step in steps:
        say(name)
        without, with_it = step('off'), step('auto')
        lines.append([name, f'{without:.3g}', f'{with_it:.3g}', ratio(without / with_it)])
    return (f'{ROWS:,} points of two dimensions, `float4[]`, within {EPS}: '
            f'{int(next(iter(results.seen[FUNCTION]))):,} pairs.\n\n' +
            table(['query', 'each session for itself', 'with the service', 'ratio'], lines))


def part(scale):
    """The tables of a private cluster, as Markdown."""
    with cluster() as psql:
        return (f'{versions(psql, False)}, as configured out of the box. ' +
                output_of(sys.executable, '-B', 'test/bench/sessions.py', env={**os.environ, 'ROWS': str(round(1000000 * scale))}))


if __name__ == '__main__':
    print(tables(), end='')
