-- ORDER BY score LIMIT k over a join in plain SQL: plans, and the same rows with the node and without it.
CREATE SCHEMA planner_topk;
SET search_path = planner_topk, public;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE a AS
  SELECT i AS id, i % 3 AS kind, ARRAY[i * 7 % 41, i * 5 % 37]::float8[] AS v, i * 7919 % 1009 / 8.0::float8 AS s,
    (i * 31 % 97)::numeric AS n, CASE WHEN i <> 77 THEN i % 5 END AS stars
  FROM generate_series(1, 3000) i;
CREATE TABLE b AS SELECT id, kind, ARRAY[v[1] + 0.25, v[2]]::float8[] AS v, s / 3 AS s, n, stars FROM a WHERE id % 2 = 0;
ANALYZE a, b;

-- The score of the first key; Sort and Limit stay above.
EXPLAIN (COSTS OFF) SELECT l.id, r.id FROM a l JOIN b r ON gpu_within(l.v, r.v, 1.5) ORDER BY l.s + r.s DESC LIMIT 10;
EXPLAIN (COSTS OFF) SELECT l.id, r.id, r.n - l.n AS d FROM a l JOIN b r ON l.v <-> r.v <= 1.5 AND l.kind = r.kind
  ORDER BY d, l.id, r.id LIMIT 10 OFFSET 5;
EXPLAIN (COSTS OFF) SELECT l.id FROM a l JOIN b r ON l.v <-> r.v < 2 ORDER BY r.v <-> l.v, l.id LIMIT 1;
EXPLAIN (COSTS OFF) SELECT l.id FROM a l JOIN b r ON l.v <-> r.v < 2 ORDER BY least(0.3 * l.s, r.s) LIMIT 3;
-- No score of pairs, or not the first of them.
EXPLAIN (COSTS OFF) SELECT l.id FROM a l JOIN b r ON l.v <-> r.v < 2 ORDER BY l.s LIMIT 3;
EXPLAIN (COSTS OFF) SELECT l.id FROM a l JOIN b r ON l.v <-> r.v < 2 ORDER BY l.s + r.s FETCH FIRST 3 ROWS WITH TIES;

\i sql/explain_analyze.psql

-- What ran: as many pairs as are wanted, more where other conditions or further keys decide, all where a score is NULL.
SELECT * FROM explain_analyze($$SELECT l.id FROM a l JOIN b r ON gpu_within(l.v, r.v, 1.5) ORDER BY l.s + r.s DESC LIMIT 10$$);
SELECT * FROM explain_analyze($$SELECT l.id FROM a l JOIN b r ON gpu_within(l.v, r.v, 1.5) AND (l.id + r.id) % 101 = 7 ORDER BY l.s * r.s, l.id, r.id LIMIT 10$$);
SELECT * FROM explain_analyze($$SELECT l.id FROM a l JOIN b r ON gpu_within(l.v, r.v, 1.5) ORDER BY l.stars + r.s DESC NULLS LAST LIMIT 10$$);

-- The same answers without the node, by every method.
CREATE TABLE queries (number int GENERATED ALWAYS AS IDENTITY, query text);
INSERT INTO queries (query) VALUES
  ('SELECT l.s + r.s AS s FROM a l JOIN b r ON gpu_within(l.v, r.v, 1.5) ORDER BY s DESC LIMIT 100'),
  ('SELECT l.id, r.id AS other FROM a l JOIN b r ON gpu_within(l.v, r.v, 1.5) ORDER BY l.s + r.s DESC, 1, 2 LIMIT 100'),
  ('SELECT l.id, r.id AS other FROM a l JOIN a r ON l.v <-> r.v < 2 AND l.id < r.id ORDER BY l.s * r.s, 1, 2 LIMIT 50'),
  ('SELECT l.id, r.id AS other FROM a l JOIN b r ON l.v <-> r.v < 3 ORDER BY r.n - l.n DESC, 1, 2 LIMIT 7 OFFSET 70'),
  ('SELECT l.id, r.id AS other FROM a l JOIN b r ON l.v <-> r.v < 3 ORDER BY least(l.s, r.s) DESC, 1, 2 LIMIT 20'),
  ('SELECT l.id, r.id AS other FROM a l JOIN b r ON l.v <-> r.v < 3 ORDER BY greatest(l.stars, r.stars), 1, 2 LIMIT 20'),
  ('SELECT l.id, r.id AS other FROM a l JOIN b r ON l.v <-> r.v < 3 ORDER BY 0.2 * l.s - r.s, 1, 2 LIMIT 20'),
  ('SELECT l.id, r.id AS other FROM a l JOIN b r ON l.v <-> r.v < 3 AND l.kind <> r.kind ORDER BY l.v <-> r.v, 1, 2 LIMIT 20'),
  ('SELECT l.id, r.id AS other FROM a l JOIN b r ON l.v <-> r.v < 3 AND l.id + r.id = 4000 ORDER BY l.n + r.n, 1, 2 LIMIT 20'),
  ('SELECT l.id, r.id AS other FROM a l JOIN b r ON l.v <-> r.v = 0.25 AND l.v <-> r.v < 1 ORDER BY l.n + r.n, 1, 2 LIMIT 20');
CREATE FUNCTION answer(query text, with_node boolean, method text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
  PERFORM set_config('gpujoin.enable_customscan', with_node::text, true), set_config('gpujoin.topk_method', method, true);
  EXECUTE 'SELECT count(*) || '' '' || coalesce(md5(string_agg(t::text, '','')), '''') FROM (' || query || ') t' INTO result;
  RETURN result;
END $$;
SELECT number, split_part(plain, ' ', 1) AS rows,
  (SELECT bool_and(answer(query, true, method) = plain) FROM unnest('{auto,threshold,heap,sort}'::text[]) method) AS same
FROM queries, LATERAL answer(query, false, 'auto') plain ORDER BY number;
\set VERBOSITY terse
DROP SCHEMA planner_topk CASCADE;
