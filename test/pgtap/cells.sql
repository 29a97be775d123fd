-- gpu_cell() and gpu_halo() of types of other extensions, each with the distances of its own arithmetic.
BEGIN;
SELECT * FROM no_plan();
SET client_min_messages = warning;
CREATE DOMAIN place AS float8[];
SELECT is(gpu_cell('{3.5,-1.5}'::place, 1), gpu_cell(point(3.5, -1.5), 1), 'a domain is its type');
SELECT bool_or(name = 'cube') AS has_cube, bool_or(name = 'postgis') AS has_postgis
FROM pg_available_extensions WHERE name IN ('cube', 'postgis') \gset

\if :has_cube
CREATE EXTENSION IF NOT EXISTS cube;
SELECT is(gpu_cell(cube(ARRAY[3.5, -1.5]), 1), gpu_cell(point(3.5, -1.5), 1), 'a cube lies where its point does');
SELECT is(gpu_cell(cube(ARRAY[3.5, -1.5, 7]), 1), gpu_cell(point(3.5, -1.5), 1), 'the first two dimensions count');
SELECT throws_ok($$ SELECT gpu_cell(cube(ARRAY[1, 1], ARRAY[2.0, 2]), 1) $$, '22023', 'a value is no point', 'a cube with an extent is none');
SELECT throws_ok($$ SELECT gpu_cell(cube(1.0), 1) $$, '22000', NULL, 'a cube of one dimension has distances to others, so that it has no cell of two');

-- Points on edges, by an ulp, eps apart: every distance of the type, against all pairs.
CREATE TEMP TABLE cubes AS SELECT row_number() OVER () AS id, cube(ARRAY[x, y]) AS c
  FROM unnest('{0,0.1,0.2,0.3,0.30000000000000004,-0.1,0.7,1,1e15,-1e15,1e-160}'::float8[]) x, unnest('{0,0.1,0.3,-0.3,1}'::float8[]) y;
CREATE FUNCTION wrong_cubes(operator text, width float8, eps float8) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE wrong bigint;
BEGIN
  EXECUTE format($q$ WITH expected AS MATERIALIZED (SELECT a.id AS a, b.id AS b, a.c %1$s b.c AS d FROM cubes a, cubes b),
    found AS MATERIALIZED (SELECT a.id AS a, b.id AS b FROM (SELECT *, gpu_cell(c, $1) AS cell FROM cubes) a
      JOIN (SELECT *, unnest(gpu_halo(c, $1, $2)) AS cell FROM cubes) b ON a.cell = b.cell AND a.c %1$s b.c <= $2)
    SELECT count(*) FROM ((SELECT a, b FROM expected WHERE d <= $2 EXCEPT ALL TABLE found)
      UNION ALL (TABLE found EXCEPT ALL SELECT a, b FROM expected WHERE d <= $2)) w $q$, operator) INTO wrong USING width, eps;
  RETURN wrong;
END $$;
SELECT is(wrong_cubes(operator, width, eps), 0::bigint, format('cubes, %s within %s, cells of %s', operator, eps, width))
  FROM unnest('{<->,<#>,<=>}'::text[]) operator, unnest('{0.1,0.3,1}'::float8[]) width, unnest('{0,0.1,0.3,0.7}'::float8[]) eps;
\else
SELECT skip('no cube', 1);
\endif

\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
SELECT is(gpu_cell(ST_Point(3.5, -1.5), 1), gpu_cell(point(3.5, -1.5), 1), 'a geometry lies where its point does');
SELECT is(gpu_cell(ST_MakePoint(3.5, -1.5, 7), 1), gpu_cell(point(3.5, -1.5), 1), 'in the plane');
SELECT throws_ok($$ SELECT gpu_cell('LINESTRING(0 0, 1 1)'::geometry, 1) $$, '22023', 'a value is no point', 'a line is none');
SELECT is(gpu_halo('POINT EMPTY'::geometry, 1, 0.1), ARRAY[gpu_cell('POINT EMPTY'::geometry, 1)], 'an empty point has a cell');
CREATE TABLE spots AS SELECT x * 10 + y AS id, ST_Point(x * 0.1, y * 0.1) AS g FROM generate_series(-10, 10) x, generate_series(0, 9) y;
SELECT bag_eq(format($$ SELECT a.id, b.id AS id2 FROM (SELECT *, gpu_cell(g, %1$s) AS cell FROM spots) a
    JOIN (SELECT *, unnest(gpu_halo(g, %1$s, 0.3)) AS cell FROM spots) b ON a.cell = b.cell AND ST_DWithin(a.g, b.g, 0.3) $$, width),
  'SELECT a.id, b.id AS id2 FROM spots a, spots b WHERE ST_Distance(a.g, b.g) <= 0.3', 'geometries, cells of ' || width)
  FROM unnest('{0.1,0.3,1}'::float8[]) width;
\else
SELECT skip('no PostGIS', 1);
\endif

SELECT * FROM finish();
ROLLBACK;
