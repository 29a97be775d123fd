# Ordinary joins that the planner gives to the node: when the library is there in time, beside other modules with
# the same hooks, from many clients and through drivers, out of a dump, cancelled, hundreds of times over, spilled.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use File::Spec;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
use Test::More;
use Time::HiRes qw(sleep);

my $node = start_server('planner', 'gpujoin.cpu_threads = 2', 'log_temp_files = 0');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE points (id int PRIMARY KEY, v float8[], f float4[], p point);
INSERT INTO points SELECT i, ARRAY[x, y], ARRAY[x, y], point(x, y)
  FROM generate_series(0, 999) i, LATERAL (SELECT i % 40 AS x, i / 40 AS y) c;
CREATE TABLE answers AS SELECT e, count(*) AS n FROM generate_series(1, 3) e, points a, points b
  WHERE (a.v[1] - b.v[1]) ^ 2 + (a.v[2] - b.v[2]) ^ 2 <= e * e GROUP BY e;
CREATE TABLE dense (id int PRIMARY KEY, v float8[], p point);
INSERT INTO dense SELECT i, ARRAY[sin(i), cos(i * 7)], point(sin(i), cos(i * 7)) FROM generate_series(1, 20000) i;
CREATE TABLE odd AS SELECT id, p FROM dense UNION ALL SELECT 0, point(1e200, 0);
CREATE TABLE wide (id int PRIMARY KEY, v float8[], filler text);
INSERT INTO wide SELECT i, ARRAY[i % 200, i / 200], repeat('x', 1000) FROM generate_series(0, 19999) i;
CREATE VIEW endless AS SELECT generate_series(1, (SELECT 2000000000)) AS id, ARRAY[0.5, 0.5]::float8[] AS v;
ANALYZE;
SQL
my $within_one = $node->safe_psql('postgres', 'SELECT n FROM answers WHERE e = 1');
my $uses_node = qr/Custom Scan \(GpuSimilarityJoin\)/;
my $by_array = 'SELECT count(*), sum(a.id) FROM points a JOIN points b ON a.v <-> b.v <= 1';
my $by_point = 'SELECT count(*), sum(a.id) FROM points a JOIN points b ON a.p <-> b.p <= 1';

sub explained {
  my ($session, $sql) = @_;
  return $session->value("EXPLAIN (COSTS OFF) $sql");
}

sub has_module {
  my ($name) = @_;
  return -e $node->safe_psql('postgres', q(SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR')) . "/$name.so";
}

# What the first statement of a session gets.
sub first_plan {
  my ($sql) = @_;
  my $session = Session->new($node);
  my $plan = explained($session, $sql);
  $session->quit;
  return $plan;
}

sub first_answer {
  my ($sql) = @_;
  my $session = Session->new($node);
  my $answer = $session->value($sql);
  $session->quit;
  return $answer;
}

my $sum = $within_one * 999 / 2;    # each row's neighbours mirror those of the row across the middle

sub check_first_queries {
  my ($how) = @_;
  for my $clause ('a.v <-> b.v <= 1', '1.0 >= b.v <-> a.v', 'a.f <-> b.f <= 1', 'gpu_within(a.v, b.v, 1)') {
    my $sql = $by_array =~ s/ON .*/ON $clause/r;
    like(first_plan($sql), $uses_node, "$how: a session's first query, by $clause, uses the node");
    is(first_answer($sql), "$within_one|$sum", "$how: and is right");
  }
  return;
}

# Whatever happened before: the session joins, and nothing of the last join is left.
sub check_session {
  my ($session, $what) = @_;
  my $alone = wait_until($Session::DEADLINE, sub { threads($session->pid) == 1 });
  my $answer = $session->value($by_array);
  my $contexts = $session->value("SELECT count(*) FROM pg_backend_memory_contexts WHERE name ~ 'gpujoin'");
  ok($alone && $answer eq "$within_one|$sum" && $contexts == 0, "$what: the session is as before")
    or diag("threads end: $alone, next join: $answer, memory contexts: $contexts");
  return;
}

# Not preloaded, what is planned first decides.
check_first_queries('not preloaded');
{
  my $session = Session->new($node);
  unlike(explained($session, $by_point), $uses_node, 'not preloaded: a join of points alone knows nothing of the node');
  is($session->value($by_point), "$within_one|$sum", 'not preloaded: and is right');
  $session->value("SELECT '{1}'::float8[] <-> '{2}'");
  like(explained($session, $by_point), $uses_node, 'once a function of ours was planned it uses the node');
  is($session->value($by_point), "$within_one|$sum", 'and is right');
  $session->quit;
}

# Cancelled, at moments from one millisecond on, by time and by another session.
my %endless = (
  'while it reads' => 'SELECT count(*) FROM points a JOIN endless b ON a.v <-> b.v <= 1',
  'while it hands out pairs' => "COPY (SELECT a.id, b.id FROM dense a JOIN dense b ON a.v <-> b.v <= 9) TO '/dev/null'",
  'while a filter drops all pairs' =>
    'SELECT count(*) FROM dense a JOIN dense b ON a.v <-> b.v <= 9 AND a.id + b.id < 0',
  'while it looks for the nearest' =>
    'SELECT a.id, b.id FROM dense a JOIN dense b ON a.v <-> b.v <= 9 AND a.id + b.id < 0 ORDER BY a.v <-> b.v LIMIT 3',
  'while it looks for the best' =>
    'SELECT a.id, b.id FROM dense a JOIN dense b ON a.v <-> b.v <= 9 AND a.id + b.id < 0 ORDER BY a.id - b.id LIMIT 3',
  'while it hands out pairs of boxes' => 'SELECT count(*) FROM dense a JOIN dense b
    ON box(a.p, point(1, 1)) && box(point(-1, -1), b.p) AND a.id + b.id < 0',
  'while it looks for rows without a match' =>
    'SELECT count(*) FROM dense a WHERE NOT EXISTS (SELECT FROM dense b WHERE a.v <-> b.v <= 9 AND a.id + b.id < 0)',
  'while it finds pairs beside an odd row' =>
    'SELECT count(*) FROM odd a JOIN odd b ON a.p <-> b.p <= 1',
  'while it asks for each pair, for a radius that is none' =>
    "SELECT count(*) FROM dense a JOIN dense b ON a.v <-> b.v <= 'NaN' AND a.id + b.id < 0",
);
if ($node->psql('postgres', 'CREATE EXTENSION cube') == 0) {
  $node->safe_psql('postgres', 'CREATE TABLE cubes AS SELECT id, cube(v, ARRAY[v[1] + 0.1, v[2]]) AS c
    FROM dense; ANALYZE cubes');
  $endless{'while it asks for pairs of near boxes'} =
    'SELECT count(*) FROM cubes a JOIN cubes b ON a.c <-> b.c <= 1';
}
{
  my $session = Session->new($node);
  $session->value("$by_array; SET max_parallel_workers_per_gather = 0; SET enable_nestloop = off");
  for my $when (sort keys %endless) {
    like(explained($session, $endless{$when} =~ s/^COPY \((.*)\) TO .*/$1/r), $uses_node, "a join cancelled $when");
    check_timeouts($session, $endless{$when}, "statement_timeout $when", 1, 10, 40, 150);
    check_session($session, "statement_timeout $when");

    check_cancel($session, $endless{$when}, $when, sub { sleep 0.05 + rand 0.2 });
    check_session($session, "pg_cancel_backend $when");
  }
  $session->quit;
}

# A plan that is kept goes by the LIMIT of the day, not by that of the day it was made.
{
  my $session = Session->new($node);
  $session->value("SET enable_nestloop = off; SET limit_of.the_day = 3; PREPARE nearest AS SELECT a.id, b.id
    FROM points a JOIN points b ON a.v <-> b.v <= 1 ORDER BY a.v <-> b.v
    LIMIT current_setting('limit_of.the_day')::int");
  is(scalar(split /\n/, $session->value('EXECUTE nearest')), 3, 'a prepared query of the nearest returns as many');
  is(scalar(split /\n/, $session->value('SET limit_of.the_day = 7; EXECUTE nearest')), 7,
    'and later as many as are then asked for');
  $session->quit;
}

# Some 300 joins of all kinds in one session, to their ends and not, leave nothing behind.
{
  my $session = Session->new($node);
  my $pairs = 'FROM points a JOIN points b ON a.v <-> b.v <= 1';
  my %joins = (
    'inner' => "SELECT sum(a.id - b.id) $pairs",
    'with a filter' => "SELECT sum(a.id - b.id) $pairs AND a.id < b.id",
    'left' => 'SELECT count(b.id) FROM points a LEFT JOIN points b ON a.p <-> b.p < 1',
    'semi' => 'SELECT count(*) FROM points a WHERE EXISTS (SELECT FROM points b
      WHERE a.v <-> b.v <= 1 AND a.id < b.id)',
    'anti' => 'SELECT count(*) FROM points a WHERE NOT EXISTS (SELECT FROM points b WHERE a.f <-> b.f < 1)',
    'counted' => "SELECT count(*) $pairs",
    'counted per row' => "SELECT sum(n) FROM (SELECT a.id, count(*) AS n $pairs GROUP BY a.id) s",
    'with LIMIT' => "SELECT a.id, b.id $pairs LIMIT 3",
    'left, with LIMIT' => 'SELECT a.id, b.v FROM points a LEFT JOIN points b ON a.p <-> b.p < 1 LIMIT 3',
    'of the nearest' => "SELECT a.id, b.id $pairs ORDER BY a.v <-> b.v LIMIT 3",
    'of the best' => "SELECT a.id, b.id $pairs AND a.id % 99 = b.id % 98 ORDER BY a.id * b.id DESC, 1, 2 LIMIT 3",
    'of boxes' => 'SELECT count(b.id) FROM points a LEFT JOIN points b ON box(a.p, a.p) && box(b.p, b.p)',
    'asked for each pair' => "SELECT a.id, b.id FROM points a JOIN points b ON a.v <-> b.v <= 'NaN' LIMIT 3",
    'that fail' => "SELECT 1 / (a.id - b.id) $pairs",
    'of cursors that stay open' => "BEGIN; DECLARE c CURSOR FOR SELECT a.id, b.id $pairs; FETCH 1 FROM c;
      DECLARE d CURSOR FOR SELECT a.v, b.v $pairs; FETCH 1 FROM d; COMMIT",
    'of cursors that are rolled back' => "BEGIN; DECLARE c CURSOR FOR SELECT a.id, b.id $pairs; FETCH 1 FROM c;
      SAVEPOINT s; DECLARE d CURSOR FOR SELECT a.v, b.v $pairs; FETCH 1 FROM d; ROLLBACK TO s; ROLLBACK",
    'on disk' => "SET work_mem = '64kB'; SELECT max(a.f) $pairs; RESET work_mem",
    'started over' => "SELECT sum(n) FROM generate_series(1, 2) e,
      LATERAL (SELECT count(a.id + b.id) AS n FROM points a JOIN points b ON a.v <-> b.v <= e) s",
  );
  $session->value("SET enable_nestloop = off; $by_array");
  for my $kind (sort keys %joins) {
    my ($select) = $joins{$kind} =~ /(SELECT .*?)(;|$)/s;
    like(explained($session, $select), $uses_node, "joins $kind are the node's");
  }
  $session->value("SET enable_nestloop = off");
  my $all = join ";\n", map { $joins{$_} } sort keys %joins;
  my $repeat = sub { return $session->query(join ";\n", ($all) x $_[0]) };
  check_footprint(
    $session,
    '300 joins',
    sub { $repeat->(5) },
    sub {
      my $errors = $repeat->(20)->{error};
      is(join(' ', $errors =~ /ERROR:  (\w+)/g), join(' ', ('22012') x 20), 'of 300 joins those fail that should');
    });
  $session->quit;
}

# Rows that are wider than work_mem wait on disk, for as long as the join lasts.
{
  my $session = Session->new($node);
  my $wide = 'FROM wide a JOIN wide b ON a.v <-> b.v <= 1';
  my $temporary = sub { return $node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()') };
  # The plan is to read the table, not blocks, whose rows are fetched late.
  $session->value("SET work_mem = '64kB'; SET max_parallel_workers_per_gather = 0; SET min_parallel_table_scan_size = '1GB'");
  like(explained($session, "SELECT a.filler, b.filler $wide"), $uses_node, 'a join of wide rows uses the node');
  $session->value("SELECT count(v), max(filler) FROM wide; $by_array; SELECT a.filler $wide LIMIT 1");
  my $before = status_kb($session->pid, 'VmHWM');
  my $answer = 20000 + 2 * (199 * 100 + 200 * 99);
  is($session->value("SELECT count(*) FROM (SELECT a.filler AS x, b.filler AS y $wide OFFSET 0) s WHERE x = y"),
    $answer, 'a join of wide rows with little work_mem is right');
  cmp_ok(status_kb($session->pid, 'VmHWM') - $before, '<', 12_000,
    'two times 20 MB of rows are not held in memory (kB more)');
  like($session->value("EXPLAIN (ANALYZE) SELECT a.filler, b.filler $wide"), qr/Kept Rows: Disk/, 'EXPLAIN says so');
  is($temporary->(), 0, 'no temporary file is left');

  $session->value("BEGIN; DECLARE c CURSOR FOR SELECT a.filler, b.filler $wide");
  $session->value('MOVE 10 FROM c');
  cmp_ok($temporary->(), '>', 0, 'an open cursor keeps temporary files');
  $session->value('CLOSE c');
  is($temporary->(), 0, 'CLOSE removes them');
  $session->value("DECLARE c CURSOR FOR SELECT a.filler, b.filler $wide");
  $session->value('MOVE 10 FROM c; COMMIT');
  is($temporary->(), 0, 'and so does the end of the transaction');
  is($session->query("SELECT 1 / (length(a.filler) - length(b.filler)) $wide")->{state}, '22012',
    'a join on disk fails in its target list');
  is($temporary->(), 0, 'which leaves no temporary file');
  $session->value("SET statement_timeout = '60ms'");
  is($session->query("COPY (SELECT a.filler, b.filler FROM wide a JOIN wide b ON a.v <-> b.v <= 9) TO '/dev/null'")
      ->{state}, '57014', 'a join on disk is cancelled');
  $session->value('RESET statement_timeout');
  is($temporary->(), 0, 'nor does that');
  check_session($session, 'joins on disk');
  $session->quit;
}

# Many clients, in all the ways that a client can ask.
SKIP: {
  my $pgbench = $node->installed_command('pgbench');
  skip 'no pgbench', 3 if !eval { IPC::Run::run([ $pgbench, '--version' ], '>', \my $version) };
  my $script = "$PostgreSQL::Test::Utils::tmp_check/joins.pgbench";
  append_to_file($script, <<'SQL');
\set e random(1, 3)
SELECT 1 / (count(*) = (SELECT n FROM answers WHERE e = :e))::int FROM points a JOIN points b ON a.v <-> b.v <= :e;
SELECT 1 / (sum(n) = (SELECT n FROM answers WHERE e = :e))::int
  FROM (SELECT a.id, count(*) AS n FROM points a JOIN points b ON gpu_within(a.p, b.p, :e) GROUP BY a.id) s;
SELECT 1 / (count(b.id) = (SELECT n - 1000 FROM answers WHERE e = :e))::int
  FROM points a LEFT JOIN points b ON a.f <-> b.f <= :e AND a.id <> b.id;
SELECT 1 / (count(*) = 0)::int
  FROM points a WHERE NOT EXISTS (SELECT FROM points b WHERE a.p <-> b.p <= :e AND a.id <> b.id);
SELECT a.id, b.id FROM points a JOIN points b ON a.v <-> b.v <= :e AND a.id <> b.id LIMIT 3;
SQL
  for my $protocol (qw(simple extended prepared)) {
    $node->command_checks_all(
      [ $pgbench, '-n', '-M', $protocol, '-c', '4', '-j', '1', '-t', '15', '-f', $script, $node->connstr('postgres') ],
      0, [qr{actually processed: 60/60}], [qr/^((?!error|abort).)*$/s], "four clients join by the $protocol protocol");
  }
}

# A driver that prepares statements on the server, often enough for a generic plan.
SKIP: {
  my $python = <<'PYTHON';
import sys
dsn, join = sys.argv[1], "SELECT count(*), sum(a.id) FROM points a JOIN points b ON a.v <-> b.v <= %s"
plan = "EXPLAIN (FORMAT JSON) "
try:
    import psycopg
    connection = psycopg.connect(dsn, prepare_threshold=0)
    run = lambda sql, eps: connection.execute(sql, (eps,)).fetchall()
except ImportError:
    import psycopg2
    connection = psycopg2.connect(dsn)
    cursor = connection.cursor()
    for name, sql in ("join", join), ("plan", plan + join):
        cursor.execute("PREPARE near_" + name + "(float8) AS " + join.replace("%s", "$1"))
    def run(sql, eps):
        prefix, name = (plan, "plan") if sql.startswith(plan) else ("", "join")
        cursor.execute(prefix + "EXECUTE near_" + name + "(%s)", (eps,))
        return cursor.fetchall()
for eps in [1.0, 2.0, 3.0] * 4:
    count, total = run(join, eps)[0]
    print(eps, count, total)
print(run(plan + join, 1.0)[0][0][0]["Plan"]["Plans"][0]["Custom Plan Provider"])
PYTHON
  my ($out, $err);
  my $import = "try:\n import psycopg\nexcept ImportError:\n import psycopg2";
  my ($python3) = grep { eval { IPC::Run::run([ $_, '-c', $import ], '>', \$out, '2>', \$err) } }
    'python3', '/usr/bin/python3';
  skip 'no python3 with psycopg or psycopg2', 1 if !$python3;
  IPC::Run::run([ $python3, '-c', $python, $node->connstr('postgres') ], '>', \$out, '2>', \$err);
  my @expected = split /\n/,
    $node->safe_psql('postgres', "SELECT e || '.0 ' || n || ' ' || n * 999 / 2 FROM answers ORDER BY e");
  is($out . $err, join("\n", (@expected) x 4, "GpuSimilarityJoin\n"), 'prepared statements of a Python driver join');
}

# Views over joins come back from a dump, and the copies join by the node.
$node->safe_psql('postgres', <<'SQL');
CREATE VIEW near AS SELECT a.id AS id1, b.id AS id2, a.v <-> b.v AS distance
  FROM points a JOIN points b ON a.id < b.id AND a.v <-> b.v <= 1;
CREATE VIEW lonely AS SELECT a.id FROM points a
  WHERE NOT EXISTS (SELECT FROM points b WHERE gpu_within(a.f, b.f, 0.5) AND a.id <> b.id);
CREATE MATERIALIZED VIEW neighbours AS SELECT a.id, count(*) AS n
  FROM points a JOIN points b ON a.p <-> b.p <= 2 GROUP BY a.id;
CREATE MATERIALIZED VIEW pairs AS SELECT * FROM near;
SQL
my $same = 'SELECT count(*), sum(id1), sum(distance) FROM near UNION ALL SELECT count(*), sum(id), 0 FROM lonely
  UNION ALL SELECT sum(n), sum(id), 0 FROM neighbours UNION ALL SELECT count(*), sum(id2), sum(distance) FROM pairs';
for my $format (qw(plain custom)) {
  my $dump = "$PostgreSQL::Test::Utils::tmp_check/planner.$format";
  $node->safe_psql('postgres', "CREATE DATABASE $format");
  $node->command_ok([ 'pg_dump', '-F', $format, '-f', $dump, $node->connstr('postgres') ], "a $format dump is made");
  my @restore = $format eq 'plain' ? ('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $node->connstr($format))
    : ('pg_restore', '--exit-on-error', '-d', $node->connstr($format), $dump);
  $node->command_ok(\@restore, "a $format dump is restored");
  is($node->safe_psql($format, $same), $node->safe_psql('postgres', $same), 'its views return what the old ones did');
  my $session = Session->new($node, database => $format);
  $session->value('REFRESH MATERIALIZED VIEW pairs; REFRESH MATERIALIZED VIEW neighbours; ANALYZE');
  is($session->value($same), $node->safe_psql('postgres', $same), 'and once more when they are refreshed');
  like(explained($session, 'SELECT * FROM near'), $uses_node, 'a restored view joins by the node');
  $session->quit;
}

# Preloaded, joins by operators of others use the node from the first query on.
for my $how ('session_preload_libraries', 'shared_preload_libraries') {
  $node->append_conf('postgresql.conf', "$how = 'gpujoin'");
  $node->restart;
  check_first_queries($how);
  like(first_plan($by_point), $uses_node, "$how: a session's first query, of points, uses the node");
  is(first_answer($by_point), "$within_one|$sum", "$how: and is right");
  $node->append_conf('postgresql.conf', "$how = ''");
}
$node->restart;

# A module that counts the calls of the planner's hooks and passes them on, and has the rows of a table elsewhere.
my $bystander = <<'C';
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "storage/lmgr.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

static set_join_pathlist_hook_type previous_join;
static set_rel_pathlist_hook_type previous_rel;
static create_upper_paths_hook_type previous_upper;
static planner_hook_type previous_planner;
static int joins, rels, uppers, empty_table, its_rows;

static PlannedStmt *plan_elsewhere(Query *query, const char *text, int options, ParamListInfo parameters) {
  ListCell *cell;
  foreach (cell, query->rtable) {
    RangeTblEntry *entry = (RangeTblEntry *) lfirst(cell);
    if (entry->relid != (Oid) empty_table || empty_table == 0) continue;
    entry->relid = (Oid) its_rows;
    LockRelationOid(entry->relid, AccessShareLock);
  }
#if PG_VERSION_NUM >= 160000
  foreach (cell, query->rteperminfos) {
    RTEPermissionInfo *info = (RTEPermissionInfo *) lfirst(cell);
    if (info->relid == (Oid) empty_table && empty_table != 0) info->relid = (Oid) its_rows;
  }
#endif
  return (previous_planner ? previous_planner : standard_planner)(query, text, options, parameters);
}

static void count_join(PlannerInfo *root, RelOptInfo *join, RelOptInfo *outer, RelOptInfo *inner, JoinType type,
                       JoinPathExtraData *extra) {
  ++joins;
  if (previous_join) previous_join(root, join, outer, inner, type, extra);
}

static void count_rel(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *entry) {
  ++rels;
  if (previous_rel) previous_rel(root, rel, rti, entry);
}

static void count_upper(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input, RelOptInfo *output,
                        void *extra) {
  ++uppers;
  if (previous_upper) previous_upper(root, stage, input, output, extra);
}

static void define(const char *name, int *counter) {
  DefineCustomIntVariable(name, "Calls.", NULL, counter, 0, 0, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
}

void _PG_init(void) {
  define("bystander.joins", &joins);
  define("bystander.rels", &rels);
  define("bystander.uppers", &uppers);
  define("bystander.empty_table", &empty_table);
  define("bystander.its_rows", &its_rows);
  previous_planner = planner_hook;
  planner_hook = plan_elsewhere;
  previous_join = set_join_pathlist_hook;
  set_join_pathlist_hook = count_join;
  previous_rel = set_rel_pathlist_hook;
  set_rel_pathlist_hook = count_rel;
  previous_upper = create_upper_paths_hook;
  create_upper_paths_hook = count_upper;
}
C

# Builds it for this server and returns its path; nothing when there is nothing to build with.
sub build_bystander {
  my ($version) = split ' ', $node->safe_psql('postgres', 'SHOW server_version');
  my ($config) = grep {
    -x && `$_ --version` =~ /\b\Q$version\E\b/ && -e `$_ --includedir-server` =~ s{\n}{/postgres.h}r
  } grep { defined } $ENV{PG_CONFIG}, map { "$_/pg_config" } split /:/, $ENV{PATH};
  return if !defined $config;
  my ($compiler) = split ' ', `$config --cc`;
  return if grep { !eval { IPC::Run::run([ $_, '--version' ], '>', \my $out, '2>', \my $err) } } $compiler, 'make';
  my $folder = File::Spec->rel2abs("$PostgreSQL::Test::Utils::tmp_check/bystander");
  mkdir $folder;
  append_to_file("$folder/bystander.c", $bystander);
  append_to_file("$folder/Makefile", "MODULES = bystander\nPGXS := \$(shell \$(PG_CONFIG) --pgxs)\ninclude \$(PGXS)\n");
  my $log;
  ok(IPC::Run::run([ 'make', '-C', $folder, "PG_CONFIG=$config", 'with_llvm=no' ], '>', \$log, '2>&1'),
    'a module with hooks is built') or diag($log);
  return "$folder/bystander.so";
}

# The hooks see our joins, and we see what passes through theirs.
sub check_hooks {
  my ($session, $order) = @_;
  my $counters = "SELECT current_setting('bystander.joins')::int > 0, current_setting('bystander.rels')::int > 0,
    current_setting('bystander.uppers')::int > 0";
  my $count = $by_array =~ s/, sum\(a.id\)//r;
  like(explained($session, $by_array), $uses_node, "$order: a join uses the node");
  is($session->value($by_array), "$within_one|$sum", "$order: and is right");
  like(explained($session, $count), qr/\A$uses_node.*Counts: pairs/s, "$order: a count uses the node");
  is($session->value($count), $within_one, "$order: and is right");
  like(explained($session, "SELECT * FROM gpu_selfjoin('points', 1, vector_columns => '{v}')"), qr/\A$uses_node/,
    "$order: a function uses the node");
  is($session->value($counters), 't|t|t', "$order: the other hooks are called");
  $session->quit;
  return;
}

SKIP: {
  my $module = build_bystander();
  skip 'no pg_config, make or compiler for this server', 1 if !defined $module;
  my $session = Session->new($node);
  $session->value("LOAD '$module'");
  check_hooks($session, 'another module loaded before');
  $node->safe_psql('postgres', 'CREATE TABLE empty (LIKE points INCLUDING ALL)');
  for my $service ('off', 'on') {
    $session = Session->new($node);
    $session->value("LOAD '$module'; SET gpujoin.service = $service");
    my $all = "SELECT count(*), sum(id1) FROM gpu_selfjoin('%s', 1, vector_columns => '{v}')";
    is($session->value(sprintf $all, 'empty'), '0|', "a table has no rows (service $service)");
    $session->value("SELECT set_config('bystander.empty_table', 'empty'::regclass::oid::text, false),
      set_config('bystander.its_rows', 'points'::regclass::oid::text, false)");
    is($session->value(sprintf $all, 'empty'), $session->value(sprintf $all, 'points'), 'a planner has them elsewhere, where a function finds them');
    $session->quit;
  }
  $session = Session->new($node);
  $session->value("$by_array; LOAD '$module'");
  check_hooks($session, 'another module loaded after');
  my @modules = ((grep { has_module($_) } qw(pg_stat_statements auto_explain)), $module);
  for my $order ([ @modules, 'gpujoin' ], [ 'gpujoin', reverse @modules ]) {
    my $name = 'preloaded ' . join(', ', map { s{.*/}{}r } @$order);
    $node->append_conf('postgresql.conf', "shared_preload_libraries = '" . join(', ', @$order) . "'\n"
        . "auto_explain.log_min_duration = 0\nauto_explain.log_analyze = on\npg_stat_statements.track_planning = on");
    $node->restart;
    check_hooks(Session->new($node), $name);
    my $log = -s $node->logfile;
    is(first_answer($by_point), "$within_one|$sum", "$name: a join of points is right");
  SKIP: {
      skip 'no auto_explain', 1 if !has_module('auto_explain');
      first_answer('SELECT a.id, b.id FROM points a JOIN points b ON a.v <-> b.v <= 1');
      ok(wait_until($Session::DEADLINE, sub { slurp_file($node->logfile, $log) =~ /$uses_node.*rows=$within_one(?:\.00)? loops=1/ }),
        "$name: auto_explain logs the node and its rows");
    }
  SKIP: {
      skip 'no pg_stat_statements', 1 if !has_module('pg_stat_statements');
      $node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS pg_stat_statements');
      $node->safe_psql('postgres', 'SELECT pg_stat_statements_reset()');
      first_answer("SELECT a.id, b.id FROM points a JOIN points b ON a.v <-> b.v <= 1");
      is($node->safe_psql('postgres', "SELECT plans, calls, rows FROM pg_stat_statements WHERE query ~ 'a.v <-> b.v'"),
        "1|1|$within_one", "$name: pg_stat_statements counts plans, calls and rows");
    }
  }
}

$node->stop;
done_testing();
