-- Hints run as they stand: each mistake is made, what its hint shows is done, and the answer is the right one. And what
-- is no mistake: names in any case, names that other software has, quoted names, defaults.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA hints;
SET search_path = hints, public;

SELECT bool_or(name = 'postgis') AS has_postgis FROM pg_available_extensions WHERE name = 'postgis' \gset

-- Calls a function and, where that is an error, does what the hint shows, until there is an answer: the number of rows. The
-- hint may show a query, a view with arguments to pass, or arguments.
CREATE FUNCTION followed(function text, tables text, more text, OUT hints text[], OUT rows bigint) LANGUAGE plpgsql AS $$
DECLARE
  said text;
  shown text[];
BEGIN
  hints := '{}';
  LOOP
    BEGIN
      EXECUTE format('SELECT count(*) FROM %s(%s)', function, concat_ws(', ', tables, nullif(more, ''))) INTO rows;
      RETURN;
    EXCEPTION WHEN OTHERS THEN
      GET STACKED DIAGNOSTICS said = PG_EXCEPTION_HINT;
    END;
    hints := hints || coalesce(nullif(said, ''), 'no hint');
    IF cardinality(hints) > 3 THEN RETURN; END IF;
    shown := regexp_match(said, ': (SELECT .*)\.$');
    IF shown IS NOT NULL THEN
      EXECUTE format('SELECT count(*) FROM (%s) s', shown[1]) INTO rows;
      RETURN;
    END IF;
    shown := regexp_match(said, '((?:CREATE VIEW|ALTER TABLE) .*); then pass (.*)\.$');
    IF shown IS NOT NULL THEN
      EXECUTE shown[1];
      tables := CASE WHEN tables NOT LIKE '%, %' THEN shown[2] WHEN shown[2] LIKE 'left%' THEN shown[2] || ', right_tbl => ' || split_part(tables, ', ', 2)
        ELSE 'left_tbl => ' || split_part(tables, ', ', 1) || ', ' || shown[2] END;
      more := regexp_replace(more, ',? *vector_columns => ''[^'']*''', '');
    ELSE
      shown := coalesce(regexp_match(said, '(\w+ => .*)\.$'),
        ARRAY[(SELECT m[1] || ' => ' || quote_literal(m[2]) FROM regexp_match(said, '(\w+) may name are: ("[^"]+")') m)]);
      more := regexp_replace(more, '(, )?' || split_part(shown[1], ' ', 1) || ' => ''[^'']*''', '');
      more := concat_ws(', ', nullif(more, ''), shown[1]);
    END IF;
  END LOOP;
END $$;

-- Points of a grid, a step of 1 apart, in whatever form people have them.
CREATE TABLE grid (id int PRIMARY KEY, x float8, y float8);
INSERT INTO grid SELECT i, i % 12, i / 12 FROM generate_series(0, 95) i;
CREATE FUNCTION expected(eps float8) RETURNS bigint LANGUAGE sql AS $$
  SELECT count(*) FROM grid a, grid b WHERE sqrt((a.x - b.x) ^ 2 + (a.y - b.y) ^ 2) <= eps $$;
CREATE FUNCTION expected_once(eps float8) RETURNS bigint LANGUAGE sql AS $$ SELECT (expected(eps) - 96) / 2 $$;

CREATE TABLE docs (id int PRIMARY KEY, title text, path varchar, embedding text);
INSERT INTO docs SELECT id, 'title ' || id, '/a', format('[%s, %s]', x, y) FROM grid;
CREATE TABLE braces ("Id" int PRIMARY KEY, note text, "E" varchar);
INSERT INTO braces SELECT id, '', format(' {%s,%s}', x, y) FROM grid;
CREATE TABLE json_docs (id int PRIMARY KEY, about jsonb, v jsonb);
INSERT INTO json_docs SELECT id, '{"a": 1}', jsonb_build_array(x, y) FROM grid;
CREATE TABLE text_numbers (id int PRIMARY KEY, name text, x text, y varchar);
INSERT INTO text_numbers SELECT id, 'shop', x, y FROM grid;
CREATE TABLE numbers (id int PRIMARY KEY, price numeric, lat float8, lon float8);
INSERT INTO numbers SELECT id, 1, y, x FROM grid;
CREATE TABLE whole_numbers (id int PRIMARY KEY, a int, b int);
INSERT INTO whole_numbers SELECT id, x, y FROM grid;
CREATE TABLE text_key (k text PRIMARY KEY, v float8[]);
INSERT INTO text_key SELECT 'key ' || id, ARRAY[x, y] FROM grid;
CREATE TABLE two_keys (a int, "B" int, p point, PRIMARY KEY (a, "B"));
INSERT INTO two_keys SELECT id / 5, id, point(x, y) FROM grid;
CREATE TABLE no_key AS SELECT x::real AS x, y FROM grid;
CREATE TABLE text_key_docs (k uuid PRIMARY KEY, e text);
INSERT INTO text_key_docs SELECT md5(id::text)::uuid, format('[%s,%s]', x, y) FROM grid;
CREATE TABLE quoted ("Id" int, v float8[]);
INSERT INTO quoted SELECT id, ARRAY[x, y] FROM grid;
CREATE TABLE parts (k text, v float8[]) PARTITION BY LIST (k);
CREATE TABLE part_a PARTITION OF parts FOR VALUES IN ('a');
CREATE TABLE part_b PARTITION OF parts FOR VALUES IN ('b');
INSERT INTO parts SELECT chr(97 + id % 2), ARRAY[x, y] FROM grid;
CREATE TABLE pictures (id int PRIMARY KEY, hash bit(8));
INSERT INTO pictures SELECT id, id::bit(8) FROM grid;

CREATE FUNCTION follow(function text, tables text, more text, wanted bigint, steps int DEFAULT 1) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  f record;
  made text;
BEGIN
  f := followed(function, tables, more);
  RETURN NEXT is(f.rows, wanted, format('%s(%s, %s): %s', function, tables, more, f.hints));
  RETURN NEXT is(cardinality(f.hints), steps, 'after so many hints');
  FOR made IN SELECT viewname FROM pg_views WHERE schemaname = 'hints' AND viewname LIKE '%vectors' LOOP
    EXECUTE format('DROP VIEW %I', made);
  END LOOP;
END $$;

-- Vectors and numbers that are text or JSON: the column is the one that holds them.
SELECT follow('gpu_selfjoin', $$'docs'$$, 'eps => 1.5', expected(1.5));
SELECT follow('gpu_selfjoin', $$'docs'$$, $$eps => 2, vector_columns => 'embedding'$$, expected(2));
SELECT follow('gpu_selfjoin', $$'docs'$$, $$eps => 2, vector_columns => 'gpu_vector(embedding)'$$, expected(2));
SELECT follow('gpu_selfjoin_distance', $$'braces'$$, 'eps => 1', expected(1));
SELECT follow('gpu_selfjoin', $$'json_docs'$$, 'eps => 1', expected(1));
SELECT follow('gpu_selfjoin', $$'text_numbers'$$, 'eps => 1.5', expected(1.5));
SELECT follow('gpu_selfjoin', $$'text_numbers'$$, $$eps => 1.5, vector_columns => 'x,y'$$, expected(1.5));
SELECT follow('gpu_selfjoin', $$'text_numbers'$$, $$eps => 1.5, vector_columns => 'ARRAY[x::float8,y::float8]'$$, expected(1.5));
SELECT follow('gpu_selfjoin', $$'text_key_docs'$$, 'eps => 1.5', expected_once(1.5));
SELECT follow('gpu_dbscan', $$'docs'$$, 'eps => 1', 96);
SELECT follow('gpu_join', $$'text_key_docs', 'quoted'$$, $$eps => 1.5, right_id_column => 'Id'$$, expected(1.5));
CREATE TABLE text_key_numbers AS SELECT id::text AS k, x::text, y::text AS "Y" FROM grid;
UPDATE text_key_numbers SET k = 'key ' || k;
SELECT follow('gpu_hdbscan', $$'text_key_numbers'$$, '', 96);
SELECT follow('gpu_join', $$'docs', 'quoted'$$, $$eps => 1.5, right_id_column => 'Id'$$, expected(1.5));
SELECT unalike(f.hints[1], '%title%', 'text that holds no numbers is no vector') FROM followed('gpu_selfjoin', $$'docs'$$, $$eps => 1, vector_columns => 'title'$$) f;

-- Columns of numbers, by their own names.
SELECT follow('gpu_selfjoin', $$'numbers'$$, 'eps => 1.5', expected(1.5));
SELECT follow('gpu_selfjoin', $$'whole_numbers'$$, 'eps => 1.5', expected(1.5));
SELECT follow('gpu_selfjoin', $$'pictures'$$, $$eps => 1$$, (SELECT count(*) FROM pictures a, pictures b WHERE bit_count(a.hash # b.hash) <= 1));

-- Keys of other types: a query with the radius of the call, which finds each pair once.
SELECT follow('gpu_selfjoin', $$'text_key'$$, 'eps => 1.5', expected_once(1.5));
SELECT follow('gpu_selfjoin', $$'two_keys'$$, 'eps => 2', expected_once(2));
SELECT follow('gpu_selfjoin', $$'no_key'$$, $$eps => 1.5, vector_columns => 'x,y'$$, expected_once(1.5));
SELECT follow('gpu_selfjoin', $$'parts'$$, 'eps => 1', expected_once(1));
SELECT follow('gpu_selfjoin', $$'text_key'$$, format('eps => %s, metric => %L', eps, metric),
  (SELECT count(*) FROM text_key a, text_key b WHERE a.k < b.k AND gpu_distance(a.v, b.v, metric) <= eps)) FROM (VALUES ('l1', 1.5), ('linf', 1.5), ('haversine', 150000)) v(metric, eps);
SELECT follow('gpu_selfjoin', $$'two_keys'$$, $$eps => 2, metric => 'l1'$$, (SELECT count(*) FROM grid a, grid b WHERE a.id < b.id AND abs(a.x - b.x) + abs(a.y - b.y) <= 2));
SELECT follow('gpu_dbscan', $$'text_key'$$, 'eps => 1, min_points => 3', 96);
SELECT follow('gpu_join', $$'text_key', 'quoted'$$, 'eps => 1.5', expected(1.5));
SELECT is(f.hints, '{}'::text[], 'an id ' || id) FROM unnest('{Id,"\"Id\""}'::text[]) id, followed('gpu_selfjoin', $$'quoted'$$, format('eps => 1, id_column => %L', id)) f;
SELECT follow('gpu_selfjoin', $$'quoted'$$, $$eps => 1, id_column => 'ID'$$, expected(1));
SELECT throws_ok($$ SELECT * FROM gpu_selfjoin('quoted', 1, id_column => '"v"') $$, '42804', 'column ""v"" of relation "quoted" has type double precision[], which cannot be an id', 'a quoted name of another column');

-- Scores: both sides at once.
CREATE TABLE scored (id int PRIMARY KEY, v float8[], s float8, t int);
INSERT INTO scored SELECT id, ARRAY[x, y], id, id FROM grid;
SELECT follow('gpu_topk_join', $$'scored', 'scored'$$, 'eps => 1, k => 7', 7);
CREATE TABLE unscored AS SELECT id, v FROM scored;
SELECT follow('gpu_topk_join', $$'unscored', 'scored'$$, $$eps => 1, k => 7, left_id_column => 'id', right_score_column => 's'$$, 7);

-- Vectors of different lengths in plain SQL.
CREATE TABLE ragged (id int PRIMARY KEY, v float8[]);
INSERT INTO ragged SELECT id, CASE WHEN id = 40 THEN ARRAY[x, y, 1, 2, 3] ELSE ARRAY[x, y] END FROM grid;
CREATE FUNCTION ragged(more text, OUT detail text, OUT hint text, OUT rows bigint) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'SELECT count(*) FROM ragged a JOIN ragged b ON a.v <-> b.v <= 1 ' || more INTO rows;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;
SELECT matches(r.detail, '^They are (\{\d+,\d+\} and \{4,3,1,\.\.\.\}|\{4,3,1,\.\.\.\} and \{\d+,\d+\})\.$', 'the error shows the values') FROM ragged('') r;
SELECT is((ragged((regexp_match(r.hint, 'AND cardinality\(a\.v\) = cardinality\(b\.v\)'))[1])).rows,
  (SELECT count(*) FROM grid a, grid b WHERE sqrt((a.x - b.x) ^ 2 + (a.y - b.y) ^ 2) <= 1 AND (a.id = 40) = (b.id = 40)), 'and the hint keeps them apart') FROM ragged('') r;

-- Names in any case, and those that other software has.
SELECT results_eq(format('SELECT count(*) FROM gpu_selfjoin(''text_key'', 0.4, ''ctid'', metric => %L, pairs => ''Distinct'')', written),
  format('SELECT count(*) FROM gpu_selfjoin(''text_key'', 0.4, ''ctid'', metric => %L, pairs => ''distinct'')', name), written)
FROM (VALUES ('L2', 'l2'), ('Euclidean', 'l2'), ('MANHATTAN', 'l1'), ('taxicab', 'l1'), ('cityblock', 'l1'), ('Chebyshev', 'linf'), ('LInf', 'linf'), ('Cosine', 'cosine'), ('Haversine', 'haversine')) v(written, name);
SELECT results_eq($$ SELECT id FROM gpu_dedup('scored', 1, 's', keep => 'Lowest') $$, $$ SELECT id FROM gpu_dedup('scored', 1, 's', keep => 'lowest') $$, 'keep');
SELECT results_eq($$ SELECT score FROM gpu_topk_join('scored', 'scored', 1, 3, score => 'Distance', best => 'HIGHEST') $$,
  $$ SELECT score FROM gpu_topk_join('scored', 'scored', 1, 3, score => 'distance', best => 'highest') $$, 'score and best');
SELECT lives_ok($$ SET LOCAL gpujoin.engine = 'CPU' $$, 'engine');

\ir same_rows.psql
SELECT same_rows(format('SELECT count(*) FROM text_key a, text_key b WHERE gpu_distance(a.v, b.v, %L) <= 1.5', metric), true, metric) FROM unnest('{Euclidean,L1,Chebyshev,HAVERSINE}'::text[]) metric;
SELECT same_rows(format('SELECT count(*) FROM text_key a, text_key b WHERE gpu_within(a.v, b.v, 1.5, %L)', metric), true, 'within by ' || metric) FROM unnest('{euclidean,Cosine}'::text[]) metric;

-- Points by every metric.
CREATE TABLE points AS SELECT id, point(x * 1.1 - 3, y * 2.3) AS p FROM grid UNION ALL VALUES (200, NULL), (201, point('NaN', 1)), (202, point(3, 'Infinity'));
SELECT is(gpu_distance(a.p, b.p, metric), gpu_distance(ARRAY[a.p[0], a.p[1]], ARRAY[b.p[0], b.p[1]], metric), format('%s of points %s and %s', metric, a.id, b.id))
FROM points a, points b, unnest('{l2,l1,linf,cosine,haversine}'::text[]) metric WHERE a.id IN (0, 17, 201) AND b.id IN (17, 95, 202);
SELECT same_rows(format('SELECT a.id, b.id FROM points a JOIN points b ON gpu_distance(a.p, b.p, %L) <= %s', metric, eps), true, metric || ' of points')
FROM (VALUES ('l2', 1.5), ('l1', 3), ('linf', 2), ('cosine', 0.1), ('haversine', 250000)) v(metric, eps);
SELECT same_rows(format('SELECT a.id, b.id FROM points a LEFT JOIN points b ON gpu_within(a.p, b.p, %s, %L)', eps, metric), true, metric || ' within of points')
FROM (VALUES ('l2', 1.5), ('l1', 3), ('linf', 2), ('cosine', 0.1), ('haversine', 250000)) v(metric, eps);
SELECT same_rows($$ SELECT a.id, n.id FROM points a, LATERAL (SELECT b.id FROM points b WHERE b.id < 200 ORDER BY gpu_distance(a.p, b.p, 'haversine'), b.id LIMIT 3) n WHERE a.id < 200 $$, true, 'nearest points on the Earth');
SELECT throws_ok($$ SELECT gpu_distance(point(1, 91), point(1, 1), 'haversine') $$, '22000', 'no place on the Earth has longitude 1 and latitude 91', 'a point that is no place');

-- Defaults, which NULL asks for, too.
SELECT bag_eq(format('SELECT * FROM gpu_dbscan(''scored'', 1%s)', more), $$ SELECT * FROM gpu_dbscan('scored', 1, 5) $$, 'gpu_dbscan' || more) FROM unnest('{"",", NULL"}'::text[]) more;
SELECT bag_eq(format('SELECT id, gpu_cluster_dbscan(v, 1%s) OVER (ORDER BY id) FROM scored', more), $$ SELECT id, gpu_cluster_dbscan(v, 1, 5) OVER (ORDER BY id) FROM scored $$, 'gpu_cluster_dbscan' || more)
FROM unnest('{"",", NULL"}'::text[]) more;

-- Candidates are counted as pairs are.
SELECT force_node(true);
SELECT cmp_ok(property('Candidate Pairs', format('SELECT count(*) FROM scored a JOIN scored b ON a.v <-> b.v <= %s', eps))::bigint, '>=', expected(eps), 'no fewer candidates than pairs within ' || eps)
FROM unnest('{1,3,100}'::float8[]) eps;
SET LOCAL gpujoin.index = 'grid';
CREATE FUNCTION walk(pattern text, selection text, OUT matched bigint, OUT candidates bigint) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('gpujoin.access_pattern', pattern, true);
  PERFORM FROM gpu_selfjoin('scored', 100, pairs => selection);
  SELECT pairs, candidate_pairs INTO matched, candidates FROM gpu_last_join();
END $$;
SELECT ok(candidates BETWEEN matched AND matched * 1.03, format('nor by a function: %s %s, %s of %s', pattern, selection, matched, candidates))
FROM unnest('{linear_id,unicomp,full}'::text[]) pattern, unnest('{all,distinct,unordered}'::text[]) selection, LATERAL walk(pattern, selection);
RESET gpujoin.access_pattern;
RESET gpujoin.index;

\if :has_postgis
CREATE EXTENSION IF NOT EXISTS postgis;
CREATE TABLE geographies (id int PRIMARY KEY, g geography);
INSERT INTO geographies SELECT id, ST_MakePoint(x * 0.01, y * 0.01)::geography FROM grid;
SELECT follow('gpu_selfjoin', $$'geographies'$$, 'eps => 1500', (SELECT count(*) FROM geographies a, geographies b WHERE a.id < b.id AND ST_DWithin(a.g, b.g, 1500)));
SELECT follow('gpu_selfjoin', $$'geographies'$$, $$eps => 1500, vector_columns => 'g'$$, (SELECT count(*) FROM geographies a, geographies b WHERE a.id < b.id AND ST_DWithin(a.g, b.g, 1500)));
CREATE TABLE geometries AS SELECT id, g::geometry AS g FROM geographies UNION ALL VALUES (200, NULL), (201, 'SRID=4326;POINT EMPTY'::geometry);
SELECT bag_eq($$ SELECT * FROM gpu_selfjoin('geometries', 1500, 'id', metric => 'haversine') $$,
  $$ SELECT a.id::bigint, b.id::bigint AS other FROM geometries a, geometries b WHERE gpu_distance(ARRAY[ST_X(a.g), ST_Y(a.g)], ARRAY[ST_X(b.g), ST_Y(b.g)], 'haversine') <= 1500 $$, 'geometry by haversine');
SELECT is(count(*), (SELECT count(*) FROM geographies a, geographies b WHERE ST_DWithin(a.g, b.g, 1500, false)), 'as many as on a sphere in PostGIS') FROM gpu_selfjoin('geometries', 1500, 'id', metric => 'haversine');
SELECT bag_eq($$ SELECT distance FROM gpu_knn_join('geometries', 'geometries', 2, 1e6, 'id', 'id', metric => 'haversine') WHERE id1 = 5 $$,
  $$ SELECT gpu_distance(ARRAY[ST_X(a.g), ST_Y(a.g)], ARRAY[ST_X(b.g), ST_Y(b.g)], 'haversine') AS d FROM geometries a, geometries b
     WHERE a.id = 5 AND b.id < 200 AND b.id <> 5 ORDER BY 1 LIMIT 2 $$, 'nearest geometries in metres');
SELECT bag_eq($$ SELECT id, gpu_cluster_dbscan(g, 1200, 3, 'haversine') OVER (ORDER BY id) FROM geometries WHERE id < 200 $$,
  $$ SELECT id, gpu_cluster_dbscan(ARRAY[ST_X(g), ST_Y(g)], 1200, 3, 'haversine') OVER (ORDER BY id) FROM geometries WHERE id < 200 $$, 'clusters of geometries in metres');
UPDATE geometries SET g = ST_SetSRID(g, 3857);
SELECT throws_ok($$ SELECT * FROM gpu_selfjoin('geometries', 1500, 'id', metric => 'haversine') $$, '22023', 'the vector of row 0 of relation "geometries" is not in degrees', 'another SRID');
CREATE TABLE geometry_keys (k text PRIMARY KEY, g geometry(Point, 4326));
INSERT INTO geometry_keys SELECT id, g::geometry FROM geographies;
SELECT follow('gpu_selfjoin', $$'geometry_keys'$$, 'eps => 0.015', (SELECT count(*) FROM geometry_keys a, geometry_keys b WHERE a.k < b.k AND ST_DWithin(a.g, b.g, 0.015)));
SELECT follow('gpu_selfjoin', $$'geometry_keys'$$, $$eps => 1500, metric => 'haversine'$$,
  (SELECT count(*) FROM geometry_keys a, geometry_keys b WHERE a.k < b.k AND ST_DWithin(a.g::geography, b.g::geography, 1500, false)));
\endif

SELECT * FROM finish();
ROLLBACK;
