-- Columns of type numeric, as object-relational mappers make of decimals: with a declared precision they cannot leave the range of
-- float8, so they are compared, and are radii and scores, like columns of float8. With the node and without it the same rows.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA numeric_columns;
SET search_path = numeric_columns, public;
SET jit = off;
SET client_min_messages = warning;

\ir same_rows.psql

CREATE DOMAIN degrees AS numeric(9, 6);
CREATE TABLE jobs AS SELECT i AS id, (hashint4(i) / 2147483648.0 * 20)::numeric(9, 6) AS lon, (50 + hashint4(-i) / 2147483648.0 * 8)::numeric(9, 6) AS lat,
    (i % 7 / 2.0)::numeric(6, 2) AS demand, i % 5 AS few, (i % 3 / 2.0)::float4 AS r4
  FROM generate_series(1, 150) i;
CREATE TABLE depots AS SELECT id, lat + 0.5 AS lon, lon AS lat, demand AS reach, demand AS wide, lon::degrees AS x, lat::degrees AS y, lon::numeric AS plain, ARRAY[lat, lon] AS at
  FROM jobs WHERE id % 3 <> 1;
ALTER TABLE depots ALTER lon TYPE numeric(9, 6), ALTER lat TYPE numeric(9, 6), ALTER wide TYPE numeric(600, 2), ALTER at TYPE numeric(9, 6)[], ADD small numeric(60, 50);
UPDATE depots SET small = lon / 1e45;
INSERT INTO depots VALUES (1001, 'NaN', 51, 'NaN', 'NaN', 'NaN', 51, 'NaN'), (1002, 3, 'NaN', NULL, 3, 3, NULL, 3), (1003, NULL, 51, 1, 1, NULL, 51, 1);
INSERT INTO jobs VALUES (1001, 'NaN', 51, 'NaN'), (1002, NULL, 51, 1);
ANALYZE jobs, depots;

CREATE FUNCTION nearest(distance text) RETURNS text LANGUAGE sql AS $$
  SELECT format('SELECT j.id, n.id, n.d FROM jobs j LEFT JOIN LATERAL (SELECT d.id, %1$s AS d FROM depots d ORDER BY %1$s, d.id LIMIT 3) n ON true', distance)
$$;
CREATE FUNCTION within(distance text, radius text) RETURNS text LANGUAGE sql AS $$
  SELECT format('SELECT j.id, d.id FROM jobs j JOIN depots d ON %s <= %s', distance, radius)
$$;
SELECT same_rows(nearest(distance), true, 'nearest: ' || distance) FROM unnest(ARRAY[
  'point(j.lon, j.lat) <-> point(d.lon, d.lat)', 'point(j.lon::float8, j.lat::float8) <-> point(d.lon::float8, d.lat::float8)',
  'point(j.lon::real, j.lat::real) <-> point(d.lon::real, d.lat::real)', 'point(j.lon, j.lat) <-> point(d.x, d.y)',
  'point(j.lon * 2 - 1.5, -j.lat) <-> point(d.lon / 0.5 + d.lat, abs(d.lat))', 'point(j.few::numeric * 0.1, j.r4::numeric) <-> point(d.lon, coalesce(d.reach, 7))',
  'ARRAY[j.lon, j.lat]::float8[] <-> ARRAY[d.lon, d.lat]::float8[]', 'ARRAY[j.lon, j.lat]::float8[] <-> d.at::float8[]',
  'gpu_distance(ARRAY[j.lon, j.lat], ARRAY[d.lon, d.lat])', 'gpu_distance(ARRAY[j.lon, j.lat], ARRAY[d.lon, d.lat], ''l1'')']) distance;
SELECT same_rows(format('SELECT * FROM (SELECT j.id AS j, d.id AS d, row_number() OVER (PARTITION BY j.id ORDER BY %s, d.id) AS n FROM jobs j CROSS JOIN depots d) s WHERE n <= 3',
  'point(j.lon, j.lat) <-> point(d.lon, d.lat)'), NULL, 'row_number()');
SELECT same_rows(within('point(j.lon, j.lat) <-> point(d.lon, d.lat)', radius), true, 'within ' || radius) FROM unnest(ARRAY[
  'd.reach', 'j.demand', 'd.reach * 1000', 'd.reach / 1.5', 'coalesce(d.reach, 2.5) * 0.5 - 0.1', 'greatest(d.reach, 2)', 'd.reach::float8 * 1.5']) radius;
SELECT same_rows(within('gpu_distance(ARRAY[j.lon, j.lat], ARRAY[d.lon, d.lat], ''haversine'')', 'd.reach * 100000'), NULL, 'metres by haversine');
SELECT same_rows('SELECT j.id, d.id FROM jobs j JOIN depots d ON point(j.lon, j.lat) <-> point(d.lon, d.lat) <= 9 ORDER BY (point(j.lon, j.lat) <-> point(d.lon, d.lat)) + j.demand * 2, j.id, d.id LIMIT 9', true, 'a score');
-- Keys: arithmetic of declared digits raises no error, so it may be one.
SELECT same_rows(within('point(j.lon, j.lat) <-> point(d.lon, d.lat)', '3 AND ' || key), true, 'a key: ' || key) FROM unnest(ARRAY[
  'd.reach = j.demand', 'd.reach * 2 = j.demand', 'd.reach BETWEEN j.demand - 0.5 AND j.demand + 0.5', 'd.reach + 1 >= j.demand * 3']) key;

-- Numbers that float8 or float4 cannot hold remain PostgreSQL's: the same rows while there are none, the same error once there are.
CREATE TABLE doubtful (distance text);
INSERT INTO doubtful VALUES ('point(j.lon, j.lat) <-> point(d.plain, d.lat)'), ('point(j.lon, j.lat) <-> point(d.wide, d.lat)'), ('point(j.lon, j.lat) <-> point(d.small::real, d.lat)'),
  ('point(j.lon, j.lat) <-> point(d.wide * 2, d.lat)'), ('point(j.lon / (d.lon - d.lon), j.lat) <-> point(d.lon, d.lat)');
SELECT same_rows(nearest(distance), distance NOT LIKE '%(d.lon - %', 'nearest: ' || distance) FROM doubtful;
UPDATE depots SET plain = '1e400', wide = '1e400', small = '1e-50' WHERE id = 6;
SELECT same_rows(nearest(distance), distance NOT LIKE '%(d.lon - %', 'nearest, with an error: ' || distance) FROM doubtful;
SELECT same_rows(within('point(j.lon, j.lat) <-> point(d.lon, d.lat)', radius), NULL, 'within, with an error: ' || radius)
FROM unnest('{d.plain,d.wide,d.small::real,d.wide * 1000,d.reach / d.reach}'::text[]) radius;
SELECT same_rows(within('point(j.lon, j.lat) <-> point(d.lon, d.lat)', radius) || ' AND d.id <> 6', NULL, 'within, beside an error: ' || radius)
FROM unnest('{d.plain,d.wide,d.small::real,d.wide * 1000}'::text[]) radius;

SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgis') AS has_postgis \gset
\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
SELECT same_rows(nearest(distance), true, 'nearest: ' || distance) FROM unnest(ARRAY['ST_MakePoint(j.lon, j.lat) <-> ST_MakePoint(d.lon, d.lat)',
  'ST_Point(j.lon, j.lat) <-> ST_Point(d.lon, d.lat)', 'ST_SetSRID(ST_MakePoint(j.lon, j.lat), 4326) <-> ST_SetSRID(ST_MakePoint(d.lon, d.lat), 4326)']) distance;
\else
SELECT skip('PostGIS is not there', 6);
\endif

SELECT * FROM finish();
ROLLBACK;
