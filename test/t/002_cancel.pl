# Joins that are ended from outside, at many moments: how soon the session answers, and that it goes on as if
# nothing had been.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Session;
use Test::More;
use Time::HiRes qw(sleep);

my $node = start_server('cancel', "client_connection_check_interval = '100ms'", 'gpujoin.cpu_threads = 2');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE small (id int PRIMARY KEY, v float8[]);
INSERT INTO small SELECT i, ARRAY[i % 10, i / 10] FROM generate_series(0, 99) i;
CREATE TABLE dense (id int PRIMARY KEY, v float8[]);
INSERT INTO dense SELECT i, ARRAY[sin(i), cos(i * 7)] FROM generate_series(1, 60000) i;
CREATE TABLE large (id int, x real, y real);
INSERT INTO large SELECT i, sin(i), cos(i * 7) FROM generate_series(1, 500000) i;
CREATE FUNCTION slowly(v float8[]) RETURNS float8[] LANGUAGE plpgsql IMMUTABLE AS 'BEGIN PERFORM pg_sleep(0.001); RETURN v; END';
CREATE VIEW dots AS SELECT id, box(point(x, y), point(x, y)) AS b FROM large;
CREATE VIEW endless AS SELECT generate_series(1, 2000000000) AS id, 0.5::float8 AS x;
CREATE VIEW tall AS SELECT generate_series(1, 1500) AS id, array_fill(0.5::real, '{16000}') AS v;
ANALYZE;
SQL

# Whatever happened before: the session joins, and nothing of the last join is left.
sub check_session {
  my ($session, $what) = @_;
  my $pid = $session->pid;
  my $alone = wait_until($Session::DEADLINE, sub { threads($pid) == 1 });
  my $answer = $session->value("SELECT count(*) FROM gpu_selfjoin('small', 1)");
  my $contexts = $session->value("SELECT count(*) FROM pg_backend_memory_contexts WHERE name ~ 'gpujoin'");
  ok($alone && $answer == 460 && $contexts == 0, "$what: the session is as before")
    or diag("threads end: $alone, next join: $answer, memory contexts: $contexts");
  return;
}

# Queries none of which ends within the time that the tests give them.
my %endless = (
  'while it reads' => "SELECT count(*) FROM gpu_selfjoin('endless', 1, 'id', '{x}')",
  'while it computes operands' => "SELECT count(*) FROM dense a JOIN dense b ON slowly(a.v) <-> b.v <= 1e-9 AND a.id < b.id",
  'while it builds indexes' => "SELECT count(*) FROM generate_series(1, 100000) i,
    gpu_selfjoin('large', i * 1e-15, 'id', '{x,y}')",
  'while it builds spanning trees' => "SELECT count(*) FROM generate_series(1, 100000) i,
    gpu_spanning_tree('large', 1 + i % 20, 'id', '{x,y}')",
  'while it compares all with all' => "SET gpujoin.index = 'none';
    SELECT count(*) FROM gpu_selfjoin('large', 1e-9, 'id', '{x,y}')",
  'while it finds no pair' => "SET gpujoin.index = 'none';
    SELECT count(*) FROM gpu_selfjoin('large', 0, 'id', '{id,x}', pairs => 'unordered')",
  'while it compares long vectors' => "SELECT count(*) FROM gpu_selfjoin('tall', 0, 'id')",
  'while it looks for the best pairs' =>
    "SELECT sum(score) FROM gpu_topk_join('dense', 'dense', 9, 1000, score => 'distance', best => 'highest')",
  'while it compares boxes' => "SET gpujoin.box_method = 'none';
    SELECT count(*) FROM gpu_box_join('dots', 'dots', 1e-9, 'id', 'id')",
  'while it hands out pairs of boxes' => "SELECT sum(id1) FROM gpu_box_join('dots', 'dots', 1, 'id', 'id')",
  'while it counts many pairs' => "SELECT sum(id1) FROM gpu_selfjoin('dense', 9)",
  'while a filter drops all pairs' => "SELECT * FROM gpu_selfjoin('dense', 9) WHERE id1 + id2 < 0",
  'while it hands out pairs' => "COPY (SELECT * FROM gpu_selfjoin_distance('dense', 9)) TO '/dev/null'",
  'while a function scan stores pairs' => "SET gpujoin.enable_customscan = off;
    SELECT sum(id1) FROM gpu_selfjoin('dense', 9)",
  'while it runs in a select list' => "SELECT count(*) FROM (SELECT gpu_selfjoin('dense', 9) OFFSET 0) s",
  'while a loop fetches pairs' => "DO 'DECLARE r record; BEGIN
    FOR r IN SELECT * FROM gpu_selfjoin(''dense'', 9) LOOP END LOOP; END'",
);

# By time, at moments from one millisecond on: the session stays.
{
  my $session = Session->new($node);
  for my $when (sort keys %endless) {
    check_timeouts($session, $endless{$when}, "statement_timeout $when", 1, 3, 10, 25, 60, 150, 400);
    check_session($session, "statement_timeout $when");
  }
  $session->quit;
}

# By another session.
{
  my $session = Session->new($node);
  my $pid = $session->pid;
  for my $when (sort keys %endless) {
    check_cancel($session, $endless{$when}, $when, sub { sleep 0.02 + rand 0.3 });
    $session->value('RESET ALL');
    check_session($session, "pg_cancel_backend $when");
  }

  # As soon as the engine has threads it measures and sorts.
  my $began = 1;
  check_cancel($session, $endless{'while it builds indexes'}, 'when the engine just began',
    sub { $began &&= wait_until($Session::DEADLINE, sub { threads($pid) > 1 }) });
  ok($began, 'the engine had threads');
  check_session($session, 'pg_cancel_backend of an engine that just began');
  $session->quit;
}

# Ends the process of a new session, in the state that $prepare has brought it to: it is gone in time.
sub check_end {
  my ($what, $prepare, $end) = @_;
  my $late = least($Session::PATIENCE, sub {
    my $session = Session->new($node);
    my $pid = $session->pid;
    $prepare->($session, $pid);
    $end->($session, $pid);
    return seconds_until(sub { !-e "/proc/$pid" });
  });
  cmp_ok($late, '<', $Session::PATIENCE, "$what ends the process soon");
  return;
}

for my $when (sort keys %endless) {
  my %states;
  check_end(
    "pg_terminate_backend $when",
    sub { my ($session) = @_; $session->start($endless{$when}); sleep 0.02 + rand 0.3 },
    sub {
      my ($session, $pid) = @_;
      $node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
      $states{ $session->result->{state} }++;
    });
  is_deeply([ keys %states ], ['57P01'], "pg_terminate_backend $when says so");
}

# Without a word: the client goes away.
{
  my $began = 1;
  check_end(
    'a client that vanishes',
    sub {
      my ($session, $pid) = @_;
      $session->start($endless{'while it counts many pairs'});
      $began &&= wait_until($Session::DEADLINE, sub { threads($pid) > 1 });
    },
    sub { my ($session) = @_; $session->{psql}->kill_kill });
  ok($began, 'joins for clients that vanish were at work');
}

# A cursor keeps its join waiting, and waiting costs nothing.
{
  my $session = Session->new($node);
  my $pid = $session->pid;
  $session->value("BEGIN; DECLARE c CURSOR FOR SELECT * FROM gpu_selfjoin('dense', 9)");
  is(threads($pid), 1, 'a cursor that was not fetched from has no threads');
  my @rows = split /\n/, $session->value('FETCH 3 FROM c');
  is(scalar @rows, 3, 'a cursor returns rows while the join goes on');
  cmp_ok(threads($pid), '>', 1, 'a cursor that was fetched from has');
  my $busy = least(0.1, sub {
    sleep 0.3;    # the queue of batches fills
    my $before = cpu_seconds($pid);
    sleep 0.5;
    return cpu_seconds($pid) - $before;
  });
  cmp_ok($busy, '<', 0.1, 'threads that wait for the next FETCH rest');
  $session->value('CLOSE c');
  check_session($session, 'CLOSE');

  $session->value("DECLARE c CURSOR FOR SELECT * FROM gpu_selfjoin('dense', 9)");
  $session->value('FETCH 3 FROM c');
  $session->value('ROLLBACK');
  check_session($session, 'ROLLBACK with an open cursor');

  $session->value("BEGIN; DECLARE c CURSOR FOR SELECT * FROM gpu_selfjoin('dense', 9)");
  $session->value('FETCH 3 FROM c');
  is($session->query("SET statement_timeout = '50ms'; MOVE ALL FROM c")->{state}, '57014', 'MOVE ALL is cancelled');
  $session->value('ROLLBACK');
  check_session($session, 'a cancelled MOVE ALL');
  $session->quit;

  check_end(
    'pg_terminate_backend of a session with an open cursor',
    sub {
      my ($other) = @_;
      $other->value("BEGIN; DECLARE c CURSOR FOR SELECT * FROM gpu_selfjoin('dense', 9)");
      $other->value('FETCH 3 FROM c');
    },
    sub { my (undef, $other) = @_; $node->safe_psql('postgres', "SELECT pg_terminate_backend($other)") });
}

# Waiting for a lock is no work of ours, but it is before the join and must end as any.
{
  my $blocker = Session->new($node);
  $blocker->value('BEGIN; LOCK TABLE small');
  my $session = Session->new($node);
  is($session->query("SET lock_timeout = '20ms'; SELECT count(*) FROM gpu_selfjoin('small', 1)")->{state},
    '55P03', 'lock_timeout ends the wait for a table');
  $blocker->value('COMMIT');
  check_session($session, 'lock_timeout');
  $_->quit for $blocker, $session;
}

$node->stop;
done_testing();
