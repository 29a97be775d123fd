-- What gpu_devices(), gpu_last_join(), gpu_session_joins() and EXPLAIN report, and that they agree.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA introspection;
SET search_path = introspection, public;

-- Devices.
SELECT results_eq($$ SELECT count(*) FROM gpu_devices() WHERE engine = 'cpu' $$, ARRAY[1::bigint],
  'there is one CPU engine');
SELECT is(array[available, reason IS NULL, device = 0, parallelism BETWEEN 1 AND 4096, memory_bytes > 1 << 20,
  name <> '', detail <> ''],
  array_fill(true, '{7}'), 'the CPU engine is always available, and described')
FROM gpu_devices() WHERE engine = 'cpu';
SELECT set_eq('SELECT DISTINCT engine FROM gpu_devices()', '{cpu,cuda}'::text[],
  'an engine that cannot be used is listed too');
SELECT is_empty($$ SELECT * FROM gpu_devices()
  WHERE available AND (device IS NULL OR name IS NULL OR reason IS NOT NULL) $$,
  'what is available has a name and no excuse');
SELECT is_empty($$ SELECT * FROM gpu_devices() WHERE NOT available
    AND (reason IS NULL OR num_nonnulls(device, name, parallelism, memory_bytes, detail) NOT IN (0, 5)) $$,
  'what is not has a reason, and is a whole engine or a device with its name');
SELECT is_empty($$ SELECT * FROM gpu_devices()
  WHERE num_nulls(used_bytes, table_bytes, join_bytes) NOT IN (0, 3) OR used_bytes NOT BETWEEN table_bytes + join_bytes AND memory_bytes
    OR (engine = 'cpu' AND used_bytes IS NOT NULL) $$,
  'of the memory in use tables and joins have a part');
SELECT bag_eq('SELECT engine, device, name, reason FROM gpu_devices()', 'SELECT engine, device, name, reason FROM gpu_devices()',
  'asking twice gives the same');

-- The last join.
SELECT is_empty('SELECT * FROM gpu_last_join()', 'before the first join there is no last one');
CREATE TABLE points (id int PRIMARY KEY, v float8[]);
INSERT INTO points SELECT i, ARRAY[i % 40, i / 40, i % 7] FROM generate_series(0, 1199) i;
INSERT INTO points VALUES (1200, NULL);
CREATE TABLE queries (id int PRIMARY KEY, w real[]);
INSERT INTO queries SELECT i, ARRAY[i, i, 1] FROM generate_series(0, 29) i;
SELECT is_empty($$ SELECT * FROM gpu_selfjoin('points', NULL) $$, 'a join with a NULL argument has no rows');
SELECT is_empty('SELECT * FROM gpu_last_join()', 'and is none');
SELECT throws_ok($$ SELECT * FROM gpu_selfjoin('points', -1) $$, '22023',
  'eps must be a finite number that is not negative, not -1', 'a join may fail before it begins');
SELECT is_empty('SELECT * FROM gpu_last_join()', 'and is none either');

CREATE TABLE expected AS SELECT count(*) AS n FROM points a, points b WHERE a.v <-> b.v <= 2.5;
SELECT is(count(*), (SELECT n FROM expected), 'a self-join finds all pairs') FROM gpu_selfjoin('points', 2.5);
SELECT row_eq(
  'SELECT function, metric, pair_selection, eps, left_rows, right_rows, dimensions, pairs, complete
   FROM gpu_last_join()',
  (SELECT row('gpu_selfjoin'::text, 'l2'::text, 'all'::text, 2.5::float8, 1200::bigint, 1200::bigint, 3, n, true)
    FROM expected),
  'gpu_last_join() tells what was asked, the rows that have vectors, and the pairs');
SELECT is(array[
    engine IN ('cpu', 'cuda'), index IN ('grid', 'reference_points', 'tiles', 'none'), access_pattern IN ('full', 'linear_id', 'unicomp'),
    cell_order IN ('linear', 'zorder', 'hilbert'), strategy_reason <> '', instruction_set <> '',
    threads BETWEEN 1 AND 16, batches >= 1, rechecked_pairs BETWEEN 0 AND candidate_pairs,
    memory_bytes >= 1200 * 4 * 8, device_memory_bytes >= 0, read_ms > 0, index_ms > 0, join_ms > 0, estimated_candidates > 0, estimated_pairs > 0],
  array_fill(true, '{16}'), 'gpu_last_join() tells what the engine did')
FROM gpu_last_join();
SELECT cmp_ok(estimated_pairs, '>', pairs / 3::float8, 'the estimate of pairs is not far too low') FROM gpu_last_join();
SELECT cmp_ok(estimated_pairs, '<', pairs * 3::float8, 'nor far too high') FROM gpu_last_join();

SELECT is(count(*), (SELECT count(*) FROM queries, points
  WHERE greatest(abs(w[1] - v[1]), abs(w[2] - v[2]), abs(w[3] - v[3])) <= 2),
  'a join of two tables finds all pairs')
FROM gpu_join_distance('queries', 'points', 2, metric => 'linf');
SELECT row_eq(
  'SELECT function, metric, pair_selection, eps, left_rows, right_rows, dimensions, complete FROM gpu_last_join()',
  row('gpu_join_distance'::text, 'linf'::text, 'all'::text, 2::float8, 30::bigint, 1200::bigint, 3, true),
  'gpu_last_join() tells the rows of both sides');
SELECT is(count(*), (SELECT (n - 1200) / 2 FROM expected), 'a self-join in a select list finds one order of each pair')
FROM (SELECT gpu_selfjoin('points', 2.5, pairs => 'unordered')) s;
SELECT row_eq('SELECT pair_selection, pairs, complete FROM gpu_last_join()',
  (SELECT row('unordered'::text, (n - 1200) / 2, true) FROM expected), 'a function in a select list is a join as well');

-- What another role joined is its own matter, also where a function ran under its rights, or the caller became another.
CREATE ROLE gpujoin_owner;
CREATE ROLE gpujoin_caller;
GRANT USAGE ON SCHEMA introspection TO gpujoin_owner, gpujoin_caller;
GRANT SELECT ON points TO gpujoin_owner;
GRANT SELECT ON queries TO gpujoin_caller;
CREATE FUNCTION joined() RETURNS bigint SECURITY DEFINER LANGUAGE sql AS $$ SELECT count(*) FROM gpu_selfjoin('introspection.points', 2.5) $$;
CREATE FUNCTION joined_and_asked() RETURNS text SECURITY DEFINER LANGUAGE sql AS $$
  SELECT joined()::text; SELECT function FROM gpu_last_join() $$;
ALTER FUNCTION joined() OWNER TO gpujoin_owner;
ALTER FUNCTION joined_and_asked() OWNER TO gpujoin_owner;
SET ROLE gpujoin_caller;
SELECT is(count(*), 30::bigint, 'a role joins what it may') FROM gpu_selfjoin('queries', 0);
SELECT is(count(*), 1::bigint, 'and learns what its join did') FROM gpu_last_join();
SELECT cmp_ok(joined(), '>', 0::bigint, 'it calls a function that joins what it may not');
SELECT is_empty('SELECT * FROM gpu_last_join()', 'and learns nothing of that join');
SELECT is(joined_and_asked(), 'gpu_selfjoin', 'whose owner may ask');
RESET ROLE;
SELECT is_empty('SELECT * FROM gpu_last_join()', 'nor does another role');
SELECT is(count(*), 30::bigint, 'plain SQL') FROM queries l JOIN queries r ON gpu_within(l.w, r.w, 0), set_config('enable_nestloop', 'off', true);
SELECT is((SELECT function FROM gpu_last_join()), 'GpuSimilarityJoin', 'tells its own role');
SET ROLE gpujoin_caller;
SELECT is_empty('SELECT * FROM gpu_last_join()', 'and no other');
RESET ROLE;
RESET enable_nestloop;

-- Forced choices are the ones that are reported.
SET LOCAL gpujoin.engine = 'cpu';
SET LOCAL gpujoin.index = 'none';
SET LOCAL gpujoin.access_pattern = 'full';
SELECT is(count(*), n, 'brute force finds as many pairs') FROM gpu_selfjoin('points', 2.5), expected GROUP BY n;
SELECT row_eq(
  'SELECT engine, fallback, index, indexed_columns, sort_column, access_pattern, candidate_pairs, estimated_candidates
   FROM gpu_last_join()',
  row('cpu'::text, NULL::text, 'none'::text, '{}'::int[], NULL::int, 'full'::text, (1200 * 1200)::bigint,
    (1200 * 1200)::float8),
  'brute force looks at every pair');
SET LOCAL gpujoin.index = 'grid';
SET LOCAL gpujoin.indexed_dimensions = 2;
SET LOCAL gpujoin.sort_unindexed = off;
SET LOCAL gpujoin.reorder_dimensions = off;
SET LOCAL gpujoin.access_pattern = 'unicomp';
SET LOCAL gpujoin.cell_order = 'hilbert';
SET LOCAL gpujoin.batch_pairs = 64;
SELECT is(count(*), n, 'a grid finds as many pairs') FROM gpu_selfjoin('points', 2.5), expected GROUP BY n;
SELECT row_eq(
  'SELECT engine, index, indexed_columns, sort_column, access_pattern, cell_order, batches >= pairs / 128,
          candidate_pairs < 1200 * 600 FROM gpu_last_join()',
  row('cpu'::text, 'grid'::text, '{1,2}'::int[], NULL::int, 'unicomp'::text, 'hilbert'::text, true, true),
  'a grid as it was asked for, with fewer candidates');
SET LOCAL gpujoin.index = 'reference_points';
SET LOCAL gpujoin.reference_points = 3;
SELECT is(count(*), n, 'reference points find as many pairs') FROM gpu_selfjoin('points', 2.5), expected GROUP BY n;
SELECT row_eq('SELECT index, indexed_columns, candidate_pairs < 1200 * 600 FROM gpu_last_join()',
  row('reference_points'::text, '{4,5}'::int[], true), 'whose columns follow those of the data');
RESET ALL;
SET search_path = introspection, public;

-- A join that is ended, or fails, is not complete.
SET LOCAL gpujoin.batch_pairs = 10;
SELECT is(count(*), 3::bigint, 'LIMIT ends a join') FROM (SELECT FROM gpu_selfjoin('points', 2.5) LIMIT 3) s;
SELECT is(array[complete, pairs < n], array[false, true], 'which leaves it incomplete')
FROM gpu_last_join(), expected;
SELECT throws_ok($$ SELECT 1 / (id1 - id2) FROM gpu_selfjoin_distance('points', 2.5) $$, '22012', 'division by zero',
  'an error ends a join');
SELECT row_eq('SELECT function, complete FROM gpu_last_join()', row('gpu_selfjoin_distance'::text, false),
  'which leaves it incomplete too');
RESET gpujoin.batch_pairs;

-- EXPLAIN ANALYZE reports the same about the same join, in every format.
CREATE FUNCTION explained(options text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  line text;
  lines text := '';
BEGIN
  FOR line IN EXECUTE format('EXPLAIN (%s) SELECT * FROM gpu_join(''queries'', ''points'', 2.5, metric => ''l1'')',
    options) LOOP
    lines := lines || line || E'\n';
  END LOOP;
  RETURN lines;
END $$;
CREATE TEMP TABLE told AS SELECT explained('ANALYZE, FORMAT JSON')::jsonb -> 0 -> 'Plan' AS plan;
SELECT is(plan ->> 'Custom Plan Provider', 'GpuSimilarityJoin', 'the node has its name') FROM told;
SELECT is(
  array[plan ->> 'Metric', plan ->> 'Epsilon', plan ->> 'Engine', plan ->> 'Index', plan ->> 'Access Pattern',
    plan ->> 'Cell Order', plan ->> 'Batches', plan ->> 'Candidate Pairs', plan ->> 'Rechecked Pairs',
    plan ->> 'Pairs', plan ->> 'Threads'],
  array[metric, eps::text, engine, index, access_pattern, cell_order, batches::text, candidate_pairs::text,
    rechecked_pairs::text, pairs::text, threads::text],
  'EXPLAIN ANALYZE and gpu_last_join() agree')
FROM told, gpu_last_join();
SELECT is(array[plan ->> 'Relation', plan ->> 'Left Relation', plan ->> 'Right Relation', plan ->> 'Join Method'],
  '{NULL,queries,points,Range Join}'::text[], 'EXPLAIN tells which tables are joined how') FROM told;
SELECT is(jsonb_typeof(plan -> key), 'number', key || ' is a number in JSON')
FROM told, unnest('{Epsilon,Batches,Pairs,Candidate Pairs,Rechecked Pairs,Threads,Host Memory,
  Read Time,Index Time,Join Time,Indexed Dimensions}'::text[]) key;
SELECT setting LIKE '%--with-libxml%' AS has_xml FROM pg_config WHERE name = 'CONFIGURE' \gset
\if :has_xml
SELECT ok((xpath('//e:Candidate-Pairs', explained('ANALYZE, FORMAT XML')::xml,
  '{{e,http://www.postgresql.org/2009/explain}}'))[1]
  IS NOT NULL, 'EXPLAIN in XML is well-formed');
\endif
SELECT matches(explained('ANALYZE, FORMAT YAML'), '\n +Join Method: "Range Join" *\n',
  'EXPLAIN in YAML has the properties');
-- The names of the lines that options show, in order. What a join cannot always have is left out: a fall-back, a sort column.
CREATE FUNCTION labels(options text) RETURNS text[] LANGUAGE sql AS $$
  SELECT array_agg(l.label ORDER BY number) FROM regexp_matches(explained('BUFFERS OFF, ' || options), '\n +([A-Z][^:\n]*): ', 'g')
    WITH ORDINALITY m(found, number), unnest(found) l(label)
  WHERE l.label !~ '^(Output|Engine Fallback|Indexed Columns|Sort Column|Threads per Point|Streams|Device Memory)$' $$;
CREATE TEMP TABLE shown AS SELECT '{Join Method,Function,Left Relation,Right Relation,Metric,Epsilon}'::text[] AS plan,
  '{Engine,Index,Candidate Pairs,Pairs}'::text[] AS done, '{Read Time,Index Time,Join Time}'::text[] AS times,
  '{Engine,Joined In,Threads,Instruction Set,Index,Indexed Dimensions,Access Pattern,Cell Order,Reordered Dimensions,Short Circuit,Strategy Reason}'::text[] AS how,
  '{Candidate Pairs,Rechecked Pairs,Pairs,Batches,Host Memory}'::text[] AS how_many;
SELECT is(labels('ANALYZE'), plan || done || times, 'by default EXPLAIN ANALYZE shows engine, index, candidates, pairs and times') FROM shown;
SELECT is(labels('ANALYZE, COSTS OFF'), plan || done || times, 'without costs, too') FROM shown;
SELECT is(labels('ANALYZE, TIMING OFF'), plan || done, 'without times no times') FROM shown;
SELECT is(labels('ANALYZE, VERBOSE'), plan || how || '{Expected Cost}'::text[] || how_many || times, 'VERBOSE shows how it was done, too') FROM shown;
SELECT is(labels('ANALYZE, VERBOSE, COSTS OFF'), plan || how || how_many || times, 'less the expected cost without costs') FROM shown;
SELECT is(labels('VERBOSE'), plan, 'a join that did not run has a plan alone') FROM shown;
SELECT matches(explained('VERBOSE'), 'Function: public\.gpu_join\n', 'VERBOSE names schemas, of the function');
SELECT matches(explained('VERBOSE'), 'Left Relation: introspection\.queries\n +Right Relation: introspection\.points\n', 'and of the tables');
SELECT is(ARRAY(SELECT jsonb_object_keys(a.plan) EXCEPT SELECT jsonb_object_keys(b.plan) ORDER BY 1),
  array['Expected Cost', 'Plan Rows', 'Plan Width', 'Startup Cost', 'Total Cost'],
  'in JSON all is shown, and COSTS OFF hides costs alone')
FROM (SELECT explained('ANALYZE, FORMAT JSON')::jsonb -> 0 -> 'Plan' AS plan) a,
  (SELECT explained('ANALYZE, FORMAT JSON, COSTS OFF')::jsonb -> 0 -> 'Plan' AS plan) b;
SELECT is(ARRAY(SELECT jsonb_object_keys(a.plan) EXCEPT SELECT jsonb_object_keys(b.plan)) @> times, true, 'and TIMING OFF times')
FROM shown, (SELECT explained('ANALYZE, FORMAT JSON')::jsonb -> 0 -> 'Plan' AS plan) a,
  (SELECT explained('ANALYZE, FORMAT JSON, TIMING OFF')::jsonb -> 0 -> 'Plan' AS plan) b;
SELECT is(array[plan ->> 'Function Name', plan ->> 'Alias'], '{gpu_join,gpu_join}'::text[], 'the function and its name in the query') FROM told;
SELECT doesnt_match(explained('COSTS ON'), '\n +(Pairs|Engine|Read Time)',
  'without ANALYZE it tells nothing of a join that did not run');
SELECT matches(explained('ANALYZE'), 'Read Time: [\d.]+ ms', 'times have units');
SELECT matches(explained('ANALYZE, VERBOSE'), 'Expected Cost: grid [\d.e-]+ ms', 'as have estimated costs');
SELECT doesnt_match(explained('ANALYZE, VERBOSE'), 'Reference', 'only an index by reference points tells of them');
SET LOCAL gpujoin.index = 'reference_points';
SET LOCAL gpujoin.reference_points = 3;
SET LOCAL gpujoin.indexed_dimensions = 2;
SET LOCAL gpujoin.reorder_dimensions = off;
SELECT matches(explained('ANALYZE, VERBOSE'), E'Index: reference_points\n +Indexed Dimensions: 2\n +Indexed Columns: r2, r3\n'
  || E' +Sort Column: r1\n +Reference Points: 3\n +Reference Placement: outer\n', 'which have names of their own');
SELECT matches(explained('ANALYZE, VERBOSE'), 'Expected Cost: reference_points [\d.e-]+ ms', 'and a cost');
RESET ALL;
SET search_path = introspection, public;

-- The session counts its joins, and which of them fell back; each run of a join is one.
CREATE TEMP TABLE counted AS SELECT * FROM gpu_session_joins();
SELECT count(*) FROM gpu_selfjoin('points', 2.5);
SELECT is(array[n.joins - c.joins, n.engine_fallbacks - c.engine_fallbacks], array[1, CASE WHEN l.fallback IS NULL
  OR EXISTS (SELECT FROM gpu_devices() WHERE reason = 'the cuda engine is not installed') THEN 0 ELSE 1 END]::bigint[],
  'a join is counted, and that it was not on the engine that was preferred, where that is installed')
FROM gpu_session_joins() n, counted c, gpu_last_join() l;
SELECT count(*) FROM (SELECT gpu_selfjoin('points', 2.5) LIMIT 3) s, generate_series(1, 2) i;
SELECT is(n.joins - c.joins, 2::bigint, 'outside of FROM, too') FROM gpu_session_joins() n, counted c;
SELECT id, (SELECT sum(cardinality(neighbors)) FROM gpu_neighbors('points', id * 0.5)) FROM points WHERE id BETWEEN 1 AND 3;
SELECT is(n.joins - c.joins, 5::bigint, 'and each call of a function that starts an engine twice')
FROM gpu_session_joins() n, counted c;

-- A setting that is not the default one is shown where it may have made the plan.
CREATE FUNCTION shows(setting text, value text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  line text;
  found_it boolean := false;
BEGIN
  PERFORM set_config(setting, value, true);
  FOR line IN EXECUTE 'EXPLAIN (SETTINGS, COSTS OFF) SELECT 1' LOOP
    found_it := found_it OR position(setting || ' = ' IN line) > 0;
  END LOOP;
  EXECUTE 'RESET ' || setting;
  RETURN found_it;
END $$;
SELECT ok(shows(name, CASE vartype WHEN 'bool' THEN CASE boot_val WHEN 'on' THEN 'off' ELSE 'on' END WHEN 'enum' THEN enumvals[2] ELSE '1' END), 'EXPLAIN (SETTINGS) shows ' || name)
FROM pg_settings WHERE name LIKE 'gpujoin.%' AND context <> 'sighup' AND name <> 'gpujoin.log_min_duration';

-- Estimated rows answer to eps.
ANALYZE points;
CREATE FUNCTION estimated(call text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) SELECT * FROM ' || call INTO plan;
  RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END $$;
SELECT cmp_ok(estimated($$ gpu_selfjoin('points', 1) $$), '<', estimated($$ gpu_selfjoin('points', 5) $$),
  'more rows are expected of a larger eps');
SELECT cmp_ok(estimated($$ gpu_selfjoin('points', 5, pairs => 'unordered') $$), '<',
  0.6 * estimated($$ gpu_selfjoin('points', 5) $$),
  'half as many when each pair comes once');
SELECT cmp_ok(abs(estimated($$ gpu_selfjoin('points', 1000) $$) / 1200 / 1200 - 1), '<', 0.01::float8,
  'all pairs of an eps that reaches them all');

SELECT * FROM finish();
ROLLBACK;
