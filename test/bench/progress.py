#!/usr/bin/env python3
"""How true pg_stat_progress_gpujoin is: joins of about a minute on one thread, which another session watches. Prints a table
with the largest difference between the share of the work that the view says is done and the share of the join's time that
has passed then: by the clock, and by the processor time that the join has had, which is what the clock shows where nobody
else works on the machine.

    test/bench/progress.py [--scale N] [--every SECONDS] [CASE...]

It measures the running server of PGHOST, on this machine, which has gpujoin; joins run in the session, whose processor time can
be seen. --scale multiplies the rows; a join takes about its square."""
import argparse
import os
import subprocess
import sys
import tempfile
import time

from common import output_of, say, table

SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../shared/data/ionosphere-100k.csv.gz')

# Exponential values, dense at 0; the sample again and again, each copy moved a little.
EXPONENTIAL = '(SELECT array_agg(-ln(1 - random())) FROM generate_series(1, {dims}) WHERE i > 0)'
TABLES = {
    'e2': (850000, 'SELECT i, ' + EXPONENTIAL.format(dims=2) + ' FROM generate_series(1, {rows}) i'),
    'f2': (850000, 'SELECT i, ' + EXPONENTIAL.format(dims=2) + ' FROM generate_series(1, {rows}) i'),
    'e8': (850000, 'SELECT i, ' + EXPONENTIAL.format(dims=8) + ' FROM generate_series(1, {rows}) i'),
    'k8': (600000, 'SELECT i, ' + EXPONENTIAL.format(dims=8) + ' FROM generate_series(1, {rows}) i'),
    'e16': (450000, 'SELECT i, ' + EXPONENTIAL.format(dims=16) + ' FROM generate_series(1, {rows}) i'),
    'sky': (2400000, 'SELECT i, ARRAY[x + (random() - 0.5) / 100, y + (random() - 0.5) / 100] '
                    'FROM (SELECT row_number() OVER () AS i, x, y FROM sample, generate_series(1, 100)) s WHERE i <= {rows}'),
}
CASES = {
    'sample, self-join': "SELECT count(*) FROM gpu_selfjoin('sky', 3)",
    'sample, rows': "SELECT sum(id1) FROM gpu_selfjoin('sky', 0.3)",
    'exponential 2-D, self-join': "SELECT count(*) FROM gpu_selfjoin('e2', 0.5)",
    'exponential 2-D, two tables': "SELECT count(*) FROM gpu_join('e2', 'f2', 0.5)",
    'exponential 8-D, self-join': "SELECT count(*) FROM gpu_selfjoin('e8', 1.2)",
    'exponential 16-D, tiles': "SELECT count(*) FROM gpu_selfjoin('e16', 3)",
    'exponential 8-D, nearest': "SELECT count(*) FROM gpu_knn_join('k8', 'k8', 10)",
}
SETTINGS = ("SET gpujoin.engine = cpu; SET gpujoin.cpu_threads = 1; SET gpujoin.service = off; "
            "SET gpujoin.host_memory_limit = '4GB';")


def psql(script):
    return output_of('psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-c', script).strip()


def make(name, scale):
    rows, query = TABLES[name]
    say(f'Table {name}')
    psql(f'CREATE UNLOGGED TABLE {name} (id int PRIMARY KEY, v float8[]); INSERT INTO {name} '
         + query.format(rows=int(rows * scale)) + f'; ANALYZE {name}')


def processor_seconds(pid):
    """What a process has had, or 0 where it has ended."""
    try:
        with open(f'/proc/{pid}/stat') as file:
            fields = file.read().rsplit(')', 1)[1].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def watch(sql, every):
    """[(seconds, processor seconds, phase, done, planned)] of the join, and both at its end."""
    script = SETTINGS + f"SET application_name = 'progress'; {sql};"
    samples, begun, used = [], time.monotonic(), 0
    with subprocess.Popen(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-c', script], stdout=subprocess.DEVNULL) as session:
        while session.poll() is None:
            line = psql('SELECT pid, p.phase, p.work_done, p.work FROM pg_stat_progress_gpujoin p '
                        "JOIN pg_stat_activity a USING (pid) WHERE a.application_name = 'progress'")
            if line:
                pid, phase, done, planned = line.split('\n')[0].split('|')
                samples.append((time.monotonic() - begun, processor_seconds(pid), phase, int(done), int(planned)))
            joins = samples and samples[-1][2] not in ('reading', 'waiting', 'indexing')
            pause = time.monotonic() + (every if joins else 0.1)
            while time.monotonic() < pause and session.poll() is None:
                if samples:
                    used = max(used, processor_seconds(pid))
                time.sleep(0.02)
    if session.returncode:
        sys.exit('a session failed')
    return samples, (time.monotonic() - begun, used)


def judge(samples, end):
    """Seconds of the join, how often it was seen, by either clock the largest difference and where it was, and whether the
    work that is done ever fell."""
    work = [sample for sample in samples if sample[4] > 0]
    if not work:
        return None
    start = [sample for sample in samples if sample[4] == 0][-1:] or work[:1]
    differences = []
    for clock in (0, 1):
        passed = [((at[clock] - start[0][clock]) / (end[clock] - start[0][clock]), at[3] / at[4]) for at in work]
        differences.append(max((abs(share - time), share, time) for time, share in passed))
    falls = any(after[3] < before[3] for before, after in zip(work, work[1:]))
    return end[0] - start[0][0], len(work), differences, falls


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument('--scale', type=float, default=1)
    options.add_argument('--every', type=float, default=2)
    options.add_argument('cases', nargs='*', metavar='CASE', help='a part of the name of some: ' + ', '.join(CASES))
    asked = options.parse_args()
    chosen = [case for case in CASES if not asked.cases or any(part in case for part in asked.cases)]
    psql('CREATE EXTENSION IF NOT EXISTS gpujoin; DROP TABLE IF EXISTS sample, ' + ', '.join(TABLES))
    psql('CREATE UNLOGGED TABLE sample (x float8, y float8)')
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(['gunzip', '-c', SAMPLE], stdout=file, check=True)
        psql(f"\\copy sample FROM '{file.name}' CSV")
    lines = []
    made = set()
    for case in chosen:
        for name in [name for name in TABLES if f"'{name}'" in CASES[case] and name not in made]:
            make(name, asked.scale)
            made.add(name)
        say(case)
        judged = judge(*watch(CASES[case], asked.every))
        if judged is None:
            lines.append([case, 'not seen', '', '', '', ''])
            continue
        seconds, seen, differences, falls = judged
        lines.append([case, f'{seconds:.0f} s', str(seen)]
                     + [f'{100 * difference:.1f} % ({100 * share:.0f} % at {100 * at:.0f} %)' for difference, share, at in differences]
                     + ['yes' if falls else 'no'])
        say(' | '.join(lines[-1]))
    print(table(['Join', 'Took', 'Seen', 'Largest difference, clock', 'processor', 'Fell'], lines), end='')


main()
