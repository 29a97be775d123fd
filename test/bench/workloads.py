"""Tables of random rows for whole queries, and the queries: made with numpy, loaded by binary COPY in several sessions. The parts of
make bench and test/bench/queries.py measure them. Needs numpy."""
import math
import subprocess
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy

from common import THREADS, say

LOADERS = min(12, THREADS)
CHUNKS = 100  # of a table, each made by itself
BITS = 6
ARC_SECOND = 2 * math.sin(math.radians(1 / 3600) / 2) ** 2  # as a cosine distance


def scaled(rows, scale):
    return CHUNKS * max(10, round(rows * scale / CHUNKS))


def radius(eps, dims, scale):
    """For as many neighbours as eps leaves at full scale."""
    return float(f'{eps / scale ** (1 / dims):.4g}')


# ---- Tables

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


def load(psql, name, columns, rows, make, key=True, storage=''):
    """A table of an id and the columns that make(chunk, ids) returns. The environment leads to the server, as it leads psql."""
    say(f'{name}, {rows:,} rows')
    psql(f'DROP TABLE IF EXISTS {name}; CREATE TABLE {name} (id int, {columns});' + storage)

    def copy(first):
        process = subprocess.Popen(['psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-c', f'COPY {name} FROM STDIN (FORMAT binary)'],
                                   stdin=subprocess.PIPE)
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


def drop(psql, *names):
    psql(''.join(f'DROP TABLE IF EXISTS {name};\n' for name in names))


def uniform(name, dims=2):
    return lambda chunk, ids: [random_of(name, chunk).random((len(ids), dims), numpy.float32)]


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


def texts(dims):
    """The last tenth are copies of the first, a little changed."""
    def make(chunk, ids):
        copies = chunk >= CHUNKS * 9 // 10
        vectors = random_of('texts', chunk % (CHUNKS * 9 // 10)).standard_normal((len(ids), dims), numpy.float32)
        if copies:
            vectors += 0.2 * random_of('copies', chunk).standard_normal(vectors.shape, numpy.float32)
        return [vectors]
    return make


def galaxies(dims):
    """Half of them uniform, half around 1,000 centres, at up to 0.004 of them in each column."""
    def make(chunk, ids):
        random = random_of('galaxies', chunk)
        points = random.random((len(ids), dims), numpy.float32)
        centers = random_of('centers', 0).random((1000, dims), numpy.float32)
        near = centers[random.integers(0, 1000, len(ids[1::2]))]
        points[1::2] = near + 0.004 * random.uniform(-1, 1, near.shape) * random.random(near.shape)
        return [points]
    return make


def exponential(dims):
    """Lambda 40, cut at 1."""
    def make(chunk, ids):
        random, values = random_of('exponential', chunk), numpy.full((len(ids), dims), 2.0)
        while (values > 1).any():
            values = numpy.where(values > 1, random.exponential(1 / 40, values.shape), values)
        return [values.astype(numpy.float32)]
    return make


def load_bits(psql, rows):
    load(psql, 'hashes', 'h bigint', rows, hashes)
    load(psql, 'near_hashes', 'h bigint', rows, near_hashes)


def load_catalogues(psql, rows):
    load(psql, 'stars', 'v float8[]', rows, lambda chunk, ids: [directions(chunk, len(ids))])
    load(psql, 'observed', 'v float8[]', rows, observed)


def load_texts(psql, rows, dims):
    load(psql, 'texts', 'v float4[]', rows, texts(dims), storage='ALTER TABLE texts ALTER v SET STORAGE EXTERNAL;')


# ---- Queries

def counts(eps):
    return {'function': f"SELECT count(*) FROM gpu_selfjoin('places', {eps})",
            'plain SQL': f'SELECT count(*) FROM places a JOIN places b ON a.v <-> b.v <= {eps}'}


def sums_by_region(eps):
    """Over the neighbours in the table shops."""
    return f'SELECT a.region, sum(b.amount), avg(a.v <-> b.v) FROM shops a JOIN shops b ON a.v <-> b.v <= {eps} GROUP BY a.region'


def pairs_of(eps):
    """{how they are asked for: SELECT of all pairs of places, as id1 and id2}"""
    return {'function': f"SELECT * FROM gpu_selfjoin('places', {eps})",
            'plain SQL': f'SELECT a.id AS id1, b.id AS id2 FROM places a JOIN places b ON a.v <-> b.v <= {eps}'}


BITS_PLAIN = f'SELECT count(*) FROM {{}} a JOIN {{}} b ON bit_count((a.h # b.h)::bit(64)) <= {BITS}'
BITS_QUERIES = {'function': f"SELECT count(*) FROM gpu_join('hashes', 'near_hashes', {BITS}, left_vector_columns => 'h', "
                            "right_vector_columns => 'h', metric => 'hamming')",
                'plain SQL': BITS_PLAIN.format('hashes', 'near_hashes')}

CATALOGUE_PLAIN = f'SELECT count(*) FROM {{}} a JOIN observed b ON a.v <=> b.v <= {ARC_SECOND!r}'
CATALOGUE_QUERIES = {'function': f"SELECT count(*) FROM gpu_join('stars', 'observed', {ARC_SECOND!r}, metric => 'cosine')",
                     'plain SQL': CATALOGUE_PLAIN.format('stars')}

DEDUP = "SELECT count(*) FROM gpu_dedup('texts', 0.05, metric => 'cosine')"
