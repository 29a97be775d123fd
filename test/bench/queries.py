#!/usr/bin/env python3
"""Whole queries as users type them, in the running server of PGHOST, which has gpujoin: so on a machine with a GPU
(test/device/run queries). Prints tables, and writes them to $OUT/queries.md where OUT is a folder.

A time is that of psql's \\timing; of reading, index and join that of gpu_last_join(). Medians of some turns in one session, the
first one not counted where there are more. A query that fails has the error in its row; a part that would begin after
SECONDS (430) is left out. STEPS='first sums' runs these parts, SCALE=0.01 makes the tables a hundredth, with radii that leave a
point its neighbours, ENGINE=cpu joins on the CPU. Needs numpy."""
import os
import re
import subprocess
import time
from statistics import median

from common import THREADS, median_ms, number, processor, psql_of, revision, say, table, take_turns, uses_node, versions
from sessions import wait_for_service
from workloads import (BITS, BITS_QUERIES, CATALOGUE_QUERIES, DEDUP, counts, drop, exponential, galaxies, load, load_bits,
                       load_catalogues, load_texts, pairs_of, radius, random_of, scaled, sums_by_region, uniform)

SCALE = float(os.environ.get('SCALE', 1))
SECONDS = float(os.environ.get('SECONDS', 430))
MOST_SECONDS = 120  # a statement may take
BEGAN = time.monotonic()
POINTS, DENSE, HASHES, STARS, TEXTS, GALAXIES = (scaled(rows, SCALE) for rows in (2000000, 500000, 1000000, 10000000, 1000000, 37000000))
EPS, WIDE_EPS = radius(0.002, 2, SCALE), radius(0.01, 2, SCALE)
DENSE_EPS, TEXT_DIMS = 0.12, 768
WORKERS = 8


def left_seconds():
    return max(1, BEGAN + SECONDS - time.monotonic())


def options():
    engine = ' -c gpujoin.engine=cpu' if os.environ.get('ENGINE') == 'cpu' else ''
    return (f'-c client_min_messages=warning -c statement_timeout={min(MOST_SECONDS, left_seconds()):.0f}s '
            f'-c maintenance_work_mem=1GB{engine}')


def psql(script):
    os.environ['PGOPTIONS'] = options()
    return psql_of('', stderr=subprocess.PIPE)(script)


def places(name='places'):
    load(psql, name, 'v float4[]', POINTS, uniform(name))


def error_of(failure):
    text = getattr(failure, 'stderr', '') or str(failure)
    return 'failed: ' + re.sub(r'\s+', ' ', re.sub(r'^.*?(?=ERROR|FATAL)', '', text, flags=re.DOTALL))[:150].replace('|', '/')


# ---- Measuring

def turns_of(queries, rounds, before, settings):
    """{name: turns, or the error}; queries take turns, each by itself where one of them fails."""
    ways = {name: (sql, settings) for name, sql in queries.items()}
    try:
        psql(before)
        for name, sql in queries.items():
            if not sql.startswith('COPY') and not uses_node(psql, sql):
                raise RuntimeError(f'{name} is not by the node')
        return take_turns(psql, rounds, ways, before)
    except (subprocess.CalledProcessError, RuntimeError) as failure:
        if len(queries) == 1:
            return {name: error_of(failure) for name in queries}
    found = {}
    for name, sql in queries.items():
        found.update(turns_of({name: sql}, rounds, before, settings))
    return found


class Rows:
    """Rows of a table of queries."""

    def __init__(self):
        self.rows, self.ms = [], {}

    def add(self, queries, rounds=5, before='', settings={}, whole=None, after_reading=None):
        """queries: {name: SQL}. The last two are milliseconds that are wanted of each."""
        for name, turns in turns_of(queries, rounds, before, settings).items():
            say(f'  {name}')
            if isinstance(turns, str):
                self.rows.append([name, turns])
                continue
            counted = turns[1:] or turns
            ms = self.ms[name] = median_ms(counted)
            last = {key: median(turn[2][key] for turn in counted) for key in ('read_ms', 'index_ms', 'join_ms')}
            answer = ', '.join(turns[0][0].split('\n')[0].split('|')) if turns[0][0].count('\n') == 0 else ''
            wanted = ''
            for limit, real, words in (whole, ms, ''), (after_reading, ms - last['read_ms'], ' after reading'):
                if limit:
                    wanted = f'{limit:,}{words}: ' + ('yes' if real <= limit else f'**no, {number(real)}**')
            self.rows.append([name, number(ms), *(number(value) for value in last.values()), counted[-1][2]['engine'],
                              f'{turns[0][2]["pairs"]:,}', answer, wanted])

    def ratio(self, name, other, wanted):
        if name in self.ms and other in self.ms:
            real = self.ms[name] / self.ms[other]
            self.rows.append([f'{name} to {other}', f'{real:.2f}', '', '', '', '', '', '',
                              f'{wanted}: ' + ('yes' if real <= wanted else '**no**')])

    def text(self):
        return table(['query', 'whole query, ms', 'reading', 'index', 'join', 'engine', 'pairs', 'answer', 'wanted'],
                     [row + [''] * (9 - len(row)) for row in self.rows])


# ---- The parts

def first():
    places()
    rows, workers = Rows(), {'max_parallel_workers_per_gather': WORKERS}
    queries = counts(EPS)
    wait_for_service(queries['function'])
    evict = "SELECT gpu_evict('places')"
    rows.add({f'first, {name}': sql for name, sql in queries.items()}, 12, evict, workers)
    rows.add({f'later, {name}': sql for name, sql in queries.items()}, 12, settings=workers)
    psql(f'ALTER TABLE places SET (parallel_workers = {WORKERS})')
    rows.add({f'first, {WORKERS} workers, {name}': sql for name, sql in queries.items()}, 12, evict, workers, whole=45)
    rows.ratio(f'first, {WORKERS} workers, plain SQL', f'first, {WORKERS} workers, function', 1.2)
    psql('ALTER TABLE places RESET (parallel_workers)')
    return (f'{POINTS:,} points of two dimensions, `float4[]`, within {EPS}; `max_parallel_workers_per_gather = {WORKERS}`. PostgreSQL '
            f'decides how many workers read a table, by its size; `ALTER TABLE ... SET (parallel_workers = {WORKERS})` where a row says '
            f'{WORKERS} workers.'), rows


def sums():
    load(psql, 'shops', 'v float4[], region int, amount float8', POINTS, lambda chunk, ids: [
        *uniform('shops')(chunk, ids), ids % 100, random_of('amounts', chunk).random(len(ids))])
    rows, workers = Rows(), {'max_parallel_workers_per_gather': WORKERS}
    grouped = sums_by_region(WIDE_EPS)
    of_all = grouped.replace('a.region', 'count(*)', 1).replace(' GROUP BY a.region', '')
    rows.add({'by region, first': grouped}, 6, "SELECT gpu_evict('shops')", workers, after_reading=100)
    rows.add({'by region, later': grouped, 'of all, later': of_all}, 6, '', workers, after_reading=100)
    drop(psql, 'shops')
    return f'`{grouped}`, {POINTS:,} points, 100 regions.', rows


def dense():
    load(psql, 'dense', 'v float4[]', DENSE, exponential(16))
    join = f'FROM dense a JOIN dense b ON a.v <-> b.v <= {DENSE_EPS}'
    rows = Rows()
    rows.add({'total, function': f"SELECT count(*) FROM gpu_selfjoin('dense', {DENSE_EPS})",
              'total, plain SQL': f'SELECT count(*) {join}',
              'per row, function': f"SELECT count(*), sum(neighbors) FROM gpu_density('dense', {DENSE_EPS})",
              'per row, plain SQL': f'SELECT count(*), sum(n) FROM (SELECT a.id, count(*) AS n {join} GROUP BY a.id) s'},
             4, whole=500)
    drop(psql, 'dense')
    return f'{DENSE:,} exponential points (lambda 40, cut at 1) of 16 dimensions, `float4[]`, within {DENSE_EPS}.', rows


def tables_of_pairs():
    pairs, rows = pairs_of(EPS), Rows()
    rows.add({f'SELECT sum, {name}': f'SELECT sum(id1), sum(id2) FROM ({sql}) s' for name, sql in pairs.items()}, 3)
    # The node inserts where it is the top of the plan; below a limit PostgreSQL does.
    made = {f'CREATE TABLE AS, {name}': f'CREATE TABLE found AS {sql}' for name, sql in pairs.items()}
    made |= {f"{name}, by PostgreSQL's inserting": f'{sql} LIMIT 1000000000' for name, sql in made.items()}
    rows.add(made, 1, 'DROP TABLE IF EXISTS found')
    for name in pairs:
        rows.ratio(f'CREATE TABLE AS, {name}', f"CREATE TABLE AS, {name}, by PostgreSQL's inserting", 0.5)
    psql('DROP TABLE IF EXISTS found; CREATE TABLE found (id1 bigint, id2 bigint);')
    into = {'INSERT ... SELECT, function': f'INSERT INTO found {pairs["function"]}'}
    into["INSERT ... SELECT, function, by PostgreSQL's inserting"] = f'INSERT INTO found {pairs["function"]} LIMIT 1000000000'
    rows.add(into, 1, 'TRUNCATE found')
    rows.ratio(*into, 0.5)
    drop(psql, 'found')
    rows.add({'COPY TO /dev/null, function': f"COPY ({pairs['function']}) TO '/dev/null'"}, 2)
    return f'The pairs of the {POINTS:,} points of the first table, within {EPS}.', rows


def nearest():
    places('others')
    rows = Rows()
    rows.add({'gpu_knn_join': "SELECT count(*), sum(distance) FROM gpu_knn_join('places', 'others', 8)",
              'LATERAL': 'SELECT count(*), sum(n.d) FROM places a CROSS JOIN LATERAL '
                         '(SELECT a.v <-> b.v AS d FROM others b ORDER BY a.v <-> b.v LIMIT 8) n'}, 3)
    drop(psql, 'others')
    return f'The 8 nearest of {POINTS:,} points for each of {POINTS:,}, two dimensions, `float4[]`.', rows


def bits():
    load_bits(psql, HASHES)
    rows = Rows()
    rows.add(BITS_QUERIES, 4, whole=1000)
    drop(psql, 'hashes', 'near_hashes')
    return (f'{HASHES:,} x {HASHES:,} hashes of 64 bits, `bigint`, within {BITS} bits; at least {HASHES // 10:,} pairs are '
            'planted.'), rows


def catalogue():
    load_catalogues(psql, STARS)
    rows = Rows()
    rows.add(CATALOGUE_QUERIES, 3)
    drop(psql, 'stars', 'observed')
    return (f'{STARS:,} x {STARS:,} unit vectors, `float8[]`, within a second of arc by the cosine distance; nine of ten are some '
            '0.3 seconds from one of the other table.'), rows


def duplicates():
    load_texts(psql, TEXTS, TEXT_DIMS)
    planted = TEXTS // 10
    rows = Rows()
    rows.add({'first': 'SELECT count(*), count(*) FILTER (WHERE kept_id = id - '
                       f"{TEXTS - planted}) FROM gpu_dedup('texts', 0.05, metric => 'cosine')"}, 1, after_reading=5000)
    rows.add({'later': DEDUP}, 2, after_reading=5000)
    kept = psql("SELECT format('%s rows, %s bytes in the host, %s on devices, %s joins that found them, %s blocks read', rows, "
                "host_bytes, device_bytes, hits, blocks_read) FROM gpu_resident WHERE relation = 'texts'::regclass").strip()
    drop(psql, 'texts')
    return (f'`gpu_dedup` of {TEXTS:,} vectors of {TEXT_DIMS} dimensions, `float4[]`, cosine distance 0.05; planted: {planted:,} '
            f'(the answer: rows found, and planted ones among them). What stays in the service: {kept or "nothing"}.'), rows


def clusters():
    load(psql, 'galaxies', 'v float4[]', GALAXIES, galaxies(3), key=False)
    eps = radius(0.002, 3, SCALE)
    rows = Rows()
    rows.add({'gpu_dbscan': "SELECT count(*), max(cluster) + 1, count(*) FILTER (WHERE kind = 'noise') "
                            f"FROM gpu_dbscan('galaxies', {eps}, 5, id_column => 'id')"}, 2)
    drop(psql, 'galaxies')
    return (f'`gpu_dbscan` of {GALAXIES:,} points of three dimensions, `float4[]`, eps {eps}, 5 points (the answer: rows, '
            'clusters, noise).'), rows


PARTS = {'first': ('The first query of a table, and later ones', first), 'sums': ('Sums over neighbours', sums),
         'dense': ('Dense counts', dense), 'tables': ('Tables of pairs', tables_of_pairs), 'nearest': ('Nearest rows', nearest),
         'bits': ('Hashes', bits), 'duplicates': ('Duplicates', duplicates), 'catalogue': ('Two catalogues', catalogue),
         'clusters': ('Clusters', clusters)}


def machine():
    device = psql("SELECT name FROM gpu_devices() WHERE engine = 'cuda' AND available LIMIT 1").strip()
    settings = psql("LOAD 'gpujoin'; SELECT string_agg(name || ' = ' || setting || coalesce(' ' || unit, ''), ', ' ORDER BY name) FROM pg_settings "
                    "WHERE source = 'command line'").strip()
    return (f'Measured on {time.strftime("%Y-%m-%d")}: {processor()}, {THREADS} processors, {device or "no GPU"}; '
            f'{versions(psql, False)}; revision {revision()}; {settings}.\n\n')


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
    folder = os.environ.get('OUT')

    def write(text):
        print(text, end='', flush=True)
        if folder:
            with open(os.path.join(folder, 'queries.md'), 'a') as file:
                file.write(text)
    psql("CREATE EXTENSION IF NOT EXISTS gpujoin;")
    write(machine())
    for name in os.environ.get('STEPS', ' '.join(PARTS)).split():
        title, part = PARTS[name]
        say(f'{title} ({time.monotonic() - BEGAN:.0f} s)')
        if time.monotonic() - BEGAN > SECONDS:
            write(f'### {title}\n\nLeft out: no time.\n\n')
            continue
        try:
            words, rows = part()
            write(f'### {title}\n\n{words}\n\n{rows.text()}')
        except Exception as failure:  # the other parts are measured all the same
            write(f'### {title}\n\n{error_of(failure)}\n\n')
    say(f'{time.monotonic() - BEGAN:.0f} s')


if __name__ == '__main__':
    main()
