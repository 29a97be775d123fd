-- Joins in plain SQL over a distance: with the node GpuSimilarityJoin and without it a query returns the same rows,
-- whatever the type, the kind of join, the form of the clause, what stands beside it, below it and above it.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA planner_join;
SET search_path = planner_join, public;
SET jit = off;
SET extra_float_digits = 1;

\ir same_rows.psql

-- Points of a lattice, so that many pairs are exactly 5, 10 and sqrt(2) apart, and many equal; then what is odd.
CREATE FUNCTION lattice(n int, OUT id int, OUT x float8, OUT y float8) RETURNS SETOF record LANGUAGE sql AS $$
  SELECT i, i * 7 % 13, i * 5 % 11 FROM generate_series(1, n) i WHERE i % 17 <> 0
  UNION ALL SELECT i, NULL, NULL FROM generate_series(17, n, 17) i
  UNION ALL SELECT 1000 + row_number() OVER (), odd.x, odd.y FROM (VALUES
    ('NaN'::float8, 0::float8), ('NaN', 'NaN'), (0, 'NaN'), ('Infinity', 0), ('-Infinity', 0), ('Infinity', 'NaN'),
    ('Infinity', 'Infinity'), ('-0', '-0'), (0, '-0'), (5e-324, 0), (0, 5e-324), (1e-160, 1e-160), (1e-45, 0),
    (0.1, 0.2), (0.3, 0.1), (0.30000000000000004, 0.1), (5, 5e-324), (5.000000000000001, 0), (4.999999999999999, 0),
    (3.0000000000000004, 4), (1e16, 1), (1e16, 3), (1e200, 0), (1e200, 1e200), (16777217, 0), (16777216, 0)) odd(x, y)
$$;
CREATE TABLE a AS
  SELECT id, id % 7 AS grp, x, y, CASE WHEN x IS NOT NULL THEN ARRAY[x, y] END AS v,
    CASE WHEN x IS NOT NULL AND abs(x) <> 1e200 AND x NOT IN (1e-160, 5e-324) AND abs(y) NOT IN (1e200, 5e-324)
      THEN ARRAY[x, y]::float4[] END AS f,
    CASE WHEN x IS NOT NULL THEN point(x, y) END AS p,
    'row ' || id AS note, jsonb_build_object('id', id, 'odd', id > 1000) AS doc, NULL::text AS nothing
  FROM lattice(120);
CREATE TABLE b AS SELECT * FROM a WHERE id % 3 <> 0 OR id > 1000;
INSERT INTO b SELECT * FROM a WHERE id % 11 = 0;
ALTER TABLE a ADD PRIMARY KEY (id);
CREATE TABLE empty AS SELECT * FROM a LIMIT 0;
CREATE TABLE wide AS
  SELECT i AS id, i % 5 AS grp,
    (SELECT array_agg((i * k * 7919 % 31 / 3.1)::float8 ORDER BY k) FROM generate_series(1, 24) k) AS v
  FROM generate_series(1, 150) i;
INSERT INTO wide SELECT id + 1000, grp, v FROM wide WHERE id % 10 = 0;
CREATE TABLE radii (name text, eps float8);
INSERT INTO radii VALUES ('small', 1), ('five', 5), ('large', 12);
ANALYZE a, b, empty, wide, radii;

-- Each form of the clause in each kind of join.
CREATE TABLE forms (name text, clause text);
INSERT INTO forms VALUES
  ('float8 <=', 'l.v <-> r.v <= 5'),
  ('float8 <, constant first', '5 > r.v <-> l.v'),
  ('float8 gpu_within', 'gpu_within(l.v, r.v, 5)'),
  ('float4 <', 'l.f <-> r.f < 5'),
  ('float4 <=, constant first', '5 >= l.f <-> r.f'),
  ('float4 gpu_within', 'gpu_within(r.f, l.f, 5)'),
  ('float4 as float8', 'l.f::float8[] <-> r.v <= 5'),
  ('point <=', 'l.p <-> r.p <= 5'),
  ('point <, constant first', '5 > l.p <-> r.p'),
  ('point gpu_within', 'gpu_within(l.p, r.p, 5)'),
  ('columns as array', 'ARRAY[l.x, l.y] <-> ARRAY[r.x, r.y] <= 5'),
  ('columns as point', 'point(l.x, l.y) <-> point(r.x, r.y) <= 5');
-- An array of columns holds NULLs where they are NULL, and that is an error of the operator.
CREATE TABLE kinds (name text, query text, uses_node boolean);
INSERT INTO kinds VALUES
  ('inner', 'SELECT l.id, r.id FROM %2$s l JOIN %3$s r ON %1$s', true),
  ('left', 'SELECT l.id, r.id FROM %2$s l LEFT JOIN %3$s r ON %1$s', true),
  ('right', 'SELECT l.id, r.id FROM %2$s l RIGHT JOIN %3$s r ON %1$s', true),
  ('full', 'SELECT l.id, r.id FROM %2$s l FULL JOIN %3$s r ON l.grp = r.grp AND %1$s', false),
  ('exists', 'SELECT l.id FROM %2$s l WHERE EXISTS (SELECT FROM %3$s r WHERE %1$s)', true),
  ('in', 'SELECT l.id FROM %2$s l WHERE l.grp IN (SELECT r.grp FROM %3$s r WHERE %1$s)', NULL),
  ('anti', 'SELECT l.id FROM %2$s l WHERE NOT EXISTS (SELECT FROM %3$s r WHERE %1$s)', true);
CREATE VIEW a_known AS SELECT * FROM a WHERE x IS NOT NULL;
CREATE VIEW b_known AS SELECT * FROM b WHERE x IS NOT NULL;
SELECT same_rows(format(k.query, f.clause, 'a' || known, 'b' || known), k.uses_node, k.name || ' join, ' || f.name)
FROM forms f, kinds k, LATERAL (SELECT CASE WHEN f.clause LIKE 'ARRAY%' THEN '_known' ELSE '' END) s(known);
SELECT same_rows($$ SELECT l.id, r.id FROM a l JOIN b r ON ARRAY[l.x, l.y] <-> ARRAY[r.x, r.y] <= 5 $$, true,
  'an array of columns that are NULL');

-- Each eps, and every comparison.
SELECT same_rows(format('SELECT l.id, r.id FROM a l JOIN b r ON ' || clause, e, t.name),
  true, format(clause, e, t.name))
FROM unnest('{0,-0,5e-324,1e-45,4.999999999999999,5,5.000000000000001,1e200,1.7e308,1.4142135623730951,1.414213562373095,
    NaN,Infinity,-Infinity,-1,-5e-324}'::text[]) e,
  (VALUES ('v'), ('p')) t(name),
  (VALUES ('l.%2$s <-> r.%2$s <= %1$L'), ('%1$L > l.%2$s <-> r.%2$s'), ('gpu_within(l.%2$s, r.%2$s, %1$L)')) c(clause);
SELECT same_rows(format('SELECT l.id, r.id FROM a l JOIN b r ON l.f <-> r.f <= %L', e), true, 'float4, eps ' || e)
FROM unnest('{0,1e-45,4.999999999999999,5,1,NaN,Infinity,-1}'::text[]) e;
SELECT same_rows(format('SELECT l.id, r.id FROM a l %s JOIN b r ON %s', kind, format(clause, eps)), eps LIKE '(%',
  kind || ' join, ' || format(clause, eps))
FROM unnest('{INNER,LEFT}'::text[]) kind, unnest(ARRAY['NULL', '(SELECT NULL::float8)']) eps,
  unnest(ARRAY['l.v <-> r.v <= %s', '%s > l.v <-> r.v', 'gpu_within(l.v, r.v, %s)', 'l.p <-> r.p < %s']) clause;
SELECT same_rows(format('SELECT l.id FROM a l WHERE NOT EXISTS (SELECT FROM b r WHERE l.%s <-> r.%1$s <= %L)', t, e),
  true, format('anti join, %s, eps %s', t, e))
FROM unnest('{v,p}'::text[]) t, unnest('{0,NaN,Infinity,-1}'::text[]) e;
SELECT same_rows(format('SELECT l.id, r.id FROM a l LEFT JOIN b r ON l.%s <-> r.%1$s < %L', t, e),
  true, format('left join, %s, eps %s', t, e))
FROM unnest('{v,f,p}'::text[]) t, unnest('{0,NaN,Infinity,-1,5e-324}'::text[]) e;

-- What eps may be, what stands beside the clause, what is asked for, what lies below.
SET planner_join.eps = '5';
CREATE FUNCTION five() RETURNS float8 STABLE LANGUAGE plpgsql AS 'BEGIN RETURN 5; END';
CREATE FUNCTION any_five() RETURNS float8 VOLATILE LANGUAGE plpgsql AS 'BEGIN RETURN 5; END';
CREATE FUNCTION no_answer(float8[]) RETURNS float8[] STRICT IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE VIEW near AS SELECT l.id AS id1, r.id AS id2, l.v <-> r.v AS d FROM a l JOIN b r ON l.v <-> r.v <= 5;
CREATE TABLE parts (LIKE a) PARTITION BY LIST (grp);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES IN (0, 1, 2);
CREATE TABLE parts_high PARTITION OF parts FOR VALUES IN (3, 4, 5);
CREATE TABLE parts_rest PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT * FROM a;
CREATE TABLE parent (id int, v float8[]);
CREATE TABLE child (extra text) INHERITS (parent);
INSERT INTO parent SELECT id, v FROM a WHERE id % 2 = 0;
INSERT INTO child SELECT id, v, note FROM a WHERE id % 2 = 1;
CREATE DOMAIN radius AS float8 CHECK (value >= 0);
CREATE DOMAIN vec AS float8[];
CREATE MATERIALIZED VIEW stored AS SELECT id, grp, v FROM b;
ANALYZE parts, parent, child;

SELECT same_rows(query, uses_node, description) FROM (VALUES
  -- eps
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= five() $$, true, 'eps of a stable function'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON gpu_within(l.v, r.v, five() - 1) $$, true, 'eps of a stable expression'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= current_setting('planner_join.eps')::float8 $$, true,
    'eps of a setting'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= (SELECT max(eps) FROM radii) $$, true,
    'eps of a subquery'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= (SELECT eps FROM radii WHERE name = 'none') $$, true,
    'eps of a subquery without rows'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= (SELECT eps FROM radii) $$, true,
    'eps of a subquery with too many rows'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= any_five() $$, false, 'eps of a volatile function'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= l.grp $$, true, 'eps of the left table'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= r.grp + 1 $$, true, 'eps of the right table'),
  ($$ SELECT l.id, r.id, eps FROM a l JOIN b r ON true JOIN radii ON l.v <-> r.v < eps $$, NULL,
    'eps of a third table'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 5::radius $$, true, 'eps of a domain'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 5::numeric $$, true, 'eps numeric'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 4.9999999::float4 $$, true, 'eps float4'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON (l.v <-> r.v)::float4 <= 5 AND l.id < 900 AND r.id < 900 $$, NULL,
    'a distance rounded to float4'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON (l.v <-> r.v)::numeric <= 5 AND l.id < 900 AND r.id < 900 $$, NULL,
    'a distance as numeric'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON (l.v <-> r.v) ^ 2 <= 25 AND l.id < 900 AND r.id < 900 $$, NULL,
    'a distance squared'),
  -- other comparisons, which are no joins within a distance
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v >= 5 $$, false, 'beyond eps'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v > 5 $$, false, 'beyond eps, not on it'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON NOT (l.v <-> r.v > 5) $$, true, 'not beyond eps'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v = 5 $$, true, 'exactly eps'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v BETWEEN 1 AND 5 $$, true, 'a ring'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 5 OR l.id = r.id $$, false, 'within eps or equal'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 5 IS TRUE $$, NULL, 'the clause IS TRUE'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON (l.v <-> r.v <= 5) IS NOT FALSE $$, false, 'the clause IS NOT FALSE'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON (l.v <-> r.v <= 5) IS NULL $$, false, 'the clause IS NULL'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON NOT gpu_within(l.v, r.v, 5) $$, false, 'NOT gpu_within'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 5 AND l.v <-> r.v <= 3 $$, true, 'two radii'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 5 AND l.f <-> r.f <= 3 AND gpu_within(l.p, r.p, 4) $$, true,
    'three clauses of three types'),
  -- operands
  ($$ SELECT l.id FROM a l JOIN b r ON l.v <-> l.v <= 0 $$, false, 'both operands of one side'),
  ($$ SELECT l.id, r.id FROM a_known l JOIN b_known r ON ARRAY[l.x, r.y] <-> ARRAY[r.x, l.y] <= 5 $$, false,
    'operands that mix the sides'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> '{1,2}' <= 5 $$, false, 'an operand that is a constant'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON no_answer(l.v) <-> r.v <= 5 $$, true, 'an operand that is always NULL'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v::vec <-> r.v <= 5 $$, true, 'an operand of a domain'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.f <-> r.v::float4[] <= 5 AND r.id < 900 $$, true,
    'float8 as float4, which loses digits'),
  ($$ SELECT l.id, r.id FROM a_known l JOIN b_known r ON ARRAY[l.x + 1, -l.y] <-> ARRAY[r.x, r.grp] <= 2 $$, true,
    'operands of arithmetic'),
  ($$ SELECT l.id, r.id FROM a_known l JOIN b_known r ON array_append(l.v, 1) <-> (r.v || 2.0::float8) <= 2 $$, true,
    'operands of functions'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON coalesce(l.v, '{0,0}') <-> coalesce(r.v, '{1,1}') <= 2 $$, true,
    'operands with a default'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON ARRAY[random() * 0, 0] <-> r.v <= 2 AND l.id < 20 $$, NULL,
    'a volatile operand'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.p + point(1, 0) <-> r.p <= 2 $$, true, 'points that are moved'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON circle(l.p, 1) <-> circle(r.p, 1) <= 2 AND l.id < 900 AND r.id < 900 $$,
    false, 'circles have an operator of the same name'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.p <-> box(r.p, r.p + point(1, 1)) <= 1 AND l.id < 900 AND r.id < 900 $$,
    false, 'and points with boxes'),
  ($$ SELECT l.id, r.id FROM wide l JOIN wide r ON l.v <-> r.v <= 12 $$, true, '24 dimensions'),
  ($$ SELECT l.id, r.id FROM wide l JOIN wide r ON l.v <-> r.v <= 0 $$, true, '24 dimensions, equal ones'),
  ($$ SELECT l.id, r.id FROM wide l JOIN wide r ON l.v <-> r.v < 1000 $$, true, 'all rows within eps'),
  ($$ SELECT l.id, r.id FROM wide l JOIN wide r ON l.v[1:3] <-> r.v[1:3] <= 2 AND l.v[4] <= r.v[4] $$, true, 'slices'),
  -- beside the clause
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 5 AND l.id < r.id $$, true, 'an order of ids'),
  ($$ SELECT l.id, r.id FROM a l, b r WHERE l.v <-> r.v <= 5 AND l.grp = r.grp $$, true, 'an equality'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r USING (grp) WHERE gpu_within(l.v, r.v, 5) $$, true, 'USING'),
  ($$ SELECT * FROM (SELECT id, grp, v FROM a) l NATURAL JOIN (SELECT grp, v AS w FROM b) r WHERE v <-> w < 5 $$, true,
    'NATURAL'),
  ($$ SELECT l.id, r.id FROM a l LEFT JOIN b r ON l.v <-> r.v <= 5 AND l.id < r.id AND l.grp = r.grp $$, true,
    'left join, more in ON'),
  ($$ SELECT l.id, r.id FROM a l LEFT JOIN b r ON l.v <-> r.v <= 5 AND l.id % 2 = 0 $$, true,
    'left join, a filter of the left side in ON'),
  ($$ SELECT l.id, r.id FROM a l LEFT JOIN b r ON l.v <-> r.v <= 5 AND r.id % 2 = 0 $$, true,
    'left join, a filter of the right side in ON'),
  ($$ SELECT l.id, r.id FROM a l LEFT JOIN b r ON l.v <-> r.v <= 5 WHERE l.grp IS DISTINCT FROM r.grp $$, true,
    'left join, a filter after it that NULLs pass'),
  ($$ SELECT l.id FROM a l LEFT JOIN b r ON l.v <-> r.v <= 5 WHERE r.id IS NULL $$, true, 'left join, the lonely rows'),
  ($$ SELECT l.id, r.id, l.v <-> coalesce(r.v, '{1,1}') FROM a l LEFT JOIN b r ON l.v <-> coalesce(r.v, '{1,1}') <= 0.1 $$,
    true, 'left join, an operand that has a value in the lonely rows'),
  ($$ SELECT l.id, r.id FROM a l LEFT JOIN b r ON l.v <-> r.v <= 5 WHERE r.id > 50 $$, true,
    'left join that a filter makes inner'),
  ($$ SELECT l.id, r.id FROM a l LEFT JOIN b r ON true WHERE l.v <-> r.v <= 5 $$, true,
    'left join, the clause in WHERE'),
  ($$ SELECT l.id, r.id FROM a l FULL JOIN b r ON l.grp = r.grp WHERE l.v <-> r.v <= 5 $$, true,
    'full join, the clause in WHERE'),
  ($$ SELECT l.id, r.id FROM a l LEFT JOIN b r ON l.v <-> r.v <= 5 AND random() >= 0 $$, true, 'a volatile condition'),
  ($$ SELECT l.id, r.id FROM a l LEFT JOIN b r ON l.v <-> r.v <= 5 AND any_five() > r.id $$, true,
    'a volatile condition on a column'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 5
      AND l.grp + r.grp IN (SELECT grp FROM empty UNION VALUES (4)) $$, true, 'a subquery of both sides'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 3
      AND (SELECT count(*) FROM radii WHERE eps > l.grp AND eps > r.grp) > 1 $$, true, 'a correlated subquery'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 5 AND false $$, NULL, 'AND false'),
  ($$ SELECT l.id, r.id FROM a l LEFT JOIN b r ON l.v <-> r.v <= 5 AND false $$, NULL, 'left join, AND false'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 5 AND 'odd' = l.nothing || r.nothing $$, true, 'AND NULL'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 5 AND 100 / nullif(l.id + r.id, 0) >= 0 $$, true,
    'a condition that could fail'),
  ($$ SELECT l.id FROM a l WHERE EXISTS (SELECT FROM b r WHERE l.v <-> r.v <= 1 AND l.id <> r.id AND l.grp < r.grp) $$,
    true, 'exists, with other clauses'),
  ($$ SELECT l.id FROM a l WHERE NOT EXISTS (SELECT FROM b r WHERE l.v <-> r.v <= 1 AND l.id <> r.id AND l.grp < r.grp)
    $$, true, 'not exists, with other clauses'),
  ($$ SELECT l.id FROM a l WHERE NOT EXISTS (SELECT FROM a r WHERE l.v <-> r.v <= 1.5 AND l.id > r.id) $$, true,
    'the first of each neighbourhood'),
  ($$ SELECT l.id FROM a l WHERE EXISTS (SELECT FROM b r WHERE l.v <-> r.v <= 1) OR l.id < 10 $$, NULL,
    'exists inside OR'),
  ($$ SELECT l.id, EXISTS (SELECT FROM b r WHERE l.v <-> r.v <= 1) FROM a l $$, NULL, 'exists in the target list'),
  ($$ SELECT l.id FROM a l WHERE EXISTS (SELECT FROM b r WHERE l.v <-> r.v <= 5)
      AND NOT EXISTS (SELECT FROM b r WHERE l.v <-> r.v <= 1 AND l.id <> r.id) $$, true, 'exists and not exists'),
  ($$ SELECT l.id FROM a l WHERE l.v IN (SELECT v FROM b) AND EXISTS (SELECT FROM b r WHERE l.v <-> r.v < 1) $$, true,
    'exists and in'),
  ($$ SELECT l.id FROM a l WHERE l.id NOT IN (SELECT r.id FROM b r WHERE l.v <-> r.v <= 5) $$, NULL, 'not in'),
  ($$ SELECT l.id FROM a l WHERE l.id IN (SELECT s.id FROM a s JOIN b r ON s.v <-> r.v <= 1 AND s.id <> r.id) $$, true,
    'in a subquery that joins'),
  -- what is asked for
  ($$ SELECT l, r FROM a l JOIN b r ON l.v <-> r.v <= 3 $$, true, 'whole rows'),
  ($$ SELECT l, r FROM a l LEFT JOIN b r ON l.v <-> r.v <= 1 $$, true, 'whole rows that may be missing'),
  ($$ SELECT r IS NULL, r.id IS NULL, coalesce(r.note, l.note) FROM a l LEFT JOIN b r ON l.v <-> r.v <= 1 $$, true,
    'whether a row is missing'),
  ($$ SELECT * FROM a l LEFT JOIN b r ON l.v <-> r.v <= 1 $$, true, 'everything'),
  ($$ SELECT l.v <-> r.v AS d, l.note || r.note, l.doc -> 'id', r.doc, l.nothing, 7, five(), l.v || r.v
      FROM a l JOIN b r ON l.v <-> r.v <= 3 $$, true, 'expressions'),
  ($$ SELECT count(*) FROM a l JOIN b r ON l.v <-> r.v <= 5 $$, true, 'count(*)'),
  ($$ SELECT count(r.id), count(*), count(r.nothing) FROM a l LEFT JOIN b r ON l.v <-> r.v <= 1 $$, true, 'counts'),
  ($$ SELECT FROM a l JOIN b r ON l.v <-> r.v <= 3 $$, true, 'no column at all'),
  ($$ SELECT 'here' FROM a l JOIN b r ON l.v <-> r.v <= 3 $$, true, 'a constant'),
  ($$ SELECT l.note FROM a l JOIN b r ON l.v <-> r.v <= 3 $$, true, 'nothing of the right side'),
  ($$ SELECT r.doc FROM a l JOIN b r ON l.v <-> r.v <= 3 $$, true, 'nothing of the left side'),
  ($$ SELECT r.note FROM a l LEFT JOIN b r ON l.v <-> r.v <= 1 $$, true, 'left join, nothing of the left side'),
  ($$ SELECT l.tableoid::regclass, r.tableoid::regclass, l.ctid, r.ctid FROM a l LEFT JOIN b r ON l.v <-> r.v <= 1 $$,
    true, 'system columns'),
  ($$ SELECT l.id, generate_series(1, r.grp) FROM a l JOIN b r ON l.v <-> r.v <= 1 $$, true, 'a set for each pair'),
  ($$ SELECT l.id, l.id, r.id, l.id + r.id, l.id FROM a l JOIN b r ON l.v <-> r.v <= 2 $$, true, 'a column twice'),
  ($$ SELECT (SELECT max(eps) FROM radii WHERE eps > l.grp), r.id FROM a l JOIN b r ON l.v <-> r.v <= 2 $$, true,
    'a subquery in the target list'),
  ($$ SELECT l.id, (l.v <-> r.v <= 1) AS near FROM a l JOIN b r ON l.v <-> r.v <= 2 $$, true,
    'another clause in the target list'),
  -- what lies below
  ($$ SELECT l.id, r.id FROM a l JOIN a r ON l.v <-> r.v <= 5 $$, true, 'a table with itself'),
  ($$ SELECT l.id, r.id FROM a l JOIN empty r ON l.v <-> r.v <= 5 $$, true, 'an empty right side'),
  ($$ SELECT l.id, r.id FROM empty l JOIN a r ON l.v <-> r.v <= 5 $$, true, 'an empty left side'),
  ($$ SELECT l.id, r.id FROM empty l JOIN empty r ON l.v <-> r.v <= 5 $$, true, 'two empty sides'),
  ($$ SELECT l.id, r.id FROM a l LEFT JOIN empty r ON l.v <-> r.v <= 5 $$, true, 'left join, an empty right side'),
  ($$ SELECT l.id, r.id FROM empty l LEFT JOIN a r ON l.v <-> r.v <= 5 $$, true, 'left join, an empty left side'),
  ($$ SELECT l.id, r.id FROM empty l RIGHT JOIN a r ON l.v <-> r.v <= 5 $$, true, 'right join, an empty left side'),
  ($$ SELECT l.id FROM a l WHERE EXISTS (SELECT FROM empty r WHERE l.v <-> r.v <= 5) $$, true, 'exists in nothing'),
  ($$ SELECT l.id FROM a l WHERE NOT EXISTS (SELECT FROM empty r WHERE l.v <-> r.v <= 5) $$, true,
    'not exists in nothing'),
  ($$ SELECT l.id FROM empty l WHERE NOT EXISTS (SELECT FROM a r WHERE l.v <-> r.v <= 5) $$, true,
    'of nothing not exists'),
  ($$ SELECT l.id, r.id FROM a l LEFT JOIN (SELECT * FROM b WHERE v IS NULL) r ON l.v <-> r.v <= 5 $$, true,
    'left join, NULLs on the right side'),
  ($$ SELECT l.id FROM a l WHERE NOT EXISTS (SELECT FROM b r WHERE r.v IS NULL AND l.v <-> r.v <= 5) $$, true,
    'not exists, NULLs on the right side'),
  ($$ SELECT l.id, r.id FROM a l JOIN empty r ON gpu_within(l.v, r.v, -1) $$, true, 'a bad eps, and nobody calls'),
  ($$ SELECT l.id, r.id FROM a l LEFT JOIN empty r ON gpu_within(l.v, r.v, 'NaN') $$, true,
    'left join, a bad eps, and nobody calls'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON gpu_within(l.v, r.v, -1) WHERE l.v IS NULL $$, true,
    'a bad eps, and NULLs alone'),
  ($$ SELECT l.id, r.id FROM (SELECT * FROM a WHERE id = 5) l JOIN (SELECT * FROM b WHERE id = 4) r
      ON l.v <-> r.v <= 500 $$, true, 'one row a side'),
  ($$ SELECT l.id, r.id FROM (SELECT * FROM a ORDER BY id DESC LIMIT 30) l JOIN (SELECT DISTINCT ON (grp) * FROM b
      ORDER BY grp, id) r ON l.v <-> r.v <= 5 $$, true, 'subqueries with LIMIT and DISTINCT'),
  ($$ SELECT l.g, r.id FROM (SELECT grp AS g, ARRAY[avg(x), avg(y)] AS c FROM a WHERE id < 900 GROUP BY grp) l
      JOIN b r ON l.c <-> r.v <= 2 $$, true, 'an aggregate below'),
  ($$ SELECT l.id, r.id FROM (SELECT id, array_agg(c ORDER BY n) AS w FROM a, unnest(v) WITH ORDINALITY u(c, n)
      GROUP BY id) l LEFT JOIN b r ON l.w <-> r.v <= 2 $$, true, 'vectors put together below'),
  ($$ WITH l AS (SELECT * FROM a WHERE id < 60) SELECT l.id, r.id FROM l JOIN b r ON l.v <-> r.v <= 5 $$, true,
    'a CTE'),
  ($$ WITH l AS MATERIALIZED (SELECT * FROM a WHERE id < 60) SELECT l.id, r.id FROM l JOIN l r ON l.v <-> r.v <= 5 $$,
    true, 'a materialised CTE with itself'),
  ($$ WITH n AS MATERIALIZED (SELECT l.id, r.id AS other FROM a l JOIN b r ON l.v <-> r.v <= 2)
      SELECT n.id, m.other FROM n JOIN n m ON n.other = m.id WHERE n.id < 20 $$, true, 'a join in a CTE, joined'),
  ($$ SELECT l.id, r.id FROM (VALUES (1, '{0,0}'::float8[]), (2, '{3,4}'), (3, NULL), (4, '{NaN,0}')) l(id, w)
      JOIN b r ON w <-> r.v <= 5 $$, true, 'VALUES'),
  ($$ SELECT i, r.id FROM generate_series(1, 10) i JOIN b_known r ON ARRAY[i, i]::float8[] <-> r.v <= 2 $$, true,
    'a function'),
  ($$ SELECT n, r.id FROM ROWS FROM (generate_series(1, 3), unnest('{9,8,7}'::float8[])) AS f(n, c)
      LEFT JOIN b_known r ON ARRAY[n, c]::float8[] <-> r.v <= 2 $$, true, 'functions side by side'),
  ($$ SELECT l.id1, l.id2, r.id FROM gpu_selfjoin('a', 1, 'id', '{v}', pairs => 'unordered') l JOIN b_known r
      ON ARRAY[l.id1, l.id2]::float8[] <-> r.v <= 5 $$, true, 'a join function below'),
  ($$ SELECT * FROM near $$, true, 'a view'),
  ($$ SELECT id1, count(*), min(d), max(d) FROM near WHERE id1 < 50 GROUP BY id1 HAVING count(*) > 2 $$, true,
    'a view, grouped'),
  ($$ SELECT n.id1, m.id2 FROM near n JOIN near m ON n.id2 = m.id1 WHERE n.id1 < 5 $$, true, 'a view with itself'),
  ($$ SELECT l.id, r.id FROM stored l JOIN stored r ON l.v <-> r.v <= 5 $$, true, 'a materialised view'),
  ($$ SELECT l.id, r.id FROM parts l JOIN b r ON l.v <-> r.v <= 5 $$, true, 'partitions'),
  ($$ SELECT l.tableoid::regclass, l.id, r.tableoid::regclass, r FROM parts l LEFT JOIN parts r
      ON l.v <-> r.v <= 2 AND l.id <> r.id $$, true, 'left join of partitions'),
  ($$ SELECT l.id, r.id FROM parts l JOIN parts r ON l.v <-> r.v <= 5 WHERE l.grp = 1 AND r.grp IN (3, 6) $$, true,
    'partitions, pruned'),
  ($$ SELECT l.id FROM parts l WHERE NOT EXISTS (SELECT FROM parts r WHERE l.v <-> r.v <= 1 AND l.id <> r.id) $$, true,
    'not exists, partitions'),
  ($$ SELECT l.tableoid::regclass, l.id, r.id FROM parent l JOIN parent r ON l.v <-> r.v <= 2 $$, true, 'inheritance'),
  ($$ SELECT l.id, r.id FROM ONLY parent l JOIN child r ON l.v <-> r.v <= 2 $$, true, 'ONLY'),
  ($$ SELECT l.id, r.id FROM (SELECT id, v FROM a WHERE id < 40 UNION ALL SELECT id, v FROM b WHERE id > 1000) l
      JOIN b r ON l.v <-> r.v <= 2 $$, true, 'UNION ALL below'),
  ($$ SELECT l.id, r.id FROM (SELECT v, min(id) AS id FROM a GROUP BY v) l JOIN (SELECT DISTINCT v, grp AS id FROM b) r
      ON l.v <-> r.v <= 2 $$, true, 'GROUP BY and DISTINCT below'),
  ($$ SELECT l.id, r.id FROM a l TABLESAMPLE system (100) JOIN b r ON l.v <-> r.v <= 2 $$, true, 'a sample'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 2 WHERE l.id BETWEEN 10 AND 30 AND r.grp = 3
      AND l.note LIKE 'row 1%' $$, true, 'filters of each side'),
  -- more joins than one
  ($$ SELECT l.id, m.id, r.id FROM a l JOIN b m ON l.v <-> m.v <= 1 JOIN a r ON m.v <-> r.v <= 1 $$, true,
    'a chain of distances'),
  ($$ SELECT l.id, m.id, r.id FROM a l JOIN b m ON l.v <-> m.v <= 1 JOIN a r ON l.grp = r.grp AND l.id < 20 $$, true,
    'a distance, then an equality'),
  ($$ SELECT l.id, m.id, r.id FROM a l JOIN b m ON l.id = m.id JOIN a r ON m.v <-> r.v <= 1 AND l.grp <> r.grp $$, true,
    'an equality, then a distance'),
  ($$ SELECT l.id, m.id, r.id FROM a l LEFT JOIN b m ON l.v <-> m.v <= 1 LEFT JOIN a r ON m.v <-> r.v <= 1
      AND r.id > m.id $$, true, 'a chain of left joins'),
  ($$ SELECT l.id, m.id, r.id FROM a l LEFT JOIN (b m JOIN a r ON m.v <-> r.v <= 1 AND m.id < r.id) ON l.id = m.id
      AND l.v <-> r.v <= 2 $$, true, 'left join of a join'),
  ($$ SELECT l.id, m.id, r.id FROM a l JOIN b m ON l.v <-> m.v <= 1 JOIN a r ON l.v <-> r.v <= 1 AND m.v <-> r.v <= 1
      WHERE l.id < m.id AND m.id < r.id $$, true, 'triangles'),
  ($$ SELECT l.id, m.id, r.id FROM a_known l, b_known m, a_known r
      WHERE l.id + 1 = m.id AND ARRAY[l.x, m.y] <-> r.v <= 1 $$, true, 'an operand of two tables'),
  ($$ SELECT name, l.id, r.id FROM radii, a l, b r WHERE l.v <-> r.v <= 1 AND l.grp < eps $$, true,
    'and a third table'),
  ($$ SELECT name, n FROM radii, LATERAL (SELECT count(*) AS n FROM a l JOIN b r ON l.v <-> r.v <= eps) s $$, true,
    'lateral, eps from outside'),
  ($$ SELECT name, s.* FROM radii LEFT JOIN LATERAL (SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= eps
      ORDER BY l.v <-> r.v DESC, l.id, r.id LIMIT 3) s ON true $$, true, 'lateral with a limit'),
  ($$ SELECT l.id, s.* FROM a l, LATERAL (SELECT r.id, l.v <-> r.v AS d FROM b r WHERE l.v <-> r.v <= 2
      ORDER BY d, r.id LIMIT 2) s $$, NULL, 'the nearest two'),
  ($$ SELECT l.id, s.id FROM a l, LATERAL (SELECT r.id FROM b r WHERE l.v <-> r.v <= 2) s $$, true,
    'lateral that is a plain join'),
  ($$ SELECT l.id, s.w FROM a l, LATERAL (SELECT r.v || l.v AS w, r.v FROM b r WHERE r.grp = l.grp) s
      WHERE l.v <-> s.v <= 2 $$, true, 'lateral with an equality'),
  -- above
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 5
      ORDER BY l.v <-> r.v, l.id, r.id LIMIT 10 OFFSET 3 $$, true,
    'ORDER BY and LIMIT'),
  ($$ SELECT l.grp, r.grp, count(*), sum(l.id), avg(l.v <-> r.v)::numeric(12, 6) FROM a l JOIN b r ON l.v <-> r.v <= 5
      GROUP BY 1, 2 $$, true, 'GROUP BY'),
  ($$ SELECT DISTINCT l.grp, r.note FROM a l JOIN b r ON l.v <-> r.v <= 5 $$, true, 'DISTINCT'),
  ($$ SELECT l.id, rank() OVER (PARTITION BY l.id ORDER BY l.v <-> r.v) FROM a l JOIN b r ON l.v <-> r.v <= 2 $$, true,
    'a window'),
  ($$ SELECT l.id FROM a l JOIN b r ON l.v <-> r.v <= 1
      EXCEPT SELECT l.id FROM a l JOIN b r ON l.p <-> r.p < 1 $$, true,
    'EXCEPT')
) AS corpus(query, uses_node, description);

-- An error of the clause is the node's too, wherever some pair meets it.
CREATE TABLE bad (kind text, w float8[]);
INSERT INTO bad VALUES ('three numbers', '{1,2,3}'), ('no number', '{}'), ('a NULL inside', '{1,NULL}'),
  ('two dimensions', '{{1},{2}}');
SELECT same_rows(format('SELECT l.id FROM a l JOIN bad r ON kind = %L AND l.v <-> w <= %L', kind, eps), NULL,
  format('%s, eps %s', kind, eps))
FROM bad, unnest('{5,1.7e308}'::text[]) eps;
SELECT same_rows(format('SELECT l.id FROM %s JOIN bad r ON l.id < 900 AND kind = %L AND %s', l, kind, clause), NULL,
  format('%s: %s', kind, clause))
FROM bad, (VALUES ('a l LEFT', 'l.v <-> w <= 5'), ('empty l', 'l.v <-> w <= 5'), ('a_known l', 'gpu_within(w, l.v, 5)'),
  ('(SELECT * FROM a WHERE v IS NULL) l', 'l.v <-> w <= 5')) t(l, clause);
-- Points too far apart for float8 are an error of the operator, not of gpu_within(). Rows or this error, not others.
CREATE TABLE far AS SELECT i AS id, point(i * 1e308, 0) AS p FROM generate_series(-1, 1, 2) i;
SELECT same_rows('SELECT l.id, r.id FROM far l JOIN far r ON gpu_within(l.p, r.p, 1.7e308)', true, 'points far apart');
SELECT force_node(true) \gset
SELECT ok(rows = '{"(-1,-1)","(1,1)"}' OR rows[1] LIKE 'ERROR 22003%', 'points that are too far apart')
FROM bag('SELECT l.id, r.id FROM far l JOIN far r ON l.p <-> r.p <= 5') rows;
SELECT force_node(false) \gset

-- Off is off, and the default costs leave a join of a few rows to the ordinary plan.
SELECT ok(NOT has_node('SELECT FROM (SELECT * FROM a LIMIT 3) l JOIN (SELECT * FROM b LIMIT 3) r ON l.v <-> r.v <= 5'),
  'with the setting off nothing is taken over');
RESET gpujoin.enable_customscan;
SELECT ok(NOT has_node('SELECT FROM (SELECT * FROM a LIMIT 3) l JOIN (SELECT * FROM b LIMIT 3) r ON l.v <-> r.v <= 5'),
  'three rows with three rows are not worth a node');

SELECT bool_or(name = 'cube') AS has_cube, bool_or(name = 'postgis') AS has_postgis
FROM pg_available_extensions WHERE name IN ('cube', 'postgis') \gset
SELECT count(*) > 0 AS has_vector FROM pg_available_extensions WHERE name = 'vector' \gset

-- A cube may be a box, may have any number of dimensions, the missing ones being 0, and does its own sums.
\if :has_cube
CREATE EXTENSION IF NOT EXISTS cube;
CREATE TABLE cubes AS
  SELECT id, grp, CASE WHEN id % 19 = 0 AND id < 900 THEN cube(ARRAY[x, y], ARRAY[x + 1.5, y - 0.5])
    WHEN id % 23 = 0 AND id < 900 THEN cube(ARRAY[x, y, 0]) WHEN id % 29 = 0 AND id < 900 THEN cube(x)
    WHEN v IS NOT NULL THEN cube(v) END AS c,
    CASE WHEN v IS NOT NULL AND id < 900 THEN cube(v) END AS flat
  FROM a;
INSERT INTO cubes VALUES (2000, 1, '(0)'), (2001, 1, '(0.1,0.2),(0.1,0.2)'), (2002, 1, cube('{}'::float8[]));
ANALYZE cubes;
SELECT same_rows(format(replace(k.query, '%3$s', '%2$s'), f.clause, 'cubes'),
  CASE WHEN k.uses_node AND f.clause NOT LIKE '%.c %' THEN true WHEN NOT k.uses_node THEN false END,
  k.name || ' join, cubes: ' || f.clause)
FROM kinds k, (VALUES ('l.flat <-> r.flat <= 5'), ('5 > l.flat <-> r.flat'), ('l.c <-> r.c <= 5'),
  ('l.c <-> r.c < 1.4142135623730951')) f(clause);
SELECT same_rows(format('SELECT l.id, r.id FROM cubes l JOIN cubes r ON l.c %s r.c <= %L', operator, eps), NULL,
  format('cubes: %s <= %s', operator, eps))
FROM unnest('{<->,<=>,<#>}'::text[]) operator, unnest('{0,1,4.999999999999999,NaN,Infinity,-1}'::text[]) eps;
SELECT same_rows($$ SELECT l.id, r.id FROM cubes l JOIN a_known r ON l.flat <-> cube(ARRAY[r.x, r.y]) < 2 $$,
  true, 'cubes made of columns');
\else
SELECT skip('no cube', 1);
\endif

-- A geometry may be more than a point, may be empty, and has a z that ST_DWithin does not see.
\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
CREATE TABLE geometries AS
  SELECT id, grp, CASE WHEN id % 19 = 0 AND id < 900 THEN ST_MakeLine(ST_MakePoint(x, y), ST_MakePoint(x + 2, y + 1))
    WHEN id % 23 = 0 AND id < 900 THEN 'POINT EMPTY' WHEN id % 29 = 0 AND id < 900 THEN ST_MakePoint(x, y, 100)
    WHEN id % 31 = 0 AND id < 900 THEN ST_Buffer(ST_MakePoint(x, y), 1)
    WHEN id % 37 = 0 AND id < 900 THEN ST_Collect(ST_MakePoint(x, y), ST_MakePoint(y, x))
    WHEN v IS NOT NULL THEN ST_MakePoint(x, y) END AS g,
    CASE WHEN v IS NOT NULL AND id < 900 THEN ST_SetSRID(ST_MakePoint(x, y), 4326) END AS flat,
    CASE WHEN v IS NOT NULL AND id < 900 THEN ST_SetSRID(ST_MakePoint(x, y), 3857) END AS other
  FROM a;
ANALYZE geometries;
SELECT same_rows(format(replace(k.query, '%3$s', '%2$s'), f.clause, 'geometries'),
  CASE WHEN k.uses_node AND f.clause NOT LIKE '%.g,%' THEN true WHEN NOT k.uses_node THEN false END,
  k.name || ' join, geometries: ' || f.clause)
FROM kinds k, (VALUES ('ST_DWithin(l.flat, r.flat, 5)'), ('ST_DWithin(r.flat, l.flat, 1.4142135623730951)'),
  ('ST_DWithin(l.g, r.g, 5)'), ('ST_DWithin(l.g, r.g, 1.414213562373095)')) f(clause);
SELECT same_rows(format('SELECT l.id, r.id FROM geometries l JOIN geometries r ON ST_DWithin(l.%s, r.%1$s, %L)',
  t, eps), true, format('geometries: column %s, eps %s', t, eps))
FROM unnest('{g,flat}'::text[]) t,
  unnest('{0,-0,5e-324,4.999999999999999,5.000000000000001,NaN,Infinity,-1}'::text[]) eps;
SELECT same_rows($$ SELECT l.id, r.id FROM geometries l JOIN geometries r ON ST_DWithin(l.flat, r.other, 5) $$, true,
  'geometries of two systems of coordinates');
SELECT same_rows($$ SELECT l.id, r.id FROM geometries l JOIN geometries r ON ST_DWithin(l.flat, r.other, 5)
  AND l.flat IS NULL $$, true, 'geometries of two systems of coordinates, one side NULL');
SELECT same_rows($$ SELECT l.id, r.id FROM geometries l JOIN geometries r ON l.g <-> r.g <= 5 $$, NULL,
  'geometries by their operator');
SELECT same_rows($$ SELECT l.id, r.id FROM geometries l JOIN geometries r ON ST_DWithin(ST_MakePoint(l.grp, 1),
  ST_Centroid(r.g), 2) AND l.id < 900 $$, true, 'geometries made below');
SELECT same_rows($$ SELECT l.id, r.id FROM geometries l JOIN geometries r
  ON ST_DWithin(l.flat::geography, r.flat::geography, 200000) AND l.id < 60 AND r.id < 60 $$, NULL,
  'geography is another type');
SELECT same_rows($$ SELECT l.id, r.id FROM geometries l JOIN geometries r ON ST_DFullyWithin(l.g, r.g, 5)
  AND l.id < 900 AND r.id < 900 $$, true, 'ST_DFullyWithin implies a distance');
CREATE INDEX ON geometries USING gist (flat);
SELECT same_rows($$ SELECT l.id, r.id FROM geometries l JOIN geometries r ON ST_DWithin(l.flat, r.flat, 2) $$, true,
  'geometries with an index');
\else
SELECT skip('no PostGIS', 1);
\endif

-- pgvector sums in float4.
\if :has_vector
CREATE EXTENSION IF NOT EXISTS vector;
SELECT to_regtype('halfvec') IS NOT NULL AS has_halfvec,
  to_regoperator('<+>(vector,vector)') IS NOT NULL AS has_l1 \gset
CREATE TABLE vectors AS
  SELECT id, grp, v::vector AS w FROM wide
  UNION ALL SELECT 2000 + id, grp, (SELECT array_agg(c + id * 1e-7) FROM unnest(v) c)::vector FROM wide WHERE id % 5 = 0
  UNION ALL SELECT 3000, 0, array_fill(0, '{24}')::vector UNION ALL SELECT 3001, 0, NULL;
ANALYZE vectors;
SELECT same_rows(format(replace(k.query, '%3$s', '%2$s'), f.clause, 'vectors'), k.uses_node,
  k.name || ' join, vectors: ' || f.clause)
FROM kinds k, (VALUES ('l.w <-> r.w <= 12'), ('12 > l2_distance(l.w, r.w)'), ('l.w <=> r.w <= 0.1')) f(clause);
SELECT same_rows(format('SELECT l.id, r.id FROM vectors l JOIN vectors r ON l.w <-> r.w <= %L', d), NULL,
  'vectors just ' || d || ' apart')
FROM (SELECT DISTINCT l.w <-> r.w FROM vectors l, vectors r WHERE l.id = 7 AND r.id % 12 = 0) s(d);
SELECT same_rows(format('SELECT l.id, r.id FROM vectors l JOIN vectors r ON l.w %s r.w <= %L', operator, eps), NULL,
  format('vectors: %s <= %s', operator, eps))
FROM unnest('{<->,<=>,<#>}'::text[]) operator, unnest('{0,1,2,NaN,Infinity,-1}'::text[]) eps;
\if :has_l1
SELECT same_rows(format('SELECT l.id, r.id FROM vectors l JOIN vectors r ON l.w <+> r.w < %L', eps), NULL,
  format('vectors: <+> < %s', eps))
FROM unnest('{0,40,1000}'::text[]) eps;
\endif
\if :has_halfvec
CREATE TABLE halves AS SELECT id, grp, w::halfvec AS w FROM vectors;
SELECT same_rows(format(replace(k.query, '%3$s', '%2$s'), f.clause, 'halves'), k.uses_node,
  k.name || ' join, half vectors: ' || f.clause)
FROM kinds k, (VALUES ('l.w <-> r.w <= 12'), ('l.w <=> r.w < 0.1'), ('l.w <+> r.w <= 40')) f(clause);
\endif
\else
SELECT skip('no pgvector', 1);
\endif

-- Columns that an outer join below makes NULL: the planner wraps what a subquery computes.
SELECT same_rows(query, true, 'placeholders ' || row_number() OVER ()) FROM (VALUES
  ('SELECT l.id, r.id FROM (SELECT m.id, s.w FROM a_known m LEFT JOIN (SELECT id, ARRAY[x, y] AS w FROM b_known) s
      ON m.id = s.id) l JOIN a_known r ON l.w <-> ARRAY[r.x, r.y] <= 2'),
  ('SELECT l.id, r.w FROM a_known l LEFT JOIN (SELECT id, coalesce(ARRAY[x, y], ''{0,0}'') AS w, 7 AS seven FROM b_known) r
      ON ARRAY[l.x, l.y] <-> r.w <= 2 AND r.seven > l.id % 9'),
  ('SELECT l.id, s.one, s.w FROM a_known l LEFT JOIN (SELECT 1 AS one, m.id, ARRAY[m.x, n.y] AS w FROM b_known m JOIN b_known n
      ON m.id = n.id) s ON ARRAY[l.x, l.y] <-> s.w <= 1')) t(query);

-- What no device can do, or where there is none.
SET gpujoin.engine = 'cuda';
SELECT same_rows(format(k.query, 'l.v <-> r.v <= 5', 'a', 'b'), k.uses_node, k.name || ' join under engine = cuda') FROM kinds k;
RESET gpujoin.engine;

SELECT * FROM finish();
ROLLBACK;
