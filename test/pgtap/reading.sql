-- Whatever can be read can be joined, and is read as any query would: which rows, whose privileges, which policies.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA reading;
GRANT USAGE ON SCHEMA reading TO PUBLIC;
SET search_path = reading, public;
CREATE ROLE gpujoin_owner;
CREATE ROLE gpujoin_reader;
CREATE ROLE gpujoin_bypasser BYPASSRLS;
GRANT gpujoin_owner, gpujoin_reader, gpujoin_bypasser TO CURRENT_USER;

CREATE TABLE points (id int PRIMARY KEY, v float8[]);
INSERT INTO points SELECT i, ARRAY[i, i % 3] FROM generate_series(1, 30) i;
CREATE TABLE answer AS SELECT * FROM gpu_selfjoin('points', 3);
SELECT bag_eq('TABLE answer',
  'SELECT a.id::bigint AS id1, b.id::bigint AS id2 FROM points a, points b WHERE a.v <-> b.v <= 3',
  'the table is joined right to begin with');

-- Every way to keep the same rows gives the same pairs.
CREATE TABLE parts (filler text DEFAULT 'x', v float8[], id int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE low (id int NOT NULL, v float8[], filler text);
ALTER TABLE parts ATTACH PARTITION low FOR VALUES FROM (MINVALUE) TO (10);
CREATE TABLE high PARTITION OF parts FOR VALUES FROM (10) TO (MAXVALUE) PARTITION BY HASH (id);
CREATE TABLE high0 PARTITION OF high FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE high1 PARTITION OF high FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parts (id, v) SELECT * FROM points;
CREATE TABLE parent (id int PRIMARY KEY, v float8[]);
CREATE TABLE child (more text) INHERITS (parent);
CREATE TABLE grandchild () INHERITS (child);
INSERT INTO parent SELECT * FROM points WHERE id <= 10;
INSERT INTO child SELECT * FROM points WHERE id BETWEEN 11 AND 20;
INSERT INTO grandchild SELECT * FROM points WHERE id > 20;
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY, v float8[]);
INSERT INTO unlogged SELECT * FROM points;
CREATE TEMP TABLE scratch (id int PRIMARY KEY, v float8[]);
INSERT INTO scratch SELECT * FROM points;
CREATE TABLE generated (id int PRIMARY KEY, x float8, v float8[] GENERATED ALWAYS AS (ARRAY[x, id % 3]) STORED);
INSERT INTO generated SELECT id, v[1] FROM points;
CREATE TABLE grown (id int PRIMARY KEY, gone text, v float8[]);
INSERT INTO grown (id) SELECT id FROM points WHERE id % 2 = 0;
ALTER TABLE grown DROP gone, DROP v, ADD x float8 DEFAULT 0, ADD v float8[] DEFAULT '{1,2}';
UPDATE grown SET v = ARRAY[id, id % 3];
INSERT INTO grown (id, v) SELECT * FROM points WHERE id % 2 = 1;
CREATE TABLE compressed (id int PRIMARY KEY, v float8[]);
INSERT INTO compressed SELECT id, v || array_fill(0.5::float8, '{2000}') FROM points;
CREATE TABLE external (LIKE compressed INCLUDING INDEXES);
ALTER TABLE external ALTER v SET STORAGE EXTERNAL;
INSERT INTO external SELECT id, v || array_fill(0.5::float8, '{2000}') FROM points;
CREATE TABLE updated (LIKE points INCLUDING INDEXES);
INSERT INTO updated SELECT id, NULL FROM points;
UPDATE updated u SET v = p.v FROM points p WHERE p.id = u.id;
DELETE FROM updated WHERE id > 25;
INSERT INTO updated SELECT * FROM points WHERE id > 25;
CREATE VIEW plain AS SELECT v, id FROM points;
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM points WHERE id > 0;
CREATE VIEW unioned AS SELECT * FROM points WHERE id < 9 UNION ALL SELECT * FROM ONLY points WHERE id >= 9;
CREATE VIEW computed AS SELECT i AS id, ARRAY[i, i % 3]::float8[] AS v FROM generate_series(1, 30) i;
CREATE VIEW joined AS SELECT id, v FROM points JOIN generated USING (id, v);
CREATE RECURSIVE VIEW counted (id, v) AS
  SELECT 1, ARRAY[1, 1]::float8[] UNION ALL SELECT id + 1, ARRAY[id + 1, (id + 1) % 3] FROM counted WHERE id < 30;
CREATE VIEW sorted AS SELECT * FROM (SELECT * FROM points ORDER BY v[2], v[1] DESC LIMIT 30) s;
CREATE MATERIALIZED VIEW materialized AS SELECT * FROM points;
CREATE MATERIALIZED VIEW unfilled AS SELECT * FROM points WITH NO DATA;
CREATE VIEW paired AS SELECT g.id1 AS id, p.v FROM gpu_selfjoin('points', 0) g JOIN points p ON p.id = g.id2;
SELECT bag_eq(format($$ SELECT * FROM gpu_selfjoin(%L, 3, 'id', '{v}') $$, tbl), 'TABLE answer',
  format('%s is joined', tbl))
FROM unnest('{parts,parent,unlogged,scratch,generated,grown,compressed,external,updated,plain,barrier,unioned,computed,
  joined,counted,sorted,materialized,paired}'::regclass[]) tbl;
SELECT bag_eq(format($$ SELECT * FROM gpu_selfjoin(%L, 3) $$, tbl), 'TABLE answer',
  format('%s is joined without naming columns', tbl))
FROM unnest('{parts,parent,unlogged,scratch,generated,grown,updated}'::regclass[]) tbl;
SELECT bag_eq($$ SELECT * FROM gpu_join('parts', 'scratch', 3) $$, 'TABLE answer',
  'so are two relations of different kinds');
SELECT is(count(*), (SELECT count(*) FROM answer WHERE id1 < 10 AND id2 < 10), 'a partition is joined by itself')
FROM gpu_selfjoin('low', 3, 'id');
SELECT throws_ok($$ SELECT * FROM gpu_selfjoin('unfilled', 3, 'id') $$, '55000',
  'materialized view "unfilled" has not been populated', 'a materialized view without data says so');
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin('pg_authid', 0, 'rolconnlimit', '{rolconnlimit}') $$,
  $$ SELECT rolconnlimit::bigint AS id1, rolconnlimit::bigint AS id2
    FROM pg_authid a JOIN pg_authid b USING (rolconnlimit) $$,
  'a catalog is joined as any table');

-- Whose privileges: the caller's on the relation named, the view owner's behind a view.
CREATE FUNCTION caught(who name, query text, OUT state text, OUT message text, OUT n bigint) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('SET LOCAL ROLE %I', who);
  EXECUTE query INTO n;
  RESET ROLE;
EXCEPTION WHEN OTHERS THEN
  state := SQLSTATE;
  message := SQLERRM;
END $$;
CREATE TABLE secrets (id int PRIMARY KEY, v float8[], note text);
INSERT INTO secrets SELECT id, v, 'secret' FROM points;
ALTER TABLE secrets OWNER TO gpujoin_owner;
CREATE VIEW shown AS SELECT id, v FROM secrets;
ALTER VIEW shown OWNER TO gpujoin_owner;
CREATE VIEW leaking AS SELECT id, v FROM secrets;
ALTER VIEW leaking OWNER TO gpujoin_reader;
GRANT SELECT ON shown, leaking, points TO gpujoin_reader;
CREATE TABLE attempts (who name, query text, state text, message text, n bigint, claim text);
INSERT INTO attempts VALUES
  ('gpujoin_owner', $$ gpu_selfjoin('secrets', 0) $$, NULL, NULL, 30, 'the owner joins her table'),
  ('gpujoin_reader', $$ gpu_selfjoin('secrets', 0) $$, '42501', 'permission denied for table secrets', NULL,
   'others do not'),
  ('gpujoin_reader', $$ gpu_join('points', 'secrets', 0) $$, '42501', 'permission denied for table secrets', NULL,
   'nor as the right side'),
  ('gpujoin_reader', $$ gpu_join('secrets', 'points', 0) $$, '42501', 'permission denied for table secrets', NULL,
   'nor as the left side'),
  ('gpujoin_reader', $$ gpu_selfjoin('secrets', 0, 'no_such_column') $$, '42501', 'permission denied for table secrets',
   NULL, 'nor do they learn which columns there are'),
  ('gpujoin_reader', $$ gpu_selfjoin('secrets', 0, vector_columns => '{note}') $$, '42501',
   'permission denied for table secrets', NULL, 'or of which type'),
  ('gpujoin_reader', $$ gpu_selfjoin('shown', 0, 'id') $$, NULL, NULL, 30, 'a view shows them what its owner may read'),
  ('gpujoin_reader', $$ gpu_selfjoin('leaking', 0, 'id') $$, '42501', 'permission denied for table secrets', NULL,
   'a view of their own does not'),
  ('gpujoin_reader', $$ (SELECT FROM gpu_selfjoin('secrets', 0) LIMIT 0) s $$, NULL, NULL, 0,
   'a join that is never asked for a row reads nothing');
SELECT current_setting('server_version_num')::int >= 150000 AS views_have_invokers \gset
\if :views_have_invokers
CREATE VIEW invoked WITH (security_invoker) AS SELECT id, v FROM secrets;
ALTER VIEW invoked OWNER TO gpujoin_owner;
GRANT SELECT ON invoked TO gpujoin_reader;
INSERT INTO attempts VALUES
  ('gpujoin_reader', $$ gpu_selfjoin('invoked', 0, 'id') $$, '42501', 'permission denied for table secrets', NULL,
   'a view with security_invoker goes by who asks'),
  ('gpujoin_owner', $$ gpu_selfjoin('invoked', 0, 'id') $$, NULL, NULL, 30, 'and the owner may');
\endif
SELECT is((c.state, c.message, c.n), (a.state, a.message, a.n), claim)
FROM attempts a, caught(who, 'SELECT count(*) FROM ' || query) c;
SELECT is(caught('gpujoin_reader', $$ SELECT count(*) FROM (SELECT gpu_selfjoin('secrets', 0)) s $$),
  ('42501'::text, 'permission denied for table secrets'::text, NULL::bigint),
  'privileges are checked in a select list too');
GRANT SELECT (id, note) ON secrets TO gpujoin_reader;
SELECT is((caught('gpujoin_reader', $$ SELECT count(*) FROM gpu_selfjoin('secrets', 0) $$)).state, '42501',
  'one of two columns is not enough');
GRANT SELECT (v) ON secrets TO gpujoin_reader;
SELECT is((caught('gpujoin_reader', $$ SELECT count(*) FROM gpu_selfjoin('secrets', 0) $$)).n, 30::bigint,
  'both columns are');
REVOKE ALL ON secrets FROM gpujoin_reader;
PREPARE later AS SELECT count(*) FROM gpu_selfjoin('secrets', 0);
SELECT is((caught('gpujoin_owner', 'EXECUTE later')).n, 30::bigint, 'a prepared join runs for one who may read');
SELECT is((caught('gpujoin_reader', 'EXECUTE later')).state, '42501',
  'and not for one who may not, in the same session');
REVOKE EXECUTE ON FUNCTION gpu_selfjoin FROM PUBLIC;
SELECT is((caught('gpujoin_reader', $$ SELECT count(*) FROM gpu_selfjoin('points', 0) $$)).state, '42501',
  'without EXECUTE there is no join, through the node either');
GRANT EXECUTE ON FUNCTION gpu_selfjoin TO PUBLIC;

-- Row-level security: what the role sees is what is joined, also for the owner when it is forced.
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON secrets USING (id % 2 = 0);
GRANT SELECT ON secrets TO gpujoin_reader, gpujoin_bypasser;
CREATE TABLE views_of (who name, forced boolean, n bigint, claim text);
INSERT INTO views_of VALUES
  ('gpujoin_reader', false, 15, 'a reader joins the rows that the policy shows'),
  ('gpujoin_owner', false, 30, 'the owner joins all rows'),
  ('gpujoin_bypasser', false, 30, 'BYPASSRLS joins all rows'),
  ('gpujoin_owner', true, 15, 'the owner is bound too when the policy is forced'),
  ('gpujoin_bypasser', true, 30, 'BYPASSRLS is not');
SELECT is((caught(who, $$ SELECT count(*) FROM gpu_selfjoin('secrets', 0) $$)).n, n, claim)
FROM views_of WHERE NOT forced;
SELECT is((caught('gpujoin_reader', $$ SELECT count(*) FROM gpu_selfjoin('shown', 0, 'id') $$)).n, 30::bigint,
  'behind a view the policies are the view owner''s');
SELECT is((caught('gpujoin_reader', $$ SELECT count(*) FROM gpu_join('points', 'secrets', 0) $$)).n, 15::bigint,
  'policies hold for either side');
SET LOCAL row_security = off;
SELECT is((caught('gpujoin_reader', $$ SELECT count(*) FROM gpu_selfjoin('secrets', 0) $$)).state, '42501',
  'with row_security off a join fails where rows would be hidden');
SET LOCAL row_security = on;
ALTER TABLE secrets FORCE ROW LEVEL SECURITY;
SELECT is((caught(who, $$ SELECT count(*) FROM gpu_selfjoin('secrets', 0) $$)).n, n, claim) FROM views_of WHERE forced;

-- Estimates betray nothing either: of rows that are hidden, EXPLAIN knows what it would know without statistics.
ANALYZE secrets;
CREATE FUNCTION estimated(who name, query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE format('SET LOCAL ROLE %I', who);
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  RESET ROLE;
  RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END $$;
SELECT is(
  estimated('gpujoin_reader', $$ SELECT * FROM gpu_selfjoin('secrets', 0.5) $$),
  estimated('gpujoin_reader', $$ SELECT * FROM gpu_selfjoin('secrets', 1000) $$),
  'whoever cannot see all rows sees no estimate that depends on them');
SELECT cmp_ok(
  estimated('gpujoin_bypasser', $$ SELECT * FROM gpu_selfjoin('secrets', 0.5) $$), '<',
  estimated('gpujoin_bypasser', $$ SELECT * FROM gpu_selfjoin('secrets', 1000) $$),
  'whoever sees them does');

-- A definer's function reads as its definer.
CREATE FUNCTION count_secrets() RETURNS bigint SECURITY DEFINER LANGUAGE sql AS
$$ SELECT count(*) FROM gpu_selfjoin('reading.secrets', 0) $$;
ALTER FUNCTION count_secrets() OWNER TO gpujoin_bypasser;
REVOKE ALL ON secrets FROM gpujoin_reader;
SELECT is((caught('gpujoin_reader', 'SELECT count_secrets()')).n, 30::bigint,
  'a definer''s function joins what its definer may read');
SELECT is((caught('gpujoin_reader', $$ SELECT count(*) FROM gpu_selfjoin('secrets', 0) $$)).state, '42501',
  'and leaves its caller as before');

SELECT * FROM finish();
ROLLBACK;
