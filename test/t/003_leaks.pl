# Joins that do not reach their end, a few hundred times over: threads, files and memory are given back.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Session;
use Test::More;

my $node = start_server('leaks', 'gpujoin.cpu_threads = 2');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE dense (id int PRIMARY KEY, v float8[]);
INSERT INTO dense SELECT i, ARRAY[sin(i), cos(i * 7)] FROM generate_series(1, 10000) i;
CREATE TABLE wide (id int PRIMARY KEY, v float8[]);
INSERT INTO wide SELECT id, v || array_fill(id % 3 / 100.0::float8, '{8}') FROM dense;
CREATE TABLE mixed AS SELECT * FROM dense;
CREATE TABLE other AS SELECT * FROM dense;
INSERT INTO mixed VALUES (10001, '{1,2,3}');
CREATE TABLE scored AS SELECT id, v, id::float8 AS score FROM dense;
CREATE VIEW parts AS SELECT *, id % 40 AS part FROM dense;
CREATE VIEW misfit AS SELECT id, v, CASE id WHEN 9999 THEN 'NaN' ELSE score END AS score FROM scored;
CREATE VIEW boxes AS SELECT id, box(point(v[1], v[2]), point(v[1] + 1, v[2] + 1)) AS b FROM dense;
CREATE VIEW endless AS SELECT generate_series(1, 2000000000) AS id, 0.5::float8 AS x;
ANALYZE;
SQL

# What each does, and the SQLSTATE it ends with.
my %unfinished = (
  'cancelled while they count' => [ "SET statement_timeout = '9ms'; SELECT sum(id1) FROM gpu_selfjoin('dense', 9);
    RESET statement_timeout", '57014' ],
  'cancelled while they read' => [ "SET statement_timeout = '5ms';
    SELECT count(*) FROM gpu_selfjoin('endless', 1, 'id', '{x}'); RESET statement_timeout", '57014' ],
  'ended by LIMIT' => [ "SELECT * FROM gpu_selfjoin_distance('dense', 9) LIMIT 10", '' ],
  'ended by LIMIT in a select list' => [ "SELECT gpu_selfjoin('dense', 9) LIMIT 10", '' ],
  'of boxes ended by LIMIT' => [ "SELECT * FROM gpu_box_join('boxes', 'boxes', 0, 'id', 'id') LIMIT 10", '' ],
  'of boxes that are cancelled' => [ "SET statement_timeout = '30ms';
    SELECT sum(id1) FROM gpu_box_join('boxes', 'boxes', 9, 'id', 'id'); RESET statement_timeout", '57014' ],
  'of the best pairs that are cancelled' => [ "SET statement_timeout = '30ms'; SET gpujoin.topk_method = 'sort';
    SELECT * FROM gpu_topk_join('scored', 'scored', 9, 100000, 'id', 'id'); RESET ALL", '57014' ],
  'of the best pairs ended by LIMIT' => [ "SELECT * FROM gpu_topk_join('scored', 'scored', 9, 10000, 'id', 'id')
    LIMIT 10", '' ],
  'of the best pairs that fail in reading' => [ "SELECT * FROM gpu_topk_join('scored', 'misfit', 9, 10, 'id', 'id')",
    '22000' ],
  'that fail in a filter' => [ "SELECT * FROM gpu_selfjoin('dense', 9) WHERE 1 / (id2 - id1 - 40) > 2", '22012' ],
  'that fail in a select list' => [ "SELECT 1 / ((g).id1 - (g).id2) FROM (SELECT gpu_selfjoin('dense', 9) g
    OFFSET 0) s", '22012' ],
  'that fail in reading' => [ "SELECT * FROM gpu_selfjoin('mixed', 1, 'id')", '22000' ],
  'that fail in reading the second table' => [
    "SELECT * FROM gpu_join('dense', 'mixed', 1, right_id_column => 'id')", '22000' ],
  'that fail for want of memory to read' => [ "SET gpujoin.host_memory_limit = '100kB';
    SELECT * FROM gpu_dedup('dense', 0.1, partition_column => 'id'); RESET gpujoin.host_memory_limit", '53400' ],
  'of duplicates that fail for want of memory' => [ "SET gpujoin.host_memory_limit = '100kB';
    SELECT * FROM gpu_dedup('dense', 0.1); RESET gpujoin.host_memory_limit", '53400' ],
  'of duplicates in parts ended by LIMIT' => [ "SET gpujoin.host_memory_limit = '2MB';
    SELECT * FROM gpu_dedup('wide', 0.1) LIMIT 10; RESET gpujoin.host_memory_limit", '' ],
  'of a tree ended by LIMIT' => [ "SELECT * FROM gpu_spanning_tree('wide') LIMIT 10", '' ],
  'of a tree that is cancelled' => [ "SET statement_timeout = '20ms'; SELECT * FROM gpu_spanning_tree('wide', 500); RESET statement_timeout",
    '57014' ],
  'of a tree that fails for want of memory' => [ "SET gpujoin.host_memory_limit = '1MB';
    SELECT * FROM gpu_hdbscan('wide'); RESET gpujoin.host_memory_limit", '53400' ],
  'of clusters that fail for want of memory' => [ "SET gpujoin.host_memory_limit = '40kB';
    SELECT * FROM gpu_dbscan('dense', 0.1, 4); RESET gpujoin.host_memory_limit", '53400' ],
  'of clusters in parts ended by LIMIT' => [ "SET gpujoin.host_memory_limit = '300kB';
    SELECT * FROM gpu_dbscan('dense', 0.001, 4) LIMIT 10; RESET gpujoin.host_memory_limit", '' ],
  'of clusters whose file is full' => [ "SET gpujoin.host_memory_limit = '300kB'; SET temp_file_limit = '300kB';
    SELECT * FROM gpu_dbscan('dense', 0.001, 4); RESET gpujoin.host_memory_limit; RESET temp_file_limit", '53400' ],
  'of partitions ended by LIMIT' => [ "SELECT * FROM gpu_dbscan('parts', 0.1, 4, 'id', 'v', partition_column => 'part') LIMIT 10", '' ],
  'of partitions of a window' => [ "SELECT count(gpu_cluster_dbscan) FROM (SELECT gpu_cluster_dbscan(v, 0.1, 4) OVER (PARTITION BY part) FROM parts) s", '' ],
  'of a window that is cancelled' => [ "SET statement_timeout = '40ms';
    SELECT count(gpu_cluster_dbscan) FROM (SELECT gpu_cluster_dbscan(v, 0.6, 100000) OVER () FROM dense, generate_series(1, 8)) s; RESET statement_timeout", '57014' ],
  'of a window that fail for want of memory' => [ "SET gpujoin.host_memory_limit = '40kB';
    SELECT gpu_cluster_dbscan(v, 0.1, 4) OVER () FROM dense; RESET gpujoin.host_memory_limit", '53400' ],
  'of a window that fail in reading' => [ "SELECT gpu_cluster_dbscan(v, 0.1, 4) OVER () FROM mixed", '22000' ],
  'of pairs beyond their memory' => [ "SET gpujoin.host_memory_limit = '100kB';
    SELECT * FROM gpu_components(ARRAY(SELECT id FROM dense), ARRAY(SELECT id FROM dense)); RESET gpujoin.host_memory_limit", '53400' ],
  'that fail for want of memory to join' => [ "SET gpujoin.host_memory_limit = '300kB';
    SELECT * FROM gpu_selfjoin('dense', 0.5, metric => 'cosine'); RESET gpujoin.host_memory_limit", '53400' ],
  'caught by an exception handler' => [ "DO 'BEGIN PERFORM 1 / (id1 - id2) FROM gpu_selfjoin(''dense'', 9);
    EXCEPTION WHEN division_by_zero THEN END'", '' ],
  'of cursors that are rolled back' => [ "BEGIN; DECLARE c CURSOR FOR SELECT * FROM gpu_selfjoin('dense', 9);
    SAVEPOINT s; DECLARE d CURSOR FOR SELECT * FROM gpu_selfjoin('dense', 9); FETCH 1 FROM d;
    ROLLBACK TO s; FETCH 1 FROM c; ROLLBACK", '' ],
  'started over' => [ "SELECT count(*) FROM generate_series(1, 3) i,
    LATERAL (SELECT FROM gpu_selfjoin('dense', i) LIMIT 5) s", '' ],
  'started over on other tables' => [ "SELECT count(*) FROM unnest('{dense,other,dense,mixed}'::text[]) t,
    LATERAL (SELECT FROM gpu_join(t::regclass, 'dense', 9, 'id') LIMIT 5) s", '22000' ],
);
for my $which (sort keys %unfinished) {
  my $session = Session->new($node);
  my ($sql, $state) = @{ $unfinished{$which} };
  my $repeat = sub { return $session->query(join ";\n", ($sql) x $_[0]) };
  is($repeat->(1)->{state}, $state, "joins $which end as they should");
  check_footprint($session, "joins $which", sub { $repeat->(30) }, sub { $repeat->(200) });
  $session->quit;
}

$node->stop;
done_testing();
