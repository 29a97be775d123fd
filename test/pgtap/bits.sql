-- Joins of bits by Hamming distance, and by Jaccard distance: conditions as people write them, with the node and without it the same rows and
-- errors; functions on every type that bits come in, against the definition in SQL.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA bits;
SET search_path = bits, public;
SET jit = off;

\ir same_rows.psql

-- Hashes around a few others, some of them far; copies; NULLs.
CREATE TABLE hashes (id int PRIMARY KEY, grp int, h bit(64), v bit varying, i bigint, c int, b bytea, far bit(200));
INSERT INTO hashes
SELECT n, n % 5, h, h, h::bigint, h::bit(32)::int, decode(lpad(to_hex(h::bigint), 16, '0'), 'hex'), (h || h || h || B'10101010')::bit(200)
FROM (SELECT n, ('x' || left(md5((n % 40)::text), 16))::bit(64)
             # (1::bigint << (n * 7 % 64))::bit(64) # (1::bigint << (n * n % 64))::bit(64) # (1::bigint << (n * 13 % 61))::bit(64) AS h
      FROM generate_series(1, 400) n) one;
INSERT INTO hashes (id) VALUES (1001), (1002);
UPDATE hashes SET h = NULL, v = NULL, i = NULL, c = NULL, b = NULL, far = NULL WHERE id % 97 = 0;
CREATE TABLE others AS SELECT id + 5000 AS id, grp, h, v, i, c, b, far FROM hashes WHERE id % 3 = 0;
ANALYZE hashes, others;

-- ---- Plain SQL

CREATE TABLE cases (condition text);
INSERT INTO cases VALUES
  ('bit_count(a.h # b.h) <= 6'), ('bit_count(a.h # b.h) < 4'), ('6 >= bit_count(a.h # b.h)'), ('4 > bit_count(a.h # b.h)'),
  ('bit_count(a.h # b.h) <= 6::bigint'), ('bit_count(a.h # b.h) <= 5::smallint'), ('bit_count(a.h # b.h) BETWEEN 1 AND 6'),
  ('bit_count(a.v # b.v) <= 3'), ('bit_count(a.v # b.h) <= 3'), ('bit_count(a.far # b.far) <= 12'), ('bit_count(a.h # b.h) <= 0'),
  ('bit_count(a.h # b.h) < 0'), ('bit_count(a.h # b.h) <= -1'), ('bit_count(a.h # b.h) <= 64'), ('bit_count(a.h # b.h) <= 9223372036854775807'),
  ('bit_count((a.i # b.i)::bit(64)) <= 6'), ('bit_count((a.c # b.c)::bit(32)) <= 2'), ('bit_count(a.i::bit(64) # b.i::bit(64)) <= 6'),
  ('(bit_count(a.h # b.h) <= 2 OR bit_count(a.h # b.h) <= 4)'), ('bit_count(a.h # b.h) <= 6 AND a.grp = b.grp'),
  ('bit_count(a.h # b.h) <= 6 AND abs(a.id - b.id) <= 80'), ('bit_count(a.h # b.h) <= 6 AND a.id < b.id'),
  ('bit_count(a.h # b.h) <= b.grp'), ('bit_count(a.h # b.h) < a.grp + b.grp'), ('bit_count(a.h # b.h) <= 2 * b.grp - 1'), ('bit_count(a.v # b.v) <= a.i'),
  ('bit_count((a.i # b.i)::bit(64)) <= a.grp::bigint + 1'), ('bit_count(a.h # b.h) <= a.grp AND a.id < b.id'),
  ('bit_count(a.h # (~ b.h)) >= 0 AND bit_count(a.h # b.h) <= 4');

SELECT same_rows(format('SELECT a.id, b.id FROM hashes a JOIN hashes b ON %s', condition), true, condition) FROM cases;
SELECT same_rows(format('SELECT a.id, b.id FROM hashes a JOIN others b ON %s', condition), true, 'two tables, ' || condition) FROM cases;
SELECT same_rows(format('SELECT count(*) FROM hashes a JOIN others b ON %s', condition), true, 'counted, ' || condition) FROM cases;
SELECT same_rows(format('SELECT a.id, count(*), sum(b.id) FROM hashes a JOIN others b ON %s GROUP BY a.id', condition), true, 'sums, ' || condition)
FROM cases;
SELECT same_rows(format('SELECT a.id FROM hashes a WHERE %s EXISTS (SELECT FROM others b WHERE %s)', negation, condition), true, negation || 'exists, ' || condition)
FROM cases, unnest('{"","NOT "}'::text[]) negation;
SELECT same_rows(format('SELECT a.id, b.id FROM hashes a LEFT JOIN others b ON %s', condition), true, 'left, ' || condition) FROM cases;

-- Each index finds the same.
CREATE FUNCTION same_by_index(index text, query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('gpujoin.index', index, true);
  RETURN QUERY SELECT same_rows(query, true, index);
END $$;
SELECT same_by_index(index, query)
FROM unnest('{pigeonhole,none,tiles,grid}'::text[]) index,
  (VALUES ('SELECT a.id, b.id FROM hashes a JOIN hashes b ON bit_count(a.h # b.h) <= 6'),
          ('SELECT a.id, b.id FROM hashes a JOIN others b ON bit_count(a.far # b.far) <= 9')) q (query);
SELECT set_config('gpujoin.index', 'pigeonhole', true);
SELECT is(property('Index', 'SELECT a.id, b.id FROM hashes a JOIN hashes b ON bit_count(a.h # b.h) <= 6'), 'pigeonhole', 'EXPLAIN names the index');
SELECT is(property('Metric', 'SELECT * FROM gpu_selfjoin(''hashes'', 6, vector_columns => ''h'', metric => ''hamming'')'), 'hamming',
          'EXPLAIN names the metric');
SELECT set_config('gpujoin.index', 'auto', true);

-- What is no such condition.
CREATE TABLE no_cases (condition text);
INSERT INTO no_cases VALUES
  ('bit_count((a.i # b.i)::bit(32)) <= 6'), ('bit_count((a.c # b.c)::bit(64)) <= 6'), ('bit_count(a.h | b.h) <= 40'),
  ('bit_count(a.h # b.h) >= 40'), ('bit_count(a.h # a.h) <= b.grp'), ('bit_count(a.h # b.h) <= b.grp * a.grp'),
  ('bit_count(a.b) <= bit_count(b.b)'), ('length(a.h # b.h) <= 64'), ('(a.c # b.c) <= 6'), ('bit_count(a.h # b.h) <> 3');
SELECT same_rows(format('SELECT a.id, b.id FROM hashes a JOIN hashes b ON %s', condition), false, 'left to PostgreSQL: ' || condition) FROM no_cases;
SELECT same_rows(query, NULL, 'ordered by bits')
FROM (VALUES ('SELECT a.id, b.id FROM hashes a JOIN others b ON bit_count(a.h # b.h) <= 6 ORDER BY bit_count(a.h # b.h), a.id, b.id LIMIT 7'),
             ('SELECT a.id, avg(bit_count(a.h # b.h)) FROM hashes a JOIN others b ON bit_count(a.h # b.h) <= 6 GROUP BY a.id')) q (query);

-- The nearest rows.
SELECT same_rows(query, true, 'nearest: ' || query) FROM (VALUES
  ('SELECT a.id, s.id FROM hashes a CROSS JOIN LATERAL (SELECT id FROM others b ORDER BY bit_count(a.h # b.h), b.id LIMIT 3) s'),
  ('SELECT a.id, s.id, s.d FROM hashes a CROSS JOIN LATERAL (SELECT id, bit_count(a.h # b.h) AS d FROM others b ORDER BY 2, b.id LIMIT 3) s'),
  ('SELECT a.id, s.id, s.d / 2.0 FROM hashes a LEFT JOIN LATERAL (SELECT id, bit_count(b.far # a.far) AS d FROM others b ORDER BY 2, b.id DESC LIMIT 1) s ON true'),
  ('SELECT a.id, s.id, s.d FROM hashes a LEFT JOIN LATERAL (SELECT id, bit_count((a.i # b.i)::bit(64)) AS d FROM others b
    WHERE bit_count((a.i # b.i)::bit(64)) <= 4 ORDER BY 2, b.id LIMIT 2) s ON true'),
  ('SELECT a.id, s.id, s.d FROM hashes a LEFT JOIN LATERAL (SELECT id, bit_count((a.c # b.c)::bit(32)) AS d FROM others b
    WHERE b.grp <> 3 AND a.id <> b.id - 5000 ORDER BY 2, b.id LIMIT 5) s ON true'),
  ('SELECT a.id, s.id FROM hashes a CROSS JOIN LATERAL (SELECT id FROM others b ORDER BY bit_count(a.v # b.h), b.id LIMIT 1000) s'),
  ('SELECT DISTINCT ON (a.id) a.id, b.id, bit_count(a.h # b.h) FROM hashes a JOIN others b ON bit_count(a.h # b.h) <= 9
    ORDER BY a.id, bit_count(a.h # b.h), b.id')) q (query);
SELECT same_rows(query, false, 'left to PostgreSQL: ' || query) FROM (VALUES
  ('SELECT a.id, s.d FROM hashes a CROSS JOIN LATERAL (SELECT bit_count(a.h # b.h) AS d FROM others b ORDER BY 1 DESC LIMIT 3) s'),
  ('SELECT a.id, s.d FROM hashes a CROSS JOIN LATERAL (SELECT bit_count(a.h | b.h) AS d FROM others b ORDER BY 1 LIMIT 3) s'),
  ('SELECT a.id, s.d FROM hashes a CROSS JOIN LATERAL (SELECT bit_count(a.h # b.h) AS d FROM others b ORDER BY 1 NULLS FIRST LIMIT 3) s')) q (query);

-- ---- Lengths

CREATE TABLE lengths AS SELECT id, v FROM hashes WHERE id <= 60;
INSERT INTO lengths VALUES (2001, B'101'), (2002, B''), (2003, B'101'), (2004, B'');
ANALYZE lengths;
SELECT force_node(true);
SELECT is(bag('SELECT a.id, b.id FROM lengths a JOIN lengths b ON bit_count(a.v # b.v) <= 6'),
          ARRAY['ERROR 22026 cannot XOR bit strings of different sizes'], 'another length is PostgreSQL''s own error');
SELECT same_rows('SELECT a.id, b.id FROM lengths a JOIN hashes b ON bit_count(a.v # b.v) <= b.grp', NULL, 'another length, and radii of rows');
SELECT same_rows('SELECT a.id, s.id FROM lengths a CROSS JOIN LATERAL (SELECT id FROM lengths b ORDER BY bit_count(a.v # b.v), b.id LIMIT 2) s', NULL,
                 'another length among the nearest rows');
SELECT same_rows('SELECT a.id, b.id FROM lengths a JOIN lengths b ON length(a.v) = length(b.v) AND bit_count(a.v # b.v) <= 6', NULL, 'lengths that are equal');
SELECT same_rows('SELECT a.id, b.id FROM lengths a JOIN lengths b ON length(a.v) = 3 AND length(b.v) = 3 AND bit_count(a.v # b.v) <= 6', NULL, 'short ones');
SELECT throws_ok($$ SELECT * FROM gpu_selfjoin('lengths', 1, id_column => 'id', metric => 'hamming') $$, '22000',
                 'vectors of relation "lengths" have different numbers of dimensions', 'functions refuse another length');
CREATE TABLE short AS SELECT id, h::bit(60) AS h FROM hashes;
SELECT throws_ok($$ SELECT * FROM gpu_join('hashes', 'short', 1, left_vector_columns => 'h', right_id_column => 'id', metric => 'hamming') $$, '22000',
                 'vectors of relations "hashes" and "short" have different numbers of dimensions', 'and two tables of different ones');

-- ---- Functions

CREATE FUNCTION differing(a anyelement, b anyelement) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN CASE pg_typeof(a)::text WHEN 'bigint' THEN bit_count((a::text::bigint # b::text::bigint)::bit(64))
                                 WHEN 'integer' THEN bit_count((a::text::int # b::text::int)::bit(32))
                                 WHEN 'bytea' THEN bit_count(('x' || encode(a::text::bytea, 'hex'))::bit(64) # ('x' || encode(b::text::bytea, 'hex'))::bit(64))
                                 ELSE bit_count(a::text::bit varying # b::text::bit varying) END;
END $$;
SELECT set_eq(format($$ SELECT * FROM gpu_selfjoin_distance('hashes', 5, vector_columns => %L, metric => 'hamming', pairs => 'unordered') $$, name),
              format('SELECT a.id::bigint AS id1, b.id::bigint AS id2, differing(a.%1$s, b.%1$s)::float8 FROM hashes a JOIN hashes b ON a.id < b.id AND differing(a.%1$s, b.%1$s) <= 5', name),
              name || ': pairs and distances')
FROM unnest('{h,v,i,c,b,far}'::text[]) name;
SELECT set_eq($$ SELECT * FROM gpu_join('hashes', 'others', 6, left_vector_columns => 'h', right_vector_columns => 'v', right_id_column => 'id',
                                        metric => 'hamming') $$,
              'SELECT a.id::bigint AS id1, b.id::bigint AS id2 FROM hashes a JOIN others b ON differing(a.h, b.v::bit(64)) <= 6', 'two tables, of two types');
SELECT set_eq($$ SELECT id, neighbors[1:3] FROM gpu_neighbors('hashes', 6, vector_columns => 'h', metric => 'hamming') $$,
              $$ SELECT a.id::bigint, (SELECT coalesce(array_agg(b.id::bigint ORDER BY bit_count(a.h # b.h), b.id), '{}') FROM hashes b
                                       WHERE bit_count(a.h # b.h) <= 6 AND a.id <> b.id)[1:3]
                 FROM hashes a WHERE h IS NOT NULL $$, 'neighbors');
SELECT set_eq($$ SELECT * FROM gpu_density('hashes', 6, vector_columns => 'h', metric => 'hamming') $$,
              'SELECT a.id::bigint, count(b.id) FROM hashes a JOIN hashes b ON bit_count(a.h # b.h) <= 6 GROUP BY a.id',
              'density');
SELECT results_eq($$ SELECT * FROM gpu_topk_join('hashes', 'others', 20, 15, left_vector_columns => 'h', right_vector_columns => 'h',
                                                 right_id_column => 'id', metric => 'hamming', score => 'distance') $$,
                  $$ SELECT a.id::bigint AS id1, b.id::bigint AS id2, bit_count(a.h # b.h)::float8 AS score FROM hashes a, others b
                     WHERE a.h IS NOT NULL AND b.h IS NOT NULL ORDER BY 3, 1, 2 LIMIT 15 $$, 'the best pairs by distance');
SELECT results_eq(format($$ SELECT id1, id2, distance FROM gpu_knn_join('hashes', 'others', 4, left_vector_columns => %1$L, right_vector_columns => %1$L, right_id_column => 'id',
                                                       metric => 'hamming'%2$s) ORDER BY 1, 3, 2 $$, name, radius),
                  format($$ SELECT a.id::bigint AS id1, s.id::bigint AS id2, s.d::float8 FROM hashes a, LATERAL (
                              SELECT b.id, differing(a.%1$s, b.%1$s) AS d FROM others b WHERE b.%1$s IS NOT NULL ORDER BY 2, 1 LIMIT 4) s
                            WHERE d <= coalesce(nullif(%2$L, '')::int, 1000) ORDER BY 1, 3, 2 $$, name, replace(radius, ', max_distance => ', '')),
                  format('nearest rows, %s%s', name, radius))
FROM unnest('{h,v,i,c,b,far}'::text[]) name, unnest('{"",", max_distance => 3"}'::text[]) radius;
-- Groups by following pairs from row to row.
SELECT set_eq($$ SELECT min(id) OVER (PARTITION BY component), id FROM gpu_components('hashes', 3, vector_columns => 'i', metric => 'hamming')
$$,
              $$ WITH RECURSIVE pair AS (
                   SELECT a.id::bigint AS a, b.id::bigint AS b FROM hashes a JOIN hashes b ON bit_count((a.i # b.i)::bit(64)) <= 3),
                 reached (start, id) AS (SELECT a, b FROM pair UNION SELECT start, b FROM reached JOIN pair ON a = id)
                 SELECT min(id), start FROM reached GROUP BY start $$, 'components');
SELECT is((SELECT count(*) FROM gpu_dbscan('hashes', 6, 3, vector_columns => 'h', metric => 'hamming') WHERE kind = 'core'),
          (SELECT count(*) FROM hashes a WHERE (SELECT count(*) FROM hashes b WHERE bit_count(a.h # b.h) <= 6) >= 3), 'core rows of DBSCAN');
CREATE TABLE gone AS SELECT * FROM gpu_dedup('hashes', 6, vector_columns => 'h', metric => 'hamming');
SELECT is((SELECT count(*) FROM hashes a JOIN hashes b ON a.id < b.id AND bit_count(a.h # b.h) <= 6
           WHERE NOT EXISTS (SELECT FROM gone WHERE gone.id IN (a.id, b.id))), 0::bigint, 'no two rows that stay are duplicates');
SELECT is((SELECT count(*) FROM gone JOIN hashes a ON a.id = gone.id JOIN hashes b ON b.id = kept_id
           WHERE distance = bit_count(a.h # b.h) AND distance <= 6 AND kept_id < gone.id AND kept_id NOT IN (SELECT id FROM gone)),
          (SELECT count(*) FROM gone), 'and each that goes is one of a row that stays');
SELECT cmp_ok((SELECT count(*) FROM gone), '>', 100::bigint, 'many go');

-- ---- Sets, whose members are the ones

CREATE FUNCTION bits_of(a anyelement) RETURNS bit varying LANGUAGE plpgsql AS $$
BEGIN
  RETURN CASE pg_typeof(a)::text WHEN 'bigint' THEN a::text::bigint::bit(64) WHEN 'integer' THEN a::text::int::bit(32)
                                 WHEN 'bytea' THEN ('x' || encode(a::text::bytea, 'hex'))::bit(64) ELSE a::text::bit varying END;
END $$;
CREATE FUNCTION unlike(a bit varying, b bit varying) RETURNS float8 RETURN
  CASE bit_count(a & b) WHEN 0 THEN 1 ELSE 1 - bit_count(a & b)::float8 / bit_count(a | b)::float8 END;
INSERT INTO hashes SELECT 3000 + n, n, 0::bit(64), 0::bit(64), 0, 0, '\x0000000000000000', 0::bit(200) FROM generate_series(1, 3) n;
CREATE TABLE sets AS SELECT id, name, value FROM hashes, LATERAL (VALUES ('h', bits_of(h)), ('v', v), ('i', bits_of(i)), ('c', bits_of(c)),
                                                                         ('b', bits_of(b)), ('far', bits_of(far))) c (name, value);
SELECT set_eq(format($$ SELECT * FROM gpu_selfjoin_distance('hashes', %s, vector_columns => %L, metric => 'jaccard', pairs => 'unordered') $$, eps, name),
              format('SELECT a.id::bigint AS id1, b.id::bigint AS id2, unlike(a.value, b.value) FROM sets a JOIN sets b
                      ON a.name = %1$L AND b.name = %1$L AND a.id < b.id AND unlike(a.value, b.value) <= %2$s', name, eps),
              format('%s: sets within %s', name, eps))
FROM unnest('{h,v,i,c,b,far}'::text[]) name, unnest('{0,0.2,0.55}'::text[]) eps;
SELECT is((SELECT count(*) FROM gpu_selfjoin('hashes', 1, vector_columns => 'h', metric => 'jaccard')), (SELECT count(h) ^ 2 FROM hashes)::bigint,
          'no two sets are further apart than 1');
SELECT set_eq($$ SELECT * FROM gpu_join('hashes', 'others', 0.2, left_vector_columns => 'h', right_vector_columns => 'v', right_id_column => 'id',
                                        metric => 'jaccard') $$,
              'SELECT a.id::bigint AS id1, b.id::bigint AS id2 FROM hashes a JOIN others b ON unlike(a.h, b.v) <= 0.2', 'sets of two tables, of two types');
SELECT set_eq($$ SELECT * FROM gpu_density('hashes', 0.2, vector_columns => 'h', metric => 'jaccard') $$,
              'SELECT a.id::bigint, count(b.id) FROM hashes a LEFT JOIN hashes b ON unlike(a.h, b.h) <= 0.2 WHERE a.h IS NOT NULL GROUP BY a.id',
              'density of sets');
SELECT results_eq($$ SELECT * FROM gpu_topk_join('hashes', 'others', 1, 15, left_vector_columns => 'h', right_vector_columns => 'h',
                                                 right_id_column => 'id', metric => 'jaccard', score => 'distance') $$,
                  $$ SELECT a.id::bigint AS id1, b.id::bigint AS id2, unlike(a.h, b.h) AS score FROM hashes a, others b
                     WHERE a.h IS NOT NULL AND b.h IS NOT NULL ORDER BY 3, 1, 2 LIMIT 15 $$, 'the best pairs of sets');
SELECT is((SELECT count(*) FROM gpu_dbscan('hashes', 0.2, 3, vector_columns => 'h', metric => 'jaccard') WHERE kind = 'core'),
          (SELECT count(*) FROM hashes a WHERE (SELECT count(*) FROM hashes b WHERE unlike(a.h, b.h) <= 0.2) >= 3), 'core sets of DBSCAN');
SELECT results_eq($$ SELECT id1, id2, distance FROM gpu_knn_join('hashes', 'others', 3, left_vector_columns => 'h', right_vector_columns => 'h',
                                                 right_id_column => 'id', metric => 'jaccard') ORDER BY 1, 3, 2 $$,
                  $$ SELECT a.id::bigint, n.id, n.d FROM hashes a, LATERAL (SELECT b.id::bigint, unlike(a.h, b.h) AS d FROM others b
                     WHERE b.h IS NOT NULL ORDER BY 2, 1 LIMIT 3) n WHERE a.h IS NOT NULL ORDER BY 1, 3, 2 $$, 'nearest sets');
DELETE FROM hashes WHERE id BETWEEN 3001 AND 3003;

SELECT exists(SELECT FROM pg_available_extension_versions WHERE name = 'vector' AND version >= '0.7') AS has_vector \gset
\if :has_vector
CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;
SELECT same_rows(format('SELECT a.id, b.id FROM hashes a JOIN others b ON %s', condition), uses_node, 'pgvector: ' || condition)
FROM (VALUES ('a.h <~> b.h <= 6', true), ('a.h <~> b.h < 4', true), ('hamming_distance(a.far, b.far) <= 12', true),
             ('a.h <%> b.h <= 0.2', true), ('a.h <%> b.h < 0.25', true), ('0.2 >= a.h <%> b.h', true), ('jaccard_distance(a.far, b.far) <= 0.15', true),
             ('a.h <%> b.h <= 0', true), ('a.h <%> b.h <= b.grp * 0.1::float8', true), ('a.h <~> b.h <= a.grp + 1', true), ('a.h <%> b.h < 1', true), ('a.h <%> b.h <= 1', NULL), ('a.h <%> b.h <= 2', NULL),
             ('a.h <%> b.h <= 0.2 AND a.grp = b.grp', true), ('(a.h <%> b.h <= 0.1 OR a.h <%> b.h < 0.2)', NULL), ('a.h <%> b.h >= 0.2', false),
             ('a.h <%> b.h <= -1', NULL), ('a.h <%> b.h <= $$NaN$$', NULL)) c (condition, uses_node);
SELECT same_rows(query, NULL, 'pgvector: by distance') FROM (VALUES
  ('SELECT a.id, b.id, a.h <%> b.h FROM hashes a JOIN others b ON a.h <%> b.h <= 0.4 ORDER BY 3, 1, 2 LIMIT 20'),
  ('SELECT a.id, count(*), avg(a.h <%> b.h) FROM hashes a JOIN others b ON a.h <%> b.h <= 0.4 GROUP BY a.id'),
  ('SELECT a.id, s.id FROM hashes a CROSS JOIN LATERAL (SELECT id FROM others b ORDER BY a.h <%> b.h, b.id LIMIT 3) s'),
  ('SELECT a.id, ARRAY(SELECT b.id FROM others b ORDER BY b.h <%> a.h, b.id LIMIT 4) FROM hashes a WHERE a.id % 40 = 3'),
  ('SELECT a.id, ARRAY(SELECT b.id FROM others b WHERE b.grp <> 3 ORDER BY 1 - (a.h <%> b.h) DESC, b.id LIMIT 4) FROM hashes a WHERE a.id % 40 = 3'),
  ('SELECT a.id, (SELECT count(*) FROM others b WHERE b.h <%> a.h < 0.3) FROM hashes a WHERE a.id % 40 = 3')) q (query);
\else
SELECT skip('no pgvector with bits', 1);
\endif

-- ---- Which column, and errors

CREATE TABLE named (id int PRIMARY KEY, n bigint, data bytea, hash bit(8));
INSERT INTO named VALUES (1, 5, '\x05', B'00000101'), (2, 4, '\x04', B'00000100');
SELECT is((SELECT count(*) FROM gpu_selfjoin('named', 1, metric => 'hamming')), 4::bigint, 'bit strings come first');
ALTER TABLE named DROP hash;
SELECT is((SELECT count(*) FROM gpu_selfjoin('named', 1, metric => 'hamming')), 4::bigint, 'then bytea');
ALTER TABLE named DROP data;
SELECT throws_ok($$ SELECT * FROM gpu_selfjoin('named', 1, metric => 'hamming') $$, '42703', 'relation "named" has no vector column',
                 'integers have to be named');
SELECT is((SELECT count(*) FROM gpu_selfjoin('named', 0, vector_columns => 'n', metric => 'hamming')), 2::bigint, 'and are bits then');
SELECT is((SELECT count(*) FROM gpu_selfjoin('named', 1.5, vector_columns => 'n')), 4::bigint, 'else they are numbers');
SELECT throws_ok($$ SELECT * FROM gpu_selfjoin('hashes', 1, vector_columns => 'h') $$, '42804',
                 'column "h" of relation "hashes" has type bit, which cannot be a vector', 'bits have no other metric');
SELECT throws_ok($$ SELECT * FROM gpu_selfjoin('hashes', 1, vector_columns => 'i,c', metric => 'hamming') $$, '42804', NULL, 'bits are of one column');
SELECT throws_ok($$ SELECT * FROM gpu_hdbscan('hashes', 5, vector_columns => 'h', metric => 'hamming') $$,
                 '22023', 'spanning trees are not found by Hamming distance', 'no spanning trees');
SELECT throws_ok($$ SELECT gpu_distance('{1,2}'::float8[], '{1,3}', 'hamming') $$, '22023', 'unknown metric "hamming"', 'arrays are no bits');

-- ---- Little memory

SELECT set_config('gpujoin.host_memory_limit', '250kB', true);
SELECT is((SELECT count(*) FROM gpu_selfjoin('hashes', 6, vector_columns => 'far', metric => 'hamming', pairs => 'distinct')),
          (SELECT count(*) FROM hashes a JOIN hashes b ON bit_count(a.far # b.far) <= 6 AND a.id <> b.id), 'with little memory');

SELECT * FROM finish();
ROLLBACK;
