-- gpu_devices() and gpu_last_join(), as far as they do not depend on the machine.
SET client_min_messages = warning;
CREATE SCHEMA introspection;
SET search_path = introspection, public;

SELECT engine, available, reason IS NULL AS no_reason, parallelism >= 1 AS has_processors,
       memory_bytes > 0 AS has_memory, name <> '' AS named
FROM gpu_devices() WHERE engine = 'cpu';
SELECT DISTINCT engine FROM gpu_devices() ORDER BY 1;
SELECT count(*) FROM gpu_devices() WHERE available = (reason IS NOT NULL);

-- Nothing was joined in this session.
\c -
SET client_min_messages = warning;
SET search_path = introspection, public;
SELECT count(*) FROM gpu_last_join();

CREATE TABLE points (id int PRIMARY KEY, v float8[]);
INSERT INTO points SELECT i, ARRAY[i % 50, i / 50, 0] FROM generate_series(0, 999) i;
SELECT count(*) FROM gpu_selfjoin('points', 1);
SELECT function, metric, pair_selection, eps, left_rows, right_rows, dimensions, pairs, complete,
       engine IS NOT NULL AS engine, threads >= 1 AS threads, batches >= 1 AS batches,
       candidate_pairs >= pairs AS candidates, memory_bytes > 0 AS memory,
       read_ms >= 0 AND index_ms >= 0 AND join_ms >= 0 AS times,
       index IN ('grid', 'reference_points', 'tiles', 'none') AS index, access_pattern <> 'auto' AS pattern, cell_order <> 'auto' AS cell_order,
       strategy_reason IS NOT NULL AS reason
FROM gpu_last_join() \gx

-- A join that LIMIT ends is not complete; one that fails before it begins changes nothing.
SET gpujoin.batch_pairs = 100;
SELECT count(*) FROM (SELECT FROM gpu_join_distance('points', 'points', 2, metric => 'l1') LIMIT 5) s;
SELECT function, metric, pair_selection, eps, left_rows, right_rows, dimensions, complete FROM gpu_last_join();
RESET gpujoin.batch_pairs;
SELECT count(*) FROM gpu_selfjoin('points', -1);
SELECT function, complete FROM gpu_last_join();

-- An engine that is forced is the one that runs.
SET gpujoin.engine = 'cpu';
SET gpujoin.cpu_threads = 1;
SET gpujoin.index = 'none';
SELECT count(*) FROM gpu_selfjoin('points', 1, pairs => 'unordered');
SELECT engine, fallback, threads, index, indexed_columns, sort_column, pairs FROM gpu_last_join();
SELECT threads_per_point, streams, device_memory_bytes FROM gpu_last_join();
RESET gpujoin.engine;
RESET gpujoin.cpu_threads;
RESET gpujoin.index;

-- A device that is not there: the CPU serves and the reason is told, unless the device is asked for by name.
-- A small join would not have been worth one.
SET gpujoin.device = 1023;
SET gpujoin.engine = 'auto';
SELECT count(*) FROM gpu_selfjoin('points', 1);
SELECT engine, fallback IS NOT NULL AS reason FROM gpu_last_join();
CREATE TABLE many AS SELECT i AS id, ARRAY[i, -i]::float8[] AS v FROM generate_series(1, 45000) i;
SET gpujoin.index = 'none';
SET gpujoin.cpu_threads = 1;
SELECT count(*) FROM gpu_selfjoin('many', 1, 'id');
SELECT engine, fallback IS NOT NULL AS reason FROM gpu_last_join();
RESET gpujoin.index;
RESET gpujoin.cpu_threads;
SET gpujoin.engine = 'cuda';
DO $$ BEGIN
  PERFORM FROM gpu_selfjoin('points', 1);
EXCEPTION WHEN feature_not_supported THEN
  RAISE WARNING 'feature_not_supported';
END $$;
RESET gpujoin.engine;
RESET gpujoin.device;

DROP SCHEMA introspection CASCADE;
