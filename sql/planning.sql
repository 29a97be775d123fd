-- Planning a query has no side effects: no errors of what is never run, no locks without rights, no libraries loaded.
SET client_min_messages = warning;
CREATE SCHEMA planning;
SET search_path = planning, public;
CREATE TABLE a (id int PRIMARY KEY, v float8[]);
INSERT INTO a SELECT i, ARRAY[i % 10, i / 10] FROM generate_series(1, 100) i;
ANALYZE a;
CREATE FUNCTION fails() RETURNS float8 LANGUAGE plpgsql STABLE AS $$ BEGIN RAISE 'evaluated'; END $$;
CREATE FUNCTION hole() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN NEXT 1; END $$;

-- Arguments that are refused are refused where the function runs.
SELECT one FROM (SELECT 1 AS one) s LEFT JOIN LATERAL gpu_selfjoin('a', -1, vector_columns => '{v}') g ON false;
SELECT one FROM (SELECT 1 AS one) s LEFT JOIN LATERAL gpu_selfjoin('a', fails()) g ON false;
SELECT one FROM (SELECT 1 AS one) s LEFT JOIN LATERAL gpu_selfjoin('a', 1, metric => 'none') g ON false;
SELECT one FROM (SELECT 1 AS one) s LEFT JOIN LATERAL gpu_selfjoin('a', 1, vector_columns => ARRAY[NULL]::name[]) g ON false;
SELECT one FROM (SELECT 1 AS one) s LEFT JOIN LATERAL gpu_topk_join('a', 'a', 1, 0) g ON false;
SELECT one FROM (SELECT 1 AS one) s LEFT JOIN LATERAL gpu_selfjoin('nowhere'::text::regclass, 1) g ON false;
EXPLAIN (COSTS OFF) SELECT * FROM gpu_selfjoin('a', -1);
SELECT * FROM gpu_selfjoin('a', -1);
SELECT * FROM gpu_selfjoin('a', fails());

-- Whoever may read nothing of a table takes no lock on it.
CREATE ROLE regress_gpujoin_nobody;
GRANT USAGE ON SCHEMA planning TO regress_gpujoin_nobody;
CREATE VIEW locks AS SELECT relation::regclass, mode FROM pg_locks
  WHERE relation = 'a'::regclass AND pid = pg_backend_pid();
GRANT SELECT ON locks TO regress_gpujoin_nobody;
BEGIN;
SET LOCAL ROLE regress_gpujoin_nobody;
EXPLAIN (COSTS OFF) SELECT * FROM gpu_selfjoin('a', 1);
EXPLAIN (COSTS OFF) SELECT * FROM gpu_join('a', 'a', 1);
TABLE locks;
SELECT * FROM gpu_selfjoin('a', 1);
ROLLBACK;
BEGIN;
GRANT SELECT (v) ON a TO regress_gpujoin_nobody;
SET LOCAL ROLE regress_gpujoin_nobody;
SELECT * FROM gpu_selfjoin('a', 1);
ROLLBACK;
DROP VIEW locks;
REVOKE ALL ON SCHEMA planning FROM regress_gpujoin_nobody;
DROP ROLE regress_gpujoin_nobody;

-- Other functions in FROM are left alone: PL/pgSQL, which has settings of its own once it is loaded, stays out.
\c -
LOAD 'gpujoin';
SELECT * FROM (VALUES (1)) v(one) LEFT JOIN planning.hole() ON false;
SELECT count(*) FROM pg_settings WHERE name LIKE 'plpgsql.%';
SELECT * FROM planning.hole();
SELECT count(*) > 0 AS loaded FROM pg_settings WHERE name LIKE 'plpgsql.%';

SET client_min_messages = warning;
DROP SCHEMA planning CASCADE;
