-- Every type whose values are points works in the functions as it does in plain SQL: cube and PostGIS geometry beside arrays
-- and points. (pgvector's types: pgvector.sql. Boxes: box_kinds.sql.)
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA value_types;
SET search_path = value_types, public;
SET client_min_messages = warning;

CREATE FUNCTION failure(call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'SELECT * FROM ' || call;
  RETURN 'none';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

CREATE TABLE arrays (id int PRIMARY KEY, v float8[]);
INSERT INTO arrays SELECT i, ARRAY[i * 7 % 31, i * 13 % 29] FROM generate_series(1, 200) i;
INSERT INTO arrays VALUES (201, NULL), (202, '{Infinity,0}'), (203, '{NaN,0}'), (204, '{1e200,0}'), (205, '{1e200,0}');
CREATE DOMAIN place AS float8[] CHECK (cardinality(VALUE) = 2);
CREATE TABLE domains AS SELECT id, v::place AS v FROM arrays;
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin('domains', 2, id_column => 'id') $$, $$ SELECT * FROM gpu_selfjoin('arrays', 2) $$,
  'a domain over an array');

-- Arrays of numbers that are no floats are read as float8[]; a column of floats comes first.
CREATE TABLE numbers AS SELECT id, v::int2[] AS v2, v::int4[] AS v4, v::int8[] AS v8, (v::numeric[])::numeric(9, 1)[] AS vn, v FROM arrays WHERE id <= 201;
INSERT INTO numbers VALUES (202, '{1,NULL}', '{1,NULL}', '{1,NULL}', '{1,NULL}', '{1,NULL}');
ANALYZE numbers;
SELECT bag_eq(format($$ SELECT * FROM gpu_selfjoin_distance('numbers', 2, id_column => 'id', vector_columns => '{%s}') $$, c),
  $$ SELECT * FROM gpu_selfjoin_distance('arrays', 2) WHERE id1 <= 200 AND id2 <= 200 $$, 'a function of ' || c) FROM unnest('{v2,v4,v8,vn}'::text[]) c;
SELECT bag_eq(format('SELECT a.id AS id1, b.id AS id2, a.%s <-> b.%1$s AS d FROM numbers a JOIN numbers b ON %s', c, replace(clause, 'COLUMN', c)),
  $$ SELECT a.id AS id1, b.id AS id2, a.v <-> b.v AS d FROM arrays a JOIN arrays b ON a.v <-> b.v <= 2 WHERE a.id <= 200 AND b.id <= 200 $$, format('%s of %s', clause, c))
FROM unnest('{v2,v4,v8,vn}'::text[]) c, unnest('{a.COLUMN <-> b.COLUMN <= 2,"gpu_within(a.COLUMN, b.COLUMN, 2)"}'::text[]) clause;
CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; lines text = '';
BEGIN
  SET LOCAL enable_nestloop = off;
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP lines := lines || line || E'\n'; END LOOP;
  RESET enable_nestloop;
  RETURN lines;
END $$;
SELECT matches(plan_of(format('SELECT FROM numbers a JOIN numbers b ON %s', clause)), 'GpuSimilarityJoin', 'by the node: ' || clause)
FROM unnest(ARRAY['a.v4 <-> b.v4 <= 2', 'gpu_within(a.vn, b.vn, 2)', 'ARRAY[a.id, 1] <-> ARRAY[b.id, 2] <= 2', 'ARRAY[a.id, 1.5] <-> ARRAY[b.id, 2.5] <= 2',
  'gpu_vector(a.v::text) <-> gpu_vector(b.v::text) <= 2']) clause;
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin('numbers', 2, id_column => 'id') $$, $$ SELECT * FROM gpu_selfjoin('arrays', 2) WHERE id1 <= 200 AND id2 <= 200 $$,
  'a column of floats is meant where none is named');
CREATE TABLE integers AS SELECT id, v4 FROM numbers;
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin('integers', 2, id_column => 'id') $$, $$ SELECT * FROM gpu_selfjoin('arrays', 2) WHERE id1 <= 200 AND id2 <= 200 $$,
  'or else the only array of numbers');

-- Metrics: operators, and functions that name them, agree with the functions that join.
SELECT is(round((a <=> b)::numeric, 12), cosine, format('%s <=> %s', a, b)) FROM (VALUES ('{1,0}'::float8[], '{0,2}'::float8[], 1.0), ('{1,1}', '{3,3}', 0),
  ('{1,1}', '{-2,-2}', 2), ('{1,0}', '{3,3}', round(1 - 1 / sqrt(2.0), 12)), ('{0,0}', '{3,3}', 'NaN'), ('{1,NULL}', '{3,3}', NULL)) angles(a, b, cosine);
SELECT is('{1,2}'::float4[] <+> '{4,-2}'::float4[], 7::float8, 'L1 of real[]');
SELECT is(ARRAY[1, 2] <+> ARRAY[4, -2.5], 7.5::float8, 'L1 of integer[] and numeric[]');
SELECT is(ARRAY[3, 4] <=> ARRAY[6, 8]::int8[], 0::float8, 'cosine distance of integer[] and bigint[]');
SELECT is(ARRAY[gpu_distance(a, b, 'l2'), gpu_distance(a, b, 'l1'), gpu_distance(a, b, 'linf'), gpu_distance(a, b, 'cosine')],
  ARRAY[a <-> b, a <+> b, 4, a <=> b], 'gpu_distance() by each metric') FROM (VALUES ('{1,2}'::float4[], '{4,-2}'::float4[])) v(a, b);
SELECT is(array_agg(gpu_within(a, b, eps, metric)), '{t,f,t,f}', 'gpu_within() looks at metric and radius of each call')
FROM (VALUES ('{1,2}'::float8[], '{4,-2}'::float8[], 7, 'l1'), ('{1,2}', '{4,-2}', 4, 'l1'), ('{1,2}', '{4,-2}', 4, 'linf'), ('{1,2}', '{4,-2}', 0.9, 'cosine')) v(a, b, eps, metric);
CREATE TABLE metrics (metric text, eps float8, distance text);
INSERT INTO metrics VALUES ('l1', 3, 'a.COLUMN <+> b.COLUMN'), ('cosine', 0.001, 'a.COLUMN <=> b.COLUMN'), ('linf', 1.5, 'gpu_distance(a.COLUMN, b.COLUMN, ''linf'')'),
  ('l1', 3, 'gpu_distance(a.COLUMN, b.COLUMN, ''l1'')'), ('cosine', 0.001, 'gpu_distance(b.COLUMN, a.COLUMN, ''cosine'')'), ('l2', 2, 'gpu_distance(a.COLUMN, b.COLUMN, ''l2'')');
CREATE TABLE joins_by_metric AS SELECT c, metric, eps, distance, condition FROM unnest('{v4,vn,f4,v}'::text[]) c, metrics,
  LATERAL (SELECT replace(distance, 'COLUMN', c) AS d) one,
  unnest(ARRAY[format('%s <= %s', d, eps), format('gpu_within(a.%s, b.%1$s, %s, %L)', c, eps, metric)]) condition;
ALTER TABLE numbers ADD f4 float4[];
UPDATE numbers SET f4 = v::float4[];
SELECT bag_eq(format('SELECT a.id AS id1, b.id AS id2, %s AS d FROM numbers a JOIN numbers b ON %s', replace(distance, 'COLUMN', c), condition),
  format('SELECT * FROM gpu_selfjoin_distance(''numbers'', %s, id_column => ''id'', vector_columns => ''{%s}'', metric => %L)', eps, c, metric), condition)
FROM joins_by_metric;
SELECT matches(plan_of('SELECT FROM numbers a JOIN numbers b ON ' || condition), 'GpuSimilarityJoin', 'by the node: ' || condition) FROM joins_by_metric;
SELECT unalike(plan_of($$ SELECT FROM numbers a JOIN numbers b ON gpu_distance(a.v, b.v, CASE WHEN a.id = 1 THEN 'l1' ELSE 'l2' END) <= 2 $$), '%Gpu%', 'one metric for all rows');
SELECT matches(plan_of(format('SELECT a.id FROM numbers a JOIN numbers b ON %s ORDER BY %s LIMIT 3', condition, replace(distance, 'COLUMN', c))), 'Top-k Join',
  'the nearest pairs: ' || condition) FROM joins_by_metric WHERE c = 'f4';
SELECT results_eq(format('SELECT %s FROM numbers a JOIN numbers b ON %s ORDER BY 1 LIMIT 5', replace(distance, 'COLUMN', c), condition),
  format('SELECT distance FROM gpu_selfjoin_distance(''numbers'', %s, id_column => ''id'', vector_columns => ''{%s}'', metric => %L) ORDER BY 1 LIMIT 5', eps, c, metric),
  'their distances: ' || condition) FROM joins_by_metric WHERE c = 'f4';

-- Columns are named in a text, or in an array of any kind of text.
CREATE TABLE "named" AS SELECT id, v[1] AS "Lon", v[2] AS "a, b" FROM arrays WHERE id <= 200;
SELECT bag_eq(format('SELECT * FROM gpu_selfjoin(''named'', 2, ''id'', vector_columns => %s)', names),
  $$ SELECT * FROM gpu_selfjoin('arrays', 2) WHERE id1 <= 200 AND id2 <= 200 $$, 'columns ' || names)
FROM unnest(ARRAY[$$ '"Lon","a, b"' $$, $$ 'Lon, "a, b"'::varchar $$, $$ '{Lon,"a, b"}' $$, $$ ARRAY['Lon', 'a, b'] $$, $$ '{Lon,"a, b"}'::name[] $$,
  $$ ARRAY['Lon', 'a, b']::varchar[] $$]) names;
SELECT bag_eq($$ SELECT * FROM gpu_join('numbers', 'named', 2, 'id', 'id', left_vector_columns => 'v', right_vector_columns => 'Lon,"a, b"') $$,
  $$ SELECT * FROM gpu_selfjoin('arrays', 2) WHERE id1 <= 200 AND id2 <= 200 $$, 'a text for each side');
PREPARE by_column AS SELECT count(*) FROM gpu_selfjoin('numbers', 2, 'id', $1);
SELECT results_eq('EXECUTE by_column(''v'')', 'EXECUTE by_column(''{v4}'')', 'a parameter is a text');

-- Vectors as text and JSON.
SELECT is(gpu_vector(t), v, t) FROM (VALUES ('[1, 2.5]', '{1,2.5}'::float8[]), ('{1,2}', '{1,2}'), ('[]', '{}'), ('[1,null]', '{1,NULL}'),
  ('[ -1e3 ,NaN]', '{-1000,NaN}')) texts(t, v);
SELECT is(gpu_vector('[1, 2.5, null]'::json), '{1,2.5,NULL}', 'json');
SELECT is(gpu_vector('[1, 2.5, null]'::jsonb), '{1,2.5,NULL}', 'jsonb');
SELECT throws_ok(format('SELECT gpu_vector(%L)', t), '22P02', NULL, 'refused: ' || t) FROM unnest(ARRAY['1, 2', '["a"]', '{"x": 1}']) t;
CREATE TABLE documents (id int PRIMARY KEY, body jsonb, v float8[] GENERATED ALWAYS AS (gpu_vector(body)) STORED);
INSERT INTO documents SELECT id, to_jsonb(v) FROM arrays WHERE id <= 200;
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin('documents', 2) $$, $$ SELECT * FROM gpu_selfjoin('arrays', 2) WHERE id1 <= 200 AND id2 <= 200 $$, 'a generated column');

-- Other conditions beside them, which may keep rows apart whose text is no vector, do not keep them from the node.
CREATE TABLE listed AS SELECT id, CASE id % 50 WHEN 0 THEN 'none' ELSE replace(replace(v::text, '{', '['), '}', ']') END AS t, to_jsonb(v) AS j FROM arrays WHERE id <= 200;
UPDATE listed SET j = '"none"' WHERE t = 'none';
ANALYZE listed;
CREATE TABLE guarded AS SELECT format($$ FROM listed a %s JOIN listed b ON %s AND a.id < b.id AND (a.t <> 'none') IS TRUE AND (b.t <> 'none') IS TRUE $$, kind, condition) AS joined
  FROM unnest('{INNER,LEFT}'::text[]) kind, unnest('{gpu_vector(a.t) <-> gpu_vector(b.t) <= 2,gpu_vector(a.j) <-> gpu_vector(b.j) <= 2,
    gpu_vector(a.j::json) <-> gpu_vector(b.j::json) <= 2,"translate(a.t, ''[]'', ''{}'')::float4[] <-> translate(b.t, ''[]'', ''{}'')::float4[] <= 2"}'::text[]) condition;
SELECT matches(plan_of('SELECT ' || joined), 'GpuSimilarityJoin', 'by the node: ' || joined) FROM guarded;
SELECT bag_eq('SELECT a.id, b.id AS other ' || joined, CASE WHEN joined ~ 'LEFT' THEN 'SELECT id, other FROM listed LEFT JOIN' ELSE 'SELECT id, other FROM listed JOIN' END ||
  $$ (SELECT id1 AS id, id2 AS other FROM gpu_selfjoin('arrays', 2, pairs => 'unordered') WHERE id1 % 50 <> 0 AND id2 % 50 <> 0) p USING (id) $$, joined) FROM guarded;
SELECT throws_ok($$ SELECT FROM listed a JOIN listed b ON gpu_vector(a.t) <-> gpu_vector(b.t) <= 2 AND a.id < b.id $$, '22P02', NULL, 'an error that is not kept away');

-- What a refused column needs.
CREATE FUNCTION hint_of(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE hint text;
BEGIN
  EXECUTE 'SELECT * FROM ' || call;
  RETURN 'none';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
  RETURN hint;
END $$;
CREATE TABLE raw_json (id int PRIMARY KEY, title text, "Body" jsonb);
CREATE TABLE raw_text (id int PRIMARY KEY, body text);
CREATE TABLE composite (tenant int, doc int, v float8[], PRIMARY KEY (tenant, doc));
CREATE TABLE uuids (key uuid PRIMARY KEY, "X" float8, y float8);
CREATE TABLE second_key (key uuid PRIMARY KEY, number int UNIQUE, maybe int, v float8[]);
CREATE UNIQUE INDEX ON second_key (maybe) WHERE maybe > 0;
SELECT is(hint_of(call), hint, call) FROM (VALUES
  ($$ gpu_selfjoin('raw_json', 1) $$, 'If "Body" holds lists of numbers, as in [1, 2.5]: Make a view: '
    'CREATE VIEW raw_json_vectors AS SELECT *, gpu_vector("Body") AS "Body_vector" FROM value_types.raw_json; then pass tbl => ''raw_json_vectors'', id_column => ''id'', vector_columns => ''"Body_vector"''.'),
  ($$ gpu_selfjoin('raw_text', 1, vector_columns => '{body}') $$,
    'If "body" holds lists of numbers, as in [1, 2.5]: Make a view: CREATE VIEW raw_text_vectors AS SELECT *, gpu_vector(body) AS body_vector FROM value_types.raw_text; '
    'then pass tbl => ''raw_text_vectors'', id_column => ''id'', vector_columns => ''body_vector''.'),
  ($$ gpu_selfjoin('composite', 1) $$, 'Pass id_column => ''ctid'', and gpu_ctid() of an id is the ctid of its row. Plain SQL takes any key: SELECT a.tenant, a.doc, b.tenant, b.doc FROM value_types.composite a '
    'JOIN value_types.composite b ON a.v <-> b.v <= 1 AND (a.tenant, a.doc) < (b.tenant, b.doc).'),
  ($$ gpu_selfjoin('uuids', 1, vector_columns => '{X,y}') $$, 'Pass id_column => ''ctid'', and gpu_ctid() of an id is the ctid of its row. Plain SQL takes any key: SELECT a.key, b.key FROM value_types.uuids a '
    'JOIN value_types.uuids b ON ARRAY[a."X", a.y]::float8[] <-> ARRAY[b."X", b.y]::float8[] <= 1 AND a.key < b.key.'),
  ($$ gpu_selfjoin('second_key', 1) $$, $$Name the column that identifies its rows, for example id_column => 'number'.$$)) calls(call, hint);
SELECT lives_ok(substring(hint_of(call) from 'key: (.*)\.$'), 'the hint can be followed: ' || call)
FROM unnest(ARRAY[$$ gpu_selfjoin('composite', 1) $$, $$ gpu_selfjoin('uuids', 1, vector_columns => '{X,y}') $$]) call;

SELECT bool_or(name = 'cube') AS has_cube, bool_or(name = 'postgis') AS has_postgis
FROM pg_available_extensions WHERE name IN ('cube', 'postgis') \gset

\if :has_cube
CREATE EXTENSION IF NOT EXISTS cube;
CREATE TABLE cubes (id int PRIMARY KEY, c cube);
INSERT INTO cubes SELECT id, cube(v) FROM arrays;
SELECT bag_eq(format($$ SELECT * FROM gpu_selfjoin_distance('cubes', %s, metric => %L) $$, eps, metric),
    format($$ SELECT * FROM gpu_selfjoin_distance('arrays', %s, metric => %L) $$, eps, metric), 'cubes: ' || metric || ', ' || eps)
FROM unnest('{l2,l1,linf,cosine}'::text[]) metric, unnest('{0,0.3,3}'::float8[]) eps;
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin('cubes', 2, pairs => 'unordered') $$,
  $$ SELECT a.id::bigint AS id1, b.id::bigint AS id2 FROM cubes a JOIN cubes b ON a.c <-> b.c <= 2 AND a.id < b.id
     WHERE a.id <> 203 AND b.id <> 203 $$, 'cube thinks so, too, but for NaN');
SELECT bag_eq($$ SELECT * FROM gpu_join('cubes', 'arrays', 2) $$, $$ SELECT * FROM gpu_join('arrays', 'arrays', 2) $$, 'cubes and arrays');
SELECT bag_eq($$ SELECT * FROM gpu_topk_join('cubes', 'cubes', 5, 7, score => 'distance') $$,
  $$ SELECT * FROM gpu_topk_join('arrays', 'arrays', 5, 7, score => 'distance') $$, 'the nearest cubes');
SELECT bag_eq($$ SELECT id, neighbors FROM gpu_neighbors('cubes', 2) $$, $$ SELECT id, neighbors FROM gpu_neighbors('arrays', 2) $$,
  'neighbours of cubes');
INSERT INTO cubes VALUES (300, '(1,1),(2,2)');
SELECT is(failure($$ gpu_selfjoin('cubes', 1) $$), '22023 the value of row 300 of relation "cubes" is no point', 'a cube with an extent');
UPDATE cubes SET c = '(1,2,3)' WHERE id = 300;
SELECT is(failure($$ gpu_selfjoin('cubes', 1) $$), '22000 vectors of relation "cubes" have different numbers of dimensions',
  'a cube of other dimensions');
UPDATE cubes SET c = cube('{}'::float8[]) WHERE id = 300;
SELECT is(failure($$ gpu_selfjoin('cubes', 1) $$), '22000 the vector of row 300 of relation "cubes" has no dimensions',
  'a cube without dimensions');
-- Types of PostgreSQL's own come first where no column is named.
CREATE TABLE both_kinds AS SELECT a.id, c.c, a.v FROM arrays a JOIN cubes c USING (id) WHERE a.id < 200;
UPDATE both_kinds SET c = NULL;
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin('both_kinds', 2, id_column => 'id') $$,
  $$ SELECT a.id::bigint AS id1, b.id::bigint AS id2 FROM both_kinds a JOIN both_kinds b ON a.v <-> b.v <= 2 $$, 'the array is the default');
SELECT is_empty($$ SELECT * FROM gpu_selfjoin('both_kinds', 2, id_column => 'id', vector_columns => '{c}') $$, 'the cube is named');
\endif

\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
CREATE TABLE places (id int PRIMARY KEY, g geometry);
INSERT INTO places SELECT id, ST_SetSRID(ST_MakePoint(v[1], v[2]), 3857) FROM arrays;
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin_distance('places', 2) $$, $$ SELECT * FROM gpu_selfjoin_distance('arrays', 2) $$, 'geometries');
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin('places', 2, pairs => 'unordered') $$,
  $$ SELECT a.id::bigint AS id1, b.id::bigint AS id2 FROM places a JOIN places b ON ST_DWithin(a.g, b.g, 2) AND a.id < b.id
     WHERE a.id < 202 AND b.id < 202 UNION ALL VALUES (204::bigint, 205::bigint) $$, 'PostGIS thinks so, too');
INSERT INTO places VALUES (300, ST_SetSRID('POINT EMPTY'::geometry, 3857)), (301, ST_SetSRID(ST_MakePoint(3, 4, 5), 3857));
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin('places', 0) WHERE id1 >= 300 AND id2 >= 300 $$, 'VALUES (301::bigint, 301::bigint)',
  'what is empty matches nothing, and a height counts for nothing');
INSERT INTO places VALUES (302, ST_SetSRID('LINESTRING(0 0, 1 1)'::geometry, 3857));
SELECT is(failure($$ gpu_selfjoin('places', 1) $$), '22023 the value of row 302 of relation "places" is no point', 'a line');
UPDATE places SET g = ST_MakePoint(0, 0) WHERE id = 302;
SELECT is(failure($$ gpu_selfjoin('places', 1) $$), '22023 the vector of row 302 of relation "places" has another SRID than those before it',
  'two SRIDs in a table');
CREATE TABLE elsewhere AS SELECT id, ST_SetSRID(g, 4326) AS g FROM places;
DELETE FROM places WHERE id = 302;
SELECT is(failure($$ gpu_join('places', 'elsewhere', 1, right_id_column => 'id') $$),
  '22023 geometries of relations "places" and "elsewhere" have different SRIDs: 3857 and 4326', 'two tables of two SRIDs');
\endif

SELECT * FROM finish();
ROLLBACK;
