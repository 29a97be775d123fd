# What administrators watch: the counts of all sessions' joins, the joins at work, and the log of slow ones.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use Session;
use Test::More;
use Time::HiRes qw(sleep);

my $node = start_server('statistics', 'gpujoin.service = auto', 'gpujoin.cpu_threads = 2');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE points (id int PRIMARY KEY, v float8[]);
INSERT INTO points SELECT i, ARRAY[i % 200, i / 200] FROM generate_series(0, 19999) i;
CREATE TABLE few (id int PRIMARY KEY, v float8[]);
INSERT INTO few SELECT i, ARRAY[i] FROM generate_series(0, 99) i;
CREATE TABLE dense (id int PRIMARY KEY, v float8[]);
INSERT INTO dense SELECT i, ARRAY[sin(i), cos(i * 7), sin(i * 3), cos(i * 5), sin(i * 11), cos(i * 13)] FROM generate_series(1, 300000) i;
-- Takes seconds to read.
CREATE VIEW slow AS SELECT id, v FROM dense WHERE id % 10000 <> 0 OR pg_sleep(0.1) IS NOT NULL;
ANALYZE;
CREATE ROLE reader LOGIN;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
SQL
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION gpujoin; CREATE TABLE few (id int PRIMARY KEY, v float8[]);'
    . 'INSERT INTO few SELECT i, ARRAY[i] FROM generate_series(0, 99) i');
my $count = "SELECT count(*) FROM gpu_selfjoin('points', 1)";
my $pairs = 20000 + 2 * (199 * 100 + 200 * 99);

sub counts {
  my ($columns, $database) = @_;
  return $node->safe_psql('postgres', "SELECT $columns FROM pg_stat_gpujoin WHERE datname = '" . ($database // 'postgres') . "'");
}

is(counts('joins'), '', 'without a service there are no counts');
is($node->safe_psql('postgres', 'SELECT gpu_reset_join_counts()'), 'f', 'and nothing to reset');
is($node->safe_psql('postgres', $count), $pairs, 'the first join starts the service');
ok(wait_until($Session::DEADLINE, sub { service_pids($node) == 1 && -S $node->data_dir . '/pgsql_tmp_gpujoin_service' }), 'which is there');
# The session of that join may still send what it did, if the service came in time.
my $others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
wait_until($Session::DEADLINE, sub { $node->safe_psql('postgres', $others) == 0 });
is($node->safe_psql('postgres', 'SELECT gpu_reset_join_counts()'), 't', 'counts begin anew');

# Joins in the service and in sessions, of functions and nodes. Under auto a service that is busy is not waited for.
$node->safe_psql('postgres', "SET gpujoin.service = on; $count") for 1 .. 3;
$node->safe_psql('postgres', "SELECT count(*) FROM gpu_selfjoin('few', 1); SELECT count(*) FROM few a JOIN few b ON a.v <-> b.v <= 1");
ok(wait_until($Session::DEADLINE, sub { counts('joins') eq '5' }), 'all joins are counted once their sessions have ended');
is(counts('service_joins, device_joins, cancels, pairs, rows'), join('|', 3, 0, 0, 3 * $pairs + 2 * 298, 3 * 2 * 20000 + 2 * 2 * 100),
  'with where they ran, and what they did');
is(counts('joins', 'other'), '', 'of this database');
is(counts("candidates >= pairs AND read_ms > 0 AND index_ms > 0 AND join_ms > 0 AND stats_reset < now()"), 't', 'and the time they took');

# A session that stays sends what it did a tenth of a second later, with its next join, and shows its own at once.
{
  my $session = Session->new($node);
  my $before = counts('joins');
  $session->value("SELECT count(*) FROM gpu_selfjoin('few', 1)") for 1 .. 20;
  ok(wait_until($Session::DEADLINE, sub { $session->value("SELECT joins FROM pg_stat_gpujoin WHERE datname = 'postgres'") == $before + 20 }),
    'a session sees its own joins');
  sleep 0.2;
  $session->value("SELECT count(*) FROM gpu_selfjoin('few', 1)");
  ok(wait_until($Session::DEADLINE, sub { counts('joins') == $before + 21 }), 'and others do');
  $session->quit;
}

# Other databases have their own.
$node->safe_psql('other', "SELECT count(*) FROM gpu_selfjoin('few', 1)");
ok(wait_until($Session::DEADLINE, sub { counts('joins', 'other') eq '1' }), 'another database has its own counts');
is($node->safe_psql('postgres', 'SELECT gpu_reset_join_counts()'), 't', 'one is reset');
is(counts('joins') . counts('joins', 'other'), '01', 'alone');
isnt($node->psql('postgres', 'SET ROLE reader; SELECT gpu_reset_join_counts()'), 0, 'not by everybody');
my $seen_by = sub { $node->safe_psql('postgres', "SET ROLE $_[0]; SELECT string_agg(datname, ',' ORDER BY datname) FROM pg_stat_gpujoin") };
is($seen_by->('reader'), '', 'who may not see them: they tell of rows that are hidden from him');
is($seen_by->('pg_monitor'), 'other,postgres', 'members of pg_monitor may');
$node->safe_psql('postgres', 'CREATE ROLE owner IN ROLE reader; ALTER DATABASE other OWNER TO owner; CREATE ROLE member IN ROLE owner');
is($seen_by->($_), 'other', "$_ sees those of the owner's database") for qw(owner member);

# What is planned without the node, though it compares many pairs.
{
  my $missed = counts('missed_joins');
  my $planned = sub { my $said; $node->psql('postgres', join(';', "LOAD 'gpujoin'", @_), stderr => \$said); return $said };
  my $far = 'EXPLAIN SELECT count(*) FROM points a JOIN points b ON a.v <-> b.v > 1';
  like($planned->('SET gpujoin.warn_missed = notice', $far),
    qr/does not serve .*over 400000000 pairs: the distance has to be larger.*HINT: /s, 'a query that no plan serves well is named');
  is($planned->($far =~ s/points/few/gr, $far =~ s/> 1/<= 1/r), '', 'but not one of few pairs, or that the node serves');
  ok(wait_until($Session::DEADLINE, sub { counts('missed_joins') == $missed + 1 }), 'it is counted');
}

# A join at work, and its cancel.
{
  my $session = Session->new($node);
  my $pid = $session->pid;
  my $progress = sub {
    my ($columns, $role) = @_;
    return $node->safe_psql('postgres', ($role ? "SET ROLE $role; " : '') . "SELECT $columns FROM pg_stat_progress_gpujoin WHERE pid = $pid");
  };
  is($progress->('phase'), '', 'no join is at work');
  $session->start("SELECT count(*) FROM gpu_selfjoin('dense', 1.5)");
  ok(wait_until($Session::DEADLINE, sub { $progress->('phase, work_done > 0 AND work_done <= work') =~ /^joining\|t$/m }),
    'a join is seen at work, with the part that is done');
  like($progress->("datname, engine, left_rows, right_rows, since <= now()"), qr/^postgres\|cpu\|300000\|300000\|t$/, 'and what it joins');
  is($progress->('phase', 'reader'), '', 'but not by those who may not see what its session does');
  like($progress->('phase', 'pg_read_all_stats'), qr/^\w+$/, 'as members of pg_read_all_stats may');
  $node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
  $session->result;
  ok(wait_until($Session::DEADLINE, sub { $progress->('phase') eq '' }), 'cancelled, it is gone');
  $session->value("SELECT count(*) FROM gpu_selfjoin('few', 1)");
  $session->quit;
  ok(wait_until($Session::DEADLINE, sub { counts('cancels') eq '1' }), 'and its cancel is counted');
}

# A cancel while pairs are returned, of a function and of a node, in the service and in the session.
{
  my $session = Session->new($node);
  my $cancels = counts('cancels');
  for my $service (qw(off on)) {
    for my $query ("SELECT pg_sleep(10) FROM gpu_selfjoin('points', 1)",
      'SELECT pg_sleep(10) FROM points a JOIN points b ON a.v <-> b.v <= 1') {
      $session->value("SET gpujoin.service = $service");
      is($session->query("SET statement_timeout = '500ms'; $query")->{state}, '57014', "cancelled while $query returns pairs");
      $session->value('RESET statement_timeout');
    }
  }
  $session->quit;
  ok(wait_until($Session::DEADLINE, sub { counts('cancels') == $cancels + 4 }), 'each is counted') or diag(counts('cancels'));
}

# The same of a join in the session, and of what it found, which nobody takes yet.
{
  my $session = Session->new($node);
  my $pid = $session->pid;
  my $progress = sub { return $node->safe_psql('postgres', "SELECT $_[0] FROM pg_stat_progress_gpujoin WHERE pid = $pid") };
  $session->query('SET gpujoin.service = off');
  $session->start("SELECT count(*) FROM gpu_selfjoin('slow', 1.5, id_column => 'id')");
  my %seen;
  ok(wait_until($Session::DEADLINE, sub { $seen{$progress->('phase')} = 1; $progress->('phase, work_done > 0 AND work_done < work') eq 'joining|t' }),
    'a join in a session is seen at work');
  ok($seen{reading}, 'after it was seen reading');
  like($progress->('datname, engine, left_rows, right_rows, since <= now()'), qr/^postgres\|cpu\|300000\|300000\|t$/, 'and what it joins');
  is($node->safe_psql('postgres', "SET ROLE reader; SELECT count(*) FROM pg_stat_progress_gpujoin WHERE pid = $pid"), 0, 'by those who may');
  my $done = sub { return $progress->('work_done') };
  my $before = $done->();
  ok(wait_until($Session::DEADLINE, sub { $done->() > $before }), 'and more of it is done');
  $node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
  $session->result;
  is($progress->('phase'), '', 'cancelled, it is gone');

  $session->query('BEGIN');
  $session->query("DECLARE pairs CURSOR FOR SELECT id1 FROM gpu_selfjoin('points', 3)");
  $session->query('FETCH 1 FROM pairs');
  is($progress->('phase, pairs > 0'), 'returning|t', 'what was found is being returned');
  $session->query('CLOSE pairs');
  is($progress->('phase'), '', 'until nobody wants more');
  $session->query('COMMIT');
  $session->quit;
}

# The log of joins that take long.
{
  my $offset = -s $node->logfile;
  $node->safe_psql('postgres', "SET gpujoin.log_min_duration = 0; SELECT count(*) FROM gpu_selfjoin('few', 1); SET gpujoin.log_min_duration = '1h'; $count");
  my $log = slurp_file($node->logfile, $offset);
  like($log, qr/LOG:  gpujoin duration: [\d.]+ ms  gpu_selfjoin: 100 and 100 rows, \d+ candidates, 298 pairs\n.*DETAIL:  Reading [\d.]+ ms, index [\d.]+ ms, join [\d.]+ ms, on cpu in the session\./,
    'a slow join is logged');
  unlike($log, qr/20000 rows/, 'a fast one is not');
  isnt($node->psql('postgres', "SELECT count(*) FROM gpu_selfjoin('few', 1); SET ROLE reader; SET gpujoin.log_min_duration = 0"), 0, 'superusers say so');
}

# Joins go on without a service, and so does a session that has something to report.
{
  my $session = Session->new($node);
  my ($service) = service_pids($node);
  kill 'KILL', $service;
  is($session->value("SELECT count(*) FROM gpu_selfjoin('few', 1)"), 298, 'a join without a service') for 1 .. 3;
  ok(wait_until($Session::DEADLINE, sub { my @now = service_pids($node); @now == 1 && $now[0] != $service }), 'the next service comes');
  $session->value("SELECT count(*) FROM gpu_selfjoin('few', 1)");
  ok(wait_until($Session::DEADLINE, sub { sleep 0.1; $session->value("SELECT count(*) FROM gpu_selfjoin('few', 1)"); (counts('joins') || 0) >= 2 }),
    'and counts anew');
  $session->quit;
}

# Counts outlast the service, and the server.
{
  my $sessions = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
  ok(wait_until($Session::DEADLINE, sub { $node->safe_psql('postgres', $sessions) == 1 && counts('joins') >= 2 }),
    'there are counts, of sessions that have ended');
  my $kept = counts('joins, pairs, rows, stats_reset');
  my ($service) = service_pids($node);
  kill 'TERM', $service;
  ok(wait_until($Session::DEADLINE, sub { my @now = service_pids($node); @now == 1 && $now[0] != $service && counts('joins') ne '' }), 'the next service comes');
  is(counts('joins, pairs, rows, stats_reset'), $kept, 'and goes on with the counts');
  $node->restart;
  my $session = Session->new($node);
  $session->value($count);
  ok(wait_until($Session::DEADLINE, sub { counts('joins') ne '' }), 'so does the next server');
  $session->quit;
  my ($joins, $pairs_before, $rows, $since) = split /\|/, $kept;
  ok(wait_until($Session::DEADLINE, sub { counts('joins') eq $joins + 1 }), 'with one join more');
  is(counts('pairs, stats_reset'), join('|', $pairs_before + $pairs, $since), 'and its pairs');
  ok(-s $node->data_dir . '/pg_stat/gpujoin.stat', 'from a file');
}

done_testing();
