# Plain SQL over tables whose points the service keeps: pairs are found first, and what the result needs besides is fetched
# by ctid. The answers are those of the session, where both tables are read.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use Session;
use Test::More;

my $node = start_server('late', 'gpujoin.cpu_threads = 2');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE a (id int PRIMARY KEY, gone int, v float8[], name text, wide text, code int UNIQUE, near bool);
INSERT INTO a SELECT i, 1, ARRAY[i % 150, i / 150], 'a' || i, repeat(i::text, 800), 100000 - i, i % 3 = 1 FROM generate_series(1, 15000) i;
ALTER TABLE a DROP gone;
UPDATE a SET name = name || '!' WHERE id % 7 = 0;
UPDATE a SET code = NULL WHERE id % 5 = 0;
DELETE FROM a WHERE id % 11 = 0;
CREATE TABLE b (v float8[], id int, tag numeric);
INSERT INTO b SELECT ARRAY[i % 100 + 0.4, i / 100], i, i / 7.0 FROM generate_series(1, 10000) i;
UPDATE b SET v = NULL WHERE id % 13 = 0;
CREATE TABLE c (id int, v float8[]);
INSERT INTO c SELECT i, CASE WHEN i = 77 THEN ARRAY[1, 2, 3] ELSE ARRAY[i, 1] END FROM generate_series(1, 9000) i;
CREATE TABLE p (id int PRIMARY KEY, at point, name text);
INSERT INTO p SELECT i, point(i % 120, i / 120), 'p' || i FROM generate_series(1, 12000) i;
CREATE TABLE e (id int, v float8[]);
CREATE TABLE s AS SELECT i AS id, ARRAY[i % 100 + 0.4, i / 2]::float8[] AS v FROM generate_series(1, 200) i;
VACUUM ANALYZE;
SQL

my $session = Session->new($node);
$session->value("LOAD 'gpujoin'; SET enable_nestloop = off; SET max_parallel_workers_per_gather = 0");

# The rows of a query, joined in the service and in the session, how many rows of tables were fetched meanwhile, and whether
# the service had the points.
sub compare {
  my ($query) = @_;
  my $there = $session->value("SET gpujoin.service = on; $query");
  my $plan = $session->value("EXPLAIN (ANALYZE, FORMAT JSON) $query");
  my ($fetched) = $plan =~ /"Rows Fetched": (\d+)/;
  my $kept = $plan =~ /"Resident Blocks": [1-9]/ || 0;
  my $here = $session->value("SET gpujoin.service = off; $query");
  return ($there eq $here, $fetched // 0, $kept);
}

# Queries, whether rows are fetched, and whether no join runs in the service over rows that it keeps.
my $near = 'FROM a JOIN b ON a.v <-> b.v < 0.5';
my @queries = (
  ["SELECT a.id, b.id, a.name, b.tag $near", 1],
  ["SELECT md5(string_agg(a.wide, '' ORDER BY a.id, b.id)), count(*) $near AND a.id < 3000", 0, 1],
  ["SELECT md5(string_agg(a.wide, '' ORDER BY a.id, b.id)), count(*) $near AND a.id + b.id < 5000", 1],
  ["SELECT count(*) $near AND a.id > b.id", 1],
  ["SELECT count(*) $near", 0],
  ["SELECT a.id, a.code, a.near, b.* $near AND a.id % 10 = b.id % 10", 1],
  ["SELECT a.ctid, a.tableoid::regclass, b.ctid $near AND a.id + b.id < 900", 1],
  ["SELECT x.id, y.name FROM a x JOIN a y ON x.v <-> y.v <= 1 AND x.id < y.id", 1],
  ["SELECT x.id, y.name FROM a x JOIN a y ON x.v <-> y.v <= 1 AND x.code > y.code", 1],
  ["SELECT x.id, y.name FROM a x JOIN a y ON x.v <-> y.v <= 1 AND x.id <> y.id", 1],
  ["SELECT count(*) FROM a x JOIN a y ON x.v <-> y.v <= 1 AND x.id < y.id", 0],
  ["SELECT count(*) FROM a x JOIN a y ON x.v <-> y.v <= 1 AND x.code < y.code", 1],
  ["SELECT count(*) FROM a x JOIN a y ON x.v <-> y.v <= 1 AND x.code <> y.code", 1],
  ["SELECT x.id, y.id FROM a x JOIN a y ON x.v <-> y.v <= 1 AND x.id < y.code", 1],
  ["SELECT sum(x.id * y.id::bigint) FROM a x JOIN a y ON x.v <-> y.v <= 4", 0, 1],
  ["SELECT sum(length(x.name || y.name)) FROM a x JOIN a y ON x.v <-> y.v <= 4", 1],
  ["SELECT a.near, count(*), sum(a.id) FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v < 0.5) GROUP BY 1", 0],
  ["SELECT b.tag::int % 3, count(*), sum(b.id) FROM b WHERE NOT EXISTS (SELECT FROM a WHERE a.v <-> b.v < 0.5) GROUP BY 1", 0],
  ["SELECT x.id, y.id FROM a x JOIN a y ON x.v <-> y.v <= 1.2 AND x.id < y.id ORDER BY x.v <-> y.v, x.id, y.id LIMIT 9", 0, 1],
  ["SELECT x.v <-> y.v FROM a x JOIN a y ON x.v <-> y.v <= 1.2 AND x.id < y.id ORDER BY x.v <-> y.v LIMIT 9", 1],
  ["SELECT a.v <-> b.v $near ORDER BY a.v <-> b.v LIMIT 20", 1],
  ["SELECT x.id, y.name FROM p x JOIN p y ON x.at <-> y.at <= 1 AND x.id < y.id", 1],
  ["SELECT a.id, b.id, a.name, b.tag FROM a LEFT JOIN b ON a.v <-> b.v < 0.5", 1],
  ["SELECT a.id, b.id FROM a LEFT JOIN b ON a.v <-> b.v < 0.5 AND a.id + b.id < 900", 1],
  ["SELECT a.id, b.id FROM b LEFT JOIN a ON a.v <-> b.v < 0.5 AND b.tag > 100", 1],
  ["SELECT a.id, b.id FROM a RIGHT JOIN b ON a.v <-> b.v < 0.5 WHERE a.id IS NULL OR b.id < 99", 1],
  ["SELECT a.id, b.id FROM a LEFT JOIN b ON a.v <-> b.v < 6 AND a.id % 10 < 8", 1],
  ["SELECT a.id, a.name FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v < 0.05)", 0],
  ["SELECT a.id, a.name FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v < 0.5)", 0],
  ["SELECT a.id, a.name FROM a WHERE EXISTS (SELECT FROM p WHERE a.v <-> ARRAY[p.at[0], p.at[1]] < 0.5)", 0, 1],
  ["SELECT a.id, a.name FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v < 0.5 AND a.id % 20 = b.id % 20)", 1],
  ["SELECT a.id FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v < 3 AND a.id + 3000 > b.id * 1.5)", 1],
  ["SELECT count(*) FROM a WHERE EXISTS (SELECT FROM b WHERE a.v <-> b.v < 0.5)", 0],
  ["SELECT b.id, b.tag FROM b WHERE NOT EXISTS (SELECT FROM a WHERE a.v <-> b.v < 0.5)", 0],
  ["SELECT b.id, b.tag FROM b WHERE NOT EXISTS (SELECT FROM a WHERE a.v <-> b.v < 0.5 AND a.id + b.id < 900)", 1],
  ["SELECT count(*) FROM b WHERE NOT EXISTS (SELECT FROM a WHERE a.v <-> b.v < -1)", 0, 1],
  ["SELECT x.id FROM a x WHERE NOT EXISTS (SELECT FROM a y WHERE x.v <-> y.v < 1.1 AND x.id <> y.id)", 0],
  ["SELECT x.id FROM a x WHERE NOT EXISTS (SELECT FROM a y WHERE x.v <-> y.v < 1.1 AND x.code <> y.code)", 1],
  ["SELECT x.id FROM a x WHERE NOT EXISTS (SELECT FROM a y WHERE x.v <-> y.v < 1.1 AND y.id < x.id)", 1],
  ["SELECT x.id FROM a x WHERE EXISTS (SELECT FROM a y WHERE x.v <-> y.v < 1.1 AND y.id > x.id)", 0, 1],
  ["SELECT p.id, q.id FROM p LEFT JOIN p q ON p.at <-> q.at <= 1 AND p.id < q.id", 1],
  ["SELECT b.id, b.tag, s.id FROM b LEFT JOIN s ON b.v <-> s.v < 0.3", 1],
  ["SELECT a.id, e.id FROM a LEFT JOIN e ON a.v <-> e.v < 0.5", 0, 1],
  ["SELECT a.id FROM a WHERE NOT EXISTS (SELECT FROM e WHERE a.v <-> e.v < 0.5)", 0, 1],
  ["SELECT e.id FROM e WHERE NOT EXISTS (SELECT FROM a WHERE a.v <-> e.v < 0.5)", 0, 1],
  ["SELECT a.id, count(*) $near GROUP BY a.id", 0],
  ["SELECT a.id, a.name, count(*) $near AND a.id + b.id < 900 GROUP BY a.id", 1],
  ["SELECT x.id, count(*) FROM a x JOIN a y ON x.v <-> y.v <= 1 AND x.id <> y.id GROUP BY x.id HAVING count(*) > 2", 0],
  ["SELECT x.id, count(*) FROM a x JOIN a y ON x.v <-> y.v <= 1 AND x.code <> y.code GROUP BY x.id", 1],
  ["SELECT x.id, count(*) FROM a x JOIN a y ON x.v <-> y.v <= 1 AND x.id < y.id GROUP BY x.id", 0, 1],
  ["SELECT x.id, count(*) FROM a x JOIN a y ON x.v <-> y.v <= 1 AND x.id > y.id GROUP BY x.id", 1],
  ["SELECT a.id % 7, count(*), sum(a.code), min(length(a.name)), count(*) FILTER (WHERE a.near) $near GROUP BY 1", 0],
  ["SELECT b.tag::int % 5, count(*), avg(b.id) FROM b LEFT JOIN a ON a.v <-> b.v < 0.5 GROUP BY 1", 0],
  ["SELECT b.tag::int % 5, count(*), avg(b.id) FROM b LEFT JOIN e ON e.v <-> b.v < 0.5 GROUP BY 1", 0, 1],
  ["SELECT a.near, count(*), count(a.code) $near AND a.id + b.id < 900 GROUP BY 1", 1],
  ["SELECT a.near, count(b.tag), avg(a.v <-> b.v) $near GROUP BY 1", 0, 1],
  ["SELECT a.near, avg(a.v <-> b.v) $near GROUP BY 1", 0, 1],
  ["SELECT p.id % 3, count(*) FROM p JOIN p q ON p.at <-> q.at <= 1 GROUP BY 1", 1],
  ["SELECT s.id, n.id, n.name, n.d FROM s, LATERAL (SELECT a.id, a.name, a.v <-> s.v AS d FROM a ORDER BY a.v <-> s.v LIMIT 3) n ORDER BY 1, 2", 1],
  ["SELECT s.id, n.id FROM s, LATERAL (SELECT b.id FROM b ORDER BY b.v <-> s.v LIMIT 4) n ORDER BY 1, 2", 1],
  ["SELECT s.id, n.id FROM s LEFT JOIN LATERAL (SELECT a.id FROM a WHERE a.v <-> s.v < 0.5 ORDER BY a.v <-> s.v LIMIT 3) n ON true ORDER BY 1, 2", 1],
  ["SELECT s.id, n.id, length(n.wide) FROM s, LATERAL (SELECT * FROM a WHERE a.id % 50 = s.id % 50 ORDER BY a.v <-> s.v LIMIT 4) n ORDER BY 1, 2", 1],
  ["SELECT s.id, n.id FROM s, LATERAL (SELECT a.id FROM a WHERE a.id < s.id ORDER BY a.v <-> s.v LIMIT 4) n ORDER BY 1, 2", undef],
  ["SELECT b.id, n.id FROM b, LATERAL (SELECT a.id, a.wide FROM a ORDER BY a.v <-> b.v LIMIT 3) n WHERE length(n.wide) > 8 ORDER BY 1, 2", 0, 1],
  ["SELECT b.id, n.id FROM b, LATERAL (SELECT a.id, a.wide FROM a ORDER BY a.v <-> b.v LIMIT 3) n WHERE b.id % 1 = 0 ORDER BY 1, 2", 1],
  ["SELECT x.id, n.id FROM p x, LATERAL (SELECT p.id FROM p ORDER BY p.at <-> point(x.at[0] + 0.3, 2) LIMIT 5) n WHERE x.id % 40 = 0 ORDER BY 1, 2", 1],
  ["SELECT b.id, n.id FROM b, LATERAL (SELECT a.id FROM a ORDER BY a.v <-> b.v LIMIT 2) n WHERE b.id % 10 = 0 ORDER BY 1, 2", 1],
  ["SELECT b.id, n.id FROM b, LATERAL (SELECT a.id FROM a WHERE a.id % 7 = 3 ORDER BY a.v <-> b.v LIMIT 2) n WHERE b.id % 130 = 0 ORDER BY 1, 2", undef, 1],
  ["SELECT b.id, n.id FROM b, LATERAL (SELECT a.id FROM a WHERE (a.id + b.id) % 7 = 3 ORDER BY a.v <-> b.v LIMIT 2) n WHERE b.id % 130 = 0 ORDER BY 1, 2", 1, 1],
  ["SELECT s.id, n.id FROM s, LATERAL (SELECT b.id FROM b ORDER BY b.v <-> s.v, b.id LIMIT 9500) n WHERE s.id < 3 ORDER BY 1, 2", undef, 1],
  ["SELECT s.id, n.id FROM s, LATERAL (SELECT b.id FROM b ORDER BY b.v <-> s.v LIMIT -1) n WHERE s.id < 0 ORDER BY 1, 2", 0, 1],
  ["SELECT r, n FROM generate_series(0, 2) r, LATERAL (SELECT count(b.tag) + count(a.name) AS n $near * r AND a.id % 3 = r) s", undef, 1]);
for my $case (@queries) {
  my ($query, $fetches, $reads) = @$case;
  $query = "SELECT * FROM ($query OFFSET 0) q ORDER BY q" unless $query =~ /ORDER BY|^SELECT count\(\*\) FROM/;
  my ($same, $fetched, $kept) = compare($query);
  ok($same && (!defined $fetches || $fetches == ($fetched > 0)) && $kept != ($reads // 0), $query)
    or diag("same: $same, fetched: $fetched, kept: $kept");
}

# A value that no engine takes raises the query's own error.
{
  my @errors = map {
    $session->value("SET gpujoin.service = $_");
    my $result = $session->query('SELECT a.id, c.id FROM a JOIN c ON a.v <-> c.v < 0.1');
    "$result->{state} $result->{message}"
  } 'on', 'off';
  is($errors[0], $errors[1], 'a vector of another length is the same error');
  like($errors[0], qr/^22/, 'of the data');
}

# Where there are many pairs, the tables are read after all.
{
  my ($same, $fetched) = compare("SELECT sum(hashtext(x.name || y.name)) FROM a x JOIN a y ON x.v <-> y.v <= 6");
  ok($same, 'many pairs have their values');
  cmp_ok($fetched, '<', 10000, 'which are not fetched one by one');
  $session->value("SET work_mem = '64kB'");
  ($same, $fetched) = compare("SELECT sum(hashtext(x.wide || y.name)) FROM a x JOIN a y ON x.v <-> y.v <= 3");
  ok($same, 'nor where they do not fit in work_mem');
  $session->value('RESET work_mem');
}

# Values are those of the snapshot, whoever changes them meanwhile.
{
  $session->value('SET gpujoin.service = on');
  my $other = Session->new($node);
  my $all = 'SELECT x.id, y.id, x.name FROM a x JOIN a y ON x.v <-> y.v <= 1 AND x.id < y.id';
  my $pairs = $session->value("SELECT count(*) FROM ($all OFFSET 0) q");
  $session->value("BEGIN; DECLARE k CURSOR FOR $all");
  my $rows = $session->value('FETCH 5 FROM k');
  $other->value("UPDATE a SET name = 'changed', v = ARRAY[-1, -1]; DELETE FROM a WHERE id < 9000");
  $other->value('VACUUM a');
  $session->value("UPDATE b SET tag = -1 WHERE id < 500; SAVEPOINT s; DELETE FROM b; ROLLBACK TO s");
  $rows .= "\n" . $session->value('FETCH ALL FROM k');
  is(scalar(() = $rows =~ /\|a\d+!?$/mg), $pairs, 'a cursor goes on with the rows of its snapshot');
  $session->value('COMMIT');
  $session->value('BEGIN');
  my $changed = $session->value('WITH u AS (UPDATE b SET tag = -2 WHERE id % 5 = 0 RETURNING id) SELECT count(*) FROM u');
  my ($same) = compare("SELECT count(*), sum(a.id * b.id::bigint), sum(b.tag) FROM a JOIN b ON a.v <-> b.v < 3 AND b.tag < a.code");
  ok($same && $changed > 0, "a transaction's own changes are seen");
  $session->value('ROLLBACK; SET gpujoin.service = on');
  my $update = "UPDATE b SET tag = a.code FROM a WHERE a.v <-> b.v < 0.5 RETURNING b.id, tag";
  my @results = map { $session->value("SET gpujoin.service = $_; BEGIN; WITH u AS ($update) SELECT count(*), sum(tag) FROM u; ROLLBACK") }
    'on', 'off';
  is($results[0], $results[1], 'UPDATE FROM changes the same rows');
  $other->quit;
}

# Without the service in the middle: before the first row the query goes the ordinary way, after it there is an error.
{
  $node->safe_psql('postgres', 'TRUNCATE a; INSERT INTO a (id, v, name) SELECT i, ARRAY[sin(i), cos(i * 7)], i FROM generate_series(1, 40000) i; ANALYZE a');
  my $many = 'SELECT x.id, y.name FROM a x JOIN a y ON x.v <-> y.v <= 0.4';
  $session->value("SET gpujoin.service = auto; SELECT * FROM ($many OFFSET 0) q LIMIT 1");
  $session->value("BEGIN; DECLARE k CURSOR FOR $many");
  $session->value('FETCH 5 FROM k');
  kill KILL => service_pids($node);
  my $result = $session->query('MOVE ALL FROM k');
  ok($result->{state} eq '58030' || $result->{state} eq '00000', 'after some rows the death of the service is an error, or was too late')
    or diag($result->{state});
  $session->value('ROLLBACK');
  is($session->value('SELECT count(*) FROM a x JOIN a y ON x.v <-> y.v <= 0 AND length(x.name) > 0'), 40000, 'the next query works');
}

$session->quit;
done_testing;
