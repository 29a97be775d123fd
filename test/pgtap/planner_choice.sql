-- Which plan is chosen with PostgreSQL's own costs: the node where it wins by far, another where that is clearly the
-- faster one. `make bench` measures the same cases both ways.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA planner_choice;
SET search_path = planner_choice, public;
SET jit = off;

\ir same_rows.psql

CREATE TABLE points (id int PRIMARY KEY, v float8[], p point, b box);
INSERT INTO points SELECT i, ARRAY[x, y], point(x, y), box(point(x, y), point(x + i % 7, y + 5))
FROM generate_series(1, 20000) i, LATERAL (SELECT i * 37 % 1009 AS x, i * 91 % 983 AS y) c;
CREATE TABLE few AS SELECT * FROM points WHERE id % 2000 = 0;
CREATE INDEX ON points USING gist (p);
ANALYZE points, few;

CREATE TABLE cases (query text, node boolean);
INSERT INTO cases VALUES
  ('SELECT * FROM points a JOIN points b ON a.v <-> b.v <= 5', true),
  ('SELECT count(*) FROM points a JOIN points b ON a.v <-> b.v <= 5', true),
  ('SELECT * FROM points a JOIN points b ON gpu_within(a.v, b.v, 5)', true),
  ('SELECT * FROM points a JOIN points b ON gpu_within(a.p, b.p, 5)', true),
  ('SELECT * FROM points a LEFT JOIN points b ON a.v <-> b.v <= 5 AND a.id <> b.id', true),
  ('SELECT * FROM points a WHERE EXISTS (SELECT FROM points b WHERE a.v <-> b.v <= 5 AND a.id <> b.id)', true),
  ('SELECT * FROM points a WHERE NOT EXISTS (SELECT FROM points b WHERE a.p <-> b.p <= 5 AND a.id <> b.id)', true),
  ('SELECT * FROM points a WHERE EXISTS (SELECT FROM points b WHERE a.v <-> b.v <= 500 AND a.id <> b.id)', false),
  ('SELECT count(*) FROM points a WHERE NOT EXISTS (SELECT FROM points b WHERE a.v <-> b.v <= 500 AND a.id > b.id)', false),
  ('SELECT * FROM points a LEFT JOIN points b ON a.p <-> b.p <= 500 AND a.id <> b.id WHERE b.id IS NULL', false),
  ('SELECT count(*) FROM points a WHERE EXISTS (SELECT FROM points b WHERE a.v <-> b.v <= 500)', true),
  ('SELECT * FROM points a JOIN points b ON a.v <-> b.v <= 5 WHERE a.id <= 1000', true),
  ('SELECT a.id, b.id, a.v <-> b.v AS d FROM points a JOIN points b ON a.v <-> b.v <= 5 ORDER BY d LIMIT 10', true),
  ('SELECT a.id, b.id FROM points a JOIN points b ON a.v <-> b.v <= 5 ORDER BY a.id - b.id, 1 LIMIT 10', true),
  ('SELECT * FROM points a JOIN points b ON a.b && b.b', true),
  ('SELECT * FROM few a JOIN few b ON a.b && b.b', false),
  ('SELECT * FROM few a JOIN few b ON a.v <-> b.v <= 5', false),
  ('SELECT count(*) FROM few a JOIN few b ON a.v <-> b.v <= 5', false),
  ('SELECT * FROM points a JOIN points b ON a.v <-> b.v <= 5 WHERE a.id < 10 AND b.id < 10', false),
  ('SELECT * FROM points a JOIN points b ON a.v <-> b.v <= 5 AND a.id = b.id', false),
  ('SELECT * FROM points a JOIN points b ON a.v <-> b.v <= 500 LIMIT 1', false),
  ('SELECT * FROM points a JOIN points b ON a.v <-> b.v <= 0.5 AND a.id < b.id LIMIT 10', true),
  ('SELECT a.id, b.id FROM points a JOIN points b ON a.v <-> b.v <= 0.5 AND a.id < b.id ORDER BY a.id LIMIT 5', true),
  ('SELECT * FROM points a WHERE EXISTS (SELECT FROM points b WHERE a.v <-> b.v <= 1 AND a.id <> b.id) LIMIT 10', true),
  ('SELECT * FROM points a JOIN points b ON a.v <-> b.v <= 5 WHERE a.id = 7', false),
  ('SELECT * FROM points a JOIN points b ON a.v <-> b.v <= 5 WHERE a.id % 5 = 1 AND a.id % 7 = 1 AND a.id % 11 = 1', true),
  ('SELECT * FROM points a JOIN points b ON a.v <-> b.v <= 5 WHERE a.id % 5 = 1 AND a.id = 4711', false),
  ('DELETE FROM points WHERE id IN (SELECT a.id FROM points a JOIN points b ON a.id > b.id AND a.v <-> b.v <= 1)', true),
  ('DELETE FROM points a USING points b WHERE a.id > b.id AND a.v <-> b.v <= 1', true),
  ('SELECT a.id FROM points a JOIN points b ON a.v <-> b.v <= 5 FOR UPDATE OF a', true),
  ('SELECT * FROM points a JOIN points b ON a.p <@ circle(b.p, 5) WHERE b.id = 7', false),
  ('SELECT a.id, b.id FROM points a JOIN points b ON a.v <-> b.v <= 500 ORDER BY a.id, b.id LIMIT 5', false),
  ('SELECT a.id, b.id FROM points a LEFT JOIN points b ON a.v <-> b.v <= 500 ORDER BY a.id DESC, b.id LIMIT 5', false),
  ('SELECT a.id, row_number() OVER (PARTITION BY a.id ORDER BY b.id) FROM points a JOIN points b ON a.v <-> b.v <= 500 LIMIT 3', false),
  ('SELECT a.id, b.id FROM points a JOIN points b ON a.v <-> b.v <= 0.5 AND a.id < b.id ORDER BY a.id, b.id LIMIT 5', true),
  ('SELECT a.id, b.id FROM points a JOIN points b ON a.v <-> b.v <= 500 ORDER BY b.id - a.id, a.id LIMIT 5', true);
-- Nearest rows, with conditions that an index finds rows by.
INSERT INTO cases SELECT format('SELECT a.id, s.id FROM points a CROSS JOIN LATERAL
  (SELECT b.id FROM points b WHERE %s ORDER BY a.v <-> b.v LIMIT 3) s', condition), node
FROM (VALUES ('b.id BETWEEN a.id AND a.id + 5', false), ('b.id >= a.id AND a.id + 5 > b.id', false),
  ('b.p <@ circle(a.p, 5) AND b.id <> a.id', false), ('b.id < a.id', true), ('b.v[1] BETWEEN a.v[1] AND a.v[1] + 5', true)) t(condition, node);
INSERT INTO cases SELECT format('SELECT * FROM (SELECT a.id, b.id AS other, row_number() OVER (PARTITION BY a.id ORDER BY a.v <-> b.v) AS r
  FROM points a JOIN points b ON %s) s WHERE r <= 2', condition), node
FROM (VALUES ('b.id BETWEEN a.id AND a.id + 5', false), ('b.id < a.id', true)) t(condition, node);
-- So of a partitioned table, whose partitions with most rows have the index.
CREATE TABLE divided (LIKE points) PARTITION BY RANGE (id);
CREATE TABLE divided_low PARTITION OF divided FOR VALUES FROM (0) TO (9000);
CREATE TABLE divided_high PARTITION OF divided FOR VALUES FROM (9000) TO (18000);
CREATE TABLE divided_rest PARTITION OF divided DEFAULT;
INSERT INTO divided SELECT * FROM points;
CREATE INDEX ON divided_low (id);
ANALYZE divided;
INSERT INTO cases VALUES ('SELECT a.id, s.id FROM points a CROSS JOIN LATERAL
  (SELECT b.id FROM divided b WHERE b.id BETWEEN a.id AND a.id + 5 ORDER BY a.v <-> b.v LIMIT 3) s', false);
SELECT ok(has_node(query), 'one partition in three has the index: by the node') FROM cases WHERE query LIKE '%divided%';
CREATE INDEX ON divided_high (id);
INSERT INTO cases VALUES ('SELECT * FROM (SELECT a.id, b.id AS other, row_number() OVER (PARTITION BY a.id ORDER BY a.v <-> b.v) AS r
  FROM points a JOIN divided b ON b.id BETWEEN a.id AND a.id + 5) s WHERE r <= 2', false);
-- The first outer rows by a key are all that is needed.
INSERT INTO cases VALUES ('SELECT a.id, s.id FROM points a CROSS JOIN LATERAL (SELECT b.id FROM few b ORDER BY a.v <-> b.v LIMIT 3) s ORDER BY a.id, s.id LIMIT 20', false);
-- A guess is no reason for a loop that ends with the first matches: a sample in which no pair is near, a table without
-- statistics, an expression. None of these queries finds its first rows early.
SELECT setseed(0.5);
CREATE TABLE vectors AS SELECT i AS id, v, v::text AS t FROM generate_series(1, 3000) i,
  LATERAL (SELECT array_agg(random()) AS v FROM generate_series(1, 8) k WHERE i > 0) r;
CREATE TABLE fresh AS SELECT i AS id, random() * 100 AS x, random() * 100 - 50 AS y FROM generate_series(1, 10000) i;
ALTER TABLE vectors ADD PRIMARY KEY (id), ALTER v SET STATISTICS 10;
ALTER TABLE fresh ADD PRIMARY KEY (id);
ANALYZE vectors;
INSERT INTO cases SELECT query || ending, true FROM (VALUES
  ('SELECT a.id, b.id FROM vectors a JOIN vectors b ON a.v <-> b.v <= 0.001 AND a.id < b.id'),
  ('SELECT a.id, b.id FROM vectors a JOIN vectors b ON gpu_vector(a.t) <-> gpu_vector(b.t) <= 0.001 AND a.id < b.id'),
  ('SELECT a.id, b.id FROM fresh a JOIN fresh b ON point(a.x, a.y) <-> point(b.x, b.y) < 0.0001 AND a.id < b.id')) q(query),
  unnest('{" LIMIT 1"," ORDER BY a.id LIMIT 10"}'::text[]) ending;
-- In many dimensions all pairs are compared: a merge join that compares few of them is faster, a loop over values out of
-- line never.
CREATE TABLE long AS SELECT i AS id, 'n' || i AS name, i % 100 AS kind, v FROM generate_series(1, 3000) i,
  LATERAL (SELECT array_agg(random()::float4) AS v FROM generate_series(1, 128) k WHERE i > 0) r;
CREATE TABLE longer AS SELECT i AS id, v FROM generate_series(1, 100) i,
  LATERAL (SELECT array_agg(random()) AS v FROM generate_series(1, 1000) k WHERE i > 0) r;
ANALYZE long, longer;
INSERT INTO cases VALUES
  ('SELECT a.id, b.id FROM long a JOIN long b ON lower(a.name) = lower(b.name) AND a.v <-> b.v <= 3', false),
  ('SELECT a.id, b.id FROM long a JOIN long b ON a.kind = b.kind AND a.v <-> b.v <= 3', true),
  ('SELECT a.id, b.id FROM long a JOIN long b ON a.v <-> b.v <= 3', true),
  ('SELECT a.id, b.id FROM longer a JOIN longer b ON a.v <-> b.v <= 3', true);
SELECT is(has_node(query), node, query || CASE WHEN node THEN ': by the node' ELSE ': not by the node' END) FROM cases;

-- Rows are estimated within a factor of ten, with statistics and, for points, without.
CREATE FUNCTION estimated(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END $$;
CREATE FUNCTION counted(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE rows float8;
BEGIN
  EXECUTE 'SELECT count(*) FROM (' || query || ') q' INTO rows;
  RETURN rows;
END $$;
SELECT cmp_ok(abs(log((estimated('SELECT * FROM points a JOIN points b ON ' || clause) / actual)::numeric)), '<', 1.0,
  clause || ': a fair estimate of ' || actual)
FROM (VALUES ('a.v <-> b.v <= 20'), ('a.v <-> b.v <= 200'), ('gpu_within(a.v, b.v, 100)'), ('a.p <-> b.p <= 100'),
  ('gpu_within(a.p, b.p, 100)'), ('a.b && b.b')) t(clause),
  LATERAL counted('SELECT FROM points a JOIN points b ON ' || clause) actual;

-- So are self-joins of columns of coordinates, whatever the radius and the spelling: bounds of a histogram are a
-- hundredth of the rows apart. Each row meets itself, unless a condition forbids it.
CREATE TABLE coordinates AS SELECT i AS id, random() * 100 AS x, random() * 100 - 50 AS y, (random() * 100)::int AS n FROM generate_series(1, 10000) i;
ANALYZE coordinates;
SELECT cmp_ok(abs(log((estimated(query) / actual)::numeric)), '<', 0.5, query || format(': %s estimated, %s found', estimated(query), actual))
FROM (VALUES ('point(a.x, a.y) <-> point(b.x, b.y)'), ('ARRAY[a.x, a.y] <-> ARRAY[b.x, b.y]'), ('sqrt((a.x - b.x) ^ 2 + (a.y - b.y) ^ 2)'),
    ('gpu_distance(ARRAY[a.x, a.y], ARRAY[b.x, b.y], ''haversine'')')) d(distance),
  unnest('{0.1,2}'::float8[]) degrees, LATERAL (SELECT degrees * CASE WHEN distance ~ 'haversine' THEN 111195 ELSE 1 END AS eps) e, unnest('{""," AND a.id < b.id"," AND a.id <> b.id"}'::text[]) more,
  format('SELECT a.id, b.id FROM coordinates a JOIN coordinates b ON %s <= %s%s', distance, eps, more) query, counted(query) actual;
SELECT cmp_ok(abs(log((estimated(query) / actual)::numeric)), '<', 0.5, query || format(': %s estimated, %s found', estimated(query), actual))
FROM unnest('{a.x - b.x) <= 0.1,a.x - b.x) <= 1,a.n - b.n) <= 0,a.n - b.n) <= 3}'::text[]) band,
  format('SELECT a.id, b.id FROM coordinates a JOIN coordinates b ON abs(%s AND abs(a.y - b.y) <= 0.5 AND a.id <> b.id', band) query, counted(query) actual;
-- What is joined to their pairs is no loop.
CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; lines text = '';
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP lines := lines || line || E'\n'; END LOOP;
  RETURN lines;
END $$;
SELECT unalike(plan_of('SELECT count(*) FROM coordinates a JOIN coordinates b ON point(a.x, a.y) <-> point(b.x, b.y) < 0.5 AND a.id < b.id
    JOIN fresh c ON point(b.x, b.y) <-> point(c.x, c.y) < 0.5'), '%Nested Loop%', 'a third table is joined to pairs by the node');

-- The engine takes the more selective one of two similarity conditions, in whatever order they are written.
CREATE TABLE pairs_of_conditions (few text, many text);
INSERT INTO pairs_of_conditions VALUES ('a.v <-> b.v <= 5', 'a.p <-> b.p <= 200'), ('a.p <-> b.p <= 5', 'a.v <-> b.v <= 200'),
  ('a.p <-> b.p <= 1', 'a.b && b.b'), ('a.b && b.b', 'a.v <-> b.v <= 300'), ('ARRAY[a.p[0], a.p[1]] <-> ARRAY[b.p[0], b.p[1]] <= 0', 'a.v <-> b.v <= 200');
SELECT bool_or(name = 'cube') AS has_cube FROM pg_available_extensions \gset
\if :has_cube
CREATE EXTENSION IF NOT EXISTS cube;
ALTER TABLE points ADD x float8, ADD y float8, ADD t float8, ADD c cube;
UPDATE points SET x = v[1], y = v[2], t = id * 53 % 977, c = cube(ARRAY[v[1], v[2], id * 53 % 977]);
ANALYZE points;
INSERT INTO pairs_of_conditions VALUES ('a.c <=> b.c <= 9', 'a.v <-> b.v <= 9'),
  ('cube(ARRAY[a.x, a.y, a.t]) <=> cube(ARRAY[b.x, b.y, b.t]) <= 9', 'ARRAY[a.x, a.y] <-> ARRAY[b.x, b.y] <= 9'),
  ('cube(ARRAY[a.x, a.y, a.t / 6]) <=> cube(ARRAY[b.x, b.y, b.t / 6]) <= 9', 'ARRAY[a.x, a.y] <-> ARRAY[b.x, b.y] <= 9'),
  ('ARRAY[a.x, a.y] <-> ARRAY[b.x, b.y] <= 2', 'cube(ARRAY[a.x, a.y, a.t]) <=> cube(ARRAY[b.x, b.y, b.t]) <= 200');
-- A cube of a NULL is an error, and its row would meet all others.
CREATE TABLE with_nulls AS SELECT id, CASE WHEN id % 20 > 0 THEN x END AS x, y, t FROM points;
ANALYZE with_nulls;
SELECT matches(property('Join Cond', 'SELECT count(*) FROM with_nulls a JOIN points b ON ARRAY[a.x, a.y] <-> ARRAY[b.x, b.y] <= 9
    AND cube(ARRAY[a.x, a.y, a.t]) <=> cube(ARRAY[b.x, b.y, b.t]) <= 9' || filter), engine, 'cubes of NULLs' || filter)
FROM (VALUES ('', 'ARRAY.* <-> '), (' WHERE a.x IS NOT NULL', ' <=> ')) t(filter, engine);
\endif
CREATE FUNCTION squeezed(clause text) RETURNS text LANGUAGE sql AS $$ SELECT regexp_replace(clause, '[() '']|::doubleprecision', '', 'g') $$;
SELECT is(ARRAY[squeezed(squeezed(property('Join Cond', query))), squeezed(squeezed(property('Join Filter', query)))],
  ARRAY[squeezed(few), squeezed(many)], query)
FROM pairs_of_conditions, format('SELECT count(*) FROM points a JOIN points b ON %s AND %s', few, many) one,
  format('SELECT count(*) FROM points a JOIN points b ON %s AND %s', many, few) other, unnest(ARRAY[one, other]) query;

-- A few boxes are looked up in an index; many are joined, and so are those of a filter that may leave many.
CREATE TABLE areas AS SELECT i AS id, i % 100 AS kind, box(point(i * 7919 % 10007, i * 104729 % 9973), point(i * 7919 % 10007 + 30, i * 104729 % 9973 + 30)) AS b
  FROM generate_series(1, 30000::bigint) i;
CREATE INDEX ON areas USING gist (b);
ANALYZE areas;
SET gpujoin.enable_customscan = on;
SELECT matches(plan_of(format('SELECT a.id, b.id FROM areas a %s areas b ON a.b && b.b WHERE %s', kind, filter)), plan, format('%s where %s', kind, filter))
FROM unnest('{JOIN,LEFT JOIN}'::text[]) kind,
  (VALUES ('a.id <= 20', 'Index Scan'), ('a.kind = 1 AND a.id <= 9000', 'Index Scan'), ('a.id <= 9000', 'GpuSimilarityJoin'),
    ('a.id % 2 = a.kind % 2', 'GpuSimilarityJoin')) t(filter, plan);
SELECT matches(plan_of('SELECT a.id, b.id FROM areas a JOIN areas b ON a.b && b.b WHERE b.id <= 20 LIMIT 1000'), 'Index Scan', 'from the other side');

SELECT * FROM finish();
ROLLBACK;
