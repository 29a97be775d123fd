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
