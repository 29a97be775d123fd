-- What the clients ask about, and what they must be told: the table expected comes from plain SQL without the node.
CREATE EXTENSION gpujoin;
CREATE TABLE points (id bigint PRIMARY KEY, region text NOT NULL, v float8[] NOT NULL);
INSERT INTO points
  SELECT i, 'region ' || i % 4, ARRAY[hashint4(i) / 6e7, hashint4(-i) / 6e7] FROM generate_series(1, 1000) i;
CREATE VIEW pairs AS
  SELECT a.id AS id1, b.id AS id2, a.v <-> b.v AS distance, a.region
  FROM points a JOIN points b ON a.id < b.id AND a.v <-> b.v <= 6;

-- All within 9 of each other: 3.6 G pairs, which no client waits for.
CREATE TABLE crowd (id bigint PRIMARY KEY, v float8[] NOT NULL);
INSERT INTO crowd SELECT i, ARRAY[sin(i), cos(i * 7)] FROM generate_series(1, 60000) i;
ANALYZE;

SET gpujoin.enable_customscan = off;
CREATE TABLE expected AS
  SELECT radius, a.region, count(*) AS pairs, sum(a.id * 31 + b.id)::bigint AS ids
  FROM (VALUES (4.5), (6), (9)) AS radii (radius) JOIN (points a JOIN points b ON a.id < b.id) ON a.v <-> b.v <= radius
  GROUP BY radius, a.region;
