-- Random joins in plain SQL over a distance, put together from pieces: with the node GpuSimilarityJoin and without it
-- they return the same rows. The seed is fixed; a query that fails is reported.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA planner_random;
SET search_path = planner_random, public;
SET jit = off;
SET extra_float_digits = 1;
SET planner_random.eps = '2.5';

\ir same_rows.psql

-- Rows on a lattice and beside it, each with its vector in every type. Distances of many pairs are whole numbers.
CREATE TABLE a AS
  SELECT i AS id, i % 7 AS grp, i % 13 + s AS x, i % 11 - s AS y,
    CASE WHEN i % 17 <> 0 THEN ARRAY[i % 13 + s, i % 11 - s] END AS v,
    CASE WHEN i % 19 <> 0 THEN ARRAY[i % 13 + s, i % 11 - s]::float4[] END AS f,
    CASE WHEN i % 23 <> 0 THEN point(i % 13 + s, i % 11 - s) END AS p,
    (SELECT array_agg((i * k * 31 % 17)::float8 ORDER BY k) FROM generate_series(1, 12) k) AS w,
    'row ' || i AS note, jsonb_build_object('id', i) AS doc, NULL::int AS nothing
  FROM generate_series(1, 90) i, LATERAL (SELECT CASE WHEN i % 5 = 0 THEN i * 0.01 ELSE 0 END::float8) t(s);
INSERT INTO a SELECT 200 + row_number() OVER (), 3, x, y, ARRAY[x, y], ARRAY[x, y], point(x, y), NULL, 'odd', '{}', NULL
  FROM (VALUES ('NaN'::float8, 0::float8), ('NaN', 'NaN'), ('Infinity', 1), ('-Infinity', 1), (1e-30, 0), (1e15, 1),
    (1e15, 3), (5.000000000000001, 0), (4.999999999999999, 0), (0.1, 0.2), (0.30000000000000004, 0.1)) odd(x, y);
CREATE TABLE types (name text, l text, r text, within text);
INSERT INTO types VALUES
  ('float8', 'l.v', 'r.v', 'gpu_within'), ('float4', 'l.f', 'r.f', 'gpu_within'),
  ('float4 as float8', 'l.f::float8[]', 'r.v', 'gpu_within'), ('point', 'l.p', 'r.p', 'gpu_within'),
  ('array', 'ARRAY[l.x, l.y]', 'ARRAY[r.x, r.y]', 'gpu_within'),
  ('moved', 'ARRAY[l.x + 1, l.y * 2]', 'r.v', 'gpu_within'),
  ('columns as point', 'point(l.x, l.y)', 'point(r.x, r.y)', 'gpu_within'),
  ('twelve', 'l.w', 'r.w', 'gpu_within');
SELECT bool_or(name = 'cube') AS has_cube, bool_or(name = 'postgis') AS has_postgis,
  bool_or(name = 'vector') AS has_vector
FROM pg_available_extensions \gset
\if :has_cube
CREATE EXTENSION IF NOT EXISTS cube;
ALTER TABLE a ADD c cube;
UPDATE a SET c = CASE WHEN id % 29 = 0 THEN cube(ARRAY[x, y], ARRAY[x + 1, y]) ELSE cube(ARRAY[x, y]) END
WHERE id % 13 <> 0;
INSERT INTO types VALUES ('cube', 'l.c', 'r.c', NULL);
\endif
\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
ALTER TABLE a ADD g geometry;
UPDATE a SET g = CASE WHEN id % 31 = 0 THEN 'POINT EMPTY' WHEN id % 29 = 0 AND id < 200 THEN ST_Buffer(ST_MakePoint(x, y), 1)
  ELSE ST_MakePoint(x, y) END
WHERE id % 13 <> 0;
INSERT INTO types VALUES ('geometry', 'l.g', 'r.g', 'ST_DWithin');
\endif
\if :has_vector
CREATE EXTENSION IF NOT EXISTS vector;
ALTER TABLE a ADD e vector;
UPDATE a SET e = w::vector;
INSERT INTO types VALUES ('vector', 'l.e', 'r.e', NULL);
\endif
CREATE TABLE b AS SELECT * FROM a WHERE id % 3 <> 0 OR id > 200;
INSERT INTO b SELECT * FROM b WHERE id % 10 = 0;
CREATE TABLE parts (LIKE a) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (50);
CREATE TABLE parts_high PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT * FROM a;
CREATE TABLE hollow AS SELECT * FROM a LIMIT 0;
CREATE VIEW seen WITH (security_barrier) AS SELECT * FROM a WHERE grp <> 5;
CREATE TABLE radii AS SELECT i AS eps FROM generate_series(1, 4) i;
ANALYZE a, b, parts, hollow, radii;

CREATE FUNCTION pick(VARIADIC choices text[]) RETURNS text LANGUAGE sql VOLATILE AS
$$ SELECT choices[1 + floor(random() * cardinality(choices))::int] $$;
CREATE FUNCTION chance(p float8) RETURNS boolean LANGUAGE sql VOLATILE AS 'SELECT random() < p';

-- A clause of the type. gpu_within() and ST_DWithin() refuse a radius that is no radius, so they get none.
CREATE FUNCTION clause(t types) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  operands text[] := CASE WHEN chance(0.5) THEN ARRAY[t.l, t.r] ELSE ARRAY[t.r, t.l] END;
  eps text := pick('0', '0.5', '1', '1.4142135623730951', '1.414213562373095', '2', '2.23606797749979', '3', '5',
    '4.999999999999999', '5.000000000000001', '20', '1e100', 'current_setting(''planner_random.eps'')::float8',
    '(SELECT max(eps) FROM radii)', '1.0 + 1', 'least(2, 3.5::float8)', '2::float4');
BEGIN
  IF t.within IS NOT NULL AND (t.within = 'ST_DWithin' OR chance(0.3)) THEN
    RETURN format('%s(%s, %s, %s)', t.within, operands[1], operands[2], eps);
  END IF;
  IF chance(0.1) THEN
    eps := pick('''NaN''', '''Infinity''', '-1', 'NULL', '''-Infinity''', '(SELECT max(eps) FROM radii WHERE eps > 9)');
  END IF;
  RETURN format(pick('%1$s <-> %2$s <= %3$s', '%1$s <-> %2$s < %3$s', '%3$s >= %1$s <-> %2$s', '%3$s > %1$s <-> %2$s'),
    operands[1], operands[2], eps);
END $$;

CREATE FUNCTION source() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN chance(0.4) THEN 'a' ELSE pick('b', 'b', 'parts', 'seen', '(SELECT * FROM a WHERE id % 3 = 1)',
    '(SELECT * FROM b ORDER BY id DESC LIMIT 37)', '(SELECT * FROM a UNION ALL SELECT * FROM b WHERE grp = 2)',
    '(SELECT DISTINCT ON (grp, x) * FROM a ORDER BY grp, x, id)', '(SELECT * FROM b WHERE v IS NULL OR id = 4)',
    '(SELECT * FROM b WHERE id IN (SELECT id FROM a WHERE grp < 4))', 'hollow') END
$$;

CREATE FUNCTION random_query() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  t types;
  kind text := pick('INNER', 'INNER', 'comma', 'LEFT', 'LEFT', 'RIGHT', 'FULL', 'EXISTS', 'NOT EXISTS', 'NOT EXISTS');
  paired boolean := kind NOT LIKE '%EXISTS';
  clauses text[];
  targets text[] := '{}';
  joined text;
  filter text := '';
  tail text := '';
BEGIN
  SELECT * INTO t FROM types ORDER BY random() LIMIT 1;
  clauses := ARRAY[clause(t)];
  IF chance(0.1) THEN -- a second distance
    SELECT * INTO t FROM types ORDER BY random() LIMIT 1;
    clauses := clauses || clause(t);
  END IF;
  WHILE chance(0.4) LOOP
    clauses := clauses || pick('l.id < r.id', 'l.grp = r.grp', 'l.grp <> r.grp', 'l.id <> r.id', 'l.note <= r.note',
      'l.id % 2 = 0', 'r.id % 3 <> 1', 'l.grp + r.grp < 8', 'l.note || r.note LIKE ''%1%''', 'random() >= 0',
      'r.nothing IS NULL', 'l.nothing = r.nothing', 'l.doc <> r.doc', '(l.id < r.id OR r.grp = 2)',
      'l.v IS NOT NULL', 'coalesce(l.id > r.grp, true)', '(l.id, r.id) NOT IN (SELECT eps, eps FROM radii)');
  END LOOP;
  IF kind = 'FULL' THEN -- PostgreSQL wants an equality, and can do little else
    clauses := ARRAY[clauses[1], 'l.grp = r.grp'];
  END IF;
  SELECT array_agg(c ORDER BY random()) INTO clauses FROM unnest(clauses) c;
  joined := array_to_string(clauses, ' AND ');
  IF paired THEN
    joined := CASE kind WHEN 'comma' THEN format('%s l, %s r WHERE %s', source(), source(), joined)
      ELSE format('%s l %s JOIN %s r ON %s', source(), kind, source(), joined) END;
    IF kind <> 'comma' AND chance(0.15) THEN
      joined := joined || ' ' || pick('JOIN radii t ON t.eps = l.grp', 'LEFT JOIN b t ON t.id = r.id AND t.grp > 2',
        'JOIN b t ON t.v <-> l.v < 1', 'LEFT JOIN a t ON t.p <-> r.p <= 0.5 AND t.id <> r.id');
    END IF;
    IF chance(0.25) THEN
      filter := pick('r.id IS NULL', 'l.id > 20', 'l.grp IS DISTINCT FROM r.grp', 'r.note LIKE ''%2%''',
        'coalesce(l.id, 0) + coalesce(r.id, 0) > 50', 'l.id IS NOT NULL');
    END IF;
  ELSE
    joined := format('%s l WHERE %s (SELECT %s FROM %s r WHERE %s)', source(), kind, pick('', '1', 'r.id', '*'),
      source(), joined);
    IF chance(0.25) THEN
      filter := pick('l.id > 20', 'l.grp IN (1, 3)', 'l.v IS NOT NULL');
    END IF;
  END IF;
  IF filter <> '' THEN
    joined := joined || CASE WHEN kind = 'comma' OR NOT paired THEN ' AND ' ELSE ' WHERE ' END || filter;
  END IF;
  IF chance(0.15) THEN
    RETURN 'SELECT count(*) FROM ' || joined;
  ELSIF chance(0.1) THEN
    RETURN format('SELECT l.grp, count(*), max(l.id) FROM %s GROUP BY l.grp', joined);
  END IF;
  WHILE chance(0.75) LOOP
    targets := targets || CASE WHEN paired AND chance(0.6)
      THEN pick('r.id', 'r.id', 'r', 'r.note', 'r.doc', 'r.v', 'r.nothing', 'l.id + r.id', 'l.note || r.note',
        'r IS NULL', 'l.v <-> r.v', 'r IS NOT DISTINCT FROM NULL')
      ELSE pick('l.id', 'l.id', 'l', 'l.note', 'l.doc', 'l.p::text', 'l.nothing', '7', 'upper(l.note)') END;
  END LOOP;
  IF chance(0.1) THEN -- an order that leaves no choice of rows
    targets := ARRAY['l.id'] || CASE WHEN paired THEN '{r.id}'::text[] END;
    tail := format(' ORDER BY %s LIMIT %s OFFSET %s', array_to_string(targets, ' DESC, '), pick('1', '10', '1000'),
      pick('0', '3'));
  END IF;
  RETURN format('SELECT %s FROM %s%s', array_to_string(targets, ', '), joined, tail);
END $$;

-- All of them are made before the first is run: random() in a query would turn the sequence.
SELECT setseed(0.42) \gset
CREATE TABLE queries AS SELECT n, random_query() AS query FROM generate_series(1, 300) n;
CREATE TABLE used (n int, by_node boolean);
SELECT same_rows(query, NULL, format('random query %s', n)) FROM queries ORDER BY n;
SELECT force_node(true) \gset
INSERT INTO used SELECT n, has_node(query) FROM queries;
SELECT force_node(false) \gset
SELECT ok(count(*) FILTER (WHERE by_node) >= 240, format('of 300 random joins %s ran by the node, which is a good part',
  count(*) FILTER (WHERE by_node)))
FROM used;
SELECT is_empty($$ SELECT n, query FROM queries WHERE has_node(query) $$, 'none of them with the node off');
SELECT ok(count(*) >= 200, 'and most of them found rows') FROM queries WHERE has_rows(query);

SELECT * FROM finish();
ROLLBACK;
