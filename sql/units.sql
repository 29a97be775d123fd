-- Arguments that are probably in other units than meant.
CREATE SCHEMA units;
SET search_path = units, public;
CREATE TABLE places (id int PRIMARY KEY, lat float8, lon float8, "Longitude" float8, v float8[]);
INSERT INTO places VALUES (1, 52.5, 13.4, 13.4, '{1,0}'), (2, 52.6, 13.4, 13.4, '{1,1}');

-- A latitude before its longitude: once for each side, and once where a call is asked again.
SELECT count(*) FROM gpu_selfjoin('places', 12000, vector_columns => 'lat,lon', metric => 'haversine');
SELECT count(*) FROM gpu_selfjoin('places', 12000, vector_columns => 'lon,lat', metric => 'haversine');
SELECT count(*) FROM gpu_join('places', 'places', 12000, left_vector_columns => 'lon,lat', right_vector_columns => '{lat,Longitude}', metric => 'haversine');
SELECT count(*) FROM unnest('{1,12000,1}'::float8[]) r, LATERAL gpu_selfjoin('places', r, vector_columns => 'lat,lon', metric => 'haversine');
SELECT count(*) FROM gpu_selfjoin('places', 12000, vector_columns => 'lat,lon');

-- A similarity as a radius.
SELECT count(*) FROM gpu_selfjoin('places', 0.95, vector_columns => 'v', metric => 'cosine');
SELECT count(*) FROM gpu_selfjoin('places', 1.5, vector_columns => 'v', metric => 'cosine');
SELECT count(*) FROM gpu_selfjoin('places', 0.05, vector_columns => 'v', metric => 'cosine');
SELECT count(*) FROM gpu_knn_join('places', 'places', 1, left_vector_columns => 'v', right_vector_columns => 'v', metric => 'cosine');
SELECT id, gpu_cluster_dbscan(v, 0.95, 2, 'cosine') OVER (PARTITION BY id) FROM places;
DROP TABLE places;

-- Metres, where geometries are in degrees. (units_1.out is without PostGIS.)
SELECT bool_or(name = 'postgis') AS has_postgis FROM pg_available_extensions WHERE name = 'postgis' \gset
\if :has_postgis
CREATE EXTENSION postgis;
CREATE TABLE stops AS SELECT i AS id, ST_SetSRID(ST_MakePoint(i, 0), 4326) AS g FROM generate_series(1, 3) i;
SELECT count(*) FROM gpu_selfjoin('stops', 800, 'id');
SELECT count(*) FROM gpu_dbscan('stops', 180.5, 1, 'id');
SELECT id, gpu_cluster_dbscan(g, 800, 2) OVER () FROM stops;
SELECT count(*) FROM gpu_selfjoin('stops', 180, 'id');
SELECT count(*) FROM gpu_selfjoin('stops', 800, 'id', metric => 'haversine');
SELECT count(*) FROM gpu_knn_join('stops', 'stops', 1, left_id_column => 'id', right_id_column => 'id');
UPDATE stops SET g = ST_SetSRID(g, 3857);
SELECT count(*) FROM gpu_selfjoin('stops', 800, 'id');
DROP TABLE stops;
DROP EXTENSION postgis;
\endif
DROP SCHEMA units;
