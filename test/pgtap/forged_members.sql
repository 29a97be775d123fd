-- Whoever owns a trusted extension, which takes no superuser, can add types and functions of his own to it. None of them
-- is taken for the extension's: values of such a type are no vectors, points or boxes, whatever its name.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA forged_members;
SET search_path = forged_members, public;
SET jit = off;
SET client_min_messages = warning;

\ir same_rows.psql
\ir stand_in.psql

CREATE ROLE gpujoin_forger;
GRANT CREATE ON SCHEMA forged_members TO gpujoin_forger;
GRANT CREATE ON DATABASE :"DBNAME" TO gpujoin_forger;
GRANT ALL ON ALL TABLES IN SCHEMA forged_members TO gpujoin_forger;

-- The functions that the planner knows, one line per type. `value` makes a value of the extension's own type for a row.
CREATE TABLE known (extension text, type text, function text, result text, more text, test text, value text);
INSERT INTO known VALUES
  ('cube', 'cube', 'cube_distance', 'float8', '', '%s <= 1', 'cube(ARRAY[i]::float8[])'),
  ('cube', 'cube', 'distance_taxicab', 'float8', '', '%s <= 1', 'cube(ARRAY[i]::float8[])'),
  ('cube', 'cube', 'distance_chebyshev', 'float8', '', '%s <= 1', 'cube(ARRAY[i]::float8[])'),
  ('cube', 'cube', 'cube_overlap', 'boolean', '', '%s', 'cube(ARRAY[i]::float8[])'),
  ('vector', 'vector', 'l2_distance', 'float8', '', '%s <= 1', 'ARRAY[i]::vector'),
  ('vector', 'vector', 'l1_distance', 'float8', '', '%s <= 1', 'ARRAY[i]::vector'),
  ('vector', 'vector', 'cosine_distance', 'float8', '', '%s <= 1', 'ARRAY[i]::vector'),
  ('vector', 'halfvec', 'l2_distance', 'float8', '', '%s <= 1', 'ARRAY[i]::halfvec'),
  ('vector', 'vector', 'vector_negative_inner_product', 'float8', '', '%s <= -1', 'ARRAY[i]::vector'),
  ('vector', 'vector', 'inner_product', 'float8', '', '%s >= 1', 'ARRAY[i]::vector'),
  ('postgis', 'geometry', 'st_dwithin', 'boolean', ', float8', '%s', 'ST_MakePoint(i, i)'),
  ('postgis', 'geometry', 'geometry_overlaps', 'boolean', '', '%s', 'ST_MakePoint(i, i)'),
  ('postgis', 'geometry', 'st_intersects', 'boolean', '', '%s', 'ST_MakePoint(i, i)'),
  ('gpujoin', 'point', 'gpu_within', 'boolean', ', float8', '%s', 'point(i, i)'),
  ('gpujoin', '_float8', 'gpu_within', 'boolean', ', float8', '%s', 'ARRAY[i]::float8[]'),
  ('gpujoin', '_float8', 'gpu_distance', 'float8', '', '%s <= 1', 'ARRAY[i]::float8[]');

-- Where this machine lacks an extension, one stands in for it.
CREATE FUNCTION install(wanted text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  home text := 'home_of_' || wanted;
BEGIN
  IF wanted = 'gpujoin' THEN RETURN; END IF;
  IF NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = wanted) THEN
    PERFORM stand_in(wanted, array_agg(DISTINCT type), 'gpujoin_forger') FROM known WHERE extension = wanted;
    UPDATE known SET value = format('''\x010000000000803f''::%I.%I', home, type) WHERE extension = wanted;
    RETURN;
  END IF;
  EXECUTE format('CREATE SCHEMA %I AUTHORIZATION gpujoin_forger', home);
  IF EXISTS (SELECT FROM pg_available_extension_versions WHERE name = wanted AND trusted) THEN
    SET LOCAL ROLE gpujoin_forger;
  END IF;
  EXECUTE format('CREATE EXTENSION %I SCHEMA %I', wanted, home);
  RESET ROLE;
END $$;
SELECT count(install(extension)) FROM (SELECT DISTINCT extension FROM known) e \gset
SET search_path = forged_members, public, home_of_cube, home_of_vector, home_of_postgis;

-- Kinds of forgeries: what the compared types are, and what the extension gets besides the function.
CREATE TABLE forgeries (kind text, made text, cast_of text);
INSERT INTO forgeries VALUES
  ('domain', 'CREATE DOMAIN %s AS int8', '16'), ('enum', 'CREATE TYPE %s AS ENUM (''a'', ''b'')', '''a'''),
  ('composite', 'CREATE TYPE %s AS (a int8, b int8)', 'ROW(16, 16)'), ('range', 'CREATE TYPE %s AS RANGE (subtype = int8)', '''[1,2)''');
CREATE TABLE cases (id int GENERATED ALWAYS AS IDENTITY, extension text, type text, kind text, schema text, description text, query text);
GRANT ALL ON ALL TABLES IN SCHEMA forged_members TO gpujoin_forger;

-- Adds as much as the owner of the extension may, who of a trusted one is no superuser.
CREATE FUNCTION forge(k known, kind text, left_type text, right_type text, left_value text, right_value text, extra text DEFAULT '')
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  home text := format('forged_%s_%s', kind, (SELECT count(*) FROM cases));
BEGIN
  EXECUTE format('CREATE SCHEMA %I', home);
  IF EXISTS (SELECT FROM pg_extension WHERE extname = k.extension AND extowner = 'gpujoin_forger'::regrole) THEN
    EXECUTE format('ALTER SCHEMA %I OWNER TO gpujoin_forger', home);
    SET LOCAL ROLE gpujoin_forger;
  END IF;
  IF extra <> '' THEN
    left_type := format('%I.%I', home, k.type);
    right_type := left_type;
    EXECUTE format(extra, left_type);
    EXECUTE format('ALTER EXTENSION %I ADD TYPE %s', k.extension, left_type);
  END IF;
  EXECUTE format('CREATE FUNCTION %1$I.%2$I(%3$s, %4$s%5$s) RETURNS %6$s LANGUAGE plpgsql IMMUTABLE AS %7$L',
    home, k.function, left_type, right_type, k.more, k.result,
    CASE k.result WHEN 'boolean' THEN 'BEGIN RETURN true; END' ELSE 'BEGIN RETURN 0; END' END);
  EXECUTE format('ALTER EXTENSION %I ADD FUNCTION %I.%I(%s, %s%s)', k.extension, home, k.function, left_type, right_type, k.more);
  RESET ROLE;
  EXECUTE format('CREATE TABLE %I.t AS SELECT i AS id, %s::%s AS l, %s::%s AS r FROM generate_series(1, 30) i', home,
    left_value, left_type, right_value, right_type);
  EXECUTE format('ANALYZE %I.t', home);
  INSERT INTO cases VALUES (DEFAULT, k.extension, k.type, kind, home,
    format('%s(%s): forged %s, %s', k.function, k.type, kind, k.extension),
    format('SELECT a.id, b.id AS other FROM %1$I.t a JOIN %1$I.t b ON ' || k.test, home,
      format('%I.%I(a.l, b.r%s)', home, k.function, CASE WHEN k.more <> '' THEN ', 1' ELSE '' END)));
END $$;

-- The name of the extension's own type.
CREATE FUNCTION own_type(k known) RETURNS text LANGUAGE sql AS
$$ SELECT CASE k.extension WHEN 'gpujoin' THEN 'pg_catalog.' ELSE 'home_of_' || k.extension || '.' END || k.type $$;
SELECT count(forge(k, kind, NULL, NULL, cast_of, cast_of, made)) FROM known k, forgeries f \gset
SELECT count(forge(k, 'second argument', own_type(k), other, k.value, '16')) FROM known k, unnest('{int4,int8}'::text[]) other \gset
SELECT count(forge(k, 'first argument', other, own_type(k), '16', k.value)) FROM known k, unnest('{int4,int8}'::text[]) other \gset
SELECT count(forge(k, 'language', own_type(k), own_type(k), k.value, k.value)) FROM known k \gset
SELECT cmp_ok(count(*), '=', 16 * 9::bigint, 'all forgeries were made') FROM cases;
SELECT same_rows(query, false, description) FROM cases ORDER BY id;

-- Nor are columns of such types boxes to the functions.
SELECT throws_like(format('SELECT * FROM gpu_box_join(%1$L, %1$L, 0, left_id_column => ''id'', right_id_column => ''id''%2$s)',
    home || '.t', named), message, description || ': no box' || named)
FROM (SELECT DISTINCT ON (extension, type, kind) *, quote_ident(schema) AS home FROM cases
  WHERE kind IN (SELECT f.kind FROM forgeries f) ORDER BY extension, type, kind, id) c,
  (VALUES ('', '%has no box column'), (', left_box_columns => ''{l}'', right_box_columns => ''{r}''', '%cannot be a box')) v(named, message);

SELECT * FROM finish();
ROLLBACK;
