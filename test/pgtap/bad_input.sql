-- Bad input is refused with one SQLSTATE and message however a join is called: streamed by the node, stored by a
-- function scan, in a select list; by the functions with and without distances or of the best pairs, on either side.
-- What is wrong with two values is refused by operator and functions alike.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA bad_input;
SET search_path = bad_input, public;

CREATE TABLE good (id int PRIMARY KEY, v float8[]);
INSERT INTO good VALUES (1, '{1,2}'), (2, '{3,4}');
CREATE TABLE wordy (id int PRIMARY KEY, t text);
CREATE TABLE several (id int PRIMARY KEY, a float8[], b float4[], p point, x float8, t text);
INSERT INTO several VALUES (1, '{1,2}', '{1,2}', '(1,2)', 1, 'x');
CREATE TABLE unkeyed (n int, v float8[]);
INSERT INTO unkeyed VALUES (1, '{1,2}'), (NULL, '{1,2}');
CREATE TABLE null_without_vector (n int, v float8[]);
INSERT INTO null_without_vector VALUES (NULL, NULL);
CREATE TABLE text_key (k text PRIMARY KEY, v float8[]);
CREATE TABLE uneven (id int PRIMARY KEY, v float8[]);
INSERT INTO uneven VALUES (11, NULL), (12, '{1,2}'), (13, '{1,2}'), (14, '{1,2,3}');
CREATE TABLE uneven4 AS SELECT id, v::float4[] FROM uneven;
CREATE TABLE three (id int PRIMARY KEY, v float8[]);
INSERT INTO three VALUES (1, '{1,2,3}');
CREATE TABLE empty_vector (id int PRIMARY KEY, v float8[]);
INSERT INTO empty_vector VALUES (21, '{1,2}'), (22, '{}');
CREATE TABLE matrix (id int PRIMARY KEY, v float8[]);
INSERT INTO matrix VALUES (31, '{{1,2}}');
CREATE TABLE long (id int PRIMARY KEY, v float4[]);
INSERT INTO long VALUES (51, array_fill(0, '{16001}'));
CREATE TABLE overflowing (id int PRIMARY KEY, x numeric);
INSERT INTO overflowing VALUES (61, '1e400');
CREATE SEQUENCE numbers;
CREATE TYPE composite AS (id int, v float8[]);

-- A case names the arguments of the self-joins. That table on the left or right side of a join of two tables, and
-- its arguments named for that side, must fail alike.
CREATE TABLE cases (about text, tbl text, more text, state text, message text);
INSERT INTO cases VALUES
  ('eps below 0', 'good', 'eps => -1e-300', '22023', 'eps must be a finite number that is not negative, not -1e-300'),
  ('eps NaN', 'good', $$eps => 'NaN'$$, '22023', 'eps must be a finite number that is not negative, not NaN'),
  ('eps infinite', 'good', $$eps => 'Infinity'$$, '22023',
   'eps must be a finite number that is not negative, not Infinity'),
  ('eps infinite below 0', 'good', $$eps => '-Infinity'$$, '22023',
   'eps must be a finite number that is not negative, not -Infinity'),
  ('an unknown metric', 'good', $$metric => 'L3'$$, '22023', 'unknown metric "L3"'),
  ('an empty metric', 'good', $$metric => ''$$, '22023', 'unknown metric ""'),
  ('an unknown choice of pairs', 'good', $$pairs => 'Each'$$, '22023', 'unknown value "Each" of pairs'),
  ('a relation that does not exist', '4294967295', '', '42P01', 'relation with OID 4294967295 does not exist'),
  ('no relation at all', '0', '', '42P01', 'relation with OID 0 does not exist'),
  ('a sequence', 'numbers', '', '42809', 'cannot join relation "numbers"'),
  ('an index', 'good_pkey', '', '42809', 'cannot join relation "good_pkey"'),
  ('a composite type', 'composite', '', '42809', 'cannot join relation "composite"'),
  ('a relation without a vector', 'wordy', '', '42703', 'relation "wordy" has no vector column'),
  ('several vectors', 'several', '', '42702', 'relation "several" has several vector columns: "a", "b", "p"'),
  ('no column named', 'several', $$vector_columns => '{}'$$, '22023', 'SIDEvector_columns names no column'),
  ('no column in a text', 'several', $$vector_columns => ''$$, '22023', 'SIDEvector_columns names no column'),
  ('a NULL among the columns', 'several', $$vector_columns => '{a,NULL}'$$, '22004', 'SIDEvector_columns holds a NULL'),
  ('a text that is no list', 'several', $$vector_columns => 'a b'$$, '22023', 'SIDEvector_columns is no list of columns: "a b"'),
  ('a text that ends early', 'several', $$vector_columns => 'a,'$$, '22023', 'SIDEvector_columns is no list of columns: "a,"'),
  ('a number for columns', 'several', $$vector_columns => 1$$, '42804', 'SIDEvector_columns cannot be of type integer'),
  ('a missing column', 'several', $$vector_columns => '{A}'$$, '42703',
    'column "A" of relation "several" does not exist'),
  ('a system column', 'several', $$vector_columns => '{tableoid}'$$, '42703',
   'column "tableoid" of relation "several" does not exist'),
  ('a column twice', 'several', $$vector_columns => '{x,x}'$$, '42701', 'SIDEvector_columns names column "x" twice'),
  ('a column of words', 'several', $$vector_columns => '{x,t}'$$, '42804',
   'column "t" of relation "several" has type text, which cannot be a vector'),
  ('a vector among numbers', 'several', $$vector_columns => '{x,p}'$$, '42804',
   'column "p" of relation "several" is a vector by itself and cannot be combined with other columns'),
  ('no primary key', 'unkeyed', '', '42703', 'relation "unkeyed" has no primary key of one integer column'),
  ('a primary key of words', 'text_key', '', '42703', 'relation "text_key" has no primary key of one integer column'),
  ('a missing id', 'unkeyed', $$id_column => 'no'$$, '42703', 'column "no" of relation "unkeyed" does not exist'),
  ('an id of words', 'text_key', $$id_column => 'k'$$, '42804',
    'column "k" of relation "text_key" has type text, which cannot be an id'),
  ('a NULL id', 'unkeyed', $$id_column => 'n'$$, '22004', 'a row of relation "unkeyed" has a NULL id'),
  ('a NULL id without a vector', 'null_without_vector', $$id_column => 'n'$$, '22004',
   'a row of relation "null_without_vector" has a NULL id'),
  ('rows of different dimensions', 'uneven', '', '22000',
    'vectors of relation "uneven" have different numbers of dimensions'),
  ('float4 rows of different dimensions', 'uneven4', $$id_column => 'id'$$, '22000',
   'vectors of relation "uneven4" have different numbers of dimensions'),
  ('a vector of no dimensions', 'empty_vector', '', '22000',
   'the vector of row 22 of relation "empty_vector" has no dimensions'),
  ('an array of two dimensions', 'matrix', '', '2202E',
    'the vector of row 31 of relation "matrix" is an array of 2 dimensions'),
  ('too many dimensions', 'long', '', '54000', 'the vector of row 51 of relation "long" has 16001 dimensions'),
  ('a number that is out of range', 'overflowing', $$vector_columns => '{x}'$$, '22003',
   format('"1%s" is out of range for type double precision', repeat('0', 400)));

CREATE TABLE joins (f text, rest text);
INSERT INTO joins VALUES ('gpu_join', ''), ('gpu_join_distance', ''), ('gpu_topk_join', $$, k => 5, score => 'distance'$$);
CREATE TABLE calls AS
  SELECT about, call, state, replace(message, 'SIDE', side) AS message
  FROM (
    SELECT cases.*, '' AS side, format('%s(%L%s%s%s)', f, tbl, CASE WHEN more !~ 'eps' THEN ', eps => 1' END,
      CASE WHEN more <> '' THEN ', ' END, more) AS call
    FROM cases, unnest('{gpu_selfjoin,gpu_selfjoin_distance}'::text[]) f
    UNION ALL
    SELECT cases.*, 'left_', format('%s(%L, ''good''%s%s%s%s)', f, tbl, CASE WHEN more !~ 'eps' THEN ', eps => 1' END,
      CASE WHEN more <> '' THEN ', ' END, regexp_replace(more, '(vector_columns|id_column)', 'left_\1'), rest)
    FROM cases, joins WHERE more !~ 'pairs'
    UNION ALL
    SELECT cases.*, 'right_', format('%s(''good'', %L%s%s%s%s)', f, tbl, CASE WHEN more !~ 'eps' THEN ', eps => 1' END,
      CASE WHEN more <> '' THEN ', ' END, regexp_replace(more, '(vector_columns|id_column)', 'right_\1'), rest)
    FROM cases, joins WHERE more !~ 'pairs') s
  UNION ALL
  SELECT 'tables of different dimensions', format('%s(''three'', ''good'', 1%s)', f, rest), '22000',
         'vectors of relations "three" and "good" have different numbers of dimensions'
  FROM joins;
SELECT is(count(*), (SELECT count(*) * 8 FROM cases) - 6 + 3,
  'every case is tried in every function and on either side') FROM calls;

-- What a query fails with.
-- (Statement by statement: in one string, FETCH after DECLARE fails an assertion of PostgreSQL.)
CREATE FUNCTION failure(query text, node boolean, OUT state text, OUT message text) LANGUAGE plpgsql AS $$
DECLARE
  statement text;
BEGIN
  PERFORM set_config('gpujoin.enable_customscan', node::text, true);
  FOREACH statement IN ARRAY string_to_array(query, '; ') LOOP
    EXECUTE statement;
  END LOOP;
EXCEPTION WHEN OTHERS THEN
  state := SQLSTATE;
  message := SQLERRM;
END $$;
SELECT is(
  array_agg(DISTINCT coalesce(f.state, 'none') || ': ' || coalesce(f.message, '')),
  array_agg(DISTINCT c.state || ': ' || c.message),
  form.name || ', ' || c.about || ' is refused')
FROM calls c,
  (VALUES ('streamed', 'SELECT count(*) FROM %s', true), ('stored', 'SELECT count(*) FROM %s', false),
          ('in a select list', 'SELECT %s', true),
          ('before a row is asked for', 'DECLARE c CURSOR FOR SELECT * FROM %s; FETCH c; CLOSE c', true))
    form(name, query, node),
  failure(format(form.query, c.call), form.node) f
GROUP BY form.name, c.about;

-- What is known only while a query runs is refused then.
SELECT throws_ok($$ SELECT count(*) FROM (VALUES (1::float8), (-1)) t(e), LATERAL gpu_selfjoin('good', e) $$, '22023',
  'eps must be a finite number that is not negative, not -1', 'a negative eps among others is refused');
SELECT throws_ok(
  $$ SELECT count(*) FROM unnest('{l2,l3}'::text[]) m, LATERAL gpu_selfjoin('good', 1, metric => m) $$, '22023',
  'unknown metric "l3"', 'an unknown metric among others is refused');
SELECT throws_ok(
  $$ SELECT count(*) FROM unnest('{good,three,uneven}'::text[]) t, LATERAL gpu_selfjoin(t::regclass, 1) $$, '22000',
  'vectors of relation "uneven" have different numbers of dimensions', 'a bad table among others is refused');
PREPARE join_with(float8) AS SELECT count(*) FROM gpu_selfjoin('good', $1);
SET LOCAL plan_cache_mode = force_generic_plan;
SELECT throws_ok('EXECUTE join_with(''NaN'')', '22023', 'eps must be a finite number that is not negative, not NaN',
  'a parameter that is bad is refused');
SET LOCAL plan_cache_mode = force_custom_plan;
SELECT throws_ok('EXECUTE join_with(''NaN'')', '22023', 'eps must be a finite number that is not negative, not NaN',
  'a parameter that is bad is refused by the planner too');

-- Two values.
SELECT throws_ok(
  format('SELECT %s', replace(call, 'TYPE', type)), state, message, replace(call, 'TYPE', type) || ' is refused')
FROM unnest('{float4[],float8[]}'::text[]) type, (VALUES
  ($$ '{1}'::TYPE <-> '{1,2}'::TYPE $$, '22000', 'vectors have different numbers of dimensions: 1 and 2'),
  ($$ '{}'::TYPE <-> '{}'::TYPE $$, '22000', 'a vector has no dimensions'),
  ($$ '{1}'::TYPE <-> '{{1}}'::TYPE $$, '2202E', 'a vector is an array of 2 dimensions'),
  ($$ gpu_within('{1,2}'::TYPE, '{1}', 1) $$, '22000', 'vectors have different numbers of dimensions: 2 and 1'),
  ($$ gpu_within('{1}'::TYPE, '{}', 1) $$, '22000', 'a vector has no dimensions'),
  ($$ gpu_within('{{1}}'::TYPE, '{1}', 1) $$, '2202E', 'a vector is an array of 2 dimensions'),
  ($$ gpu_within('{1}'::TYPE, '{1}', -1) $$, '22023', 'eps must be a finite number that is not negative, not -1'),
  ($$ gpu_within('{1}'::TYPE, '{1}', 'Infinity') $$, '22023',
    'eps must be a finite number that is not negative, not Infinity'),
  ($$ '{1}'::TYPE <=> '{1,2}'::TYPE $$, '22000', 'vectors have different numbers of dimensions: 1 and 2'),
  ($$ '{}'::TYPE <+> '{}'::TYPE $$, '22000', 'a vector has no dimensions'),
  ($$ gpu_distance('{1}'::TYPE, '{1}', 'L3') $$, '22023', 'unknown metric "L3"'),
  ($$ gpu_within('{1}'::TYPE, '{1}', 1, '') $$, '22023', 'unknown metric ""'),
  ($$ gpu_within('{1}'::TYPE, '{1}', -1, 'cosine') $$, '22023', 'eps must be a finite number that is not negative, not -1'),
  ($$ gpu_within('{1}'::TYPE, '{1}', 'NaN') $$, '22023',
    'eps must be a finite number that is not negative, not NaN'))
  v(call, state, message);
SELECT throws_ok('SELECT gpu_within(point(0, 0), point(0, 0), -1)', '22023',
  'eps must be a finite number that is not negative, not -1', 'points with a negative eps are refused');

SELECT current_setting('server_version_num')::int >= 150000 AS reserves_prefixes \gset
\if :reserves_prefixes
SELECT throws_ok('SET gpujoin.no_such_setting = 1', '42602', 'invalid configuration parameter name "gpujoin.no_such_setting"',
  'a setting that there is not');
\endif

-- After all that, in the same transaction.
SELECT is(count(*), 2::bigint, 'after every error the next join works') FROM gpu_selfjoin('good', 1);

SELECT * FROM finish();
ROLLBACK;
