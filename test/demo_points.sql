-- Makes points of the lines of a CSV file: which line is a header, which columns are coordinates and which an id. Run by
-- test/demo_points, which made the view lines (line, fields) and sets :columns and :id, what the user wants of that, and
-- :separator. Leaves the table points; taken, notes, names: what is to be printed about it; problems: why there are no points.

-- Not by a cast, which raises errors. Where commas separate no columns they may stand before decimals.
CREATE FUNCTION number(value text) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN value ~ '^\s*[-+]?(\d{1,40}\.?\d{0,40}|\.\d{1,40})([eE][-+]?\d{1,2})?\s*$' THEN value::float8 END $$;
SELECT :'separator' <> ',' AS may_have_decimal_commas \gset
\if :may_have_decimal_commas
  ALTER FUNCTION number RENAME TO number_with_point;
  CREATE FUNCTION number(value text) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT number_with_point(regexp_replace(value, '^(\s*[-+]?\d*),(\d+\s*)$', '\1.\2')) $$;
\endif
CREATE FUNCTION nullif_empty(value text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN value !~* '^\s*(|-|na|n/a|nan|null|none)\s*$' THEN value END $$;

-- A header line holds no number.
SELECT bool_and(number(value) IS NULL)::int AS headers, count(*) AS columns_there FROM lines, unnest(fields) value WHERE line = 1 \gset
CREATE VIEW data AS SELECT line, fields FROM lines WHERE line > :headers;

CREATE FUNCTION integer_of(value text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN value ~ '^\s*-?\d{1,18}\s*$' THEN value::bigint END $$;

-- What a name tells of its column.
CREATE TABLE kinds (kind text, pattern text);
INSERT INTO kinds VALUES
  ('id', '(^|_)id$'), ('easting', '(^|_)easting'), ('northing', '(^|_)northing'),
  ('latitude', '(^|[^a-z])(lat|latitude)([^a-z]|$)'), ('longitude', '(^|[^a-z])(lon|lng|long|longitude)([^a-z]|$)'),
  ('x', '(^|_)x$|^x_'), ('y', '(^|_)y$|^y_'), ('z', '(^|_)z$|^z_');
CREATE FUNCTION kind_of(name text) RETURNS text LANGUAGE sql AS $$
  SELECT min(kind) FROM kinds WHERE lower(regexp_replace(name, '([a-z])([A-Z])', '\1_\2', 'g')) ~ pattern $$;

-- The columns, of whose values the first tell what they are. A coordinate has its place in the vector, an id a column of
-- unique integers.
CREATE TABLE columns AS
SELECT place, name, kind_of(name) AS kind, numbers > 0 AND numbers >= 9 * others AS is_numeric,
  first_value, NULL::bigint AS coordinate, false AS is_id, NULL::text AS why_no_id
FROM (SELECT place, count(number) AS numbers, count(value) - count(number) AS others, (array_agg(value) FILTER (WHERE value IS NOT NULL))[1] AS first_value
      FROM (SELECT place, nullif_empty(field) AS value, number(field) AS number
            FROM (SELECT * FROM data ORDER BY line LIMIT 300000 / :columns_there) d, unnest(fields) WITH ORDINALITY f(field, place)
            OFFSET 0) first_ones
      GROUP BY place) seen,
  LATERAL (SELECT trim(fields[place]) AS title FROM lines WHERE line = 1) header,
  LATERAL (SELECT CASE WHEN :headers = 1 AND title <> '' THEN title ELSE place::text END AS name) named;

-- The column that the user calls so: a name, or a place.
CREATE FUNCTION column_called(wanted text) RETURNS bigint LANGUAGE sql AS $$
  SELECT place FROM columns WHERE lower(trim(wanted)) IN (lower(name), place::text)
  ORDER BY lower(name) = lower(trim(wanted)) DESC, place LIMIT 1 $$;

CREATE TABLE problems (number int GENERATED ALWAYS AS IDENTITY, problem text);
INSERT INTO problems (problem) SELECT 'holds a header line and nothing else' WHERE NOT EXISTS (TABLE data);
CREATE TABLE wanted AS
SELECT name, place, column_called(name) AS found
FROM unnest(string_to_array(:'columns', ',')) WITH ORDINALITY AS w(name, place);
INSERT INTO problems (problem)
SELECT format('has no column %s; its columns are %s', name, (SELECT string_agg(name, ', ' ORDER BY place) FROM columns))
FROM (TABLE wanted UNION ALL SELECT :'id', 0, column_called(:'id')) w WHERE name <> '' AND found IS NULL;
UPDATE columns SET coordinate = wanted.place FROM wanted WHERE found = columns.place;

-- The id: what the user says, else the first such column that has a name for it, else a first column that counts the rows.
UPDATE columns SET why_no_id = why
FROM (SELECT place, counts,
        CASE WHEN has_others THEN 'not all of its values are integers' WHEN repeats THEN 'its values are not unique' ELSE '' END AS why
      FROM columns c, LATERAL (
        SELECT count(*) > count(i) AS has_others, count(*) > count(DISTINCT i) AS repeats,
          min(i) IN (0, 1) AND min(i - line) = max(i - line) AS counts
        FROM (SELECT line, integer_of(fields[c.place]) AS i FROM data OFFSET 0) integers) v
      WHERE kind = 'id' OR place = 1 OR place = column_called(:'id')) seen
WHERE seen.place = columns.place AND (kind = 'id' OR (counts AND kind IS NULL) OR columns.place = column_called(:'id'));
UPDATE columns SET is_id = true
WHERE place = CASE WHEN :'id' <> '' THEN column_called(:'id') ELSE (
  SELECT place FROM columns WHERE why_no_id = '' AND coordinate IS NULL
  ORDER BY lower(name) = 'id' DESC, kind IS NOT DISTINCT FROM 'id' DESC, place LIMIT 1) END;
INSERT INTO problems (problem)
SELECT format('column %s cannot be the id: %s. Without ID= rows are numbered', name, why_no_id)
FROM columns WHERE is_id AND why_no_id <> '';

-- The coordinates: what the user says, else what the names show to be some, else all other numbers.
WITH named AS (SELECT kind, min(place) AS place FROM columns WHERE is_numeric AND kind <> 'id' GROUP BY kind),
system AS (
  SELECT kinds FROM (VALUES (1, ARRAY['latitude', 'longitude']), (2, ARRAY['easting', 'northing']),
    (3, ARRAY['x', 'y', 'z']), (4, ARRAY['x', 'y'])) s(rank, kinds)
  WHERE kinds <@ (SELECT array_agg(kind) FROM named) ORDER BY rank LIMIT 1)
UPDATE columns SET coordinate = place
WHERE :'columns' = '' AND is_numeric AND NOT is_id AND
  CASE WHEN EXISTS (TABLE system) THEN place IN (SELECT place FROM named, system WHERE kind = ANY (kinds))
    ELSE kind IS DISTINCT FROM 'id' END;
INSERT INTO problems (problem)
SELECT format('column %s holds no numbers, but %s', name, coalesce(quote_literal(first_value), 'nothing'))
FROM columns WHERE coordinate IS NOT NULL AND NOT is_numeric;
INSERT INTO problems (problem)
SELECT format('has no coordinates, which are columns of numbers. Its columns, and what they begin with: %s',
  string_agg(format('%s (%s)', name, first_value), ', ' ORDER BY place))
FROM columns HAVING count(coordinate) = 0;

-- The points: of rows that have all of their coordinates.
CREATE TABLE points (id bigint PRIMARY KEY, v float8[] NOT NULL);
SELECT NOT EXISTS (TABLE problems) AS is_fine \gset
\if :is_fine
SELECT string_agg(format('number(fields[%s])', place), ', ' ORDER BY coordinate) FILTER (WHERE coordinate IS NOT NULL) AS vector,
  coalesce(max(format('integer_of(fields[%s])', place)) FILTER (WHERE is_id), 'line - ' || :headers) AS id_value FROM columns \gset
CREATE VIEW vectors AS SELECT line, :id_value AS id, ARRAY[:vector] AS v FROM data;
INSERT INTO points SELECT id, v FROM (SELECT * FROM vectors OFFSET 0) s WHERE array_position(v, NULL) IS NULL;
INSERT INTO problems (problem)
SELECT format('has no row with a number in each of %s', string_agg(name, ', ' ORDER BY coordinate))
FROM columns WHERE coordinate IS NOT NULL AND NOT EXISTS (TABLE points) HAVING count(*) > 0;

-- What is printed.
CREATE VIEW taken AS
SELECT name AS "column", left(first_value, 30) AS "begins with",
  CASE WHEN coordinate IS NOT NULL THEN 'coordinate' WHEN is_id THEN 'id' WHEN why_no_id <> '' THEN 'left out: ' || why_no_id
    WHEN NOT is_numeric THEN CASE WHEN first_value IS NULL THEN 'left out: empty' ELSE 'left out: no numbers' END
    ELSE 'left out' END AS "taken as"
FROM columns ORDER BY place;
CREATE VIEW names AS
SELECT string_agg(name, ',' ORDER BY coordinate) FILTER (WHERE coordinate IS NOT NULL) AS coordinates,
  max(name) FILTER (WHERE is_id) AS id FROM columns;
CREATE VIEW notes AS
SELECT 1 AS number, 'No column is an id: rows are numbered.' AS note WHERE NOT EXISTS (SELECT FROM columns WHERE is_id)
UNION ALL
SELECT 2, format('Left out: %s of %s rows, where a coordinate is no number; the first is line %s.', count(*), (SELECT count(*) FROM data), min(line))
FROM vectors
WHERE (SELECT count(*) FROM data) > (SELECT count(*) FROM points) AND array_position(v, NULL) IS NOT NULL HAVING count(*) > 0
UNION ALL
SELECT 3, 'Coordinates are degrees, and so is EPS: a degree of latitude is 111 km, one of longitude less off the equator '
  '(for metres see docs/recipes.md#metres).'
FROM columns WHERE coordinate IS NOT NULL HAVING array_agg(kind) @> ARRAY['latitude', 'longitude'];
\endif
