"""pgbouncer in transaction mode: two sessions that share one connection to the server, with what each sets for itself.

PGBOUNCER is the program. It runs as the user that runs the server, and listens in a folder of its own."""
import contextlib
import os
import pathlib
import subprocess
import tempfile
import time

import psycopg

from dbapi import NODE, QUERIES, RADII, ask, check_cancel, check_probes, check_refusal, check_wrapped, claim, expected, plan, summed

BIGINT, DOUBLE = 20, 701  # pg_type.oid
SQL = QUERIES['plain SQL'].format(6)
CONFIG = """[databases]
* = host={server} port={port}
[pgbouncer]
unix_socket_dir = {folder}
listen_port = 6432
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 1
"""


@contextlib.contextmanager
def pgbouncer():
    """The folder of a pgbouncer's socket."""
    owner = pathlib.Path(os.environ['PGHOST']).owner()
    as_owner = ['setpriv', f'--reuid={owner}', '--clear-groups'] if os.getuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder:
        files = {'users': '"postgres" ""\n"careful" ""\n',
                 'config': CONFIG.format(server=os.environ['PGHOST'], port=os.environ['PGPORT'], folder=folder)}
        for name, content in files.items():
            pathlib.Path(folder, name).write_text(content)
        os.chmod(folder, 0o777)
        with open(f'{folder}/log', 'w+') as log, \
                subprocess.Popen([*as_owner, os.environ.get('PGBOUNCER', 'pgbouncer'), f'{folder}/config'], stderr=log) as program:
            try:
                for _ in range(100):
                    if os.path.exists(f'{folder}/.s.PGSQL.6432') or program.poll() is not None:
                        break
                    time.sleep(0.05)
                claim('pgbouncer starts', program.poll() is None, pathlib.Path(folder, 'log').read_text())
                yield folder
            finally:
                program.terminate()


def connect(folder, user='postgres'):
    # Names of prepared statements are of one connection to the server, which a session does not keep.
    return psycopg.connect(host=folder, port=6432, user=user, autocommit=True, prepare_threshold=None)


def server_of(cursor):
    return ask(cursor, 'SELECT pg_backend_pid()')[0][0]


with psycopg.connect(autocommit=True) as session:
    session.execute('DROP ROLE IF EXISTS careful')
    session.execute('CREATE ROLE careful LOGIN IN ROLE pg_read_all_data')
    session.execute('ALTER ROLE careful SET gpujoin.enable_customscan = off')

with pgbouncer() as folder, connect(folder) as one, connect(folder) as other, connect(folder, 'careful') as careful:
    first, second, third = one.cursor(), other.cursor(), careful.cursor()
    claim('two sessions share a connection', server_of(first) == server_of(second) != server_of(third))
    check_probes(first, [BIGINT, BIGINT, DOUBLE])
    check_wrapped(second, '%s')
    told = NODE in plan(first, SQL), NODE in plan(second, SQL), NODE in plan(third, SQL)
    claim("a role's setting is its own sessions' alone", told == (True, True, False), told)
    with one.transaction():
        first.execute('SET LOCAL gpujoin.enable_customscan = off')
        inside = NODE in plan(first, SQL)
    told = inside, NODE in plan(second, SQL), NODE in plan(first, SQL)
    claim('SET LOCAL ends with its transaction', told == (False, True, True), told)
    wrong = [(name, radius) for radius in RADII for name, cursor in [('first', first), ('careful', third), ('second', second)]
             if {summed(ask(cursor, query.format('%s'), radius)) for query in QUERIES.values()} != {expected(cursor, radius)}]
    claim('sessions that join in turn', not wrong, wrong)
    with one.transaction():
        ask(first, QUERIES['function'].format(6))
        pairs = ask(first, 'SELECT pairs FROM gpu_last_join()')
    claim('gpu_last_join() in the transaction of its join', pairs == [(expected(second, 6)[0],)], pairs)
    with one.transaction(), one.cursor('batches') as batches:
        batches.itersize = 100
        batches.execute(QUERIES['plain SQL'].format('%s'), [9])
        rows = list(batches)
    claim('a cursor on the server, in its transaction', summed(rows) == expected(second, 9), summed(rows))

    check_refusal(psycopg.Error, first.execute, lambda error: (error.sqlstate, error.diag.message_hint))
    check_cancel(psycopg.Error, first, one.cancel, lambda error: error.sqlstate)
    found = summed(ask(second, SQL))
    claim('a cancelled join does nothing to the other session', found == expected(second, 6), found)
