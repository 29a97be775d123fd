"""The spatial part of make bench: top-k joins and joins of boxes, against plain SQL and PostGIS, and their methods
against each other. Whatever has to give the same rows is checked to do so."""
import os
import sys
from statistics import median

from common import (WITHOUT_NODE, cluster, has_postgis, median_ms, number, ratio, ratio_to, say, table, take_turns,
                    uses_node, versions)
from figures import compare

DATA = ['../shared/data/earthquakes-23k.csv.gz', '../shared/data/us-zipcodes.csv.gz']


def the_result(turns):
    """What all turns of all entrants found."""
    results = {result for entrant in turns.values() for result, _, _ in entrant}
    if len(results) != 1:
        sys.exit(f'test/bench/run: {", ".join(turns)} disagree: {", ".join(results)}')
    return results.pop()


def by_node(psql, sql):
    """The query, of which the table says that the node runs it."""
    if not uses_node(psql, sql):
        sys.exit(f'test/bench/run: not by the node: {sql}')
    return sql, {}


# ---- Top-k joins

PEERS = {'plain SQL, an equality join of cells of 1 degree': 'PostgreSQL', 'the same without the node, GiST': 'PostGIS'}


def topk_sql(quakes, zips, within, k):
    return (f'SELECT q.id, z.id, q.s + 0.1 * z.s AS score FROM {quakes} q JOIN {zips} z ON {within} '
            f'ORDER BY score DESC, 1, 2 LIMIT {k}')


def topk_function(quakes, eps, k):
    return f"SELECT * FROM gpu_topk_join('{quakes}', 'zips', {eps}, {k}, weights => '{{1,0.1}}')"


ONE_BY_ONE = 'sqrt((q.v[1] - z.v[1]) * (q.v[1] - z.v[1]) + (q.v[2] - z.v[2]) * (q.v[2] - z.v[2])) <= 1'


def topk_queries(psql, k, postgis):
    cells = 'floor(v[1]) AS cx, floor(v[2]) AS cy FROM'
    neighbors = ('(SELECT id, v, s, cx + dx AS cx, cy + dy AS cy FROM '
                 f'(SELECT *, {cells} quakes) c, generate_series(-1, 1) dx, generate_series(-1, 1) dy)')
    queries = {
        '`gpu_topk_join`': (topk_function('quakes', 1, k), {}),
        '`ON q.v <-> z.v <= 1`, by the node':
            by_node(psql, topk_sql('quakes', 'zips', 'q.v <-> z.v <= 1', k)),
        'plain SQL, an equality join of cells of 1 degree':
            (topk_sql(neighbors, f'(SELECT *, {cells} zips)', f'q.cx = z.cx AND q.cy = z.cy AND {ONE_BY_ONE}', k), WITHOUT_NODE)}
    if postgis:
        sql = topk_sql('quakes_point', 'zips_point', 'ST_DWithin(q.p, z.p, 1)', k)
        queries['PostGIS, `ON ST_DWithin(q.p, z.p, 1)`, by the node'] = by_node(psql, sql)
        queries['the same without the node, GiST'] = (sql, WITHOUT_NODE)
    return queries


def timed(psql, rounds, queries):
    """Turns of top-k queries, whose rows are compared outside of what is timed."""
    the_result(take_turns(psql, 1, {name: (f"SELECT md5(string_agg(t::text, ' ')) FROM ({sql}) t", settings)
                                    for name, (sql, settings) in queries.items()}))
    turns = take_turns(psql, rounds, {name: (f'SELECT count(*), min(score) FROM ({sql}) t', settings)
                                      for name, (sql, settings) in queries.items()})
    the_result(turns)
    return turns


def topk_table(psql, rounds, postgis):
    say('Top-k joins')
    few, many = (timed(psql, rounds, topk_queries(psql, k, postgis)) for k in (10, 1000))
    own = next(iter(few))
    rows = [[name, *(cell for turns in (few, many) for cell in
                     (number(median_ms(turns[name])), ratio_to(median_ms(turns[own]), turns[name])))] for name in few]
    pairs = int(psql("SELECT count(*) FROM gpu_join('quakes', 'zips', 1)"))
    for name, peer in PEERS.items():
        if name in few:
            compare('the 10 best pairs', peer, median_ms(few[own]), median_ms(few[name]))
    return (f'The best of {pairs:,} pairs of an earthquake and a ZIP code within 1 degree, by magnitude + 0.1 latitude, '
            '`ORDER BY score DESC, 1, 2 LIMIT k`. All return the same rows.\n\n' +
            table(['query', 'ms, k = 10', 'ratio', 'ms, k = 1,000', 'ratio'], rows))


def topk_method_table(psql, rounds):
    say('Methods of top-k joins')
    eps, methods = 20, ['threshold', 'heap', 'sort']
    rows = []
    for k in 16, 1024, 100000:
        turns = timed(psql, rounds, {
            method: (topk_function('quakes', eps, k), {'gpujoin.topk_method': method, 'gpujoin.engine': 'cpu'})
            for method in methods})
        rows.append([f'{k:,}'] + [number(median(ms - last['read_ms'] for _, ms, last in turns[method]))
                                  for method in methods])
    pairs = int(psql(f"SELECT count(*) FROM gpu_join('quakes', 'zips', {eps})"))
    return (f'`gpu_topk_join` by `gpujoin.topk_method` on the CPU engine, within {eps} degrees ({pairs:,} pairs), '
            'milliseconds without reading the tables.\n\n' + table(['k', *(f'`{method}`' for method in methods)], rows))


# ---- Joins of boxes

NAMES = {'quakes': 'earthquakes', 'zips': 'ZIP codes'}


def box_function(left, right):
    return f"SELECT count(*) FROM gpu_box_join('{left}', '{right}', left_id_column => 'id', right_id_column => 'id')"


def box_rows(psql, rounds, left, right, kinds):
    """A row of box_table for each kind of column. The exact ones among them have to agree."""
    exact, measured = {}, {}
    for kind in kinds:
        a, b = f'{left}_{kind}', f'{right}_{kind}'
        meet = f'SELECT count(*) FROM {a} a JOIN {b} b ON a.area && b.area'
        turns = measured[kind] = take_turns(
            psql, rounds, {'function': (box_function(a, b), {}), 'node': by_node(psql, meet), 'GiST': (meet, WITHOUT_NODE)})
        the_result({name: turns[name] for name in ('node', 'GiST')})
        exact[f'gpu_box_join of {kind}'] = turns['function']
    exact['&& of cube'] = measured['cube']['node']
    the_result(exact)
    for kind, turns in measured.items():
        ms = {name: median_ms(entrant) for name, entrant in turns.items()}
        compare(f'{NAMES[left]} x {NAMES[right]}, boxes', 'PostGIS' if kind == 'geometry' else kind, ms['function'], ms['GiST'])
        pairs = {name: f'{int(entrant[0][0]):,}' for name, entrant in turns.items()}
        yield [f'{NAMES[left]} x {NAMES[right]}, `{kind}`', pairs['function'], number(ms['function']), pairs['node'], number(ms['node']),
               number(ms['GiST']), ratio(ms['GiST'] / ms['function'])]


def box_table(psql, rounds, postgis):
    say('Joins of boxes')
    kinds = ['box', 'cube'] + ['geometry'] * postgis
    rows = [row for left in ('quakes', 'zips') for row in box_rows(psql, rounds, left, 'zips', kinds)]
    return ('`SELECT count(*)` of the boxes that meet: 1 degree wide and high around the earthquakes, 0.1 around the ZIP '
            'codes. `gpu_box_join`, which is exact, and each type\'s own `&&`, by the node and without it. `&&` of `cube` '
            'is exact too; that of `box` takes bounds within 0.000001 for equal, and that of `geometry` compares boxes '
            'rounded outwards to single precision, so they may find more.\n\n' +
            table(['boxes', 'pairs, `gpu_box_join`', 'ms', 'pairs, `&&`', 'by the node, ms', 'without it, GiST, ms',
                   'GiST to `gpu_box_join`'], rows))


def nested_loop_table(psql, rounds):
    say('Plain SQL')
    topk = timed(psql, rounds, {'gpujoin': (topk_function('few_quakes', 1, 10), {}),
                                'plain': (topk_sql('few_quakes', 'zips', ONE_BY_ONE, 10), WITHOUT_NODE)})
    meet = 'q.x0 <= z.x1 AND z.x0 <= q.x1 AND q.y0 <= z.y1 AND z.y0 <= q.y1'
    boxes = take_turns(psql, rounds, {
        'gpujoin': (box_function('few_quakes_box', 'zips_box'), {}),
        'plain': (f'SELECT count(*) FROM few_quakes_bounds q JOIN zips_bounds z ON {meet}', WITHOUT_NODE)})
    the_result(boxes)
    rows = [[name, number(median_ms(turns['gpujoin'])), number(median_ms(turns['plain'])),
             ratio_to(median_ms(turns['gpujoin']), turns['plain'])]
            for name, turns in (('the 10 best pairs within 1 degree', topk), ('boxes that meet, counted', boxes))]
    few = boxes['gpujoin'][0][2]['left_rows']
    return (f'Plain SQL that compares each row with each, so here are {few:,} of the earthquakes with all ZIP codes.\n\n' +
            table(['join', 'gpujoin, ms', 'plain SQL, ms', 'ratio'], rows))


def box_method_table(psql, rounds):
    rows = []
    for count in 100000, 1000000:
        for density in 0.1, 1, 10:
            say(f'Methods of joins of boxes, 100,000 x {count:,}, density {density}')
            psql('SET client_min_messages = warning;\nDROP TABLE IF EXISTS squares_left, squares_right;\n'
                 'SELECT setseed(0.5) \\g /dev/null\n'
                 f'CREATE TABLE squares_left AS SELECT * FROM squares(100000, {density});\n'
                 f'CREATE TABLE squares_right AS SELECT * FROM squares({count}, {density});\n')
            # Each with each takes long: of the smaller sets only.
            methods = ['auto', 'layered_grid', 'sort_sweep'] + ['none'] * (count == 100000)
            turns = take_turns(psql, rounds, {
                method: (box_function('squares_left', 'squares_right'),
                         {'gpujoin.box_method': method, 'gpujoin.engine': 'cpu'}) for method in methods})
            taken = turns['auto'][0][2]['box_method']
            times = {method: number(median(last['index_ms'] + last['join_ms'] for _, _, last in entrant))
                     for method, entrant in turns.items()}
            rows.append([f'100,000 x {count:,}', f'{density:g}', f'{int(the_result(turns)):,}',
                         f'{times["auto"]} (`{taken}`)', times['layered_grid'], times['sort_sweep'], times.get('none', '')])
    return ('`gpu_box_join` by `gpujoin.box_method` on the CPU engine, of it index and join, milliseconds: uniform squares '
            'in the unit square. Density is the sum of the areas of one side\'s squares; `none` is each with each.\n\n' +
            table(['boxes', 'density', 'pairs', '`auto`', '`layered_grid`', '`sort_sweep`', '`none`'], rows))


def tables(rounds):
    """The tables, as Markdown."""
    missing = [path for path in DATA if not os.path.exists(path)]
    if missing:
        say(f'{missing[0]} is not there: without earthquakes and ZIP codes')
    with cluster() as psql:
        postgis = has_postgis(psql)
        say('Loading tables')
        with open('test/bench/spatial.sql') as script:
            psql(script.read(), '-v', f'data={not missing}', '-v', f'postgis={postgis}')
        text = f'{versions(psql, postgis and not missing)}, as configured out of the box.\n\n'
        if not missing:
            text += (topk_table(psql, rounds, postgis) + topk_method_table(psql, rounds) +
                     box_table(psql, rounds, postgis) + nested_loop_table(psql, rounds))
        return text + box_method_table(psql, rounds)
