-- CREATE TABLE AS and its like, of what the node returns: the rows of the query, whatever they are made of.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA created_tables;
SET search_path = created_tables, public;
SET jit = off;

\ir same_rows.psql

CREATE TABLE points (id int PRIMARY KEY, v float8[], name text, wide text, at point);
INSERT INTO points
SELECT i, ARRAY[i % 50, i / 50], nullif('n' || i % 7, 'n3'), CASE WHEN i % 40 = 0 THEN (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 300) j) END,
  point(i, -i)
FROM generate_series(1, 3000) i;
ANALYZE points;
SELECT force_node(true);

-- Whether a table has the rows of a query, each as often.
CREATE FUNCTION has_rows_of(name regclass, query text, description text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  difference bigint;
  rows bigint;
BEGIN
  EXECUTE format('SELECT count(*) FROM ((TABLE %1$s EXCEPT ALL (%2$s)) UNION ALL ((%2$s) EXCEPT ALL TABLE %1$s)) d', name, query)
    INTO difference;
  EXECUTE format('SELECT count(*) FROM %s', name) INTO rows;
  RETURN ok(difference = 0 AND rows > 0, format('%s: %s rows, %s differ', description, rows, difference));
END $$;

\set pairs 'SELECT * FROM gpu_selfjoin(''points'', 1.5, vector_columns => ''v'')'
\set distances 'SELECT * FROM gpu_selfjoin_distance(''points'', 1, vector_columns => ''v'')'
\set joined 'SELECT a.id, b.name, a.wide, b.at::text AS at, a.v FROM points a JOIN points b ON a.v <-> b.v < 1.5'

CREATE TABLE t_pairs AS :pairs;
SELECT has_rows_of('t_pairs', :'pairs', 'pairs of a function');
CREATE TABLE t_distances AS :distances;
SELECT has_rows_of('t_distances', :'distances', 'pairs and distances');
CREATE TABLE t_joined AS :joined;
SELECT has_rows_of('t_joined', :'joined', 'a join with NULLs and values out of line');
SELECT ok(pg_table_size(reltoastrelid) > 8192, 'which went to the TOAST table') FROM pg_class WHERE oid = 't_joined'::regclass;
SELECT a.id, b.name, a.wide, b.at::text AS at, a.v INTO t_into FROM points a JOIN points b ON a.v <-> b.v < 1.5;
SELECT has_rows_of('t_into', :'joined', 'SELECT INTO');
CREATE UNLOGGED TABLE t_unlogged AS :pairs;
SELECT has_rows_of('t_unlogged', :'pairs', 'an unlogged table');
CREATE MATERIALIZED VIEW m_pairs AS :pairs;
SELECT has_rows_of('m_pairs', :'pairs', 'a materialized view');
PREPARE prepared(float8) AS SELECT * FROM gpu_selfjoin('points', $1, vector_columns => 'v');
CREATE TABLE t_prepared AS EXECUTE prepared(1.5);
SELECT has_rows_of('t_prepared', :'pairs', 'a prepared statement');
CREATE TABLE t_empty AS SELECT * FROM gpu_selfjoin('points', 0, vector_columns => 'v', pairs => 'unordered');
SELECT is_empty('TABLE t_empty', 'no rows');
CREATE TABLE t_no_data AS :pairs WITH NO DATA;
SELECT is_empty('TABLE t_no_data', 'WITH NO DATA');
SET client_min_messages = error;
CREATE TABLE IF NOT EXISTS t_empty AS :pairs;
SELECT is_empty('TABLE t_empty', 'IF NOT EXISTS fills no table that is there');
CREATE TABLE t_names (first, second) WITH (fillfactor = 30) AS :pairs;
SELECT has_rows_of('t_names', :'pairs', 'names and options of its own');
SELECT cmp_ok(pg_relation_size('t_names'), '>', 2 * pg_relation_size('t_pairs'), 'which are heeded');

-- A temporary table of the same name is another one.
CREATE TEMP TABLE t_shadowed (id1 bigint, id2 bigint);
CREATE TABLE created_tables.t_shadowed AS :pairs;
SELECT has_rows_of('created_tables.t_shadowed', :'pairs', 'a table with the name of a temporary one');
SELECT is_empty('TABLE pg_temp.t_shadowed', 'which gets none');

-- A query that creates tables itself while it runs.
CREATE FUNCTION creates(number bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  IF number = 7 THEN
    CREATE TABLE IF NOT EXISTS t_inner AS SELECT * FROM gpu_selfjoin('points', 1.5, vector_columns => 'v');
  END IF;
  RETURN number;
END $$;
CREATE TABLE t_outer AS SELECT creates(id1) AS id1, id2 FROM gpu_selfjoin('points', 1.5, vector_columns => 'v') OFFSET 0;
SELECT has_rows_of('t_outer', :'pairs', 'a query that creates a table');
SELECT has_rows_of('t_inner', :'pairs', 'that table');

-- An error leaves nothing, and the next one is as ever.
SELECT throws_ok('CREATE TABLE t_failed AS SELECT id1, 1 / (id2 - 2000) AS n FROM gpu_selfjoin(''points'', 1.5, vector_columns => ''v'')', '22012');
SELECT hasnt_table('created_tables', 't_failed', 'which leaves no table');
CREATE TABLE t_failed AS SELECT 1 AS n;
CREATE TABLE t_after AS :pairs;
SELECT has_rows_of('t_after', :'pairs', 'after an error');

SELECT * FROM finish();
ROLLBACK;
