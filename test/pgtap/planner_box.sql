-- Joins of boxes in plain SQL: && of PostgreSQL's box, of cube and of PostGIS, ST_Intersects, and distances of what is
-- no point. With the node GpuSimilarityJoin and without it the same rows.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA planner_box;
SET search_path = planner_box, public;
SET jit = off;
SET extra_float_digits = 1;

\ir same_rows.psql

CREATE TABLE kinds (name text, query text);
INSERT INTO kinds VALUES
  ('inner', 'SELECT l.id, r.id FROM %2$s l JOIN %2$s r ON %1$s'),
  ('filtered', 'SELECT l.id, r.id FROM %2$s l, %2$s r WHERE %1$s AND l.id < r.id AND l.id %% 3 = r.id %% 3'),
  ('left', 'SELECT l.id, r.id FROM %2$s l LEFT JOIN %2$s r ON %1$s AND r.id %% 5 = 0'),
  ('exists', 'SELECT l.id FROM %2$s l WHERE EXISTS (SELECT FROM %2$s r WHERE %1$s AND l.id <> r.id)'),
  ('any', 'SELECT l.id FROM %2$s l WHERE EXISTS (SELECT FROM (SELECT * FROM %2$s WHERE id %% 7 = 1) r WHERE %1$s)'),
  ('anti', 'SELECT l.id FROM %2$s l WHERE NOT EXISTS (SELECT FROM (SELECT * FROM %2$s WHERE id %% 7 = 1) r WHERE %1$s)'),
  ('count', 'SELECT count(*) FROM %2$s l JOIN %2$s r ON %1$s'),
  ('grouped', 'SELECT l.id, count(*) FROM %2$s l JOIN %2$s r ON %1$s GROUP BY l.id'),
  ('limited', 'SELECT count(*) FROM (SELECT 1 FROM %2$s l JOIN %2$s r ON %1$s LIMIT 7) s'),
  ('nothing', 'SELECT l.id, r.id FROM %2$s l JOIN (SELECT * FROM %2$s LIMIT 0) r ON %1$s');

-- To box bounds are the same that differ by 1e-6, rounded: around there is where it hurts.
CREATE TABLE boxes (id int PRIMARY KEY, b box);
INSERT INTO boxes SELECT i, box(point(i * 7 % 31, i * 5 % 29), point(i * 7 % 31 + i % 4, i * 5 % 29 + i % 3 * 0.5))
  FROM generate_series(1, 150) i;
INSERT INTO boxes SELECT 200 + row_number() OVER (), b FROM (
  SELECT box(point(x, 0), point(y, 1)) AS b FROM (VALUES (1e-6::float8), (1.0000000000000002e-6), (9.999999999999999e-7),
    (2e-6), (0), (-1e-6), (-1.0000000000000002e-6), (1), (1.000001), (1.0000010000000001), (0.9999989999999999), (1e9),
    (1000000000.000001), (1000000000.0000011), (1e10), (10000000000.000002), (1e16), (1e16 + 2), (1e300), ('Infinity'),
    ('-Infinity'), ('NaN')) t(x), LATERAL (VALUES (x), (x + 1), (0)) u(y)) s;
INSERT INTO boxes VALUES (0, NULL), (300, box(point('-Infinity', '-Infinity'), point('Infinity', 'Infinity')));
ANALYZE boxes;
SELECT same_rows(format(query, clause, 'boxes'), true, format('box, %s: %s', name, clause))
FROM kinds, unnest('{l.b && r.b,r.b && l.b}'::text[]) clause;
SELECT is(property('Rechecked Pairs', 'SELECT l.id, r.id FROM boxes l JOIN boxes r ON l.b && r.b'), '0',
  'what overlaps is decided by the engine');
SELECT same_rows('SELECT l.id, r.id FROM boxes l JOIN boxes r ON ' || clause, uses_node, clause)
FROM (VALUES ('NOT l.b && r.b', false), ('l.b && r.b AND l.b << r.b', true), ('l.b && box ''(0,0),(3,3)''', false),
  ('l.b && r.b OR l.id = r.id', false), ('l.b && l.b', false), ('l.b @> r.b', true), ('(l.b && r.b) IS NULL', false),
  ('l.b && (r.b + point(1, 1))', true), ('box(l.b[0], l.b[0]) && r.b AND l.b <-> r.b < 1', true),
  ('ARRAY[l.id] && ARRAY[r.id, 7]', false), ('l.b && r.b AND (r.b && l.b)', true)) c(clause, uses_node);
SELECT same_rows('SELECT l.id, r.id, l.b <-> r.b AS d FROM boxes l JOIN boxes r ON l.b && r.b AND l.id < 100 AND r.id < 100
  ORDER BY d, 1, 2 LIMIT 20', true, 'no order by a score');
CREATE TABLE many AS SELECT i AS id, box(point(i, i % 7), point(i + 1.5, i % 7 + 1)) AS b FROM generate_series(1, 1500) i;
SELECT same_rows('SELECT l.id, r.id FROM boxes l JOIN many r ON l.b && r.b', true, 'sides of unequal sizes');
SELECT same_rows('SELECT l.id, r.id FROM many l LEFT JOIN boxes r ON r.b && l.b', true, 'and the other way');
SELECT same_rows('SELECT n, c FROM generate_series(1, 5) n, LATERAL (SELECT count(*) AS c FROM boxes l JOIN many r
  ON l.b && r.b AND r.id % n = 0) s', NULL, 'LATERAL');
PREPARE overlapping(int) AS SELECT l.id, r.id FROM boxes l JOIN many r ON l.b && r.b WHERE r.id < $1;
SELECT same_rows(format('EXECUTE overlapping(%s)', n), NULL, format('prepared: %s', n)) FROM unnest('{0,100,1000}'::int[]) n;

SELECT bool_or(name = 'cube') AS has_cube, bool_or(name = 'postgis') AS has_postgis
FROM pg_available_extensions \gset

-- Cubes of any number of dimensions meet: those that one lacks are 0.
\if :has_cube
CREATE EXTENSION IF NOT EXISTS cube;
CREATE TABLE cubes (id int, c cube);
INSERT INTO cubes SELECT i, CASE i % 6 WHEN 0 THEN cube(ARRAY[x, y]) WHEN 1 THEN cube(ARRAY[x, y], ARRAY[x + 1, y - 2])
    WHEN 2 THEN cube(x) WHEN 3 THEN cube(ARRAY[x, y, -1], ARRAY[x, y, i % 3 - 1]) WHEN 4 THEN cube(ARRAY[x, y, 0, i % 2])
    ELSE cube(x, x + 3) END
  FROM generate_series(1, 120) i, LATERAL (SELECT (i * 7 % 13)::float8 AS x, (i * 5 % 11)::float8 AS y) s;
INSERT INTO cubes VALUES (200, NULL), (201, cube('{}'::float8[])), (202, '(-Infinity,0),(Infinity,0)'),
  (203, '(0,0,0,0,0,0,0,0)'), (204, '(1,1,0,0,0,0,0,0),(0,0,1,1,1,1,1,-1)'), (205, '(5e-324)'), (206, '(0),(5e-324)'),
  (207, '(1,Infinity),(2,0)'), (208, '(-0)');
CREATE TABLE flat AS SELECT id, cube(ARRAY[id % 13, id % 7], ARRAY[id % 13 + 1, id % 7 + 1]) AS c FROM cubes;
CREATE TABLE high AS SELECT * FROM cubes UNION ALL VALUES (300, '(0,0,0,0,0,0,0,0,0),(1,1,1,1,1,1,1,1,1)'::cube),
  (301, '(0,0,0,0,0,0,0,0,0,2)');
CREATE TABLE unknown AS SELECT * FROM flat UNION ALL VALUES (300, '(NaN,0),(1,1)'::cube), (301, '(NaN)');
ANALYZE cubes, flat, high, unknown;
SELECT same_rows(format(query, clause, t), true, format('%s, %s: %s', t, name, clause))
FROM kinds, unnest('{cubes,flat,high,unknown}'::text[]) t, unnest('{l.c && r.c,r.c && l.c}'::text[]) clause;
SELECT same_rows(format(query, clause, t), true, format('%s, %s: %s', t, name, clause))
FROM kinds, unnest('{cubes,flat,high,unknown}'::text[]) t,
  unnest('{l.c <-> r.c <= 1,l.c <#> r.c < 2,2 >= l.c <=> r.c,r.c <-> l.c <= 0}'::text[]) clause WHERE name NOT LIKE '%n%ed';
SELECT is(property('Join Method', format('SELECT l.id, r.id FROM %s l JOIN %1$s r ON l.c && r.c', t)), 'Box Join', t)
FROM unnest('{cubes,flat}'::text[]) t;
SELECT is(property('Rechecked Pairs', format('SELECT l.id, r.id FROM %s l JOIN %1$s r ON l.c && r.c', t)), '0',
  t || ': decided by the engine') FROM unnest('{cubes,flat}'::text[]) t;
SELECT is(property('Counts', 'SELECT count(*) FROM cubes l JOIN cubes r ON l.c && r.c'), 'pairs', 'counted by the engine');
SELECT is(property('Box Method', format('SELECT l.id, r.id FROM %s l JOIN %1$s r ON l.c <-> r.c < 1', t)), 'none',
  t || ': boxes by distance') FROM unnest('{cubes,high}'::text[]) t;
SELECT cmp_ok(property('Odd Rows', format('SELECT l.id, r.id FROM %s l JOIN %1$s r ON l.c && r.c', t))::int, '>', 0,
  t || ': the operator is asked for odd rows') FROM unnest('{high,unknown}'::text[]) t;
SELECT same_rows('SELECT l.id, r.id FROM cubes l JOIN cubes r ON ' || clause, uses_node, clause)
FROM (VALUES ('l.c @> r.c', false), ('l.c && r.c AND l.c @> r.c', true), ('cube_enlarge(l.c, 1, 2) && r.c', true),
  ('l.c && ''(0,0),(1,1)''', false), ('cube_overlap(l.c, r.c)', true)) c(clause, uses_node);
\else
SELECT skip('no cube', 1);
\endif

-- Geometries have boxes in single precision, rounded outwards; their own shapes are asked where a function asks.
\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
CREATE TABLE shapes (id int, g geometry);
INSERT INTO shapes SELECT i, CASE i % 12 WHEN 0 THEN ST_MakePoint(x, y) WHEN 1 THEN ST_MakeLine(ST_MakePoint(x, y), ST_MakePoint(x - 2, y + 1))
    WHEN 2 THEN ST_Buffer(ST_MakePoint(x, y), 1) WHEN 3 THEN ST_MakeEnvelope(x, y, x + 2, y + 1) WHEN 4 THEN ST_Multi(ST_MakePoint(x, y))
    WHEN 5 THEN ST_Multi(ST_MakeLine(ST_MakePoint(x, y), ST_MakePoint(x + 1, y)))
    WHEN 6 THEN ST_Collect(ST_MakePoint(x, y), ST_MakePoint(y, x)) WHEN 7 THEN ST_MakePoint(x, y, 5)
    WHEN 8 THEN ST_Buffer(ST_MakePoint(x, y), 0.3) WHEN 9 THEN ST_ForceCollection(ST_MakePoint(x, y))
    WHEN 10 THEN ST_MakePoint(x + 1e-9, y) ELSE ST_Force4D(ST_MakeLine(ST_MakePoint(x, y), ST_MakePoint(x, y + 2))) END
  FROM generate_series(1, 144) i, LATERAL (SELECT (i * 7 % 23)::float8 / 3 AS x, (i * 5 % 19)::float8 AS y) s;
INSERT INTO shapes VALUES (200, NULL), (201, 'POINT EMPTY'), (202, 'POLYGON EMPTY'), (203, 'GEOMETRYCOLLECTION EMPTY'),
  (204, 'GEOMETRYCOLLECTION(POINT EMPTY)'), (205, 'MULTIPOINT EMPTY'), (206, 'POINT(0.1 0.1)'), (207, 'POINT(0.10000000149 0.1)'),
  (208, 'POINT(0.100000000000001 0.1)'), (209, 'LINESTRING(0.1 0.1, 0.2 0.3)'), (210, 'POLYGON((0 0, 0.1 0, 0.1 0.1, 0 0))'),
  (211, 'POINT(1e300 1)'), (212, 'POINT(1e250 1)'), (213, 'POINT(-1e300 1)'), (214, 'POINT(16777217 0)'), (215, 'POINT(16777216 0)'),
  (216, 'LINESTRING(16777215 0, 16777218 0)'), (217, 'POINT(1e-60 0)'), (218, 'POINT(-1e-60 0)'), (219, 'POINT(0 0)'),
  (220, 'POINT(0.099999995 0.1)'), (221, 'POINT(0.1000000052 0.1)');
CREATE TABLE places AS SELECT id, ST_SetSRID(g, 4326) AS g FROM shapes WHERE ST_GeometryType(g) = 'ST_Point';
CREATE TABLE systems AS SELECT id, ST_SetSRID(g, id % 2 * 4326) AS g FROM shapes;
ANALYZE shapes, places, systems;
SELECT same_rows(format(query, clause, t), true, format('%s, %s: %s', t, name, clause))
FROM kinds, unnest('{shapes,places}'::text[]) t, unnest(ARRAY['l.g && r.g', 'r.g && l.g', 'ST_Intersects(l.g, r.g)',
  'l.g && r.g AND ST_Intersects(r.g, l.g)', 'ST_DWithin(l.g, r.g, 0.5)', 'ST_DWithin(l.g, r.g, 0)']) clause;
SELECT same_rows(format('SELECT l.id, r.id FROM systems l JOIN systems r ON ' || clause), NULL, 'two systems: ' || clause)
FROM unnest('{"l.g && r.g","ST_Intersects(l.g, r.g)","ST_DWithin(l.g, r.g, 1)"}'::text[]) clause;
SELECT same_rows('SELECT l.id, r.id FROM shapes l JOIN shapes r ON ' || clause, uses_node, clause)
FROM (VALUES ('l.g && r.g AND ST_Contains(l.g, r.g)', true), ('ST_Contains(l.g, r.g)', true), ('ST_Equals(l.g, r.g)', true), ('ST_Disjoint(l.g, r.g)', false), ('l.g &&& r.g', true),
  ('l.g ~ r.g', false), ('ST_Expand(l.g, 1) && r.g', true), ('NOT ST_Intersects(l.g, r.g)', false),
  ('ST_Intersects(ST_Buffer(l.g, 0.5), ST_Centroid(r.g)) AND l.id < 150 AND r.id < 150', NULL)) c(clause, uses_node);
SELECT same_rows(format(query, format('ST_%s(%s)', relation, operands), t), true, format('%s, %s: %s of %s', t, name, relation, operands))
FROM kinds, unnest('{shapes,places}'::text[]) t, unnest('{"l.g, r.g","r.g, l.g"}'::text[]) operands,
  unnest('{Contains,ContainsProperly,Within,Covers,CoveredBy,Crosses,Overlaps,Touches}'::text[]) relation;
SELECT is(property('Join Method', 'SELECT l.id, r.id FROM shapes l JOIN shapes r ON ' || clause), 'Box Join', clause || ' by boxes')
FROM unnest('{"l.g && r.g","ST_Intersects(l.g, r.g)","ST_DWithin(l.g, r.g, 0.5)"}'::text[]) clause;
CREATE TABLE areas AS SELECT id, g FROM shapes WHERE ST_Area(g) > 0;
SELECT is(property('Rechecked Pairs', 'SELECT l.id, r.id FROM areas l JOIN areas r ON l.g && r.g'), '0', 'boxes of their own decide');
SELECT is(property('Counts', 'SELECT count(*) FROM areas l JOIN areas r ON l.g && r.g'), 'pairs', 'and are counted');
SELECT same_rows(format(query, clause, 'areas'), true, format('areas, %s: %s', name, clause))
FROM kinds, unnest('{"l.g && r.g","ST_Intersects(l.g, r.g)"}'::text[]) clause;
SELECT cmp_ok(property('Rechecked Pairs', 'SELECT l.id, r.id FROM areas l JOIN areas r ON ST_Intersects(l.g, r.g)')::int, '>', 0,
  'shapes are asked');
-- Of a long value only the beginning is read.
CREATE TABLE long (id int, g geometry);
ALTER TABLE long ALTER g SET STORAGE external;
INSERT INTO long SELECT i, ST_Buffer(ST_MakePoint(i % 7, i % 5), 1 + i % 3, 60) FROM generate_series(1, 20) i;
INSERT INTO long SELECT 30 + i, ST_Buffer(ST_MakePoint(i % 7, i % 5), 1, 60 + i) FROM generate_series(1, 3) i;
ANALYZE long;
SELECT same_rows(format(query, clause, 'long'), true, format('long values, %s: %s', name, clause))
FROM kinds, unnest('{"l.g && r.g","ST_Intersects(l.g, r.g)","ST_DWithin(l.g, r.g, 0.5)"}'::text[]) clause;
SELECT is(property('Rechecked Pairs', 'SELECT l.id, r.id FROM long l JOIN long r ON l.g && r.g'), '0', 'whose boxes decide');
INSERT INTO long VALUES (100, repeat('GEOMETRYCOLLECTION(', 50) || 'POINT(1 1)' || repeat(')', 50)),
  (101, postgis_dropbbox(ST_MakeLine(ST_MakePoint(0, 0), ST_MakePoint(3, 3))));
SELECT same_rows(format(query, 'l.g && r.g', 'long'), true, format('nested values, %s', name)) FROM kinds;
SELECT is(property('Join Method', 'SELECT l.id, r.id FROM long l JOIN long r ON l.g && r.g'), 'Box Join', 'are boxes, too');
INSERT INTO long VALUES (102, repeat('GEOMETRYCOLLECTION(', 150) || 'POINT(1 1)' || repeat(')', 150)),
  (103, postgis_dropbbox(ST_Boundary(ST_Buffer(ST_MakePoint(0, 0), 3, 100))));
SELECT same_rows(format(query, 'l.g && r.g', 'long'), true, format('values without a box at their beginning, %s', name)) FROM kinds;

-- Pairs of one large area follow each other, on either side: PostGIS prepares it once.
CREATE TABLE regions AS SELECT i AS id, ST_Buffer(ST_MakePoint(i % 3 * 4, i / 3 * 4), 3, 100) AS g FROM generate_series(1, 6) i;
CREATE TABLE visits AS SELECT i AS id, ST_MakePoint(i * 37 % 101 / 8.0, i * 53 % 103 / 8.0) AS g FROM generate_series(1, 900) i;
ANALYZE regions, visits;
CREATE FUNCTION changes(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  changes bigint;
BEGIN
  EXECUTE format('SELECT count(*) FROM (SELECT id, lag(id) OVER () AS before FROM (%s OFFSET 0) s) t WHERE id IS DISTINCT FROM before', query)
    INTO changes;
  RETURN changes;
END $$;
SELECT same_rows(query, true, 'large areas, ' || query) FROM force_node(true), unnest(ARRAY[
  'SELECT r.id, v.id FROM regions r JOIN visits v ON ST_Intersects(r.g, v.g)',
  'SELECT r.id, v.id FROM visits v LEFT JOIN regions r ON ST_Intersects(r.g, v.g)',
  'SELECT v.id FROM visits v WHERE EXISTS (SELECT FROM regions r WHERE ST_Contains(r.g, v.g))',
  'SELECT r.id, v.id FROM regions r JOIN visits v ON r.id < 3 AND ST_DWithin(r.g, v.g, 0.1)']) query;
SELECT cmp_ok(changes(query), '<=', 20::bigint, 'in order, ' || query) FROM force_node(true), unnest(ARRAY[
  'SELECT r.id FROM regions r JOIN visits v ON ST_Intersects(r.g, v.g)',
  'SELECT r.id FROM visits v LEFT JOIN regions r ON ST_Intersects(r.g, v.g) WHERE r.id IS NOT NULL',
  'SELECT r.id FROM visits v JOIN regions r ON ST_Contains(r.g, v.g) AND v.id < 700',
  'SELECT r.id FROM regions r JOIN visits v ON r.id < 3 AND ST_DWithin(r.g, v.g, 0.1)',
  'SELECT r.id FROM visits v JOIN regions r ON r.id < 3 AND ST_DWithin(r.g, v.g, 0.1)']) query;
SELECT force_node(false);
CREATE INDEX ON shapes USING gist (g);
ANALYZE shapes;
SELECT same_rows('SELECT l.id, r.id FROM shapes l JOIN places r ON ST_Intersects(ST_SetSRID(l.g, 4326), r.g)', NULL, 'with an index');
\else
SELECT skip('no PostGIS', 1);
\endif

-- Every method returns the same.
CREATE TABLE answer AS SELECT bag('SELECT l.id, r.id FROM boxes l JOIN many r ON l.b && r.b') AS rows;
SELECT is(bag('SELECT l.id, r.id FROM boxes l JOIN many r ON l.b && r.b'), rows, 'by ' || method)
FROM answer, unnest('{layered_grid,sort_sweep,none}'::text[]) method, force_node(true), set_config('gpujoin.box_method', method, true);
SELECT is(property('Box Method', 'SELECT l.id, r.id FROM boxes l JOIN many r ON l.b && r.b'), method, method || ' by name')
FROM unnest('{layered_grid,sort_sweep,none}'::text[]) method, set_config('gpujoin.box_method', method, true);

SELECT * FROM finish();
ROLLBACK;
