# Joins of real data whose answers are known, by brute force in double precision. GPUJOIN_DATA names the folder
# that holds the data.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IO::Uncompress::Gunzip qw(gunzip $GunzipError);
use IPC::Run;
use Session;
use Test::More;

my $folder = $ENV{GPUJOIN_DATA} // '';
plan skip_all => 'no folder of sample data (GPUJOIN_DATA)' if !-d $folder;

my $node = start_server('known_answers');

sub content {
  my ($file) = @_;
  gunzip("$folder/$file" => \my $content) or die "$file: $GunzipError";
  return $content;
}

# Makes a table of (id, columns) from lines of comma-separated values.
sub load {
  my ($table, $columns, $lines) = @_;
  $node->safe_psql('postgres', "CREATE TABLE $table (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, $columns)");
  my $names = join ', ', map { (split)[0] } split /, /, $columns;
  IPC::Run::run(
    [ $node->installed_command('psql'), '-Xq', '-d', $node->connstr('postgres'),
      '-c', "COPY $table ($names) FROM STDIN (FORMAT csv)" ],
    '<', \$lines)
    or die "could not load $table";
  $node->safe_psql('postgres', "ANALYZE $table");
  return;
}

sub check {
  my ($from, $answer, $claim) = @_;
  is($node->safe_psql('postgres', "SELECT count(*) FROM $from"), $answer, $claim);
  return;
}

SKIP: {
  my $file = 'ionosphere-100k.csv.gz';
  skip "no $file", 5 if !-e "$folder/$file";
  load('iono_columns', 'x float8, y float8', content($file));
  $node->safe_psql('postgres', <<'SQL');
CREATE TABLE iono AS SELECT id, ARRAY[x, y] AS v FROM iono_columns;
CREATE TABLE iono4 AS SELECT id, v::float4[] FROM iono;
CREATE VIEW iono_points AS SELECT id, point(x, y) FROM iono_columns;
SQL
  check("gpu_selfjoin('iono', 1, 'id')", 27982048, 'the ionosphere sample within 1 has 27,982,048 pairs');
  check("gpu_selfjoin('iono_columns', 1, vector_columns => '{x,y}')", 27982048, 'as two columns it has as many');
  check("gpu_selfjoin('iono_points', 1, 'id')", 27982048, 'as points it has as many');
  check("gpu_join('iono', 'iono_columns', 1, 'id', 'id', '{v}', '{x,y}')", 27982048,
    'joined with itself as another table it has as many');
  check("gpu_selfjoin_distance('iono', 1, 'id', pairs => 'unordered')", (27982048 - 100000) / 2,
    'one order of each pair is half of them');
}

SKIP: {
  my $file = 'us-zipcodes.csv.gz';
  skip "no $file", 1 if !-e "$folder/$file";
  my $lines = content($file) =~ s/\A.*\n//r;
  load('zip', 'zip_code text, latitude float8, longitude float8, city text, state text, county text', $lines);
  check("gpu_selfjoin('zip', 0.1, vector_columns => '{latitude,longitude}')", 949923,
    'ZIP codes within 0.1 have 949,923 pairs');
}

SKIP: {
  my $file = 'earthquakes-23k.csv.gz';
  skip "no $file", 1 if !-e "$folder/$file";
  my $lines = content($file) =~ s/\A.*\n//r;
  load('quakes', 'date text, latitude float8, longitude float8, magnitude float8', $lines);
  check("gpu_selfjoin('quakes', 1, vector_columns => '{latitude,longitude,magnitude}')", 1233844,
    'earthquakes within 1 have 1,233,844 pairs');
}

SKIP: {
  my $tables = $node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname IN ('zip', 'quakes')");
  skip 'no earthquakes or no ZIP codes', 7 if $tables != 2;
  # Plain SQL, which finds what is within 1 by an equality join of cells of that size.
  my $wanted = $node->safe_psql('postgres', <<'SQL');
WITH q AS (SELECT id, latitude, longitude, magnitude, floor(latitude) + dx AS cx, floor(longitude) + dy AS cy
           FROM quakes, generate_series(-1, 1) dx, generate_series(-1, 1) dy),
z AS (SELECT id, latitude, longitude, floor(latitude) AS cx, floor(longitude) AS cy FROM zip)
SELECT q.id, z.id, q.magnitude + 0.1 * z.latitude AS score FROM q JOIN z USING (cx, cy)
WHERE sqrt((q.latitude - z.latitude) * (q.latitude - z.latitude) + (q.longitude - z.longitude) * (q.longitude - z.longitude))
  <= 1
ORDER BY score DESC, 1, 2 LIMIT 10
SQL
  is(scalar(split /\n/, $wanted), 10, 'ten pairs of an earthquake and a ZIP code are the best by a sum of scores');
  foreach my $setting ("engine = 'auto'", "engine = 'cpu'", "topk_method = 'heap'", "topk_method = 'sort'") {
    is($node->safe_psql('postgres', <<"SQL"), $wanted, "they are found with gpujoin.$setting");
SET gpujoin.$setting;
SELECT * FROM gpu_topk_join('quakes', 'zip', 1, 10, left_vector_columns => '{latitude,longitude}',
  right_vector_columns => '{latitude,longitude}', left_score_column => 'magnitude', right_score_column => 'latitude',
  weights => '{1,0.1}')
SQL
  }
  my $joined = <<'SQL';
SELECT q.id, z.id, q.magnitude + 0.1 * z.latitude AS score
FROM quakes q JOIN zip z ON ARRAY[q.latitude, q.longitude] <-> ARRAY[z.latitude, z.longitude] <= 1
ORDER BY score DESC, 1, 2 LIMIT 10
SQL
  like($node->safe_psql('postgres', "EXPLAIN $joined"), qr/Join Method: Top-k Join/, 'a join in plain SQL is a top-k join');
  is($node->safe_psql('postgres', $joined), $wanted, 'and finds them');
}

SKIP: {
  my $file = 'mnist-t10k-images-idx3-ubyte.gz';
  skip "no $file", 1 if !-e "$folder/$file";
  my $pixels = substr content($file), 16;
  my $lines = join '', map { '"{' . join(',', unpack('C*', $_)) . "}\"\n" } unpack '(a784)*', $pixels;
  load('digits', 'v float4[]', $lines);
  check("gpu_selfjoin('digits', 1000)", 130330, 'handwritten digits within 1000 have 130,330 pairs');
}

$node->stop;
done_testing();
