# Several servers, each with the points of some cells: joins that are shipped whole, what travels, what is left when a
# server is gone.
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

# What points get on the way to the servers that know them: their own cell, and the others of their halos.
my $spread = <<"SQL";
SELECT id, v, cell = gpu_cell(v, $WIDTH) AS own, cell FROM raw, unnest(gpu_halo(v, $WIDTH, $EPS)) cell
SQL

my $coordinator = start_server('coordinator', 'enable_partitionwise_join = on');
my @servers = map { start_server("server_$_") } 0 .. 2;

$coordinator->safe_psql('postgres', <<'SQL');
CREATE EXTENSION postgres_fdw;
CREATE TABLE raw (id bigint, v float8[]);
INSERT INTO raw SELECT i, ARRAY[i * 0.618034 % 1 * 50, i * 0.414214 % 1 * 50] FROM generate_series(1, 5000) i;
INSERT INTO raw VALUES (6000, '{10,10}'), (6001, '{10.5,10}'), (6002, '{9.5,10}'), (6003, '{-0.2,-0.1}'), (6004, '{0.2,0.1}'), (6005, '{NaN,1}');
ANALYZE raw;
CREATE TABLE points (id bigint, v float8[], own boolean, cell bigint) PARTITION BY HASH (cell);
SQL
for my $i (0 .. 2) {
  my $server = $servers[$i];
  my ($host, $port) = ($server->host, $server->port);
  $server->safe_psql('postgres', "CREATE TABLE points_$i (id bigint, v float8[], own boolean, cell bigint)");
  $coordinator->safe_psql('postgres', <<"SQL");
CREATE SERVER server_$i FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres',
  extensions 'gpujoin', use_remote_estimate 'true', async_capable 'true', fetch_size '10000', batch_size '1000');
CREATE USER MAPPING FOR CURRENT_USER SERVER server_$i;
CREATE FOREIGN TABLE points_$i PARTITION OF points FOR VALUES WITH (MODULUS 3, REMAINDER $i) SERVER server_$i;
SQL
}
$coordinator->safe_psql('postgres', "INSERT INTO points $spread");
$_->safe_psql('postgres', 'ANALYZE') for @servers;

my $joined = "points a JOIN points b ON a.cell = b.cell AND a.v <-> b.v <= $EPS WHERE a.own";
my $alone = "raw a JOIN raw b ON a.v <-> b.v <= $EPS";
my $fingerprint = 'count(*), sum(a.id), sum(b.id), sum(a.id * b.id)';

sub value { return $coordinator->safe_psql('postgres', $_[0]); }

# A plan that was run to its end.
sub plan_of {
  my ($sql) = @_;
  return value("EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) $sql");
}

# Rows that scans of foreign tables brought.
sub rows_shipped {
  my ($plan) = @_;
  my $rows = 0;
  $rows += $1 * $2 while $plan =~ /Foreign Scan.*\(actual rows=(\d+)(?:\.\d+)? loops=(\d+)\)/g;
  return $rows;
}

# ---- Every pair once, joined where the points are

is(value("SELECT $fingerprint FROM $joined"), value("SELECT $fingerprint FROM $alone"), 'every pair comes once');
is(value("SELECT count(*) FROM (SELECT a.id, b.id FROM $joined) p(a, b)"), value("SELECT count(*) FROM (SELECT DISTINCT a.id, b.id FROM $joined) p"), 'and none twice');

my $pairs = value("SELECT count(*) FROM $alone");
my $plan = plan_of("SELECT a.id, b.id FROM $joined");
is(() = $plan =~ /Async Foreign Scan/g, 3, 'three servers join at a time');
is(() = $plan =~ /Relations: \(public\.points_(\d) \w+\) INNER JOIN \(public\.points_\1 \w+\)/g, 3, 'each its own points');
unlike($plan, qr/GpuSimilarityJoin/, 'nothing is joined here');
is(rows_shipped($plan), $pairs, 'pairs travel, and nothing else');
my $halo = value('SELECT count(*) FROM points WHERE NOT own');
cmp_ok($halo, '<', value('SELECT count(*) FROM raw') * ((1 + 2 * $EPS / $WIDTH)**2 - 1) * 1.2, 'the halo is as large as expected');

# How a server does its part.
my $remote = $servers[0]->safe_psql('postgres', "EXPLAIN SELECT a.id, b.id FROM points_0 a JOIN points_0 b ON a.cell = b.cell AND a.v <-> b.v <= $EPS WHERE a.own");
like($remote, qr/GpuSimilarityJoin/, 'a server joins by the node');

# ---- Two tables of one server, without cells

for my $estimate ('true', 'false') {
  value("ALTER SERVER server_1 OPTIONS (SET use_remote_estimate '$estimate')");
  my $local = $servers[1]->safe_psql('postgres', "SELECT $fingerprint FROM points_1 a JOIN points_1 b ON a.v <-> b.v <= $EPS");
  my $both = "points_1 a JOIN points_1 b ON a.v <-> b.v <= $EPS";
  my $shipped = plan_of("SELECT a.id, b.id FROM $both");
  like($shipped, qr/Remote SQL: SELECT .* INNER JOIN .* OPERATOR\(public\.<->\)/, "remote estimates $estimate: a join is shipped");
  unlike($shipped, qr/GpuSimilarityJoin/, 'and not done here');
  is(value("SELECT $fingerprint FROM $both"), $local, 'with the same rows');
  my $counted = plan_of("SELECT count(*) FROM $both");
  like($counted, qr/Remote SQL: SELECT count\(\*\) FROM .* INNER JOIN/, 'a count is shipped, too');
  is(rows_shipped($counted), 1, 'as one row');
}
value(q(ALTER SERVER server_1 OPTIONS (SET use_remote_estimate 'true')));

# ---- Inputs of the node here, as before

value(q(ALTER SERVER server_1 OPTIONS (DROP extensions)));
my $here = "points_1 a JOIN points_1 b ON a.v <-> b.v <= $EPS";
like(plan_of("SELECT a.id, b.id FROM $here"), qr/GpuSimilarityJoin/, 'what the server is not known to have is joined here');
is(value("SELECT $fingerprint FROM $here"), $servers[1]->safe_psql('postgres', "SELECT $fingerprint FROM $here"), 'with the same rows');
value(q(ALTER SERVER server_1 OPTIONS (ADD extensions 'gpujoin')));
my $mixed = "raw a JOIN points b ON a.v <-> b.v <= $EPS WHERE b.own";
like(plan_of("SELECT a.id, b.id FROM $mixed"), qr/GpuSimilarityJoin.*Foreign Scan/s, 'a table here and partitions there are joined here');
is(value("SELECT $fingerprint FROM $mixed"), value("SELECT $fingerprint FROM $alone"), 'with the same rows');
like(plan_of("SELECT a.id, b.id FROM points_0 a JOIN points_1 b ON a.v <-> b.v <= $EPS"), qr/GpuSimilarityJoin/, 'and so are tables of two servers');

# ---- A server that stops

$servers[2]->safe_psql('postgres', <<'SQL');
CREATE FUNCTION slowly(boolean) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN $1; END $$;
ALTER TABLE points_2 RENAME TO points_2_table;
CREATE VIEW points_2 AS SELECT * FROM points_2_table WHERE slowly(own);
SQL
my $session = Session->new($coordinator);
$session->pid;
for my $how ('fast', 'immediate') {
  $session->start("SELECT $fingerprint FROM $joined");
  ok(wait_until($Session::DEADLINE, sub { $servers[2]->safe_psql('postgres', q(SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep')) > 0 }),
    "a server is in the middle of its part ($how)");
  $servers[2]->stop($how);
  my $result = $session->result;
  like($result->{state}, qr/^(57P01|08006|57P02)$/, 'the query ends with an error');
  cmp_ok($result->{seconds}, '<', $Session::DEADLINE, 'and does not hang');
  like($result->{error}, qr/public\.points_2/, 'which names the part of the server');
  is($session->value('SELECT count(*) FROM raw'), value('SELECT count(*) FROM raw'), 'the next query works');
  is($session->value('SELECT count(*) > 0 FROM points_0'), 't', 'and so does one of another server');
  like($session->query("SELECT count(*) FROM points_2")->{error}, qr/server "server_2"/, 'one of this server names it');
  $servers[2]->start;
}
$servers[2]->safe_psql('postgres', 'DROP VIEW points_2; ALTER TABLE points_2_table RENAME TO points_2');
is($session->value("SELECT $fingerprint FROM $joined"), value("SELECT $fingerprint FROM $alone"), 'once it is back the join is as before');
$session->quit;

done_testing();
