-- What planning costs and leaves behind: no query that is only planned reads much, waits long, or shows in locks and
-- statistics; and whose estimates, which prices.
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT * FROM no_plan();
CREATE SCHEMA planner_estimates;
SET search_path = planner_estimates, public;
SET jit = off;

\ir same_rows.psql

-- None is made from another, which would leave traces of its own.
CREATE FUNCTION numbered(most int, step int, OUT id int, OUT v float8[], OUT p point) RETURNS SETOF record LANGUAGE sql AS $$
  SELECT i, ARRAY[x, y], point(x, y) FROM generate_series(step, most, step) i, LATERAL (SELECT i * 37 % 1009 AS x, i * 91 % 983 AS y) c $$;
CREATE TABLE points (id int PRIMARY KEY, v float8[], p point);
INSERT INTO points SELECT * FROM numbered(20000, 1);
CREATE TABLE few AS SELECT * FROM numbered(20000, 2000);
-- Vectors that statistics do not keep, and that lie out of line; the wider ones are too wide to be read.
CREATE TABLE wide AS SELECT i AS id, (SELECT array_agg(sin(i * k)::float4) FROM generate_series(1, 1536) k) AS v
FROM generate_series(1, 300) i;
CREATE TABLE wider AS SELECT i AS id, v FROM (SELECT array_agg(sin(k)) AS v FROM generate_series(1, 16000) k) s, generate_series(1, 200) i;
ANALYZE points, few, wide, wider;

CREATE FUNCTION plan_of(query text, OUT top json, OUT blocks float8, OUT ms float8) LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON, BUFFERS, SUMMARY) ' || query INTO plan;
  top := plan -> 0 -> 'Plan';
  blocks := (plan -> 0 -> 'Planning' ->> 'Shared Hit Blocks')::float8 + (plan -> 0 -> 'Planning' ->> 'Shared Read Blocks')::float8;
  ms := plan -> 0 ->> 'Planning Time';
END $$;

-- What planning costs more with the node than without it, the best of several times.
CREATE FUNCTION extra(query text, OUT blocks float8, OUT ms float8) LANGUAGE plpgsql AS $$
DECLARE
  with_node record;
  without record;
BEGIN
  PERFORM set_config('gpujoin.enable_customscan', 'off', true);
  SELECT min(p.blocks) AS blocks, min(p.ms) AS ms INTO without FROM generate_series(1, 7) i, plan_of(query || repeat(' ', i)) p;
  PERFORM set_config('gpujoin.enable_customscan', 'on', true);
  SELECT min(p.blocks) AS blocks, min(p.ms) AS ms INTO with_node FROM generate_series(1, 7) i, plan_of(query || repeat(' ', i)) p;
  blocks := with_node.blocks - without.blocks;
  ms := with_node.ms - without.ms;
END $$;

CREATE TABLE planned (query text, most_blocks float8); -- finding out whose a function is takes a few
INSERT INTO planned VALUES
  ('SELECT * FROM points a JOIN points b ON a.p <-> b.p <= 3', 40),
  ('SELECT * FROM points a JOIN few b ON a.p <-> b.p <= 3', 80),
  ('SELECT * FROM wide a JOIN wide b ON a.v <-> b.v <= 1', 300),
  ('SELECT * FROM wide a LEFT JOIN wide b ON a.v <-> b.v <= 1', 300),
  ('SELECT * FROM wide a JOIN wide b ON a.v <-> b.v <= 1 WHERE a.id = 5', 20),
  ('SELECT * FROM wider a JOIN wider b ON a.v <-> b.v <= 1', 40),
  ('SELECT * FROM points a JOIN points b ON a.p <-> b.p <= ''NaN''', 0);

-- Nothing of it stays. This comes first: nothing but ANALYZE has read the tables yet.
CREATE FUNCTION scans() RETURNS SETOF text LANGUAGE sql AS $$
  SELECT format('%s: %s scans of %s rows, %s of an index', relname, seq_scan, seq_tup_read, idx_scan) FROM pg_stat_xact_user_tables
  WHERE schemaname = 'planner_estimates' AND relname IN ('points', 'few', 'wide', 'wider') ORDER BY 1 $$;
CREATE TEMPORARY TABLE scans_before AS SELECT * FROM scans() s(line);
SELECT is(count(top)::int, 7, 'all are planned') FROM planned, plan_of(query);
SELECT set_eq('SELECT * FROM scans()', 'SELECT line FROM scans_before', 'planning counts no scan');
SELECT is_empty($$ SELECT relation::regclass, mode FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'SIReadLock'
    AND relation::regclass::text IN ('points', 'few', 'wide', 'wider') $$, 'planning takes no predicate locks');
SELECT is_empty($$ SELECT c.relname, mode FROM pg_locks JOIN pg_class c ON c.oid = relation
    WHERE pid = pg_backend_pid() AND mode = 'AccessShareLock' AND relnamespace = 'pg_toast'::regnamespace $$,
  'and keeps no locks where values lie out of line');

-- It is bounded whatever the dimensions. 64 million numbers, which take far longer than this, would be compared in
-- all pairs of 256 values.
CREATE TABLE extras AS SELECT * FROM planned, extra(query);
SELECT cmp_ok(blocks, '<=', most_blocks, query || ': few blocks are read') FROM extras;
SELECT cmp_ok(ms, '<', 20::float8, query || ': planned in no time') FROM extras;

-- Where the radius is not known nothing is read.
SET plan_cache_mode = force_generic_plan;
PREPARE within(float8) AS SELECT * FROM points a JOIN points b ON a.p <-> b.p <= $1;
SELECT is(blocks, 0::float8, 'a generic plan reads nothing') FROM extra('EXECUTE within(3)');
RESET plan_cache_mode;
SELECT lives_ok($$ EXPLAIN SELECT * FROM points a JOIN points b ON a.p <-> b.p <= current_setting('work_mem')::float8 $$,
  'and a radius that may raise an error is not asked for');

-- A statement can be cancelled while it is planned.
CREATE FUNCTION ms_until_cancelled(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE start timestamptz := clock_timestamp();
BEGIN
  EXECUTE query;
  RETURN 'infinity';
EXCEPTION WHEN query_canceled THEN
  RETURN extract(epoch FROM clock_timestamp() - start) * 1000;
END $$;
CREATE TABLE long AS SELECT 'EXPLAIN ' || string_agg('SELECT 1 FROM wide a JOIN wide b ON a.v <-> b.v <= 1 WHERE b.id > ' || -i,
  ' UNION ALL ') AS query FROM generate_series(1, 2500) i;
SET statement_timeout = 100;
SELECT cmp_ok(ms_until_cancelled(query), '<', 3000::float8, 'planning can be cancelled') FROM long;
RESET statement_timeout;

-- Estimates of wide vectors tell dense joins from sparse ones.
CREATE FUNCTION estimated(query text) RETURNS float8 LANGUAGE sql AS $$ SELECT (top ->> 'Plan Rows')::float8 FROM plan_of(query) $$;
SELECT cmp_ok(estimated('SELECT * FROM wide a JOIN wide b ON a.v <-> b.v <= 100'), '>', 80000::float8, 'all pairs are within 100');
SELECT cmp_ok(estimated('SELECT * FROM wide a JOIN wide b ON a.v <-> b.v <= 1'), '<', 3000::float8, 'few are within 1');

-- Prices: with all of PostgreSQL's times 100 every decision is the same.
CREATE FUNCTION has_dear_node(query text, factor float8) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE found_it boolean;
BEGIN
  PERFORM set_config(name, (boot_val::float8 * factor)::text, true) FROM pg_settings
  WHERE name ~ '_cost$' AND name !~ '^(jit|autovacuum|vacuum)_' OR name IN ('jit_above_cost');
  found_it := has_node(query);
  PERFORM set_config(name, boot_val, true) FROM pg_settings
  WHERE name ~ '_cost$' AND name !~ '^(jit|autovacuum|vacuum)_' OR name IN ('jit_above_cost');
  RETURN found_it;
END $$;
SELECT is(has_dear_node(query, factor), has_node(query), format('%s at prices times %s', query, factor))
FROM unnest('{0.01,100}'::float8[]) factor, (VALUES
  ('SELECT * FROM few a JOIN few b ON a.v <-> b.v <= 5'), ('SELECT * FROM points a JOIN points b ON a.v <-> b.v <= 5'),
  ('SELECT count(*) FROM few a JOIN few b ON a.p <-> b.p <= 5'), ('SELECT count(*) FROM points a JOIN points b ON a.p <-> b.p <= 5'),
  ('SELECT * FROM few a JOIN points b ON a.v <-> b.v <= 5 LIMIT 1'),
  ('SELECT * FROM points a JOIN points b ON a.v <-> b.v <= 500 LIMIT 1')) q(query);

-- A function tells a role nothing of a table that it may not read, and takes no lock on it.
CREATE ROLE gpujoin_stranger;
GRANT USAGE ON SCHEMA planner_estimates TO gpujoin_stranger;
CREATE TABLE secret (id int PRIMARY KEY, v float8[]);
INSERT INTO secret SELECT id, v FROM numbered(300, 1);
ANALYZE secret;
CREATE FUNCTION estimated_by(who name, query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE rows float8;
BEGIN
  EXECUTE format('SET LOCAL ROLE %I', who);
  rows := estimated(query);
  RESET ROLE;
  RETURN rows;
END $$;
SELECT is(estimated_by('gpujoin_stranger', format('SELECT * FROM gpu_selfjoin(%L, %s)', 'secret', eps)), 11000::float8,
  'a stranger''s estimate for ' || eps) FROM unnest('{0,3000}'::float8[]) eps;
SELECT is_empty($$ SELECT mode FROM pg_locks WHERE relation = 'secret'::regclass AND mode = 'AccessShareLock' $$,
  'and no lock');

-- Other extensions estimate their own conditions, whoever joins.
SELECT count(*) > 0 AS has_postgis FROM pg_available_extensions WHERE name = 'postgis' \gset
\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
CREATE TABLE places AS SELECT id, ST_MakePoint(v[1], v[2]) AS g FROM numbered(20000, 1);
ANALYZE places;
CREATE FUNCTION estimated_both_ways(query text) RETURNS float8[] LANGUAGE plpgsql AS $$
DECLARE rows float8[];
BEGIN
  PERFORM set_config('gpujoin.enable_customscan', 'off', true);
  rows := rows || estimated(query);
  PERFORM set_config('gpujoin.enable_customscan', 'on', true);
  RETURN rows || estimated(query);
END $$;
SELECT is(estimate[2], estimate[1], kind || condition || ': as PostGIS estimates it')
FROM unnest('{a.g && b.g,"ST_Intersects(a.g, b.g)","ST_DWithin(a.g, b.g, 3)"}'::text[]) condition,
  unnest('{"SELECT * FROM places a JOIN places b ON ","SELECT * FROM places a LEFT JOIN places b ON "}'::text[]) kind,
  estimated_both_ways(kind || condition) estimate;
\else
SELECT skip('no PostGIS', 1);
\endif

SELECT * FROM finish();
ROLLBACK;
