#!/usr/bin/env python3
"""How true pg_stat_progress_gpujoin is: joins of about a minute on one thread, which another session watches. Prints a table
with the largest difference between the share of the work that the view says is done and the share of the join's time that
has passed then.

    test/bench/progress.py [--scale N] [--every SECONDS] [CASE...]

It measures the running server of PGHOST, which has gpujoin. --scale multiplies the rows; a join takes about its square."""
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
    'e2': (700000, 'SELECT i, ' + EXPONENTIAL.format(dims=2) + ' FROM generate_series(1, {rows}) i'),
    'f2': (700000, 'SELECT i, ' + EXPONENTIAL.format(dims=2) + ' FROM generate_series(1, {rows}) i'),
    'e8': (300000, 'SELECT i, ' + EXPONENTIAL.format(dims=8) + ' FROM generate_series(1, {rows}) i'),
    'e16': (400000, 'SELECT i, ' + EXPONENTIAL.format(dims=16) + ' FROM generate_series(1, {rows}) i'),
    'sky': (800000, 'SELECT i, ARRAY[x + (random() - 0.5) / 100, y + (random() - 0.5) / 100] '
                    'FROM (SELECT row_number() OVER () AS i, x, y FROM sample, generate_series(1, 100)) s WHERE i <= {rows}'),
}
CASES = {
    'sample, self-join': "SELECT count(*) FROM gpu_selfjoin('sky', 3)",
    'sample, rows': "SELECT sum(id1) FROM gpu_selfjoin('sky', 0.3)",
    'exponential 2-D, self-join': "SELECT count(*) FROM gpu_selfjoin('e2', 0.5)",
    'exponential 2-D, two tables': "SELECT count(*) FROM gpu_join('e2', 'f2', 0.3)",
    'exponential 8-D, self-join': "SELECT count(*) FROM gpu_selfjoin('e8', 1.2)",
    'exponential 16-D, tiles': "SELECT count(*) FROM gpu_selfjoin('e16', 3)",
    'exponential 8-D, nearest': "SELECT count(*) FROM gpu_knn_join('e8', 'e8', 10)",
    'exponential 2-D, clusters': "SELECT count(*) FROM gpu_dbscan('e2', 0.05, 10)",
}
SETTINGS = ("SET gpujoin.engine = cpu; SET gpujoin.cpu_threads = 1; SET gpujoin.service = {service}; "
            "SET gpujoin.host_memory_limit = '4GB';")


def psql(script):
    return output_of('psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-c', script).strip()


def make(name, scale):
    rows, query = TABLES[name]
    say(f'Table {name}')
    psql(f'CREATE UNLOGGED TABLE {name} (id int PRIMARY KEY, v float8[]); INSERT INTO {name} '
         + query.format(rows=int(rows * scale)) + f'; ANALYZE {name}')


def watch(sql, service, every):
    """[(seconds, phase, done, planned)] of the join, and when it ended."""
    script = SETTINGS.format(service=service) + f"SET application_name = 'progress'; {sql};"
    samples, begun = [], time.monotonic()
    with subprocess.Popen(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-c', script], stdout=subprocess.DEVNULL) as session:
        while session.poll() is None:
            line = psql('SELECT p.phase, p.work_done, p.work FROM pg_stat_progress_gpujoin p '
                        "JOIN pg_stat_activity a USING (pid) WHERE a.application_name = 'progress'")
            if line:
                phase, done, planned = line.split('\n')[0].split('|')
                samples.append((time.monotonic() - begun, phase, int(done), int(planned)))
            joins = samples and samples[-1][1] not in ('reading', 'waiting', 'indexing')
            time.sleep(every if joins else 0.1)
    if session.returncode:
        sys.exit('a session failed')
    return samples, time.monotonic() - begun


def judge(samples, end):
    """Seconds of the join, how often it was seen, and the largest difference, with where it was."""
    work = [(at, done / planned) for at, _, done, planned in samples if planned > 0]
    if not work:
        return None
    start = work[0][0] - 0.1
    differences = [(abs(share - (at - start) / (end - start)), share, at - start) for at, share in work]
    falls = any(after < before for (_, before), (_, after) in zip(work, work[1:]))
    return end - start, len(work), max(differences), falls


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument('--scale', type=float, default=1)
    options.add_argument('--every', type=float, default=2)
    options.add_argument('--service', default='on', help='gpujoin.service: on, or off for joins in the session')
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
        judged = judge(*watch(CASES[case], asked.service, asked.every))
        if judged is None:
            lines.append([case, 'not seen', '', '', '', ''])
            continue
        seconds, seen, (difference, share, at), falls = judged
        lines.append([case, f'{seconds:.0f} s', str(seen), f'{100 * difference:.1f} %',
                      f'{100 * share:.0f} % at {100 * at / seconds:.0f} %', 'yes' if falls else 'no'])
        say(' | '.join(lines[-1]))
    print(table(['Join', 'Took', 'Seen', 'Largest difference', 'There', 'Fell'], lines), end='')


main()
