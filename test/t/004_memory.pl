# Memory: that of a session stays flat however large the result is, no temporary files, and where memory is
# refused, by our setting or by the system, the query fails and the session goes on.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use Session;
use Test::More;

my $node = start_server('memory', 'log_temp_files = 0', 'gpujoin.cpu_threads = 2');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE small (id int PRIMARY KEY, v float8[]);
INSERT INTO small SELECT i, ARRAY[i % 10, i / 10] FROM generate_series(0, 99) i;
CREATE TABLE middling (id int PRIMARY KEY, v float8[]);
INSERT INTO middling SELECT i, ARRAY[sin(i), cos(i * 7)] FROM generate_series(1, 7000) i;
CREATE VIEW squares AS SELECT id, box(point(v[1], v[2]), point(v[1] + 9, v[2] + 9)) AS b FROM middling;
CREATE TABLE dense (id int PRIMARY KEY, v float8[]);
INSERT INTO dense SELECT i, ARRAY[sin(i), cos(i * 7)] FROM generate_series(1, 40000) i;
ANALYZE;
SQL

sub check_session {
  my ($session, $what) = @_;
  is($session->value("SELECT count(*) FROM gpu_selfjoin('small', 1)"), 460, "$what: the next join works");
  return;
}

# Temporary files that the server has logged since a place in its log.
sub temporary_files {
  my ($offset) = @_;
  return scalar(() = slurp_file($node->logfile, $offset) =~ /temporary file: path/g);
}

# Results of tens of millions of pairs that someone wants to see all of, and of 1.6 billion that nobody does.
# The shared buffers that a session touches count as its memory, so they are touched first.
my %streaming = (
  'a count' => [ "SELECT count(*) FROM gpu_selfjoin('middling', 9)", 7000 * 7000 ],
  'a sum of distances of one order' => [
    "SELECT count(distance) FROM gpu_selfjoin_distance('middling', 9, pairs => 'unordered') WHERE distance >= 0",
    7000 * 6999 / 2 ],
  'a join of two tables' => [ "SELECT count(id2) FROM gpu_join('small', 'dense', 99)", 100 * 40000 ],
  'a join of boxes' => [ "SELECT count(id2) FROM gpu_box_join('squares', 'squares', 0, 'id', 'id')", 7000 * 7000 ],
  'the best of them' => [ "SELECT count(*) FROM gpu_topk_join('middling', 'middling', 9, 5000, score => 'distance',
    best => 'highest')", 5000 ],
  'an offset' => [ "SELECT count(*) FROM (SELECT FROM gpu_selfjoin('dense', 9) OFFSET 40000000 LIMIT 1) s", 1 ],
  'many small batches' => [ "SET gpujoin.batch_pairs = 1000;
    SELECT count(*) FROM gpu_selfjoin('middling', 9)", 7000 * 7000 ],
  'a cursor' => [ "BEGIN; DECLARE c CURSOR FOR SELECT * FROM gpu_selfjoin('dense', 9); MOVE 20000000 FROM c; COMMIT",
    '' ],
  'a loop in PL/pgSQL' => [ "DO 'BEGIN FOR i IN 1 .. 20 LOOP
    PERFORM FROM gpu_selfjoin(''dense'', 9) OFFSET 1000000 LIMIT 1; END LOOP; END'", '' ],
  'a rescanned inner side' => [ "SET enable_material = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
    SELECT count(*) FROM generate_series(1, 2) i LEFT JOIN gpu_selfjoin('middling', 9) g ON g.id1 > i + 6000",
    (999 + 998) * 7000 ],
);
for my $what (sort keys %streaming) {
  my ($sql, $answer) = @{ $streaming{$what} };
  my %answers;
  my $log = -s $node->logfile;
  my $peak = least(8_000, sub {
    my $session = Session->new($node);
    $session->value("SELECT sum(v[1] + v[2]) FROM $_") for qw(small middling dense);
    $session->value("SELECT * FROM gpu_selfjoin_distance('dense', 9) LIMIT 10");
    my $before = status_kb($session->pid, 'VmHWM');
    my $result = $session->query($sql);
    $answers{ $result->{error} . $result->{rows} }++;
    my $after = status_kb($session->pid, 'VmHWM');
    $session->quit;
    return $after - $before;
  });
  is_deeply([ keys %answers ], [$answer], "$what over millions of pairs is right");
  cmp_ok($peak, '<', 8_000, "$what over millions of pairs stays in the memory of a small one (kB more)");
  is(temporary_files($log), 0, "$what over millions of pairs needs no temporary file");
}

# What is measured here does show where results are stored.
{
  my $session = Session->new($node);
  my $log = -s $node->logfile;
  $session->value("SET gpujoin.enable_customscan = off;
    SELECT count(*) FROM gpu_selfjoin('middling', 1, pairs => 'unordered')");
  cmp_ok(temporary_files($log), '>', 0, 'a function scan of as many does need one');
  $session->quit;
}

# The beginning of 1.6 billion pairs.
{
  my $session = Session->new($node);
  my $result;
  my $seconds_of = sub {
    my ($sql) = @_;
    return least($Session::PATIENCE, sub { $result = $session->query($sql); return $result->{seconds} });
  };
  my $seconds = $seconds_of->("SELECT * FROM gpu_selfjoin('dense', 9) LIMIT 10");
  is(scalar(() = $result->{rows} =~ /^\d+\|\d+$/mg), 10, 'LIMIT 10 of 1.6 billion pairs returns ten');
  cmp_ok($seconds, '<', $Session::PATIENCE, 'and soon');
  is($session->value("SELECT count(*) FROM (SELECT DISTINCT * FROM (SELECT * FROM gpu_selfjoin('dense', 9)
    LIMIT 300000) s) d"), 300000, 'the first 300,000 are all different');
  $seconds = $seconds_of->("SELECT EXISTS (SELECT FROM gpu_selfjoin('dense', 9) WHERE id1 <> id2)");
  is($result->{rows}, 't', 'EXISTS over 1.6 billion pairs is true');
  cmp_ok($seconds, '<', $Session::PATIENCE, 'and soon');
  $session->quit;
}

# gpujoin.host_memory_limit, from far too little to enough: rows go to a file, but the engine needs some memory.
{
  my $session = Session->new($node);
  my %messages;
  my @kilobytes = (1, 10, 100, 300, 600, 1000, 1500, 2200, 3300, 5000, 7500);
  for my $kb (@kilobytes) {
    my $result = $session->query("SET gpujoin.host_memory_limit = '${kb}kB';
      SELECT count(*) FROM (SELECT FROM gpu_selfjoin('dense', 9) LIMIT 10) s");
    next if $result->{rows} eq '10';
    is($result->{state}, '53400', "host_memory_limit = ${kb}kB fails as a configured limit does");
    like($result->{hint}, qr/gpujoin\.host_memory_limit/, "host_memory_limit = ${kb}kB: the hint tells what to raise");
    $messages{ $result->{message} =~ s/\d+/N/gr }++;
    $session->value('RESET gpujoin.host_memory_limit');
    check_session($session, "after host_memory_limit = ${kb}kB");
  }
  is(scalar keys %messages, 1, 'the engine alone tells that it has no memory: rows go to a file')
    or diag(explain(\%messages));
  is($session->query("SET gpujoin.host_memory_limit = '30MB';
    SELECT count(*) FROM (SELECT FROM gpu_selfjoin('dense', 9) LIMIT 10) s")->{rows}, 10, 'with enough memory it runs');
  $session->quit;
}

# More rows than gpujoin.host_memory_limit holds: the same answers, in about as much memory, and no file stays.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE crowd (id int PRIMARY KEY, v float8[], b box, s int);
INSERT INTO crowd SELECT i, ARRAY[x, y], box(point(x, y), point(x + 0.001, y + 0.001)), i % 1009
FROM (SELECT i, random() AS x, random() AS y FROM generate_series(1, 700000) i) p;
VACUUM ANALYZE crowd;
SQL
# The most memory that a session has had but for shared buffers, which it only gains.
sub own_peak_kb {
  my ($session) = @_;
  return status_kb($session->pid, 'VmHWM') - status_kb($session->pid, 'RssShmem');
}

my $points = "left_vector_columns => '{v}', right_vector_columns => '{v}'";
my %spilled = (
  'pairs' => "SELECT sum(id1 # id2) FROM gpu_selfjoin('crowd', 0.0007, vector_columns => '{v}')",
  'a count' => "SELECT count(*) FROM gpu_selfjoin('crowd', 0.0007, vector_columns => '{v}')",
  'neighbours' => "SELECT sum(id * cardinality(neighbors)) FROM gpu_neighbors('crowd', 0.0007, vector_columns => '{v}')",
  'the nearest pairs' => "SELECT sum(id1 # id2) FROM gpu_topk_join('crowd', 'crowd', 0.001, 500, score => 'distance', $points)",
  'the best pairs' => "SELECT sum(id1 # id2) FROM gpu_topk_join('crowd', 'crowd', 0.001, 500, left_score_column => 's',
    right_score_column => 's', $points)",
  'clusters' => "SELECT sum(hashint8(id::bigint * 1000003 + coalesce(cluster, -1))) FROM gpu_dbscan('crowd', 0.001, 4, vector_columns => '{v}')",
  'boxes' => "SELECT sum(id1 # id2) FROM gpu_box_join('crowd', 'crowd', 0, left_box_columns => '{b}', right_box_columns => '{b}')",
);
for my $what (sort keys %spilled) {
  my %answers;
  my $peak = least(14_000, sub {
    my $session = Session->new($node);
    $session->value("SELECT count(*) FROM gpu_selfjoin('small', 1)");
    my $before = own_peak_kb($session);
    my $answer = $session->value("SET gpujoin.host_memory_limit = '8MB'; $spilled{$what}");
    my $after = own_peak_kb($session);
    is($answer, $session->value("RESET gpujoin.host_memory_limit; $spilled{$what}"), "$what of more than memory are right");
    $session->quit;
    return $after - $before;
  });
  cmp_ok($peak, '<', 14_000, "$what under 8MB take little more (kB, with work_mem)");
}
{
  my $session = Session->new($node);
  $session->value("SET gpujoin.host_memory_limit = '4MB'");
  for my $sql ("SELECT count(*) FROM gpu_selfjoin('crowd', 9, vector_columns => '{v}')",
    "SELECT count(id) FROM gpu_neighbors('crowd', 9, vector_columns => '{v}')",
    "SELECT count(id) FROM gpu_dbscan('crowd', 0.0008, 3, vector_columns => '{v}')",
    "SELECT * FROM gpu_topk_join('crowd', 'crowd', 9, 500, best => 'highest', score => 'distance', $points)") {
    check_timeouts($session, $sql, "a cancelled join in parts ($sql)", 100, 400, 1500);
    check_session($session, 'after a cancelled join in parts');
  }
  is($session->value('SELECT count(*) FROM pg_ls_tmpdir()'), 0, 'and leaves no temporary file');
  $session->quit;
}

# The system refuses: address space runs out at every stage in turn, then there is no thread to be had. The limits
# are lifted before the next query.
sub limit {
  my ($session, $resource, $value) = @_;
  return !system_log('prlimit', '--pid', $session->pid, "--$resource=$value:");
}

my $first_rows = "SELECT count(*) FROM (SELECT FROM gpu_selfjoin_distance('dense', 9) LIMIT 10) s";

sub result_with_spare {
  my ($session, $kb) = @_;
  limit($session, 'as', int(1024 * (status_kb($session->pid, 'VmSize') + $kb)));
  my $result = $session->query($first_rows);
  limit($session, 'as', 'unlimited');
  my $what = $result->{state} || "rows $result->{rows}";
  note("$kb kB: $what $result->{message}");
  return $what;
}

SKIP: {
  my $session = Session->new($node);
  skip 'no permission to limit a process (prlimit)', 1 if !limit($session, 'as', 'unlimited');
  $session->value("SELECT count(*) FROM gpu_selfjoin('small', 1)");
  my %seen;
  for my $kb (map { int(300 * 1.25**$_) } 0 .. 20) {
    $seen{ result_with_spare($session, $kb) }++;
    check_session($session, "after a join with $kb kB of address space");
  }
  cmp_ok($seen{'53200'} // 0, '>', 3, 'with little address space a join is out of memory');
  cmp_ok($seen{'rows 10'} // 0, '>', 0, 'with more it runs');
  is(scalar keys %seen, 2, 'and nothing else happens') or diag(explain(\%seen));

  # A session's first join also loads the library and makes the stacks of threads.
  %seen = ();
  for my $kb (map { 1000 * 2**$_ } 0 .. 7) {
    my $fresh = Session->new($node);
    $seen{ result_with_spare($fresh, $kb) }++;
    check_session($fresh, "after a first join with $kb kB of address space");
    $fresh->quit;
  }
  cmp_ok($seen{'53200'} // 0, '>', 0, 'with little address space a first join is out of memory');
  cmp_ok($seen{'rows 10'} // 0, '>', 0, 'with more it runs');
  delete @seen{qw(53200 58P01 0A000), 'rows 10'};
  is_deeply(\%seen, {}, 'or its library or its engine cannot be loaded, and nothing else happens');

  my ($processes) = slurp_file('/proc/' . $session->pid . '/limits') =~ /^Max processes\s+(\w+)/m;
  limit($session, 'nproc', 1);
  my $result = $session->query($first_rows);
  limit($session, 'nproc', $processes);
  is($result->{state}, '53200', 'where the system gives no thread the join fails');
  like($result->{hint}, qr/threads/, 'and the hint says what it lacks');
  check_session($session, 'after a join without threads');
  $session->quit;
}

$node->stop;
done_testing();
