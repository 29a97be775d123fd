-- Rows without an integer key: functions name them by their ctids, and gpu_ctid() finds them again.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA ctids;
SET search_path = ctids, public;

CREATE TABLE a (key uuid PRIMARY KEY, n int NOT NULL UNIQUE, v float8[], x float8, y float8, w float8, b box);
INSERT INTO a SELECT md5(i::text)::uuid, i, ARRAY[x, y], x, y, i * 13 % 29, box(point(x, y), point(x + i % 3, y + 1))
FROM generate_series(1, 600) i, LATERAL (SELECT i * 37 % 101 / 4.0 AS x, i * 53 % 89 / 4.0 AS y) s;
INSERT INTO a VALUES (md5('none')::uuid, 0, NULL, NULL, NULL, NULL, NULL);
-- Rows move: ctids have gaps, and several blocks.
UPDATE a SET w = w + 1 WHERE n % 3 = 0;
DELETE FROM a WHERE n % 50 = 7;
CREATE TABLE texts (key text PRIMARY KEY, v float8[]);
INSERT INTO texts SELECT 'row ' || n, ARRAY[v[2], v[1]] FROM a WHERE n % 2 = 0;
CREATE MATERIALIZED VIEW stored AS SELECT key, v FROM a;
CREATE TABLE secured AS SELECT key, n, v FROM a;
CREATE TABLE parted (key uuid, v float8[]) PARTITION BY HASH (key);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 1, REMAINDER 0);
INSERT INTO parted SELECT key, v FROM a;
CREATE TABLE parent (key uuid, v float8[]);
CREATE TABLE child () INHERITS (parent);
CREATE VIEW seen AS SELECT key, v FROM a;
CREATE VIEW renamed AS SELECT n AS ctid, v FROM a;

-- Each function, by ctids and by the integers that the table has as well.
SELECT bag_eq(
    format('SELECT i.n AS one, j.n AS other FROM %s p JOIN a i ON i.ctid = gpu_ctid(p.id1) JOIN a j ON j.ctid = gpu_ctid(p.id2)', format(call, 'ctid', 'ctid')),
    format('SELECT id1::int, id2::int FROM %s p', format(call, 'n', 'n')), call)
FROM unnest(ARRAY[
    'gpu_selfjoin(''a'', 0.7, %L, ''v'')', 'gpu_selfjoin(''a'', 0.7, %L, ''x,y'', ''l1'', ''distinct'')',
    'gpu_join(''a'', ''a'', 0.7, %L, %L, ''v'', ''x,y'')',
    'gpu_box_join(''a'', ''a'', 0.5, %L, %L, ''b'', ''b'')']) call;
SELECT bag_eq(
    format('SELECT i.n, p.%2$s FROM %1$s p JOIN a i ON i.ctid = gpu_ctid(p.id)', format(call, 'ctid'), result),
    format('SELECT id::int, %2$s FROM %1$s p', format(call, 'n'), result), call)
FROM (VALUES ('gpu_density(''a'', 0.7, %L, ''v'')', 'neighbors'), ('gpu_dbscan(''a'', 0.4, 3, %L, ''x,y'')', 'kind'),
  ('gpu_neighbors(''a'', 0.7, %L, ''v'')', 'distances')) c(call, result);
-- Ties go by the ids.
SELECT bag_eq(
  $$ SELECT i.n, p.distance, p.rank FROM gpu_knn_join('a', 'a', 4, left_id_column => 'ctid', right_id_column => 'ctid', left_vector_columns => 'v',
       right_vector_columns => 'x,y') p JOIN a i ON i.ctid = gpu_ctid(p.id1) $$,
  $$ SELECT p.id1::int, p.distance, p.rank FROM gpu_knn_join('a', 'a', 4, left_id_column => 'n', right_id_column => 'n', left_vector_columns => 'v',
       right_vector_columns => 'x,y') p $$, 'distances of the nearest rows');
SELECT bag_eq(
  $$ SELECT round(d.score::numeric, 9) FROM gpu_topk_join('a', 'a', 2, 25, left_score_column => 'w', right_score_column => 'w', left_id_column => 'ctid',
       right_id_column => 'ctid', left_vector_columns => 'v', right_vector_columns => 'v') d $$,
  $$ SELECT round(d.score::numeric, 9) FROM gpu_topk_join('a', 'a', 2, 25, left_score_column => 'w', right_score_column => 'w', left_id_column => 'n',
       right_id_column => 'n', left_vector_columns => 'v', right_vector_columns => 'v') d $$, 'scores of the best pairs');
SELECT bag_eq(
  $$ SELECT i.n, t.key FROM gpu_join('a', 'texts', 0.7, 'n', 'ctid', 'v', 'v') p JOIN a i ON i.n = p.id1 JOIN texts t ON t.ctid = gpu_ctid(p.id2) $$,
  $$ SELECT i.n, t.key FROM a i JOIN texts t ON gpu_distance(i.v, t.v) <= 0.7 $$, 'one side by ctids');
SELECT bag_eq(
  $$ SELECT s.key AS one, t.key AS other FROM gpu_selfjoin('stored', 0.7, 'ctid') p JOIN stored s ON s.ctid = gpu_ctid(p.id1) JOIN stored t ON t.ctid = gpu_ctid(p.id2) $$,
  $$ SELECT s.key AS one, t.key AS other FROM a s JOIN a t ON gpu_distance(s.v, t.v) <= 0.7 $$, 'a materialized view');
CREATE TEMP TABLE once ON COMMIT DROP AS SELECT key, v FROM a;
SELECT bag_eq(
  $$ SELECT s.key FROM gpu_density('once', 0.7, 'ctid') p JOIN once s ON s.ctid = gpu_ctid(p.id) WHERE neighbors > 9 $$,
  $$ SELECT a.key FROM gpu_density('a', 0.7, 'n', 'v') p JOIN a ON n = p.id WHERE neighbors > 9 $$, 'a temporary table');

-- What the recipe does.
CREATE TABLE b AS SELECT key, v FROM a;
DELETE FROM b USING gpu_dedup('b', 0.6, id_column => 'ctid') d WHERE b.ctid = gpu_ctid(d.id);
SELECT is_empty($$ SELECT FROM b s JOIN b t ON s.v <-> t.v <= 0.6 AND s.key < t.key $$, 'no near pair stays');
SELECT is_empty($$ SELECT FROM a WHERE v IS NOT NULL AND NOT EXISTS (SELECT FROM b WHERE b.v <-> a.v <= 0.6) $$, 'one of each stays');

-- A policy and a column's privilege hold.
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE POLICY even_rows ON secured USING (n % 2 = 0);
CREATE ROLE ctids_reader;
GRANT USAGE ON SCHEMA ctids TO ctids_reader;
GRANT SELECT ON secured TO ctids_reader;
GRANT SELECT (key, v) ON texts TO ctids_reader;
SET LOCAL ROLE ctids_reader;
CREATE TEMP TABLE allowed AS SELECT n FROM gpu_density('secured', 0.7, 'ctid') d JOIN secured s ON s.ctid = gpu_ctid(d.id);
RESET ROLE;
SELECT set_eq('SELECT n FROM allowed', 'SELECT n FROM a WHERE n % 2 = 0 AND v IS NOT NULL', 'rows that a policy hides are not read');
SET LOCAL ROLE ctids_reader;
SELECT throws_ok($$ SELECT ctid FROM ctids.texts $$, '42501', NULL, 'PostgreSQL does not show the ctids of some columns');
SELECT throws_ok($$ SELECT * FROM gpu_density('ctids.texts', 0.7, 'ctid') $$, '42501', NULL, 'neither does a function');
RESET ROLE;

-- What has no ctids of its own, and what is none.
SELECT throws_ok(format('SELECT * FROM gpu_selfjoin(%L, 1, ''ctid'', ''v'')', name), '42809', format('rows of relation "%s" cannot be named by their ctids', name), name)
FROM unnest('{parted,parent,seen}'::text[]) name;
SELECT set_eq($$ SELECT id FROM gpu_density('renamed', 0.7, 'ctid') $$, 'SELECT n FROM a WHERE v IS NOT NULL', 'a column of this name is a column');
SELECT is(gpu_ctid(id), tid, 'an id and its ctid') FROM (VALUES (1, '(0,1)'::tid), (65536 + 7, '(1,7)'), ((4294967294::bigint << 16) + 65535, '(4294967294,65535)')) v(id, tid);
SELECT throws_ok(format('SELECT gpu_ctid(%s)', id), '22003', format('%s is not the id of a ctid', id), 'no ctid: ' || id)
FROM unnest('{-1,0,65536,281474976710657,9223372036854775807}'::bigint[]) id;
SELECT is(gpu_ctid(NULL), NULL, 'NULL is none');

SELECT * FROM finish();
ROLLBACK;
