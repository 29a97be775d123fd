# The death of the service, at any moment, and whatever keeps it from being there: right rows or one clear error, and the
# next query works. PostgreSQL itself never restarts.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Cwd;
use IO::Socket::UNIX;
use PostgreSQL::Test::Utils;
use Session;
use Socket qw(SOCK_SEQPACKET);
use Test::More;
use Time::HiRes qw(sleep);

my $node = start_server('service_death', 'gpujoin.service = auto', 'gpujoin.cpu_threads = 2',
  'restart_after_crash = on');
my $socket = $node->data_dir . '/pgsql_tmp_gpujoin_service';
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE points (id int PRIMARY KEY, v float8[]);
INSERT INTO points SELECT i, ARRAY[i % 200, i / 200] FROM generate_series(0, 19999) i;
CREATE TABLE dense (id int PRIMARY KEY, v float8[]);
INSERT INTO dense SELECT i, ARRAY[sin(i), cos(i * 7)] FROM generate_series(1, 200000) i;
ANALYZE;
SQL
my $count = "SELECT count(*) FROM gpu_selfjoin('points', 1)";
my $answer = 20000 + 2 * (199 * 100 + 200 * 99);
my $long = "SELECT count(*) FROM gpu_selfjoin('dense', 0.7)";
my $pairs = "SELECT id1, id2 FROM gpu_selfjoin('dense', 9)";
my $where = 'SELECT joined_in FROM gpu_last_join()';
my $why = 'SELECT service_fallback FROM gpu_last_join()';
my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
my $lost = 'the gpujoin service ended while it ran the join';

# Waits for a service that answers.
sub service {
  my ($session) = @_;
  ok(wait_until($Session::DEADLINE, sub { $session->value("$count; $where") eq "$answer\nservice" }), 'the service is there');
  my ($pid) = service_pids($node);
  return $pid;
}

my $kills = 0;

sub kill_service { $kills += kill 'KILL', service_pids($node); return; }

sub kill_and_wait {
  my @pids = service_pids($node);
  $kills += kill 'KILL', @pids;
  return wait_until($Session::DEADLINE, sub { !grep { -d "/proc/$_" } @pids });
}

my $session = Session->new($node);
$session->value("SET gpujoin.service = on; $count; RESET gpujoin.service");

# kill -9 before, during and after.
{
  service($session);
  my $all = $session->value("SET gpujoin.service = off; SET gpujoin.engine = cpu; $long; RESET ALL");
  kill_service();
  like($session->value("$count; $where; $why"), qr/^$answer\nsession\nthe gpujoin service (is not running yet|is busy|ended)/,
    'killed before a join: it runs in the session, and says why');

  my $pid = service($session);
  my $before = cpu_seconds($pid);
  $session->start($long);
  ok(wait_until($Session::DEADLINE, sub { cpu_seconds($pid) > $before + 0.1 }), 'a join is at work in the service');
  kill_service();
  is($session->result->{rows}, $all, 'killed during a join that returned nothing yet: the session finds the answer');
  is($session->value("$where; $why"), "session\n$lost", 'and says so');

  # Under on the next service finds the answer: of a function, of plain SQL over tables that stay, and of a join of other rows.
  for my $query ($long, $long =~ s/gpu_selfjoin.*/dense a JOIN dense b ON a.v <-> b.v <= 0.7/r,
    'SELECT count(*) FROM (TABLE dense UNION ALL TABLE dense) a JOIN dense b ON a.v <-> b.v <= 0.7') {
    my ($first) = (service($session));
    $session->value('SET gpujoin.service = on');
    $before = cpu_seconds($first);
    $session->start("$query; $where");
    ok(wait_until($Session::DEADLINE, sub { cpu_seconds($first) > $before + 0.1 }), 'a join is at work in the service');
    kill_service();
    my $expected = $query =~ /UNION/ ? 2 * $all : $all;
    my $result = $session->result;
    is($result->{rows}, "$expected\nservice", "killed during it under on: the next service finds the answer of $query")
      or diag($result->{error});
    $session->value('RESET gpujoin.service');
  }

  service($session);
  $session->value("SET gpujoin.service = on; BEGIN; DECLARE c CURSOR FOR $pairs; FETCH 10 FROM c");
  kill_service();
  my $result = $session->query('FETCH 100000000 FROM c \g /dev/null');
  is($result->{state}, '58030', 'killed after pairs were returned: an error');
  is($result->{message}, $lost, 'which says what happened');
  is($result->{hint}, 'Run the query again.', 'and what to do');
  is($session->value("ROLLBACK; RESET ALL; $count"), $answer, 'the next query works');

  service($session);
  kill_and_wait();
  is($session->query("SET gpujoin.service = on; $count")->{rows}, $answer,
    'gpujoin.service = on waits for the next one');
  $session->value('RESET ALL');
}

# Killed under load, again and again: no answer is wrong.
{
  my @crowd = map { Session->new($node) } 1 .. 4;
  my ($right, $wrong, $lost_ones) = (0, '', 0);
  for my $round (1 .. 5) {
    service($session);
    $_->start("$count; SELECT sum(id1 - id2) FROM gpu_selfjoin('points', 3)") for @crowd;
    sleep 0.02 * $round;
    kill_service();
    for my $result (map { $_->result } @crowd) {
      if ($result->{rows} eq "$answer\n0") { $right++ }
      elsif ($result->{message} eq $lost) { $lost_ones++ }
      else { $wrong .= "$result->{rows}: $result->{error}\n" }
    }
  }
  is($wrong, '', 'killed under load: right rows, or the one error');
  note("$right right, $lost_ones with the error");
  $_->quit for @crowd;
  my $deaths = sub { scalar(() = slurp_file($node->logfile) =~ /LOG:  gpujoin_service ended, restarting: .*signal 9/g) };
  ok(wait_until($Session::DEADLINE, sub { $deaths->() == $kills }), 'the log has a line for each death by a signal') or diag("$kills kills");
  my $log = slurp_file($node->logfile);
  unlike($log, qr/terminating any other active server processes|PANIC/, 'no backend crashed');
  is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $started, 'the server is the same');
}

# One that ends by itself has a line once a minute.
{
  my $lines = sub { scalar(() = slurp_file($node->logfile) =~ /LOG:  gpujoin_service ended, restarting/g) };
  my $before = $lines->();
  for (1 .. 3) {
    my $pid = service($session);
    kill 'TERM', $pid;
    wait_until($Session::DEADLINE, sub { !-d "/proc/$pid" });
  }
  service($session);
  cmp_ok($lines->(), '<=', $before + 1, 'the log has not a line for each end without a signal');
}

# A service that hangs costs a session a moment, once in ten seconds, however many joins it has.
{
  my $pid = service($session);
  my $plain = 'SELECT count(*) FROM points a JOIN points b ON a.v <-> b.v <= 1';
  my $loop = "SELECT sum(n) FROM generate_series(1, 5) i, LATERAL ($plain + 0 * i) s(n)";
  my $busy = 'the gpujoin service is busy';
  kill 'STOP', $pid;
  for my $query ("$loop; $loop", join('; ', ($count) x 10)) {
    my ($rows, %seconds);
    my $more = least(1, sub {
      for my $service (qw(off auto)) {
        my $fresh = Session->new($node);
        $fresh->value("SET gpujoin.service = $service");
        my $result = $fresh->query($query);
        $seconds{$service} = $result->{seconds};
        is($result->{rows}, $rows // $result->{rows}, "with gpujoin.service = $service the same rows");
        $rows = $result->{rows};
        is($fresh->value($why), $busy, 'which the session finds, and says why') if $service eq 'auto';
        $fresh->quit;
      }
      return $seconds{auto} - $seconds{off};
    });
    cmp_ok($more, '<', 1, 'soon');
  }

  # Under on it is waited for, once in a statement. That fails for functions, not for plain SQL.
  my $fresh = Session->new($node);
  my $result = $fresh->query("SET gpujoin.service = on; $count");
  is("$result->{state} $result->{message}", "58030 $busy", 'under on a function waits and fails');
  cmp_ok($result->{seconds}, '>', 0.9, 'after its wait');
  cmp_ok(least(15, sub { $result = $fresh->query($loop); return $result->{seconds} }), '<', 15, 'plain SQL waits once, not in each of its joins');
  is($result->{rows}, 5 * $answer, 'and is served by the session');
  like($fresh->value("EXPLAIN (ANALYZE) $plain"), qr/Service Fallback: $busy/, 'as EXPLAIN says');
  $fresh->quit;
  kill 'CONT', $pid;
  is($session->value("SET gpujoin.service = on; $count; $where"), "$answer\nservice", 'when it goes on it serves those who did not miss it');
  $session->value('RESET gpujoin.service');
}

# The socket is removed; another service does not come, and joins go on.
{
  service($session);
  unlink $socket;
  is($session->value("$count; $where"), "$answer\nsession", 'where the socket was removed joins run in the session');
  service($session);
}

# The server ends as if it had been killed: what it started ends with it.
{
  $session->quit;
  my ($pid) = service_pids($node);
  my ($parent) = slurp_file("/proc/$pid/status") =~ /^PPid:\s+(\d+)$/m;
  kill 'KILL', $parent;
  ok(wait_until($Session::DEADLINE, sub { !service_pids($node) }), 'a supervisor that is killed takes the service along');
  ok(serves($node), 'as with any process of its own, the server starts over');
  $session = Session->new($node);
  service($session);
  $session->quit;
  my ($postmaster) = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');
  $node->kill9;
  ok(wait_until(10, sub { !service_pids($node) }), 'a server that is killed takes the service along');
  ok(wait_until(10, sub { !shared_regions($node) }), 'and its memory');
  # They hold the memory that a new one would find, and its process may linger.
  wait_until($Session::DEADLINE, sub { !server_pids($node) && !-d "/proc/$postmaster" });
  $node->start;
  $session = Session->new($node);
  service($session);
  $session->quit;
}

# No worker process is left for a supervisor.
{
  $node->append_conf('postgresql.conf', 'max_worker_processes = 0');
  $node->restart;
  $session = Session->new($node);
  my $none = 'the server has no free worker process for the gpujoin service';
  is($session->value("$count; $where; $why"), "$answer\nsession\n$none", 'without a worker process joins run in the session');
  like($session->value("EXPLAIN (ANALYZE) $count"), qr/Service Fallback: $none/, 'EXPLAIN says why');
  my $result = $session->query("SET gpujoin.service = on; $count");
  is($result->{message}, $none, 'gpujoin.service = on is an error then');
  is($result->{state}, '53200', 'after which clients may try again');
  is($session->value('SELECT count(*) FROM points a JOIN points b ON a.v <-> b.v <= 1'), $answer, 'but not of plain SQL');
  is($result->{hint}, 'Set gpujoin.service to "auto" or "off" to join in the session.', 'with a hint');
  is($session->value("RESET gpujoin.service; $count"), $answer, 'and the next query works');
}

# Who answers at the socket is no service.
{
  my $here = getcwd();
  umask 077;
  unlink $socket;
  chdir $node->data_dir or die;
  my $stranger = IO::Socket::UNIX->new(Type => SOCK_SEQPACKET, Local => 'pgsql_tmp_gpujoin_service', Listen => 5) or die "$!";
  # Interrupts, which the second interval raises, do not prolong the wait.
  for my $interval ('0', '200ms') {
    my $fresh = Session->new($node);
    my $result = $fresh->query("SET client_connection_check_interval = '$interval'; $count; $where; $why");
    is($result->{rows}, "$answer\nsession\nthe gpujoin service is busy", 'one that does not answer is not waited for');
    cmp_ok($result->{seconds}, '<', 1 + $Session::PATIENCE, "for long, with interrupts each $interval");
    $stranger->accept;
    $fresh->quit;
  }

  for my $answer_of (sub { }, sub { $_[0]->send('x' x 3000) }, sub { $_[0]->send(pack 'LL', 1, 8) }, sub { $_[0]->send('') }) {
    my $fresh = Session->new($node);
    $fresh->start("$count; $where");
    my $client = $stranger->accept;
    $client->recv(my $hello, 4096);
    $answer_of->($client);
    close $client;
    is($fresh->result->{rows}, "$answer\nsession", 'nor is one that answers something else');
    $fresh->quit;
  }
  chdir $here;
}

$session->quit;
$node->stop;
is(scalar(service_pids($node)), 0, 'nothing is left running');
ok(!shared_regions($node), 'nor any memory');
done_testing();
