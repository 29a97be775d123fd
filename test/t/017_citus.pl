# Citus: points in shards by their cells, small tables on all nodes, gpujoin loaded after Citus on coordinator and workers. It is
# for a build of Citus that lies beside gpujoin in the stage of a cluster (test/cluster): make install-extension DESTDIR=DIR/stage
# in its source. Citus 13.2.2 compiles with PostgreSQL 15.20 once its own have_createdb_privilege() is taken out.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
use Test::More;

my $WIDTH = 5;
my $EPS   = 0.5;

my @preloaded = ("shared_preload_libraries = 'citus,gpujoin'", "citus.node_conninfo = 'sslmode=disable'", "citus.max_cached_conns_per_worker = 1");
my $coordinator = start_server('citus_coordinator');
plan skip_all => 'no citus' if $coordinator->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'citus'") == 0;
my @workers = map { start_server("citus_worker_$_", @preloaded) } 1, 2;

# ---- Which is loaded first

$coordinator->stop;
$coordinator->append_conf('postgresql.conf', "shared_preload_libraries = 'gpujoin,citus'");
ok(!$coordinator->start(fail_ok => 1), 'a server that loads gpujoin before Citus does not start');
like(slurp_file($coordinator->logfile), qr/Citus has to be loaded first/, 'for Citus says that it has to come first');
$coordinator->append_conf('postgresql.conf', join("\n", @preloaded));
$coordinator->start;

# ---- Tables

$_->safe_psql('postgres', 'CREATE EXTENSION citus') for $coordinator, @workers;
my ($host, $port) = ($coordinator->host, $coordinator->port);
$coordinator->safe_psql('postgres', "SELECT citus_set_coordinator_host('$host', $port)");
for my $worker (@workers) {
  my ($its_host, $its_port) = ($worker->host, $worker->port);
  $coordinator->safe_psql('postgres', "SELECT citus_add_node('$its_host', $its_port)");
}
$coordinator->safe_psql('postgres', <<"SQL");
CREATE TABLE raw (id bigint PRIMARY KEY, v float8[]);
INSERT INTO raw SELECT i, ARRAY[i * 0.618034 % 1 * 50, i * 0.414214 % 1 * 50] FROM generate_series(1, 5000) i;
INSERT INTO raw VALUES (6000, '{10,10}'), (6001, '{10.5,10}'), (6002, '{9.5,10}'), (6003, '{-0.2,-0.1}'), (6004, '{0.2,0.1}'), (6005, '{NaN,1}');
CREATE TABLE points (id bigint, v float8[], own boolean, cell bigint);
SELECT create_distributed_table('points', 'cell', shard_count => 4);
INSERT INTO points SELECT id, v, cell = gpu_cell(v, $WIDTH), cell FROM raw, unnest(gpu_halo(v, $WIDTH, $EPS)) cell;
CREATE VIEW own_points AS SELECT * FROM points WHERE own;
CREATE TABLE places (id bigint PRIMARY KEY, region text, v float8[]);
SELECT create_reference_table('places');
INSERT INTO places SELECT i, 'region ' || i % 7, ARRAY[i * 0.754877 % 1 * 50, i * 0.569840 % 1 * 50] FROM generate_series(1, 500) i;
CREATE TABLE raw_places AS SELECT * FROM places;
CREATE FUNCTION slowly(boolean) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN \$1; END';
ANALYZE raw, points, places, raw_places;
SQL

sub value { return $coordinator->safe_psql('postgres', $_[0]); }

sub explained { return value("SET citus.explain_all_tasks = on; EXPLAIN (COSTS OFF) $_[0]"); }

# A plan of four tasks, each of them done by the node.
sub joins_by_shards {
  my ($sql, $what) = @_;
  my $plan = explained($sql);
  is(() = $plan =~ /Node: host.*\n(?:.*->  (?!Custom|Task).*\n(?:.*Key.*\n)?)*.*Custom Scan \(GpuSimilarityJoin\)/g, 4, "$what: the node joins in each shard") or diag($plan);
  return;
}

# The same rows as from tables of one server.
sub same_rows {
  my ($distributed, $alone, $what) = @_;
  joins_by_shards($distributed, $what);
  my $rows = value($alone);
  isnt($rows, '', "$what: there are some");
  is(value($distributed), $rows, "$what: the rows are those of one server");
  return;
}

# ---- Joins

my $joined = "points a JOIN points b ON a.cell = b.cell AND a.v <-> b.v <= $EPS WHERE a.own";
my $alone  = "raw a JOIN raw b ON a.v <-> b.v <= $EPS";
my $fingerprint = 'count(*), sum(a.id), sum(b.id), sum(a.id * b.id)';

same_rows("SELECT a.id, b.id FROM $joined ORDER BY 1, 2", "SELECT a.id, b.id FROM $alone ORDER BY 1, 2", 'a join of cells finds every pair once');
same_rows("SELECT $fingerprint FROM $joined", "SELECT $fingerprint FROM $alone", 'added up');
# Where cells are small, PostgreSQL's own plan is as good.
is(value('SELECT count(*), sum(a.id) FROM points a WHERE own AND NOT EXISTS (SELECT FROM points b WHERE a.cell = b.cell AND a.v <-> b.v <= 0.1 AND a.id <> b.id)'),
  value('SELECT count(*), sum(a.id) FROM raw a WHERE NOT EXISTS (SELECT FROM raw b WHERE a.v <-> b.v <= 0.1 AND a.id <> b.id)'), 'rows without a neighbour');

my $near = 'points p JOIN places r ON p.v <-> r.v <= 1 WHERE p.own';
my $near_alone = 'raw p JOIN raw_places r ON p.v <-> r.v <= 1';
same_rows("SELECT p.id, r.id FROM $near ORDER BY 1, 2", "SELECT p.id, r.id FROM $near_alone ORDER BY 1, 2", 'a reference table');
same_rows("SELECT region, count(*) FROM $near GROUP BY region ORDER BY 1", "SELECT region, count(*) FROM $near_alone GROUP BY region ORDER BY 1", 'counts of regions');
like(explained("SELECT region, count(*) FROM $near GROUP BY region"), qr/Added Up: PARTIAL count/, 'which are added up in the node');
same_rows('SELECT p.id, count(r.id) FROM points p LEFT JOIN places r ON p.v <-> r.v <= 1 WHERE p.own GROUP BY p.id ORDER BY 1',
  'SELECT p.id, count(r.id) FROM raw p LEFT JOIN raw_places r ON p.v <-> r.v <= 1 GROUP BY p.id ORDER BY 1', 'a left join with a reference table');
my $nearest = 'CROSS JOIN LATERAL (SELECT r.id FROM %s r ORDER BY p.v <-> r.v, r.id LIMIT 3) n';
same_rows(sprintf("SELECT p.id, n.id FROM points p $nearest WHERE p.own ORDER BY 1, 2", 'places'),
  sprintf("SELECT p.id, n.id FROM raw p $nearest ORDER BY 1, 2", 'raw_places'), 'the nearest rows of a reference table');

my $session = Session->new($coordinator);
$session->value("PREPARE within(float8) AS SELECT $fingerprint FROM points a JOIN points b ON a.cell = b.cell AND a.v <-> b.v <= \$1 WHERE a.own");
is($session->value('EXECUTE within(0.4)'), value("SELECT $fingerprint FROM raw a JOIN raw b ON a.v <-> b.v <= 0.4"), "a prepared join, time $_") for 1 .. 7;
$session->quit;

value("CREATE TABLE pairs (id1 bigint, id2 bigint, cell bigint); SELECT create_distributed_table('pairs', 'cell', colocate_with => 'points')");
joins_by_shards("INSERT INTO pairs SELECT a.id, b.id, a.cell FROM $joined", 'pairs that are stored where they are found');
value("INSERT INTO pairs SELECT a.id, b.id, a.cell FROM $joined");
is(value('SELECT count(*), sum(id1 * id2) FROM pairs'), value("SELECT count(*), sum(a.id * b.id) FROM $alone"), 'all of them');
is(value("BEGIN; CREATE TABLE here AS SELECT a.id AS id1, b.id AS id2 FROM $joined; SELECT count(*), sum(id1 * id2) FROM here; ROLLBACK"),
  value("SELECT count(*), sum(a.id * b.id) FROM $alone"), 'a table here is made of pairs there');
is(value("BEGIN; INSERT INTO points VALUES (7000, '{10,10}', true, gpu_cell('{10,10}'::float8[], $WIDTH)); UPDATE places SET v = '{10,10}' WHERE id = 1;
  SELECT count(*) FROM points p JOIN places r ON p.v <-> r.v = 0 AND r.id = 1 WHERE p.own; ROLLBACK"), 2, 'a transaction sees what it has changed');

# The coordinator has all places, too.
my $places = 'SELECT count(*), sum(a.id * b.id) FROM %1$s a JOIN %1$s b ON a.v <-> b.v <= 2';
like(explained(sprintf $places, 'places'), qr/Task Count: 1\n.*GpuSimilarityJoin/s, 'a join of reference tables is the node\'s');
is(value(sprintf $places, 'places'), value(sprintf $places, 'raw_places'), 'with the same rows');

# ---- Functions: a distributed table has no rows of its own, they are in shards

is(value("SELECT count(*), sum(id1 * id2) FROM gpu_selfjoin('own_points', $EPS, id_column => 'id')"), value("SELECT count(*), sum(id1 * id2) FROM gpu_selfjoin('raw', $EPS)"),
  'a function joins the rows of a view of a distributed table');
for my $service ('off', 'on') {
  value("ALTER SYSTEM SET gpujoin.service = $service; SELECT pg_reload_conf()");
  is(value("SELECT count(*), sum(id1 * id2) FROM gpu_join('points', 'places', 1, left_id_column => 'id')"),
    value('SELECT count(*), sum(p.id * r.id) FROM points p JOIN places r ON p.v <-> r.v <= 1'), "of tables on several nodes (service $service)");
}
my ($result, $out, $error) = $coordinator->psql('postgres', "SELECT gpu_prewarm('places')");
like($error, qr/rows of relation "places" cannot stay in the service/, 'rows on other nodes do not stay in the service');
value('ALTER SYSTEM RESET gpujoin.service; SELECT pg_reload_conf()');
is(value(qq(SELECT bool_and(success) FROM run_command_on_shards('points', \$\$SELECT count(*) FROM gpu_selfjoin('%s', $EPS, id_column => 'id')\$\$))), 't', 'workers join their shards by functions');

# ---- A worker that stops

$session = Session->new($coordinator);
my $slow = "$joined AND slowly(a.own)";
for my $how ('fast', 'immediate') {
  my $name = $workers[1]->port;
  $session->start("SELECT $fingerprint FROM $slow");
  ok(wait_until($Session::DEADLINE, sub { $workers[1]->safe_psql('postgres', q(SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep')) > 0 }),
    "a worker is in the middle of its part ($how)");
  $workers[1]->stop($how);
  my $result = $session->result;
  isnt($result->{state}, '', 'the query ends with an error');
  cmp_ok($result->{seconds}, '<', $Session::DEADLINE, 'and does not hang');
  like($result->{error}, qr/$name/, 'which names the worker');
  is($session->value('SELECT count(*) FROM raw'), value('SELECT count(*) FROM raw'), 'the next query works');
  like($session->query("SELECT $fingerprint FROM $joined")->{error}, qr/$name/, 'one that needs the worker names it');
  $workers[1]->start;
  is($session->value("SELECT $fingerprint FROM $joined"), value("SELECT $fingerprint FROM $alone"), 'once it is back the join is as before');
}
$session->quit;

done_testing();
