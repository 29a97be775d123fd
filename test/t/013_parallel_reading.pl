# Tables that PostgreSQL's parallel workers read with the session: the same rows in the same order, the same errors,
# and no worker is left, whatever ends the join.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Session;
use Test::More;
use Time::HiRes qw(sleep);

my $node = start_server('parallel_reading', 'gpujoin.cpu_threads = 2', 'min_parallel_table_scan_size = 0',
  'parallel_setup_cost = 0', 'max_prepared_transactions = 2');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE points (id int PRIMARY KEY, cell int, v float4[], score float4);
INSERT INTO points SELECT i, i * 7 % 5000, ARRAY[i * 7 % 5000 % 100 * 10, i * 7 % 5000 / 100 * 10], sin(i)
  FROM generate_series(1, 30000) i;
DELETE FROM points WHERE id % 11 = 3;
UPDATE points SET v = NULL WHERE id % 97 = 5;
UPDATE points SET score = score + 1 WHERE id % 13 = 5;
CREATE TABLE numbers (id bigint PRIMARY KEY, x numeric, y int2, z float8);
INSERT INTO numbers SELECT i, (i % 50) / 10.0, i % 40, sqrt(i % 30) FROM generate_series(1, 12000) i;
CREATE TABLE corners (id int PRIMARY KEY, low float8[], high float4[]);
INSERT INTO corners SELECT i, ARRAY[i % 90, i % 70], ARRAY[i % 90 + 1.5, i % 70 + 0.5] FROM generate_series(1, 9000) i;
CREATE TABLE places (id int PRIMARY KEY, p point);
INSERT INTO places SELECT i, point(i % 90, i % 70) FROM generate_series(1, 9000) i;
-- Stored out of line, and some of it compressed.
CREATE TABLE wide (id int PRIMARY KEY, v float8[]);
INSERT INTO wide SELECT i, (SELECT array_agg(sin(i % 300 * j + 0 * i)) FROM generate_series(1, 600) j) FROM generate_series(1, 1500) i;
INSERT INTO wide SELECT i, array_fill(i % 7 + 0.5, '{600}') FROM generate_series(1501, 1900) i;
CREATE TABLE pairs (id int PRIMARY KEY, v float8[]);
INSERT INTO pairs SELECT i, ARRAY[i % 50 * 20, i / 50 * 7] FROM generate_series(1, 5000) i;
-- Takes more room among points than in its blocks.
CREATE TABLE dense (id int PRIMARY KEY, a int2, b int2, c int2, d int2, e int2, f int2, g int2, h int2, i int2, j int2, k int2, l int2,
  m int2, n int2, o int2, p int2, q int2, r int2, s int2, t int2, u int2, v int2, w int2, x int2, y int2, z int2);
INSERT INTO dense SELECT i, i % 7, i % 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, i / 1000
  FROM generate_series(1, 20000) i;
CREATE TABLE heavy (id int PRIMARY KEY, a numeric, b numeric, c numeric, d numeric, e numeric, f numeric);
INSERT INTO heavy SELECT i, i + 0.12345678901234567890, i / 3.0, i / 7.0, i / 11.0, i / 13.0, i / 17.0 FROM generate_series(1, 150000) i;
CREATE TABLE few (id int PRIMARY KEY, v float4[]) PARTITION BY RANGE (id);
CREATE TABLE few_1 PARTITION OF few FOR VALUES FROM (0) TO (5000);
CREATE TABLE few_2 PARTITION OF few FOR VALUES FROM (5000) TO (100000);
INSERT INTO few SELECT id, v FROM points;
CREATE TABLE moved (id int PRIMARY KEY, v float4[]) PARTITION BY RANGE (id);
CREATE TABLE moved_1 (v float4[], id int NOT NULL);
ALTER TABLE moved ATTACH PARTITION moved_1 FOR VALUES FROM (0) TO (100000);
INSERT INTO moved SELECT id, v FROM few;
-- The small partitions are read by the session alone, before, between and after the others.
CREATE TABLE parts (id int PRIMARY KEY, v float4[], score float8) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (50) WITH (parallel_workers = 0);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (50) TO (9000);
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (9000) TO (9000000) PARTITION BY RANGE (id);
CREATE TABLE parts_4 PARTITION OF parts_3 FOR VALUES FROM (9000) TO (9100) WITH (parallel_workers = 0);
CREATE TABLE parts_5 PARTITION OF parts_3 FOR VALUES FROM (9100) TO (9101);
CREATE TABLE parts_6 PARTITION OF parts_3 FOR VALUES FROM (10000) TO (9000000);
INSERT INTO parts SELECT id, v, score FROM points WHERE id NOT BETWEEN 9100 AND 9999;
VACUUM ANALYZE wide, few, moved, parts;
SQL

my $session = Session->new($node);

# The number of workers that EXPLAIN counts.
sub workers {
  my ($session, $sql) = @_;
  my ($count) = $session->value("EXPLAIN (ANALYZE, TIMING OFF) $sql") =~ /Read Workers: (\d+)/;
  return $count // 0;
}

sub set_workers {
  my ($session, $count) = @_;
  $session->value("SET max_parallel_workers_per_gather = $count");
  return;
}

# What the statements answer with so many workers; each is run in a transaction that is rolled back.
sub answers {
  my ($session, $count, @statements) = @_;
  set_workers($session, $count);
  return map {
    my $result = $session->query("BEGIN; $_; ROLLBACK");
    $session->value('ROLLBACK') if $result->{state} ne '';
    $result->{error} =~ s/^psql:<stdin>:\d+: //mgr . $result->{rows}
  } @statements;
}

my $letters = join ',', 'a' .. 'z';
my %queries = (
  'arrays' => "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('points', 0, vector_columns => 'v')",
  'arrays of two tables' => "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_join('points', 'few_2', 5, left_vector_columns => 'v')",
  'single and double precision' =>
    "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_join('points', 'pairs', 5, left_vector_columns => 'v', right_vector_columns => 'v')",
  'rows in their order' => "SET LOCAL gpujoin.cpu_threads = 1;
    SELECT md5(string_agg(id1 || ' ' || id2, ',')) FROM gpu_selfjoin('points', 0, vector_columns => 'v')",
  'numbers' => "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('numbers', 1, vector_columns => 'x,y,z')",
  'corners' => "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_box_join('corners', 'corners', 0, 'id', 'id', 'low,high', 'low,high')",
  'PostgreSQL\'s points' => "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('places', 1)",
  'scores' => "SELECT count(*), sum(id1 * 7 + id2), sum(score) FROM gpu_topk_join('points', 'points', 5, 500,
    left_vector_columns => 'v', right_vector_columns => 'v', left_score_column => 'score', right_score_column => 'score')",
  'values out of line' => "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('wide', 1)",
  'top pairs of rows beyond the limit' => "SET LOCAL gpujoin.host_memory_limit = '2MB';
    SELECT * FROM gpu_topk_join('wide', 'wide', 5, 5, left_score_column => 'id', right_score_column => 'id')",
  'top pairs of rows that workers find to be beyond the limit' => "SET LOCAL gpujoin.host_memory_limit = '3MB';
    SELECT * FROM gpu_topk_join('dense', 'dense', 5, 5, left_vector_columns => '$letters', right_vector_columns => '$letters',
      left_score_column => 'a', right_score_column => 'b')",
  'rows of this transaction' => "UPDATE points SET v = ARRAY[0, 0] WHERE id % 17 = 1; DELETE FROM points WHERE id % 19 = 1; SAVEPOINT s;
    INSERT INTO points SELECT i, 0, '{0,0}', 0 FROM generate_series(40001, 41000) i; ROLLBACK TO s;
    INSERT INTO points SELECT i, 0, '{0,0}', 0 FROM generate_series(50001, 50100) i;
    SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('points', 0, vector_columns => 'v')",
  'columns of this transaction' => "ALTER TABLE points ADD extra float8 DEFAULT 3, DROP score, ADD late float4 DEFAULT 0.5;
    UPDATE points SET late = 2 WHERE id % 7 = 1;
    SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('points', 0, vector_columns => 'late,cell,extra')",
  'a serializable transaction' => "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
    SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('points', 0, vector_columns => 'v')",
  'a statement that writes' => "CREATE TEMP TABLE t AS SELECT * FROM gpu_selfjoin('points', 0, vector_columns => 'v');
    INSERT INTO t SELECT id1 + 1, id2 FROM gpu_selfjoin('places', 0) WHERE id1 < 500; SELECT count(*), sum(id1 * 7 + id2) FROM t",
  'a cursor' => "DECLARE c CURSOR FOR SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('points', 0, vector_columns => 'v');
    FETCH ALL FROM c",
  'an exception block' => "DO \$\$ BEGIN CREATE TEMP TABLE n AS SELECT count(*) FROM gpu_selfjoin('numbers', 1, vector_columns => 'x,y,z');
    PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN
    CREATE TEMP TABLE n AS SELECT count(*) FROM gpu_selfjoin('places', 1); END \$\$; SELECT * FROM n",
  'a file beyond the memory limit' => "SET LOCAL gpujoin.host_memory_limit = '300kB';
    SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('points', 0, vector_columns => 'v')",
  'rows that workers find to be beyond the limit' => "SET LOCAL gpujoin.host_memory_limit = '7MB'; SELECT count(*), sum(id1 * 7 + id2)
    FROM gpu_selfjoin('dense', 0, vector_columns => '$letters')",
  'partitions' => "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('few', 5)",
  'partitions of partitions' => "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('parts', 5)",
  'scores of partitions' => "SELECT count(*), sum(id1 * 7 + id2), sum(score) FROM gpu_topk_join('parts', 'parts', 5, 500,
    left_score_column => 'score', right_score_column => 'score')",
  'partitions with columns elsewhere' => "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('moved', 5)",
  'partitions beyond the memory limit' => "SET LOCAL gpujoin.host_memory_limit = '600kB';
    SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('parts', 0)",
  'partitions with row-level security' => "ALTER TABLE parts ENABLE ROW LEVEL SECURITY; ALTER TABLE parts FORCE ROW LEVEL SECURITY;
    ALTER TABLE parts_2 ENABLE ROW LEVEL SECURITY; CREATE POLICY even ON parts USING (id % 2 = 0);
    CREATE ROLE reader; GRANT SELECT ON parts TO reader; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO reader; SET LOCAL ROLE reader;
    SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('parts', 5)",
  'partitions whose parent alone may be read' => "CREATE ROLE reader; GRANT SELECT ON parts TO reader; SET LOCAL ROLE reader;
    SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('parts', 5)",
  'plain SQL' => "SELECT count(*), sum(a.id * 7 + b.id) FROM points a JOIN points b ON a.v <-> b.v <= 0",
);
for my $name (sort keys %queries) {
  my ($alone) = answers($session, 0, $queries{$name});
  my $wrong = '';
  for my $count (1, 2, 4) {
    my ($answer) = answers($session, $count, $queries{$name});
    $wrong .= "$count workers: $answer, alone: $alone\n" if $answer ne $alone;
  }
  unlike($alone, qr/ERROR/, "$name: there is an answer");
  is($wrong, '', "$name: it is the same with workers");
}

# They are at work, as PostgreSQL's settings have it.
{
  my $count = "SELECT count(*) FROM gpu_selfjoin('points', 0, vector_columns => 'v')";
  my %seen = map { set_workers($session, $_); $_ => workers($session, $count) } 0, 1, 2, 4;
  is_deeply(\%seen, { 0 => 0, 1 => 1, 2 => 2, 4 => 4 }, 'as many workers as max_parallel_workers_per_gather allows');
  is(workers($session, "SELECT count(*) FROM gpu_box_join('corners', 'corners', 0, 'id', 'id', 'low,high', 'low,high')") > 0, 1,
    'they read boxes');
  is(workers($session, "SELECT * FROM gpu_join('points', 'places', 5, left_vector_columns => 'v')"), 8, 'and both tables of a join');
  is(workers($session, "SELECT count(*) FROM gpu_selfjoin('few', 0)"), 8, 'and partitions one after the other');
  is(workers($session, "SELECT count(*) FROM gpu_selfjoin('moved', 0)"), 0,
    'a partitioned table whose partitions have their columns in other places is read by a query');
  $session->value("SET min_parallel_table_scan_size = '8MB'");
  is(workers($session, $count), 0, 'a small table is not worth a worker');
  $session->value('ALTER TABLE points SET (parallel_workers = 3)');
  is(workers($session, $count), 3, 'unless it says so itself');
  $session->value("SET parallel_setup_cost = 1000");
  is(workers($session, $count), 0, 'where they are expected to save more than it costs to start them');
  $session->value('RESET parallel_setup_cost');
  $session->value('ALTER TABLE points RESET (parallel_workers); SET max_parallel_workers = 0; RESET min_parallel_table_scan_size');
  is(workers($session, $count), 0, 'where no worker is free the session reads alone');
  my ($free, $full) = ($session->value("RESET max_parallel_workers; $count"), $session->value("SET max_parallel_workers = 0; $count"));
  is($full, $free, 'with the same answer');
  $session->value('RESET max_parallel_workers; SET parallel_leader_participation = off');
  is($session->value($count), $free, 'where the session leaves it to the workers, too');
  is(workers($session, $count), 4, 'which are there');
  $session->value('SET max_parallel_workers = 0');
  is($session->value($count), $free, 'or are not');
  $session->value('RESET max_parallel_workers; RESET parallel_leader_participation; SET max_parallel_workers_per_gather = 2');
  like($session->value("BEGIN; $queries{'rows that workers find to be beyond the limit'}; ROLLBACK" =~ s/SELECT/EXPLAIN (ANALYZE) SELECT/r),
    qr/Read Workers: 2\n.*Parts: [2-9]/s, 'and leave to the session what does not fit in memory');
  unlike($session->value("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) $count"), qr/Buffers: shared hit=\d{1,2}\b/,
    'blocks that workers read are counted in the plan');
}

# A row that cannot take part, in any place, is the error that it is to the session alone.
{
  my @bad = (
    "UPDATE points SET v = '{1,2,3}' WHERE id = 20000",
    "UPDATE points SET v = '{1,2,3}' WHERE id IN (1, 29999)",
    "UPDATE points SET v = '{{1},{2}}' WHERE id = 29000",
    "UPDATE points SET v = '{}' WHERE id = 12000",
    "ALTER TABLE points DROP CONSTRAINT points_pkey; ALTER TABLE points ALTER id DROP NOT NULL; UPDATE points SET id = NULL WHERE id = 17000",
    "UPDATE points SET v = '{1,2,3}' WHERE id IN (9000, 10000); UPDATE points SET v = '{}' WHERE id IN (9500, 15000)");
  my $of_points = "SELECT count(*) FROM gpu_selfjoin('points', 0, 'id', vector_columns => 'v')";
  my %tests = map { ("$_; $of_points" => 'points') } @bad;
  $tests{"UPDATE parts SET v = '{1,2,3}' WHERE id = 20000; SELECT count(*) FROM gpu_selfjoin('parts', 5)"} = 'parts';
  $tests{"UPDATE parts SET v = '{1,2,3}' WHERE id IN (10, 20000); SELECT count(*) FROM gpu_selfjoin('parts', 5)"} = 'small parts';
  $tests{"UPDATE points SET score = 'infinity' WHERE id = 25000; SELECT * FROM gpu_topk_join('points', 'points', 5, 5,
    left_vector_columns => 'v', right_vector_columns => 'v', left_score_column => 'score', right_score_column => 'score')"} = 'scores';
  $tests{"UPDATE corners SET low = '{1,2,3}' WHERE id = 8000; SELECT * FROM gpu_box_join('corners', 'corners', 0, 'id', 'id', 'low,high', 'low,high')"}
    = 'corners';
  $tests{"UPDATE corners SET low = '{900,900}' WHERE id = 8000; SELECT * FROM gpu_box_join('corners', 'corners', 0, 'id', 'id', 'low,high', 'low,high')"}
    = 'corners upside down';
  my ($missing, $wrong) = ('', '');
  for my $statements (sort keys %tests) {
    my ($alone) = answers($session, 0, $statements);
    $missing .= "$statements: $alone\n" if $alone !~ /ERROR/;
    for my $count (1, 2, 4) {
      my ($answer) = answers($session, $count, $statements);
      $wrong .= "$statements, $count workers: $answer, alone: $alone\n" if $answer ne $alone;
    }
  }
  is($missing, '', 'rows that cannot take part are errors');
  is($wrong, '', 'with workers they are the same errors');

  # An error that the value itself raises comes from whoever reads it.
  my $overflow = "UPDATE numbers SET x = '1e400' WHERE id = 9000; SELECT * FROM gpu_selfjoin('numbers', 1, vector_columns => 'x,y,z')";
  set_workers($session, 0);
  my $alone = $session->query("BEGIN; $overflow");
  $session->value('ROLLBACK; SET max_parallel_workers_per_gather = 2');
  my $shared = $session->query("BEGIN; $overflow");
  $session->value('ROLLBACK');
  is($alone->{state}, '22003', 'a number that is too large');
  is_deeply([ @$shared{qw(state message hint)} ], [ @$alone{qw(state message hint)} ], 'is the same error to a worker');
}

# Whatever ends the reading, the workers end, and the session goes on.
{
  my $busy = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND leader_pid = " . $session->pid;
  my $read = "SELECT count(*) FROM gpu_selfjoin('heavy', 0, 'id', 'a,b,c,d,e,f')";
  set_workers($session, 2);
  my $observer = Session->new($node);
  my %ends = (
    'a cancel' => sub { $observer->value('SELECT pg_cancel_backend(' . $session->pid . ')') },
    'the end of a worker' => sub {
      $observer->value("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker'");
    },
  );
  for my $what (sort keys %ends) {
    my ($met, %states) = (0);
    for (1 .. 20) {
      $session->start($read);
      my $seen = wait_until(5, sub { $observer->value($busy) });
      sleep rand 0.03;
      $ends{$what}->();
      my $result = $session->result;
      $states{ $result->{state} }++;
      last if $seen && $result->{state} ne '' && ++$met == 5;
    }
    cmp_ok($met, '>', 0, "$what comes while workers read");
    delete $states{''};
    is_deeply([ keys %states ], [ $what eq 'a cancel' ? '57014' : '57P01' ], "$what is an error");
    ok(wait_until($Session::DEADLINE, sub { $observer->value($busy) == 0 }), "$what leaves no worker");
    is($session->value($read), 150000, 'and the session reads again');
  }
  my $late = $session->query("SET statement_timeout = '20ms'; $read");
  is($late->{state}, '57014', 'statement_timeout ends the reading');
  1 until eval { $session->value('RESET statement_timeout'); 1 };
  ok(wait_until($Session::DEADLINE, sub { $observer->value($busy) == 0 }), 'and leaves no worker');

  # Its threads are at work on what workers read.
  my ($pid, %states) = ($session->pid);
  for my $ms (150, 300, 450, 600) {
    $states{ $session->query("SET gpujoin.index = 'none'; SET statement_timeout = '${ms}ms'; $read")->{state} }++;
    1 until eval { $session->value('RESET statement_timeout; RESET gpujoin.index'); 1 };
  }
  is_deeply([ keys %states ], ['57014'], 'a timeout ends the comparing');
  is($session->value('SELECT pg_backend_pid()'), $pid, 'and the session goes on');
  $observer->quit;
}

# An unlogged table is read by workers, too, and stays nowhere: its blocks prove nothing.
{
  my $pairs = "SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin('fleeting', 1)";
  my $count = 'SELECT count(*) FROM fleeting a JOIN fleeting b ON a.v <-> b.v <= 1';
  $session->value('CREATE UNLOGGED TABLE fleeting (id int PRIMARY KEY, v float8[]);
    INSERT INTO fleeting SELECT i, ARRAY[i % 100, i / 100] FROM generate_series(1, 60000) i; VACUUM ANALYZE fleeting');
  my $width = 100;
  for my $query ($pairs, $count) {
    set_workers($session, 2);
    my $read = sub { $session->value("EXPLAIN (ANALYZE, TIMING OFF) $query") };
    like($read->(), qr/Read Workers: [12]$/m, 'an unlogged table is read by workers, once');
    unlike($read->(), qr/Resident Blocks/, 'and not kept');
    my $found = $session->value($query);
    set_workers($session, 0);
    is($found, $session->value($query), 'its rows are those that a session reads');
    $width -= 10;
    $session->value("UPDATE fleeting SET v = ARRAY[id % $width, id / $width]");
    set_workers($session, 2);
    isnt($session->value($query), $found, 'and what changes is seen');
  }
}

# What workers read stays in the service, and is proven like anything else.
{
  my $pairs = 'SELECT count(*), sum(id1 * 7 + id2) FROM gpu_selfjoin(\'points\', 0, vector_columns => \'v\')';
  my $count = 'SELECT count(*) FROM points a JOIN points b ON a.v <-> b.v <= 0';
  my $check = sub {
    my ($what, $least) = @_;
    my $read = $session->value("SET gpujoin.service = on; EXPLAIN (ANALYZE, TIMING OFF) $pairs");
    my ($workers) = $read =~ /Read Workers: (\d+)/;
    cmp_ok($workers // 0, $least > 0 ? '>=' : '==', $least, "$what: workers") if defined $least;
    my ($there, $counted) = ($session->value($pairs), $session->value($count));
    my $plan = $session->value("EXPLAIN (ANALYZE, TIMING OFF) $pairs");
    like($plan, qr/Blocks Read: 0$/m, "$what: what they read is proven later");
    set_workers($session, 0);
    is($there, $session->value("SET gpujoin.service = off; $pairs"), "$what: the rows are those of the table");
    is($counted, $session->value($count), "$what: to plain SQL, too");
    set_workers($session, 2);
  };
  $session->value("SET gpujoin.service = on; $pairs");
  ok(wait_until($Session::DEADLINE, sub { service_pids($node) == 1 }), 'there is a service');
  $session->value("SELECT gpu_evict('points'); VACUUM points");
  $check->('a first read', 1);
  $session->value('UPDATE points SET v = ARRAY[cell % 50, 7] WHERE id % 1000 = 17');
  $check->('few changes', 0);
  $session->value("UPDATE points SET v = ARRAY[id % 50, 7]; VACUUM points");
  $check->('all rows changed', 1);
  $session->value("DELETE FROM points WHERE id > 15000; VACUUM points; INSERT INTO points SELECT i, 0, ARRAY[i % 50, 3], 0
    FROM generate_series(100001, 120000) i");
  $check->('rows went and came');
  my $plain = $session->value("SET gpujoin.service = on; SELECT gpu_evict('points'); EXPLAIN (ANALYZE, TIMING OFF) $count");
  like($plain, qr/Read Workers: 2/, 'a count in plain SQL has a table read by workers');
}

$session->quit;
done_testing;
