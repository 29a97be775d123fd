-- One geometry of another SRID, far away or empty, changes no answer and raises no error: where PostgreSQL has a GiST index it
-- never asks PostGIS about the pairs of such a row. The right answer is that of the same table without the row.
BEGIN;
SELECT * FROM no_plan();
SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgis') AS has_postgis \gset
\if :has_postgis
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS postgis;
CREATE SCHEMA planner_srids;
SET search_path = planner_srids, public;
SET jit = off;
\ir same_rows.psql

CREATE TABLE points AS SELECT i AS id, ST_SetSRID(ST_Point(i * 37 % 41, i * 53 % 31), 4326) AS g, i % 5 * 1.0::float8 AS radius FROM generate_series(1, 200) i;
CREATE TABLE areas AS SELECT id, ST_Buffer(g, 1.5, 2) AS g, radius FROM points WHERE id % 2 = 0;
CREATE TABLE odd (name text, g geometry);
INSERT INTO odd VALUES ('an empty point', 'POINT EMPTY'), ('an empty line', 'LINESTRING EMPTY'),
  ('empty parts', 'GEOMETRYCOLLECTION(POINT EMPTY, LINESTRING EMPTY)'), ('an empty point of another SRID', 'SRID=3857;POINT EMPTY'),
  ('a far point', 'SRID=3857;POINT(5e6 5e6)'), ('a far line', 'SRID=3857;LINESTRING(5e6 5e6, 6e6 5e6, 6e6 7e6)'),
  ('a far area', ST_SetSRID(ST_MakeEnvelope(5e6, 5e6, 6e6, 6e6), 3857)),
  ('a far arc', 'SRID=3857;CIRCULARSTRING(5e6 5e6, 6e6 6e6, 7e6 5e6)'), ('a point beside all others', 'SRID=3857;POINT(150 -70)'),
  ('an infinite point', ST_MakePoint('Infinity', 200)), ('an infinite line', ST_MakeLine(ST_MakePoint('-Infinity', 200), ST_MakePoint(5, 210)));

-- %1$s is a table of points, %2$s one of areas, each with the row or without it, whose number is 0 or 1000.
CREATE TABLE queries (name text, query text);
INSERT INTO queries VALUES
  ('DWithin', 'SELECT l.id, r.id FROM %1$s l JOIN %1$s r ON ST_DWithin(l.g, r.g, 3) WHERE l.id BETWEEN 1 AND 999'),
  ('DWithin of ordered pairs', 'SELECT l.id, r.id FROM %1$s l JOIN %1$s r ON ST_DWithin(l.g, r.g, 3) AND l.id < r.id'),
  ('DWithin, radii of rows', 'SELECT l.id, r.id FROM %1$s l JOIN %1$s r ON ST_DWithin(l.g, r.g, l.radius) WHERE l.id BETWEEN 1 AND 999'),
  ('DWithin of areas', 'SELECT l.id, r.id FROM %2$s l JOIN %1$s r ON ST_DWithin(l.g, r.g, 1) WHERE l.id BETWEEN 1 AND 999'),
  ('count', 'SELECT count(*) FROM %1$s l JOIN %1$s r ON ST_DWithin(l.g, r.g, 3) AND l.id <> r.id'),
  ('sums', 'SELECT l.id, count(*), sum(r.id) FROM %1$s l JOIN %1$s r ON ST_DWithin(l.g, r.g, 3) WHERE l.id BETWEEN 1 AND 999 GROUP BY l.id'),
  ('Distance', 'SELECT l.id, r.id FROM %1$s l JOIN %1$s r ON ST_Distance(l.g, r.g) <= 3 WHERE l.id BETWEEN 1 AND 999'),
  ('the first', 'SELECT l.id, r.id FROM %1$s l JOIN %1$s r ON ST_DWithin(l.g, r.g, 3) AND l.id <> r.id ORDER BY l.id * 1000 + r.id LIMIT 9'),
  ('left join', 'SELECT l.id, r.id FROM %1$s l LEFT JOIN %1$s r ON ST_DWithin(l.g, r.g, 3) WHERE l.id BETWEEN 1 AND 999'),
  ('Contains', 'SELECT l.id, r.id FROM %2$s l JOIN %1$s r ON ST_Contains(l.g, r.g) WHERE l.id BETWEEN 1 AND 999'),
  ('Within', 'SELECT l.id, r.id FROM %2$s l JOIN %1$s r ON ST_Within(r.g, l.g) WHERE l.id BETWEEN 1 AND 999'),
  ('Intersects', 'SELECT l.id, r.id FROM %2$s l JOIN %1$s r ON ST_Intersects(l.g, r.g) WHERE l.id BETWEEN 1 AND 999'),
  ('Intersects of points', 'SELECT l.id, r.id FROM %1$s l JOIN %1$s r ON ST_Intersects(l.g, r.g) WHERE l.id BETWEEN 1 AND 999'),
  ('left join on Intersects', 'SELECT l.id, count(r.id) FROM %2$s l LEFT JOIN %1$s r ON ST_Intersects(l.g, r.g) WHERE l.id BETWEEN 1 AND 999 GROUP BY 1'),
  ('exists', 'SELECT l.id FROM %1$s l WHERE l.id BETWEEN 1 AND 999 AND EXISTS (SELECT FROM %2$s r WHERE ST_Contains(r.g, l.g))'),
  ('not exists', 'SELECT l.id FROM %1$s l WHERE l.id BETWEEN 1 AND 999 AND NOT EXISTS (SELECT FROM %1$s r WHERE r.id <> l.id AND ST_DWithin(l.g, r.g, 1))'),
  ('boxes', 'SELECT l.id, r.id FROM %2$s l JOIN %1$s r ON l.g && r.g AND ST_Distance(l.g, r.g) < 1 WHERE l.id BETWEEN 1 AND 999'),
  ('nearest', 'SELECT l.id, n.id FROM %1$s l, LATERAL (SELECT r.id FROM %1$s r WHERE r.id <> l.id ORDER BY l.g <-> r.g, r.id LIMIT 3) n WHERE l.id BETWEEN 1 AND 999'),
  ('nearest areas', 'SELECT l.id, n.id FROM %1$s l, LATERAL (SELECT r.id FROM %2$s r ORDER BY l.g <-> r.g, r.id LIMIT 2) n WHERE l.id BETWEEN 1 AND 999'),
  ('nearest of few', 'SELECT l.id, n.id FROM %1$s l, LATERAL (SELECT r.id FROM %1$s r WHERE r.id %% 50 = 0 ORDER BY l.g <-> r.g, r.id LIMIT 2) n WHERE l.id BETWEEN 1 AND 999'),
  ('nearest contained', 'SELECT l.id, n.id FROM %2$s l LEFT JOIN LATERAL (SELECT r.id FROM %1$s r WHERE ST_ContainsProperly(l.g, r.g) ORDER BY l.g <-> r.g, r.id LIMIT 2) n ON true WHERE l.id BETWEEN 1 AND 999'),
  ('DWithin of boxes that meet', 'SELECT l.id, r.id FROM %2$s l JOIN %1$s r ON ST_DWithin(l.g, r.g, 1e7) AND ST_Contains(l.g, r.g) WHERE l.id BETWEEN 1 AND 999'),
  ('nearest within', 'SELECT l.id, n.id FROM %1$s l, LATERAL (SELECT r.id FROM %1$s r WHERE ST_DWithin(l.g, r.g, 4) ORDER BY l.g <-> r.g, r.id LIMIT 9) n WHERE l.id BETWEEN 1 AND 999');

CREATE FUNCTION with_row(kind text, number int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DROP TABLE IF EXISTS some_points, some_areas;
  EXECUTE format('CREATE TABLE some_points AS (SELECT * FROM points UNION ALL SELECT %2$s, g, 2 FROM odd WHERE name = %1$L) ORDER BY id', kind, number);
  EXECUTE format('CREATE TABLE some_areas AS (SELECT * FROM areas UNION ALL SELECT %2$s, g, 2 FROM odd WHERE name = %1$L) ORDER BY id', kind, number);
  ANALYZE some_points, some_areas;
END $$;

CREATE TABLE answers AS SELECT name, query, bag(format(query, 'points', 'areas')) AS answer FROM queries;
SELECT is_empty('SELECT name FROM answers WHERE cardinality(answer) = 0 OR answer[1] LIKE ''ERROR%''', 'all queries find rows');

-- The row is read first or last.
CREATE FUNCTION answers_stay(kind text, number int) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  q record;
BEGIN
  PERFORM with_row(kind, number);
  PERFORM force_node(true);
  FOR q IN SELECT name, format(query, 'some_points', 'some_areas') AS query, answer FROM answers LOOP
    IF bag(q.query) IS DISTINCT FROM q.answer THEN
      RETURN NEXT ok(false, format('%s with %s, row %s', q.name, kind, number));
      RETURN NEXT diag(format('%s rows for %s: %s', cardinality(bag(q.query)), cardinality(q.answer),
        (SELECT string_agg(t.r, ' ') FROM (SELECT unnest(bag(q.query)) EXCEPT ALL SELECT unnest(q.answer) LIMIT 5) t(r))));
    ELSIF has_node(q.query) IS DISTINCT FROM true THEN
      RETURN NEXT ok(false, format('%s with %s: by the node', q.name, kind));
    END IF;
  END LOOP;
  RETURN NEXT pass(format('all queries with %s, row %s', kind, number));
  PERFORM force_node(false);
END $$;
SELECT answers_stay(name, 0) FROM odd;
SELECT answers_stay(name, 1000) FROM odd WHERE name IN ('an empty point', 'a far line');

-- A few of them at once, of which some have a distance from each other.
CREATE TABLE several AS SELECT * FROM points UNION ALL SELECT 1000 + row_number() OVER (), g, 2 FROM odd WHERE name NOT LIKE 'an infinite%';
ANALYZE several;
SELECT force_node(true);
SELECT is(bag('SELECT l.id, r.id FROM several l JOIN several r ON ST_DWithin(l.g, r.g, 3) WHERE l.id < 1000'),
  (SELECT answer FROM answers WHERE name = 'DWithin'), 'several rows of other SRIDs');
SELECT is(bag('SELECT l.id, r.id FROM several l JOIN several r ON ST_DWithin(l.g, r.g, 3) WHERE l.id > 1000 AND r.id > 1000'),
  ARRAY(SELECT format('(%s,%s)', 1000 + l, 1000 + r) FROM unnest('{5,6,7,8,9}'::int[]) l, unnest('{5,6,7,8,9}'::int[]) r
        WHERE l = r OR l + r < 16 AND 9 NOT IN (l, r) ORDER BY format('(%s,%s)', 1000 + l, 1000 + r) COLLATE "C"), 'pairs of one other SRID');
-- An index asks for boxes that contain others.
CREATE TABLE shapes AS SELECT * FROM (VALUES (1, 'LINESTRING(3 7, 1 0)'::geometry), (2, 'POLYGON((0 0, 9 0, 9 9, 0 9, 0 0))')) t(id, g);
CREATE TABLE inside AS SELECT 1 AS id, 'SRID=4326;POINT(1 1)'::geometry AS g;
CREATE INDEX ON shapes USING gist (g);
ANALYZE shapes, inside;
SELECT is(bag(format('SELECT a.id, b.id FROM shapes a, inside b WHERE %s', clause)), '{}', 'boxes that do not contain others: ' || clause)
FROM unnest('{"ST_Covers(b.g, a.g)","ST_CoveredBy(a.g, b.g)","ST_Within(a.g, b.g)","ST_Contains(b.g, a.g) AND ST_DWithin(a.g, b.g, 50)","ST_Equals(a.g, b.g)","ST_OrderingEquals(b.g, a.g)"}'::text[]) clause, force_node(true);
INSERT INTO several SELECT 0, g, 2 FROM odd WHERE name = 'an infinite point';
SELECT is(bag('SELECT l.id, r.id FROM several l JOIN several r ON ST_Touches(l.g, r.g) WHERE l.id < 1000'), '{}', 'an infinite point among several SRIDs');

-- Where PostGIS is asked it raises its error, by the node as well.
SELECT with_row('a far point', 0);
UPDATE some_points SET g = ST_SetSRID(ST_Point(37, 22), 3857) WHERE id = 0;
SELECT force_node(true);
SELECT matches((bag(format(query, 'some_points', 'areas')))[1], 'mixed SRID', 'a near point: ' || name) FROM queries
WHERE name IN ('DWithin', 'left join', 'Intersects', 'nearest');

-- Geographies: the error is about SRIDs, too.
SELECT force_node(false);
CREATE TABLE places AS SELECT id, ST_SetSRID(ST_Point(ST_X(g) - 50, ST_Y(g) - 40), 4326)::geography AS g FROM points;
CREATE TABLE odd_places (name text, g geography);
INSERT INTO odd_places VALUES ('an empty point', 'SRID=4267;POINT EMPTY'), ('an empty line', 'SRID=4269;LINESTRING EMPTY'),
  ('a far point', 'SRID=4267;POINT(170 -60)'), ('a far point on GRS 80', 'SRID=4269;POINT(170 -60)'),
  ('a point not so far', 'SRID=4267;POINT(-50.6 -40.6)'), ('a far line', 'SRID=4267;LINESTRING(170 -60, 171 -61)'),
  ('a far line on GRS 80', 'SRID=4269;LINESTRING(170 -60, 171 -61, 171 -62)');
TRUNCATE queries;
INSERT INTO queries VALUES
  ('DWithin', 'SELECT l.id, r.id FROM %1$s l JOIN %1$s r ON ST_DWithin(l.g, r.g, 300000) WHERE l.id BETWEEN 1 AND 999'),
  ('DWithin on the sphere', 'SELECT l.id, r.id FROM %1$s l LEFT JOIN %1$s r ON ST_DWithin(l.g, r.g, 300000, false) WHERE l.id BETWEEN 1 AND 999'),
  ('nearest', 'SELECT l.id, n.id FROM %1$s l, LATERAL (SELECT r.id FROM %1$s r WHERE r.id <> l.id ORDER BY l.g <-> r.g, r.id LIMIT 2) n WHERE l.id BETWEEN 1 AND 999');
INSERT INTO queries SELECT 'short ' || name, replace(query, '300000', '40000') FROM queries WHERE query LIKE '%300000%';
CREATE TABLE place_answers AS SELECT name, query, bag(format(query, 'places')) AS answer FROM queries;
CREATE FUNCTION with_place(kind text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DROP TABLE IF EXISTS some_places;
  CREATE TABLE some_places AS SELECT * FROM places UNION ALL SELECT 0, g FROM odd_places WHERE name = kind;
  ANALYZE some_places;
  PERFORM force_node(true);
END $$;
CREATE FUNCTION places_stay(kind text) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT with_place(kind);
  SELECT ok(bag(format(query, 'some_places')) = answer, format('%s of geographies with %s', name, kind)) FROM place_answers
  WHERE kind <> 'a point not so far' OR name LIKE 'short %';
$$;
SELECT places_stay(name) FROM odd_places;

-- Rows read by blocks have points by position: a pair of such a row and a row outside the index is found.
CREATE TABLE lines AS SELECT ST_MakeLine(ST_MakePoint(1000003, 0), ST_MakePoint(3, 1000000)) AS g;
CREATE TABLE dots AS SELECT ST_MakePoint(1000000, 1000002) AS g;
SET min_parallel_table_scan_size = 0;
SELECT force_node(true);
SELECT is(count(*), 1::bigint, 'a line outside the index and a point that was read by blocks')
FROM lines a JOIN dots b ON ST_DWithin(a.g, b.g, 1e20);
\else
SELECT skip('PostGIS is not installed', 1);
\endif
SELECT * FROM finish();
ROLLBACK;
