-- Cross-matches of catalogues by q3c: q3c_join() and q3c_dist(), with one radius and with a radius in each row. With GpuSimilarityJoin and
-- without it the same rows.
BEGIN;
SELECT * FROM no_plan();
SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'q3c') AS has_q3c \gset
\if :has_q3c
CREATE EXTENSION IF NOT EXISTS q3c;
CREATE SCHEMA planner_q3c;
SET search_path = planner_q3c, public;
SET jit = off;
SET client_min_messages = error; -- q3c's estimate of a join leaves references to statistics behind, and PostgreSQL warns
\ir same_rows.psql

-- Stars all over the sky, at the poles, on either side of right ascension 0, in a cluster, on a line of equal steps, and some twice.
CREATE TABLE stars (id int PRIMARY KEY, kind text, ra float8, dec float8, err float8, rr real, rd real, mag float8);
INSERT INTO stars SELECT i, 'sky', i * 137.50776 - floor(i * 137.50776 / 360) * 360, degrees(asin(2 * (i - 0.5) / 60 - 1)) FROM generate_series(1, 60) i;
INSERT INTO stars SELECT 100 + i, 'pole', i * 61 % 360, (90 - i * 0.0002) * (i % 2 * 2 - 1) FROM generate_series(1, 20) i;
INSERT INTO stars SELECT 200 + i, 'zero', i * 0.00007 + (i % 2) * (360 - i * 0.00014), i * 37 % 100 * 0.0001 + 10 FROM generate_series(1, 20) i;
INSERT INTO stars SELECT 300 + i, 'cluster', 56.75 + i * 7 % 31 * 0.0001, 24.1 + i * 5 % 29 * 0.0001 FROM generate_series(1, 60) i;
INSERT INTO stars SELECT 400 + i, 'line', 120 + i * 0.001, 0 FROM generate_series(1, 9) i;
INSERT INTO stars SELECT 500 + i, 'twice', 56.75 + i * 7 % 31 * 0.0001, 24.1 + i * 5 % 29 * 0.0001 FROM generate_series(1, 5) i;
INSERT INTO stars VALUES (600, 'corner', 0, 90), (601, 'corner', 123, 90), (602, 'corner', 360, 0), (603, 'corner', 0, 0), (604, 'corner', 180, -90), (605, 'corner', -160, 20), (606, 'corner', 200, 20);
UPDATE stars SET err = id % 11 * 0.00005, rr = ra, rd = dec, mag = id % 17;
INSERT INTO stars (id, kind, dec, err) VALUES (700, 'none', 1, 1), (701, 'none', NULL, NULL);
UPDATE stars SET err = NULL WHERE id % 19 = 0;
ANALYZE stars;
CREATE TABLE others AS SELECT * FROM stars;
CREATE INDEX ON others (q3c_ang2ipix(ra, dec));
ANALYZE others;

SELECT same_rows(format('SELECT l.id, r.id FROM stars l JOIN others r ON ' || form, r), true, format(form, r))
FROM unnest('{-0.001,0,1e-15,0.00027777777777777778,0.001,0.5,60,135,179.9999,180,200}'::float8[]) r,
  unnest(ARRAY['q3c_dist(l.ra, l.dec, r.ra, r.dec) <= %L::float8', '%L::float8 > q3c_dist(r.ra, r.dec, l.ra, l.dec)', 'q3c_dist(l.rr, l.rd, r.ra, r.dec) < %L::float8']) form;
SELECT same_rows(format('SELECT l.id, r.id FROM stars l JOIN others r ON ' || form, r), true, format(form, r))
FROM unnest('{0,1e-9,0.00027777777777777778,0.001,0.01,2,29}'::float8[]) r,
  unnest(ARRAY['q3c_join(l.ra, l.dec, r.ra, r.dec, %L)', 'q3c_join(r.ra, r.dec, l.ra, l.dec, %L)', 'q3c_join(l.ra, l.dec, r.rr, r.rd, %L)']) form;
-- q3c's functions themselves refuse such radii, or find what they find.
SELECT same_rows(format('SELECT l.id, r.id FROM stars l JOIN others r ON q3c_join(l.ra, l.dec, r.ra, r.dec, %L) AND l.id %% 7 = 0', r), NULL, 'a radius of ' || r)
FROM unnest('{-0.001,60,100,200}'::float8[]) r;
SELECT same_rows('SELECT l.id, r.id FROM stars l JOIN others r ON ' || condition, true, condition)
FROM unnest(ARRAY['q3c_join(l.ra, l.dec, r.ra, r.dec, 1./3600)', 'q3c_join(l.ra, l.dec, r.ra, r.dec, l.err)', 'q3c_join(l.ra, l.dec, r.ra, r.dec, r.err)',
  'q3c_join(l.ra, l.dec, r.ra, r.dec, l.err + r.err)', 'q3c_dist(l.ra, l.dec, r.ra, r.dec) < r.err', 'q3c_dist(l.ra, l.dec, r.ra, r.dec) <= l.err + r.err',
  'q3c_dist(l.ra, l.dec, r.ra, r.dec) <= l.err + r.err + 0.0001', 'q3c_join(l.ra, l.dec, r.ra, r.dec, 0.001) AND l.mag < r.mag', 'q3c_join(l.ra, l.dec, r.ra, r.dec, 0.001) AND l.kind = r.kind',
  'q3c_dist(l.ra, l.dec, r.ra, r.dec) BETWEEN 0 AND 0.002', 'q3c_dist(l.ra, l.dec, r.ra, r.dec) < 0.0005 OR q3c_dist(l.ra, l.dec, r.ra, r.dec) < 0.001',
  'q3c_sindist(l.ra, l.dec, r.ra, r.dec) < 1e-11']) condition;
SELECT same_rows(format(query, condition), true, format(query, condition))
FROM unnest(ARRAY['q3c_join(l.ra, l.dec, r.ra, r.dec, 0.001)', 'q3c_dist(l.ra, l.dec, r.ra, r.dec) < 0.001']) condition,
  unnest(ARRAY['SELECT l.id, r.id FROM stars l LEFT JOIN others r ON %s AND r.kind <> ''cluster''',
    'SELECT l.id FROM stars l WHERE EXISTS (SELECT FROM others r WHERE %s AND l.id <> r.id)',
    'SELECT l.id FROM stars l WHERE NOT EXISTS (SELECT FROM others r WHERE %s AND l.id <> r.id)',
    'SELECT l.kind, count(*), min(q3c_dist(l.ra, l.dec, r.ra, r.dec)) FROM stars l JOIN others r ON %s GROUP BY 1']) query;

-- The nearest star of the other catalogue, as the manual of q3c has it.
SELECT same_rows('SELECT l.id, s.* FROM stars l LEFT JOIN LATERAL (SELECT r.id, q3c_dist(l.ra, l.dec, r.ra, r.dec) AS d FROM others r WHERE q3c_join(l.ra, l.dec, r.ra, r.dec, 0.002)
  ORDER BY q3c_dist(l.ra, l.dec, r.ra, r.dec), r.id LIMIT 1) s ON true', NULL, 'nearest within a radius');
SELECT same_rows('SELECT l.id, s.* FROM stars l CROSS JOIN LATERAL (SELECT r.id, q3c_dist(l.ra, l.dec, r.ra, r.dec) AS d FROM others r ORDER BY q3c_dist(l.ra, l.dec, r.ra, r.dec), r.id LIMIT 3) s', NULL, 'nearest');

-- A generic plan.
SET plan_cache_mode = force_generic_plan;
PREPARE by_join(float8) AS SELECT l.id, r.id FROM stars l JOIN others r ON q3c_join(l.ra, l.dec, r.ra, r.dec, $1);
PREPARE by_dist(float8) AS SELECT l.id, r.id FROM stars l JOIN others r ON q3c_dist(l.ra, l.dec, r.ra, r.dec) < $1;
SELECT same_rows(format('EXECUTE %I(%L)', name, r), NULL, format('%s within %s', name, r)) FROM unnest('{by_join,by_dist}'::text[]) name, unnest('{0,0.001,1,Infinity,NaN,NULL}'::float8[] || NULL::float8) r;
RESET plan_cache_mode;

SELECT cmp_ok(property('Evaluated Pairs', 'SELECT l.id, r.id FROM stars l JOIN others r ON q3c_dist(l.ra, l.dec, r.ra, r.dec) < 0.00123')::int, '<', 5, 'the engine decides nearly all pairs');
SELECT is(property('Evaluated Pairs', 'SELECT l.id, r.id FROM stars l JOIN others r ON q3c_dist(l.ra, l.dec, r.ra, r.dec) < l.err + 1e-7')::int < 20, true, 'with radii in rows, too');

-- What is no place on the sky.
INSERT INTO others (id, ra, dec, err) VALUES (801, 400, 10, 0.001), (802, 10, 95, 0.001), (803, -1000, -10, 0.001), (804, 40, 10, -0.001), (805, 40, 10, 'NaN'), (806, 40, 10, 'Infinity');
SELECT same_rows(format('SELECT l.id, r.id FROM stars l JOIN others r ON %s', condition), true, 'beyond the range: ' || condition)
FROM unnest(ARRAY['q3c_dist(l.ra, l.dec, r.ra, r.dec) < 0.7', 'q3c_join(l.ra, l.dec, r.ra, r.dec, 0.7)', 'q3c_dist(l.ra, l.dec, r.ra, r.dec) < r.err', 'q3c_join(l.ra, l.dec, r.ra, r.dec, r.err)']) condition;
INSERT INTO others (id, ra, dec, err) VALUES (807, 'NaN', 10, 0.001), (808, 10, 'Infinity', 0.001);
SELECT same_rows(format('SELECT l.id, r.id FROM stars l JOIN others r ON %s', condition), true, 'what is not finite: ' || condition)
FROM unnest(ARRAY['q3c_dist(l.ra, l.dec, r.ra, r.dec) < 0.7', 'q3c_join(l.ra, l.dec, r.ra, r.dec, 0.7)']) condition;
\else
SELECT skip('no q3c', 1);
\endif

SELECT * FROM finish();
ROLLBACK;
