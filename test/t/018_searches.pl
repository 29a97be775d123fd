# Searches of one table by many sessions: they share what the service keeps, see their own snapshots, and survive its death.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use Session;
use Test::More;

my $node = start_server('searches', 'gpujoin.service = auto', 'gpujoin.cpu_threads = 2', "session_preload_libraries = 'gpujoin'");
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE places (id int PRIMARY KEY, p point);
INSERT INTO places SELECT i, point(i % 200, i / 200) FROM generate_series(1, 20000) i;
CREATE TABLE asked AS SELECT id, p FROM places WHERE id % 401 = 7;
VACUUM ANALYZE;
SQL

my $near = 'SELECT id FROM places WHERE p <-> point(50.25, 50.5) < 1.2 ORDER BY id';
my $first = 'SELECT id FROM places ORDER BY p <-> point(50.25, 50.5), id LIMIT 5';
my $each = 'SELECT sum((SELECT count(*) FROM places x WHERE x.p <-> a.p < 2.5)) FROM asked a';
my %right = map { $_ => $node->safe_psql('postgres', "SET gpujoin.enable_customscan = off; $_") } $near, $first, $each;

sub searches { return $node->safe_psql('postgres', 'SELECT coalesce(sum(searches), 0) FROM pg_stat_gpujoin') }

my $session = Session->new($node);
$session->value('SET gpujoin.service = on');
is($session->value($each), $right{$each}, 'searches for each row');
like($session->value("EXPLAIN (COSTS OFF) $first"), qr/GpuSimilarityScan.*Index: kept/s, 'and the table stays');
is($session->value("SELECT count(*) FROM gpu_resident WHERE relation = 'places'::regclass"), 1, 'gpu_resident shows it');
is($session->value($_), $right{$_}, $_) for $near, $first;

# The plan of another session uses it, too; each search is counted.
my $counted = searches();
my @crowd = map { Session->new($node) } 1 .. 6;
for my $turn (1 .. 5) {
  $_->start("$near; $first; $each") for @crowd;
  is_deeply([ map { $_->result->{rows} } @crowd ], [ (join "\n", @right{ $near, $first, $each }) x 6 ], "six sessions at once, turn $turn");
}
$_->quit for @crowd;
my $asked = $session->value('SELECT count(*) FROM asked');
ok(wait_until($Session::DEADLINE, sub { searches() - $counted >= 5 * 6 * ($asked + 1) }), 'searches are counted')
  or diag(searches() - $counted . " of $asked each");

# Snapshots.
my $old = Session->new($node);
$old->value('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($old->value($near), $right{$near}, 'a snapshot');
my $writer = Session->new($node);
$writer->value('BEGIN; DELETE FROM places WHERE id = 10050; INSERT INTO places VALUES (-1, point(50.25, 50.5))');
is($writer->value($near), "-1\n" . join("\n", grep { $_ != 10050 } split /\n/, $right{$near}), 'a writer finds what it wrote');
is($session->value($near), $right{$near}, 'others do not yet');
$writer->value('COMMIT');
is($session->value($near), "-1\n" . join("\n", grep { $_ != 10050 } split /\n/, $right{$near}), 'then they do');
is($session->value("$first"), join("\n", -1, grep({ $_ != 10050 } split(/\n/, $right{$first}))), 'in their order')
  if ((split /\n/, $right{$first}))[4] == 10050;
is($old->value($near), $right{$near}, 'and an older snapshot never');
$old->value('COMMIT');
$writer->value('DELETE FROM places WHERE id = -1; INSERT INTO places VALUES (10050, (SELECT p FROM asked LIMIT 1)); UPDATE places SET p = point(10050 % 200, 10050 / 200) WHERE id = 10050');
is($session->value($near), $right{$near}, 'all is as it was');

# A row that somebody else changes meanwhile is checked again.
my $touch = 'UPDATE places SET id = id WHERE p <-> point(50.25, 50.5) < 1.2 RETURNING id';
like($session->value("EXPLAIN (COSTS OFF) $touch"), qr/GpuSimilarityScan/, 'an UPDATE finds its rows by a search');
for my $change ([ 'p + point(0, 0.01)', 1 ], [ 'point(900, 900)', 0 ]) {
  my ($moved, $stays) = @$change;
  $writer->value("BEGIN; UPDATE places SET p = $moved WHERE id = 10050");
  my $waiting = 'SELECT count(*) FROM pg_stat_activity WHERE pid = ' . $session->pid . " AND wait_event_type = 'Lock'";
  $session->start("BEGIN; $touch; ROLLBACK");
  ok(wait_until($Session::DEADLINE, sub { $node->safe_psql('postgres', $waiting) == 1 }), 'it waits for the row');
  $writer->value('COMMIT');
  my %found = map { $_ => 1 } split /\s+/, $session->result->{rows};
  is($found{10050} // 0, $stays, "and looks at it again: SET p = $moved");
  $writer->value('UPDATE places SET p = point(10050 % 200, 10050 / 200) WHERE id = 10050');
}

# Rows of pgvector's <#> are lifted to one norm. An older snapshot that reads other, shorter rows does not change it.
SKIP: {
  skip 'no pgvector', 2 unless $node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'");
  my $nearest = "SELECT string_agg(id::text, ' ') FROM (SELECT id FROM items ORDER BY v <#> '[1,2,3]', id LIMIT 900) s";
  $session->value(<<~'SQL');
    CREATE EXTENSION vector;
    CREATE TABLE items (id int PRIMARY KEY, v vector(3));
    INSERT INTO items SELECT i, l2_normalize(ARRAY[sin(i), cos(i * 7), i % 10 / 10.0]::float4[]::vector) FROM generate_series(1, 3000) i;
    VACUUM ANALYZE items
    SQL
  $old->value('BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL gpujoin.prefer_node = on; SELECT count(*) FROM asked');
  my $before = $node->safe_psql('postgres', "SET gpujoin.enable_customscan = off; $nearest");
  $writer->value('UPDATE items SET v = (v + v) + v');
  $session->value("SELECT gpu_prewarm('items', metric => 'inner_product')");
  is($old->value($nearest), $before, 'an older snapshot by inner products');
  $old->value('COMMIT');
  $writer->value("INSERT INTO items SELECT 10000 + i, l2_normalize(ARRAY[1, i, -1]::float4[]::vector) FROM generate_series(1, 20) i");
  is($session->value("SET gpujoin.prefer_node = on; $nearest; RESET gpujoin.prefer_node"), $node->safe_psql('postgres', "SET gpujoin.enable_customscan = off; $nearest"), 'and rows that come after it');
}

# Rows of bits stay, too. After a change there is no slot without a row, which bits could not mark.
{
  my @looks = map { "SELECT string_agg(id::text, ' ') FROM ($_) s" }
    "SELECT id FROM hashes ORDER BY bit_count(h # B'0011010111001010'), id LIMIT 30",
    "SELECT id FROM hashes WHERE bit_count(h # B'0000000000000000') <= 3 ORDER BY id";
  $session->value(<<~'SQL');
    CREATE TABLE hashes (id int PRIMARY KEY, h bit(16));
    INSERT INTO hashes SELECT i, (i * 7919)::bit(16) FROM generate_series(1, 5000) i;
    VACUUM ANALYZE hashes;
    SELECT gpu_prewarm('hashes', metric => 'hamming')
    SQL
  like($session->value("EXPLAIN (COSTS OFF) $looks[0]"), qr/GpuSimilarityScan.*Index: kept/s, 'searches of bits');
  for my $change ('SELECT 1', 'DELETE FROM hashes WHERE id % 3 = 0', 'UPDATE hashes SET h = ~h WHERE id % 50 = 1', 'VACUUM hashes',
    'INSERT INTO hashes SELECT 10000 + id, h FROM hashes WHERE id % 7 = 0', 'TRUNCATE hashes') {
    $writer->value($change);
    for my $look (@looks) {
      is($session->value("SET gpujoin.prefer_node = on; $look; RESET gpujoin.prefer_node"),
        $node->safe_psql('postgres', "SET gpujoin.enable_customscan = off; $look"), "bits after $change");
    }
  }
  cmp_ok($session->value("SELECT hits FROM gpu_resident WHERE relation = 'hashes'::regclass"), '>', 8, 'which finds them in the service');
}

# A cursor goes on though the service has died; searches that are at work when it dies find the same.
$session->value("BEGIN; DECLARE c CURSOR FOR SELECT id FROM places ORDER BY p <-> point(50.25, 50.5), id");
my @ids = split /\n/, $session->value('FETCH 10 FROM c');
kill 'KILL', service_pids($node);
push @ids, split /\n/, $session->value('FETCH 5000 FROM c');
$session->value('COMMIT');
is_deeply(\@ids, [ split /\n/, $node->safe_psql('postgres', 'SET gpujoin.enable_customscan = off; SELECT id FROM places ORDER BY p <-> point(50.25, 50.5), id LIMIT 5010') ],
  'a cursor over the end of the service');
my $wrong = 0;
$_->value('RESET gpujoin.service') for $session, $old;
for my $turn (1 .. 40) {
  $_->start("$each") for $session, $old;
  select undef, undef, undef, 0.002 * ($turn % 13);
  kill 'KILL', service_pids($node);
  for my $one ($session, $old) {
    my $result = $one->result;
    ++$wrong if ($result->{rows} // '') ne $right{$each};
  }
}
is($wrong, 0, 'forty times the service was killed under searches');

# A cancel.
my $pid = $session->pid;
$session->value("SELECT gpu_prewarm('places')");
$session->start('SELECT (SELECT count(*) FROM places x WHERE x.p <-> a.p < 2.5), pg_sleep(60) FROM asked a');
my $asleep = "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid AND wait_event = 'PgSleep'";
ok(wait_until($Session::DEADLINE, sub { $node->safe_psql('postgres', $asleep) == 1 }), 'a query of searches is at work');
is($node->safe_psql('postgres', "SELECT phase, engine, left_rows, right_rows, candidates > 0 FROM pg_stat_progress_gpujoin WHERE pid = $pid"),
  'searching|cpu|1|20000|t', 'whose progress others see');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
is($session->result->{state}, '57014', 'and ends a query of searches');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_progress_gpujoin WHERE pid = $pid"), 0, 'and then do not');
is($session->value($near), $right{$near}, 'after which the session searches again');
$_->quit for $session, $old, $writer;

done_testing();
