-- gpu_knn_join(): what LATERAL with ORDER BY distance LIMIT k gives, ties by id.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA knn;
SET search_path = knn, public;

CREATE TABLE a (id int PRIMARY KEY, v float8[], w real[], p point);
INSERT INTO a SELECT i, u, u, point(u[1], u[2]) FROM (SELECT i, ARRAY[i * 7 % 13, i * 5 % 11, i % 3]::float8[] AS u
  FROM generate_series(1, 200) i) s;
INSERT INTO a VALUES (1000, '{500,500,500}', '{0.1,0.2,0.3}', '(1e9,1e9)'), (1001, NULL, NULL, NULL), (1002, '{NaN,0,0}', '{NaN,0,0}', '(NaN,1)'),
  (1003, '{Infinity,0,0}', '{Infinity,1,1}', '(Infinity,1)');
CREATE TABLE b (id bigint PRIMARY KEY, v float8[], w real[], p point);
INSERT INTO b SELECT 500 - i, ARRAY[i % 17, i * 3 % 10, 1], ARRAY[i % 17, i * 3 % 10, 1], point(i % 17, i * 3 % 10) FROM generate_series(1, 150) i;
CREATE TABLE nothing (LIKE a);

-- Every metric and type against plain SQL.
SELECT bag_eq(
    format($$ SELECT * FROM gpu_knn_join('a', 'b', %1$s, %2$L, metric => %3$L, left_vector_columns => %4$L, right_vector_columns => %4$L) $$,
      k, most, metric, c),
    format($$ SELECT a.id::bigint AS id1, s.id, s.d, s.n FROM a, LATERAL (
        SELECT b.id, gpu_distance(a.%1$s, b.%1$s, %2$L) AS d, row_number() OVER (ORDER BY gpu_distance(a.%1$s, b.%1$s, %2$L), b.id) AS n
        FROM b WHERE gpu_distance(a.%1$s, b.%1$s, %2$L) <= %3$L ORDER BY 2, 1 LIMIT %4$s) s $$, c, metric, coalesce(most, 1e300), k),
    format('the %s nearest by %s of %s within %s', k, metric, c, most))
FROM unnest('{1,3,20,200}'::int[]) k, unnest('{v,w}'::text[]) c, unnest('{l2,l1,linf,cosine}'::text[]) metric, unnest('{NULL,0,2.5}'::float8[]) most;
SELECT bag_eq($$ SELECT * FROM gpu_knn_join('a', 'b', 4, left_vector_columns => 'p', right_vector_columns => 'p') $$,
  $$ SELECT a.id::bigint AS id1, s.id, s.d, s.n FROM a, LATERAL (
       SELECT b.id, d, row_number() OVER (ORDER BY d, b.id) AS n FROM b, gpu_distance(ARRAY[a.p[0], a.p[1]], ARRAY[b.p[0], b.p[1]]) d
       WHERE d <= 1e300 ORDER BY 2, 1 LIMIT 4) s $$, 'points');

-- A table with itself.
SELECT bag_eq(format($$ SELECT * FROM gpu_knn_join('a', 'a', 5, left_vector_columns => 'v', right_vector_columns => 'v', pairs => %L) $$, pairs),
    format($$ SELECT a.id::bigint AS id1, s.id::bigint, s.d, s.n FROM a, LATERAL (
        SELECT b.id, a.v <-> b.v AS d, row_number() OVER (ORDER BY a.v <-> b.v, b.id) AS n
        FROM a b WHERE a.v <-> b.v <= 1e300 AND (%L = 'all' OR a.id <> b.id) ORDER BY 2, 1 LIMIT 5) s $$, pairs),
    format('a table with itself, %s', pairs))
FROM unnest('{all,distinct}'::text[]) pairs;
SELECT set_eq($$ SELECT count(*) FROM gpu_knn_join('a', 'a', 1, left_vector_columns => 'v', right_vector_columns => 'w') WHERE id1 = id2 $$,
  $$ SELECT count(*) FROM (SELECT id, (SELECT b.id FROM a b WHERE gpu_distance(a.v, b.w::float8[]) <= 1e300
       ORDER BY gpu_distance(a.v, b.w::float8[]), b.id LIMIT 1) AS n FROM a) s WHERE id = n $$, 'other columns of one table are another dataset');
SELECT is_empty($$ SELECT FROM gpu_knn_join('a', 'b', 7, left_vector_columns => 'v', right_vector_columns => 'v')
    GROUP BY id1 HAVING array_agg(rank ORDER BY distance, id2) <> ARRAY(SELECT generate_series(1, count(id2))) $$, 'ranks count from 1');
SELECT results_eq($$ SELECT * FROM gpu_knn_join('a', 'b', 3, left_vector_columns => 'v', right_vector_columns => 'v') WHERE id1 = 7 $$,
  $$ SELECT * FROM gpu_knn_join('a', 'b', 3, left_vector_columns => 'v', right_vector_columns => 'v') WHERE id1 = 7 ORDER BY rank $$,
  'the nearest comes first');

-- Settings make no difference.
CREATE TABLE settings (name text, value text);
INSERT INTO settings VALUES ('engine', 'cpu'), ('batch_pairs', '1'), ('batch_pairs', '7'), ('cpu_threads', '4'), ('cpu_threads', '1'), ('index', 'none');
CREATE TEMP TABLE expected AS SELECT * FROM gpu_knn_join('a', 'b', 6, left_vector_columns => 'v', right_vector_columns => 'v');
SELECT CASE WHEN set_config('gpujoin.' || name, value, true) = value THEN
  bag_eq($$ SELECT * FROM gpu_knn_join('a', 'b', 6, left_vector_columns => 'v', right_vector_columns => 'v') $$, 'SELECT * FROM expected',
    name || ' = ' || value) END FROM settings;

-- Arguments.
SELECT is_empty($$ SELECT FROM gpu_knn_join('a', 'nothing', 3, left_vector_columns => 'v', right_id_column => 'id', right_vector_columns => 'v') $$,
  'no rows, no neighbors');
SELECT is_empty($$ SELECT FROM gpu_knn_join('a', 'b', NULL, left_vector_columns => 'v', right_vector_columns => 'v') $$, 'no k, no rows');
SELECT is((SELECT count(*) FROM gpu_knn_join('a', 'b', 2, 'Infinity', left_vector_columns => 'v', right_vector_columns => 'v')),
  (SELECT count(*) FROM gpu_knn_join('a', 'b', 2, left_vector_columns => 'v', right_vector_columns => 'v')), 'infinity is no limit');
SELECT throws_ok(format($$ SELECT FROM gpu_knn_join('a', 'b', %s, left_vector_columns => 'v', right_vector_columns => 'v') $$, k), '22023',
  format('k must be from 1 to 10000, not %s', k), format('k = %s is refused', k)) FROM unnest('{0,-1,10001}'::int[]) k;
SELECT throws_ok(format($$ SELECT FROM gpu_knn_join('a', 'b', 1, %L, left_vector_columns => 'v', right_vector_columns => 'v') $$, most), '22023',
  format('max_distance must not be negative: %s', most), format('a distance of %s is refused', most)) FROM unnest('{-1,NaN}'::text[]) most;
SELECT throws_ok($$ SELECT FROM gpu_knn_join('a', 'a', 1, left_vector_columns => 'v', right_vector_columns => 'v', pairs => 'unordered') $$, '22023',
  'gpu_knn_join() does not support pairs => ''unordered''', 'neighbors belong to a row');
SELECT throws_ok($$ SELECT FROM gpu_knn_join('a', 'b', 1, metric => 'l3', left_vector_columns => 'v', right_vector_columns => 'v') $$, '22023',
  'unknown metric "l3"', 'no such metric');

CREATE TABLE many AS SELECT i AS id, ARRAY[i, i % 7]::float8[] AS v FROM generate_series(1, 50000) i;

-- In FROM the plan node streams it.
CREATE FUNCTION plan(query text, options text DEFAULT 'COSTS OFF') RETURNS text LANGUAGE plpgsql AS
$$ DECLARE line text; lines text = ''; BEGIN
  FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP lines = lines || line || ' '; END LOOP; RETURN lines; END $$;
CREATE TABLE in_memory AS SELECT * FROM gpu_knn_join('many', 'many', 5, left_id_column => 'id', right_id_column => 'id');
SET LOCAL gpujoin.host_memory_limit = '1MB';
CREATE TABLE in_file AS SELECT * FROM gpu_knn_join('many', 'many', 5, left_id_column => 'id', right_id_column => 'id');
SELECT matches(plan($$ SELECT * FROM gpu_knn_join('many', 'many', 5, left_id_column => 'id', right_id_column => 'id') $$, 'ANALYZE'), ' Parts: [1-9][0-9]',
  'rows beyond the limit are joined in parts');
RESET gpujoin.host_memory_limit;
SELECT is((SELECT count(*) FROM in_file), 250000::bigint, 'each row has its neighbors');
SELECT is_empty('(TABLE in_memory EXCEPT ALL TABLE in_file) UNION ALL (TABLE in_file EXCEPT ALL TABLE in_memory)', 'which are the same');
ANALYZE a, b;
SELECT alike(plan($$ SELECT * FROM gpu_knn_join('a', 'b', 3, 2.5, left_vector_columns => 'v', right_vector_columns => 'v') $$),
  'Custom Scan (GpuSimilarityJoin)%Join Method: Nearest-Neighbor Join%Left Relation: a%Right Relation: b%Epsilon: 2.5%K: 3%', 'the node is in the plan');
SELECT alike(plan($$ SELECT * FROM gpu_knn_join('a', 'b', 3, left_vector_columns => 'v', right_vector_columns => 'v') $$, 'COSTS ON'), '%rows=612 %',
  'k rows a row are expected');
SELECT alike(plan($$ SELECT * FROM gpu_knn_join('a', 'b', 3, left_vector_columns => 'v', right_vector_columns => 'v') $$,
  'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF'), '%Engine: cpu%Index: kd_tree%Pairs: 603%', 'EXPLAIN ANALYZE tells how');
SELECT is((SELECT count(*) FROM gpu_knn_join('a', 'b', 3, left_vector_columns => 'v', right_vector_columns => 'v')), 603::bigint, 'rows are counted');
SELECT is((SELECT count(*) FROM (SELECT FROM gpu_knn_join('a', 'b', 3, left_vector_columns => 'v', right_vector_columns => 'v') LIMIT 5) s), 5::bigint,
  'a part of the rows can be taken');
SELECT bag_eq($$ SELECT k, count(*) FROM generate_series(1, 4) k, LATERAL gpu_knn_join('a', 'b', k, left_vector_columns => 'v', right_vector_columns => 'v') GROUP BY k $$,
  $$ SELECT k, 201 * k::bigint FROM generate_series(1, 4) k $$, 'it can be called for each of several k');
SELECT bag_eq($$ SELECT (gpu_knn_join('a', 'b', 2, left_vector_columns => 'v', right_vector_columns => 'v')).* $$,
  $$ SELECT * FROM gpu_knn_join('a', 'b', 2, left_vector_columns => 'v', right_vector_columns => 'v') $$, 'in a select list');
SELECT is((SELECT function FROM gpu_last_join()), 'gpu_knn_join', 'gpu_last_join() knows it');

SELECT * FROM finish();
ROLLBACK;
