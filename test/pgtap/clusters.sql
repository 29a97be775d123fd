-- gpu_dbscan(), gpu_components() and gpu_density(): what plain SQL finds from all pairs.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA clusters;
SET search_path = clusters, public;

CREATE TABLE a (id int PRIMARY KEY, v float8[], w real[], p point, x float8, y float8, z float8);
INSERT INTO a SELECT (i * 37 % 251) - 100, u, u, point(u[1], u[2]), u[1], u[2], u[3]
  FROM (SELECT i, CASE WHEN i < 40 THEN ARRAY[3, 3, 1] ELSE ARRAY[i * 7 % 23 * 0.5, i * 5 % 19 * 0.5, i % 3] END::float8[] AS u
        FROM generate_series(1, 200) i) s;
INSERT INTO a VALUES (1000, '{500,500,500}', '{0.1,0.2,0.3}', '(1e9,1e9)', 500, 500, 500), (1001, NULL, NULL, NULL, NULL, 1, 1),
  (1002, '{NaN,0,0}', '{NaN,0,0}', '(NaN,0)', 'NaN', 0, 0), (1003, '{0,0,0}', '{0,0,0}', '(0,0)', 0, 0, 0);
CREATE TABLE nothing (LIKE a);

-- The definition. A row counts itself; a border row is in the cluster of its nearest core row.
CREATE FUNCTION expected(eps float8, min_points bigint, metric text) RETURNS TABLE (id bigint, cluster bigint, kind text)
LANGUAGE sql SET gpujoin.enable_customscan = off AS $$
  WITH RECURSIVE d AS MATERIALIZED (
    SELECT s.id AS a, t.id AS b, gpu_distance(s.v, t.v, $3) AS d FROM a s, a t WHERE s.id <> t.id AND gpu_distance(s.v, t.v, $3) <= $1),
  core AS MATERIALIZED (SELECT a.id FROM a WHERE v IS NOT NULL AND 1 + (SELECT count(*) FROM d WHERE d.a = a.id) >= $2),
  reached AS (SELECT core.id AS root, core.id FROM core UNION
    SELECT r.root, d.b FROM reached r JOIN d ON d.a = r.id WHERE d.b IN (SELECT core.id FROM core)),
  grouped AS MATERIALIZED (SELECT reached.id, min(root) AS g FROM reached GROUP BY reached.id),
  border AS (SELECT DISTINCT ON (d.a) d.a AS id, d.b FROM d WHERE d.b IN (SELECT core.id FROM core) AND d.a NOT IN (SELECT core.id FROM core)
    ORDER BY d.a, d.d, d.b),
  member AS (SELECT grouped.id, g, 'core' AS kind FROM grouped
    UNION ALL SELECT border.id, g, 'border' FROM border JOIN grouped ON grouped.id = border.b),
  numbered AS (SELECT g, row_number() OVER (ORDER BY min(member.id)) - 1 AS cluster FROM member GROUP BY g)
  SELECT a.id::bigint, numbered.cluster, coalesce(member.kind, 'noise')
  FROM a LEFT JOIN member ON member.id = a.id LEFT JOIN numbered ON numbered.g = member.g WHERE v IS NOT NULL $$;

SELECT bag_eq(
    format($$ SELECT * FROM gpu_dbscan('a', %1$s, %2$s, metric => %3$L, vector_columns => %4$L) $$, eps, min_points, metric, c),
    format($$ SELECT * FROM expected(%s, %s, %L) $$, eps, min_points, metric), format('%s by %s, eps %s, %s points', c, metric, eps, min_points))
  FROM (VALUES ('l2', 0.5), ('l2', 1.2), ('l1', 1), ('linf', 0.5), ('cosine', 0.001), ('l2', 0)) m(metric, eps),
    unnest('{1,3,6,300}'::int[]) min_points, unnest('{v,"x,y,z"}'::text[]) c;
SELECT bag_eq($$ SELECT * FROM gpu_dbscan('a', 0.6, 4, vector_columns => 'p') WHERE id < 1000 $$,
  $$ SELECT * FROM gpu_dbscan('a', 0.6, 4, vector_columns => 'x,y') WHERE id < 1000 $$, 'points are their coordinates');
SELECT bag_eq($$ SELECT * FROM gpu_components('a', 0.8, vector_columns => 'v') $$,
  $$ SELECT id, cluster FROM expected(0.8, 1, 'l2') $$, 'components are clusters of one point or more');
SELECT bag_eq(format($$ SELECT * FROM gpu_density('a', 1.2, vector_columns => 'v', pairs => %L) $$, pairs),
    format($$ SELECT s.id::bigint, (SELECT count(*) FROM a t WHERE s.v <-> t.v <= 1.2 AND (%L = 'all' OR s.id <> t.id)) FROM a s WHERE v IS NOT NULL $$, pairs),
    'the density with ' || pairs)
  FROM unnest('{all,distinct}'::text[]) pairs;
SELECT bag_eq($$ SELECT id FROM gpu_density('a', 1.2, vector_columns => 'v') WHERE neighbors >= 6 $$,
  $$ SELECT id FROM gpu_dbscan('a', 1.2, 6, vector_columns => 'v') WHERE kind = 'core' $$, 'core rows are those with min_points neighbors');

-- What is asked for, and what is none.
SELECT is_empty($$ SELECT * FROM gpu_dbscan('nothing', 1, 3, vector_columns => 'v', id_column => 'id') $$, 'no rows, no clusters');
SELECT is_empty($$ SELECT * FROM gpu_dbscan('a', NULL, 3, vector_columns => 'v') UNION ALL SELECT * FROM gpu_dbscan('a', 1, NULL, vector_columns => 'v') $$,
  'NULL arguments, no rows');
SELECT throws_ok($$ SELECT * FROM gpu_dbscan('a', 1, 0, vector_columns => 'v') $$, '22023', 'min_points must be at least 1, not 0', 'min_points of 0');
SELECT throws_ok($$ SELECT * FROM gpu_dbscan('a', -1, 2, vector_columns => 'v') $$, '22023', NULL, 'a negative radius');
SELECT throws_ok($$ SELECT * FROM gpu_density('a', 1, vector_columns => 'v', pairs => 'unordered') $$, '22023', NULL, 'pairs that count once');
SELECT bag_eq($$ SELECT (gpu_dbscan('a', 1, 3, vector_columns => 'v')).* $$, $$ SELECT * FROM gpu_dbscan('a', 1, 3, vector_columns => 'v') $$, 'in a select list');
SELECT is((SELECT count(*) FROM gpu_dbscan('a', 1, 3, vector_columns => 'v')), 203::bigint, 'rows are counted');
SELECT is((SELECT count(*) FROM (SELECT FROM gpu_components('a', 1, vector_columns => 'v') LIMIT 5) s), 5::bigint, 'a part of the rows can be taken');
SELECT is((SELECT function FROM gpu_last_join()), 'gpu_components', 'gpu_last_join() knows it');

SELECT * FROM finish();
ROLLBACK;
