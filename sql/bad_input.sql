-- Every kind of bad input: SQLSTATE, message, hint.
SET client_min_messages = warning;
CREATE SCHEMA bad_input;
SET search_path = bad_input, public;

CREATE FUNCTION failure(query text, OUT state text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'SELECT * FROM ' || query;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
    hint = PG_EXCEPTION_HINT;
END $$;
\pset expanded on
\pset format unaligned

CREATE TABLE good (id int PRIMARY KEY, v float8[]);
INSERT INTO good VALUES (1, '{1,2}'), (2, '{3,4}');

-- eps, metric, pairs.
SELECT * FROM failure($$ gpu_selfjoin('good', -1) $$);
SELECT * FROM failure($$ gpu_selfjoin('good', 'NaN') $$);
SELECT * FROM failure($$ gpu_selfjoin('good', 'Infinity') $$);
SELECT * FROM failure($$ gpu_join('good', 'good', -0.5) $$);
SELECT * FROM failure($$ (VALUES (-2.5::float8)) t(e), gpu_selfjoin('good', e) $$);
SELECT * FROM failure($$ gpu_selfjoin('good', 1, metric => 'cosinus') $$);
SELECT * FROM failure($$ gpu_selfjoin('good', 1, pairs => 'some') $$);

-- The relation.
CREATE SEQUENCE numbers;
CREATE TYPE pair AS (a int, b int);
CREATE VIEW plain AS SELECT 1 AS id, 'x'::text AS t;
SELECT * FROM failure($$ gpu_selfjoin('no_such_table', 1) $$);
SELECT * FROM failure($$ gpu_selfjoin(1::oid::regclass, 1) $$);
SELECT * FROM failure($$ gpu_selfjoin('numbers', 1) $$);
SELECT * FROM failure($$ gpu_selfjoin('good_pkey', 1) $$);
SELECT * FROM failure($$ gpu_selfjoin('pair', 1) $$);
SELECT * FROM failure($$ gpu_selfjoin('plain', 1) $$);

-- Which vector.
CREATE TABLE many (id int PRIMARY KEY, a float8[], "B" float4[], p point, x float8, t text);
INSERT INTO many VALUES (1, '{1}', '{1}', '(1,1)', 1, 'x');
SELECT * FROM failure($$ gpu_selfjoin('many', 1) $$);
SELECT * FROM failure($$ gpu_join('many', 'good', 1) $$);
SELECT * FROM failure($$ gpu_join('good', 'many', 1) $$);
SELECT * FROM failure($$ gpu_selfjoin('many', 1, vector_columns => '{}') $$);
SELECT * FROM failure($$ gpu_selfjoin('many', 1, vector_columns => '{a,NULL}') $$);
SELECT * FROM failure($$ gpu_selfjoin('many', 1, vector_columns => '{c}') $$);
SELECT * FROM failure($$ gpu_selfjoin('many', 1, vector_columns => '{ctid}') $$);
SELECT * FROM failure($$ gpu_selfjoin('many', 1, vector_columns => '{t}') $$);
SELECT * FROM failure($$ gpu_selfjoin('many', 1, vector_columns => '{x,x}') $$);
SELECT * FROM failure($$ gpu_selfjoin('many', 1, vector_columns => '{a,x}') $$);
SELECT * FROM failure($$ gpu_selfjoin('many', 1, vector_columns => '{x,p}') $$);

-- Which id.
CREATE TABLE unkeyed (n int, m bigint, v float8[]);
CREATE TABLE two_keys (a int, b int, v float8[], PRIMARY KEY (a, b));
CREATE TABLE text_key (k text PRIMARY KEY, v float8[]);
SELECT * FROM failure($$ gpu_selfjoin('unkeyed', 1) $$);
SELECT * FROM failure($$ gpu_selfjoin('two_keys', 1) $$);
SELECT * FROM failure($$ gpu_selfjoin('text_key', 1) $$);
SELECT * FROM failure($$ gpu_join('good', 'unkeyed', 1) $$);
SELECT * FROM failure($$ gpu_selfjoin('unkeyed', 1, 'k') $$);
SELECT * FROM failure($$ gpu_join('unkeyed', 'good', 1, left_id_column => 'k') $$);
SELECT * FROM failure($$ gpu_selfjoin('text_key', 1, 'k') $$);
INSERT INTO unkeyed VALUES (1, 1, '{1}'), (NULL, 2, '{1}');
SELECT * FROM failure($$ gpu_selfjoin('unkeyed', 1, 'n') $$);

-- Which values.
CREATE TABLE data (id int PRIMARY KEY, v float8[]);
INSERT INTO data VALUES (11, '{1,2}'), (12, NULL), (13, '{1,2,3}');
SELECT * FROM failure($$ gpu_selfjoin('data', 1) $$);
DELETE FROM data WHERE id = 13;
SELECT * FROM failure($$ gpu_selfjoin('data', 1) $$);
INSERT INTO data VALUES (14, '{}');
SELECT * FROM failure($$ gpu_selfjoin('data', 1) $$);
UPDATE data SET v = '{{1,2},{3,4}}' WHERE id = 14;
SELECT * FROM failure($$ gpu_selfjoin('data', 1) $$);
TRUNCATE data;
INSERT INTO data VALUES (15, array_fill(0, '{16001}'));
SELECT * FROM failure($$ gpu_selfjoin('data', 1) $$);
UPDATE data SET v = array_fill(0, '{16000}');
SELECT * FROM failure($$ gpu_selfjoin('data', 1) $$);
SELECT * FROM failure($$ gpu_join('data', 'good', 1) $$);

-- The best pairs: k, scores and how they are put together.
CREATE TABLE scored (id int PRIMARY KEY, v float8[], s float8, n numeric, t text);
INSERT INTO scored VALUES (1, '{1,2}', 1, 1, 'x'), (2, '{3,4}', 2, 2, 'x'), (3, NULL, 'NaN', 3, 'x');
SELECT * FROM failure($$ gpu_topk_join('scored', 'scored', 1, 0) $$);
SELECT * FROM failure($$ gpu_topk_join('scored', 'scored', 1, -5) $$);
SELECT * FROM failure($$ gpu_topk_join('scored', 'scored', 1, 1000001) $$);
SELECT * FROM failure($$ gpu_topk_join('scored', 'scored', -1, 5) $$);
SELECT * FROM failure($$ gpu_topk_join('scored', 'scored', 1, 5, score => 'mean') $$);
SELECT * FROM failure($$ gpu_topk_join('scored', 'scored', 1, 5, best => 'largest') $$);
SELECT * FROM failure($$ gpu_topk_join('scored', 'scored', 1, 5, metric => 'l3') $$);
SELECT * FROM failure($$ gpu_topk_join('scored', 'scored', 1, 5, weights => '{1}') $$);
SELECT * FROM failure($$ gpu_topk_join('scored', 'scored', 1, 5, weights => '{1,NULL}') $$);
SELECT * FROM failure($$ gpu_topk_join('scored', 'scored', 1, 5, weights => '{1,NaN}') $$);
SELECT * FROM failure($$ gpu_topk_join('scored', 'scored', 1, 5, weights => '{1,1}', score => 'distance') $$);
SELECT * FROM failure($$ gpu_topk_join('scored', 'good', 1, 5) $$);
SELECT * FROM failure($$ gpu_topk_join('scored', 'good', 1, 5, left_score_column => 's') $$);
SELECT * FROM failure($$ gpu_topk_join('good', 'scored', 1, 5, left_score_column => 'id', right_score_column => 'S') $$);
SELECT * FROM failure($$ gpu_topk_join('good', 'scored', 1, 5, left_score_column => 'id', right_score_column => 't') $$);
SELECT * FROM failure($$ gpu_topk_join('good', 'good', 1, 5, left_score_column => 'v') $$);
SELECT * FROM failure($$ gpu_topk_join('many', 'good', 1, 5) $$);
UPDATE scored SET v = '{5,6}' WHERE id = 3;
SELECT * FROM failure($$ gpu_topk_join('scored', 'scored', 1, 5, left_score_column => 's', right_score_column => 's') $$);
UPDATE scored SET s = '-Infinity' WHERE id = 3;
SELECT * FROM failure($$ gpu_topk_join('scored', 'scored', 1, 5, left_score_column => 'n', right_score_column => 's') $$);
UPDATE scored SET n = 'NaN' WHERE id = 3;
SELECT * FROM failure($$ gpu_topk_join('scored', 'scored', 1, 5, left_score_column => 'n', right_score_column => 'n') $$);
UPDATE scored SET n = '1e309' WHERE id = 3;
SELECT * FROM failure($$ gpu_topk_join('scored', 'scored', 1, 5, left_score_column => 'n', right_score_column => 'n') $$);

-- Boxes.
CREATE TABLE boxes (id int PRIMARY KEY, b box, other box, low float8[], high float4[], x float8);
INSERT INTO boxes VALUES (1, '(0,0),(1,1)', NULL, '{0,0}', '{1,1}', 1), (2, '(0,0),(1,1)', NULL, '{0,0}', '{1,1}', 1);
CREATE VIEW one AS SELECT id, b FROM boxes;
SELECT * FROM failure($$ gpu_box_join('boxes', 'boxes', -1) $$);
SELECT * FROM failure($$ gpu_box_join('boxes', 'boxes', metric => 'cosine') $$);
SELECT * FROM failure($$ gpu_box_join('boxes', 'boxes') $$);
SELECT * FROM failure($$ gpu_box_join('good', 'boxes') $$);
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', left_id_column => 'id', right_box_columns => '{}') $$);
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', left_id_column => 'id', right_box_columns => '{low}') $$);
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', left_id_column => 'id', right_box_columns => '{low,high,x}') $$);
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', left_id_column => 'id', right_box_columns => '{low,x}') $$);
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', left_id_column => 'id', right_box_columns => '{low,low}') $$);
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', left_id_column => 'id', right_box_columns => '{low,b}') $$);
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', left_id_column => 'id', right_box_columns => '{low,NULL}') $$);
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', left_id_column => 'id', right_box_columns => '{B}') $$);
SELECT * FROM failure($$ gpu_box_join('one', 'one') $$);
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', 0, 'id', NULL, NULL, '{b}', pairs => 'each') $$);
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', 0, 'id', NULL, NULL, '{b}', pairs => 'distinct') $$);
SELECT * FROM failure($$ gpu_box_join('boxes', 'boxes', 0, NULL, NULL, '{b}', '{other}', pairs => 'unordered') $$);
SELECT * FROM failure($$ unnest('{all,unordered}'::text[]) p, gpu_box_join('boxes', 'boxes', 0, NULL, NULL, '{b}', '{other}', pairs => p) $$);
SELECT * FROM failure($$ gpu_box_join('boxes', 'boxes', 0, NULL, NULL, '{high,low}', '{high,low}') $$);
UPDATE boxes SET high = '{1,-1}' WHERE id = 2;
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', 0, 'id', NULL, NULL, '{low,high}') $$);
UPDATE boxes SET high = '{{1,1},{2,2}}' WHERE id = 2;
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', 0, 'id', NULL, NULL, '{low,high}') $$);
UPDATE boxes SET high = '{}' WHERE id = 2;
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', 0, 'id', NULL, NULL, '{low,high}') $$);
UPDATE boxes SET high = '{1,1,1}' WHERE id = 2;
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', 0, 'id', NULL, NULL, '{low,high}') $$);
UPDATE boxes SET low = '{0,0,0}' WHERE id = 2;
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', 0, 'id', NULL, NULL, '{low,high}') $$);
DELETE FROM boxes WHERE id = 1;
SELECT * FROM failure($$ gpu_box_join('boxes', 'boxes', 0, NULL, NULL, '{b}', '{low,high}') $$);
UPDATE boxes SET low = array_fill(0, '{9}'), high = array_fill(1, '{9}');
SELECT * FROM failure($$ gpu_box_join('one', 'boxes', 0, 'id', NULL, NULL, '{low,high}') $$);

-- The engine.
SET gpujoin.engine = 'cuda';
SELECT (f).state IS NULL OR (f).state = '0A000' AS expected
FROM failure($$ gpu_selfjoin('good', 1) $$) f;
RESET gpujoin.engine;

-- Two values.
SELECT * FROM failure($$ (SELECT '{1}'::float8[] <-> '{1,2}'::float8[]) s $$);
SELECT * FROM failure($$ (SELECT '{}'::float8[] <-> '{1}'::float8[]) s $$);
SELECT * FROM failure($$ (SELECT '{{1}}'::float4[] <-> '{1}'::float4[]) s $$);
SELECT * FROM failure($$ (SELECT gpu_within('{1}'::float4[], '{1,2}', 1)) s $$);
SELECT * FROM failure($$ (SELECT gpu_within('{1}'::float8[], '{2}', -1)) s $$);
SELECT * FROM failure($$ (SELECT gpu_within(point(0, 0), point(1, 1), 'NaN')) s $$);

-- After all that the session still joins.
SELECT count(*) FROM gpu_selfjoin('good', 1);
SELECT count(*) FROM gpu_topk_join('good', 'good', 10, 5, score => 'distance');
SELECT count(*) FROM gpu_box_join('one', 'one', 0, 'id', 'id');
DROP SCHEMA bad_input CASCADE;
