-- Top-k joins against brute force in plain SQL: every score, direction and method, kinds of columns, ties and gaps.
SET client_min_messages = warning;
CREATE SCHEMA topk_join;
SET search_path = topk_join, public;

-- Points on a lattice, three and more of a kind, with few different scores of both signs: ties everywhere. Ids are not
-- in the order of rows, nor are those of one table apart from those of the other.
CREATE TABLE l (id int PRIMARY KEY, v float8[], s float8);
INSERT INTO l SELECT i * 7919 % 1009, ARRAY[i % 9 * 0.5, i % 11 * 0.5], i * 31 % 13 - 4 FROM generate_series(1, 300) i;
CREATE TABLE r (id bigint PRIMARY KEY, v float8[], s float8);
INSERT INTO r SELECT i * 104729 % 997, ARRAY[i % 10 * 0.5, i % 7 * 0.5], i * 17 % 11 / 4.0 - 1
  FROM generate_series(1, 250) i;
ANALYZE l, r;

-- Brute force: all pairs within 1, those of a table with itself once.
CREATE TABLE truth AS
  SELECT 'l'::regclass AS t1, 'r'::regclass AS t2, a.id::bigint AS id1, b.id::bigint AS id2, a.s AS s1, b.s AS s2,
         a.v <-> b.v AS distance FROM l a, r b WHERE a.v <-> b.v <= 1
  UNION ALL
  SELECT 'l', 'l', a.id, b.id, a.s, b.s, a.v <-> b.v FROM l a, l b WHERE a.v <-> b.v <= 1 AND a.id < b.id;
SELECT t1, t2, count(*) FROM truth GROUP BY 1, 2 ORDER BY 2;

CREATE FUNCTION pair_score(score text, s1 float8, s2 float8, distance float8) RETURNS float8
IMMUTABLE LANGUAGE sql AS $$
  SELECT CASE score WHEN 'sum' THEN s1 + s2 WHEN 'product' THEN s1 * s2 WHEN 'min' THEN least(s1, s2)
    WHEN 'max' THEN greatest(s1, s2) ELSE distance END $$;

-- The best pairs in their order.
CREATE FUNCTION wanted(t1 regclass, t2 regclass, k bigint, score text, weights float8[], best text)
RETURNS TABLE (place bigint, id1 bigint, id2 bigint, score float8) STABLE LANGUAGE sql AS $$
  SELECT row_number() OVER (ORDER BY CASE $6 WHEN 'lowest' THEN p.score ELSE -p.score END, p.id1, p.id2), p.*
  FROM (SELECT t.id1, t.id2,
          pair_score($4, coalesce($5[1], 1) * t.s1, coalesce($5[2], 1) * t.s2, t.distance) AS score
        FROM truth t WHERE t.t1 = $1 AND t.t2 = $2) p
  ORDER BY 1 LIMIT $3 $$;

-- Rows that are missing, too many, or out of their place.
CREATE FUNCTION differences(t1 regclass, t2 regclass, k bigint, score text, weights float8[], best text)
RETURNS bigint STABLE LANGUAGE sql AS $$
  WITH w AS (SELECT * FROM wanted($1, $2, $3, $4, $5, $6)),
  g AS (SELECT row_number() OVER (), * FROM gpu_topk_join($1, $2, 1, $3, score => $4, weights => $5, best => $6))
  SELECT count(*) FROM ((TABLE w EXCEPT ALL TABLE g) UNION ALL (TABLE g EXCEPT ALL TABLE w)) d $$;

CREATE FUNCTION differences_by(setting text, value text, t1 regclass, t2 regclass, k bigint, score text,
                               weights float8[], best text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  n bigint;
BEGIN
  PERFORM set_config(setting, value, true);
  n := differences(t1, t2, k, score, weights, best);
  EXECUTE format('RESET %s', setting);
  RETURN n;
END $$;

SELECT t2, score, best, count(*) AS calls, sum(differences_by('gpujoin.topk_method', method, 'l', t2, k, score, weights, best))
FROM unnest('{r,l}'::regclass[]) t2, unnest('{sum,product,min,max}'::text[]) score,
     unnest('{highest,lowest}'::text[]) best,
     (VALUES (NULL::float8[]), ('{1,-0.5}'), ('{0,3}')) w(weights), unnest('{1,57,100000}'::bigint[]) k,
     unnest('{threshold,heap,sort}'::text[]) method
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
SELECT t2, best, count(*) AS calls, sum(differences_by('gpujoin.topk_method', method, 'l', t2, k, 'distance', NULL, best))
FROM unnest('{r,l}'::regclass[]) t2, unnest('{highest,lowest}'::text[]) best, unnest('{1,10,1000,100000}'::bigint[]) k,
     unnest('{auto,threshold,heap,sort}'::text[]) method
GROUP BY 1, 2 ORDER BY 1, 2;

-- Other settings change nothing either.
SELECT setting, value, differences_by('gpujoin.' || setting, value, 'l', 'r', 40, 'sum', NULL, 'highest') AS two,
       differences_by('gpujoin.' || setting, value, 'l', 'l', 40, 'product', '{1,2}', 'lowest') AS one
FROM (VALUES ('engine', '{auto,cpu}'::text[]), ('enable_customscan', '{on,off}'), ('cpu_threads', '{1,2,16}'),
        ('index', '{grid,reference_points,tiles,none}'), ('batch_pairs', '{1,7,1000}'),
        ('access_pattern', '{full,linear_id,unicomp}')) s(setting, choices), unnest(choices) value
ORDER BY 1, 2;

-- Defaults: the sum, highest first; of distances the lowest first. Ties are broken by the ids.
SELECT * FROM gpu_topk_join('l', 'r', 1, 5);
SELECT * FROM gpu_topk_join('l', 'r', 1, 5, score => 'distance');
SELECT * FROM gpu_topk_join('l', 'l', 1, 3, score => 'distance', best => 'highest');
SELECT * FROM gpu_topk_join('l', 'l', 1, 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

-- A table is joined with itself whether its columns are named or not; with other columns it is another table.
SELECT * FROM gpu_topk_join('l', 'l', 0, 2, left_id_column => 'id', right_vector_columns => '{v}', left_score_column => 's');
SELECT * FROM gpu_topk_join('l', 'l', 0, 2, right_score_column => 'id', weights => '{1,0.001}');
SELECT pair_selection, left_rows, right_rows FROM gpu_last_join();
-- The smaller id is the first of a pair, so its score has the first weight.
CREATE TABLE two (id int PRIMARY KEY, v float8[], s int);
INSERT INTO two VALUES (7, '{0}', 10), (3, '{0}', 1);
SELECT * FROM gpu_topk_join('two', 'two', 0, 9, weights => '{100,1}');

-- Kinds of numbers; a score may be an id, or part of the vector, where it is named.
CREATE DOMAIN grade AS numeric(6, 2) CHECK (VALUE < 1000);
CREATE TABLE types (id int PRIMARY KEY, v float4[], i2 smallint, i4 int, i8 bigint, f4 real, f8 float8, n numeric, g grade);
INSERT INTO types SELECT i, ARRAY[i % 4], i % 7, i % 7 - 3, 9007199254740993 + i % 7, i % 7 / 10.0, i % 7 / 10.0, i % 7 / 10.0,
  i % 7 / 10.0 FROM generate_series(1, 30) i;
CREATE FUNCTION number_in(t types, name name) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
  number float8;
BEGIN
  EXECUTE format('SELECT ($1).%I::float8', name) INTO number USING t;
  RETURN number;
END $$;
SELECT a.attname, (SELECT count(*) FROM (
  (SELECT t.id, u.id, number_in(t, a.attname) + u.s AS score FROM types t, two u
   WHERE abs(t.v[1] - u.v[1]) <= 1 ORDER BY 3 DESC, 1, 2 LIMIT 20)
  EXCEPT ALL SELECT * FROM gpu_topk_join('types', 'two', 1, 20, left_score_column => a.attname)) d) AS missing
FROM pg_attribute a WHERE a.attrelid = 'types'::regclass AND a.attnum > 0 AND a.attname <> 'v' ORDER BY a.attnum;
CREATE TABLE xy (id int PRIMARY KEY, x float8, y float8, price numeric);
INSERT INTO xy SELECT i, i % 5, i % 3, i % 4 FROM generate_series(1, 20) i;
SELECT * FROM gpu_topk_join('xy', 'xy', 1, 3, NULL, NULL, '{x,y}', '{x,y}');
SELECT * FROM gpu_topk_join('xy', 'xy', 1, 3, NULL, NULL, '{x,y}', '{x,y}', 'x', 'x', metric => 'l1');

-- Every metric.
SELECT metric, count(*), count(*) FILTER (WHERE g.id1 = t.id1 AND g.id2 = t.id2 AND g.score = t.score) AS equal
FROM unnest('{l2,l1,linf,cosine}'::text[]) metric,
  LATERAL (SELECT row_number() OVER () AS place, * FROM gpu_topk_join('l', 'r', 0.4, 25, metric => metric)) g
  FULL JOIN LATERAL (
    SELECT row_number() OVER (ORDER BY l.s + r.s DESC, d.id1, d.id2) AS place, d.id1, d.id2, l.s + r.s AS score
    FROM gpu_join('l', 'r', 0.4, metric => metric) d JOIN l ON l.id = d.id1 JOIN r ON r.id = d.id2) t USING (place)
WHERE place <= 25 GROUP BY 1 ORDER BY 1;

-- NULLs are left out, of the score as of the vector; a score is needed of those that take part alone.
CREATE TABLE gaps (id int PRIMARY KEY, v float8[], s float8);
INSERT INTO gaps VALUES (1, '{0}', 5), (2, NULL, 9), (3, '{0}', NULL), (4, '{0}', -1), (5, '{NaN}', 9), (6, NULL, 'NaN'),
  (7, '{0}', '-0');
SELECT * FROM gpu_topk_join('gaps', 'gaps', 1, 10);
SELECT * FROM gpu_topk_join('gaps', 'gaps', 1, 10, score => 'product', best => 'lowest');
SELECT * FROM gpu_topk_join('gaps', 'gaps', 1, 10, score => 'distance');
-- Sums and products may be infinite.
UPDATE gaps SET s = 1e308 WHERE id IN (1, 4);
SELECT * FROM gpu_topk_join('gaps', 'gaps', 1, 10);
SELECT * FROM gpu_topk_join('gaps', 'gaps', 1, 10, score => 'product', weights => '{-1,1}', best => 'lowest');
TRUNCATE gaps;
SELECT * FROM gpu_topk_join('gaps', 'gaps', 1, 10);
SELECT * FROM gpu_topk_join('gaps', 'l', 1, 10);

-- NULL arguments: the required ones mean no rows.
SELECT count(*) FROM gpu_topk_join(NULL, 'r', 1, 5);
SELECT count(*) FROM gpu_topk_join('l', NULL, 1, 5);
SELECT count(*) FROM gpu_topk_join('l', 'r', NULL, 5);
SELECT count(*) FROM gpu_topk_join('l', 'r', 1, NULL);

-- In queries: as a node, counted, ended early, run again, and where the node cannot go.
EXPLAIN (COSTS OFF) SELECT * FROM gpu_topk_join('l', 'r', 1, 5);
EXPLAIN (COSTS OFF) SELECT id1 FROM gpu_topk_join('l', 'r', 0.5, 5, score => 'max', best => 'lowest', metric => 'l1');
EXPLAIN (COSTS OFF) SELECT count(*) FROM gpu_topk_join('l', 'r', 1, 5);
CREATE FUNCTION explain_json(query text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
  RETURN (plan -> 0 -> 'Plan')::jsonb;
END $$;
SELECT plan ->> 'K' AS k, plan ->> 'Pairs' AS pairs, plan ->> 'Plan Rows' AS planned, plan ->> 'Top-k Method' AS method,
       (plan ->> 'Top-k Rounds')::int > 0 AS rounds, jsonb_typeof(plan -> 'K') AS type
FROM explain_json('SELECT * FROM gpu_topk_join(''l'', ''r'', 1, 5)') plan;
SELECT count(*) FROM gpu_topk_join('l', 'r', 1, 5);
SELECT count(*) FROM gpu_topk_join('l', 'r', 1, 1000000);
SELECT count(*) FROM truth WHERE t2 = 'r'::regclass;
SELECT score, id1 FROM gpu_topk_join('l', 'r', 1, 50) WHERE id1 > 500 LIMIT 2;
SELECT k, n FROM unnest('{1,4,NULL}'::bigint[]) k, LATERAL (SELECT count(*) AS n FROM gpu_topk_join('l', 'r', 1, k)) g;
SELECT c, g.* FROM unnest('{s,id}'::name[]) c, gpu_topk_join('l', 'r', 1, 2, left_score_column => c) g;
SELECT f, g.* FROM unnest('{min,distance,max}'::text[]) f, gpu_topk_join('l', 'r', 1, 1, score => f) g;
PREPARE best(bigint, float8[]) AS SELECT count(*), sum(score) FROM gpu_topk_join('l', 'r', 1, $1, weights => $2);
SET plan_cache_mode = force_generic_plan;
EXECUTE best(3, NULL);
EXECUTE best(4, '{1,2}');
RESET plan_cache_mode;
SELECT gpu_topk_join('l', 'r', 1, 2);
SELECT g FROM gpu_topk_join('l', 'r', 1, 2) g;
SELECT * FROM gpu_topk_join('l', 'r', 1, 2) WITH ORDINALITY;

-- What the last join did.
SET gpujoin.topk_method = 'heap';
SELECT count(*) FROM gpu_topk_join('l', 'r', 1, 5);
SELECT function, pair_selection, left_rows, right_rows, dimensions, pairs, complete, topk_method, topk_rounds > 0 AS rounds,
       box_method FROM gpu_last_join();
RESET gpujoin.topk_method;
SELECT count(*) FROM gpu_join('l', 'r', 0);
SELECT topk_method, topk_rounds, box_method FROM gpu_last_join();

-- The score is a column like the others: privileges, policies, views and partitions.
CREATE ROLE gpujoin_scorer;
GRANT USAGE ON SCHEMA topk_join TO gpujoin_scorer;
GRANT SELECT (id, v) ON two TO gpujoin_scorer;
SET ROLE gpujoin_scorer;
SELECT * FROM gpu_topk_join('two', 'two', 0, 1);
SELECT * FROM gpu_topk_join('two', 'two', 0, 1, score => 'distance');
RESET ROLE;
GRANT SELECT (s) ON two TO gpujoin_scorer;
SET ROLE gpujoin_scorer;
SELECT * FROM gpu_topk_join('two', 'two', 0, 1);
RESET ROLE;
ALTER TABLE two ENABLE ROW LEVEL SECURITY;
CREATE POLICY cheap ON two USING (s < 10);
SET ROLE gpujoin_scorer;
SELECT * FROM gpu_topk_join('two', 'two', 0, 1);
RESET ROLE;
CREATE VIEW rated AS SELECT id AS "the id", v, s * 2 AS "Score", 'x' AS note FROM l;
SELECT * FROM gpu_topk_join('rated', 'r', 1, 2, 'the id');
CREATE TABLE parts (id int, v float8[], s float8) PARTITION BY RANGE (id);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (500);
CREATE TABLE parts2 (s float8, v float8[], id int);
ALTER TABLE parts ATTACH PARTITION parts2 FOR VALUES FROM (500) TO (2000);
INSERT INTO parts SELECT * FROM l;
SELECT count(*) FROM (SELECT * FROM gpu_topk_join('l', 'l', 1, 30)
  EXCEPT SELECT * FROM gpu_topk_join('parts', 'parts', 1, 30, 'id', 'id')) d;

DROP SCHEMA topk_join CASCADE;
DROP ROLE gpujoin_scorer;
