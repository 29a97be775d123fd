-- Joins of boxes in plain SQL: plans, and the same rows with the node and without it.
LOAD 'gpujoin'; -- a clause of core types alone does not
CREATE SCHEMA planner_box;
SET search_path = planner_box, public;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE a AS
  SELECT i AS id, i % 3 AS kind, CASE WHEN i % 11 > 0 THEN box(point(i * 7 % 101, i * 5 % 97), point(i * 7 % 101 + i % 3, i * 5 % 97 + 1)) END AS b
  FROM generate_series(1, 2000) i;
CREATE TABLE c AS SELECT id, kind, b + point(1.000001, 0.5) AS b FROM a WHERE id % 2 = 0;
ANALYZE a, c;

EXPLAIN (COSTS OFF) SELECT l.id, r.id FROM a l JOIN c r ON l.b && r.b;
EXPLAIN (COSTS OFF) SELECT l.id, r.id FROM a l, a r WHERE r.b && l.b AND l.id < r.id;
EXPLAIN (COSTS OFF) SELECT l.id, r.id FROM a l LEFT JOIN c r ON l.b && r.b AND l.kind = 1;
EXPLAIN (COSTS OFF) SELECT l.id FROM a l WHERE NOT EXISTS (SELECT FROM c r WHERE l.b && r.b);
EXPLAIN (COSTS OFF) SELECT count(*) FROM a l JOIN c r ON l.b && r.b;
EXPLAIN (COSTS OFF) SELECT count(*) FROM a l JOIN c r ON l.b @> r.b WHERE l.id < 10 AND r.id < 10;

\i sql/explain_analyze.psql
SELECT * FROM explain_analyze($$SELECT l.id, r.id FROM a l JOIN c r ON l.b && r.b AND l.kind <> r.kind$$);

-- The same answers without the node, by every method.
CREATE TABLE queries (number int GENERATED ALWAYS AS IDENTITY, query text);
INSERT INTO queries (query) VALUES
  ('SELECT l.id, r.id AS other, l.kind FROM a l JOIN c r ON l.b && r.b'),
  ('SELECT l.id, r.id AS other FROM a l JOIN a r ON l.b && r.b AND l.id < r.id AND l.kind <> r.kind'),
  ('SELECT l.id, r.id AS other FROM a l LEFT JOIN c r ON r.b && l.b AND r.kind = 1'),
  ('SELECT l.id, r.id AS other FROM a l LEFT JOIN c r ON r.b && l.b'),
  ('SELECT l.id FROM a l WHERE EXISTS (SELECT FROM c r WHERE l.b && r.b)'),
  ('SELECT l.id FROM a l WHERE NOT EXISTS (SELECT FROM c r WHERE l.b && r.b)'),
  ('SELECT count(*) FROM a l JOIN c r ON l.b && r.b'),
  ('SELECT l.kind, count(*) FROM a l JOIN c r ON l.b && r.b GROUP BY l.kind');
CREATE FUNCTION digest(query text, with_node boolean, method text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
  PERFORM set_config('gpujoin.enable_customscan', with_node::text, true), set_config('gpujoin.box_method', method, true);
  EXECUTE 'SELECT count(*) || '' '' || coalesce(md5(string_agg(t::text, '','' ORDER BY t::text COLLATE "C")), '''') FROM ('
    || query || ') t' INTO result;
  RETURN result;
END $$;
SELECT number, split_part(plain, ' ', 1) AS rows,
  (SELECT bool_and(digest(query, true, method) = plain) FROM unnest('{auto,layered_grid,sort_sweep,none}'::text[]) method) AS same
FROM queries, LATERAL digest(query, false, 'auto') plain ORDER BY number;
\set VERBOSITY terse
DROP SCHEMA planner_box CASCADE;
