"""What the parts of the benchmark share: text and tables, a private PostgreSQL cluster, queries that take turns."""
import contextlib
import functools
import importlib.util
import itertools
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from statistics import median

PAGE = 'docs/benchmarks.md'
BUILD = 'build/bench'
THREADS = len(os.sched_getaffinity(0))
WITHOUT_NODE = {'gpujoin.enable_customscan': 'off'}
WITHOUT_OTHERS = {f'enable_{kind}': 'off' for kind in ('nestloop', 'hashjoin', 'mergejoin')}


def output_of(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


@functools.cache
def program(name):
    """The path of a program of CMakeLists.txt, built where it is out of date; in a packed folder (test/device/pack) it is there."""
    if os.path.exists('revision'):
        return f'./{name}'
    say(f'Building {name}')
    output_of('cmake', '-S', '.', '-B', BUILD, '-DCMAKE_BUILD_TYPE=Release')
    output_of('cmake', '--build', BUILD, '-j', str(THREADS), '--target', name)
    return f'{BUILD}/{name}'


def has_module(name):
    return importlib.util.find_spec(name) is not None


def say(text):
    print(text, file=sys.stderr, flush=True)


def table(header, rows):
    """Markdown; all columns but the first to the right."""
    lines = [header, ['---'] + ['---:'] * (len(header) - 1)] + rows
    return ''.join('| ' + ' | '.join(line) + ' |\n' for line in lines) + '\n'


def number(x, digits=3):
    """`digits` significant digits, thousands apart."""
    decimals = max(0, digits - len(str(int(abs(x)))) if abs(x) >= 1 else digits)
    return f'{x:,.{decimals}f}'


def ratio(x):
    return f'**{number(x, 2 if x < 10 else 3)}**'


# ---- The machine

def processor():
    with open('/proc/cpuinfo') as info:
        model = re.search(r'^model name\s*: (.*)$', info.read(), re.MULTILINE)
    return model[1] if model else platform.machine()


def revision():
    """Of the sources, without what measuring writes; of a packed folder (test/device/pack) the one that was packed."""
    if os.path.exists('revision'):
        with open('revision') as file:
            return file.read().strip()
    changed = "git diff --quiet HEAD -- . ':!docs' || echo -dirty"
    return output_of('sh', '-c', f'(git describe --always && {changed}) 2>/dev/null || echo unknown').replace('\n', '')


def measured_by(command, figures, *more):
    """Where, when and of what, in a sentence without its full stop."""
    memory_gib = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2 ** 30
    return (f'Measured by `{command}` on {time.strftime("%Y-%m-%d")}: '
            + '; '.join([f'{processor()}, {THREADS} processors, {memory_gib:.0f} GiB', *more, f'revision {revision()}', figures]))


def compiler():
    return 'g++ ' + output_of(os.environ.get('CXX', 'g++'), '-dumpfullversion').strip()


def load():
    """Of the last quarter of an hour."""
    return f'at a load of {os.getloadavg()[2]:.1f}'


# ---- PostgreSQL

def times_of(output):
    """The milliseconds that psql's \\timing printed."""
    return [float(ms) for ms in re.findall(r'^Time: ([0-9.]+) ms', output, re.MULTILINE)]


def psql_of(exports, **options):
    """psql(script, *arguments), which returns what the script prints, with these variables of the shell set. Options are
    subprocess's."""
    def psql(script, *arguments, stdin=subprocess.DEVNULL):
        with tempfile.NamedTemporaryFile('w', suffix='.sql') as file:
            file.write(script)
            file.flush()
            return output_of('bash', '-c', exports + 'exec psql "$@"', 'psql', '-XqAt', '-v',
                             'ON_ERROR_STOP=1', '-f', file.name, *arguments, stdin=stdin, **options)
    return psql


@contextlib.contextmanager
def cluster():
    """A private cluster, to which the environment leads meanwhile. Yields psql(script, *arguments), which returns what the script
    prints."""
    directory, outside = tempfile.mkdtemp(prefix='gpujoin-bench.'), dict(os.environ)
    try:
        say('Building gpujoin')
        output_of('make', '-s', '-j', str(THREADS), 'all')
        say('Starting a private PostgreSQL cluster')
        output_of('test/cluster', 'start', directory)
        exports = output_of('bash', '-c', output_of('test/cluster', 'env', directory) + 'env -0')
        os.environ.clear()
        os.environ.update(line.split('=', 1) for line in exports.split('\0') if line)
        os.environ['PGOPTIONS'] = '-c client_min_messages=warning'
        yield psql_of('')
    finally:
        os.environ.clear()
        os.environ.update(outside)
        output_of('test/cluster', 'stop', directory)


def has_postgis(psql):
    found = psql("SELECT count(*) FROM pg_available_extensions WHERE name = 'postgis'").strip() == '1'
    if not found:
        say('PostGIS is not installed: without it')
    return found


def versions(psql, postgis):
    postgresql = 'PostgreSQL ' + psql("SELECT current_setting('server_version')").strip()
    return postgresql + (', PostGIS ' + psql('SELECT postgis_lib_version()').strip() if postgis else '')


def uses_node(psql, sql, settings=''):
    """Whether the planner takes gpujoin's plan node for the query."""
    return 'GpuSimilarityJoin' in psql(f"LOAD 'gpujoin';\n{settings}EXPLAIN {sql};\n")


def assignments(settings):
    return ''.join(f'SET {key} = {value};\n' for key, value in settings.items())


def take_turns(psql, rounds, queries, before=''):
    """queries: {name: (SQL, settings)}; before each of them `before` is executed, which is not timed. Returns
    {name: [(result, ms, gpu_last_join() as dict), ...]}."""
    before = f'{before} \\g /dev/null\n' if before else ''
    script = ''
    for _ in range(rounds):
        for sql, settings in queries.values():
            script += "LOAD 'gpujoin';\n" + assignments(settings)
            script += f'{before}\\echo @turn\n\\timing on\n{sql};\n\\timing off\nRESET ALL;\n'
            script += 'SELECT to_json(j) FROM gpu_last_join() j;\n'
    turns = {name: [] for name in queries}
    for name, part in zip(itertools.cycle(queries), psql(script).split('@turn\n')[1:]):
        result, ms, last_join = re.split(r'^Time: ([0-9.]+) ms.*\n?', part, maxsplit=1, flags=re.MULTILINE)
        turns[name].append((result.strip(), float(ms), json.loads(last_join) if last_join.strip() else None))
    return turns


def median_ms(turns):
    return median(ms for _, ms, _ in turns)


def ratio_to(own_ms, turns):
    ms = median_ms(turns)
    return '' if ms == own_ms else ratio(ms / own_ms)


# ---- The page

def write_page(command, text):
    """Replaces what stands between the command's markers."""
    begin, end = f'<!-- {command} writes from here -->\n', '<!-- to here -->\n'
    with open(PAGE) as file:
        before, found, rest = file.read().partition(begin)
    if not found:
        sys.exit(f'{PAGE} has no place for what {command} writes: {begin}')
    after = rest.partition(end)[2]
    with open(PAGE, 'w') as file:
        file.write(before + begin + '\n' + text + end + after)
    say(f'Wrote {PAGE}')
