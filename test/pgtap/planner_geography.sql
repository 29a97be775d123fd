-- Metres on the Earth: geography of PostGIS, on the spheroid and on the sphere, in every form that its conditions have. With the
-- node GpuSimilarityJoin and without it the same rows.
BEGIN;
SELECT * FROM no_plan();
SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgis') AS has_postgis \gset
\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
CREATE SCHEMA planner_geography;
SET search_path = planner_geography, public;
SET jit = off;
SET client_min_messages = error; -- coordinates beyond 90 degrees are coerced
\ir same_rows.psql

-- Points all over the Earth, around the poles, on both sides of the date line, in a town, and some of them twice.
CREATE FUNCTION place(longitude float8, latitude float8) RETURNS geography LANGUAGE sql IMMUTABLE
  RETURN ST_SetSRID(ST_MakePoint(longitude, latitude), 4326)::geography;
CREATE TABLE places (id int PRIMARY KEY, kind text, g geography);
INSERT INTO places SELECT i, 'earth', place(i * 137.50776 - floor(i * 137.50776 / 360) * 360 - 180, degrees(asin(2 * (i - 0.5) / 90 - 1)))
  FROM generate_series(1, 90) i;
INSERT INTO places SELECT 100 + i, 'pole', place(i * 61 % 360 - 180, (90 - i * 0.002) * (i % 2 * 2 - 1)) FROM generate_series(1, 30) i;
INSERT INTO places SELECT 200 + i, 'date line', place((180 - i * 0.0007) * (i % 2 * 2 - 1), i * 37 % 100 * 0.001 + 10) FROM generate_series(1, 30) i;
INSERT INTO places SELECT 300 + i, 'town', place(10 + i * 7 % 31 * 0.001, 50 + i * 5 % 29 * 0.001) FROM generate_series(1, 70) i;
INSERT INTO places SELECT 400 + i, 'corner', g FROM unnest(ARRAY[place(0, 0), place(0, 90), place(45, 90), place(0, -90), place(180, 0),
  place(-180, 0), place(180, 90), place(90, 0), place(179.9999999, 0), place(0, 0.0000001)]) WITH ORDINALITY t(g, i);
INSERT INTO places VALUES (0, 'none', NULL), (500, 'empty', 'POINT EMPTY'), (501, 'with Z', 'POINT Z (10 50 1000)');
ANALYZE places;

CREATE TABLE conditions (name text, condition text);
INSERT INTO conditions
SELECT format(form, r), format(form, r)
FROM unnest('{0,0.0005,0.02,500,111319.490793,2500000,15000001,20003930,Infinity}'::float8[]) r,
  unnest(ARRAY['ST_DWithin(l.g, r.g, %L::float8)', 'ST_DWithin(l.g, r.g, %L, false)', 'ST_Distance(l.g, r.g) <= %L::float8',
    'ST_DistanceSpheroid(l.g::geometry, r.g::geometry) <= %L::float8']) form;
-- Radii that are the distances of two places, from millimetres to antipodes.
INSERT INTO conditions
SELECT format('%s of %s and %s', comparison, l.id, r.id), format('ST_Distance(l.g, r.g) %s %L::float8', comparison, ST_Distance(l.g, r.g))
FROM generate_series(1, 20) i JOIN places l ON l.id = i * 53 % 411 JOIN places r ON r.id = (i * 97 + 1) % 411, unnest('{<,<=}'::text[]) comparison;
INSERT INTO conditions VALUES ('<', 'ST_Distance(l.g, r.g) < 111319.49079327358'), ('<=', 'ST_Distance(l.g, r.g) <= 111319.49079327358'),
  ('turned round', '500 >= ST_Distance(r.g, l.g, false)'), ('<->', 'l.g <-> r.g < 5000'), ('sphere', 'ST_Distance(l.g, r.g, false) < 90000'),
  ('DistanceSphere', 'ST_DistanceSphere(l.g::geometry, r.g::geometry) < 3000'), ('negative', 'ST_Distance(l.g, r.g) < -1'),
  ('cast', 'ST_DWithin(l.g::geometry::geography, r.g, 3000)'), ('NaN', 'ST_Distance(l.g, r.g) < ''NaN''');
SELECT same_rows('SELECT l.id, r.id FROM places l JOIN places r ON ' || condition, true, name) FROM conditions;
SELECT same_rows(format(query, 'ST_DWithin(l.g, r.g, 5000)'), true, format('within 5 km: %s', query))
FROM unnest(ARRAY['SELECT l.id, r.id FROM places l LEFT JOIN places r ON %s AND r.kind <> ''town''',
  'SELECT l.id FROM places l WHERE EXISTS (SELECT FROM places r WHERE %s AND l.id <> r.id)',
  'SELECT l.id FROM places l WHERE NOT EXISTS (SELECT FROM places r WHERE %s AND l.id <> r.id)',
  'SELECT l.kind, count(*), min(r.id) FROM places l JOIN places r ON %s GROUP BY 1',
  'SELECT l.id, r.id, ST_Distance(l.g, r.g) FROM places l JOIN places r ON %s AND l.kind = r.kind AND l.id < r.id']) query;
SELECT same_rows('SELECT l.id, r.id FROM places l JOIN places r ON ' || condition, false, condition)
FROM unnest(ARRAY['ST_DWithin(l.g, r.g, 5000, l.id < 100)', 'NOT ST_DWithin(l.g, r.g, 15000000)']) condition;
SELECT same_rows('SELECT ST_Distance(l.g, r.g) AS d, l.id, r.id FROM places l JOIN places r ON ST_DWithin(l.g, r.g, 50000) AND l.id < r.id
  ORDER BY 1, 2, 3 LIMIT 50', NULL, 'the nearest pairs');

-- The shell around the radius is thin.
SELECT cmp_ok(property('Evaluated Pairs', query)::int, '<', property('Pairs', query)::int / 10, 'most pairs need no question')
FROM (VALUES ('SELECT l.id, r.id FROM places l JOIN places r ON ST_DWithin(l.g, r.g, 1200)')) q(query);
SELECT cmp_ok(property('Evaluated Pairs', query)::int, '<', 20, 'hardly any: ' || query)
FROM unnest(ARRAY['SELECT l.id, r.id FROM places l JOIN places r ON ST_DWithin(l.g, r.g, 1200.5, false)',
  'SELECT l.id, r.id FROM places l JOIN places r ON ST_DWithin(l.g, r.g, 1200.5)',
  'SELECT l.id, r.id FROM places l JOIN places r ON ST_DistanceSpheroid(l.g::geometry, r.g::geometry) < 1200.5 AND l.id < 500 AND r.id < 500']) query;

-- Lines, polygons and collections by the boxes that they are stored with; other coordinate systems are odd rows.
CREATE TABLE shapes (id int, g geography);
INSERT INTO shapes SELECT id, CASE id % 6 WHEN 0 THEN g WHEN 1 THEN ST_Buffer(g, 30 + id)
    WHEN 2 THEN ST_MakeLine(g::geometry, ST_SetSRID(ST_MakePoint(id % 340 - 170, id % 170 - 85), 4326))::geography
    WHEN 3 THEN ST_MakeLine(ARRAY[g::geometry, ST_Translate(g::geometry, 0.001, 0), ST_Translate(g::geometry, 0.001, 0.002)])::geography
    WHEN 4 THEN ST_Collect(ARRAY[g::geometry])::geography ELSE ST_Multi(ST_Buffer(g, 100)::geometry)::geography END
FROM places WHERE kind IN ('town', 'earth') AND (kind = 'town' OR id % 5 = 0);
INSERT INTO shapes VALUES (901, 'POLYGON EMPTY'), (902, NULL), (903, 'POLYGON((-170 -80, 170 -80, 170 80, -170 80, -170 -80))'),
  (904, 'LINESTRING(0 80, 180 80)'), (905, 'GEOMETRYCOLLECTION(POINT(10 50), LINESTRING(10 50, 10.01 50))');
ANALYZE shapes;
SELECT same_rows('SELECT l.id, r.id FROM shapes l JOIN shapes r ON ' || condition, true, 'shapes: ' || condition)
FROM unnest(ARRAY['ST_DWithin(l.g, r.g, 400)', 'ST_DWithin(l.g, r.g, 400, false)', 'ST_Distance(l.g, r.g) < 50000']) condition;
SELECT same_rows('SELECT l.id, r.id FROM places l JOIN shapes r ON ST_DWithin(l.g, r.g, 400)', true, 'points and shapes');
-- A value that stands for NULL is none of a row without a match, so boxes of it cannot be made later.
SELECT same_rows('SELECT l.id, r.id FROM places l LEFT JOIN shapes r ON ST_DWithin(l.g, coalesce(r.g, ''POINT(0 0)''), 400)', true, 'shapes that stand for NULL');
SELECT same_rows('SELECT l.id, r.id FROM shapes l LEFT JOIN places r ON l.g <-> CASE WHEN r.id > 3 THEN r.g END < 400', true, 'shapes and some places');
SELECT cmp_ok(property('Odd Rows', 'SELECT l.id, r.id FROM shapes l JOIN shapes r ON ST_DWithin(l.g, r.g, 400)')::int, '>=', 2,
  'long shapes are odd rows');
SELECT is(property('Join Method', 'SELECT l.id, r.id FROM shapes l JOIN shapes r ON ST_DWithin(l.g, r.g, 400)'), 'Box Join', 'by boxes');
CREATE TABLE others AS SELECT id, ST_SetSRID(g::geometry, CASE id % 4 WHEN 0 THEN 4269 WHEN 1 THEN 4258 WHEN 2 THEN 4267 ELSE 4326 END)::geography AS g
  FROM places WHERE kind = 'town';
SELECT same_rows(format('SELECT l.id, r.id FROM others l JOIN others r ON ST_SRID(l.g::geometry) = %1$s AND ST_SRID(r.g::geometry) = %1$s
  AND ST_DWithin(l.g, r.g, 300)', srid), true, 'SRID ' || srid) FROM unnest('{4269,4258,4267,4326}'::int[]) srid;
SELECT same_rows('SELECT l.id, r.id FROM others l JOIN others r ON l.id % 4 >= 2 AND r.id % 4 >= 2 AND ST_DWithin(l.g, r.g, 300)', NULL,
  'two of them are an error');

-- Nearest places of each row.
SELECT same_rows('SELECT l.id, s.* FROM places l CROSS JOIN LATERAL (SELECT r.id, l.g <-> r.g AS d FROM places r WHERE r.kind <> ''corner''
  ORDER BY l.g <-> r.g, r.id LIMIT 5) s WHERE l.kind = ' || quote_literal(kind), NULL, 'nearest: ' || kind)
FROM unnest('{earth,town,pole}'::text[]) kind;
SELECT same_rows('SELECT l.id, s.* FROM places l CROSS JOIN LATERAL (SELECT r.id, ST_Distance(l.g, r.g) AS d FROM places r WHERE r.kind <> ''corner''
  ORDER BY ST_Distance(l.g, r.g), r.id LIMIT 5) s WHERE l.kind = ' || quote_literal(kind), NULL, 'nearest on the spheroid: ' || kind)
FROM unnest('{earth,town,pole}'::text[]) kind;

-- Geometries that are no places, for ST_DistanceSpheroid.
CREATE TABLE flat AS SELECT id, g::geometry AS g FROM shapes WHERE id % 2 = 0 AND NOT g::geometry IS NULL AND ST_GeometryType(g::geometry) <> 'ST_GeometryCollection'
  UNION ALL SELECT 1000 + id, ST_SetSRID(ST_Translate(g::geometry, 0, 41), 4326) FROM places WHERE kind = 'town' AND id % 9 = 0;
SELECT same_rows('SELECT l.id, r.id FROM flat l JOIN flat r ON ST_DistanceSpheroid(l.g, r.g) <= 5000', true, 'geometries on the spheroid');

-- The metric haversine measures on the same sphere.
SELECT cmp_ok(max(abs(gpu_distance(ARRAY[ST_X(l.p), ST_Y(l.p)], ARRAY[ST_X(r.p), ST_Y(r.p)], 'haversine') - ST_DistanceSphere(l.p, r.p))), '<', 0.0001::float8,
  'as ST_DistanceSphere') FROM (SELECT g::geometry AS p FROM places WHERE id BETWEEN 1 AND 499) l, (SELECT g::geometry AS p FROM places WHERE id BETWEEN 1 AND 499) r
WHERE ST_DistanceSphere(l.p, r.p) < 1.9e7;

-- Miles of earthdistance between points of degrees; what are none are odd rows.
CREATE EXTENSION IF NOT EXISTS earthdistance CASCADE;
CREATE TABLE degrees AS SELECT id, point(ST_X(g::geometry), ST_Y(g::geometry)) AS p FROM places WHERE id BETWEEN 1 AND 499;
INSERT INTO degrees VALUES (901, '(400,10)'), (902, '(10,100)'), (903, '(NaN,1)'), (904, '(Infinity,1)'), (905, NULL), (906, '(-350,50)');
ANALYZE degrees;
SELECT same_rows('SELECT l.id, r.id FROM degrees l JOIN degrees r ON ' || condition, true, condition)
FROM unnest(ARRAY['l.p <@> r.p < 0', 'l.p <@> r.p <= 0', 'l.p <@> r.p < 0.31', 'l.p <@> r.p <= 1.5', '300 >= r.p <@> l.p', 'l.p <@> r.p <= 12000',
  'l.p <@> r.p < 1.5 AND l.p ~= r.p', 'l.p <@> r.p < 1.5 AND l.p <-> r.p < 0.01']) condition;
SELECT same_rows('SELECT l.id, r.id, l.p <@> r.p FROM degrees l JOIN degrees r ON l.p <@> r.p < 2 AND l.id < r.id', true, 'miles are shown');
\else
SELECT skip('no PostGIS', 1);
\endif

SELECT * FROM finish();
ROLLBACK;
