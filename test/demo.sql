-- What make demo shows. Run by test/demo, which sets :data (the name of the file that standard input
-- holds, or nothing) and :eps.

\pset footer off
CREATE EXTENSION gpujoin;
CREATE TABLE points (id int PRIMARY KEY, v float8[] NOT NULL);

SELECT :'data' <> '' AS has_data \gset
\if :has_data
  \echo Points: :data
  CREATE TEMP TABLE lines (id int GENERATED ALWAYS AS IDENTITY, line text);
  \copy lines (line) FROM pstdin
  INSERT INTO points SELECT id, string_to_array(line, ',')::float8[] FROM lines;
\else
  -- 50 Gaussian clusters of 2,000 points each (Box-Muller), the same in every run.
  \echo 'Points: generated, 50 clusters in a square of 100 x 100 (make demo DATA=points.csv takes yours)'
  SELECT setseed(0.5) \g /dev/null
  CREATE TEMP TABLE clusters AS SELECT i, 100 * random() AS x, 100 * random() AS y FROM generate_series(0, 49) i;
  INSERT INTO points
  SELECT n, ARRAY[x + r * cos(phi), y + r * sin(phi)]
  FROM (SELECT n, sqrt(-2 * ln(1 - random())) AS r, 2 * pi() * random() AS phi
        FROM generate_series(1, 100000) n) gauss
  JOIN clusters ON i = n % 50;
\endif
VACUUM ANALYZE points;
SELECT count(*) AS points, array_length(min(v), 1) AS dimensions FROM points;

\set ECHO queries
\timing on
SELECT count(*) FROM gpu_selfjoin('points', :eps);
SELECT * FROM gpu_selfjoin_distance('points', :eps) LIMIT 5;
EXPLAIN (ANALYZE) SELECT count(*) FROM gpu_selfjoin('points', :eps);
SELECT count(*) FROM points a JOIN points b ON a.v <-> b.v <= :eps WHERE a.id < b.id;
EXPLAIN (COSTS OFF) SELECT count(*) FROM points a JOIN points b ON a.v <-> b.v <= :eps WHERE a.id < b.id;
\timing off
\x on
SELECT * FROM gpu_last_join();
\x off
SELECT * FROM gpu_devices();
\set ECHO none

SELECT count(*) = 1 AND (SELECT max(array_length(v, 1)) <= 100 FROM points) AS has_cube
FROM pg_available_extensions WHERE name = 'cube' \gset
\if :has_cube
  \echo 'The same with what PostgreSQL has on board, the cube extension and its GiST index:'
  CREATE EXTENSION cube;
  CREATE TABLE cubes AS SELECT id, cube(v) AS c FROM points;
  CREATE INDEX ON cubes USING gist (c);
  VACUUM ANALYZE cubes;
  SELECT array_length(min(v), 1) AS dims FROM points \gset

  SELECT clock_timestamp() AS t0 \gset
  SELECT count(*) AS gpujoin_pairs FROM gpu_selfjoin('points', :eps) \gset
  SELECT clock_timestamp() AS t1, read_ms + index_ms + join_ms AS join_ms FROM gpu_last_join() \gset
  SET gpujoin.enable_customscan = off;
  \set ECHO queries
  SELECT count(*) AS cube_pairs FROM cubes a, cubes b
  WHERE a.c <@ cube_enlarge(b.c, :eps, :dims) AND a.c <-> b.c <= :eps \gset
  \set ECHO none
  SELECT timestamptz :'t1' - :'t0' AS gpujoin_time, clock_timestamp() - :'t1' AS cube_time \gset
  SELECT method, pairs, round(extract(epoch FROM took), 3) AS seconds,
         round(extract(epoch FROM interval :'cube_time') / extract(epoch FROM took), 1) AS times_faster
  FROM (VALUES ('cube + GiST', :cube_pairs, interval :'cube_time'),
               ('gpujoin', :gpujoin_pairs, interval :'gpujoin_time'),
               ('- of which reading, index, join', :gpujoin_pairs, :join_ms * interval '1 ms'))
       timing(method, pairs, took);
\endif
