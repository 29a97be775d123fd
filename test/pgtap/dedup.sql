-- gpu_dedup(): what a loop over the rows in the order of their ranks finds.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA dedup;
SET search_path = dedup, public;

CREATE TABLE a (id int PRIMARY KEY, v float8[], w real[], p point, x float8, y float8, z float8, quality numeric, grade int);
INSERT INTO a SELECT (i * 37 % 251) - 100, u, u, point(u[1], u[2]), u[1], u[2], u[3], (i * 31 % 17) / 4.0, CASE WHEN i % 7 > 0 THEN i % 3 END
  FROM (SELECT i, CASE WHEN i < 40 THEN ARRAY[3, 3, 1] ELSE ARRAY[i * 7 % 23 * 0.5, i * 5 % 19 * 0.5, i % 3] END::float8[] AS u
        FROM generate_series(1, 200) i) s;
INSERT INTO a VALUES (1000, '{500,500,500}', '{0.1,0.2,0.3}', '(1e9,1e9)', 500, 500, 500, 1, 1), (1001, NULL, NULL, NULL, NULL, 1, 1, 9, 9),
  (1002, '{NaN,0,0}', '{NaN,0,0}', '(NaN,0)', 'NaN', 0, 0, 2, 2), (1003, '{0,0,0}', '{0,0,0}', '(0,0)', 0, 0, 0, NULL, NULL);

-- The definition. Rows whose rank is NULL take no part.
CREATE FUNCTION expected(eps float8, keep_column text, keep text, metric text, part text DEFAULT '1')
RETURNS TABLE (id bigint, kept_id bigint, distance float8) LANGUAGE plpgsql SET gpujoin.enable_customscan = off AS $$
DECLARE
  r record;
BEGIN
  CREATE TEMP TABLE staying (id int, v float8[], part text);
  FOR r IN EXECUTE format('SELECT id, v, (%3$s)::text AS part FROM dedup.a WHERE v IS NOT NULL AND %1$s IS NOT NULL ORDER BY %1$s %2$s, id',
                          coalesce(keep_column, '(0 * id)'), CASE keep WHEN 'lowest' THEN 'ASC' ELSE 'DESC' END, part) LOOP
    SELECT r.id, s.id, gpu_distance(r.v, s.v, metric) INTO id, kept_id, distance FROM staying s
      WHERE gpu_distance(r.v, s.v, metric) <= eps AND s.part IS NOT DISTINCT FROM r.part ORDER BY 3, 2 LIMIT 1;
    IF FOUND THEN RETURN NEXT; ELSE INSERT INTO staying VALUES (r.id, r.v, r.part); END IF;
  END LOOP;
  DROP TABLE staying;
END $$;

SELECT bag_eq(
    format($$ SELECT * FROM gpu_dedup('a', %s, %L, %L, metric => %L, vector_columns => %L) $$, eps, k, keep, metric, c),
    format($$ SELECT * FROM expected(%s, %L, %L, %L) $$, eps, k, keep, metric), format('%s by %s, eps %s, %s %s', c, metric, eps, keep, k))
  FROM (VALUES ('l2', 0.5), ('l2', 1.2), ('l1', 1), ('linf', 0.5), ('cosine', 0.001), ('l2', 0)) m(metric, eps),
    (VALUES (NULL, 'highest'), ('quality', 'highest'), ('quality', 'lowest'), ('grade', 'lowest')) q(k, keep),
    unnest('{v,"x,y,z"}'::text[]) c;
-- In partitions: of few values, of NULLs, of one row each; of the column that ranks the rows, too.
SELECT bag_eq(
    format($$ SELECT * FROM gpu_dedup('a', %s, %L, %L, metric => %L, vector_columns => %L, partition_column => %L) $$, eps, k, keep, metric, c, part),
    format($$ SELECT * FROM expected(%s, %L, %L, %L, %L) $$, eps, k, keep, metric, part), format('%s by %s, eps %s, %s %s, in partitions by %s', c, metric, eps, keep, k, part))
  FROM (VALUES ('l2', 0.5), ('l2', 1.2), ('cosine', 0.001), ('linf', 0)) m(metric, eps), (VALUES (NULL, 'highest'), ('quality', 'highest'), ('grade', 'lowest')) q(k, keep),
    unnest('{v,"x,y,z"}'::text[]) c, unnest('{grade,quality,z,id}'::text[]) part;
SELECT throws_ok($$ SELECT * FROM gpu_dedup('a', 1, 'quality', vector_columns => 'v', partition_column => 'q') $$, '42703', 'column "q" of relation "a" does not exist', 'no such partition');
SELECT throws_ok($$ SELECT * FROM gpu_dedup('a', 1, 'quality', vector_columns => 'v', partition_column => 'p') $$, '42804', NULL, 'a partition has an equality');
SELECT is((SELECT count(*) FROM gpu_dedup('a', NULL, vector_columns => 'v', partition_column => 'grade')), 0::bigint, 'NULL arguments beside a partition');

SELECT bag_eq($$ SELECT * FROM gpu_dedup('a', 0.6, vector_columns => 'p') WHERE id < 1000 $$,
  $$ SELECT * FROM gpu_dedup('a', 0.6, vector_columns => 'x,y') WHERE id < 1000 $$, 'points are their coordinates');
SELECT is_empty($$ SELECT FROM gpu_dedup('a', 1.2, 'quality', vector_columns => 'v') s JOIN gpu_dedup('a', 1.2, 'quality', vector_columns => 'v') t
  ON s.kept_id = t.id $$, 'what is kept is no duplicate');

-- What the guide does with it.
CREATE TABLE b AS SELECT * FROM a WHERE v IS NOT NULL;
ALTER TABLE b ADD PRIMARY KEY (id);
CREATE VIEW unique_rows AS SELECT * FROM b WHERE id NOT IN (SELECT id FROM gpu_dedup('b', 0.6, 'quality', vector_columns => 'v'));
CREATE TEMP TABLE seen AS SELECT id FROM unique_rows;
DELETE FROM b USING gpu_dedup('b', 0.6, 'quality', vector_columns => 'v') d WHERE b.id = d.id;
SELECT set_eq('SELECT id FROM b', 'SELECT id FROM seen', 'a view of unique rows has the rows that DELETE leaves');
SELECT is_empty($$ SELECT * FROM gpu_dedup('b', 0.6, 'quality', vector_columns => 'v') $$, 'then there are no more duplicates');
-- New rows against those that are unique: the walk that ranks old rows first.
CREATE TABLE today (id int PRIMARY KEY, v float8[], quality numeric);
INSERT INTO today SELECT 2000 + i, ARRAY[i * 11 % 29 * 0.4, i * 13 % 31 * 0.3, i % 2], i % 5 FROM generate_series(1, 150) i;
CREATE TABLE both_days AS SELECT id, v, 100 + quality AS quality FROM b WHERE quality IS NOT NULL UNION ALL SELECT id, v, quality FROM today;
ALTER TABLE both_days ADD PRIMARY KEY (id);
CREATE TEMP TABLE late AS SELECT id FROM gpu_dedup('both_days', 0.6, 'quality', vector_columns => 'v');
DELETE FROM b WHERE quality IS NULL;
DELETE FROM today USING (SELECT DISTINCT id1 FROM gpu_join('today', 'b', 0.6, left_vector_columns => 'v', right_vector_columns => 'v')) d WHERE today.id = d.id1;
DELETE FROM today USING gpu_dedup('today', 0.6, 'quality', vector_columns => 'v') d WHERE today.id = d.id;
SELECT set_eq('SELECT id FROM today', 'SELECT id FROM both_days WHERE id >= 2000 AND id NOT IN (SELECT id FROM late)', 'two steps are one walk');

-- What is asked for, and what is none.
CREATE TABLE nothing (LIKE a);
SELECT is_empty($$ SELECT * FROM gpu_dedup('nothing', 1, vector_columns => 'v', id_column => 'id') $$, 'no rows, no duplicates');
SELECT is_empty($$ SELECT * FROM gpu_dedup('a', NULL, vector_columns => 'v') $$, 'NULL arguments, no rows');
SELECT throws_ok($$ SELECT * FROM gpu_dedup('a', 1, keep => 'best', vector_columns => 'v') $$, '22023', 'unknown value "best" of keep', 'another order');
SELECT throws_ok($$ SELECT * FROM gpu_dedup('a', -1, vector_columns => 'v') $$, '22023', NULL, 'a negative radius');
SELECT throws_ok($$ SELECT * FROM gpu_dedup('a', 1, 'p', vector_columns => 'v') $$, '42804',
  'column "p" of relation "a" has type point, which cannot be a rank', 'ranks are numbers');
SELECT throws_ok($$ SELECT * FROM gpu_dedup('a', 1, 'q', vector_columns => 'v') $$, '42703', NULL, 'no such column');
SELECT bag_eq($$ SELECT (gpu_dedup('a', 1, vector_columns => 'v')).* $$, $$ SELECT * FROM gpu_dedup('a', 1, vector_columns => 'v') $$, 'in a select list');
SELECT is((SELECT count(*) FROM gpu_dedup('a', 1, vector_columns => 'v')), (SELECT count(*) FROM expected(1, NULL, 'highest', 'l2')), 'rows are counted');
SELECT is((SELECT count(*) FROM (SELECT FROM gpu_dedup('a', 1, vector_columns => 'v') LIMIT 5) s), 5::bigint, 'a part of the rows can be taken');
SELECT is((SELECT function FROM gpu_last_join()), 'gpu_dedup', 'gpu_last_join() knows it');

SELECT * FROM finish();
ROLLBACK;
