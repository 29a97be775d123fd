#!/usr/bin/env python3
"""Whole queries as users type them, in the running server of PGHOST, which has gpujoin: so on a machine with a GPU
(test/device/run queries). Prints tables, and writes them to $OUT/queries.md where OUT is a folder.

A time is that of psql's \\timing; of reading, index and join that of gpu_last_join(). Medians of some turns in one session, the
first one not counted where there are more. A query that fails has the error in its row; a part that would begin after
SECONDS (430) is left out. STEPS='first sums' runs these parts, SCALE=0.01 makes the tables a hundredth, with radii that leave a
point its neighbours, ENGINE=cpu joins on the CPU. Needs numpy."""
import math
import os
import re
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import numpy

from common import THREADS, median_ms, number, processor, psql_of, revision, say, table, take_turns, uses_node, versions
from sessions import wait_for_service

SCALE = float(os.environ.get('SCALE', 1))
SECONDS = float(os.environ.get('SECONDS', 430))
MOST_SECONDS = 40  # a statement may take
LOADERS = min(12, THREADS)
CHUNKS = 100  # of a table, each made by itself
BEGAN = time.monotonic()


def scaled(rows):
    return CHUNKS * max(10, round(rows * SCALE / CHUNKS))


def radius(eps, dims):
    """For as many neighbours as eps leaves at full scale."""
    return float(f'{eps / SCALE ** (1 / dims):.4g}')


POINTS, DENSE, HASHES, STARS, TEXTS, GALAXIES = map(scaled, (2000000, 500000, 1000000, 10000000, 1000000, 37000000))
EPS, WIDE_EPS = radius(0.002, 2), radius(0.01, 2)
DENSE_EPS, TEXT_DIMS = 0.12, 768
BITS = 6
ARC_SECOND = 2 * math.sin(math.radians(1 / 3600) / 2) ** 2  # as a cosine distance


def left_seconds():
    return max(1, BEGAN + SECONDS - time.monotonic())


def options():
    engine = ' -c gpujoin.engine=cpu' if os.environ.get('ENGINE') == 'cpu' else ''
    return (f'-c client_min_messages=warning -c statement_timeout={min(MOST_SECONDS, left_seconds()):.0f}s '
            f'-c maintenance_work_mem=1GB{engine}')


def psql(script):
    return psql_of(f"export PGOPTIONS='{options()}'; ", stderr=subprocess.PIPE)(script)


def error_of(failure):
    text = getattr(failure, 'stderr', '') or str(failure)
    return 'failed: ' + re.sub(r'\s+', ' ', re.sub(r'^.*?(?=ERROR|FATAL)', '', text, flags=re.DOTALL))[:150].replace('|', '/')


# ---- Tables: binary COPY in several sessions

def packed(columns):
    """Rows as COPY (FORMAT binary) reads them, of arrays as long as there are rows; of two dimensions where a column is an array."""
    fields = [('columns', '>i2')]
    for i, column in enumerate(columns):
        element = column.dtype.newbyteorder('>')
        fields.append((f'bytes{i}', '>i4'))
        if column.ndim == 1:
            fields.append((f'value{i}', element))
        else:
            fields += [(f'head{i}', '>i4', 5), (f'value{i}', [('bytes', '>i4'), ('x', element)], column.shape[1])]
    rows = numpy.empty(len(columns[0]), fields)
    rows['columns'] = len(columns)
    for i, column in enumerate(columns):
        size = column.dtype.itemsize
        if column.ndim == 1:
            rows[f'bytes{i}'] = size
            rows[f'value{i}'] = column
        else:
            dims = column.shape[1]
            rows[f'bytes{i}'] = 20 + dims * (4 + size)
            rows[f'head{i}'] = [1, 0, {4: 700, 8: 701}[size], dims, 1]  # dimensions, NULLs, the type's oid, length, first index
            rows[f'value{i}']['bytes'] = size
            rows[f'value{i}']['x'] = column
    return rows.tobytes()


def random_of(name, chunk):
    return numpy.random.default_rng([zlib.crc32(name.encode()), chunk])


def load(name, columns, rows, make, key=True, storage=''):
    """A table of an id and the columns that make(chunk, ids) returns."""
    say(f'{name}, {rows:,} rows')
    psql(f'DROP TABLE IF EXISTS {name}; CREATE TABLE {name} (id int, {columns});' + storage)

    def copy(first):
        process = subprocess.Popen(['psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-c', f'COPY {name} FROM STDIN (FORMAT binary)'],
                                   stdin=subprocess.PIPE, env={**os.environ, 'PGOPTIONS': options()})
        process.stdin.write(b'PGCOPY\n\xff\r\n\0' + bytes(8))
        for chunk in range(first, CHUNKS, LOADERS):
            ids = numpy.arange(rows * chunk // CHUNKS, rows * (chunk + 1) // CHUNKS, dtype=numpy.int32)
            process.stdin.write(packed([ids, *make(chunk, ids)]))
        process.stdin.write(b'\xff\xff')
        process.stdin.close()
        if process.wait() != 0:
            raise RuntimeError(f'{name} could not be loaded')
    with ThreadPoolExecutor(LOADERS) as pool:
        list(pool.map(copy, range(LOADERS)))
    psql((f'ALTER TABLE {name} ADD PRIMARY KEY (id);\n' if key else '') + f'VACUUM ANALYZE {name};')


def drop(*names):
    psql(''.join(f'DROP TABLE IF EXISTS {name};\n' for name in names))


def uniform(name, dims=2):
    return lambda chunk, ids: [random_of(name, chunk).random((len(ids), dims), numpy.float32)]


def places(name='places'):
    load(name, 'v float4[]', POINTS, uniform(name))


def directions(chunk, count):
    """Unit vectors, the same for each chunk."""
    vectors = random_of('directions', chunk).standard_normal((count, 3))
    return vectors / numpy.linalg.norm(vectors, axis=1)[:, None]


def observed(chunk, ids):
    """Nine tenths of the stars, some 0.3 seconds of arc away; elsewhere the others."""
    random, stars = random_of('observed', chunk), directions(chunk, len(ids))
    moved = stars + random.standard_normal(stars.shape) * math.radians(0.3 / 3600)
    moved[9 * len(ids) // 10:] = random.standard_normal((len(ids) - 9 * len(ids) // 10, 3))
    return [moved / numpy.linalg.norm(moved, axis=1)[:, None]]


def hashes(chunk, ids):
    return [random_of('hashes', chunk).integers(-2 ** 63, 2 ** 63 - 1, len(ids), numpy.int64)]


def near_hashes(chunk, ids):
    """One of ten is another table's, with up to BITS bits changed."""
    random, values = random_of('near_hashes', chunk), hashes(chunk, ids)[0]
    for _ in range(BITS):
        values ^= numpy.int64(1) << random.integers(0, 63, len(ids), numpy.int64)
    others = ids % 10 != 0
    values[others] = random.integers(-2 ** 63, 2 ** 63 - 1, others.sum(), numpy.int64)
    return [values]


def texts(chunk, ids):
    """The last tenth are copies of the first, a little changed."""
    copies = chunk >= CHUNKS * 9 // 10
    vectors = random_of('texts', chunk % (CHUNKS * 9 // 10)).standard_normal((len(ids), TEXT_DIMS), numpy.float32)
    if copies:
        vectors += 0.2 * random_of('copies', chunk).standard_normal(vectors.shape, numpy.float32)
    return [vectors]


def galaxies(chunk, ids):
    """Half of them uniform, half around 1,000 centres, at up to 0.004 of them in each column."""
    random = random_of('galaxies', chunk)
    points = random.random((len(ids), 3), numpy.float32)
    centers = random_of('centers', 0).random((1000, 3), numpy.float32)
    near = centers[random.integers(0, 1000, len(ids[1::2]))]
    points[1::2] = near + 0.004 * random.uniform(-1, 1, near.shape) * random.random(near.shape)
    return [points]


# ---- Measuring

def turns_of(queries, rounds, before, settings):
    """{name: turns, or the error}; queries take turns, each by itself where one of them fails."""
    ways = {name: (sql, settings) for name, sql in queries.items()}
    try:
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
            self.rows.append([name, number(ms), *(number(value) for value in last.values()), turns[0][2]['engine'],
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
    rows, workers = Rows(), {'max_parallel_workers_per_gather': 8}
    wait_for_service(f"SELECT count(*) FROM gpu_selfjoin('places', {EPS})")
    function = f"SELECT count(*) FROM gpu_selfjoin('places', {EPS})"
    plain = f'SELECT count(*) FROM places a JOIN places b ON a.v <-> b.v <= {EPS}'
    rows.add({'first, function': function, 'first, plain SQL': plain}, 12, "SELECT gpu_evict('places')", workers, whole=45)
    rows.ratio('first, plain SQL', 'first, function', 1.2)
    rows.add({'later, function': function, 'later, plain SQL': plain}, 12, settings=workers)
    return f'{POINTS:,} points of two dimensions, `float4[]`, within {EPS}; `max_parallel_workers_per_gather = 8`.', rows


def sums():
    load('shops', 'v float4[], region int, amount float8', POINTS, lambda chunk, ids: [
        *uniform('shops')(chunk, ids), ids % 100, random_of('amounts', chunk).random(len(ids))])
    rows, workers = Rows(), {'max_parallel_workers_per_gather': 8}
    join = f'FROM shops a JOIN shops b ON a.v <-> b.v <= {WIDE_EPS}'
    grouped = f'SELECT a.region, sum(b.amount), avg(a.v <-> b.v) {join} GROUP BY a.region'
    rows.add({'by region, first': grouped}, 6, "SELECT gpu_evict('shops')", workers, after_reading=100)
    rows.add({'by region, later': grouped,
              'of all, later': f'SELECT count(*), sum(b.amount), avg(a.v <-> b.v) {join}'}, 6, '', workers, after_reading=100)
    drop('shops')
    return f'`SELECT a.region, sum(b.amount), avg(a.v <-> b.v) {join} GROUP BY a.region`, {POINTS:,} points, 100 regions.', rows


def dense():
    def exponential(chunk, ids):
        random, values = random_of('dense', chunk), numpy.full((len(ids), 16), 2.0)
        while (values > 1).any():
            values = numpy.where(values > 1, random.exponential(1 / 40, values.shape), values)
        return [values.astype(numpy.float32)]
    load('dense', 'v float4[]', DENSE, exponential)
    join = f'FROM dense a JOIN dense b ON a.v <-> b.v <= {DENSE_EPS}'
    rows = Rows()
    rows.add({'total, function': f"SELECT count(*) FROM gpu_selfjoin('dense', {DENSE_EPS})",
              'total, plain SQL': f'SELECT count(*) {join}',
              'per row, function': f"SELECT count(*), sum(neighbors) FROM gpu_density('dense', {DENSE_EPS})",
              'per row, plain SQL': f'SELECT count(*), sum(n) FROM (SELECT a.id, count(*) AS n {join} GROUP BY a.id) s'},
             4, whole=500)
    drop('dense')
    return f'{DENSE:,} exponential points (lambda 40, cut at 1) of 16 dimensions, `float4[]`, within {DENSE_EPS}.', rows


def tables_of_pairs():
    function = f"gpu_selfjoin('places', {EPS})"
    plain = f'places a JOIN places b ON a.v <-> b.v <= {EPS}'
    rows = Rows()
    rows.add({'SELECT sum, function': f'SELECT sum(id1), sum(id2) FROM {function}',
              'SELECT sum, plain SQL': f'SELECT sum(a.id), sum(b.id) FROM {plain}'}, 3)
    rows.add({'CREATE TABLE AS, function': f'CREATE TABLE found AS SELECT * FROM {function}',
              'CREATE TABLE AS, plain SQL': f'CREATE TABLE found AS SELECT a.id AS id1, b.id AS id2 FROM {plain}'}, 2,
             'DROP TABLE IF EXISTS found', whole=4500)
    psql('DROP TABLE IF EXISTS found; CREATE TABLE found (id1 bigint, id2 bigint);')
    rows.add({'INSERT ... SELECT, function': f'INSERT INTO found SELECT * FROM {function}'}, 2, 'TRUNCATE found')
    drop('found')
    rows.add({'COPY TO /dev/null, function': f"COPY (SELECT * FROM {function}) TO '/dev/null'"}, 2)
    return f'The pairs of the {POINTS:,} points of the first table, within {EPS}.', rows


def nearest():
    places('others')
    rows = Rows()
    rows.add({'gpu_knn_join': "SELECT count(*), sum(distance) FROM gpu_knn_join('places', 'others', 8)",
              'LATERAL': 'SELECT count(*), sum(n.d) FROM places a CROSS JOIN LATERAL '
                         '(SELECT a.v <-> b.v AS d FROM others b ORDER BY a.v <-> b.v LIMIT 8) n'}, 3)
    drop('others')
    return f'The 8 nearest of {POINTS:,} points for each of {POINTS:,}, two dimensions, `float4[]`.', rows


def bits():
    load('hashes', 'h bigint', HASHES, hashes)
    load('near_hashes', 'h bigint', HASHES, near_hashes)
    rows = Rows()
    rows.add({'function': f"SELECT count(*) FROM gpu_join('hashes', 'near_hashes', {BITS}, left_vector_columns => 'h', "
                          "right_vector_columns => 'h', metric => 'hamming')",
              'plain SQL': 'SELECT count(*) FROM hashes a JOIN near_hashes b '
                           f'ON bit_count((a.h # b.h)::bit(64)) <= {BITS}'}, 4, whole=1000)
    drop('hashes', 'near_hashes')
    return (f'{HASHES:,} x {HASHES:,} hashes of 64 bits, `bigint`, within {BITS} bits; at least {HASHES // 10:,} pairs are '
            'planted.'), rows


def catalogue():
    load('stars', 'v float8[]', STARS, lambda chunk, ids: [directions(chunk, len(ids))])
    load('observed', 'v float8[]', STARS, observed)
    rows = Rows()
    rows.add({'function': f"SELECT count(*) FROM gpu_join('stars', 'observed', {ARC_SECOND!r}, metric => 'cosine')",
              'plain SQL': f'SELECT count(*) FROM stars a JOIN observed b ON a.v <=> b.v <= {ARC_SECOND!r}'}, 3)
    drop('stars', 'observed')
    return (f'{STARS:,} x {STARS:,} unit vectors, `float8[]`, within a second of arc by the cosine distance; nine of ten are some '
            '0.3 seconds from one of the other table.'), rows


def duplicates():
    load('texts', 'v float4[]', TEXTS, texts, storage='ALTER TABLE texts ALTER v SET STORAGE EXTERNAL;')
    planted = TEXTS // 10
    rows = Rows()
    rows.add({'first': 'SELECT count(*), count(*) FILTER (WHERE kept_id = id - '
                       f"{TEXTS - planted}) FROM gpu_dedup('texts', 0.05, metric => 'cosine')"}, 1, after_reading=5000)
    rows.add({'later': "SELECT count(*) FROM gpu_dedup('texts', 0.05, metric => 'cosine')"}, 2, after_reading=5000)
    kept = psql("SELECT format('%s rows, %s bytes in the host, %s on devices, %s joins that found them, %s blocks read', rows, "
                "host_bytes, device_bytes, hits, blocks_read) FROM gpu_resident WHERE relation = 'texts'::regclass").strip()
    drop('texts')
    return (f'`gpu_dedup` of {TEXTS:,} vectors of {TEXT_DIMS} dimensions, `float4[]`, cosine distance 0.05; planted: {planted:,} '
            f'(the answer: rows found, and planted ones among them). What stays in the service: {kept or "nothing"}.'), rows


def clusters():
    load('galaxies', 'v float4[]', GALAXIES, galaxies, key=False)
    eps = radius(0.002, 3)
    rows = Rows()
    rows.add({'gpu_dbscan': "SELECT count(*), max(cluster) + 1, count(*) FILTER (WHERE kind = 'noise') "
                            f"FROM gpu_dbscan('galaxies', {eps}, 5, id_column => 'id')"}, 2)
    drop('galaxies')
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
