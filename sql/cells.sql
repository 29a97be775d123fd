-- gpu_cell() and gpu_halo(): keys of cells, and that a join on equal cells finds each pair within eps once.
SELECT gpu_cell(point(3.5, -1.5), 1) AS key, (3::bigint << 32) - 2 AS same, gpu_cell(point(0, -0.0), 1) AS origin;
SELECT gpu_cell('{3.5,-1.5,9}'::float8[], 1, 1) AS one, gpu_cell('{3.5,-1.5,9}'::float8[], 1) AS two,
  gpu_cell('{3.5,-1.5,9}'::float8[], 1, dimensions => 3) AS three;
SELECT gpu_cell('{3.5,-1.5}'::float4[], 0.5) AS f4, gpu_cell(ARRAY[3.5, -1.5], 0.5) AS numerics, gpu_cell(ARRAY[7, -3], 1) AS int4s,
  gpu_cell(ARRAY[7, -3]::int2[], 1) AS int2s, gpu_cell(ARRAY[7, -3]::int8[], 1) AS int8s;
SELECT gpu_halo(point(0.5, 0.5), 1, 0.25) AS inside, gpu_halo(point(0.75, 0.5), 1, 0.25) AS on_the_edge, gpu_halo(point(0.1, -0.1), 1, 0.25) AS corner,
  cardinality(gpu_halo(point(0.5, 0.5), 1, 3)) AS seven_squared, gpu_halo('{0.1,5,5}'::float8[], 1, 0.25, 1) AS line;
SELECT gpu_cell(NULL::point, 1), gpu_cell('{1,NULL}'::float8[], 1), gpu_halo('{1,NULL}'::float4[], 1, 1), gpu_halo(ARRAY[1, NULL, 2], 1, 1);
SELECT x, gpu_halo(point(x, 0), 1, 0) @> ARRAY[gpu_cell(point(x, 0), 1)] AS has_own
FROM unnest('{NaN,Infinity,-Infinity,1.7976931348623157e308,-1e300,5e-324}'::float8[]) x;

-- What is no point, no cell, no halo.
SELECT gpu_cell('abc'::text, 1);
SELECT gpu_cell(box '(1,1),(0,0)', 1);
SELECT gpu_cell('{}'::float8[], 1);
SELECT gpu_cell('{{1,2},{3,4}}'::float8[], 1);
SELECT gpu_cell('{{1,2},{3,4}}'::int4[], 1);
SELECT gpu_cell('{1}'::float8[], 1);
SELECT gpu_cell('{1,2}'::int4[], 1, 3);
SELECT gpu_cell(point(1, 1), 1, 4);
SELECT gpu_cell(point(1, 1), 0);
SELECT gpu_cell(point(1, 1), 'NaN');
SELECT gpu_halo(point(1, 1), 1, -1);
SELECT gpu_halo(point(1, 1), 1, 'Infinity');
SELECT gpu_halo(point(1, 1), 1, 1e6);

-- Immutable: for generated columns, indexes and keys of partitions.
CREATE TABLE places (id int PRIMARY KEY, p point, cell bigint GENERATED ALWAYS AS (gpu_cell(p, 2)) STORED,
  halo bigint[] GENERATED ALWAYS AS (gpu_halo(p, 2, 0.5)) STORED);
CREATE INDEX ON places (gpu_cell(p, 10));
INSERT INTO places SELECT i, point(i % 10, i / 10) FROM generate_series(0, 99) i;
SELECT count(*), sum(cardinality(halo)) FROM places;
SELECT provolatile, proparallel, proisstrict FROM pg_proc WHERE proname IN ('gpu_cell', 'gpu_halo');

-- Each pair once, whatever the width, the radius and the type: against the nested loop over all pairs.
SELECT setseed(0.5);
CREATE TABLE numbers AS SELECT x FROM unnest('{0,-0,1,-1,0.5,0.1,0.3,-0.3,1e-160,-1e-170,1e15,-1e15,1e-300,NaN,Infinity,-Infinity}'::float8[]) x
  UNION ALL SELECT round((random() * 8 - 4)::numeric, 1) FROM generate_series(1, 25) UNION ALL SELECT random() * 6 - 3 FROM generate_series(1, 20);
CREATE TABLE spots AS SELECT row_number() OVER ()::int AS id, ARRAY[x, y] AS v, ARRAY[CASE WHEN abs(x) < 1e-30 THEN 0 ELSE x END, CASE WHEN abs(y) < 1e-30 THEN 0 ELSE y END]::float4[] AS f, point(x, y) AS p
  FROM (SELECT a.x, b.x AS y FROM numbers a, numbers b ORDER BY random() LIMIT 400) c;
CREATE TABLE distances AS SELECT a.id AS a, b.id AS b, a.v <-> b.v AS v, a.f <-> b.f AS f, a.p <-> b.p AS p FROM spots a, spots b;
CREATE FUNCTION wrong(v text, width float8, eps float8, dims int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE wrong bigint;
BEGIN
  EXECUTE format($q$
    WITH expected AS MATERIALIZED (SELECT a, b FROM distances WHERE %1$I <= $2),
    found AS MATERIALIZED (SELECT a.id AS a, b.id AS b FROM (SELECT *, gpu_cell(%1$I, $1, $3) AS cell FROM spots) a
      JOIN (SELECT *, unnest(gpu_halo(%1$I, $1, $2, $3)) AS cell FROM spots) b ON a.cell = b.cell AND a.%1$I <-> b.%1$I <= $2)
    SELECT count(*) FROM ((TABLE expected EXCEPT ALL TABLE found) UNION ALL (TABLE found EXCEPT ALL TABLE expected)) d $q$, v)
  INTO wrong USING width, eps, dims;
  RETURN wrong;
END $$;
SELECT v, sum(wrong(v, width, eps, dims)) AS wrong FROM unnest('{v,f,p}'::text[]) v, unnest('{0.3,1,1e10}'::float8[]) width,
  unnest('{0,0.1,0.7}'::float8[]) eps, generate_series(1, 2) dims GROUP BY v ORDER BY v;
SET gpujoin.enable_customscan = off;
SELECT v, sum(wrong(v, 0.3, 0.5, 2)) AS wrong FROM unnest('{v,f,p}'::text[]) v GROUP BY v ORDER BY v;
RESET gpujoin.enable_customscan;

-- Partitioned by cell: the partitions are joined each for itself, each by the node.
CREATE TABLE points (id int, v float8[], own boolean, cell bigint) PARTITION BY HASH (cell);
CREATE TABLE points_0 PARTITION OF points FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE points_1 PARTITION OF points FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO points SELECT id, v, cell = gpu_cell(v, 5), cell
  FROM (SELECT i AS id, ARRAY[i * 0.618 % 1 * 100, i * 0.414 % 1 * 100] AS v FROM generate_series(1, 5000) i) p, unnest(gpu_halo(v, 5, 0.5)) cell;
ANALYZE points;
SET enable_partitionwise_join = on;
EXPLAIN (COSTS OFF) SELECT a.id, b.id FROM points a JOIN points b ON a.cell = b.cell AND a.v <-> b.v <= 0.5 WHERE a.own;
SELECT count(*) AS pairs, count(DISTINCT (a.id, b.id)) AS different FROM points a JOIN points b ON a.cell = b.cell AND a.v <-> b.v <= 0.5 WHERE a.own;
SELECT count(*) FROM points a JOIN points b ON a.v <-> b.v <= 0.5 WHERE a.own AND b.own;
DROP TABLE places; -- its columns depend on the extension
