-- A join returns what the same query over the distance would return: which rows pair, with NULLs, NaNs and repeated
-- ids, and what it sees in the middle of a statement.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA semantics;
SET search_path = semantics, public;
SET jit = off;

-- Ids that repeat, that are negative, that are as large as can be; vectors that repeat, that are NULL, that hold a NULL or
-- what is no number. ctid tells rows apart.
CREATE TABLE a (id bigint, v float8[]);
INSERT INTO a VALUES
  (5, '{0,0}'), (5, '{0,0}'), (5, '{3,4}'), (-7, '{0,5}'), (-7, NULL), (0, '{0,0}'), (9223372036854775807, '{3,4}'),
  (-9223372036854775808, '{3,4}'), (8, '{NaN,0}'), (8, '{NaN,0}'), (9, '{Infinity,0}'), (9, '{Infinity,0}'),
  (10, '{-Infinity,0}'), (11, '{-0,0}'), (12, '{5e-324,0}'), (13, '{1e308,-1e308}'), (14, NULL),
  (15, '{NULL,0}'), (16, '{0,0,NULL}');
CREATE TABLE b (key smallint, w float4[]);
INSERT INTO b VALUES (1, '{0,0}'), (1, '{3,4}'), (2, '{0.1,0}'), (-32768, NULL), (32767, '{NaN,NaN}'), (3, '{0,1e-45}'), (4, '{0,NULL}');
CREATE TABLE radii (eps float8);
INSERT INTO radii VALUES (0), (5e-324), (1e-45), (4.999999999999999), (5), (5.000000000000001), (100), (1.7e308);

SELECT bag_eq(
  format($$ SELECT * FROM gpu_selfjoin('a', %s, 'id') $$, eps),
  format($$ SELECT l.id AS id1, r.id AS id2 FROM a l, a r WHERE l.v <-> r.v <= %s $$, eps),
  'all pairs within ' || eps || ' are those of the query that compares all rows')
FROM radii;
SELECT bag_eq(
  format($$ SELECT * FROM gpu_selfjoin('a', %s, 'id', pairs => 'distinct') $$, eps),
  format($$ SELECT l.id AS id1, r.id AS id2 FROM a l, a r WHERE l.v <-> r.v <= %s AND l.ctid <> r.ctid $$, eps),
  'distinct pairs within ' || eps || ' leave out a row with itself, not two rows of one id')
FROM radii;
SELECT bag_eq(
  format($$ SELECT * FROM gpu_selfjoin('a', %s, 'id', pairs => 'unordered') $$, eps),
  format($$ SELECT least(l.id, r.id) AS id1, greatest(l.id, r.id) AS id2 FROM a l, a r
    WHERE l.v <-> r.v <= %s AND l.ctid < r.ctid $$, eps),
  'unordered pairs within ' || eps || ' come once, the smaller id first, whatever the ids')
FROM radii;
SELECT bag_eq(
  format($$ SELECT * FROM gpu_selfjoin_distance('a', %s, 'id') $$, eps),
  format($$ SELECT l.id AS id1, r.id AS id2, l.v <-> r.v FROM a l, a r WHERE l.v <-> r.v <= %s $$, eps),
  'distances within ' || eps || ' are those of the operator, to the last bit')
FROM radii;
SELECT bag_eq(
  format($$ SELECT * FROM gpu_join_distance('a', 'b', %s, 'id', 'key') $$, eps),
  format($$ SELECT id, key::bigint, v <-> w::float8[] FROM a, b WHERE v <-> w::float8[] <= %s $$, eps),
  'pairs of two tables within ' || eps || ', one of them float4, are those of the query that compares all rows')
FROM radii;
SELECT bag_eq(
  format($$ SELECT id2, id1 FROM gpu_join('b', 'a', %s, 'key', 'id') $$, eps),
  format($$ SELECT id1, id2 FROM gpu_join('a', 'b', %s, 'id', 'key') $$, eps),
  'tables that change sides change the columns within ' || eps || ' and nothing else')
FROM radii;
SELECT bag_eq(
  format($$ SELECT * FROM gpu_join('a', 'a', %s, 'id', 'id') $$, eps),
  format($$ SELECT * FROM gpu_selfjoin('a', %s, 'id') $$, eps),
  'a table joined with itself as another table within ' || eps || ' gives the self-join')
FROM radii;

-- Law by law.
SELECT is(a <-> b, NULL, format('%s <-> %s is NULL', a, b)) FROM (VALUES
  ('{1,2}'::float8[], '{1,NULL}'::float8[]), ('{NULL}', '{NULL}'), ('{1,2}', '{NULL}'), ('{NULL}', '{}'), ('{{1}}', '{NULL}')) t(a, b);
SELECT is(gpu_within('{1,2}', '{1,NULL}'::float4[], 1), NULL, 'a NULL is within no radius');
SELECT throws_ok($$ SELECT gpu_within('{1,2}', '{1,NULL}'::float4[], -1) $$, '22023', NULL, 'a radius is looked at first');
SELECT is_empty($$ SELECT * FROM gpu_selfjoin('a', 1.7e308, 'id') WHERE id1 IN (15, 16) OR id2 IN (15, 16) $$,
  'a vector that holds a NULL matches nothing');
SELECT is_empty($$ SELECT * FROM gpu_neighbors('a', 1e308, 'id') WHERE id IN (15, 16) AND cardinality(neighbors) > 0 $$,
  'and has no neighbours');
SELECT is_empty($$ SELECT * FROM gpu_selfjoin('a', 1.7e308, 'id') WHERE -7 IN (id1, id2) AND 14 IN (id1, id2) $$,
  'a NULL vector matches nothing');
SELECT is_empty($$ SELECT * FROM gpu_selfjoin('a', 1.7e308, 'id') WHERE 8 IN (id1, id2) $$,
  'a vector with a NaN matches nothing, not even itself');
SELECT is_empty($$ SELECT * FROM gpu_selfjoin('a', 1.7e308, 'id') WHERE 9 IN (id1, id2) OR 10 IN (id1, id2) $$,
  'infinity less infinity is no number: an infinite vector matches nothing, not even itself');
SELECT bag_eq($$ SELECT id1, id2 FROM gpu_selfjoin('a', 0, 'id') WHERE 11 IN (id1, id2) $$,
  $$ VALUES (11::bigint, 11::bigint), (11, 5), (11, 5), (5, 11), (5, 11), (11, 0), (0, 11), (11, 12), (12, 11) $$,
  'eps 0 finds what is equal, -0 and 0 too, and differences whose square is 0');
SELECT bag_eq($$ SELECT id1, id2 FROM gpu_selfjoin('a', 5, 'id', pairs => 'unordered') WHERE id1 = -7 $$,
  $$ VALUES (-7::bigint, 0::bigint), (-7, 5), (-7, 5), (-7, 5), (-7, 11), (-7, 12),
     (-7, 9223372036854775807) $$ ,
  'a pair that is exactly eps apart is in the result');

-- Other metrics, written out in SQL.
CREATE TABLE c (id int PRIMARY KEY, v float8[]);
INSERT INTO c SELECT i, ARRAY[i * 7 % 11, i * 5 % 13, i * 3 % 7] FROM generate_series(1, 90) i;
CREATE VIEW measured AS
  SELECT l.id AS id1, r.id AS id2, sum(abs(x - y)) AS l1, max(abs(x - y)) AS linf
  FROM c l, c r, unnest(l.v, r.v) AS d(x, y) GROUP BY l.id, r.id;
SELECT bag_eq(
  format($$ SELECT * FROM gpu_selfjoin_distance('c', 4, metric => %L) $$, metric),
  format($$ SELECT id1::bigint, id2::bigint, %I FROM measured WHERE %1$I <= 4 $$, metric),
  'metric ' || metric || ' is what it is called')
FROM unnest('{l1,linf}'::text[]) metric;

-- A statement reads what was there when it began.
INSERT INTO c SELECT 1000 + id1, '{0,0,0}' FROM gpu_selfjoin('c', 0);
SELECT is(count(*), 180::bigint, 'INSERT from a join of the same table does not read its own rows') FROM c;
WITH gone AS (DELETE FROM c WHERE id > 1000 RETURNING id)
SELECT is((SELECT count(*) FROM gpu_selfjoin('c', 0) WHERE id1 > 1000), 90 * count(*),
  'a join beside a DELETE still sees the rows')
FROM gone;
SELECT is(count(*), 90::bigint, 'the next statement does not') FROM gpu_selfjoin('c', 0);
CREATE TABLE neighbors AS SELECT id1, count(*)::float8 AS n FROM gpu_selfjoin('c', 2) GROUP BY id1;
UPDATE c SET v = ARRAY[n, n, n] FROM (SELECT id1, count(*) AS n FROM gpu_selfjoin('c', 2) GROUP BY id1) s
  WHERE id = id1;
SELECT bag_eq($$ SELECT id, v[2] FROM c $$, $$ SELECT id1::int, n FROM neighbors $$,
  'UPDATE from a join of the same table goes by the rows as they were');
DELETE FROM c USING gpu_selfjoin('c', 0) g WHERE c.id = g.id1 AND g.id2 < g.id1;
SELECT bag_eq('SELECT v FROM c', 'SELECT DISTINCT ARRAY[n, n, n] FROM neighbors',
  'DELETE of the later ones of equal rows leaves one of each');
CREATE FUNCTION count_now() RETURNS bigint STABLE LANGUAGE sql AS $$ SELECT count(*) FROM gpu_selfjoin('c', 0) $$;
CREATE FUNCTION count_then() RETURNS bigint VOLATILE LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM c;
  RETURN (SELECT count(*) FROM gpu_selfjoin('c', 0));
END $$;
SELECT cmp_ok(count_now(), '>', 0::bigint, 'a stable function joins under the snapshot of its caller');
SELECT is(count_then(), 0::bigint, 'a volatile function sees what it has done');

-- However the planner turns it.
SELECT name || ' on' AS forced_parallel FROM pg_settings
WHERE name IN ('force_parallel_mode', 'debug_parallel_query') \gset
CREATE TABLE d (id int PRIMARY KEY, v float8[]);
INSERT INTO d SELECT i, ARRAY[i * 31 % 97, i * 57 % 89] FROM generate_series(1, 3000) i;
CREATE TABLE plain_answer AS SELECT count(*), sum(id1 * id2 % 1009) FROM gpu_selfjoin('d', 5);
CREATE FUNCTION answer_with(settings text) RETURNS SETOF plain_answer LANGUAGE plpgsql AS $$
DECLARE
  setting text;
BEGIN
  FOREACH setting IN ARRAY string_to_array(settings, ', ') LOOP
    PERFORM set_config(split_part(setting, ' ', 1), split_part(setting, ' ', 2), true);
  END LOOP;
  RETURN QUERY EXECUTE 'SELECT count(*), sum(id1 * id2 % 1009) FROM gpu_selfjoin(''d'', 5)';
  RESET ALL;
  SET LOCAL search_path = semantics, public;
END $$;
SELECT bag_eq(format('SELECT * FROM answer_with(%L)', settings), 'TABLE plain_answer',
  'the same pairs with ' || settings)
FROM unnest(ARRAY[
  'jit on, jit_above_cost 0, jit_inline_above_cost 0, jit_optimize_above_cost 0',
  'min_parallel_table_scan_size 0, parallel_setup_cost 0, parallel_tuple_cost 0',
  'min_parallel_table_scan_size 0, parallel_setup_cost 0, parallel_tuple_cost 0, parallel_leader_participation off',
  :'forced_parallel',
  'plan_cache_mode force_generic_plan', 'work_mem 64kB', 'enable_seqscan off', 'extra_float_digits -15',
  'array_nulls off']) settings;
SELECT bag_eq(
  $$ SELECT count(*), sum(id1 * id2 % 1009) FROM (SELECT gpu_selfjoin('d', 5) AS g) s, LATERAL (SELECT (g).*) t $$,
  'TABLE plain_answer', 'the same pairs from a select list');
SELECT bag_eq(
  $$ SELECT count(*), sum(id1 * id2 % 1009) FROM (
       SELECT id1, id2 FROM gpu_selfjoin('d', 5) WHERE id1 % 2 = 0 UNION ALL
       SELECT id1, id2 FROM gpu_selfjoin('d', 5) WHERE id1 % 2 = 1) s $$,
  'TABLE plain_answer', 'the same pairs from a UNION ALL of two joins');
CREATE FUNCTION near(radius float8) RETURNS TABLE (p bigint, q bigint) STABLE LANGUAGE sql AS
$$ SELECT * FROM gpu_selfjoin('d', radius) $$;
SELECT bag_eq($$ SELECT count(*), sum(p * q % 1009) FROM near(5) $$, 'TABLE plain_answer',
  'the same pairs from an SQL function');

-- Distances go to parallel workers, which load the library and its settings.
ANALYZE d;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL gpujoin.index = 'grid';
SET LOCAL gpujoin.host_memory_limit = '1GB';
PREPARE in_workers AS SELECT id FROM d WHERE gpu_within(v, '{30,30}', 5) AND v <-> '{30,30}' <= 5;
CREATE FUNCTION plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query;
END $$;
SELECT matches(string_agg(line, ' '), 'Parallel Seq Scan on d.*gpu_within', 'gpu_within() runs in parallel workers')
FROM plan_of('EXECUTE in_workers') line;
SELECT bag_eq('in_workers', 'SELECT id FROM d WHERE (v[1] - 30) ^ 2 + (v[2] - 30) ^ 2 <= 25',
  'and says there what it says anywhere');

SET TRANSACTION READ ONLY;
SELECT is(row(count(*), sum(id1 * id2 % 1009)), row(a.count, a.sum),
  'the same pairs in a transaction that may only read')
FROM gpu_selfjoin('d', 5), plain_answer a GROUP BY a.count, a.sum;

SELECT * FROM finish();
ROLLBACK;
