"""Apache Superset: a database, a dataset over the view of a similarity join, a chart of its pairs by region, and the chart's page.

SUPERSET is the program (`superset` if it is not set). Superset comes from PyPI alone, so that this is run by hand:

    python3 -m venv /tmp/superset && /tmp/superset/bin/pip install apache-superset psycopg2-binary rich cachetools 'flask-caching<2.4'
    SUPERSET=/tmp/superset/bin/superset test/clients/run superset

PICTURE=FILE keeps the picture of the page."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import numpy
from matplotlib import image

from dbapi import COLUMNS, claim

PROGRAM = os.path.abspath(shutil.which(os.environ.get('SUPERSET', 'superset')))
SIZE = (1000, 700)
ADMINISTRATOR = '--username tester --firstname a --lastname b --email a@example.org --password tester'
ASKED = 'POST /api/v1/chart/data'  # in Superset's log
# Every request is an administrator's: it listens on this machine alone, and ends with the test.
CONFIG = """from flask_login import login_user

SECRET_KEY = {key!r}
SQLALCHEMY_DATABASE_URI = 'sqlite:///{folder}/superset.db'
WTF_CSRF_ENABLED = TALISMAN_ENABLED = False


def FLASK_APP_MUTATOR(app):
    @app.before_request
    def log_in():
        login_user(app.appbuilder.sm.find_user('tester'))
"""


def psql(sql):
    return subprocess.run(['psql', '-XqAt', '-c', sql], check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def superset(folder):
    """The address of a running Superset whose files lie in the folder."""
    pathlib.Path(folder, 'config.py').write_text(CONFIG.format(key=os.urandom(42).hex(), folder=folder))
    environment = {**os.environ, 'SUPERSET_CONFIG_PATH': f'{folder}/config.py', 'FLASK_APP': 'superset', 'SUPERSET_HOME': folder,
                   'HOME': folder}
    with open(f'{folder}/log', 'w') as log:
        for command in 'db upgrade', f'fab create-admin {ADMINISTRATOR}', 'init':
            subprocess.run([PROGRAM, *command.split()], env=environment, stdout=log, stderr=log, check=True)
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        with subprocess.Popen([PROGRAM, 'run', '--port', str(port)], env=environment, stdout=log, stderr=log,
                              start_new_session=True) as program:
            try:
                address = f'http://127.0.0.1:{port}'
                for _ in range(120):
                    with contextlib.suppress(OSError):
                        urllib.request.urlopen(f'{address}/health', timeout=5).close()
                        break
                    time.sleep(0.5)
                yield address
            finally:
                os.killpg(program.pid, signal.SIGTERM)


def call(address, path, body=None):
    """What the REST API answers; a request with a body is a POST."""
    request = urllib.request.Request(f'{address}/api/v1/{path}', json.dumps(body).encode() if body else None,
                                     {'Content-Type': 'application/json'})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise SystemExit(f'not ok {path}\n# {error.read().decode()}') from error


def picture_of(address, file):
    """The page as Chromium draws it once its requests have been answered: (width, height), and the shares of its colours, greatest first."""
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(['chromium', '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars',
                        f'--user-data-dir={profile}', f'--window-size={SIZE[0]},{SIZE[1]}', '--virtual-time-budget=40000',
                        f'--screenshot={file}', address], check=True, capture_output=True, timeout=120)
    pixels = image.imread(file)
    shares = numpy.unique(pixels.reshape(-1, pixels.shape[2]), axis=0, return_counts=True)[1] / pixels[..., 0].size
    return pixels.shape[1::-1], sorted(shares, reverse=True)


def query_of(dataset):
    return {'datasource': {'id': dataset, 'type': 'table'}, 'result_format': 'json', 'result_type': 'full',
            'queries': [{'columns': ['region'], 'metrics': ['count'], 'orderby': [['count', False]], 'row_limit': 100}]}


with tempfile.TemporaryDirectory() as folder, superset(folder) as address:
    place = {name: urllib.parse.quote(os.environ[name], safe='') for name in ('PGHOST', 'PGPORT', 'PGUSER', 'PGDATABASE')}
    uri = 'postgresql+psycopg2://{PGUSER}@/{PGDATABASE}?host={PGHOST}&port={PGPORT}'.format(**place)
    database = call(address, 'database/', {'database_name': 'gpujoin', 'sqlalchemy_uri': uri, 'expose_in_sqllab': True})['id']
    dataset = call(address, 'dataset/', {'database': database, 'schema': 'public', 'table_name': 'pairs'})['id']
    columns = {one['column_name']: one['type'] for one in call(address, f'dataset/{dataset}')['result']['columns']}
    claim('columns of the dataset', columns == {**dict(zip(COLUMNS, ['BIGINT', 'BIGINT', 'DOUBLE PRECISION'])), 'region': 'TEXT'}, columns)

    answer = call(address, 'chart/data', query_of(dataset))['result'][0]
    counts = {row['region']: row['count'] for row in answer['data']}
    right = dict(line.split('|') for line in psql('SELECT region, pairs FROM expected WHERE radius = 6').split('\n')[:-1])
    claim('a chart of pairs by region', {region: str(count) for region, count in counts.items()} == right, counts)
    plan = psql(f"EXPLAIN {answer['query']}")
    claim('by the node', 'GpuSimilarityJoin' in plan, plan)

    form = {'datasource': f'{dataset}__table', 'viz_type': 'echarts_timeseries_bar', 'x_axis': 'region', 'metrics': ['count'], 'groupby': [],
            'x_axis_title': 'region', 'y_axis_title': 'pairs within 6', 'y_axis_title_margin': 50, 'x_axis_title_margin': 30,
            'show_value': True, 'row_limit': 100}
    chart = call(address, 'chart/', {'slice_name': 'Pairs within 6 by region', 'viz_type': form['viz_type'], 'datasource_id': dataset,
                                    'datasource_type': 'table', 'params': json.dumps(form)})['id']
    file = os.environ.get('PICTURE') or f'{folder}/page.png'
    asked = pathlib.Path(folder, 'log').read_text().count(ASKED)
    size, shares = picture_of(f'{address}/explore/?slice_id={chart}&standalone=1', file)
    claim('its page asks for the pairs', pathlib.Path(folder, 'log').read_text().count(ASKED) > asked)
    claim('and draws bars, a third of it', size == SIZE and 0.25 < shares[1] < 0.4, (size, shares[:3]))
