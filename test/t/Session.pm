# What the TAP tests share: a server of their own that has gpujoin, psql sessions that can be left waiting, and
# a look at a backend from outside, through /proc.
package Session;

use strict;
use warnings;

use Cwd ();
use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use Test::More;
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime sleep);

our @EXPORT = qw(now start_server serves settled wait_until least seconds_until threads open_files status_kb cpu_seconds server_pids
  service_pids shared_regions check_timeouts check_cancel check_footprint);

# What the tests allow for "about a second" on a machine that others use too.
our $PATIENCE = 3;

# How long they wait for what must happen, where nothing is claimed about when.
our $DEADLINE = 60;

# Seconds by a clock that nobody sets: a machine that was halted has its time of day corrected.
sub now() { return clock_gettime(CLOCK_MONOTONIC) }

# Starts a server with these lines in its postgresql.conf, gpujoin in the database postgres. What malloc keeps
# for later would hide what is lost, and where it ends: it gets one arena, and keeps little. Joins run in their
# sessions, which is what most tests look at, unless a line says otherwise.
sub start_server {
  my ($name, @settings) = @_;
  local @ENV{qw(MALLOC_ARENA_MAX MALLOC_MMAP_THRESHOLD_ MALLOC_TRIM_THRESHOLD_)} = (1, 65536, 65536);
  my $node = PostgreSQL::Test::Cluster->new($name);
  $node->init;
  $node->append_conf('postgresql.conf', join("\n", 'autovacuum = off', 'jit = off', 'gpujoin.service = off', @settings));
  $node->start;
  $node->safe_psql('postgres', 'CREATE EXTENSION gpujoin');
  return $node;
}

# Asks until the answer is true and returns it, or what it was after $seconds.
sub wait_until {
  my ($seconds, $question) = @_;
  my $deadline = now + $seconds;
  my $answer;
  sleep 0.005 until ($answer = $question->()) || now > $deadline;
  return $answer;
}

# What the question answers, once it has answered the same for half a second.
sub settled {
  my ($question) = @_;
  my ($answer, $since) = ($question->(), now);
  while (now - $since < 0.5) {
    sleep 0.02;
    my $next = $question->();
    ($answer, $since) = ($next, now) if $next != $answer;
  }
  return $answer;
}

# Whether the server takes queries, soon. A psql that it refuses at once may be gone before its query is written to it,
# which poll_query_until() does not survive.
sub serves {
  my ($node) = @_;
  return wait_until($DEADLINE, sub { eval { $node->safe_psql('postgres', 'SELECT true') } });
}

# The least of up to three measurements, which end when one is below $bound. What else the machine is doing makes a
# measurement larger, never smaller: one that is small enough shows what was claimed, three that are not refute it.
sub least {
  my ($bound, $measure) = @_;
  my $least;
  for (1 .. 3) {
    my $value = $measure->();
    $least = $value if !defined $least || $value < $least;
    last if $least < $bound;
  }
  return $least;
}

# The seconds until the answer is true, at most $DEADLINE.
sub seconds_until {
  my ($question) = @_;
  my $since = now;
  wait_until($DEADLINE, $question);
  return now - $since;
}

sub threads { return scalar(() = glob "/proc/$_[0]/task/*") }

sub open_files { return scalar(() = glob "/proc/$_[0]/fd/*") }

# A field of /proc/PID/status, such as VmHWM; 0 when there is none.
sub status_kb {
  my ($pid, $field) = @_;
  open my $status, '<', "/proc/$pid/status" or return 0;
  my ($kb) = map { /^\Q$field\E:\s+(\d+) kB/ ? $1 : () } <$status>;
  return $kb // 0;
}

# Processor time of all threads of a process so far.
sub cpu_seconds {
  my ($pid) = @_;
  open my $stat, '<', "/proc/$pid/stat" or return 0;
  my @fields = split ' ', <$stat> =~ s/.*\) //r;
  return ($fields[11] + $fields[12]) / 100;
}

# The processes of a server and its service: its data directory is where they work.
sub server_pids {
  my ($node) = @_;
  my $data = Cwd::realpath($node->data_dir);
  return grep { (readlink("/proc/$_/cwd") // '') eq $data } map { m{(\d+)} } glob '/proc/[0-9]*';
}

sub service_pids {
  my ($node) = @_;
  return grep { first_line("/proc/$_/comm") eq "gpujoin_service\n" } server_pids($node);
}

sub first_line {
  my ($file) = @_;
  open my $handle, '<', $file or return '';
  return <$handle> // '';
}

# Memory that sessions share with the service.
sub shared_regions {
  my ($node) = @_;
  return grep { (readlink // '') =~ /memfd:gpujoin/ } map { glob "/proc/$_/fd/*" } server_pids($node);
}

# Runs a query that would not end soon with each of these timeouts: it ends as it should, and in time.
sub check_timeouts {
  my ($session, $sql, $what, @milliseconds) = @_;
  my ($latest, %states) = (0);
  for my $milliseconds (@milliseconds) {
    my $late = least($PATIENCE, sub {
      my $result = $session->query("SET statement_timeout = '${milliseconds}ms'; $sql");
      $states{"$result->{state} $result->{message}"}++;
      1 until eval { $session->value('RESET statement_timeout'); 1 };    # which the timeout may end, too
      return $result->{seconds} - $milliseconds / 1000;
    });
    $latest = $late if $late > $latest;
  }
  is_deeply([ keys %states ], ['57014 canceling statement due to statement timeout'], "$what ends the query");
  cmp_ok($latest, '<', $PATIENCE, "$what is answered soon");
  return;
}

# Sends the query and, at some moment soon after, a cancel request: it ends as it should, and in time.
sub check_cancel {
  my ($session, $sql, $what, $moment) = @_;
  my $pid = $session->pid;
  my %states;
  my $late = least($PATIENCE, sub {
    $session->start($sql);
    $moment->();
    my $cancelled = now;
    $session->{node}->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
    $states{ $session->result->{state} }++;
    return now - $cancelled;
  });
  is_deeply([ keys %states ], ['57014'], "pg_cancel_backend $what cancels the query");
  cmp_ok($late, '<', $PATIENCE, "pg_cancel_backend $what is answered soon");
  return;
}

# What a session holds must not grow while $work runs, but for what it maps the first times: what is lost for good is
# lost again whenever it runs.
sub check_footprint {
  my ($session, $what, $warm_up, $work) = @_;
  my $pid = $session->pid;
  my $contexts = "SELECT count(*) FROM pg_backend_memory_contexts WHERE name ~ 'gpujoin'";
  $session->value($contexts);
  $session->value('SELECT count(*) FROM gpu_devices()');    # maps the device's engine, which stays
  $warm_up->();
  my $files = open_files($pid);
  my %growth;
  least(400, sub {
    my %before = map { $_ => status_kb($pid, $_) } qw(RssAnon VmSize);
    $work->();
    %growth = map { $_ => status_kb($pid, $_) - $before{$_} } keys %before;
    return $growth{RssAnon} > $growth{VmSize} ? $growth{RssAnon} : $growth{VmSize};
  });
  ok(wait_until($DEADLINE, sub { threads($pid) == 1 }), "$what leave no threads");
  is(open_files($pid), $files, "$what leave no open files");
  is($session->value($contexts), 0, "$what leave no memory contexts");
  cmp_ok($growth{RssAnon}, '<', 400, "$what leave no memory (kB)");
  cmp_ok($growth{VmSize}, '<', 400, "$what leave no address space (kB)");
  return;
}

# A psql of its own. One statement may be under way at a time: start() it, then take its result().
sub new {
  my ($class, $node, %options) = @_;
  my $self = bless { node => $node, in => '', out => '', err => '', started => 0 }, $class;
  my $connection = $node->connstr($options{database} // 'postgres');
  $connection .= " user=$options{user}" if defined $options{user};
  $self->{psql} = IPC::Run::start(
    [ $node->installed_command('psql'), '-XAtq', '-v', 'VERBOSITY=verbose', '-d', $connection, '-f', '-' ],
    '<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err});
  return $self;
}

# The process that serves the session. Asks for it once, when nothing is under way.
sub pid {
  my ($self) = @_;
  return $self->{pid} //= $self->value('SELECT pg_backend_pid()');
}

sub start {
  my ($self, $sql) = @_;
  my $mark = 'result ' . ++$self->{started} . ' ends here';
  $self->{mark} = qr/^$mark\n/m;
  $self->{since} = now;
  $self->{in} .= "$sql\n;\n\\echo $mark\n\\warn $mark\n";
  $self->{psql}->pump_nb while $self->{in} ne '';
  return;
}

# Waits for the end of what was started. Returns {rows, error, state, message, hint, seconds}; what does not apply
# is ''. The end of the connection ends it too; after three minutes the test dies.
sub result {
  my ($self) = @_;
  my ($rows, $error);
  until (defined $rows && defined $error) {
    $rows = $1 if !defined $rows && $self->{out} =~ s/\A(.*?)$self->{mark}//s;
    $error = $1 if !defined $error && $self->{err} =~ s/\A(.*?)$self->{mark}//s;
    last if defined $rows && defined $error;
    if (!$self->{psql}->pumpable) {
      $self->{psql}->finish;
      ($rows, $error) = ($self->{out}, $self->{err});
      last;
    }
    if (now > $self->{since} + 180) {
      diag("no result after three minutes: $self->{out}$self->{err}", $self->whereabouts);
      die 'no result';
    }
    $self->{psql}->pump_nb;
    sleep 0.002;
  }
  chomp $rows;
  my ($state, $message) = $error =~ /(?:ERROR|FATAL):  ([0-9A-Z]{5}): (.*)/;
  my ($hint) = $error =~ /^HINT:  (.*)/m;
  return {
    rows => $rows,
    error => $error,
    state => $state // '',
    message => $message // '',
    hint => $hint // '',
    seconds => now - $self->{since}
  };
}

# What the session's process is at, as the server and the system see it.
sub whereabouts {
  my ($self) = @_;
  my $pid = $self->{pid} // return '';
  my $activity = eval {
    $self->{node}->safe_psql('postgres',
      "SELECT concat_ws(' ', state, wait_event_type, wait_event, now() - query_start, query) FROM pg_stat_activity WHERE pid = $pid");
  } // $@;
  my @threads = map { first_line("$_/comm") =~ s/\n//r . ' in ' . first_line("$_/wchan") } glob "/proc/$pid/task/*";
  return join "\n", '', $activity, cpu_seconds($pid) . ' seconds of processor time', @threads, '';
}

sub query {
  my ($self, $sql) = @_;
  $self->start($sql);
  return $self->result;
}

# The rows of a query that must not fail.
sub value {
  my ($self, $sql) = @_;
  my $result = $self->query($sql);
  die "$sql: $result->{error}" if $result->{state} ne '';
  return $result->{rows};
}

sub quit {
  my ($self) = @_;
  return unless $self->{psql}->pumpable;
  $self->{in} .= "\\q\n";
  $self->{psql}->finish;
  return;
}

1;
