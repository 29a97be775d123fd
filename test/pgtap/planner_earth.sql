-- Places in columns of degrees, in plain SQL: the metric haversine, and earthdistance's functions of SQL. With GpuSimilarityJoin and
-- without it the same rows. PostGIS' geography: planner_geography.sql; the functions: haversine.sql.
BEGIN;
SELECT * FROM no_plan();
CREATE EXTENSION IF NOT EXISTS earthdistance CASCADE;
CREATE SCHEMA planner_earth;
SET search_path = planner_earth, public;
SET jit = off;
\ir same_rows.psql

-- Places all over the Earth, around the poles, on both sides of the date line, in a town, exactly 0.01 degrees apart, and some twice.
CREATE TABLE places (id int PRIMARY KEY, kind text, lat float8, lon float8, r float8, odd float8, e earth, v float8[], s float4[], p point);
INSERT INTO places (id, kind, lon, lat) SELECT i, 'earth', i * 137.50776 - floor(i * 137.50776 / 360) * 360 - 180, degrees(asin(2 * (i - 0.5) / 26 - 1))
  FROM generate_series(1, 26) i;
INSERT INTO places (id, kind, lon, lat) SELECT 100 + i, 'pole', i * 61 % 360 - 180, (90 - i * 0.002) * (i % 2 * 2 - 1) FROM generate_series(1, 14) i;
INSERT INTO places (id, kind, lon, lat) SELECT 200 + i, 'date line', (180 - i * 0.0007) * (i % 2 * 2 - 1), i * 37 % 100 * 0.001 + 10 FROM generate_series(1, 14) i;
INSERT INTO places (id, kind, lon, lat) SELECT 300 + i, 'town', 10 + i * 7 % 31 * 0.001, 50 + i * 5 % 29 * 0.001 FROM generate_series(1, 22) i;
INSERT INTO places (id, kind, lon, lat) SELECT 400 + i, 'corner', x, y
  FROM (VALUES (1, 0, 0), (2, 0, 90), (3, 45, 90), (4, 0, -90), (5, 180, 0), (6, -180, 0), (7, 180, 90), (8, 90, 0), (9, 179.9999999, 0), (10, 0, 0.0000001)) c(i, x, y);
INSERT INTO places (id, kind, lon, lat) SELECT 500 + i, 'line', i * 0.01, 0 FROM generate_series(1, 9) i;
UPDATE places SET e = ll_to_earth(lat, lon), v = ARRAY[lon, lat], s = ARRAY[lon, lat], p = point(lon, lat), r = id % 7 * 300 - 300;
INSERT INTO places (id, kind) VALUES (0, 'none');
INSERT INTO places (id, kind, lat) VALUES (600, 'half', 50);
ANALYZE places;

-- Every form of a condition, at radii that are met exactly, too: of places on the equator one distance is 0.01 degrees'.
CREATE TABLE radii (r float8);
INSERT INTO radii VALUES ('-1'), (0), ('1e-320'), ('1e-9'), (500), (2500000), (20015086), (20015087), (2e7), ('Infinity'), ('NaN');
INSERT INTO radii SELECT gpu_distance(ARRAY[0, 0], ARRAY[0.01, 0], 'haversine') UNION SELECT earth_distance(ll_to_earth(0, 0), ll_to_earth(0, 0.01));
SELECT same_rows(format('SELECT l.id, r.id FROM places l JOIN places r ON ' || form, r), true, format(form, r))
FROM radii, unnest(ARRAY['gpu_distance(ARRAY[l.lon, l.lat], ARRAY[r.lon, r.lat], ''haversine'') <= %L::float8',
  'gpu_distance(l.v, r.v, ''haversine'') < %L::float8', '%L::float8 >= gpu_distance(r.s, l.s, ''haversine'')',
  'earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) <= %L::float8',
  'earth_distance(ll_to_earth(r.lat, r.lon), ll_to_earth(l.lat, l.lon)) < %L::float8',
    'earth_distance(l.e, r.e) < %L::float8', '%L::float8 >= earth_distance(l.e, ll_to_earth(r.lat, r.lon))', 'sec_to_gc(l.e <-> r.e) <= %L::float8']) form;
SELECT same_rows(format('SELECT l.id, r.id FROM places l JOIN places r ON ' || form, r), CASE WHEN r BETWEEN 100 AND 1e6 THEN true END, format(form, r))
FROM radii, unnest(ARRAY['earth_box(ll_to_earth(l.lat, l.lon), %L::float8) @> ll_to_earth(r.lat, r.lon)', 'll_to_earth(r.lat, r.lon) <@ earth_box(ll_to_earth(l.lat, l.lon), %L::float8)',
  'cube_enlarge(ll_to_earth(l.lat, l.lon), %L::float8, 3) @> ll_to_earth(r.lat, r.lon)', 'cube_enlarge(ll_to_earth(l.lat, l.lon), -1e12 * %L::float8, 3) @> ll_to_earth(r.lat, r.lon)']) form
WHERE r <> '1e-320';
UPDATE places SET odd = CASE kind WHEN 'town' THEN 'NaN' WHEN 'pole' THEN 'Infinity' WHEN 'line' THEN 1200 WHEN 'corner' THEN 3e7 ELSE 1e-200 END;
SELECT same_rows('SELECT l.id, r.id FROM places l JOIN places r ON ' || condition, NULL, condition)
FROM unnest(ARRAY['earth_distance(l.e, r.e) < l.odd', 'earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) <= r.odd',
  'cube_enlarge(ll_to_earth(l.lat, l.lon), r.odd, 3) @> ll_to_earth(r.lat, r.lon)']) condition;
SELECT same_rows(format('SELECT l.id, r.id FROM places l JOIN places r ON gpu_within(ARRAY[l.lon, l.lat], ARRAY[r.lon, r.lat], %L::float8, ''haversine'')', r), true,
  'within ' || r) FROM radii WHERE r >= 0 AND r < 'Infinity';
SELECT same_rows('SELECT l.id, r.id FROM places l JOIN places r ON ' || condition, true, condition)
FROM unnest(ARRAY['earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) < 500 AND earth_box(ll_to_earth(l.lat, l.lon), 500) @> ll_to_earth(r.lat, r.lon)',
  'earth_box(l.e, 500) @> r.e AND earth_distance(l.e, r.e) < 500', 'earth_distance(l.e, r.e) BETWEEN 0 AND 700',
  'NOT earth_distance(l.e, r.e) > 700', 'earth_distance(l.e, r.e) < 300 OR earth_distance(l.e, r.e) < 600',
  'earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) <= 700 AND l.kind = r.kind',
  'earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) < 700::int', 'sec_to_gc(cube_distance(l.e, r.e)) < 700::real',
  'gpu_distance(ARRAY[l.lon, l.lat], ARRAY[r.lon, r.lat], ''haversine'') <= l.r + r.r', 'gpu_distance(l.v, r.v, ''haversine'') < l.r',
  'earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) < l.r', 'earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) <= r.id',
  'r.r >= earth_distance(l.e, r.e)',
  'cube_enlarge(ll_to_earth(l.lat, l.lon), r.r, 3) @> ll_to_earth(r.lat, r.lon)',
  'gpu_distance(ARRAY[l.lon, l.lat], ARRAY[r.lon, r.lat], ''haversine'') <= 300 OR gpu_distance(ARRAY[l.lon, l.lat], ARRAY[r.lon, r.lat], ''haversine'') <= 600']) condition;
SELECT same_rows('SELECT l.id, r.id FROM places l JOIN places r ON ' || condition, false, 'left to PostgreSQL: ' || condition)
FROM unnest(ARRAY['earth_box(l.e, 500) @> r.e', 'cube_enlarge(ll_to_earth(l.lat, l.lon), 500, 2) @> ll_to_earth(r.lat, r.lon)',
  'll_to_earth(r.lat, r.lon) @> cube_enlarge(ll_to_earth(l.lat, l.lon), 0, 3)', 'earth_distance(l.e, r.e) < l.r * r.r']) condition;
SELECT same_rows('SELECT l.id, r.id FROM places l JOIN places r ON gpu_within(l.v, r.v, r.r, ''haversine'')', NULL, 'a negative radius is an error');
SELECT same_rows(format(query, condition), true, format(query, condition))
FROM unnest(ARRAY['gpu_distance(ARRAY[l.lon, l.lat], ARRAY[r.lon, r.lat], ''haversine'') <= 900',
    'earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) < 900', 'earth_distance(l.e, r.e) < 900']) condition,
  unnest(ARRAY['SELECT l.id, r.id FROM places l LEFT JOIN places r ON %s AND r.kind <> ''town''',
    'SELECT l.id FROM places l WHERE EXISTS (SELECT FROM places r WHERE %s AND l.id <> r.id)',
    'SELECT l.id FROM places l WHERE NOT EXISTS (SELECT FROM places r WHERE %s AND l.id <> r.id)',
    'SELECT l.kind, count(*), min(r.id) FROM places l JOIN places r ON %s GROUP BY 1',
    'SELECT count(*) FROM places l JOIN places r ON %s']) query;
SELECT same_rows('SELECT l.id, r.id, gpu_distance(l.v, r.v, ''haversine''), earth_distance(l.e, r.e) FROM places l JOIN places r
  ON gpu_distance(l.v, r.v, ''haversine'') <= 3000 AND l.id < r.id', true, 'distances are shown');
SELECT same_rows('SELECT sum(gpu_distance(l.v, r.v, ''haversine''))::numeric(30, 6) FROM places l JOIN places r ON gpu_distance(l.v, r.v, ''haversine'') <= 3000', NULL,
  'distances are added up');
SELECT same_rows('SELECT l.id, r.id FROM places l JOIN places r ON gpu_distance(l.v, r.v, ''haversine'') <= 3000 AND l.id < r.id
  ORDER BY gpu_distance(l.v, r.v, ''haversine''), 1, 2 LIMIT 20', NULL, 'the nearest pairs');

-- A generic plan, whose radius comes later.
SET plan_cache_mode = force_generic_plan;
PREPARE by_earth(float8) AS SELECT l.id, r.id FROM places l JOIN places r ON earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) < $1;
PREPARE by_cube(float8) AS SELECT l.id, r.id FROM places l JOIN places r ON earth_distance(l.e, r.e) < $1;
PREPARE by_haversine(float8) AS SELECT l.id, r.id FROM places l JOIN places r ON gpu_distance(l.v, r.v, 'haversine') < $1;
SELECT same_rows(format('EXECUTE %I(%L)', name, r), true, format('%s within %s', name, r))
FROM unnest('{by_earth,by_cube,by_haversine}'::text[]) name, unnest('{-1,0,1e-320,700,30000000,Infinity,NaN,NULL}'::float8[] || NULL::float8) r;
RESET plan_cache_mode;

-- Nearest places of each row.
SELECT same_rows('SELECT l.id, s.* FROM places l CROSS JOIN LATERAL (SELECT r.id, gpu_distance(l.v, r.v, ''haversine'') AS d FROM places r WHERE r.kind <> ''corner''
  ORDER BY gpu_distance(l.v, r.v, ''haversine''), r.id LIMIT 5) s WHERE l.kind = ' || quote_literal(kind), NULL, 'nearest: ' || kind)
FROM unnest('{earth,town,pole,line}'::text[]) kind;
SELECT same_rows('SELECT l.id, s.* FROM places l CROSS JOIN LATERAL (SELECT r.id, gpu_distance(ARRAY[l.lon, l.lat], ARRAY[r.lon, r.lat], ''haversine'') AS d
  FROM places r WHERE gpu_distance(ARRAY[l.lon, l.lat], ARRAY[r.lon, r.lat], ''haversine'') < 2000 ORDER BY d, r.id LIMIT 3) s', NULL, 'nearest within a radius');

-- The engine decides nearly all pairs.
SELECT cmp_ok(property('Evaluated Pairs', 'SELECT l.id, r.id FROM places l JOIN places r ON ' || condition)::int, '<', 5, 'evaluated: ' || condition)
FROM unnest(ARRAY['gpu_distance(ARRAY[l.lon, l.lat], ARRAY[r.lon, r.lat], ''haversine'') <= 1234',
  'earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) < 1234', 'earth_distance(l.e, r.e) < 1234']) condition;

-- Rows that are no places: whoever compares them meets the function's own error, or its rows.
CREATE TABLE odd (id int, lat float8, lon float8);
INSERT INTO odd SELECT id, lat, lon FROM places WHERE kind = 'town';
INSERT INTO odd VALUES (1, 95, 10), (2, 50, 370), (3, -130, 190.001), (4, 50, -350);
ANALYZE odd;
SELECT same_rows('SELECT l.id, r.id FROM odd l JOIN odd r ON earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) < 900', true, 'beyond 90 and 360 degrees');
SELECT cmp_ok(property('Odd Rows', 'SELECT l.id, r.id FROM odd l JOIN odd r ON earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) < 900')::int, '=', 6,
  'which earthdistance decides');
SELECT same_rows('SELECT l.id, r.id FROM odd l JOIN odd r ON gpu_distance(ARRAY[l.lon, l.lat], ARRAY[r.lon, r.lat], ''haversine'') < 900', true, 'an error of gpu_distance');
DELETE FROM odd WHERE id < 4;
INSERT INTO odd VALUES (5, 'NaN', 10), (6, 'Infinity', 10), (7, 50, '-Infinity'), (8, NULL, 10), (9, 50, NULL), (10, 'NaN', 'NaN');
SELECT same_rows('SELECT l.id, r.id FROM odd l JOIN odd r ON gpu_distance(ARRAY[l.lon, l.lat], ARRAY[r.lon, r.lat], ''haversine'') ' || test, true, 'what is not finite: ' || test)
FROM unnest(ARRAY['< 900', '<= 1e9', '< ''NaN''']) test;
CREATE FUNCTION outcome(query text, node boolean) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM force_node(node);
  RETURN array_to_string((bag(query))[1:1], '');
END $$;
SELECT is(outcome(q, true), outcome(q, false), 'the same error: ' || condition)
FROM unnest(ARRAY['l.id <> 1', 'r.id = 5', 'l.id = 6', 'l.id = 7', 'l.id NOT IN (5, 6, 7, 10) AND r.id NOT IN (5, 6, 7, 10)']) condition,
  format('SELECT count(*) FROM odd l JOIN odd r ON earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) < 900 AND %s', condition) q;
SELECT alike(outcome('SELECT count(*) FROM odd l JOIN odd r ON earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) < 900 AND l.id = 5', true),
  'ERROR 23514%', 'NaN violates the domain');
CREATE TABLE arrays (id int, v float8[]);
INSERT INTO arrays SELECT id, v FROM places WHERE kind = 'town';
INSERT INTO arrays VALUES (1, '{1,NULL}'), (2, '{NULL}');
SELECT same_rows('SELECT l.id, r.id FROM arrays l JOIN arrays r ON gpu_distance(l.v, r.v, ''haversine'') < 900', true, 'arrays with NULLs');
INSERT INTO arrays VALUES (3, '{1,2,3}');
SELECT same_rows('SELECT l.id, r.id FROM arrays l JOIN arrays r ON gpu_distance(l.v, r.v, ''haversine'') < 900', true, 'an array of three');

-- Another Earth, in other units: earthdistance's own functions say what a radius is.
SAVEPOINT mars;
CREATE OR REPLACE FUNCTION earth() RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT 3389.5::float8';
UPDATE places SET e = NULL;
ALTER DOMAIN earth DROP CONSTRAINT on_surface; -- the session knows it with the old radius
SELECT same_rows(format('SELECT l.id, r.id FROM places l JOIN places r ON earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) < %L::float8', r), true,
  'on Mars, ' || r) FROM unnest('{0,0.5,70,10648,10649}'::float8[]) r;
SELECT isnt(outcome('SELECT count(*) FROM places l JOIN places r ON earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) < 70', true), '(0)', 'kilometres');
ROLLBACK TO mars;
-- A function of the name that is not the extension's.
CREATE SCHEMA planner_earth_others;
CREATE FUNCTION planner_earth_others.sec_to_gc(float8) RETURNS float8 LANGUAGE sql IMMUTABLE STRICT AS 'SELECT CASE WHEN $1 < 5 THEN 1000::float8 ELSE $1 END';
SELECT same_rows('SELECT l.id, r.id FROM places l JOIN places r ON planner_earth_others.sec_to_gc(l.e <-> r.e) < 700', false, 'another function of the name');

-- Estimates know that a degree is not a metre.
CREATE TABLE spread AS SELECT i AS id, 40 + i * 7919 % 10007 / 1000.7 AS lat, 5 + i * 104729 % 9973 / 997.3 AS lon FROM generate_series(1, 2000) i;
ANALYZE spread;
CREATE FUNCTION expected_rows(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  PERFORM force_node(true);
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  PERFORM force_node(false);
  RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END $$;
SELECT cmp_ok(expected_rows('SELECT FROM spread l JOIN spread r ON ' || condition), '<', 20000::float8, 'few pairs are expected: ' || condition)
FROM unnest(ARRAY['gpu_distance(ARRAY[l.lon, l.lat], ARRAY[r.lon, r.lat], ''haversine'') <= 500',
  'earth_distance(ll_to_earth(l.lat, l.lon), ll_to_earth(r.lat, r.lon)) < 500']) condition;
SELECT cmp_ok(expected_rows('SELECT FROM spread l JOIN spread r ON gpu_distance(ARRAY[l.lon, l.lat], ARRAY[r.lon, r.lat], ''haversine'') <= 300000'), '>', 100000::float8,
  'many, where there are many');

-- Nor one of the extension that another role than a superuser owns: where the extension is trusted, its owner may add any.
CREATE ROLE gpujoin_earth_forger;
CREATE SCHEMA planner_earth_more AUTHORIZATION gpujoin_earth_forger;
CREATE FUNCTION planner_earth_more.sec_to_gc(float8) RETURNS float8 LANGUAGE sql IMMUTABLE STRICT AS 'SELECT CASE WHEN $1 < 500 THEN 1000::float8 ELSE $1 END';
ALTER FUNCTION planner_earth_more.sec_to_gc(float8) OWNER TO gpujoin_earth_forger;
ALTER EXTENSION earthdistance ADD FUNCTION planner_earth_more.sec_to_gc(float8);
SELECT is(count(*)::int, 1, 'the forged function is the extension''s') FROM pg_depend WHERE deptype = 'e' AND objid = 'planner_earth_more.sec_to_gc(float8)'::regprocedure;
SELECT same_rows('SELECT l.id, r.id FROM places l JOIN places r ON planner_earth_more.sec_to_gc(l.e <-> r.e) < 700', false, 'a forged function');

SELECT * FROM finish();
ROLLBACK;
