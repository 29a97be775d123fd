-- Every type whose values are points works in the functions as it does in plain SQL: cube and PostGIS geometry beside arrays
-- and points. (pgvector's types: pgvector.sql. Boxes: box_kinds.sql.)
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA value_types;
SET search_path = value_types, public;
SET client_min_messages = warning;

CREATE FUNCTION failure(call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'SELECT * FROM ' || call;
  RETURN 'none';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

CREATE TABLE arrays (id int PRIMARY KEY, v float8[]);
INSERT INTO arrays SELECT i, ARRAY[i * 7 % 31, i * 13 % 29] FROM generate_series(1, 200) i;
INSERT INTO arrays VALUES (201, NULL), (202, '{Infinity,0}'), (203, '{NaN,0}'), (204, '{1e200,0}'), (205, '{1e200,0}');
CREATE DOMAIN place AS float8[] CHECK (cardinality(VALUE) = 2);
CREATE TABLE domains AS SELECT id, v::place AS v FROM arrays;
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin('domains', 2, id_column => 'id') $$, $$ SELECT * FROM gpu_selfjoin('arrays', 2) $$,
  'a domain over an array');

SELECT bool_or(name = 'cube') AS has_cube, bool_or(name = 'postgis') AS has_postgis
FROM pg_available_extensions WHERE name IN ('cube', 'postgis') \gset

\if :has_cube
CREATE EXTENSION IF NOT EXISTS cube;
CREATE TABLE cubes (id int PRIMARY KEY, c cube);
INSERT INTO cubes SELECT id, cube(v) FROM arrays;
SELECT bag_eq(format($$ SELECT * FROM gpu_selfjoin_distance('cubes', %s, metric => %L) $$, eps, metric),
    format($$ SELECT * FROM gpu_selfjoin_distance('arrays', %s, metric => %L) $$, eps, metric), 'cubes: ' || metric || ', ' || eps)
FROM unnest('{l2,l1,linf,cosine}'::text[]) metric, unnest('{0,0.3,3}'::float8[]) eps;
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin('cubes', 2, pairs => 'unordered') $$,
  $$ SELECT a.id::bigint AS id1, b.id::bigint AS id2 FROM cubes a JOIN cubes b ON a.c <-> b.c <= 2 AND a.id < b.id
     WHERE a.id <> 203 AND b.id <> 203 $$, 'cube thinks so, too, but for NaN');
SELECT bag_eq($$ SELECT * FROM gpu_join('cubes', 'arrays', 2) $$, $$ SELECT * FROM gpu_join('arrays', 'arrays', 2) $$, 'cubes and arrays');
SELECT bag_eq($$ SELECT * FROM gpu_topk_join('cubes', 'cubes', 5, 7, score => 'distance') $$,
  $$ SELECT * FROM gpu_topk_join('arrays', 'arrays', 5, 7, score => 'distance') $$, 'the nearest cubes');
SELECT bag_eq($$ SELECT id, neighbors FROM gpu_neighbors('cubes', 2) $$, $$ SELECT id, neighbors FROM gpu_neighbors('arrays', 2) $$,
  'neighbours of cubes');
INSERT INTO cubes VALUES (300, '(1,1),(2,2)');
SELECT is(failure($$ gpu_selfjoin('cubes', 1) $$), '22023 the value of row 300 of relation "cubes" is no point', 'a cube with an extent');
UPDATE cubes SET c = '(1,2,3)' WHERE id = 300;
SELECT is(failure($$ gpu_selfjoin('cubes', 1) $$), '22000 vectors of relation "cubes" have different numbers of dimensions',
  'a cube of other dimensions');
UPDATE cubes SET c = cube('{}'::float8[]) WHERE id = 300;
SELECT is(failure($$ gpu_selfjoin('cubes', 1) $$), '22000 the vector of row 300 of relation "cubes" has no dimensions',
  'a cube without dimensions');
-- Types of PostgreSQL's own come first where no column is named.
CREATE TABLE both_kinds AS SELECT a.id, c.c, a.v FROM arrays a JOIN cubes c USING (id) WHERE a.id < 200;
UPDATE both_kinds SET c = NULL;
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin('both_kinds', 2, id_column => 'id') $$,
  $$ SELECT a.id::bigint AS id1, b.id::bigint AS id2 FROM both_kinds a JOIN both_kinds b ON a.v <-> b.v <= 2 $$, 'the array is the default');
SELECT is_empty($$ SELECT * FROM gpu_selfjoin('both_kinds', 2, id_column => 'id', vector_columns => '{c}') $$, 'the cube is named');
\endif

\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
CREATE TABLE places (id int PRIMARY KEY, g geometry);
INSERT INTO places SELECT id, ST_SetSRID(ST_MakePoint(v[1], v[2]), 3857) FROM arrays;
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin_distance('places', 2) $$, $$ SELECT * FROM gpu_selfjoin_distance('arrays', 2) $$, 'geometries');
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin('places', 2, pairs => 'unordered') $$,
  $$ SELECT a.id::bigint AS id1, b.id::bigint AS id2 FROM places a JOIN places b ON ST_DWithin(a.g, b.g, 2) AND a.id < b.id
     WHERE a.id < 202 AND b.id < 202 UNION ALL VALUES (204::bigint, 205::bigint) $$, 'PostGIS thinks so, too');
INSERT INTO places VALUES (300, ST_SetSRID('POINT EMPTY'::geometry, 3857)), (301, ST_SetSRID(ST_MakePoint(3, 4, 5), 3857));
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin('places', 0) WHERE id1 >= 300 AND id2 >= 300 $$, 'VALUES (301::bigint, 301::bigint)',
  'what is empty matches nothing, and a height counts for nothing');
INSERT INTO places VALUES (302, ST_SetSRID('LINESTRING(0 0, 1 1)'::geometry, 3857));
SELECT is(failure($$ gpu_selfjoin('places', 1) $$), '22023 the value of row 302 of relation "places" is no point', 'a line');
UPDATE places SET g = ST_MakePoint(0, 0) WHERE id = 302;
SELECT is(failure($$ gpu_selfjoin('places', 1) $$), '22023 the vector of row 302 of relation "places" has another SRID than those before it',
  'two SRIDs in a table');
CREATE TABLE elsewhere AS SELECT id, ST_SetSRID(g, 4326) AS g FROM places;
DELETE FROM places WHERE id = 302;
SELECT is(failure($$ gpu_join('places', 'elsewhere', 1, right_id_column => 'id') $$),
  '22023 geometries of relations "places" and "elsewhere" have different SRIDs: 3857 and 4326', 'two tables of two SRIDs');
\endif

SELECT * FROM finish();
ROLLBACK;
