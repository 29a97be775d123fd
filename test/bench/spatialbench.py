#!/usr/bin/env python3
"""Query 8 of SpatialBench at scale factor 1, by gpujoin, DuckDB and SedonaDB, in turns on this machine: trips that begin near a
building, counted for each building. The others read their Parquet files; PostgreSQL has tables of the columns that the query needs.

Needs PostGIS, the Python packages pyarrow and spatialbench-cli, which makes the data, and of duckdb (with duckdb-extension-spatial)
and sedonadb (with geoarrow-pyarrow) those that are to be measured: run it with the Python that has them. What is missing is left
out by name. With PGHOST set it uses that server, and tables that it made there before; else a private cluster.

usage: spatialbench.py [rounds] [folder for the data, kept]"""
import contextlib
import glob
import importlib
import os
import subprocess
import sys
import tempfile
import time
from statistics import median

from common import THREADS, cluster, has_postgis, number, psql_of, ratio, say, table

QUERY = """SELECT b_buildingkey, b_name, count(*) AS pickups FROM {source}
ON ST_DWithin({pickup}, {boundary}, 0.0045) GROUP BY b_buildingkey, b_name ORDER BY pickups DESC, b_buildingkey"""
COLUMNS = {'building': 'b_buildingkey bigint PRIMARY KEY, b_name text, b_boundary geometry', 'trip': 't_tripkey bigint, t_pickuploc geometry'}


def make_data(folder):
    """The Parquet files; False where nothing makes them."""
    if all(os.path.exists(f'{folder}/{name}.parquet') for name in COLUMNS):
        return True
    command = os.path.join(os.path.dirname(sys.executable), 'spatialbench-cli')
    if not os.path.exists(command):
        return False
    say('Making the data')
    subprocess.run([command, '-s', '1', '--tables', ','.join(COLUMNS), '--format', 'parquet', '--output-dir', folder], check=True)
    return True


def query_of_files(folder):
    return QUERY.format(source=f"'{folder}/trip.parquet' JOIN '{folder}/building.parquet'", pickup='ST_GeomFromWKB(t_pickuploc)',
                        boundary='ST_GeomFromWKB(b_boundary)')


def open_duckdb(folder):
    duckdb, extension = (importlib.import_module(name) for name in ('duckdb', 'duckdb_extension_spatial'))
    connection = duckdb.connect(config={'threads': THREADS, 'allow_unsigned_extensions': 'true'})
    found = glob.glob(os.path.dirname(extension.__file__) + '/**/*.duckdb_extension', recursive=True)
    connection.execute(f"LOAD '{found[0]}'" if found else 'LOAD spatial')
    return lambda: connection.execute(query_of_files(folder)).fetchall()


def open_sedonadb(folder):
    sedonadb = importlib.import_module('sedonadb')
    importlib.import_module('geoarrow.pyarrow')
    connection = sedonadb.connect()
    for name in COLUMNS:
        connection.read_parquet(f'{folder}/{name}.parquet').to_view(name)
    sql = query_of_files(folder).replace(f"'{folder}/", '').replace(".parquet'", '')
    return lambda: [tuple(row.values()) for row in connection.sql(sql).to_arrow_table().to_pylist()]


def copy_table(psql, folder, name):
    """Copies the columns of a file into a new table."""
    parquet = importlib.import_module('pyarrow.parquet')
    columns = [column.split()[0] for column in COLUMNS[name].split(', ')]
    with tempfile.NamedTemporaryFile('w+') as file:
        for batch in parquet.ParquetFile(f'{folder}/{name}.parquet').iter_batches(columns=columns):
            for row in zip(*(batch.column(column).to_pylist() for column in columns)):
                file.write('\t'.join(value.hex() if isinstance(value, bytes) else str(value) for value in row) + '\n')
        file.seek(0)
        psql(f'CREATE TABLE {name} ({COLUMNS[name]});\n\\copy {name} FROM pstdin\nVACUUM ANALYZE {name};\n', stdin=file)


def timed(run):
    start = time.monotonic()
    rows = run()
    return [(int(row[0]), int(row[2])) for row in rows], time.monotonic() - start


def run_gpujoin(psql):
    """The session has loaded what it needs, as the others have. Returns the rows and the seconds."""
    sql = QUERY.format(source='trip JOIN building', pickup='t_pickuploc', boundary='b_boundary')
    lines = psql(f"LOAD 'gpujoin';\nSELECT ST_MakePoint(1, 1) \\g /dev/null\n\\timing on\n{sql};\n").splitlines()
    return [(int(key), int(count)) for key, _, count in (line.split('|') for line in lines[:-1])], float(lines[-1].split()[1]) / 1e3


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with contextlib.ExitStack() as stack:
        folder = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else stack.enter_context(tempfile.TemporaryDirectory())
        if not make_data(folder):
            sys.exit('spatialbench-cli is not installed: nothing is measured')
        psql = psql_of('') if 'PGHOST' in os.environ else stack.enter_context(cluster())
        entrants = {}
        if has_postgis(psql):
            if psql("SELECT to_regclass('trip') IS NULL").strip() == 't':
                say('Loading the tables')
                psql('CREATE EXTENSION IF NOT EXISTS postgis;\nCREATE EXTENSION IF NOT EXISTS gpujoin;\n')
                for name in COLUMNS:
                    copy_table(psql, folder, name)
            entrants['gpujoin'] = lambda: run_gpujoin(psql)
        for name, open_other in ('DuckDB', open_duckdb), ('SedonaDB', open_sedonadb):
            try:
                entrants[name] = lambda run=open_other(folder): timed(run)
            except ImportError as missing:
                say(f'{missing.name} is not installed: without {name}')
        turns = {name: [] for name in entrants}
        for _ in range(rounds):
            for name, run in entrants.items():
                say(name)
                turns[name].append(run())
    answers = {str(rows) for results in turns.values() for rows, _ in results}
    if len(answers) > 1:
        sys.exit('the answers differ')
    own = median(seconds for _, seconds in turns.get('gpujoin', next(iter(turns.values()))))
    rows = []
    for name, results in turns.items():
        seconds = median(seconds for _, seconds in results)
        rows.append([name, f'{sum(count for _, count in results[0][0]):,}', number(seconds), ratio(seconds / own)])
    print(f'SpatialBench query 8, scale factor 1, {THREADS} threads, medians of {rounds}.\n\n' +
          table(['', 'pairs', 's', 'to the first'], rows))


if __name__ == '__main__':
    main()
