-- Aggregates over joins whose pairs the node adds up: what PostgreSQL itself finds, whatever is added up, grouped and
-- filtered, and where only pairs will do.
BEGIN;
CREATE SCHEMA planner_sums;
SET search_path = planner_sums, public;
SET jit = off;
SET extra_float_digits = 1;
\ir same_rows.psql
SELECT * FROM no_plan();

-- Values that doubles add up without rounding, so that no order of the sums shows.
CREATE TABLE a AS SELECT i AS id, i % 7 AS grp, 'r' || i % 5 AS region, (i % 9 - 4) / 8.0::float8 AS w,
  CASE WHEN i % 11 <> 0 THEN ARRAY[i % 20, i / 20]::float8[] END AS v,
  CASE i % 4 WHEN 0 THEN NULL ELSE (i % 4)::smallint END AS kind, point(i % 20, i / 20) AS p
  FROM generate_series(1, 400) i;
CREATE TABLE b AS SELECT i AS id, ARRAY[i % 23, i / 23]::float8[] AS v,
  (i % 13 - 6)::smallint AS s, CASE WHEN i % 5 <> 0 THEN i * 7 - 1000 END AS i,
  (i * 1234567890123 - 300000000000000) AS l, ((i % 97) * 1.37 - 50)::numeric(10, 2) AS n,
  (i % 33 - 12) / 4.0::real AS r, CASE WHEN i % 3 <> 0 THEN (i % 50 - 20) / 16.0::float8 END AS f,
  i % 6 <> 0 AS yes, date '2026-01-01' + i % 40 AS d, timestamp '2026-01-01' + i * interval '1 minute' AS t,
  point(i % 23, i / 23) AS p
  FROM generate_series(1, 500) i;
ALTER TABLE a ADD PRIMARY KEY (id);
ALTER TABLE b ADD PRIMARY KEY (id);
ANALYZE a, b;

-- Whether the node adds the pairs up itself.
CREATE FUNCTION adds_up(query text) RETURNS boolean LANGUAGE sql AS $$ SELECT property('Added Up', query) IS NOT NULL $$;

-- Each aggregate, over inner and left joins, grouped and not.
CREATE TEMP TABLE aggregates(expression text);
INSERT INTO aggregates
SELECT format('%s(b.%s)', f, c) FROM unnest('{count,sum,avg}'::text[]) f, unnest('{s,i,l,n,r,f}'::text[]) c
UNION ALL SELECT format('round(%s(b.%s)::numeric, 6)', f, c)
FROM unnest('{variance,var_pop,var_samp,stddev,stddev_pop,stddev_samp}'::text[]) f, unnest('{s,i,r,f}'::text[]) c
UNION ALL SELECT format('%s(b.%s)', f, c) FROM unnest('{min,max}'::text[]) f, unnest('{s,i,l,r,f,d,t}'::text[]) c
UNION ALL SELECT format('%s(b.yes)', f) FROM unnest('{bool_and,bool_or,every}'::text[]) f
UNION ALL SELECT unnest(ARRAY[
  'count(*)', 'count(b.id)', 'count(b.v)', 'sum(1)', 'sum(a.id)', 'avg(a.w)', 'min(a.kind)', 'count(a.kind)', 'sum(a.w)',
  'round(variance(a.w)::numeric, 6)', 'round(sum(a.v <-> b.v)::numeric, 6)', 'round(avg(b.v <-> a.v)::numeric, 6)',
  'min(a.v <-> b.v)', 'max(a.v <-> b.v)', 'count(a.v <-> b.v)', 'round(stddev(a.v <-> b.v)::numeric, 6)', 'sum(a.w * b.f)',
  'sum(a.w - b.f)', 'avg(a.w * b.r)', 'round(sum(exp(-(a.v <-> b.v) / 2))::numeric, 6)',
  'round(sum(exp(-0.5 * ((a.v <-> b.v) / 1.5) ^ 2))::numeric, 6)', 'round(sum(1 - (a.v <-> b.v) / 3)::numeric, 6)',
  'round((sum(b.f * exp(-(a.v <-> b.v))) / sum(exp(-(a.v <-> b.v))))::numeric, 6)',
  'round(sum(sqrt(a.v <-> b.v))::numeric, 6)', 'max(a.w + b.f)', 'min(-(a.w * b.f))', 'sum(b.f) FILTER (WHERE b.yes)',
  'sum(b.i) FILTER (WHERE a.kind = 1)', 'count(*) FILTER (WHERE b.s > 0)', 'count(*) FILTER (WHERE a.kind IS NULL)',
  'sum(a.w * b.f) FILTER (WHERE b.yes)', 'sum(a.w * b.f) FILTER (WHERE a.grp < 3)',
  'round(sum(a.v <-> b.v) FILTER (WHERE b.s > 2)::numeric, 6)', 'max(b.d) FILTER (WHERE b.f > 0)',
  'sum(b.s * 3)', 'avg(b.i / 2)', 'sum(b.l / 7)', 'sum(b.f * 2 + 1)', 'bool_or(b.i > 100)', 'sum(coalesce(b.i, 5))',
  'sum(CASE WHEN b.yes THEN b.s END)', 'sum(b.v[1])', 'sum(a.id * 1000000)', 'avg(a.grp), sum(b.i), avg(b.f), variance(b.i)',
  'avg(b.r), stddev(b.r) IS NULL, sum(b.r), count(b.r)',
  -- Exact numbers of both sides.
  'sum(a.id * b.i)', 'sum(a.kind * b.s)', 'avg(b.s * a.id)', 'sum(a.id * b.l)', 'avg(b.l * a.kind)', 'sum(b.i + a.kind)', 'avg(a.id - b.i)',
  'sum(b.l - a.id)', 'min(a.id * b.i)', 'max(a.id * b.i)', 'min(a.kind - b.s), max(a.kind - b.s)', 'max(b.l + a.id)', 'count(a.kind * b.i)',
  'sum(a.kind * b.n)', 'avg(b.n * a.grp::numeric(4, 1))', 'sum(a.id * b.i) FILTER (WHERE b.yes)', 'sum(a.kind * b.i) FILTER (WHERE a.grp < 3)',
  'sum((a.id - 200) * (b.s * 2))']);
SELECT same_rows(format('SELECT %s FROM a JOIN b ON a.v <-> b.v <= 3', expression), true, expression) FROM aggregates;
SELECT same_rows(format('SELECT a.grp, %s FROM a JOIN b ON a.v <-> b.v <= 3 GROUP BY a.grp', expression), true,
  expression || ' in groups') FROM aggregates;
SELECT same_rows(format('SELECT a.region, %s FROM a LEFT JOIN b ON a.v <-> b.v <= 1 GROUP BY a.region', expression), true,
  expression || ' of a left join') FROM aggregates;
SELECT is(adds_up(format('SELECT a.grp, %s FROM a JOIN b ON a.v <-> b.v <= 3 GROUP BY a.grp', expression)), true,
  expression || ' is added up') FROM aggregates;

-- What is shown of groups, and which there are.
CREATE TEMP TABLE queries(query text, added boolean);
INSERT INTO queries VALUES
  ('SELECT a.id, count(b.id), sum(b.i) FROM a LEFT JOIN b ON a.v <-> b.v <= 1 GROUP BY a.id', true),
  ('SELECT a.id, a.region, a.w, sum(b.i) + a.grp FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.id', true),
  ('SELECT b.s, sum(a.w), avg(a.v <-> b.v) > 1 FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY b.s', true),
  ('SELECT a.kind, a.grp % 2, sum(b.n) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY 1, 2', true),
  ('SELECT a.grp % 3 + 1, sum(b.n), count(*) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp % 3', true),
  ('SELECT sum(b.i) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp HAVING sum(b.i) > 100 AND count(*) > 5', true),
  ('SELECT a.grp FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp HAVING max(b.f) > 0 ORDER BY sum(b.i) DESC LIMIT 3', true),
  ('SELECT sum(b.i) FROM a JOIN b ON a.v <-> b.v <= 2 HAVING count(*) < 0', true),
  ('SELECT DISTINCT sum(b.s) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.id', true),
  ('SELECT sum(s), count(*) FROM (SELECT a.grp, sum(b.i) AS s FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp) g', true),
  ('SELECT a.grp, sum(b.i) OVER () FROM a JOIN b ON a.v <-> b.v <= 0', false),
  ('SELECT a.grp, sum(sum(b.i)) OVER (ORDER BY a.grp) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', true),
  ('SELECT a.grp, b.s, sum(b.i) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp, b.s', false),
  ('SELECT a.grp, sum(DISTINCT b.i) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', false),
  ('SELECT a.grp, array_agg(b.id ORDER BY b.id) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', false),
  ('SELECT a.grp, sum(a.id * b.id) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', true),
  ('SELECT a.grp, variance(a.id * b.id) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', false),
  ('SELECT a.grp, sum(a.id::numeric * b.n) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', false),
  ('SELECT a.grp, sum(a.id / b.id) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', false),
  ('SELECT a.grp, sum(b.i) FILTER (WHERE a.id < b.id) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', false),
  ('SELECT a.grp, sum(b.i) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY ROLLUP (a.grp)', false),
  ('SELECT a.grp, sum(b.i) FROM a JOIN b ON a.v <-> b.v <= 2 AND a.grp < b.s GROUP BY a.grp', false),
  ('SELECT sum(b.i + (random() * 0)::int) FROM a JOIN b ON a.v <-> b.v <= 2', false),
  ('SELECT b.s, count(a.id) FROM a LEFT JOIN b ON a.v <-> b.v <= 1 GROUP BY b.s', false),
  ('SELECT x.grp, sum(y.w), count(*) FROM a x JOIN a y ON x.v <-> y.v <= 2 GROUP BY x.grp', true),
  ('SELECT x.grp, sum(y.w), count(*) FROM a x JOIN a y ON x.v <-> y.v <= 2 AND x.id < y.id GROUP BY x.grp', true),
  ('SELECT x.grp, sum(y.w), sum(x.v <-> y.v) > 0 FROM a x JOIN a y ON x.v <-> y.v <= 2 AND x.id > y.id GROUP BY x.grp', true),
  ('SELECT x.grp, sum(y.w), count(*) FROM a x JOIN a y ON x.v <-> y.v <= 2 AND x.id <> y.id GROUP BY x.grp', true),
  ('SELECT a.grp, sum(b.i) FROM a JOIN b ON a.p <-> b.p <= 2 GROUP BY a.grp', true),
  ('SELECT a.grp, avg(b.f), count(*) FROM a JOIN b ON gpu_within(a.p, b.p, 2) GROUP BY a.grp', true),
  ('SELECT sum(b.i), count(*) FROM a JOIN b ON a.v <-> b.v <= 2 WHERE a.id < 0', true),
  ('SELECT a.grp, sum(b.i), count(*) FROM a JOIN b ON a.v <-> b.v <= 2 WHERE b.id < 0 GROUP BY a.grp', NULL),
  ('SELECT a.grp, sum(b.i), count(b.id) FROM a LEFT JOIN (SELECT * FROM b WHERE id < 0) b ON a.v <-> b.v <= 2
    GROUP BY a.grp', true),
  ('SELECT a.grp, sum(b.i), count(*) FROM a JOIN b ON a.v <-> b.v <= -1 GROUP BY a.grp', true),
  ('SELECT a.grp, sum(b.i), count(*) FROM a JOIN b ON a.v <-> b.v <= (SELECT max(s) FROM b) GROUP BY a.grp', true),
  ('SELECT count(DISTINCT a.id) FROM a JOIN b ON a.v <-> b.v <= 0.5', true),
  ('SELECT count(DISTINCT b.id), sum(a.id), avg(a.w) FROM a JOIN b ON a.v <-> b.v <= 0.5', true),
  ('SELECT a.grp, count(DISTINCT a.id), count(*), avg(b.f), avg(b.s), sum(b.i), max(b.d), round(stddev(b.f)::numeric, 6)
    FROM a JOIN b ON a.v <-> b.v <= 0.5 GROUP BY a.grp', true),
  ('SELECT a.region, count(DISTINCT a.id) FILTER (WHERE b.yes) FROM a JOIN b ON a.v <-> b.v <= 0.5 GROUP BY a.region
    HAVING count(DISTINCT a.id) > 65', true),
  ('SELECT b.s, count(DISTINCT b.id) FILTER (WHERE b.yes), count(DISTINCT b.id) + b.s FROM a JOIN b ON a.v <-> b.v <= 0.5 GROUP BY b.s', true),
  ('SELECT a.id, count(DISTINCT b.id), max(b.i) FROM a LEFT JOIN b ON a.v <-> b.v <= 1 GROUP BY a.id', true),
  ('SELECT a.id, count(DISTINCT b.id) FILTER (WHERE b.yes), avg(b.f) FROM a JOIN b ON a.v <-> b.v <= 1 GROUP BY a.id', true),
  ('SELECT a.grp, count(DISTINCT a.id), count(b.id) FROM a LEFT JOIN b ON a.v <-> b.v <= 0.5 GROUP BY a.grp', true),
  ('SELECT a.grp % 3 + 1, count(DISTINCT a.id) FROM a JOIN b ON a.v <-> b.v <= 0.5 GROUP BY a.grp % 3', true),
  ('SELECT count(DISTINCT a.id), avg(a.id) FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 0.5)', true),
  ('SELECT count(DISTINCT a.id), avg(b.f) FROM a JOIN b ON a.v <-> b.v <= -1', true),
  ('SELECT count(DISTINCT x.id), sum(y.id) FROM a x JOIN a y ON x.v <-> y.v <= 1 AND x.id < y.id', true),
  ('SELECT a.grp, count(DISTINCT b.id) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', false),
  ('SELECT count(DISTINCT a.id), count(DISTINCT b.id) FROM a JOIN b ON a.v <-> b.v <= 2', false),
  ('SELECT count(DISTINCT a.grp) FROM a JOIN b ON a.v <-> b.v <= 2', false),
  ('SELECT count(DISTINCT a.id + 0) FROM a JOIN b ON a.v <-> b.v <= 2', false),
  ('SELECT count(DISTINCT b.id) FROM a LEFT JOIN b ON a.v <-> b.v <= 2', false),
  ('SELECT a.grp, count(DISTINCT a.id), avg(b.l) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', false),
  ('SELECT count(*) FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 2)', true),
  ('SELECT count(*), sum(a.w), min(a.kind) FROM a WHERE NOT EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 0.5)', true),
  ('SELECT a.grp, count(*), sum(a.id), avg(a.w) FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 0.5) GROUP BY a.grp', true),
  ('SELECT a.region, count(*) FILTER (WHERE a.grp > 2) FROM a WHERE NOT EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 0.5)
    GROUP BY a.region HAVING count(*) > 2', NULL),
  ('SELECT a.grp, count(*) FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 2 AND a.grp < b.s) GROUP BY a.grp', true),
  ('SELECT a.grp, count(*) FROM a WHERE NOT EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 2 AND a.grp < b.s) GROUP BY a.grp', true),
  ('SELECT count(*), max(x.id) FROM a x WHERE EXISTS (SELECT FROM a y WHERE x.v <-> y.v <= 1 AND x.id < y.id)', true),
  ('SELECT count(*), max(x.id) FROM a x WHERE NOT EXISTS (SELECT FROM a y WHERE x.v <-> y.v <= 1 AND x.id > y.id)', true),
  ('SELECT count(*), count(b.s), count(b.id) FROM a LEFT JOIN b ON a.v <-> b.v <= 0.5 WHERE b.id IS NULL', false),
  ('SELECT count(*), max(x.id) FROM a x WHERE NOT EXISTS (SELECT FROM a y WHERE x.v <-> y.v < 1 AND x.id <> y.id)', true),
  ('SELECT a.grp, count(*) FROM a WHERE EXISTS (SELECT FROM b WHERE a.p <-> b.p <= 0.5) GROUP BY a.grp', true),
  ('SELECT sum(a.id), count(*) FROM a LEFT JOIN b ON a.v <-> b.v <= 0.5 WHERE b.id IS NULL', NULL),
  ('SELECT a.grp, sum(a.w + (random() * 0)::int) FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 2) GROUP BY a.grp', false),
  ('SELECT o.g, s.* FROM generate_series(1, 3) o(g), LATERAL (SELECT sum(b.i) FROM a JOIN b ON a.v <-> b.v <= o.g) s', true);
SELECT same_rows(query, NULL, query) FROM queries;
SELECT is(adds_up(query), added, query || CASE WHEN added THEN ' is added up' ELSE ' is not' END)
FROM queries WHERE added IS NOT NULL AND query !~ 'random';

-- Weights are PostgreSQL's to the last bit, where a sum has one.
CREATE TABLE pairs_of_one AS SELECT i AS id, ARRAY[i * 10]::float8[] AS v, ARRAY[i * 10 + sin(i)]::float8[] AS u FROM generate_series(1, 3000) i;
ANALYZE pairs_of_one;
SET LOCAL gpujoin.engine = cpu;
SELECT same_rows(format('SELECT x.id, %s FROM pairs_of_one x JOIN pairs_of_one y ON x.v <-> y.u <= 4 GROUP BY x.id', expression), true, expression)
FROM unnest('{sum(exp(-(x.v <-> y.u) / 0.3)),sum(1 - (x.v <-> y.u) / 4),sum(sqrt(x.v <-> y.u)),max(x.v <-> y.u),min((x.v <-> y.u) ^ 2),
  max(exp(-0.5 * (x.v <-> y.u) * (x.v <-> y.u)))}'::text[]) expression;
RESET gpujoin.engine;

-- Why pairs are made.
SELECT is(property('Sums Fallback', query), reason, query) FROM (VALUES
  ('SELECT a.grp, sum(b.i) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY ROLLUP (a.grp)', 'there are grouping sets'),
  ('SELECT a.grp, sum(b.i) FROM a JOIN b ON a.v <-> b.v <= 2 AND a.grp < b.s GROUP BY a.grp', 'other conditions decide about pairs'),
  ('SELECT a.grp, b.s, sum(b.i) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp, b.s', 'the groups are not of one side''s rows'),
  ('SELECT a.grp, count(DISTINCT b.id) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', 'an aggregate cannot be added up'),
  ('SELECT a.grp, max((a.v <-> b.v) ^ 2) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', 'an aggregate cannot be added up'),
  ('SELECT a.grp, sum(b.i) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', NULL),
  ('SELECT array_agg(a.id ORDER BY a.id) FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 2)', NULL)) q(query, reason);

-- A row of EXISTS is left with its first neighbour.
SELECT cmp_ok(candidates.exists, '<', candidates.every / 4, 'EXISTS looks at few candidates: ' || candidates::text)
FROM (SELECT property('Candidate Pairs', 'SELECT count(*) FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 15)')::int AS exists,
  property('Candidate Pairs', 'SELECT count(*) FROM a JOIN b ON a.v <-> b.v <= 15')::int AS every) candidates;

-- Values that only pairs have right: each query is compared, and says why.
CREATE TABLE odd AS SELECT i AS id, ARRAY[i, 0]::float8[] AS v, i::float8 AS f, (i * 100000000)::int AS big,
  i AS divisor, 1.5::numeric(6, 2) AS n, i::float8 AS tiny FROM generate_series(1, 20) i;
UPDATE odd SET f = 'NaN' WHERE id = 3;
UPDATE odd SET f = '-Infinity' WHERE id = 7;
UPDATE odd SET divisor = 0, n = 'NaN', tiny = 1e-200 WHERE id = 11;
INSERT INTO odd VALUES (21, '{7,Infinity}', 1, 1, 1, 1, 1), (22, ARRAY['NaN', 0]::float8[], 1, 1, 1, 1, 1),
  (23, ARRAY[1, NULL]::float8[], 1, 1, 1, 1, 1), (24, NULL, 1, 1, 1, 1, 1), (25, ARRAY[100, 0], 1, 2000000000, 0, 1, 1);
ALTER TABLE odd ADD PRIMARY KEY (id);
ANALYZE odd;
CREATE TEMP TABLE hard(expression text);
INSERT INTO hard VALUES ('sum(y.f), avg(y.f), max(y.f), min(y.f)'), ('sum(y.n), avg(y.n)'), ('round(variance(y.f)::numeric, 6)'),
  ('sum(10 / y.divisor)'), ('sum(y.big * 2)'), ('sum(y.tiny * y.tiny)'), ('sum(x.tiny * y.tiny)'),
  ('sum(exp(x.id * 100 * (x.v <-> y.v)))'), ('sum(sqrt(0.5 - (x.v <-> y.v)))'), ('sum(1 / (x.v <-> y.v))'),
  ('sum(1e308 * (1 + (x.v <-> y.v)))'), ('sum(10 / x.divisor)'), ('sum(y.big)'), ('sum(10 / y.divisor) FILTER (WHERE y.divisor > 0)'),
  ('sum(x.f * y.f)'), ('count(10 / y.divisor)'), ('sum(x.big * y.id)'), ('sum(x.id * 100000000 * y.id)'), ('count(y.big + x.big)'),
  ('sum(x.n * y.n)'), ('sum((10 / x.divisor) * y.id)'), ('sum(x.id * (10 / y.divisor))'), ('max(x.id - y.big)'),
  ('count(DISTINCT x.id), sum(y.f)'), ('count(DISTINCT x.id) FILTER (WHERE y.f > 4)');
SELECT same_rows(format('SELECT x.id %% 4 AS g, %s FROM odd x JOIN odd y ON x.v <-> y.v <= %s WHERE x.id < 21 AND y.id <= %s
  GROUP BY x.id %% 4', expression, eps, most), NULL, format('%s within %s up to %s', expression, eps, most))
FROM hard, unnest('{0.5,1.5}'::float8[]) eps, unnest('{20,6,25}'::int[]) most;
SELECT same_rows(format('SELECT x.id, %s FROM odd x LEFT JOIN odd y ON x.v <-> y.v <= 1 WHERE y.id <> 22 OR y.id IS NULL
  GROUP BY x.id', expression), NULL, expression || ' of a left join') FROM hard;
SELECT matches(property('Sums Fallback', 'SELECT sum(y.f) FROM odd x JOIN odd y ON x.v <-> y.v <= 1 WHERE x.id < 21 AND y.id < 21'),
  'special', 'the plan says why pairs were made');
SELECT is(property('Sums Fallback', 'SELECT sum(y.f) FROM odd x JOIN odd y ON x.v <-> y.v <= 1 WHERE x.id > 11 AND y.id < 21 AND x.id < 21'),
  NULL, 'and that they were not where no pair needs such a value');
CREATE TABLE points AS SELECT i AS id, CASE WHEN i % 10 = 0 THEN point(i, 'NaN') ELSE point(i % 7, i % 3) END AS p FROM generate_series(1, 50) i;
ALTER TABLE points ADD PRIMARY KEY (id);
SELECT same_rows('SELECT x.id % 3, sum(y.id), count(*), count(DISTINCT x.id) FROM points x JOIN points y ON ' || condition || ' GROUP BY x.id % 3', NULL, condition)
FROM unnest('{x.p <-> y.p <= 2,"gpu_within(x.p, y.p, 2)"}'::text[]) condition;

-- Ends of ranges.
CREATE TABLE ends AS SELECT i AS id, ARRAY[0]::float8[] AS v,
  CASE i % 3 WHEN 0 THEN 9223372036854775807 WHEN 1 THEN -9223372036854775808 ELSE 1 END AS l,
  CASE i % 2 WHEN 0 THEN 2147483647 ELSE -2147483648 END AS i, (i % 2 * 2 - 1) * 9999999999999999.99::numeric(18, 2) AS n,
  0.000000000000000001::numeric(18, 18) AS small, (i % 4)::numeric(1, 0) AS digit, 100::numeric(5, 1) AS round
  FROM generate_series(1, 40) i;
SELECT same_rows('SELECT sum(y.l), avg(y.l), min(y.l), max(y.l), sum(y.i), avg(y.i) FROM ends x JOIN ends y ON x.v <-> y.v <= 1', true,
  'the largest integers');
SELECT same_rows('SELECT x.id, variance(y.i), stddev_pop(y.i), sum(y.l) FROM ends x JOIN ends y ON x.v <-> y.v <= 1 AND x.id < y.id GROUP BY x.id',
  true, 'their squares');
SELECT same_rows('SELECT sum(y.n), avg(y.n), sum(y.small), avg(y.small), sum(y.digit), sum(y.round), avg(y.round)
  FROM ends x JOIN ends y ON x.v <-> y.v <= 1', true, 'the longest numerics');
SELECT same_rows(format('SELECT x.id, sum(y.n), sum(y.digit), avg(y.round), sum(y.small) FROM ends x JOIN ends y
  ON x.v <-> y.v <= 1 AND x.id < y.id %s GROUP BY x.id', condition), NULL, 'numerics ' || condition)
FROM unnest('{"", "AND y.id % 4 = 0"}'::text[]) condition;

SELECT same_rows(format('SELECT x.id, %s FROM ends x JOIN ends y ON x.v <-> y.v <= 1 %s GROUP BY x.id', expression, condition), NULL,
  expression || ' ' || condition)
FROM unnest('{sum(x.l * y.l),sum(x.l + y.l),sum(x.l - y.l),sum(x.i * y.i),sum(y.i - x.i),sum(x.i::bigint * y.i),sum(x.id * y.l),sum(x.id * y.i),
  sum(x.digit * y.n),sum(y.digit * x.small),avg(x.id * (y.l / 100)),max(x.i + y.id)}'::text[]) expression,
  unnest('{"","AND y.id % 6 = 1","AND x.id % 6 = 2 AND y.id % 6 <> 2"}'::text[]) condition;

-- Statements that run more than once, and with little memory.
SELECT force_node(true);
PREPARE summed(float8, int) AS SELECT a.grp % $2 AS g, sum(b.i) AS i, sum(exp(-(a.v <-> b.v) / $1)) > 0 AS e
  FROM a JOIN b ON a.v <-> b.v <= $1 GROUP BY 1;
SET plan_cache_mode = force_generic_plan;
SELECT bag_eq(format('EXECUTE summed(%s, %s)', eps, groups), format('SELECT g, sum(i), sum(e) > 0 FROM (SELECT a.grp %% %s AS g, b.i,
  exp(-(a.v <-> b.v) / %s) AS e FROM a, b WHERE (a.v <-> b.v) + 0 <= %s) s GROUP BY g', groups, eps, eps),
  format('prepared sums within %s in %s groups', eps, groups)) FROM unnest('{2,1,5}'::float8[]) eps, unnest('{2,5}'::int[]) groups;
RESET plan_cache_mode;
SELECT is(under_limit('SELECT a.grp, sum(b.i), avg(b.n) FROM a JOIN b ON a.v <-> b.v <= 3 GROUP BY a.grp', '1MB'),
  bag('SELECT a.grp, sum(b.i), avg(b.n) FROM a, b WHERE (a.v <-> b.v) + 0 <= 3 GROUP BY a.grp'), 'sums in little memory');
SET LOCAL work_mem = '64kB';
SELECT same_rows('SELECT a.region, sum(b.n), max(b.t) FROM a JOIN b ON a.v <-> b.v <= 3 GROUP BY a.region', true, 'rows in a file');

-- Rows that need not be kept: what is added up of them is computed as they are read, of both inputs at once where these are
-- one scan. Where a value is special the inputs are read again.
SELECT force_node(true);
CREATE FUNCTION unread(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  plan text;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
  RETURN (SELECT count(*) FROM regexp_matches(plan, '"Actual Loops": 0\M', 'g'));
END $$;
CREATE VIEW halves AS SELECT id, v, grp, w FROM a WHERE id % 2 = 0;
CREATE TEMP TABLE readings(query text, kept text, unread bigint);
INSERT INTO readings VALUES
  ('SELECT x.grp, sum(y.w), count(*) FROM a x JOIN a y ON x.v <-> y.v <= 2 GROUP BY x.grp', 'None', 1),
  ('SELECT sum(y.w), avg(y.id), bool_and(y.region < ''r3'') FROM a x JOIN a y ON x.v <-> y.v <= 2', 'None', 1),
  ('SELECT round(sum(x.v <-> y.v)::numeric, 6) FROM a x JOIN a y ON x.v <-> y.v <= 2', 'None', 1),
  ('SELECT x.grp, max(y.v[1]) FROM a x JOIN a y ON x.v <-> y.v <= 2 WHERE x.id < 300 AND y.id < 300 GROUP BY x.grp', 'None', 1),
  ('SELECT x.grp, sum(y.w) FROM a x JOIN a y ON x.v <-> y.v <= 2 WHERE x.id < 300 AND y.id < 301 GROUP BY x.grp', 'None', 0),
  ('SELECT x.region, x.kind, sum(y.id) FROM a x JOIN a y ON x.v <-> y.v <= 2 WHERE y.kind > 1 GROUP BY 1, 2', 'None', 0),
  ('SELECT x.grp, sum(y.w * x.w) FROM halves x JOIN halves y ON x.v <-> y.v <= 2 GROUP BY x.grp', 'None', 1),
  ('SELECT x.grp % 2, sum(y.w) FROM a x JOIN a y ON x.v <-> y.v <= 2 GROUP BY 1', 'Memory', 0),
  ('SELECT a.region, sum(b.i), avg(b.f) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.region HAVING count(*) > 20', 'None', 0),
  ('SELECT b.s, sum(a.w) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY b.s', 'None', 0),
  ('SELECT a.grp, sum(b.i) FROM a JOIN b ON a.v <-> b.v <= 2 WHERE a.grp > 99 GROUP BY a.grp', 'None', NULL),
  ('SELECT a.grp, sum(b.i), sum(a.id) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', 'Memory', 0),
  ('SELECT a.grp, sum(b.i) FROM a LEFT JOIN b ON a.v <-> b.v <= 1 GROUP BY a.grp', 'Memory', 0),
  ('SELECT a.grp, count(DISTINCT a.id) FROM a JOIN b ON a.v <-> b.v <= 1 GROUP BY a.grp', 'Memory', 0),
  ('SELECT s.grp, sum(b.i) FROM (SELECT * FROM a ORDER BY id OFFSET 3) s JOIN b ON s.v <-> b.v <= 2 GROUP BY s.grp', 'Memory', 0),
  ('SELECT x.id % 3, sum(y.f) FROM odd x JOIN odd y ON x.v <-> y.v <= 1 WHERE x.id < 21 AND y.id < 21 GROUP BY 1', 'Memory', 0),
  ('SELECT x.grp, sum(100 / (y.id - 30)) FROM a x JOIN a y ON x.v <-> y.v <= 2 WHERE x.id > 200 GROUP BY x.grp', 'Memory', 0);
SELECT same_rows(query, NULL, query) FROM readings;
SELECT is(property('Kept Rows', query), kept, 'kept: ' || query) FROM readings WHERE kept IS NOT NULL;
SELECT force_node(true);
SELECT is(unread(query), unread, 'not read: ' || query) FROM readings WHERE unread IS NOT NULL;
SELECT same_rows('SELECT eps, s, n FROM unnest(''{1,0,3,NULL,-1,2,NaN}''::float8[]) eps, LATERAL (SELECT x.grp, sum(y.w) AS s, count(*) AS n
  FROM a x JOIN a y ON x.v <-> y.v <= eps GROUP BY x.grp) q', true, 'sums for one radius after the other');
SELECT same_rows('SELECT k, s FROM generate_series(1, 4) k, LATERAL (SELECT round(sum(10.0::float8 / (y.id - 3 * k))::numeric, 9) AS s FROM a x JOIN a y
  ON x.v <-> y.v <= 1 WHERE x.id > 3 * k + 9 AND y.id <> 3 * k) q', NULL, 'sums for one condition after the other');

-- The sum of negative zeros is one, whoever adds them up; their mean is 0.
CREATE TABLE zeros AS SELECT i AS id, i % 3 AS grp, ARRAY[i % 10, i / 10]::float8[] AS v, '-0'::float8 AS x, '-0'::real AS r,
  CASE WHEN i % 3 = 1 AND i > 200 THEN 0 ELSE '-0'::float8 END AS some, CASE WHEN i % 4 > 0 THEN '-0'::float8 END AS few, 1.5::float8 AS one
  FROM generate_series(1, 300) i;
ANALYZE zeros;
SELECT same_rows(format('SELECT %s%s FROM zeros a JOIN zeros b ON a.v <-> b.v <= %s%s', column_of, sums, eps, groups), NULL, format('zeros within %s: %s%s', eps, sums, groups))
FROM unnest('{"sum(b.x), sum(b.r), sum(b.few)","sum(a.x), sum(a.r), sum(b.some)","avg(b.x), avg(a.x), avg(b.r)","sum(b.x) FILTER (WHERE b.id > 30), sum(a.x) FILTER (WHERE b.id > 30)",
  "sum(a.x * b.one), sum(a.x * b.x), sum(a.x + b.x), sum(a.x - b.one + b.one)","sum(b.x), count(b.few), variance(b.x)"}'::text[]) sums,
  unnest('{0,2,9,100}'::float8[]) eps, (VALUES ('', ''), ('a.grp, ', ' GROUP BY a.grp')) g (column_of, groups);
SELECT is(adds_up('SELECT sum(b.x), sum(a.x) FROM zeros a JOIN zeros b ON a.v <-> b.v <= 2'), true, 'zeros are added up');

-- Groups without aggregates, or whose aggregates nobody reads, and DISTINCT: a group needs one pair.
CREATE TEMP TABLE groups(query text, by_groups boolean);
INSERT INTO groups VALUES
  ('SELECT a.grp FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', true),
  ('SELECT b.s, b.yes FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY b.s, b.yes', true),
  ('SELECT a.id FROM a JOIN b ON a.v <-> b.v <= 0.5 GROUP BY a.id', true),
  ('SELECT a.id, a.region FROM a JOIN b ON a.v <-> b.v <= 0.5 GROUP BY a.id', true),
  ('SELECT 1 FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp % 3', true),
  ('SELECT a.kind FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.kind', true),
  ('SELECT a.grp % 3, upper(a.region) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY 1, 2 ORDER BY 2, 1 DESC', true),
  ('SELECT a.grp FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp HAVING a.grp + 1 < 4', true),
  ('SELECT a.region FROM a LEFT JOIN b ON a.v <-> b.v <= 1 GROUP BY a.region', NULL),
  ('SELECT x.id % 5 FROM odd x JOIN odd y ON x.v <-> y.v <= 1 AND x.id < y.id GROUP BY 1', true),
  ('SELECT a.grp FROM a JOIN b ON a.p <-> b.p <= 2 GROUP BY a.grp', true),
  ('SELECT a.grp FROM a JOIN b ON a.v <-> b.v <= 2 AND a.grp + b.s > 3 GROUP BY a.grp', NULL),
  ('SELECT count(*), sum(grp) FROM (SELECT a.grp, sum(b.l) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY 1) s', true),
  ('SELECT count(*) FROM (SELECT a.region, sum(b.f) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY 1) s', true),
  ('SELECT count(*) FROM (SELECT sum(b.f) FROM a JOIN b ON a.v <-> b.v <= 2) s', NULL),
  ('SELECT DISTINCT a.grp FROM a JOIN b ON a.v <-> b.v <= 2', true),
  ('SELECT DISTINCT b.s, b.yes FROM a JOIN b ON a.v <-> b.v <= 2 ORDER BY b.yes, b.s', true),
  ('SELECT DISTINCT a.grp % 3 + 1, a.region FROM a JOIN b ON a.v <-> b.v <= 0.5', true),
  ('SELECT DISTINCT a.region FROM a JOIN b ON a.v <-> b.v <= 2 ORDER BY 1 LIMIT 3', true),
  ('SELECT DISTINCT a.grp, b.s FROM a JOIN b ON a.v <-> b.v <= 2', NULL),
  ('SELECT DISTINCT ON (a.grp) a.grp, a.region FROM a JOIN b ON a.v <-> b.v <= 2 ORDER BY a.grp, a.region', NULL),
  ('SELECT DISTINCT sum(b.i) FROM a JOIN b ON a.v <-> b.v <= 2 GROUP BY a.grp', NULL),
  ('SELECT DISTINCT a.grp FROM a LEFT JOIN b ON a.v <-> b.v <= 1', NULL),
  ('SELECT DISTINCT a.grp FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 0.5)', NULL),
  ('SELECT DISTINCT a.grp FROM a WHERE NOT EXISTS (SELECT FROM b WHERE a.v <-> b.v <= 2)', NULL),
  ('SELECT DISTINCT z, n FROM generate_series(1, 3) z, LATERAL (SELECT count(*) AS n FROM (SELECT DISTINCT a.grp + z FROM a JOIN b ON a.v <-> b.v <= z - 1) q) q', NULL);
SELECT same_rows(query, true, query) FROM groups;
SELECT isnt(property('Groups', query), NULL, 'by groups: ' || query) FROM groups WHERE by_groups;
-- Conditions that only the pairs decide are asked of the first pairs of a group.
SELECT cmp_ok(property('Evaluated Pairs', 'SELECT a.grp FROM a JOIN b ON a.p <-> b.p <= 50 GROUP BY a.grp')::int, '<', 1000, 'few pairs are asked');

-- However few pairs are expected, they are not made.
CREATE TABLE many AS SELECT i AS id, i % 50 AS grp, ARRAY[i % 100, i / 100]::float8[] AS v FROM generate_series(1, 10000) i;
ANALYZE many;
SELECT is(adds_up('SELECT x.grp, sum(y.id) FROM many x JOIN many y ON x.v <-> y.v <= 2 WHERE x.id % 2 = 0 AND y.id % 2 = 0 GROUP BY x.grp'
  || orders), true, 'filters that are taken for narrow ones' || orders) FROM unnest('{""," ORDER BY x.grp"," ORDER BY 2"}'::text[]) orders;

SELECT * FROM finish();
ROLLBACK;
