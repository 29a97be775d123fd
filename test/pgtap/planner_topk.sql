-- ORDER BY score LIMIT k over a join in plain SQL: with the node GpuSimilarityJoin and without it the same rows,
-- whatever the score, its types, further keys, other conditions, ties, NULLs and infinities. The seed is fixed.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA planner_topk;
SET search_path = planner_topk, public;
SET jit = off;
SET extra_float_digits = 1;

\ir same_rows.psql

-- Scores of every type, some with many ties, some odd; few(n) has no more than n values.
CREATE FUNCTION few(i int, n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT (i::bigint * 7919 % 1009 % n)::int';
CREATE TABLE a AS
  SELECT i AS id, i % 7 AS grp, CASE WHEN i % 17 <> 0 THEN ARRAY[few(i, 23) / 2.0, few(i, 19)]::float8[] END AS v,
    ARRAY[few(i, 23) / 2.0, few(i, 19)]::float4[] AS f, point(few(i, 23) / 2.0, few(i, 19)) AS p,
    few(i, 100) / 7.0::float8 AS f8, (few(i, 50) / 3.0)::float4 AS f4, few(i, 9) - 4 AS i4, few(i, 30)::int2 AS i2,
    few(i, 1000) * 9007199254740::int8 AS i8, few(i, 500) / 10.0 - 25 AS n, (few(i, 90) - 45)::float8 AS w,
    CASE WHEN few(i, 31) <> 3 THEN few(i, 40)::float8 END AS sometimes, 1::float8 AS one,
    few(i, 1000) * 1e297::float8 AS huge, (few(i, 60) - 30) * 1e-300::float8 AS tiny, few(i, 200)::numeric / 3 + 1e-30 AS long,
    100 * few(i, 300)::int2 AS wide, few(i, 1000) * 1e35::float4 AS huge4
  FROM generate_series(1, 150) i;
CREATE TABLE b AS SELECT * FROM a WHERE id % 3 <> 0;
UPDATE b SET f8 = f8 / 3, n = n * 1.1, i4 = -i4;
CREATE TABLE hollow AS SELECT * FROM a LIMIT 0;
CREATE TABLE odd AS SELECT id, v, CASE id % 50 WHEN 3 THEN 'NaN' WHEN 7 THEN 'Infinity' WHEN 11 THEN '-Infinity' ELSE f8 END AS f8,
  CASE id % 50 WHEN 5 THEN 'NaN' ELSE n END AS n FROM a;
CREATE TABLE parts (LIKE a) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (50);
CREATE TABLE parts_high PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT * FROM a;
ANALYZE a, b, odd, parts;
CREATE TABLE clauses (clause text);
INSERT INTO clauses VALUES ('gpu_within(l.v, r.v, 3)'), ('r.v <-> l.v < 2'), ('l.f <-> r.f <= 2.5'), ('l.p <-> r.p <= 3'),
  ('gpu_within(l.p, r.p, 4)'), ('gpu_within(l.v, r.v, 100)'), ('gpu_within(l.v, r.v, 0)'), ('l.p <-> r.p < 50');
SELECT bool_or(name = 'cube') AS has_cube, bool_or(name = 'postgis') AS has_postgis
FROM pg_available_extensions \gset
\if :has_cube
CREATE EXTENSION IF NOT EXISTS cube;
INSERT INTO clauses VALUES ('cube(l.v) <-> cube(r.v) <= 3'), ('cube(l.v) <#> cube(r.v) <= 3'),
  ('cube(l.v, l.v) <-> cube(r.v, ARRAY[r.grp, r.f8]) <= 1');
\endif
\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
INSERT INTO clauses VALUES ('ST_DWithin(l.p::geometry, r.p::geometry, 2)'),
  ('ST_DWithin(ST_Buffer(l.p::geometry, 1), r.p::geometry, 2)');
\endif

-- Which orders are the node's.
CREATE TABLE orders (score text, function text);
INSERT INTO orders VALUES
  ('l.f8 + r.f8', 'sum'), ('r.f8 + l.f8 DESC', 'sum'), ('l.f8 - r.f8', 'sum'), ('r.n - l.n DESC', 'sum'),
  ('l.f8 * r.f8', 'product'), ('least(l.f8, r.f8)', 'min'), ('greatest(r.i4, l.i2) DESC NULLS LAST', 'max'),
  ('0.3 * l.f8 + 0.7 * r.n', 'sum'), ('l.f8 / 4 + (r.f4 - 1) DESC, l.id, r.id DESC', 'sum'), ('-l.f8 + @ r.w', 'sum'),
  ('coalesce(l.sometimes, 0) + r.f8', 'sum'), ('CASE WHEN l.i4 > 0 THEN l.f8 ELSE 0 END * r.f4', 'product'),
  ('CASE l.i4 WHEN 1 THEN l.f8 ELSE 2 END + r.f8', 'sum'), ('CASE WHEN l.i4 IN (1, 2) THEN 3 ELSE l.n END + r.n', 'sum'),
  ('l.v[1] + r.v[2]', 'sum'), ('(ARRAY[l.f8, l.f4])[1] + r.f8', 'sum'), ('least(l.f8, l.i4) * r.f4', 'product'), ('l.i4::numeric + r.n', 'sum'),
  ('l.v[l.i4 + 5] + r.f8', NULL), ('(l.f8::int) + r.i4', NULL), ('l.n::numeric(4,1) + r.n', NULL), ('l.i4::text::float8 + r.f8', NULL),
  ('l.v <-> r.v', 'distance'), ('r.v <-> l.v, l.f8', 'distance'), ('l.i4 + r.i8 DESC', 'sum'), ('l.i2 * r.i4', 'product'),
  ('l.v <-> r.v DESC', NULL), ('l.f8', NULL), ('l.f8 + l.f4', NULL), ('l.f8 + r.f8 + l.f8', NULL), ('l.f8 / (r.f8 + 1)', NULL),
  ('l.f8 + random() * 0 + r.f8', NULL), ('ln(l.id) + r.f8', NULL), ('1 / l.id + r.f8', NULL), ('l.f8 / l.id + r.f8', NULL),
  ('l.i4 * 2 + r.i4', NULL), ('(l.f8 + r.f8)::text', NULL), ('l.id, l.f8 + r.f8', NULL), ('l.grp || r.grp::text', NULL),
  ('l.f8 + (SELECT 1) * r.f8', NULL), ('l.p <-> r.p', NULL), ('l.i4 & r.i4', NULL), ('greatest(l.f8, r.f8, 3)', NULL);
SELECT is(property('Score Function', format('SELECT l.id, r.id FROM a l JOIN b r ON gpu_within(l.v, r.v, 3) ORDER BY %s LIMIT 5',
  score)), function, 'ORDER BY ' || score || CASE WHEN function IS NULL THEN ': not the node''s' ELSE ': the node''s' END)
FROM orders;
CREATE TABLE limits (query text, k text);
INSERT INTO limits VALUES
  ('SELECT l.f8 + r.f8 FROM a l JOIN b r ON %s ORDER BY 1 LIMIT 5', '5'),
  ('SELECT l.f8 + r.f8 FROM a l JOIN b r ON %s ORDER BY 1 LIMIT 5 OFFSET 7', '12'),
  ('SELECT l.f8 + r.f8 FROM a l, b r WHERE %s AND l.grp = r.grp ORDER BY 1 DESC FETCH FIRST ROW ONLY', '1'),
  ('SELECT * FROM (SELECT l.f8 + r.f8 AS s FROM parts l JOIN b r ON %s ORDER BY s LIMIT 3) t', '3'),
  ('SELECT l.f8 + r.f8 FROM a l JOIN b r ON %s ORDER BY 1', NULL),
  ('SELECT l.f8 + r.f8 FROM a l JOIN b r ON %s ORDER BY 1 OFFSET 5', NULL),
  ('SELECT l.f8 + r.f8 FROM a l JOIN b r ON %s ORDER BY 1 LIMIT (SELECT 5)', NULL),
  ('SELECT l.f8 + r.f8 FROM a l JOIN b r ON %s ORDER BY 1 FETCH FIRST 5 ROWS WITH TIES', NULL),
  ('SELECT DISTINCT l.f8 + r.f8 FROM a l JOIN b r ON %s ORDER BY 1 LIMIT 5', NULL),
  ('SELECT l.f8 + r.f8, count(*) FROM a l JOIN b r ON %s GROUP BY l.f8 + r.f8 ORDER BY 1 LIMIT 5', NULL),
  ('SELECT l.f8 + r.f8, row_number() OVER () * 0 FROM a l JOIN b r ON %s ORDER BY 1 LIMIT 5', NULL),
  ('SELECT l.f8 + r.f8, generate_series(1, 2) FROM a l JOIN b r ON %s ORDER BY 1 LIMIT 5', NULL),
  ('SELECT l.f8 + r.f8 FROM a l LEFT JOIN b r ON %s ORDER BY 1 LIMIT 5', NULL),
  ('SELECT l.f8 + r.f8 FROM a l JOIN b r ON %s ORDER BY 1 LIMIT 200000', NULL);
SELECT is(property('K', q), k, 'K of ' || q) FROM limits, format(query, 'gpu_within(l.v, r.v, 3)') q;
SELECT same_rows(format(query, clause), NULL, query || ', ' || clause) FROM limits, clauses WHERE query NOT LIKE '%OVER ()%';

-- Random ones. Rows are compared only where the order decides between all of them.
CREATE FUNCTION pick(VARIADIC choices text[]) RETURNS text LANGUAGE sql VOLATILE AS
$$ SELECT choices[1 + floor(random() * cardinality(choices))::int] $$;
CREATE FUNCTION random_query() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  number text[] := '{f8,f8,f4,i4,i2,i8,n,w,one,tiny,long}';
  x text := 'l.' || pick(VARIADIC number);
  y text := 'r.' || pick(VARIADIC number);
  swapped text := x;
  score text;
  clause text;
  keys text;
  filter text := '';
BEGIN
  IF random() < 0.1 THEN
    x := pick('l.sometimes', 'l.huge', 'l.wide', 'l.huge4');
    y := pick('r.sometimes', 'r.huge', 'r.wide', 'r.huge4', 'r.f8');
  ELSIF random() < 0.2 THEN
    x := pick('0.3 * l.f8', 'l.f4 * 2', 'l.n / 7', '- l.w', 'coalesce(l.sometimes, 3)', 'l.f8 - l.w', 'l.n + l.f8');
  END IF;
  IF random() < 0.5 THEN
    swapped := x;
    x := y;
    y := swapped;
  END IF;
  score := format(pick('%s + %s', '%s + %s', '%s - %s', '%s * %s', 'least(%s, %s)', 'greatest(%s, %s)'), x, y);
  SELECT c.clause INTO clause FROM clauses c ORDER BY random() LIMIT 1;
  IF random() < 0.2 THEN
    score := CASE WHEN clause LIKE '%.v, r.v%' THEN 'l.v <-> r.v' WHEN clause LIKE '%.f <->%' THEN 'l.f <-> r.f'
      WHEN clause LIKE '%p <-> r.p%' OR clause LIKE '%(l.p, r.p%' THEN 'r.p <-> l.p' ELSE score END;
  END IF;
  WHILE random() < 0.4 LOOP
    filter := filter || ' AND ' || pick('l.id < r.id', 'l.id <> r.id', 'l.grp = r.grp', '(l.id * r.id) % 97 = 3',
      'l.grp + r.grp > 4', 'l.f8 > r.f8', 'l.v <-> r.v < 2.5', 'false');
  END LOOP;
  keys := pick('', ', l.id, r.id', ', l.id, r.id', ', r.id DESC, l.id', ', l.grp', ', l.f8 DESC');
  RETURN format('SELECT %s AS score%s FROM %s l JOIN %s r ON %s%s ORDER BY score%s%s LIMIT %s%s', score,
    replace(keys, ' DESC', ''), pick('a', 'a', 'b', 'parts', 'hollow'), pick('b', 'a', 'a', '(SELECT * FROM a WHERE id % 5 <> 0)'),
    clause, filter, pick('', ' DESC', ' DESC NULLS LAST', ' NULLS FIRST'), keys, pick('1', '10', '10', '100', '2000', '50000'),
    pick('', '', ' OFFSET 3'));
END $$;
SELECT setseed(0.7) \gset
CREATE TABLE queries AS SELECT n, random_query() AS query FROM generate_series(1, 400) n;
SELECT same_rows(query, NULL, format('random query %s', n)) FROM queries ORDER BY n;
SELECT force_node(true) \gset
CREATE FUNCTION is_topk(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  RETURN plan::text LIKE '%Top-k Join%';
EXCEPTION WHEN OTHERS THEN RETURN false;
END $$;
SELECT cmp_ok(count(*) FILTER (WHERE is_topk(query)), '>=', 200::bigint, 'most of them are top-k joins') FROM queries;
SELECT force_node(false) \gset
SELECT cmp_ok(count(*) FILTER (WHERE has_rows(query)), '>=', 200::bigint, 'and most find pairs') FROM queries;

-- What cannot be among the first is decided exactly: values that differ by less than float8 can tell.
CREATE TABLE fine AS SELECT i AS id, '{0,0}'::float8[] AS v, 1e20 + i % 10 AS n, 9007199254740992 + i % 10 AS i8,
  (16777216 + i % 10)::float4 AS f4 FROM generate_series(1, 300) i;
ANALYZE fine;
SELECT same_rows(format('SELECT l.id, r.id, l.%s + r.%1$s AS s FROM fine l JOIN fine r ON gpu_within(l.v, r.v, 1)
  ORDER BY s%s, l.id, r.id LIMIT 20', t, d), true, format('scores that are nearly the same, %s%s', t, d))
FROM unnest('{n,i8,f4}'::text[]) t, unnest(ARRAY['', ' DESC']) d;

-- NULL, NaN and what may overflow: all pairs are emitted, and PostgreSQL orders them or raises its error.
SELECT same_rows(query, NULL, query) FROM unnest(ARRAY[
  'SELECT l.f8 + r.f8 AS s FROM odd l JOIN a r ON gpu_within(l.v, r.v, 3) ORDER BY s DESC LIMIT 50',
  'SELECT l.f8 * r.f8 AS s FROM odd l JOIN odd r ON gpu_within(l.v, r.v, 3) ORDER BY s LIMIT 50',
  'SELECT l.n + r.n AS s FROM odd l JOIN odd r ON gpu_within(l.v, r.v, 3) ORDER BY s DESC LIMIT 50',
  'SELECT l.sometimes + r.sometimes AS s FROM a l JOIN a r ON gpu_within(l.v, r.v, 3) ORDER BY s DESC LIMIT 50',
  'SELECT l.huge * r.huge AS s FROM a l JOIN a r ON gpu_within(l.v, r.v, 3) ORDER BY s LIMIT 5',
  'SELECT l.wide * r.wide AS s FROM a l JOIN a r ON gpu_within(l.v, r.v, 3) ORDER BY s LIMIT 5',
  'SELECT l.tiny * r.tiny AS s FROM a l JOIN a r ON gpu_within(l.v, r.v, 3) ORDER BY s LIMIT 5']) query;
CREATE TABLE peaks AS SELECT id, v, 1::float8 AS high, 1::int2 AS short, 1::float8 AS low FROM a;
INSERT INTO peaks VALUES (0, '{1e9,0}', 1e200, 200, 1e-170);
ANALYZE peaks;
SELECT is(property('Top-k Fallback', format('SELECT l.id FROM odd l JOIN a r ON gpu_within(l.v, r.v, 3) ORDER BY %s LIMIT 5', score)),
  fallback, 'EXPLAIN: ' || score || ': ' || coalesce(fallback, 'no fallback'))
FROM (VALUES ('l.f8 + r.f8', 'a score is not finite'), ('l.n - r.n', 'a score is not finite'),
  ('l.id * r.sometimes', 'a score is NULL'), ('l.id * r.f8', NULL), ('l.id + r.f8', NULL)) s(score, fallback);

SELECT is(property('Top-k Fallback', format('SELECT l.id FROM peaks l JOIN peaks r ON gpu_within(l.v, r.v, 3) AND l.id <> r.id
    ORDER BY %s LIMIT 5', score)), fallback, 'EXPLAIN: ' || score || ': ' || coalesce(fallback, 'no fallback'))
FROM (VALUES ('l.high * r.high', 'a score may be out of range'), ('l.high + r.high', NULL), ('l.short * r.short', 'a score may be out of range'),
  ('l.short + r.short', NULL), ('l.low * r.low', 'a score may be out of range'), ('l.low + r.low', NULL)) s(score, fallback);
SELECT same_rows(format('SELECT l.id FROM peaks l JOIN peaks r ON gpu_within(l.v, r.v, 3) AND l.id <> r.id
  ORDER BY %s DESC, l.id LIMIT 5', score), true, 'nearly out of range: ' || score)
FROM unnest('{l.high * r.high,l.short * r.short,l.low * r.low}'::text[]) score;

-- A row without a partner has no score to anyone but the node: what might raise an error for it is not computed.
CREATE TABLE lonely AS SELECT i AS id, ARRAY[i % 13, i % 7]::float8[] AS v, i % 4 AS grp, i::float8 AS p, 2::float8 AS q, i::numeric AS n,
  i::float4 AS f FROM generate_series(1, 60) i;
CREATE TABLE social AS SELECT * FROM lonely WHERE id % 2 = 0;
INSERT INTO lonely VALUES (1000, '{1e6,0}', 0, 1e200, 1e200, 1, 3e38), (1001, '{2e6,0}', 0, 1, 1, '1e400', 1), (1002, '{3e6,0}', 0, 1e-200, 1e-200, 1, 1),
  (1003, '{4e6,0}', 0, 1, 1, '1e-400', 1), (1004, '{5e6,0}', 0, 'NaN', 'Infinity', 'NaN', '-Infinity'), (1005, '{6e6,0}', NULL, NULL, NULL, NULL, NULL),
  (1006, '{7e6,0}', 0, 1, 1, ('1.' || repeat('0', 400) || '1')::numeric, 1);
ANALYZE lonely, social;
SELECT same_rows(format('SELECT l.id, r.id AS other FROM %s l JOIN social r ON l.v <-> r.v <= 1%s ORDER BY %s, 1, 2 LIMIT 3', t, filter, score), true,
  t || ' rows: ' || score || filter)
FROM unnest('{lonely,social}'::text[]) t, unnest(ARRAY['', ' AND l.id < 1000', ' AND l.id + r.id < 0']) filter,
  unnest('{l.p * l.q + r.grp,l.n::float8 + r.grp,l.f * 10::real + r.f,l.n * 1e200 + r.n,l.n::float8 + r.n::float8,
    (l.n - 1)::float8 + r.p,(l.n * 3)::float8 - r.p,l.p / 1e-10 + r.p,l.p * l.p * l.p * l.q + r.q,-l.p - @ r.f,l.p - l.q + r.n,
    l.p + r.p * (SELECT 1 / min(0 * id) FROM social)}'::text[]) score;
SELECT is(property('Top-k Fallback', format('SELECT l.id FROM %s l JOIN social r ON l.v <-> r.v <= 1 ORDER BY %s LIMIT 3', t, score)), fallback,
  t || ' rows: ' || score || ': ' || coalesce(fallback, 'no fallback'))
FROM (VALUES ('social', 'l.p * l.q + r.grp', NULL), ('lonely', 'l.p * l.q + r.grp', 'a score is NULL'), ('social', 'l.n::float8 + r.grp', NULL),
  ('lonely', 'l.n::float8 + r.grp', 'a score is NULL'), ('social', '0.3 * l.n + 0.7 * r.p', NULL)) s(t, score, fallback);
SELECT is(property('Score Function', format('SELECT l.id FROM social l JOIN social r ON l.v <-> r.v <= 1 ORDER BY %s LIMIT 3', score)), NULL,
  score || ': not the node''s')
FROM unnest('{l.f * 10::real + r.f,(l.n - 1)::float8 + r.p,l.p * 1e30 + r.p,l.p * l.p * l.p * l.p * l.p * l.p * l.p * l.p * l.p + r.p}'::text[]) score;

-- Few pass the other conditions: more and more pairs are asked for.
SELECT cmp_ok(property('Top-k Pairs Asked', 'SELECT l.id FROM a l JOIN a r ON gpu_within(l.v, r.v, 9) AND (l.id * r.id) % 97 = 3
  ORDER BY l.f8 + r.f8 LIMIT 10')::int, '>', 74, 'several rounds');
SELECT is(property('Top-k Pairs Asked', 'SELECT l.id FROM a l JOIN a r ON gpu_within(l.v, r.v, 9) ORDER BY l.f8 + r.f8 LIMIT 10'),
  '10', 'and one, for as many as are wanted, where nothing else decides');
CREATE TABLE crowd AS SELECT i AS id, '{1}'::float8[] AS v, 1 AS s FROM generate_series(1, 1500) i;
ANALYZE crowd;
SELECT matches(property('Top-k Fallback', 'SELECT l.id FROM crowd l JOIN crowd r ON gpu_within(l.v, r.v, 1)
  ORDER BY l.s + r.s, l.id, r.id LIMIT 3'), 'too many pairs', 'a million ties are too many');
SELECT matches(property('Top-k Fallback', 'SELECT l.id FROM crowd l JOIN crowd r ON gpu_within(l.v, r.v, 1)
  ORDER BY l.s + r.s LIMIT 9000'), 'would not fit', 'so many do not fit in little memory')
FROM set_config('gpujoin.host_memory_limit', '2MB', true);
RESET gpujoin.host_memory_limit;
SELECT same_rows('SELECT l.id, r.id FROM crowd l JOIN crowd r ON gpu_within(l.v, r.v, 1)
  ORDER BY l.s + r.s, r.id, l.id DESC LIMIT 3', true, 'a million ties');
SELECT same_rows('SELECT l.id, r.id FROM crowd l JOIN crowd r ON gpu_within(l.v, r.v, 1) AND l.id <> r.id
  ORDER BY l.s + r.s, r.id, l.id DESC LIMIT 3', true, 'a million ties of a table with itself');

-- A table with itself: each pair is searched once, and self-pairs are emitted where they pass.
SELECT same_rows(format('SELECT l.id, r.id, %1$s AS s FROM %2$s l JOIN %2$s r ON %3$s AND %4$s ORDER BY s%5$s, l.id, r.id LIMIT %6$s',
  score, t, clause, filter, direction, k), true, format('%s with itself: %s%s, %s, %s, %s', t, score, direction, clause, filter, k))
FROM unnest('{a,odd}'::text[]) t, unnest(ARRAY['gpu_within(l.v, r.v, 3)', 'l.v <-> r.v < 1']) clause,
  unnest('{l.v <-> r.v,l.f8 + r.f8,l.f8 * r.f8,l.n - r.n,"least(l.id, r.id)"}'::text[]) score,
  unnest(ARRAY['l.id < r.id', 'l.id <> r.id', 'l.id <= r.id', 'l.id > r.id', 'l.id % 5 = 1']) filter,
  unnest(ARRAY['', ' DESC']) direction, unnest('{1,30,3000}'::int[]) k
WHERE NOT (score LIKE '%<->%' AND direction <> '');
SELECT cmp_ok(property('Top-k Pairs Asked', 'SELECT l.id FROM a l JOIN a r ON gpu_within(l.v, r.v, 9) AND l.id < r.id
  ORDER BY l.v <-> r.v LIMIT 10')::int, '=', 74, 'rows with themselves are not asked for');

-- Statements: prepared ones, cursors, correlated ones, functions, views, and rows that change in between.
PREPARE first(int, float8) AS
  SELECT l.id, r.id FROM a l JOIN b r ON gpu_within(l.v, r.v, $2) ORDER BY l.f8 + r.f8 DESC, l.id, r.id LIMIT $1;
SELECT same_rows(format('EXECUTE first(%s, %s)', k, eps), NULL, format('prepared: %s, %s', k, eps))
FROM unnest('{0,1,5,"NULL",1000}'::text[]) k, unnest('{0,3}'::text[]) eps, unnest('{1,2}'::int[]);
CREATE FUNCTION best(k int) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  c CURSOR FOR SELECT l.id, r.id AS other FROM a l JOIN b r ON gpu_within(l.v, r.v, 3) ORDER BY l.f8 * r.f8, 1, 2 LIMIT 20;
  line record;
BEGIN
  OPEN c;
  FOR i IN 1..k LOOP
    FETCH c INTO line;
    RETURN NEXT line::text;
  END LOOP;
  MOVE FORWARD 2 IN c;
  FETCH c INTO line;
  RETURN NEXT line::text;
  CLOSE c;
END $$;
SELECT same_rows('SELECT best(5)', NULL, 'a cursor');
SELECT same_rows($$ SELECT g, s.* FROM generate_series(0, 6) g, LATERAL (SELECT l.id, r.id AS other FROM a l JOIN b r
  ON gpu_within(l.v, r.v, 3) AND l.grp = g ORDER BY l.f8 + r.f8, 1, 2 LIMIT 3) s $$, NULL, 'LATERAL');
SELECT same_rows($$ SELECT g, s.* FROM generate_series(0, 6) g, LATERAL (SELECT l.id, r.id AS other FROM a l JOIN b r
  ON gpu_within(l.v, r.v, g) ORDER BY l.f8 + g * r.f8, 1, 2 LIMIT 3) s $$, NULL, 'LATERAL, radius and weight');
SELECT same_rows($$ SELECT g, (SELECT r.id FROM a l JOIN b r ON gpu_within(l.v, r.v, 3) AND l.id <> g
  ORDER BY l.f8 + r.f8 DESC, r.id LIMIT 1) FROM generate_series(1, 9) g $$, NULL, 'a correlated subquery');
SELECT same_rows($$ WITH t AS (SELECT l.id FROM a l JOIN b r ON gpu_within(l.v, r.v, 3) ORDER BY l.f8 + r.f8, l.id, r.id LIMIT 9)
  SELECT * FROM t UNION ALL (SELECT l.id FROM a l JOIN b r ON l.p <-> r.p < 2 ORDER BY l.n * r.n, l.id, r.id LIMIT 9) $$, true,
  'twice in one statement');
-- By cosine a vector may be a little away from itself, and a zero vector has no distance.
CREATE TABLE angles AS SELECT i AS id, ARRAY[sin(i), cos(i), i % 3]::float4[] AS v FROM generate_series(1, 60) i UNION ALL SELECT i, '{0,0,0}' FROM generate_series(61, 64) i;
ANALYZE angles;
SELECT same_rows(format('SELECT l.id + r.id, l.v <=> r.v FROM angles l JOIN angles r ON l.v <=> r.v <= %s AND l.v <=> r.v >= -1 ORDER BY %s, 1, 2 LIMIT 70', eps, score), true,
  format('cosine %s by %s', eps, score)) FROM unnest('{1e-160,1e-17,1e-16,0.001}'::text[]) eps, unnest('{l.v <=> r.v,l.id + r.id}'::text[]) score;
CREATE VIEW joined AS SELECT l.id, r.id AS other, l.f8 + r.f8 AS score FROM a l JOIN b r ON gpu_within(l.v, r.v, 3);
SELECT same_rows('SELECT * FROM joined ORDER BY score DESC, id, other LIMIT 10', true, 'a view');
SELECT same_rows('SELECT id, upper(id::text), score + 1 FROM joined ORDER BY score DESC, id, other LIMIT 10', true,
  'what is not ordered by');
SELECT same_rows('SELECT j.id, j.score FROM joined j JOIN a ON a.id = j.other ORDER BY j.score, 1, other LIMIT 10', NULL,
  'a join above');

SELECT * FROM finish();
ROLLBACK;
