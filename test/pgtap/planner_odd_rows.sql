-- A join in plain SQL is never worse for the node: one odd row costs its own pairs alone, operands, radii and filters are
-- evaluated where PostgreSQL would evaluate them, inputs are read once, and a join that does not fit in memory goes on.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA planner_odd_rows;
SET search_path = planner_odd_rows, public;
SET jit = off;
SET extra_float_digits = 1;

\ir same_rows.psql

CREATE FUNCTION pairs_asked(query text) RETURNS bigint LANGUAGE sql AS $$ SELECT property('Rechecked Pairs', query)::bigint $$;

-- ---- Odd rows: the condition is asked for their pairs, of which each has 300 on either side, and for no others.
CREATE TABLE vectors AS SELECT i AS id, ARRAY[i * 7 % 101, i * 13 % 103]::float8[] AS v FROM generate_series(1, 300) i;
CREATE TABLE points AS SELECT id, point(v[1], v[2]) AS p FROM vectors;
CREATE TABLE first_odd AS SELECT 0 AS id, '{1,2,3}'::float8[] AS v UNION ALL SELECT * FROM vectors;
CREATE TABLE last_odd AS SELECT * FROM vectors UNION ALL SELECT 0, '{1,2,3}';
CREATE TABLE odd_elements AS SELECT * FROM vectors UNION ALL SELECT -1, '{1,NULL}' UNION ALL SELECT -2, '{}';
CREATE TABLE odd_points AS SELECT * FROM points UNION ALL SELECT -1, '(1e200,0)' UNION ALL SELECT -2, '(Infinity,0)'
  UNION ALL SELECT -3, '(NaN,1)';
CREATE TABLE endless AS SELECT * FROM vectors UNION ALL SELECT -1, '{Infinity,NaN}';
ANALYZE endless, vectors, points, first_odd, last_odd, odd_elements, odd_points;

-- Their other conditions are evaluated in PostgreSQL's order: an equality of one expression over both sides joins nothing by itself.
SELECT same_rows('SELECT l.id, r.id FROM odd_points l JOIN odd_points r ON ln(l.id + r.id - 1000) = 1 AND l.p <-> r.p <= 0 AND l.id > 0 AND r.id < 0', true,
  'a condition that raises comes after the distance');

CREATE TABLE cases (tbl text, clause text, odd int);
INSERT INTO cases VALUES
  ('first_odd', 'cardinality(l.v) = cardinality(r.v) AND l.v <-> r.v <= 3', 3),
  ('last_odd', 'cardinality(l.v) = cardinality(r.v) AND l.v <-> r.v <= 3', 2),
  ('odd_elements', 'l.id > 0 AND r.id > 0 AND l.v <-> r.v <= 3', 0),
  ('odd_points', 'l.p <-> r.p <= 3', 2),
  ('odd_points', 'gpu_within(l.p, r.p, 3)', 2);
SELECT extension IS NOT NULL AS has_cube FROM (SELECT) one
LEFT JOIN (SELECT name AS extension FROM pg_available_extensions WHERE name = 'cube') c ON true \gset
\if :has_cube
CREATE EXTENSION IF NOT EXISTS cube;
CREATE TABLE odd_cubes AS SELECT id, cube(v) AS c FROM vectors UNION ALL SELECT -1, cube(ARRAY['NaN', 0]::float8[])
  UNION ALL SELECT -2, cube(array_fill(1::float8, ARRAY[12]), array_fill(2::float8, ARRAY[12]));
CREATE TABLE endless_cubes AS SELECT id, cube(v) AS c FROM vectors UNION ALL SELECT -1, cube(ARRAY['-Infinity', 3]::float8[]);
ANALYZE odd_cubes, endless_cubes;
INSERT INTO cases VALUES ('odd_cubes', 'l.c && r.c', 4), ('odd_cubes', 'l.c <-> r.c <= 1.5', 4),
  ('endless_cubes', 'l.c <-> r.c <= 1.5', 2), ('endless_cubes', 'l.c <=> r.c <= 1.5', 2);
\endif
SELECT extension IS NOT NULL AS has_postgis FROM (SELECT) one
LEFT JOIN (SELECT name AS extension FROM pg_available_extensions WHERE name = 'postgis') c ON true \gset
\if :has_postgis
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS postgis;
RESET client_min_messages;
CREATE TABLE odd_geometries AS SELECT id, ST_MakePoint(v[1], v[2]) AS g FROM vectors
  UNION ALL SELECT -1, ST_MakePoint('Infinity', 0);
CREATE TABLE shapes AS SELECT id, ST_Buffer(ST_MakePoint(v[1], v[2]), 0.7) AS g FROM vectors
  UNION ALL SELECT -1, ST_MakeEnvelope(-1e6, -1e6, 1e6, 1e6);
CREATE TABLE two_srids AS SELECT id, g FROM odd_geometries WHERE id > 0 UNION ALL SELECT -1, ST_SetSRID(ST_MakePoint(1, 1), 4326);
CREATE TABLE points_and_line AS SELECT id, g FROM odd_geometries WHERE id > 0
  UNION ALL SELECT -1, ST_MakeLine(ST_MakePoint(0, 0), ST_MakePoint(9, 9));
ANALYZE odd_geometries, shapes, two_srids, points_and_line;
INSERT INTO cases VALUES ('odd_geometries', 'l.g && r.g', 2), ('odd_geometries', 'ST_DWithin(l.g, r.g, 2)', 0),
  ('shapes', 'ST_Intersects(l.g, r.g)', 0),
  ('two_srids', 'ST_SRID(l.g) = ST_SRID(r.g) AND ST_DWithin(l.g, r.g, 2)', 2),
  ('points_and_line', 'ST_DWithin(l.g, r.g, 2)', 2);
\endif

CREATE TABLE forms (name text, form text);
INSERT INTO forms VALUES
  ('inner', 'SELECT l.id, r.id FROM %1$s l JOIN %1$s r ON %2$s'),
  ('left', 'SELECT l.id, r.id FROM %1$s l LEFT JOIN %1$s r ON %2$s'),
  ('semi', 'SELECT l.id FROM %1$s l WHERE EXISTS (SELECT FROM %1$s r WHERE %2$s AND l.id <> r.id)'),
  ('anti', 'SELECT l.id FROM %1$s l WHERE NOT EXISTS (SELECT FROM %1$s r WHERE %2$s AND l.id <> r.id)'),
  ('count', 'SELECT count(*) FROM %1$s l JOIN %1$s r ON %2$s'),
  ('order', 'SELECT count(*), sum(l.id) FROM %1$s l JOIN %1$s r ON %2$s AND l.id < r.id'),
  ('subset', 'SELECT l.id, r.id FROM %1$s l JOIN (SELECT * FROM %1$s WHERE id %% 3 = 0) r ON %2$s'),
  ('top', 'SELECT l.id, r.id FROM %1$s l JOIN %1$s r ON %2$s WHERE l.id >= 0 ORDER BY l.id + r.id, l.id LIMIT 20');
SELECT same_rows(format(form, tbl, clause), NULL, format('%s, %s: %s', tbl, name, clause)) FROM cases, forms;
SELECT is(property('Odd Rows', format('SELECT l.id, r.id FROM %1$s l JOIN %1$s r ON %2$s', tbl, clause))::int,
  nullif(odd, 0), format('%s: %s: odd rows', tbl, clause)) FROM cases;
-- Each odd row has at most 304 pairs, and those beyond are pairs within rounding of the radius.
SELECT cmp_ok(pairs_asked(format('SELECT l.id, r.id FROM %1$s l JOIN %1$s r ON %2$s', tbl, clause)), '<=',
  (304 * odd + CASE WHEN tbl = 'shapes' THEN 2000 ELSE 400 END)::bigint, format('%s: %s: pairs asked', tbl, clause))
FROM cases;

-- Of two lengths of arrays the left side's may not become that of all when the right side was read before it.
CREATE TABLE lengths (id int, v float8[]);
INSERT INTO lengths VALUES (1, '{1,2,3}'), (2, '{1,2}'), (3, '{4,5,6}');
SELECT same_rows($$ SELECT l.id, r.id FROM lengths l JOIN vectors r ON cardinality(l.v) = cardinality(r.v)
  AND (l.v || '{}'::float8[]) <-> r.v <= 3 $$, true, 'operands that are computed after the other side was read');

-- ---- Inputs are read once.
CREATE SEQUENCE reads;
SELECT same_rows($$ SELECT l.id, r.id FROM (SELECT nextval('reads') AS n, id, v FROM last_odd OFFSET 0) l
  JOIN vectors r ON cardinality(l.v) = cardinality(r.v) AND l.v <-> r.v <= 1 $$, true, 'a side that counts');
SELECT is((SELECT last_value FROM reads), 602::bigint, 'each reading calls nextval() once a row');

-- ---- Operands
CREATE TABLE ratios AS SELECT i AS id, i::float8 AS x, (i % 3)::float8 AS z, i % 4 AS grp, i::text AS t,
  ARRAY[i % 100, i % 7]::float8[] AS v FROM generate_series(1, 600) i;
CREATE TABLE no_rows (LIKE ratios);
CREATE FUNCTION strict_vector(float8, float8) RETURNS float8[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF $2 = 0 THEN RAISE division_by_zero; END IF;
  RETURN ARRAY[$1 / $2, 1];
END $$;
ANALYZE ratios, no_rows;
SELECT same_rows(query, uses_node, query) FROM (VALUES
  ('SELECT l.id, r.id FROM ratios l LEFT JOIN ratios r ON l.z <> 0 AND ARRAY[l.x / l.z, 1] <-> r.v <= 1', true),
  ('SELECT l.id FROM ratios l WHERE NOT EXISTS (SELECT FROM ratios r WHERE l.z <> 0 AND ARRAY[l.x / l.z, 1] <-> r.v <= 1)', true),
  ('SELECT l.id FROM ratios l WHERE EXISTS (SELECT FROM ratios r WHERE l.z <> 0 AND ARRAY[l.x / l.z, 1] <-> r.v <= 1)', true),
  ('SELECT l.id, r.id FROM ratios l JOIN ratios r ON l.z + r.z > 0 AND l.z <> 0 AND ARRAY[l.x / l.z, 1] <-> r.v <= 1', true),
  ('SELECT l.id, r.id FROM ratios l JOIN ratios r ON ARRAY[l.x / l.z, 1] <-> r.v <= 1', true),
  ('SELECT l.id, r.id FROM ratios l JOIN no_rows r ON ARRAY[l.x / l.z, 1] <-> r.v <= 1', true),
  ('SELECT l.id, r.id FROM no_rows l LEFT JOIN ratios r ON l.v <-> ARRAY[r.x / r.z, 1] <= 1', true),
  ('SELECT l.id, r.id FROM ratios l JOIN ratios r ON ARRAY[l.t::float8, 1] <-> r.v <= 1', true),
  ('SELECT l.id, r.id FROM ratios l JOIN ratios r ON ARRAY[l.x / l.z, 1] <-> ARRAY[r.x / r.z, 1] <= 1 AND l.grp = r.grp + 9', true),
  ('SELECT l.id, r.id FROM ratios l JOIN ratios r ON strict_vector(l.x, l.z + 1) <-> r.v <= 1', true),
  ('SELECT l.id, r.id FROM ratios l JOIN ratios r ON strict_vector(l.x, l.z) <-> r.v <= 1', true),
  ('SELECT l.id, r.id FROM ratios l JOIN no_rows r ON strict_vector(l.x, l.z) <-> r.v <= 1', true),
  ('SELECT l.id, r.id FROM ratios l LEFT JOIN ratios r ON l.z <> 0 AND strict_vector(l.x, l.z) <-> r.v <= 1', true),
  ('SELECT l.id FROM ratios l WHERE EXISTS (SELECT FROM ratios r WHERE strict_vector(r.x, r.z + 1) <-> l.v <= 1)', true),
  ('SELECT count(*) FROM (SELECT l.id FROM ratios l JOIN ratios r ON strict_vector(l.x, l.z + 1) <-> r.v <= 1 LIMIT 3) s', true),
  ('SELECT l.id, r.id FROM ratios l JOIN ratios r ON ARRAY[l.x / (l.z + 1), 1] <-> r.v <= 3
    ORDER BY l.x + r.x, l.id, r.id LIMIT 5', true)) queries(query, uses_node);

-- Operands of anybody's immutable functions: PL/pgSQL with queries, handlers and settings of its own, SQL, and errors of any
-- class. An error is dropped in a subtransaction until a pair asks for it.
CREATE TABLE factors AS SELECT i AS id, 1.0::float8 / i AS factor FROM generate_series(1, 2) i;
CREATE FUNCTION queried(x float8, z float8) RETURNS float8[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  found float8;
BEGIN
  SELECT factor INTO STRICT found FROM factors WHERE id = z;
  RETURN ARRAY[x * found, 1];
EXCEPTION WHEN no_data_found THEN RAISE internal_error USING MESSAGE = 'no factor';
END $$;
CREATE FUNCTION handled(x float8, z float8) RETURNS float8[] LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER
SET extra_float_digits = 0 AS $$
BEGIN
  BEGIN
    RETURN ARRAY[x / z, 1];
  EXCEPTION WHEN division_by_zero THEN NULL;
  END;
  RAISE division_by_zero;
END $$;
CREATE FUNCTION by_sql(x float8, z float8) RETURNS float8[] LANGUAGE sql IMMUTABLE SET extra_float_digits = 0
  AS 'SELECT ARRAY[$1 / factor, 1 / $2] FROM factors WHERE id >= $2 ORDER BY id LIMIT 1';
CREATE FUNCTION unstable(x float8, z float8) RETURNS float8[] LANGUAGE plpgsql STABLE AS 'BEGIN RETURN ARRAY[x / z, 1]; END';
CREATE VIEW few AS SELECT * FROM ratios WHERE id <= 200;
SELECT same_rows(replace(query, 'f(', function || '('), true, replace(query, 'f(', function || '('))
FROM unnest('{queried,handled,by_sql}'::text[]) function, unnest(ARRAY[
  'SELECT l.id, r.id FROM few l JOIN few r ON l.z * r.id > 0 AND f(l.x, l.z) <-> r.v <= 9',
  'SELECT l.id, r.id FROM few l JOIN few r ON l.z * r.z > 1 AND f(l.x, l.z) <-> f(r.x, r.z) <= 9 AND l.id < r.id',
  'SELECT l.id, r.id FROM few l LEFT JOIN few r ON l.z <> 0 AND f(l.x, l.z) <-> r.v <= 9',
  'SELECT l.id FROM few l WHERE EXISTS (SELECT FROM few r WHERE r.z <> 0 AND f(r.x, r.z) <-> l.v <= 9)',
  'SELECT l.id FROM few l WHERE NOT EXISTS (SELECT FROM few r WHERE r.z <> 0 AND f(r.x, r.z) <-> l.v <= 9)',
  'SELECT count(*) FROM few l JOIN few r ON l.id < r.id AND f(l.x, l.z) <-> f(r.x, r.z) <= 9',
  'SELECT l.id, r.id FROM few l JOIN no_rows r ON l.id < r.id AND f(l.x, l.z) <-> r.v <= 1']) query;
SELECT same_rows('SELECT l.id, r.id FROM ratios l JOIN ratios r ON l.z * r.id > 0 AND unstable(l.x, l.z) <-> r.v <= 1', false,
  'a function that is not immutable');
SELECT is(current_setting('extra_float_digits'), '1', 'settings of functions that failed are gone');

-- Dropped are errors that PostgreSQL would not raise, but for those of the server.
CREATE FUNCTION raising(x float8, state text) RETURNS float8[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF x = 300 THEN RAISE EXCEPTION USING ERRCODE = state; END IF;
  RETURN ARRAY[x, 1];
END $$;
CREATE FUNCTION state_of(query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM force_node(true);
  EXECUTE query;
  RETURN 'none';
EXCEPTION WHEN query_canceled OR assert_failure OR OTHERS THEN RETURN SQLSTATE;
END $$;
SELECT is(state_of(format($$ SELECT count(*) FROM ratios l JOIN ratios r ON l.id + r.z * 0 <> 300 AND raising(l.x, '%s') <-> r.v <= 1 $$, state)),
  expected, format('%s that no pair asks for: %s', state, expected))
FROM (VALUES ('P0001', 'none'), ('P0004', 'none'), ('XX000', 'none'), ('22012', 'none'), ('42P01', 'none'), ('U0001', 'none'),
  ('55000', 'none'), ('57014', '57014'), ('53200', '53200'), ('53100', '53100'), ('58030', '58030'), ('40001', '40001'),
  ('40P01', '40P01'), ('55P03', '55P03'), ('XX001', 'XX001'), ('XX002', 'XX002')) states(state, expected);
SELECT is(state_of(format($$ SELECT count(*) FROM ratios l JOIN ratios r ON l.id <> r.id AND raising(l.x, '%s') <-> r.v <= 1 $$, state)),
  state, state || ' that a pair asks for') FROM unnest('{P0001,P0004,XX000,22012,U0001,57014}'::text[]) state;
SELECT same_rows('SELECT l.id, r.id FROM ratios l JOIN ratios r ON l.z * r.id > 0 AND queried(l.x, l.z) <-> r.v <= 9', true,
  'a join after these errors');

-- What fails leaves nothing behind.
CREATE FUNCTION large(x float8) RETURNS float8[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  kept text := repeat('x', 100000);
BEGIN
  IF x > 0 THEN RAISE 'too much: %', kept; END IF;
  RETURN ARRAY[x, length(kept)];
END $$;
CREATE TABLE most AS SELECT i AS id, (i - 2)::float8 AS x, ARRAY[-1, 100000]::float8[] AS v FROM generate_series(1, 2000) i;
ANALYZE most;
SELECT force_node(true);
DECLARE held CURSOR FOR SELECT l.id, r.id FROM most l JOIN most r ON l.x <= 0 * r.id AND large(l.x) <-> r.v <= 0;
FETCH 1 FROM held;
SELECT cmp_ok(sum(total_bytes)::bigint, '<', 30000000::bigint, 'errors are forgotten') FROM pg_backend_memory_contexts;
SELECT cmp_ok(sum(total_bytes)::bigint, '<', 64000::bigint, 'and so are the states of expressions')
FROM pg_backend_memory_contexts WHERE name = 'gpujoin operand';
CLOSE held;
SELECT force_node(false);

-- Before PostgreSQL 17 there are no subtransactions in parallel mode: a statement with such an operand keeps out of it, and
-- within another one all rows are odd.
CREATE FUNCTION join_within(int) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $$
BEGIN
  RETURN (SELECT count(*) FROM ratios l JOIN ratios r ON l.z * r.id > 0 AND strict_vector(l.x, l.z) <-> r.v <= 9);
END $$;
ALTER FUNCTION strict_vector PARALLEL SAFE;
SELECT force_node(true);
SELECT join_within(1) AS within \gset
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
CREATE TABLE of_parallel AS SELECT join_within(id) AS n FROM (SELECT id FROM ratios WHERE id < 3 OFFSET 0) s;
SELECT is(array_agg(n), ARRAY[:within, :within]::bigint[], 'a join within a parallel query') FROM of_parallel;
SELECT is(property('Odd Rows', 'SELECT count(*) FROM ratios l JOIN ratios r ON l.z * r.id > 0 AND strict_vector(l.x, l.z) <-> r.v <= 9
  UNION ALL SELECT count(*) FROM ratios'), '200', 'a join beside what could be parallel');
RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;

\if :has_postgis
-- PostGIS reads what it knows of projections from a table.
CREATE TABLE degrees AS SELECT id, ST_SetSRID(ST_MakePoint(8 + v[1] / 1000, 48 + v[2] / 1000), 4326) AS g FROM vectors
  UNION ALL SELECT -1, ST_SetSRID(ST_MakePoint(8, 91), 4326) UNION ALL SELECT -2, ST_SetSRID(ST_MakePoint(8, 48), 999)
  UNION ALL SELECT -3, ST_MakePoint(8, 48) UNION ALL SELECT -4, 'SRID=4326;POINT EMPTY';
ANALYZE degrees;
SELECT same_rows(query, true, query) FROM unnest(ARRAY[
  'SELECT l.id, r.id FROM degrees l JOIN degrees r ON ST_DWithin(ST_Transform(l.g, 25832), ST_Transform(r.g, 25832), 300)
    AND l.id < r.id AND l.id * r.id > 0 AND l.id + r.id > 2',
  'SELECT l.id, r.id FROM degrees l JOIN degrees r ON ST_DWithin(ST_Transform(l.g, 25832), ST_Transform(r.g, 25832), 300)
    AND l.id + r.id > 300 AND least(l.id, r.id) > 0',
  'SELECT l.id FROM degrees l WHERE l.id > 0 AND NOT EXISTS (SELECT FROM degrees r
    WHERE ST_DWithin(ST_Transform(l.g, 25832), ST_Transform(r.g, 25832), 300) AND r.id > l.id)']) query;
SELECT is(state_of('SELECT l.id, r.id FROM degrees l JOIN degrees r
    ON ST_DWithin(ST_Transform(l.g, 25832), ST_Transform(r.g, 25832), 300) AND l.id <> r.id'), 'XX000', 'a point that a pair asks for');
SELECT is(pairs_asked('SELECT l.id, r.id FROM degrees l JOIN degrees r
    ON ST_DWithin(ST_Transform(l.g, 25832), ST_Transform(r.g, 25832), 300) AND l.id < r.id AND least(l.id, r.id) > 0'), 0::bigint,
  'the condition is asked of no pair that others reject');
\endif

-- ---- Radii
SELECT same_rows(query, uses_node, query) FROM (VALUES
  ('SELECT l.id FROM ratios l LEFT JOIN no_rows r ON l.v <-> r.v <= 1 / (SELECT 0.0::float8)', true),
  ('SELECT l.id FROM ratios l JOIN ratios r ON l.v <-> r.v <= 1 / (SELECT 0.0::float8)', true),
  ('SELECT l.id FROM ratios l JOIN ratios r ON l.grp = r.grp + 9 AND l.v <-> r.v <= 1 / (SELECT 0.0::float8)', true),
  ('SELECT l.id FROM ratios l JOIN ratios r ON l.grp = r.grp AND l.v <-> r.v <= (SELECT z FROM ratios)', true),
  ('SELECT eps, n FROM (VALUES (''NaN''::float8), (''Infinity'')) radii(eps),
    LATERAL (SELECT count(*) AS n FROM odd_points l JOIN vectors r ON ARRAY[l.p[0], l.p[1]] <-> r.v <= eps OFFSET 0) s', true),
  ('SELECT eps, n FROM (VALUES (''NaN''::float8), (''Infinity'')) radii(eps),
    LATERAL (SELECT count(*) AS n FROM odd_points l JOIN vectors r ON ARRAY[l.p[0], l.p[1]] <-> r.v < eps OFFSET 0) s', true),
  ('SELECT eps, n FROM (VALUES (''NaN''::float8), (2), (-1), (NULL), (''Infinity''), (1)) radii(eps),
    LATERAL (SELECT count(*) AS n FROM ratios l JOIN ratios r ON l.v <-> r.v <= eps OFFSET 0) s', true))
  queries(query, uses_node);
SELECT is(property('Evaluated Pairs', format($$ SELECT count(*) FROM vectors l JOIN %s r ON l.v <-> r.v %s '%s'::float8 $$, tbl, comparison, eps)),
  asked::text, format('%s asks the condition of %s pairs of %s', comparison || eps, asked, tbl))
FROM (VALUES ('<=', 'Infinity', 'vectors', 0), ('<', 'Infinity', 'vectors', 90000), ('<', 'NaN', 'vectors', 0),
  ('<=', 'Infinity', 'endless', 300)) radii(comparison, eps, tbl, asked);
SELECT unalike(coalesce(property('Engine Fallback', 'SELECT eps, n FROM (VALUES (''NaN''::float8), (2)) radii(eps),
  LATERAL (SELECT count(*) AS n FROM ratios l JOIN ratios r ON l.v <-> r.v <= eps OFFSET 0) s'), ''), '%finite%',
  'a radius that the engine refuses is forgotten with its join');

-- ---- Filters: cheap ones before a costly condition, and the order of keys by the engine
CREATE TABLE keys AS SELECT i AS id, i::int2 AS small, -i::int8 AS big, i / 2 AS twice, nullif(i, 5) AS gap, i * 7919 % 1009 AS mixed,
  v FROM ratios, LATERAL (SELECT id AS i) one;
ANALYZE keys;
SELECT same_rows(format('SELECT %s FROM keys l %s keys r ON l.v <-> r.v <= 2 AND l.%s %s r.%s', columns, kind, key, comparison, key),
  true, format('%s %s: %s %s', kind, columns, key, comparison))
FROM unnest('{id,small,big,twice,gap,mixed}'::text[]) key, unnest('{<,>,<>}'::text[]) comparison,
  (VALUES ('JOIN', 'l.id, r.id'), ('JOIN', 'count(*)'), ('LEFT JOIN', 'l.id, r.id')) kinds(kind, columns);
SELECT same_rows(format('SELECT l.id, count(*) FROM keys l JOIN keys r ON l.v <-> r.v <= 2 AND l.id %s r.id GROUP BY l.id', comparison),
  NULL, 'counts for each row: ' || comparison) FROM unnest('{<,>,<>}'::text[]) comparison;
ALTER TABLE keys ADD PRIMARY KEY (id);
SELECT same_rows(format('SELECT %s.id, count(*) FROM keys l JOIN keys r ON l.v <-> r.v <= 2 AND l.id %s r.id GROUP BY 1', side, comparison),
  true, format('counts for each row of %s: %s', side, comparison))
FROM unnest('{<,>,<>}'::text[]) comparison, unnest('{l,r}'::text[]) side;
SELECT same_rows(format('SELECT l.id FROM keys l WHERE %s (SELECT FROM keys r WHERE l.v <-> r.v <= 2 AND l.id %s r.id)', kind, comparison),
  true, format('%s: %s', kind, comparison))
FROM unnest('{<,>,<>}'::text[]) comparison, unnest('{EXISTS,NOT EXISTS}'::text[]) kind;
SELECT is(property('Rows Removed by Join Filter', format('SELECT l.id, r.id FROM keys l JOIN keys r ON l.v <-> r.v <= 2 AND l.%s < r.%1$s', key)),
  '0', 'the engine makes no pair twice: ' || key) FROM unnest('{id,small,big,mixed}'::text[]) key;
SELECT is(property('Counts', 'SELECT count(*) FROM keys l JOIN keys r ON l.v <-> r.v <= 2 AND l.id < r.id'), 'pairs', 'counted without pairs');
\if :has_postgis
SELECT same_rows('SELECT l.id, r.id FROM shapes l JOIN shapes r ON l.id < r.id AND ST_Intersects(l.g, r.g)', true, 'costly conditions');
SELECT is(pairs_asked('SELECT l.id, r.id FROM shapes l JOIN shapes r ON ST_Intersects(l.g, r.g) AND l.id < 100 - r.id'),
  (SELECT count(*) FROM shapes l JOIN shapes r ON l.g && r.g AND l.id < 100 - r.id), 'cheap conditions are asked first');
\endif

-- ---- Memory: a plan that was made for more of it
CREATE TABLE many AS SELECT i AS id, ARRAY[i * 7919 % 10007, i * 104729 % 10009]::float8[] AS v, i % 10 AS grp
FROM generate_series(1, 20000) i;
ANALYZE many;
SELECT is(under_limit(query, memory), under_limit(query, '1GB'), format('%s under %s', query, memory))
FROM unnest(ARRAY[
    'SELECT l.id, r.id FROM many l JOIN many r ON l.v <-> r.v <= 20',
    'SELECT count(*) FROM many l JOIN many r ON l.v <-> r.v <= 20',
    'SELECT count(*) FROM many l JOIN many r ON l.v <-> r.v <= 20 AND l.id < r.id',
    'SELECT l.id, r.id FROM many l LEFT JOIN many r ON l.v <-> r.v <= 9 AND l.grp = r.grp',
    'SELECT l.id FROM many l WHERE NOT EXISTS (SELECT FROM many r WHERE l.v <-> r.v <= 30 AND l.id <> r.id)',
    'SELECT l.id, r.id FROM many l JOIN many r ON l.v <-> r.v <= 20 ORDER BY l.v <-> r.v, l.id, r.id LIMIT 30']) query,
  unnest('{4MB,2MB}'::text[]) memory;
SELECT is(under_limit('SELECT l.id, r.id FROM vectors l JOIN vectors r ON l.v <-> r.v <= 3', '64kB'),
  bag('SELECT l.id, r.id FROM vectors l JOIN vectors r ON l.v <-> r.v <= 3'), 'not even the engine itself fits');
CREATE TABLE cubes AS SELECT i AS id, cube(v, (SELECT array_agg(x + 20) FROM unnest(v) x)) AS c FROM generate_series(1, 162) i,
  LATERAL (SELECT array_agg(((i * 7919 + j * 104729) % 1009)::float8) FROM generate_series(1, 7) j) vectors(v);
SELECT is(under_limit(query, '64kB'), bag(query), 'the last parts fit no more: ' || query)
FROM unnest('{<->,<#>}'::text[]) operator, format('SELECT l.id, r.id FROM cubes l JOIN cubes r ON l.c %s r.c <= 60 AND l.id <= 54', operator) query;
SET LOCAL gpujoin.host_memory_limit = '64kB';
SELECT same_rows('SELECT l.id, r.id FROM many l JOIN many r ON l.v <-> r.v <= 1 AND l.id % 1000 = 0', false,
  'the node is not offered where its data would not fit');
RESET gpujoin.host_memory_limit;
SELECT is(under_limit(query, '2MB'), under_limit(query, '1GB'), 'several joins of a statement share the limit')
FROM (SELECT string_agg(format('SELECT count(*) FROM many l JOIN many r ON l.v <-> r.v <= %s', i), ' UNION ALL ')
  FROM generate_series(1, 6) i) statement(query);

SELECT * FROM finish();
ROLLBACK;
