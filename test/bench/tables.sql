-- The tables of the benchmark's SQL part. Run by test/bench/run, which sets :data (the name of the file of
-- two columns that standard input holds, or nothing) and, when PostGIS is to be had, :postgis.

CREATE EXTENSION gpujoin;
CREATE EXTENSION cube;
CREATE TABLE points (id int PRIMARY KEY, v float8[] NOT NULL);

SELECT :'data' <> '' AS has_data \gset
\if :has_data
  CREATE TEMP TABLE lines (id int GENERATED ALWAYS AS IDENTITY, line text);
  \copy lines (line) FROM pstdin
  INSERT INTO points SELECT id, string_to_array(line, ',')::float8[] FROM lines;
\else
  -- 50 Gaussian clusters of 2,000 points each, the same in every run.
  SELECT setseed(0.5) \g /dev/null
  CREATE TEMP TABLE clusters AS SELECT i, 100 * random() AS x, 100 * random() AS y FROM generate_series(0, 49) i;
  INSERT INTO points
  SELECT n, ARRAY[x + r * cos(phi), y + r * sin(phi)]
  FROM (SELECT n, sqrt(-2 * ln(1 - random())) AS r, 2 * pi() * random() AS phi
        FROM generate_series(1, 100000) n) gauss
  JOIN clusters ON i = n % 50;
\endif

-- Each contender has a table of its own, with nothing in it but what it needs.
CREATE TABLE cubes AS SELECT id, cube(v) AS c FROM points;
CREATE INDEX ON cubes USING gist (c);
CREATE TABLE native_points AS SELECT id, point(v[1], v[2]) AS p FROM points;
CREATE INDEX ON native_points USING gist (p);
\if :postgis
  CREATE EXTENSION postgis;
  CREATE TABLE geometries AS SELECT id, ST_MakePoint(v[1], v[2]) AS g FROM points;
  CREATE INDEX ON geometries USING gist (g);
\endif

-- Every 20th point, for what has to compare each point with each.
CREATE TABLE few_points (id int PRIMARY KEY, v float8[] NOT NULL);
INSERT INTO few_points SELECT id, v FROM points WHERE id % 20 = 0;
-- A million points, for how fast tables are read.
CREATE TABLE many_points (id int PRIMARY KEY, v float8[] NOT NULL);
SELECT setseed(0.5) \g /dev/null
INSERT INTO many_points SELECT n, ARRAY[random(), random()] FROM generate_series(1, 1000000) n;

VACUUM ANALYZE;
