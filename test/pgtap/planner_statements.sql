-- Joins in plain SQL over a distance, in the statements around them: prepared, in cursors, scanned again and again,
-- in what changes rows, behind views and policies, in functions, explained. With the node GpuSimilarityJoin and
-- without it they do the same.
BEGIN;
SELECT * FROM no_plan();
CREATE SCHEMA planner_statements;
SET search_path = planner_statements, public;
SET jit = off;
SET extra_float_digits = 1;

\ir same_rows.psql

-- Statements one after the other, and what those that return rows returned; then all of it is undone.
CREATE FUNCTION outcome(steps text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  step text;
  lines text[] := '{}';
BEGIN
  FOREACH step IN ARRAY steps LOOP
    IF step ~* '^\s*(select|with|table|values|execute|fetch)\M' OR step ~* '\mreturning\M' THEN
      lines := lines || bag(step) || ARRAY['--'];
    ELSE
      EXECUTE step;
    END IF;
  END LOOP;
  RAISE EXCEPTION SQLSTATE 'P0099';
EXCEPTION
  WHEN SQLSTATE 'P0099' THEN RETURN lines;
  WHEN OTHERS THEN RETURN lines || ARRAY['ERROR ' || SQLSTATE || ' ' || SQLERRM];
END $$;

CREATE FUNCTION same_outcome(description text, VARIADIC steps text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  plain text[];
  joined text[];
BEGIN
  PERFORM force_node(false);
  plain := outcome(steps);
  PERFORM force_node(true);
  joined := outcome(steps);
  PERFORM force_node(false);
  RETURN NEXT ok(plain = joined AND NOT EXISTS (SELECT FROM unnest(plain) l WHERE l LIKE 'ERROR %'),
    description || ': the same outcome');
  IF plain <> joined OR EXISTS (SELECT FROM unnest(plain) l WHERE l LIKE 'ERROR %') THEN
    RETURN NEXT diag(array_to_string(steps, '; '));
    RETURN NEXT diag('without: ' || coalesce(
      (SELECT string_agg(r, ' ') FROM (SELECT unnest(plain) EXCEPT ALL SELECT unnest(joined) LIMIT 5) t(r)), ''));
    RETURN NEXT diag('with: ' || coalesce(
      (SELECT string_agg(r, ' ') FROM (SELECT unnest(joined) EXCEPT ALL SELECT unnest(plain) LIMIT 5) t(r)), ''));
    RETURN NEXT diag(format('without it ends in %s, with it in %s', plain[cardinality(plain)],
      joined[cardinality(joined)]));
  END IF;
END $$;

CREATE TABLE a (id int PRIMARY KEY, grp int, v float8[], p point, note text, label int);
INSERT INTO a SELECT i, i % 7, CASE WHEN i % 17 <> 0 THEN ARRAY[i * 7 % 23, i * 5 % 19] END,
  point(i * 7 % 23, i * 5 % 19), 'row ' || i, i FROM generate_series(1, 200) i;
CREATE TABLE b AS SELECT id + 1000 AS id, grp, v, p, note, label FROM a WHERE id % 3 <> 0;
INSERT INTO b SELECT id + 1000, grp, v, p, note, label FROM b WHERE id % 10 = 0;
CREATE TABLE radii (name text, eps float8);
INSERT INTO radii VALUES ('none', NULL), ('zero', 0), ('one', 1), ('three', 3), ('seven', 7), ('three again', 3),
  ('negative', -1), ('one again', 1);
ANALYZE a, b, radii;

-- Prepared, with parameters in the clause and beside it. A custom plan knows them, a generic plan does not.
PREPARE within(float8) AS SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= $1;
PREPARE below(float8) AS SELECT l.id, r.id FROM a l LEFT JOIN b r ON $1 > l.p <-> r.p;
PREPARE called(float8) AS SELECT l.id FROM a l WHERE EXISTS (SELECT FROM b r WHERE gpu_within(l.v, r.v, $1));
PREPARE lonely(float8) AS SELECT l.id FROM a l WHERE NOT EXISTS (SELECT FROM b r WHERE l.v <-> r.v <= $1);
PREPARE filtered(float8, int, text) AS
  SELECT l.id, r.id, $3 || l.note FROM a l JOIN b r ON l.v <-> r.v <= $1 + 1 AND l.grp <> $2 WHERE r.id > $2 + 1050;
PREPARE moved(float8[], float8) AS
  SELECT l.id, r.id FROM a l JOIN b r ON ARRAY[l.v[1] + ($1)[1], l.v[2] + ($1)[2]] <-> r.v <= $2 WHERE l.v IS NOT NULL
    AND r.v IS NOT NULL;
PREPARE typeless AS SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= $1 ORDER BY 1, 2 LIMIT $2;
SET plan_cache_mode = force_custom_plan;
SELECT same_rows(format('EXECUTE %s(%s)', name, eps), CASE WHEN eps IN ('1', '3', '7.5') THEN true END,
  format('custom plan: %s(%s)', name, eps))
FROM unnest('{within,below,called,lonely}'::text[]) name,
  unnest('{0,1,3,7.5,"NULL",-1,''NaN'',''Infinity''}'::text[]) eps;
SELECT same_rows(query, true, 'custom plan: ' || query)
FROM unnest(ARRAY['EXECUTE filtered(2, 3, ''x'')', 'EXECUTE moved(''{1,2}'', 2)', 'EXECUTE typeless(3, 10)']) query;
SELECT same_rows(query, NULL, 'custom plan: ' || query)
FROM unnest(ARRAY['EXECUTE filtered(2, NULL, ''x'')', 'EXECUTE filtered(2, 3, NULL)', 'EXECUTE moved(NULL, 2)',
  'EXECUTE typeless(3, NULL)', 'EXECUTE typeless(NULL, 3)', 'EXECUTE typeless(3, 0)']) query;
SET plan_cache_mode = force_generic_plan;
SELECT same_rows(format('EXECUTE %s(%s)', name, eps), true, format('generic plan: %s(%s)', name, eps))
FROM unnest('{within,below,called,lonely}'::text[]) name,
  unnest('{0,1,3,7.5,"NULL",-1,''NaN'',''Infinity''}'::text[]) eps;
SELECT same_rows(query, true, 'generic plan: ' || query)
FROM unnest(ARRAY['EXECUTE filtered(2, 3, ''x'')', 'EXECUTE moved(''{1,2}'', 2)', 'EXECUTE typeless(3, 10)',
  'EXECUTE filtered(2, NULL, ''x'')', 'EXECUTE filtered(2, 3, NULL)', 'EXECUTE moved(NULL, 2)',
  'EXECUTE typeless(3, NULL)', 'EXECUTE typeless(NULL, 3)', 'EXECUTE typeless(3, 0)']) query;
SELECT same_outcome('one generic plan, other parameters each time', 'EXECUTE within(1)', 'EXECUTE within(7)',
  'EXECUTE within(NULL)', 'EXECUTE within(0)', 'INSERT INTO b SELECT id + 5000, grp, v, p, note, 0 FROM a WHERE id < 9',
  'EXECUTE within(1)', 'TRUNCATE b', 'EXECUTE within(1)', 'EXECUTE below(3)');
RESET plan_cache_mode;
SELECT same_outcome('the plan that turns generic by itself',
  VARIADIC (SELECT array_agg(format('EXECUTE within(%s)', i % 4)) FROM generate_series(1, 9) i));
SELECT same_outcome('a table that is altered under a plan', 'EXECUTE within(2)',
  'ALTER TABLE b ADD extra int DEFAULT 7', 'EXECUTE within(2)', 'ALTER TABLE b DROP COLUMN note', 'EXECUTE within(2)',
  'SELECT l, r FROM a l JOIN b r ON l.v <-> r.v <= 1', 'SELECT r, l.id FROM a l LEFT JOIN b r ON l.v <-> r.v < 1');

-- Cursors. SCROLL goes back, over what is kept of the rows.
SELECT same_outcome('a cursor in order',
  'DECLARE c CURSOR FOR SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 3 ORDER BY 1, 2',
  'FETCH c', 'FETCH 7 FROM c', 'MOVE 20 FROM c', 'FETCH NEXT FROM c', 'FETCH ALL FROM c', 'FETCH c', 'CLOSE c');
SELECT same_outcome('a cursor without order, all of it',
  'DECLARE c NO SCROLL CURSOR FOR SELECT l.id, r FROM a l LEFT JOIN b r ON l.v <-> r.v <= 3', 'FETCH ALL FROM c');
SELECT same_outcome('a scrolling cursor in order',
  'DECLARE c SCROLL CURSOR FOR SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 3 ORDER BY 1, 2',
  'FETCH 10 FROM c', 'FETCH BACKWARD 3 FROM c', 'FETCH LAST FROM c', 'FETCH PRIOR FROM c', 'FETCH ABSOLUTE 5 FROM c',
  'FETCH RELATIVE -2 FROM c', 'MOVE FIRST FROM c', 'FETCH 2 FROM c', 'FETCH ABSOLUTE -3 FROM c',
  'FETCH BACKWARD ALL FROM c', 'FETCH ALL FROM c');
SELECT same_outcome('a scrolling cursor without order, there and back',
  'DECLARE c SCROLL CURSOR FOR SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 3', 'MOVE 30 FROM c',
  'MOVE BACKWARD ALL FROM c', 'FETCH ALL FROM c', 'FETCH BACKWARD ALL FROM c', 'FETCH ALL FROM c');
SELECT same_outcome('a cursor sees the rows that there were',
  'DECLARE c CURSOR FOR SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 3', 'DELETE FROM b', 'FETCH ALL FROM c');
SELECT same_outcome('two cursors in turn',
  'DECLARE c CURSOR FOR SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 3 ORDER BY 1, 2',
  'DECLARE d CURSOR FOR SELECT r.id, l.id FROM a l JOIN b r ON l.v <-> r.v <= 2 ORDER BY 1, 2',
  'FETCH 5 FROM c', 'FETCH 5 FROM d', 'FETCH 50 FROM c', 'CLOSE c', 'FETCH 50 FROM d');
CREATE FUNCTION fetched(direction text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  line record;
  lines text[] := '{}';
BEGIN
  FOR line IN EXECUTE 'FETCH ' || direction LOOP
    lines := lines || line::text;
  END LOOP;
  RETURN lines;
END $$;
SELECT force_node(true) \gset
DECLARE c SCROLL CURSOR FOR SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 3;
SELECT fetched('9 FROM c') AS ahead \gset
SELECT fetched('BACKWARD 4 FROM c') AS back \gset
SELECT is(:'back'::text[], (:'ahead'::text[])[8:8] || (:'ahead'::text[])[7:7] || (:'ahead'::text[])[6:6]
  || (:'ahead'::text[])[5:5], 'backward come the same rows, the other way round');
SAVEPOINT before;
DECLARE d CURSOR FOR SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 3;
SELECT cardinality(fetched('5 FROM d')) AS five \gset
ROLLBACK TO before;
SELECT is(ROW(:five, cardinality(fetched('ALL FROM c'))), ROW(5, count(*)::int - 5),
  'a cursor outlives a savepoint, and a younger one that goes with it')
FROM a l, b r WHERE l.v <-> r.v <= 3;
CLOSE c;
SELECT force_node(false) \gset

-- Scanned again: with another eps, with other rows below, with the same, and after a LIMIT stopped it.
SELECT same_rows(query, description <> 'neighbours of each row', description) FROM (VALUES
  ($$ SELECT name, n FROM radii, LATERAL (SELECT count(*) AS n FROM a l JOIN b r ON l.v <-> r.v <= eps) s $$,
    'eps from the outer row'),
  ($$ SELECT name, s.* FROM radii, LATERAL (SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v < eps OFFSET 0) s $$,
    'eps from the outer row, behind a fence'),
  ($$ SELECT name, n FROM radii LEFT JOIN LATERAL (SELECT count(r.id) AS n FROM a l LEFT JOIN b r
      ON l.v <-> r.v <= eps) s ON true $$, 'eps from the outer row, left join'),
  ($$ SELECT name, n FROM radii, LATERAL (SELECT count(*) AS n FROM a l WHERE NOT EXISTS
      (SELECT FROM b r WHERE l.v <-> r.v <= eps)) s $$, 'eps from the outer row, anti join'),
  ($$ SELECT name, n FROM radii, LATERAL (SELECT count(*) AS n FROM a l WHERE EXISTS
      (SELECT FROM b r WHERE l.p <-> r.p < eps)) s $$, 'eps from the outer row, semi join'),
  ($$ SELECT name, n FROM radii, LATERAL (SELECT count(*) AS n FROM (SELECT * FROM a WHERE grp < eps OFFSET 0) l
      JOIN (SELECT * FROM b WHERE id % 7 >= eps OFFSET 0) r ON l.v <-> r.v <= 2) s $$, 'rows from the outer row'),
  ($$ SELECT name, n FROM radii, LATERAL (SELECT count(*) AS n FROM a l JOIN b r ON l.v <-> r.v <= 2
      AND l.grp + r.grp < eps) s $$, 'a filter from the outer row'),
  ($$ SELECT name, s.* FROM radii, LATERAL (SELECT l.id, r.id, name || l.note AS text FROM a l JOIN b r
      ON l.v <-> r.v <= 1 OFFSET 0) s $$, 'a column from the outer row'),
  ($$ SELECT name, s.* FROM radii, LATERAL (SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= eps
      ORDER BY l.id DESC, r.id LIMIT 5) s $$, 'a limit for each outer row'),
  ($$ SELECT name, n FROM radii, LATERAL (SELECT count(*) AS n FROM (SELECT 1 FROM a l JOIN b r ON l.v <-> r.v <= eps
      LIMIT 5) t) s $$, 'a limit that stops the node for each outer row'),
  ($$ SELECT name, (SELECT count(*) FROM a l JOIN b r ON l.v <-> r.v <= eps) FROM radii $$, 'a correlated subquery'),
  ($$ SELECT name, ARRAY(SELECT l.id FROM a l JOIN b r ON l.v <-> r.v <= eps AND l.id < 20 ORDER BY 1) FROM radii $$,
    'a correlated array'),
  ($$ SELECT name FROM radii WHERE EXISTS (SELECT FROM a l JOIN b r ON l.v <-> r.v < eps) $$, 'a correlated EXISTS'),
  ($$ SELECT name FROM radii WHERE 5 IN (SELECT l.id FROM a l JOIN b r ON l.v <-> r.v < eps) $$, 'a correlated IN'),
  ($$ SELECT o.id, (SELECT count(*) FROM b r WHERE o.v <-> r.v <= 2) FROM a o $$, 'neighbours of each row'),
  ($$ SELECT o.id, (SELECT count(*) FROM a l JOIN b r ON l.v <-> r.v <= o.grp AND l.id = o.id) FROM a o WHERE o.id < 60
    $$, 'a join for each row'),
  ($$ SELECT name, s.* FROM radii, (SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 1 OFFSET 0) s $$,
    'the same rows for each outer row'),
  ($$ SELECT name, s.id FROM radii LEFT JOIN (SELECT l.id FROM a l JOIN b r ON l.v <-> r.v <= 1 OFFSET 0) s
      ON s.id < eps $$, 'the same rows for each outer row, left join'),
  ($$ SELECT m.name, k.name, n FROM radii m, radii k, LATERAL (SELECT count(*) AS n FROM a l JOIN b r
      ON l.v <-> r.v <= m.eps AND l.grp < k.eps) s $$, 'two outer rows')
) AS corpus(query, description);
-- Nothing between a nested loop and the node keeps the rows.
SELECT same_outcome('again without a store between', 'SET LOCAL enable_material = off',
  'SET LOCAL enable_nestloop = on',
  'SELECT name, s.* FROM radii, (SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 1 OFFSET 0) s',
  'SELECT name, s.* FROM radii LEFT JOIN (SELECT l.id FROM a l JOIN b r ON l.v <-> r.v <= 1 OFFSET 0) s ON s.id < eps');

-- What changes rows, or locks them.
SELECT same_outcome(description, VARIADIC steps) FROM (VALUES
  ('FOR UPDATE', ARRAY['SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 2 FOR UPDATE']),
  ('FOR UPDATE OF one side', ARRAY['SELECT l.id, r.id FROM a l LEFT JOIN b r ON l.v <-> r.v <= 2 FOR UPDATE OF l']),
  ('FOR SHARE in a subquery',
    ARRAY['SELECT l.id, r.id FROM (SELECT * FROM a FOR SHARE) l JOIN b r ON l.v <-> r.v <= 2']),
  ('FOR KEY SHARE SKIP LOCKED', ARRAY['SELECT l.id FROM a l JOIN b r ON l.v <-> r.v <= 2 FOR KEY SHARE SKIP LOCKED']),
  ('UPDATE FROM', ARRAY['UPDATE a SET label = r.grp FROM b r WHERE a.v <-> r.v <= 0 AND a.grp = r.grp
      AND a.id + 1000 = r.id', 'TABLE a']),
  ('UPDATE where there is a neighbour', ARRAY['UPDATE a SET label = -label WHERE EXISTS (SELECT FROM b r
      WHERE a.v <-> r.v <= 1 AND r.grp = 3)', 'TABLE a']),
  ('UPDATE of what the join reads', ARRAY['UPDATE a SET v = NULL FROM b r WHERE a.v <-> r.v <= 1 AND r.grp = 3',
    'TABLE a', 'SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 1']),
  ('UPDATE with RETURNING', ARRAY['UPDATE a SET note = ''near'' FROM (SELECT DISTINCT l.id FROM a l JOIN b r
      ON l.v <-> r.v <= 1) s WHERE s.id = a.id RETURNING a.*']),
  ('DELETE USING', ARRAY['DELETE FROM a USING b r WHERE a.v <-> r.v <= 1 AND r.grp < 3', 'TABLE a']),
  ('DELETE where there is no neighbour', ARRAY['DELETE FROM a WHERE NOT EXISTS (SELECT FROM b r
      WHERE a.v <-> r.v <= 1) RETURNING a.id', 'TABLE a']),
  ('DELETE of the later ones of near rows', ARRAY['DELETE FROM a USING a r WHERE a.v <-> r.v < 2 AND a.id > r.id',
    'TABLE a']),
  ('DELETE in a CTE', ARRAY['WITH gone AS (DELETE FROM a WHERE grp = 2 RETURNING *)
      SELECT g.id, r.id FROM gone g JOIN b r ON g.v <-> r.v <= 2', 'TABLE a']),
  ('a join beside a DELETE', ARRAY['WITH gone AS (DELETE FROM a WHERE grp = 2 RETURNING id)
      SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 2']),
  ('INSERT SELECT', ARRAY['INSERT INTO a SELECT 10000 + row_number() OVER (ORDER BY l.id, r.id), r.grp, r.v, l.p,
      l.note, 0 FROM a l JOIN b r ON l.v <-> r.v <= 2', 'TABLE a',
    'SELECT l.id, r.id FROM a l JOIN a r ON l.v <-> r.v <= 0 AND l.id < r.id']),
  ('INSERT ON CONFLICT', ARRAY['INSERT INTO a SELECT DISTINCT ON (l.id) l.id, r.grp, r.v, r.p, ''new'', 0 FROM a l
      JOIN b r ON l.v <-> r.v <= 1 ORDER BY l.id, r.id ON CONFLICT (id) DO UPDATE SET note = excluded.note',
    'TABLE a']),
  ('CREATE TABLE AS', ARRAY['CREATE TABLE made AS SELECT l.id AS id1, r.id AS id2, l.v <-> r.v AS d FROM a l
      LEFT JOIN b r ON l.v <-> r.v <= 2', 'TABLE made']),
  ('CREATE TABLE AS EXECUTE', ARRAY['CREATE TABLE made (id1, id2) AS EXECUTE within(2)', 'TABLE made']),
  ('a materialised view', ARRAY['CREATE MATERIALIZED VIEW made AS SELECT l.id AS id1, r.id AS id2 FROM a l JOIN b r
      ON l.v <-> r.v <= 2', 'TABLE made', 'DELETE FROM b WHERE grp = 1', 'REFRESH MATERIALIZED VIEW made',
    'TABLE made']),
  ('a temporary table', ARRAY['CREATE TEMP TABLE t ON COMMIT DROP AS SELECT * FROM a',
    'SELECT l.id, r.id FROM pg_temp.t l JOIN b r ON l.v <-> r.v <= 2'])
) AS corpus(description, steps);
SELECT current_setting('server_version_num')::int >= 150000 AS has_merge \gset
\if :has_merge
SELECT same_outcome('MERGE', 'MERGE INTO a USING (SELECT * FROM b WHERE id < 2000 AND grp = 1) r
    ON a.v <-> r.v <= 0 AND a.id = r.id - 1000 WHEN MATCHED AND a.id % 2 = 0 THEN DELETE
    WHEN MATCHED THEN UPDATE SET note = r.note || '' merged''
    WHEN NOT MATCHED THEN INSERT VALUES (r.id, r.grp, r.v, r.p, ''new'', 0)', 'TABLE a');
SELECT same_outcome('MERGE of a join',
  'MERGE INTO a USING (SELECT DISTINCT l.id FROM a l JOIN b r ON l.v <-> r.v <= 1) n
    ON a.id = n.id WHEN MATCHED THEN UPDATE SET label = -1', 'TABLE a');
\else
SELECT skip('no MERGE', 2);
\endif

-- Views and policies: what a role may not see it does not meet.
CREATE ROLE planner_statements_reader;
GRANT USAGE ON SCHEMA planner_statements TO planner_statements_reader;
CREATE VIEW pairs AS SELECT l.id AS id1, r.id AS id2, l.v <-> r.v AS d FROM a l JOIN b r ON l.v <-> r.v <= 3;
CREATE VIEW guarded WITH (security_barrier) AS SELECT id, grp, v, p FROM a WHERE grp <> 4;
CREATE VIEW guarded_pairs WITH (security_barrier) AS SELECT * FROM pairs WHERE id1 % 5 <> 0;
CREATE TABLE secret AS SELECT id, grp, v, p, CASE WHEN grp = 0 THEN 'planner_statements_reader' END AS owner FROM a;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secret USING (owner = current_user);
CREATE TABLE seen (id int);
CREATE FUNCTION leak(n int) RETURNS boolean LANGUAGE plpgsql COST 0.001 AS $$
BEGIN
  INSERT INTO seen VALUES (n);
  RETURN true;
END $$;
GRANT SELECT ON pairs, guarded, guarded_pairs, secret, b, radii TO planner_statements_reader;
GRANT ALL ON seen TO planner_statements_reader;
ANALYZE secret;
SELECT same_rows(query, uses_node, description) FROM (VALUES
  ('SELECT * FROM pairs', true, 'a view'),
  ('SELECT * FROM pairs WHERE id1 < 50 AND d > 0 ORDER BY d, id1, id2 LIMIT 20', true, 'a view, cut'),
  ('SELECT l.id, r.id FROM guarded l JOIN b r ON l.v <-> r.v <= 3', true, 'a guarded view'),
  ('SELECT l.id, r.id FROM guarded l LEFT JOIN guarded r ON l.p <-> r.p < 2', true, 'a guarded view with itself'),
  ('SELECT * FROM guarded_pairs WHERE id2 > 1050', true, 'a guarded view of a join'),
  ('SELECT l.id, r.id FROM secret l JOIN secret r ON l.v <-> r.v <= 9', true, 'policies do not bind the owner')
) AS corpus(query, uses_node, description);
SELECT same_outcome(description, 'SET LOCAL ROLE planner_statements_reader', query, 'TABLE seen') FROM (VALUES
  ('a view of tables that the role may not read', 'SELECT * FROM pairs'),
  ('rows of a policy', 'SELECT l.id, r.id FROM secret l JOIN secret r ON l.v <-> r.v <= 9'),
  ('rows of a policy, left join', 'SELECT l.id, r.id FROM secret l LEFT JOIN b r ON l.v <-> r.v <= 1'),
  ('rows of a policy, the right side', 'SELECT l.id, r.id FROM b l LEFT JOIN secret r ON l.v <-> r.v <= 1'),
  ('rows of a policy, anti join', 'SELECT id FROM b WHERE NOT EXISTS (SELECT FROM secret r WHERE b.v <-> r.v <= 2)')
) AS corpus(description, query);
SELECT force_node(true) \gset
SELECT is(outcome(ARRAY['SET LOCAL ROLE planner_statements_reader',
  'SELECT count(*) > 0 FROM secret l JOIN b r ON l.v <-> r.v <= 3 AND leak(l.id) AND leak(r.id)',
  'SELECT count(*) FROM seen s JOIN (VALUES (1)) o(n) ON s.id < 1000 AND s.id % 7 <> 0']), '{(t),--,(0),--}',
  'a function that is no friend sees no row that a policy hides');
SELECT is(outcome(ARRAY['SET LOCAL ROLE planner_statements_reader',
  'SELECT count(*) > 0 FROM guarded_pairs WHERE leak(id1)', 'SELECT count(*) FROM seen WHERE id % 5 = 0']),
  '{(t),--,(0),--}', 'nor one that a guarded view hides');
SELECT matches(array_to_string(outcome(ARRAY['SET LOCAL ROLE planner_statements_reader',
  'SELECT l.id FROM a l JOIN b r ON l.v <-> r.v <= 3']), ' '), '^ERROR 42501',
  'a table that a role may not read is refused');
SELECT force_node(false) \gset

-- Functions.
CREATE FUNCTION near(radius float8) RETURNS TABLE (p int, q int) STABLE LANGUAGE sql AS
$$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= radius $$;
CREATE FUNCTION near_rows(radius float8, least_id int) RETURNS TABLE (p int, q int) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= radius AND l.id >= least_id;
END $$;
CREATE FUNCTION near_loop(radius float8, most int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  line record;
  n bigint := 0;
BEGIN
  FOR line IN SELECT l.id, r.id AS other FROM a l LEFT JOIN b r ON gpu_within(l.v, r.v, radius) LOOP
    n := n + 1;
    EXIT WHEN n = most;
    BEGIN
      IF line.other % 10 = 0 THEN
        RAISE EXCEPTION 'caught below';
      END IF;
    EXCEPTION WHEN raise_exception THEN
      n := n + 1000000;
    END;
  END LOOP;
  RETURN n;
END $$;
CREATE FUNCTION changed() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  line record;
BEGIN
  FOR line IN SELECT l.id FROM a l JOIN b r ON l.v <-> r.v <= 2 LOOP
    UPDATE a SET label = label + 1 WHERE id = line.id;
  END LOOP;
  RETURN (SELECT sum(label * id) FROM a);
END $$;
CREATE FUNCTION nested(radius float8) RETURNS bigint STABLE LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT count(*) FROM a l JOIN b r ON l.p <-> r.p <= radius);
END $$;
SELECT same_rows('SELECT * FROM near(2)', true, 'an SQL function that is inlined');
SELECT same_rows('SELECT name, s.* FROM radii, near(eps) s', NULL, 'an SQL function for each row');
SELECT same_rows(format('SELECT * FROM near_rows(%s, %s)', eps, id), NULL, format('PL/pgSQL: %s, %s', eps, id))
FROM unnest('{2,"NULL",-1,0}'::text[]) eps, unnest('{1,"NULL"}'::text[]) id;
SELECT same_rows('SELECT n, count(*) FROM generate_series(0, 9) n, near_rows(n % 4, n) GROUP BY n', NULL,
  'PL/pgSQL, until its plan is generic');
SELECT same_rows('SELECT near_loop(2, -1)', NULL, 'PL/pgSQL, a loop with exceptions');
SELECT same_rows('SELECT near_loop(2, 20) % 1000000 FROM generate_series(1, 3)', NULL,
  'PL/pgSQL, a loop that ends early');
SELECT same_outcome('PL/pgSQL, rows that change below the loop', 'SELECT changed()', 'SELECT changed()');
SELECT same_rows('SELECT l.id, r.id, nested(1) FROM a l JOIN b r ON l.v <-> r.v <= 2 WHERE l.id < 20', true,
  'a join in a function in the target list of a join');
-- Without the node the function is called for each pair, hence the few rows.
SELECT same_rows('SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= nested(0) / 40.0
  WHERE l.id < 9 AND r.id < 1012', true,
  'a join in the function that gives eps');
SELECT same_rows('SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 2 AND nested(0) > l.id + r.grp WHERE l.id < 9',
  NULL, 'a join in a function beside the clause');

-- EXPLAIN, in every format, with and without a run.
CREATE FUNCTION explained(options text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  line text;
  lines text := '';
BEGIN
  FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
    lines := lines || line || E'\n';
  END LOOP;
  RETURN lines;
END $$;
CREATE TABLE shown AS SELECT * FROM (VALUES
  ('inner', 'SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 3 AND l.grp <> r.grp'),
  ('left', 'SELECT l.id, r.note FROM a l LEFT JOIN b r ON 3 > l.p <-> r.p'),
  ('semi', 'SELECT l.id FROM a l WHERE EXISTS (SELECT FROM b r WHERE gpu_within(l.v, r.v, 1))'),
  ('anti', 'SELECT l.id FROM a l WHERE NOT EXISTS (SELECT FROM b r WHERE l.v <-> r.v <= 1)'),
  ('expressions', 'SELECT l.note || r.note, l FROM a l JOIN b r ON ARRAY[l.v[1] + 1] <-> ARRAY[r.v[2]] <= 3
    WHERE l.v IS NOT NULL AND r.v IS NOT NULL'),
  ('count', 'SELECT count(*) FROM a l JOIN b r ON l.v <-> r.v <= 3')) t(name, query);
SELECT force_node(true) \gset
SELECT matches(explained('VERBOSE', query), 'Custom Scan \(GpuSimilarityJoin\)', 'EXPLAIN VERBOSE of ' || name)
FROM shown;
SELECT matches(explained('ANALYZE, TIMING OFF', query), 'Custom Scan \(GpuSimilarityJoin\)',
  'EXPLAIN ANALYZE of ' || name)
FROM shown;
SELECT ok(jsonb_path_exists(explained(options || ', FORMAT JSON', query)::jsonb,
  '$.**."Custom Plan Provider" ? (@ == "GpuSimilarityJoin")'), format('EXPLAIN (%s) of %s is JSON', options, name))
FROM shown,
  unnest(ARRAY['COSTS OFF', 'VERBOSE', 'ANALYZE, BUFFERS, VERBOSE', 'ANALYZE, TIMING OFF, COSTS OFF']) options;
SELECT is((jsonb_path_query_first(explained('ANALYZE, FORMAT JSON', query)::jsonb,
    '$.** ? (@."Custom Plan Provider" == "GpuSimilarityJoin")."Actual Rows"') #>> '{}')::numeric,
  cardinality(bag(query))::numeric, 'EXPLAIN ANALYZE counts the rows of ' || name)
FROM shown WHERE name <> 'count';
SELECT ok(explained('ANALYZE, FORMAT YAML', query) LIKE '%GpuSimilarityJoin%', 'EXPLAIN as YAML of ' || name)
FROM shown;
SELECT ok(explained('ANALYZE, FORMAT XML', query) LIKE '%GpuSimilarityJoin%', 'EXPLAIN as XML of ' || name)
FROM shown;
SELECT ok(explained('ANALYZE', 'SELECT name, n FROM radii, LATERAL (SELECT count(*) AS n FROM a l JOIN b r
  ON l.v <-> r.v <= eps) s') <> '', 'EXPLAIN ANALYZE of a node that is scanned again');
SELECT ok(explained('ANALYZE', 'SELECT 1 WHERE false AND EXISTS (SELECT FROM a l JOIN b r ON l.v <-> r.v <= 1)') <> '',
  'EXPLAIN ANALYZE of a node that never runs');
SELECT ok(explained('ANALYZE, VERBOSE, FORMAT JSON', 'EXECUTE filtered(2, 3, ''x'')')::json IS NOT NULL,
  'EXPLAIN of a prepared statement');
SELECT ok(explained('ANALYZE, FORMAT JSON', 'DELETE FROM a USING b r WHERE a.v <-> r.v <= 0')::json IS NOT NULL,
  'EXPLAIN of a DELETE');
SELECT force_node(false) \gset

-- Above the join: limits, groups, windows, sets, recursion. (EXPLAIN ran the DELETE: rows without a partner stay.)
INSERT INTO a SELECT i, i % 7, ARRAY[i * 7 % 23, i * 5 % 19], point(i * 7 % 23, i * 5 % 19), 'row ' || i, i
FROM generate_series(1, 200) i WHERE i % 17 <> 0 ON CONFLICT DO NOTHING;
SELECT same_rows(query, uses_node, description) FROM (VALUES
  ($$ SELECT count(*) FROM (SELECT 1 FROM a l JOIN b r ON l.v <-> r.v <= 3 LIMIT 17) s $$, true, 'LIMIT'),
  ($$ SELECT count(*) FROM (SELECT 1 FROM a l JOIN b r ON l.v <-> r.v <= 3 LIMIT 0) s $$, true, 'LIMIT 0'),
  ($$ SELECT count(*) FROM (SELECT 1 FROM a l JOIN b r ON l.v <-> r.v <= 3 OFFSET 100) s $$, true, 'OFFSET'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 3 ORDER BY l.v <-> r.v, 1, 2
      FETCH FIRST 10 ROWS WITH TIES $$, true, 'WITH TIES'),
  ($$ SELECT DISTINCT l.grp, r.grp FROM a l JOIN b r ON l.v <-> r.v <= 3 $$, true, 'DISTINCT'),
  ($$ SELECT DISTINCT ON (l.id) l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 3 ORDER BY l.id, l.v <-> r.v, r.id $$,
    true, 'the nearest of each'),
  ($$ SELECT count(DISTINCT l.id), count(DISTINCT r.id) FROM a l JOIN b r ON l.v <-> r.v <= 3 $$, true,
    'count(DISTINCT)'),
  ($$ SELECT l.grp, count(*), string_agg(r.note, ',' ORDER BY r.id, l.id), sum(l.id) FILTER (WHERE r.grp > 2)
      FROM a l JOIN b r ON l.v <-> r.v <= 2 GROUP BY l.grp HAVING count(*) > 5 $$, true, 'GROUP BY and HAVING'),
  ($$ SELECT l.grp, r.grp, count(*), grouping(l.grp, r.grp) FROM a l JOIN b r ON l.v <-> r.v <= 2
      GROUP BY GROUPING SETS ((l.grp, r.grp), (l.grp), ()) $$, true, 'GROUPING SETS'),
  ($$ SELECT l.grp, r.grp, count(*) FROM a l LEFT JOIN b r ON l.v <-> r.v <= 1 GROUP BY CUBE (l.grp, r.grp) $$, true,
    'CUBE'),
  ($$ SELECT l.id, r.id, row_number() OVER w, lag(r.id) OVER w, sum(r.grp) OVER (PARTITION BY l.grp)
      FROM a l JOIN b r ON l.v <-> r.v <= 2 WINDOW w AS (PARTITION BY l.id ORDER BY l.v <-> r.v, r.id) $$, true,
    'windows'),
  ($$ SELECT l.id FROM a l JOIN b r ON l.v <-> r.v <= 1 UNION SELECT r.id FROM a l JOIN b r ON l.p <-> r.p < 2 $$, true,
    'UNION'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 1 UNION ALL SELECT l.id, NULL FROM a l WHERE NOT EXISTS
      (SELECT FROM b r WHERE l.v <-> r.v <= 1) $$, true, 'UNION ALL of pairs and lonely rows'),
  ($$ SELECT l.id, r.id FROM a l JOIN b r ON l.v <-> r.v <= 3 EXCEPT ALL SELECT l.id, r.id FROM a l JOIN b r
      ON l.v <-> r.v < 3 $$, true, 'EXCEPT ALL'),
  ($$ SELECT l.id FROM a l JOIN b r ON l.v <-> r.v <= 1 INTERSECT SELECT id FROM a WHERE grp = 2 $$, true, 'INTERSECT'),
  ($$ WITH RECURSIVE reached(root, id, v) AS (
        SELECT id, id, v FROM a WHERE id % 20 = 1
        UNION SELECT c.root, r.id, r.v FROM reached c JOIN a r ON c.v <-> r.v <= 1.5)
      SELECT id, min(root) FROM reached GROUP BY id $$, true, 'what can be reached in steps'),
  ($$ WITH RECURSIVE edges AS MATERIALIZED (SELECT l.id AS s, r.id AS t FROM a l JOIN a r ON l.v <-> r.v <= 2),
        reached(root, id) AS (SELECT id, id FROM a WHERE v IS NOT NULL
          UNION SELECT c.root, e.t FROM reached c JOIN edges e ON e.s = c.id WHERE e.t > c.root)
      SELECT id, min(root) FROM reached GROUP BY id $$, true, 'connected components'),
  ($$ WITH RECURSIVE steps(n, x) AS (SELECT 0, 0::float8 UNION ALL SELECT n + 1, x + (SELECT count(*) FROM a l JOIN b r
        ON l.v <-> r.v <= n / 3.0) FROM steps WHERE n < 8) TABLE steps $$, NULL, 'a join in each step'),
  ($$ SELECT l.grp AS region, count(*) AS pairs, count(DISTINCT l.id) AS places, round(avg(l.v <-> r.v)::numeric, 6)
        AS mean, max(r.note) FROM a l JOIN b r ON l.v <-> r.v <= 3 JOIN radii ON radii.eps = r.grp
      WHERE l.label BETWEEN 10 AND 150 AND r.note LIKE 'row%' AND l.grp <> r.grp
      GROUP BY l.grp HAVING count(*) > 1 ORDER BY pairs DESC, region LIMIT 5 $$, true, 'a dashboard'),
  ($$ WITH near AS (SELECT l.id, count(r.id) AS n FROM a l LEFT JOIN a r ON l.v <-> r.v <= 2 AND l.id <> r.id
        GROUP BY l.id), ranked AS (SELECT *, ntile(4) OVER (ORDER BY n DESC, id) AS quarter FROM near)
      SELECT quarter, count(*), sum(n), min(n) FROM ranked GROUP BY quarter ORDER BY quarter $$, true, 'a density'),
  ($$ SELECT l.id, CASE WHEN count(r.id) > 2 THEN 'crowded' ELSE 'free' END FROM a l LEFT JOIN b r ON l.v <-> r.v < 2
      GROUP BY l.id ORDER BY l.id $$, true, 'each row with a verdict')
) AS corpus(query, uses_node, description);

-- Wide rows in little memory.
CREATE TABLE heavy AS
  SELECT i AS id, ARRAY[i * 7 % 23, i * 5 % 19]::float8[] AS v, repeat(md5(i::text), 60) AS body,
    (SELECT string_agg(md5((i * k)::text), '') FROM generate_series(1, 120) k) AS toasted
  FROM generate_series(1, 300) i;
ALTER TABLE heavy ALTER toasted SET STORAGE external;
ANALYZE heavy;
SELECT same_outcome('wide rows in 64 kB: ' || query, 'SET LOCAL work_mem = ''64kB''', query)
FROM unnest(ARRAY[
  'SELECT l.id, r.id, md5(l.body), r.body FROM heavy l JOIN heavy r ON l.v <-> r.v <= 2',
  'SELECT md5(l::text), md5(r::text) FROM heavy l LEFT JOIN heavy r ON l.v <-> r.v <= 1 AND l.id < r.id',
  'SELECT l.id, md5(r.toasted), length(l.toasted) FROM heavy l JOIN heavy r ON l.v <-> r.v <= 1',
  'SELECT l.id, md5(l.body || r.body) FROM heavy l JOIN heavy r ON l.v <-> r.v <= 2 ORDER BY r.body, l.body LIMIT 100',
  'SELECT md5(body) FROM heavy l WHERE EXISTS (SELECT FROM heavy r WHERE l.v <-> r.v < 2 AND l.body < r.body)',
  'SELECT md5(body) FROM heavy l WHERE NOT EXISTS (SELECT FROM heavy r WHERE l.v <-> r.v < 2 AND l.body < r.body)'
  ]) query;

-- Other settings of the planner.
SELECT same_outcome('with ' || setting, 'SET LOCAL ' || setting,
  'SELECT l.id, r FROM a l LEFT JOIN b r ON l.v <-> r.v <= 2', 'SELECT count(*) FROM a l JOIN b r ON l.p <-> r.p < 2',
  'SELECT id FROM a WHERE NOT EXISTS (SELECT FROM b r WHERE a.v <-> r.v <= 1)')
FROM unnest(ARRAY['jit_above_cost = 0', 'enable_seqscan = off', 'enable_material = off', 'enable_sort = off',
  'enable_partitionwise_join = on', 'join_collapse_limit = 1', 'geqo_threshold = 2', 'cursor_tuple_fraction = 0.001',
  'constraint_exclusion = on']) setting;
SELECT same_outcome('with plans for workers', 'SET LOCAL min_parallel_table_scan_size = 0',
  'SET LOCAL parallel_setup_cost = 0', 'SET LOCAL parallel_tuple_cost = 0',
  'CREATE TABLE made AS SELECT l.id AS id1, r.id AS id2 FROM a l LEFT JOIN b r ON l.v <-> r.v <= 2', 'TABLE made',
  'SELECT count(*), sum(l.id) FROM a l JOIN b r ON l.p <-> r.p < 2');

-- A foreign table.
SELECT count(*) > 0 AS has_file_fdw FROM pg_available_extensions WHERE name = 'file_fdw' \gset
\if :has_file_fdw
CREATE EXTENSION IF NOT EXISTS file_fdw;
CREATE SERVER planner_statements_files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE elsewhere (id int, v float8[]) SERVER planner_statements_files
  OPTIONS (program 'printf "1;{0,0}\n2;{3,4}\n3;\n4;{7,5}\n5;{7,6}\n"', format 'csv', delimiter ';');
SELECT same_rows('SELECT l.id, r.id FROM a l JOIN elsewhere r ON l.v <-> r.v <= 3', true, 'a foreign table');
SELECT same_rows('SELECT l.id, r.id FROM elsewhere l LEFT JOIN elsewhere r ON l.v <-> r.v <= 3', true,
  'left join of a foreign table with itself');
SELECT same_rows('SELECT name, n FROM radii, LATERAL (SELECT count(*) AS n FROM a l JOIN elsewhere r
  ON l.v <-> r.v <= eps) s', NULL, 'a foreign table that is read again');
\else
SELECT skip('no file_fdw', 1);
\endif

SELECT * FROM finish();
ROLLBACK;
