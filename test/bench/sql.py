"""The sql part of make bench: whole queries over the sample in a private cluster, against what else PostgreSQL has."""
from statistics import median

from common import (THREADS, WITHOUT_NODE, WITHOUT_OTHERS, assignments, cluster, has_postgis, median_ms, number, ratio, ratio_to, say, table,
                    take_turns, uses_node, versions)
from figures import compare
from sample import load_sample

# Those of the contenders that the picture shows.
PEERS = {'cube, `<@ cube_enlarge` and `<->`, GiST': 'cube', 'point, `<@ circle`, GiST': 'point', 'PostGIS, `ST_DWithin`, GiST': 'PostGIS'}


def join_queries(eps, postgis):
    workers = {**WITHOUT_NODE, 'parallel_setup_cost': 0, 'parallel_tuple_cost': 0, 'min_parallel_table_scan_size': 0,
               'max_parallel_workers_per_gather': THREADS}
    select = 'SELECT count(*) FROM'
    queries = {
        'gpujoin': (f"{select} gpu_selfjoin('points', {eps})", {}),
        'gpujoin, `points a JOIN points b ON a.v <-> b.v <= eps`':
            (f'{select} points a JOIN points b ON a.v <-> b.v <= {eps}', {}),
        'cube, `<@ cube_enlarge` and `<->`, GiST':
            (f'{select} cubes a JOIN cubes b ON a.c <@ cube_enlarge(b.c, {eps}, 2) AND a.c <-> b.c <= {eps}', WITHOUT_NODE),
        'point, `<@ circle`, GiST':
            (f'{select} native_points a JOIN native_points b ON a.p <@ circle(b.p, {eps})', WITHOUT_NODE),
    }
    if postgis:
        sql = f'{select} geometries a JOIN geometries b ON ST_DWithin(a.g, b.g, {eps})'
        queries['PostGIS, `ST_DWithin`, GiST'] = (sql, WITHOUT_NODE)
        queries['the same text by gpujoin\'s plan node'] = (sql, {})
        queries['the same with parallel workers'] = (sql, workers)
    return queries


def join_tables(psql, rounds, postgis):
    text = ''
    for eps in 0.05, 1:
        say(f'count(*) of the self-join, eps {eps}')
        turns = take_turns(psql, rounds, join_queries(eps, postgis))
        own = turns.pop('gpujoin')
        pairs, own_ms = own[0][0], median_ms(own)
        join_ms = median(last['index_ms'] + last['join_ms'] for _, _, last in own)
        rows = [['gpujoin, whole query', f'{int(pairs):,}', number(own_ms), '', ''],
                ['gpujoin, of it index and join', '', number(join_ms), '', '']]
        for name, others in turns.items():
            ms = median_ms(others)
            if name in PEERS:
                compare(f'self-join, eps {eps}', PEERS[name], own_ms, ms)
            rows.append([name, f'{int(others[0][0]):,}', number(ms), ratio(ms / own_ms), ratio(ms / join_ms)])
        text += (f'`SELECT count(*)` of the self-join, eps {eps}.\n\n' +
                 table(['query', 'pairs', 'ms', 'to gpujoin\'s query', 'to its index and join'], rows))
    return text


def nested_loop_table(psql, rounds):
    say('Plain SQL')
    distance = 'sqrt((a.v[1] - b.v[1]) ^ 2 + (a.v[2] - b.v[2]) ^ 2)'
    turns = take_turns(psql, rounds, {
        'gpujoin': ("SELECT count(*) FROM gpu_selfjoin('few_points', 1)", {}),
        'plain SQL': (f'SELECT count(*) FROM few_points a JOIN few_points b ON {distance} <= 1', WITHOUT_NODE)})
    own_ms = median_ms(turns['gpujoin'])
    rows = [[name, f'{int(t[0][0]):,}', number(median_ms(t)), ratio_to(own_ms, t)] for name, t in turns.items()]
    few = turns['gpujoin'][0][2]['left_rows']
    compare(f'self-join of {few:,}', 'PostgreSQL', own_ms, median_ms(turns['plain SQL']))
    return (f'Plain SQL compares each point with each, so here are {few:,} of the points, eps 1. '
            'Its time grows with the square of their number.\n\n' +
            table(['query', 'pairs', 'ms', 'to gpujoin'], rows))


def row_rate_table(psql, rounds):
    say('Rows a second')
    selfjoin = "SELECT sum(id1) FROM gpu_selfjoin('points', 1)"
    count = int(psql("SELECT count(*) FROM gpu_selfjoin('points', 1)"))
    turns = take_turns(psql, rounds, {
        selfjoin: (selfjoin, {}),
        'SELECT sum(i) FROM generate_series(1, rows) i':
            (f'SELECT sum(i) FROM generate_series(1, {count}) i', {}),
        'SELECT sum(i) FROM (SELECT generate_series(1, rows) i) s':
            (f'SELECT sum(i) FROM (SELECT generate_series(1, {count}) i) s', {})})
    own_ms = median_ms(turns[selfjoin])
    rows = [[f'`{name}`', number(median_ms(t)), number(count / median_ms(t) / 1e3),
             ratio_to(own_ms, t)] for name, t in turns.items()]
    return (f'{count:,} rows through an aggregate.\n\n' +
            table(['query', 'ms', 'million rows a second', 'to gpujoin'], rows))


def node_table(psql, rounds, postgis):
    say('The plan node')
    join = 'points a JOIN points b ON a.v <-> b.v <= 1'
    distances = f'SELECT a.id, b.id, a.v <-> b.v AS d FROM {join} AND a.id < b.id ORDER BY d LIMIT 10'
    pairs = {
        '`SELECT max(id1), max(id2) FROM gpu_selfjoin(...)`': "SELECT max(id1), max(id2) FROM gpu_selfjoin('points', 1)",
        '`SELECT max(a.id), max(b.id)` of the join in plain SQL': f'SELECT max(a.id), max(b.id) FROM {join}'}
    turns = take_turns(psql, rounds, {name: (sql, {}) for name, sql in pairs.items()})
    own_ms = median_ms(turns[next(iter(pairs))])
    rows = [[name, number(median_ms(t)), ratio(median_ms(t) / own_ms)] for name, t in turns.items()]
    text = 'What the node adds to the function, for as many pairs.\n\n' + table(['query', 'ms', 'ratio'], rows)
    queries = {
        f'`SELECT count(*) FROM {join}`': f'SELECT count(*) FROM {join}',
        f'`SELECT a.id, count(*) FROM ... GROUP BY a.id`, all of them':
            f'SELECT count(*), sum(n) FROM (SELECT a.id, count(*) AS n FROM {join} GROUP BY a.id) s',
        '`SELECT a.id, b.id, a.v <-> b.v AS d FROM ... AND a.id < b.id ORDER BY d LIMIT 10`':
            f'SELECT count(*), max(d) FROM ({distances}) s',
        '`SELECT count(*) FROM points a WHERE EXISTS (... AND a.id <> b.id)`':
            'SELECT count(*) FROM points a WHERE EXISTS (SELECT FROM points b WHERE a.v <-> b.v <= 0.05 AND a.id <> b.id)'}
    ways = {name: (sql, {}) for name, sql in queries.items()}
    if postgis:
        ways['PostGIS without the node, `SELECT a.id, count(*) ... ST_DWithin ... GROUP BY a.id`, GiST'] = (
            'SELECT count(*), sum(n) FROM (SELECT a.id, count(*) AS n FROM geometries a JOIN geometries b '
            'ON ST_DWithin(a.g, b.g, 1) GROUP BY a.id) s', WITHOUT_NODE)
    turns = take_turns(psql, rounds, ways)
    rows = [[name, t[0][0].replace('|', ', '), number(median_ms(t))] for name, t in turns.items()]
    return text + 'Plain SQL by the node.\n\n' + table(['query', 'result', 'ms'], rows)


def choice_table(psql, rounds, postgis):
    """Whether the planner takes the faster of the plans with and without the node."""
    say('Choice of plans')
    cases = {
        '100,000 x 100,000': "points a JOIN points b ON a.v <-> b.v <= 0.05",
        '5,000 x 5,000': 'few_points a JOIN few_points b ON a.v <-> b.v <= 0.05',
        '10 x 10, found by key': 'points a JOIN points b ON a.v <-> b.v <= 1 WHERE a.id < 10 AND b.id < 10',
        '200 x 200, found by key': 'points a JOIN points b ON a.v <-> b.v <= 1 WHERE a.id < 200 AND b.id < 200',
        '1 x 100,000': 'points a JOIN points b ON a.v <-> b.v <= 0.05 WHERE a.id = 7',
        'LIMIT 1, dense': '(SELECT FROM points a JOIN points b ON a.v <-> b.v <= 10 LIMIT 1) s'}
    if postgis:
        geometries = 'geometries a JOIN geometries b ON ST_DWithin(a.g, b.g, 0.05)'
        cases.update({'PostGIS, 100,000 x 100,000, GiST': geometries,
                      'PostGIS, 5 x 100,000, GiST': f'{geometries} WHERE a.id <= 5',
                      'PostGIS, LIMIT 5, GiST': f'(SELECT FROM {geometries} LIMIT 5) s'})
    rows = []
    for name, source in cases.items():
        sql = f'SELECT count(*) FROM {source}'
        taken = uses_node(psql, sql)
        costs = assignments(WITHOUT_OTHERS)
        forced = uses_node(psql, sql, costs)
        ways = {'with': (sql, WITHOUT_OTHERS)} if forced else {}
        if name != '100,000 x 100,000':  # nobody waits for that
            ways['without'] = (sql, WITHOUT_NODE)
        turns = take_turns(psql, rounds, ways)
        node_ms = median_ms(turns['with']) if 'with' in turns else None
        plain_ms = median_ms(turns['without']) if 'without' in turns else None
        faster = plain_ms is None or (node_ms is not None and node_ms < plain_ms)
        rows.append([name, 'node' if taken else 'other', number(node_ms) if node_ms else '',
                     number(plain_ms) if plain_ms else 'minutes', 'yes' if faster == taken else '**no**'])
    return ('The planner\'s choice, and what both ways take: the node where the other joins are switched off, and the other '
            'plan with the node switched off.\n\n' +
            table(['join', 'chosen', 'node, ms', 'other plan, ms', 'the faster one'], rows))


def reading_table(psql, rounds):
    say('Reading a table')
    one_process = {'max_parallel_workers_per_gather': 0}
    scan, join = 'SELECT sum(v[1]) FROM many_points', "gpu_selfjoin('many_points', 0), of it reading"
    turns = take_turns(psql, rounds, {
        join: ("SELECT count(*) FROM gpu_selfjoin('many_points', 0)", {}), scan: (scan, one_process)})
    own_ms = median(last['read_ms'] for _, _, last in turns[join])
    rows = [[f'`{scan}`, one process', number(median_ms(turns[scan])), ratio(median_ms(turns[scan]) / own_ms)],
            [join, number(own_ms), '']]
    return ('A million points, read from shared buffers or the file cache.\n\n' +
            table(['query', 'ms', 'to gpujoin\'s reading'], rows))


def tables(rounds, scale):
    """The tables, as Markdown."""
    with cluster() as psql:
        postgis = has_postgis(psql)
        points = load_sample(psql, postgis, scale)
        return (f'{versions(psql, postgis)}, as configured out of the box; {points}.\n\n' +
                join_tables(psql, rounds, postgis) + nested_loop_table(psql, rounds) +
                row_rate_table(psql, rounds) + reading_table(psql, rounds) +
                node_table(psql, rounds, postgis) + choice_table(psql, rounds, postgis))
