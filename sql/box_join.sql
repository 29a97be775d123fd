-- Joins of boxes against brute force in plain SQL: every kind of box, method and metric, boxes that touch, and what
-- holds no box.
SET client_min_messages = warning;
CREATE SCHEMA box_join;
SET search_path = box_join, public;

-- Boxes on a lattice whose sides are 0, 0.5, 1 and 1.5: many touch, some are points, some are equal. Ids are not in the
-- order of rows.
CREATE TABLE a (id int PRIMARY KEY, low float8[], high float8[]);
INSERT INTO a SELECT i * 7919 % 1009, ARRAY[x, y], ARRAY[x + i % 4 * 0.5, y + i % 3 * 0.5]
  FROM generate_series(1, 160) i, LATERAL (SELECT i % 17 AS x, i * 5 % 13 AS y) c;
CREATE TABLE b (id bigint PRIMARY KEY, low float4[], high float4[]);
INSERT INTO b SELECT i * 104729 % 997, ARRAY[x, y], ARRAY[x + i % 2, y + i % 5 * 0.25]
  FROM generate_series(1, 120) i, LATERAL (SELECT i % 19 * 0.5 AS x, i * 7 % 11 AS y) c;
ANALYZE a, b;

-- The definition, written once more in another language. With an eps of 0 a point in common is wanted.
CREATE FUNCTION near(l1 float8[], h1 float8[], l2 float8[], h2 float8[], eps float8, metric text) RETURNS boolean
IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
  gap float8;
  raw float8 := 0;
BEGIN
  FOR d IN 1 .. cardinality(l1) LOOP
    gap := greatest(l2[d] - h1[d], l1[d] - h2[d], 0);
    raw := CASE metric WHEN 'l2' THEN raw + gap * gap WHEN 'l1' THEN raw + gap ELSE greatest(raw, gap) END;
  END LOOP;
  RETURN CASE metric WHEN 'l2' THEN sqrt(raw) ELSE raw END <= eps;
END $$;

CREATE TABLE truth AS
  SELECT metric, eps, 'a'::regclass AS t1, 'b'::regclass AS t2, a.id::bigint AS id1, b.id::bigint AS id2
  FROM unnest('{l2,l1,linf}'::text[]) metric, unnest('{0,0.25,1}'::float8[]) eps, a, b
  WHERE near(a.low, a.high, b.low, b.high, eps, metric)
  UNION ALL
  SELECT metric, eps, 'a', 'a', a.id, b.id
  FROM unnest('{l2,l1,linf}'::text[]) metric, unnest('{0,0.25,1}'::float8[]) eps, a, a b
  WHERE near(a.low, a.high, b.low, b.high, eps, metric);

-- Rows that are missing or too many. The kinds of a's boxes are views of it.
CREATE FUNCTION differences(kind regclass, t2 regclass, eps float8, metric text, pairs text, cols1 name[], cols2 name[])
RETURNS bigint STABLE LANGUAGE sql AS $$
  WITH w AS (SELECT id1, id2 FROM truth t WHERE t.t1 = 'a'::regclass AND t.t2 = CASE $2 WHEN 'b'::regclass THEN $2 ELSE 'a' END
             AND t.eps = $3 AND t.metric = $4
             AND ($5 = 'all' OR ($5 = 'distinct' AND id1 <> id2) OR ($5 = 'unordered' AND id1 < id2))),
  g AS (SELECT * FROM gpu_box_join($1, $2, $3, 'id', 'id', $6, $7, metric => $4, pairs => $5))
  SELECT count(*) FROM ((TABLE w EXCEPT ALL TABLE g) UNION ALL (TABLE g EXCEPT ALL TABLE w)) d $$;
CREATE FUNCTION differences_by(setting text, value text, t2 regclass, eps float8, metric text, pairs text)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  n bigint;
BEGIN
  PERFORM set_config(setting, value, true);
  n := differences('a', t2, eps, metric, pairs, '{low,high}', '{low,high}');
  EXECUTE format('RESET %s', setting);
  RETURN n;
END $$;

SELECT eps, metric, (SELECT count(*) FROM truth t WHERE (t.eps, t.metric) = (e.eps, m.metric) AND t2 = 'b'::regclass) AS pairs,
  sum(differences_by('gpujoin.box_method', method, 'b', eps, metric, 'all')) AS two,
  sum(differences_by('gpujoin.box_method', method, 'a', eps, metric, 'all')) AS one,
  sum(differences_by('gpujoin.box_method', method, 'a', eps, metric, 'distinct')) AS "distinct",
  sum(differences_by('gpujoin.box_method', method, 'a', eps, metric, 'unordered')) AS unordered
FROM unnest('{0,0.25,1}'::float8[]) e(eps), unnest('{l2,l1,linf}'::text[]) m(metric),
  unnest('{auto,layered_grid,sort_sweep,none}'::text[]) method
GROUP BY 1, 2 ORDER BY 1, 2;

-- Other settings change nothing either.
SELECT setting, value, differences_by('gpujoin.' || setting, value, 'b', 0, 'l2', 'all') AS two,
       differences_by('gpujoin.' || setting, value, 'a', 0.25, 'l1', 'unordered') AS one
FROM (VALUES ('engine', '{auto,cpu}'::text[]), ('enable_customscan', '{on,off}'), ('cpu_threads', '{1,2,16}'),
        ('batch_pairs', '{1,7,1000}')) s(setting, choices), unnest(choices) value
ORDER BY 1, 2;

-- PostgreSQL's box, on either side, with arrays on the other, in one table and by default.
CREATE VIEW boxes AS SELECT id, box(point(low[1], low[2]), point(high[1], high[2])) AS b FROM a;
CREATE VIEW wide AS SELECT id, low::float8[], high::float8[] FROM b;
CREATE VIEW box_and_more AS SELECT id, b AS "The Box", 1 AS x, '{1}'::float8[] AS v FROM boxes;
SELECT kind, t2, pairs, differences(kind, t2, 0.25, 'l2', pairs, cols1, cols2)
FROM (VALUES ('boxes'::regclass, 'b'::regclass, 'all', NULL::name[], '{low,high}'::name[]),
             ('boxes', 'boxes', 'all', NULL, NULL), ('boxes', 'boxes', 'distinct', '{b}', NULL),
             ('boxes', 'boxes', 'unordered', NULL, NULL), ('boxes', 'a', 'all', NULL, '{low,high}'),
             ('a', 'boxes', 'all', '{low,high}', '{b}'), ('box_and_more', 'b', 'all', NULL, '{low,high}'),
             ('box_and_more', 'boxes', 'all', '{"The Box"}', NULL)) v(kind, t2, pairs, cols1, cols2);
SELECT count(*) FROM ((SELECT * FROM gpu_box_join('a', 'wide', 0.25, 'id', 'id', '{low,high}', '{low,high}'))
  EXCEPT ALL (SELECT * FROM gpu_box_join('a', 'b', 0.25, 'id', 'id', '{low,high}', '{low,high}'))) d;

-- One, three and eight dimensions.
CREATE TABLE tall (id int PRIMARY KEY, low float8[], high float8[]);
INSERT INTO tall
  SELECT i, (SELECT array_agg(i * (3 + 2 * d) % 7 ORDER BY d) FROM generate_series(1, 8) d),
    (SELECT array_agg(i * (3 + 2 * d) % 7 + 3 ORDER BY d) FROM generate_series(1, 8) d) FROM generate_series(1, 100) i;
CREATE FUNCTION counts(dims int, method text, OUT pairs bigint, OUT missing bigint, OUT extra bigint) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE OR REPLACE VIEW cut AS SELECT id, low[:%1$s], high[:%1$s] FROM tall', dims);
  PERFORM set_config('gpujoin.box_method', method, true);
  WITH t AS (SELECT l.id, r.id AS id2 FROM cut l, cut r WHERE near(l.low, l.high, r.low, r.high, 1, 'l2')),
  g AS (SELECT * FROM gpu_box_join('cut', 'cut', 1, 'id', 'id', '{low,high}', '{low,high}'))
  SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM (TABLE t EXCEPT ALL TABLE g) d),
    (SELECT count(*) FROM (TABLE g EXCEPT ALL TABLE t) d) INTO pairs, missing, extra;
  RESET gpujoin.box_method;
END $$;
SELECT dims, method, c.* FROM unnest('{1,3,8}'::int[]) dims, unnest('{auto,layered_grid,sort_sweep,none}'::text[]) method,
  counts(dims, method) c;

-- Infinite bounds are bounds; a NaN meets nothing, nor does a NULL.
CREATE TABLE odd (id int PRIMARY KEY, low float8[], high float8[]);
INSERT INTO odd VALUES (1, '{0,0}', '{1,1}'), (2, '{-Infinity,-Infinity}', '{Infinity,Infinity}'), (3, '{NaN,0}', '{NaN,1}'),
  (4, '{0,0}', '{1,NaN}'), (5, NULL, '{1,1}'), (6, '{0,0}', NULL), (7, '{5,-Infinity}', '{5,Infinity}'),
  (8, '{Infinity,0}', '{Infinity,0}'), (9, '{1,1}', '{2,2}'), (10, '{1.0000000000000002,1}', '{2,2}'), (11, '{-0,-1}', '{-0,-0}'),
  (12, '{-5e-324,0}', '{-5e-324,0}');
CREATE FUNCTION odd_pairs(eps float8, method text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  list text;
BEGIN
  PERFORM set_config('gpujoin.box_method', method, true);
  SELECT string_agg(id1 || '-' || id2, ' ' ORDER BY id1, id2) INTO list
  FROM gpu_box_join('odd', 'odd', eps, 'id', 'id', '{low,high}', '{low,high}', pairs => 'unordered');
  RESET gpujoin.box_method;
  RETURN list;
END $$;
SELECT eps, list, count(*) FROM unnest('{0,1}'::float8[]) eps, unnest('{auto,layered_grid,sort_sweep,none}'::text[]) method,
  odd_pairs(eps, method) list GROUP BY 1, 2 ORDER BY 1, 2;
SELECT * FROM gpu_box_join('odd', 'odd', 0, 'id', 'id', '{low,high}', '{low,high}') WHERE id1 = id2 ORDER BY 1;

-- Nothing on a side, and NULL arguments: the tables are required, the others have defaults.
CREATE TABLE none (id int PRIMARY KEY, b box);
SELECT count(*) FROM gpu_box_join('none', 'none');
SELECT count(*) FROM gpu_box_join('boxes', 'none', left_id_column => 'id');
SELECT count(*) FROM gpu_box_join('none', 'boxes', right_id_column => 'id');
INSERT INTO none VALUES (1, NULL), (2, '(1,1),(0,0)');
SELECT * FROM gpu_box_join('none', 'none', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT count(*) FROM gpu_box_join(NULL, 'none');
SELECT count(*) FROM gpu_box_join('none', NULL);

-- In queries: as a node, counted, ended early, run again, and where the node cannot go.
CREATE TABLE stored (id int PRIMARY KEY, b box);
INSERT INTO stored SELECT * FROM boxes;
EXPLAIN (COSTS OFF) SELECT * FROM gpu_box_join('stored', 'stored');
EXPLAIN (COSTS OFF) SELECT count(*) FROM gpu_box_join('stored', 'stored', 0.5, metric => 'linf', pairs => 'unordered');
SELECT count(*), count(DISTINCT id1) FROM gpu_box_join('stored', 'stored', 0.25);
SELECT count(*) FROM gpu_box_join('stored', 'stored', 0.25);
SELECT count(*) FROM truth WHERE eps = 0.25 AND metric = 'l2' AND t2 = 'a'::regclass;
SELECT count(*) FROM (SELECT FROM gpu_box_join('stored', 'stored') LIMIT 3) s;
SELECT eps, (SELECT count(*) FROM gpu_box_join('stored', 'stored', eps)) FROM unnest('{0,0.25,1,NULL}'::float8[]) eps;
SELECT pairs, count(*) FROM unnest('{all,distinct,unordered}'::text[]) pairs, gpu_box_join('stored', 'stored', pairs => pairs)
GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM (SELECT gpu_box_join('stored', 'stored')) s;
SELECT count(*) FROM gpu_box_join('stored', 'stored') WITH ORDINALITY;
CREATE FUNCTION explain_json(query text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
  RETURN (plan -> 0 -> 'Plan')::jsonb;
END $$;
SET gpujoin.box_method = 'layered_grid';
SELECT plan ->> 'Join Method' AS join_method, plan ->> 'Box Method' AS method, plan -> 'Pairs' = plan -> 'Actual Rows' AS pairs,
       plan ? 'Index' AS index, plan ? 'Strategy Reason' AS reason
FROM explain_json('SELECT * FROM gpu_box_join(''stored'', ''stored'', 1)') plan;
SELECT function, metric, pair_selection, eps, left_rows, right_rows, dimensions, index, indexed_columns, access_pattern,
       topk_method, topk_rounds, box_method, pairs, complete FROM gpu_last_join() \gx
RESET gpujoin.box_method;

-- Privileges and policies hold.
CREATE ROLE gpujoin_boxer;
GRANT USAGE ON SCHEMA box_join TO gpujoin_boxer;
GRANT SELECT (id) ON stored TO gpujoin_boxer;
SET ROLE gpujoin_boxer;
SELECT * FROM gpu_box_join('stored', 'stored');
RESET ROLE;
GRANT SELECT ON stored TO gpujoin_boxer;
ALTER TABLE stored ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON stored USING (id < 50);
SET ROLE gpujoin_boxer;
SELECT (SELECT count(*) FROM gpu_box_join('stored', 'stored')) =
       (SELECT count(*) FROM truth WHERE eps = 0 AND metric = 'l2' AND t2 = 'a'::regclass AND id1 < 50 AND id2 < 50) AS equal;
RESET ROLE;

DROP SCHEMA box_join CASCADE;
DROP ROLE gpujoin_boxer;
