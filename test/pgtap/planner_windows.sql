-- ST_ClusterDBSCAN() and ST_ClusterWithinWin() as they stand in plain SQL: with the node GpuSimilarityJoin and without it the same rows
-- together, and the same noise; the numbers of clusters are the node's own.
BEGIN;
SELECT * FROM no_plan();
SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgis') AS has_postgis \gset
\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
CREATE SCHEMA planner_windows;
SET search_path = planner_windows, public;
SET jit = off;
\ir same_rows.psql

-- Each row with the first row of its cluster, NULL of noise.
CREATE FUNCTION clusters(tbl regclass, eps float8, min_points int, part text, ordering text, node boolean) RETURNS TABLE (id int, first int) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('gpujoin.enable_customscan', node::text, true);
  RETURN QUERY EXECUTE format('SELECT id, CASE WHEN c IS NOT NULL THEN min(id) OVER (PARTITION BY p, c) END
    FROM (SELECT id, %1$s AS p, ST_ClusterDBSCAN(g, %2$L, %3$s) OVER (PARTITION BY %1$s ORDER BY %4$s) AS c FROM %5$s) s', part, eps, min_points, ordering, tbl);
END $$;
-- `served, left to PostGIS`: partitions of the first window function of a query.
CREATE FUNCTION partitions(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  SET LOCAL gpujoin.enable_customscan = on;
  EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) ' || query INTO plan;
  RETURN (SELECT format('%s, %s', (w->>'Partitions')::int - (w->>'Partitions of PostGIS')::int, w->>'Partitions of PostGIS')
    FROM jsonb_path_query(plan, 'lax $.**."Windows"[*]') w LIMIT 1);
END $$;
CREATE FUNCTION fallback(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  SET LOCAL gpujoin.enable_customscan = on;
  EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) ' || query INTO plan;
  RETURN (SELECT w#>>'{}' FROM jsonb_path_query(plan, 'lax $.**."Window Fallback"') w LIMIT 1);
END $$;

CREATE TABLE uniform AS SELECT i AS id, i % 3 AS part, ST_Point(i * 7919 % 1009 * 0.01, i * 104729 % 997 * 0.01) AS g FROM generate_series(1, 1200) i;
CREATE TABLE blobs AS SELECT i AS id, i % 2 AS part, ST_Point(i % 5 * 3 + sin(i * 1.7) * sin(i * 0.3), i % 4 * 3 + cos(i * 2.3) * sin(i * 0.7)) AS g FROM generate_series(1, 900) i;
CREATE TABLE twins AS SELECT i AS id, i % 4 AS part, ST_Point(i % 20, i % 7) AS g FROM generate_series(1, 600) i;
CREATE TABLE dense AS SELECT i AS id, 0 AS part, CASE WHEN i % 50 = 0 THEN ST_Point(i * 0.01, 2) ELSE ST_Point(1, 1) END AS g FROM generate_series(1, 3000) i;
-- Lattices on which rounding decides who is a neighbour, about 0 and away from it.
CREATE TABLE lattice AS SELECT row_number() OVER ()::int AS id, (x + 100) % 2 AS part, ST_Point(x / 10.0, y / 10.0) AS g
  FROM generate_series(-12, 12) x, generate_series(-8, 8) y ORDER BY x * 7919 % 25, y;
CREATE TABLE far_lattice AS SELECT id, part, ST_Translate(g, 100, -300) AS g FROM lattice;
CREATE TABLE border AS SELECT i AS id, 0 AS part, ST_Point(x, 0) AS g
  FROM unnest('{1,0,2,0,2,0,2,3,-1,1,5,6,7,6,6,5.5,7,8}'::float8[]) WITH ORDINALITY t(x, i);
ALTER TABLE border ALTER id TYPE int;
CREATE TABLE holes AS SELECT id, part, CASE id % 5 WHEN 0 THEN NULL WHEN 1 THEN 'POINT EMPTY' WHEN 2 THEN 'POLYGON EMPTY' ELSE ST_SetSRID(g, id % 2 * 4326) END::geometry AS g FROM uniform;
CREATE TABLE high AS SELECT id, part, ST_Force4D(g, id, id) AS g FROM blobs;
CREATE TABLE tiny AS SELECT i AS id, 0 AS part, ST_Point(x, -x) AS g
  FROM unnest('{0,1e-200,-1e-200,1e-170,5e-324,0,-0,1e-160,1e-154,2e-154,1e-131,3e-131,1,1}'::float8[]) WITH ORDINALITY t(x, i);
ALTER TABLE tiny ALTER id TYPE int;
CREATE TABLE shapes AS SELECT id, part, CASE id % 3 WHEN 0 THEN g WHEN 1 THEN ST_Buffer(g, 0.05, 1) ELSE ST_MakeLine(g, ST_Translate(g, 0.1, 0.1)) END AS g FROM uniform WHERE id <= 400;
CREATE TABLE mixed AS SELECT id, part, CASE WHEN part = 1 AND id % 7 = 0 THEN ST_Buffer(g, 0.05, 1) ELSE g END AS g FROM uniform;
-- Shapes of all kinds, convex and not, that touch, overlap and lie within each other.
CREATE FUNCTION star(x float8, y float8, r float8) RETURNS geometry LANGUAGE sql AS $$
  SELECT ST_MakePolygon(ST_MakeLine(array_agg(ST_Point(x + r * (1 - i % 2 * 0.7) * sin(i % 10 * pi() / 5), y + r * (1 - i % 2 * 0.7) * cos(i % 10 * pi() / 5)) ORDER BY i))) FROM generate_series(0, 10) i $$;
CREATE TABLE kinds AS SELECT id, part, CASE id % 11
    WHEN 0 THEN g WHEN 1 THEN ST_Buffer(g, 0.1 + id % 7 * 0.1, 2) WHEN 2 THEN star(ST_X(g), ST_Y(g), 0.3 + id % 5 * 0.2)
    WHEN 3 THEN ST_MakeLine(ARRAY[g, ST_Translate(g, 1, id % 3 * 0.3), ST_Translate(g, 0.5, -0.7)]) WHEN 4 THEN ST_MakeLine(g, ST_Translate(g, sin(id) * 2, cos(id) * 2))
    WHEN 5 THEN ST_Difference(ST_Buffer(g, 1.1, 3), ST_Buffer(g, 0.9, 3)) WHEN 6 THEN ST_Multi(ST_Union(ST_Buffer(g, 0.2, 1), ST_Buffer(ST_Translate(g, 1, 1), 0.2, 1)))
    WHEN 7 THEN ST_Collect(ARRAY[g, ST_Translate(g, 0.3, 0)]) WHEN 8 THEN ST_ForceCollection(ST_Collect(ARRAY[star(ST_X(g), ST_Y(g), 0.2), ST_Translate(g, 0, 1), ST_MakeLine(g, ST_Translate(g, -0.4, 0))]))
    WHEN 9 THEN ST_Force4D(ST_Envelope(ST_Buffer(g, 0.3, 1)), id, id) ELSE CASE id % 5 WHEN 0 THEN NULL WHEN 1 THEN 'POLYGON EMPTY' WHEN 2 THEN 'GEOMETRYCOLLECTION(POINT EMPTY,LINESTRING EMPTY)' ELSE ST_Multi(g) END END::geometry AS g FROM uniform WHERE id <= 500;
CREATE TABLE squares AS SELECT row_number() OVER ()::int AS id, x % 2 AS part, ST_MakeEnvelope(x, y, x + 0.75, y + 0.75) AS g
  FROM generate_series(0, 12) x, generate_series(0, 12) y WHERE (x * 7 + y * 5) % 4 > 0 ORDER BY x * 7919 % 11, y;
CREATE TABLE far_squares AS SELECT id, part, ST_Translate(g, 500000, 5242880) AS g FROM squares;
CREATE TABLE parcels AS SELECT row_number() OVER ()::int AS id, x % 2 AS part, ST_MakeEnvelope(x / 10.0, y / 7.0, (x + 1) / 10.0, (y + 1) / 7.0) AS g
  FROM generate_series(0, 15) x, generate_series(0, 15) y WHERE (x * 5 + y * 3) % 7 > 1 ORDER BY x * 7919 % 11, y;
-- Rings that cross themselves, and holes outside of their rings.
CREATE TABLE invalid AS SELECT id, part, CASE id % 3 WHEN 0 THEN g WHEN 1 THEN ST_MakePolygon(ST_MakeLine(ARRAY[g, ST_Translate(g, 1, 1), ST_Translate(g, 1, 0), ST_Translate(g, 0, 1), g]))
    ELSE ST_MakePolygon(ST_ExteriorRing(ST_Buffer(g, 0.4, 2)), ARRAY[ST_ExteriorRing(ST_Buffer(ST_Translate(g, 0.5, 0.5), 0.6, 2))]) END AS g FROM uniform WHERE id <= 300;
CREATE TABLE arcs AS SELECT id, part, CASE WHEN part = 0 AND id % 7 = 0 THEN 'CIRCULARSTRING(0 0,1 1,2 0)' WHEN part = 1 AND id % 7 = 0 THEN 'TRIANGLE((0 0,1 1,2 0,0 0))' ELSE ST_Buffer(g, 0.1, 1) END::geometry AS g FROM uniform WHERE id <= 300;
CREATE TABLE systems AS SELECT id, part, ST_SetSRID(g, CASE WHEN part = 1 THEN id % 2 ELSE 1 END * 4326) AS g FROM kinds;
CREATE TABLE nowhere AS SELECT id, part, CASE id WHEN 8 THEN ST_MakeEnvelope(0, 0, 1e31, 1e31) ELSE g END AS g FROM kinds;
CREATE TABLE tiny_lines AS SELECT i AS id, 0 AS part, ST_MakeLine(ST_Point(x, 0), ST_Point(x * 1.5, x)) AS g FROM unnest('{0,1e-200,-1e-200,1e-170,5e-324,1e-160,1e-154,2e-154,1e-131,3e-131,1,1}'::float8[]) WITH ORDINALITY t(x, i);
ALTER TABLE tiny_lines ALTER id TYPE int;
CREATE TABLE far AS SELECT i AS id, i % 2 AS part, ST_Point(x, x) AS g FROM unnest('{1e29,1e29,1e31,1e31,1e200,1e200,-1e200,0}'::float8[]) WITH ORDINALITY t(x, i);
ALTER TABLE far ALTER id TYPE int;
CREATE TABLE nothing AS SELECT * FROM uniform LIMIT 0;
CREATE TABLE one AS SELECT * FROM uniform LIMIT 1;

SELECT bag_eq(format($$ SELECT * FROM clusters(%L, %s, %s, %L, %L, true) $$, tbl, eps, min_points, part, ordering),
    format($$ SELECT * FROM clusters(%L, %s, %s, %L, %L, false) $$, tbl, eps, min_points, part, ordering),
    format('%s, eps %s, %s points, by %s and %s', tbl, eps, min_points, part, ordering))
  FROM unnest('{uniform,blobs,twins,dense,border,holes,high,shapes,mixed,kinds,invalid,arcs,systems,nothing,one}'::text[]) tbl, unnest('{0,0.12,0.5,1}'::float8[]) eps,
    unnest('{0,1,2,4,9}'::int[]) min_points, (VALUES ('part', 'id'), ('1', 'id DESC')) w(part, ordering);
SELECT bag_eq(format($$ SELECT * FROM clusters(%L, %s, %s, 'part', 'id', true) $$, tbl, eps, min_points),
    format($$ SELECT * FROM clusters(%L, %s, %s, 'part', 'id', false) $$, tbl, eps, min_points), format('%s, eps %s, %s points', tbl, eps, min_points))
  FROM unnest('{lattice,far_lattice,squares,far_squares,parcels}'::text[]) tbl, unnest('{0,0.1,0.2,0.25,0.3,0.30000000000000004,0.5,0.6,0.7,0.8,0.9,1.2}'::float8[]) eps, unnest('{1,2,4,9}'::int[]) min_points;
SELECT bag_eq(format($$ SELECT * FROM clusters(%L, %s, %s, 'part', 'id', true) $$, tbl, eps, min_points),
    format($$ SELECT * FROM clusters(%L, %s, %s, 'part', 'id', false) $$, tbl, eps, min_points), format('%s, eps %s, %s points', tbl, eps, min_points))
  FROM unnest('{tiny,tiny_lines,far}'::text[]) tbl, unnest('{0,5e-324,1e-200,1e-160,1e-154,1e-131,1e29,1e31}'::float8[]) eps, unnest('{1,2,3}'::int[]) min_points;

-- More near pairs than are kept from one round to the next.
CREATE TABLE crowd AS SELECT i AS id, i % 2 AS part, ST_MakeLine(ST_MakePoint(x, i % 7), ST_MakePoint(x + 1, i % 7 + 1)) AS g
  FROM (SELECT i, CASE WHEN i > 780 THEN 30 + i % 11 * 3 ELSE i % 13 END AS x FROM generate_series(1, 800) i) s;
SELECT bag_eq(format($$ SELECT * FROM clusters('crowd', %s, %s, '1', 'id', true) $$, eps, min_points),
    format($$ SELECT * FROM clusters('crowd', %s, %s, '1', 'id', false) $$, eps, min_points), format('crowd, eps %s, %s points', eps, min_points))
  FROM (VALUES (14, 3), (2, 200)) v(eps, min_points);

-- A few thousand points take less time than a thread to start.
CREATE TABLE spread AS SELECT i AS id, ST_MakePoint(i * 7919 % 1009, i * 104729 % 997) AS g FROM generate_series(1, 4000) i;
CREATE FUNCTION threads(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  SET LOCAL gpujoin.enable_customscan = on;
  SET LOCAL gpujoin.cpu_threads = 4;
  EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) ' || query INTO plan;
  RESET gpujoin.cpu_threads;
  RETURN (SELECT w FROM jsonb_path_query(plan, 'lax $.**."Threads"') w LIMIT 1);
END $$;
SELECT is(threads('SELECT ST_ClusterDBSCAN(g, 20, 5) OVER () FROM spread'), 1, 'few points are compared on the spot');

-- Who serves.
SELECT is(partitions(format('SELECT ST_ClusterDBSCAN(g, %s, %s) OVER (PARTITION BY part ORDER BY id) FROM %s', eps, n, tbl)), served, format('%s: %s', tbl, served))
  FROM (VALUES ('uniform', 0.12, 4, '3, 0'), ('dense', 0.5, 9, '1, 0'), ('holes', 0.5, 1, '3, 0'), ('high', 0.5, 2, '2, 0'), ('mixed', 0.5, 2, '3, 0'),
    ('shapes', 0.5, 2, '3, 0'), ('kinds', 0.5, 3, '3, 0'), ('squares', 0.25, 3, '2, 0'), ('far_squares', 0.25, 3, '2, 0'), ('parcels', 0, 3, '2, 0'), ('arcs', 0.5, 2, '1, 2'), ('systems', 0.5, 2, '2, 1'), ('one', 0.5, 2, '1, 0'), ('far_lattice', 0.9, 2, '2, 0'), ('lattice', 0.3, 2, '2, 0'), ('lattice', 0.9, 2, '0, 2'), ('far', 1, 1, '0, 2')) v(tbl, eps, n, served);
SELECT is(fallback('SELECT ST_ClusterDBSCAN(g, 0.5, 2) OVER () FROM ' || tbl), reason, tbl || ': ' || reason)
  FROM (VALUES ('arcs', 'a geometry has arcs or faces, or lies too far out'), ('systems', 'geometries have different SRIDs')) v(tbl, reason);
SELECT is(fallback('SELECT ST_ClusterDBSCAN(g, 0.9, 2) OVER () FROM lattice'), 'two points are so nearly at the radius that rounding decides', 'so is another one');
SET gpujoin.host_memory_limit = '64kB';
SELECT is(fallback('SELECT ST_ClusterDBSCAN(g, 0.5, 2) OVER () FROM dense'), 'the rows do not fit in memory', 'too little memory is no error');
SELECT bag_eq($$ SELECT * FROM clusters('dense', 0.5, 3, '1', 'id', true) $$, $$ SELECT * FROM clusters('dense', 0.5, 3, '1', 'id', false) $$, 'and the rows are the same');
SELECT is(fallback('SELECT ST_ClusterDBSCAN(g, 0.5, 2) OVER () FROM kinds'), 'the rows do not fit in memory', 'neither is too little for geometries');
SELECT bag_eq($$ SELECT * FROM clusters('kinds', 0.5, 3, '1', 'id', true) $$, $$ SELECT * FROM clusters('kinds', 0.5, 3, '1', 'id', false) $$, 'and the rows are the same');
RESET gpujoin.host_memory_limit;

-- Numbers.
SET LOCAL gpujoin.enable_customscan = on;
SELECT is_empty($$ SELECT part, c FROM (SELECT part, c, row_number() OVER (PARTITION BY part ORDER BY min(id)) - 1 AS place
    FROM (SELECT id, part, ST_ClusterDBSCAN(g, 0.2, 3) OVER (PARTITION BY part ORDER BY id) AS c FROM uniform) s WHERE c IS NOT NULL GROUP BY part, c) s WHERE c <> place $$,
  'clusters are numbered from 0 by their first rows');
SELECT results_eq($$ SELECT id, ST_ClusterDBSCAN(g, 1, 1) OVER (ORDER BY id) FROM (VALUES (1, NULL::geometry), (2, 'POINT(0 0)'), (3, 'POINT EMPTY'), (4, 'POINT(9 9)'), (5, 'POINT(0 1)')) v(id, g) $$,
  $$ VALUES (1, NULL::int), (2, 0), (3, 1), (4, 2), (5, 0) $$, 'NULL is in no cluster, and an empty geometry in one of its own, as in PostGIS');
SELECT results_eq($$ SELECT id, ST_ClusterDBSCAN(g, 1, 2) OVER (ORDER BY id) FROM (VALUES (1, NULL::geometry), (2, 'POINT(0 0)'), (3, 'POINT EMPTY'), (4, 'POINT(9 9)'), (5, 'POINT(0 1)')) v(id, g) $$,
  $$ VALUES (1, NULL::int), (2, 0), (3, NULL), (4, NULL), (5, 0) $$, 'or it is noise');

-- Errors are PostGIS's.
CREATE FUNCTION both_errors(query text) RETURNS text[] LANGUAGE sql AS $$
  SELECT array_agg(DISTINCT bag(query)::text) FROM (SELECT set_config('gpujoin.enable_customscan', node::text, true) FROM unnest('{t,f}'::bool[]) node) s(x) WHERE x IS NOT NULL
$$;
SELECT is(array_length(both_errors(query), 1), 1, query) FROM unnest(ARRAY['SELECT ST_ClusterDBSCAN(g, -1, 2) OVER () FROM one', 'SELECT ST_ClusterDBSCAN(g, NULL, 2) OVER () FROM one',
  'SELECT ST_ClusterDBSCAN(g, 1, -2) OVER () FROM one', 'SELECT ST_ClusterDBSCAN(g, 1, NULL) OVER () FROM one', 'SELECT ST_ClusterDBSCAN(g, ''NaN'', 2) OVER () FROM twins',
  'SELECT ST_ClusterDBSCAN(g, ''Infinity'', 2) OVER () FROM twins', 'SELECT ST_ClusterDBSCAN(g, 1, 1 / (id - id)) OVER () FROM one',
  'SELECT ST_ClusterDBSCAN(g, -1, 2) OVER () FROM nothing', 'SELECT ST_ClusterDBSCAN(g, 1, 2) OVER () FROM nowhere', 'SELECT ST_ClusterDBSCAN(g, -1, 2) OVER () FROM kinds']) query;
SELECT throws_like('SELECT ST_ClusterDBSCAN(g, -1, 2) OVER () FROM one', 'Tolerance must be a positive number%', 'this one, for example');

-- Other shapes of queries.
CREATE FUNCTION same_clusters(query text, description text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  counted text := format('SELECT a, count(*), min(id), max(id), sum(id) FROM (%s) s GROUP BY a, c', query);
  with_node text[];
BEGIN
  PERFORM set_config('gpujoin.enable_customscan', 'on', true);
  IF NOT has_node(query) THEN RETURN fail(description || ': the node is in the plan'); END IF;
  with_node := bag(counted);
  PERFORM set_config('gpujoin.enable_customscan', 'off', true);
  RETURN is(bag(counted), with_node, description);
END $$;
SELECT same_clusters('SELECT id, row_number() OVER w AS a, ST_ClusterDBSCAN(g, 0.2, 3) OVER w AS c FROM uniform WINDOW w AS (PARTITION BY part ORDER BY id)', 'beside another function of the window');
SELECT same_clusters('SELECT id, rank() OVER (ORDER BY id / 10) AS a, ST_ClusterDBSCAN(g, 0.2, 3) OVER (PARTITION BY part ORDER BY id) AS c FROM uniform', 'beside another window');
SELECT same_clusters('SELECT id, ST_ClusterDBSCAN(g, 0.2, 3) OVER (PARTITION BY part ORDER BY id) IS NULL AS a, coalesce(ST_ClusterDBSCAN(g, 0.3, 2) OVER (ORDER BY id), -1) + 7 AS c FROM uniform', 'within expressions, twice');
SELECT same_clusters('SELECT id, part AS a, ST_ClusterDBSCAN(ST_Translate(g, part, id % 2), 0.1 * (part + 1), part + 2) OVER (PARTITION BY part ORDER BY id) AS c FROM uniform', 'of expressions');
SELECT same_clusters('SELECT id, part AS a, ST_ClusterDBSCAN(g, 0.2, 3) OVER (PARTITION BY part ORDER BY id) AS c FROM uniform ORDER BY c, id', 'in the order of clusters');
SELECT same_clusters('SELECT max(id) AS id, part AS a, ST_ClusterDBSCAN(ST_Centroid(ST_Collect(g)), 0.2, 3) OVER (PARTITION BY part ORDER BY id % 100) AS c FROM uniform GROUP BY part, id % 100', 'over groups');
SELECT same_clusters('SELECT DISTINCT 1 AS id, part AS a, ST_ClusterDBSCAN(g, 0.2, 3) OVER (PARTITION BY part ORDER BY id) IS NULL AS c FROM uniform', 'under DISTINCT');
SELECT same_clusters('SELECT id, part AS a, ST_ClusterDBSCAN(g, 0.2, 3) OVER (PARTITION BY part ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS c FROM uniform', 'a frame means nothing');
SELECT same_clusters('SELECT u.id, v.a, v.c FROM one u, LATERAL (SELECT t.id AS a, ST_ClusterDBSCAN(t.g, 1 + u.id, 2) OVER (ORDER BY t.id) AS c FROM twins t WHERE t.id > u.id) v', 'in a subquery');
SELECT same_clusters('SELECT u.id, v.a, v.c FROM border u, LATERAL (SELECT t.id AS a, ST_ClusterDBSCAN(t.g, u.id, 2) OVER (ORDER BY t.id) AS c FROM border t WHERE t.id > u.id OFFSET 0) v', 'run again and again');
SELECT is(has_node('SELECT ST_ClusterDBSCAN(ST_Point(random(), 0), 1, 1) OVER () FROM one'), false, 'volatile arguments are evaluated once');
SELECT is(has_node('SELECT row_number() OVER () FROM one'), false, 'other windows are not ours');
SET LOCAL gpujoin.enable_customscan = off;
SELECT is(has_node('SELECT ST_ClusterDBSCAN(g, 1, 1) OVER () FROM one'), false, 'the setting switches it off');
SET LOCAL gpujoin.enable_customscan = on;
PREPARE p AS SELECT count(c) FROM (SELECT ST_ClusterDBSCAN(g, $1, 3) OVER (ORDER BY id) AS c FROM uniform) s;
SET plan_cache_mode = force_generic_plan;
CREATE FUNCTION of_radius(eps float8) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  n bigint;
BEGIN
  FOR i IN 1..3 LOOP
    SELECT count(c) INTO n FROM (SELECT ST_ClusterDBSCAN(g, eps, 3) OVER (ORDER BY id) AS c FROM uniform) s;
  END LOOP;
  RETURN n;
END $$;
SELECT is(of_radius(eps), (SELECT count(first) FROM clusters('uniform', eps, 3, '1', 'id', false)), 'a plan that is used again, eps ' || eps) FROM unnest('{0.1,0.2}'::float8[]) eps;

-- Privileges.
CREATE ROLE gpujoin_window;
GRANT USAGE ON SCHEMA planner_windows TO gpujoin_window;
GRANT SELECT ON one TO gpujoin_window;
SET LOCAL gpujoin.enable_customscan = on;
DO $$ BEGIN EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', 'st_clusterdbscan(geometry,float8,int)'::regprocedure); END $$;
SET ROLE gpujoin_window;
SELECT throws_ok('SELECT ST_ClusterDBSCAN(g, 1, 1) OVER () FROM one', '42501', 'permission denied for function st_clusterdbscan', 'the right to call the function is needed');
SELECT throws_ok('SELECT gpu_postgis_clusters(g, 1, 1, ''st_clusterdbscan(geometry,float8,int)'') OVER () FROM one', '42501', NULL, 'by its other name, too');
RESET ROLE;
DO $$ BEGIN EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', 'st_clusterdbscan(geometry,float8,int)'::regprocedure);
  EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', 'gpu_postgis_clusters(anyelement,float8,int,regprocedure)'::regprocedure); END $$;
SET ROLE gpujoin_window;
SELECT lives_ok('SELECT ST_ClusterDBSCAN(g, 1, 1) OVER () FROM one', 'the right to call gpujoin''s is not');
RESET ROLE;
SELECT throws_ok(query, '22023', 'gpu_postgis_clusters() stands for a window function of PostGIS', query)
  FROM unnest(ARRAY['SELECT gpu_postgis_clusters(1, 1, 1, ''st_clusterdbscan(geometry,float8,int)'') OVER ()', 'SELECT gpu_postgis_clusters(g, 1, 1, ''row_number()'') OVER () FROM one',
    'SELECT gpu_postgis_clusters(g, 1, 1, NULL) OVER () FROM one', 'SELECT gpu_postgis_clusters(g, 1, 1, ''st_area(geometry)'') OVER () FROM one']) query;

-- A function of another extension or of nobody's is left alone; ST_ClusterWithinWin() is there as of PostGIS 3.4.
CREATE FUNCTION st_clusterdbscan(geometry, float8, int) RETURNS int LANGUAGE internal WINDOW AS 'window_row_number';
SELECT is(has_node('SELECT planner_windows.st_clusterdbscan(g, 1::float8, 1) OVER () FROM one'), false, 'a name proves nothing');
DROP FUNCTION planner_windows.st_clusterdbscan(geometry, float8, int);
SELECT to_regprocedure('st_clusterwithinwin(geometry,float8)') IS NULL AS has_no_within \gset
\if :has_no_within
CREATE FUNCTION public.st_clusterwithinwin(geometry, float8) RETURNS int LANGUAGE internal WINDOW IMMUTABLE AS 'window_row_number';
ALTER EXTENSION postgis ADD FUNCTION public.st_clusterwithinwin(geometry, float8);
SELECT results_eq('SELECT ST_ClusterWithinWin(g, 0.5) OVER (PARTITION BY part ORDER BY id) FROM arcs WHERE part = 0', 'SELECT row_number() OVER (ORDER BY id)::int FROM arcs WHERE part = 0',
  'arcs are left to PostGIS''s function');
SELECT results_eq('SELECT id, ST_ClusterWithinWin(g, 0.5) OVER (PARTITION BY part ORDER BY id) FROM kinds ORDER BY id', 'SELECT id, ST_ClusterDBSCAN(g, 0.5, 1) OVER (PARTITION BY part ORDER BY id) FROM kinds ORDER BY id',
  'polygons are not');
\else
SELECT bag_eq(format('SELECT id, min(id) OVER (PARTITION BY part, c) FROM (SELECT id, part, ST_ClusterWithinWin(g, 0.2) OVER (PARTITION BY part ORDER BY id) AS c FROM %s) s WHERE c IS NOT NULL', tbl),
    format($$ SELECT * FROM clusters(%L, 0.2, 1, 'part', 'id', false) WHERE first IS NOT NULL $$, tbl), 'ST_ClusterWithinWin(): ' || tbl)
  FROM unnest('{uniform,blobs,holes,mixed,shapes,kinds}'::text[]) tbl;
\endif
SET LOCAL gpujoin.enable_customscan = on;
SELECT is(partitions('SELECT ST_ClusterWithinWin(g, 0.2) OVER (PARTITION BY part ORDER BY id) FROM uniform'), '3, 0', 'ST_ClusterWithinWin() is found by gpujoin');
SELECT results_eq($$ SELECT id, ST_ClusterWithinWin(g, 0.2) OVER (PARTITION BY part ORDER BY id) FROM uniform ORDER BY id $$,
  $$ SELECT id, public.ST_ClusterDBSCAN(g, 0.2, 1) OVER (PARTITION BY part ORDER BY id) FROM uniform ORDER BY id $$, 'and is DBSCAN with one point');
\endif

SELECT * FROM finish();
ROLLBACK;
