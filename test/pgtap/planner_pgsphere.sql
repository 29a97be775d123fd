-- Points on the sky by pgsphere: `<->`, and circles around points by `<@`, `@>` and `@`. With GpuSimilarityJoin and without it the same rows.
BEGIN;
SELECT * FROM no_plan();
-- Some releases of PostgreSQL refuse the operators of some releases of pgsphere.
DO $$ BEGIN
  CREATE EXTENSION IF NOT EXISTS pg_sphere;
EXCEPTION WHEN OTHERS THEN
  NULL;
END $$;
SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_sphere') AS has_pgsphere \gset
\if :has_pgsphere
CREATE SCHEMA planner_pgsphere;
SET search_path = planner_pgsphere, public;
SET jit = off;
\ir same_rows.psql

CREATE TABLE stars (id int PRIMARY KEY, kind text, s spoint, r float8, ra float8, dec float8);
INSERT INTO stars (id, kind, ra, dec) SELECT i, 'sky', i * 137.50776 - floor(i * 137.50776 / 360) * 360, degrees(asin(2 * (i - 0.5) / 60 - 1)) FROM generate_series(1, 60) i;
INSERT INTO stars (id, kind, ra, dec) SELECT 100 + i, 'pole', i * 61 % 360, (90 - i * 0.0002) * (i % 2 * 2 - 1) FROM generate_series(1, 20) i;
INSERT INTO stars (id, kind, ra, dec) SELECT 200 + i, 'zero', i * 0.00007 + (i % 2) * (360 - i * 0.00014), i * 37 % 100 * 0.0001 + 10 FROM generate_series(1, 20) i;
INSERT INTO stars (id, kind, ra, dec) SELECT 300 + i, 'cluster', 56.75 + i * 7 % 31 * 0.0001, 24.1 + i * 5 % 29 * 0.0001 FROM generate_series(1, 60) i;
INSERT INTO stars (id, kind, ra, dec) SELECT 400 + i, 'line', 120 + i * 0.001, 0 FROM generate_series(1, 9) i;
INSERT INTO stars (id, kind, ra, dec) SELECT 500 + i, 'less than nothing', 120 + i * 1e-8, 1 FROM generate_series(1, 9) i;
INSERT INTO stars (id, kind, ra, dec) VALUES (600, 'corner', 0, 90), (601, 'corner', 123, 90), (602, 'corner', 180, -90), (603, 'corner', 0, 0), (604, 'corner', 180, 0);
UPDATE stars SET s = spoint(radians(ra), radians(dec)), r = id % 11 * 1e-6;
INSERT INTO stars (id, kind, r) VALUES (700, 'none', 1);
UPDATE stars SET r = NULL WHERE id % 19 = 0;
ANALYZE stars;

SELECT same_rows(format('SELECT l.id, r.id FROM stars l JOIN stars r ON ' || form, r), true, format(form, r))
FROM unnest('{-0.001,0,1e-12,9e-10,1.1e-9,0.00001,0.01,2.3,3.14159,3.2}'::float8[]) r, unnest(ARRAY['l.s <-> r.s <= %L::float8', '%L::float8 > r.s <-> l.s', 'NOT l.s <-> r.s > %L::float8']) form;
SELECT same_rows(format('SELECT l.id, r.id FROM stars l JOIN stars r ON ' || form, r), true, format(form, r))
FROM unnest('{0,1e-12,9e-10,1.1e-9,0.00001,0.01,1.5707963}'::float8[]) r, unnest(ARRAY['l.s <@ scircle(r.s, %L::float8)', 'scircle(l.s, %L::float8) @> r.s', 'r.s @ scircle(l.s, %L::float8)']) form;
SELECT same_rows('SELECT l.id, r.id FROM stars l JOIN stars r ON ' || condition, true, condition)
FROM unnest(ARRAY['l.s <@ scircle(r.s, r.r)', 'l.s <@ scircle(r.s, l.r)', 'l.s <-> r.s <= l.r + r.r', 'l.s <-> r.s < r.r', 'l.s <-> r.s < 0.00001 AND l.kind = r.kind', 'l.s <-> r.s < 0.00001 AND l.id < r.id',
  'spoint(radians(l.ra), radians(l.dec)) <-> spoint(radians(r.ra), radians(r.dec)) < radians(0.001)', 'spoint(radians(l.ra), radians(l.dec)) <@ scircle(r.s, radians(1. / 3600))']) condition;
CREATE FUNCTION first_row(query text, node boolean) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM force_node(node);
  RETURN (bag(query))[1];
END $$;
SELECT alike(first_row('SELECT l.id, r.id FROM stars l JOIN stars r ON ' || condition, node), 'ERROR XX000 radius must % greater than 90 degrees or less than 0',
  format('a circle that is none, by the node %s: %s', node, condition))
FROM unnest(ARRAY['l.s <@ scircle(r.s, -0.1)', 'l.s <@ scircle(r.s, 1.6)', 'l.s <@ scircle(r.s, 2 * r.r - 0.000001)', 'l.s <@ scircle(r.s, r.r + 1.6)']) condition, unnest('{f,t}'::bool[]) node;
SELECT force_node(false);
SELECT same_rows('SELECT l.id FROM stars l WHERE NOT EXISTS (SELECT FROM stars r WHERE l.s <-> r.s < 0.0001 AND l.id <> r.id)', true, 'NOT EXISTS');
SELECT same_rows('SELECT l.id, s.* FROM stars l CROSS JOIN LATERAL (SELECT r.id, l.s <-> r.s AS d FROM stars r ORDER BY l.s <-> r.s, r.id LIMIT 3) s', NULL, 'nearest');
SELECT cmp_ok(property('Evaluated Pairs', 'SELECT l.id, r.id FROM stars l JOIN stars r ON l.s <-> r.s < 0.0000123')::int, '<', 25, 'the engine decides nearly all pairs');

-- What is not finite.
INSERT INTO stars (id, s, r) VALUES (801, spoint('NaN'::float8, 1), 0.1), (802, spoint(1, 'Infinity'::float8), 0.1), (803, spoint(1, 1), 'NaN');
SELECT same_rows('SELECT l.id, r.id FROM stars l JOIN stars r ON ' || condition, true, 'not finite: ' || condition)
FROM unnest(ARRAY['l.s <-> r.s <= 0.5', 'l.s <@ scircle(r.s, 0.5)', 'l.s <-> r.s < r.r']) condition;
\else
SELECT skip('no pgsphere', 1);
\endif

SELECT * FROM finish();
ROLLBACK;
