-- CREATE TABLE AS, INSERT ... SELECT and their like, of what the node returns: the rows of the query, whatever they are made of.
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

-- INSERT ... SELECT. Where rows go in page by page, they have fewer WAL records than there are rows.
CREATE FUNCTION wal_records(statement text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, WAL, FORMAT JSON) ' || statement INTO plan;
  RETURN plan -> 0 -> 'Plan' -> 'WAL Records';
END $$;
CREATE FUNCTION goes_in(name text, query text, by_page bool, description text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  records bigint;
  rows bigint;
BEGIN
  EXECUTE 'TRUNCATE ' || name;
  EXECUTE format('INSERT INTO %s %s', name, query);
  GET DIAGNOSTICS rows = ROW_COUNT;
  RETURN NEXT has_rows_of(name, query, description);
  EXECUTE format('SELECT count(*) FROM %s', name) INTO records;
  RETURN NEXT is(rows, records, description || ': are counted');
  records := wal_records(format('INSERT INTO %s %s', name, query));
  RETURN NEXT ok((records < rows) = by_page, format('%s: %s by page (%s WAL records for %s rows)', description,
    CASE WHEN by_page THEN 'page' ELSE 'not page' END, records, rows));
END $$;

CREATE TABLE i_pairs (id1 bigint NOT NULL, id2 bigint);
SELECT goes_in('i_pairs', :'pairs', true, 'INSERT ... SELECT of a function');
CREATE TABLE i_joined (id int, name text, wide text, at text, v float8[]);
SELECT goes_in('i_joined', :'joined', true, 'INSERT ... SELECT of a join');
INSERT INTO i_joined (v, id) SELECT a.v, b.id FROM points a JOIN points b ON a.v <-> b.v < 1 WHERE b.id = 7;
SELECT results_eq('SELECT count(*) FROM i_joined WHERE name IS NULL AND wide IS NULL AND at IS NULL AND id = 7 AND v = ARRAY[7, 0]::float8[]',
  'SELECT 1::bigint', 'some columns, in another order');
ALTER TABLE i_joined DROP COLUMN wide;
SELECT goes_in('i_joined', replace(:'joined', ' a.wide,', ''), true, 'INSERT ... SELECT into a table with a dropped column');
TRUNCATE i_pairs;
PREPARE filled(float8) AS INSERT INTO i_pairs SELECT * FROM gpu_selfjoin('points', $1, vector_columns => 'v');
EXECUTE filled(1.5);
SELECT has_rows_of('i_pairs', :'pairs', 'a prepared INSERT');
WITH moved AS (INSERT INTO i_pairs SELECT * FROM gpu_selfjoin('points', 1.5, vector_columns => 'v') RETURNING id1)
SELECT count(*) AS inserted FROM moved \gset
SELECT is(:inserted, (SELECT count(*)::int / 2 FROM i_pairs), 'rows of a CTE, which RETURNING returns');

-- Whatever else is due for each row is done by PostgreSQL.
CREATE TABLE i_indexed (id1 bigint, id2 bigint, UNIQUE (id1, id2));
SELECT throws_ok('INSERT INTO i_indexed SELECT a.id % 2, b.id % 2 FROM points a JOIN points b ON a.v <-> b.v < 1', '23505');
CREATE TABLE i_checked (id1 bigint, id2 bigint CHECK (id2 < 3000));
SELECT throws_ok(format('INSERT INTO i_checked %s', :'pairs'), '23514');
SELECT throws_ok('INSERT INTO i_pairs SELECT nullif(id1, 1500), id2 FROM gpu_selfjoin(''points'', 1.5, vector_columns => ''v'')', '23502',
  'null value in column "id1" of relation "i_pairs" violates not-null constraint');
CREATE TABLE i_computed (id1 bigint, id2 bigint, difference bigint GENERATED ALWAYS AS (id2 - id1) STORED, number serial, said text DEFAULT 'no');
INSERT INTO i_computed SELECT * FROM gpu_selfjoin('points', 1.5, vector_columns => 'v');
SELECT results_eq('SELECT count(*), max(number) = count(*), bool_and(difference = id2 - id1 AND said = ''no'') FROM i_computed',
  format('SELECT count(*), true, true FROM (%s) s', :'pairs'), 'columns that are computed, have a default or a sequence');
CREATE TABLE i_parts (id1 bigint, id2 bigint) PARTITION BY HASH (id1);
CREATE TABLE i_part_0 PARTITION OF i_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE i_part_1 PARTITION OF i_parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT goes_in('i_parts', :'pairs', false, 'a partitioned table');
SELECT throws_ok(format('INSERT INTO i_part_0 %s', :'pairs'), '23514');
CREATE TABLE i_triggered (id1 bigint, id2 bigint);
CREATE FUNCTION odd_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id1 % 2 = 0 THEN RETURN NULL; END IF; RETURN NEW; END $$;
CREATE TRIGGER odd_only BEFORE INSERT ON i_triggered FOR EACH ROW EXECUTE FUNCTION odd_only();
INSERT INTO i_triggered SELECT * FROM gpu_selfjoin('points', 1.5, vector_columns => 'v');
SELECT has_rows_of('i_triggered', :'pairs' || ' WHERE id1 % 2 = 1', 'a table with a trigger');
CREATE TABLE i_counted (id1 bigint, so_far bigint);
CREATE FUNCTION so_far() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT count(*) FROM created_tables.i_counted';
INSERT INTO i_counted SELECT id1, so_far() FROM gpu_selfjoin('points', 1.5, vector_columns => 'v') WHERE id1 <= 300;
SELECT results_eq('SELECT count(*) = max(so_far) + 1 AND count(*) = count(DISTINCT so_far) FROM i_counted', 'SELECT true', 'a function that looks at the rows so far');
CREATE TABLE i_guarded (id1 bigint, id2 bigint);
ALTER TABLE i_guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY small ON i_guarded WITH CHECK (id1 < 2000);
CREATE ROLE created_tables_guest;
GRANT USAGE ON SCHEMA created_tables TO created_tables_guest;
GRANT INSERT ON i_guarded TO created_tables_guest;
GRANT SELECT ON points TO created_tables_guest;
SET ROLE created_tables_guest;
SELECT throws_ok(format('INSERT INTO i_guarded %s', :'pairs'), '42501', 'new row violates row-level security policy for table "i_guarded"');
SELECT throws_ok(format('INSERT INTO i_pairs %s', :'pairs'), '42501', 'permission denied for table i_pairs');
RESET ROLE;
CREATE VIEW i_shown AS SELECT * FROM i_guarded;
INSERT INTO i_shown SELECT * FROM gpu_selfjoin('points', 1.5, vector_columns => 'v');
SELECT has_rows_of('i_guarded', :'pairs', 'a table through a view');

SELECT * FROM finish();
ROLLBACK;
