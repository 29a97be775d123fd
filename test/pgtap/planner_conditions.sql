-- Conditions as people write them: a radius in each row, distances that are written out over columns, boxes of columns. The rows
-- are those that PostgreSQL itself finds, and what the engine leaves open its own expressions decide.
BEGIN;
CREATE SCHEMA planner_conditions;
SET search_path = planner_conditions, public;
SET jit = off;
SET extra_float_digits = 1;
\ir same_rows.psql
SELECT * FROM no_plan();

CREATE TABLE kinds (name text, query text);
INSERT INTO kinds VALUES
  ('inner', 'SELECT l.id, r.id FROM %2$s l JOIN %3$s r ON %1$s'),
  ('left', 'SELECT l.id, r.id FROM %2$s l LEFT JOIN %3$s r ON %1$s'),
  ('right', 'SELECT l.id, r.id FROM %2$s l RIGHT JOIN %3$s r ON %1$s'),
  ('exists', 'SELECT l.id FROM %2$s l WHERE EXISTS (SELECT FROM %3$s r WHERE %1$s)'),
  ('anti', 'SELECT l.id FROM %2$s l WHERE NOT EXISTS (SELECT FROM %3$s r WHERE %1$s)'),
  ('count', 'SELECT count(*) FROM %2$s l JOIN %3$s r ON %1$s'),
  ('groups', 'SELECT l.id, count(*) FROM %2$s l JOIN %3$s r ON %1$s GROUP BY l.id'),
  ('sums', 'SELECT l.grp, count(*), sum(r.id), max(r.i) FROM %2$s l JOIN %3$s r ON %1$s GROUP BY l.grp'),
  ('order', 'SELECT l.id, r.id FROM %2$s l JOIN %3$s r ON %1$s AND l.id < r.id'),
  ('others', 'SELECT l.id, r.id FROM %2$s l JOIN %3$s r ON l.grp <> r.grp AND %1$s AND l.i + r.i > 20');

-- ---- A radius in each row
-- Radii of all kinds: NULL, below 0, 0, and such that many pairs lie on the border.
CREATE TABLE a AS
  SELECT i AS id, i % 7 AS grp, i % 13 AS i, (i % 4)::smallint AS s, i % 13 + 0.5::float8 AS x, (i * 5 % 11)::float8 AS y, (i % 9 / 2.0)::float4 AS f,
    CASE WHEN i % 19 <> 0 THEN ARRAY[i * 7 % 13, i * 5 % 11]::float8[] END AS v, ARRAY[i * 7 % 13, i * 5 % 11]::float4[] AS f4,
    point(i * 7 % 13, i * 5 % 11) AS p, CASE WHEN i % 17 <> 0 THEN (i % 6 - 1)::float8 END AS r, (i % 3)::float8 AS more
  FROM generate_series(1, 150) i;
CREATE TABLE b AS SELECT * FROM a WHERE id % 3 <> 0;
CREATE TABLE odd AS SELECT * FROM a;
INSERT INTO odd SELECT 1000 + row_number() OVER (), 3, 1, 1, 0, 0, 1, ARRAY[5, 5], ARRAY[5, 5], point(5, 5), r, 1
  FROM unnest('{NaN,Infinity,-Infinity,1e200,1e149,-1e200,-0,5e-324,40}'::float8[]) r;
INSERT INTO odd SELECT 2000, 1, 1, 1, 0, 0, 1, ARRAY['NaN'::float8, 0], ARRAY[0, 0], point(0, 'Infinity'), 2, 1;
CREATE TABLE none AS SELECT * FROM a LIMIT 0;
CREATE TABLE nulls AS SELECT * FROM a;
UPDATE nulls SET r = NULL;
ANALYZE a, b, odd, none, nulls;

CREATE TABLE radii (clause text);
INSERT INTO radii VALUES
  ('l.v <-> r.v <= r.r'), ('l.v <-> r.v < l.r'), ('r.r >= r.v <-> l.v'), ('l.v <-> r.v <= l.r + r.r'), ('l.v <-> r.v <= r.more + 1 + l.more'),
  ('l.v <-> r.v <= 0.5 + r.r'), ('gpu_within(l.v, r.v, r.more)'), ('gpu_within(r.v, l.v, l.more + r.more)'), ('l.p <-> r.p <= r.r'),
  ('l.p <-> r.p < l.r + r.r'), ('l.f4 <-> r.f4 <= r.f'), ('l.f4 <-> r.f4 <= r.f + l.f'), ('l.v <-> r.v <= r.s'), ('l.v <-> r.v <= r.s + l.s'),
  ('NOT l.v <-> r.v > r.r'), ('l.v <-> r.v BETWEEN 0 AND l.r'), ('gpu_distance(l.v, r.v, ''l1'') <= r.r'), ('gpu_distance(l.v, r.v, ''linf'') < l.more + r.more'),
  ('l.v <=> r.v <= r.r / 1::float8'), ('l.v <-> r.v <= CASE WHEN r.grp > 2 THEN r.r ELSE 1 END');
INSERT INTO radii VALUES
  ('l.v <-> r.v <= r.r * 2'), ('l.v <-> r.v < 0.5 * l.r + r.r'), ('l.v <-> r.v <= (l.r * 2 + l.more) / 3 - 1'), ('l.v <-> r.v <= r.s * 2'),
  ('l.v <-> r.v <= (r.s + 1) / 2 + l.i'), ('l.v <-> r.v <= abs(r.r - r.more) + 0.5'), ('l.v <-> r.v <= -l.r'), ('l.f4 <-> r.f4 <= r.f * 2'),
  ('gpu_within(l.v, r.v, r.more * 2)'), ('l.p <-> r.p <= l.r * 2 + r.more * 0.5'), ('l.v <-> r.v <= r.r * 0'), ('l.v <-> r.v <= r.i - r.grp');
SELECT same_rows(format(query, clause, 'a', 'b'), NULL, format('%s: %s', name, clause)) FROM kinds, radii;
SELECT same_rows(format(query, clause, t, t), NULL, format('%s of %s: %s', name, t, clause))
FROM kinds, radii, unnest('{odd,nulls}'::text[]) t WHERE clause NOT LIKE '%<=>%' AND name <> 'sums';
SELECT same_rows(format(query, 'l.v <-> r.v <= r.r', one, other), NULL, format('%s: %s and %s', name, one, other))
FROM kinds, unnest('{a,none}'::text[]) one, unnest('{none,nulls}'::text[]) other;
SELECT ok(has_node(format('SELECT l.id, r.id FROM a l JOIN b r ON %s', clause)), 'by the node: ' || clause)
FROM radii, force_node(true) WHERE clause NOT LIKE '%1::float8';
SELECT same_rows('SELECT l.id, r.id FROM a l JOIN b r ON ' || clause, true, clause) FROM unnest('{l.v <-> r.v <= l.r - r.r,l.v <-> r.v <= 2 * (l.r + r.r)}'::text[]) clause;
SELECT same_rows('SELECT l.id, r.id FROM a l JOIN b r ON ' || clause, false, 'not by the node: ' || clause) FROM unnest(ARRAY[
  'l.v <-> r.v <= r.r * l.r', 'l.v <-> r.v <= r.r ^ 2', 'l.v <-> r.v <= 6 / r.r', 'l.v <-> r.v <= random() * 0 + r.r']) clause;
-- A condition that is asked whether it is true.
SELECT same_rows(format('SELECT l.id, r.id FROM a l %s JOIN b r ON %s', kind, format(wrapper, clause)), uses_node, format('%s %s', kind, format(wrapper, clause)))
FROM unnest('{"",LEFT}'::text[]) kind, unnest('{l.v <-> r.v <= 2,l.v <-> r.v <= r.r,(l.p[0] - r.p[0]) ^ 2 + (l.p[1] - r.p[1]) ^ 2 < 9}'::text[]) clause,
  (VALUES ('(%s) IS TRUE', true), ('coalesce(%s, false)', true), ('CASE WHEN %s THEN true ELSE false END', true), ('CASE WHEN (%s) IS TRUE THEN true END', true),
          ('coalesce(%s, true)', false), ('(%s) IS NOT FALSE', false), ('CASE WHEN %s THEN false ELSE true END', false), ('coalesce(%s, l.id > 3)', false)) w (wrapper, uses_node);
-- Radii of numerics of any precision, and what arithmetic makes of them.
CREATE TABLE tens AS SELECT id, grp, v, p, CASE WHEN id % 17 <> 0 THEN (id % 6 - 1)::numeric / 10 END AS n, (id % 5)::numeric AS m FROM a;
INSERT INTO tens SELECT 1000 + row_number() OVER (), 1, ARRAY[5, 5], point(5, 5), n, 1 FROM unnest('{NaN,Infinity,-Infinity,1e200,1e-200,0,1e400,-1e9,0.000000001}'::numeric[]) n;
ANALYZE tens;
SELECT same_rows(format('SELECT l.id, r.id FROM tens l %s JOIN tens r ON %s', kind, clause), uses_node, format('numeric radius: %s %s', kind, clause))
FROM unnest('{"",LEFT}'::text[]) kind, (VALUES ('l.v <-> r.v <= (r.n * 10)::float8', true), ('l.v <-> r.v < r.n::float8 * 10', true), ('(l.v <-> r.v) / 10 <= r.n', true), ('l.p <-> r.p <= l.n * 5 + r.m', NULL), ('l.v <-> r.v <= r.m', true),
  ('1 - (l.v <-> r.v) / 5 >= 1 - r.n', true), ('l.v <-> r.v <= r.n * r.m', false), ('gpu_within(l.v, r.v, (r.m * 1.5)::float8)', true)) c(clause, uses_node);
-- Arithmetic around a distance, which has a bound of the distance, or none.
SELECT same_rows(format(query, clause), uses_node, format(query, clause))
FROM unnest('{SELECT l.id\, r.id FROM a l JOIN b r ON %s,SELECT l.id\, r.id FROM a l LEFT JOIN b r ON %s AND l.grp <> r.grp,SELECT count(*) FROM a l JOIN b r ON %s,"SELECT l.grp, count(*), sum(r.id) FROM a l JOIN b r ON %s GROUP BY 1",SELECT l.id FROM a l WHERE NOT EXISTS (SELECT FROM b r WHERE %s)}'::text[]) query,
  (VALUES ('(l.v <-> r.v) * 111 <= 200', true), ('(l.v <-> r.v) / 2 - 1 < 0.5', true), ('3 * (l.p <-> r.p) + 1 <= 7', true), ('5 >= (l.v <-> r.v)::numeric * 2.5', true),
          ('round((l.p <-> r.p)::numeric, 1) <= 2', true), ('round(l.v <-> r.v) < 2.5', true), ('coalesce(l.v <-> r.v, 99) <= 2', true),
          ('sqrt((l.p[0] - r.p[0]) ^ 2 + (l.p[1] - r.p[1]) ^ 2) * 2 <= 5', true), ('(l.p[0] - r.p[0]) ^ 2 + 1 <= 4', true), ('64 - bit_count(l.id::bit(64) # r.id::bit(64)) >= 62', true),
          ('1 - bit_count(l.id::bit(64) # r.id::bit(64)) / 64.0 > 0.97', true), ('1 - (l.v <=> r.v) > 0.9', true), ('coalesce(l.v <-> r.v, 0) <= 2', true),
          ('(l.v <-> r.v) * -1 <= -2', false), ('(l.v <-> r.v) * 0 <= 2', false), ('(l.v <-> r.v) * l.grp <= 2', false), ('2 / (l.v <-> r.v) > 1', false)) c (clause, uses_node);
SELECT same_rows(format('SELECT l.id, s.id FROM a l, LATERAL (SELECT r.id FROM b r WHERE %s ORDER BY %s, r.id LIMIT 3) s', clause, distance), true, 'nearest rows within a bound: ' || clause)
FROM (VALUES ('(l.v <-> r.v) * 2 <= 3', 'l.v <-> r.v'), ('1 - (l.v <=> r.v) > 0.99', 'l.v <=> r.v'), ('coalesce(l.v <-> r.v, 0) < 2', 'l.v <-> r.v')) c (clause, distance);
-- A distance that a clause implies, and what fulfils the clause besides: NaN, the largest number to PostgreSQL, zero vectors, and NULL.
CREATE TABLE strange AS SELECT * FROM a;
INSERT INTO strange SELECT 3000 + row_number() OVER (), 1, 1, 1, 0, 0, 1, v, '{1,1}', point(v[1], v[2]), 1, 1
FROM (VALUES (ARRAY[0, 0]::float8[]), ('{-0,0}'), ('{NaN,1}'), ('{Infinity,1}'), (NULL), (NULL), ('{1e300,-1e300}')) odd (v);
ANALYZE strange;
CREATE TABLE implied (clause text, uses_node boolean);
INSERT INTO implied VALUES
  ('1 - (l.v <=> r.v) > 0.9', true), ('1 - (l.v <=> r.v) >= 1 - r.more / 4', true), ('5 - (l.v <-> r.v) >= 3', true), ('-(l.v <-> r.v) > -2', true), ('(l.v <-> r.v) / 10 <= r.more', true),
  ('l.v <-> r.v = 1', true), ('2 = (l.v <-> r.v) * 2', true), ('coalesce(l.v <-> r.v, 0) <= 1', true), ('coalesce(1 - (l.v <-> r.v), 0) >= 0', true), ('(r.v IS NULL OR l.v <-> r.v < 1)', true), ('(r.p IS NULL OR point(r.p[0], r.p[1]) <-> l.p < 1)', true),
  ('(l.v <-> r.v < 1 OR l.v IS NULL)', true), ('(l.v <-> r.v <= 1 OR l.v <-> r.v < 2)', true), ('(l.v <-> r.v <= 1 AND l.grp = 1 OR r.grp = 2 AND r.v <-> l.v < 2)', false),
  ('(l.v <-> r.v <= 1 AND l.grp = 1 OR r.grp = 2 AND l.v <-> r.v < 2)', true), ('CASE WHEN l.grp > 3 THEN l.v <-> r.v < 1 ELSE l.v <-> r.v <= 2 END', true),
  ('CASE l.grp WHEN 1 THEN l.v <-> r.v < 1 WHEN 2 THEN false ELSE l.v <-> r.v <= 2 END', true), ('CASE WHEN l.v <-> r.v < 2 THEN l.grp > r.grp END', true),
  ('CASE WHEN l.grp > 3 THEN true ELSE l.v <-> r.v <= 2 END', false), ('coalesce(l.v <-> r.v < 1, l.v <-> r.v < 2, false)', true), ('coalesce(l.v <-> r.v < 1, r.grp > 2)', false),
  ('0.7 * (l.v <-> r.v) + 0.3 * abs(l.x - r.x) < 0.9', true), ('0.7 * (l.v <-> r.v) + 0.3 * (l.x - r.x) < 0.9', false), ('2 - ((l.v <-> r.v) + abs(l.x - r.x)) > 1', false),
  ('sqrt((l.v <-> r.v) ^ 2 + (l.x - r.x) ^ 2) <= 1.5', true), ('sqrt((l.x - r.x) * (l.x - r.x) + power(3 * (l.v <-> r.v), 2)) < 4', true), ('sqrt((l.v <-> r.v) ^ 2 - (l.x - r.x) ^ 2) <= 1.5', false),
  ('abs((l.v <-> r.v) * -2) <= 3', true), ('abs((l.v <-> r.v) - 2) <= 3', true), ('degrees(l.v <-> r.v) <= 100', true), ('radians(l.v <-> r.v) <= 0.05', true),
  ('(l.v <-> r.v) * r.more <= 2', false), ('(l.v <-> r.v) / (r.more + 1) <= 1', false), ('l.v <-> r.v = r.more', NULL), ('(l.v <-> r.v) + 1 <= l.more + r.more', NULL), ('l.v <-> r.v <> 1', false);
SELECT same_rows(format('SELECT l.id, r.id FROM %s l %s JOIN %s r ON %s', t, kind, t, clause), uses_node, format('implied: %s %s of %s', kind, clause, t))
FROM implied, unnest('{"",LEFT}'::text[]) kind, unnest('{a,strange}'::text[]) t;
SELECT same_rows(format('SELECT count(*), sum(l.id * r.id) FROM strange l JOIN strange r ON %s AND l.id < r.id', clause), uses_node, 'implied, counted: ' || clause) FROM implied;
PREPARE implied(float8, text) AS SELECT l.id, r.id FROM strange l JOIN strange r ON 1 - (l.v <=> r.v) > $1 AND (l.p <-> r.p) * 3 <= 9 + $1;
SET plan_cache_mode = force_generic_plan;
SELECT same_rows(format('EXECUTE implied(%s, 1)', s), true, 'implied, a parameter: ' || s) FROM unnest('{0.9,"NULL",''NaN'',''Infinity'',''-Infinity'',1e300,-1e-300,2}'::text[]) s;
-- NULL besides: of a further term, and for a radius.
SELECT same_rows('SELECT l.id, r.id FROM strange l JOIN strange r ON ' || clause, uses_node, 'NULL besides: ' || clause)
FROM (VALUES ('coalesce((l.v <-> r.v) + abs(l.p[0] - r.p[0]), 0.5) = 0.5', false), ('coalesce(sqrt((l.v <-> r.v)^2 + (l.p[0] - r.p[0])^2), 0) <= 1', false), ('coalesce((l.p[0] - r.p[0])^2 + (l.y - r.y)*(l.y - r.y), 0.5) = 0.5', true),
  ('(l.v <-> r.v <= r.r OR r.v IS NULL)', false), ('coalesce(l.v <-> r.v, 0) <= r.r', true)) c (clause, uses_node);
PREPARE besides(float8) AS SELECT l.id, r.id FROM strange l JOIN strange r ON l.v <-> r.v <= $1 OR r.v IS NULL;
PREPARE besides_boxed(float8) AS SELECT l.id, r.id FROM strange l LEFT JOIN strange r ON gpu_within(l.v, r.v, $1) OR r.v IS NULL;
SELECT same_rows(format('EXECUTE %s(%s)', p, r), true, format('NULL besides: %s, %s', p, r)) FROM unnest('{besides,besides_boxed}'::text[]) p, unnest('{"NULL",1,''NaN'',0}'::text[]) r;
RESET plan_cache_mode;
-- The great circle by hand, in columns of degrees.
CREATE TABLE degrees AS SELECT i AS id, 5 + (i * 7919 % 1000) / 100.0::float8 AS lon, 45 + (i * 104729 % 997) / 100.0::float8 AS lat, (45 + (i * 104729 % 997) / 100.0)::numeric(8, 4) AS exact FROM generate_series(1, 400) i;
INSERT INTO degrees VALUES (1001, 5, NULL, 45), (1002, NULL, NULL, 50), (1003, 365, 45, 45), (1004, 5, 135, 45), (1005, 'NaN', 45, 45), (1006, -175, -45, -45), (1007, 5, 90, 90), (1008, 100, 90, 90), (1009, 1e6, 45, 45);
ANALYZE degrees;
CREATE TABLE formulas (clause text, uses_node boolean);
INSERT INTO formulas VALUES
  ('6371 * 2 * asin(sqrt(power(sin(radians(r.lat - l.lat) / 2), 2) + cos(radians(l.lat)) * cos(radians(r.lat)) * power(sin(radians(r.lon - l.lon) / 2), 2))) <= 60', true),
  ('2 * 3959 * asin(sqrt(sin((r.lat - l.lat) * pi() / 360) ^ 2 + cos(l.lat * pi() / 180) * cos(r.lat * pi() / 180) * sin((r.lon - l.lon) * pi() / 360) ^ 2)) < 40', true),
  ('60 > 6371 * acos(greatest(-1, least(1, sin(radians(l.lat)) * sin(radians(r.lat)) + cos(radians(l.lat)) * cos(radians(r.lat)) * cos(radians(l.lon - r.lon)))))', true),
  ('degrees(acos(least(1.0, cos(radians(l.lat)) * cos(radians(r.lat)) * cos(radians(r.lon) - radians(l.lon)) + sin(radians(l.lat)) * sin(radians(r.lat))))) * 111.045 <= 60', true),
  ('6371e3 * 2 * atan2(sqrt(h), sqrt(1 - h)) <= 60000', true), ('6371 * 2 * asin(sqrt(h)) <= 0', true), ('6371 * 2 * asin(sqrt(h)) <= 30000', true), ('6371 * 2 * asin(sqrt(h)) <= -1', true),
  ('-gpu_distance(ARRAY[l.lon, l.lat], ARRAY[r.lon, r.lat], ''haversine'') >= -0.0', true), ('gpu_distance(ARRAY[l.lon, l.lat], ARRAY[r.lon, r.lat], ''haversine'') <= ''-0''::float8', true),
  ('6371 * 2 * asin(sqrt(0.999 * h)) <= 60', false), ('6371 * acos(h) <= 60', false), ('asin(sin(radians(l.lat - r.lat))) <= 0.01', false), ('100 - 6371 * 2 * asin(sqrt(h)) >= 40', true),
  ('6371 * 2 * asin(sqrt(power(sin(radians(r.exact - l.exact) / 2), 2) + cos(radians(l.exact)) * cos(radians(r.exact)) * power(sin(radians(r.lon - l.lon) / 2), 2))) <= 60', true);
UPDATE formulas SET clause = replace(clause, 'h)', '(sin(radians(r.lat - l.lat) / 2) ^ 2 + cos(radians(l.lat)) * cos(radians(r.lat)) * sin(radians(r.lon - l.lon) / 2) ^ 2))');
SELECT same_rows(format('SELECT l.id, r.id FROM degrees l %s JOIN degrees r ON %s', kind, clause), uses_node, format('%s great circle: %s', kind, clause)) FROM formulas, unnest('{"",LEFT}'::text[]) kind;
-- Radii decide about the engine's pairs. The condition is asked where arithmetic rounds, and of odd rows.
SELECT is(property('Rechecked Pairs', 'SELECT l.id, r.id FROM a l JOIN b r ON ' || clause), '0', clause || ' asks nothing')
FROM unnest('{l.v <-> r.v <= r.r,l.v <-> r.v <= l.r + r.r,"gpu_within(l.v, r.v, r.more)"}'::text[]) clause;
SELECT cmp_ok(property('Rechecked Pairs', 'SELECT l.id, r.id FROM a l JOIN b r ON l.p <-> r.p <= r.r')::int, '<', 3000, 'points are asked near the border');
SELECT is(property('Largest Radius', 'SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= l.more + r.r + 0.5')::float8, 6.5::float8, 'the engine has the largest radius');
-- Arithmetic that raises errors does so where PostgreSQL's own plan does.
CREATE TABLE extreme AS SELECT id, v, p, 2000000000 AS i, 1e300::float8 AS r, 1e-300::float8 AS tiny FROM a WHERE id <= 40;
UPDATE extreme SET i = 1, r = 1, tiny = 1 WHERE id <> 7;
CREATE TABLE minus AS SELECT id, v, CASE WHEN id = 7 THEN -2147483648 ELSE 1 END::int AS i, CASE WHEN id = 7 THEN -1e20 ELSE 1 END::float8 AS r FROM extreme;
ANALYZE extreme, minus;
SELECT same_rows(format('SELECT l.id, r.id FROM a l JOIN extreme r ON %s%s', before, clause), uses_node, format('extremes: %s%s', before, clause))
FROM (VALUES ('l.v <-> r.v <= r.i * 2', true), ('l.v <-> r.v <= r.r * 1e100', false), ('l.v <-> r.v <= r.tiny * 1e-100', false), ('l.v <-> r.v <= r.i + 200000000', true),
             ('l.v <-> r.v <= r.i + 2000000000', true), ('l.v <-> r.v <= r.i + l.i', true), ('gpu_within(l.v, r.v, r.i * 2)', true), ('l.v <-> r.v <= r.i - 1', true),
             ('l.v <-> r.v <= r.r * 2', true), ('l.v <-> r.v <= r.r::real + l.f', NULL), ('l.v <-> r.v <= r.tiny * 1e-9', true)) c (clause, uses_node),
  unnest('{"","r.id <> 7 AND "}'::text[]) before;
SELECT same_rows('SELECT l.id, r.id FROM a l JOIN minus r ON ' || clause, NULL, 'extremes: ' || clause)
FROM unnest('{l.v <-> r.v <= abs(r.i) * 2,gpu_within(l.v\, r.v\, r.r * 2),l.v <-> r.v <= r.r * 2}'::text[]) clause;
-- A radius below 0 is an error of gpu_within, if a pair gets there.
SELECT same_rows('SELECT l.id, r.id FROM a l JOIN b r ON gpu_within(l.v, r.v, r.r)', true, 'an error');
SELECT same_rows('SELECT l.id, r.id FROM a l JOIN b r ON r.r >= 0 AND gpu_within(l.v, r.v, r.r)', true, 'no error');
-- The radius of all pairs is computed when a pair fulfils the conditions before it: then its error is raised, and else it is none.
CREATE TABLE radius AS SELECT * FROM (VALUES (1, 2.0::float8), (2, 0), (3, 3), (3, 4)) t(kind, r);
CREATE TABLE words AS SELECT i AS id, ARRAY[i % 67, i % 61]::float8[] AS v, 'A' || i % 97 AS name, i % 5 AS grp FROM generate_series(1, 4000) i;
ANALYZE radius, words;
SELECT same_rows(format('SELECT l.id, r.id FROM a l JOIN b r ON %s l.v <-> r.v <= %s', before, radius), NULL, format('%s%s', before, radius))
FROM unnest('{"","l.grp = r.grp AND ","l.grp = r.grp + 10 AND ","l.grp = r.id % 7 - 20::bigint AND ","lower(l.p::text) = upper(r.p::text) || ''x'' AND ","l.grp > r.grp + 10 AND ","l.id < r.id AND l.grp = r.grp AND ","l.grp = r.grp AND l.i = r.i + 100 AND ","l.grp = r.grp AND l.i + r.i > 100 AND "}'::text[]) before,
  unnest('{"(SELECT r FROM radius WHERE kind = 1)","(SELECT r FROM radius WHERE kind = 3)","(SELECT r FROM radius WHERE kind = 4)","1 / (SELECT r FROM radius WHERE kind = 2)"}'::text[]) radius;
SELECT same_rows(format('SELECT z.r, (SELECT count(*) FROM a l JOIN b r ON %s l.v <-> r.v <= 1 / z.r) FROM radius z WHERE kind <> %s', before, kind), NULL, format('an outer value: %s%s', before, kind))
FROM unnest('{"","l.grp = r.grp AND ","l.grp = r.grp + 10 AND "}'::text[]) before, unnest('{2,3}'::int[]) kind;
SELECT same_rows(format('SELECT kind, (SELECT count(*) FROM a l JOIN b r ON l.grp = r.grp + (z.kind - 1) * 10 AND l.v <-> r.v <= (SELECT r FROM radius WHERE kind = %s)) FROM radius z WHERE %s ORDER BY kind %s', radius, which, direction),
  NULL, format('outer values before the radius: %s, %s, %s', radius, which, direction))
FROM unnest('{1,3}'::int[]) radius, unnest('{true,kind > 1}'::text[]) which, unnest('{ASC,DESC}'::text[]) direction;
SELECT same_rows(format('SELECT l.id, n.id FROM a l CROSS JOIN LATERAL (SELECT r.id FROM b r WHERE %s l.v <-> r.v <= (SELECT r FROM radius WHERE kind = %s) ORDER BY l.v <-> r.v, r.id LIMIT 2) n', before, kind),
  NULL, format('nearest rows: %s%s', before, kind)) FROM unnest('{"","l.grp <> r.grp AND ","l.grp = r.grp + 10 AND "}'::text[]) before, unnest('{1,3}'::int[]) kind;
-- Where no pair does that is known from the values of equalities, not from all pairs.
SET statement_timeout = '3s';
SELECT same_rows(format('SELECT count(*) FROM words l JOIN words r ON %s AND l.v <-> r.v <= (SELECT r FROM radius WHERE kind = 1)', condition), true, 'not from all pairs: ' || condition)
FROM unnest('{lower(l.name) = r.name,lower(l.name) = r.name AND l.grp = r.grp,l.grp = r.grp AND l.name = lower(r.name)}'::text[]) condition;
RESET statement_timeout;
SELECT same_rows('SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= r.r ORDER BY l.v <-> r.v, 1, 2 LIMIT 10', true, 'the nearest');
SELECT same_rows('SELECT l.id, s.id FROM a l, LATERAL (SELECT id FROM b r WHERE l.v <-> r.v <= r.r ORDER BY l.v <-> r.v, id LIMIT 2) s', NULL, 'LATERAL');
SELECT same_rows('SELECT l.id, r.id, t.id FROM a l JOIN b r ON l.v <-> r.v <= r.more JOIN b t ON l.v <-> t.v <= r.more + t.more AND t.grp = r.grp', NULL, 'three tables');
SELECT same_rows('SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= r.r AND l.grp = r.grp AND abs(l.i - r.i) <= 4', NULL, 'with keys');
SELECT same_rows('SELECT l.id, r.id FROM a l JOIN b r ON ARRAY[l.x, l.y / (r.id - r.id + 1)] <-> r.v <= r.r', NULL, 'an operand of both');
SELECT same_rows('SELECT l.id, r.id FROM a l JOIN b r ON ARRAY[l.x * 2, l.y] <-> r.v <= l.r', true, 'an operand that is computed');
SELECT is(under_limit('SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= l.r + r.more', '64kB'),
  bag('SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= l.r + r.more'), 'little memory');
-- Few rows of a much larger radius do not widen the search of all: rows are joined in classes by their radii.
CREATE TABLE wide AS SELECT i AS id, 1 AS grp, i % 13 AS i, ARRAY[i % 50, i / 50]::float8[] AS v, point(i % 50, i / 50) AS p, CASE WHEN i % 500 = 7 THEN 1000 + i ELSE 1 END::float8 AS r
  FROM generate_series(1, 2000) i;
ANALYZE wide;
SELECT same_rows(format(query, 'l.' || t || ' <-> r.' || t || ' <= r.r', 'wide', 'wide'), true, format('wide rows, %s, %s', name, t)) FROM kinds, unnest('{v,p}'::text[]) t;
SELECT is(property('Radius Classes', query) || ' ' || property('Largest Radius', query), '2 2507', 'classes: ' || query)
FROM unnest('{SELECT l.id FROM wide l JOIN wide r ON l.v <-> r.v <= r.r,SELECT l.id FROM wide l JOIN wide r ON l.p <-> r.p <= l.r}'::text[]) query;
SELECT cmp_ok(property('Candidate Pairs', 'SELECT l.id FROM wide l JOIN wide r ON l.v <-> r.v <= r.r')::int, '<', 100000, 'few candidates');
SELECT same_rows('SELECT l.id, r.id FROM wide l JOIN wide r ON l.v <-> r.v <= r.r + l.r', true, 'wide rows of both sides');
-- Nor do many.
CREATE TABLE classes AS SELECT i AS id, i % 7 AS grp, i % 13 AS i, ARRAY[i * 37 % 211, i * 61 % 199]::float8[] AS v, point(i * 37 % 211, i * 61 % 199) AS p,
    CASE WHEN i % 20 = 3 THEN 30 + i % 7 WHEN i % 5 = 1 THEN 5 WHEN i % 31 = 0 THEN 0 WHEN i % 37 = 0 THEN -1 WHEN i % 41 = 0 THEN NULL ELSE 1 END::float8 AS r
  FROM generate_series(1, 1500) i;
ANALYZE classes;
SELECT same_rows(format(query, clause, 'classes', 'classes'), true, format('classes, %s, %s', name, clause)) FROM kinds, unnest(ARRAY['l.v <-> r.v <= r.r',
  'l.v <-> r.v < l.r', 'l.p <-> r.p <= r.r', 'l.v <-> r.v <= l.r + r.r']) clause;
SELECT is(property('Radius Classes', 'SELECT l.id FROM classes l JOIN classes r ON l.v <-> r.v <= r.r')::int, 3, 'classes');
SELECT is(property('Radius Classes', 'SELECT l.id FROM classes l JOIN classes r ON l.v <-> r.v <= r.i'), NULL, 'no classes');
SELECT cmp_ok(property('Pairs', query)::bigint, '>=', property('Actual Rows', query)::float8::bigint, 'pairs of all classes are counted')
FROM (VALUES ('SELECT l.id FROM classes l JOIN classes r ON l.v <-> r.v <= r.r')) q(query);
SELECT is(under_limit('SELECT l.id, r.id FROM classes l JOIN classes r ON l.v <-> r.v <= l.r', limits),
  bag('SELECT l.id, r.id FROM classes l JOIN classes r ON l.v <-> r.v <= l.r'), 'classes under ' || limits) FROM unnest('{64kB,128kB,256kB,512kB,1MB}'::text[]) limits;
SELECT same_rows('SELECT g.i, s.n FROM generate_series(0, 2) g(i), LATERAL (SELECT count(*) AS n FROM classes l JOIN classes r ON l.v <-> r.v <= r.r + g.i OFFSET 0) s', NULL,
  'classes again and again');
SELECT same_rows('SELECT l.id, r.id FROM classes l JOIN classes r ON l.v <-> r.v <= r.r LIMIT 0', NULL, 'classes and a limit');
SET work_mem = '64kB';
SELECT same_rows('SELECT l.id, r.id, repeat(l.id::text, 300) FROM classes l JOIN classes r ON l.v <-> r.v <= r.r', true, 'classes, rows in a file');
RESET work_mem;
SET work_mem = '64kB';
SELECT same_rows('SELECT l.id, r.id, repeat(l.id::text, 300) FROM a l JOIN b r ON l.v <-> r.v <= r.r', true, 'rows in a file');
RESET work_mem;

-- ---- One of several radii
SELECT same_rows(format(query, clause, 'a', 'b'), true, format('%s: %s', name, clause)) FROM kinds, unnest(ARRAY['(l.v <-> r.v <= 1 OR l.v <-> r.v <= 3)',
  '(l.v <-> r.v < 3 OR 2 > l.v <-> r.v OR l.v <-> r.v < 0)', '(l.p <-> r.p <= 1 OR l.p <-> r.p <= 2.5)']) clause;
SELECT same_rows('SELECT l.id, r.id FROM odd l JOIN odd r ON ' || clause, true, clause) FROM unnest(ARRAY['(l.v <-> r.v <= 1 OR l.v <-> r.v <= ''NaN'')',
  '(l.p <-> r.p <= 1 OR l.p <-> r.p <= ''Infinity'')', '(l.p <-> r.p < -1 OR l.p <-> r.p < 0)']) clause;
PREPARE alternatives(float8, float8) AS SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= $1 OR l.v <-> r.v <= $2;
SET plan_cache_mode = force_generic_plan;
SELECT same_rows(format('EXECUTE alternatives(%s, %s)', one, other), true, format('radii %s and %s', one, other))
FROM unnest('{NULL,1,NaN}'::text[]) x, unnest('{NULL,3,-1}'::text[]) y, quote_nullable(nullif(x, 'NULL')) one, quote_nullable(nullif(y, 'NULL')) other;
RESET plan_cache_mode;
SELECT same_rows('SELECT l.id, r.id FROM a l JOIN b r ON ' || clause, false, 'not by the node: ' || clause) FROM unnest(ARRAY[
  '(l.v <-> r.v <= 1 OR l.p <-> r.p <= 3)', '(l.v <-> r.v <= 1 OR l.grp = 3)', '(l.v <-> r.v <= 1 OR l.v <-> r.v <= r.r)']) clause;

-- ---- Columns
CREATE TABLE points AS
  SELECT i AS id, i % 7 AS grp, i * 7 % 13 AS i, (i * 5 % 11)::smallint AS s, (i * 7 % 13)::float8 AS x, CASE WHEN i % 23 <> 0 THEN (i * 5 % 11)::float8 END AS y,
    (i * 3 % 7)::float8 + 0.1 AS z, ((i * 7 % 13) / 3.0)::float4 AS f, ((i * 5 % 11) / 7.0)::float4 AS g, i::bigint AS far, (i % 13)::numeric AS n FROM generate_series(1, 200) i;
INSERT INTO points SELECT 1000 + row_number() OVER (), 3, 5, 5, x, y, 0, 0, 0, 1, 1 FROM (VALUES ('NaN'::float8, 0::float8), ('NaN', 'NaN'), ('Infinity', 0),
  ('-Infinity', 'Infinity'), ('-0', '-0'), (0.1, 0.2), (0.3, 0.1), (0.30000000000000004, 0.1), (5.000000000000001, 0), (4.999999999999999, 0),
  (3.0000000000000004, 4), (1e16, 1), (1e16, 3), (1e150, 0), (16777217, 0), (16777216, 0)) odd(x, y);
CREATE TABLE others AS SELECT * FROM points WHERE id % 3 <> 0;
ANALYZE points, others;
CREATE TABLE distances (clause text, exact boolean);
INSERT INTO distances VALUES
  ('sqrt((l.x - r.x)^2 + (l.y - r.y)^2) <= 5', false), ('sqrt((l.x - r.x)*(l.x - r.x) + (r.y - l.y)*(r.y - l.y)) <= 5', true),
  ('sqrt(power(l.x - r.x, 2) + pow(l.y - r.y, 2.0)) < 5', false), ('|/ ((l.x - r.x)^2 + (l.y - r.y)^2) <= 5', false),
  ('(l.x - r.x)^2 + (l.y - r.y)^2 <= 25', false), ('25 > (l.x - r.x)^2 + (r.y - l.y)^2', false),
  ('5 >= sqrt((l.x - r.x)^2 + (l.y - r.y)^2 + (l.z - r.z)^2)', false),
  ('sqrt((l.x - r.x)*(l.x - r.x) + ((l.y - r.y)*(l.y - r.y) + (l.z - r.z)*(l.z - r.z))) <= 5', false),
  ('sqrt((l.i - r.i)^2 + (l.s - r.s)^2) <= 5', false), ('(l.i - r.i)*(l.i - r.i) + (l.s - r.s)*(l.s - r.s) <= 25', false),
  ('sqrt((l.i - r.i)*(l.i - r.i) + (l.s - r.s)*(l.s - r.s)) < 5', true), ('sqrt((l.f - r.f)^2 + (l.g - r.g)^2) <= 1', false),
  ('(l.f - r.f)*(l.f - r.f) + (l.g - r.g)*(l.g - r.g) <= 1::float4', false), ('sqrt((l.f - r.x)^2 + (l.i - r.y)^2) <= 3', false),
  ('NOT sqrt((l.x - r.x)^2 + (l.y - r.y)^2) > 5', false), ('sqrt((l.x - r.x)^2 + (l.y - r.y)^2) BETWEEN 0 AND 5', false),
  ('sqrt((l.x - r.x)^2) <= 1', false), ('(l.x - r.x)^2 < 0.5', false), ('sqrt((l.x * 2 - r.x)^2 + (l.y - r.y - 0)^2) <= 5', NULL),
  ('sqrt((l.x - r.x)^2 + (l.y - r.y)^2) <= 0', false), ('(l.x - r.x)^2 + (l.y - r.y)^2 <= 0', false), ('sqrt((l.x - r.x)^2 + (l.y - r.y)^2) <= -1', false),
  ('sqrt((l.x - r.x)^2 + (l.y - r.y)^2) < 0', false), ('sqrt((l.x - r.x)^2 + (l.y - r.y)^2) <= ''NaN''', false), ('(l.x - r.x)^2 + (l.y - r.y)^2 < ''Infinity''', false),
  ('(l.x - r.x)^2 + (l.y - r.y)^2 <= ''Infinity''', false), ('sqrt((l.x - r.x)*(l.x - r.x) + (l.y - r.y)*(l.y - r.y)) <= ''NaN''', true),
  ('sqrt((l.x - r.x)*(l.x - r.x) + (l.y - r.y)*(l.y - r.y)) <= ''Infinity''', true), ('sqrt((l.x - r.x)^2 + (l.y - r.y)^2) <= (SELECT 5.0::float8)', false),
  ('sqrt((l.x - r.x)^2 + (l.y - r.y)^2) <= 1.4142135623730951', false), ('sqrt((l.x - r.x)^2 + (l.y - r.y)^2) <= 1.414213562373095', false),
  ('(l.x - r.x)^2 + (l.y - r.y)^2 <= 2', false), ('(l.x - r.x)^2 + (l.y - r.y)^2 < 2', false),
  ('abs(l.x - r.x) + abs(l.y - r.y) <= 3', true), ('abs(l.i - r.i) + (abs(l.s - r.s) + abs(r.x - l.x)) < 4', false), ('abs(l.f - r.f) + abs(l.g - r.g) <= 1', false),
  ('3 - (abs(l.x - r.x) + abs(l.y - r.y)) >= 0.5', false), ('abs(l.n - r.n) + abs(l.far - r.far) <= 30', false), ('abs(l.x - r.x) + abs(l.y - r.y) < ''Infinity''', true),
  ('abs(l.x - r.x) <= 2 AND abs(l.y - r.y) <= 3', NULL), ('abs(r.x - l.x) < 2 AND 2 > abs(l.y - r.y) AND abs(l.z - r.z) <= 1', NULL),
  ('abs(l.i - r.i) <= 2 AND abs(l.s - r.s) < 3', NULL), ('abs(l.f - r.f) <= 1 AND abs(l.g - r.g) <= 0.25', NULL),
  ('abs(l.x - r.x) <= 0 AND abs(l.y - r.y) <= ''Infinity''', NULL), ('abs(l.x - r.x) <= ''NaN'' AND abs(l.y - r.y) <= 3', NULL);
SELECT same_rows(format(query, clause, 'points', 'others'), true, format('%s: %s', name, clause)) FROM kinds, distances WHERE exact IS NOT NULL AND name <> 'others';
SELECT same_rows(format(query, clause, 'points', 'others'), NULL, format('%s: %s', name, clause)) FROM kinds, distances WHERE exact IS NULL OR name = 'others';
SELECT same_rows('SELECT l.id, r.id FROM points l JOIN points r ON ' || clause, NULL, 'of one table: ' || clause) FROM distances;
-- Columns of bigint and numeric, some of which float8 does not hold.
CREATE TABLE whole AS SELECT i AS id, i % 7 AS grp, i % 13 AS i, CASE WHEN i % 19 <> 0 THEN (i * 7 % 13)::bigint END AS b, (i * 5 % 11)::bigint AS c, (i * 7 % 13) / 8.0 AS n,
  (i * 5 % 11) / 7.0::numeric AS m FROM generate_series(1, 150) i;
CREATE TABLE more AS SELECT * FROM whole WHERE id % 3 <> 0;
CREATE TABLE large AS SELECT * FROM whole WHERE id <= 60;
INSERT INTO large SELECT 1000 + row_number() OVER (), 3, 5, b, b - 3, n, n FROM (VALUES (9007199254740993, 1e20), (9007199254740992, 1e20 + 1e-10), (9007199254740994, 1e-150), (4503599627370497, 1e300),
  (4503599627370496, 1e-400), (4611686018427387904, 'NaN'::numeric), (-4503599627370497, -1e20), (4611686018427387905, 100000000000.000000001), (0, 100000000000), (1, 'Infinity'), (3, '-Infinity'),
  (NULL, 0), (7, NULL)) odd(b, n);
ANALYZE whole, more, large;
CREATE TABLE wide_distances (clause text, uses_node boolean);
INSERT INTO wide_distances VALUES
  ('sqrt((l.b - r.b)^2 + (l.c - r.c)^2) <= 5', true), ('(l.b - r.b)*(l.b - r.b) + (l.c - r.c)*(l.c - r.c) < 25', true), ('abs(l.b - r.b) <= 2 AND abs(l.c - r.c) < 3', NULL),
  ('abs(l.b - r.b) <= 2::bigint AND abs(l.c - r.c) < 3', NULL), ('sqrt((l.b - r.i)^2 + (r.c - l.b)^2) <= 4', true), ('|/ ((l.b - r.b)^2 + (l.i - r.i)^2) < 3', true),
  ('sqrt((l.n - r.n)^2 + (l.m - r.m)^2) <= 0.5', true), ('sqrt((l.n - r.n)*(l.n - r.n) + (l.m - r.m)*(l.m - r.m)) < 0.5', true), ('(l.n - r.n)^2 + (l.m - r.m)^2 <= 0.25', true),
  ('(l.n - r.n)*(l.n - r.n) + power(l.m - r.m, 2) < 2', true), ('abs(l.n - r.n) < 0.25 AND abs(l.m - r.m) <= 0.5', NULL), ('0.5 >= sqrt((l.n - r.n)^2 + (l.i - r.n)^2)', true),
  ('sqrt((l.n - r.n)^2 + (l.b - r.b)^2) BETWEEN 0 AND 3', false), ('sqrt((l.n - r.n)^2) <= 0', false), ('sqrt((l.n - r.n)^2) <= ''NaN''', false), ('sqrt((l.n - r.n)^2) <= -1', false),
  ('sqrt((l.n - r.n)^2) <= 1e-20', true), ('sqrt((l.n - r.n)^2) <= 1e50', false), ('sqrt((l.n - r.n)^2 + (l.m - r.m)^2) <= r.m', false), ('(l.n - r.n)^3 <= 1', false),
  ('sqrt((l.b - r.b)^2) <= 0', true), ('(l.b - r.b)*(l.b - r.b) <= 10000000000', true);
SELECT same_rows(format(query, clause, 'whole', 'more'), CASE WHEN name <> 'others' THEN uses_node END, format('%s: %s', name, clause)) FROM kinds, wide_distances;
SELECT same_rows('SELECT l.id, r.id FROM large l JOIN large r ON CASE WHEN abs(l.id - r.id) < 1000 OR l.c IS NOT NULL THEN ' || clause || ' END', NULL, 'wrapped: ' || clause) FROM wide_distances
WHERE clause NOT LIKE '%*%' AND clause NOT LIKE '%.b%';
SELECT same_rows(format(query, clause, 'large', 'large'), NULL, format('large, %s: %s', name, clause)) FROM kinds, wide_distances WHERE clause NOT LIKE '%*%';

SELECT is(property('Counts', 'SELECT count(*) FROM points l JOIN others r ON ' || clause), 'pairs', 'counted: ' || clause) FROM distances WHERE exact;
SELECT is(property('Rechecked Pairs', 'SELECT l.id, r.id FROM points l JOIN others r ON ' || clause), '0', 'the engine''s arithmetic: ' || clause)
FROM distances WHERE exact AND clause NOT LIKE '%Inf%' AND clause NOT LIKE '%NaN%';
SELECT cmp_ok(property('Rechecked Pairs', 'SELECT l.id, r.id FROM points l JOIN others r ON sqrt((l.x - r.x)^2 + (l.y - r.y)^2) <= 5')::int, '<', 3000, 'asked near the border');
SELECT is(property('Join Method', 'SELECT l.id, r.id FROM points l JOIN others r ON (l.x - r.x)^2 + (l.y - r.y)^2 <= 25'), 'Range Join', 'a range join');
SELECT ok(has_node('SELECT l.id, r.id FROM points l JOIN others r ON ' || clause), 'a box by the node: ' || clause)
FROM distances, force_node(true) WHERE clause LIKE 'abs%';
-- What differs from a distance.
SELECT same_rows('SELECT l.id, r.id FROM points l JOIN others r ON ' || clause, false, 'not by the node: ' || clause) FROM unnest(ARRAY[
  'sqrt((l.x - r.x)^2 - (l.y - r.y)^2 + 1e7) <= 3163', '(l.x - r.x)*(r.x - l.x) + (l.y - r.y)^2 <= 4', '(l.x - r.x)^3 + (l.y - r.y)^2 <= 4', 'abs(l.x - r.x) <= 3',
  '(l.x - r.x)^2 + (l.y - l.z)^2 <= 4', '(l.x - r.x)^2 + (l.y - r.y)^2 > 400',
  'sqrt((l.x - r.x)^2 + (l.y - r.y)^2) <= r.z', 'abs(l.x - r.x) <= r.z AND abs(l.y - r.y) <= 1', '(l.x - r.x)^2 + l.y <= 4', 'sqrt((l.x + r.x)^2 + (l.y - r.y)^2) <= 3']) clause;
-- An error of squares that are out of range is PostgreSQL's; the node finds the pairs that are near.
CREATE TABLE far AS SELECT i AS id, 1e200 * i AS x, i::float8 AS y FROM generate_series(1, 5) i;
SELECT same_rows('SELECT l.id, r.id FROM far l JOIN far r ON l.id = r.id AND sqrt((l.x - r.x)^2 + (l.y - r.y)^2) <= 5', NULL, 'none overflows');

SELECT * FROM finish();
ROLLBACK;
