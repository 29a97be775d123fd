-- gpu_dbscan(), gpu_components() and gpu_density(): what plain SQL finds from all pairs; the same in partitions, as a window function, and
-- groups of pairs.
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

CREATE TABLE answers AS
  SELECT eps, min_points, metric, e.*
  FROM (VALUES ('l2', 0.5), ('l2', 1.2), ('l1', 1), ('linf', 0.5), ('cosine', 0.001), ('l2', 0)) m(metric, eps),
    unnest('{1,3,6,300}'::int[]) min_points, expected(eps, min_points, metric) e;
SELECT bag_eq(
    format($$ SELECT * FROM gpu_dbscan('a', %1$s, %2$s, metric => %3$L, vector_columns => %4$L) $$, eps, min_points, metric, c),
    format($$ SELECT id, cluster, kind FROM answers WHERE (eps, min_points, metric) = (%s, %s, %L) $$, eps, min_points, metric),
    format('%s by %s, eps %s, %s points', c, metric, eps, min_points))
  FROM (SELECT DISTINCT eps, min_points, metric FROM answers) m, unnest('{v,"x,y,z"}'::text[]) c;
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
SELECT is_empty($$ SELECT * FROM gpu_dbscan('a', NULL, 3, vector_columns => 'v') $$,
  'a NULL radius, no rows');
SELECT throws_ok($$ SELECT * FROM gpu_dbscan('a', 1, 0, vector_columns => 'v') $$, '22023', 'min_points must be at least 1, not 0', 'min_points of 0');
SELECT throws_ok($$ SELECT * FROM gpu_dbscan('a', -1, 2, vector_columns => 'v') $$, '22023', NULL, 'a negative radius');
SELECT throws_ok($$ SELECT * FROM gpu_density('a', 1, vector_columns => 'v', pairs => 'unordered') $$, '22023', NULL, 'pairs that count once');
SELECT bag_eq($$ SELECT (gpu_dbscan('a', 1, 3, vector_columns => 'v')).* $$, $$ SELECT * FROM gpu_dbscan('a', 1, 3, vector_columns => 'v') $$, 'in a select list');
SELECT is((SELECT count(*) FROM gpu_dbscan('a', 1, 3, vector_columns => 'v')), 203::bigint, 'rows are counted');
SELECT is((SELECT count(*) FROM (SELECT FROM gpu_components('a', 1, vector_columns => 'v') LIMIT 5) s), 5::bigint, 'a part of the rows can be taken');
SELECT is((SELECT function FROM gpu_last_join()), 'gpu_components', 'gpu_last_join() knows it');

-- Partitions: the clusters of each value's rows by themselves. Equal values are one, however they are written.
CREATE TABLE d (id int PRIMARY KEY, v float8[], t text, n numeric, b boolean, i bigint, j jsonb, a int[], bits bit(3), day date, o json);
INSERT INTO d SELECT id, v, (ARRAY['one', 'two', NULL, '', repeat('wide ', 3000)])[id % 5 + 1],
    (ARRAY['1', '1.00', 'NaN', NULL, '9007199254740992', '9007199254740993']::numeric[])[abs(id) % 6 + 1], (ARRAY[true, false, NULL])[abs(id) % 3 + 1],
    (ARRAY[9007199254740992, 9007199254740993, NULL])[abs(id) % 3 + 1], (ARRAY['{"x": 1, "y": 2}', '{"y":2,"x":1.0}', '[]']::jsonb[])[abs(id) % 3 + 1],
    CASE abs(id) % 3 WHEN 0 THEN '{1,2}'::int[] WHEN 1 THEN '{1,NULL}' END, (abs(id) % 4)::bit(3), '2026-01-01'::date + id % 60, '{}'
  FROM a;
CREATE VIEW d_view WITH (security_barrier) AS SELECT * FROM d WHERE id % 7 <> 0;
CREATE TABLE d_parts (LIKE d) PARTITION BY HASH (id);
CREATE TABLE d_part0 PARTITION OF d_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE d_part1 PARTITION OF d_parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO d_parts SELECT * FROM d;

CREATE FUNCTION by_parts(tbl regclass, part text, eps float8, min_points bigint) RETURNS TABLE (id bigint, cluster bigint, kind text)
LANGUAGE plpgsql SET client_min_messages = warning AS $$
DECLARE value text;
BEGIN
  FOR value IN EXECUTE format('SELECT DISTINCT ON (s.%1$I) s.%1$I::text FROM %2$s s', part, tbl) LOOP
    EXECUTE format('CREATE OR REPLACE TEMP VIEW one_part AS SELECT id, v FROM %s WHERE %I IS NOT DISTINCT FROM %L', tbl, part, value);
    RETURN QUERY SELECT * FROM gpu_dbscan('one_part', eps, min_points, id_column => 'id', vector_columns => 'v');
  END LOOP;
END $$;
SELECT bag_eq(
    format($$ SELECT * FROM gpu_dbscan(%L, 1.2, %s, id_column => 'id', vector_columns => 'v', partition_column => %L) $$, tbl, min_points, part),
    format($$ SELECT * FROM by_parts(%L, %L, 1.2, %s) $$, tbl, part, min_points), format('%s by %s, %s points', tbl, part, min_points))
  FROM unnest('{t,n,b,i,j,a,bits,day,id}'::text[]) part, unnest('{d,d_view,d_parts}'::text[]) tbl, unnest('{1,3}'::int[]) min_points
  WHERE tbl = 'd' OR (part IN ('t', 'n') AND min_points = 3);
SELECT bag_eq($$ SELECT * FROM gpu_components('d', 1.2, vector_columns => 'v', partition_column => 'n') $$,
  $$ SELECT id, cluster FROM by_parts('d', 'n', 1.2, 1) $$, 'components of partitions');
SELECT bag_eq($$ SELECT * FROM gpu_dbscan('d', 0.001, 3, vector_columns => 'v', partition_column => 'b', metric => 'cosine') $$,
  $$ SELECT id, gpu_cluster_dbscan(v, 0.001, 3, 'cosine') OVER w, kind
     FROM d JOIN gpu_dbscan('d', 0.001, 3, vector_columns => 'v', partition_column => 'b', metric => 'cosine') USING (id)
     WINDOW w AS (PARTITION BY b ORDER BY id) $$, 'by cosine distance');
CREATE COLLATION same_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE collated (id int PRIMARY KEY, v float8[], t text COLLATE same_case);
INSERT INTO collated VALUES (1, '{0}', 'a'), (2, '{0}', 'A'), (3, '{0}', 'b');
SELECT results_eq($$ SELECT id, component FROM gpu_components('collated', 1, partition_column => 't') ORDER BY id $$,
  $$ VALUES (1::bigint, 0::bigint), (2, 0), (3, 0) $$, 'numbers begin anew in each partition');
SELECT is((SELECT count(*) FROM gpu_dbscan('collated', 1, 2, partition_column => 't') WHERE kind = 'core'), 2::bigint,
  'values are equal by the collation of their column');
SELECT throws_ok($$ SELECT * FROM gpu_dbscan('d', 1, 3, vector_columns => 'v', partition_column => 'q') $$, '42703',
  'column "q" of relation "d" does not exist', 'no such partition column');
SELECT throws_ok($$ SELECT * FROM gpu_dbscan('d', 1, 3, vector_columns => 'v', partition_column => 'o') $$, '42804',
  'column "o" of relation "d" has type json, which cannot be a partition', 'a partition column without an equality');
SELECT is((SELECT count(*) FROM gpu_dbscan('d', NULL, 3, vector_columns => 'v', partition_column => 't')), 0::bigint, 'NULL arguments beside a partition column');

-- The window function: the same clusters, in any query.
SELECT bag_eq(
    format($$ SELECT id::bigint, gpu_cluster_dbscan(%4$s, %1$s, %2$s, %3$L) OVER (ORDER BY id) FROM a WHERE v IS NOT NULL $$, eps, min_points, metric, value),
    format($$ SELECT id, cluster FROM gpu_dbscan('a', %s, %s, metric => %L, vector_columns => 'v') $$, eps, min_points, metric), format('window: %s by %s, eps %s, %s points', value, metric, eps, min_points))
  FROM (VALUES ('l2', 0.5), ('l2', 1.2), ('l1', 1), ('linf', 0.5), ('cosine', 0.001), ('l2', 0)) m(metric, eps),
    unnest('{1,3,6}'::int[]) min_points, unnest('{v,"array[x,y,z]"}'::text[]) value;
SELECT bag_eq($$ SELECT id, gpu_cluster_dbscan(w, 0.5, 3) OVER (ORDER BY id) FROM a WHERE w IS NOT NULL $$,
  $$ SELECT id, cluster FROM gpu_dbscan('a', 0.5, 3, vector_columns => 'w') $$, 'real[]');
SELECT bag_eq($$ SELECT id, gpu_cluster_dbscan(p, 0.6, 4) OVER (ORDER BY id) FROM a WHERE p IS NOT NULL $$,
  $$ SELECT id, cluster FROM gpu_dbscan('a', 0.6, 4, vector_columns => 'p') $$, 'points');
SELECT bag_eq(format($$ SELECT id, gpu_cluster_dbscan(v, 1.2, 3) OVER (PARTITION BY %I ORDER BY id) FROM d WHERE v IS NOT NULL $$, part),
    format($$ SELECT id, cluster FROM gpu_dbscan('d', 1.2, 3, vector_columns => 'v', partition_column => %L) $$, part), 'partitions of a window by ' || part)
  FROM unnest('{t,n,b,i,j,a,bits,day,id}'::text[]) part;
SELECT results_eq($$ SELECT id, gpu_cluster_dbscan(v, 1, 1) OVER (ORDER BY id) FROM
    (VALUES (1, NULL::float8[]), (2, '{1,NULL}'), (3, '{1,2}'), (4, NULL), (5, '{1,2}'), (6, '{NaN,0}'), (7, '{5,5}')) s(id, v) $$,
  $$ VALUES (1, NULL::bigint), (2, NULL), (3, 0), (4, NULL), (5, 0), (6, 1), (7, 2) $$, 'rows without a vector are in no cluster');
SELECT results_eq($$ SELECT id, gpu_cluster_dbscan(v, 1, 1) OVER (ORDER BY id DESC) FROM (VALUES (1, '{1}'::float8[]), (2, '{5}'), (3, '{1}')) s(id, v) ORDER BY id $$,
  $$ VALUES (1, 0::bigint), (2, 1), (3, 0) $$, 'clusters are numbered in the order of the window');
SELECT results_eq($$ SELECT id, gpu_cluster_dbscan(v, 1, 4) OVER (ORDER BY id DESC) FROM
    (VALUES (1, '{0}'::float8[]), (2, '{-0.5}'), (3, '{-0.6}'), (4, '{2}'), (5, '{2.5}'), (6, '{2.6}'), (7, '{1}')) s(id, v) ORDER BY id $$,
  $$ VALUES (1, 1::bigint), (2, 1), (3, 1), (4, 0), (5, 0), (6, 0), (7, 0) $$, 'ties of a border row go to the earlier row');
SELECT results_eq($$ SELECT gpu_cluster_dbscan(v, e, m) OVER () FROM (VALUES ('{1}'::float8[], NULL::float8, 1), ('{1}', 1, 1)) s(v, e, m) $$,
  $$ VALUES (NULL::bigint), (NULL) $$, 'NULL arguments, no clusters');
SELECT results_eq($$ SELECT gpu_cluster_dbscan(v, 1, 1, NULL) OVER w, row_number() OVER w, gpu_cluster_dbscan(v, 9, 1) OVER w
    FROM (VALUES (1, '{1}'::float8[]), (2, '{5}')) s(id, v) WINDOW w AS (ORDER BY id) $$,
  $$ VALUES (0::bigint, 1::bigint, 0::bigint), (1, 2, 0) $$, 'several functions of one window, and a metric of NULL');
SELECT results_eq($$ SELECT count(*), count(c) FROM (SELECT gpu_cluster_dbscan(v, 1, 1) OVER () AS c FROM a WHERE false) s $$, $$ VALUES (0::bigint, 0::bigint) $$, 'no rows');
SELECT results_eq($$ SELECT g, (SELECT max(c) FROM (SELECT gpu_cluster_dbscan(v, g, 1) OVER () AS c FROM (VALUES ('{1}'::float8[]), ('{2}'), ('{5}')) s(v)) t)
    FROM generate_series(0, 4, 2) g $$, $$ VALUES (0, 2::bigint), (2, 1), (4, 0) $$, 'a window that is run again');
SELECT throws_ok($$ SELECT gpu_cluster_dbscan(v, 1, 0) OVER () FROM a $$, '22023', 'min_points must be at least 1, not 0', 'min_points of 0 in a window');
SELECT throws_ok($$ SELECT gpu_cluster_dbscan(v, -1, 1) OVER () FROM a $$, '22023', NULL, 'a negative radius in a window');
SELECT throws_ok($$ SELECT gpu_cluster_dbscan(v, 1, 1, 'l3') OVER () FROM a $$, '22023', NULL, 'another metric in a window');
SELECT throws_ok($$ SELECT gpu_cluster_dbscan(id, 1, 1) OVER () FROM a $$, '42804', 'gpu_cluster_dbscan() cannot take values of type integer', 'no vector');
SELECT throws_ok($$ SELECT gpu_cluster_dbscan(v, 1, 1) OVER () FROM (VALUES ('{1}'::float8[]), ('{1,2}')) s(v) $$, '22000',
  'vectors of a window''s partition have different numbers of dimensions: 1 and 2', 'vectors of different lengths');
SELECT throws_ok($$ SELECT gpu_cluster_dbscan('{}'::float8[], 1, 1) OVER () $$, '22000', NULL, 'an empty array');
SELECT throws_ok($$ SELECT gpu_cluster_dbscan(v, 1, 1) FROM a $$, '42809', NULL, 'it is a window function');
SELECT is((SELECT function FROM gpu_last_join()), 'gpu_cluster_dbscan', 'gpu_last_join() knows the window function');

SELECT bool_or(name = 'cube') AS has_cube, bool_or(name = 'postgis') AS has_postgis
FROM pg_available_extensions WHERE name IN ('cube', 'postgis') \gset
\if :has_cube
CREATE EXTENSION IF NOT EXISTS cube;
SELECT bag_eq($$ SELECT id, gpu_cluster_dbscan(cube(ARRAY[x, y, z]), 1.2, 3) OVER (ORDER BY id) FROM a WHERE v IS NOT NULL AND x <> 'NaN' $$,
  $$ SELECT id, cluster FROM gpu_dbscan('a', 1.2, 3, vector_columns => 'v') WHERE id <> 1002 $$, 'cubes');
SELECT throws_ok($$ SELECT gpu_cluster_dbscan('(1),(2)'::cube, 1, 1) OVER () $$, '22023', 'gpu_cluster_dbscan() takes points, and a value is none', 'a cube with an extent');
\endif
\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
CREATE TABLE g AS SELECT id, t, ST_MakePoint(v[1], v[2], v[3]) AS g FROM d WHERE v IS NOT NULL AND v[1] <> 'NaN';
INSERT INTO g VALUES (2000, 'one', NULL);
-- The same noise; the same core rows together. A border row may be in the cluster of another core row.
CREATE FUNCTION compared(eps float8, min_points int) RETURNS TABLE (noise bigint, apart bigint, together bigint) LANGUAGE sql SET gpujoin.enable_customscan = off AS $$
  WITH both_ways AS MATERIALIZED (
    SELECT g.id, t, gpu_cluster_dbscan(g, eps, min_points) OVER (PARTITION BY t ORDER BY g.id) AS ours,
      ST_ClusterDBSCAN(g, eps, min_points) OVER (PARTITION BY t ORDER BY g.id) AS theirs FROM g),
  core AS (SELECT b.* FROM both_ways b WHERE min_points <=
    (SELECT count(*) FROM g s, g r WHERE s.id = b.id AND s.t IS NOT DISTINCT FROM r.t AND ST_DWithin(s.g, r.g, eps)))
  SELECT (SELECT count(*) FROM both_ways WHERE (ours IS NULL) <> (theirs IS NULL)),
    (SELECT count(*) FROM core a JOIN core b ON a.t IS NOT DISTINCT FROM b.t WHERE (a.ours = b.ours) <> (a.theirs = b.theirs)),
    (SELECT count(*) FROM core a JOIN core b ON a.t IS NOT DISTINCT FROM b.t WHERE a.ours = b.ours) $$;
SELECT results_eq(format('SELECT noise, apart, together > 100 FROM compared(%s, %s)', eps, min_points), 'VALUES (0::bigint, 0::bigint, true)',
    format('as ST_ClusterDBSCAN, eps %s, %s points', eps, min_points))
  FROM unnest('{0.5,1.2}'::float8[]) eps, unnest('{1,3,4}'::int[]) min_points;
SELECT throws_ok($$ SELECT gpu_cluster_dbscan(ST_MakeLine(ST_Point(0, 0), ST_Point(1, 1)), 1, 1) OVER () $$, '22023', NULL, 'a line');
SELECT throws_ok($$ SELECT gpu_cluster_dbscan(ST_SetSRID(ST_Point(0, 0), s), 1, 1) OVER () FROM unnest('{4326,3857}'::int[]) s $$, '22023', NULL, 'several SRIDs');
SELECT throws_ok($$ SELECT gpu_cluster_dbscan(ST_Point(0, 0)::geography, 1, 1) OVER () $$, '42804', NULL, 'geography');
\endif

-- More rows than gpujoin.host_memory_limit holds: the same clusters, from parts of them.
CREATE TABLE many (id int PRIMARY KEY, v float8[], w real[], h bit(64), part int, most boolean, words text, xid xid);
INSERT INTO many SELECT i * 7919 % 20011, u, u || ARRAY[i % 3, i % 7, i % 2, i % 5]::real[], (i * 2654435761 % 997 * 18446744073 % 9007199254740993)::bigint::bit(64), i % 5, i % 10 > 0,
    CASE WHEN i % 11 > 0 THEN repeat('w' || i % 7, 1 + i % 3) END, (i % 5)::text::xid
  FROM (SELECT i, CASE WHEN i < 3000 THEN ARRAY[50, 50] WHEN i < 6000 THEN ARRAY[i * 0.02, 40] ELSE ARRAY[i * 0.6180339887 % 1 * 100, i * 0.4142135624 % 1 * 100] END::float8[] AS u
        FROM generate_series(1, 20000) i) s;
ANALYZE many;
CREATE VIEW many_viewed AS SELECT id, v, CASE WHEN words LIKE 'w1%' THEN 'other' ELSE words END AS words FROM many WHERE id % 3 > 0;
CREATE FUNCTION under_limit(query text, memory text) RETURNS text LANGUAGE plpgsql SET gpujoin.service = off AS $$
DECLARE result text;
BEGIN
  PERFORM set_config('gpujoin.host_memory_limit', memory, true);
  EXECUTE format('SELECT format(''%%s rows, %%s'', count(*), sum(hashtextextended(t::text, 0))) FROM (%s) t', query) INTO result;
  RETURN result;
END $$;
SELECT is(under_limit(query, '500kB'), under_limit(query, '1GB'), query) FROM unnest(ARRAY[
    $$ SELECT * FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v') $$,
    $$ SELECT * FROM gpu_dbscan('many', 1, 5, vector_columns => 'v', metric => 'l1') $$,
    $$ SELECT * FROM gpu_dbscan('many', 0.6, 6, vector_columns => 'v', metric => 'linf') $$,
    $$ SELECT * FROM gpu_components('many', 0.4, vector_columns => 'v') $$,
    $$ SELECT * FROM gpu_components('many', 0, vector_columns => 'v') $$,
    $$ SELECT * FROM gpu_dbscan('many', 0.5, 3500, vector_columns => 'v') $$,
    $$ SELECT * FROM gpu_density('many', 0.5, vector_columns => 'v') $$,
    $$ SELECT id, gpu_cluster_dbscan(v, 0.5, 4) OVER () FROM many $$]) query;
SELECT is(under_limit(query, '500kB'), under_limit(query, '1GB'), query) FROM unnest(ARRAY[
    $$ SELECT * FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v', partition_column => 'part') $$,
    $$ SELECT * FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v', partition_column => 'most') $$,
    $$ SELECT * FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v', partition_column => 'words') $$,
    $$ SELECT * FROM gpu_dbscan('many', 0.5, 1, vector_columns => 'v', partition_column => 'id') $$,
    $$ SELECT * FROM gpu_dbscan('many_viewed', 0.5, 4, id_column => 'id', vector_columns => 'v', partition_column => 'words') $$,
    $$ SELECT * FROM gpu_dbscan('many', 3, 4, vector_columns => 'h', metric => 'hamming', partition_column => 'part') $$,
    $$ SELECT * FROM gpu_components('many', 0.4, vector_columns => 'v', partition_column => 'part') $$,
    $$ SELECT n, d.* FROM generate_series(1, 2) n, LATERAL gpu_dbscan('many', 0.3 * n, 4, vector_columns => 'v', partition_column => 'words') d $$,
    $$ SELECT count(*) FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v', partition_column => 'part') $$]) query;
SELECT is(under_limit(query, '1600kB'), under_limit(query, '1GB'), query) FROM unnest(ARRAY[
    $$ SELECT * FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v', partition_column => 'most') $$,
    $$ SELECT id, gpu_cluster_dbscan(v, 0.5, 4) OVER (PARTITION BY most) FROM many $$]) query;
SELECT is(under_limit(query, '2MB'), under_limit(query, '1GB'), query) FROM unnest(ARRAY[
    $$ SELECT * FROM gpu_dbscan('many', 2, 6, vector_columns => 'w') $$,
    $$ SELECT * FROM gpu_dbscan('many', 0.0001, 6, vector_columns => 'w', metric => 'cosine') $$,
    $$ SELECT * FROM gpu_dbscan('many', 3, 4, vector_columns => 'h', metric => 'hamming') $$,
    $$ SELECT * FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v', partition_column => 'part') $$,
    $$ SELECT id, gpu_cluster_dbscan(v, 0.5, 4) OVER (PARTITION BY part) FROM many $$]) query;
-- Fewer rows than a chunk of the file has, and larger than the limit.
CREATE TABLE wide AS SELECT i AS id, array_agg((i * 7 % 20 * d % 3)::float8 ORDER BY d) AS v, i % 13 AS s, 'p' || i % 3 AS part
  FROM generate_series(1, 40) i, generate_series(1, 1000) d GROUP BY i;
ALTER TABLE wide ADD PRIMARY KEY (id);
SELECT is(under_limit(query, '800kB'), under_limit(query, '1GB'), query) FROM unnest(ARRAY[
    $$ SELECT * FROM gpu_dbscan('wide', 20, 3, vector_columns => 'v', partition_column => 'part') $$,
    $$ SELECT * FROM gpu_components('wide', 20, vector_columns => 'v', partition_column => 'part') $$,
    $$ SELECT * FROM gpu_dedup('wide', 20, keep_column => 's', vector_columns => 'v', partition_column => 'part') $$]) query;
SET LOCAL gpujoin.service = off;
SET LOCAL gpujoin.host_memory_limit = '500kB';
CREATE FUNCTION parts_of(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
  RETURN plan->0->'Plan'->'Parts';
END $$;
SELECT cmp_ok(parts_of($$ SELECT * FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v') $$), '>', 4, 'joins of parts');
SET LOCAL gpujoin.host_memory_limit = '1600kB';
SELECT cmp_ok(parts_of($$ SELECT * FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v', partition_column => 'most') $$), '>', 4, 'of a partition');
SET LOCAL gpujoin.host_memory_limit = '500kB';
SELECT cmp_ok(parts_of($$ SELECT * FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v', partition_column => 'most') $$), '>', 4, 'of one of those that come after each other');
SELECT throws_ok($$ SELECT * FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v', partition_column => 'xid') $$, '53400',
  'the rows of relation "many" do not fit in gpujoin.host_memory_limit', 'partitions without an order have to be in memory');
SELECT throws_ok($$ SELECT * FROM gpu_dedup('many', 0.5, vector_columns => 'v', partition_column => 'xid') $$, '53400',
  'the rows of relation "many" do not fit in gpujoin.host_memory_limit', 'and those of duplicates');
SELECT is((SELECT count(*) FROM (SELECT * FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v', partition_column => 'part') LIMIT 10) s), 10::bigint, 'LIMIT ends it early');
SET LOCAL gpujoin.host_memory_limit = '80kB';
SELECT throws_ok($$ SELECT * FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v') $$, '53400', NULL, 'some bytes for each row there have to be');
SET LOCAL gpujoin.host_memory_limit = '500kB';
SET LOCAL temp_file_limit = '100kB';
SELECT throws_ok($$ SELECT * FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v') $$, '53400', NULL, 'temp_file_limit counts the rows');
SELECT throws_like($$ SELECT * FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v', partition_column => 'part') $$, 'temporary file size exceeds %temp_file_limit%', 'and those of partitions');
SET LOCAL temp_file_limit = '600kB';
SELECT throws_like($$ SELECT * FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v') $$, 'temporary file size exceeds %temp_file_limit%', 'and those of parts');
SELECT throws_like($$ SELECT gpu_cluster_dbscan(v, 0.5, 4) OVER () FROM (SELECT v FROM many LIMIT 19000) s $$, 'temporary file size exceeds %temp_file_limit%', 'of windows, too');
RESET temp_file_limit;
SELECT is((SELECT count(id) FROM gpu_dbscan('many', 0.5, 4, vector_columns => 'v')), 20000::bigint, 'the next one works');
SELECT is((SELECT count(*) FROM pg_ls_tmpdir() WHERE name ~ ('^pgsql_tmp' || pg_backend_pid() || '\D')), 0::bigint, 'and no temporary file is left');
RESET gpujoin.host_memory_limit;
RESET gpujoin.service;

-- Groups of pairs.
CREATE TABLE pairs AS SELECT s.id AS id1, t.id AS id2 FROM a s, a t WHERE s.v <-> t.v <= 0.8;
SELECT bag_eq($$ SELECT * FROM gpu_components(ARRAY(SELECT id1 FROM pairs ORDER BY id1 * 7 % 251, id2), ARRAY(SELECT id2 FROM pairs ORDER BY id1 * 7 % 251, id2)) $$,
  $$ SELECT * FROM gpu_components('a', 0.8, vector_columns => 'v') WHERE id IN (SELECT id1 FROM pairs) $$, 'groups of pairs are those of rows');
SELECT bag_eq($$ SELECT c.* FROM (SELECT array_agg(id1) AS a, array_agg(id2) AS b FROM gpu_selfjoin('d', 1.2, vector_columns => 'v')) s, gpu_components(a, b) c $$,
  $$ SELECT * FROM gpu_components('d', 1.2, vector_columns => 'v') WHERE id <> 1002 $$, 'in one pass over a join');
SELECT bag_eq($$ SELECT * FROM gpu_components('{7,-9223372036854775808,5,9223372036854775807,3}', '{9,9,5,3,3}'::bigint[]) $$,
  $$ VALUES (7::bigint, 0::bigint), (-9223372036854775808, 0), (9, 0), (5, 2), (9223372036854775807, 1), (3, 1) $$, 'groups are numbered by their smallest ids');
SELECT results_eq($$ SELECT count(*), count(DISTINCT component), sum(component) FROM gpu_components(
    ARRAY(SELECT i::bigint * 7919 % 1000003 FROM generate_series(0, 599999) i), ARRAY(SELECT i::bigint * 7919 % 1000003 FROM generate_series(0, 599999) i)) $$,
  $$ VALUES (600000::bigint, 600000::bigint, 600000::numeric * 599999 / 2) $$, 'many groups of one');
SELECT results_eq($$ SELECT count(*), max(component) FROM gpu_components(ARRAY(SELECT i FROM generate_series(0, 300000) i), ARRAY(SELECT (i + 1) % 300001 FROM generate_series(0, 300000) i)) $$,
  $$ VALUES (300001::bigint, 0::bigint) $$, 'a long chain');
SELECT is_empty($$ SELECT * FROM gpu_components('{}'::bigint[], '{}'::bigint[]) UNION ALL SELECT * FROM gpu_components(NULL::bigint[], '{1}') $$, 'no pairs, no groups');
SELECT throws_ok($$ SELECT * FROM gpu_components('{1,2}'::bigint[], '{1}'::bigint[]) $$, '2202E', 'id1 has 2 ids and id2 has 1', 'arrays of different lengths');
SELECT throws_ok($$ SELECT * FROM gpu_components('{1,2}'::bigint[], '{1,NULL}'::bigint[]) $$, '22004', 'id2 holds a NULL', 'a NULL id of a pair');
SELECT is((SELECT count(*) FROM (SELECT (gpu_components('{1,2}'::bigint[], '{2,3}'::bigint[])).*) s), 3::bigint, 'groups of pairs in a select list');

SELECT * FROM finish();
ROLLBACK;
