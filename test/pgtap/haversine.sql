-- The metric haversine of the functions: longitudes and latitudes in columns, arrays and points, distances in metres; the same
-- definition as gpu_distance(a, b, 'haversine') in plain SQL. What the node makes of that: planner_earth.sql.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA haversine;
SET search_path = haversine, public;

-- Whether a call returns what the definition in plain SQL does, as a node of the plan and as an ordinary function.
CREATE FUNCTION agree(call text, definition text, description text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  SET gpujoin.enable_customscan = off;
  EXECUTE 'CREATE TEMPORARY TABLE defined AS ' || definition;
  RETURN NEXT bag_eq(call, 'SELECT * FROM defined', description || ': a function');
  SET gpujoin.enable_customscan = on;
  RETURN NEXT bag_eq(call, 'SELECT * FROM defined', description || ': a node');
  DROP TABLE defined;
END $$;

-- The definition.
SELECT cmp_ok(abs(gpu_distance(ARRAY[a, b], ARRAY[c, d], 'haversine') - metres), '<', 0.001::float8, format('from %s %s to %s %s', a, b, c, d))
FROM (VALUES (0::float8, 0::float8, 1::float8, 0::float8, 6371008.771415059 * radians(1)), (0, 0, 180, 0, 6371008.771415059 * pi()), (0, -90, 77, 90, 6371008.771415059 * pi()),
  (13.4, 52.5, 13.4, 52.5, 0), (180, 10, -180, 10, 0), (-170, 0, 170, 0, 6371008.771415059 * radians(20)), (10, 50, 10, 50.0001, 6371008.771415059 * radians(0.0001)),
  (359.5, 5, 0.5, 5, 2 * 6371008.771415059 * asin(cosd(5) * sind(0.5)))) v(a, b, c, d, metres);
SELECT is(gpu_distance(a, b, 'haversine'), gpu_distance(b, a, 'haversine'), 'it is symmetric')
FROM (VALUES ('{7.1,50.7}'::float8[], '{7.2,50.8}'::float8[]), ('{-120,-33}', '{59,33.1}')) v(a, b);
SELECT ok(bool_and(gpu_within(a, b, gpu_distance(a, b, 'haversine'), 'haversine') AND NOT gpu_within(a, b, gpu_distance(a, b, 'haversine') * (1 - 2e-16), 'haversine')),
  'within, to the last bit')
FROM (SELECT ARRAY[random() * 360 - 180, random() * 180 - 90], ARRAY[random() * 360 - 180, random() * 180 - 90] FROM generate_series(1, 2000)) v(a, b);
SELECT is(gpu_distance(v, v, 'haversine'), 'NaN'::float8, 'what is not finite is nowhere: ' || v::text)
FROM unnest(ARRAY[point('NaN', 1), point(1, 'NaN'), point('Infinity', 2), point(3, '-Infinity')]) p, LATERAL (SELECT ARRAY[p[0], p[1]]) a(v);
SELECT is(gpu_distance(ARRAY[1, NULL]::float8[], '{1,2}', 'haversine'), NULL, 'NULL');
SELECT results_eq(format('SELECT gpu_distance(''{7,50}''::%1$s, ''{8,51}''::%1$s, ''haversine''), gpu_within(''{7,50}''::%1$s, ''{8,51}''::%1$s, 132000, ''haversine'')', type),
  $$ SELECT gpu_distance('{7,50}'::float8[], '{8,51}'::float8[], 'haversine'), true $$, type) FROM unnest('{real[],smallint[],int[],bigint[],numeric[]}'::text[]) type;

-- Columns of every type that can hold degrees.
CREATE TABLE places (id int PRIMARY KEY, lat float8, lon float8, n numeric, m numeric, v float8[], s real[], p point, q int, grp int);
INSERT INTO places (id, lon, lat)
  SELECT i, i * 137.50776 - floor(i * 137.50776 / 360) * 360 - 180, degrees(asin(2 * (i - 0.5) / 90 - 1)) FROM generate_series(1, 90) i
  UNION ALL SELECT 100 + i, i * 61 % 360 - 180, (90 - i * 0.002) * (i % 2 * 2 - 1) FROM generate_series(1, 30) i
  UNION ALL SELECT 200 + i, (180 - i * 0.0007) * (i % 2 * 2 - 1), i * 37 % 100 * 0.001 + 10 FROM generate_series(1, 30) i
  UNION ALL SELECT 300 + i, 10 + i * 7 % 31 * 0.001, 50 + i * 5 % 29 * 0.001 FROM generate_series(1, 70) i
  UNION ALL SELECT 500 + i, i * 0.01, 0 FROM generate_series(1, 9) i;
UPDATE places SET n = lon, m = lat, v = ARRAY[lon, lat], s = ARRAY[lon, lat], p = point(lon, lat), q = id % 13, grp = id % 3;
INSERT INTO places (id, lat, v, s, p) VALUES (1001, 50, NULL, NULL, NULL), (1002, 'NaN', '{10,NaN}', '{NaN,1}', '(NaN,50)'), (1003, 'Infinity', '{-Infinity,50}', '{1,NULL}', '(10,Infinity)');
UPDATE places SET lon = 10 WHERE id > 1001;
ANALYZE places;
CREATE TABLE forms (columns text, value text);
INSERT INTO forms VALUES ('lon,lat', 'ARRAY[T.lon, T.lat]'), ('n,m', 'ARRAY[T.n, T.m]'), ('v', 'T.v'), ('s', 'T.s'), ('p', 'ARRAY[T.p[0], T.p[1]]'), ('q,grp', 'ARRAY[T.q, T.grp]');
CREATE FUNCTION distance(value text) RETURNS text LANGUAGE sql AS $$
  SELECT format('gpu_distance(%s, %s, ''haversine'')', replace(value, 'T.', 'a.'), replace(value, 'T.', 'b.')) $$;

SELECT agree(format('SELECT * FROM gpu_selfjoin(''places'', %s, vector_columns => %L, metric => ''haversine'')', eps, columns),
  format('SELECT a.id::bigint AS id1, b.id::bigint AS id2 FROM places a, places b WHERE %s <= %s', distance(value), eps), format('within %s of %s', eps, columns))
FROM forms, (SELECT unnest(ARRAY[0, 700, 250000, 25000000]) UNION SELECT gpu_distance('{0,0}'::float8[], '{0.01,0}', 'haversine')) r(eps);
SELECT agree(format('SELECT * FROM gpu_selfjoin_distance(''places'', 70000, vector_columns => %L, metric => ''haversine'', pairs => ''unordered'')', columns),
  format('SELECT a.id::bigint AS id1, b.id::bigint AS id2, %1$s FROM places a, places b WHERE %1$s <= 70000 AND a.id < b.id', distance(value)), 'distances of ' || columns) FROM forms;
SELECT agree(format('SELECT * FROM gpu_selfjoin_distance(''places'', 70000, vector_columns => %L, metric => ''haversine'')', columns),
  format('SELECT a.id::bigint AS id1, b.id::bigint AS id2, %1$s FROM places a, places b WHERE %1$s <= 70000', distance(value)), 'distances in both orders of ' || columns) FROM forms;
SELECT agree(format('SELECT * FROM gpu_join_distance(''places'', ''places'', 3000, left_vector_columns => %L, right_vector_columns => ''v'', metric => ''haversine'')', f.columns),
  format('SELECT a.id::bigint AS id1, b.id::bigint AS id2, %1$s FROM places a, places b WHERE %1$s <= 3000', format('gpu_distance(%s::float8[], b.v, ''haversine'')', replace(value, 'T.', 'a.'))),
  'two tables, by ' || columns) FROM forms f;
SELECT agree(format('SELECT * FROM gpu_neighbors(''places'', 900, vector_columns => %L, metric => ''haversine'') ORDER BY id', columns),
  format('SELECT a.id::bigint, coalesce(array_agg(b.id::bigint ORDER BY %1$s, b.id) FILTER (WHERE b.id IS NOT NULL), ''{}'') AS ids,
    coalesce(array_agg(%1$s ORDER BY %1$s, b.id) FILTER (WHERE b.id IS NOT NULL), ''{}'') AS distances
    FROM places a LEFT JOIN places b ON %1$s <= 900 AND a.id <> b.id WHERE %2$s IS NOT NULL AND array_position(%2$s, NULL) IS NULL GROUP BY a.id ORDER BY 1', distance(value), replace(value, 'T.', 'a.')),
  'neighbours by ' || columns) FROM forms;
SELECT agree(format('SELECT id1, id2, distance FROM gpu_knn_join(''places'', ''places'', 4, %s, left_vector_columns => %2$L, right_vector_columns => %2$L, metric => ''haversine'')', most, columns),
  format('SELECT a.id::bigint AS id1, s.id::bigint AS id2, d FROM places a, LATERAL (SELECT b.id, %1$s AS d FROM places b WHERE a.id <> b.id AND %1$s <= %2$s ORDER BY d, b.id LIMIT 4) s',
    distance(value), CASE most WHEN 'NULL' THEN '1e9' ELSE most END), format('nearest by %s within %s', columns, most)) FROM forms, unnest(ARRAY['NULL', '5000']) most;
SELECT agree(format('SELECT * FROM gpu_topk_join(''places'', ''places'', 100000, 30, left_vector_columns => %1$L, right_vector_columns => %1$L, metric => ''haversine'', score => ''distance'')', columns),
  format('SELECT a.id::bigint AS id1, b.id::bigint AS id2, %1$s FROM places a, places b WHERE %1$s <= 100000 AND a.id < b.id ORDER BY 3, 1, 2 LIMIT 30', distance(value)), 'the nearest pairs by ' || columns) FROM forms;
SELECT agree($$ SELECT * FROM gpu_topk_join('places', 'places', 2000, 25, left_vector_columns => 'lon,lat', right_vector_columns => 'lon,lat', metric => 'haversine',
    left_score_column => 'q', right_score_column => 'q') $$,
  $$ SELECT a.id::bigint AS id1, b.id::bigint AS id2, (a.q + b.q)::float8 FROM places a, places b WHERE a.id < b.id AND gpu_distance(a.v, b.v, 'haversine') <= 2000 ORDER BY 3 DESC, 1, 2 LIMIT 25 $$,
  'the best pairs by a score, which is no distance');
SELECT agree($$ SELECT * FROM gpu_density('places', 1500, vector_columns => 'lon,lat', metric => 'haversine') $$,
  $$ SELECT a.id::bigint, count(b.id) FROM places a LEFT JOIN places b ON gpu_distance(a.v, b.v, 'haversine') <= 1500 WHERE a.lon IS NOT NULL GROUP BY a.id $$, 'density');
-- An arc of 1200 m is a line of the same length but for two micrometres.
CREATE TABLE in_space AS SELECT id, CASE WHEN id > 1000 THEN '{NaN,0,0}'::float8[]
  ELSE ARRAY[cosd(lat) * cosd(lon), cosd(lat) * sind(lon), sind(lat)] END AS v FROM places WHERE lon IS NOT NULL;
ALTER TABLE in_space ADD PRIMARY KEY (id);
SELECT agree($$ SELECT * FROM gpu_dbscan('places', 1200, 3, vector_columns => 'lon,lat', metric => 'haversine') $$,
  $$ SELECT * FROM gpu_dbscan('in_space', 1200 / 6371008.771415059, 3) $$, 'clusters are those of places in space');
SELECT agree($$ SELECT id::bigint, gpu_cluster_dbscan(ARRAY[lon, lat], 1200, 3, 'haversine') OVER (ORDER BY id) IS NULL AS noise FROM places WHERE lon IS NOT NULL $$,
  $$ SELECT id, cluster IS NULL FROM gpu_dbscan('places', 1200, 3, vector_columns => 'lon,lat', metric => 'haversine') $$, 'the window function');
SELECT agree($$ SELECT id, kept_id, distance FROM gpu_dedup('places', 1000, 'q', vector_columns => 'lon,lat', metric => 'haversine') $$,
  $$ SELECT d.id, kept_id, gpu_distance(a.v, b.v, 'haversine') FROM gpu_dedup('places', 1000, 'q', vector_columns => 'lon,lat', metric => 'haversine') d
     JOIN places a ON a.id = d.id JOIN places b ON b.id = d.kept_id $$, 'duplicates have their distances');
SELECT agree($$ SELECT id1, id2, distance FROM gpu_spanning_tree('places', 1, vector_columns => 'lon,lat', metric => 'haversine') $$,
  $$ SELECT t.id1, t.id2, gpu_distance(a.v, b.v, 'haversine') FROM gpu_spanning_tree('places', 1, vector_columns => 'lon,lat', metric => 'haversine') t
     JOIN places a ON a.id = t.id1 JOIN places b ON b.id = t.id2 $$, 'edges of a spanning tree');
SELECT count(*) > 0 AS found FROM gpu_selfjoin('places', 321, vector_columns => 'lon,lat', metric => 'haversine') \gset
SELECT ok(:'found', 'there are pairs');
SELECT results_eq('SELECT metric, eps FROM gpu_last_join()', $$ VALUES ('haversine', 321::float8) $$, 'a report in metres');
SELECT count(gpu_cluster_dbscan) FROM (SELECT gpu_cluster_dbscan(ARRAY[lon, lat], 1234, 3, 'haversine') OVER () FROM places WHERE lon IS NOT NULL) s \gset ignored_
SELECT results_eq('SELECT metric, eps FROM gpu_last_join()', $$ VALUES ('haversine', 1234::float8) $$, 'that of a window, too');

-- Another radius, and other columns, of a prepared call.
PREPARE near(float8, text, text) AS SELECT count(*) FROM gpu_selfjoin('places', $1, vector_columns => $2, metric => $3);
SELECT results_eq(format('EXECUTE near(%s, %L, %L)', eps, columns, metric), format('SELECT count(*) FROM places a, places b WHERE gpu_distance(ARRAY[a.lon, a.lat], ARRAY[b.lon, b.lat], %L) <= %s', metric, eps),
  format('%s by %s of %s', eps, metric, columns)) FROM (VALUES (900, 'lon,lat', 'haversine'), (5, 'lon,lat', 'l2'), (900, 'lon,lat', 'haversine'), (9000, 'lon,lat', 'haversine')) v(eps, columns, metric);
SELECT results_eq($$ SELECT eps, count(*) FROM unnest('{900,9000}'::float8[]) eps, LATERAL gpu_selfjoin('places', eps, vector_columns => 'lon,lat', metric => 'haversine') GROUP BY 1 ORDER BY 1 $$,
  $$ SELECT eps, count(*) FROM unnest('{900,9000}'::float8[]) eps, places a, places b WHERE gpu_distance(ARRAY[a.lon, a.lat], ARRAY[b.lon, b.lat], 'haversine') <= eps GROUP BY 1 ORDER BY 1 $$,
  'a call that is asked again');

-- What has no longitude and latitude.
CREATE TABLE others (id int PRIMARY KEY, x float8, y float8, z float8, b box, v float8[]);
INSERT INTO others VALUES (1, 7, 50, 1, '(1,1),(2,2)', '{7,50}');
SELECT throws_like(format('SELECT * FROM gpu_selfjoin(''others'', 5, vector_columns => %L, metric => ''haversine'')', columns), '%is no longitude and latitude', columns) FROM unnest('{x,"x,y,z"}'::text[]) columns;
SELECT throws_like($$ SELECT * FROM gpu_box_join('others', 'others', 5, metric => 'haversine') $$, '%unknown metric "haversine" of boxes', 'boxes');
SELECT throws_like($$ SELECT * FROM gpu_hdbscan('others', 5, vector_columns => 'x,y', metric => 'haversine') $$, '%does not support metric => ''haversine''', 'gpu_hdbscan');
INSERT INTO others VALUES (2, 50, 97, 1, NULL, '{1,2,3}'), (3, 361, 5, NULL, NULL, NULL);
SELECT throws_ok($$ SELECT * FROM gpu_selfjoin('others', 5, vector_columns => 'x,y', metric => 'haversine') $$, '22000', 'the vector of row 2 of relation "others" is no place on the Earth');
SELECT throws_ok($$ SELECT * FROM gpu_selfjoin('others', 5, vector_columns => 'v', metric => 'haversine') $$, '22000', 'the vector of row 2 of relation "others" has 3 dimensions');
SELECT throws_ok($$ SELECT gpu_distance('{1,91}'::float8[], '{1,1}', 'haversine') $$, '22000', 'no place on the Earth has longitude 1 and latitude 91');
SELECT throws_ok($$ SELECT gpu_within('{1,1}'::float8[], '{-361,1}', 5, 'haversine') $$, '22000', 'no place on the Earth has longitude -361 and latitude 1');
SELECT throws_ok($$ SELECT gpu_distance('{1,2,3}'::float8[], '{1,1,1}', 'haversine') $$, '22000', 'a vector of 3 dimensions is no longitude and latitude');
SELECT throws_ok($$ SELECT gpu_cluster_dbscan(v, 5, 2, 'haversine') OVER () FROM others $$, '22000', 'a vector is no longitude and latitude of the Earth');
SELECT throws_ok($$ SELECT gpu_within('{1,1}'::float8[], '{1,1}', -5, 'haversine') $$, '22023', 'eps must be a finite number that is not negative, not -5');

SELECT * FROM finish();
ROLLBACK;
