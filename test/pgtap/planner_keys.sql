-- Equality and bands beside the distance as keys of the index: the rows that PostgreSQL itself finds, which conditions are keys,
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
  ('a.id BETWEEN b.id + 3 AND b.id + 2', 'a band is empty');

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
SELECT is(property('Index Keys', format('SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= %s AND %s', eps, condition)), NULL, 'no key: ' || condition)
FROM (VALUES (6, 'a.id <= b.id + 3'), (6, 'a.city IS NOT DISTINCT FROM b.city'), (6, 'a.id / 2 = b.id'), (6, 'abs(a.id - b.id) >= 3'),
  (0.5, 'a.city = b.city')) AS t(eps, condition);

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

SELECT * FROM finish();
ROLLBACK;
