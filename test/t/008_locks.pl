# Statements that change or lock rows of a join by the node, while another session changes the same rows: PostgreSQL
# waits for it and then looks again whether the changed row still matches, by the node as by its own joins.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Session;
use Test::More;

my $node = start_server('locks');
my $observer = Session->new($node);
my $near = 'a.v <-> b.v <= 1';

# Each row of a has one row of b near it; those from 31 on have none.
my $tables = <<'SQL';
DROP TABLE IF EXISTS a, b;
CREATE TABLE a (id int PRIMARY KEY, v float8[], note text);
CREATE TABLE b (id int PRIMARY KEY, v float8[]);
INSERT INTO a SELECT i, ARRAY[10 * i, 0.5], 'old' FROM generate_series(1, 40) i;
INSERT INTO b SELECT i, ARRAY[10 * i, 0] FROM generate_series(1, 30) i;
ANALYZE a, b;
SQL

# The other session's: rows that move away, near another one, or near at last; that stay near; that go.
my $changes = <<'SQL';
UPDATE a SET v = ARRAY[-1000, 0] WHERE id = 3;
UPDATE a SET note = 'theirs' WHERE id IN (5, 33);
DELETE FROM a WHERE id IN (7, 35);
UPDATE a SET v = ARRAY[90, 0.9] WHERE id = 9;
UPDATE a SET v = ARRAY[120, 0] WHERE id = 11;
UPDATE a SET v = ARRAY[200, 0] WHERE id = 36;
SQL

my @statements = (
  "DELETE FROM a USING b WHERE $near RETURNING a.id, b.id",
  "DELETE FROM a WHERE EXISTS (SELECT FROM b WHERE $near) RETURNING id",
  "DELETE FROM a WHERE NOT EXISTS (SELECT FROM b WHERE $near) RETURNING id",
  "UPDATE a SET note = note || b.id FROM b WHERE $near RETURNING a.id, b.id",
  "UPDATE a SET note = note || ' mine' WHERE id IN (SELECT l.id FROM a l JOIN b ON l.v <-> b.v <= 1) RETURNING id",
  "UPDATE a SET note = note || coalesce(n.id, 0) FROM (SELECT a.id AS own, b.id FROM a LEFT JOIN b ON $near) n"
    . ' WHERE n.own = a.id RETURNING a.id, n.id',
  "SELECT a.id, b.id FROM a JOIN b ON $near FOR UPDATE OF a",
  "SELECT a.id, b.id FROM a LEFT JOIN b ON $near FOR NO KEY UPDATE OF a",
  "SELECT a.id, b.id FROM a JOIN b ON $near ORDER BY a.v <-> b.v, a.id LIMIT 12 FOR UPDATE OF a",
  "SELECT a.id FROM a JOIN b ON $near FOR UPDATE OF a SKIP LOCKED");
push @statements, "MERGE INTO a USING b ON $near WHEN MATCHED AND a.id > 20 THEN DELETE WHEN MATCHED THEN UPDATE SET note = note || b.id"
  . ' WHEN NOT MATCHED THEN DO NOTHING'
  if $node->safe_psql('postgres', 'SHOW server_version_num') >= 150000;

# How the node comes to its rows: by its inputs, or past them, from blocks of tables or from the service.
my $by_inputs = 'enable_nestloop = off';
my %ways = (
  'by its inputs' => $by_inputs,
  'by blocks' => "$by_inputs; SET min_parallel_table_scan_size = 0",
  'from the service' => "$by_inputs; SET gpujoin.service = on");

# What the statement returns and leaves, when the changes are committed while it waits for them.
sub outcome {
  my ($statement, $settings) = @_;
  $observer->value($tables);
  my ($mine, $theirs) = map { Session->new($node) } 1 .. 2;
  my $pid = $mine->pid;
  $mine->value("SET $settings; LOAD 'gpujoin'");
  my $plan = $mine->value("EXPLAIN (COSTS OFF, VERBOSE) $statement");
  $theirs->value("BEGIN; $changes");
  $mine->start($statement);
  my $waits = $statement !~ /SKIP LOCKED/;
  wait_until($Session::DEADLINE, sub {
    $observer->value("SELECT count(*) FROM pg_stat_activity WHERE pid = $pid AND wait_event_type = 'Lock'") > 0;
  }) || fail("$statement waits") if $waits;
  my $result = $waits ? undef : $mine->result;
  $theirs->value('COMMIT');
  $result //= $mine->result;
  my $left = $observer->value('SELECT id, v, note FROM a ORDER BY id');
  $_->quit for $mine, $theirs;
  return ($plan, join("\n", $result->{error}, sort split /\n/, $result->{rows}), $left);
}

for my $statement (@statements) {
  my (undef, $expected_rows, $expected_left) = outcome($statement, 'gpujoin.enable_customscan = off');
  for my $way (sort keys %ways) {
    my ($plan, $rows, $left) = outcome($statement, $ways{$way});
    like($plan, qr/Custom Scan \(GpuSimilarityJoin\)/, "by the node, $way: $statement");
    is($rows, $expected_rows, 'it returns the same rows');
    is($left, $expected_left, 'and leaves the same');
  }
}

# The rows of a partitioned table that a statement changes have names that only PostgreSQL's own joins pass on.
$observer->value(<<'SQL');
CREATE TABLE parts (id int, v float8[], note text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (20);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (20) TO (100);
INSERT INTO parts SELECT * FROM a;
ANALYZE parts;
SET enable_nestloop = off;
SQL
my $update = 'UPDATE parts a SET note = b.id FROM b WHERE a.v <-> b.v <= 1';
unlike($observer->value("EXPLAIN (COSTS OFF, VERBOSE) $update"), qr/GpuSimilarityJoin/, 'not by the node: a partitioned target');
$observer->value($update);
is($observer->value("SELECT count(*) FROM parts WHERE note <> 'old' AND note <> 'theirs'"),
  $observer->value("SELECT count(*) FROM parts a JOIN b ON $near"), 'which is changed all the same');

$observer->quit;
$node->stop;
done_testing();
