-- Equality, bands and intervals beside the distance as keys of the index: the rows that PostgreSQL itself finds, which conditions are keys,
-- and when they are asked of each pair all the same.
BEGIN;
CREATE SCHEMA planner_keys;
SET search_path = planner_keys, public;
SET jit = off;
SET timezone = 'Europe/Berlin';
\ir same_rows.psql
SELECT * FROM no_plan();

-- A day when clocks go forward lies among the times.
CREATE TABLE a AS SELECT i AS id, ARRAY[i % 20, i / 20]::float8[] AS v, CASE WHEN i % 11 <> 0 THEN i % 7 END AS city,
  (array['x', 'X', 'y', 'é'])[1 + i % 4] AS name, i / 8.0::float8 AS f, (i / 8.0)::float4 AS f4, (i * 1.25)::numeric(8, 2) AS n,
  (array['NaN', 'Infinity', '-0', '0', '5', '7.5'])[1 + i % 6]::float8 AS odd, date '2026-03-20' + i % 30 AS d,
  CASE WHEN i % 13 = 0 THEN 'infinity' ELSE timestamp '2026-03-28' + i * interval '7 minutes' END AS t,
  timestamptz '2026-03-27' + i * interval '7 minutes' AS tz, (i::bigint << 45) + i % 5 AS far FROM generate_series(1, 400) i;
CREATE TABLE b AS SELECT id::bigint AS id, v, city::smallint AS city, name, f, f4, n::numeric(9, 3) AS n, odd, d, t, tz, far FROM a WHERE id % 3 <> 0;
ANALYZE a, b;

CREATE TEMP TABLE keys(condition text, fallback text);
INSERT INTO keys VALUES
  ('a.city = b.city', NULL), ('a.name = b.name', NULL), ('a.name COLLATE "C" = b.name', NULL), ('a.n = b.n', NULL), ('a.odd = b.odd', NULL), ('b.d = a.d', NULL),
  ('a.city = b.city AND a.name = b.name', NULL), ('a.id BETWEEN b.id - 10 AND b.id + 40', NULL), ('abs(a.id - b.id) < 30', NULL),
  ('b.id - a.id <= 20 AND b.id - a.id > -40', NULL), ('a.id + 5 >= b.id AND b.id + 7 > a.id', NULL), ('abs(a.f - b.f) <= 2', NULL),
  ('a.f BETWEEN b.f - 1 AND b.f + 3', NULL), ('a.f4 BETWEEN b.f4 - 1::float4 AND b.f4 + 3::float4', NULL), ('abs(a.n - b.n) <= 12.5', NULL),
  ('a.d BETWEEN b.d - 3 AND b.d + 2', NULL), ('a.t BETWEEN b.t - interval ''1 hour'' AND b.t + interval ''2 hours''', NULL),
  ('a.tz BETWEEN b.tz - interval ''1 day'' AND b.tz', NULL), ('abs(a.odd - b.odd) <= 5', NULL), ('abs(a.id - b.id) <= 0', NULL),
  ('a.far BETWEEN b.far - 2 AND b.far + 2', 'keys are too far from each other'),
  ('a.t < b.t + interval ''1 hour'' AND a.t > b.t - interval ''1 hour''', 'keys are infinite'),
  ('a.odd BETWEEN b.odd - 5 AND b.odd + 5', 'keys are infinite or NaN'),
  ('a.tz BETWEEN b.tz - interval ''1 month'' AND b.tz', 'a band has no fixed width'),
  ('a.city = b.city AND a.tz BETWEEN b.tz - interval ''1 month'' AND b.tz', NULL),
  ('a.id BETWEEN b.id + 3 AND b.id + 2', 'a band is empty');

-- Beside bits, too.
SELECT same_rows(format(query, condition), true, format('%s of bits: %s', name, condition))
FROM (VALUES ('pairs', 'SELECT a.id, b.id FROM a JOIN b ON bit_count(a.id::bit(32) # b.id::bit(32)) <= 3 AND %s'), ('count', 'SELECT count(*) FROM a JOIN b ON bit_count(a.id::bit(32) # b.id::bit(32)) <= 3 AND %s'),
  ('sums', 'SELECT a.id, count(*), sum(b.id) FROM a JOIN b ON bit_count(a.id::bit(32) # b.id::bit(32)) < 5 AND %s GROUP BY a.id'), ('self-join', 'SELECT a.id, b.id FROM a JOIN a b ON bit_count(a.id::bit(32) # b.id::bit(32)) <= 3 AND %s'),
  ('anti join', 'SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM b WHERE bit_count(a.id::bit(32) # b.id::bit(32)) <= 3 AND %s)')) q(name, query), keys;
SELECT is(property('Index Keys Fallback', 'SELECT count(*) FROM a JOIN b ON bit_count(a.id::bit(32) # b.id::bit(32)) <= 3 AND ' || condition), fallback, 'beside bits: ' || condition) FROM keys;
SELECT cmp_ok(property('Candidate Pairs', 'SELECT count(*) FROM a JOIN a b ON bit_count(a.id::bit(32) # b.id::bit(32)) <= 3 AND abs(a.id - b.id) <= 5')::int, '<', 400 * 400 / 2, 'groups whose keys are apart are not compared');

-- Ranges and intervals of two columns: empty ones, without ends or with infinite ones, that contain their ends or not, NULL; columns that begin after they end.
CREATE TABLE intervals AS SELECT i, CASE WHEN i % 7 > 0 THEN tstzrange(z, z + i % 5 * interval '20 minutes') END AS during,
  CASE i % 9 WHEN 0 THEN 'empty' WHEN 1 THEN tsrange(NULL, w, '(]') WHEN 2 THEN tsrange(w, NULL, '()')
    WHEN 3 THEN tsrange(w, 'infinity') WHEN 4 THEN tsrange('-infinity', w, '[]') WHEN 5 THEN tsrange(w, w, '[]')
    ELSE tsrange(w, w + i % 5 * interval '1 hour', (array['[)', '[]', '()', '(]'])[1 + i % 4]) END AS stay,
  daterange(date '2026-03-01' + i % 60, date '2026-03-01' + i % 60 + i % 3) AS days, int4range(i / 3, i / 3 + i % 12, '[]') AS span,
  int8range((i::bigint << 40) - 5, (i::bigint << 40) + (i % 3::bigint << 41)) AS wide,
  numrange(i / 4.0, i / 4.0 + i % 6, (array['[)', '[]', '()', '(]'])[1 + i % 4]) AS prices, z AS t_from,
  CASE i % 10 WHEN 0 THEN 'infinity' WHEN 1 THEN NULL WHEN 2 THEN z - interval '3 hours' ELSE z + i % 4 * interval '1 hour' END AS t_to,
  date '2026-03-01' + i % 90 AS d_from, CASE WHEN i % 8 = 0 THEN date '9999-12-31' ELSE date '2026-03-01' + i % 90 + i % 5 END AS d_to,
  i / 8.0::float8 AS f_from, CASE i % 12 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' ELSE i / 8.0::float8 + i % 4 END AS f_to,
  (i / 7.0)::float4 AS r_from, (i / 7.0)::float4 + (i % 4)::float4 AS r_to, i / 9.0 AS n_from, CASE WHEN i % 11 = 0 THEN 'NaN' ELSE i / 9.0 + i % 4 END AS n_to,
  1700000000000000000 + i AS snow, int4multirange(int4range(i, i + 3)) AS spans
FROM (SELECT i, timestamp '2026-03-28' + i * interval '7 minutes' AS w, timestamptz '2026-03-28' + i * interval '7 minutes' AS z FROM generate_series(0, 400) i) t;
ALTER TABLE a RENAME TO plain_a;
ALTER TABLE b RENAME TO plain_b;
CREATE TABLE a AS SELECT * FROM plain_a JOIN intervals ON i = id;
CREATE TABLE b AS SELECT * FROM plain_b JOIN intervals ON i = id - 1;
ANALYZE a, b;
INSERT INTO keys VALUES
  ('a.during && b.during', NULL), ('b.stay && a.stay', NULL), ('a.days && b.days', NULL), ('a.span && b.span', NULL), ('b.wide && a.wide', NULL), ('a.prices && b.prices', NULL),
  ('a.during @> b.tz', NULL), ('b.tz <@ a.during', NULL), ('b.stay @> a.t', NULL), ('a.t <@ b.stay', NULL), ('a.days @> b.d', NULL), ('b.span @> a.id', NULL), ('a.prices @> b.n', NULL),
  ('a.t_from <= b.t_to AND b.t_from <= a.t_to', NULL), ('a.t_from < b.t_to AND a.t_to > b.t_from', NULL), ('b.t_from < a.t_to AND b.t_to >= a.t_from', NULL),
  ('a.d_from <= b.d_to AND b.d_from <= a.d_to', NULL), ('a.d_from < b.d_to AND b.d_from < a.d_to', NULL), ('a.f_from <= b.f_to AND b.f_from <= a.f_to', NULL),
  ('a.f_from < b.f_to AND b.f_from < a.f_to', NULL), ('a.r_from <= b.r_to AND b.r_from < a.r_to', NULL), ('a.n_from <= b.n_to AND b.n_from <= a.n_to', NULL),
  ('a.t_from <= b.t_to + interval ''1 hour'' AND b.t_from <= a.t_to + interval ''1 day''', NULL), ('a.d_from - 2 < b.d_to AND b.d_from + 1 <= a.d_to', NULL),
  ('a.f_from <= b.f_to + 0.1::float8 AND b.f_from - 0.3::float8 < a.f_to', NULL), ('a.n_from <= b.n_to + 0.1 AND b.n_from - 0.3 < a.n_to', NULL),
  ('a.r_from - 0.1::float4 <= b.r_to AND b.r_from <= a.r_to', NULL), ('b.tz BETWEEN a.t_from AND a.t_to', NULL), ('a.id BETWEEN b.i AND b.id + 1', NULL),
  ('int4range(a.i, a.id) && b.span', NULL), ('b.span && int4range(a.i, a.id, ''(]'')', NULL), ('int4range(a.city, a.id) && int4range(b.i, NULL, ''()'')', NULL),
  ('daterange(a.d_from, a.d_to) && daterange(b.d_from, b.d_to, ''[]'')', NULL), ('daterange(NULL, a.d_to, ''()'') && b.days', NULL),
  ('int4range(a.id, a.id) && b.span', NULL), ('daterange(a.d_from, a.d_to) @> b.d', NULL), ('a.n <@ numrange(b.n_from, b.n_to, ''[]'')', NULL),
  ('a.snow <= b.snow + 3 AND b.id <= a.id + 3', NULL), ('a.id < b.id AND a.d_from <= b.d_to AND b.d_from <= a.d_to', NULL),
  ('a.city = b.city AND a.d BETWEEN b.d - 3 AND b.d + 2 AND a.stay && b.stay', NULL), ('a.span && b.span AND a.stay && b.stay', NULL),
  ('a.span && b.span AND a.stay && b.stay AND a.city = b.city', NULL), ('a.span && b.span AND a.t_from <= b.t_to + interval ''1 month'' AND b.t_from <= a.t_to', NULL),
  ('a.name = b.name AND a.t_from <= b.t_to AND b.t_from <= a.t_to AND a.f BETWEEN b.f - 9 AND b.f + 9', NULL);

SELECT same_rows(format('SELECT a.id, b.id FROM a JOIN b ON a.v <-> b.v <= 6 AND %s', condition), NULL, condition) FROM keys;
SELECT same_rows(format('SELECT count(*) FROM a JOIN b ON %s AND a.v <-> b.v <= 6', condition), true, 'count: ' || condition) FROM keys;
SELECT same_rows(format('SELECT a.id, b.id FROM a LEFT JOIN b ON a.v <-> b.v <= 6 AND %s', condition), NULL, 'left: ' || condition) FROM keys;
SELECT same_rows(format('SELECT id FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 6 AND %s)', condition), NULL, 'exists: ' || condition) FROM keys;
SELECT same_rows(format('SELECT id FROM a WHERE NOT EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 6 AND %s)', condition), NULL, 'not exists: ' || condition)
FROM keys;
SELECT same_rows(format('SELECT a.city, count(*), sum(b.id), avg(b.n), max(b.d) FROM a JOIN b ON a.v <-> b.v <= 6 AND %s GROUP BY a.city', condition), NULL,
  'sums: ' || condition) FROM keys;
SELECT same_rows(format('SELECT count(*) FROM a JOIN a b ON a.v <-> b.v <= 6 AND a.id < b.id AND %s', condition), NULL, 'self-join: ' || condition) FROM keys;

-- They are keys, and where the index cannot have them the reason is told.
SELECT isnt(property('Index Keys', format('SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= 6 AND %s', condition)), NULL, 'a key: ' || condition) FROM keys;
SELECT is(property('Index Keys Fallback', format('SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= 6 AND %s', condition)), fallback, 'why not: ' || condition)
FROM keys;
SELECT is(property('Pairs', 'SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= 6 AND a.city = b.city')::int,
  (SELECT count(*)::int FROM a JOIN b ON sqrt((a.v[1] - b.v[1]) ^ 2 + (a.v[2] - b.v[2]) ^ 2) <= 6 AND a.city = b.city), 'no other pair is found');
SELECT is(property('Pairs', 'SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= 6 AND a.stay && b.stay AND a.d_from <= b.d_to AND b.d_from <= a.d_to')::int,
  (SELECT count(*)::int FROM a JOIN b ON sqrt((a.v[1] - b.v[1]) ^ 2 + (a.v[2] - b.v[2]) ^ 2) <= 6 AND a.stay && b.stay AND a.d_from <= b.d_to AND b.d_from <= a.d_to),
  'nor of intervals');
SELECT is(property('Index Keys', format('SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= %s AND %s', eps, condition)), NULL, 'no key: ' || condition)
FROM (VALUES (6, 'a.id <= b.id + 3'), (6, 'a.city IS NOT DISTINCT FROM b.city'), (6, 'a.id / 2 = b.id'), (6, 'abs(a.id - b.id) >= 3'), (6, 'a.spans && b.spans'), (6, 'a.span @> b.span'), (6, 'a.span -|- b.span'),
  (6, 'int4range(a.i, a.id + 3) && b.span'), (6, 'int4range(a.i, a.id, rpad(a.name, 0) || ''[]'') && b.span'), (6, 'a.d_from - b.d_to <= 3 AND b.d_from - a.d_to <= 3'),
  (0.5, 'a.city = b.city')) AS t(eps, condition);

-- A few intervals that are very long, or have no end, are a class of their own. PostgreSQL looks short ones up.
CREATE TABLE stays AS SELECT i AS id, ARRAY[i * 7919 % 101, i * 104729 % 103]::float8[] AS v, i % 3 AS city, CASE WHEN i % 2000 = 7 THEN int4range(i, NULL)
  WHEN i % 2000 = 9 THEN int4range(NULL, i) WHEN i % 1500 = 11 THEN int4range(i - 3000, i + 3000) ELSE int4range(i, i + i % 6) END AS span FROM generate_series(1, 6000) i;
CREATE INDEX ON stays USING gist (span);
CREATE TABLE short AS SELECT id, v, city, int4range(id, id + id % 6) AS span FROM stays;
CREATE INDEX ON short USING gist (span);
ANALYZE stays, short;
SELECT same_rows('SELECT a.id, b.id FROM short a JOIN stays b ON a.v <-> b.v <= 60 AND a.span && b.span', NULL, 'long intervals of one side');
SELECT same_rows('SELECT count(*) FROM stays a JOIN stays b ON a.v <-> b.v <= 60 AND a.span && b.span AND a.id < b.id', true, 'of both, each pair once, counted');
SELECT same_rows('SELECT a.id, b.id FROM stays a LEFT JOIN short b ON a.v <-> b.v <= 60 AND a.span && b.span', NULL, 'of the outer side');
SELECT same_rows('SELECT id FROM short a WHERE NOT EXISTS (SELECT FROM stays b WHERE a.v <-> b.v <= 2 AND a.span && b.span)', NULL, 'not exists');
SELECT same_rows('SELECT a.city, count(*), sum(b.id), max(b.id) FROM stays a JOIN stays b ON a.v <-> b.v <= 60 AND a.span && b.span GROUP BY 1', NULL, 'summed');
SELECT is(property('Parts', 'SELECT count(*) FROM short a JOIN stays b ON a.v <-> b.v <= 60 AND a.span && b.span'), '3', 'long intervals, and those without an end, are classes of their own');
SELECT is(property('Parts', 'SELECT count(*) FROM short a JOIN short b ON a.v <-> b.v <= 60 AND a.span && b.span'), NULL, 'short ones are one');

-- Numerics beyond float8 differ from each other by a finite number.
CREATE TABLE huge AS SELECT i AS id, ARRAY[i % 5, i / 5]::float8[] AS v, (i % 3 + CASE WHEN i % 2 = 0 THEN 1e400 ELSE 0 END)::numeric AS n
FROM generate_series(1, 60) i;
ANALYZE huge;
SELECT same_rows('SELECT a.id, b.id FROM huge a JOIN huge b ON a.v <-> b.v <= 9 AND b.n - a.n <= 1 AND b.n - a.n >= -1', NULL, 'huge numerics');
SELECT same_rows('SELECT count(*) FROM huge a JOIN huge b ON a.v <-> b.v <= 9 AND abs(b.n - a.n) <= 1', true, 'counted');

-- Errors of rows that PostgreSQL would not ask, and prepared statements whose band changes.
PREPARE band(int) AS SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= 6 AND abs(a.id - b.id) <= $1;
SET LOCAL plan_cache_mode = force_generic_plan;
SELECT same_rows(format('EXECUTE band(%s)', width), NULL, 'a band of ' || width) FROM unnest('{0,5,100,-1,"NULL"}'::text[]) width;

-- Distances on the Earth, on a sphere and of directions have keys as well.
CREATE TABLE everywhere (name text, distance text, extension text);
INSERT INTO everywhere VALUES
  ('haversine', 'gpu_distance(ARRAY[a.lon, a.lat], ARRAY[b.lon, b.lat], ''haversine'') <= 50000', NULL), ('cosine', 'a.v <=> b.v < 0.05', NULL),
  ('by hand', '6371 * acos(least(1, sin(radians(a.lat)) * sin(radians(b.lat)) + cos(radians(a.lat)) * cos(radians(b.lat)) * cos(radians(a.lon - b.lon)))) <= 50', NULL),
  ('earthdistance', 'earth_distance(ll_to_earth(a.lat, a.lon), ll_to_earth(b.lat, b.lon)) <= 50000', 'earthdistance'), ('statute miles', 'point(a.lon, a.lat) <@> point(b.lon, b.lat) < 30', 'earthdistance'),
  ('q3c', 'q3c_join(a.lon, a.lat, b.lon, b.lat, 0.5)', 'q3c'), ('geography', 'ST_DWithin(ST_SetSRID(ST_Point(a.lon, a.lat), 4326)::geography, ST_SetSRID(ST_Point(b.lon, b.lat), 4326)::geography, 50000)', 'postgis');
DELETE FROM everywhere WHERE extension NOT IN (SELECT name FROM pg_available_extensions);
SET client_min_messages = warning;
DO $$ DECLARE e text; BEGIN FOR e IN SELECT DISTINCT extension FROM everywhere WHERE extension IS NOT NULL LOOP EXECUTE format('CREATE EXTENSION IF NOT EXISTS %I CASCADE', e); END LOOP; END $$;
CREATE TABLE places AS SELECT id, city, tz, v, 5 + (id * 37 % 100) / 100.0::float8 AS lon, 45 + (id * 53 % 97) / 100.0::float8 AS lat FROM a;
ANALYZE places;
SELECT same_rows(format('SELECT a.id, b.id FROM places a JOIN places b ON %s AND %s', distance, key), true, format('keys beside a distance: %s, %s', name, key))
FROM everywhere, unnest('{a.city = b.city,b.tz BETWEEN a.tz - interval ''1 hour'' AND a.tz}'::text[]) key;
SELECT isnt(property('Index Keys', format('SELECT a.id, b.id FROM places a JOIN places b ON %s AND b.tz BETWEEN a.tz - interval ''1 hour'' AND a.tz', distance)), NULL, 'Index Keys: ' || name) FROM everywhere;

SELECT * FROM finish();
ROLLBACK;
