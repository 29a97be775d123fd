-- What CREATE EXTENSION puts into a database: signatures, properties, privileges, comments, settings.
BEGIN;
SELECT * FROM no_plan();
SET search_path = public;

-- The extension.
SELECT bag_eq(
  $$ SELECT extversion, extrelocatable FROM pg_extension WHERE extname = 'gpujoin' $$,
  $$ SELECT default_version::text, true FROM pg_available_extensions WHERE name = 'gpujoin' $$,
  'the installed version is the default one and can move to another schema');
CREATE TEMP TABLE members AS
  SELECT classid, objid FROM pg_depend
  WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
    AND classid <> 'pg_type'::regclass -- those of a view are members as of PostgreSQL 17
    AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gpujoin');
CREATE TEMP VIEW functions AS
  SELECT p.* FROM pg_proc p JOIN members ON classid = 'pg_proc'::regclass AND objid = p.oid;
SELECT set_eq(
  $$ SELECT classid::regclass::text FROM members $$, '{pg_proc,pg_operator,pg_class}'::text[],
  'it consists of functions, operators and views');
SELECT set_eq(
  $$ SELECT proname::text FROM functions $$,
  '{gpu_selfjoin,gpu_selfjoin_distance,gpu_join,gpu_join_distance,gpu_neighbors,gpu_topk_join,gpu_knn_join,gpu_box_join,gpu_components,gpu_dbscan,gpu_cluster_dbscan,gpu_postgis_clusters,gpu_density,gpu_dedup,gpu_spanning_tree,gpu_hdbscan,gpu_distance,gpu_cosine_distance,
    gpu_l1_distance,gpu_within,gpu_vector,gpu_ctid,gpu_cell,gpu_halo,gpu_devices,gpu_last_join,gpu_session_joins,gpu_why,gpu_join_counts,gpu_reset_join_counts,gpu_running_joins,
    gpu_resident_tables,gpu_prewarm,gpu_evict,gpujoin_support}'::text[],
  'these are the functions');

-- Signatures: names and defaults of arguments, columns of results.
SELECT bag_eq(
  $$ SELECT pg_get_function_arguments(oid) FROM functions WHERE proname IN ('gpu_selfjoin', 'gpu_selfjoin_distance') $$,
  $$ VALUES ('tbl regclass, eps double precision, id_column name DEFAULT NULL::name, '
             'vector_columns anycompatible DEFAULT NULL::unknown, metric text DEFAULT ''l2''::text, '
             'pairs text DEFAULT ''all''::text'),
            ('tbl regclass, eps double precision, id_column name DEFAULT NULL::name, '
             'vector_columns anycompatible DEFAULT NULL::unknown, metric text DEFAULT ''l2''::text, '
             'pairs text DEFAULT ''all''::text') $$,
  'self-joins take a table and eps; the rest has defaults');
SELECT bag_eq(
  $$ SELECT pg_get_function_arguments(oid) FROM functions WHERE proname IN ('gpu_join', 'gpu_join_distance') $$,
  $$ VALUES ('left_tbl regclass, right_tbl regclass, eps double precision, left_id_column name DEFAULT NULL::name, '
             'right_id_column name DEFAULT NULL::name, left_vector_columns anycompatible DEFAULT NULL::unknown, '
             'right_vector_columns anycompatible DEFAULT NULL::unknown, metric text DEFAULT ''l2''::text'),
            ('left_tbl regclass, right_tbl regclass, eps double precision, left_id_column name DEFAULT NULL::name, '
             'right_id_column name DEFAULT NULL::name, left_vector_columns anycompatible DEFAULT NULL::unknown, '
             'right_vector_columns anycompatible DEFAULT NULL::unknown, metric text DEFAULT ''l2''::text') $$,
  'joins of two tables take both tables and eps; the rest has defaults and a side in its name');
SELECT bag_eq(
  $$ SELECT pg_get_function_arguments(oid) FROM functions WHERE proname = 'gpu_topk_join' $$,
  $$ VALUES ('left_tbl regclass, right_tbl regclass, eps double precision, k bigint, '
             'left_id_column name DEFAULT NULL::name, right_id_column name DEFAULT NULL::name, '
             'left_vector_columns anycompatible DEFAULT NULL::unknown, right_vector_columns anycompatible DEFAULT NULL::unknown, '
             'left_score_column name DEFAULT NULL::name, right_score_column name DEFAULT NULL::name, '
             'metric text DEFAULT ''l2''::text, score text DEFAULT ''sum''::text, '
             'weights double precision[] DEFAULT NULL::double precision[], best text DEFAULT NULL::text') $$,
  'top-k joins take both tables, eps and k');
SELECT bag_eq(
  $$ SELECT pg_get_function_arguments(oid) FROM functions WHERE proname = 'gpu_knn_join' $$,
  $$ VALUES ('left_tbl regclass, right_tbl regclass, k bigint, max_distance double precision DEFAULT NULL::double precision, '
             'left_id_column name DEFAULT NULL::name, right_id_column name DEFAULT NULL::name, '
             'left_vector_columns anycompatible DEFAULT NULL::unknown, right_vector_columns anycompatible DEFAULT NULL::unknown, '
             'metric text DEFAULT ''l2''::text, pairs text DEFAULT ''distinct''::text') $$,
  'nearest-neighbor joins take both tables and k');
SELECT bag_eq(
  $$ SELECT pg_get_function_arguments(oid) FROM functions WHERE proname = 'gpu_box_join' $$,
  $$ VALUES ('left_tbl regclass, right_tbl regclass, eps double precision DEFAULT 0, '
             'left_id_column name DEFAULT NULL::name, right_id_column name DEFAULT NULL::name, '
             'left_box_columns anycompatible DEFAULT NULL::unknown, right_box_columns anycompatible DEFAULT NULL::unknown, '
             'metric text DEFAULT ''l2''::text, pairs text DEFAULT ''all''::text') $$,
  'joins of boxes take both tables');
SELECT bag_eq(
  $$ SELECT pg_get_function_arguments(oid), prokind FROM functions WHERE proname IN ('gpu_dbscan', 'gpu_cluster_dbscan', 'gpu_postgis_clusters', 'gpu_components') $$,
  $$ VALUES ('tbl regclass, eps double precision, min_points bigint DEFAULT 5, id_column name DEFAULT NULL::name, '
             'vector_columns anycompatible DEFAULT NULL::unknown, metric text DEFAULT ''l2''::text, partition_column name DEFAULT NULL::name', 'f'::"char"),
            ('tbl regclass, eps double precision, id_column name DEFAULT NULL::name, '
             'vector_columns anycompatible DEFAULT NULL::unknown, metric text DEFAULT ''l2''::text, partition_column name DEFAULT NULL::name', 'f'),
            ('v anyelement, eps double precision, min_points bigint DEFAULT 5, metric text DEFAULT ''l2''::text', 'w'),
            ('v anyelement, eps double precision, min_points integer, instead_of regprocedure', 'w'),
            ('id1 bigint[], id2 bigint[]', 'f') $$,
  'clusters take a table, a window''s values or pairs');
SELECT bag_eq(
  $$ SELECT proname::text, pg_get_function_result(oid) FROM functions WHERE proretset AND provolatile = 's' $$,
  $$ VALUES ('gpu_join', 'TABLE(id1 bigint, id2 bigint)'),
            ('gpu_join_distance', 'TABLE(id1 bigint, id2 bigint, distance double precision)'),
            ('gpu_selfjoin', 'TABLE(id1 bigint, id2 bigint)'),
            ('gpu_selfjoin_distance', 'TABLE(id1 bigint, id2 bigint, distance double precision)'),
            ('gpu_topk_join', 'TABLE(id1 bigint, id2 bigint, score double precision)'),
            ('gpu_knn_join', 'TABLE(id1 bigint, id2 bigint, distance double precision, rank bigint)'),
            ('gpu_box_join', 'TABLE(id1 bigint, id2 bigint)'),
            ('gpu_components', 'TABLE(id bigint, component bigint)'),
            ('gpu_dbscan', 'TABLE(id bigint, cluster bigint, kind text)'),
            ('gpu_density', 'TABLE(id bigint, neighbors bigint)'),
            ('gpu_dedup', 'TABLE(id bigint, kept_id bigint, distance double precision)'),
            ('gpu_spanning_tree', 'TABLE(id1 bigint, id2 bigint, distance double precision)'),
            ('gpu_hdbscan', 'TABLE(id bigint, cluster bigint, probability double precision)'),
            ('gpu_neighbors', 'TABLE(id bigint, neighbors bigint[], distances double precision[])') $$,
  'joins return pairs of ids, and the distance where their name says so; or neighbors, clusters, duplicates');
CREATE TEMP TABLE arrays AS SELECT unnest('{real[],double precision[],smallint[],integer[],bigint[],numeric[]}'::text[]) AS t;
SELECT bag_eq(
  $$ SELECT oid::regprocedure::text, prorettype::regtype::text FROM functions
     WHERE proname IN ('gpu_within', 'gpu_distance', 'gpu_cosine_distance', 'gpu_l1_distance') $$,
  $$ SELECT format(call, t, t), result FROM arrays,
       (VALUES ('gpu_distance(%s,%s)', 'double precision'), ('gpu_distance(%s,%s,text)', 'double precision'),
               ('gpu_cosine_distance(%s,%s)', 'double precision'), ('gpu_l1_distance(%s,%s)', 'double precision'),
               ('gpu_within(%s,%s,double precision)', 'boolean'), ('gpu_within(%s,%s,double precision,text)', 'boolean')) v(call, result)
     UNION ALL VALUES ('gpu_within(point,point,double precision)', 'boolean'), ('gpu_within(point,point,double precision,text)', 'boolean'),
       ('gpu_distance(point,point,text)', 'double precision') $$,
  'arrays of numbers have distances, and neighborhoods like points');
SELECT bag_eq(
  $$ SELECT proargnames FROM functions WHERE proname = 'gpu_devices' $$,
  $$ VALUES ('{engine,device,name,parallelism,memory_bytes,detail,available,reason,used_bytes,table_bytes,join_bytes}'::text[]) $$,
  'gpu_devices() has these columns');
SELECT bag_eq(
  $$ SELECT proargnames FROM functions WHERE proname = 'gpu_last_join' $$,
  $$ VALUES ('{function,engine,fallback,metric,pair_selection,eps,left_rows,right_rows,dimensions,index,indexed_columns,
     sort_column,access_pattern,cell_order,estimated_candidates,estimated_pairs,strategy_reason,topk_method,topk_rounds,box_method,threads,instruction_set,
     threads_per_point,streams,batch_pairs,pin_ms_per_mb,batch_ms,batches,candidate_pairs,rechecked_pairs,pairs,memory_bytes,device_memory_bytes,read_ms,index_ms,join_ms,
     complete,joined_in,service_fallback,devices}'::text[]) $$,
  'gpu_last_join() has these columns');
SELECT bag_eq(
  $$ SELECT proargnames FROM functions WHERE proname = 'gpu_session_joins' $$,
  $$ VALUES ('{joins,engine_fallbacks,topk_fallbacks,nested_loops,service_fallbacks}'::text[]) $$,
  'gpu_session_joins() has these columns');

-- What the planner may assume.
SELECT set_eq(
  $$ SELECT proname::text, provolatile, proparallel, proisstrict, proretset FROM functions $$,
  $$ SELECT unnest(names), volatility::"char", parallel::"char", strict, returns_set FROM (VALUES
       ('{gpu_selfjoin,gpu_selfjoin_distance,gpu_join,gpu_join_distance,gpu_neighbors,gpu_topk_join,gpu_knn_join,gpu_box_join,gpu_components,gpu_dbscan,gpu_density,gpu_dedup,gpu_spanning_tree,gpu_hdbscan}'::text[], 's', 'r', false, true),
       ('{gpu_cluster_dbscan,gpu_postgis_clusters}', 's', 'r', false, false), ('{gpu_components}', 'i', 's', true, true),
       ('{gpu_distance,gpu_cosine_distance,gpu_l1_distance,gpu_within,gpu_vector,gpu_ctid,gpu_cell,gpu_halo}', 'i', 's', true, false),
       ('{gpu_devices,gpu_last_join,gpu_resident_tables,gpu_join_counts,gpu_running_joins}', 'v', 'r', true, true),
       ('{gpu_session_joins,gpu_reset_join_counts}', 'v', 'r', true, false), ('{gpu_prewarm,gpu_evict}', 'v', 'r', false, false),
       ('{gpujoin_support}', 'v', 'u', true, false), ('{gpu_why}', 'v', 'u', true, true))
       v(names, volatility, parallel, strict, returns_set) $$,
  'joins are stable and stay in the leader, distances are immutable and may go to workers');
SELECT set_eq(
  $$ SELECT oid FROM functions WHERE prosupport = 'gpujoin_support(internal)'::regprocedure $$,
  $$ SELECT f.oid FROM functions f JOIN pg_language l ON l.oid = prolang WHERE lanname = 'c'
     AND prokind = 'f' AND f.oid <> 'gpu_components(bigint[],bigint[])'::regprocedure
     AND proname NOT IN ('gpu_ctid', 'gpu_cell', 'gpu_halo', 'gpu_devices', 'gpu_last_join', 'gpu_session_joins', 'gpu_why', 'gpu_join_counts', 'gpu_reset_join_counts', 'gpu_running_joins', 'gpu_resident_tables', 'gpu_prewarm', 'gpu_evict', 'gpujoin_support') $$,
  'the planner is told more about the joins and the distances');
SELECT is_empty(
  $$ SELECT oid::regprocedure FROM functions WHERE prosecdef OR proleakproof $$,
  'no function runs with its owner''s privileges or claims to be leakproof');
SELECT is_empty(
  $$ SELECT f.oid::regprocedure FROM functions f JOIN pg_language l ON l.oid = prolang
     WHERE NOT CASE lanname WHEN 'c' THEN probin = '$libdir/gpujoin' ELSE lanname = 'sql' AND prosqlbody IS NOT NULL END $$,
  'all functions are in the library, or expressions bound when they were made');

-- Who may call them.
CREATE ROLE gpujoin_nobody;
SELECT is_empty(
  $$ SELECT oid::regprocedure FROM functions WHERE NOT has_function_privilege('gpujoin_nobody', oid, 'EXECUTE')
     AND proname NOT IN ('gpu_resident_tables', 'gpu_reset_join_counts') $$,
  'everybody may call every function, but those that show what the service keeps, and reset what it counts');
SELECT is(has_function_privilege('gpujoin_nobody', 'gpu_resident_tables()', 'EXECUTE')
    OR has_table_privilege('gpujoin_nobody', 'gpu_resident', 'SELECT'), false, 'which not everybody may see');
GRANT pg_monitor TO gpujoin_nobody;
SELECT is(has_function_privilege('gpujoin_nobody', 'gpu_resident_tables()', 'EXECUTE')
    AND has_table_privilege('gpujoin_nobody', 'gpu_resident', 'SELECT'), true, 'but members of pg_monitor');
SELECT is(has_table_privilege('gpujoin_nobody', 'pg_stat_gpujoin', 'SELECT') AND has_table_privilege('gpujoin_nobody', 'pg_stat_progress_gpujoin', 'SELECT'), true,
  'everybody may see what is counted');
REVOKE pg_monitor FROM gpujoin_nobody;

-- The operators.
SELECT bag_eq(
  $$ SELECT oprname::text, oprleft::regtype::text, oprright::regtype::text, oprresult::regtype::text,
            oprcode::oid::regprocedure::text, oprcom = o.oid
     FROM pg_operator o JOIN members ON classid = 'pg_operator'::regclass AND objid = o.oid $$,
  $$ SELECT operator, t AS "left", t AS "right", 'double precision' AS result, format('%s(%s,%s)', function, t, t) AS code, true AS commutes
     FROM arrays, (VALUES ('<->', 'gpu_distance'), ('<=>', 'gpu_cosine_distance'), ('<+>', 'gpu_l1_distance')) v(operator, function) $$,
  'operators are distances of arrays, and their own commutators');

-- What another server that has the extension may be sent: all that conditions are made of, by its operators or functions.
SELECT set_eq(
  $$ SELECT oid::regprocedure::text FROM functions WHERE provolatile = 'i' AND proparallel = 's' AND NOT proretset $$,
  $$ SELECT oprcode::oid::regprocedure::text FROM pg_operator WHERE oid IN (SELECT objid FROM members WHERE classid = 'pg_operator'::regclass)
     UNION SELECT oid::regprocedure::text FROM functions
     WHERE proname IN ('gpu_distance', 'gpu_cosine_distance', 'gpu_l1_distance', 'gpu_within', 'gpu_vector', 'gpu_ctid', 'gpu_cell', 'gpu_halo') $$,
  'functions of conditions, and those behind operators, are immutable members of the extension');

-- Words.
SELECT is_empty(
  $$ SELECT oid::regprocedure FROM functions
     WHERE obj_description(oid, 'pg_proc') IS NULL AND proname <> 'gpujoin_support' $$,
  'every function that people call has a comment');
SELECT is_empty(
  $$ SELECT objid::regoperator FROM members
     WHERE classid = 'pg_operator'::regclass AND obj_description(objid, 'pg_operator') IS NULL $$,
  'every operator has a comment');
SELECT is_empty(
  $$ SELECT attname FROM pg_attribute WHERE attrelid = 'pg_stat_gpujoin'::regclass AND attnum > 0 AND col_description(attrelid, attnum) IS NULL $$,
  'every column of the statistics has a comment');
SELECT isnt(obj_description(oid, 'pg_extension'), NULL, 'the extension has a comment')
FROM pg_extension WHERE extname = 'gpujoin';

-- Settings, which are there once the library is.
SELECT lives_ok('SELECT FROM gpu_devices()', 'asking for devices loads the library');
SELECT bag_eq(
  $$ SELECT name, vartype, context, unit, boot_val FROM pg_settings WHERE name LIKE 'gpujoin.%' $$,
  $$ VALUES ('gpujoin.engine', 'enum', 'user', NULL, 'auto'), ('gpujoin.enable_customscan', 'bool', 'user', NULL, 'on'),
            ('gpujoin.cpu_threads', 'integer', 'superuser', NULL, '0'),
            ('gpujoin.host_memory_limit', 'integer', 'superuser', 'kB', '0'),
            ('gpujoin.device_memory_limit', 'integer', 'superuser', 'kB', '0'),
            ('gpujoin.index', 'enum', 'user', NULL, 'auto'), ('gpujoin.prefer_node', 'bool', 'user', NULL, 'off'), ('gpujoin.warn_missed', 'enum', 'user', NULL, 'off'),
            ('gpujoin.indexed_dimensions', 'integer', 'user', NULL, '0'),
            ('gpujoin.reference_points', 'integer', 'user', NULL, '0'),
            ('gpujoin.reference_placement', 'enum', 'user', NULL, 'auto'),
            ('gpujoin.reorder_dimensions', 'enum', 'user', NULL, 'auto'),
            ('gpujoin.sort_unindexed', 'enum', 'user', NULL, 'auto'),
            ('gpujoin.short_circuit', 'enum', 'user', NULL, 'auto'),
            ('gpujoin.access_pattern', 'enum', 'user', NULL, 'auto'),
            ('gpujoin.cell_order', 'enum', 'user', NULL, 'auto'),
            ('gpujoin.batch_pairs', 'integer', 'user', NULL, '0'), ('gpujoin.device', 'string', 'user', NULL, '0'),
            ('gpujoin.share_devices', 'enum', 'user', NULL, 'auto'),
            ('gpujoin.work_order', 'enum', 'user', NULL, 'auto'),
            ('gpujoin.threads_per_point', 'integer', 'user', NULL, '0'),
            ('gpujoin.streams', 'integer', 'user', NULL, '0'), ('gpujoin.topk_method', 'enum', 'user', NULL, 'auto'),
            ('gpujoin.box_method', 'enum', 'user', NULL, 'auto'), ('gpujoin.service', 'enum', 'user', NULL, 'auto'),
            ('gpujoin.service_threads', 'integer', 'sighup', NULL, '0'),
            ('gpujoin.log_min_duration', 'integer', 'superuser', 'ms', '-1'),
            ('gpujoin.service_join_memory', 'integer', 'sighup', 'kB', '0'),
            ('gpujoin.table_memory', 'integer', 'sighup', 'kB', '-1'),
            ('gpujoin.device_table_memory', 'integer', 'sighup', 'kB', '4194304') $$,
  'all settings choose for themselves by default; the bounds on resources are the administrator''s, or the server''s');
SELECT is_empty(
  $$ SELECT name FROM pg_settings WHERE name LIKE 'gpujoin.%' AND short_desc !~ '\.$' $$,
  'every setting is described by a sentence');

-- An update makes what CREATE EXTENSION makes.
CREATE FUNCTION objects() RETURNS SETOF text LANGUAGE sql AS $$
  SELECT coalesce(pg_get_functiondef(p.oid), '') || ' ' || coalesce(p.prosupport::regprocedure::text, '') || ' ' ||
      coalesce(obj_description(objid, 'pg_proc'), '') || ' ' || pg_describe_object(classid, objid, 0) || ' ' ||
      coalesce((SELECT string_agg(concat(attname, col_description(objid, attnum)), ';' ORDER BY attnum)
        FROM pg_attribute WHERE classid = 'pg_class'::regclass AND attrelid = objid), '')
  FROM pg_depend LEFT JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
  WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
    AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gpujoin')
$$;
CREATE TEMP TABLE fresh AS SELECT objects();
DROP VIEW functions;
DROP EXTENSION gpujoin;
CREATE EXTENSION gpujoin VERSION '1.0';
ALTER EXTENSION gpujoin UPDATE;
SELECT bag_eq('SELECT objects()', 'TABLE fresh', 'updated from 1.0');

SELECT * FROM finish();
ROLLBACK;
