"""ODBC, by pyodbc and psqlODBC: parameters, statements prepared on the server, cursors of a fetch size, the catalog, cancel."""
import os

import pyodbc

from dbapi import COLUMNS, QUERIES, ask, check_cancel, check_probes, check_refusal, check_repeated, check_wrapped, claim, expected, summed

# The statement is one of a cursor itself.
OTHER_CURSORS = "SELECT count(*) FROM pg_cursors WHERE statement LIKE '%distance%' AND statement NOT LIKE '%pg_cursors%'"


def connect(**options):
    of_server = {'Driver': '{PostgreSQL Unicode}', 'Servername': os.environ['PGHOST'], 'Port': os.environ['PGPORT'],
                 'Database': os.environ['PGDATABASE'], 'UID': os.environ['PGUSER']}
    return pyodbc.connect(';'.join(f'{name}={value}' for name, value in {**of_server, **options}.items()), autocommit=True)


session = connect()
cursor = session.cursor()
check_probes(cursor, [int, int, float])
check_wrapped(cursor, '?')


def generic_plans(beginning):
    return ask(session.cursor(), 'SELECT sum(generic_plans) FROM pg_prepared_statements WHERE starts_with(statement, ?)', beginning)[0][0]


# pyodbc has a statement prepared anew for each execution, so that none would come to its sixth.
cursor.execute('SET plan_cache_mode = force_generic_plan')
check_repeated(cursor, '?', generic_plans)
cursor.execute('RESET plan_cache_mode')
columns = [(row.column_name, row.type_name) for row in cursor.columns(table='pairs')]
claim('columns of a view in the catalog', columns == [*zip(COLUMNS, ['int8', 'int8', 'float8']), ('region', 'text')], columns)

hints = connect(OptionalErrors=1).cursor()
check_refusal(pyodbc.Error, hints.execute, lambda error: error.args)
check_cancel(pyodbc.Error, cursor, cursor.cancel, lambda error: error.args[0])

batches = connect(UseDeclareFetch=1, Fetch=100)
batches.autocommit = False
for kind, query in QUERIES.items():
    reader = batches.cursor()
    reader.execute(query.format('?'), 9.0)
    first = reader.fetchmany(10)
    open_ones = ask(batches.cursor(), OTHER_CURSORS)[0][0]
    rows = first + reader.fetchall()
    claim(f'{kind}: a cursor on the server gives all rows in batches', open_ones == 1 and summed(rows) == expected(cursor, 9),
          (open_ones, summed(rows)))
