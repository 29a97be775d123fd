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
CREATE VIEW own_points AS SELECT * FROM points WHERE own;
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

# A count of all servers: one row of each, all at a time.
my $counts = join ' UNION ALL ', map { "SELECT count(*) AS n FROM points_$_ a JOIN points_$_ b ON a.cell = b.cell AND a.v <-> b.v <= $EPS WHERE a.own" } 0 .. 2;
my $summed = "SELECT sum(n) FROM ($counts) servers";
$plan = plan_of($summed);
is(() = $plan =~ /Async Foreign Scan/g, 3, 'three servers count at a time');
is(rows_shipped($plan), 3, 'and ship a row each');
is(value($summed), $pairs, 'together all pairs');

# What postgres_fdw sends, besides: all that the extension has for conditions, but a metric by its name, as it sends no text that
# has no foreign column's collation.
my %shipped = (
  'a.v <=> b.v <= 0.0001' => 1,
  'a.v <+> b.v < 0.3' => 1,
  'gpu_within(a.v, b.v, 0.2)' => 1,
  'gpu_cosine_distance(a.v, b.v) < 0.0001' => 1,
  'gpu_cell(a.v, 4) = gpu_cell(b.v, 4) AND a.v <-> b.v <= 0.2' => 1,
  q(gpu_within(a.v, b.v, 0.2, 'linf')) => 0,
);
for my $condition (sort keys %shipped) {
  my $both = "points_1 a JOIN points_1 b ON $condition";
  my $how = plan_of("SELECT a.id, b.id FROM $both");
  if ($shipped{$condition}) { like($how, qr/\AForeign Scan.*Remote SQL: SELECT .* INNER JOIN/s, "$condition: shipped"); }
  else { like($how, qr/GpuSimilarityJoin.*Foreign Scan.*Foreign Scan/s, "$condition: joined here"); }
  is(value("SELECT $fingerprint FROM $both"), $servers[1]->safe_psql('postgres', "SELECT $fingerprint FROM $both"), "$condition: the same rows");
}

# ---- Inputs of the node here, as before

value(q(ALTER SERVER server_1 OPTIONS (DROP extensions)));
my $here = "points_1 a JOIN points_1 b ON a.v <-> b.v <= $EPS";
like(plan_of("SELECT a.id, b.id FROM $here"), qr/GpuSimilarityJoin/, 'what the server is not known to have is joined here');
is(value("SELECT $fingerprint FROM $here"), $servers[1]->safe_psql('postgres', "SELECT $fingerprint FROM $here"), 'with the same rows');
value(q(ALTER SERVER server_1 OPTIONS (ADD extensions 'gpujoin')));
my $own = value('SELECT count(*) FROM points WHERE own');
my %inputs = (
  'raw a JOIN points b ON a.v <-> b.v <= 0.5 WHERE b.own' => 1,
  'points a JOIN points b ON a.v <-> b.v <= 0.5 WHERE a.own AND b.own' => 2,
  'points a JOIN raw b ON (a.v || a.v) <-> (b.v || b.v) <= 0.7 WHERE a.own' => 1,
  'raw a LEFT JOIN (SELECT * FROM points WHERE own) b ON a.v <-> b.v <= 0.5' => 1,
);
for my $input (sort keys %inputs) {
  my $of_raw = $input =~ s/\(SELECT \* FROM points WHERE own\)|points/raw/gr =~ s/ WHERE .*//r;
  my $how = plan_of("SELECT a.id, b.id FROM $input");
  like($how, qr/GpuSimilarityJoin.*Append.*Async Foreign Scan/s, "$input: partitions there are inputs of a join here");
  is(() = $how =~ /Async Foreign Scan/g, 3 * $inputs{$input}, 'which servers read at a time');
  is(rows_shipped($how), $own * $inputs{$input}, 'and ship once');
  is(value("SELECT $fingerprint FROM $input"), value("SELECT $fingerprint FROM $of_raw"), 'the same rows');
}
my $mixed = "raw a JOIN points b ON a.v <-> b.v <= $EPS WHERE b.own";
like(plan_of("SELECT count(*) FROM $mixed"), qr/GpuSimilarityJoin.*Counts: pairs.*Async Foreign Scan/s, 'a count needs no row of the pairs');
is(value("SELECT count(*) FROM $mixed"), $pairs, 'and is right');
my $nearest = 'CROSS JOIN LATERAL (SELECT b.id FROM raw b ORDER BY a.v <-> b.v, b.id LIMIT 2) n';
like(plan_of("SELECT a.id, n.id FROM points a $nearest WHERE a.own"), qr/Nearest-Neighbor Join.*Async Foreign Scan/s, 'the nearest rows here of rows there');
is(value("SELECT sum(a.id * n.id) FROM points a $nearest WHERE a.own"), value("SELECT sum(a.id * n.id) FROM raw a $nearest"), 'are the same');
for my $inner ('points', 'points_1') {
  my $ordered = "CROSS JOIN LATERAL (SELECT b.id, b.id + a.id AS both FROM %s b WHERE b.own AND b.id <> a.id ORDER BY a.v <-> b.v, b.id LIMIT 2) n";
  my $there = sprintf("SELECT sum(a.id * n.id) FROM raw a $ordered", $inner);
  my $how = plan_of($there);
  my $scans = $inner eq 'points' ? 3 : 1;
  like($how, qr/Nearest-Neighbor Join.*Foreign Scan/s, "the nearest rows of $inner");
  is(rows_shipped($how), value("SELECT count(*) FROM $inner WHERE own"), 'are found among rows that were shipped once');
  is(() = $how =~ /Foreign Scan/g, $scans, 'by each server');
  value("CREATE TABLE copied AS SELECT * FROM $inner; ANALYZE copied");
  is(value($there), value(sprintf("SELECT sum(a.id * n.id) FROM raw a $ordered", 'copied')), 'and are the same');
  value('DROP TABLE copied');
}
# A server is asked for the costs of the subquery's table once, with however many outer relations the subquery can be joined.
sub costs_asked {
  my ($sql) = @_;
  my $log = $servers[1]->logfile;
  my $start = -s $log;
  value("EXPLAIN $sql");
  return scalar(() = slurp_file($log, $start) =~ /EXPLAIN SELECT/g);
}
my $of_server = 'CROSS JOIN LATERAL (SELECT b.id FROM points_1 b ORDER BY a.v <-> b.v, b.id LIMIT 2) n';
my $asked = costs_asked("SELECT FROM raw a $of_server");
cmp_ok($asked, '>', 0, 'planning asks a server for costs');
is(costs_asked("SELECT FROM raw a JOIN raw c USING (id) JOIN raw d USING (id) $of_server"), $asked, 'and not again for each order of joins');
is(value("SELECT count(*), sum(id1 * id2) FROM gpu_join('own_points', 'raw', $EPS, left_id_column => 'id', right_id_column => 'id')"),
  value("SELECT count(*), sum(a.id * b.id) FROM $alone"), 'a function reads partitions there');
like(plan_of("SELECT a.id, b.id FROM points_0 a JOIN points_1 b ON a.v <-> b.v <= $EPS"), qr/GpuSimilarityJoin/, 'and so are tables of two servers');

# ---- A server that stops

$servers[2]->safe_psql('postgres', <<'SQL');
CREATE FUNCTION slowly(boolean) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN $1; END $$;
ALTER TABLE points_2 RENAME TO points_2_table;
CREATE VIEW points_2 AS SELECT * FROM points_2_table WHERE slowly(own);
SQL
my $session = Session->new($coordinator);
$session->pid;
for my $stop ([ 'fast', $joined ], [ 'immediate', $joined ], [ 'fast', $mixed ], [ 'immediate', $mixed ]) {
  my ($how, $from) = @$stop;
  $session->start("SELECT $fingerprint FROM $from");
  ok(wait_until($Session::DEADLINE, sub { $servers[2]->safe_psql('postgres', q(SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep')) > 0 }),
    "a server is in the middle of its part ($how): $from");
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
is($session->value("SELECT $fingerprint FROM $_"), value("SELECT $fingerprint FROM $alone"), "once it is back the join is as before: $_") for $joined, $mixed;
$session->quit;

done_testing();
