-- LATERAL subqueries that sort by distance and keep the first few: with the node GpuSimilarityJoin and without it the same
-- rows, whatever the type, the limit, a radius, further keys, conditions, ties, NULLs and infinities. The seed is fixed.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA planner_nearest;
SET search_path = planner_nearest, public;
SET jit = off;
SET extra_float_digits = 1;

\ir same_rows.psql

CREATE FUNCTION few(i int, n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT (i::bigint * 7919 % 1009 % n)::int';
CREATE TABLE a AS
  SELECT i AS id, i % 7 AS grp, CASE WHEN i % 17 <> 0 THEN ARRAY[few(i, 23) / 2.0, few(i, 19)]::float8[] END AS v,
    ARRAY[few(i, 23) / 3.0, few(i, 19)]::float4[] AS f, point(few(i, 23) / 3.0, few(i, 19)) AS p, i % 5 / 2.0::float8 AS r,
    point(few(i, 211), few(i, 17) / 7.0) AS q
  FROM generate_series(1, 150) i;
CREATE TABLE b AS SELECT id, grp, CASE WHEN id % 13 <> 0 THEN ARRAY[v[2], v[1]] END AS v, f, p, r, q FROM a WHERE id % 3 <> 0;
CREATE TABLE hollow AS SELECT * FROM a LIMIT 0;
CREATE TABLE odd AS SELECT id, grp, CASE id % 10 WHEN 1 THEN '{NaN,1}' WHEN 2 THEN '{Infinity,0}' WHEN 3 THEN '{1e200,-1e200}'
  WHEN 4 THEN '{NULL,1}' WHEN 5 THEN '{0,0}' ELSE v END AS v, f, CASE id % 10 WHEN 1 THEN point 'NaN,1' WHEN 2 THEN point 'Infinity,0'
  ELSE p END AS p, r, q FROM a WHERE id < 60;
CREATE TABLE unknown AS SELECT id, grp, CASE WHEN id % 20 = 1 THEN v END AS v, f, CASE WHEN id % 20 = 1 THEN p END AS p, r, q FROM a;
ALTER TABLE b ADD PRIMARY KEY (id);
ALTER TABLE odd ADD PRIMARY KEY (id);
ALTER TABLE unknown ADD PRIMARY KEY (id);
SELECT bool_or(name = 'cube') AS has_cube, bool_or(name = 'postgis') AS has_postgis, bool_or(name = 'vector') AS has_vector
FROM pg_available_extensions \gset
\if :has_cube
CREATE EXTENSION IF NOT EXISTS cube;
\endif
\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
\endif
CREATE FUNCTION add_columns(type text, value text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY '{a,b,odd,unknown,hollow}'::text[] LOOP
    EXECUTE format('ALTER TABLE %s ADD %s %s', name, left(type, 1), type);
    EXECUTE format('UPDATE %s SET %s = %s', name, left(type, 1), value);
  END LOOP;
END $$;
ANALYZE a, b, odd, unknown, hollow;
CREATE TABLE distances (distance text);
INSERT INTO distances VALUES ('l.v <-> r.v'), ('r.v <-> l.v'), ('l.f <-> r.f'), ('l.p <-> r.p'), ('r.p <-> l.p'), ('l.q <-> r.q'),
  ('l.v <=> r.v'), ('gpu_distance(l.f, r.f, ''l1'')'), ('gpu_distance(l.v, r.v, ''linf'')'), ('point(l.r, l.id) <-> point(r.r, r.grp)');
\if :has_cube
SELECT add_columns('cube', 'cube(CASE WHEN array_position(v, NULL) IS NULL THEN v END)');
INSERT INTO distances VALUES ('l.c <-> r.c'), ('r.c <#> l.c'), ('l.c <=> r.c');
\endif
\if :has_postgis
SELECT add_columns('geometry', 'CASE id % 29 WHEN 4 THEN ''POINT EMPTY'' WHEN 5 THEN ST_Buffer(q::geometry, 2)
  WHEN 6 THEN ''POINT(1e39 1)'' WHEN 7 THEN ST_Collect(q::geometry, p::geometry) WHEN 8 THEN ''CIRCULARSTRING(3 1, 5 4, 9 2)'' WHEN 9 THEN ''POLYGON EMPTY''
  WHEN 10 THEN ''GEOMETRYCOLLECTION(POINT(20 3), LINESTRING(4 4, 8 1))'' WHEN 11 THEN ''POINT Z (12 3 50)'' WHEN 12 THEN ''MULTIPOLYGON(EMPTY)''
  WHEN 13 THEN ''LINESTRING(-1e35 0, 1e35 0)'' ELSE q::geometry END');
-- Lines and areas alone, a few of them wide.
CREATE FUNCTION add_shapes() RETURNS void LANGUAGE plpgsql AS $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY '{a,b,odd,unknown,hollow}'::text[] LOOP
    EXECUTE format('ALTER TABLE %s ADD h geometry', name);
    EXECUTE format('UPDATE %s SET h = CASE WHEN id %% 40 = 3 THEN ST_Expand(q::geometry, 60) WHEN id %% 31 <> 0 THEN
      CASE id %% 3 WHEN 0 THEN ST_Expand(q::geometry, r) WHEN 1 THEN ST_MakeLine(q::geometry, ST_Translate(q::geometry, r, 1)) ELSE ST_Buffer(q::geometry, r / 3 + 0.1, 2) END END', name);
  END LOOP;
END $$;
SELECT add_shapes();
INSERT INTO distances VALUES ('l.g <-> r.g'), ('ST_Distance(l.g, r.g)'), ('r.g <-> l.g'), ('l.h <-> r.h'), ('ST_Distance(r.h, l.h)'), ('l.g <-> r.h'), ('ST_Distance(l.h, r.g)');
\endif
\if :has_vector
CREATE EXTENSION IF NOT EXISTS vector;
INSERT INTO distances VALUES ('l.f::vector <-> r.f::vector'), ('l.f::vector <=> r.f::vector');
\endif

-- The forms.
SELECT same_rows(query, uses_node, query) FROM (VALUES
  ('SELECT a.id, s.id, s.d FROM a CROSS JOIN LATERAL (SELECT b.id, a.v <-> b.v AS d FROM b ORDER BY a.v <-> b.v, b.id LIMIT 3) s', true),
  ('SELECT a.id, s.* FROM a, LATERAL (SELECT * FROM b ORDER BY b.p <-> a.p, id DESC LIMIT 4) s WHERE a.id < 90 AND s.grp <> 2', true),
  ('SELECT a.id, s.id, s.d, s.x FROM a LEFT JOIN LATERAL (SELECT b.id, a.v <-> b.v AS d, a.grp + b.grp AS x FROM b WHERE b.grp <> 3 AND a.v <-> b.v < 2
    ORDER BY a.v <-> b.v, b.id LIMIT 3) s ON true', true),
  ('SELECT a.id, s.id FROM a LEFT JOIN LATERAL (SELECT b.id, a.p <-> b.p AS d FROM b ORDER BY a.p <-> b.p, b.id LIMIT 3) s ON s.d < 1 AND s.id <> a.id', true),
  ('SELECT a.id, s.id FROM a LEFT JOIN LATERAL (SELECT b.id, a.p <-> b.p AS d FROM b ORDER BY d, b.id LIMIT 3) s ON true WHERE s.id IS NULL OR s.d > 1', true),
  ('SELECT a.id, s.id FROM a JOIN LATERAL (SELECT b.id FROM b WHERE b.id <> a.id ORDER BY a.v <-> b.v, b.id LIMIT 2) s ON true', true),
  ('SELECT a.id, s.id FROM a JOIN LATERAL (SELECT b.id FROM b WHERE b.grp = a.grp ORDER BY a.v <-> b.v, b.id LIMIT 2) s ON true', true),
  ('SELECT a.id, s.id FROM a JOIN LATERAL (SELECT b.id FROM b WHERE b.grp = a.grp AND a.v <-> b.v <= 4 ORDER BY a.v <-> b.v, b.id LIMIT 2) s ON true', true),
  ('SELECT a.id, s.id FROM a JOIN LATERAL (SELECT b.id FROM b WHERE a.v <-> b.v <= a.r ORDER BY a.v <-> b.v, b.id LIMIT 2) s ON true', true),
  ('SELECT count(*), sum(s.id) FROM a, LATERAL (SELECT b.id FROM b WHERE b.id IN (2, 4, 7, 11) ORDER BY a.v <-> b.v, b.id LIMIT 10) s', true),
  ('SELECT x.id, s.id FROM (SELECT a.id, a.p FROM a JOIN b USING (id)) x, LATERAL (SELECT b.id FROM b ORDER BY x.p <-> b.p, b.id LIMIT 1) s', true),
  ('SELECT a.id, s.id, t.id FROM a, LATERAL (SELECT id FROM b ORDER BY a.p <-> b.p, id LIMIT 2) s, LATERAL (SELECT id FROM b ORDER BY a.q <-> b.q, id LIMIT 2) t', true),
  ('SELECT o.r, (SELECT sum(s.id) FROM a, LATERAL (SELECT b.id FROM b WHERE a.v <-> b.v <= o.r ORDER BY a.v <-> b.v, b.id LIMIT 2) s) FROM (VALUES (1.0::float8), (3)) o(r)', true),
  ('SELECT a.id, s.x FROM a, LATERAL (SELECT a.id || ''-'' || b.id AS x FROM b ORDER BY a.p <-> b.p, b.id LIMIT 2) s', true),
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM (SELECT * FROM b WHERE grp <> 2) b WHERE b.id <> a.id ORDER BY a.v <-> b.v, b.id LIMIT 2) s', true),
  ('WITH w AS (SELECT id, v FROM b WHERE grp <> 2) SELECT a.id, s.id FROM a, LATERAL (SELECT w.id FROM w ORDER BY a.v <-> w.v, w.id LIMIT 2) s', true),
  -- Errors of conditions for rows beyond the radius.
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM b WHERE a.p <-> b.p < 0 AND 1 / (b.id - 20) < 5 ORDER BY a.p <-> b.p, b.id LIMIT 2) s', false),
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM b WHERE a.p <-> b.p < 0 AND a.id / (b.id - 20) < 500 ORDER BY a.p <-> b.p, b.id LIMIT 2) s', true),
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM b WHERE a.p <-> b.p < 1 AND a.id / (b.id - 20 + a.id - b.id) < 500 ORDER BY a.p <-> b.p, b.id LIMIT 2) s', NULL),
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM b WHERE b.id <> a.id AND 1 / (b.id - a.id) < 5 ORDER BY a.p <-> b.p, b.id LIMIT 2) s', true),
  ('SELECT a.id, s FROM a, LATERAL (SELECT b FROM b ORDER BY a.p <-> b.p, b.id LIMIT 2) s', false),
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id, 1 / (b.id - 1000) FROM b WHERE false ORDER BY a.p <-> b.p, b.id LIMIT 2) s', NULL),
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM b ORDER BY a.p <-> b.p DESC, b.id LIMIT 2) s', false),
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM b ORDER BY a.v <-> b.v NULLS FIRST, b.id LIMIT 2) s', false),
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM b ORDER BY a.p <-> b.p, b.id LIMIT 2 OFFSET 1) s', false),
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM b ORDER BY a.p <-> b.p, b.id LIMIT a.grp) s', false),
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM b ORDER BY a.p <-> b.p, b.id LIMIT 1001) s', false),
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM b ORDER BY a.p <-> b.p, b.id FETCH FIRST 2 ROWS WITH TIES) s', false),
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM b ORDER BY a.p <-> b.p, b.id LIMIT 2 FOR UPDATE) s', false),
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM b ORDER BY a.p <-> b.p, b.id LIMIT 2) s FOR UPDATE OF a', false),
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM b WHERE random() >= 0 ORDER BY a.p <-> b.p, b.id LIMIT 2) s', false),
  ('SELECT a.id, s.n FROM a, LATERAL (SELECT count(*) AS n FROM b ORDER BY min(a.p <-> b.p) LIMIT 2) s', false),
  ('SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM b JOIN b c USING (id) ORDER BY a.p <-> b.p, b.id LIMIT 2) s', NULL)) v(query, uses_node);

-- Values that are computed, distances that are written out over columns, and errors, which come where PostgreSQL compares the row.
CREATE TABLE n AS SELECT i AS id, i % 7 AS grp, i % 11 AS k, (i * 37 % 101)::float8 / 4 AS x, (i * 53 % 97)::float8 / 4 AS y, (i * 37 % 101 / 4.0)::numeric AS xn, (i * 53 % 97 / 4.0)::numeric AS yn, (i * 37 % 101)::real AS f, (i * 53 % 97)::bigint AS b FROM generate_series(1, 150) i;
INSERT INTO n VALUES (1001, 1, 3, NULL, 1, NULL, 1, 2, 3), (1002, 1, 3, 'NaN', 1, 'NaN', 1, 'NaN', 3), (1003, 2, 3, 'Infinity', 1, 1, 1, 'Infinity', 9007199254740993), (1004, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
ANALYZE n;
CREATE TABLE written (distance text, uses_node boolean);
INSERT INTO written VALUES
  ('sqrt((l.x - r.x)^2 + (l.y - r.y)^2)', true), ('(r.x - l.x)^2 + (l.y - r.y)^2', true), ('(l.x - r.x)*(l.x - r.x) + (l.y - r.y)*(l.y - r.y)', true), ('abs(l.x - r.x)', true), ('abs(l.b - r.b)', true), ('sqrt((l.f - r.f)^2 + (l.b - r.b)^2)', true),
  ('|/ ((l.x - r.y)^2)', true), ('sqrt((l.x - r.x)^2 - (l.y - r.y)^2)', false), ('abs(l.xn - r.xn)::float8', false), ('point(l.xn, l.yn) <-> point(r.xn, r.yn)', true), ('ARRAY[l.xn, l.yn]::float8[] <-> ARRAY[r.xn, r.yn]::float8[]', true),
  ('point(l.x / 3, l.y * 2) <-> point(r.x / 3, r.y * 2)', true), ('point(l.x / (l.k - 20), l.y) <-> point(r.x, r.y)', true), ('point(l.x / (l.k - 3), l.y) <-> point(r.x, r.y)', true), ('point(r.x / (r.k - 3), r.y) <-> point(l.x, l.y)', true),
  ('point(l.x + random() * 0, l.y) <-> point(r.x, r.y)', false);
SELECT same_rows(format(query, distance), CASE WHEN query NOT LIKE '%r.k <>%' THEN uses_node END, format(query, distance)) FROM written, unnest(ARRAY[
  'SELECT l.id, s.id FROM n l CROSS JOIN LATERAL (SELECT r.id FROM n r ORDER BY %s, r.id LIMIT 3) s', 'SELECT l.id, s.id, s.d FROM n l LEFT JOIN LATERAL (SELECT r.id, %1$s AS d FROM n r WHERE r.k <> 3 ORDER BY %1$s, r.id DESC LIMIT 2) s ON true WHERE l.k <> 3',
  'SELECT l.id, s.id FROM n l LEFT JOIN LATERAL (SELECT r.id FROM n r WHERE r.id < 0 ORDER BY %s, r.id LIMIT 3) s ON true', 'SELECT l.id, s.id FROM n l LEFT JOIN LATERAL (SELECT r.id FROM n r WHERE r.grp = l.grp AND r.k <> 3 ORDER BY %s, r.id LIMIT 1) s ON true WHERE l.id < 0']) query;

-- The same order by arithmetic over the distance. Where it descends NULL and NaN come first: what has no value, and vectors of zeros.
CREATE TABLE zeros AS SELECT id, grp, v FROM a WHERE id <= 80;
INSERT INTO zeros VALUES (2001, 1, '{0,0}'), (2002, 1, NULL), (2003, 2, '{0,0}'), (2004, 2, '{NaN,1}'), (2005, 2, '{Infinity,1}');
ANALYZE zeros;
SELECT same_rows(format('SELECT l.id, s.id, s.d FROM %1$s l LEFT JOIN LATERAL (SELECT r.id, %2$s AS d FROM %1$s r WHERE r.id <> l.id%4$s ORDER BY %2$s%3$s, r.id LIMIT 4) s ON true', t, expression, direction, more), uses_node,
  format('ordered by %s%s of %s%s', expression, direction, t, more))
FROM (VALUES ('1 - (l.v <=> r.v)', ' DESC', true), ('-(l.v <-> r.v)', ' DESC', true), ('5 - (l.v <-> r.v) * 2', ' DESC', true), ('(l.v <-> r.v) * 111 + 3', '', true), ('(l.v <-> r.v) / 7', '', true), ('1 - (l.v <=> r.v)', ' DESC NULLS LAST', false),
  ('1 - (l.v <=> r.v)', '', false), ('(l.v <-> r.v) * 2', ' DESC', false), ('1e9 - (l.v <-> r.v)', ' DESC', false), ('(l.v <-> r.v) * 0', '', false)) o (expression, direction, uses_node),
  unnest('{a,zeros}'::text[]) t, unnest('{""," AND l.grp = r.grp"," AND l.v <-> r.v < 3"}'::text[]) more
WHERE NOT (more LIKE '%<->%' AND uses_node IS NULL);

-- To PostGIS a point of NaN is in every area.
\if :has_postgis
CREATE TABLE discs AS SELECT i AS id, ST_Buffer(ST_MakePoint(i, 1), 1, 2) AS g FROM generate_series(1, 30) i;
CREATE TABLE spots AS SELECT i AS id, ST_MakePoint(CASE i % 10 WHEN 3 THEN 'NaN' WHEN 4 THEN 'Infinity' ELSE i * 3::float8 END, i) AS g FROM generate_series(1, 40) i;
ANALYZE discs, spots;
SELECT same_rows('SELECT l.id, s.id FROM discs l, LATERAL (SELECT r.id FROM spots r ORDER BY l.g <-> r.g, r.id LIMIT 6) s', true, 'points of NaN and areas');
\endif
-- A radius that raises an error counts only if there is a pair.
CREATE TABLE toasted AS SELECT 3 AS id, (SELECT string_agg(md5(k::text), '') FROM generate_series(1, 400) k) AS w, point '1,7' AS p;
CREATE TABLE empty (id int PRIMARY KEY, x float8, y float8);
ALTER TABLE toasted ADD PRIMARY KEY (id);
ANALYZE toasted, empty;
SELECT same_rows('SELECT DISTINCT ON (l.id) l.id, r.id FROM toasted l JOIN empty r ON l.p <-> point(r.x, r.y) <= 1 / (SELECT 0.0::float8)
  ORDER BY l.id, l.p <-> point(r.x, r.y), r.id', true, 'no right row, and a radius that raises an error');

-- Partitions, whose columns may be elsewhere, and children.
CREATE TABLE parts (LIKE a) PARTITION BY LIST (grp);
CREATE TABLE parts_some (junk int, LIKE a);
ALTER TABLE parts_some DROP COLUMN junk;
ALTER TABLE parts ATTACH PARTITION parts_some FOR VALUES IN (0, 1, 2);
CREATE TABLE parts_more PARTITION OF parts FOR VALUES IN (3, 4, 5) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts_more FOR VALUES FROM (0) TO (60);
CREATE TABLE parts_high PARTITION OF parts_more FOR VALUES FROM (60) TO (1000);
CREATE TABLE parts_rest PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT * FROM a;
CREATE INDEX ON parts (id);
CREATE INDEX ON parts_low (r) WHERE grp = 4;
CREATE TABLE family (LIKE a);
CREATE TABLE child (own text) INHERITS (family);
INSERT INTO family SELECT * FROM a WHERE id % 3 = 0;
INSERT INTO child SELECT * FROM a WHERE id % 3 = 1;
ANALYZE parts, parts_some, parts_low, parts_high, parts_rest, family, child;
SELECT same_rows(query, uses_node, query) FROM (VALUES
  ('SELECT a.id, s.* FROM a, LATERAL (SELECT r.id, r.grp + a.grp AS x, r.v FROM parts r ORDER BY a.v <-> r.v, r.id LIMIT 3) s', true),
  ('SELECT a.id, s.* FROM a LEFT JOIN LATERAL (SELECT * FROM parts r WHERE r.id <> a.id AND r.id > 9 AND r.v <-> a.v <= 2 ORDER BY a.v <-> r.v, r.id LIMIT 3) s ON true', true),
  ('SELECT a.id, s.* FROM a, LATERAL (SELECT r.id FROM parts r WHERE grp IN (1, 4) ORDER BY a.p <-> r.p, r.id LIMIT 3) s', true),
  ('SELECT a.id, s.* FROM a, LATERAL (SELECT r.id FROM parts r WHERE grp = 4 AND r = 1 AND r.id < 50 ORDER BY a.p <-> r.p, r.id LIMIT 3) s', true),
  ('SELECT a.id, s.* FROM a, LATERAL (SELECT r.id FROM parts r WHERE grp = 99 ORDER BY a.p <-> r.p, r.id LIMIT 3) s', NULL),
  ('SELECT a.id, s.* FROM a, LATERAL (SELECT r.id FROM parts r WHERE grp = 4 AND grp = 5 ORDER BY a.p <-> r.p, r.id LIMIT 3) s', NULL),
  ('SELECT a.id, s.* FROM a, LATERAL (SELECT r.id, r.r FROM parts r WHERE r.grp = a.grp ORDER BY point(a.r, a.id) <-> point(r.r, r.grp), r.r, r.id LIMIT 3) s', true),
  ('SELECT a.id, s.* FROM a, LATERAL (SELECT r.tableoid::regclass, r.id FROM parts r ORDER BY a.p <-> r.p, r.id LIMIT 2) s', NULL),
  ('SELECT l.id, s.* FROM parts l, LATERAL (SELECT r.id FROM parts r WHERE r.id <> l.id ORDER BY l.v <-> r.v, r.id LIMIT 2) s', true),
  ('SELECT a.id, s.* FROM a, LATERAL (SELECT r.id, r.f FROM family r WHERE r.id <> a.id ORDER BY a.v <-> r.v, r.id LIMIT 3) s', true),
  ('SELECT a.id, s.* FROM a, LATERAL (SELECT r.id, r.f FROM ONLY family r ORDER BY a.v <-> r.v, r.id LIMIT 3) s', true)) v(query, uses_node);
SET enable_seqscan = off;
SELECT same_rows('SELECT a.id, s.* FROM a, LATERAL (SELECT r.id FROM parts r WHERE r.id < 20 AND r.id <> a.id ORDER BY a.v <-> r.v, r.id LIMIT 3) s', NULL, 'by an index of partitions');
RESET enable_seqscan;
PREPARE pruned(int) AS SELECT a.id, s.id FROM a, LATERAL (SELECT r.id FROM parts r WHERE r.grp = $1 ORDER BY a.v <-> r.v, r.id LIMIT 3) s;
SET plan_cache_mode = force_generic_plan;
SELECT same_rows(format('EXECUTE pruned(%s)', k), NULL, 'partition ' || k) FROM unnest('{0,4,6,"NULL"}'::text[]) k;
RESET plan_cache_mode;

-- Ranks, and DISTINCT ON.
SELECT server_version_num >= 150000 AS has_run_conditions FROM (SELECT current_setting('server_version_num')::int AS server_version_num) v \gset
SELECT same_rows(query, uses_node AND (:'has_run_conditions'::boolean OR query NOT LIKE '%row_number%'), query) FROM (VALUES
  ('SELECT * FROM (SELECT b.id, a.id AS other, a.v <-> b.v AS d, row_number() OVER (PARTITION BY b.id ORDER BY a.v <-> b.v, a.id) AS n FROM a, b) s WHERE n <= 3', true),
  ('SELECT * FROM (SELECT b.id, b.grp, a.id AS other, row_number() OVER (PARTITION BY b.id, b.grp ORDER BY b.p <-> a.p, b.r, a.id DESC) AS n FROM a, b) s WHERE 4 > n', true),
  ('SELECT * FROM (SELECT b.id, a.id AS other, row_number() OVER (PARTITION BY b.id ORDER BY b.p <-> a.p, a.id) AS n FROM a JOIN b ON a.grp = b.grp AND a.id <> b.id) s WHERE n = 1', true),
  ('SELECT * FROM (SELECT b.id, a.id AS other, row_number() OVER (PARTITION BY b.id ORDER BY b.p <-> a.p, a.id) AS n FROM a, b WHERE a.p <-> b.p < 4) s WHERE n <= 2', true),
  ('SELECT other, sum(id) FROM (SELECT b.id, a.id AS other, row_number() OVER (PARTITION BY b.id ORDER BY b.p <-> a.p, a.id) AS n FROM a, b WHERE b.grp > 2) s
    WHERE n <= 2 GROUP BY other', true),
  ('SELECT * FROM (SELECT b.id, a.id AS other, row_number() OVER w AS n, row_number() OVER w + 1 AS m FROM a, b WINDOW w AS (PARTITION BY b.id ORDER BY b.p <-> a.p, a.id)) s
    WHERE n <= 2', true),
  ('SELECT DISTINCT ON (b.id) b.id, a.id AS other, b.v <-> a.v FROM a, b ORDER BY b.id, b.v <-> a.v, a.id', true),
  ('SELECT DISTINCT ON (b.id) b.id, a.id AS other FROM a, b WHERE a.p <-> b.p < 2 AND a.id <> b.id ORDER BY b.id DESC, b.p <-> a.p, a.id LIMIT 50', true),
  ('SELECT DISTINCT ON (b.grp, b.id) b.id, a.id AS other FROM a, b ORDER BY b.id, b.grp, b.p <-> a.p, a.id', true),
  -- Others are not: no key, other windows, other ranks, rows that would be missed, values that change.
  ('SELECT * FROM (SELECT a.id, b.id AS other, row_number() OVER (PARTITION BY a.id ORDER BY a.v <-> b.v, b.id) AS n FROM a, b) s WHERE n <= 3', false),
  ('SELECT * FROM (SELECT b.grp, a.id AS other, row_number() OVER (PARTITION BY b.grp ORDER BY a.v <-> b.v, b.id, a.id) AS n FROM a, b) s WHERE n <= 3', false),
  ('SELECT * FROM (SELECT b.id, a.id AS other, row_number() OVER (PARTITION BY b.id, a.grp ORDER BY a.v <-> b.v, a.id) AS n FROM a, b) s WHERE n <= 3', false),
  ('SELECT * FROM (SELECT b.id, a.id AS other, rank() OVER (PARTITION BY b.id ORDER BY a.p <-> b.p) AS n FROM a, b) s WHERE n <= 3', false),
  ('SELECT * FROM (SELECT b.id, a.id AS other, row_number() OVER w AS n, count(*) OVER w AS m FROM a, b
    WINDOW w AS (PARTITION BY b.id ORDER BY b.p <-> a.p, a.id)) s WHERE n <= 2', false),
  ('SELECT * FROM (SELECT b.id, a.id AS other, row_number() OVER w AS n, count(*) OVER (PARTITION BY b.id) AS m FROM a, b
    WINDOW w AS (PARTITION BY b.id ORDER BY b.p <-> a.p, a.id)) s WHERE n <= 2', false),
  ('SELECT * FROM (SELECT b.id, a.id AS other, row_number() OVER (PARTITION BY b.id ORDER BY b.p <-> a.p, a.id) AS n FROM a, b) s WHERE n >= 140', false),
  ('SELECT * FROM (SELECT b.id, a.id AS other, row_number() OVER (PARTITION BY b.id ORDER BY b.p <-> a.p DESC, a.id) AS n FROM a, b) s WHERE n <= 2', false),
  ('SELECT * FROM (SELECT b.id, a.id AS other, row_number() OVER (PARTITION BY b.id ORDER BY b.p <-> a.p, a.id) AS n FROM b LEFT JOIN a ON a.grp = b.grp) s WHERE n <= 2', false),
  ('SELECT * FROM (SELECT b.id, a.id AS other, c.id AS third, row_number() OVER (PARTITION BY b.id ORDER BY b.p <-> a.p, a.id, c.id) AS n FROM b, a, odd c WHERE c.grp = a.grp) s
    WHERE n <= 2', NULL),
  ('SELECT * FROM (SELECT b.id, a.id AS other, row_number() OVER (PARTITION BY b.id ORDER BY b.p <-> a.p, a.id) AS n FROM a, b WHERE random() >= 0) s WHERE n <= 2', false),
  ('SELECT DISTINCT ON (a.id) a.id, b.id AS other FROM a, b ORDER BY a.id, b.p <-> a.p, b.id', false),
  ('SELECT DISTINCT ON (b.id, a.grp) b.id, a.id AS other FROM a, b ORDER BY b.id, a.grp, b.p <-> a.p, a.id', false),
  ('SELECT DISTINCT ON (b.id) b.id, a.id AS other FROM a, b ORDER BY b.id, a.grp, b.p <-> a.p, a.id', false)) v(query, uses_node);

-- Rows without a distance come once, where there are fewer rows than the limit.
SELECT same_rows(format('SELECT l.id, s.* FROM b l LEFT JOIN LATERAL (SELECT r.id, r.grp + l.id AS x FROM b r WHERE l.grp = r.grp ORDER BY %s, r.id LIMIT 20) s ON true',
  distance), NULL, 'a group whole: ' || distance) FROM distances;

-- Limits of a parameter: any number, none, too small.
PREPARE nearest(int) AS SELECT a.id, s.id FROM a, LATERAL (SELECT b.id FROM b ORDER BY a.v <-> b.v, b.id LIMIT $1) s;
SET plan_cache_mode = force_generic_plan;
SELECT same_rows(format('EXECUTE nearest(%s)', k), NULL, 'k = ' || k) FROM unnest('{0,1,7,99,100,101,5000,"NULL"}'::text[]) k;
SELECT force_node(true) \gset
SELECT throws_ok('EXECUTE nearest(-1)', '2201W', 'LIMIT must not be negative', 'a negative limit is PostgreSQL''s error');
SELECT force_node(false) \gset

-- Random ones, all rows in one order.
CREATE FUNCTION pick(VARIADIC choices text[]) RETURNS text LANGUAGE sql VOLATILE AS
$$ SELECT choices[1 + floor(random() * cardinality(choices))::int] $$;
CREATE FUNCTION random_query() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  distance text;
  filter text := 'true';
BEGIN
  SELECT d.distance INTO distance FROM distances d ORDER BY random() LIMIT 1;
  WHILE random() < 0.35 LOOP
    filter := filter || ' AND ' || pick('l.id <> r.id', 'l.grp = r.grp', 'r.id < 80', 'l.grp + r.grp > 4', 'l.r <= r.r', 'l.id < 70',
      distance || ' < 3', distance || ' <= 1.5', '1 >= ' || distance, distance || ' <= l.r', distance || ' < 0', distance || ' <= 0',
      distance || ' <= ''NaN''', distance || ' < ''Infinity''', 'r.grp IS NOT NULL');
  END LOOP;
  IF random() < 0.3 THEN
    RETURN format(pick('SELECT * FROM (SELECT l.id, r.id AS other, %1$s AS d, row_number() OVER (PARTITION BY l.id ORDER BY %1$s, %2$s) AS n FROM %3$s l, %4$s r WHERE %5$s) s
      WHERE n <= %6$s', 'SELECT DISTINCT ON (l.id) l.id, r.id AS other, %1$s FROM %3$s l, %4$s r WHERE %5$s ORDER BY l.id, %1$s, %2$s'),
      distance, pick('r.id', 'r.id DESC', 'r.grp DESC, r.id', 'l.grp, r.id'), pick('b', 'b', 'odd', 'unknown'), pick('b', 'a', 'odd', 'unknown', 'parts'), filter,
      pick('1', '2', '5', '20', '1000'));
  END IF;
  RETURN format('SELECT l.id, s.* FROM %s l %s JOIN LATERAL (SELECT r.id, %s FROM %s r WHERE %s ORDER BY %s, %s LIMIT %s) s ON %s%s',
    pick('a', 'b', 'odd', 'unknown', 'hollow'), pick('', 'LEFT'), pick(distance || ' AS x', 'r.grp + l.id AS x', 'r.r AS x', 'l.v AS x'),
    pick('b', 'a', 'a', 'odd', 'unknown', 'parts', 'family', '(SELECT * FROM a WHERE id % 5 <> 0)'), filter, distance, pick('r.id', 'r.id', 'r.id DESC', 'r.grp DESC, r.id'),
    pick('1', '2', '5', '20', '100', '1000'), pick('true', 'true', 's.id > 20', 's.id <> l.id'), pick('', '', ' WHERE l.id % 2 = 0'));
END $$;
SELECT setseed(0.4) \gset
CREATE TABLE queries AS SELECT n, random_query() AS query FROM generate_series(1, 400) n;
SELECT same_rows(query, NULL, format('random query %s', n)) FROM queries ORDER BY n;
SELECT force_node(true) \gset
SELECT cmp_ok(count(*) FILTER (WHERE has_node(query)), '>=', 200::bigint, 'most of them are the node''s') FROM queries;
SELECT force_node(false) \gset
SELECT cmp_ok(count(*) FILTER (WHERE has_rows(query)), '>=', 150::bigint, 'and most find rows') FROM queries;

-- Rows that do not fit in work_mem.
SET LOCAL work_mem = 64;
SELECT same_rows('SELECT a.id, a.f, s.* FROM a LEFT JOIN LATERAL (SELECT b.*, repeat(b.id::text, 30) || a.id AS t, a.p <-> b.p AS d FROM b WHERE b.id <> a.id
  ORDER BY a.p <-> b.p, b.id LIMIT 40) s ON s.id % 9 <> 0', true, 'rows in a file');
CREATE TABLE wide AS SELECT i AS id, ARRAY[i * 7 % 5, i * 3 % 4]::float8[] AS v, repeat(md5(i::text), 40) AS w FROM generate_series(1, 40) i;
ANALYZE wide;
SELECT same_rows('SELECT l.id, s.id, md5(l.w), md5(s.w) FROM wide l, LATERAL (SELECT r.* FROM wide r WHERE l.id < r.id ORDER BY l.v <-> r.v, r.id LIMIT 2) s',
  true, 'rows in a file that conditions ask for');
RESET work_mem;

-- The distance that the query computes again comes from the node, bit for bit.
CREATE FUNCTION outputs(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  PERFORM force_node(true);
  EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) ' || query INTO plan;
  PERFORM force_node(false);
  RETURN jsonb_path_query_first(plan, '$.** ? (@."Custom Plan Provider" == "GpuSimilarityJoin")') ->> 'Output';
END $$;
CREATE FUNCTION above(shown text, distance text, rest text DEFAULT '') RETURNS text LANGUAGE sql AS
$$ SELECT format('SELECT %s FROM a l LEFT JOIN LATERAL (SELECT * FROM odd r ORDER BY %s, r.id LIMIT 3) s ON true %s', shown, distance, rest) $$;
SELECT same_rows(above(format('l.id, s.id, %1$s, 1 + (%1$s), CASE WHEN l.id > 9 THEN %1$s END', replace(distance, 'r.', 's.')), distance), NULL,
  'shown again: ' || distance) FROM distances;
SELECT same_rows(above(format('s.id, count(%1$s), max(%1$s), min(l.id)', replace(distance, 'r.', 's.')), distance, 'GROUP BY s.id HAVING max('
  || replace(distance, 'r.', 's.') || ') > 0'), NULL, 'added up: ' || distance) FROM distances;
SELECT same_rows(above(format('l.id, s.id, max(%1$s) OVER (PARTITION BY l.id)', replace(distance, 'r.', 's.')), distance, 'ORDER BY '
  || replace(distance, 'r.', 's.') || ', 1, 2'), NULL, 'sorted by: ' || distance) FROM distances;
SELECT matches(outputs(above('l.id, l.v <-> s.v', 'l.v <-> r.v')), '"\(\(l.v <-> s.v\)\)"', 'an operator');
SELECT matches(outputs(above('s.grp, avg(l.v <-> s.v)', 'l.v <-> r.v', 'GROUP BY s.grp')), '"\(\(l.v <-> s.v\)\)"', 'an operator that is added up');
SELECT doesnt_match(outputs(above('s.v <-> l.v', 'l.v <-> r.v')), '"\(\(', 'not with the values the other way round');
SELECT doesnt_match(outputs(above('l.v <-> l.v', 'l.v <-> r.v')), '"\(\(', 'not of other values');
SELECT doesnt_match(outputs(above('l.v <+> s.v', 'l.v <-> r.v')), '"\(\(', 'not another distance');
\if :has_postgis
SELECT matches(outputs(above('ST_Distance(l.g, s.g)', 'l.g <-> r.g')), '"\(st_distance', 'a function that is the operator''s');
SELECT matches(outputs(above('l.g <-> s.g', 'ST_Distance(l.g, r.g)')), '"\(\(l.g <-> s.g\)\)"', 'and the other way round');
SELECT matches(outputs(above('count(*), sum(ST_Distance(l.g, s.g))', 'l.g <-> r.g')), '"\(st_distance', 'a function that is added up');
SELECT doesnt_match(outputs(above('ST_Distance(s.g, l.g)', 'l.g <-> r.g')), '"\(st_distance', 'not a function the other way round');
SELECT doesnt_match(outputs(above('ST_MaxDistance(l.g, s.g)', 'l.g <-> r.g')), '"\(', 'not another function');
CREATE ROLE gpujoin_nearest_caller;
GRANT USAGE ON SCHEMA planner_nearest TO gpujoin_nearest_caller;
GRANT SELECT ON a, odd TO gpujoin_nearest_caller;
REVOKE EXECUTE ON FUNCTION st_distance(geometry, geometry) FROM PUBLIC;
SELECT force_node(true) \gset
SET ROLE gpujoin_nearest_caller;
SELECT throws_ok(above('count(*), sum(ST_Distance(l.g, s.g))', 'l.g <-> r.g'), '42501', 'permission denied for function st_distance', 'the right to call it is asked for');
RESET ROLE;
GRANT EXECUTE ON FUNCTION st_distance(geometry, geometry) TO PUBLIC;
SELECT force_node(false) \gset
\endif

-- Parallel workers share the outer rows.
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL max_parallel_workers_per_gather = 2;
CREATE FUNCTION is_shared(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  plan text;
BEGIN
  PERFORM force_node(true);
  EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
  PERFORM force_node(false);
  RETURN plan LIKE '%"Gather%"GpuSimilarityJoin"%"Parallel Aware": true%';
END $$;
SELECT same_rows(above(format('l.id, s.id, %s', replace(distance, 'r.', 's.')), distance), NULL, 'shared: ' || distance) FROM distances;
SELECT same_rows(above(format('s.id, count(%1$s), max(%1$s), min(l.id)', replace(distance, 'r.', 's.')), distance, 'GROUP BY s.id'), NULL,
  'shared and added up: ' || distance) FROM distances;
SELECT ok(is_shared(above('l.id, s.id, l.v <-> s.v', 'l.v <-> r.v')), 'rows are shared');
SELECT ok(is_shared(above('count(*), max(l.v <-> s.v)', 'l.v <-> r.v')), 'and so are sums');
SELECT matches(outputs(above('count(*), max(l.v <-> s.v)', 'l.v <-> r.v')), '"\(\(l.v <-> s.v\)\)"', 'where the node emits the distance, too');
SELECT ok(is_shared(above('s.grp, count(DISTINCT l.v <-> s.v)', 'l.v <-> r.v', 'GROUP BY s.grp')), 'and rows that are sorted');
SELECT same_rows(above('s.grp, count(DISTINCT l.v <-> s.v), max(1 + (l.v <-> s.v))', 'l.v <-> r.v', 'GROUP BY s.grp'), true, 'shared, sorted and added up');
-- Two workers and the leader have an engine each, and a third of the threads and of the memory. No worker can start here, so that the
-- leader has all rows to do.
CREATE TABLE crowd AS SELECT i AS id, point(few(i, 1000), i % 997) AS p FROM generate_series(1, 3500) i;
ANALYZE crowd;
CREATE FUNCTION shares(OUT threads text, OUT in_parts boolean) LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  PERFORM force_node(true);
  EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) SELECT count(*) FROM crowd a, LATERAL (SELECT id FROM crowd b ORDER BY a.p <-> b.p, id LIMIT 3) s' INTO plan;
  PERFORM force_node(false);
  plan := jsonb_path_query_first(plan, '$.** ? (@."Custom Plan Provider" == "GpuSimilarityJoin")');
  threads := plan ->> 'Threads';
  in_parts := plan ? 'Parts';
END $$;
SET LOCAL max_parallel_workers = 0;
SET LOCAL gpujoin.service = off;
SET LOCAL gpujoin.engine = cpu;
SET LOCAL gpujoin.cpu_threads = 6;
SET LOCAL gpujoin.host_memory_limit = '6MB';
SELECT results_eq('SELECT threads, in_parts FROM shares()', $$ VALUES ('2', true) $$, 'processes share the threads and the memory');
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT results_eq('SELECT threads, in_parts FROM shares()', $$ VALUES ('6', false) $$, 'one process has them all');
SET LOCAL max_parallel_workers_per_gather = 2;
RESET max_parallel_workers;
RESET gpujoin.service;
RESET gpujoin.engine;
RESET gpujoin.cpu_threads;
RESET gpujoin.host_memory_limit;
CREATE TEMP TABLE kept AS SELECT * FROM odd;
ANALYZE kept;
SELECT ok(NOT is_shared(replace(above('l.id, s.id', 'l.v <-> r.v'), 'odd', 'kept')), 'not with a temporary table, which workers cannot read');
CREATE FUNCTION alone(int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS 'BEGIN RETURN $1; END';
SELECT ok(NOT is_shared(above('l.id, s.id', 'l.v <-> r.v', 'WHERE alone(s.id) > 5')), 'nor with what workers may not call');
SELECT ok(NOT is_shared('SELECT l.id, s.id FROM a l, LATERAL (SELECT * FROM odd r WHERE alone(l.id + r.id) > 5 ORDER BY l.v <-> r.v, r.id LIMIT 3) s'), 'or choose rows by');
SET LOCAL work_mem = 64;
SELECT same_rows('SELECT l.id, s.id, md5(l.w), md5(s.w), l.v <-> s.v FROM wide l, LATERAL (SELECT * FROM wide r WHERE l.id < r.id ORDER BY l.v <-> r.v, r.id LIMIT 2) s',
  true, 'rows in files of several processes');
RESET work_mem;
SET LOCAL max_parallel_workers_per_gather = 0;

-- One look-up in an index stays PostgreSQL's.
CREATE TABLE many AS SELECT i AS id, point(few(i, 1000), i % 997) AS p FROM generate_series(1, 20000) i;
CREATE INDEX ON many USING gist (p);
ANALYZE many;
SET gpujoin.enable_customscan = on;
SELECT ok(NOT has_node('SELECT a.id, s.id FROM a, LATERAL (SELECT m.id FROM many m ORDER BY a.p <-> m.p LIMIT 3) s WHERE a.id = 7'), 'one row uses the index');
SELECT ok(has_node('SELECT a.id, s.id FROM many a, LATERAL (SELECT m.id FROM many m ORDER BY a.p <-> m.p LIMIT 3) s'), 'many rows use the node');

SELECT * FROM finish();
ROLLBACK;
