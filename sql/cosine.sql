-- Joins by cosine distance against plain SQL: every function and choice of pairs, on data that hurts.
SET client_min_messages = warning;
CREATE SCHEMA cosine;
SET search_path = cosine, public;

-- The definition, written once more in another language, whose arithmetic stops where a product overflows, or
-- underflows to zero.
CREATE FUNCTION cosine(a float8[], b float8[]) RETURNS float8 IMMUTABLE STRICT LANGUAGE plpgsql AS $$
DECLARE
  dot float8 := 0;
  aa float8 := 0;
  bb float8 := 0;
  norms float8;
BEGIN
  FOR i IN 1 .. array_length(a, 1) LOOP
    dot := dot + a[i] * b[i];
    aa := aa + a[i] * a[i];
    bb := bb + b[i] * b[i];
  END LOOP;
  norms := sqrt(aa) * sqrt(bb);
  IF norms = 0 OR norms >= 'Infinity' THEN RETURN 'NaN'; END IF;
  RETURN 1 - greatest(-1, least(1, dot / norms));
EXCEPTION WHEN numeric_value_out_of_range THEN
  RETURN 'NaN';
END $$;

CREATE TABLE truth (l regclass, r regclass, id1 bigint, id2 bigint, distance float8);
CREATE FUNCTION measure(l regclass, r regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('INSERT INTO truth SELECT $1, $2, a.id, b.id, cosine(a.v, b.v) FROM %s a, %s b', l, r) USING l, r;
END $$;

-- How many pairs there are, and how many rows are missing or too many in what the functions return.
CREATE FUNCTION compare_self(tbl regclass, eps float8, pairs text,
                             OUT matches bigint, OUT missing bigint, OUT extra bigint) LANGUAGE sql AS $$
  WITH t AS (SELECT t.id1, t.id2, t.distance FROM truth t WHERE t.l = tbl AND t.r = tbl AND t.distance <= eps
             AND (pairs = 'all' OR (pairs = 'distinct' AND t.id1 <> t.id2) OR (pairs = 'unordered' AND t.id1 < t.id2))),
  g AS (SELECT g.id1, g.id2, g.distance FROM gpu_selfjoin_distance(tbl, eps, metric => 'cosine', pairs => $3) g
        UNION ALL SELECT g.id1, g.id2, NULL FROM gpu_selfjoin(tbl, eps, metric => 'cosine', pairs => $3) g),
  both_ways AS (SELECT * FROM t UNION ALL SELECT t.id1, t.id2, NULL FROM t)
  SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM (TABLE both_ways EXCEPT ALL TABLE g) d),
         (SELECT count(*) FROM (TABLE g EXCEPT ALL TABLE both_ways) d) $$;
CREATE FUNCTION compare_two(l regclass, r regclass, eps float8,
                            OUT matches bigint, OUT missing bigint, OUT extra bigint) LANGUAGE sql AS $$
  WITH t AS (SELECT t.id1, t.id2, t.distance FROM truth t WHERE t.l = $1 AND t.r = $2 AND t.distance <= eps),
  g AS (SELECT g.id1, g.id2, g.distance FROM gpu_join_distance($1, $2, eps, metric => 'cosine') g
        UNION ALL SELECT g.id1, g.id2, NULL FROM gpu_join($1, $2, eps, metric => 'cosine') g),
  both_ways AS (SELECT * FROM t UNION ALL SELECT t.id1, t.id2, NULL FROM t)
  SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM (TABLE both_ways EXCEPT ALL TABLE g) d),
         (SELECT count(*) FROM (TABLE g EXCEPT ALL TABLE both_ways) d) $$;

-- Directions of a lattice: parallel vectors of many lengths, opposite ones, right angles, and the zero vector.
CREATE TABLE lattice (id int PRIMARY KEY, v float8[]);
INSERT INTO lattice SELECT i, ARRAY[i % 11 - 5, i / 11 - 5] FROM generate_series(0, 120) i;
SELECT measure('lattice', 'lattice');
SELECT eps, pairs, c.* FROM unnest('{0,1e-15,0.01,1,1.9,2,3,1e300}'::float8[]) eps,
  unnest('{all,distinct,unordered}'::text[]) pairs, compare_self('lattice', eps, pairs) c
ORDER BY 1, 2;

-- Scattered points of three and of twenty dimensions, of lengths from 1e-9 to 1e9; float4 too.
CREATE TABLE scatter3 (id int PRIMARY KEY, v float8[]);
CREATE TABLE scatter20 (id int PRIMARY KEY, v float8[]);
CREATE TABLE narrow20 (id int PRIMARY KEY, v float4[]);
INSERT INTO scatter3 SELECT i, ARRAY(SELECT ('1e' || i * 7 % 19 - 9)::float8 * (i * (31 + 2 * d) % 97 / 97.0 - 0.5)
                                     FROM generate_series(1, 3) d ORDER BY d) FROM generate_series(1, 130) i;
INSERT INTO scatter20 SELECT i, ARRAY(SELECT ('1e' || i * 7 % 19 - 9)::float8 * (i * (31 + 2 * d) % 97 / 97.0 - 0.3)
                                      FROM generate_series(1, 20) d ORDER BY d) FROM generate_series(1, 90) i;
INSERT INTO narrow20 SELECT id, v::float4[] FROM scatter20;
SELECT measure(tbl, tbl) FROM unnest('{scatter3,scatter20,narrow20}'::regclass[]) tbl;
SELECT tbl, eps, pairs, c.* FROM unnest('{scatter3,scatter20,narrow20}'::text[]) tbl,
  unnest('{0,0.02,0.5}'::float8[]) eps, unnest('{all,unordered}'::text[]) pairs,
  compare_self(tbl::regclass, eps, pairs) c
ORDER BY 1, 2, 3;

-- A radius that is a pair's distance.
SELECT count(*), sum(matches) > 0 AS some, sum(missing) AS missing, sum(extra) AS extra
FROM (SELECT distance, row_number() OVER (ORDER BY distance) AS n
      FROM (SELECT DISTINCT distance FROM truth WHERE l = 'scatter3'::regclass AND distance >= 0) t) t,
     compare_self('scatter3', distance, 'all') c
WHERE n % 400 = 0;

-- Vectors without a direction, and some that hardly have one.
CREATE TABLE odd (id int PRIMARY KEY, v float8[]);
INSERT INTO odd VALUES (1, '{0,0}'), (2, '{-0,0}'), (3, NULL), (4, '{NaN,1}'), (5, '{Infinity,1}'), (6, '{1e200,1e200}'),
  (7, '{1e-200,1e-200}'), (8, '{1e150,1e150}'), (9, '{1e-150,1e-150}'), (10, '{1,1}'), (11, '{-1,-1}'), (12, '{1,-1}'),
  (13, '{3e-160,4e-160}'), (14, '{3,4}');
SELECT measure('odd', 'odd');
SELECT eps, c.* FROM unnest('{0,1e-15,0.1,1,2,5}'::float8[]) eps, compare_self('odd', eps, 'all') c ORDER BY 1;
SELECT * FROM gpu_selfjoin('odd', 0.5, metric => 'cosine', pairs => 'unordered') ORDER BY 1, 2;

-- Two tables.
CREATE TABLE three (id int PRIMARY KEY, v float8[]);
INSERT INTO three SELECT i, ARRAY[i * 41 % 97 - 48, i * 67 % 89 - 44, i * 73 % 83 - 41] FROM generate_series(1, 120) i;
SELECT measure('scatter3', 'three'), measure('three', 'scatter3'), measure('lattice', 'odd');
SELECT l, r, eps, c.* FROM (VALUES ('scatter3', 'three'), ('three', 'scatter3'), ('lattice', 'odd')) t(l, r),
  unnest('{0,0.05,1,2}'::float8[]) eps, compare_two(l::regclass, r::regclass, eps) c
ORDER BY 1, 2, 3;

-- A row a point.
SELECT count(*) AS rows, sum(cardinality(neighbors)) AS pairs,
  bool_and(distances = (SELECT coalesce(array_agg(d ORDER BY d), '{}') FROM unnest(distances) d)) AS sorted
FROM gpu_neighbors('lattice', 0.01, metric => 'cosine');
SELECT count(*) FROM (
  SELECT id, u.* FROM gpu_neighbors('lattice', 0.01, metric => 'cosine'), unnest(neighbors, distances) u
  EXCEPT ALL
  SELECT * FROM gpu_selfjoin_distance('lattice', 0.01, metric => 'cosine', pairs => 'distinct')) d;

-- Columns and points.
CREATE TABLE places (id int PRIMARY KEY, x float8, y real, p point);
INSERT INTO places VALUES (1, 1, 2, '(1,2)'), (2, 2, 4, '(2,4)'), (3, -2, 1, '(-2,1)'), (4, 0, 0, '(0,0)');
SELECT * FROM gpu_selfjoin_distance('places', 1, vector_columns => '{x,y}', metric => 'cosine', pairs => 'unordered')
ORDER BY 1, 2;
SELECT * FROM gpu_selfjoin_distance('places', 1, vector_columns => '{p}', metric => 'cosine', pairs => 'unordered')
ORDER BY 1, 2;

-- Every knob gives the same.
SET gpujoin.index = none;
SELECT * FROM compare_self('scatter20', 0.5, 'all');
SET gpujoin.index = grid;
SET gpujoin.indexed_dimensions = 4;
SELECT * FROM compare_self('scatter20', 0.5, 'all');
SET gpujoin.access_pattern = unicomp;
SET gpujoin.batch_pairs = 7;
SELECT * FROM compare_self('scatter20', 0.5, 'distinct');
RESET gpujoin.index;
RESET gpujoin.indexed_dimensions;
RESET gpujoin.access_pattern;
RESET gpujoin.batch_pairs;

-- What is said of it. Estimates come from the statistics; of columns apart these tell nothing.
SELECT count(*) FROM gpu_selfjoin('scatter20', 0.5, metric => 'cosine', pairs => 'distinct');
SELECT function, metric, pair_selection, eps, pairs FROM gpu_last_join();
EXPLAIN (COSTS OFF) SELECT * FROM gpu_selfjoin('lattice', 0.5, metric => 'cosine');
CREATE FUNCTION estimate(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  RETURN plan->0->'Plan'->>'Plan Rows';
END $$;
ANALYZE lattice, places;
SELECT eps, r BETWEEN 0.5 * n AND 2 * n AS near FROM unnest('{0.01,0.5,1,2}'::float8[]) eps,
  estimate(format($$ SELECT * FROM gpu_selfjoin('lattice', %s, metric => 'cosine') $$, eps)) r,
  LATERAL (SELECT count(*) AS n FROM gpu_selfjoin('lattice', eps, metric => 'cosine')) c;
SELECT estimate($$ SELECT * FROM gpu_selfjoin('places', 1, vector_columns => '{x,y}', metric => 'cosine') $$);

-- Bad input.
SELECT * FROM gpu_selfjoin('lattice', 0.5, metric => 'cosinus');
SELECT * FROM gpu_selfjoin('lattice', -0.5, metric => 'cosine');
SELECT * FROM gpu_join('lattice', 'scatter3', 0.5, metric => 'cosine');

DROP SCHEMA cosine CASCADE;
