-- Values of outer queries in everything that a join depends on. The node is scanned again for each outer row and must compute
-- anew whatever depends on such a value. Each query has the rows that PostgreSQL itself finds.
BEGIN;
CREATE SCHEMA planner_outer_values;
SET search_path = planner_outer_values, public;
SET jit = off;
\ir same_rows.psql
SELECT * FROM no_plan();
SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'cube') AS has_cube,
  EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgis') AS has_postgis \gset

CREATE TABLE o (z float8);
INSERT INTO o VALUES (1), (2), (4), (1);
CREATE TABLE p AS SELECT i AS id, i % 7 AS g, i * 37 % 199 / 4.0::float8 AS x, i * 91 % 193 / 4.0::float8 AS y,
  CASE WHEN i % 41 > 0 THEN ARRAY[i * 37 % 199 / 4.0, i * 91 % 193 / 4.0]::float8[] END AS v,
  timestamp '2024-01-01' + i * 17 % 100 * interval '1 minute' AS t, CASE WHEN i % 17 > 0 THEN i % 9 / 2.0::float8 END AS rad,
  (i * 7 % 1000 / 10.0)::numeric(8, 2) AS w, point(i * 37 % 199 / 4.0, i * 91 % 193 / 4.0) AS pt FROM generate_series(1, 120) i;
CREATE TABLE s AS SELECT * FROM p WHERE id % 3 > 0;
ALTER TABLE p ADD PRIMARY KEY (id);
ALTER TABLE s ADD PRIMARY KEY (id);
ANALYZE o, p, s;

-- A subquery for each outer row; null: it may be another plan's.
CREATE TABLE shapes (by_node boolean, name text, query text);
INSERT INTO shapes VALUES
  (true, 'an operand', 'SELECT count(*) FROM p JOIN s ON ARRAY[p.x / o.z, p.y] <-> s.v <= 4'),
  (true, 'the other operand', 'SELECT count(*) FROM p JOIN s ON p.v <-> ARRAY[s.x / o.z, s.y] <= 4'),
  (true, 'both operands', 'SELECT count(*) FROM p JOIN s ON ARRAY[p.x, p.y / o.z] <-> ARRAY[s.x, s.y / o.z] <= 4'),
  (true, 'an operand that raises no error', 'SELECT count(*) FROM p JOIN s ON p.v <-> CASE WHEN s.x > o.z * 9 THEN s.v END <= 4'),
  (true, 'rows', 'SELECT count(*) FROM p JOIN (SELECT * FROM s WHERE g <> o.z::int) s ON ARRAY[p.x / 2, p.y] <-> s.v <= 4'),
  (true, 'pairs', 'SELECT string_agg(id || '' '' || id2, '','' ORDER BY id, id2) FROM (SELECT p.id, s.id AS id2 FROM p JOIN s ON ARRAY[p.x / o.z, p.y] <-> s.v <= 4) q'),
  (NULL, 'EXISTS', 'SELECT count(*) FROM p WHERE EXISTS (SELECT FROM s WHERE ARRAY[p.x / o.z, p.y] <-> s.v <= 2)'),
  (NULL, 'NOT EXISTS', 'SELECT count(*) FROM p WHERE NOT EXISTS (SELECT FROM s WHERE ARRAY[p.x / o.z, p.y] <-> s.v <= 2)'),
  (true, 'a guard', 'SELECT count(s.id) FROM p LEFT JOIN s ON p.x > o.z * 9 AND ARRAY[p.x / (p.x - o.z * 9), p.y] <-> s.v <= 4'),
  (true, 'a guard alone', 'SELECT count(s.id) FROM p LEFT JOIN s ON p.x > o.z * 9 AND ARRAY[p.x / 2, p.y] <-> s.v <= 4'),
  (true, 'sum', 'SELECT sum(s.w) FROM p JOIN s ON ARRAY[p.x / o.z, p.y] <-> s.v <= 4'),
  (true, 'a sum of outer values', 'SELECT string_agg(g || '' '' || c, '','' ORDER BY g) FROM (SELECT p.g, sum(s.w * o.z::int) AS c FROM p JOIN s ON p.v <-> s.v <= 4 GROUP BY p.g) q'),
  (true, 'a group of outer values', 'SELECT string_agg(g || '' '' || c, '','' ORDER BY g) FROM (SELECT p.g % (o.z::int + 1) AS g, sum(s.id) AS c FROM p JOIN s ON p.v <-> s.v <= 4 GROUP BY 1) q'),
  (true, 'a filter of outer values', 'SELECT count(*) FILTER (WHERE s.g > o.z) FROM p JOIN s ON p.v <-> s.v <= 4'),
  (true, 'groups', 'SELECT string_agg(g || '' '' || c, '','' ORDER BY g) FROM (SELECT p.g, count(*) AS c FROM p JOIN s ON p.v <-> s.v <= 4 * o.z GROUP BY p.g) q'),
  (true, 'count(DISTINCT)', 'SELECT count(DISTINCT p.id) FROM p JOIN s ON ARRAY[p.x, p.y / o.z] <-> ARRAY[s.x, s.y / o.z] <= 4'),
  (true, 'the order of keys', 'SELECT count(*) FROM p JOIN s ON p.id < s.id AND ARRAY[p.x, p.y / o.z] <-> ARRAY[s.x, s.y / o.z] <= 4'),
  (true, 'a band', 'SELECT count(*) FROM p JOIN s ON p.v <-> s.v <= 6 AND p.t BETWEEN s.t - interval ''1 minute'' * o.z * 10 AND s.t'),
  (true, 'a band and an operand', 'SELECT count(*) FROM p JOIN s ON ARRAY[p.x / o.z, p.y] <-> s.v <= 6 AND p.g = s.g'),
  (true, 'a radius', 'SELECT count(*) FROM p JOIN s ON p.v <-> s.v <= o.z * 2'),
  (true, 'a radius and an operand', 'SELECT count(*) FROM p JOIN s ON ARRAY[p.x / o.z, p.y] <-> s.v <= o.z * 2'),
  (NULL, 'radii times an outer value', 'SELECT count(*) FROM p JOIN s ON p.v <-> s.v <= p.rad * o.z'),
  (NULL, 'radii of both times an outer value', 'SELECT count(*) FROM p JOIN s ON p.v <-> s.v <= p.rad + s.rad * o.z'),
  (true, 'radii and an outer value', 'SELECT count(*) FROM p JOIN s ON p.v <-> s.v <= p.rad + o.z'),
  (true, 'the first pairs', 'SELECT string_agg(i::text, '','') FROM (SELECT p.id AS i FROM p JOIN s ON p.v <-> s.v <= 5 * o.z ORDER BY p.v <-> s.v, p.id, s.id LIMIT 5) q'),
  (true, 'the first pairs of an operand', 'SELECT string_agg(i::text, '','') FROM (SELECT p.id AS i FROM p JOIN s ON ARRAY[p.x / o.z, p.y] <-> s.v <= 5 ORDER BY ARRAY[p.x / o.z, p.y] <-> s.v, p.id, s.id LIMIT 5) q'),
  (true, 'the first pairs by a score', 'SELECT string_agg(i::text, '','') FROM (SELECT p.id AS i FROM p JOIN s ON p.v <-> s.v <= 5 ORDER BY p.w + s.w * o.z DESC, p.id, s.id LIMIT 5) q'),
  (true, 'nearest rows', 'SELECT sum(n.id) FROM p CROSS JOIN LATERAL (SELECT s.id FROM s WHERE s.g <> o.z::int ORDER BY s.v <-> p.v, s.id LIMIT 3) n'),
  (true, 'so many nearest rows', 'SELECT sum(n.id) FROM p CROSS JOIN LATERAL (SELECT s.id FROM s WHERE s.g <> p.g ORDER BY s.v <-> p.v, s.id LIMIT o.z::bigint) n'),
  (true, 'nearest rows within', 'SELECT sum(n.id) FROM p CROSS JOIN LATERAL (SELECT s.id FROM s WHERE s.v <-> p.v <= o.z ORDER BY s.v <-> p.v, s.id LIMIT 3) n'),
  (NULL, 'nearest rows of an operand', 'SELECT sum(n.id) FROM p CROSS JOIN LATERAL (SELECT s.id FROM s ORDER BY s.v <-> ARRAY[p.x / o.z, p.y], s.id LIMIT 3) n'),
  (NULL, 'nearest rows of a cast', 'SELECT sum(n.id) FROM p CROSS JOIN LATERAL (SELECT s.id FROM s ORDER BY s.v <-> CASE WHEN p.x > o.z * 9 THEN p.v END, s.id LIMIT 3) n'),
  (NULL, 'ranked rows', 'SELECT sum(id2) FROM (SELECT p.id, s.id AS id2, row_number() OVER (PARTITION BY p.id ORDER BY p.v <-> s.v, s.id) AS r FROM p JOIN s ON p.v <-> s.v <= 5 * o.z AND p.g <> s.g) q WHERE r <= 2'),
  (true, 'a point', 'SELECT count(*) FROM p JOIN s ON p.pt <-> point(s.x * o.z, s.y) <= 4'),
  (true, 'a distance over columns', 'SELECT count(*) FROM p JOIN s ON sqrt(power(p.x / o.z - s.x, 2) + power(p.y - s.y, 2)) <= 4'),
  (NULL, 'a sub-select in an operand', 'SELECT count(*) FROM p JOIN s ON ARRAY[p.x / (SELECT max(i.z) FROM o i WHERE i.z <= o.z), p.y] <-> s.v <= 4'),
  (NULL, 'a function call', 'SELECT sum(id1) FROM gpu_join(''p'', ''s'', o.z, ''id'', ''id'', ''v'', ''v'')');
\if :has_cube
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS cube;
INSERT INTO shapes VALUES (true, 'a cube', 'SELECT count(*) FROM p JOIN s ON cube(ARRAY[p.x / o.z, p.y]) <-> cube(s.v) <= 4');
\endif
\if :has_postgis
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS postgis;
ALTER TABLE p ADD gm geometry;
ALTER TABLE s ADD gm geometry;
UPDATE p SET gm = ST_MakePoint(x, y) WHERE v IS NOT NULL;
UPDATE s SET gm = ST_MakePoint(x, y) WHERE v IS NOT NULL;
ANALYZE p, s;
INSERT INTO shapes VALUES
  (true, 'a geometry', 'SELECT count(*) FROM p JOIN s ON ST_DWithin(p.gm, ST_Translate(s.gm, o.z, 0), 4)'),
  (true, 'both geometries', 'SELECT count(*) FROM p JOIN s ON ST_DWithin(ST_Translate(p.gm, o.z, 0), ST_Translate(s.gm, o.z * 2, 0), 4)'),
  (true, 'a polygon', 'SELECT count(*) FROM p JOIN s ON ST_Intersects(ST_Buffer(p.gm, o.z, 1), s.gm)'),
  (NULL, 'clusters of windows', 'SELECT string_agg(c::text, '','' ORDER BY id) FROM (SELECT id, ST_ClusterDBSCAN(gm, o.z, 2) OVER () AS c FROM p WHERE gm IS NOT NULL) q'),
  (NULL, 'clusters of geometries', 'SELECT string_agg(c::text, '','' ORDER BY id) FROM (SELECT id, ST_ClusterDBSCAN(ST_Translate(gm, CASE WHEN id % 2 = 0 THEN o.z * 9 ELSE 0 END, 0), 3, 2) OVER () AS c FROM p WHERE gm IS NOT NULL) q');
\endif

SELECT same_rows(format('SELECT o.z, (%s) FROM o', query), by_node, name) FROM shapes;
-- The sums and counts of the rows of a subquery in FROM.
SELECT same_rows(format('SELECT o.z, q FROM o, LATERAL (%s OFFSET 0) q', query), NULL, 'LATERAL: ' || name) FROM shapes;
-- Without an outer row's value the rows stay, and are not read again.
SELECT same_rows('SELECT o.z, (SELECT count(*) FROM p JOIN s ON ARRAY[p.x / 2, p.y] <-> s.v <= o.z) FROM o', true, 'rows that stay');

-- A value of a sub-select is the same for all rows of a query, and another one in the next execution.
SELECT same_rows(format('SELECT count(*) FROM p JOIN s ON ARRAY[p.x / (SELECT max(z) FROM o WHERE z < %s), p.y] <-> s.v <= 4', z), NULL, 'a sub-select below ' || z)
FROM generate_series(2, 5) z;
CREATE FUNCTION generic(z float8) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT count(*) FROM p JOIN s ON ARRAY[p.x / z, p.y] <-> s.v <= 4);
END $$;
SET plan_cache_mode = force_generic_plan;
SELECT same_rows('SELECT z, generic(z) FROM o', NULL, 'a generic plan');
RESET plan_cache_mode;
-- A cursor that is read again after another one.
CREATE FUNCTION twice(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  first SCROLL CURSOR (z float8) FOR SELECT p.id, s.id AS id2 FROM p JOIN s ON ARRAY[p.x / z, p.y] <-> s.v <= 4 ORDER BY 1, 2;
  line record;
BEGIN
  FOR z IN 1 .. 3 LOOP
    OPEN first(z);
    FETCH LAST FROM first INTO line;
    RETURN NEXT line::text;
    FETCH FIRST FROM first INTO line;
    RETURN NEXT line::text;
    FETCH RELATIVE 3 FROM first INTO line;
    RETURN NEXT line::text;
    CLOSE first;
  END LOOP;
END $$;
SELECT same_rows('SELECT twice(NULL)', NULL, 'a cursor');

SELECT * FROM finish();
ROLLBACK;
