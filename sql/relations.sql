-- What can be joined: every kind of relation, type and name, under the rules that hold for any query.
SET client_min_messages = warning;
CREATE SCHEMA relations;
SET search_path = relations, public;

CREATE TABLE points (id int PRIMARY KEY, v float8[]);
INSERT INTO points SELECT i, ARRAY[i, i % 3] FROM generate_series(1, 9) i;
SELECT count(*) FROM gpu_selfjoin('points', 1.5);

-- Views, materialised views, partitions, inheritance, temporary and foreign tables.
CREATE VIEW odd AS SELECT * FROM points WHERE id % 2 = 1;
CREATE MATERIALIZED VIEW even AS SELECT * FROM points WHERE id % 2 = 0;
CREATE TABLE parts (id int PRIMARY KEY, v float8[]) PARTITION BY RANGE (id);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (1) TO (5);
CREATE TABLE parts2 (v float8[], id int NOT NULL);
ALTER TABLE parts ATTACH PARTITION parts2 FOR VALUES FROM (5) TO (10);
INSERT INTO parts SELECT * FROM points;
CREATE TABLE parent (id int PRIMARY KEY, v float8[]);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent SELECT * FROM points WHERE id < 5;
INSERT INTO child SELECT * FROM points WHERE id >= 5;
CREATE TEMP TABLE scratch (id int PRIMARY KEY, v float8[]);
INSERT INTO scratch SELECT * FROM points;
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE remote (id int, x float8, y float8) SERVER files
  OPTIONS (program 'printf "1,0,0\n2,0,1\n3,5,5\n"', format 'csv');

SELECT * FROM gpu_selfjoin('odd', 2.5, 'id') ORDER BY 1, 2;
SELECT * FROM gpu_selfjoin('even', 2.5, 'id') ORDER BY 1, 2;
SELECT * FROM gpu_join('odd', 'even', 1.5, 'id', 'id') ORDER BY 1, 2;
SELECT count(*) FROM gpu_selfjoin('parts', 1.5);
SELECT count(*) FROM gpu_selfjoin('parent', 1.5);
SELECT count(*) FROM gpu_selfjoin('scratch', 1.5);
SELECT * FROM gpu_selfjoin('remote', 1, 'id', '{x,y}') ORDER BY 1, 2;

-- Types of vectors and ids.
CREATE DOMAIN coordinates AS float8[] CHECK (array_length(VALUE, 1) = 2);
CREATE DOMAIN key AS bigint;
CREATE TABLE types (
  id key PRIMARY KEY, small smallint, big bigint, array4 float4[], array8 float8[], checked coordinates, p point,
  i2 smallint, i4 int, i8 bigint, f4 real, f8 float8, n numeric);
INSERT INTO types
  SELECT i, i, 5000000000 + i, ARRAY[x, y], ARRAY[x, y], ARRAY[x, y], point(x, y), x, y, x, x / 2.0, y / 2.0, y / 2.0
  FROM generate_series(1, 40) i, LATERAL (SELECT i * 7 % 11 AS x, i * 5 % 13 AS y) c;
SELECT columns, count(*), sum(id1 * id2) FROM
  unnest('{"{array4}","{array8}","{checked}","{p}","{i2,i4}","{i8,i4}","{f4,f8}","{f4,n}","{i4}","{n}"}'::text[]) columns,
  gpu_selfjoin('types', 2, vector_columns => columns::name[]) GROUP BY columns ORDER BY columns;
SELECT count(*) FROM gpu_selfjoin('types', 1, vector_columns => '{f4,f8}', metric => 'linf');
SELECT count(*) FROM types a, types b WHERE abs(a.f4 - b.f4) <= 1 AND abs(a.f8 - b.f8) <= 1;
SELECT * FROM gpu_selfjoin('types', 2, 'big', '{p}', pairs => 'unordered') ORDER BY 1, 2 LIMIT 3;
SELECT * FROM gpu_selfjoin('types', 2, 'small', '{p}', pairs => 'unordered') ORDER BY 1, 2 LIMIT 3;

-- Rows with a NULL in their vector match nothing; arrays long, compressed, with odd bounds or a needless bitmap.
CREATE TABLE rows (id int PRIMARY KEY, x float8, y float8);
INSERT INTO rows VALUES (1, 0, 0), (2, NULL, 0), (3, 0, NULL), (4, NULL, NULL), (5, 0, 0);
SELECT * FROM gpu_selfjoin('rows', 1, vector_columns => '{x,y}') ORDER BY 1, 2;
CREATE TABLE arrays (id int PRIMARY KEY, v float8[]);
INSERT INTO arrays VALUES (1, '[5:6]={1,2}'), (2, '{1,2}'), (3, array_replace('{1,NULL}'::float8[], NULL, 2));
SELECT count(*) FROM gpu_selfjoin('arrays', 0);
TRUNCATE arrays;
INSERT INTO arrays SELECT i, array_fill(i / 3, '{3000}') FROM generate_series(1, 5) i;
INSERT INTO arrays SELECT i, (SELECT array_agg(sin(i / 7 + d)) FROM generate_series(1, 3000) d)
  FROM generate_series(6, 8) i;
SELECT * FROM gpu_selfjoin('arrays', 0, pairs => 'unordered') ORDER BY 1, 2;
SELECT a.id, b.id FROM arrays a, arrays b WHERE a.v = b.v AND a.id < b.id ORDER BY 1, 2;

-- Names that need quotes, columns that were dropped, a hostile search_path.
CREATE TABLE "Odd ""table""" (gone int, "the id" int PRIMARY KEY, gone_too float8[], "The Vector" float8[]);
ALTER TABLE "Odd ""table""" DROP gone, DROP gone_too;
INSERT INTO "Odd ""table""" VALUES (1, '{1}'), (2, '{1}');
SELECT count(*) FROM gpu_selfjoin('"Odd ""table"""', 0);
SELECT count(*) FROM gpu_selfjoin('"Odd ""table"""', 0, 'the id', '{"The Vector"}');
CREATE SCHEMA hostile;
CREATE DOMAIN hostile.float8 AS text;
CREATE TABLE hostile.types (id int PRIMARY KEY, n text);
SET search_path = hostile, pg_catalog, public;
SELECT count(*) FROM gpu_selfjoin('relations.types', 1, vector_columns => '{n}');
SET search_path = relations, public;

-- The snapshot is the query's.
BEGIN;
INSERT INTO points VALUES (10, '{9,0}');
SELECT count(*) FROM gpu_selfjoin('points', 0);
DECLARE early CURSOR FOR SELECT count(*) FROM gpu_selfjoin('points', 0);
DELETE FROM points WHERE id > 3;
FETCH early;
SELECT count(*) FROM gpu_selfjoin('points', 0);
ROLLBACK;

-- Privileges are the caller's, column by column; row-level security holds.
CREATE ROLE gpujoin_reader;
GRANT USAGE ON SCHEMA relations TO gpujoin_reader;
CREATE TABLE secrets (id int PRIMARY KEY, v float8[], owner name, note text);
INSERT INTO secrets SELECT i, ARRAY[i / 2], CASE i % 2 WHEN 0 THEN 'gpujoin_reader' ELSE 'postgres' END, 'x'
  FROM generate_series(1, 8) i;
CREATE VIEW shown AS SELECT id, v FROM secrets;
GRANT SELECT ON shown TO gpujoin_reader;
SET ROLE gpujoin_reader;
SELECT * FROM gpu_selfjoin('secrets', 0);
SELECT count(*) FROM gpu_selfjoin('shown', 0, 'id');
RESET ROLE;
GRANT SELECT (id) ON secrets TO gpujoin_reader;
SET ROLE gpujoin_reader;
SELECT * FROM gpu_selfjoin('secrets', 0);
RESET ROLE;
GRANT SELECT (v) ON secrets TO gpujoin_reader;
SET ROLE gpujoin_reader;
SELECT count(*) FROM gpu_selfjoin('secrets', 0);
RESET ROLE;
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON secrets TO gpujoin_reader;
CREATE POLICY own ON secrets USING (owner = current_user);
SET ROLE gpujoin_reader;
SELECT * FROM gpu_selfjoin('secrets', 100, pairs => 'unordered') ORDER BY 1, 2;
RESET ROLE;
SELECT count(*) FROM gpu_selfjoin('secrets', 100);

-- A definer's function reads with the definer's privileges.
REVOKE ALL ON secrets FROM gpujoin_reader;
CREATE FUNCTION count_secrets() RETURNS bigint SECURITY DEFINER SET search_path = public LANGUAGE sql AS
$$ SELECT count(*) FROM gpu_selfjoin('relations.secrets', 0) $$;
SET ROLE gpujoin_reader;
SELECT count_secrets();
SELECT * FROM gpu_selfjoin('secrets', 0);
RESET ROLE;

DROP EXTENSION file_fdw CASCADE;
DROP SCHEMA relations CASCADE;
DROP SCHEMA hostile CASCADE;
DROP TABLE scratch;
DROP ROLE gpujoin_reader;

-- Ids that repeat cause a warning, whatever their order and whether or not a table can have an index.
CREATE TABLE repeating (customer int, no int UNIQUE, v float8[]);
INSERT INTO repeating SELECT i * 7 % 20, i, ARRAY[i, 0] FROM generate_series(1, 21) i;
CREATE VIEW repeating_view AS TABLE repeating;
SELECT count(*) FROM gpu_selfjoin('repeating', 1, 'customer', pairs => 'unordered');
SELECT count(*) FROM gpu_selfjoin('repeating_view', 1, 'customer', pairs => 'unordered');
SELECT count(*) FROM gpu_join('repeating', 'repeating_view', 1, 'no', 'customer');
SELECT count(*) FROM gpu_selfjoin('repeating', 1, 'no', pairs => 'unordered');
SELECT count(*) FROM gpu_selfjoin('repeating_view', 1, 'no', pairs => 'unordered');
SELECT count(*) FROM gpu_join('repeating', 'repeating_view', 1, 'no', 'no');
DROP TABLE repeating CASCADE;
