# Joins in the service that all sessions share: that it is there, and gives the answers that the session gives.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use Session;
use Test::More;
use Time::HiRes qw(sleep);

my $node = start_server('service', 'gpujoin.service = auto', 'gpujoin.cpu_threads = 2');
my $data = $node->data_dir;
my $tables = <<'SQL';
CREATE TABLE points (id int PRIMARY KEY, v float8[], g int);
INSERT INTO points SELECT i, ARRAY[i % 200, i / 200], i % 3 FROM generate_series(0, 19999) i;
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
    "SELECT sum(a.id * 7 + b.id) FROM points a JOIN points b ON a.v <-> b.v <= 2 AND a.g = b.g AND b.id BETWEEN a.id - 300 AND a.id + 300",
    "SELECT kind, count(*), sum(cluster) FROM gpu_dbscan('points', 1, 4, partition_column => 'g') GROUP BY 1 ORDER BY 1",
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
  is($session->query('SELECT gpu_evict(NULL)')->{state}, '22004', 'and so is NULL');

  # What is dropped goes, whoever dropped it; a superuser may evict what another database has.
  $session->value("CREATE TABLE passing AS SELECT * FROM others; ANALYZE passing; SELECT count(*) FROM gpu_selfjoin('passing', 0.1, id_column => 'id')");
  my $oid = $session->value("SELECT 'passing'::regclass::oid");
  my $stays = "SELECT count(*) FROM gpu_resident WHERE relation = $oid";
  is($session->value("BEGIN; DROP TABLE passing; $stays"), 1, 'a table that is being dropped stays');
  $session->value('COMMIT');
  ok(wait_until($Session::DEADLINE, sub { $session->value($stays) == 0 }), 'one that was dropped goes');
  $node->safe_psql('postgres', 'CREATE DATABASE third');
  my ($service) = service_pids($node);
  my $files = settled(sub { open_files($service) });  # connections that ended may close a little later
  my $elsewhere = $node->safe_psql('third', "CREATE EXTENSION gpujoin; SET gpujoin.service = on; $tables SELECT 'points'::regclass::oid; $count;"
      . "SELECT count(*) FROM gpu_selfjoin('others', 0.1)") =~ s/\n.*//sr;
  is($session->value("SELECT gpu_evict(${elsewhere}::regclass)"), 1, 'a superuser evicts what another database has');
  is($session->query("SET ROLE joe; SELECT gpu_evict(${elsewhere}::regclass)")->{state}, '42P01', 'nobody else');
  $session->value('RESET ROLE');
  my $counted = 'SELECT count(*) FROM pg_stat_gpujoin WHERE datname IS NULL OR datname = \'third\'';
  ok(wait_until($Session::DEADLINE, sub { $session->value($counted) == 1 }), 'its joins were counted');
  cmp_ok(open_files($service), '>', $files, 'and the service has its other table');
  $node->safe_psql('postgres', 'DROP DATABASE third');
  is($session->value($counted), 0, 'a database that was dropped has no counts');
  $session->value('SELECT count(*) FROM gpu_resident');
  ok(wait_until($Session::DEADLINE, sub { open_files($service) <= $files }), 'and no tables in the service');
  my $through_view = 'SELECT count(*) FROM shown a JOIN shown b ON a.v <-> b.v <= 1; ' . $where;
  $session->value('CREATE VIEW shown AS SELECT * FROM points; CREATE ROLE viewer; GRANT SELECT ON shown TO viewer');
  is($session->value("SET ROLE viewer; $through_view"), "$answer\nservice", "a query finds it with the privileges of a view's owner");
  is($session->query("SELECT count(*) FROM gpu_selfjoin('points', 1)")->{state}, '42501', 'a function with those of its caller alone');
  $session->value('RESET ROLE');
}

# Top-k joins, joins of boxes and neighbours find their tables, too: what they answer is what they answer without the
# service, whatever becomes of the rows. Scores have ties, which ids decide.
{
  $node->safe_psql('postgres', <<'SQL');
CREATE TABLE ranked (id int PRIMARY KEY, v float8[], s int, t numeric, b box) WITH (fillfactor = 80);
INSERT INTO ranked SELECT i, ARRAY[i % 100, i / 100], i % 40, i % 60, box(point(i % 100, i / 100), point(i % 100 + 0.7, i / 100 + 0.3))
  FROM generate_series(0, 11999) i;
CREATE TABLE corners (id int PRIMARY KEY, low float8[], high float8[]);
INSERT INTO corners SELECT i, ARRAY[i % 100, i / 100], ARRAY[i % 100 + 1, i / 100] FROM generate_series(0, 11999) i;
CREATE TABLE deep (id int PRIMARY KEY, low float8[], high float8[]);
INSERT INTO deep SELECT i, ARRAY[i, 0, 0], ARRAY[i, 1, 1] FROM generate_series(1, 12000) i;
CREATE TABLE again (id int, v float8[]);
INSERT INTO again SELECT i / 2, ARRAY[i, 0] FROM generate_series(1, 12000) i;
VACUUM ANALYZE ranked, corners, deep, again;
SQL
  my $top = "'id', 'id', 'v', 'v'";
  my %calls = (
    'top-k self-join' => "gpu_topk_join('ranked', 'ranked', 1, 500, $top, 's', 's')",
    'top-k self-join of unlike weights' => "gpu_topk_join('ranked', 'ranked', 1, 500, $top, 's', 's', weights => '{1,0.5}', best => 'lowest')",
    'top-k join of one table by two scores' => "gpu_topk_join('ranked', 'ranked', 1, 500, $top, 's', 't')",
    'top-k join of two tables' => "gpu_topk_join('ranked', 'others', 2, 500, $top, 't', 'id')",
    'top-k join by distance' => "gpu_topk_join('ranked', 'others', 2, 500, $top, score => 'distance')",
    'join of boxes' => "gpu_box_join('ranked', 'ranked', 0.3)",
    'join of boxes with others' => "gpu_box_join('ranked', 'corners', 0.1, right_box_columns => 'low,high')",
    'neighbors' => "gpu_neighbors('ranked', 1, vector_columns => 'v')",
    'neighbors but itself' => "gpu_neighbors('ranked', 0.5, vector_columns => 'v', pairs => 'distinct')",
  );
  my $hits = "SELECT coalesce(sum(hits), 0) FROM gpu_resident WHERE relation = 'ranked'::regclass";
  my $answer_of = sub {
    my ($asker, $name, $service) = @_;
    # The best pairs have an order.
    my $order = $name =~ /top-k/ ? '' : ' ORDER BY r::text';
    return $asker->value("SET gpujoin.service = $service; SELECT count(*), md5(string_agg(r::text, ' '$order)) FROM $calls{$name} r");
  };
  my $compare = sub {
    my ($asker, $what) = @_;
    my $wrong = '';
    for my $name (sort keys %calls) {
      my $before = $asker->value($hits);
      my $there = $answer_of->($asker, $name, 'on');
      $wrong .= "$name: no hit\n" if $asker->value($hits) == $before;
      my $here = $answer_of->($asker, $name, 'off');
      $wrong .= "$name: $there, not $here\n" if $there ne $here || $there =~ /^0\|/;
    }
    is($wrong, '', "joins of every kind find the rows: $what");
  };
  $answer_of->($session, $_, 'on') for sort keys %calls;
  my $other = Session->new($node);
  my $late = Session->new($node);
  $late->value('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM ranked');
  $compare->($other, 'in another session');
  my @changes = (
    [ 'vectors and boxes move', "UPDATE ranked SET v = ARRAY[id % 90, 3], b = box(point(id % 90, 3), point(id % 90 + 1, 3)) WHERE id % 37 = 5" ],
    [ 'scores alone change', 'UPDATE ranked SET s = 39 - s, t = t + 0.5 WHERE id % 11 = 0' ],
    [ 'rows go', 'DELETE FROM ranked WHERE id BETWEEN 3000 AND 3900' ],
    [ 'rows come', "INSERT INTO ranked SELECT i, ARRAY[i % 90, i % 7], i % 40, 7, box(point(i % 90, i % 7), point(i % 90 + 1, 9))
      FROM generate_series(20000, 20300) i" ],
    [ 'a change is rolled back', 'BEGIN; UPDATE ranked SET s = 100, v = ARRAY[0, 0], b = NULL WHERE id < 2000; ROLLBACK' ],
    [ 'values are NULL or NaN', 'UPDATE ranked SET s = NULL WHERE id % 91 = 1; UPDATE ranked SET v = NULL, b = NULL WHERE id % 89 = 1; '
      . "UPDATE ranked SET v = '{NaN,1}' WHERE id % 83 = 2" ],
    [ 'the table is vacuumed', 'VACUUM ranked' ],
  );
  for my $change (@changes) {
    my ($what, $sql) = @$change;
    $session->value($_) for split /; /, $sql;
    $compare->($other, $what);
  }
  $session->value('BEGIN');
  $session->value("UPDATE ranked SET s = 0, v = ARRAY[1, 1], b = box(point(1, 1), point(2, 2)) WHERE id % 100 = 3");
  $compare->($session, 'as the transaction that changes them sees them');
  $compare->($other, 'as another one sees them meanwhile');
  $session->value('ROLLBACK');
  $compare->($late, 'as a snapshot from before all this sees them');
  $late->value('COMMIT');
  $late->quit;

  is($other->value("SELECT columns FROM gpu_resident WHERE relation = 'ranked'::regclass ORDER BY columns"),
    join("\n", '{id,b}', '{id,v}', '{id,v,s}', '{id,v,t}'), 'gpu_resident shows their columns');
  $other->value('VACUUM ranked');
  for my $name ('top-k self-join', 'join of boxes', 'neighbors') {
    $answer_of->($other, $name, 'on');
    $other->value('SET gpujoin.service = on');
    like($other->value("EXPLAIN (ANALYZE, TIMING OFF) SELECT * FROM $calls{$name}"),
      qr/Joined In: service.*Resident Blocks: [1-9]\d*\s*\|?\s*Blocks Read: 0$/ms, "EXPLAIN says what was read: $name");
  }

  # gpu_prewarm() for each of them.
  my $rows = $other->value("SELECT count(v) FILTER (WHERE s IS NOT NULL) || ' ' || count(b) FROM ranked");
  $other->value("SELECT gpu_evict('ranked')");
  is($other->value("SELECT gpu_prewarm('ranked', 1, 'id', 'v', score_column => 's') || ' ' || gpu_prewarm('ranked', 0.3, box_columns => 'b')"),
    $rows, 'gpu_prewarm brings scores and boxes there');
  is($other->value("SELECT hits FROM gpu_resident WHERE relation = 'ranked'::regclass"), "0\n0", 'as two sets of columns');
  $answer_of->($other, $_, 'on') for 'top-k self-join', 'join of boxes';
  is($other->value("SELECT hits FROM gpu_resident WHERE relation = 'ranked'::regclass"), "1\n1", 'which joins find');
  is($other->query("SELECT gpu_prewarm('ranked', 1, 'id', 'v', box_columns => 'b')")->{state}, '22023', 'one of both at a time');

  # What cannot stay, and errors.
  my @whole = (
    [ 'rows whose ids may repeat have each its neighbors', 'again', "gpu_neighbors('again', 1, 'id')" ],
    [ 'a view', 'seen', "gpu_topk_join('seen', 'seen', 1, 500, $top, 's', 's')" ],
    [ 'a view of boxes', 'seen', "gpu_box_join('seen', 'seen', 0, 'id', 'id')" ],
  );
  $other->value('CREATE VIEW seen AS SELECT * FROM ranked');
  for my $case (@whole) {
    my ($what, $relation, $call) = @$case;
    my @answers = map { $other->value("SET gpujoin.service = $_; SELECT count(*), md5(string_agg(r::text, ' ' ORDER BY r::text)) FROM $call r") }
      'on', 'on', 'off';
    is_deeply([ @answers[ 0, 1 ] ], [ @answers[ 2, 2 ] ], "$what");
    is($other->value("SELECT count(*) FROM gpu_resident WHERE relation = '$relation'::regclass"), 0, "$what: does not stay");
  }
  $other->value('CREATE ROLE reader; GRANT SELECT ON ranked TO reader; ALTER TABLE ranked ENABLE ROW LEVEL SECURITY;
    CREATE POLICY few ON ranked USING (id < 5000)');
  for my $name ('top-k self-join', 'join of boxes', 'neighbors') {
    my ($there, $here) = map { $other->value('SET ROLE reader') . $answer_of->($other, $name, $_) } 'on', 'off';
    $other->value('RESET ROLE');
    is($there, $here, "a policy hides rows: $name");
    isnt($there, $answer_of->($other, $name, 'on'), "which its owner sees: $name");
  }
  $other->value('ALTER TABLE ranked DISABLE ROW LEVEL SECURITY');
  my $uneven = "SELECT count(*) FROM gpu_box_join('corners', 'deep', 0, 'id', 'id', 'low,high', 'low,high')";
  my $mixed = "SELECT count(*) FROM gpu_box_join('deep', 'deep', 0, 'id', 'id', 'low,high', 'low,high')";
  $other->value("SET gpujoin.service = on; $mixed");
  my $compare_errors = sub {
    my ($query, $what) = @_;
    my @results = map { $other->value("SET gpujoin.service = $_"); $other->query($query) } 'on', 'on', 'off';
    is_deeply([ map { $_->{message} } @results[ 0, 1 ] ], [ map { $_->{message} } @results[ 2, 2 ] ], "$what: as without the service");
    like($results[1]{error}, qr/DETAIL:  Row \d+ .*has \d, row \d+ .*has \d/, "$what: rows are named");
  };
  $compare_errors->($uneven, 'boxes of two tables that have different dimensions');
  $other->value('INSERT INTO deep VALUES (0, ARRAY[1, 1], ARRAY[2, 2])');
  $compare_errors->($mixed, 'boxes of one table that have different dimensions');
  $other->quit;
}

# What a session waits for, and how soon it stops.
{
  my $pid = $session->pid;
  my ($service) = service_pids($node);
  my $before = cpu_seconds($service);  # the service has worked for the tests above
  # Numbers of neighbors, whose pairs the service counts: the session waits, however fast it is.
  $session->start("SELECT count(*) FROM generate_series(1, 1000) i,
    LATERAL (SELECT count(*) FILTER (WHERE d.neighbors > 0) FROM gpu_density('dense', 0.5 + i * 1e-9) d) s");
  my $event = "SELECT wait_event_type FROM pg_stat_activity WHERE pid = $pid";
  ok(wait_until($Session::DEADLINE, sub { cpu_seconds($service) > $before + 0.5 }),
    'a long join is at work in the service');
  is(threads($pid), 1, 'not in the session');
  ok(wait_until($Session::DEADLINE, sub { $node->safe_psql('postgres', $event) eq 'Extension' }),
    'pg_stat_activity says that the session waits') or diag(map { $node->safe_psql('postgres', $_) }
    "SELECT state, wait_event_type, wait_event FROM pg_stat_activity WHERE pid = $pid", 'SELECT * FROM gpu_running_joins()');
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
  $session->value('RESET gpujoin.service');
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
}

# Settings that are changed reach the program that runs: how many threads joins have there, and which tables stay.
sub set_for_all {
  my ($name, $value) = @_;
  $session->value("ALTER SYSTEM SET $name = $value");
  $node->reload;
  return;
}

{
  my ($service) = service_pids($node);
  for my $threads (1, 2) {
    set_for_all('gpujoin.service_threads', $threads);
    ok(wait_until($Session::DEADLINE, sub { $session->value("$count; SELECT threads FROM gpu_last_join()") eq "$answer\n$threads" }),
      "gpujoin.service_threads = $threads is what joins have");
  }

  # Rows and ids of each take about 500 kB, and have half of the setting.
  $session->value('SELECT gpu_evict(relation) FROM gpu_resident');
  $session->value(<<~SQL) for qw(first second third);
    CREATE TABLE $_ (id int PRIMARY KEY, v float8[], g int);
    INSERT INTO $_ TABLE points;
    SELECT gpu_prewarm('$_', 0)
    SQL
  $session->value("SELECT gpu_prewarm('first', 0)");
  my $stay = "SELECT coalesce(string_agg(relation::text, ' ' ORDER BY relation::text), 'none') FROM gpu_resident";
  is($session->value($stay), 'first second third', 'three tables stay');
  for ([ '6MB', 'first second third' ], [ '2500kB', 'first third' ], [ '1500kB', 'first' ], [ '0', 'none' ]) {
    my ($memory, $names) = @$_;
    set_for_all('gpujoin.table_memory', "'$memory'");
    wait_until($Session::DEADLINE, sub { $session->value($stay) eq $names });
    is($session->value($stay), $names, "gpujoin.table_memory = $memory: those used last stay");
  }
  is($session->value("$count; $where"), "$answer\nservice", 'where none may stay joins run there all the same');
  set_for_all('gpujoin.table_memory', "'4MB'");
  ok(wait_until($Session::DEADLINE, sub { $session->query("SELECT gpu_prewarm('second', 0); $stay")->{rows} =~ /^second$/m }),
    'with more memory tables stay again');
  is(join(' ', service_pids($node)), $service, 'all by the same program');
  is(scalar(supervisors()), 1, 'with one supervisor');
  $session->quit;
}

$node->stop;
is(scalar(service_pids($node)), 0, 'nothing is left running');
done_testing();
