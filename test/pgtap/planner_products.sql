-- Inner products of pgvector's types, `<#>`: conditions and nearest rows, with the node GpuSimilarityJoin and without it the same
-- rows, whatever the norms, at the limits, for zero vectors, vectors that leave single precision, NULLs and ties.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA planner_products;
SET search_path = planner_products, public;
SET jit = off;
SET extra_float_digits = 1;
SET client_min_messages = warning;

\ir same_rows.psql

SELECT count(*) > 0 AS has_vector FROM pg_available_extension_versions
WHERE name = 'vector' AND string_to_array(version, '.')::int[] >= '{0,7}' \gset
\if :has_vector
CREATE EXTENSION IF NOT EXISTS vector;

CREATE FUNCTION few(i int, n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT (i::bigint * 7919 % 1009 % n)::int';
-- On a lattice, so that many inner products are equal; rows of the right side are up to 64 times as long.
CREATE TABLE a AS SELECT i AS id, i % 7 AS grp,
  CASE WHEN i % 17 <> 0 THEN ARRAY[few(i, 9) - 4, few(i, 7) - 3, few(i, 5) - 2, i % 3 - 1]::float4[] END AS f
  FROM generate_series(1, 150) i;
CREATE TABLE b AS SELECT id, grp, CASE WHEN id % 13 <> 0 AND f IS NOT NULL THEN ARRAY[f[2], f[1], f[4], f[3]] END AS f FROM a WHERE id % 3 <> 0;
UPDATE b SET f = (SELECT array_agg(x * 2 ^ (id % 7) ORDER BY n) FROM unnest(f) WITH ORDINALITY u(x, n)) WHERE id % 4 = 0;
-- Of one norm, as embeddings are, and near each other's.
CREATE TABLE units AS SELECT id, grp, (SELECT array_agg(x / sqrt(s) ORDER BY n) FROM unnest(f) WITH ORDINALITY u(x, n),
  (SELECT sum(y * y) AS s FROM unnest(f) y) w)::float4[] AS f FROM a WHERE f IS NOT NULL AND f <> '{0,0,0,0}';
-- Vectors without a length, without one in single precision, and beyond it.
CREATE TABLE odd AS SELECT id, grp, CASE id % 11 WHEN 1 THEN '{0,0,0,0}' WHEN 2 THEN '{1e-23,0,0,1e-23}' WHEN 3 THEN '{1e19,1e19,-1e19,0}'
  WHEN 4 THEN '{3e38,-3e38,3e38,1}' WHEN 5 THEN '{-3e38,3e38,1,0}' WHEN 6 THEN '{1e-45,0,0,0}' WHEN 7 THEN '{1e-14,1e-15,1,0}' ELSE f END::float4[] AS f
  FROM a WHERE id < 70;
CREATE TABLE zeros AS SELECT id, grp, '{0,0,0,0}'::float4[] AS f FROM a WHERE id < 9;
CREATE TABLE hollow AS SELECT * FROM a LIMIT 0;
CREATE FUNCTION add_types(t text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s ADD PRIMARY KEY (id), ADD v vector, ADD h halfvec, ADD s sparsevec(4)', t);
  EXECUTE format('UPDATE %s SET v = f::vector, s = f::vector::sparsevec,
    h = CASE WHEN (SELECT bool_and(abs(x) < 65504) FROM unnest(f) x) THEN f::halfvec END', t);
  EXECUTE format('ANALYZE %s', t);
END $$;
SELECT count(add_types(t)) FROM unnest('{a,b,units,odd,zeros,hollow}'::text[]) t \gset
CREATE TABLE types AS SELECT unnest('{v,h,s}'::text[]) AS c;
CREATE TABLE sides (l text, r text);
INSERT INTO sides VALUES ('a', 'b'), ('b', 'a'), ('units', 'units'), ('units', 'b'), ('odd', 'a'), ('a', 'odd'), ('odd', 'odd'), ('zeros', 'a'),
  ('a', 'zeros'), ('zeros', 'zeros'), ('a', 'hollow'), ('hollow', 'a');

-- Conditions, at products that there are, between them, and beyond all.
SELECT same_rows(format('SELECT l.id, r.id FROM %s l JOIN %s r ON l.%s <#> r.%3$s %s %L', l, r, c, operator, most), true,
  format('%s of %s and %s %s %s', c, l, r, operator, most))
FROM sides, types, (VALUES ('<=', '-6'), ('<', '-6'), ('<=', '-0.8'), ('<', '0'), ('<=', '0'), ('<=', '7.5'), ('<=', '-1e30')) m(operator, most);
SELECT same_rows(format('SELECT l.id, r.id FROM %s l JOIN %s r ON l.%s <#> r.%3$s %s %L', l, r, c, operator, most), true,
  format('%s of %s and %s %s %s', c, l, r, operator, most))
FROM sides, types, unnest('{<=,<}'::text[]) operator, unnest('{NaN,Infinity,-Infinity,1e300,-1e300,1e-300}'::text[]) most
WHERE l IN ('odd', 'zeros') AND r IN ('odd', 'zeros', 'a');
SELECT same_rows(format('SELECT l.id, r.id FROM units l JOIN units r ON l.%s <#> r.%1$s %s %L', c, operator, most), true,
  format('%s of units, just %s', c, most))
FROM types, unnest('{<=,<}'::text[]) operator, (SELECT DISTINCT l.v <#> r.v AS most FROM units l, units r WHERE l.id % 40 = 1 AND r.id % 40 = 2) d;

-- Blocks of a table that is joined with itself are read once, but its two sides become points in different ways.
SET min_parallel_table_scan_size = 0;
SELECT same_rows(format('SELECT l.id, r.id FROM a l JOIN a r ON l.%s <#> r.%1$s <= -6', c), true, format('%s of one table', c)) FROM types;
RESET min_parallel_table_scan_size;

-- The same in other words, and in other joins.
SELECT same_rows(replace(query, '.w', '.' || c), uses_node, query) FROM types, (VALUES
  ('SELECT l.id, r.id FROM a l JOIN b r ON -(l.w <#> r.w) >= 7', true),
  ('SELECT l.id, r.id FROM a l JOIN b r ON 7 < -(r.w <#> l.w)', true),
  ('SELECT l.id, r.id FROM a l JOIN b r ON (l.w <#> r.w) * -1 >= 7', true),
  ('SELECT l.id, r.id FROM a l JOIN b r ON 1 + (l.w <#> r.w) < -6', true),
  ('SELECT l.id, r.id FROM a l JOIN b r ON CASE WHEN l.w <#> r.w <= -7 THEN l.grp > 1 END', true),
  ('SELECT l.id, r.id FROM a l JOIN b r ON inner_product(l.w, r.w) >= 7', true),
  ('SELECT l.id, r.id FROM a l JOIN b r ON 7::real < inner_product(l.w, r.w)', true),
  ('SELECT l.id, r.id FROM odd l JOIN odd r ON inner_product(l.w, r.w) >= ''NaN''', true),
  ('SELECT l.id, r.id FROM odd l JOIN odd r ON -(l.w <#> r.w) > ''-Infinity''', true),
  ('SELECT l.id, r.id FROM a l JOIN b r ON -7 >= l.w <#> r.w AND l.grp = r.grp', true),
  ('SELECT l.id, r.id FROM a l LEFT JOIN b r ON l.w <#> r.w <= -9 AND l.id < r.id', true),
  ('SELECT l.id FROM a l WHERE EXISTS (SELECT FROM b r WHERE l.w <#> r.w < -60)', true),
  ('SELECT l.id FROM a l WHERE NOT EXISTS (SELECT FROM b r WHERE l.w <#> r.w < -60)', true),
  ('SELECT count(*) FROM a l JOIN b r ON l.w <#> r.w < -9', true),
  ('SELECT l.id, count(*), max(r.id) FROM a l JOIN b r ON l.w <#> r.w < -9 GROUP BY l.id', true),
  ('SELECT l.id, r.id FROM a l JOIN b r ON l.w <#> r.w <= -9 OR l.w <#> r.w <= -5', true),
  ('SELECT l.id, r.id, l.w <#> r.w FROM a l JOIN b r ON l.w <#> r.w <= -40 AND l.w <-> r.w < 70', NULL),
  ('SELECT l.id, r.id FROM units l JOIN units r ON l.w <#> r.w <= -0.9 AND l.id < r.id', true),
  ('SELECT l.id, r.id FROM units l JOIN units r ON l.w <#> r.w <= (SELECT -0.9)', true),
  -- Further from 0 is nearer, so these are others.
  ('SELECT l.id, r.id FROM a l JOIN b r ON l.w <#> r.w >= -2', false),
  ('SELECT l.id, r.id FROM a l JOIN b r ON inner_product(l.w, r.w) <= 2', false),
  ('SELECT l.id, r.id FROM a l JOIN b r ON l.w <#> r.w <= -r.grp', false),
  ('SELECT l.id, r.id FROM a l JOIN b r ON -(l.w <-> r.w) >= -2', true)) t(query, uses_node);

-- Nearest rows: the largest inner products.
SELECT same_rows(replace(replace(replace(query, 'left', l), 'right', r), '.w', '.' || c), true, format('%s of %s and %s: %s', c, l, r, query))
FROM sides, types, (VALUES
  ('SELECT l.id, s.* FROM left l CROSS JOIN LATERAL (SELECT r.id, l.w <#> r.w AS d FROM right r ORDER BY l.w <#> r.w, r.id LIMIT 4) s'),
  ('SELECT l.id, s.* FROM left l LEFT JOIN LATERAL (SELECT r.id, r.w <#> l.w AS d FROM right r WHERE l.w <#> r.w < -0.9 ORDER BY r.w <#> l.w, r.id DESC LIMIT 3) s ON true'),
  ('SELECT l.id, s.* FROM left l CROSS JOIN LATERAL (SELECT r.id, r.grp FROM right r WHERE r.grp <> l.grp ORDER BY l.w <#> r.w, id LIMIT 7) s WHERE s.grp > 1'))
  q(query);
SELECT same_rows(replace(query, '.w', '.' || c), uses_node, query) FROM types, (VALUES
  ('SELECT l.id, s.id, inner_product(l.w, s.w) FROM a l CROSS JOIN LATERAL (SELECT * FROM b r ORDER BY l.w <#> r.w, r.id LIMIT 1) s', true),
  ('SELECT l.id, s.id, l.w <#> s.w FROM a l CROSS JOIN LATERAL (SELECT * FROM b r WHERE inner_product(l.w, r.w) >= 20 ORDER BY l.w <#> r.w, r.id LIMIT 200) s', true),
  ('SELECT l.id, s.id FROM a l CROSS JOIN LATERAL (SELECT r.id FROM b r WHERE -(l.w <#> r.w) > 1e300 ORDER BY l.w <#> r.w, r.id LIMIT 2) s', true),
  ('SELECT l.id, s.id FROM a l CROSS JOIN LATERAL (SELECT r.id FROM b r WHERE l.w <#> r.w <= ''Infinity'' ORDER BY l.w <#> r.w, r.id LIMIT 2) s', true),
  -- A row that the condition refuses may be nearer than others that it does not.
  ('SELECT l.id, s.id FROM a l CROSS JOIN LATERAL (SELECT r.id FROM b r WHERE CASE r.grp WHEN 1 THEN l.w <#> r.w < 1 WHEN 2 THEN false ELSE l.w <#> r.w < -30 END
    ORDER BY l.w <#> r.w, r.id LIMIT 5) s', true),
  ('SELECT l.id, s.id FROM a l CROSS JOIN LATERAL (SELECT r.id FROM b r WHERE (r.grp = 1 AND l.w <#> r.w < 1) OR l.w <#> r.w < -30 ORDER BY l.w <#> r.w, r.id LIMIT 5) s', true),
  ('SELECT l.id, s.id FROM a l CROSS JOIN LATERAL (SELECT r.id FROM b r WHERE l.w <#> r.w < 5 - 9 * r.grp ORDER BY l.w <#> r.w, r.id LIMIT 5) s', NULL),
  ('SELECT * FROM (SELECT l.id, r.id AS other, row_number() OVER (PARTITION BY l.id ORDER BY l.w <#> r.w, r.id) AS n FROM a l JOIN b r ON true) s WHERE n <= 3', true),
  ('SELECT l.id, s.id FROM a l CROSS JOIN LATERAL (SELECT r.id FROM b r ORDER BY l.w <#> r.w DESC, r.id LIMIT 2) s', false)) t(query, uses_node);

-- The engine decides, and pgvector the pairs at the limit alone.
SELECT is(property('Evaluated Pairs', 'SELECT count(*) FROM a l JOIN b r ON l.v <#> r.v <= -7.5'), '0', 'between products no pair is evaluated');
SELECT cmp_ok(property('Pairs', 'SELECT count(*) FROM units l JOIN units r ON l.v <#> r.v <= -0.9')::bigint, '<',
  (SELECT count(*) + 200 FROM units l, units r WHERE l.v <#> r.v <= -0.9), 'the engine finds little more');
SELECT cmp_ok(property('Evaluated Pairs', 'SELECT l.id, s.id FROM a l CROSS JOIN LATERAL (SELECT r.id FROM b r WHERE l.v <#> r.v <= -100
  ORDER BY l.v <#> r.v LIMIT 9) s')::bigint, '<', (SELECT count(*) / 4 FROM a, b), 'a limit ends the search');

-- In parts that lie in a file.
CREATE TABLE many AS SELECT i AS id, ARRAY[few(i, 23) - 11, few(i, 19) - 9, few(i, 5), few(i, 101) / 7.0]::vector AS v FROM generate_series(1, 6000) i;
ANALYZE many;
CREATE TABLE of_many AS SELECT * FROM (VALUES ('SELECT l.id, r.id FROM many l JOIN many r ON l.v <#> r.v <= -320 AND l.id % 50 = 1'),
  ('SELECT l.id, s.id FROM (SELECT * FROM many WHERE id % 50 = 1) l CROSS JOIN LATERAL (SELECT r.id FROM many r ORDER BY l.v <#> r.v, r.id LIMIT 2) s')) t(query);
SELECT is(under_limit(query, '64kB'), bag(query), 'points in a file: ' || query) FROM of_many;

-- Vectors of different lengths are pgvector's error, and too long ones its own loop.
CREATE TABLE mixed AS SELECT id, v FROM a UNION ALL SELECT 1000, '[1,2]';
SELECT same_rows('SELECT l.id, r.id FROM mixed l JOIN b r ON l.v <#> r.v <= -7', true, 'two dimensions among four');
SELECT same_rows('SELECT l.id, s.id FROM mixed l CROSS JOIN LATERAL (SELECT r.id FROM b r ORDER BY l.v <#> r.v, r.id LIMIT 2) s', true,
  'nearest to two dimensions among four');
-- Sparse vectors of many dimensions, or of any number, are for pgvector alone.
CREATE TABLE long AS SELECT i AS id, format('{%s:%s,%s:2}/1000', i, i % 5 + 1, 500 + i % 3)::sparsevec(1000) AS s,
  format('{%s:%s,%s:2}/1001', i, i % 5 + 1, 500 + i % 3)::sparsevec(1001) AS t, format('{%s:%s,%s:2}/20000', i, i % 5 + 1, 5000 + i % 3)::sparsevec AS u
  FROM generate_series(1, 60) i;
SELECT same_rows(format('SELECT l.id, r.id FROM long l JOIN long r ON l.%s %s r.%1$s <= %3$s', c, operator, most), c = 's',
  format('%s of long sparse vectors %s', operator, c))
FROM unnest('{s,t,u}'::text[]) c, (VALUES ('<#>', -7), ('<->', 2), ('<=>', 0.4), ('<+>', 3)) o(operator, most);
SELECT same_rows(format('SELECT l.id, n.id FROM long l CROSS JOIN LATERAL (SELECT r.id FROM long r ORDER BY l.%s %s r.%1$s, r.id LIMIT 3) n', c, operator), c = 's',
  format('nearest by %s of long sparse vectors %s', operator, c))
FROM unnest('{s,t,u}'::text[]) c, unnest('{<#>,<->,<=>,<+>}'::text[]) operator;
SELECT same_rows('SELECT l.id, r.id FROM long l JOIN long r ON l.s::sparsevec(1000) <-> r.s <= 2', true, 'sparse vectors that are declared where they are compared');

-- Sparse vectors by their other distances, and by functions.
SELECT same_rows(format('SELECT l.id, r.id FROM %s l JOIN %s r ON l.s %s r.s <= %s', l, r, operator, most), true,
  format('%s of sparse %s and %s within %s', operator, l, r, most))
FROM sides, (VALUES ('<->', 3), ('<->', 0), ('<+>', 4), ('<=>', 0.1)) o(operator, most);
SELECT same_rows(format('SELECT l.id, q.* FROM %s l CROSS JOIN LATERAL (SELECT r.id, l.s %s r.s AS d FROM %s r ORDER BY l.s %2$s r.s, r.id LIMIT 3) q', l, operator, r),
  true, format('nearest by %s of sparse %s and %s', operator, l, r))
FROM sides, unnest('{<->,<+>,<=>}'::text[]) operator;
SELECT bag_eq(format('SELECT * FROM gpu_join_distance(''a'', ''b'', %s, left_vector_columns => ''{s}'', right_vector_columns => ''{s}'', metric => %L)', eps, metric),
  format('SELECT * FROM gpu_join_distance(''a'', ''b'', %s, left_vector_columns => ''{f}'', right_vector_columns => ''{f}'', metric => %L)', eps, metric),
  format('a function over sparse vectors, %s', metric))
FROM (VALUES ('l2', 2.5), ('l1', 3.5), ('linf', 1), ('cosine', 0.0123)) m(metric, eps);
SELECT bag_eq('SELECT * FROM gpu_neighbors(''units'', 0.3, vector_columns => ''{s}'')', 'SELECT * FROM gpu_neighbors(''units'', 0.3, vector_columns => ''{f}'')',
  'neighbours of sparse vectors');
SELECT bag_eq('SELECT id1::int, id2::int FROM gpu_selfjoin(''long'', 2, vector_columns => ''{t}'', id_column => ''id'')', 'SELECT l.id AS id1, r.id AS id2 FROM long l, long r WHERE l.t <-> r.t <= 2',
  'a function takes more dimensions than the planner does');
SELECT throws_like('SELECT * FROM gpu_selfjoin(''long'', 1, vector_columns => ''{u}'', id_column => ''id'')', '%20000 dimensions%', 'a function refuses more dimensions than it can');
\else
SELECT skip('no pgvector', 1);
\endif
SELECT * FROM finish();
ROLLBACK;
