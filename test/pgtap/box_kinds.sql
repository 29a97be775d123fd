-- Boxes of other extensions, as gpu_box_join() reads them: cubes and PostGIS geometries, among each other and with
-- PostgreSQL's own boxes and arrays.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA box_kinds;
SET search_path = box_kinds, public;

CREATE TABLE arrays (id int PRIMARY KEY, low float8[], high float8[]);
INSERT INTO arrays SELECT i * 7919 % 1009, ARRAY[x, y], ARRAY[x + i % 4 * 0.5, y + i % 3 * 0.5]
  FROM generate_series(1, 160) i, LATERAL (SELECT i % 17 + 0.1 AS x, i * 5 % 13 AS y) c;
CREATE TABLE boxes (id int PRIMARY KEY, b box);
INSERT INTO boxes SELECT id, box(point(low[1], low[2]), point(high[1], high[2])) FROM arrays;
CREATE TABLE truth AS
  SELECT l.id::bigint AS id1, r.id::bigint AS id2 FROM arrays l, arrays r
  WHERE l.low[1] <= r.high[1] AND r.low[1] <= l.high[1] AND l.low[2] <= r.high[2] AND r.low[2] <= l.high[2];
SELECT cmp_ok((SELECT count(*) FROM truth), '>', 160::bigint, 'boxes meet others');
SELECT bag_eq('SELECT * FROM gpu_box_join(''boxes'', ''boxes'')', 'TABLE truth', 'boxes');
SELECT bag_eq($$ SELECT * FROM gpu_box_join('arrays', 'boxes', left_box_columns => '{low,high}') $$, 'TABLE truth',
  'arrays and boxes');

SELECT bool_or(name = 'cube') AS has_cube, bool_or(name = 'postgis') AS has_postgis
FROM pg_available_extensions WHERE name IN ('cube', 'postgis') \gset

\if :has_cube
CREATE EXTENSION IF NOT EXISTS cube;
-- Corners come in any order, and a cube may be a point.
CREATE TABLE cubes (id int PRIMARY KEY, c cube);
INSERT INTO cubes SELECT id, CASE WHEN id % 2 = 0 THEN cube(high, low) ELSE cube(low, high) END FROM arrays;
SELECT bag_eq('SELECT l.id, r.id AS id2 FROM cubes l, cubes r WHERE l.c && r.c', 'TABLE truth', 'cube thinks so too');
SELECT bag_eq('SELECT * FROM gpu_box_join(''cubes'', ''cubes'')', 'TABLE truth', 'cubes');
SELECT bag_eq('SELECT * FROM gpu_box_join(''cubes'', ''boxes'')', 'TABLE truth', 'cubes and boxes');
SELECT bag_eq($$ SELECT * FROM gpu_box_join('arrays', 'cubes', left_box_columns => '{low,high}') $$, 'TABLE truth',
  'arrays and cubes');
CREATE DOMAIN some_cube AS cube;
CREATE VIEW checked AS SELECT id, c::some_cube FROM cubes;
SELECT bag_eq('SELECT * FROM gpu_box_join(''checked'', ''cubes'', left_id_column => ''id'')', 'TABLE truth',
  'a domain over cubes');
SELECT bag_eq(
  $$ SELECT id1, id2 FROM unnest('{l1,linf}'::text[]) m,
     gpu_box_join('cubes', 'cubes', 0.6, metric => m, pairs => 'unordered') $$,
  $$ SELECT l.id, r.id AS id2 FROM cubes l, cubes r WHERE l.id < r.id AND l.c <#> r.c <= 0.6
     UNION ALL SELECT l.id, r.id AS id2 FROM cubes l, cubes r WHERE l.id < r.id AND l.c <=> r.c <= 0.6 $$,
  'cubes within a distance');
CREATE TABLE eight (id int PRIMARY KEY, c cube);
INSERT INTO eight SELECT i, cube(array_fill(i % 10, '{8}'), array_fill(i % 10 + i % 3, '{8}')) FROM generate_series(1, 50) i;
SELECT bag_eq('SELECT * FROM gpu_box_join(''eight'', ''eight'')', 'SELECT l.id, r.id AS id2 FROM eight l, eight r WHERE l.c && r.c',
  'cubes of eight dimensions');
INSERT INTO eight VALUES (100, cube('NaN'::float8)), (101, NULL);
DELETE FROM eight WHERE id < 100;
SELECT is_empty('SELECT * FROM gpu_box_join(''eight'', ''eight'')', 'a cube with a NaN meets nothing');
SELECT throws_ok('SELECT * FROM gpu_box_join(''eight'', ''cubes'')', '22000',
  'boxes of relations "eight" and "cubes" have different numbers of dimensions', 'dimensions must be the same');
INSERT INTO eight VALUES (102, cube(ARRAY[1, 2]));
SELECT throws_ok('SELECT * FROM gpu_box_join(''eight'', ''eight'')', '22000',
  'boxes of relation "eight" have different numbers of dimensions', 'in one table too');
UPDATE eight SET c = cube(array_fill(1, '{9}')) WHERE id = 100;
SELECT throws_ok('SELECT * FROM gpu_box_join(''eight'', ''eight'')', '54000',
  'the box of row 100 of relation "eight" has 9 dimensions', 'nine dimensions are too many');
UPDATE eight SET c = cube('{}'::float8[]) WHERE id = 100;
SELECT throws_ok('SELECT * FROM gpu_box_join(''eight'', ''eight'')', '22000',
  'the box of row 100 of relation "eight" has no dimensions', 'none are too few');
\else
SELECT skip('no cube', 1);
\endif

\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
-- Bounding boxes in double precision: && rounds them outwards to single precision, and 0.1 is none of its numbers.
CREATE TABLE shapes (id int PRIMARY KEY, g geometry);
INSERT INTO shapes SELECT id, ST_MakeEnvelope(low[1], low[2], high[1], high[2], 4326) FROM arrays;
SELECT bag_eq('SELECT * FROM gpu_box_join(''shapes'', ''shapes'')', 'TABLE truth', 'geometries');
SELECT bag_eq('SELECT * FROM gpu_box_join(''boxes'', ''shapes'')', 'TABLE truth', 'boxes and geometries');
SELECT bag_eq('SELECT * FROM gpu_box_join(''shapes'', ''shapes'')',
  $$ SELECT l.id, r.id AS id2 FROM shapes l, shapes r WHERE ST_XMin(l.g) <= ST_XMax(r.g) AND ST_XMin(r.g) <= ST_XMax(l.g)
     AND ST_YMin(l.g) <= ST_YMax(r.g) AND ST_YMin(r.g) <= ST_YMax(l.g) $$, 'ST_XMin and its like think so too');
TRUNCATE shapes;
INSERT INTO shapes VALUES (1, 'POINT(0.1 0.1)'), (2, 'LINESTRING(0 0, 0.1 0.1)'), (3, 'POLYGON EMPTY'), (4, NULL),
  (5, 'POINT EMPTY'), (6, 'MULTIPOINT(0.1 0.1, 5 5)'), (7, 'CIRCULARSTRING(5 6, 6 7, 7 6)'), (8, 'POINT Z (6 7 9)'),
  (9, 'POINT(0.10000000000000002 0.1)');
SELECT bag_eq('SELECT * FROM gpu_box_join(''shapes'', ''shapes'', pairs => ''unordered'')',
  'VALUES (1, 2), (1, 6), (2, 6), (7, 8), (6, 9)', 'points, lines, curves, and what is empty');
CREATE DOMAIN place AS geometry;
CREATE VIEW placed AS SELECT id, g::place FROM shapes;
SELECT bag_eq('SELECT * FROM gpu_box_join(''placed'', ''shapes'', left_id_column => ''id'')',
  'SELECT * FROM gpu_box_join(''shapes'', ''shapes'')', 'a domain over geometries');
\else
SELECT skip('no PostGIS', 1);
\endif

SELECT * FROM finish();
ROLLBACK;
