-- Nearest rows by distances whose unit is not the engine's: cosines of directions, miles, degrees and radians of places.
-- Only a few rows near the last one wanted may be compared by the type's own function, whatever its unit is.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA nearest_units;
SET search_path = nearest_units, public;
SET jit = off;
SET client_min_messages = warning;

\ir same_rows.psql

CREATE FUNCTION noise(i int, d int) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT hashint4(i * 64 + d) / 2147483648.0';
CREATE TABLE l AS SELECT i AS id, point(noise(i, 1) * 170, noise(i, 2) * 80) AS p, point(noise(i, 3) / 100, noise(i, 4) / 100) AS near,
    (SELECT array_agg(noise(i, d) ORDER BY d) FROM generate_series(5, 20) d)::float4[] AS f
  FROM generate_series(1, 300) i;
CREATE TABLE r AS SELECT id + 1000 AS id, f, point(noise(id, 22) * 170, noise(id, 21) * 80) AS p, point(noise(id, 23) / 100, noise(id, 24) / 100) AS near FROM l;
-- Some rows twice: distances of 0 between a table and itself, and ties.
INSERT INTO l SELECT id + 500, p, near, f FROM l WHERE id % 30 = 0;
ANALYZE l, r;

CREATE FUNCTION nearest(distance text, "left" text, "right" text) RETURNS text LANGUAGE sql AS $$
  SELECT format('SELECT l.id, s.id, s.d FROM %2$I l, LATERAL (SELECT r.id, %1$s AS d FROM %3$I r ORDER BY d, r.id LIMIT 4) s', distance, "left", "right")
$$;
CREATE FUNCTION check_nearest(distance text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  other text;
  query text;
BEGIN
  FOREACH other IN ARRAY '{r,l}'::text[] LOOP
    query := nearest(distance, 'l', other);
    RETURN QUERY SELECT same_rows(query, true, distance || ' to ' || other);
    -- Sixteen for each row: of 90,000 pairs and more.
    RETURN NEXT cmp_ok(property('Evaluated Pairs', query)::int, '<', 16 * 310, distance || ' to ' || other || ' compares few rows itself');
  END LOOP;
END $$;

SELECT check_nearest('abs(l.p[0] - r.p[0]) + abs(r.p[1] - l.p[1])');
-- Great circles by hand.
SELECT check_nearest(replace(formula, 'c[', c || '[')) FROM unnest(ARRAY[
  '6371 * acos(least(1, sin(radians(l.c[1])) * sin(radians(r.c[1])) + cos(radians(l.c[1])) * cos(radians(r.c[1])) * cos(radians(l.c[0] - r.c[0]))))',
  'degrees(2 * asin(sqrt(sin(radians(l.c[1] - r.c[1]) / 2) ^ 2 + cos(radians(l.c[1])) * cos(radians(r.c[1])) * sin(radians(l.c[0] - r.c[0]) / 2) ^ 2)))']) formula,
  unnest('{p,near}'::text[]) c;
-- least() passes over NULL, so that what has no place is nearest.
CREATE TABLE partly AS SELECT id, CASE WHEN id % 40 <> 7 THEN p END AS p FROM r;
SELECT same_rows(format('SELECT l.id, s.id FROM l, LATERAL (SELECT r.id FROM partly r ORDER BY %s, r.id LIMIT 12) s', replace(whole, 'angle',
  'acos(least(1, sin(radians(l.p[1])) * sin(radians(r.p[1])) + cos(radians(l.p[1])) * cos(radians(r.p[1])) * cos(radians(l.p[0] - r.p[0]))))')), true, whole || ' of NULL')
FROM unnest('{angle,3 * angle + 1,-degrees(angle) DESC}'::text[]) whole;

-- Some releases of PostgreSQL refuse the operators of some releases of pgsphere.
DO $$ BEGIN
  CREATE EXTENSION IF NOT EXISTS pg_sphere;
EXCEPTION WHEN OTHERS THEN
  NULL;
END $$;
SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_sphere') AS has_pgsphere, bool_or(name = 'earthdistance') AS has_earthdistance,
  bool_or(name = 'q3c') AS has_q3c, bool_or(name = 'vector') AS has_vector FROM pg_available_extensions \gset
\if :has_earthdistance
CREATE EXTENSION IF NOT EXISTS cube;
CREATE EXTENSION IF NOT EXISTS earthdistance;
SELECT check_nearest(distance) FROM unnest('{l.p <@> r.p,r.near <@> l.near}'::text[]) distance;
\else
SELECT skip('earthdistance is not there', 12);
\endif
\if :has_q3c
CREATE EXTENSION IF NOT EXISTS q3c;
SELECT check_nearest(format('%s(l.%2$s[0], l.%2$s[1], r.%2$s[0], r.%2$s[1])', f, c))
FROM unnest('{q3c_dist,q3c_sindist}'::text[]) f, unnest('{p,near}'::text[]) c;
\else
SELECT skip('no q3c', 24);
\endif
\if :has_pgsphere
ALTER TABLE l ADD s spoint;
ALTER TABLE r ADD s spoint;
UPDATE l SET s = spoint(radians(p[0]), radians(p[1]));
UPDATE r SET s = spoint(radians(p[0]), radians(p[1]));
SELECT check_nearest('l.s <-> r.s');
\else
SELECT skip('no pgsphere', 6);
\endif

\if :has_vector
CREATE EXTENSION IF NOT EXISTS vector;
ALTER TABLE l ADD v vector(16), ADD h halfvec(16);
ALTER TABLE r ADD v vector(16), ADD h halfvec(16);
UPDATE l SET v = f, h = f;
UPDATE r SET v = f, h = f;
SELECT check_nearest(distance) FROM unnest('{l.v <=> r.v,r.h <=> l.h,l.v <-> r.v}'::text[]) distance;
\else
SELECT skip('no pgvector', 12);
\endif

SELECT * FROM finish();
ROLLBACK;
