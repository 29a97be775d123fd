-- The town of the guide's pictures, the same in every run, and what queries make of it: docs/pictures/{flats,cafes,rents,best}.csv,
-- written to :folder. The server has gpujoin; make pictures draws what they hold.
--
--   psql -v folder=docs/pictures -f test/bench/maps.sql
\set ON_ERROR_STOP 1
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpujoin;

-- Six quarters and what lies between them, in a square of 10 x 10. Rents fall with the distance from its middle.
CREATE TEMP VIEW numbers AS
  SELECT i, i % 7 AS quarter, (hashint4(3 * i) / 4294967296.0 + 0.5)::float8 AS u1, (hashint4(3 * i + 1) / 4294967296.0 + 0.5)::float8 AS u2,
    (hashint4(3 * i + 2) / 4294967296.0 + 0.5)::float8 AS u3
  FROM generate_series(1, 1400) i;
CREATE TEMP VIEW places AS
  SELECT i AS id, u3, x, y FROM numbers, LATERAL (SELECT sqrt(-2 * ln(u1)) * (0.25 + quarter / 12.0) AS r, 2 * pi() * u2 AS phi) bell, LATERAL (SELECT
    round((CASE quarter WHEN 6 THEN 10 * u1 ELSE 5 + 3.2 * cos(quarter) + r * cos(phi) END)::numeric, 3)::float8 AS x,
    round((CASE quarter WHEN 6 THEN 10 * u2 ELSE 5 + 3.2 * sin(quarter) + r * sin(phi) END)::numeric, 3)::float8 AS y) place;
CREATE TEMP TABLE flats AS SELECT id, x, y, round(1500 - 120 * sqrt((x - 5) ^ 2 + (y - 5) ^ 2) + 300 * u3) AS rent FROM places WHERE id <= 1200;
CREATE TEMP TABLE cafes AS SELECT id, x, y, round((1 + 4 * u3)::numeric, 1)::float8 AS stars FROM places WHERE id > 1200;
CREATE TEMP TABLE raster AS SELECT i / 5.0::float8 AS x, j / 5.0::float8 AS y FROM generate_series(0, 50) i, generate_series(0, 50) j;
ANALYZE flats, cafes, raster;

COPY (SELECT x, y, rent, cluster FROM flats JOIN gpu_dbscan('flats', 0.3, min_points => 8, id_column => 'id', vector_columns => 'x,y') USING (id)
  ORDER BY id) TO STDOUT CSV HEADER \g :folder/flats.csv
COPY (SELECT x, y, stars FROM cafes ORDER BY id) TO STDOUT CSV HEADER \g :folder/cafes.csv
COPY (SELECT r.x, r.y, round(avg(f.rent)) AS rent FROM raster r JOIN flats f ON point(r.x, r.y) <-> point(f.x, f.y) <= 0.6
  GROUP BY r.x, r.y ORDER BY r.x, r.y) TO STDOUT CSV HEADER \g :folder/rents.csv
COPY (SELECT f.x AS x1, f.y AS y1, c.x AS x2, c.y AS y2, score
  FROM gpu_topk_join('flats', 'cafes', eps => 0.5, k => 12, left_id_column => 'id', right_id_column => 'id', left_vector_columns => 'x,y',
    right_vector_columns => 'x,y', left_score_column => 'rent', right_score_column => 'stars', weights => '{-1,200}')
  JOIN flats f ON f.id = id1 JOIN cafes c ON c.id = id2 ORDER BY score DESC, id1, id2) TO STDOUT CSV HEADER \g :folder/best.csv
