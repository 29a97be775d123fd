# Several sessions at once, what they see of each other's rows, and what the server asks of a backend while it joins.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use Session;
use Test::More;
use Time::HiRes qw(sleep);

my $node = start_server('sessions', 'restart_after_crash = on', 'gpujoin.cpu_threads = 2');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE points (id int PRIMARY KEY, v float8[]);
INSERT INTO points SELECT i, ARRAY[i % 10, i / 10] FROM generate_series(0, 99) i;
CREATE TABLE middling (id int PRIMARY KEY, v float8[]);
INSERT INTO middling SELECT i, ARRAY[sin(i), cos(i * 7)] FROM generate_series(1, 6000) i;
CREATE TABLE dense (id int PRIMARY KEY, v float8[]);
INSERT INTO dense SELECT i, ARRAY[sin(i), cos(i * 7)] FROM generate_series(1, 60000) i;
CREATE TABLE spread (id int PRIMARY KEY, v float8[]);
INSERT INTO spread SELECT i, ARRAY[i % 1000, i / 1000] FROM generate_series(0, 199999) i;
ANALYZE;
SQL
my $count = "SELECT count(*) FROM gpu_selfjoin('points', 1)";
my $endless = "SELECT sum(id1) FROM gpu_selfjoin('dense', 9)";
my ($one, $two) = map { Session->new($node) } 1 .. 2;

# Joins at the same time.
{
  my %sums = (
    "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('spread', 2)" => '',
    "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('middling', 0.3, metric => 'l1')" => '',
    "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_join('points', 'spread', 7.5)" => '');
  $sums{$_} = $one->value($_) for keys %sums;
  my @crowd = map { Session->new($node) } 1 .. 6;
  my @queries = (sort keys %sums)[ 0, 0, 0, 1, 1, 2 ];
  my $wrong = 0;
  for my $round (1 .. 3) {
    $crowd[$_]->start($queries[$_]) for 0 .. $#crowd;
    $wrong += $crowd[$_]->result->{rows} ne $sums{ $queries[$_] } for 0 .. $#crowd;
  }
  is($wrong, 0, 'six sessions that join the same and other tables at once all get their answers');
  $_->quit for @crowd;

  $one->value('BEGIN');
  $one->value("DECLARE c$_ CURSOR FOR SELECT id1, id2 FROM gpu_selfjoin('middling', 0.02, pairs => 'unordered')")
    for 1 .. 12;
  my (@pairs, %different);
  for my $round (1 .. 5) {
    $pairs[$_] .= $one->value("FETCH 700 FROM c$_") . "\n" for 1 .. 12;
  }
  $different{ join ' ', sort split /\n/, $one->value("FETCH ALL FROM c$_") . "\n$pairs[$_]" }++ for 1 .. 12;
  is(scalar keys %different, 1, 'twelve cursors in one session, fetched from in turn, all return the same pairs');
  is(scalar(split / /, (keys %different)[0]), $one->value("SELECT count(*) FROM gpu_selfjoin('middling', 0.02,
    pairs => 'unordered')"), 'and all of them');
  $one->value('COMMIT');
}

# Whose rows a join sees.
{
  $one->value("BEGIN; INSERT INTO points VALUES (100, '{50,50}')");
  is($one->value($count), 461, 'a transaction joins its own uncommitted rows');
  is($two->value($count), 460, 'others do not see them');
  $one->value('SAVEPOINT s; DELETE FROM points WHERE id > 50');
  is($one->value($count), 51 + 2 * (5 * 9 + 4 * 10 + 1), 'nor rows that a subtransaction deleted');
  $one->value('ROLLBACK TO s');
  is($one->value($count), 461, 'which its rollback brings back');

  $two->value("BEGIN ISOLATION LEVEL REPEATABLE READ; $count");
  $one->value('COMMIT');
  is($two->value($count), 460, 'under REPEATABLE READ the snapshot stays');
  $two->value('COMMIT');
  is($two->value($count), 461, 'after commit others see the row');

  $two->value("BEGIN; DECLARE c CURSOR FOR SELECT * FROM gpu_selfjoin('points', 1)");
  $one->value('DELETE FROM points WHERE id = 100');
  is(scalar(split /\n/, $two->value('FETCH ALL FROM c')), 461, 'a cursor sees what there was when it was declared');
  $two->value('COMMIT');
}

# What serializable transactions read through a join counts as read.
{
  for my $session ($one, $two) {
    $session->value("BEGIN ISOLATION LEVEL SERIALIZABLE; $count");
  }
  $one->value("INSERT INTO points SELECT 200, ARRAY[count(*), 1000] FROM gpu_selfjoin('points', 1)");
  $two->value("INSERT INTO points SELECT 201, ARRAY[count(*), 1000] FROM gpu_selfjoin('points', 1)");
  my @states = map { $_->query('COMMIT')->{state} } $one, $two;
  is_deeply([ sort @states ], [ '', '40001' ], 'of two transactions that write what the other joined, one fails');
  $_->query('ROLLBACK') for $one, $two;
  $one->value('DELETE FROM points WHERE id >= 200');
}

# A row that changes under an UPDATE is rechecked, against the same pairs.
{
  my $update = "UPDATE points p SET v = ARRAY[p.v[1], p.v[2] + 100] FROM gpu_selfjoin('points', 0) g
    WHERE p.id = g.id1 AND p.id < 3 AND p.v[1] < 5 RETURNING p.id, g.id2, p.v[2]";
  $one->value("BEGIN; UPDATE points SET v[2] = 7 WHERE id = 1; UPDATE points SET v[1] = 9 WHERE id = 2");
  my $someone_waits = sub { $one->value('SELECT count(*) FROM pg_locks WHERE NOT granted') };
  $two->start($update);
  ok(wait_until($Session::DEADLINE, $someone_waits), 'an UPDATE joined with pairs waits for a row');
  $one->value('COMMIT');
  is(join(' ', sort split /\n/, $two->result->{rows}), '0|0|100 1|1|107', 'and then goes by what the row has become');
  $one->value("UPDATE points SET v = ARRAY[id % 10, id / 10]");

  $update = "UPDATE points p SET v = ARRAY[p.v[1], p.v[2] + 100] WHERE p.id < 3 AND p.v[1] <
    (SELECT count(*) FROM gpu_selfjoin('points', 1) WHERE id1 = p.id) RETURNING p.id, p.v[1], p.v[2]";
  $one->value("BEGIN; UPDATE points SET v[1] = 9 WHERE id = 1; UPDATE points SET v[1] = 3 WHERE id = 2");
  $two->start($update);
  ok(wait_until($Session::DEADLINE, $someone_waits), 'an UPDATE that counts pairs waits for a row');
  $one->value('COMMIT');
  is(join(' ', sort split /\n/, $two->result->{rows}), '0|0|100 2|3|100', 'and then counts them again');
  $one->value("UPDATE points SET v = ARRAY[id % 10, id / 10]");
}

# Another session's temporary table cannot be read, a dropped one is missed.
{
  $one->value("CREATE TEMP TABLE mine (id int PRIMARY KEY, v float8[]); INSERT INTO mine VALUES (1, '{1}')");
  my $oid = $one->value("SELECT 'mine'::regclass::oid");
  is($one->value("SELECT count(*) FROM gpu_selfjoin('mine', 1)"), 1, "a session's own temporary table is joined");
  is($two->query("SELECT count(*) FROM gpu_selfjoin(${oid}::regclass, 1)")->{state}, '0A000',
    "another session's is not");
  $one->value("DROP TABLE mine");
  is($two->query("SELECT count(*) FROM gpu_selfjoin(${oid}::regclass, 1)")->{state}, '42P01',
    'one that was dropped does not exist');
  is($two->value($count), 460, 'and the session joins on');

  $one->value("CREATE TABLE other (id int PRIMARY KEY, v float8[])");
  $two->value("PREPARE others AS SELECT count(*) FROM gpu_selfjoin('other', 0)");
  is($two->value('EXECUTE others'), 0, 'a prepared join of an empty table returns nothing');
  $one->value("ALTER TABLE other DROP v, ADD w point; INSERT INTO other VALUES (1, '(1,1)'), (2, '(1,1)')");
  is($two->value('EXECUTE others'), 4, "it follows the table's columns as others change them");
  $one->value('DROP TABLE other');
  is($two->query('EXECUTE others')->{state}, '42P01', 'and says when the table is gone');
}

# Errors inside blocks that catch them.
{
  $one->value(<<'SQL');
CREATE FUNCTION survive() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  caught text := '';
  query text;
BEGIN
  FOREACH query IN ARRAY ARRAY[
    'SELECT 1 / (id1 - id2) FROM gpu_selfjoin(''dense'', 9)',
    'SELECT 1 FROM gpu_selfjoin(''points'', -1)',
    'SELECT 1 FROM gpu_selfjoin(''no_such_table'', 1)',
    'INSERT INTO points SELECT id1, NULL FROM gpu_selfjoin(''points'', 0)'] LOOP
    BEGIN
      INSERT INTO points VALUES (300, '{0,0}');
      EXECUTE query;
    EXCEPTION WHEN OTHERS THEN
      caught := caught || ' ' || SQLSTATE;
    END;
  END LOOP;
  RETURN caught || ' ' || (SELECT count(*) FROM gpu_selfjoin('points', 1));
END $$
SQL
  is($one->value('SELECT survive()'), ' 22012 22023 42P01 23505 460',
    'joins that fail inside exception blocks leave the rest of the transaction');
  ok(wait_until($Session::DEADLINE, sub { threads($one->pid) == 1 }), 'and no threads');

  $one->value("BEGIN; DECLARE outer_one CURSOR FOR SELECT id1, id2 FROM gpu_selfjoin('dense', 9)");
  my $first = $one->value('FETCH 2 FROM outer_one');
  $one->value('SAVEPOINT s');
  $one->query("SELECT 1 / (id1 - id2) FROM gpu_selfjoin('dense', 9)");
  $one->value('ROLLBACK TO s');
  my $second = $one->value('FETCH 2 FROM outer_one');
  like("$first\n$second", qr/^(\d+\|\d+\n){3}\d+\|\d+$/,
    'an open cursor survives the rollback of a subtransaction that failed');
  isnt($first, $second, 'and goes on where it was');
  $one->value('COMMIT');
}

# Joins in functions, called row by row, inside a nested loop.
{
  $one->value(<<'SQL');
CREATE FUNCTION neighbors(int, float8) RETURNS bigint STABLE LANGUAGE sql AS
$$ SELECT count(*) FROM gpu_selfjoin('points', $2) WHERE id1 = $1 $$;
CREATE FUNCTION neighbors_of_neighbors(int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  n bigint := 0;
  r record;
BEGIN
  FOR r IN SELECT id2 FROM gpu_selfjoin('points', 1) WHERE id1 = $1 LOOP
    n := n + neighbors(r.id2::int, 1);
  END LOOP;
  RETURN n;
END $$
SQL
  is($one->value("SET enable_hashjoin = off; SET enable_mergejoin = off;
    SELECT sum(neighbors_of_neighbors(g.id1::int)) FROM generate_series(50, 54) i, gpu_selfjoin('points', 0) g
      WHERE g.id1 = i; RESET ALL"),
    17 + 24 + 3 * 25, 'joins in functions that joins call, in a nested loop');
  is($one->query("CREATE FUNCTION again() RETURNS bigint LANGUAGE plpgsql AS
    'BEGIN RETURN (SELECT count(*) FROM gpu_selfjoin(''circle'', 0, ''id'', ''{x}'')); END';
    CREATE VIEW circle AS SELECT 1 AS id, again() AS x; SELECT again()")->{state}, '54001',
    'a join that joins itself without end runs out of stack');
  is($one->value($count), 460, 'which the session survives');
}

# What interrupts a join without meaning to end it.
{
  my $query = "SELECT count(*), sum(id1 - id2) FROM gpu_selfjoin('middling', 9)";
  $query .= " UNION ALL $query";
  my $answer = join "\n", ('36000000|0') x 2;
  my $pid = $one->pid;
  my ($interrupts, %answers) = (0);
  for (1 .. 10) {
    $one->start($query);
    until ($one->{out} =~ /ends here/) {
      $node->safe_psql('postgres', "SELECT pg_log_backend_memory_contexts($pid), pg_reload_conf()");
      $interrupts++;
      $one->{psql}->pump_nb;
    }
    $answers{ $one->result->{rows} }++;
    last if $interrupts > 2;
  }
  is_deeply([ keys %answers ], [$answer], 'a join that is asked for its memory contexts goes on');
  cmp_ok($interrupts, '>', 2, 'and was asked several times');
  my $log = slurp_file($node->logfile);
  like($log, qr/\[$pid\].*LOG:  logging memory contexts of PID $pid/, 'it answers while it joins');

  $one->start($endless);
  ok(wait_until($Session::DEADLINE, sub { threads($pid) > 1 }), 'a long join is at work');
  my $late = least($Session::PATIENCE, sub {
    $node->safe_psql('postgres', 'CREATE DATABASE another');
    my $asked = now;
    $node->safe_psql('postgres', 'DROP DATABASE another');
    return now - $asked;
  });
  cmp_ok($late, '<', $Session::PATIENCE, 'what waits for all backends to answer does not wait for its end');
  $node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
  is($one->result->{state}, '57014', 'then it is cancelled');
}

# Killed, and shut down, while it joins.
{
  my $pid = $one->pid;
  $one->start($endless);
  ok(wait_until($Session::DEADLINE, sub { threads($pid) > 1 }), 'a join that will be killed is at work');
  kill 'KILL', $pid;
  like($one->result->{error}, qr/server closed the connection|57P02/, 'kill -9 ends its connection');
  ok(serves($node), 'the server comes back');
  is($node->safe_psql('postgres', $count), 460, 'and joins');

  my (%states, $at_work);
  my $late = least(2 * $Session::PATIENCE, sub {
    $two = Session->new($node);
    $pid = $two->pid;
    $two->start($endless);
    $at_work = wait_until($Session::DEADLINE, sub { threads($pid) > 1 });
    my $asked = now;
    $node->stop('fast');
    my $seconds = now - $asked;
    $states{ $two->result->{state} }++;
    $node->start;
    return $seconds;
  });
  ok($at_work, 'a join is at work');
  cmp_ok($late, '<', 2 * $Session::PATIENCE, 'a fast shutdown does not wait for its end');
  is_deeply([ keys %states ], ['57P01'], 'and says so to the client');
  is($node->safe_psql('postgres', $count), 460, 'after the restart the table is joined as before');
}

$node->stop;
done_testing();
