"""psycopg 3: parameters and statements prepared on the server, results in binary, cursors there, COPY, cancel."""
import decimal

import psycopg

from dbapi import COLUMNS, QUERIES, RADII, ask, check_cancel, check_probes, check_refusal, check_repeated, check_wrapped, claim, expected, summed

BIGINT, DOUBLE = 20, 701  # pg_type.oid

with psycopg.connect(autocommit=True, prepare_threshold=0) as session:
    cursor = session.cursor()
    check_probes(cursor, [BIGINT, BIGINT, DOUBLE])
    check_wrapped(cursor, '%s', [*RADII, decimal.Decimal('4.5')])

    def generic_plans(beginning):
        return ask(cursor, 'SELECT sum(generic_plans) FROM pg_prepared_statements WHERE starts_with(statement, %s)', beginning)[0][0]
    check_repeated(cursor, '%s', generic_plans)

    for kind, query in QUERIES.items():
        with session.cursor(binary=True) as binary:
            rows = ask(binary, query.format('%s'), 6)
        claim(f'{kind}: rows in binary', summed(rows) == expected(cursor, 6) and all(type(row[2]) is float for row in rows), rows[:3])
        with session.transaction(), session.cursor('batches') as batches:
            batches.itersize = 100
            batches.execute(query.format('%s'), [6])
            first = batches.fetchmany(10)
            open_ones = ask(cursor, "SELECT count(*) FROM pg_cursors WHERE name = 'batches'")[0][0]
            rows = first + list(batches)
        claim(f'{kind}: a cursor on the server gives all rows in batches', open_ones == 1 and summed(rows) == expected(cursor, 6), summed(rows))
        with cursor.copy(f'COPY ({query.format(6)}) TO STDOUT') as copy:
            copy.set_types(['int8', 'int8', 'float8'])
            rows = list(copy.rows())
        claim(f'{kind}: COPY', summed(rows) == expected(cursor, 6), summed(rows))

    def told(error):
        return error.sqlstate, error.diag.message_hint
    check_refusal(psycopg.Error, cursor.execute, told)
    check_cancel(psycopg.Error, cursor, session.cancel, lambda error: error.sqlstate)

    with session.pipeline():
        several = [session.execute(QUERIES['plain SQL'].format('%s'), [radius]) for radius in RADII]
    found = [summed(one.fetchall()) for one in several]
    claim('statements in a pipeline', found == [expected(cursor, radius) for radius in RADII], found)
    ask(cursor, 'SELECT * FROM pairs LIMIT 0')
    claim('columns of a view', [column.name for column in cursor.description] == [*COLUMNS, 'region'])
