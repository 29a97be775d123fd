-- What make demo shows. Run by test/demo, which sets :has_data where the table points is there (see demo_points.sql),
-- and :eps, a distance or nothing.

\pset footer off
CREATE EXTENSION gpujoin;
\if :has_data
\else
  -- 50 Gaussian clusters of 2,000 points each (Box-Muller), the same in every run.
  \echo 'Points: generated, 50 clusters in a square of 100 x 100 (make demo DATA=points.csv takes yours)'
  CREATE TABLE points (id bigint PRIMARY KEY, v float8[] NOT NULL);
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

SELECT :'eps' = '' AS is_free \gset
\if :is_free
  -- Among the distances of some points to many: the one that leaves ten of all to each, or the least there is; two digits.
  SELECT setseed(0.5) \g /dev/null
  SET gpujoin.enable_customscan = off;
  CREATE TEMP VIEW distances AS
  SELECT a.v <-> b.v AS d
  FROM (SELECT * FROM points ORDER BY random() LIMIT 200) a JOIN (SELECT * FROM points ORDER BY random() LIMIT 50000) b ON a.id <> b.id;
  SELECT coalesce(
    (SELECT nullif(d, 0) FROM distances ORDER BY d LIMIT 1
     OFFSET (SELECT least(200, n) * least(1, 50000.0 / n) * least(10, n / 4) FROM (SELECT count(*) AS n FROM points) all_of)),
    (SELECT min(d) FROM distances WHERE d > 0), 1)::numeric AS distance \gset
  RESET gpujoin.enable_customscan;
  SELECT trim_scale(round(:distance, 1 - floor(log(:distance))::int)) AS eps \gset
  \echo Distance: :eps - for some ten neighbours a row, fewer in a small table. EPS=... sets another.
\endif
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

SELECT count(*) = 1 AND (SELECT max(array_length(v, 1)) <= 100 AND count(*) <= 1e6 FROM points) AS has_cube
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
  SET statement_timeout = '60s';
  \set ON_ERROR_STOP 0
  \set ECHO queries
  SELECT count(*) AS cube_pairs FROM cubes a, cubes b
  WHERE a.c <@ cube_enlarge(b.c, :eps, :dims) AND a.c <-> b.c <= :eps \gset
  \set cube_failed :ERROR
  \set ON_ERROR_STOP 1
  \set ECHO none
  \if :cube_failed
    \echo 'That was stopped after a minute.' :gpujoin_pairs 'pairs took gpujoin' :join_ms 'ms.'
    \quit
  \endif
  SELECT timestamptz :'t1' - :'t0' AS gpujoin_time, clock_timestamp() - :'t1' AS cube_time \gset
  SELECT method, pairs, round(extract(epoch FROM took), 3) AS seconds,
         round(extract(epoch FROM interval :'cube_time') / extract(epoch FROM took), 1) AS times_faster
  FROM (VALUES ('cube + GiST', :cube_pairs, interval :'cube_time'),
               ('gpujoin', :gpujoin_pairs, interval :'gpujoin_time'),
               ('- of which reading, index, join', :gpujoin_pairs, :join_ms * interval '1 ms'))
       timing(method, pairs, took);
\endif
