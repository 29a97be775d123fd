# How the library comes into a session: from a query of its own, preloaded for a session or for the server, after
# a restart, and how the extension leaves a database and comes back from a dump.
use strict;
use warnings;

use File::Copy;
use File::Spec::Functions qw(rel2abs);
use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
use Test::More;

my $node = start_server('loading');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE points (id int PRIMARY KEY, v float8[]);
INSERT INTO points SELECT i, ARRAY[i % 10, i / 10] FROM generate_series(0, 99) i;
CREATE ROLE visitor LOGIN;
GRANT SELECT ON points TO visitor;
SQL
my $count = "SELECT count(*) FROM gpu_selfjoin('points', 1)";
my $explain = "EXPLAIN (COSTS OFF) SELECT * FROM gpu_selfjoin('points', 1)";
my $streams = qr/^Custom Scan \(GpuSimilarityJoin\)/;

# The answer that a new session's first statement gets.
sub first_answer {
  my ($sql) = @_;
  my $session = Session->new($node, user => 'visitor');
  my $result = $session->query($sql);
  $session->quit;
  return $result;
}

sub check_first_queries {
  my ($how) = @_;
  is(first_answer($count)->{rows}, 460, "$how: a session's first query joins");
  like(first_answer($explain)->{rows}, $streams, "$how: a session's first query runs through the node");
  is(first_answer("SELECT engine FROM gpu_devices() WHERE engine = 'cpu'")->{rows},
    'cpu', "$how: a session's first query may ask for devices");
  is(first_answer("SELECT ARRAY[0.0]::float8[] <-> '{2}'")->{rows},
    2, "$how: a session's first query may be a distance");
  return;
}

check_first_queries('not preloaded');
$node->restart;
check_first_queries('after a restart');

# Settings that were made before the library was there.
my $session = Session->new($node, user => 'visitor');
$session->value("SET gpujoin.index = 'none'");
$session->value("SET gpujoin.host_memory_limit = '1TB'");
my $result = $session->query($count);
is($result->{rows}, 460, 'a join with settings made before loading runs');
like($result->{error}, qr/WARNING:  42501: permission denied to set parameter "gpujoin.host_memory_limit"/,
  'loading takes back what the user was not allowed to set');
is($session->value('SHOW gpujoin.host_memory_limit'), 0, 'the limit is the default one again');
is($session->value('SELECT index FROM gpu_last_join()'), 'none', 'a knob set before loading holds');
$session->quit;

$session = Session->new($node, user => 'visitor');
$session->value("SET gpujoin.no_such_setting = 'x'");
like($session->query($count)->{error}, qr/WARNING:  .*"gpujoin.no_such_setting"/,
  'loading warns of a setting that does not exist');
is($session->value($count), 460, 'and joins all the same');
$session->quit;

$node->safe_psql('postgres', 'ALTER ROLE visitor SET gpujoin.cpu_threads = 1');
$session = Session->new($node, user => 'visitor');
$session->value($count);
is($session->value('SELECT threads FROM gpu_last_join()'), 1,
  "an administrator's setting for a role holds for its joins");
$session->quit;
$node->safe_psql('postgres', 'ALTER ROLE visitor RESET gpujoin.cpu_threads');

# Preloading.
for my $how ('session_preload_libraries', 'shared_preload_libraries') {
  $node->append_conf('postgresql.conf', "$how = 'gpujoin'\ngpujoin.access_pattern = 'full'");
  $node->restart;
  is(first_answer('SHOW gpujoin.engine')->{rows}, 'auto', "$how: settings are known before the first join");
  is(first_answer("SET gpujoin.no_such_setting = 'x'")->{state}, '42602', "$how: others are refused");
  check_first_queries($how);
  $session = Session->new($node);
  $session->value($count);
  is($session->value('SELECT access_pattern FROM gpu_last_join()'), 'full', "$how: a setting in postgresql.conf holds");
  $session->quit;
  $node->append_conf('postgresql.conf', "$how = ''");
}
$node->append_conf('postgresql.conf', "gpujoin.access_pattern = 'auto'");
$node->restart;

# Beside other modules that hook into planner and executor.
SKIP: {
  $session = Session->new($node);
  skip 'no auto_explain', 2 if $session->query("LOAD 'auto_explain'")->{state} ne '';
  $session->value("SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on");
  my $offset = -s $node->logfile;
  is($session->value($count), 460, 'a join runs under auto_explain');
  like(slurp_file($node->logfile, $offset), qr/Custom Scan \(GpuSimilarityJoin\).*\n\s*Join Method/,
    'which logs its node');
  $session->quit;
}

# A dump holds the extension, not its parts, and what uses its functions comes back.
$node->safe_psql('postgres', <<'SQL');
CREATE VIEW near AS SELECT * FROM gpu_selfjoin('points', 1, pairs => 'unordered');
CREATE MATERIALIZED VIEW far AS
  SELECT a.id AS id1, b.id AS id2 FROM points a, points b WHERE a.v <-> b.v > 12;
CREATE INDEX ON points ((v <-> '{0,0}'));
SQL
my $dump = "$PostgreSQL::Test::Utils::tmp_check/dump.sql";
$node->command_ok([ 'pg_dump', '-f', $dump, $node->connstr('postgres') ], 'a database with gpujoin is dumped');
my $text = slurp_file($dump);
like($text, qr/CREATE EXTENSION IF NOT EXISTS gpujoin/, 'the dump creates the extension');
unlike($text, qr/CREATE FUNCTION/, "the dump has none of the extension's functions");
$node->safe_psql('postgres', 'CREATE DATABASE copy');
my (undef, $said) = run_command([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $node->connstr('copy') ]);
is($said, '', 'the dump is restored, without a word about preloading');
my $same = 'SELECT count(*), sum(id1), sum(id2) FROM near UNION ALL SELECT count(*), sum(id1), sum(id2) FROM far';
is($node->safe_psql('copy', $same), $node->safe_psql('postgres', $same), 'restored views return what the old ones did');

# Leaving and coming back while sessions live on.
$session = Session->new($node);
$session->value("PREPARE pairs AS $count");
is($session->value('EXECUTE pairs'), 460, 'a prepared join runs');
is($session->query('DROP EXTENSION gpujoin')->{state}, '2BP01', 'DROP EXTENSION is refused while views use it');
is($session->query('DROP EXTENSION gpujoin CASCADE')->{state}, '', 'DROP EXTENSION CASCADE is not');
is($session->query('SELECT * FROM near')->{state}, '42P01', 'it took the view along');
is($session->query('EXECUTE pairs')->{state}, '42883', 'the prepared join says that its function is gone');
is($session->value('SELECT count(*) FROM generate_series(1, 5)'), 5, 'other functions are scanned as ever');
$session->value('CREATE SCHEMA elsewhere; CREATE EXTENSION gpujoin SCHEMA elsewhere');
is($session->query('EXECUTE pairs')->{state}, '42883', 'outside the search_path the function is not found');
like($session->value($explain =~ s/gpu_selfjoin/elsewhere.gpu_selfjoin/r), $streams,
  'in another schema it runs through the node');
$session->value('ALTER EXTENSION gpujoin SET SCHEMA public');
is($session->value('EXECUTE pairs'), 460, 'moved back to public, the prepared join runs again');
$session->quit;

# A database made by 1.0 goes on with this library, before it is updated and after, and comes back from a dump.
$node->safe_psql('postgres', 'CREATE DATABASE before');
$node->safe_psql('before', <<'SQL');
CREATE EXTENSION gpujoin VERSION '1.0';
CREATE TABLE points (id int PRIMARY KEY, v float8[]);
INSERT INTO points SELECT i, ARRAY[i % 10, i / 10] FROM generate_series(0, 99) i;
CREATE VIEW near AS SELECT * FROM gpu_selfjoin('points', 1, vector_columns => '{v}');
SQL
my $joins = 'SELECT (SELECT count(*) FROM near), (SELECT count(*) FROM points a JOIN points b ON a.v <-> b.v <= 1), '
  . "(SELECT count(*) FROM gpu_devices() WHERE engine = 'cpu'), (SELECT engine FROM gpu_last_join())";
is($node->safe_psql('before', $joins), '460|460|1|cpu', 'the objects of 1.0 work with this library');
$node->command_ok([ 'pg_dump', '-f', $dump, $node->connstr('before') ], 'a database made by 1.0 is dumped');
$node->safe_psql('postgres', 'CREATE DATABASE after');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $node->connstr('after') ], 'and restored');
$node->safe_psql('before', "ALTER EXTENSION gpujoin UPDATE TO '1.1'; CREATE VIEW counts AS SELECT datname, joins FROM pg_stat_gpujoin");
for my $database ('before', 'after') {
  $node->safe_psql($database, 'ALTER EXTENSION gpujoin UPDATE');
  is($node->safe_psql($database, $joins), '460|460|1|cpu', "$database: what 1.0 made works after an update");
  is($node->safe_psql($database, "SELECT extversion FROM pg_extension WHERE extname = 'gpujoin'"), '1.2', "$database: it is 1.2");
}
is($node->safe_psql('before', 'SELECT count(*) - count(joins) FROM counts'), 0, 'so does a view over a view of 1.1');

# The scripts of this release refuse the library of an earlier one, for which one of PostgreSQL's own stands in.
$node->safe_psql('postgres', 'CREATE DATABASE older');
$node->safe_psql('older', "CREATE EXTENSION gpujoin VERSION '1.0'");
chomp(my $libraries = `pg_config --pkglibdir`);
chomp(my $shared = `pg_config --sharedir`);
for my $script ('gpujoin--1.2.sql', 'gpujoin--1.0--1.1.sql', 'gpujoin--1.1--1.2.sql') {
  my ($version) = $script =~ /(1\.\d)\.sql$/;
  my $sql = slurp_file("$shared/extension/$script") =~ s/^\\echo.*//r =~ s/MODULE_PATHNAME/$libraries\/plpgsql/gr;
  my ($status, undef, $error) = $node->psql('older', $sql, on_error_stop => 1);
  like($error, qr/ERROR:  the library gpujoin.so is of an earlier release than version \Q$version\E of the extension\nHINT:  Install gpujoin \Q$version\E/,
    "$script says that the library is older");
}

# The engine of a device is searched beside the library, wherever that was found.
my $elsewhere = rel2abs("$PostgreSQL::Test::Utils::tmp_check/elsewhere");
mkdir $elsewhere;
chomp(my $pkglibdir = `pg_config --pkglibdir`);
copy("$pkglibdir/$_", "$elsewhere/$_") or die "$_: $!" for 'gpujoin.so', 'gpujoin_cpu.so';
append_to_file("$elsewhere/gpujoin_cuda.so", 'no library');
$node->safe_psql('postgres', 'CREATE DATABASE beside');
like($node->safe_psql('beside', <<"SQL"), qr/could not load the cuda engine: \Q$elsewhere\E\/gpujoin_cuda.so/, 'an engine beside the library is the one');
CREATE FUNCTION devices(OUT engine text, OUT device int, OUT name text, OUT parallelism int, OUT memory_bytes bigint,
  OUT detail text, OUT available boolean, OUT reason text)
  RETURNS SETOF record AS '$elsewhere/gpujoin', 'gpujoin_devices' LANGUAGE C;
SELECT reason FROM devices() WHERE engine = 'cuda';
SQL

$node->stop;
done_testing();
