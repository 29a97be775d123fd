-- Joins of pgvector's types in plain SQL. Debian 12 does not have pgvector: where it is missing, types of the same layout
-- stand in for it, and a comparison of bytes for its distances, which must not be asked where the engine can tell.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA with_pgvector;
SET search_path = with_pgvector, public;
SET jit = off;
SET client_min_messages = warning;

\ir same_rows.psql
\ir stand_in.psql

SELECT bool_or(name = 'vector') AS has_pgvector FROM pg_available_extensions \gset
\if :has_pgvector
CREATE SCHEMA home_of_vector;
CREATE EXTENSION vector SCHEMA home_of_vector;
\else
SELECT stand_in('vector', '{vector,halfvec,sparsevec}', current_user::regrole) \gset
CREATE FUNCTION add_distance(name text, type text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE FUNCTION home_of_vector.%1$I(home_of_vector.%2$I, home_of_vector.%2$I) RETURNS float8
    LANGUAGE internal IMMUTABLE STRICT AS ''byteacmp'';
    ALTER EXTENSION vector ADD FUNCTION home_of_vector.%1$I(home_of_vector.%2$I, home_of_vector.%2$I)', name, type);
END $$;
SELECT count(add_distance(name, type)) FROM unnest('{vector,halfvec,sparsevec}'::text[]) type,
  unnest(ARRAY['l2_distance', 'l1_distance', 'cosine_distance', 'inner_product', type || '_negative_inner_product']) name \gset
-- Of columns that are declared with their dimensions.
CREATE FUNCTION home_of_vector.dims_in(cstring[]) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'varchartypmodin';
ALTER TYPE home_of_vector.sparsevec SET (TYPMOD_IN = home_of_vector.dims_in);
\endif
SET search_path = with_pgvector, public, home_of_vector;

-- What pgvector makes of an array, by its own input function or by hand: numbers in 32 or 16 bits, the lowest byte first.
CREATE FUNCTION turned(b bytea) RETURNS bytea LANGUAGE sql AS
$$ SELECT string_agg(substring(b FROM i FOR 1), '' ORDER BY i DESC) FROM generate_series(1, length(b)) i $$;
CREATE FUNCTION half(x float8) RETURNS int LANGUAGE sql AS $$
  SELECT CASE WHEN x = 0 THEN 0 ELSE (CASE WHEN x < 0 THEN 32768 ELSE 0 END) + (e + 15) * 1024 + ((abs(x) / 2.0 ^ e - 1) * 1024)::int END
  FROM floor(log(2, abs(nullif(x, 0))::numeric)) f(e) $$;
CREATE FUNCTION literal(v float4[], type text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN
    RETURN CASE type WHEN 'sparsevec' THEN (SELECT format('{%s}/%s', string_agg(n || ':' || x, ',' ORDER BY n), max(n))
      FROM unnest(v) WITH ORDINALITY u(x, n)) ELSE '[' || array_to_string(v, ',') || ']' END;
  END IF;
  IF type = 'sparsevec' THEN
    RETURN (SELECT turned(int4send(cardinality(v))) || turned(int4send(count(*) FILTER (WHERE x <> 0)::int)) || '\x00000000' ||
      coalesce(string_agg(turned(int4send(n::int - 1)), '' ORDER BY n) FILTER (WHERE x <> 0), '') ||
      coalesce(string_agg(turned(float4send(x)), '' ORDER BY n) FILTER (WHERE x <> 0), '') FROM unnest(v) WITH ORDINALITY u(x, n));
  END IF;
  RETURN turned(int2send(cardinality(v)::int2)) || '\x0000' || string_agg(CASE type WHEN 'vector' THEN turned(float4send(x))
    ELSE turned(substring(int4send(half(x)) FROM 3)) END, '' ORDER BY n) FROM unnest(v) WITH ORDINALITY u(x, n);
END $$;

CREATE TABLE points AS SELECT i AS id, ARRAY[i % 11 - 5, i % 7, i / 10.0::float4]::float4[] AS f FROM generate_series(1, 120) i;
UPDATE points SET f = ARRAY[f[1], f[2], round(f[3])];
INSERT INTO points VALUES (200, '{0,0,0}');
CREATE FUNCTION convert(source text, target text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE dims int;
BEGIN
  EXECUTE format('SELECT max(cardinality(f)) FROM %I', source) INTO dims;
  EXECUTE format('CREATE TABLE %2$I AS SELECT id, f, literal(f, ''vector'')::home_of_vector.vector AS v, NULL::home_of_vector.sparsevec(%3$s) AS s,
    CASE WHEN (SELECT bool_and(x = 0 OR abs(x) BETWEEN 1 AND 1000) FROM unnest(f) x)
      THEN literal(f, ''halfvec'')::home_of_vector.halfvec END AS h FROM %1$I', source, target, dims);
  EXECUTE format('UPDATE %I SET s = literal(f, ''sparsevec'')::home_of_vector.sparsevec', target);
  EXECUTE format('ANALYZE %I', target);
END $$;
SELECT convert('points', 'items') \gset
SELECT force_node(true) \gset

-- Radii between the distances that there are: the engine decides alone.
SELECT bag_eq(format('SELECT a.id AS id1, b.id AS id2 FROM items a JOIN items b ON %s(a.%s, b.%2$s) <= %s', distance, c, eps),
  format('SELECT id1::int, id2::int FROM gpu_selfjoin(''points'', %s, ''id'', metric => %L)', eps, metric),
  format('%s of %s within %s', distance, c, eps))
FROM unnest('{v,h,s}'::text[]) c,
  (VALUES ('l2_distance', 'l2', 2.5), ('l2_distance', 'l2', 30), ('l1_distance', 'l1', 3.5), ('cosine_distance', 'cosine', 0.0123),
    ('cosine_distance', 'cosine', 1.2345), ('cosine_distance', 'cosine', 2.5)) d(distance, metric, eps);
SELECT ok(has_node(format('SELECT a.id, b.id FROM items a JOIN items b ON %s(a.%s, b.%2$s) <= 2.5', distance, c)), distance || ' of ' || c)
FROM unnest('{v,h,s}'::text[]) c, unnest('{l2_distance,l1_distance,cosine_distance}'::text[]) distance;

-- Inner products are whole numbers here.
SELECT bag_eq(format(condition, c, type), format('SELECT a.id AS id1, b.id AS id2 FROM items a, items b WHERE a.f[1] * b.f[1] + a.f[2] * b.f[2] + a.f[3] * b.f[3] > %s', least),
  format('%s: %s', c, condition))
FROM (VALUES ('v', 'vector'), ('h', 'halfvec'), ('s', 'sparsevec')) t(c, type), (VALUES
  ('SELECT a.id AS id1, b.id AS id2 FROM items a JOIN items b ON %2$s_negative_inner_product(a.%1$s, b.%1$s) <= -20.5', 20.5),
  ('SELECT a.id AS id1, b.id AS id2 FROM items a JOIN items b ON -%2$s_negative_inner_product(a.%1$s, b.%1$s) >= 61.25', 61.25),
  ('SELECT a.id AS id1, b.id AS id2 FROM items a JOIN items b ON inner_product(a.%1$s, b.%1$s) > 0.5', 0.5),
  ('SELECT a.id AS id1, b.id AS id2 FROM items a JOIN items b ON 10.5 > %2$s_negative_inner_product(a.%1$s, b.%1$s)', -10.5)) m(condition, least);
SELECT ok(has_node(format('SELECT a.id, b.id FROM items a JOIN items b ON inner_product(a.%s, b.%1$s) >= 2.5', c)), 'inner products of ' || c)
FROM unnest('{v,h,s}'::text[]) c;
SELECT force_node(false) \gset

-- Operators of the same names on arrays do not stand in pgvector's way, nor it in theirs.
\if :has_pgvector
SELECT is(v <=> '[1,2,3]', v <=> '[1,2,3]'::vector, 'a literal beside a vector is a vector') FROM items WHERE id = 1;
SELECT is(round((v <=> '{1,2,3}'::float4[])::numeric, 5), round((v <=> '[1,2,3]')::numeric, 5), 'an array beside a vector means the same') FROM items WHERE id = 1;
SELECT is('{1,2,3}'::float4[] <+> '{2,2,5}', 3::float8, 'arrays have distances of their own');
\endif

-- The functions take the same columns.
SELECT bag_eq(format('SELECT * FROM gpu_selfjoin_distance(''items'', %s, ''id'', vector_columns => ''{%s}'', metric => %L)', eps, c, metric),
  format('SELECT * FROM gpu_selfjoin_distance(''points'', %s, ''id'', metric => %L)', eps, metric), format('%s of %s, by a function', metric, c))
FROM unnest('{v,h,s}'::text[]) c, (VALUES ('l2', 2.5), ('l1', 3.5), ('linf', 1), ('cosine', 0.0123)) m(metric, eps);

-- pgvector sums squares in single precision. Where they leave its range the angle is not what it should be, and only
-- pgvector knows what it is instead.
CREATE TABLE tiny AS SELECT * FROM (VALUES (1, '{1e-23,0}'::float4[]), (2, '{0,1e-23}'), (3, '{1e-23,1e-23}')) v(id, f);
CREATE TABLE small AS SELECT * FROM (VALUES (1, '{3e-20,1e-20}'::float4[]), (2, '{1e-20,3e-20}'), (3, '{-1e-20,1e-20}')) v(id, f);
CREATE TABLE huge AS SELECT * FROM (VALUES (1, '{1e20,0}'::float4[]), (2, '{0,1e20}'), (3, '{-1e30,1e30}')) v(id, f);
SELECT count(convert(t, t || '_items')) FROM unnest('{tiny,small,huge}'::text[]) t \gset
SELECT same_rows(format('SELECT a.id, b.id AS other FROM %s_items a JOIN %1$s_items b ON cosine_distance(a.v, b.v) <= %s', t, eps), true,
  format('%s vectors within %s', t, eps))
FROM unnest('{tiny,small,huge}'::text[]) t, unnest('{0.5,1.5}'::float8[]) eps;

SELECT * FROM finish();
ROLLBACK;
