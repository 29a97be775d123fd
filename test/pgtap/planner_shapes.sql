-- Conditions that imply that values are near, or that their boxes meet: by circles, boxes and polygons of PostgreSQL, functions of
-- PostGIS, strings of bits, and BETWEEN. The rows are those that PostgreSQL itself finds.
BEGIN;
CREATE SCHEMA planner_shapes;
SET search_path = planner_shapes, public;
SET jit = off;
SET client_min_messages = warning;
\ir same_rows.psql
SELECT * FROM no_plan();

CREATE TABLE kinds (name text, query text);
INSERT INTO kinds VALUES
  ('inner', 'SELECT a.id, b.id FROM t a JOIN t b ON %1$s'),
  ('left', 'SELECT a.id, b.id FROM t a LEFT JOIN t b ON %1$s'),
  ('count', 'SELECT count(*) FROM t a JOIN t b ON %1$s AND a.id < b.id'),
  ('exists', 'SELECT a.id FROM t a WHERE NOT EXISTS (SELECT FROM t b WHERE a.id <> b.id AND %1$s)');

-- ---- PostgreSQL's own
CREATE TABLE t AS SELECT i AS id, point(i * 79 % 40 / 2.0, i * 47 % 39 / 2.0) AS p, circle(point(i * 31 % 40 / 2.0, i * 57 % 39 / 2.0), i % 7 / 4.0) AS c,
  box(point(i * 31 % 40 / 2.0, i * 57 % 39 / 2.0), point(i * 31 % 40 / 2.0 + 1, i * 57 % 39 / 2.0 + 2)) AS bx, polygon(circle(point(i * 31 % 40 / 2.0, i * 57 % 39 / 2.0), 1 + i % 3)) AS po,
  (i % 5)::float8 AS r, (i * 2654435761 % 4294967296)::bit(64) # (1 << (i % 20)::int)::bit(64) AS h FROM generate_series(1::bigint, 260) i;
INSERT INTO t VALUES (1001, NULL, NULL, NULL, NULL, NULL), (1002, '(NaN,1)', '<(1,1),NaN>', '(1,1),(NaN,2)', '((0,0),(NaN,1),(1,0))', 'NaN'), (1003, '(0,0)', '<(0,0),0>', '(0,0),(0,0)', '((0,0),(1,1),(1,0))', 0),
  (1004, '(Infinity,1)', '<(0,0),Infinity>', '(-Infinity,0),(Infinity,1)', '((0,0),(Infinity,1),(1,0))', 'Infinity'), (1005, '(1e200,0)', '<(1e200,0),1>', '(1e200,0),(1e201,1)', '((-1e6,-1e6),(1e6,0),(0,1e6))', 1e200);
UPDATE t SET h = 0::bit(64) WHERE id IN (7, 1003);
ANALYZE t;
CREATE TABLE clauses (clause text, uses_node boolean);
INSERT INTO clauses VALUES
  ('a.p <@ b.c', true), ('b.c @> a.p', true), ('a.c && b.c', true), ('a.c @> b.c', true), ('a.c <@ b.c', true), ('a.p <@ circle(b.p, 1.5)', true), ('circle(a.p, 0.5) && circle(b.p, 1)', true),
  ('a.p <@ circle(b.p, b.r)', true), ('circle(a.p, -1) @> b.p', true), ('a.p <@ b.bx', true), ('b.bx @> a.p', true), ('a.bx @> b.bx', true), ('a.bx <@ b.bx', true), ('b.po @> a.p', true), ('a.p <@ b.po', true),
  ('a.po && b.po', true), ('a.po @> b.po', true), ('a.p <@ box(b.po)', true), ('a.c ~= b.c', false), ('a.c << b.c', false), ('NOT a.p <@ b.c', false),
  ('bit_count(a.h # b.h) <= 6', true), ('length(replace((a.h # b.h)::text, ''0'', '''')) <= 6', true), ('length(replace((a.h # b.h)::text, ''1'', '''')) <= 6', false),
  ('bit_count(a.h & b.h)::float8 / nullif(bit_count(a.h | b.h), 0) >= 0.5', true), ('bit_count(a.h & b.h)::numeric / nullif(bit_count(b.h | a.h), 0) > 0.25', true),
  ('1 - 1.0 * bit_count(a.h & b.h) / nullif(bit_count(a.h | b.h), 0) < 0.5', true), ('bit_count(a.h & b.h) / nullif(bit_count(a.h | b.h), 0) >= 1', false),
  ('bit_count(a.h & b.h)::float8 / nullif(bit_count(a.h), 0) >= 0.5', false);
SELECT same_rows(format(query, clause), uses_node, format('%s: %s', name, clause)) FROM kinds, clauses WHERE name <> 'exists' OR clause NOT LIKE 'NOT%';

-- ---- Radii of both rows
DELETE FROM t WHERE r = 1e200; -- whose square is none
TRUNCATE clauses;
INSERT INTO clauses VALUES
  ('a.p <-> b.p <= 0.3 * sqrt(a.r ^ 2 + b.r ^ 2)', true), ('a.p <-> b.p < sqrt(a.r * a.r + 2 * (b.r / 2) ^ 2 + 0.01)', true), ('a.p <-> b.p <= least(a.r, b.r)', true), ('a.p <-> b.p <= greatest(a.r, b.r) / 4', true),
  ('a.p <-> b.p <= CASE WHEN a.id % 2 = 0 THEN a.r WHEN b.id % 2 = 0 THEN b.r END', true), ('a.p <-> b.p <= a.r - b.r', true), ('a.p <-> b.p <= coalesce(a.r, b.r)', true), ('a.p <-> b.p <= least(a.r * 2, b.r + 1)', true),
  ('a.p <-> b.p <= least(a.r, b.r, 0.5)', true), ('a.p <-> b.p <= abs(a.r - 2 * b.r)', true), ('a.p <-> b.p <= least(a.id * 0.01, b.id / 50.0, 3)', true), ('a.p <-> b.p <= least(a.r * 3, 2)', true), ('a.p <-> b.p <= a.r * b.r', false), ('a.p <-> b.p <= sqrt(a.r + b.r)', false), ('a.p <-> b.p <= a.r ^ 3 + b.r', NULL);
SELECT same_rows(format(query, clause), uses_node, format('%s: %s', name, clause)) FROM kinds, clauses;

-- ---- Boxes and bands by BETWEEN
DROP TABLE t;
CREATE TABLE t AS SELECT i AS id, i * 79 % 40 / 2.0::float8 AS x, i * 47 % 39 / 2.0::float8 AS y, (i * 79 % 400)::int AS i, (i * 47 % 390)::bigint AS b, (i * 79 % 40 / 2.0)::numeric AS n, (i * 31 % 99 / 4.0)::real AS f,
  timestamp '2026-01-01' + i % 50 * interval '1 min' AS ts, i % 4 AS grp FROM generate_series(1, 300) i;
INSERT INTO t VALUES (1001, NULL, 1, NULL, 1, NULL, NULL), (1002, 'NaN', 'NaN', 1, 1, 'NaN', 'NaN'), (1003, 'Infinity', 0, 1, 1, 1e30, 'Infinity'), (1004, 1e15, 1e15, 214748364, 9007199254740993, 1e15, 1e15),
  (1005, 1e15 + 1, 1e15 + 2, 214748365, 9007199254740992, 1e15 + 1, 1e15), (1006, 0.1, 0.3, 1, 1, 0.1, 0.1), (1007, 0.2, 0.1, 1, 1, 0.30000000000000001, 0.3);
ANALYZE t;
TRUNCATE clauses;
INSERT INTO clauses VALUES
  ('b.x BETWEEN a.x - 1 AND a.x + 1 AND b.y BETWEEN a.y - 2 AND a.y + 2', true), ('a.x >= b.x - 0.5 AND a.x < b.x + 1 AND a.y - b.y <= 0.5 AND b.y - a.y <= 0.5', true), ('b.i BETWEEN a.i - 9 AND a.i + 9 AND b.b BETWEEN a.b - 9 AND a.b', true),
  ('b.n BETWEEN a.n - 1.5 AND a.n + 1.5 AND b.y BETWEEN a.y AND a.y + 2', true), ('b.f BETWEEN a.f - 1 AND a.f + 1 AND b.y BETWEEN a.y - 2 AND a.y + 2', true), ('b.x BETWEEN a.x - 1 AND a.x + 1 AND b.ts BETWEEN a.ts - interval ''5 min'' AND a.ts', true),
  ('b.x BETWEEN a.x - 0.2 AND a.x + 0.2 AND abs(a.y - b.y) <= 0.2', true), ('b.x BETWEEN a.x AND a.x AND b.y BETWEEN a.y - 2 AND a.y + 2', NULL), ('b.x BETWEEN a.x - 1 AND a.x + 1', false), ('b.x BETWEEN a.x - 1 AND a.x + 1 AND b.y > a.y', false),
  ('b.x BETWEEN a.x - a.y AND a.x + a.y AND b.y BETWEEN a.y - a.x AND a.y + a.x', false), ('(b.x BETWEEN a.x - 1 AND a.x + 1 OR b.y BETWEEN a.y - 2 AND a.y + 2)', false);
SELECT same_rows(format(query, clause), uses_node, format('%s: %s', name, clause)) FROM kinds, clauses;
SELECT same_rows('SELECT a.id, b.id FROM t a LEFT JOIN t b ON b.x > a.x - 1 AND b.y BETWEEN a.y - 1 AND a.y + 1 WHERE b.x < a.x + 1', NULL, 'a half in WHERE');
SELECT same_rows('SELECT a.id, b.id FROM t a LEFT JOIN t b ON b.x > a.x - 1 AND b.y > a.y - 1 AND b.y < a.y + 1 WHERE b.x < a.x + 1 OR b.id IS NULL', NULL, 'a half in WHERE, and NULL');
PREPARE box(float8, float8) AS SELECT a.id, b.id FROM t a JOIN t b ON b.x BETWEEN a.x - $1 AND a.x + $1 AND b.y BETWEEN a.y - $2 AND a.y + $2;
SELECT same_rows('EXECUTE box(1, 2)', true, 'a box of parameters');

-- ---- PostGIS
SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgis') AS has_postgis \gset
\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
DROP TABLE t;
CREATE TABLE t AS SELECT i AS id, ST_SetSRID(ST_Point(i * 79 % 40 / 2.0, i * 47 % 39 / 2.0), 4326) AS g, ST_Buffer(ST_SetSRID(ST_Point(i * 31 % 40 / 2.0, i * 57 % 39 / 2.0), 4326), 1, 2) AS a FROM generate_series(1, 120) i;
INSERT INTO t SELECT 1000 + row_number() OVER (), ST_SetSRID(g::geometry, 4326), ST_SetSRID(a::geometry, 4326) FROM (VALUES ('POINT EMPTY', 'POLYGON EMPTY'), ('GEOMETRYCOLLECTION EMPTY', 'LINESTRING EMPTY'), (NULL, NULL),
  ('POINT EMPTY', 'POINT(1 1)'), ('POINT Z (1 1 7)', 'LINESTRING(1 1, 2 2)'), ('POINT(1 1)', 'LINESTRING(2 2, 1 1)'), ('MULTIPOINT(1 1, 5 5)', 'POLYGON((0 0, 9 0, 9 9, 0 9, 0 0))')) odd(g, a);
ANALYZE t;
TRUNCATE clauses;
INSERT INTO clauses VALUES
  ('ST_Equals(a.g, b.g)', true), ('ST_Equals(a.a, b.a)', true), ('a.a ~= b.a', true), ('a.g ~= b.g', true), ('ST_OrderingEquals(a.a, b.a)', true), ('ST_DFullyWithin(a.a, b.a, 4)', true), ('ST_3DDWithin(a.g, b.g, 1)', true),
  ('ST_3DDistance(a.g, b.g) < 1', true), ('ST_MaxDistance(a.a, b.a) < 4', true), ('ST_HausdorffDistance(a.g, b.g) <= 1', true), ('NOT ST_Disjoint(a.a, b.a)', true), ('ST_Area(ST_Intersection(a.a, b.a)) > 0', true),
  ('ST_Area(ST_Intersection(a.a, b.a)) >= 0.5', true), ('0.5 < ST_Area(ST_Intersection(a.a, b.a))', true), ('ST_Area(ST_Intersection(a.a, b.a)) >= 0', false), ('ST_Area(ST_Intersection(a.a, b.a)) < 1', false), ('a.a &&& b.a', true),
  ('a.a ~ b.g', false), ('b.g @ a.a', false), ('ST_Distance(a.g, b.g) = 0', true), ('ST_3DIntersects(a.a, b.g)', true), ('ST_Intersects(ST_Buffer(a.g, 1), b.g)', true), ('ST_Disjoint(a.a, b.a)', false), ('NOT ST_Intersects(a.a, b.a)', false),
  ('ST_Intersects(a.a::geography, b.g::geography)', true), ('ST_Covers(a.a::geography, b.g::geography)', true), ('ST_CoveredBy(a.g::geography, b.a::geography)', true), ('a.a::geography && b.g::geography', true),
  ('ST_DistanceSphere(a.g, b.g) < 100000', NULL), ('coalesce(ST_Distance(a.g, b.g), 0) <= 1', true), ('(ST_DWithin(a.g, b.g, 1) OR b.g IS NULL)', true),
  ('ST_Relate(a.a, b.a, ''T********'')', true), ('ST_Relate(a.a, b.g, ''****1*212'')', true), ('ST_Relate(a.a, b.a, ''FF*FF****'')', false), ('ST_Relate(a.a, b.a, ''**T******'')', false);
SELECT same_rows(format(query, clause), uses_node, format('%s: %s', name, clause)) FROM kinds, clauses WHERE name IN ('inner', 'left') OR clause NOT LIKE '%Intersection%' AND clause NOT LIKE '%geography%';
\else
SELECT skip('no PostGIS', 1);
\endif
SELECT * FROM finish();
ROLLBACK;
