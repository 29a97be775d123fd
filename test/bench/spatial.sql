-- The tables of the benchmark's spatial part. Run by test/bench/run in the project's folder, which sets :data when
-- earthquakes and ZIP codes are to be had, and :postgis when it is.

CREATE EXTENSION gpujoin;
CREATE EXTENSION cube;

-- Squares at random places of the unit square; their areas add up to the density.
CREATE FUNCTION squares(rows int, density float8) RETURNS TABLE (id int, b box) LANGUAGE sql AS $$
  SELECT i, box(point(x, y), point(x + side, y + side))
  FROM (SELECT i, random() AS x, random() AS y, sqrt(density / rows) AS side FROM generate_series(1, rows) i) s $$;

\if :data
  CREATE TEMP TABLE quake_lines (date text, y float8, x float8, magnitude float8);
  CREATE TEMP TABLE zip_lines (zip_code text, y float8, x float8, city text, state text, county text);
  \copy quake_lines FROM PROGRAM 'gzip -dc ../shared/data/earthquakes-23k.csv.gz' (FORMAT csv, HEADER)
  \copy zip_lines FROM PROGRAM 'gzip -dc ../shared/data/us-zipcodes.csv.gz' (FORMAT csv, HEADER)

  -- Longitude and latitude, and a score: an earthquake's is its magnitude, a ZIP code's its latitude.
  CREATE TABLE quakes (id int PRIMARY KEY, v float8[] NOT NULL, s float8 NOT NULL);
  CREATE TABLE zips (LIKE quakes INCLUDING ALL);
  INSERT INTO quakes SELECT row_number() OVER (), ARRAY[x, y], magnitude FROM quake_lines;
  INSERT INTO zips SELECT row_number() OVER (), ARRAY[x, y], y FROM zip_lines;

  -- Boxes around them: an earthquake's is 1 degree wide and high, a ZIP code's 0.1.
  CREATE TABLE quakes_bounds AS
    SELECT id, v[1] - 0.5 AS x0, v[2] - 0.5 AS y0, v[1] + 0.5 AS x1, v[2] + 0.5 AS y1 FROM quakes;
  CREATE TABLE zips_bounds AS
    SELECT id, v[1] - 0.05 AS x0, v[2] - 0.05 AS y0, v[1] + 0.05 AS x1, v[2] + 0.05 AS y1 FROM zips;

  -- Each contender has a table of its own, with nothing in it but what it needs.
  CREATE TABLE quakes_box AS SELECT id, box(point(x0, y0), point(x1, y1)) AS area FROM quakes_bounds;
  CREATE TABLE zips_box AS SELECT id, box(point(x0, y0), point(x1, y1)) AS area FROM zips_bounds;
  CREATE INDEX ON quakes_box USING gist (area);
  CREATE INDEX ON zips_box USING gist (area);
  CREATE TABLE quakes_cube AS SELECT id, cube(ARRAY[x0, y0], ARRAY[x1, y1]) AS area FROM quakes_bounds;
  CREATE TABLE zips_cube AS SELECT id, cube(ARRAY[x0, y0], ARRAY[x1, y1]) AS area FROM zips_bounds;
  CREATE INDEX ON quakes_cube USING gist (area);
  CREATE INDEX ON zips_cube USING gist (area);
  \if :postgis
    CREATE EXTENSION postgis;
    CREATE TABLE quakes_point AS SELECT id, ST_MakePoint(v[1], v[2]) AS p, s FROM quakes;
    CREATE TABLE zips_point AS SELECT id, ST_MakePoint(v[1], v[2]) AS p, s FROM zips;
    CREATE INDEX ON quakes_point USING gist (p);
    CREATE INDEX ON zips_point USING gist (p);
    CREATE TABLE quakes_geometry AS SELECT id, ST_MakeEnvelope(x0, y0, x1, y1) AS area FROM quakes_bounds;
    CREATE TABLE zips_geometry AS SELECT id, ST_MakeEnvelope(x0, y0, x1, y1) AS area FROM zips_bounds;
    CREATE INDEX ON quakes_geometry USING gist (area);
    CREATE INDEX ON zips_geometry USING gist (area);
  \endif

  -- Every 40th earthquake, for what has to compare each with each.
  CREATE TABLE few_quakes (LIKE quakes INCLUDING ALL);
  INSERT INTO few_quakes SELECT * FROM quakes WHERE id % 40 = 0;
  CREATE TABLE few_quakes_bounds AS SELECT * FROM quakes_bounds WHERE id % 40 = 0;
  CREATE TABLE few_quakes_box AS SELECT * FROM quakes_box WHERE id % 40 = 0;
\endif

VACUUM ANALYZE;
