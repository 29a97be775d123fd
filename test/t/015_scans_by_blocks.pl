# Inputs of the node that are scans of large tables are read by blocks, their conditions evaluated by whoever reads, and
# their rows fetched when pairs need them: the same rows as through the scan's own node, and the same errors.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Session;
use Test::More;

my $node = start_server('scans_by_blocks', 'gpujoin.cpu_threads = 2', 'parallel_setup_cost = 0', 'enable_nestloop = off');
my $has_postgis = $node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'postgis'");
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION cube;
CREATE TABLE many (id int PRIMARY KEY, gone int, v float8[], note text, wide text, n numeric);
INSERT INTO many SELECT i, 1, ARRAY[i * 7 % 5000 % 100, i * 7 % 5000 / 100], 'n' || i % 100, repeat(i::text, 500), i / 7.0
  FROM generate_series(1, 30000) i;
ALTER TABLE many DROP gone;
ALTER TABLE many ADD added int DEFAULT 3;
DELETE FROM many WHERE id % 11 = 3;
UPDATE many SET v = NULL WHERE id % 97 = 5;
UPDATE many SET added = id % 5 WHERE id % 13 = 5;
CREATE TABLE few (id int PRIMARY KEY, v float8[], name text);
INSERT INTO few SELECT i, ARRAY[i % 40, i / 40 + 0.3], 'f' || i FROM generate_series(1, 1000) i;
CREATE TABLE boxes (id int, b box);
INSERT INTO boxes SELECT i, box(point(i % 200, i / 200), point(i % 200 + 0.8, i / 200 + 0.8)) FROM generate_series(1, 12000) i;
CREATE TABLE cubes (id int, c cube);
INSERT INTO cubes SELECT i, cube(ARRAY[i % 200, i / 200]) FROM generate_series(1, 12000) i;
CREATE TABLE few_cubes (id int, c cube);
INSERT INTO few_cubes SELECT i, CASE WHEN i % 50 = 7 THEN cube(ARRAY['infinity'::float8, i]) ELSE cube(ARRAY[i, i % 7 + 0.1]) END
  FROM generate_series(1, 200) i;
CREATE TABLE unlike (id int, v float8[]);
INSERT INTO unlike SELECT i, CASE WHEN i % 4000 = 3999 THEN ARRAY[i] ELSE ARRAY[i % 100, i / 100] END FROM generate_series(1, 9000) i;
CREATE FUNCTION checked(i int, bad int) RETURNS bool LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
  $$ BEGIN IF i = bad THEN RAISE 'row %', i USING ERRCODE = '22005'; END IF; RETURN i % 3 <> 1; END $$;
CREATE FUNCTION unsafe(i int) RETURNS bool LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN i % 3 <> 1; END $$;
CREATE VIEW some_of_many WITH (security_barrier) AS SELECT * FROM many WHERE added <> 2;
VACUUM ANALYZE;
SQL
$node->safe_psql('postgres', <<'SQL') if $has_postgis;
CREATE EXTENSION postgis;
CREATE TABLE pickups (id int, g geometry);
INSERT INTO pickups SELECT i, ST_MakePoint(i % 200 / 7.0, i / 200 / 7.0) FROM generate_series(1, 15000) i;
INSERT INTO pickups VALUES (0, 'POINT EMPTY'), (-1, NULL), (-2, 'POINT Z (3 4 5)');
CREATE TABLE areas (id int PRIMARY KEY, g geometry, name text);
INSERT INTO areas SELECT i, ST_Buffer(ST_MakePoint(i % 30, i / 30), 0.02, i % 9 + 1), 'a' || i FROM generate_series(1, 400) i;
CREATE TABLE mixed AS SELECT id, CASE WHEN id % 5000 = 17 THEN ST_MakeLine(g, ST_MakePoint(9, 9)) ELSE g END AS g FROM pickups;
CREATE TABLE shapes AS SELECT id, g FROM areas UNION ALL SELECT id, g FROM pickups WHERE id % 30 = 7;
VACUUM ANALYZE;
SQL
$node->safe_psql('postgres', "ALTER DATABASE postgres SET session_preload_libraries = 'gpujoin'");

my $session = Session->new($node);

# Ways to run a statement: through the scans' own nodes, by blocks alone, and with so many workers.
my %ways = (
  'without the node' => "SET gpujoin.enable_customscan = off; SET enable_nestloop = on",
  'by the scans' => "SET min_parallel_table_scan_size = '1GB'; SET max_parallel_workers_per_gather = 0",
  'alone' => 'SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 0',
  'large tables' => "SET min_parallel_table_scan_size = '200kB'; SET max_parallel_workers_per_gather = 2",
  map { ("$_ workers" => "SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = $_") } 1, 2, 4);

sub run_in {
  my ($way, $sql) = @_;
  my $result = $session->query("RESET ALL; $ways{$way}; $sql");
  $session->value('ROLLBACK') if $result->{state} ne '';
  return $result;
}

sub answer {
  my $result = run_in(@_);
  return join ' ', $result->{state}, $result->{message}, $result->{rows};
}

# What EXPLAIN counts of a statement's run.
sub counted {
  my ($way, $sql, $what) = @_;
  my ($count) = run_in($way, "EXPLAIN (ANALYZE, TIMING OFF, VERBOSE) $sql")->{rows} =~ /$what: (\d+)/;
  return $count // 0;
}

# All rows, by an aggregate that takes pairs.
my ($both, $xy, $pa) = map {
  my ($x, $y) = @$_;
  "md5(string_agg($x.id || ' ' || $y.id, ',' ORDER BY $x.id, $y.id))"
} ['f', 'm'], ['x', 'y'], ['p', 'a'];
my $near = 'FROM few f JOIN many m ON f.v <-> m.v <= 1';
my %queries = (
  'a filter' => "SELECT count(*), $both $near WHERE m.added <> 3",
  'a filter that needs the executor\'s words' => "SELECT count(*), $both $near WHERE m.note ~ '^n[1-5]' AND m.n BETWEEN 100 AND 3000.5",
  'sums of one side' => "SELECT f.id % 7, count(*), sum(f.id), avg(length(f.name)) $near WHERE m.added = 3 GROUP BY 1 ORDER BY 1",
  'sums of the other side' => "SELECT f.id % 7, count(*), sum(m.id), max(m.n) $near WHERE m.added = 3 GROUP BY 1 ORDER BY 1",
  'counts of groups' => "SELECT f.id, f.name, count(*) $near WHERE m.id % 3 = 1 GROUP BY f.id ORDER BY 3 DESC, 1",
  'columns of both' => "SELECT md5(string_agg(f.name || m.note || m.wide, ',' ORDER BY f.id, m.id)) $near WHERE m.id < 9000",
  'system columns' => "SELECT $both, md5(string_agg(m.ctid::text || m.tableoid::regclass, ',' ORDER BY f.id, m.id)) $near WHERE m.ctid > '(10,1)' AND m.xmin <> '1'",
  'many pairs with columns' => "SELECT md5(string_agg(m.note || m.n, ',' ORDER BY f.id, m.id)), $both FROM few f JOIN many m ON f.v <-> m.v <= 6 WHERE m.id % 2 = 0",
  'rows on disk' => "SET work_mem = '64kB'; SELECT md5(string_agg(m.note || m.n || f.name, ',' ORDER BY f.id, m.id))
    FROM few f JOIN many m ON f.v <-> m.v <= 6 WHERE m.id % 2 = 0",
  'another condition' => "SELECT count(*), $both $near AND f.id % 7 < m.id % 7",
  'a left join' => 'SELECT f.id, m.id, m.note FROM few f LEFT JOIN many m ON f.v <-> m.v <= 0.5 AND m.added = 3 ORDER BY 1, 2',
  'a semijoin' => 'SELECT f.id FROM few f WHERE EXISTS (SELECT FROM many m WHERE f.v <-> m.v <= 0.5 AND m.added <> 3) ORDER BY 1',
  'an antijoin' => 'SELECT f.id FROM few f WHERE NOT EXISTS (SELECT FROM many m WHERE f.v <-> m.v <= 0.5 AND m.added <> 3) ORDER BY 1',
  'two large tables' => "SELECT count(*), $xy FROM many x JOIN many y ON x.v <-> y.v <= 0.5 AND x.note = y.note
    WHERE x.added <> 1 AND y.id > 20000",
  'a table with itself' => "SELECT count(*), md5(string_agg(x.note || y.n, ',' ORDER BY x.id, y.id)) FROM many x JOIN many y ON x.v <-> y.v <= 0.5
    WHERE x.id % 10 = 1 AND y.id % 10 = 1",
  'a table with few pairs with itself' => "SELECT x.note, y.n, x.id, y.id FROM many x JOIN many y ON x.v <-> y.v <= 0.5
    WHERE x.id % 500 = 1 AND y.id % 500 = 1 ORDER BY 3, 4",
  'a table with itself, filters that differ' => "SELECT count(*), $xy FROM many x JOIN many y ON x.v <-> y.v <= 0.5
    WHERE x.id % 10 = 1 AND y.id % 10 = 2",
  'a table with itself, filters that may change' => "SELECT count(*), $xy FROM many x JOIN many y ON x.v <-> y.v <= 0.5
    WHERE x.id % 50 = 1 AND y.id % 50 = 1 AND to_timestamp(x.id) < clock_timestamp() AND to_timestamp(y.id) < clock_timestamp()",
  'a table with itself, parameters' => "SELECT r, s.* FROM generate_series(1, 3) r, LATERAL (SELECT count(*), $xy FROM many x
    JOIN many y ON x.v <-> y.v <= 0.5 WHERE x.id % 40 = r AND y.id % 40 = r) s",
  'boxes with themselves' => "SELECT count(*), $xy FROM boxes x JOIN boxes y ON x.b && y.b WHERE x.id % 2 = 0 AND y.id % 2 = 0",
  'parameters' => "SET plan_cache_mode = force_generic_plan; PREPARE q(int, text) AS SELECT count(*), $both $near
    WHERE m.id % \$1 = 1 AND m.note <> \$2; EXECUTE q(3, 'n7'); EXECUTE q(4, NULL); EXECUTE q(5, 'x'); DEALLOCATE q",
  'a value of a subquery' => "SELECT count(*), $both $near WHERE m.id > (SELECT max(id) FROM few)",
  'parameters of a lateral join' => "SELECT r, s.* FROM generate_series(1, 3) r, LATERAL (SELECT count(*), $both $near
    WHERE m.id % 4 = r) s",
  'a function that is not safe for workers' => "SELECT count(*), $both $near WHERE unsafe(m.id)",
  'a function that may raise anything' => "SELECT count(*), $both $near WHERE checked(m.id, -1)",
  'a volatile filter' => "SELECT count(*), $both $near WHERE to_timestamp(m.id) < clock_timestamp()",
  'a filter that leaves nothing' => "SELECT count(*), $both $near WHERE m.id < 0",
  'a security barrier' => "SELECT count(*), $both FROM few f JOIN some_of_many m ON f.v <-> m.v <= 1 WHERE checked(m.id, -1)",
  'rows of this transaction' => "BEGIN; UPDATE many SET added = 9 WHERE id % 17 = 1; DELETE FROM many WHERE id % 19 = 1; SAVEPOINT s;
    INSERT INTO many SELECT i, '{1,1}' FROM generate_series(40001, 41000) i; ROLLBACK TO s;
    INSERT INTO many (id, v) SELECT i, '{2,2}' FROM generate_series(50001, 50100) i;
    SELECT count(*), $both $near WHERE m.added IN (9, 3); ROLLBACK",
  'a serializable transaction' => "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*), $both $near WHERE m.added <> 3; ROLLBACK",
  'a cursor among writes' => "BEGIN; CREATE TEMP TABLE t (s bigint); DO \$\$ DECLARE r record; s bigint := 0; BEGIN
    FOR r IN SELECT f.id AS f, m.id AS m, m.note $near WHERE m.added = 3 LOOP
    IF s = 0 THEN UPDATE many SET note = 'late', added = 7; END IF; s := s + r.f * r.m + length(r.note); END LOOP;
    INSERT INTO t VALUES (s); END \$\$; SELECT * FROM t; ROLLBACK",
  'a statement that writes' => "BEGIN; CREATE TEMP TABLE t AS SELECT m.id $near WHERE m.added <> 3; SELECT count(*), sum(id) FROM t; ROLLBACK",
  'boxes' => "SELECT count(*), $xy FROM boxes x JOIN boxes y ON x.b && y.b WHERE x.id % 3 = 0 AND y.id % 5 > 1",
  'values that the engine cannot take, on the other side' =>
    "SELECT count(*), $xy FROM few_cubes x JOIN cubes y ON x.c <-> y.c <= 1.5 WHERE y.id % 3 > 0",
  'a radius that no engine takes' =>
    "SELECT count(*), $xy FROM few_cubes x JOIN cubes y ON x.c <-> y.c <= 1e200 WHERE y.id % 300 = 1",
);
%queries = (%queries,
  'PostGIS: points near areas' => 'SELECT a.id, a.name, count(*) FROM pickups p JOIN areas a ON ST_DWithin(p.g, a.g, 0.05)
    GROUP BY a.id, a.name ORDER BY 3 DESC, 1',
  'PostGIS: points near areas, filtered' => "SELECT count(*), $pa FROM areas a JOIN pickups p ON ST_DWithin(p.g, a.g, 0.05)
    WHERE p.id % 3 = 1 AND a.id % 2 = 0",
  'PostGIS: points that touch areas' => "SELECT count(*), $pa FROM areas a JOIN pickups p ON ST_Intersects(p.g, a.g)",
  'PostGIS: boxes' => "SELECT count(*), $pa FROM areas a JOIN pickups p ON p.g && a.g WHERE p.id <> 77",
  'PostGIS: points' => "SELECT count(*), $xy FROM pickups x JOIN pickups y ON ST_DWithin(x.g, y.g, 0.2) WHERE x.id % 7 = 1",
  'PostGIS: areas and points with themselves' => "SELECT count(*), $xy FROM shapes x JOIN shapes y ON ST_DWithin(x.g, y.g, 0.3)",
  'PostGIS: lines among points' => "SELECT count(*), $xy FROM mixed x JOIN mixed y ON ST_DWithin(x.g, y.g, 0.1) WHERE x.id % 3 = 1",
  'PostGIS: few lines among points' => "SELECT count(*), $xy FROM mixed x JOIN pickups y ON ST_DWithin(x.g, y.g, 0.1)
    WHERE x.id BETWEEN 5000 AND 5030",
) if $has_postgis;
for my $name (sort keys %queries) {
  my $right = answer('without the node', $queries{$name});
  my $wrong = '';
  for my $way (grep { $_ ne 'without the node' } sort keys %ways) {
    my $answer = answer($way, $queries{$name});
    $wrong .= "$way: " . substr($answer, 0, 300) . ', not ' . substr($right, 0, 300) . "\n" if $answer ne $right;
  }
  unlike($right, qr/^\w{5} /, "$name: there is an answer");
  is($wrong, '', "$name: it is the same in all ways");
}

# Who reads, and what is fetched.
for my $case (
  ['a filter', 2], ['two large tables', 2], ['boxes', 4], ['a left join', 2], ['counts of groups', 2], ['sums of one side', 2],
  ['a function that is not safe for workers', 0], ['a function that may raise anything', 0], ['a volatile filter', 0],
  ['a value of a subquery', 0], ['a security barrier', 0], $has_postgis ? ['PostGIS: points near areas', 2] : ())
{
  my ($name, $workers) = @$case;
  my $seen = counted('large tables', $queries{$name}, 'Read Workers');
  $workers == 0 ? is($seen, 0, "$name: the plan reads") : cmp_ok($seen, '>=', $workers, "$name: workers read");
}
is(counted('2 workers', "SELECT count(*) $near WHERE m.added <> 3", 'Rows Fetched'), 0, 'a count fetches no row');
cmp_ok(counted('2 workers', "SELECT m.note $near WHERE m.id % 100 = 1", 'Rows Fetched'), '>', 0, 'columns are fetched');
like(run_in('2 workers', "EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) SELECT count(*) $near WHERE m.id % 2 = 1")->{rows},
  qr/(?:Seq Scan on many m|Gather) \(actual rows=[1-9]\d{3}/, 'EXPLAIN has the rows of the scan');

# A filter that raises an error raises the one of the first row in the table, whoever meets one first.
my %errors = (
  'a division' => "SELECT count(*) $near WHERE 1 / (m.id - 20000) = 0",
  'a function' => "SELECT count(*) $near WHERE checked(m.id, 15000)",
  'a number that is too large' => "SELECT count(*) $near WHERE (m.n * 1e300)::float8 * m.id * 1e7 > 0",
  'vectors of other lengths' => 'SELECT count(*) FROM few f JOIN unlike u ON f.v <-> u.v <= 1 WHERE u.id % 2 = 1',
);
for my $name (sort keys %errors) {
  my $right = answer('by the scans', $errors{$name});
  my $wrong = '';
  for my $way ('alone', '1 workers', '2 workers', '4 workers') {
    my $answer = answer($way, $errors{$name});
    $wrong .= "$way: $answer, not $right\n" if $answer ne $right;
  }
  like($right, qr/^22\w{3} /, "$name: an error about the data");
  is($wrong, '', "$name: it is the same however the table is read");
}

# Errors of rows that an empty other side keeps from being read are not raised.
$session->value('RESET ALL');
is(answer('2 workers', "SELECT count(*) FROM few f JOIN many m ON f.v <-> m.v <= 1 WHERE f.id < 0 AND 1 / (m.id - 20000) = 0"), '  0',
  'nothing is read beside an empty side');

done_testing();
