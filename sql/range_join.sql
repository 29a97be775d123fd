-- Range joins against brute force in plain SQL: every function, metric and choice of pairs, on data that hurts.
SET client_min_messages = warning;
CREATE SCHEMA range_join;
SET search_path = range_join, public;

-- The definition, written once more in another language.
CREATE FUNCTION distance(metric text, a float8[], b float8[]) RETURNS float8 IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
  raw float8 := 0;
  difference float8;
BEGIN
  FOR i IN 1 .. array_length(a, 1) LOOP
    difference := abs(a[i] - b[i]);
    raw := CASE metric WHEN 'l2' THEN raw + difference * difference
                       WHEN 'l1' THEN raw + difference
                       ELSE greatest(raw, difference) END;
  END LOOP;
  RETURN CASE metric WHEN 'l2' THEN sqrt(raw) ELSE raw END;
END $$;

CREATE FUNCTION wanted(pairs text, id1 bigint, id2 bigint) RETURNS boolean IMMUTABLE LANGUAGE sql AS
$$ SELECT pairs = 'all' OR (pairs = 'distinct' AND id1 <> id2) OR (pairs = 'unordered' AND id1 < id2) $$;

-- Brute force: the distances of all pairs of rows of two tables.
CREATE TABLE truth (l regclass, r regclass, metric text, id1 bigint, id2 bigint, distance float8);
CREATE FUNCTION measure(l regclass, r regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('INSERT INTO truth SELECT $1, $2, metric, a.id, b.id, distance(metric, a.v, b.v)
                  FROM %s a, %s b, unnest(ARRAY[''l2'', ''l1'', ''linf'']) metric', l, r) USING l, r;
END $$;

-- How many pairs there are, and how many rows are missing or too many in what the functions return.
CREATE FUNCTION compare_self(tbl regclass, eps float8, metric text, pairs text,
                             OUT matches bigint, OUT missing bigint, OUT extra bigint) LANGUAGE sql AS $$
  WITH t AS (SELECT t.id1, t.id2, t.distance FROM truth t WHERE t.l = tbl AND t.r = tbl
             AND t.metric = $3 AND t.distance <= eps AND wanted(pairs, t.id1, t.id2)),
  g AS (SELECT g.id1, g.id2, g.distance FROM gpu_selfjoin_distance(tbl, eps, metric => $3, pairs => $4) g
        UNION ALL SELECT g.id1, g.id2, NULL FROM gpu_selfjoin(tbl, eps, metric => $3, pairs => $4) g),
  both_ways AS (SELECT * FROM t UNION ALL SELECT t.id1, t.id2, NULL FROM t)
  SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM (TABLE both_ways EXCEPT ALL TABLE g) d),
         (SELECT count(*) FROM (TABLE g EXCEPT ALL TABLE both_ways) d) $$;
CREATE FUNCTION compare_two(l regclass, r regclass, eps float8, metric text,
                            OUT matches bigint, OUT missing bigint, OUT extra bigint) LANGUAGE sql AS $$
  WITH t AS (SELECT t.id1, t.id2, t.distance FROM truth t WHERE t.l = $1 AND t.r = $2
             AND t.metric = $4 AND t.distance <= eps),
  g AS (SELECT g.id1, g.id2, g.distance FROM gpu_join_distance($1, $2, eps, metric => $4) g
        UNION ALL SELECT g.id1, g.id2, NULL FROM gpu_join($1, $2, eps, metric => $4) g),
  both_ways AS (SELECT * FROM t UNION ALL SELECT t.id1, t.id2, NULL FROM t)
  SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM (TABLE both_ways EXCEPT ALL TABLE g) d),
         (SELECT count(*) FROM (TABLE g EXCEPT ALL TABLE both_ways) d) $$;

-- A grid of points whose neighbours are exactly eps apart, each point twice, on cell edges by construction.
CREATE TABLE lattice (id int PRIMARY KEY, v float8[]);
INSERT INTO lattice SELECT i, ARRAY[i / 2 % 8 * 0.5, i / 16 * 0.5] FROM generate_series(0, 127) i;
SELECT measure('lattice', 'lattice');

SELECT eps, metric, pairs, c.*
FROM unnest('{0,0.25,0.5,1}'::float8[]) eps, unnest('{l2,l1,linf}'::text[]) metric,
     unnest('{all,distinct,unordered}'::text[]) pairs, compare_self('lattice', eps, metric, pairs) c
ORDER BY 1, 2, 3;

-- Scattered points in one to nine dimensions; ids are not in the order of rows.
CREATE TABLE scatter1 (id bigint PRIMARY KEY, v float8[]);
CREATE TABLE scatter3 (id int PRIMARY KEY, v float8[]);
CREATE TABLE scatter9 (id smallint PRIMARY KEY, v float8[]);
INSERT INTO scatter1 SELECT i * 7919 % 211, ARRAY[i * 31 % 97 / 9.7] FROM generate_series(1, 130) i;
INSERT INTO scatter3 SELECT i * 7919 % 211, ARRAY[i * 31 % 97 / 97.0, i * 57 % 89 / 89.0, i * 71 % 83 / 83.0]
  FROM generate_series(1, 130) i;
INSERT INTO scatter9
  SELECT i * 7919 % 211, (SELECT array_agg(i * (31 + 2 * d) % 97 / 97.0 ORDER BY d) FROM generate_series(1, 9) d)
  FROM generate_series(1, 130) i;
SELECT measure(tbl, tbl) FROM unnest('{scatter1,scatter3,scatter9}'::regclass[]) tbl;

SELECT tbl, eps, metric, pairs, c.*
FROM (VALUES ('scatter1', 0.3), ('scatter3', 0.25), ('scatter9', 0.9)) t(tbl, eps),
     unnest('{l2,l1,linf}'::text[]) metric, unnest('{all,unordered}'::text[]) pairs,
     compare_self(tbl::regclass, eps, metric, pairs) c
ORDER BY 1, 2, 3, 4;

-- Hardly any points.
CREATE TABLE few (id int PRIMARY KEY, v float8[]);
SELECT count(*) FROM gpu_selfjoin('few', 1);
INSERT INTO few VALUES (3, NULL);
SELECT count(*) FROM gpu_selfjoin('few', 1);
INSERT INTO few VALUES (1, '{5}');
SELECT * FROM gpu_selfjoin('few', 0);
SELECT * FROM gpu_selfjoin('few', 0, pairs => 'distinct');
INSERT INTO few VALUES (2, '{5}');
SELECT * FROM gpu_selfjoin('few', 0) ORDER BY 1, 2;
SELECT * FROM gpu_selfjoin('few', 0, pairs => 'distinct') ORDER BY 1, 2;
SELECT * FROM gpu_selfjoin('few', 0, pairs => 'unordered') ORDER BY 1, 2;

-- All points equal.
CREATE TABLE equal (id int PRIMARY KEY, v float8[]);
INSERT INTO equal SELECT i, '{1,2,3}' FROM generate_series(1, 50) i;
SELECT measure('equal', 'equal');
SELECT pairs, c.* FROM unnest('{all,distinct,unordered}'::text[]) pairs, compare_self('equal', 0, 'l2', pairs) c
ORDER BY 1;

-- Numbers at the edges of double precision. SQL's arithmetic stops at an overflow, so the operator <-> is the
-- measure here; what it returns is tested by itself.
CREATE TABLE extreme (id int PRIMARY KEY, v float8[]);
INSERT INTO extreme VALUES
  (1, '{0,0}'), (2, '{-0,0}'), (3, '{5e-324,0}'), (4, '{-5e-324,0}'), (5, '{1e-160,0}'), (6, '{2.3e-308,-2.3e-308}'),
  (7, '{1e308,1e308}'), (8, '{-1e308,1e308}'), (9, '{1.7976931348623157e308,0}'), (10, '{1e154,0}'),
  (11, '{Infinity,0}'), (12, '{Infinity,0}'), (13, '{-Infinity,0}'), (14, '{NaN,0}'), (15, '{0,NaN}'),
  (16, '{1,1}'), (17, '{1.0000000000000002,1}'), (18, '{3,4}'), (19, '{3.0000000000000004,4}'), (20, '{1e16,1}'),
  (21, '{1e16,3}');
SELECT eps, count(t) AS matches, count(*) - count(g) AS missing, count(*) - count(t) AS extra
FROM unnest('{0,5e-324,1e-170,1e-160,2.2e-16,1,5,1e16,1e154,1e308,1.7e308}'::float8[]) eps, LATERAL (
  SELECT t, g
  FROM (SELECT a.id::bigint AS id1, b.id::bigint AS id2 FROM extreme a, extreme b WHERE a.v <-> b.v <= eps) t
  FULL JOIN gpu_selfjoin('extreme', eps) g ON (t.id1, t.id2) = (g.id1, g.id2)) tg
GROUP BY eps ORDER BY eps;

-- float4 is widened exactly: 0.1 and 0.7 differ by 0.6 in float8, by a little less in float4.
CREATE TABLE narrow (id int PRIMARY KEY, v float4[]);
CREATE TABLE wide (id int PRIMARY KEY, v float8[]);
INSERT INTO narrow VALUES (1, '{0.1}'), (2, '{0.7}');
INSERT INTO wide VALUES (1, '{0.1}'), (2, '{0.7}');
SELECT * FROM gpu_selfjoin_distance('narrow', 1, pairs => 'unordered');
SELECT * FROM gpu_selfjoin_distance('wide', 1, pairs => 'unordered');
SELECT * FROM gpu_join_distance('narrow', 'narrow', 0.1) ORDER BY 1, 2;
SELECT * FROM gpu_join_distance('narrow', 'wide', 0.1) ORDER BY 1, 2;
SELECT n.id, w.id, n.v::float8[] <-> w.v AS distance FROM narrow n, wide w WHERE n.v::float8[] <-> w.v <= 0.1 ORDER BY 1, 2;

-- Two tables.
CREATE TABLE other3 (id int PRIMARY KEY, v float8[]);
INSERT INTO other3 SELECT i, ARRAY[i * 41 % 97 / 97.0, i * 67 % 89 / 89.0, i * 73 % 83 / 83.0]
  FROM generate_series(1, 120) i;
SELECT measure('scatter3', 'other3');
SELECT metric, eps, c.* FROM unnest('{l2,l1,linf}'::text[]) metric, unnest('{0,0.05,0.4}'::float8[]) eps,
  compare_two('scatter3', 'other3', eps, metric) c ORDER BY 1, 2;
SELECT count(*) FROM gpu_join('few', 'wide', 100);
TRUNCATE few;
SELECT count(*) FROM gpu_join('few', 'other3', 100);
SELECT count(*) FROM gpu_join('other3', 'few', 100);

-- NULL arguments: the required ones mean no rows, the others their defaults.
SELECT count(*) FROM gpu_selfjoin(NULL, 1);
SELECT count(*) FROM gpu_selfjoin('lattice', NULL);
SELECT count(*) FROM gpu_selfjoin('lattice', 0, NULL, NULL, NULL, NULL);
SELECT count(*) FROM gpu_join('lattice', NULL, 1);
SELECT count(*) FROM gpu_join('lattice', 'lattice', 0, NULL, NULL, NULL, NULL, NULL);

DROP SCHEMA range_join CASCADE;
