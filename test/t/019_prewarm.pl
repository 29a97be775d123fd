# gpu_prewarm() for searches, of all kinds of tables, and what comes back after a restart.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use Session;
use Test::More;

my $node = start_server('prewarm', 'gpujoin.service = auto', 'gpujoin.cpu_threads = 2', "shared_preload_libraries = 'gpujoin'");
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE places (id int PRIMARY KEY, p point);
INSERT INTO places SELECT i, point(i % 200, i / 200) FROM generate_series(1, 20000) i;
CREATE TABLE numbers AS SELECT id, p[0] AS x, p[1] AS y FROM places;
CREATE TABLE vectors AS SELECT id, ARRAY[sin(id), cos(id), id % 7]::float4[] AS v FROM places;
CREATE TABLE parted (id int, p point) PARTITION BY RANGE (id);
CREATE TABLE parted_a PARTITION OF parted FOR VALUES FROM (0) TO (9000);
CREATE TABLE parted_b (p point, id int);
ALTER TABLE parted ATTACH PARTITION parted_b FOR VALUES FROM (9000) TO (30000);
INSERT INTO parted SELECT id, p FROM places;
CREATE TABLE parent (id int, p point);
CREATE TABLE child (extra text) INHERITS (parent);
INSERT INTO parent SELECT id, p FROM places WHERE id % 2 = 0;
INSERT INTO child SELECT id, p FROM places WHERE id % 2 = 1;
CREATE VIEW seen AS SELECT * FROM places;
CREATE UNLOGGED TABLE unlogged AS TABLE places;
CREATE TABLE empty (p point);
CREATE ROLE owner;
CREATE ROLE other;
CREATE SCHEMA own AUTHORIZATION owner;
SET ROLE owner;
CREATE TABLE own.places (id int PRIMARY KEY, p point);
INSERT INTO own.places SELECT i, point(i, i) FROM generate_series(1, 3000) i;
GRANT USAGE ON SCHEMA own TO other;
GRANT SELECT ON own.places TO other;
RESET ROLE;
VACUUM ANALYZE;
SQL
my $session = Session->new($node);
my $resident = "SELECT string_agg(relation || ' ' || columns::text, ', ' ORDER BY relation::text, columns::text) FROM gpu_resident";

# A search after gpu_prewarm() is one of a table that is kept, and finds what PostgreSQL finds.
for (
  [ 'places', '', 'p <-> point(50.25, 50.5)', '{ctid,p}', 1 ],
  [ 'numbers', ", vector_columns => 'x,y'", 'point(x, y) <-> point(50.25, 50.5)', '{ctid,x,y}', 1 ],
  [ 'vectors', '', "v <-> '{0.1,0.2,3}'::float4[]", '{ctid,v}', 1 ],
  [ 'vectors', ", metric => 'cosine'", "v <=> '{0.1,0.2,3}'::float4[]", '{ctid,v}', 1 ],
  [ 'vectors', ", metric => 'l1', id_column => 'ctid'", "v <+> '{0.1,0.2,3}'::float4[]", '{ctid,v}', 1 ],
  [ 'parted', '', 'p <-> point(50.25, 50.5)', '{ctid,p}', 2 ],
  [ 'parent', '', 'p <-> point(50.25, 50.5)', '{ctid,p}', 2 ],
  )
{
  my ($table, $arguments, $distance, $columns, $tables) = @$_;
  $session->value('SELECT gpu_evict(relation) FROM gpu_resident');
  is($session->value("SELECT gpu_prewarm('$table'$arguments)"), 20000, "gpu_prewarm('$table'$arguments)");
  is($session->value('SELECT DISTINCT columns, count(*) OVER () FROM gpu_resident'), "$columns|$tables", 'its columns');
  for my $query ("SELECT id FROM $table ORDER BY $distance, id LIMIT 12", "SELECT count(*) FROM $table WHERE $distance < 0.001") {
    my $right = $session->value("SET gpujoin.enable_customscan = off; $query; RESET gpujoin.enable_customscan");
    is($session->value($query), $right, $query);
    my @kept = $session->value("EXPLAIN (COSTS OFF) $query") =~ /Index: kept/g;
    is(scalar(@kept), $tables, 'which searches the rows that stay');
  }
  is($session->value("SELECT gpu_evict('$table')"), $tables, 'gpu_evict() forgets all of them');
}
is($session->value("SELECT gpu_prewarm('empty')"), 0, 'a table without rows');
is($session->value('SELECT gpu_prewarm(NULL)'), '', 'no table');

# With a radius, or with a key, it is for the functions.
$session->value('SELECT gpu_evict(relation) FROM gpu_resident');
is($session->value("SELECT gpu_prewarm('places', 0.5)"), 20000, 'for joins of a radius');
is($session->value($resident), 'places {id,p}', 'rows are known by their key');
is($session->value("SELECT gpu_evict('places'), gpu_prewarm('places', id_column => 'id')"), '1|20000', 'for joins by a key');
is($session->value($resident), 'places {id,p}', 'which is the same');

for ([ "'seen'", '55000' ], [ "'unlogged'", '55000' ], [ "'places', vector_columns => 'id'", '55000' ], [ "'vectors', metric => 'haversine'", '55000' ],
  [ "'places', vector_columns => 'q'", '42703' ], [ "'places', metric => 'l3'", '22023' ])
{
  my ($arguments, $state) = @$_;
  my $answer = $session->query("SELECT gpu_prewarm($arguments)");
  is($answer->{state}, $state, "an error: gpu_prewarm($arguments)") or diag(explain $answer);
}
is($session->query("SET gpujoin.service = off; SELECT gpu_prewarm('places')")->{state}, '55000', 'an error without the service');
$session->value('RESET gpujoin.service');

# What comes back.
$session->value('SELECT gpu_evict(relation) FROM gpu_resident');
my $other = Session->new($node);
$other->value('SET ROLE other');
is($other->value("SELECT gpu_prewarm('own.places')"), 3000, 'who may read a table may have it prewarmed');
is($other->query("SELECT gpu_prewarm('own.places', keep => true)")->{state}, '42501', 'but only its owner for good');
is($other->query('INSERT INTO gpu_prewarmed (relation) VALUES (1)')->{state}, '42501', 'nor by the table');
$other->value('RESET ROLE; SET ROLE owner');
is($other->value("SELECT gpu_prewarm('own.places', keep => true)"), 3000, 'the owner');
is($other->query("BEGIN READ ONLY; SELECT gpu_prewarm('own.places', keep => true)")->{state}, '25006', 'not where nothing may change');
$other->value('ROLLBACK');
$session->value(<<'SQL');
  CREATE TABLE "Odd, one" AS SELECT i AS id, i::float8 AS "a,b", -i::float8 AS c FROM generate_series(1, 2000) i;
  CREATE TABLE renamed AS TABLE places;
  CREATE TABLE dropped AS TABLE places;
  SELECT gpu_prewarm('"Odd, one"', vector_columns => ARRAY['a,b', 'c'], keep => true);
  SELECT gpu_prewarm('"Odd, one"', 3, 'id', '"a,b",c', 'l1', keep => true) FROM generate_series(1, 3);
  SELECT gpu_prewarm('renamed', vector_columns => 'p', keep => true);
  SELECT gpu_prewarm('dropped', keep => true);
  SELECT gpu_prewarm('parted', keep => true);
  SELECT gpu_prewarm('places', keep => true);
  BEGIN;
  SELECT gpu_prewarm('vectors', keep => true);
  ROLLBACK;
  ALTER TABLE renamed RENAME p TO q;
  DROP TABLE dropped;
  SELECT gpu_evict('places');
SQL
my $kept = '"Odd, one" {ctid,"a,b",c}, "Odd, one" {id,"a,b",c}, own.places {ctid,p}, parted_a {ctid,p}, parted_b {ctid,p}';

sub comes_back {
  my ($when) = @_;
  ok(wait_until($Session::DEADLINE, sub { $node->safe_psql('postgres', $resident) eq $kept }), "what is kept is back after $when")
    or diag($node->safe_psql('postgres', $resident));
  return;
}
kill 'KILL', service_pids($node);
comes_back('the death of the service');
$_->quit for $session, $other;
$node->restart;
comes_back('a restart of the server');
like(PostgreSQL::Test::Utils::slurp_file($node->logfile), qr/column "p" of relation "renamed" does not exist/, 'the log says what could not be brought');
is($node->safe_psql('postgres', "SELECT string_agg(relation::text, ' ' ORDER BY relation::text, eps) FROM gpu_prewarmed"),
  '"Odd, one" "Odd, one" own.places parted renamed', 'a table that was dropped is forgotten');

# A dump has it.
$node->safe_psql('postgres', 'CREATE DATABASE copied');
my $dump = $node->basedir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('postgres') ], 'pg_dump');
$node->command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', $dump, '-d', $node->connstr('copied') ], 'restored');
kill 'KILL', service_pids($node);
ok(wait_until($Session::DEADLINE, sub { $node->safe_psql('copied', $resident) eq $kept }), 'the copied database has what it had');
comes_back('a second death');

$node->stop;
done_testing();
