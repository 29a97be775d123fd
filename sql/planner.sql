-- Joins on a distance in plain SQL: plans, and the same rows with the node and without it.
CREATE SCHEMA planner;
SET search_path = planner, public;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE a AS
  SELECT i AS id, i % 3 AS kind, 'name ' || i AS name,
    CASE WHEN i % 11 > 0 THEN ARRAY[i * 7 % 41, i * 5 % 37]::float8[] END AS v, point(i * 7 % 41, i * 5 % 37) AS p
  FROM generate_series(1, 3000) i;
ALTER TABLE a ADD PRIMARY KEY (id);
CREATE TABLE b AS SELECT id, kind, ARRAY[v[1] + 0.25, v[2]]::float4[] AS v, p FROM a WHERE id % 2 = 0 AND v IS NOT NULL;
ANALYZE a, b;

-- Recognised in both orders of arguments, in ON and in WHERE, beside other conditions.
EXPLAIN (COSTS OFF) SELECT * FROM a l JOIN a r ON l.v <-> r.v <= 1.5;
EXPLAIN (COSTS OFF) SELECT l.name, r.id FROM a l, a r WHERE 1.5 > r.v <-> l.v AND l.id < r.id AND l.kind <= r.kind;
EXPLAIN (COSTS OFF) SELECT l.name FROM a l LEFT JOIN b r ON gpu_within(l.v, r.v::float8[], 1.5) AND r.kind = 1 WHERE l.kind = 0;
EXPLAIN (COSTS OFF) SELECT l.name FROM a l WHERE EXISTS (SELECT FROM b r WHERE l.v <-> r.v::float8[] <= 1.5);
EXPLAIN (COSTS OFF) SELECT l.name FROM a l WHERE NOT EXISTS (SELECT FROM b r WHERE l.p <-> r.p <= 1.5);
EXPLAIN (COSTS OFF) SELECT count(*) FROM a l JOIN a r ON l.v <-> r.v <= 1.5;
EXPLAIN (COSTS OFF) SELECT l.id, count(*) FROM a l JOIN b r ON l.v <-> r.v::float8[] <= 1.5 GROUP BY l.id HAVING count(*) > 2;
EXPLAIN (COSTS OFF) SELECT l.id, r.id, l.v <-> r.v AS d FROM a l JOIN a r ON l.v <-> r.v < 9 AND l.id < r.id ORDER BY d LIMIT 3;
EXPLAIN (COSTS OFF) SELECT * FROM a l JOIN a r ON l.v <-> r.v <= 1.5 FOR UPDATE;

\i sql/explain_analyze.psql

-- What ran. Devices have no joins with keys.
SET gpujoin.engine = 'cpu';
SELECT * FROM explain_analyze($$SELECT count(*), count(r.id) FROM a l LEFT JOIN b r ON l.v <-> r.v::float8[] <= 1.5 AND l.kind = r.kind$$);
RESET gpujoin.engine;

-- Where the engine cannot stand in for the condition, the condition is asked.
CREATE TABLE mixed (id int, v float8[]);
INSERT INTO mixed SELECT id, v FROM a WHERE id <= 200 UNION ALL VALUES (9001, '{1}'::float8[]), (9002, '{1,2,3}');
\set VERBOSITY terse
SELECT count(*) FROM mixed l JOIN mixed r ON l.v <-> r.v <= 1;
\set VERBOSITY default
SELECT count(*) FROM mixed l JOIN mixed r ON cardinality(l.v) = cardinality(r.v) AND l.v <-> r.v <= 1;
SELECT * FROM explain_analyze($$SELECT count(*) FROM a l JOIN b r ON l.v <-> r.v::float8[] <= 'NaN' WHERE r.id < 10$$);

-- The same answers without the node.
CREATE TABLE queries (number int GENERATED ALWAYS AS IDENTITY, query text);
INSERT INTO queries (query) VALUES
  ('SELECT l.id, r.id AS other, l.name FROM a l JOIN a r ON l.v <-> r.v <= 1'),
  ('SELECT l.id, r.id AS other, r.name FROM a l JOIN a r ON l.v <-> r.v < 3 AND l.kind = r.kind AND l.id < r.id'),
  ('SELECT l.id, r.id AS other FROM a l LEFT JOIN b r ON l.v <-> r.v::float8[] <= 0.25 AND r.kind < 2'),
  ('SELECT l.id, l.name FROM a l WHERE EXISTS (SELECT FROM b r WHERE l.v <-> r.v::float8[] <= 0.25)'),
  ('SELECT l.id, l.name FROM a l WHERE EXISTS (SELECT FROM b r WHERE l.v <-> r.v::float8[] <= 2 AND l.id > r.id + 2000)'),
  ('SELECT l.id, l.name FROM a l WHERE NOT EXISTS (SELECT FROM b r WHERE l.v <-> r.v::float8[] <= 0.75)'),
  ('SELECT l.id, l.name FROM a l WHERE NOT EXISTS (SELECT FROM b r WHERE l.v <-> r.v::float8[] <= 1 AND l.kind > r.kind)'),
  ('SELECT l.id, r.id AS other FROM a l JOIN b r ON l.p <-> r.p <= 1'),
  ('SELECT l.id, r.id AS other FROM b l JOIN b r ON l.v <-> r.v < 2'),
  ('SELECT count(*) FROM a l JOIN a r ON l.v <-> r.v <= 3'),
  ('SELECT l.id, count(*) FROM a l JOIN b r ON l.v <-> r.v::float8[] <= 3 GROUP BY l.id HAVING count(*) > 20'),
  ('SELECT l.v <-> r.v AS d FROM a l JOIN a r ON l.v <-> r.v <= 3 AND l.id < r.id ORDER BY d LIMIT 100');
CREATE FUNCTION digest(query text, with_node boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
  PERFORM set_config('gpujoin.enable_customscan', with_node::text, true);
  EXECUTE 'SELECT count(*) || '' '' || coalesce(md5(string_agg(t::text, '','' ORDER BY t::text COLLATE "C")), '''') FROM ('
    || query || ') t' INTO result;
  RETURN result;
END $$;
SELECT number, split_part(digest(query, true), ' ', 1) AS rows, digest(query, true) = digest(query, false) AS same
FROM queries ORDER BY number;

-- One row a point.
SELECT id, neighbors, distances FROM gpu_neighbors('a', 0, vector_columns => '{v}') ORDER BY id LIMIT 3;
\set VERBOSITY terse
DROP SCHEMA planner CASCADE;
