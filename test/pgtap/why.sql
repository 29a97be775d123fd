-- gpu_why(): which distances of a query the node serves, and of each other one the reason and what to write instead.
BEGIN;
CREATE SCHEMA why;
SET search_path = why, public;
SET jit = off;
LOAD 'gpujoin';
SELECT * FROM no_plan();

CREATE TABLE a AS SELECT i AS id, ARRAY[i * 37 % 101, i * 53 % 97]::float8[] AS v, point(i * 37 % 101, i * 53 % 97) AS p, i / 100.0::float8 AS x, i % 7 + 0.5::float8 AS r FROM generate_series(1, 2000) i;
ALTER TABLE a ADD PRIMARY KEY (id);
CREATE TABLE b AS SELECT * FROM a;
CREATE TABLE few AS SELECT * FROM a WHERE id < 300;
ANALYZE a, b, few;

-- The condition stands for |, the reason for ~ and a pattern.
CREATE FUNCTION why_of(q text) RETURNS text LANGUAGE sql AS $$
  SELECT coalesce(string_agg(format('%s: %s', relations, CASE WHEN served THEN coalesce(reason, 'served') ELSE reason END), '; ' ORDER BY relations, condition), 'nothing')
  FROM gpu_why(q)
$$;
CREATE TABLE queries (query text, answer text);
INSERT INTO queries VALUES
  ('SELECT 1', 'nothing'), ('SELECT * FROM a JOIN b USING (id)', 'nothing'), ('SELECT * FROM a WHERE v <-> ''{1,2}'' < 3', 'nothing'), ('SELECT * FROM a, b WHERE a.x < b.x', 'nothing'),
  ('SELECT * FROM a JOIN b ON a.v <-> b.v <= 1', 'a, b: served'), ('SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= 1', 'a, b: served'), ('SELECT a.id, sum(b.id) FROM a JOIN b ON 1 - (a.v <=> b.v) > 0.999 GROUP BY 1', 'a, b: served'),
  ('SELECT a.id, b.id FROM a JOIN b ON a.v <-> b.v <= $1 ORDER BY a.v <-> b.v LIMIT 5', 'a, b: served'), ('SELECT id FROM a WHERE NOT EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 1 AND a.id <> b.id)', 'a, b: served'),
  ('SELECT a.id, n.id FROM a, LATERAL (SELECT id FROM b ORDER BY a.v <-> b.v LIMIT 3) n', 'b: served'), ('SELECT * FROM (SELECT a.id, row_number() OVER (PARTITION BY a.id ORDER BY a.v <-> b.v) n FROM a, b) s WHERE n <= 2', 'a, b: served'),
  ('SELECT * FROM a JOIN b ON b.x BETWEEN a.x - 1 AND a.x + 1 AND b.r BETWEEN a.r - 1 AND a.r + 1', 'a, b: served; a, b: served'), ('SELECT * FROM a JOIN b ON b.x BETWEEN a.x - 1 AND a.x + 1', 'nothing'),
  ('CREATE TABLE c AS SELECT a.id FROM a JOIN b ON a.v <-> b.v <= 1', 'a, b: served'), ('EXPLAIN SELECT a.id FROM a JOIN b ON a.v <-> b.v <= 1', 'a, b: served'), ('UPDATE a SET x = 1 FROM b WHERE a.v <-> b.v <= 1', 'a, b: served'),
  ('WITH w AS MATERIALIZED (SELECT a.id FROM a JOIN b ON a.v <-> b.v <= 1) SELECT * FROM w', 'a, b: served'),
  ('SELECT * FROM a JOIN b ON a.v <-> b.v > 1', 'a, b: the distance has to be larger than a limit, or to differ from it'), ('SELECT * FROM a JOIN b ON NOT gpu_within(a.v, b.v, 1)', 'a, b: the distance has to be larger than a limit, or to differ from it'),
  ('SELECT * FROM a JOIN b ON a.v <-> b.v <= 1 OR a.x = b.x', 'a, b: a clause about something else stands beside the distance under OR'),
  ('SELECT * FROM a JOIN b ON (a.v <-> b.v) * a.x <= 1', 'a, b: the expression around the distance gives it no upper bound'),
  ('SELECT * FROM a JOIN b ON a.v <-> b.v <= a.r * b.r', 'a, b: the radius is made of both rows'' numbers in a way that cannot be taken apart, or computing it may raise an error'),
  ('SELECT a.v <-> b.v FROM a, b', 'a, b: no condition bounds the distance from above'), ('SELECT a.id, min(a.v <-> b.v) FROM a, b GROUP BY 1', 'a, b: no condition bounds the distance from above'),
  ('SELECT id, (SELECT count(*) FROM b WHERE a.v <-> b.v <= 1) FROM a', 'b: served by search'),
  ('SELECT id, (SELECT id FROM b ORDER BY a.v <-> b.v LIMIT 1) FROM a', 'b: served by search'),
  ('SELECT a.id, n.id FROM a, LATERAL (SELECT id FROM b ORDER BY a.v <-> b.v LIMIT 3 OFFSET 1) n', 'b: served by search'),
  ('SELECT a.id, n.id FROM a, LATERAL (SELECT id FROM b ORDER BY a.v <-> b.v LIMIT 3000) n', 'b: the subquery in LATERAL has no LIMIT of 1 to 1000 rows that is the same for all rows'),
  ('SELECT a.id, n.id FROM a, LATERAL (SELECT id FROM b ORDER BY a.v <-> b.v LIMIT a.id) n', 'b: served by search'),
  ('SELECT a.id, n.id FROM a, LATERAL (SELECT id FROM b ORDER BY a.v <-> b.v DESC LIMIT 3) n', 'b: the subquery in LATERAL does not sort by a distance between values of both rows, the nearest first, or sorts by another expression after it'),
  ('SELECT a.id, n.id FROM a, LATERAL (SELECT id FROM b WHERE random() < 0.5 ORDER BY a.v <-> b.v LIMIT 3) n', 'b: conditions or results of the subquery in LATERAL are volatile, hold subqueries, or may raise an error where another condition would have come first'),
  ('SELECT * FROM a FULL JOIN b ON a.v <-> b.v <= 1 AND a.id = b.id', 'a, b: the node serves no such join, as a FULL JOIN'), ('SELECT * FROM a JOIN b ON a.v <-> b.v <= 1 WHERE a.id = 7', 'a, b: served'),
  ('SELECT id, (SELECT count(*) FROM few WHERE a.v <-> few.v <= 1) FROM a', 'few: a subquery compares the table with one row of the outer query at a time, and no search serves it: the table is small, or the compared value cannot be computed for all its rows'),
  ('SELECT id, (SELECT count(*) FROM b WHERE a.v <-> ARRAY[b.x + 1, b.x] <= 1) FROM a', 'b: served by search'),
  ('SELECT * FROM a JOIN b ON a.id = b.id JOIN a c ON (b.v <-> c.v) + (a.v <-> c.v) < 0.2', 'a, b, c: served');
SELECT is(why_of(query), answer, query) FROM queries;
SELECT is((SELECT count(*) FROM queries, gpu_why(query) WHERE served AND (reason <> 'served by search' OR hint IS NOT NULL) OR NOT served AND reason IS NULL OR condition IS NULL), 0::bigint, 'a reason where one is due');
SELECT is((SELECT array_agg(condition ORDER BY condition) FROM gpu_why('SELECT * FROM a JOIN b ON a.v <-> b.v <= 1 JOIN a c ON gpu_within(b.v, c.v, 2)')),
  ARRAY['((a.v <-> b.v) <= ''1''::double precision)', 'gpu_within(b.v, c.v, ''2''::double precision)'], 'conditions in SQL');
SET gpujoin.enable_customscan = off;
SELECT is(why_of('SELECT * FROM a JOIN b ON a.v <-> b.v <= 1'), 'a, b: gpujoin.enable_customscan is off', 'the node is off');
RESET gpujoin.enable_customscan;
SET gpujoin.prefer_node = on;
SELECT is(why_of('SELECT * FROM a JOIN b ON a.v <-> b.v <= 1 WHERE a.id = 7'), 'a, b: served', 'what the planner would not take is served where the node is preferred');
RESET gpujoin.prefer_node;
SELECT throws_ok('SELECT * FROM gpu_why(''SELECT 1; SELECT 2'')', '22023', 'gpu_why takes one query, not 2 statements', 'two statements');
SELECT throws_ok('SELECT * FROM gpu_why('''')', '22023', 'gpu_why takes one query, not 0 statements', 'none');
SELECT throws_ok('SELECT * FROM gpu_why(''VACUUM'')', '22023', 'gpu_why takes a query, not another statement', 'another statement');
SELECT throws_ok('SELECT * FROM gpu_why(''SELECT * FROM nowhere'')', '42P01', NULL, 'a mistake in the query');
SELECT * FROM finish();
ROLLBACK;
