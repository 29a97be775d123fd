-- Searches of one table: with the node GpuSimilarityScan and without it the same rows in the same order, whatever the type, the
-- value, a radius, an order, a limit, ties, NULLs and odd values, in all positions of a query. Not in one transaction: tables
-- that are not committed stay with no service.
SELECT * FROM no_plan();
CREATE SCHEMA planner_search;
SET search_path = planner_search, public;
SET jit = off;
SET extra_float_digits = 1;
LOAD 'gpujoin';

CREATE FUNCTION few(i int, n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT (i::bigint * 7919 % 1009 % n)::int';
CREATE TABLE a AS
  SELECT i AS id, i % 7 AS grp, CASE WHEN i % 17 <> 0 THEN ARRAY[few(i, 23) / 2.0, few(i, 19)]::float8[] END AS v,
    ARRAY[few(i, 23) / 3.0, few(i, 19)]::float4[] AS f, point(few(i, 211) / 3.0, few(i, 197)) AS p, i % 5 / 2.0::float8 AS r
  FROM generate_series(1, 1500) i;
ALTER TABLE a ADD PRIMARY KEY (id), ALTER p SET NOT NULL;
CREATE TABLE b AS SELECT * FROM a WHERE id % 97 = 5;
CREATE TABLE odd AS SELECT id, grp, CASE id % 10 WHEN 1 THEN '{NaN,1}' WHEN 2 THEN '{Infinity,0}' WHEN 3 THEN '{1e200,-1e200}'
  WHEN 5 THEN '{0,0}' ELSE v END AS v, f, CASE id % 10 WHEN 1 THEN point 'NaN,1' WHEN 2 THEN point 'Infinity,0' ELSE p END AS p FROM a WHERE id < 60;
CREATE TABLE hollow AS SELECT * FROM a LIMIT 0;
CREATE TABLE unknown AS SELECT id, grp, NULL::float8[] AS v, NULL::point AS p, f FROM a WHERE id < 9;
CREATE TABLE parts (LIKE a) PARTITION BY LIST (grp);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES IN (0, 1, 2);
CREATE TABLE parts_high PARTITION OF parts FOR VALUES IN (3, 4, 5, 6);
INSERT INTO parts SELECT * FROM a;
CREATE TABLE guarded AS SELECT * FROM a;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY visible ON guarded USING (grp <> 3);
ANALYZE;

CREATE FUNCTION use_node(wanted boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('gpujoin.enable_customscan', wanted::text, false), set_config('gpujoin.prefer_node', wanted::text, false),
    set_config('gpujoin.service', 'on', false);
  DISCARD PLANS;
END $$;
-- The rows in their order; of a query that fails its SQLSTATE.
CREATE FUNCTION list(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  line record;
  lines text[] := '{}';
BEGIN
  FOR line IN EXECUTE query LOOP
    lines := lines || line::text;
  END LOOP;
  RETURN lines;
EXCEPTION WHEN OTHERS THEN
  RETURN ARRAY['ERROR ' || SQLSTATE];
END $$;
CREATE FUNCTION plan_of(query text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
  RETURN plan;
END $$;
CREATE FUNCTION property(name text, query text) RETURNS text LANGUAGE sql AS $$
  SELECT jsonb_path_query_first(plan_of(query), '$.** ? (@."Custom Plan Provider" == "GpuSimilarityScan")') ->> name
$$;
-- Whether both ways find the same; `searches`: whether the service was asked, NULL: whatever it was.
CREATE FUNCTION same(query text, searches boolean) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  plain text[];
BEGIN
  PERFORM use_node(false);
  plain := list(query);
  PERFORM use_node(true);
  RETURN NEXT is(list(query), plain, query || ': the same rows');
  IF searches IS NOT NULL THEN
    RETURN NEXT is(coalesce(property('Searches', query)::int, 0) > 0, searches, query || ': ' || CASE WHEN searches THEN 'searched' ELSE 'not searched' END);
  END IF;
  PERFORM use_node(false);
END $$;

-- One value.
SELECT same(format(q, t), CASE WHEN t <> 'guarded' THEN true END) FROM unnest('{a,parts,guarded}'::text[]) t, (VALUES
  ('SELECT id FROM %s WHERE p <-> point(20, 30) <= 9 ORDER BY id'), ('SELECT id FROM %s WHERE p <-> point(20, 30) < 9 AND grp > 2 ORDER BY id'),
  ('SELECT id, p <-> point(20, 30) FROM %s ORDER BY p <-> point(20, 30), id LIMIT 12'), ('SELECT id FROM %s ORDER BY point(20, 30) <-> p, id LIMIT 3 OFFSET 7'),
  ('SELECT id FROM %s WHERE grp = 4 ORDER BY p <-> point(20, 30), id LIMIT 40'), ('SELECT count(*) FROM (SELECT FROM %s ORDER BY p <-> point(7, 7) FETCH FIRST 5 ROWS WITH TIES) s'),
  ('SELECT id FROM %s WHERE p <-> point(7, 9) < 30 ORDER BY p <-> point(7, 9), id'), ('SELECT id FROM %s WHERE v <-> ARRAY[3, 4]::float8[] <= 1 ORDER BY id'),
  ('SELECT v <-> ARRAY[3, 4]::float8[] FROM %s ORDER BY v <-> ARRAY[3, 4]::float8[] LIMIT 9'), ('SELECT v <+> ARRAY[3, 4]::float8[] FROM %s ORDER BY 1 LIMIT 9'),
  ('SELECT f <-> ARRAY[3, 4]::float4[] FROM %s ORDER BY 1 LIMIT 9'), ('SELECT id FROM %s WHERE gpu_within(p, point(20, 30), 9) ORDER BY id')) q(q);
SELECT same(format(q, t), NULL) FROM unnest('{odd,unknown,hollow}'::text[]) t, (VALUES
  ('SELECT id FROM %s WHERE p <-> point(20, 30) <= 9 ORDER BY id'), ('SELECT p <-> point(20, 30) FROM %s ORDER BY 1'), ('SELECT v <-> ARRAY[3, 4]::float8[] FROM %s ORDER BY 1'),
  ('SELECT v <-> ARRAY[3, 4]::float8[] FROM %s ORDER BY 1 LIMIT 5'), ('SELECT v <=> ARRAY[3, 4]::float8[] FROM %s ORDER BY 1 LIMIT 50'), ('SELECT 1 - (v <=> ARRAY[3, 4]::float8[]) FROM %s ORDER BY 1 DESC LIMIT 50'),
  ('SELECT id FROM %s WHERE v <-> ARRAY[1 / (grp - grp), 2]::float8[] < 3')) q(q);
-- All of the table comes where all is asked for, rows without a distance last; other orders.
SELECT same(q, s) FROM (VALUES ('SELECT v <-> ARRAY[3, 4]::float8[] FROM a ORDER BY 1', true), ('SELECT v <-> ARRAY[3, 4]::float8[] FROM a ORDER BY 1 OFFSET 1400', true),
  ('SELECT 1 - (p <-> point(9, 9)) FROM a ORDER BY 1 DESC LIMIT 20', true), ('SELECT 1 - (v <-> ARRAY[3, 4]::float8[]) FROM a ORDER BY 1 DESC NULLS LAST LIMIT 20', true),
  ('SELECT 1 - (v <-> ARRAY[3, 4]::float8[]) FROM a ORDER BY 1 DESC LIMIT 200', false), ('SELECT v <-> ARRAY[3, 4]::float8[] FROM a ORDER BY 1 NULLS FIRST LIMIT 200', false),
  ('SELECT p <-> point(9, 9) FROM a ORDER BY 1 DESC LIMIT 20', false), ('SELECT 3 * (p <-> point(9, 9)) + 1 FROM a ORDER BY 1 LIMIT 20', true),
  ('SELECT id FROM a WHERE p <-> point(9, 9) > 9 ORDER BY id', false), ('SELECT id FROM a WHERE p <-> point(9, 9) < 3 OR id = 7 ORDER BY id', false),
  ('SELECT id FROM a WHERE random() >= 0 ORDER BY p <-> point(9, 9), id LIMIT 3', false), ('SELECT id, ctid, tableoid::regclass, xmin IS NULL FROM a ORDER BY p <-> point(9, 9), id LIMIT 3', true),
  ('SELECT id FROM a ORDER BY p <-> (SELECT p FROM b WHERE id = 102), id LIMIT 3', true), ('SELECT id FROM a WHERE p <-> (SELECT p FROM b WHERE id = 102) < 9 ORDER BY id', true)) q(q, s);
-- A row that has NaN for its distance comes first where an order descends, and last where it does not.
CREATE TABLE nought AS SELECT id, CASE id WHEN 700 THEN '{0,0}' ELSE v END AS v, CASE id WHEN 700 THEN point 'NaN,0' ELSE p END AS p FROM a WHERE v IS NOT NULL;
SELECT same(format('SELECT id, d FROM (SELECT id, %s AS d FROM %s) s ORDER BY d %s, id LIMIT 9', d, t, o), NULL)
FROM unnest('{odd,nought,a}'::text[]) t, unnest('{DESC NULLS LAST,DESC,ASC}'::text[]) o,
  unnest(ARRAY['-(v <-> ARRAY[3, 4]::float8[]) * 2', '1 - (v <=> ARRAY[3, 4]::float8[])', '1 - (p <-> point(9, 9))', 'v <=> ARRAY[3, 4]::float8[]']) d;
-- Values that are no finite points, and radii that are none.
SELECT same(format('SELECT id, d FROM (SELECT id, v <-> %s AS d FROM a) s %s', v, w), NULL) FROM (VALUES ('ARRAY[''NaN'', 3]::float8[]'), ('ARRAY[''Infinity'', 3]::float8[]'), ('ARRAY[1, 2, 3]::float8[]'),
  ('ARRAY[]::float8[]'), ('NULL::float8[]'), ('ARRAY[1, NULL]::float8[]'), ('ARRAY[1e200, 3]::float8[]'), ('ARRAY[[1, 2]]::float8[]')) v(v), (VALUES ('WHERE d < 3 ORDER BY id'), ('ORDER BY d, id'), ('ORDER BY d, id LIMIT 7')) w(w);
SELECT same(format('SELECT id FROM a WHERE v <-> ARRAY[3, 4]::float8[] %s ORDER BY id', c), NULL) FROM unnest(ARRAY['<= ''NaN''', '< ''Infinity''', '<= -1', '<= 0', '< 0', '<= NULL', '< 1e300']) c;
-- Subqueries, joins and loops.
SELECT same(q, true) FROM unnest(ARRAY[
  'SELECT b.id, (SELECT count(*) FROM a WHERE a.p <-> b.p < 5) FROM b ORDER BY 1', 'SELECT b.id, ARRAY(SELECT a.id FROM a ORDER BY a.p <-> b.p, a.id LIMIT 3) FROM b ORDER BY 1',
  'SELECT b.id FROM b WHERE b.id < 300 OR EXISTS (SELECT FROM a WHERE a.p <-> b.p < 1 AND a.id <> b.id) ORDER BY 1', 'SELECT b.id, n.id FROM b, LATERAL (SELECT a.id FROM a ORDER BY a.p <-> b.p, a.id LIMIT 2 OFFSET 3) n ORDER BY 1, 2',
  'SELECT b.id, n.* FROM b, LATERAL (SELECT count(*), min(d) FROM (SELECT a.p <-> b.p AS d FROM a ORDER BY 1 LIMIT 7) s) n ORDER BY 1', 'SELECT * FROM (SELECT id, rank() OVER (ORDER BY p <-> point(50, 50)) AS rn FROM a) s WHERE rn < 9 ORDER BY rn, id',
  'SELECT b.id, (SELECT count(*) FROM a WHERE a.p <-> b.p <= b.r) FROM b ORDER BY 1', 'SELECT b.id, (SELECT a.id FROM parts a ORDER BY a.p <-> b.p, a.id LIMIT 1) FROM b ORDER BY 1',
  'SELECT s.id FROM (SELECT id, p FROM a UNION ALL SELECT id, p FROM parts) s WHERE s.p <-> point(50, 50) < 6 ORDER BY 1']) q;
CREATE FUNCTION nearest_of(q point) RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT id FROM a ORDER BY p <-> q, id LIMIT 1); END $$;
SELECT same('SELECT id, nearest_of(p) FROM b ORDER BY 1', NULL);
SELECT same('SELECT id, nearest_of(point(p[1], p[0])) FROM b ORDER BY 1', NULL);
-- A statement that changes what it searches; rows that it wrote itself are not there.
SELECT use_node(true);
CREATE TABLE changed AS SELECT *, 0 AS near FROM a;
UPDATE changed c SET near = (SELECT count(*) FROM changed d WHERE d.p <-> c.p < 3), p = p + point(1000, 0) WHERE id % 20 = 3;
SELECT is((SELECT sum(near) FROM changed)::numeric, (SELECT sum(n) FROM (SELECT (SELECT count(*) FROM a y WHERE (y.p <-> x.p) + 0 < 3) AS n FROM a x WHERE id % 20 = 3) s), 'an UPDATE sees the table as it was');
SELECT results_eq('SELECT count(*) FROM changed WHERE p <-> point(1020, 30) < 100', 'SELECT count(*) FROM changed WHERE (p <-> point(1020, 30)) + 0 < 100', 'and the next statement as it is');
DELETE FROM changed WHERE p <-> point(1020, 30) < 50;
SELECT is((SELECT count(*) FROM changed WHERE (p <-> point(1020, 30)) + 0 < 50), 0::bigint, 'a DELETE finds its rows by a search');
-- Cursors, generic plans, and what EXPLAIN says.
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM a ORDER BY p <-> point(20, 30), id;
CREATE FUNCTION fetched(n int) RETURNS SETOF int LANGUAGE plpgsql AS $$
DECLARE
  c refcursor := 'c';
  id int;
BEGIN
  FOR i IN 1 .. n LOOP
    FETCH c INTO id;
    RETURN NEXT id;
  END LOOP;
END $$;
SELECT results_eq('SELECT * FROM fetched(700)', 'SELECT id FROM a ORDER BY (p <-> point(20, 30)) + 0, id LIMIT 700', 'a cursor comes as far as one wants');
COMMIT;
PREPARE near(point, float8, int) AS SELECT id FROM a WHERE p <-> $1 < $2 ORDER BY p <-> $1, id LIMIT $3;
SET plan_cache_mode = force_generic_plan;
SELECT results_eq(format('EXECUTE near(%L, %s, %s)', p, r, n), format('SELECT id FROM a WHERE (p <-> %L) + 0 < %s ORDER BY (p <-> %L) + 0, id LIMIT %s', p, r, p, n), format('a generic plan, %s %s %s', p, r, n))
FROM (VALUES (point(1, 1), 9, 5), (point(60, 60), 30, 200), (point(60, 60), 1e9, 3), (point 'NaN,1', 3, 3), (point(-5, 3), 0, 3)) v(p, r, n);
RESET plan_cache_mode;
SELECT is(property('Search Method', 'SELECT id FROM a WHERE p <-> point(1, 1) < 9 ORDER BY p <-> point(1, 1) LIMIT 2'), 'Nearest Rows Within a Radius');
SELECT is(property('Search Method', 'SELECT id FROM a WHERE p <-> point(1, 1) < 9'), 'Rows Within a Radius');
SELECT is(property('Order By', 'SELECT id FROM a ORDER BY 1 - (p <-> point(1, 1)) DESC LIMIT 2'), '(''1''::double precision - (p <-> ''(1,1)''::point)) DESC');
SELECT is(property('Index', 'SELECT id FROM a ORDER BY p <-> point(1, 1) LIMIT 2'), 'kept', 'the table was searched before');
SELECT cmp_ok(property('Rows Fetched', 'SELECT id FROM a ORDER BY p <-> point(1, 1) LIMIT 2')::int, '<', 40, 'few rows are fetched');
-- Inner products of pgvector's types: of rows of any length, whose longest ones change, of one length, without a length, and beyond
-- single precision.
SELECT count(*) > 0 AS has_vector, NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') AS makes_vector FROM pg_available_extension_versions
WHERE name = 'vector' AND string_to_array(version, '.')::int[] >= '{0,7}' \gset
SELECT count(*) > 0 AS has_postgis, NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'postgis') AS makes_postgis FROM pg_available_extensions WHERE name = 'postgis' \gset
\if :has_vector
CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;
CREATE TABLE lengths AS SELECT i AS id, i % 7 AS grp,
  CASE WHEN i % 17 <> 0 THEN ARRAY[few(i, 9) - 4, few(i, 7) - 3, few(i, 5) - 2, i % 3 - 1]::float4[]::vector END AS v FROM generate_series(1, 1500) i;
CREATE TABLE units AS SELECT id, grp, l2_normalize(v) AS v FROM lengths WHERE v IS NOT NULL AND vector_norm(v) > 0;
CREATE TABLE zeros AS SELECT id, grp, '[0,0,0,0]'::vector AS v FROM lengths WHERE id < 30;
CREATE TABLE extremes AS SELECT id, grp, CASE WHEN id = 5 THEN '[3e38,-3e38,3e38,1]' ELSE v END AS v FROM lengths;
CREATE TABLE asked AS SELECT id, v FROM lengths WHERE id % 149 = 5
  UNION ALL VALUES (-1, '[0,0,0,0]'::vector), (-2, '[1e-30,0,0,0]'::vector), (-3, '[3e38,3e38,0,0]'::vector);
CREATE TABLE halves AS SELECT id, grp, v::halfvec AS v FROM lengths;
CREATE TABLE sparse AS SELECT id, grp, v::sparsevec(4) AS v FROM lengths;
CREATE FUNCTION same_products() RETURNS SETOF text LANGUAGE sql AS $$
  SELECT same(q, CASE WHEN t NOT IN ('extremes', 'sparse') AND q !~ 'asked' THEN true END) FROM unnest('{lengths,units,zeros,extremes,halves,sparse}'::text[]) t,
    (VALUES ('SELECT id, v <#> %2$L FROM %1$s ORDER BY v <#> %2$L, id LIMIT 12'), ('SELECT id FROM %1$s WHERE v <#> %2$L < -3 ORDER BY id'),
      ('SELECT id FROM %1$s WHERE v <#> %2$L <= -0.5 ORDER BY v <#> %2$L, id LIMIT 7'), ('SELECT id FROM %1$s ORDER BY (v <#> %2$L) * -1 DESC NULLS LAST, id LIMIT 5'),
      ('SELECT a.id, (SELECT x.id FROM %1$s x ORDER BY x.v <#> a.v, x.id LIMIT 1), (SELECT count(*) FROM %1$s x WHERE x.v <#> a.v <= -2) FROM asked a ORDER BY 1')) v(form),
    format(form, t, CASE t WHEN 'sparse' THEN '{1:1,2:2,3:-3,4:0.5}/4' ELSE '[1,2,-3,0.5]' END) q
  WHERE q !~ 'asked' OR t NOT IN ('halves', 'sparse')
$$;
ANALYZE lengths, units, zeros, extremes, asked, halves, sparse;
SELECT same_products();
SELECT is(gpu_prewarm('units', metric => 'inner_product'), (SELECT count(*) FROM units), 'products are prewarmed');
UPDATE lengths SET v = (SELECT array_agg(x * 3 ORDER BY n) FROM unnest(v::float4[]) WITH ORDINALITY u(x, n))::vector WHERE id % 100 = 5;
UPDATE zeros SET v = '[5,5,5,5]' WHERE id = 7;
DELETE FROM units WHERE id % 50 = 1;
SELECT same_products();
\endif

-- Distances that the query writes out.
CREATE TABLE flat AS SELECT id, grp, p[0] AS x, p[1] AS y, nullif(few(id, 359), 3) - 180.5::float8 AS lon, few(id, 170) - 85.0::float8 AS lat FROM a;
CREATE TABLE nowhere AS SELECT id, grp, x, y, lon, CASE WHEN id = 77 THEN 95 ELSE lat END AS lat FROM flat;
ANALYZE flat, nowhere;
SELECT same(format(q, d), true) FROM unnest(ARRAY['sqrt((x - 20) ^ 2 + (y - 30) ^ 2)', '(x - 20) * (x - 20) + (30 - y) ^ 2', 'abs(x - 20.5) + abs(3 - y)', 'abs(7 - x)']) d,
  unnest(ARRAY['SELECT id FROM flat ORDER BY %s, id LIMIT 9', 'SELECT id FROM flat WHERE %s < 20 AND grp > 1 ORDER BY id']) q;
SELECT same(format(q, d), searches) FROM unnest(ARRAY['acos(sin(radians(52.5)) * sin(radians(lat)) + cos(radians(52.5)) * cos(radians(lat)) * cos(radians(lon) - radians(13.4)))',
    '2 * asin(sqrt(sin(radians(lat - 52.5) / 2) ^ 2 + cos(radians(52.5)) * cos(radians(lat)) * sin(radians(lon - 13.4) / 2) ^ 2))',
    '2 * asin(sqrt(sin(radians(-33.9 - lat) / 2) ^ 2 + cos(radians(lat)) * cos(radians(-33.9)) * sin(radians(151.2 - lon) / 2) ^ 2))',
    '2 * asin(sqrt(sin(radians(lat) / 2) ^ 2 + cos(radians(lat)) * sin(radians(lon - 10) / 2) ^ 2))']) d,
  (VALUES ('SELECT id FROM flat ORDER BY %s, id LIMIT 9', true), ('SELECT id FROM flat WHERE 6371 * (%s) < 2000 ORDER BY id', true),
    ('SELECT id FROM nowhere ORDER BY %s, id LIMIT 9', false)) v(q, searches);
SELECT same(format('SELECT b.id, (SELECT f.id FROM flat f ORDER BY %s, f.id LIMIT 1), (SELECT count(*) FROM flat f WHERE %1$s < 3) FROM flat b WHERE b.id %% 97 = 5 ORDER BY 1', d), true)
FROM unnest(ARRAY['sqrt((f.x - b.x) ^ 2 + (b.y - f.y) ^ 2)', 'degrees(2 * asin(sqrt(sin(radians(f.lat - b.lat) / 2) ^ 2 + cos(radians(b.lat)) * cos(radians(f.lat)) * sin(radians(f.lon - b.lon) / 2) ^ 2)))']) d;
-- Computed values. What may fail is computed in a subtransaction; if it fails, the table is scanned.
SELECT same('SELECT b.id, (SELECT ' || q || ') FROM b ORDER BY 1', searches) FROM (VALUES
  ('count(*) FROM a x WHERE ARRAY[x.r, x.id]::float8[] <-> ARRAY[b.r, b.id]::float8[] <= 3', true), ('x.id FROM a x ORDER BY point(x.id, x.grp) <-> point(b.id, 1), x.id LIMIT 1', true),
  ('count(*) FROM a x WHERE point(100.0 / (x.grp + 1), x.id) <-> b.p < 30', true), ('x.id FROM parts x ORDER BY x.p + point(1, 1) <-> b.p, x.id LIMIT 1', true),
  ('count(*) FROM a x WHERE (x.id - b.id) ^ 2 + (x.grp - b.grp) ^ 2 < 20', true), ('count(*) FROM a x WHERE point(100.0 / (x.grp - 3), x.id) <-> b.p < 30', NULL),
  ('count(*) FROM a x WHERE x.grp <> 3 AND point(100 / (x.grp - 3), x.id) <-> b.p < 30', false), ('count(*) FROM a x WHERE point(x.id, random()) <-> b.p < 30 AND false', false)) v(q, searches);
SELECT same('SELECT b.id, (SELECT count(*) FROM guarded x WHERE point(100 / (x.grp - 3), x.id) <-> b.p < 30) FROM b ORDER BY 1', NULL);
SELECT same('SELECT id FROM a ORDER BY (p + point(1, 1)) <-> point(20, 30), id LIMIT 5', true);
SELECT same('SELECT id FROM a WHERE ARRAY[r, id]::float8[] <-> ARRAY[1, 2]::float8[] < 9 ORDER BY id', true);
-- A radius beside a distance of two rows, in one condition.
SELECT same('SELECT a.id, b.id FROM flat a, flat b WHERE (abs(a.x - 20) < 3 AND sqrt((a.x - b.x) ^ 2 + (a.y - b.y) ^ 2) < 2 OR sqrt((a.x - b.x) ^ 2 + (a.y - b.y) ^ 2) < 1) ORDER BY 1, 2', NULL);

-- Without prefer_node: a table that is not kept is not searched for one value, but for many.
SELECT use_node(true);
SET gpujoin.prefer_node = off;
CREATE TABLE fresh AS SELECT * FROM a UNION ALL SELECT * FROM a;
ANALYZE fresh;
SELECT is(property('Searches', 'SELECT id FROM fresh ORDER BY p <-> point(1, 1) LIMIT 2'), NULL, 'one search does not read a table');
SELECT is(property('Searches', 'SELECT (SELECT f.id FROM fresh f ORDER BY f.p <-> b.p LIMIT 1) FROM b'), ((SELECT count(*) FROM b) - 1)::text, 'the second of many does');
SELECT is(property('Index', 'SELECT id FROM fresh ORDER BY p <-> point(1, 1) LIMIT 2'), 'kept', 'and it stays');
-- With a condition that few rows fulfil it is cheaper to look at these.
CREATE TABLE kinds AS SELECT i AS id, i % 9973 AS kind, point(few(i, 211) / 3.0, few(i, 197)) AS p FROM generate_series(1, 60000) i;
ANALYZE kinds;
SELECT is(gpu_prewarm('kinds'), 60000::bigint, 'a table is prewarmed');
SELECT is(property('Index', format('SELECT id FROM kinds WHERE kind < %s ORDER BY p <-> point(1, 1) LIMIT 10', most)), CASE WHEN most > 100 THEN 'kept' END, format('%s of 9973 kinds', most))
FROM unnest('{9973,1000,2,1}'::int[]) most;
SELECT is(property('Index', format('SELECT id FROM (SELECT id, %s OVER (ORDER BY p <-> point(1, 1)) AS r FROM kinds) s WHERE r %s', f, most)),
  CASE WHEN current_setting('server_version_num')::int >= 150000 THEN 'kept' END, format('a window of few rows: %s %s', f, most))
FROM (VALUES ('rank()', '<= 3'), ('row_number()', '< 20')) v(f, most);
SET gpujoin.prefer_node = on;
SELECT is(property('Searches', 'SELECT id FROM kinds WHERE kind = 1 ORDER BY p <-> point(1, 1) LIMIT 10'), '1', 'after one search it is known how few there are');
SET gpujoin.prefer_node = off;
-- All distances of a type find what was prewarmed.
\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis SCHEMA public;
CREATE TABLE spots AS SELECT i AS id, ST_MakePoint(few(i, 359) - 179.5, few(i, 170) - 85)::geography AS g FROM generate_series(1, 3000) i;
ANALYZE spots;
SELECT is(gpu_prewarm('spots'), 3000::bigint, 'geographies are prewarmed');
SELECT is(property('Index', 'SELECT id FROM spots ' || rest), 'kept', rest) FROM unnest(ARRAY['ORDER BY g <-> ST_MakePoint(13.4, 52.5)::geography LIMIT 3',
  'WHERE ST_DWithin(g, ST_MakePoint(13.4, 52.5)::geography, 50000)', 'WHERE ST_DWithin(g, ST_MakePoint(13.4, 52.5)::geography, 50000, false)']) rest;
\endif
CREATE UNLOGGED TABLE unlogged AS SELECT * FROM a;
ANALYZE unlogged;
SELECT is(property('Searches', 'SELECT (SELECT u.id FROM unlogged u ORDER BY u.p <-> b.p LIMIT 1) FROM b'), ((SELECT count(*) FROM b) - 1)::text, 'what the service cannot keep the session searches');
SET gpujoin.service = off;
SELECT is(property('Index', 'SELECT id FROM fresh ORDER BY p <-> point(1, 1) LIMIT 2'), NULL, 'sessions alone keep nothing');
SELECT is(property('Searches', q), ((SELECT count(*) FROM b) - 1)::text, q || ': a session searches by itself') FROM unnest(ARRAY[
  'SELECT (SELECT f.id FROM fresh f ORDER BY f.p <-> b.p LIMIT 1) FROM b', 'SELECT (SELECT count(*) FROM fresh f WHERE f.p <-> b.p < 3) FROM b']) q;
SELECT results_eq('SELECT b.id, (SELECT count(*) FROM fresh f WHERE f.p <-> b.p < 3) FROM b ORDER BY 1', 'SELECT b.id, (SELECT count(*) FROM fresh f WHERE (f.p <-> b.p) + 0 < 3) FROM b ORDER BY 1', 'and finds the same');
SET gpujoin.service = on;
SELECT results_eq($$SELECT served, reason FROM gpu_why('SELECT (SELECT f.id FROM fresh f ORDER BY f.p <-> b.p LIMIT 1) FROM b')$$, $$VALUES (true, 'served by search')$$, 'gpu_why() knows it');

SELECT * FROM finish();
SET client_min_messages = warning;
DROP SCHEMA planner_search CASCADE;
-- Other tests make these extensions themselves.
\if :has_vector
\if :makes_vector
DROP EXTENSION vector;
\endif
\endif
\if :has_postgis
\if :makes_postgis
DROP EXTENSION postgis;
\endif
\endif
