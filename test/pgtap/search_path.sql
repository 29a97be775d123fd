-- Nothing that lies in front of the search_path changes what a join reads or computes.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA victim;
CREATE TABLE victim.points (id int PRIMARY KEY, v float8[], v4 float4[], p point, x numeric, y numeric, i int);
INSERT INTO victim.points
  SELECT i, ARRAY[x, y], ARRAY[x, y], point(x, y), x, y, i
  FROM generate_series(1, 60) i, LATERAL (SELECT i * 7 % 11 AS x, i * 5 % 13 AS y) c;

SELECT is(count(*), 256::bigint, 'of these points, 256 pairs are within 2')
FROM victim.points a, victim.points b WHERE (a.x - b.x) ^ 2 + (a.y - b.y) ^ 2 <= 4;

-- Every name that a join could look up: types, casts' functions, operators, tables; all of them wrong.
CREATE SCHEMA hostile;
CREATE DOMAIN hostile.float8 AS text;
CREATE DOMAIN hostile.float4 AS text;
CREATE DOMAIN hostile.numeric AS text;
CREATE DOMAIN hostile.bigint AS text;
CREATE DOMAIN hostile.int8 AS text;
CREATE DOMAIN hostile.int4 AS text;
CREATE DOMAIN hostile.regclass AS text;
CREATE DOMAIN hostile.point AS text;
CREATE DOMAIN hostile.name AS text;
CREATE TABLE hostile.points (id pg_catalog.int4, v pg_catalog.float8[]);
CREATE TABLE hostile.pg_class ();
CREATE TABLE hostile.pg_attribute ();
CREATE FUNCTION hostile.trap() RETURNS void LANGUAGE plpgsql AS
$$ BEGIN RAISE 'the trap has sprung' USING ERRCODE = 'XXTRP'; END $$;
CREATE FUNCTION hostile.float8(pg_catalog.numeric) RETURNS pg_catalog.float8 LANGUAGE sql AS
$$ SELECT 0::pg_catalog.float8 FROM hostile.trap() $$;
CREATE FUNCTION hostile.gpu_distance(pg_catalog.float8[], pg_catalog.float8[]) RETURNS pg_catalog.float8 LANGUAGE sql AS
$$ SELECT 0::pg_catalog.float8 FROM hostile.trap() $$;
CREATE FUNCTION hostile.equals(pg_catalog.int4, pg_catalog.int4) RETURNS boolean LANGUAGE sql AS
$$ SELECT true FROM hostile.trap() $$;
CREATE FUNCTION hostile.below(pg_catalog.float8, pg_catalog.float8) RETURNS boolean LANGUAGE sql AS
$$ SELECT true FROM hostile.trap() $$;
CREATE OPERATOR hostile.<-> (
  FUNCTION = hostile.gpu_distance, LEFTARG = pg_catalog.float8[], RIGHTARG = pg_catalog.float8[]);
CREATE OPERATOR hostile.= (FUNCTION = hostile.equals, LEFTARG = pg_catalog.int4, RIGHTARG = pg_catalog.int4);
CREATE OPERATOR hostile.<= (FUNCTION = hostile.below, LEFTARG = pg_catalog.float8, RIGHTARG = pg_catalog.float8);

-- Counts and sums a join's pairs under a search_path.
CREATE FUNCTION victim.answer(path text, call text, OUT pairs bigint, OUT ids numeric) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_catalog.set_config('search_path', path, true);
  EXECUTE 'SELECT pg_catalog.count(*), pg_catalog.sum(id1 OPERATOR(pg_catalog.*) id2) FROM ' || call INTO pairs, ids;
  PERFORM pg_catalog.set_config('search_path', 'public', true);
EXCEPTION WHEN OTHERS THEN
  PERFORM pg_catalog.set_config('search_path', 'public', true);
  RAISE;
END $$;
CREATE TABLE victim.calls AS SELECT regexp_replace(call, '\s+', ' ', 'g') AS call FROM unnest(ARRAY[
  $$ public.gpu_selfjoin('victim.points', 2, vector_columns => '{v}') $$,
  $$ public.gpu_selfjoin('victim.points', 2, vector_columns => '{v4}') $$,
  $$ public.gpu_selfjoin('victim.points', 2, vector_columns => '{p}') $$,
  $$ public.gpu_selfjoin('victim.points', 2, vector_columns => '{x,y}') $$,
  $$ public.gpu_selfjoin('victim.points', 2, 'i', '{v}') $$,
  $$ public.gpu_selfjoin_distance('victim.points', 2, vector_columns => '{x,y}') $$,
  $$ public.gpu_join('victim.points', 'victim.points', 2, left_vector_columns => '{v}',
    right_vector_columns => '{x,y}') $$,
  $$ public.gpu_join_distance('victim.points', 'victim.points', 2, NULL, 'i', '{p}', '{v4}') $$]) call;
SELECT is(
  victim.answer('hostile, pg_catalog, public', call), victim.answer('public', call),
  'objects in front of the search_path do not disturb' || call)
FROM victim.calls;
SELECT is(
  victim.answer('', call), victim.answer('public', call), 'an empty search_path does not disturb' || call)
FROM victim.calls;
SELECT is((victim.answer('public', call)).pairs, 256::bigint, 'the answer is that of the data:' || call)
FROM victim.calls;
SELECT throws_ok(
  $$ SELECT victim.answer('hostile, pg_catalog, public',
       'victim.points a, victim.points b, LATERAL (SELECT a.id AS id1, b.id AS id2) s WHERE a.v <-> b.v <= 2') $$,
  'XXTRP', 'the trap has sprung', 'the trap works');

-- A temporary table of the same name.
CREATE TEMP TABLE points (id int PRIMARY KEY, v float8[]);
INSERT INTO points VALUES (1, '{0}');
SELECT is(
  (victim.answer('victim, public', $$ gpu_selfjoin('victim.points', 2, vector_columns => '{v}') $$)).pairs, 256::bigint,
  'a temporary table of the same name is not read in place of the one that was named');

-- The view of someone else resolves names where it was made.
CREATE VIEW victim.near AS SELECT * FROM public.gpu_selfjoin('victim.points', 2, vector_columns => '{x,y}');
ALTER TABLE victim.points RENAME TO renamed;
CREATE TABLE victim.points (id int PRIMARY KEY, x numeric, y numeric);
SELECT is((victim.answer('hostile, pg_catalog, public', 'victim.near')).pairs, 256::bigint,
  'a view joins the table that it was made for, whatever it is called now');

SELECT * FROM finish();
ROLLBACK;
