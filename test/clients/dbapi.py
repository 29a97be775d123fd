"""What the clients in Python share: claims as TAP, and what is asked through every driver alike.

A driver is a cursor of the DB-API whose placeholder for a parameter is `mark`. What is right comes from the table expected
(tables.sql), which plain SQL without the node has filled."""
import threading
import time

RADII = [4.5, 6, 9]
COLUMNS = ['id1', 'id2', 'distance']
# The pairs within a radius, in plain SQL and by a function.
QUERIES = {
    'plain SQL': 'SELECT a.id AS id1, b.id AS id2, a.v <-> b.v AS distance FROM points a JOIN points b ON a.id < b.id AND a.v <-> b.v <= {}',
    'function': "SELECT id1, id2, distance FROM gpu_selfjoin_distance('points', {}, pairs => 'unordered')",
}
# How tools ask for the columns of a query, and for a chart of it.
PROBES = ['SELECT * FROM ({}) s WHERE 1=0', 'SELECT * FROM ({}) AS virtual_table LIMIT 0', 'SELECT * FROM ({}) "Custom SQL Query" WHERE 1 = 0 LIMIT 1',
          'SELECT "_"."id1", "_"."id2", "_"."distance" FROM (SELECT * FROM ({}) AS t) AS "_" LIMIT 0']
WRAPPED = 'SELECT count(*), sum("_"."id1" * 31 + "_"."id2") FROM (SELECT "id1", "id2" FROM ({}) AS virtual_table) "_" HAVING count(1) > 0'
# More pairs than anyone waits for; a filter drops all.
ENDLESS = {
    'plain SQL': 'SELECT a.id FROM crowd a JOIN crowd b ON a.v <-> b.v <= 9 WHERE a.id + b.id < 0',
    'function': "SELECT id1 FROM gpu_selfjoin('crowd', 9) WHERE id1 + id2 < 0",
}
MOST_SECONDS = 1.5  # from a cancel to its error
NODE = 'GpuSimilarityJoin'


def claim(name, holds, said=''):
    print('ok' if holds else 'not ok', name, flush=True)
    if not holds:
        print(''.join(f'# {line}\n' for line in str(said).splitlines()), end='', flush=True)


def ask(cursor, sql, *parameters):
    cursor.execute(sql, parameters) if parameters else cursor.execute(sql)
    return [tuple(row) for row in cursor.fetchall()]


def expected(cursor, radius):
    """(number, checksum) of the pairs within the radius."""
    return tuple(map(int, ask(cursor, f'SELECT sum(pairs), sum(ids) FROM expected WHERE radius = {radius}')[0]))


def summed(rows):
    """(number, checksum) of rows (id1, id2, ...)."""
    return len(rows), sum(row[0] * 31 + row[1] for row in rows)


def plan(cursor, sql, *parameters):
    return '\n'.join(row[0] for row in ask(cursor, f'EXPLAIN {sql}', *parameters))


def check_probes(cursor, types):
    """Columns of queries that give no rows: names, and types as the driver tells them."""
    for kind, query in QUERIES.items():
        for probe in PROBES:
            rows = ask(cursor, probe.format(query.format(6)))
            found = [column[0] for column in cursor.description], [column[1] for column in cursor.description]
            claim(f'{kind}: columns by {probe.format("...")}', not rows and found == (COLUMNS, types), (rows, found))


def check_wrapped(cursor, mark, values=RADII):
    """A query in the subqueries of a tool, with the radius as a parameter, and its plan."""
    for kind, query in QUERIES.items():
        sql = WRAPPED.format(query.format(mark))
        for value in values:
            found = tuple(map(int, ask(cursor, sql, value)[0]))
            claim(f'{kind}: counted in subqueries, radius {value!r}', found == expected(cursor, value), found)
        told = plan(cursor, WRAPPED.format(query.format(6)))
        claim(f'{kind}: the node counts', NODE in told, told)


def check_repeated(cursor, mark, generic):
    """A statement executed more than five times, each time with another radius. generic(beginning) says how many plans
    of statements that begin so were generic."""
    right = {radius: expected(cursor, radius) for radius in RADII}
    for kind, query in QUERIES.items():
        wrong = [radius for radius in RADII * 4 if summed(ask(cursor, query.format(mark), float(radius))) != right[radius]]
        claim(f'{kind}: pairs of twelve radii', not wrong, wrong)
        claim(f'{kind}: the last ones by a generic plan', generic(query.split('{}')[0]) > 0)


def check_refusal(error, execute, told):
    """An error reaches the client as told(error) = (SQLSTATE, hint), and the session goes on."""
    try:
        execute("SELECT * FROM gpu_selfjoin('points', -3)")
        claim('a radius below zero is refused', False)
    except error as refusal:
        state, hint = told(refusal)
        claim('an error has its SQLSTATE', state == '22023', state)
        claim('and its hint', 'Pass the largest distance that two rows may have' in (hint or ''), hint)


def check_cancel(error, cursor, cancel, state):
    """cancel() from another thread ends a statement soon, by an error whose SQLSTATE is state(error), and the session goes on."""
    for kind, query in ENDLESS.items():
        cancelled = []

        def later():
            time.sleep(0.5)
            cancelled.append(time.monotonic())
            cancel()

        thread = threading.Thread(target=later)
        thread.start()
        try:
            ask(cursor, query)
            claim(f'{kind}: a cancel ends it', False, 'it ended by itself')
        except error as refusal:
            seconds = time.monotonic() - cancelled[0] if cancelled else 0
            claim(f'{kind}: a cancel ends it', cancelled and state(refusal) == '57014', refusal)
            claim(f'{kind}: within {MOST_SECONDS} s', seconds <= MOST_SECONDS, f'{seconds:.2f} s')
        thread.join()
        found = summed(ask(cursor, QUERIES[kind].format(6)))
        claim(f'{kind}: and the session goes on', found == expected(cursor, 6), found)
