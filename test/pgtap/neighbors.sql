-- gpu_neighbors(): the pairs of gpu_selfjoin_distance(), a row a point.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA neighbors;
SET search_path = neighbors, public;

CREATE TABLE a (id int PRIMARY KEY, v float8[]);
INSERT INTO a SELECT i, CASE WHEN i % 7 > 0 THEN ARRAY[i * 7 % 13, i * 5 % 11] END FROM generate_series(1, 300) i;
INSERT INTO a VALUES (1000, '{500,500}'), (1001, '{NaN,0}'), (1002, '{Infinity,0}');
CREATE TABLE twins (id int, v real[]);
INSERT INTO twins VALUES (7, '{1,1}'), (7, '{1,1}'), (7, '{1,2}'), (8, NULL), (9, '{5,5}');
CREATE TABLE nothing (LIKE a);

CREATE TABLE settings (name text, value text);
INSERT INTO settings VALUES ('engine', 'cpu'), ('batch_pairs', '1'), ('batch_pairs', '3'), ('batch_pairs', '0'),
  ('cpu_threads', '4'), ('cpu_threads', '1'), ('index', 'none'), ('index', 'auto'), ('access_pattern', 'unicomp');
SELECT CASE WHEN set_config('gpujoin.' || name, value, true) = value THEN bag_eq(
    format($$ SELECT id, neighbor, distance FROM gpu_neighbors('a', %s, pairs => %L, metric => %L),
      unnest(neighbors, distances) u(neighbor, distance) $$, eps, pairs, metric),
    format($$ SELECT * FROM gpu_selfjoin_distance('a', %s, pairs => %L, metric => %L) $$, eps, pairs, metric),
    format('pairs within %s, %s, %s, %s = %s', eps, pairs, metric, name, value)) END
FROM settings, unnest('{all,distinct}'::text[]) pairs, unnest('{l2,l1,linf,cosine}'::text[]) metric,
  unnest(CASE metric WHEN 'cosine' THEN '{0,0.001,0.02,2}' ELSE '{0,1,2.5,1000}' END::float8[]) WITH ORDINALITY e(eps, place)
WHERE place < 4 OR (name = 'engine' AND pairs = 'all');

SELECT bag_eq($$ SELECT id, count(*) FROM gpu_neighbors('a', 1) GROUP BY id $$,
  'SELECT id::bigint, 1::bigint FROM a WHERE v IS NOT NULL', 'each point has one row, a NULL vector has none');
SELECT set_eq($$ SELECT id FROM gpu_neighbors('a', 1) WHERE neighbors = '{}' AND distances = '{}' $$,
  '{1000,1001,1002}'::bigint[], 'points without neighbors have empty arrays');
SELECT is_empty($$ SELECT FROM gpu_neighbors('a', 3) g,
    LATERAL (SELECT array_agg(n ORDER BY d, n) AS sorted FROM unnest(neighbors, distances) u(n, d)) s
  WHERE neighbors <> sorted $$, 'neighbors come nearest first, and by id where they are equally near');
SELECT bag_eq($$ SELECT id, neighbors FROM gpu_neighbors('twins', 1, 'id') $$,
  $$ VALUES (7::bigint, '{7,7}'::bigint[]), (7, '{7,7}'), (7, '{7,7}'), (9, '{}') $$, 'rows of one id are rows of their own');
SELECT is_empty($$ SELECT FROM gpu_neighbors('nothing', 1, 'id') $$, 'no rows, no neighbors');
SELECT is_empty($$ SELECT FROM gpu_neighbors('a', NULL) $$, 'no radius, no rows');
SELECT throws_ok($$ SELECT FROM gpu_neighbors('a', -1) $$, '22023',
  'eps must be a finite number that is not negative, not -1', 'a negative radius is refused');
SELECT throws_ok($$ SELECT FROM gpu_neighbors('a', 1, pairs => 'unordered') $$, '22023',
  'gpu_neighbors() does not support pairs => ''unordered''', 'unordered pairs are no neighbors');
SELECT is((SELECT count(*) FROM (SELECT gpu_neighbors('a', 2) LIMIT 3) s), 3::bigint, 'a part of the rows can be taken');
SELECT bag_eq($$ SELECT r, (SELECT sum(cardinality(neighbors)) FROM gpu_neighbors('a', r)) FROM generate_series(0, 3) r $$,
  $$ SELECT r, (SELECT count(*)::numeric FROM gpu_selfjoin('a', r, pairs => 'distinct')) FROM generate_series(0, 3) r $$,
  'it can be called for each of several radii');
SELECT is((SELECT function FROM gpu_last_join()), 'gpu_selfjoin', 'other joins follow');

-- In FROM the plan node streams it, as the other functions: nothing is materialised, and the estimate is a row a point.
CREATE FUNCTION plan(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY EXECUTE format('EXPLAIN (%s) %s', options, query); END $$;
SELECT alike((SELECT string_agg(plan, ' ') FROM plan($$ SELECT * FROM gpu_neighbors('a', 2) $$)),
  'Custom Scan (GpuSimilarityJoin)%Join Method: Neighbors%Relation: a%', 'the node is in the plan');
ANALYZE a;
SELECT alike((SELECT string_agg(plan, ' ') FROM plan($$ SELECT * FROM gpu_neighbors('a', 2) $$, 'COSTS ON')), '%rows=303 %',
  'as many rows are expected as the table has');
SELECT is((SELECT count(*) FROM gpu_neighbors('a', 2)), 261::bigint, 'rows are counted');
SELECT alike((SELECT string_agg(plan, ' ') FROM plan($$ SELECT count(*) FROM gpu_neighbors('a', 2) $$)),
  'Custom Scan (GpuSimilarityJoin)%', 'by the node');
SELECT is((SELECT count(*) FROM (SELECT FROM gpu_neighbors('a', 2) LIMIT 5) s), 5::bigint, 'no column may be wanted');
SELECT bag_eq($$ SELECT distances FROM gpu_neighbors('a', 2) WHERE cardinality(neighbors) > 3 $$,
  $$ SELECT (n).distances FROM (SELECT gpu_neighbors('a', 2) AS n) s WHERE cardinality((n).neighbors) > 3 $$, 'a column and a filter');
SELECT bag_eq($$ SELECT r, count(*), sum(cardinality(neighbors)) FROM generate_series(0, 3) r, LATERAL gpu_neighbors('a', r) GROUP BY r $$,
  $$ SELECT r, count(*), sum(cardinality((n).neighbors)) FROM (SELECT r, gpu_neighbors('a', r) AS n FROM generate_series(0, 3) r) s GROUP BY r $$,
  'for each of several radii');
SELECT bag_eq($$ SELECT x.id, y.id AS id2 FROM gpu_neighbors('a', 1) x JOIN gpu_neighbors('a', 2) y ON x.neighbors = y.neighbors AND x.id < y.id $$,
  $$ SELECT (x).id, (y).id AS id2 FROM (SELECT gpu_neighbors('a', 1) AS x) s JOIN (SELECT gpu_neighbors('a', 2) AS y) t
     ON (x).neighbors = (y).neighbors AND (x).id < (y).id $$, 'two at once');
DECLARE some_rows SCROLL CURSOR FOR SELECT * FROM gpu_neighbors('a', 2);
FETCH 5 FROM some_rows \g /dev/null
MOVE ABSOLUTE 0 FROM some_rows;
SELECT is((SELECT count(*) FROM gpu_neighbors('a', 1) WHERE id < 0), 0::bigint, 'beside an open cursor');
CLOSE some_rows;
SET LOCAL gpujoin.enable_customscan = off;
SELECT alike((SELECT string_agg(plan, ' ') FROM plan($$ SELECT * FROM gpu_neighbors('a', 2) $$)), 'Function Scan on gpu_neighbors%',
  'without the node it is a function');

SELECT * FROM finish();
ROLLBACK;
