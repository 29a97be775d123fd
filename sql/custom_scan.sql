-- The plan node: when it is there, and that it does what a function scan does.
SET client_min_messages = warning;
CREATE SCHEMA custom_scan;
SET search_path = custom_scan, public;
CREATE TABLE points (id int PRIMARY KEY, v float8[]);
INSERT INTO points SELECT i, ARRAY[i, 0] FROM generate_series(1, 100) i;
ANALYZE points;
CREATE TABLE radii (eps float8);
INSERT INTO radii VALUES (0), (1), (2);
ANALYZE radii;

-- A session's very first query gets the node, without preloading.
\c -
EXPLAIN (COSTS OFF) SELECT * FROM gpu_selfjoin('custom_scan.points', 1);
SET client_min_messages = warning;
SET search_path = custom_scan, public;
SET jit = off;
SET max_parallel_workers_per_gather = 0;

-- All functions and settings.
EXPLAIN (COSTS OFF) SELECT * FROM gpu_selfjoin_distance('points', 0.1, metric => 'l1', pairs => 'unordered');
EXPLAIN (COSTS OFF) SELECT * FROM gpu_join('points', 'points', 1e-300, metric => NULL);
EXPLAIN (COSTS OFF) SELECT * FROM gpu_join_distance('points', 'points', 12.5);
SET gpujoin.enable_customscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM gpu_selfjoin('points', 1);
SELECT count(*), sum(id1), sum(id2) FROM gpu_selfjoin('points', 1);
RESET gpujoin.enable_customscan;
SELECT count(*), sum(id1), sum(id2) FROM gpu_selfjoin('points', 1);

-- Typed properties in JSON.
CREATE FUNCTION explain_json(query text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
  RETURN (plan -> 0 -> 'Plan')::jsonb;
END $$;
SELECT key, jsonb_typeof(value) FROM jsonb_each(explain_json($$ SELECT * FROM gpu_selfjoin('points', 1.5) $$))
WHERE key ~ '^(Join|Metric|Pair|Eps|Engine$|Index|Indexed Dim|Access|Cell|Batches|Cand|Recheck|Threads$|Host|Read)'
ORDER BY key COLLATE "C";
SELECT plan ->> 'Epsilon' AS eps, plan ->> 'Pairs' AS pairs, (plan ->> 'Actual Rows')::numeric::int AS rows
FROM explain_json($$ SELECT * FROM gpu_selfjoin('points', 1.5) $$) plan;

-- Columns, expressions, filters, in any combination.
SELECT id2 FROM gpu_selfjoin('points', 1) WHERE id1 = 5 ORDER BY id2;
SELECT id2, id1 FROM gpu_selfjoin('points', 1, pairs => 'unordered') WHERE id1 BETWEEN 3 AND 5 ORDER BY 1, 2;
SELECT id1 + id2 AS s, count(*) FROM gpu_selfjoin('points', 1) WHERE id1 < 4 GROUP BY 1 ORDER BY 1;
SELECT a, a, b * 2 FROM gpu_selfjoin('points', 1) g(a, b) WHERE a + b = 9 ORDER BY 1, 3;
SELECT distance, count(*) FROM gpu_selfjoin_distance('points', 2) GROUP BY distance ORDER BY 1;
SELECT max(id1), min(distance) FROM gpu_join_distance('points', 'points', 1) WHERE id2 > 90;
SELECT count(*), count(1) FROM gpu_selfjoin('points', 1);
SELECT 'x' FROM gpu_selfjoin('points', 1) LIMIT 2;
SELECT DISTINCT id1 FROM gpu_selfjoin('points', 0) WHERE id1 % 40 = 0 ORDER BY 1;
EXPLAIN (COSTS OFF, VERBOSE) SELECT id2 FROM gpu_selfjoin('points', 1) WHERE id1 = 5;
SELECT g.id1, p.v FROM gpu_selfjoin('points', 1) g JOIN points p ON p.id = g.id2 WHERE g.id1 = 7 ORDER BY p.id;
SELECT count(*) FROM gpu_selfjoin('points', 1) g LEFT JOIN points p ON p.id = g.id2 AND p.id > 50;
SELECT count(*) FROM points p WHERE EXISTS (SELECT FROM gpu_selfjoin('points', 1) g WHERE g.id1 = p.id AND g.id2 < p.id);

-- The row as a whole, and its lock, are left to the function scan.
EXPLAIN (COSTS OFF) SELECT g FROM gpu_selfjoin('points', 0) g;
SELECT g FROM gpu_selfjoin('points', 0) g ORDER BY 1 LIMIT 2;
SELECT to_json(g) FROM gpu_selfjoin('points', 0) g ORDER BY id1 LIMIT 1;
SELECT count(*) FROM gpu_selfjoin('points', 0) g WHERE g IS NOT NULL;
SELECT p.id FROM points p, gpu_selfjoin('points', 0) g WHERE p.id = g.id1 AND p.id < 3 ORDER BY 1 FOR UPDATE OF p;
SELECT count(*), min(id1) FROM (SELECT id1, id2 FROM gpu_selfjoin('points', 1) WHERE id1 > 9
  UNION ALL SELECT id2, id1 FROM gpu_join('points', 'points', 0)) u;
SELECT count(g), max(g::text) FROM (SELECT g FROM gpu_selfjoin('points', 1) g
  UNION ALL SELECT g FROM gpu_selfjoin('points', 0) g) u;
UPDATE points p SET v = v FROM gpu_selfjoin('points', 0) g WHERE p.id = g.id1 AND p.id = 1 RETURNING id1, id2;

-- LATERAL, with the table, eps or anything else from the left; the table is read again only where it changes.
SELECT eps, count(*) FROM radii, gpu_selfjoin('points', eps) GROUP BY eps ORDER BY eps;
SELECT eps, n FROM radii, LATERAL (SELECT count(*) AS n FROM gpu_join('points', 'points', eps)) g ORDER BY eps;
SELECT pairs, count(id1) FROM unnest('{all,distinct,unordered,NULL}'::text[]) pairs
  LEFT JOIN LATERAL gpu_selfjoin('points', 1, pairs => pairs) ON true GROUP BY pairs ORDER BY pairs;
SELECT tbl, (SELECT count(*) FROM gpu_selfjoin(tbl::regclass, 1)) FROM (VALUES ('points'), (NULL)) t(tbl);
SELECT eps, (SELECT count(*) FROM gpu_selfjoin('points', eps)) FROM radii ORDER BY eps;
SELECT count(*) FROM gpu_selfjoin((SELECT 'points'::regclass), (SELECT max(eps) FROM radii));

-- The inner side of a nested loop is scanned again, and again stopped early.
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM radii r LEFT JOIN gpu_selfjoin('points', 1) g ON g.id1 > r.eps;
SELECT count(*) FROM radii r LEFT JOIN gpu_selfjoin('points', 1) g ON g.id1 > r.eps;
SELECT count(*) FROM radii r WHERE EXISTS (SELECT FROM gpu_selfjoin('points', 1) g WHERE g.id1 > r.eps);
SELECT r.eps, g.n FROM radii r, LATERAL (SELECT count(*) AS n FROM (
  SELECT FROM gpu_selfjoin('points', 1) WHERE id1 > r.eps LIMIT 3) s) g ORDER BY 1;
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;

-- Cursors, forward and, through Material, backward.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id1 FROM gpu_selfjoin('points', 0) WHERE id1 = 42;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
CLOSE c;
DECLARE c CURSOR WITH HOLD FOR SELECT count(*) FROM gpu_selfjoin('points', 1);
COMMIT;
FETCH c;
CLOSE c;

-- Prepared statements, with custom plans and generic ones.
PREPARE near(regclass, float8) AS SELECT count(*) FROM gpu_selfjoin($1, $2);
EXECUTE near('points', 0);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE near('points', 1);
EXECUTE near('points', 0);
EXECUTE near('points', 1);
EXECUTE near('points', NULL);
RESET plan_cache_mode;
ALTER TABLE points RENAME TO dots;
EXECUTE near('dots', 1);
ALTER TABLE dots RENAME TO points;

-- Where the node cannot go the function does the same.
SELECT count(*) FROM (SELECT gpu_selfjoin('points', 1)) s;
SELECT (gpu_selfjoin_distance('points', 1)).* LIMIT 0;
SELECT count(*), sum(id1), sum(distance) FROM (SELECT (gpu_selfjoin_distance('points', 1)).*) s;
SELECT count(*) FROM (SELECT gpu_selfjoin('points', 1) LIMIT 5) s;
SELECT count(*), max(ordinality) FROM gpu_selfjoin('points', 1) WITH ORDINALITY;
SELECT count(*), count(id1), count(n) FROM ROWS FROM (gpu_selfjoin('points', 0), generate_series(1, 150)) g(id1, id2, n);
EXPLAIN (COSTS OFF) SELECT * FROM gpu_selfjoin('points', 1) WITH ORDINALITY;

-- Inside functions, and after an error inside one.
CREATE FUNCTION count_pairs(tbl regclass, radius float8) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  n bigint := 0;
BEGIN
  FOR i IN 1 .. 3 LOOP
    BEGIN
      SELECT n + count(*) INTO n FROM gpu_selfjoin(tbl, radius) WHERE 1 / (id1 - 101 + i) <= 1;
    EXCEPTION WHEN division_by_zero THEN
      n := n + 1000000;
    END;
  END LOOP;
  RETURN n;
END $$;
SELECT count_pairs('points', 0);

-- EXECUTE is checked, and a function that ALTER FUNCTION wraps stays a function scan.
CREATE ROLE gpujoin_caller;
GRANT USAGE ON SCHEMA custom_scan TO gpujoin_caller;
GRANT SELECT ON points TO gpujoin_caller;
BEGIN;
REVOKE EXECUTE ON FUNCTION gpu_selfjoin FROM PUBLIC;
SET ROLE gpujoin_caller;
SELECT count(*) FROM gpu_selfjoin('points', 1);
ROLLBACK;
BEGIN;
ALTER FUNCTION gpu_selfjoin SET work_mem = '4MB';
EXPLAIN (COSTS OFF) SELECT * FROM gpu_selfjoin('points', 1);
SELECT count(*) FROM gpu_selfjoin('points', 1);
ROLLBACK;

-- Row estimates come from the statistics: between half of the truth and twice as much here.
CREATE TABLE cloud (id int PRIMARY KEY, v float8[], x float8, y float8);
INSERT INTO cloud SELECT i, ARRAY[x, y], x, y
  FROM generate_series(1, 2000) i, LATERAL (SELECT i * 7919 % 2003 / 2003.0 AS x, i * 104729 % 1999 / 1999.0 AS y) c;
ANALYZE cloud;
CREATE FUNCTION estimate_ratio(query text, OUT low boolean, OUT high boolean) LANGUAGE plpgsql AS $$
DECLARE plan jsonb := explain_json(query);
BEGIN
  low := (plan ->> 'Plan Rows')::float8 < 0.5 * (plan ->> 'Actual Rows')::float8;
  high := (plan ->> 'Plan Rows')::float8 > 2 * (plan ->> 'Actual Rows')::float8;
END $$;
SELECT q, r.* FROM unnest(ARRAY[
  $$ SELECT * FROM gpu_selfjoin('cloud', 0.4) $$,
  $$ SELECT * FROM gpu_selfjoin('cloud', 0.4, pairs => 'unordered') $$,
  $$ SELECT * FROM gpu_selfjoin('cloud', 0.3, vector_columns => '{x,y}', metric => 'linf') $$,
  $$ SELECT * FROM gpu_join('cloud', 'cloud', 0.4) $$]) q, estimate_ratio(q) r;

DROP SCHEMA custom_scan CASCADE;
DROP ROLE gpujoin_caller;
