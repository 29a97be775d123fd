"""make fuzz MODE=stale: readers of a table that others change. Each reader's statement joins the table by gpujoin, whose rows
may stay in the service from an earlier read, and by a hash join that reads it now. Both have one snapshot, so both have to
find the same pairs: no answer may come from a row that is not the snapshot's any more."""
import random
import re
import signal
import threading
import time
from collections import Counter

from pq import Connection
from service import send

ROWS, CELLS, EPS = 20000, 12000, 1
LEVELS = ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE']
# Serialization failure, deadlock; the relation was dropped, replaced or locked meanwhile.
EXPECTED = {'40001', '40P01', '42P01', '55006', '55P03', '25P02'}
# PostgreSQL's internal errors for a relation that went between two looks at it; any other one is a defect.
VANISHED = re.compile('could not open relation with OID|cache lookup failed for|could not find (tuple|pg_class entry)')
OPTIONS = '-c search_path=stale,public -c client_min_messages=error -c jit=off -c lock_timeout=5s '\
          '-c min_parallel_table_scan_size=0 -c parallel_setup_cost=0'

POINT = 'ARRAY[{0} % 100 * 10, {0} / 100 * 10]'  # cells lie farther apart than EPS
CORNER = 'point(cell % 100 * 10 + {0}, cell / 100 * 10 + {0})'
TABLE = ('CREATE TABLE places (id int PRIMARY KEY, cell int NOT NULL, v float4[], note text, score int DEFAULT random() * 20, '
         'h bit(32) GENERATED ALWAYS AS (cell::bit(32)) STORED, '
         f'b box GENERATED ALWAYS AS (box({CORNER.format(0)}, {CORNER.format(0.5)})) STORED) WITH (fillfactor = {{fill}})')
# Has rows that are written from now on store v out of line.
WIDEN = ("ALTER TABLE places ADD wide text DEFAULT repeat('w', 2000), ALTER v SET STORAGE EXTERNAL, SET (toast_tuple_target = 128)",
         'ALTER TABLE places ALTER wide SET STORAGE PLAIN')

# What both sides of the comparison compute: how many pairs, and of which rows.
JOINED = {'function': "SELECT count(*), sum(id1), sum(id2) FROM gpu_selfjoin('places', {eps}, 'id', pairs => 'unordered', "
                      "vector_columns => 'v')",
          'plain SQL': 'SELECT count(*), sum(a.id), sum(b.id) FROM places a JOIN places b ON a.v <-> b.v <= {eps} AND a.id < b.id',
          'count': "SELECT count(*), 0, 0 FROM gpu_selfjoin('places', {eps}, 'id', pairs => 'unordered', vector_columns => 'v')",
          'plain count': 'SELECT count(*), 0, 0 FROM places a JOIN places b ON a.v <-> b.v <= {eps}',
          'values': "SELECT count(*), sum(hashtext(coalesce(a.note, '') || b.cell || coalesce(b.note, ''))::bigint), sum(a.cell) "
                    'FROM places a JOIN places b ON a.v <-> b.v <= {eps} AND a.id < b.id AND (a.id + b.id) % 9 = 3',
          'first': 'SELECT count(*), coalesce(sum(d), 0), 0 FROM (SELECT a.v <-> b.v AS d, a.id AS i, b.id AS j FROM places a JOIN places b '
                   'ON a.v <-> b.v <= {eps} AND a.id <> b.id ORDER BY a.v <-> b.v LIMIT 40) s',
          'some': 'SELECT count(*), count(DISTINCT (i, j)), 0 FROM (SELECT a.id AS i, b.id AS j FROM places a JOIN places b '
                  'ON a.v <-> b.v <= {eps} AND a.cell = b.cell LIMIT 300) s',
          'left': 'SELECT count(*), count(b.id), sum(hashtext(coalesce(a.note, \'\') || coalesce(b.cell, -1))::bigint) '
                  'FROM places a LEFT JOIN places b ON a.v <-> b.v <= {eps} AND a.id <> b.id',
          'exists': "SELECT count(*), sum(a.id), sum(hashtext(coalesce(a.note, '') || a.cell)::bigint) FROM places a "
                    'WHERE EXISTS (SELECT FROM places b WHERE a.v <-> b.v <= {eps} AND a.id <> b.id)',
          'anti': "SELECT count(*), sum(a.id), sum(hashtext(coalesce(a.note, '') || a.cell)::bigint) FROM places a "
                  'WHERE NOT EXISTS (SELECT FROM places b WHERE a.v <-> b.v <= {eps} AND (a.id + b.id) % 2 = 1)',
          'nearest': 'SELECT count(*), count(DISTINCT a.id), count(*) FILTER (WHERE n.cell <> a.cell) FROM places a, LATERAL (SELECT b.cell '
                     'FROM places b WHERE a.v <-> b.v <= {eps} ORDER BY a.v <-> b.v LIMIT 3) n WHERE a.id % 5 = 0',
          'search': 'SELECT count(*), sum(b.id), sum(b.cell) FROM places b WHERE b.v <-> (SELECT a.v FROM places a WHERE a.id = 4999) <= {eps}',
          'searches': 'SELECT count(*), sum(n), sum(n * id) FROM (SELECT a.id, (SELECT count(*) FROM places b WHERE a.v <-> b.v <= {eps}) AS n '
                      'FROM places a WHERE a.id % 90 = 7 AND a.v IS NOT NULL) s',
          'first rows': 'SELECT count(*), sum(d), 0 FROM (SELECT a.id, ARRAY(SELECT a.v <-> b.v FROM places b WHERE b.cell < 1e6 ORDER BY a.v <-> b.v '
                        'LIMIT 4) AS ds FROM places a WHERE a.id % 400 = 7 AND a.v IS NOT NULL) s, LATERAL (SELECT count(*) AS d FROM unnest(ds) x WHERE x <= {eps}) t',
          'bits': 'SELECT count(*), sum(b.id), sum(b.cell) FROM places b WHERE bit_count(b.h # (SELECT a.h FROM places a WHERE a.id = 4999)) <= 0',
          'bits of pairs': 'SELECT count(*), sum(a.id), sum(b.id) FROM places a JOIN places b ON bit_count(a.h # b.h) <= 0 AND a.id < b.id',
          'groups': 'SELECT count(*), sum(n), sum(n * k) FROM (SELECT a.cell % 9 AS k, count(*) AS n FROM places a JOIN places b '
                    'ON a.v <-> b.v <= {eps} GROUP BY 1) s',
          'rows': 'SELECT count(*), sum(n), sum(n * id) FROM (SELECT a.id, count(*) AS n FROM places a JOIN places b '
                  'ON a.v <-> b.v <= {eps} GROUP BY a.id) s',
          'best pairs': "SELECT count(*), sum(id1), sum(id2), sum(score) FROM gpu_topk_join('places', 'places', {eps}, 300, 'id', 'id', "
                        "'v', 'v', 'score', 'score')",
          'boxes': "SELECT count(*), sum(id1), sum(id2) FROM gpu_box_join('places', 'places', {eps}, 'id', 'id', 'b', 'b', "
                   "pairs => 'unordered')",
          'duplicates': "SELECT count(*), sum(id), sum(kept_id) FROM gpu_dedup('places', {eps}, 'score', 'highest', 'id', 'v')",
          'tree': "SELECT count(*), sum(id1), sum(id2) FROM gpu_spanning_tree('places', 1, 'id', 'v') WHERE distance <= {eps}",
          'neighbors': "SELECT count(*), sum(id), sum((SELECT sum(n) FROM unnest(neighbors) n)) FROM gpu_neighbors('places', {eps}, 'id', "
                       "'v', pairs => 'distinct')"}
SCANNED = {'function': 'SELECT count(*), sum(a.id), sum(b.id) FROM places a JOIN places b ON a.cell = b.cell AND a.id < b.id'}
SCANNED['plain SQL'] = SCANNED['boxes'] = SCANNED['function']
SCANNED['count'] = 'SELECT count(*), 0, 0 FROM places a JOIN places b ON a.cell = b.cell AND a.id < b.id'
SCANNED['values'] = SCANNED['function'].replace('sum(a.id), sum(b.id)', "sum(hashtext(coalesce(a.note, '') || b.cell || "
                                                "coalesce(b.note, ''))::bigint), sum(a.cell)") + ' AND (a.id + b.id) % 9 = 3'
SCANNED['first'] = ('SELECT least(count(*), 40), 0::float8, 0 FROM places a JOIN places b ON a.cell = b.cell AND a.id <> b.id')
SCANNED['some'] = 'SELECT least(count(*), 300), least(count(*), 300), 0 FROM places a JOIN places b ON a.cell = b.cell AND a.v IS NOT NULL'
SCANNED['plain count'] = 'SELECT count(*), 0, 0 FROM places a JOIN places b ON a.cell = b.cell AND a.v IS NOT NULL'
NEAR, SAME = 'a.v <-> b.v <= {eps}', 'a.cell = b.cell AND a.v IS NOT NULL AND b.v IS NOT NULL'
for kind in ('left', 'exists', 'anti', 'groups', 'rows'):
    SCANNED[kind] = JOINED[kind].replace(NEAR, SAME)
SCANNED['search'] = ('SELECT count(*), sum(b.id), sum(b.cell) FROM places b WHERE b.cell = (SELECT a.cell FROM places a '
                     'WHERE a.id = 4999 AND a.v IS NOT NULL) AND b.v IS NOT NULL')
SCANNED['bits'] = 'SELECT count(*), sum(b.id), sum(b.cell) FROM places b WHERE b.cell = (SELECT a.cell FROM places a WHERE a.id = 4999)'
SCANNED['bits of pairs'] = SCANNED['function']
SCANNED['searches'] = JOINED['searches'].replace('a.v <-> b.v <= {eps}', 'a.cell = b.cell AND b.v IS NOT NULL')
SCANNED['first rows'] = ('SELECT count(*), sum(least(n, 4)), 0 FROM (SELECT a.id, (SELECT count(*) FROM places b WHERE a.cell = b.cell AND b.v IS NOT NULL) AS n '
                         'FROM places a WHERE a.id % 400 = 7 AND a.v IS NOT NULL) s')
SCANNED['nearest'] = ('SELECT coalesce(sum(least(n, 3)), 0), count(*), 0 FROM (SELECT a.id, count(*) AS n FROM places a '
                      f'JOIN places b ON {SAME} AND a.id % 5 = 0 GROUP BY a.id) s')
SCANNED['best pairs'] = ('SELECT count(*), sum(id1), sum(id2), sum(score)::float8 FROM (SELECT a.id AS id1, b.id AS id2, a.score + b.score AS score '
                         'FROM places a JOIN places b ON a.cell = b.cell AND a.id < b.id WHERE a.score + b.score IS NOT NULL '
                         'ORDER BY 3 DESC, 1, 2 LIMIT 300) s')
SCANNED['duplicates'] = ('SELECT count(*), sum(id), sum(best) FROM (SELECT id, first_value(id) OVER (PARTITION BY cell ORDER BY score DESC, id) AS best '
                         'FROM places WHERE v IS NOT NULL AND score IS NOT NULL) s WHERE id <> best')
SCANNED['tree'] = ('SELECT count(*), sum(first), sum(id) FROM (SELECT id, min(id) OVER (PARTITION BY cell) AS first '
                   'FROM places WHERE v IS NOT NULL) s WHERE id <> first')
SCANNED['neighbors'] = ('SELECT (SELECT count(*) FROM places WHERE v IS NOT NULL), (SELECT sum(id) FROM places WHERE v IS NOT NULL), sum(b.id) '
                        'FROM places a JOIN places b ON a.cell = b.cell AND a.id <> b.id')


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
        lambda: f'UPDATE places SET score = {rng.choice([0, 7, 20, 40, "NULL"])} WHERE {some(rng, 10 ** 9)}',
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


def upkeep(rng):
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
        vanished = result.state == 'XX000' and VANISHED.match(result.message)
        if result.state not in EXPECTED and not lost and not vanished:
            self.fail(f'{result.state} {result.message}: {statement[:200]}')
        return False

    def run_script(self, connection, statements):
        """Runs statements of one transaction, up to one that fails."""
        for statement in statements:
            if not self.tolerate(connection.run(statement), statement):
                connection.run('ROLLBACK')
                break

    def write(self, number):
        rng, ids, connection = random.Random(self.seed * 100 + number), ids_of(number), self.connect()
        while self.going():
            self.run_script(connection, transaction(rng, ids))
            self.note(transactions=1)
            time.sleep(rng.choice([0, 0, 0.05, 0.3]))
        connection.close()

    def keep_up(self, number):
        rng, connection = random.Random(self.seed * 100 + number), self.connect()
        while self.going():
            self.run_script(connection, upkeep(rng))
            time.sleep(rng.random())
        connection.close()

    def kill(self):
        """Kills the service, on this machine, so many times."""
        connection = self.connect()
        pause = (self.deadline - time.monotonic()) / self.kills
        while self.going():
            time.sleep(pause)
            self.note(kills=send(connection, signal.SIGKILL))

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
            connection.run(f'SET max_parallel_workers_per_gather = {rng.choice([0, 1, 2])}')
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
                      f'INSERT INTO places {rows_of(ROWS)}', 'VACUUM ANALYZE places', *(WIDEN if seed % 2 else ())]:
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
