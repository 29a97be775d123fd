#!/usr/bin/env python3
"""make bench-spatial: the queries of SpatialBench (spatialbench_queries.py) by gpujoin, by PostGIS without it, by DuckDB and by
SedonaDB, in turns on this machine, and their answers. Writes the table of docs/benchmarks.md. The others read their Parquet
files; PostgreSQL has tables of the columns that the queries need, with GiST indexes.

Needs PostGIS, the Python packages pyarrow and spatialbench-cli, which makes the data, and of duckdb (with duckdb-extension-spatial)
and sedonadb (with geoarrow-pyarrow) those that are to be measured: run it with the Python that has them. What is missing is left
out by name. With PGHOST set it uses that server, and tables that it made there before; else a private cluster."""
import argparse
import contextlib
import glob
import importlib
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from statistics import median

from common import THREADS, WITHOUT_NODE, assignments, cluster, has_postgis, measured_by, number, psql_of, say, table, uses_node, versions, write_page
from spatialbench_queries import INDEXES, QUERIES, TABLES, text

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
ZONE_SECONDS, ZONE_BYTES = 300, 2 << 30
SLOW = 10  # seconds; what takes longer has one turn


# ---- The data

def generate(name, folder, scale, seconds=None):
    """Makes a table's file. Returns why it could not, or None."""
    path = f'{folder}/{name}.parquet'
    if os.path.exists(path):
        return None
    say(f'Making {name}')
    command = os.path.join(os.path.dirname(sys.executable), 'spatialbench-cli')
    if not os.path.exists(command):
        return 'spatialbench-cli is not installed'
    try:
        made = subprocess.run([command, '-s', str(scale), '--tables', name, '--format', 'parquet', '--output-dir', folder],
                              timeout=seconds, stderr=subprocess.PIPE, text=True)
    except subprocess.TimeoutExpired:
        return f'not made within {seconds} s'
    if made.returncode:
        error = re.search(r'Generic (\w+ error)', made.stderr)
        return f'spatialbench-cli failed ({"it fetches the file, " + error[1] if error else made.returncode})'
    return None if os.path.exists(path) else 'spatialbench-cli made no single file of it'


def make_data(folder, scale):
    """Returns {table that is not to be had: why}."""
    os.makedirs(folder, exist_ok=True)
    missing = {}
    for name in TABLES:
        why = generate(name, folder, scale, ZONE_SECONDS if name == 'zone' else None)
        if not why and name == 'zone' and os.path.getsize(f'{folder}/zone.parquet') > ZONE_BYTES:
            why = f'it has more than {ZONE_BYTES >> 30} GiB'
        if why:
            missing[name] = why
    return missing


def copy_table(psql, folder, name):
    """Copies the columns of a file into a new table, with its indexes."""
    parquet = importlib.import_module('pyarrow.parquet')
    columns = TABLES[name]

    def values(column, kind):
        return map(bytes.hex, column.to_pylist()) if kind == 'geometry' else column.cast('string').to_pylist()

    say(f'Loading {name}')
    with tempfile.NamedTemporaryFile('w+') as file:
        for batch in parquet.ParquetFile(f'{folder}/{name}.parquet').iter_batches(columns=list(columns)):
            rows = zip(*(values(batch.column(column), kind) for column, kind in columns.items()))
            file.writelines('\t'.join(row) + '\n' for row in rows)
        file.seek(0)
        psql(f'CREATE TABLE {name} ({", ".join(map(" ".join, columns.items()))});\n\\copy {name} FROM pstdin\n'
             f"SET maintenance_work_mem = '1GB';\n{INDEXES[name]}VACUUM ANALYZE {name};\n", stdin=file)


# ---- Those that are measured. Each runs SQL within a number of seconds and returns (count, sum, seconds, detail), or None when it
# took longer.

def run_postgresql(psql, sql, limit, settings):
    """The session has loaded what it needs, as the others have. The detail is gpu_last_join(), if there was a join."""
    script = "LOAD 'gpujoin';\nSELECT ST_MakePoint(1, 1) \\g /dev/null\n" + assignments(
        {**settings, 'jit': 'off', 'statement_timeout': f"'{limit}s'"})
    start = time.monotonic()
    try:
        lines = psql(f'{script}\\timing on\n{sql};\n\\timing off\nSELECT to_json(j) FROM gpu_last_join() j;\n').splitlines()
    except subprocess.CalledProcessError:
        if time.monotonic() - start < limit:
            raise
        return None
    count, checksum = lines[0].split('|')
    return int(count), float(checksum or 0), float(lines[1].split()[1]) / 1e3, json.loads(lines[2]) if len(lines) > 2 else None


def view(name, source):
    """SELECT of the columns of a file, geometries as such."""
    columns = (f'ST_GeomFromWKB({column}) AS {column}' if kind == 'geometry' else column for column, kind in TABLES[name].items())
    return f'SELECT {", ".join(columns)} FROM {source}'


def open_duckdb(folder, names):
    duckdb, extension = (importlib.import_module(name) for name in ('duckdb', 'duckdb_extension_spatial'))
    connection = duckdb.connect(config={'threads': THREADS, 'allow_unsigned_extensions': 'true'})
    found = glob.glob(os.path.dirname(extension.__file__) + '/**/*.duckdb_extension', recursive=True)
    connection.execute(f"LOAD '{found[0]}'" if found else 'LOAD spatial')
    for name in names:
        connection.execute(f'CREATE VIEW {name} AS ' + view(name, f"'{folder}/{name}.parquet'"))
    return lambda sql: connection.execute(sql).fetchone()


def open_sedonadb(folder, names):
    sedonadb = importlib.import_module('sedonadb')
    importlib.import_module('geoarrow.pyarrow')
    connection = sedonadb.connect()
    for name in names:
        connection.read_parquet(f'{folder}/{name}.parquet').to_view(f'{name}_file')
        connection.sql(view(name, f'{name}_file')).to_view(name)
    return lambda sql: tuple(connection.sql(sql).to_arrow_table().to_pylist()[0].values())


def answer(open_other, folder, names, sql, pipe):
    run = open_other(folder, names)
    start = time.monotonic()
    count, checksum = run(sql)
    pipe.send((int(count), float(checksum or 0), time.monotonic() - start, None))


def run_other(open_other, folder, names, sql, limit):
    """A process of its own, for not each library can stop a query."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=answer, args=(open_other, folder, names, sql, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(limit + 5) else None
    except EOFError:
        sys.exit(f'failed: {sql}')
    finally:
        process.kill()
        process.join()


def installed(package, *needed):
    try:
        return f'{package} {version(package)}' if all(version(name) for name in needed or [package]) else ''
    except importlib.metadata.PackageNotFoundError as missing:
        say(f'{missing.name} is not installed: without {package}')
        return ''


# ---- The table

def measure(entrants, rounds, limit):
    """{entrant: [(count, sum, seconds, detail), ...]}; none for what took too long."""
    turns = {name: [] for name in entrants}
    for turn in range(rounds):
        for name, run in entrants.items():
            if turn == 0 or (turns[name] and turns[name][0][2] <= SLOW):
                result = run(limit)
                say(f'  {name}: ' + (f'{result[2]:.2f} s, {result[0]:,} rows, {result[1]:.12g}' if result else f'more than {limit} s'))
                turns[name] += [result] if result else []
    return turns


def cells(query, key, turns, node, limit):
    answers = [(count, checksum) for results in turns.values() for count, checksum, *_ in results]
    count, checksum = answers[0] if answers else (None, 0)
    if any(n != count or abs(x - checksum) > 1e-9 * abs(checksum) for n, x in answers):
        sys.exit(f'query {key}: the answers differ')
    row = [f'{key}: {query.meaning}', '' if count is None else f'{count:,}']
    for results in turns.values():
        seconds = number(median(result[2] for result in results)) if results else f'> {limit}'
        row.append(seconds + (' (once)' if len(results) == 1 else ''))
    last = turns.get('gpujoin') and turns['gpujoin'][0][3]
    return row + [number((last['read_ms'] + last['index_ms'] + last['join_ms']) / 1e3) if node and last else '']


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument('folder', nargs='?', help='for the data, kept')
    options.add_argument('--rounds', type=int, default=3)
    options.add_argument('--scale', type=float, default=1)
    options.add_argument('--limit', type=int, default=300, help='seconds for a query')
    options.add_argument('--queries', type=int, nargs='*', default=list(QUERIES))
    options = options.parse_args()
    with contextlib.ExitStack() as stack:
        folder = os.path.abspath(options.folder or stack.enter_context(tempfile.TemporaryDirectory()))
        missing = make_data(folder, options.scale)
        names = [name for name in TABLES if name not in missing]
        psql = psql_of('') if 'PGHOST' in os.environ else stack.enter_context(cluster())
        if not has_postgis(psql):
            sys.exit('PostGIS is not installed: nothing is measured')
        psql('CREATE EXTENSION IF NOT EXISTS postgis;\nCREATE EXTENSION IF NOT EXISTS gpujoin;\n')
        for name in names:
            if psql(f"SELECT to_regclass('{name}') IS NULL").strip() == 't':
                copy_table(psql, folder, name)
        others = {'DuckDB': (open_duckdb, installed('duckdb', 'duckdb', 'duckdb-extension-spatial')),
                  'SedonaDB': (open_sedonadb, installed('sedonadb', 'sedonadb', 'geoarrow-pyarrow'))}
        load_before = os.getloadavg()[0]
        rows, left_out = [], []
        for key, query in QUERIES.items():
            if key not in options.queries:
                continue
            why = [f'{name}: {missing[name]}' for name in query.tables if name in missing]
            if why:
                left_out.append(f'{key} ({query.meaning})')
                say(f'Query {key} is left out; {why[0]}')
                continue
            say(f'Query {key}: {query.meaning}')
            own = text(query, 'PostgreSQL')
            entrants = {'gpujoin': lambda limit: run_postgresql(psql, own, limit, {}),
                        'PostGIS': lambda limit: run_postgresql(psql, own, limit, WITHOUT_NODE)}
            for name, (open_other, found) in others.items():
                if found:
                    entrants[name] = lambda limit, name=name, open_other=open_other: run_other(
                        open_other, folder, query.tables, text(query, name), limit)
            rows.append(cells(query, key, measure(entrants, options.rounds, options.limit), uses_node(psql, own), options.limit))
        packages = ', '.join([versions(psql, True)] + [found for _, found in others.values() if found])
    page = (measured_by('make bench-spatial', f'medians of {options.rounds} turns, of one where it took more than {SLOW} s', packages) +
            f'.\n\nSpatialBench, scale factor {options.scale:g}; JIT of PostgreSQL off; seconds, at most {options.limit} for a query; '
            f'load {load_before:.1f} when it began, {os.getloadavg()[0]:.1f} in the end.\n\n' +
            table(['query', 'rows', *entrants, 'of gpujoin: reading, index and join'], rows))
    if left_out:
        page += 'Left out: ' + ', '.join(left_out) + '; ' + '; '.join(f'{name}: {why}' for name, why in missing.items()) + '.\n\n'
    print(page)
    if options.scale == 1 and options.queries == list(QUERIES):
        write_page('make bench-spatial', page)


if __name__ == '__main__':
    main()
