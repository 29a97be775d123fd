-- What stands above a join and need not see its pairs: count(*), GROUP BY a key with count(*), ORDER BY distance
-- LIMIT k. The same answers as without the node, and the plans that are meant.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA planner_upper;
SET search_path = planner_upper, public;
SET jit = off;
SET extra_float_digits = 1;

\ir same_rows.psql

CREATE TABLE a (id int PRIMARY KEY, name text UNIQUE, code int NOT NULL UNIQUE, grp int, v float8[], p point);
INSERT INTO a
SELECT i, CASE WHEN i % 5 > 0 THEN 'n' || i END, 1000 - i, i % 4, CASE WHEN i % 17 > 0 THEN ARRAY[i * 7 % 13, i * 5 % 11] END,
  point(i * 7 % 13, i * 5 % 11)
FROM generate_series(1, 300) i;
CREATE TABLE b AS
  SELECT id, grp, CASE WHEN v IS NOT NULL THEN ARRAY[v[1] + 0.5, v[2]]::float8[] END AS v, p FROM a WHERE id % 2 = 0;
CREATE TABLE nothing (LIKE a);
CREATE VIEW fewer AS SELECT * FROM a WHERE grp < 3;
CREATE TABLE parts (id int, v float8[]) PARTITION BY LIST (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1, 2, 3);
CREATE TABLE parts_2 PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT id, v FROM a;
ANALYZE a, b, nothing, parts;

-- What EXPLAIN says of the node: how many pairs it tells, `pairs`, `pairs per row` or the number of first ones.
CREATE FUNCTION told(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  line text;
  result text := 'all pairs';
  found_it boolean := false;
BEGIN
  PERFORM force_node(true);
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    found_it := found_it OR line LIKE '%GpuSimilarityJoin%';
    result := coalesce(substring(line FROM '(?:Counts|K): (.*)'), result);
  END LOOP;
  PERFORM force_node(false);
  RETURN CASE WHEN found_it THEN result ELSE 'no node' END;
END $$;

CREATE TABLE cases (query text, told text);
INSERT INTO cases VALUES
  ('SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= 2', 'pairs'),
  ('SELECT count(*) + 1, 7, count(*)::text FROM a JOIN b ON a.v <-> b.v < 2', 'pairs'),
  ('SELECT count(*) FROM a l JOIN a r ON l.v <-> r.v <= 2', 'pairs'),
  ('SELECT count(*) FROM a JOIN b ON gpu_within(a.v, b.v, 2) HAVING count(*) > 5', 'pairs'),
  ('SELECT count(*) FROM a JOIN b ON gpu_within(a.v, b.v, 2) HAVING count(*) < 5', 'pairs'),
  ('SELECT count(*) FROM fewer l JOIN b ON l.v <-> b.v <= 2 WHERE b.grp = 2', 'pairs'),
  ('SELECT count(*) FROM nothing l JOIN b ON l.v <-> b.v <= 2', 'pairs'),
  ('SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= NULL::float8', NULL),
  ('SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= ''NaN''', 'pairs'),
  ('SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= -1', 'pairs'),
  ('SELECT count(*) FROM a JOIN b ON a.p <-> b.p <= 5', 'pairs'),
  ('SELECT count(*) FROM a JOIN b ON gpu_within(a.p, b.p, 5)', 'pairs'),
  ('SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= 2 JOIN (SELECT 1 AS grp) g ON a.grp = g.grp', NULL),
  ('SELECT count(*) FROM parts l JOIN b ON l.v <-> b.v <= 2', 'pairs'),
  ('SELECT (SELECT count(*) FROM b WHERE b.v <-> a.v <= 2) FROM a', NULL),
  ('SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= 2 AND a.id < b.id', 'pairs'),
  ('SELECT count(*), sum(a.id) FROM a JOIN b ON a.v <-> b.v <= 2', 'all pairs'),
  ('SELECT count(a.grp) FROM a JOIN b ON a.v <-> b.v <= 2', 'all pairs'),
  ('SELECT count(DISTINCT a.grp) FROM a JOIN b ON a.v <-> b.v <= 2', 'all pairs'),
  ('SELECT count(*) FILTER (WHERE a.grp = 1) FROM a JOIN b ON a.v <-> b.v <= 2', 'all pairs'),
  ('SELECT count(*) FROM a LEFT JOIN b ON a.v <-> b.v <= 2', 'all pairs'),
  ('SELECT count(*) FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 2)', 'all pairs'),
  ('SELECT count(*), generate_series(1, 2) FROM a JOIN b ON a.v <-> b.v <= 2', 'all pairs'),
  ('SELECT count(*) OVER () FROM a JOIN b ON a.v <-> b.v <= 2', 'all pairs'),
  ('SELECT a.id, count(*) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.id', 'pairs per row'),
  ('SELECT count(*), b.p::text, a.id FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.id, b.p::text', 'all pairs'),
  ('SELECT count(*), a.name, a.grp FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.id', 'pairs per row'),
  ('SELECT r.id, count(*) * 2 FROM b l JOIN a r ON l.v <-> r.v <= 2 GROUP BY r.id', 'pairs per row'),
  ('SELECT r.id, l.id, count(*) FROM a l JOIN a r ON l.v <-> r.v <= 2 GROUP BY l.id, r.id', 'all pairs'),
  ('SELECT l.id, count(*) FROM a l JOIN a r ON l.v <-> r.v <= 2 GROUP BY l.id HAVING count(*) > 3 AND l.id > 9', 'pairs per row'),
  ('SELECT a.code, count(*) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.code', 'pairs per row'),
  ('SELECT a.name, count(*) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.name', 'all pairs'),
  ('SELECT a.grp, count(*) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', 'all pairs'),
  ('SELECT a.grp, a.id, count(*) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY ROLLUP (a.grp, a.id)', 'all pairs'),
  ('SELECT b.id, count(*) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY b.id', 'all pairs'),
  ('SELECT a.id, count(*) FROM a JOIN b ON a.p <-> b.p < 2 GROUP BY a.id', 'pairs per row'),
  ('SELECT a.id, count(*) FROM a JOIN b ON a.v <-> b.v <= ''NaN'' GROUP BY a.id', 'pairs per row'),
  ('SELECT a.id, count(*) FROM a LEFT JOIN b ON a.v <-> b.v <= 2 GROUP BY a.id', 'all pairs'),
  ('SELECT id, count(*) FROM parts l JOIN (SELECT v FROM b) r ON l.v <-> r.v <= 2 GROUP BY id', 'all pairs'),
  ('SELECT count(*), sum(n) FROM (SELECT count(*) AS n FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.id, random()) s', 'all pairs'),
  ('SELECT count(*), sum(n) FROM (SELECT count(*) AS n FROM a JOIN b ON a.v <-> b.v <= 2
      GROUP BY a.id, (SELECT random() + a.id * 0)) s', 'all pairs'),
  ('SELECT a.id, count(*) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.id, a.grp + 1, length(a.name)', 'pairs per row'),
  ('SELECT a.id, GROUPING(a.id), count(*) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.id', 'all pairs'),
  ('SELECT max(n) FROM (SELECT count(*) AS n FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.id) s', 'pairs per row'),
  ('SELECT count(*) FROM gpu_selfjoin(''a'', 2, vector_columns => ''{v}'')', 'pairs'),
  ('SELECT count(*) FROM gpu_selfjoin(''a'', 2, vector_columns => ''{v}'', pairs => ''unordered'')', 'pairs'),
  ('SELECT count(*) FROM gpu_selfjoin_distance(''a'', 2, vector_columns => ''{v}'', pairs => ''distinct'')', 'pairs'),
  ('SELECT count(*) FROM gpu_join(''a'', ''b'', 2, ''id'', ''id'', ''{v}'', ''{v}'')', 'pairs'),
  ('SELECT count(*) FROM gpu_join(''a'', ''b'', NULL, ''id'', ''id'', ''{v}'', ''{v}'')', 'pairs'),
  ('SELECT count(*) FROM gpu_selfjoin(''a'', 2, vector_columns => ''{v}'') WHERE id1 < id2', 'all pairs'),
  ('SELECT id1, count(*) FROM gpu_selfjoin(''a'', 2, vector_columns => ''{v}'') GROUP BY id1', 'all pairs'),
  ('SELECT eps, (SELECT count(*) FROM gpu_selfjoin(''a'', eps, vector_columns => ''{v}'')) FROM generate_series(0, 3) eps', 'pairs');
SELECT same_rows(query, NULL, query) FROM cases;
SELECT is(told(query), c.told, query || ': what the node tells') FROM cases c WHERE c.told IS NOT NULL;

-- A table joined with itself by an order of keys: where both sides are the same rows, and no key is there twice, the engine
-- counts each pair once, without making any. Else the condition is asked.
CREATE TABLE gaps AS SELECT nullif(id, 5) AS id, id::bigint * 1000000007 AS wide, id % 100 AS some, v FROM a;
ANALYZE gaps;
CREATE TABLE selves (source text, condition text, selection text);
INSERT INTO selves VALUES
  ('a l JOIN a r ON', 'l.id < r.id', 'unordered'), ('a l JOIN a r ON', 'r.id < l.id', 'unordered'),
  ('a l JOIN a r ON', 'l.code > r.code', 'unordered'), ('a l JOIN a r ON', 'l.id <> r.id', 'distinct'),
  ('gaps l JOIN gaps r ON', 'l.wide < r.wide', 'unordered'), ('fewer l JOIN fewer r ON', 'l.id < r.id', 'unordered'),
  ('parts l JOIN parts r ON', 'l.id < r.id', 'unordered'),
  ('gaps l JOIN gaps r ON', 'l.id < r.id', 'all'), ('gaps l JOIN gaps r ON', 'l.some < r.some', 'all'),
  ('gaps l JOIN gaps r ON', 'l.some <> r.some', 'all'), ('a l JOIN a r ON', 'l.id <= r.id', 'all'),
  ('a l JOIN a r ON', 'l.id < r.code', 'all'), ('a l JOIN a r ON', 'l.name < r.name', 'all'),
  ('a l JOIN a r ON', 'l.id < r.id AND l.code < r.code', 'unordered'), ('a l JOIN b r ON', 'l.id < r.id', 'all'),
  ('fewer l JOIN a r ON', 'l.id < r.id', 'all'), ('a l LEFT JOIN a r ON', 'l.id < r.id', 'unordered'),
  ('(SELECT * FROM a ORDER BY id LIMIT 99) l JOIN (SELECT * FROM a ORDER BY id DESC LIMIT 99) r ON', 'l.id < r.id', 'all'),
  ('(SELECT id, v FROM a) l JOIN (SELECT 300 - id AS id, v FROM a) r ON', 'l.id < r.id', 'all');
CREATE FUNCTION selection(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE selected text;
BEGIN
  PERFORM force_node(true);
  EXECUTE query;
  SELECT pair_selection INTO selected FROM gpu_last_join();
  PERFORM force_node(false);
  RETURN selected;
END $$;
SELECT same_rows(query, NULL, query)
FROM selves c, format('SELECT count(*) FROM %s %s AND l.v <-> r.v <= 2', source, condition) query;
SELECT is(selection(query), c.selection, query || ': pairs that the engine is asked for')
FROM selves c, format('SELECT count(*) FROM %s %s AND l.v <-> r.v <= 2', source, condition) query;
SELECT same_rows(query, NULL, query)
FROM selves c, format('SELECT l.id, count(*) FROM %s %s AND l.v <-> r.v <= 2 GROUP BY l.id', source, condition) query;

-- From PostgreSQL 18 on a constraint that is NOT VALID makes a column NOT NULL, though old rows may be: they are one group.
SELECT current_setting('server_version_num')::int >= 180000 AS has_not_valid \gset
\if :has_not_valid
CREATE TABLE lax (code int UNIQUE, v float8[]);
INSERT INTO lax VALUES (NULL, '{0,0}'), (NULL, '{0,0}'), (1, '{0,0}');
ALTER TABLE lax ADD CONSTRAINT filled NOT NULL code NOT VALID;
ANALYZE lax;
SELECT same_rows('SELECT lax.code, count(*) FROM lax JOIN b ON lax.v <-> b.v <= 3 GROUP BY lax.code', NULL, 'NOT NULL, NOT VALID');
SELECT is(told('SELECT lax.code, count(*) FROM lax JOIN b ON lax.v <-> b.v <= 3 GROUP BY lax.code'), 'all pairs', 'is no key');
\endif

-- Nearest pairs: many are equally near, so what is compared are the distances, and that each pair has the one it says.
CREATE TABLE nearest (query text, told text);
INSERT INTO nearest VALUES
  ('SELECT a.v <-> b.v AS d FROM a JOIN b ON a.v <-> b.v <= 3 ORDER BY a.v <-> b.v LIMIT 10', '10'),
  ('SELECT a.v <-> b.v AS d FROM a JOIN b ON a.v <-> b.v <= 3 ORDER BY d LIMIT 10 OFFSET 7', '17'),
  ('SELECT b.v <-> a.v AS d FROM a JOIN b ON gpu_within(a.v, b.v, 3) ORDER BY d LIMIT 1', '1'),
  ('SELECT l.v <-> r.v AS d FROM a l JOIN a r ON l.v <-> r.v < 4 AND l.id < r.id ORDER BY d LIMIT 300', '300'),
  ('SELECT l.v <-> r.v AS d FROM a l JOIN a r ON l.v <-> r.v < 4 AND (l.grp = r.grp) IS TRUE ORDER BY d LIMIT 100000', '100000'),
  ('SELECT a.v <-> b.v AS d FROM a JOIN b ON a.v <-> b.v <= ''NaN'' ORDER BY d LIMIT 50', '50'),
  ('SELECT a.v <-> b.v AS d FROM nothing a JOIN b ON a.v <-> b.v <= 3 ORDER BY d LIMIT 10', 'all pairs'),
  ('SELECT a.v <-> b.v AS d FROM a JOIN b ON a.v <-> b.v <= 3 ORDER BY d LIMIT (SELECT 3)', 'all pairs'),
  ('SELECT a.v <-> b.v AS d FROM a JOIN b ON a.v <-> b.v <= 3 ORDER BY d FETCH FIRST 3 ROWS WITH TIES', 'all pairs'),
  ('SELECT a.v <-> b.v AS d FROM a JOIN b ON a.v <-> b.v <= 3 ORDER BY d DESC LIMIT 3', 'all pairs'),
  ('SELECT a.v <-> b.v AS d FROM a JOIN b ON a.v <-> b.v <= 3 ORDER BY d, a.id LIMIT 3', '3'),
  ('SELECT DISTINCT a.v <-> b.v AS d FROM a JOIN b ON a.v <-> b.v <= 3 ORDER BY d LIMIT 3', 'all pairs'),
  ('SELECT a.p <-> b.p AS d FROM a JOIN b ON a.p <-> b.p <= 3 ORDER BY d LIMIT 3', '3'),
  ('SELECT a.p <-> b.p AS d FROM a JOIN b ON a.p <-> b.p <= 3 AND a.id <> b.id ORDER BY b.p <-> a.p LIMIT 700', '700'),
  ('SELECT a.p <-> b.p AS d FROM a JOIN b ON gpu_within(a.p, b.p, 3) ORDER BY d LIMIT 100', '100'),
  ('SELECT a.f <-> b.f AS d FROM (SELECT id, v::float4[] AS f FROM a) a JOIN (SELECT v::float4[] AS f FROM b) b
      ON a.f <-> b.f <= 3 ORDER BY d LIMIT 100', '100'),
  ('SELECT b.v <-> ARRAY[1, 1]::float8[] AS d FROM a JOIN b ON a.v <-> b.v <= 3 ORDER BY d LIMIT 3', 'all pairs'),
  ('SELECT a.v <-> b.v AS d FROM a LEFT JOIN b ON a.v <-> b.v <= 3 ORDER BY d LIMIT 3', 'all pairs');
SELECT same_rows(query, NULL, query) FROM nearest;
SELECT is(told(query), n.told, query || ': what the node tells') FROM nearest n;
SELECT force_node(true);
SELECT results_eq(
  'SELECT d FROM (SELECT a.id, b.id AS other, a.v <-> b.v AS d FROM a JOIN b ON a.v <-> b.v <= 3 ORDER BY d LIMIT 500) s',
  'SELECT * FROM (SELECT a.v <-> b.v AS d FROM a, b WHERE (a.v <-> b.v) + 0 <= 3) s ORDER BY d LIMIT 500',
  'the nearest pairs come in order');
SELECT is_empty(
  'SELECT FROM (SELECT a.id, b.id AS other, a.v <-> b.v AS d FROM a JOIN b ON a.v <-> b.v <= 3 ORDER BY d LIMIT 500) s
   JOIN a ON a.id = s.id JOIN b ON b.id = s.other WHERE a.v <-> b.v <> d', 'and are as far apart as they say');
-- By the operator's own arithmetic, which is not that of gpu_within().
CREATE TABLE anywhere AS SELECT i AS id, point(sin(i) * 7, cos(i * 3) * 11) AS p FROM generate_series(1, 400) i;
SELECT results_eq(
  'SELECT l.p <-> r.p FROM anywhere l JOIN anywhere r ON gpu_within(l.p, r.p, 9) ORDER BY l.p <-> r.p LIMIT 20000',
  'SELECT d FROM (SELECT l.p <-> r.p AS d FROM anywhere l, anywhere r OFFSET 0) s ORDER BY d LIMIT 20000',
  'the nearest points come in order, to the last bit');
SELECT is(told('SELECT l.p <-> r.p FROM anywhere l JOIN anywhere r ON gpu_within(l.p, r.p, 9) ORDER BY l.p <-> r.p
  LIMIT 20000'), '20000', 'and are those that the node is asked for');
SELECT force_node(true);
PREPARE grouped(float8) AS SELECT a.id, count(*) FROM a JOIN b ON a.v <-> b.v <= $1 GROUP BY a.id;
PREPARE counted(float8) AS SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= $1;
SET plan_cache_mode = force_generic_plan;
SELECT results_eq('EXECUTE counted(' || eps || ')', 'SELECT count(*) FROM a, b WHERE (a.v <-> b.v) + 0 <= ' || eps,
  'a prepared count within ' || eps) FROM unnest('{2,0,-1,5}'::float8[]) eps;
SELECT bag_eq('EXECUTE grouped(' || eps || ')',
  'SELECT a.id, count(*) FROM a, b WHERE (a.v <-> b.v) + 0 <= ' || eps || ' GROUP BY a.id',
  'prepared counts within ' || eps) FROM unnest('{2,0,-1,5}'::float8[]) eps;

-- Whoever may not call an aggregate, or the equality of a group, gets PostgreSQL's own error where the node calls neither.
CREATE TABLE days (day date PRIMARY KEY, month date, v float8[]);
INSERT INTO days SELECT date '2026-01-01' + id, date '2026-01-01' + id % 9, v FROM a;
ANALYZE days;
CREATE ROLE gpujoin_upper_caller;
GRANT USAGE ON SCHEMA planner_upper TO gpujoin_upper_caller;
GRANT SELECT ON a, b, days TO gpujoin_upper_caller;
CREATE TABLE denied (query text, message text);
INSERT INTO denied VALUES
  ('SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= 2', 'aggregate count'),
  ('SELECT a.id, count(*) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.id', 'aggregate count'),
  ('SELECT a.grp, count(*) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', 'aggregate count'),
  ('SELECT count(*) FROM gpu_join(''a'', ''b'', 2, ''id'', ''id'', ''v'', ''v'')', 'aggregate count'),
  ('SELECT day, sum(b.id) FROM days a JOIN b ON a.v <-> b.v <= 2 GROUP BY day', 'function date_eq'),
  ('SELECT month FROM days a JOIN b ON a.v <-> b.v <= 2 GROUP BY month', 'function date_eq'),
  ('SELECT DISTINCT month FROM days a JOIN b ON a.v <-> b.v <= 2', 'function date_eq');
INSERT INTO denied VALUES ('SELECT day, count(*) FROM days a JOIN b ON a.v <-> b.v <= 2 GROUP BY day', 'function date_eq');
GRANT SELECT ON denied TO gpujoin_upper_caller;
DEALLOCATE ALL;
SELECT force_node(true) \gset
SELECT ok(has_node(query), 'by the node: ' || query) FROM denied;
REVOKE EXECUTE ON FUNCTION pg_catalog.count(), pg_catalog.date_eq(date, date) FROM PUBLIC;
SET ROLE gpujoin_upper_caller;
SELECT throws_ok(query, '42501', 'permission denied for ' || message, 'not allowed: ' || query) FROM denied WHERE message LIKE 'aggregate%';
RESET ROLE;
GRANT EXECUTE ON FUNCTION pg_catalog.count() TO PUBLIC;
SET ROLE gpujoin_upper_caller;
SELECT throws_ok(query, '42501', 'permission denied for ' || message, 'not allowed: ' || query) FROM denied WHERE message LIKE 'function%';
SELECT lives_ok(query, 'allowed: ' || query) FROM denied WHERE message LIKE 'aggregate%';
RESET ROLE;
GRANT EXECUTE ON FUNCTION pg_catalog.date_eq(date, date) TO PUBLIC;

SELECT * FROM finish();
ROLLBACK;
