-- What EXPLAIN prints by default, with VERBOSE, without costs and times; and what falls back, in the log and in counts.
CREATE SCHEMA explain;
SET search_path = explain, public;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE points AS SELECT i AS id, i % 3 AS kind, ARRAY[i * 7 % 41, i * 5 % 37]::float8[] AS v FROM generate_series(1, 3000) i;
ALTER TABLE points ADD PRIMARY KEY (id);
CREATE TABLE "Far Places" AS SELECT id, v FROM points WHERE id % 7 = 0;
ALTER TABLE "Far Places" ADD PRIMARY KEY (id);
ANALYZE points, "Far Places";
-- What depends on the machine, the engine or the version is N, or ..., or left out.
CREATE FUNCTION explained(options text, query text) RETURNS TABLE ("QUERY PLAN" text) LANGUAGE plpgsql AS $$
BEGIN
  FOR "QUERY PLAN" IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
    "QUERY PLAN" := regexp_replace("QUERY PLAN", '(cost|time)=[\d.]+', '\1=N', 'g');
    "QUERY PLAN" := regexp_replace("QUERY PLAN", '\.\.[\d.]+', '..N', 'g');
    "QUERY PLAN" := regexp_replace("QUERY PLAN", '(actual .*rows=\d+)\.\d+', '\1');
    "QUERY PLAN" := regexp_replace("QUERY PLAN", '(cost=N..N rows=)\d+', '\1N');
    "QUERY PLAN" := regexp_replace("QUERY PLAN", '((Time|Memory|Threads|Batches|Candidate Pairs|Rechecked Pairs): )[\d.]+', '\1N');
    "QUERY PLAN" := regexp_replace("QUERY PLAN", '(Expected Cost: ).*', '\1N');
    "QUERY PLAN" := regexp_replace("QUERY PLAN", '((Engine|Index|Instruction Set|Strategy Reason|Access Pattern|Cell Order|Reordered Dimensions|Short Circuit): ).*', '\1...');
    CONTINUE WHEN "QUERY PLAN" ~ '^ *(Engine Fallback: (?!the condition|every pair)|Indexed Dimensions|Indexed Columns|Sort Column|Buffers|Planning|Execution|Threads per Point|Streams|Device Memory)';
    RETURN NEXT;
  END LOOP;
END $$;
\set near 'SELECT b.id FROM points a JOIN points b ON a.v <-> b.v <= 1 AND a.kind < b.kind'
-- Before it runs: the plan.
SELECT * FROM explained('COSTS OFF', :'near');
-- After: what did it, and with how much.
SELECT * FROM explained('ANALYZE, BUFFERS OFF, SUMMARY OFF', :'near');
SELECT * FROM explained('ANALYZE, BUFFERS OFF, SUMMARY OFF, COSTS OFF, TIMING OFF', :'near');
SELECT * FROM explained('ANALYZE, BUFFERS OFF, SUMMARY OFF, VERBOSE', :'near');
-- Costs are hidden where they are not asked for, and nothing else is.
SELECT * FROM explained('ANALYZE, BUFFERS OFF, SUMMARY OFF, TIMING OFF, VERBOSE, COSTS OFF', :'near');
-- A function has the query's name for it, and its tables are spelled as SQL does.
SELECT * FROM explained('COSTS OFF', 'SELECT n.id1 FROM gpu_join(''points'', ''"Far Places"'', 1) AS n WHERE n.id1 < n.id2');
SELECT * FROM explained('COSTS OFF, VERBOSE', 'SELECT n.id1 FROM gpu_join(''points'', ''"Far Places"'', 1) AS n WHERE n.id1 < n.id2');
SELECT * FROM explained('ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF',
  'SELECT n.id1 FROM gpu_join(''points'', ''"Far Places"'', 1) AS n WHERE n.id1 < n.id2');
-- Tables have the names that the whole plan has for them, below a subquery, too.
SELECT * FROM explained('COSTS OFF', 'SELECT * FROM (SELECT a.id FROM points a JOIN "Far Places" b ON a.v <-> b.v <= 1 AND a.id < b.id OFFSET 0) s,
  (SELECT a.id FROM points a JOIN "Far Places" b ON a.v <-> b.v <= 2 AND a.id > b.id OFFSET 0) t WHERE s.id = t.id');
-- Rows that conditions remove are counted where PostgreSQL does, each with its condition, for each loop.
SELECT * FROM explained('ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF',
  'SELECT a.id, b.id FROM points a LEFT JOIN "Far Places" b ON a.v <-> b.v <= 1 AND a.id < b.id WHERE b.id IS DISTINCT FROM a.id + 252');
SELECT * FROM explained('ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF',
  'SELECT eps, n FROM (VALUES (1.0), (2.0)) r(eps), LATERAL (SELECT count(*) AS n FROM (
     SELECT a.kind AS x, b.id AS y FROM points a JOIN "Far Places" b ON a.v <-> b.v <= eps AND a.id < b.id OFFSET 0) s) t');

-- Pairs for which the condition itself is evaluated, and those that fail it: of a point that the engine cannot take.
CREATE TABLE places AS SELECT id, point(v[1], v[2]) AS p FROM points WHERE id <= 300 UNION ALL SELECT 0, '(1e200,0)';
ANALYZE places;
SELECT * FROM explained('ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF',
  'SELECT a.id FROM places a JOIN places b ON gpu_within(a.p, b.p, 1) AND a.id + b.id > 100');

-- What falls back is reported, once for a join, and counted.
CREATE TABLE counts AS SELECT * FROM gpu_session_joins();
CREATE FUNCTION new_counts() RETURNS SETOF counts LANGUAGE sql AS $$
  SELECT n.joins - c.joins, n.engine_fallbacks - c.engine_fallbacks, n.topk_fallbacks - c.topk_fallbacks, n.nested_loops - c.nested_loops,
    n.service_fallbacks - c.service_fallbacks
  FROM gpu_session_joins() n, counts c $$;
SET gpujoin.engine = cpu;
SET client_min_messages = debug1;
SELECT count(*) FROM gpu_selfjoin('points', 1);
SELECT count(*) FROM points a JOIN points b ON a.v <-> b.v <= 1 AND a.kind < b.kind;
SELECT * FROM explained('ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF',
  'SELECT count(*) FROM "Far Places" a JOIN "Far Places" b ON a.v <-> b.v < ''Infinity''');
SELECT a.id, b.id FROM points a JOIN points b ON a.v <-> b.v <= 2 ORDER BY nullif(a.id, 7) + b.id LIMIT 1;
SELECT * FROM explained('ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF',
  'SELECT count(*) FROM "Far Places" a JOIN "Far Places" b ON a.v <-> b.v <= ''NaN''');
RESET client_min_messages;
SELECT * FROM new_counts();
-- A join that runs again counts again, of a function, too; what never runs does not.
SELECT count(*) FROM generate_series(1, 3) i, LATERAL (SELECT count(*) FROM gpu_selfjoin('points', i / 2.0)) s;
EXPLAIN (COSTS OFF) SELECT FROM gpu_selfjoin('points', 1);
SELECT count(*) FROM gpu_selfjoin('points', NULL);
SELECT * FROM new_counts();
