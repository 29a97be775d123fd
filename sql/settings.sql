-- Every setting: knobs change speed, never the result.
SET client_min_messages = warning;
CREATE SCHEMA settings;
SET search_path = settings, public;

CREATE TABLE points (id int PRIMARY KEY, v float8[]);
INSERT INTO points SELECT i, ARRAY[i * 31 % 97 / 97.0, i * 57 % 89 / 89.0, i * 71 % 83 / 83.0]
  FROM generate_series(1, 300) i;
CREATE TABLE tall (id int PRIMARY KEY, v float4[]);
INSERT INTO tall
  SELECT i, (SELECT array_agg(i * (31 + 2 * d) % 97 / 97.0 ORDER BY d) FROM generate_series(1, 12) d)
  FROM generate_series(1, 150) i;
CREATE TABLE truth AS
  SELECT 'points' AS tbl, a.id::bigint AS id1, b.id::bigint AS id2 FROM points a, points b WHERE a.v <-> b.v <= 0.3
  UNION ALL
  SELECT 'tall', a.id, b.id FROM tall a, tall b WHERE a.v <-> b.v <= 1.1;

-- Rows that are missing or too many with one setting changed, in all joins that it could touch.
CREATE FUNCTION differences(setting text, value text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  total bigint := 0;
  n bigint;
BEGIN
  PERFORM set_config(setting, value, true);
  WITH answer AS (
    SELECT 'points' AS tbl, * FROM gpu_selfjoin('points', 0.3)
    UNION ALL SELECT 'tall', * FROM gpu_selfjoin('tall', 1.1))
  SELECT count(*) INTO n FROM ((TABLE truth EXCEPT ALL TABLE answer) UNION ALL (TABLE answer EXCEPT ALL TABLE truth)) d;
  total := total + n;
  WITH answer AS (
    SELECT 'points' AS tbl, * FROM gpu_join('points', 'points', 0.3)
    UNION ALL SELECT 'tall', * FROM gpu_join('tall', 'tall', 1.1))
  SELECT count(*) INTO n FROM ((TABLE truth EXCEPT ALL TABLE answer) UNION ALL (TABLE answer EXCEPT ALL TABLE truth)) d;
  total := total + n;
  WITH answer AS (
    SELECT 'points' AS tbl, id1, id2 FROM gpu_selfjoin_distance('points', 0.3, pairs => 'unordered')
    UNION ALL SELECT 'tall', id1, id2 FROM gpu_selfjoin_distance('tall', 1.1, pairs => 'unordered')),
  half AS (SELECT * FROM truth WHERE id1 < id2)
  SELECT count(*) INTO n FROM ((TABLE half EXCEPT ALL TABLE answer) UNION ALL (TABLE answer EXCEPT ALL TABLE half)) d;
  EXECUTE format('RESET %s', setting);
  RETURN total + n;
END $$;

SELECT count(*) FROM truth;
SELECT 'gpujoin.' || setting AS setting, value, differences('gpujoin.' || setting, value)
FROM (VALUES
  ('engine', '{auto,cpu}'::text[]), ('enable_customscan', '{on,off}'), ('prefer_node', '{on,off}'), ('cpu_threads', '{0,1,2,3,16}'),
  ('index', '{auto,grid,reference_points,tiles,none}'), ('indexed_dimensions', '{0,1,2,3,4,8}'),
  ('reference_points', '{0,1,6,16}'), ('reference_placement', '{auto,outer,inner}'), ('reorder_dimensions', '{auto,on,off}'),
  ('sort_unindexed', '{auto,on,off}'), ('short_circuit', '{auto,on,off}'),
  ('access_pattern', '{auto,full,linear_id,unicomp}'), ('cell_order', '{auto,linear,zorder,hilbert}'),
  ('work_order', '{auto,none,sorted,queue}'), ('threads_per_point', '{0,1,2,4,8,16,32}'), ('streams', '{0,1,2,16}'),
  ('device', '{0,all}'), ('share_devices', '{auto,on,off}'), ('batch_pairs', '{0,1,7,1000,2147483647}'), ('host_memory_limit', '{0,256MB}'),
  ('device_memory_limit', '{0,1GB}')) s(setting, choices), unnest(choices) value
ORDER BY 1, 2;
SET gpujoin.index = 'reference_points';
SELECT 'gpujoin.' || setting AS setting, value, differences('gpujoin.' || setting, value)
FROM (VALUES
  ('reference_points', '{0,1,6,16}'::text[]), ('reference_placement', '{auto,outer,inner}'),
  ('indexed_dimensions', '{0,1,2,3,4,8}'), ('sort_unindexed', '{auto,on,off}'), ('batch_pairs', '{0,7}'),
  ('access_pattern', '{auto,full,linear_id,unicomp}')) s(setting, choices), unnest(choices) value
ORDER BY 1, 2;
SELECT count(*) FROM gpu_selfjoin('points', 0.3);
SELECT index, sort_column > 3 AS sorted_by_distance, NOT 3 >= ANY (indexed_columns) AS distances_only FROM gpu_last_join();
RESET gpujoin.index;

-- Eight are for users, in the groups of PostgreSQL's own settings that they are like. The knobs are developer options,
-- marked as not in the sample file, which can be seen from PostgreSQL 15 on.
SELECT split_part(category, ' / ', 1) AS section, string_agg(substr(name, 9), ' ' ORDER BY name COLLATE "C") AS settings
  FROM pg_settings WHERE name LIKE 'gpujoin.%' GROUP BY 1 ORDER BY 1;
SELECT ours.name, ours.context, theirs.name AS like_it, ours.category = theirs.category AS same_group
  FROM (VALUES ('enable_customscan', 'enable_nestloop'), ('prefer_node', 'enable_nestloop'), ('engine', 'jit'), ('warn_missed', 'jit'), ('device', 'jit'), ('cpu_threads', 'max_parallel_workers'),
    ('host_memory_limit', 'work_mem'), ('device_memory_limit', 'work_mem')) s(ours, theirs)
  JOIN pg_settings ours ON ours.name = 'gpujoin.' || s.ours JOIN pg_settings theirs ON theirs.name = s.theirs
  ORDER BY ours.name COLLATE "C";
CREATE FUNCTION is_in_sample(setting text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF to_regproc('pg_settings_get_flags') IS NULL THEN RETURN NULL; END IF;
  RETURN 'NOT_IN_SAMPLE' <> ALL (pg_settings_get_flags(setting));
END $$;
SELECT name, category FROM pg_settings
  WHERE name LIKE 'gpujoin.%' AND (category = 'Developer Options') = is_in_sample(name);

-- Names and values are checked, and below the prefix nothing else can be set.
SET gpujoin.engine = 'abacus';
SET gpujoin.index = 'btree';
SET gpujoin.cpu_threads = 17;
SET gpujoin.indexed_dimensions = 9;
SET gpujoin.reference_points = 17;
SET gpujoin.reference_placement = 'middle';
SET gpujoin.topk_method = 'best';
SET gpujoin.box_method = 'grid';
SET gpujoin.batch_pairs = -1;
SET gpujoin.work_order = 'random';
SET gpujoin.threads_per_point = 33;
SET gpujoin.threads_per_point = 6;
SET gpujoin.streams = 17;
SET gpujoin.device = -1;
SET gpujoin.device = '0,0';
SET gpujoin.device = 'all,1';
SET gpujoin.device = '';

-- The bounds on threads and memory are the administrator's.
CREATE ROLE gpujoin_user;
GRANT USAGE ON SCHEMA settings TO gpujoin_user;
GRANT SELECT ON points TO gpujoin_user;
SET ROLE gpujoin_user;
SET gpujoin.host_memory_limit = '1TB';
SET gpujoin.device_memory_limit = '1TB';
SET gpujoin.cpu_threads = 16;
SET gpujoin.index = 'none';
SELECT count(*) FROM gpu_selfjoin('points', 0.3);
RESET gpujoin.index;
RESET ROLE;

-- A table that does not fit goes to a temporary file. Where the service is running, it keeps the table.
SET gpujoin.service = off;
CREATE TABLE large (id int PRIMARY KEY, v float8[]);
INSERT INTO large SELECT i, ARRAY[i, 0] FROM generate_series(1, 20000) i;
SET gpujoin.host_memory_limit = '64kB';
SELECT count(*) FROM gpu_selfjoin('large', 0);
SELECT count(*) FROM gpu_join('points', 'large', 0);
SELECT count(*) FROM gpu_neighbors('large', 0);
RESET gpujoin.host_memory_limit;
SELECT count(*) FROM gpu_selfjoin('large', 0);

DROP SCHEMA settings CASCADE;
DROP ROLE gpujoin_user;
