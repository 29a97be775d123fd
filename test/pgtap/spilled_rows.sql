-- Joins of more rows than memory holds: in a temporary file, by function and in plain SQL, with the rows that joins in
-- memory have.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA spilled_rows;
SET search_path = spilled_rows, public;
SET jit = off;
SET extra_float_digits = 1;

\ir same_rows.psql

CREATE TABLE many AS SELECT i AS id, ARRAY[i * 7919 % 10007, i * 4729 % 10009]::float8[] AS v, i % 10 AS grp,
  box(point(i % 101, i % 103), point(i % 101 + i % 2, i % 103 + 1)) AS b
FROM generate_series(1, 40000) i;
ALTER TABLE many ADD PRIMARY KEY (id);
-- The same values under other ids, one that is no point like the others, and one that is missing.
CREATE TABLE others AS SELECT id + 50000 AS id, CASE id WHEN 5 THEN '{1,2,3}'::float8[] WHEN 6 THEN NULL ELSE v END AS v FROM many;
CREATE TABLE endless AS SELECT id, CASE id % 1000 WHEN 0 THEN '(-Infinity,0),(1,1)' ELSE b END AS b FROM many WHERE id % 4 = 0;
ANALYZE many, others, endless;

CREATE FUNCTION rows_under(query text, memory text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  rows text[];
BEGIN
  PERFORM set_config('gpujoin.host_memory_limit', memory, true);
  rows := bag(query);
  RESET gpujoin.host_memory_limit;
  RETURN rows;
END $$;CREATE FUNCTION is_canceled(query text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE query;
  RETURN false;
EXCEPTION WHEN query_canceled THEN RETURN true;
END $$;

SELECT is(rows_under(query, memory), rows_under(query, '1GB'), format('%s under %s', query, memory))
FROM unnest(ARRAY[
    'SELECT * FROM gpu_selfjoin(''many'', 8, vector_columns => ''{v}'')',
    'SELECT * FROM gpu_selfjoin(''many'', 8, vector_columns => ''{v}'', pairs => ''unordered'')',
    'SELECT * FROM gpu_selfjoin_distance(''many'', 8, vector_columns => ''{v}'', pairs => ''distinct'')',
    'SELECT count(*) FROM gpu_selfjoin(''many'', 8, vector_columns => ''{v}'')',
    'SELECT * FROM gpu_join(''many'', ''many'', 8, left_vector_columns => ''{v}'', right_vector_columns => ''{v}'')',
    'SELECT * FROM gpu_selfjoin(''many'', 1e-7, metric => ''cosine'', vector_columns => ''{v}'') WHERE id1 % 100 = 0',
    'SELECT * FROM gpu_box_join(''many'', ''many'', 0, left_box_columns => ''{b}'', right_box_columns => ''{b}'') WHERE id1 < 200']) query,
  unnest('{3MB,1MB}'::text[]) memory;

-- Plans are made for more memory than there is.
SELECT is(under_limit(query, '2MB'), under_limit(query, '1GB'), query)
FROM unnest(ARRAY[
    'SELECT l.id, r.id FROM many l JOIN many r ON l.v <-> r.v <= 8',
    'SELECT l.id, r.id FROM many l JOIN others r ON l.v <-> r.v <= 6',
    'SELECT l.id, r.id FROM others l LEFT JOIN many r ON l.v <-> r.v <= 0 AND l.id % 7 = r.grp',
    'SELECT count(*) FROM others l JOIN others r ON l.v <-> r.v <= 8',
    'SELECT l.id, r.id FROM many l JOIN many r ON l.b && r.b AND r.id < 60',
    'SELECT l.id, r.id FROM endless l JOIN many r ON l.b && r.b']) query;

-- Boxes of more dimensions than those that went to the file before them.
SELECT bool_or(name = 'cube') AS has_cube FROM pg_available_extensions \gset
\if :has_cube
CREATE EXTENSION IF NOT EXISTS cube;
CREATE TABLE cubes AS SELECT i AS id, CASE WHEN i < 8000 THEN cube(i % 9973, i % 9973 + 1)
  ELSE cube(ARRAY[i % 97, i % 89, i % 3]::float8[], ARRAY[i % 97 + 1, i % 89 + 1, 2]::float8[]) END AS c
FROM generate_series(1, 12000) i;
ANALYZE cubes;
SELECT is(under_limit(query, '2MB'), under_limit(query, '1GB'), query)
FROM unnest(ARRAY['SELECT l.id, r.id FROM cubes l JOIN cubes r ON l.c && r.c AND l.id < 9000']) query;
\endif

SET LOCAL gpujoin.host_memory_limit = '1MB';
SELECT cmp_ok(property('Parts', 'SELECT * FROM gpu_selfjoin(''many'', 8, vector_columns => ''{v}'')')::bigint, '>', 1::bigint, 'the join took parts');
SET LOCAL temp_file_limit = '100kB';
SELECT throws_ok('SELECT count(*) FROM gpu_selfjoin(''many'', 8, vector_columns => ''{v}'')', '53400', NULL,
  'temp_file_limit counts the rows');
SET LOCAL temp_file_limit = '500kB';
SELECT throws_ok('SELECT count(*) FROM gpu_selfjoin(''many'', 8, vector_columns => ''{v}'')', '53400', NULL,
  'and what the engine writes');
RESET temp_file_limit;
SET LOCAL statement_timeout = '200ms';
SELECT ok(is_canceled('SELECT pg_sleep(5)'), 'a session whose file was closed half-written can be interrupted');
RESET statement_timeout;
SELECT lives_ok('SELECT count(*) FROM gpu_selfjoin(''many'', 8, vector_columns => ''{v}'')', 'the next join works');
RESET gpujoin.host_memory_limit;
-- 2 MB of points, in the file and again in parts.
SET LOCAL temp_file_limit = '6MB';
SELECT matches(under_limit('SELECT count(*) FROM generate_series(1, 20) n, LATERAL
  (SELECT count(*) FROM many l JOIN many r ON l.v <-> r.v <= n OFFSET 0) s', '2MB')::text, '^{\(20\)}$', 'each scan uses the file anew');
RESET temp_file_limit;
SET LOCAL gpujoin.host_memory_limit = '512kB';
SELECT throws_like('SELECT count(*) FROM gpu_neighbors(''many'', 8, vector_columns => ''{v}'')', '%do not fit in gpujoin.host_memory_limit',
  'neighbours as arrays stay in memory');

SELECT * FROM finish();
ROLLBACK;
