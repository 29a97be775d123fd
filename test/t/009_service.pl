# Joins in the service that all sessions share: that it is there, and gives the answers that the session gives.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use Session;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = start_server('service', 'gpujoin.service = auto', 'gpujoin.cpu_threads = 2');
my $data = $node->data_dir;
my $tables = <<'SQL';
CREATE TABLE points (id int PRIMARY KEY, v float8[]);
INSERT INTO points SELECT i, ARRAY[i % 200, i / 200] FROM generate_series(0, 19999) i;
CREATE TABLE others (id int PRIMARY KEY, v float8[]);
INSERT INTO others SELECT i, ARRAY[sin(i) * 100, cos(i * 7) * 100] FROM generate_series(1, 10000) i;
CREATE TABLE boxes (id int PRIMARY KEY, b box);
INSERT INTO boxes SELECT i, box(point(i % 200, i / 200), point(i % 200 + 1.5, i / 200 + 0.5)) FROM generate_series(0, 19999) i;
CREATE TABLE few (id int PRIMARY KEY, v float8[]);
INSERT INTO few SELECT i, ARRAY[i] FROM generate_series(0, 99) i;
CREATE TABLE dense (id int PRIMARY KEY, v float8[]);
INSERT INTO dense SELECT i, ARRAY[sin(i), cos(i * 7)] FROM generate_series(1, 60000) i;
ANALYZE;
SQL
$node->safe_psql('postgres', $tables);
my $count = "SELECT count(*) FROM gpu_selfjoin('points', 1)";
my $answer = 20000 + 2 * (199 * 100 + 200 * 99);
my $endless = "SELECT sum(id1) FROM gpu_selfjoin('dense', 9)";
my $where = 'SELECT joined_in FROM gpu_last_join()';

# The process that watches the service, its parent.
sub supervisor {
  my ($service) = service_pids($node);
  my ($parent) = slurp_file("/proc/$service/status") =~ /^PPid:\s+(\d+)$/m;
  return $parent;
}

# All of them: pg_stat_activity shows no process that has no database.
sub supervisors {
  my ($postmaster) = split /\n/, slurp_file("$data/postmaster.pid");
  return grep { eval { slurp_file("$_/cmdline") =~ /gpujoin supervisor/ && slurp_file("$_/status") =~ /^PPid:\s+$postmaster$/m } }
    glob '/proc/[0-9]*';
}

# It starts with the first joins, however many come at once, and these do not wait for it.
{
  is(scalar(service_pids($node)), 0, 'before the first join there is no service');
  my @crowd = map { Session->new($node) } 1 .. 4;
  is($crowd[0]->value("SELECT count(*) FROM gpu_selfjoin('few', 1)"), 298, 'a small join runs in the session');
  is($crowd[0]->value($where), 'session', 'and says so');
  is(scalar(service_pids($node)), 0, 'and starts no service');
  $_->pid for @crowd;
  $_->start($count) for @crowd;
  my @counts = map { $_->result->{rows} } @crowd;
  is_deeply(\@counts, [ ($answer) x 4 ], 'the first large ones have their answers');
  ok(wait_until($Session::DEADLINE, sub { service_pids($node) == 1 && -S "$data/pgsql_tmp_gpujoin_service" }),
    'and then there is a service');
  sleep 0.2;
  is(scalar(supervisors()), 1, 'one, though several sessions asked for it');
  is(scalar(service_pids($node)), 1, 'with one program');
  is((stat "$data/pgsql_tmp_gpujoin_service")[2] & 077, 0, 'no other user can connect to it');
  $_->quit for @crowd;
}

# Every kind of join gives what it gives in the session.
my $session = Session->new($node);
{
  my @queries = (
    $count,
    "SELECT sum(id1 * 7 + id2) FROM gpu_selfjoin('points', 1.5, pairs => 'unordered')",
    "SELECT count(*), sum(distance::numeric) FROM gpu_selfjoin_distance('others', 1.5)",
    "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_join('others', 'points', 1.5)",
    "SELECT count(*), sum(id1 * 7 + id2), sum(score) FROM gpu_topk_join('points', 'others', 2, 500, 'id', 'id', 'v', 'v', 'id', 'id')",
    "SELECT sum(id * 7 + n) FROM gpu_neighbors('points', 1), unnest(neighbors) n",
    "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_box_join('boxes', 'boxes')",
    "SELECT sum(a.id * 7 + b.id) FROM points a JOIN others b ON a.v <-> b.v <= 1.5",
    "SELECT sum(a.id * 7 + b.id) FROM points a JOIN points b ON a.v <-> b.v <= 1 AND a.id < b.id",
    "SELECT count(*) FROM points a JOIN others b ON a.v <-> b.v <= 1.5",
    "SELECT sum(a.id) FROM points a WHERE NOT EXISTS (SELECT FROM others b WHERE a.v <-> b.v <= 1)",
    "SELECT a.id, b.id FROM points a JOIN others b ON a.v <-> b.v <= 1.5 ORDER BY a.id + b.id DESC, 1, 2 LIMIT 20");
  my $wrong = '';
  for my $query (@queries) {
    my ($there) = $session->value("SET gpujoin.service = on; $query");
    my $place = $session->value($where);
    my ($here) = $session->value("SET gpujoin.service = off; $query");
    $wrong .= "$query: $place, $there, not $here\n" if $there ne $here || $place ne 'service';
  }
  $session->value('RESET gpujoin.service');
  is($wrong, '', 'each kind of join runs in the service, with the answer of the session');
  is($session->value('SELECT service_fallbacks FROM gpu_session_joins()'), 0, 'and none fell back');
  is($session->value("SET gpujoin.service = on; SELECT count(*) FROM gpu_selfjoin('few', 1); $where; RESET gpujoin.service"),
    "298\nservice", 'gpujoin.service = on has small joins there, too');
  like($session->value("EXPLAIN (ANALYZE, TIMING OFF) $count"), qr/Joined In: service/, 'EXPLAIN says where');
  is($session->value("SET gpujoin.host_memory_limit = '1MB'; SELECT count(*) FROM gpu_selfjoin('dense', 0); $where;
    RESET gpujoin.host_memory_limit"), "60000\nsession", 'rows in a file are joined in the session');
}

# Several at a time, in one session and in many; and in another database.
{
  $session->value('BEGIN');
  $session->value("DECLARE c$_ CURSOR FOR SELECT id1, id2 FROM gpu_selfjoin('points', 1)") for 1 .. 4;
  my %pairs;
  for my $round (1 .. 3) {
    $pairs{$_} .= $session->value("FETCH 10000 FROM c$_") . "\n" for 1 .. 4;
  }
  $pairs{$_} .= $session->value("FETCH ALL FROM c$_") for 1 .. 4;
  is_deeply([ map { scalar(() = $pairs{$_} =~ /\n/g) + 1 } 1 .. 4 ], [ ($answer) x 4 ], 'four cursors, fetched from in turn');
  $session->value('COMMIT');

  my @crowd = map { Session->new($node) } 1 .. 6;
  $_->start("$count; $where") for @crowd;
  is_deeply([ map { $_->result->{rows} } @crowd ], [ ("$answer\nservice") x 6 ], 'six sessions at once');
  $_->quit for @crowd;

  $node->safe_psql('postgres', 'CREATE DATABASE second');
  is($node->safe_psql('second', "CREATE EXTENSION gpujoin; $tables DELETE FROM points WHERE id >= 10000;"
      . "$count; $where"), 10000 + 2 * (199 * 50 + 200 * 49) . "\nservice", 'another database joins its own table there');
}

# What stays, and who may see it and be rid of it.
{
  my $list = "SELECT relation, columns, rows FROM gpu_resident WHERE relation IN ('points'::regclass, 'others'::regclass) ORDER BY relation";
  my $name = $session->value("SELECT gpu_evict('others'); VACUUM others; SELECT count(*) FROM gpu_selfjoin('others', 0.1);
    $list DESC LIMIT 1");
  like($name, qr/^others\|\{id,v\}\|10000$/m, 'gpu_resident shows a table that was joined');
  my $hits = "SELECT hits FROM gpu_resident WHERE relation = 'others'::regclass";
  my $before = $session->value($hits);
  $session->value("SELECT count(*) FROM gpu_selfjoin('others', 0.2)");
  is($session->value($hits), $before + 1, 'and how often it was found');
  is($node->safe_psql('second', 'SELECT count(*) FROM gpu_resident WHERE rows = 10000 AND hits > 0'), 0,
    'not that of another database');
  $node->safe_psql('postgres', 'CREATE ROLE joe; CREATE ROLE watcher IN ROLE pg_monitor; GRANT SELECT ON others TO joe, watcher');
  is($session->query('SET ROLE joe; SELECT * FROM gpu_resident')->{state}, '42501', 'not everybody may see that');
  is($session->query('SELECT * FROM gpu_resident_tables()')->{state}, '42501', 'nor call the function');
  is($session->query("SELECT gpu_evict('others')")->{state}, '42501', "nor evict another one's table");
  is($session->value('SET ROLE watcher; SELECT count(*) > 0 FROM gpu_resident'), 't', 'members of pg_monitor may see it');
  is($session->query("SELECT gpu_evict('others')")->{state}, '42501', 'and not evict it');
  is($session->value("RESET ROLE; ALTER TABLE others OWNER TO joe; SET ROLE joe; SELECT gpu_evict('others'); RESET ROLE"), 1,
    'its owner may');
  is($session->value('SELECT count(*) FROM gpu_resident WHERE relation = \'others\'::regclass'), 0, 'then it is gone');
  is($session->query('SELECT gpu_evict(4000000000::regclass)')->{state}, '42P01', 'a table that does not exist is an error');
  my $through_view = 'SELECT count(*) FROM shown a JOIN shown b ON a.v <-> b.v <= 1; ' . $where;
  $session->value('CREATE VIEW shown AS SELECT * FROM points; CREATE ROLE viewer; GRANT SELECT ON shown TO viewer');
  is($session->value("SET ROLE viewer; $through_view"), "$answer\nservice", "a query finds it with the privileges of a view's owner");
  is($session->query("SELECT count(*) FROM gpu_selfjoin('points', 1)")->{state}, '42501', 'a function with those of its caller alone');
  $session->value('RESET ROLE');
}

# What a session waits for, and how soon it stops.
{
  my $pid = $session->pid;
  my ($service) = service_pids($node);
  # Counts, whose pairs the session does not take.
  $session->start("SELECT count(*) FROM generate_series(1, 1000) i,
    LATERAL (SELECT count(*) FROM gpu_selfjoin('dense', 0.5 + i * 1e-9)) s");
  my $event = "SELECT wait_event_type FROM pg_stat_activity WHERE pid = $pid";
  ok(wait_until($Session::DEADLINE, sub { cpu_seconds($service) > 0.5 }), 'a long join is at work in the service');
  is(threads($pid), 1, 'not in the session');
  ok(wait_until($Session::DEADLINE, sub { $node->safe_psql('postgres', $event) eq 'Extension' }),
    'pg_stat_activity says that the session waits');
  $node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
  is($session->result->{state}, '57014', 'it is cancelled');
  check_timeouts($session, $endless, 'a timeout of a join in the service', 1, 30, 200, 700);
  check_cancel($session, $endless, 'during a join in the service', sub { sleep 0.3 });

  # A join that its client left ends: the service comes to rest.
  my $busy = least(0.1, sub {
    $session->query("SET statement_timeout = '300ms'; $endless");
    $session->value('RESET statement_timeout');
    sleep 1;
    my $before = cpu_seconds($service);
    sleep 0.5;
    return cpu_seconds($service) - $before;
  });
  cmp_ok($busy, '<', 0.1, 'and the service has stopped a second later');

  my $lost = Session->new($node);
  my $gone = $lost->pid;
  $lost->start($endless);
  sleep 0.3;
  $node->safe_psql('postgres', "SELECT pg_terminate_backend($gone)");
  is($lost->result->{state}, '57P01', 'a session that is ended in the middle');
  ok(wait_until($Session::DEADLINE, sub { my $c = cpu_seconds($service); sleep 0.3; cpu_seconds($service) - $c < 0.05 }),
    'leaves the service at rest, too');
  is($session->value($count), $answer, 'which joins on');
  is($session->value($where), 'service', 'as before');
}

# Nothing is left of what was shared.
{
  check_footprint($session, 'joins in the service', sub { $session->value($count) for 1 .. 5 }, sub {
    $session->value("$count; SELECT count(*) FROM (SELECT FROM gpu_selfjoin('points', 1) LIMIT 5) s") for 1 .. 20;
  });
  my ($service) = service_pids($node);    # which has that of its tables
  ok(wait_until($Session::DEADLINE, sub { !grep { !m{^/proc/$service/} } shared_regions($node) }),
    'joins leave no shared memory to their sessions');
}

# An orderly end, in each of the server's ways, and how the supervisor is ended.
{
  my ($service) = service_pids($node);
  kill 'TERM', supervisor();
  ok(wait_until($Session::DEADLINE, sub { !service_pids($node) }), 'the service ends with its supervisor');
  is($session->value($count), $answer, 'then joins run in the session');
  my $new = Session->new($node);
  is($new->value("SET gpujoin.service = on; $count; $where"), "$answer\nservice", 'and start it again');
  $new->quit;
  for my $mode ('immediate', 'fast', 'smart') {
    $session->quit;
    ($service) = service_pids($node);
    ok($service, "there is a service before a stop: $mode");
    $node->stop($mode);
    ok(wait_until(10, sub { !service_pids($node) }), "after it there is none: $mode");
    ok(!shared_regions($node), "nor its memory: $mode");
    $node->start;
    $session = Session->new($node);
    is($session->value("SET gpujoin.service = on; $count; $where"), "$answer\nservice",
      "after the restart there is another one: $mode");
  }
}

# Preloaded, it is there from the start, and follows the configuration.
{
  $session->quit;
  $node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpujoin'");
  $node->restart;
  ok(wait_until($Session::DEADLINE, sub { service_pids($node) == 1 }), 'a preloaded library starts it with the server');
  $session = Session->new($node);
  ok(wait_until($Session::DEADLINE, sub { $session->value("$count; $where") eq "$answer\nservice" }), 'and joins use it');
  $node->append_conf('postgresql.conf', 'gpujoin.service_threads = 1');
  $node->reload;
  ok(wait_until($Session::DEADLINE, sub { $session->value('SHOW gpujoin.service_threads') eq '1' }), 'settings change');
  is($session->value("$count; $where"), "$answer\nservice", 'and the same service goes on');
  is(scalar(supervisors()), 1, 'with one supervisor');
  $session->quit;
}

$node->stop;
is(scalar(service_pids($node)), 0, 'nothing is left running');
done_testing();
