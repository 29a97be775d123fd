"""The ionosphere sample, 100,000 points of longitude and latitude, or 50 clusters of as many points where its file is not present."""
import contextlib
import gzip
import os
import shutil
import tempfile

from common import say

PATH = '../shared/data/ionosphere-100k.csv.gz'


@contextlib.contextmanager
def unpacked():
    """The name of a CSV file for a while, or ''."""
    if not os.path.exists(PATH):
        say(f'{PATH} is not there: without the ionosphere sample')
        yield ''
        return
    with tempfile.NamedTemporaryFile('wb', suffix='.csv') as file:
        with gzip.open(PATH) as packed:
            shutil.copyfileobj(packed, file)
        file.flush()
        yield file.name


def load_sample(psql, postgis, scale=1):
    """Makes the tables of tables.sql, in a trial of a share of the points, and returns what they hold, in words."""
    say('Loading tables')
    with unpacked() as sample, open('test/bench/tables.sql') as script, open(sample or os.devnull) as data:
        psql(script.read(), '-v', f'data={sample}', '-v', f'postgis={postgis}', stdin=data)
    for name in ['points', 'cubes', 'native_points'] + ['geometries'] * postgis if scale < 1 else []:
        psql(f'DELETE FROM {name} WHERE id % {round(1 / scale)} <> 0;\nVACUUM ANALYZE {name};')
    return 'the ionosphere sample' if sample else 'generated points in 50 clusters'
