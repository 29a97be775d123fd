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
CREATE TABLE scored AS SELECT id, v, -grp AS grp FROM many WHERE id % 3 <> 0;
ALTER TABLE scored ADD PRIMARY KEY (id);
CREATE TABLE twice AS SELECT id, v FROM many UNION ALL SELECT id, v FROM many WHERE id = 17;
ANALYZE many, others, endless, scored;

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
    'SELECT * FROM gpu_neighbors(''many'', 8, vector_columns => ''{v}'')',
    'SELECT * FROM gpu_neighbors(''many'', 8, vector_columns => ''{v}'', pairs => ''distinct'')',
    'SELECT count(*) FROM gpu_neighbors(''many'', 8, vector_columns => ''{v}'')',
    'SELECT * FROM gpu_topk_join(''many'', ''others'', 9, 100, score => ''distance'', left_vector_columns => ''{v}'')',
    'SELECT * FROM gpu_topk_join(''many'', ''many'', 9, 100, score => ''distance'', best => ''highest'', left_vector_columns => ''{v}'',
      right_vector_columns => ''{v}'')',
    'SELECT * FROM gpu_topk_join(''many'', ''many'', 9, 3000, left_score_column => ''grp'', right_score_column => ''grp'',
      left_vector_columns => ''{v}'', right_vector_columns => ''{v}'')',
    'SELECT * FROM gpu_topk_join(''many'', ''scored'', 9, 300, score => ''product'', best => ''lowest'', weights => ''{2,-1}'', left_score_column => ''grp'',
      right_score_column => ''id'', left_vector_columns => ''{v}'', right_vector_columns => ''{v}'')',
    'SELECT * FROM gpu_selfjoin(''many'', 1e-7, metric => ''cosine'', vector_columns => ''{v}'') WHERE id1 % 100 = 0',
    'SELECT * FROM gpu_knn_join(''many'', ''scored'', 4, left_vector_columns => ''{v}'', right_vector_columns => ''{v}'') WHERE id1 % 5 = 0',
    'SELECT * FROM gpu_knn_join(''many'', ''many'', 3, 20, left_vector_columns => ''{v}'', right_vector_columns => ''{v}'') WHERE id1 % 5 = 0',
    'SELECT * FROM gpu_box_join(''many'', ''many'', 0, left_box_columns => ''{b}'', right_box_columns => ''{b}'') WHERE id1 < 200']) query,
  unnest('{3MB,1MB}'::text[]) memory;

-- Of duplicates some bytes for each row have to fit.
CREATE TABLE wide AS SELECT id, v || ARRAY[grp, id % 7, id * 31 % 1009, -grp]::float8[] AS v, id % 100 AS grade, id % 10 > 0 AS most,
  CASE WHEN id % 11 > 0 THEN repeat('w' || id % 7, 1 + id % 3) END AS words FROM many;
ALTER TABLE wide ADD PRIMARY KEY (id);
ANALYZE wide;
SELECT is(rows_under(query, memory), rows_under(query, '1GB'), format('%s under %s', query, memory))
FROM (VALUES
    ('SELECT * FROM gpu_dedup(''wide'', 90, vector_columns => ''v'')', '4MB'),
    ('SELECT * FROM gpu_dedup(''wide'', 90, ''grade'', vector_columns => ''v'')', '4MB'),
    ('SELECT * FROM gpu_dedup(''wide'', 9, ''grade'', ''lowest'', vector_columns => ''v'', metric => ''linf'')', '6MB'),
    ('SELECT * FROM gpu_dedup(''wide'', 500, ''grade'', vector_columns => ''v'')', '6MB'),
    ('SELECT * FROM gpu_dedup(''wide'', 200, vector_columns => ''v'', partition_column => ''words'')', '4MB'),
    ('SELECT * FROM gpu_dedup(''wide'', 90, ''grade'', ''lowest'', vector_columns => ''v'', partition_column => ''words'')', '6MB'),
    ('SELECT * FROM gpu_dedup(''wide'', 300, vector_columns => ''v'', metric => ''l1'', partition_column => ''grade'')', '6MB'),
    ('SELECT * FROM gpu_dedup(''wide'', 90, ''grade'', vector_columns => ''v'', partition_column => ''most'')', '6MB')) t(query, memory);
SET LOCAL gpujoin.host_memory_limit = '6MB';
SELECT cmp_ok(property('Parts', query)::int, '>', 1, query) FROM unnest(ARRAY[
    'SELECT * FROM gpu_dedup(''wide'', 90, vector_columns => ''v'')',
    'SELECT * FROM gpu_dedup(''wide'', 90, vector_columns => ''v'', partition_column => ''most'')']) query;
-- A tree is of rows in memory, with all that it takes: the data alone may fit.
SELECT throws_matching('SELECT * FROM gpu_spanning_tree(''wide'', vector_columns => ''v'')', 'the rows of relation "wide" do not fit', 'a tree has no file');
SET LOCAL gpujoin.host_memory_limit = '8MB';
SELECT throws_matching(format('SELECT * FROM gpu_spanning_tree(''wide'', vector_columns => ''v'', metric => %L)', metric),
  'the join needs at least [0-9]+ kB of memory beside its data, and gpujoin.host_memory_limit leaves it [0-9]+ kB', 'a tree of ' || metric)
FROM unnest('{l2,cosine}'::text[]) metric;
SET LOCAL gpujoin.host_memory_limit = '1MB';
SELECT throws_ok(query, '53400', NULL, query) FROM unnest(ARRAY[
    'SELECT * FROM gpu_dedup(''wide'', 90, vector_columns => ''v'')',
    'SELECT * FROM gpu_spanning_tree(''wide'', vector_columns => ''v'')',
    'SELECT * FROM gpu_hdbscan(''wide'', 20, vector_columns => ''v'')']) query;
RESET gpujoin.host_memory_limit;

-- Plans are made for more memory than there is.
SELECT is(under_limit(query, '2MB'), under_limit(query, '1GB'), query)
FROM unnest(ARRAY[
    'SELECT l.id, r.id FROM many l JOIN many r ON l.v <-> r.v <= 8',
    'SELECT l.id, r.id FROM many l JOIN others r ON l.v <-> r.v <= 6',
    'SELECT l.id, r.id FROM others l LEFT JOIN many r ON l.v <-> r.v <= 0 AND l.id % 7 = r.grp',
    'SELECT l.id, r.id FROM many l JOIN others r ON l.v <-> r.v <= 6 ORDER BY l.v <-> r.v, l.id, r.id LIMIT 500',
    'SELECT l.id, r.id FROM many l JOIN many r ON l.v <-> r.v <= 6 AND l.id < r.id ORDER BY l.v <-> r.v, l.id, r.id LIMIT 500',
    'SELECT l.id, r.id FROM many l JOIN many r ON l.v <-> r.v <= 6 AND l.grp <> 3 ORDER BY l.v <-> r.v, l.id, r.id LIMIT 50',
    'SELECT l.id, r.id FROM many l JOIN many r ON l.v <-> r.v <= 6 AND l.id <> r.id ORDER BY l.grp + r.grp DESC, l.id, r.id LIMIT 3000',
    'SELECT l.id, r.id FROM many l JOIN scored r ON l.v <-> r.v <= 6 ORDER BY l.grp - r.id, l.id, r.id LIMIT 70',
    'SELECT l.id, r.id FROM scored l JOIN scored r ON l.v <-> r.v <= 6 AND l.id > 30 ORDER BY l.id - r.grp, l.id, r.id LIMIT 70',
    'SELECT l.id, count(*), sum(r.id), max(l.v <-> r.v) FROM many l JOIN many r ON l.v <-> r.v <= 8 GROUP BY l.id',
    'SELECT l.grp, count(*), sum(r.id), min(r.grp) FROM many l JOIN scored r ON l.v <-> r.v <= 8 GROUP BY l.grp',
    'SELECT l.grp % 3, count(*), sum(r.id * 1000003::bigint), avg(r.id::numeric(9, 2)), sum(l.id::bigint * r.id), max(l.v <-> r.v), variance(r.id),
      count(*) FILTER (WHERE r.id % 7 = 1) FROM many l LEFT JOIN others r ON l.v <-> r.v <= 8 GROUP BY 1',
    'SELECT count(*), sum(r.grp), round(sum(exp(-(l.v <-> r.v)))::numeric, 8) FROM many l JOIN many r ON l.v <-> r.v <= 8',
    'SELECT l.grp, sum(r.grp) FROM many l JOIN many r ON l.v <-> r.v <= 8 AND l.id < r.id GROUP BY l.grp',
    'SELECT l.grp, sum(r.id), sum(1 / (r.id - 77) + r.grp) FROM many l JOIN scored r ON l.v <-> r.v <= 8 WHERE r.id <> 77 GROUP BY l.grp',
    'SELECT l.id, r.id FROM many l JOIN many r ON l.v <-> r.v <= 40 AND l.grp = r.grp',
    'SELECT l.id, r.id FROM many l JOIN scored r ON l.v <-> r.v <= 40 AND abs(l.id - r.id) <= 300',
    'SELECT count(*) FROM many l JOIN others r ON l.v <-> r.v <= 200 AND r.id - 50000 BETWEEN l.id - 20 AND l.id + 90',
    'SELECT l.grp, count(*), sum(r.id) FROM many l JOIN scored r ON l.v <-> r.v <= 40 AND l.id % 50 = r.id % 50 GROUP BY l.grp',
    'SELECT l.id, n.id FROM many l, LATERAL (SELECT r.id FROM others r ORDER BY l.v <-> r.v, r.id LIMIT 3) n WHERE l.id % 3 = 0',
    'SELECT l.id, n.id FROM scored l LEFT JOIN LATERAL (SELECT r.id FROM many r WHERE r.grp <> 4 AND l.v <-> r.v <= 90
      ORDER BY l.v <-> r.v, r.id LIMIT 2) n ON true',
    'SELECT l.id FROM many l WHERE EXISTS (SELECT FROM others r WHERE l.v <-> r.v <= 6 AND l.id + 50000 <> r.id)',
    'SELECT l.id FROM many l WHERE NOT EXISTS (SELECT FROM others r WHERE l.v <-> r.v <= 6)',
    'SELECT count(*) FROM others l JOIN others r ON l.v <-> r.v <= 8',
    'SELECT l.id, r.id FROM many l JOIN many r ON l.b && r.b AND r.id < 60',
    'SELECT l.id, r.id FROM endless l JOIN many r ON l.b && r.b']) query;

-- What is added up, and keys, go through parts with the points.
SET LOCAL gpujoin.host_memory_limit = '4MB';
SELECT ok(property('Parts', query)::int > 0 AND property('Sums Fallback', query) IS NULL AND property('Index Keys Fallback', query) IS NULL, query)
FROM unnest(ARRAY[
    'SELECT l.grp, count(*), sum(r.id), sum(l.id::bigint * r.id), max(l.v <-> r.v) FROM many l JOIN many r ON l.v <-> r.v <= 8 GROUP BY l.grp',
    'SELECT l.grp, sum(r.id), stddev(l.v <-> r.v) FROM many l JOIN many r ON l.v <-> r.v <= 800 AND l.grp = r.grp GROUP BY l.grp',
    'SELECT l.id, r.id FROM many l JOIN many r ON l.v <-> r.v <= 800 AND abs(l.id - r.id) <= 300',
    'SELECT l.id, n.id FROM many l, LATERAL (SELECT r.id FROM scored r ORDER BY l.v <-> r.v, r.id LIMIT 3) n']) query;
RESET gpujoin.host_memory_limit;

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
SELECT throws_like('SELECT count(id) FROM gpu_neighbors(''twice'', 8, ''id'')', 'several rows of relation "twice" have the id 17',
  'neighbours of rows in a file are known by ids that do not repeat');
RESET gpujoin.host_memory_limit;
SELECT is((SELECT count(id) FROM gpu_neighbors('twice', 8, 'id')), 40001::bigint, 'in memory they may repeat');
-- Each cursor ends in its own way: read to the end, begun, and after an error.
SET LOCAL gpujoin.host_memory_limit = '2MB';
DECLARE near CURSOR FOR SELECT * FROM gpu_neighbors('many', 8, vector_columns => '{v}');
SELECT lives_ok('MOVE 10 FROM near', 'rows of a sort come one by one');
SELECT lives_ok('CLOSE near', 'and need not all come');
SELECT throws_ok('SELECT 1 / (id - 500) FROM gpu_neighbors(''many'', 8, vector_columns => ''{v}'')', '22012', NULL, 'an error ends a sort');
SET LOCAL work_mem = '64kB';
SET LOCAL temp_file_limit = '4MB';
SELECT throws_ok('SELECT * FROM gpu_neighbors(''many'', 8, vector_columns => ''{v}'')', '53400', NULL, 'temp_file_limit counts what is sorted');
RESET temp_file_limit;
RESET work_mem;
SELECT is((SELECT count(*) FROM (SELECT FROM gpu_neighbors('many', 8, vector_columns => '{v}') LIMIT 7) s), 7::bigint, 'the next one works');
SELECT is((SELECT count(*) FROM pg_ls_tmpdir() WHERE name ~ ('^pgsql_tmp' || pg_backend_pid() || '\D')), 0::bigint, 'and no temporary file is left');
RESET gpujoin.host_memory_limit;

-- Columns that the result needs wait in a file where they exceed work_mem * hash_mem_multiplier, and pairs come in batches.
CREATE TABLE tall AS SELECT i AS id, ARRAY[i * 7919 % 131, i * 4729 % 137]::float8[] AS v,
  point(i * 7919 % 131 * 0.1, i * 4729 % 137 * 0.1) AS p, i % 10 AS grp,
  (SELECT string_agg(md5((i * k)::text), '') FROM generate_series(1, 10) k) AS body FROM generate_series(1, 2000) i;
-- Every tenth row is wider than all memory, and such a value comes from no table.
CREATE VIEW huge AS SELECT id, v, CASE WHEN id % 10 = 0 THEN repeat(body, 300) ELSE body END AS body FROM tall WHERE id <= 300 OFFSET 0;
-- A few rows are odd: pairs of their values are the condition's to decide.
CREATE TABLE lone AS SELECT id + 10000 AS id, CASE WHEN id % 700 = 0 THEN point(1e160, 1) ELSE p END AS p, grp, body FROM tall;
-- Nothing but numbers and NULLs, which lie in the file as they are.
CREATE TABLE lean AS SELECT id, v, nullif(grp, 3) AS grp, nullif(id, 17) * 0.25::float8 AS x, id % 3 = 0 AS third, id::int2 AS short FROM tall;
ANALYZE tall, lone, lean;

CREATE FUNCTION rows_in(query text, memory text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  rows text[];
BEGIN
  PERFORM set_config('work_mem', memory, true), set_config('hash_mem_multiplier', '1', true), force_node(true);
  IF NOT has_node(query) THEN RETURN ARRAY['no node in ' || memory]; END IF;
  rows := bag(query);
  PERFORM force_node(false);
  RESET work_mem;
  RESET hash_mem_multiplier;
  RETURN rows;
END $$;
CREATE FUNCTION property_in(name text, query text, memory text, multiplier text DEFAULT '1') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  found text;
BEGIN
  PERFORM set_config('work_mem', memory, true), set_config('hash_mem_multiplier', multiplier, true);
  found := property(name, query);
  RESET work_mem;
  RESET hash_mem_multiplier;
  RETURN found;
END $$;

CREATE TABLE spilling (query text, odd boolean DEFAULT false);
INSERT INTO spilling VALUES
  ('SELECT l.id, r.id, md5(l.body), md5(r.body) FROM tall l JOIN tall r ON l.v <-> r.v <= 3'),
  ('SELECT l.id, r.id, md5(r.body) FROM tall l JOIN tall r ON l.v <-> r.v <= 5 AND l.id < r.id'),
  ('SELECT l.id, r.id, md5(l.body) FROM tall l JOIN tall r ON l.v <-> r.v <= 4 AND l.body < r.body'),
  ('SELECT l.id, r.id, md5(l.body), md5(r.body) FROM tall l JOIN tall r ON l.v <-> r.v <= 0 AND l.id < 900 * r.grp'),
  ('SELECT l.id, r.id, md5(l.body), md5(r.body) FROM tall l LEFT JOIN tall r ON l.v <-> r.v <= 2 AND l.body < r.body'),
  ('SELECT l.id, md5(l.body) FROM tall l WHERE EXISTS (SELECT FROM tall r WHERE l.v <-> r.v < 3 AND l.body < r.body)'),
  ('SELECT l.id, md5(l.body) FROM tall l WHERE NOT EXISTS (SELECT FROM tall r WHERE l.v <-> r.v < 3 AND l.body < r.body)'),
  ('SELECT l.id, r.id, md5(l.body), md5(r.body) FROM huge l JOIN huge r ON l.v <-> r.v <= 20'),
  ('SELECT l.id, md5(l.body) FROM huge l LEFT JOIN huge r ON l.v <-> r.v <= 9 AND l.body <> r.body'),
  ('SELECT l.id, r.id, md5(l.body || r.body) FROM tall l JOIN tall r ON l.v <-> r.v <= 3 AND l.id <> r.id
    ORDER BY l.v <-> r.v, l.id, r.id LIMIT 100'),
  ('SELECT l.id, r.id, md5(l.body || r.body) FROM tall l JOIN tall r ON l.v <-> r.v <= 3 AND l.body < r.body
    ORDER BY l.grp + r.grp DESC, l.id, r.id LIMIT 100'),
  ('SELECT l.id, r.id, md5(l.body || r.body) FROM tall l JOIN tall r ON l.v <-> r.v <= 3 ORDER BY l.body, r.body LIMIT 10'),
  ('SELECT l.id, r.id, l.grp, r.grp, l.x, r.x, r.third, l.short FROM lean l JOIN lean r ON l.v <-> r.v <= 3'),
  ('SELECT l.id, r.id, l.x, r.grp, l.short, r.short, r.third FROM lean l LEFT JOIN lean r ON l.v <-> r.v <= 4 AND coalesce(l.grp, 7) > r.grp'),
  ('SELECT l.grp, count(*), sum(r.x), min(r.short), bool_or(r.third), max(l.x) FROM lean l JOIN lean r ON l.v <-> r.v <= 3 GROUP BY 1'),
  ('SELECT n, s.* FROM generate_series(0, 3) n, LATERAL (SELECT count(*), min(l.body || r.body), max(l.id - r.id)
    FROM tall l JOIN tall r ON l.v <-> r.v <= n OFFSET 0) s'),
  ('SELECT n, s.* FROM generate_series(0, 30) n, LATERAL (SELECT count(*) FROM (SELECT md5(l.body || r.body)
    FROM tall l JOIN tall r ON l.v <-> r.v <= 2 OFFSET 0 LIMIT n) q) s');
INSERT INTO spilling VALUES
  ('SELECT l.id, r.id, md5(l.body), md5(r.body) FROM lone l JOIN tall r ON l.p <-> r.p <= 0.2', true),
  ('SELECT l.id, r.id, md5(l.body) FROM tall l LEFT JOIN lone r ON l.p <-> r.p <= 0.1 AND l.body < r.body', true),
  ('SELECT l.id, md5(l.body) FROM lone l WHERE NOT EXISTS (SELECT FROM lone r WHERE l.p <-> r.p <= 0.2 AND l.id <> r.id)', true);
\if :has_cube
-- Boxes whose distance the condition decides, for pairs of boxes that are near enough: their cubes wait as well.
INSERT INTO spilling VALUES
  ('SELECT l.id, r.id FROM cubes l JOIN cubes r ON l.c <-> r.c <= 0.5 AND l.id BETWEEN 7000 AND 8200 AND r.id < 9000'),
  ('SELECT l.id, cube_dim(l.c) FROM cubes l LEFT JOIN cubes r ON l.c <#> r.c < 1 AND l.id > r.id WHERE l.id % 9 = 0');
\endif
SELECT is(rows_in(query, memory), expected, format('in %s: %s', memory, query))
FROM spilling, rows_in(query, '100MB') expected, unnest('{64kB,400kB}'::text[]) memory;
SELECT is(property_in('Kept Rows', query, '64kB'), 'Disk', 'in a file: ' || query) FROM spilling WHERE query !~ 'FROM generate_series';
SELECT cmp_ok(property_in('Odd Rows', query, '64kB')::int, '>', 0, 'odd rows: ' || query) FROM spilling WHERE odd;

-- Both sides together are 1.4 MB, with an entry for each column.
SELECT is(property_in('Kept Rows', 'SELECT l.body, r.body FROM tall l JOIN tall r ON l.v <-> r.v <= 3', memory, multiplier), kept,
  format('rows in %s * %s: %s', memory, multiplier, kept))
FROM (VALUES ('2MB', '1', 'Memory'), ('512kB', '1', 'Disk'), ('512kB', '4', 'Memory')) t(memory, multiplier, kept);

-- How often a block of the file is read. Rows that are fetched one by one would read a block for nearly each of the pairs.
-- With one thread the order of pairs, and so the number of reads, is the same each time.
CREATE FUNCTION temp_blocks(query text, memory text) RETURNS TABLE (reads int, writes int) LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  PERFORM set_config('work_mem', memory, true), set_config('hash_mem_multiplier', '1', true), set_config('gpujoin.cpu_threads', '1', true), force_node(true);
  EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan;
  PERFORM force_node(false);
  RESET work_mem;
  RESET hash_mem_multiplier;
  RESET gpujoin.cpu_threads;
  RETURN QUERY SELECT (plan -> 0 -> 'Plan' ->> 'Temp Read Blocks')::int, (plan -> 0 -> 'Plan' ->> 'Temp Written Blocks')::int;
END $$;
SELECT ok(reads < most * writes, format('in %s %s blocks are read %s times, less than %s times each', memory, writes, reads, most))
FROM (VALUES ('512kB', 8), ('256kB', 12), ('128kB', 20)) t(memory, most),
  temp_blocks('SELECT l.body, r.body FROM tall l JOIN tall r ON l.v <-> r.v <= 6', memory);
SELECT cmp_ok(reads, '<', 60, 'LIMIT reads few rows of the file')
FROM temp_blocks('SELECT l.body, r.body FROM tall l JOIN tall r ON l.v <-> r.v <= 6 LIMIT 10', '512kB');
SET LOCAL temp_file_limit = '500kB';
SELECT matches((rows_in('SELECT l.body, r.body FROM tall l JOIN tall r ON l.v <-> r.v <= 6', '512kB'))[1],
  '^ERROR 53400 .*temp_file_limit', 'temp_file_limit counts the columns');
RESET temp_file_limit;

SELECT * FROM finish();
ROLLBACK;
