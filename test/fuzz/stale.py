"""make fuzz MODE=stale: readers of a table that others change. Each reader's statement joins the table by gpujoin, whose rows
may stay in the service from an earlier read, and by a hash join that reads it now. Both have one snapshot, so both have to
find the same pairs: no answer may come from a row that is not the snapshot's any more."""
import random
import subprocess
import threading
import time
from collections import Counter

from pq import Connection

ROWS, CELLS, EPS = 20000, 12000, 1
LEVELS = ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE']
# Serialization failure, deadlock; the relation was dropped, replaced or locked meanwhile.
EXPECTED = {'40001', '40P01', '42P01', '55006', '55P03', '25P02', 'XX000'}
OPTIONS = '-c search_path=stale,public -c client_min_messages=error -c jit=off -c lock_timeout=5s'

POINT = 'ARRAY[{0} % 100 * 10, {0} / 100 * 10]'  # cells lie farther apart than EPS
TABLE = ('CREATE TABLE places (id int PRIMARY KEY, cell int NOT NULL, v float4[], note text) WITH (fillfactor = {fill})')

# What both sides of the comparison compute: how many pairs, and of which rows.
JOINED = {'function': "SELECT count(*), sum(id1), sum(id2) FROM gpu_selfjoin('places', {eps}, 'id', pairs => 'unordered', "
                      "vector_columns => 'v')",
          'plain SQL': 'SELECT count(*), sum(a.id), sum(b.id) FROM places a JOIN places b ON a.v <-> b.v <= {eps} AND a.id < b.id',
          'count': "SELECT count(*), 0, 0 FROM gpu_selfjoin('places', {eps}, 'id', pairs => 'unordered', vector_columns => 'v')",
          'plain count': 'SELECT count(*), 0, 0 FROM places a JOIN places b ON a.v <-> b.v <= {eps}'}
SCANNED = {'function': 'SELECT count(*), sum(a.id), sum(b.id) FROM places a JOIN places b ON a.cell = b.cell AND a.id < b.id'}
SCANNED['plain SQL'] = SCANNED['function']
SCANNED['count'] = 'SELECT count(*), 0, 0 FROM places a JOIN places b ON a.cell = b.cell AND a.id < b.id'
SCANNED['plain count'] = 'SELECT count(*), 0, 0 FROM places a JOIN places b ON a.cell = b.cell AND a.v IS NOT NULL'


def new_rows(rng, count, ids):
    """VALUES of rows with new ids."""
    rows = []
    for _ in range(count):
        cell = rng.randrange(CELLS)
        rows.append(f'({next(ids)}, {cell}, {POINT.format(cell)}, NULL)')
    return ', '.join(rows)


def ids_of(number):
    """A writer's own ids."""
    return iter(range(number * 10 ** 7, (number + 1) * 10 ** 7))


def some(rng, most):
    """A condition that a few rows meet."""
    return f'id % {rng.choice([97, 997, 4999])} = {rng.randrange(97)} AND id < {most}' if rng.random() < 0.7 else \
        f'id BETWEEN {rng.randrange(ROWS)} AND {rng.randrange(ROWS)} AND id % 50 = 7'


def change(rng, ids):
    """A statement that changes rows."""
    cell = rng.randrange(CELLS)
    moved = POINT.format('cell')
    return rng.choice([
        lambda: f'INSERT INTO places VALUES {new_rows(rng, rng.choice([1, 5, 200]), ids)}',
        lambda: f'UPDATE places SET cell = {cell}, v = {POINT.format(cell)} WHERE {some(rng, 10 ** 9)}',
        lambda: f"UPDATE places SET note = 'n{rng.randrange(9)}' WHERE {some(rng, 10 ** 9)}",  # HOT where it fits
        lambda: f'DELETE FROM places WHERE {some(rng, 10 ** 9)}',
        lambda: f'SELECT id FROM places WHERE {some(rng, ROWS)} FOR {rng.choice(["UPDATE", "SHARE", "KEY SHARE"])}',
        lambda: f'UPDATE places SET v = NULL, cell = -id WHERE {some(rng, ROWS)}',
        lambda: f'UPDATE places SET cell = (id % {CELLS}), v = {moved.replace("cell", f"(id % {CELLS})")} WHERE {some(rng, ROWS)}',
    ])()


def transaction(rng, ids):
    """Statements from BEGIN to its end."""
    statements = [f'BEGIN ISOLATION LEVEL {rng.choice(LEVELS)}']
    for _ in range(rng.randint(1, 4)):
        kind = rng.random()
        if kind < 0.2:
            statements += ['SAVEPOINT s', change(rng, ids), rng.choice(['ROLLBACK TO s', 'RELEASE s'])]
        elif kind < 0.3:
            statements.append(f'SELECT pg_sleep({rng.random() / 10})')
        else:
            statements.append(change(rng, ids))
    return statements + [rng.choices(['COMMIT', 'ROLLBACK'], [4, 1])[0]]


def upkeep(rng, ids):
    """What administrators do, seldom."""
    fill = rng.choice([50, 90, 100])
    return rng.choices([
        ['VACUUM places'], ['VACUUM (FREEZE) places'], ['ANALYZE places'], ['CHECKPOINT'],
        ['VACUUM (FULL) places'], ['CLUSTER places USING places_pkey'],
        ['ALTER TABLE places ALTER v TYPE float8[]'], ['ALTER TABLE places ALTER v TYPE float4[]'],
        [f'ALTER TABLE places SET (fillfactor = {fill})'],
        ['BEGIN', 'TRUNCATE places', f'INSERT INTO places {rows_of(ROWS)}', rng.choice(['COMMIT', 'ROLLBACK'])],
        ['BEGIN', 'DROP TABLE places', TABLE.format(fill=fill), f'INSERT INTO places {rows_of(ROWS)}',
         rng.choice(['COMMIT', 'ROLLBACK'])],
        [f'DELETE FROM places WHERE id >= {ROWS}', 'VACUUM places'],
        ['ALTER TABLE places ADD extra int DEFAULT 5', 'ALTER TABLE places DROP extra'],
    ], [12, 6, 2, 4, 1, 1, 1, 1, 1, 2, 1, 4, 1])[0]


def rows_of(count):
    point = POINT.format(f'(n * 7 % {CELLS})')
    return f'SELECT n, n * 7 % {CELLS}, {point}, NULL FROM generate_series(1, {count}) n'


class Run:
    def __init__(self, database, seconds, seed, kills, levels):
        self.database, self.deadline, self.seed, self.kills = database, time.monotonic() + seconds, seed, kills
        self.levels = levels
        self.counts, self.problems, self.lock = Counter(), [], threading.Lock()

    def connect(self):
        return Connection(dbname=self.database, options=OPTIONS)

    def going(self):
        return time.monotonic() < self.deadline and len(self.problems) < 5

    def note(self, **counts):
        with self.lock:
            self.counts.update(counts)

    def fail(self, text):
        with self.lock:
            self.problems.append(text)

    def tolerate(self, result, statement):
        """Whether the statement worked; an error that concurrency explains is none of ours."""
        if result.state is None:
            return True
        lost = result.state == '58030' and self.kills  # rows had gone out already
        if result.state not in EXPECTED and not lost:
            self.fail(f'{result.state} {result.message}: {statement[:200]}')
        return False

    def write(self, number):
        rng, ids, connection = random.Random(self.seed * 100 + number), ids_of(number), self.connect()
        while self.going():
            for statement in transaction(rng, ids):
                if not self.tolerate(connection.run(statement), statement):
                    connection.run('ROLLBACK')
                    break
            self.note(transactions=1)
            time.sleep(rng.choice([0, 0, 0.05, 0.3]))
        connection.close()

    def keep_up(self, number):
        rng, ids, connection = random.Random(self.seed * 100 + number), ids_of(number), self.connect()
        while self.going():
            for statement in upkeep(rng, ids):
                if not self.tolerate(connection.run(statement), statement):
                    connection.run('ROLLBACK')
                    break
            time.sleep(rng.random())
        connection.close()

    def kill(self):
        """Kills the service, on this machine, so many times."""
        pause = (self.deadline - time.monotonic()) / self.kills
        while self.going():
            time.sleep(pause)
            self.note(kills=subprocess.run(['pkill', '-9', '-x', 'gpujoin_service'], check=False).returncode == 0)

    def compare(self, connection, rng, level):
        """One statement, two ways to read. False where the transaction has failed."""
        kind = rng.choice(list(JOINED))
        eps = rng.choice([EPS, EPS, EPS, 0, 2])  # one index may serve several radii
        joined, scanned = JOINED[kind].format(eps=eps), SCANNED[kind]
        statement = f'SELECT (SELECT r FROM ({joined}) r)::text, (SELECT s FROM ({scanned}) s)::text'
        result = connection.run(statement)
        if not self.tolerate(result, statement):
            return False
        self.note(comparisons=1)
        if result.rows[0][0] != result.rows[0][1]:
            self.fail(f'{level}, {kind}: {result.rows[0][0]} in the place of {result.rows[0][1]}')
        return True

    def read(self, number):
        rng, connection = random.Random(self.seed * 100 + number), self.connect()
        connection.must("LOAD 'gpujoin'")
        while self.going():
            level = rng.choice(self.levels)
            connection.run(f'BEGIN ISOLATION LEVEL {level}')
            for _ in range(rng.randint(1, 5)):
                if rng.random() < 0.2:
                    time.sleep(rng.random() / 4)
                if rng.random() < 0.1:
                    connection.run("UPDATE places SET note = 'mine' WHERE id = 77")  # of this transaction
                if not self.compare(connection, rng, level):
                    break
            connection.run('COMMIT')
        connection.close()


def run_stale(database, seconds, seed, kills=0, level='', readers=4, writers=3):
    """Runs the threads and returns their Run."""
    run = Run(database, seconds, seed, kills, [level] if level else LEVELS)
    connection = Connection(dbname=database, options=OPTIONS)
    for statement in ['DROP SCHEMA IF EXISTS stale CASCADE', 'CREATE SCHEMA stale', TABLE.format(fill=80),
                      f'INSERT INTO places {rows_of(ROWS)}', 'VACUUM ANALYZE places']:
        connection.must(statement)
    work = [run.read] * readers + [run.write] * writers + [run.keep_up]
    threads = [threading.Thread(target=job, args=(number + 1,)) for number, job in enumerate(work)]
    if kills:
        threads.append(threading.Thread(target=run.kill))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    resident = connection.run('SELECT count(*), sum(hits), sum(blocks_read) FROM public.gpu_resident')
    if resident.state is None:
        run.counts.update(tables=int(resident.rows[0][0]), hits=int(resident.rows[0][1] or 0))
    connection.run('DROP SCHEMA stale CASCADE')
    connection.close()
    return run
