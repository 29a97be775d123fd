-- gpu_spanning_tree(): what Kruskal's walk over all pairs finds; gpu_hdbscan(): clusters that are known.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA spanning;
SET search_path = spanning, public;

CREATE TABLE a (id int PRIMARY KEY, v float8[], w real[], p point, x float8, y float8, z float8);
INSERT INTO a SELECT (i * 37 % 251) - 100, u, u, point(u[1], u[2]), u[1], u[2], u[3]
  FROM (SELECT i, CASE WHEN i < 20 THEN ARRAY[3, 3, 1] ELSE ARRAY[i * 7 % 23 * 0.5, i * 5 % 19 * 0.5, i % 3] END::float8[] AS u
        FROM generate_series(1, 120) i) s;
INSERT INTO a VALUES (1000, '{500,500,500}', '{0.1,0.2,0.3}', '(1e9,1e9)', 500, 500, 500), (1001, NULL, NULL, NULL, NULL, 1, 1),
  (1002, '{NaN,0,0}', '{NaN,0,0}', '(NaN,0)', 'NaN', 0, 0), (1003, '{0,0,0}', '{0,0,0}', '(0,0)', 0, 0, 0);
CREATE TABLE nothing (LIKE a);

-- The definition. A row is the first of its own neighbours.
CREATE FUNCTION expected(min_points bigint, metric text) RETURNS TABLE (id1 bigint, id2 bigint, distance float8)
LANGUAGE plpgsql SET gpujoin.enable_customscan = off AS $$
DECLARE
  edge record;
BEGIN
  CREATE TEMP TABLE near AS SELECT s.id AS a, t.id AS b, gpu_distance(s.v, t.v, metric) AS d FROM a s, a t
    WHERE s.id <> t.id AND gpu_distance(s.v, t.v, metric) < 'infinity';
  CREATE TEMP TABLE core AS SELECT n.a, CASE WHEN min_points = 1 THEN 0 ELSE (array_agg(n.d ORDER BY n.d))[min_points - 1] END AS d FROM near n GROUP BY n.a;
  CREATE TEMP TABLE part AS SELECT core.a AS id, core.a AS part FROM core;
  FOR edge IN SELECT n.a, n.b, greatest(n.d, s.d, t.d) AS d FROM near n JOIN core s ON s.a = n.a JOIN core t ON t.a = n.b
      WHERE n.a < n.b AND s.d IS NOT NULL AND t.d IS NOT NULL ORDER BY 3, 1, 2 LOOP
    IF (SELECT s.part <> t.part FROM part s, part t WHERE s.id = edge.a AND t.id = edge.b) THEN
      UPDATE part SET part = (SELECT s.part FROM part s WHERE s.id = edge.a) WHERE part = (SELECT t.part FROM part t WHERE t.id = edge.b);
      id1 := edge.a; id2 := edge.b; distance := edge.d;
      RETURN NEXT;
    END IF;
  END LOOP;
  DROP TABLE near, core, part;
END $$;

SELECT results_eq(
    format($$ SELECT * FROM gpu_spanning_tree('a', %s, metric => %L, vector_columns => %L) $$, min_points, metric, c),
    format($$ SELECT * FROM expected(%s, %L) $$, min_points, metric), format('%s by %s, %s points', c, metric, min_points))
  FROM unnest('{l2,l1,linf,cosine}'::text[]) metric, unnest('{1,2,5}'::int[]) min_points, unnest('{v,"x,y,z"}'::text[]) c;
SELECT results_eq($$ SELECT * FROM gpu_spanning_tree('a', vector_columns => 'w') $$,
  $$ SELECT * FROM gpu_spanning_tree('a', 5, 'id', 'w', 'l2') $$, 'five points are the default');
SELECT results_eq($$ SELECT * FROM gpu_spanning_tree('a', 3, vector_columns => 'p') LIMIT 90 $$,
  $$ SELECT * FROM gpu_spanning_tree('a', 3, vector_columns => 'x,y') LIMIT 90 $$, 'points are their coordinates');
SELECT results_eq($$ SELECT (gpu_spanning_tree('a', 3, vector_columns => 'v')).* $$, $$ SELECT * FROM gpu_spanning_tree('a', 3, vector_columns => 'v') $$,
  'in a select list');
SELECT is((SELECT count(*) FROM gpu_spanning_tree('a', vector_columns => 'v')), 121::bigint, 'a tree has an edge less than rows');
SELECT is_empty($$ SELECT * FROM gpu_spanning_tree('nothing', vector_columns => 'v', id_column => 'id') $$, 'no rows, no edges');
SELECT is_empty($$ SELECT * FROM gpu_spanning_tree('a', 1000, vector_columns => 'v') $$, 'no row has so many neighbours');
SELECT bag_eq($$ SELECT * FROM gpu_spanning_tree('a', NULL, vector_columns => 'v') $$, $$ SELECT * FROM gpu_spanning_tree('a', 5, vector_columns => 'v') $$, 'NULL means the default');
SELECT throws_ok($$ SELECT * FROM gpu_spanning_tree('a', 0, vector_columns => 'v') $$, '22023', 'min_points must be at least 1, not 0', 'no points');
SELECT throws_ok($$ SELECT * FROM gpu_spanning_tree('a', 3, metric => 'l3', vector_columns => 'v') $$, '22023', NULL, 'no such metric');

-- Two groups, a bridge, a row far away.
CREATE TABLE groups (id int PRIMARY KEY, x float8, y float8);
INSERT INTO groups SELECT i, i % 5, i / 5 FROM generate_series(0, 24) i;
INSERT INTO groups SELECT 100 - i, 100 + i % 5 * 0.5, i / 5 FROM generate_series(0, 24) i;
INSERT INTO groups VALUES (200, 50, 1000), (201, 1e6, 0), (202, 'NaN', 0), (203, NULL, 0);
SELECT bag_eq($$ SELECT id, cluster, probability > 0 FROM gpu_hdbscan('groups', vector_columns => 'x,y') $$,
  $$ SELECT id::bigint, CASE WHEN id < 25 THEN 0 WHEN id <= 100 THEN 1 END::bigint, id <= 100 FROM groups WHERE x IS NOT NULL $$,
  'clusters are numbered by their smallest ids, what is far from them is noise, a row without a vector is left out');
SELECT bag_eq($$ SELECT * FROM gpu_hdbscan('groups', 5, NULL, vector_columns => 'x,y') $$,
  $$ SELECT * FROM gpu_hdbscan('groups', 5, 5, vector_columns => 'x,y') $$, 'min_points is min_cluster_size');
SELECT isnt_empty($$ SELECT * FROM gpu_hdbscan('groups', 5, 1, vector_columns => 'x,y') WHERE cluster IS NOT NULL $$, 'min_points can be another one');
SELECT bag_eq($$ SELECT DISTINCT cluster FROM gpu_hdbscan('groups', 40, 3, vector_columns => 'x,y') $$, 'VALUES (NULL::bigint)',
  'one cluster alone is none');
SELECT is((SELECT count(*) FROM gpu_hdbscan('groups', vector_columns => 'x,y')), 53::bigint, 'rows are counted');
SELECT is((SELECT count(*) FROM (SELECT FROM gpu_hdbscan('groups', vector_columns => 'x,y') LIMIT 5) s), 5::bigint, 'a part of the rows can be taken');
SELECT bag_eq($$ SELECT (gpu_hdbscan('groups', vector_columns => 'x,y')).* $$, $$ SELECT * FROM gpu_hdbscan('groups', vector_columns => 'x,y') $$,
  'in a select list');
SELECT is((SELECT function FROM gpu_last_join()), 'gpu_hdbscan', 'gpu_last_join() knows it');
SELECT is_empty($$ SELECT * FROM gpu_hdbscan('nothing', vector_columns => 'x,y', id_column => 'id') $$, 'no rows, no clusters');
SELECT bag_eq($$ SELECT * FROM gpu_hdbscan('groups', NULL, 3, vector_columns => 'x,y') $$, $$ SELECT * FROM gpu_hdbscan('groups', 5, 3, vector_columns => 'x,y') $$, 'no size, the default one');
SELECT throws_ok($$ SELECT * FROM gpu_hdbscan('groups', 1, vector_columns => 'x,y') $$, '22023', 'min_cluster_size must be at least 2, not 1', 'too small');
SELECT throws_ok($$ SELECT * FROM gpu_hdbscan('groups', 5, -1, vector_columns => 'x,y') $$, '22023', 'min_points must be at least 1, not -1', 'no points');
PREPARE of_size AS SELECT count(cluster) FROM gpu_hdbscan('groups', $1, vector_columns => 'x,y');
SET plan_cache_mode = force_generic_plan;
SELECT results_eq('EXECUTE of_size(5)', 'VALUES (50::bigint)', 'a parameter');

SELECT * FROM finish();
ROLLBACK;
