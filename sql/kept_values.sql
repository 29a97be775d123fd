-- Values of tables that the service keeps: read block by block, kept, and read again where a block has changed, they are
-- the values that a session reads without the service.
SET client_min_messages = warning;
CREATE SCHEMA kept_values;
SET search_path = kept_values, public;
SET gpujoin.engine = cpu;
LOAD 'gpujoin';

-- How many pairs there are; whether the first read, the rows that are kept and a join without the service give the same
-- ids and distances; and whether rows were found in the service.
CREATE FUNCTION look(tbl regclass, vectors text, id text DEFAULT 'id', OUT pairs bigint, OUT same boolean, OUT kept boolean)
LANGUAGE plpgsql AS $$
DECLARE
  query text := format('SELECT count(*) || '':'' || coalesce(sum(id1 * 7 + id2 + distance::numeric), 0)
    FROM gpu_selfjoin_distance(%L, 1.5, %L, vector_columns => %L)', tbl, id, vectors);
  count_hits text := format('SELECT coalesce(sum(hits), 0) FROM gpu_resident WHERE relation = %L::regclass', tbl);
  read text;
  found text;
  plain text;
  hits bigint;
  later bigint;
BEGIN
  SET LOCAL gpujoin.service = on;
  EXECUTE query INTO read;
  EXECUTE count_hits INTO hits;
  EXECUTE query INTO found;
  EXECUTE count_hits INTO later;
  SET LOCAL gpujoin.service = off;
  EXECUTE query INTO plain;
  pairs := split_part(plain, ':', 1);
  same := read = plain AND found = plain;
  kept := later > hits;
END $$;

-- Columns of each type, with NULLs in between and a column before them that is there no more. Arrays of integers and of
-- numerics become vectors by a cast in SQL: their rows do not stay.
CREATE TABLE types (gone text, id bigint, f8 float8[], f4 float4[], i2 int2[], i4 int4[], i8 int8[], n numeric[], p point,
  x float8, y float4, a numeric, b int2, c int4, d int8, s float8[] GENERATED ALWAYS AS (ARRAY[x + 1, id % 7]) STORED);
INSERT INTO types SELECT repeat('gone', i % 40), i, v, v, v, v, v, v, point(v[1], v[2]), v[1], v[2], v[1] / 3, v[1], v[2], v[1]
  FROM (SELECT i, ARRAY[i % 10, i / 10] AS v FROM generate_series(1, 200) i) rows;
ALTER TABLE types DROP gone;
INSERT INTO types (id) SELECT i FROM generate_series(201, 210) i;
UPDATE types SET f8 = NULL, n = NULL, y = NULL, c = NULL WHERE id % 9 = 4;
SELECT vectors, l.* FROM unnest('{f8,f4,i2,i4,i8,n,p,s,x,a,d}'::text[] || '{"{x,y}","{a,b}","{c,d}","{y,a,c}"}') vectors, look('types', vectors) l;

-- A block that has changed is read again, with the columns as they are now.
UPDATE types SET f8 = ARRAY[0.5, id / 10], x = 3.25, a = 1e-3 WHERE id % 20 = 3;
ALTER TABLE types ADD more int DEFAULT 7;
DELETE FROM types WHERE id % 11 = 0;
SELECT vectors, l.* FROM unnest('{f8,n,s,a,"{x,y}"}'::text[]) vectors, look('types', vectors) l;

-- Ids of each type.
CREATE TABLE ids (i2 int2, i4 int4, i8 int8, v float8[]);
INSERT INTO ids SELECT i - 100, i * -1000000, i * 1000000000000, ARRAY[i % 10, i / 10] FROM generate_series(1, 200) i;
SELECT id, l.* FROM unnest('{i2,i4,i8}'::text[]) id, look('ids', 'v', id) l;

-- Vectors out of line: compressed, stored as they are, of many dimensions.
CREATE TABLE wide (id int PRIMARY KEY, v float8[], e float4[]);
ALTER TABLE wide ALTER e SET STORAGE EXTERNAL;
INSERT INTO wide SELECT i, w, w FROM generate_series(1, 60) i, LATERAL (SELECT ARRAY[i % 10, i / 10] || array_fill(0.5::float8, '{1500}') AS w) v;
SELECT vectors, l.* FROM unnest('{v,e}'::text[]) vectors, look('wide', vectors) l;
UPDATE wide SET v[1] = 0.25, e[2] = 1 WHERE id % 20 = 1;
SELECT vectors, l.* FROM unnest('{v,e}'::text[]) vectors, look('wide', vectors) l;

-- Tables of no rows, of NULLs alone, of one block, and one that grows from nothing.
CREATE TABLE few (id int PRIMARY KEY, v float8[]);
SELECT * FROM look('few', 'v');
INSERT INTO few VALUES (1, NULL), (2, NULL);
SELECT * FROM look('few', 'v');
INSERT INTO few VALUES (3, '{1,1}'), (4, '{1,2}');
SELECT * FROM look('few', 'v');
INSERT INTO few SELECT i, ARRAY[i % 30, i / 30] FROM generate_series(5, 900) i;
SELECT * FROM look('few', 'v');
DELETE FROM few;
SELECT * FROM look('few', 'v');
VACUUM few;
SELECT * FROM look('few', 'v');
INSERT INTO few VALUES (1, '{1,2,3}'), (2, '{1,2,4}');
SELECT * FROM look('few', 'v');

-- Values that cannot be are the same errors, kept or not.
SET gpujoin.service = on;
INSERT INTO few VALUES (3, '{1,2}');
SELECT count(*) FROM gpu_selfjoin('few', 1);
DELETE FROM few WHERE id = 3;
INSERT INTO few VALUES (3, '{1,NULL,2}');
SELECT count(*) FROM gpu_selfjoin('few', 1);
DELETE FROM few WHERE id = 3;
SELECT count(*) FROM gpu_selfjoin('few', 1);
CREATE TABLE twice (id int, v float8[]);
INSERT INTO twice VALUES (1, '{1}'), (1, '{2}');
SELECT count(*) FROM gpu_selfjoin('twice', 1, 'id');
INSERT INTO twice VALUES (NULL, '{3}');
SELECT count(*) FROM gpu_selfjoin('twice', 1, 'id');

DROP SCHEMA kept_values CASCADE;
