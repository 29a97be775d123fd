\echo Use "ALTER EXTENSION gpujoin UPDATE TO '1.2'" to load this file. \quit

-- Which distances of a query are served, and why not the others. The library of an earlier release, on the disk or in this
-- session, has no such function.

DO $$
BEGIN
    CREATE FUNCTION gpu_why(query text)
        RETURNS TABLE (relations text, condition text, served boolean, reason text, hint text)
        AS 'MODULE_PATHNAME', 'gpujoin_why' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE ROWS 3;
EXCEPTION WHEN undefined_function THEN
    RAISE EXCEPTION 'the library gpujoin.so is of an earlier release than version 1.2 of the extension'
        USING HINT = 'Install gpujoin 1.2. Then restart the server if shared_preload_libraries names gpujoin, or else open a new session.';
END
$$;
COMMENT ON FUNCTION gpu_why IS 'which distances of a query the plan node serves, why not the others, and what to write instead';

-- Two more columns. Views of users over pg_stat_gpujoin stay.

ALTER FUNCTION gpu_join_counts() RENAME TO gpu_join_counts_1_1;
CREATE FUNCTION gpu_join_counts(
    OUT datid oid, OUT joins bigint, OUT service_joins bigint, OUT device_joins bigint, OUT cancels bigint, OUT rows bigint,
    OUT pairs bigint, OUT candidates bigint, OUT table_blocks bigint, OUT blocks_read bigint, OUT engine_fallbacks bigint,
    OUT topk_fallbacks bigint, OUT nested_loops bigint, OUT service_fallbacks bigint, OUT read_ms float8, OUT index_ms float8,
    OUT join_ms float8, OUT stats_reset timestamptz, OUT missed_joins bigint, OUT searches bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gpujoin_join_counts' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION gpu_join_counts() IS 'what the joins of each database did';
CREATE OR REPLACE VIEW pg_stat_gpujoin AS SELECT d.datname, c.* FROM gpu_join_counts() c LEFT JOIN pg_database d ON d.oid = c.datid;
COMMENT ON COLUMN pg_stat_gpujoin.missed_joins IS 'distances over more than 100 million pairs that queries were planned for without the node';
COMMENT ON COLUMN pg_stat_gpujoin.searches IS 'searches of one table for the rows near one value';
DROP FUNCTION gpu_join_counts_1_1();

-- gpu_prewarm() for searches, and for good.

DROP FUNCTION gpu_prewarm(regclass, float8, name, anycompatible, text, name, anycompatible);
CREATE FUNCTION gpu_prewarm(
    tbl regclass, eps float8 DEFAULT NULL, id_column name DEFAULT NULL, vector_columns anycompatible DEFAULT NULL,
    metric text DEFAULT 'l2', score_column name DEFAULT NULL, box_columns anycompatible DEFAULT NULL, keep boolean DEFAULT false)
    RETURNS bigint
    AS 'MODULE_PATHNAME', 'gpujoin_prewarm' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION gpu_prewarm IS
    'makes the gpujoin service keep and index the vectors of a table for searches, its vectors for joins of a radius, or its boxes; returns the number of rows';

-- The arguments of calls with keep => true, which are made again whenever the service starts.

CREATE TABLE gpu_prewarmed (
    relation regclass NOT NULL, eps float8, id_column name, vector_columns text, metric text, score_column name, box_columns text);
COMMENT ON TABLE gpu_prewarmed IS 'what gpu_prewarm(keep => true) brings back to the gpujoin service after a restart';
GRANT SELECT ON gpu_prewarmed TO PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('gpu_prewarmed', '');
