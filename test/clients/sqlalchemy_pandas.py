"""psycopg2 below SQLAlchemy and pandas: reflected columns, expressions, parameters, results that stream, frames, cancel."""
import pandas
import psycopg2
import sqlalchemy
from sqlalchemy import func, text

from dbapi import COLUMNS, NODE, QUERIES, RADII, ask, check_cancel, check_probes, check_refusal, check_wrapped, claim, expected, plan, summed

BIGINT, DOUBLE = 20, 701  # pg_type.oid

engine = sqlalchemy.create_engine('postgresql+psycopg2://', future=True)
with engine.connect() as session:
    driver = session.connection.dbapi_connection
    driver.autocommit = True
    cursor = driver.cursor()
    check_probes(cursor, [BIGINT, BIGINT, DOUBLE])
    check_wrapped(cursor, '%s')

    def told(error):
        return error.pgcode, error.diag.message_hint
    check_refusal(psycopg2.Error, cursor.execute, told)
    check_cancel(psycopg2.Error, cursor, driver.cancel, lambda error: error.pgcode)
    driver.autocommit = False

    view = sqlalchemy.Table('pairs', sqlalchemy.MetaData(), autoload_with=session)
    types = [column.type for column in view.columns]
    claim('columns of a view, reflected', list(view.columns.keys()) == [*COLUMNS, 'region'] and
          [type(one) for one in types[:2]] == [sqlalchemy.BIGINT] * 2 and isinstance(types[2], sqlalchemy.Float), types)

    points = sqlalchemy.Table('points', sqlalchemy.MetaData(), sqlalchemy.Column('id', sqlalchemy.BigInteger), sqlalchemy.Column('v'))
    a, b = points.alias(), points.alias()
    joined = sqlalchemy.select(func.count()).select_from(
        a.join(b, (a.c.id < b.c.id) & (a.c.v.op('<->', return_type=sqlalchemy.Float())(b.c.v) <= sqlalchemy.bindparam('radius'))))
    found = [session.execute(joined, {'radius': radius}).scalar() for radius in RADII]
    claim('an expression of SQLAlchemy', found == [expected(cursor, radius)[0] for radius in RADII], found)
    told_plan = plan(cursor, str(joined.params(radius=9).compile(engine, compile_kwargs={'literal_binds': True})))
    claim('by the node', NODE in told_plan, told_plan)

    for kind, query in QUERIES.items():
        statement = text(query.format(':radius'))
        streaming = session.execution_options(stream_results=True, max_row_buffer=100)
        result = streaming.execute(statement, {'radius': 9})
        parts = [len(part) for part in result.partitions(100)]
        claim(f'{kind}: a result that streams comes in parts, and whole',
              max(parts) == 100 and sum(parts) == expected(cursor, 9)[0], (max(parts), sum(parts)))
        frame = pandas.read_sql(statement, session, params={'radius': 9})
        claim(f'{kind}: a frame', summed(frame.values.tolist()) == expected(cursor, 9) and
              [str(one) for one in frame.dtypes] == ['int64', 'int64', 'float64'], frame.dtypes)
        chunks = list(pandas.read_sql(statement, streaming, params={'radius': 9}, chunksize=1000))
        claim(f'{kind}: a frame in pieces', summed(pandas.concat(chunks).values.tolist()) == expected(cursor, 9) and len(chunks) > 9, len(chunks))
