# Tables whose rows stay in the service, while others change them: a join finds what a scan finds in the same snapshot,
# whatever the change, the isolation level and the server. Rows stay where they may, and nowhere else.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Cwd qw(realpath);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
use Test::More;

my $node = start_server('kept_rows', 'gpujoin.service = on', 'gpujoin.cpu_threads = 1', 'wal_level = replica',
  'max_wal_senders = 4', 'max_prepared_transactions = 5', 'restart_after_crash = on');
my ($writer, @readers);

sub open_sessions {
  my ($server) = @_;
  my @sessions = map { Session->new($server) } 1 .. 4;
  $_->value("SET search_path = kept, public; SET enable_nestloop = off; LOAD 'gpujoin'") for @sessions;
  ($writer, @readers) = @sessions;
  return;
}

sub close_sessions {
  $_->quit for $writer, @readers;
  return;
}

# How often joins found rows of the table in the service, by the columns that stay: plain SQL knows rows by their ctids.
sub hits_query {
  my ($table) = @_;
  return "SELECT coalesce(string_agg(columns || '=' || hits, ' '), '{}=0') FROM (SELECT columns::text, sum(hits) AS hits
    FROM gpu_resident WHERE relation = '$table'::regclass GROUP BY columns) s";
}

# By how much the hits of sets of columns have grown.
sub found {
  my ($before, $after) = map { { map { split /=/ } split / / } } @_;
  my $found = 0;
  for my $columns (keys %$after) {
    my $more = $after->{$columns} - ($before->{$columns} // 0);
    $found += $more if $more > 0;
  }
  return $found;
}

# The pairs within 1 as a scan of the table finds them; what joins find instead, where they do; and how many of the
# two joins found rows in the service.
sub look {
  my ($session, $table) = @_;
  my $pairs = "FROM $table a JOIN $table b ON a.v <-> b.v <= 1";
  my $hits = hits_query($table);
  my ($before, $function, $node, $after, $scan) = split /\n/, $session->value(<<~SQL);
    $hits;
    SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('$table', 1, 'id', vector_columns => 'v');
    SELECT count(*) $pairs;
    $hits;
    SET gpujoin.enable_customscan = off;
    SELECT count(*), sum(a.id * 7 + b.id) $pairs;
    RESET gpujoin.enable_customscan
    SQL
  my ($count) = split /\|/, $scan;
  my $wrong = '';
  $wrong .= "$function, not $scan, by the function\n" if $function ne $scan;
  $wrong .= "$node, not $count, by the node\n" if $node ne $count;
  return { rows => $scan, wrong => $wrong, found => found($before, $after) };
}

# Half of the blocks of the table t are all-visible, of the others hint bits say who has committed.
my $table = <<'SQL';
DROP SCHEMA IF EXISTS kept CASCADE;
CREATE SCHEMA kept;
CREATE TABLE t (id int PRIMARY KEY, v float8[], note text) WITH (fillfactor = 70);
INSERT INTO t SELECT i, ARRAY[i % 20, i / 20], repeat('x', 60) FROM generate_series(1, 120) i;
VACUUM t;
INSERT INTO t SELECT i, ARRAY[i % 20, i / 20], repeat('y', 60) FROM generate_series(121, 240) i;
SELECT count(*) FROM t;
SQL
my $move = "UPDATE t SET v = ARRAY[3.5, id / 20] WHERE id % 20 = 9";
my $fill = "INSERT INTO t SELECT i, ARRAY[i % 10, i / 10], 'new' FROM generate_series(1, 200) i";
my $frozen = realpath($node->data_dir) . '/frozen_rows';

# Each change of t in the steps of one session. After each step readers look at the table: two whose snapshots are from
# before the change, one with a new snapshot, and the one who changes it. Steps in brackets are for that one alone; the
# others would wait for its lock.
#   everywhere  on each of the servers, not on the first alone
#   before  what was done before there was a snapshot
#   locks   it waits for those that have read the table
#   anew    the rows get another file, table or type: they are kept anew, and the one who changes them keeps none
#   past    0: PostgreSQL does not show the past of such a change, old snapshots have other rows, too
#   finds   how many of the two joins find the rows in the service after it, 2 unless given
my @changes = (
  { name => 'INSERT', everywhere => 1, steps => [ 'BEGIN', "INSERT INTO t SELECT i, ARRAY[5, 5] FROM generate_series(501, 505) i", 'COMMIT' ] },
  { name => 'UPDATE in its block (HOT)', everywhere => 1,
    steps => [ 'BEGIN', "$move; SELECT 1 / pg_stat_get_xact_tuples_hot_updated('t'::regclass)", 'COMMIT', 'VACUUM t' ] },
  { name => 'UPDATE of a key', steps => [ 'BEGIN', "UPDATE t SET id = id + 1000, v = '{5,5}' WHERE id % 50 = 3", 'COMMIT' ] },
  { name => 'UPDATE of updated rows', before => $move, steps => [ $move, "UPDATE t SET note = 'z' WHERE id < 30", 'VACUUM t' ] },
  { name => 'DELETE', everywhere => 1, steps => [ 'BEGIN', 'DELETE FROM t WHERE id % 5 = 0', 'COMMIT', 'VACUUM t' ] },
  { name => 'VACUUM of what was deleted', before => 'DELETE FROM t WHERE id % 4 = 0', steps => [ 'VACUUM t', $fill =~ s/\bi,/1000 + i,/r ] },
  { name => 'VACUUM that shortens the table', before => 'DELETE FROM t WHERE id > 150', locks => 1,
    steps => [ 'VACUUM t', $fill =~ s/\bi,/1000 + i,/r ] },
  { name => 'VACUUM FREEZE', everywhere => 1, steps => [ 'VACUUM FREEZE t', $move, 'VACUUM FREEZE t' ] },
  { name => 'ROLLBACK', everywhere => 1,
    steps => [ 'BEGIN', "$move; INSERT INTO t VALUES (501, '{5,5}'); DELETE FROM t WHERE id < 20", 'ROLLBACK', 'VACUUM t' ] },
  { name => 'savepoints', everywhere => 1,
    steps => [ 'BEGIN', "SAVEPOINT a; $move", 'ROLLBACK TO a', "SAVEPOINT b; INSERT INTO t VALUES (501, '{5,5}'); RELEASE b",
      'DELETE FROM t WHERE id = 501', 'COMMIT' ] },
  { name => 'an exception that is caught',
    steps => [ 'BEGIN', "DO \$\$ BEGIN DELETE FROM t WHERE id < 100; RAISE division_by_zero;
      EXCEPTION WHEN division_by_zero THEN INSERT INTO t VALUES (501, '{5,5}'); END \$\$", 'COMMIT' ] },
  { name => 'row locks', steps => [ 'BEGIN', 'SELECT FROM t WHERE id < 50 FOR SHARE', "SAVEPOINT a; $move", 'COMMIT' ] },
  { name => 'COMMIT PREPARED', everywhere => 1, steps => [ 'BEGIN', $move, "PREPARE TRANSACTION 'kept'", "COMMIT PREPARED 'kept'" ] },
  { name => 'ROLLBACK PREPARED', steps => [ 'BEGIN', $move, "PREPARE TRANSACTION 'kept'", "ROLLBACK PREPARED 'kept'" ] },
  { name => 'CREATE INDEX', steps => [ 'CREATE INDEX ON t (note)', "UPDATE t SET note = 'z' WHERE id % 3 = 0" ] },
  { name => 'TRUNCATE', everywhere => 1, anew => 1, past => 0, steps => [ ['BEGIN; TRUNCATE t'], [$fill], 'COMMIT', $move ] },
  { name => 'TRUNCATE and ROLLBACK', locks => 1, steps => [ ["BEGIN; TRUNCATE t; $fill"], 'ROLLBACK' ] },
  { name => 'COPY FREEZE', everywhere => 1, anew => 1, past => 0,
    steps => [ ["BEGIN; TRUNCATE t; COPY t FROM '$frozen' (FREEZE)"], 'COMMIT', "DELETE FROM t WHERE id % 3 = 0" ] },
  { name => 'CLUSTER', everywhere => 1, anew => 1, before => $move, steps => [ ['BEGIN; CLUSTER t USING t_pkey'], 'COMMIT', $move ] },
  { name => 'VACUUM FULL', anew => 1, before => 'DELETE FROM t WHERE id % 3 = 0', steps => [ 'VACUUM FULL t', $move ] },
  { name => 'ALTER TYPE of the vectors', anew => 1, past => 0, steps => [ ['BEGIN; ALTER TABLE t ALTER v TYPE float4[]'], 'COMMIT', $move ] },
  { name => 'ALTER TYPE of the ids', anew => 1, past => 0, steps => [ ['BEGIN; ALTER TABLE t ALTER id TYPE bigint'], 'COMMIT', $move ] },
  { name => 'ALTER TYPE that needs no rewrite', locks => 1, steps => [ 'ALTER TABLE t ALTER note TYPE varchar', $move ] },
  { name => 'ALTER TYPE to a domain', anew => 1, finds => 1,
    steps => [ 'CREATE DOMAIN vector AS float8[]; ALTER TABLE t ALTER v TYPE vector', $move ] },
  { name => 'ADD COLUMN with a default', locks => 1, steps => [ "ALTER TABLE t ADD more int DEFAULT 7", $move ] },
  { name => 'vectors that are a default', locks => 1, finds => 0, past => 0,
    steps => [ "ALTER TABLE t DROP v; ALTER TABLE t ADD v float8[] DEFAULT '{1,2}'", $move ] },
  { name => 'RENAME', locks => 1,
    steps => [ 'ALTER TABLE t RENAME v TO w; ALTER TABLE t RENAME note TO v; ALTER TABLE t RENAME v TO note; ALTER TABLE t RENAME w TO v' ] },
  { name => 'DROP and CREATE', anew => 1, past => 0,
    steps => [ ["BEGIN; DROP TABLE t; CREATE TABLE t (note text, id int PRIMARY KEY, v float8[]);
      INSERT INTO t (id, v) SELECT i, ARRAY[i % 30, i / 30] FROM generate_series(1, 300) i"], 'COMMIT', $move ] },
  { name => 'SET UNLOGGED', locks => 1, finds => 0, past => 0, steps => [ ['BEGIN; ALTER TABLE t SET UNLOGGED'], 'COMMIT', $move ] },
  { name => 'REFRESH of a materialized view', anew => 1, past => 0, finds => 1,
    before => 'ALTER TABLE t RENAME TO s; CREATE MATERIALIZED VIEW t AS TABLE s; CREATE UNIQUE INDEX ON t (id)',
    steps => [ ($move =~ s/ t / s /r) . '; REFRESH MATERIALIZED VIEW t', 'DELETE FROM s WHERE id < 50; REFRESH MATERIALIZED VIEW CONCURRENTLY t' ] });
my $has_tablespaces = $node->safe_psql('postgres', "SELECT count(*) FROM pg_settings WHERE name = 'allow_in_place_tablespaces'");
push @changes, { name => 'SET TABLESPACE', anew => 1,
  steps => [ ['BEGIN; ALTER TABLE t SET TABLESPACE elsewhere'], 'COMMIT', $move ] }
  if $has_tablespaces;

# Looks at t with each of the sessions, and notes what is not as it should be. Without $finds joins may find rows or not.
sub watch {
  my ($trial, $step, $finds, @sessions) = @_;
  for my $session (@sessions) {
    my $seen = look($session, 't');
    my $past = $trial->{past}{$session} // $seen->{rows};
    $trial->{wrong} .= "$step: $seen->{wrong}" if $seen->{wrong};
    $trial->{wrong} .= "$step: $seen->{rows}, not $past, in the past\n" if $seen->{rows} ne $past;
    next if !defined $finds || ($finds ? $seen->{found} >= $finds : $seen->{found} == 0);
    $trial->{found} .= "$step: $seen->{found} joins found rows\n";
  }
  return;
}

sub run_change {
  my ($change, $server) = @_;
  my $finds = $change->{finds} // 2;
  my $trial = { wrong => '', found => '', past => {} };
  $writer->value($table . ($change->{before} // ''));
  look($writer, 't');    # which keeps the rows
  my $rows = look($writer, 't')->{rows};
  my @levels = ('REPEATABLE READ', 'SERIALIZABLE');
  for my $old (@readers[0, 1]) {
    $old->value('BEGIN ISOLATION LEVEL ' . shift(@levels) . '; SELECT 1');
    $trial->{past}{$old} = $rows if $change->{past} // 1;
  }
  my $anew = $change->{anew};
  watch($trial, 'before', $finds || 2, $writer, $anew || $change->{locks} ? () : @readers);
  for my $step (@{ $change->{steps} }) {
    $writer->value(ref $step ? $step->[0] : $step);
    watch($trial, $step->[0], 0, $writer), next if ref $step;
    watch($trial, $step, $anew ? undef : $finds, $readers[0]);
    # Where a table has no rows to a reader, the node joins nothing, and nothing is kept for the next one.
    watch($trial, $step, $anew && !($change->{past} // 1) ? $finds && 1 : $finds, @readers[1, 2], $writer);
    $anew = 0;
  }
  $_->value('COMMIT') for @readers[0, 1];
  is($trial->{wrong}, '', "$server, $change->{name}: joins find what scans find");
  is($trial->{found}, '', "$server, $change->{name}: rows stay where they may");
  return;
}

# A look that must find what a scan finds, by so many joins in the service.
sub check {
  my ($session, $relation, $finds, $what) = @_;
  my $seen = look($session, $relation);
  is($seen->{wrong}, '', "$what: joins find what a scan finds");
  cmp_ok($seen->{found}, $finds ? '>=' : '==', $finds, $finds ? "$what: rows stay" : "$what: none stay");
  return;
}

# A standby keeps nothing. Promoted, it does, but not for snapshots of before.
{
  open_sessions($node);
  $writer->value($table);
  $node->backup('base');
  my $standby = PostgreSQL::Test::Cluster->new('kept_rows_standby');
  $standby->init_from_backup($node, 'base', has_streaming => 1);
  $standby->start;
  $writer->value($move);
  $node->wait_for_catchup($standby);
  close_sessions();

  open_sessions($standby);
  my ($old) = @readers;
  $old->value('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
  for my $reader ($old, $writer) {
    check($reader, 't', 0, 'on a standby') for 1 .. 2;
  }
  $standby->promote;
  look($writer, 't');
  check($writer, 't', 2, 'promoted');
  $writer->value('DELETE FROM t WHERE id < 50');
  check($writer, 't', 2, 'promoted and changed');
  check($old, 't', 0, 'with the snapshot of a standby');
  close_sessions();
  $standby->stop;
}

# What was kept before a crash is gone after it, with the service.
{
  for my $crash ('of the server', 'of a backend') {
    open_sessions($node);
    $writer->value("$table SET synchronous_commit = off; $move; BEGIN; DELETE FROM t WHERE id < 50");
    look($readers[0], 't') for 1 .. 2;
    check($readers[0], 't', 2, "before a crash $crash");
    my ($service) = service_pids($node);
    my $pid = $writer->pid;
    $_->quit for @readers;
    if ($crash eq 'of the server') { $node->stop('immediate') }
    else { kill 'KILL', $pid }
    ok(wait_until($Session::DEADLINE, sub { !-d "/proc/$service" }), "a crash $crash ends the service");
    $writer->quit;
    if ($crash eq 'of the server') { $node->start }
    else { serves($node) or die }
    open_sessions($node);
    is($writer->value(hits_query('t')), '{}=0', "after a crash $crash nothing is there");
    look($writer, 't');
    check($writer, 't', 2, "after a crash $crash");
    close_sessions();
  }
}

# Serializable transactions that read a table whose rows are kept fail as those that scan it: its rows count as read.
# Each script says who does what; READ is of the table t, and CHANGE of one row of its own in t.
my @conflicts = (
  { name => 'two that read all and change a row each', fails => 1,
    script => [ '1: READ', '2: READ', '1: CHANGE', '2: CHANGE', '1: COMMIT', '2: COMMIT' ] },
  { name => 'two that read all and add a row each', fails => 1,
    script => [ '1: READ', '2: READ', "1: INSERT INTO t VALUES (1001, '{5,5}')", "2: INSERT INTO t VALUES (1002, '{5,5}')",
      '1: COMMIT', '2: COMMIT' ] },
  { name => 'one between a reader and one that changed a row since', fails => 1,
    script => [ '1: SELECT 1', '3: SELECT n FROM u', '2: CHANGE', '2: COMMIT', '0: READ', '1: READ', '1: UPDATE u SET n = 1',
      '1: COMMIT', '3: COMMIT' ] },
  { name => 'two that only change a row each', fails => 0, script => [ '1: CHANGE', '2: CHANGE', '1: COMMIT', '2: COMMIT' ] },
  { name => 'one that reads and one that changes', fails => 0,
    script => [ '1: READ', '2: CHANGE', '2: COMMIT', '1: READ', '1: COMMIT' ] });
my $scan = 'SELECT count(v) FROM t';
my %ways = (
  'a function' => "SELECT count(*) FROM gpu_selfjoin('t', 1)",
  'the node' => 'SELECT count(*) FROM t a JOIN t b ON a.v <-> b.v <= 1');

sub run_conflict {
  my ($conflict, $read) = @_;
  my @errors;
  $writer->value("$table CREATE TABLE u (n int); INSERT INTO u VALUES (0)");
  look($writer, 't') for 1 .. 2;
  my %sessions = (0 => $writer, map { $_ => $readers[ $_ - 1 ] } 1 .. 3);
  my $before = $writer->value(hits_query('t'));
  $_->value('BEGIN ISOLATION LEVEL SERIALIZABLE') for @readers;
  for (@{ $conflict->{script} }) {
    my ($who, $sql) = /^(\d): (.*)/;
    $sql = $read if $sql eq 'READ';
    $sql = "SET enable_seqscan = off; UPDATE t SET note = 'changed' WHERE id = 100 * $who; RESET enable_seqscan" if $sql eq 'CHANGE';
    my $state = $sessions{$who}->query($sql)->{state};
    push @errors, "$_ $state" if $state ne '' && $state ne '25P02';
  }
  $_->value('ROLLBACK') for @readers;
  return { errors => join(', ', @errors), found => found($before, $writer->value(hits_query('t'))) };
}

{
  open_sessions($node);
  for my $conflict (@conflicts) {
    my $errors = run_conflict($conflict, $scan)->{errors};
    is(scalar(() = $errors =~ /40001/g), $conflict->{fails}, "serializable, $conflict->{name}: $conflict->{fails} of them fail");
    for my $way (sort keys %ways) {
      my $run = run_conflict($conflict, $ways{$way});
      is($run->{errors}, $errors, "read by $way: the same");
      cmp_ok($run->{found}, '>=', grep({ /READ/ } @{ $conflict->{script} }), "each time $way finds rows in the service");
    }
  }
  close_sessions();
}

# Relations that come and go, and those whose rows never stay: how many joins find them after each step.
my $point = 'id int PRIMARY KEY, v float8[]';
my $rows = 'SELECT i, ARRAY[i % 20, i / 20] FROM generate_series';
my @relations = (
  { name => 'partitions', steps => [
    [ "CREATE TABLE t ($point) PARTITION BY RANGE (id); CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (100);
      CREATE TABLE high PARTITION OF t FOR VALUES FROM (100) TO (300); INSERT INTO t $rows(1, 240) i", t => 0, low => 2, high => 2 ],
    [ 'ALTER TABLE t DETACH PARTITION low', t => 0, low => 2 ],
    [ "UPDATE low SET v = '{5,5}' WHERE id < 10; ALTER TABLE t ATTACH PARTITION low FOR VALUES FROM (0) TO (100)", t => 0, low => 2 ],
    [ "UPDATE t SET id = id + 240 WHERE id < 50", t => 0, low => 2, high => 2 ],
    [ 'DROP TABLE low', t => 0, high => 2 ] ] },
  { name => 'children', steps => [
    [ "CREATE TABLE t ($point); INSERT INTO t $rows(1, 120) i", t => 2 ],
    [ "CREATE TABLE child (PRIMARY KEY (id)) INHERITS (t); INSERT INTO child $rows(121, 240) i", t => 0, child => 2 ],
    [ "UPDATE t SET v = '{5,5}' WHERE id % 50 = 7", t => 0, child => 2 ],
    [ 'ALTER TABLE child NO INHERIT t; ANALYZE t', t => 2, child => 2 ] ] },
  { name => 'an unlogged table', steps => [
    [ "CREATE UNLOGGED TABLE t ($point); INSERT INTO t $rows(1, 240) i", t => 0 ], [ 'DELETE FROM t WHERE id < 50; VACUUM t', t => 0 ] ] },
  { name => 'a temporary table', steps => [
    [ "CREATE TEMPORARY TABLE scratch ($point); INSERT INTO scratch $rows(1, 240) i", scratch => 0 ],
    [ 'DELETE FROM scratch WHERE id < 50; VACUUM scratch', scratch => 0 ] ] },
  { name => 'a table of the transaction at hand', steps => [
    [ "BEGIN; CREATE TABLE t ($point); INSERT INTO t $rows(1, 240) i", t => 0 ], [ 'SAVEPOINT a; DELETE FROM t WHERE id < 50', t => 0 ],
    [ 'ROLLBACK TO a', t => 0 ], [ 'COMMIT', t => 2 ], [ 'DELETE FROM t WHERE id < 50', t => 2 ] ] },
  { name => 'a table that is vacuumed before anybody looks', steps => [
    [ "CREATE TABLE t ($point); INSERT INTO t $rows(1, 240) i; VACUUM t", t => 2 ],
    [ "UPDATE t SET v = '{5,5}' WHERE id % 50 = 7; VACUUM t", t => 2 ], [ 'DELETE FROM t WHERE id % 3 = 0; VACUUM t', t => 2 ],
    [ "INSERT INTO t $rows(301, 320) i; VACUUM FREEZE t", t => 2 ] ] },
  { name => 'a table of no rows', steps => [
    [ "CREATE TABLE t ($point)", t => 1 ], [ "INSERT INTO t VALUES (1, NULL)", t => 1 ], [ "INSERT INTO t $rows(2, 9) i", t => 2 ],
    [ 'DELETE FROM t; VACUUM t', t => 2 ], [ "INSERT INTO t SELECT i, ARRAY[i] FROM generate_series(1, 9) i", t => 2 ] ] });

sub run_relation {
  my ($case, $server) = @_;
  my ($wrong, $found) = ('', '');
  $writer->value('DROP SCHEMA IF EXISTS kept CASCADE; CREATE SCHEMA kept');
  for (@{ $case->{steps} }) {
    my ($step, %finds) = @$_;
    $writer->value($step);
    for my $name (sort keys %finds) {
      look($writer, $name);
      my $seen = look($writer, $name);
      $wrong .= "$step: $name: $seen->{wrong}" if $seen->{wrong};
      $found .= "$step: $seen->{found} joins found $name\n" if ($seen->{found} < 2 ? $seen->{found} : 2) != $finds{$name};
    }
  }
  is($wrong, '', "$server, $case->{name}: joins find what scans find");
  is($found, '', "$server, $case->{name}: rows stay where they may");
  return;
}

# On servers that write WAL in different ways. With checksums a hint bit may write WAL. At the level minimal a
# transaction's own files have no LSNs.
if ($has_tablespaces) {
  $node->append_conf('postgresql.conf', 'allow_in_place_tablespaces = on');
  $node->reload;
  $node->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION ''");
}

sub run_all {
  my ($server, @some) = @_;
  open_sessions($node);
  $writer->value($table . "COPY t TO '$frozen'");
  run_change($_, $server) for @some;
  run_relation($_, $server) for @relations;
  close_sessions();
  return;
}

# Transactions that extend a table at once leave new blocks, of zeros, which VACUUM leaves as they are.
sub run_with_new_blocks {
  open_sessions($node);
  $writer->value($table);
  my $file = $node->data_dir . '/' . $writer->value("SELECT pg_relation_filepath('t')");
  close_sessions();
  $node->stop;
  append_to_file($file, "\0" x (3 * 8192));
  $node->start;
  open_sessions($node);
  my $read = "SELECT sum(blocks_read) FROM gpu_resident WHERE relation = 't'::regclass";
  is(look($readers[0], 't')->{wrong}, '', 'rows of a table with new blocks');
  my $before = $writer->value($read);
  is(look($readers[1], 't')->{wrong}, '', 'the same rows again');
  is($writer->value($read), $before, 'new blocks are not read again');
  $writer->value($fill =~ s/\bi,/1000 + i,/r);
  is(look($readers[0], 't')->{wrong}, '', 'rows that were put into new blocks');
  close_sessions();
  return;
}

run_all('without checksums', @changes);
# With values out of line, which need not be read again where an update has left them as they are.
{
  my $in_line = $table;
  $table =~ s/fillfactor = 70/fillfactor = 70, toast_tuple_target = 128/;
  $table =~ s/;\nINSERT/;\nALTER TABLE t ALTER v SET STORAGE EXTERNAL, ALTER note SET STORAGE PLAIN;\nINSERT/;
  $table =~ s/, 60\)/, 2000)/g;
  run_all('values out of line', grep { $_->{name} =~ m{UPDATE|ROLLBACK|savepoints} } @changes);
  open_sessions($node);
  $writer->value($table);
  my $search = "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM t ORDER BY v <-> '{3,3}' LIMIT 1";
  $readers[0]->value("SET gpujoin.prefer_node = on; $search");
  $writer->value('UPDATE t SET note = note WHERE id % 3 = 0');
  my $plan = $readers[0]->value($search);
  like($plan, qr/GpuSimilarityScan/, 'a search after an update of 80 rows');
  my ($hits) = $plan =~ /Buffers: shared hit=(\d+)/;
  cmp_ok($hits, '<', 200, 'reads few blocks, and no values out of line');
  close_sessions();
  $table = $in_line;
}
my $has_checksums = $node->safe_psql('postgres', 'SHOW data_checksums') eq 'on';
$node->stop;
system_or_bail($node->installed_command('pg_checksums'), '--enable', '-D', $node->data_dir) unless $has_checksums;
$node->append_conf('postgresql.conf', 'wal_log_hints = on');
$node->start;
run_all('with checksums', grep { $_->{everywhere} } @changes);
run_with_new_blocks();
$node->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0\nwal_skip_threshold = 0");
$node->restart;
run_all('wal_level = minimal', grep { $_->{everywhere} } @changes);

$node->stop;
done_testing();
