"""The keys part of make bench: equality, bands and intervals beside the distance, as keys of the index and asked of each pair."""
from common import cluster, median_ms, number, ratio, say, table, take_turns, versions
from spatial import by_node, the_result

MAKE = """
CREATE EXTENSION gpujoin;
SELECT setseed(0.5) \\g /dev/null
{tables}
VACUUM ANALYZE;
"""

TABLE = """CREATE TABLE {name} AS SELECT id, v, t, city, side, tsrange(t, t + stay) AS during FROM (
  SELECT i AS id, ARRAY[random() * 20000, random() * 20000] AS v, timestamp '2026-01-01' + random() * interval '1 day' AS t, (random() * 999)::int AS city,
    (random() * 1)::int AS side, random() * interval '10 min' AS stay FROM generate_series(1, {rows}) i) s;"""

CONDITIONS = {'within 5 minutes': "a.t BETWEEN b.t - interval '5 min' AND b.t + interval '5 min'",
              'of one of 1,000 groups': 'a.city = b.city', 'of one of two groups': 'a.side = b.side',
              'of overlapping stays': 'a.during && b.during'}
QUERIES = {'counted': 'SELECT count(*) FROM a JOIN b ON {}',
           'summed by group': 'SELECT md5(string_agg(s::text, \' \' ORDER BY s.side)) FROM (SELECT a.side, count(*), sum(b.id) FROM a JOIN b ON {} GROUP BY 1) s',
           '`EXISTS`, counted': 'SELECT count(*) FROM a WHERE EXISTS (SELECT FROM b WHERE {})'}


LONG_STAYS = (1, 100)
MAKE_LONG = 'CREATE TABLE b{0} AS SELECT id, v, CASE WHEN id <= {0} THEN tsrange(lower(during), NULL) ELSE during END AS during FROM b;'


def long_stays(psql, rounds):
    """The table of stays without an end among others, as Markdown."""
    query = 'SELECT count(*) FROM a JOIN {} b ON a.v <-> b.v <= 300 AND a.during && b.during'
    names = {'b': 'none'} | {f'b{few}': str(few) for few in LONG_STAYS}
    say('Keys: stays without an end')
    turns = take_turns(psql, rounds, {name: by_node(psql, query.format(name)) for name in names})
    return ('Overlapping stays within 300 m of each other, counted, where some of the second table have no end:\n\n' +
            table(['stays without an end', 'ms'], [[few, number(median_ms(turns[name]))] for name, few in names.items()]))


def tables(rounds, scale):
    """The tables, as Markdown."""
    rows, count = [], max(100000, round(1000000 * scale))
    with cluster() as psql:
        made = [TABLE.format(name=name, rows=count) for name in 'ab'] + [MAKE_LONG.format(few) for few in LONG_STAYS]
        psql(MAKE.format(tables='\n'.join(made)))
        for what, query in QUERIES.items():
            for name, condition in CONDITIONS.items():
                say(f'Keys: {what}, {name}')
                near = 'a.v <-> b.v <= 50 AND '
                turns = take_turns(psql, rounds, {'keys': by_node(psql, query.format(near + condition)),
                                                  'asked': by_node(psql, query.format(f'{near}({condition}) IS TRUE'))})
                the_result(turns)
                keys, asked = median_ms(turns['keys']), median_ms(turns['asked'])
                rows.append([f'{name}, {what}', number(keys), number(asked), ratio(asked / keys)])
        return (f'{versions(psql, False)}, as configured out of the box. {count:,} x {count:,} uniform positions in a square of 20 km over a day, for up to 10 minutes each, '
                'within 50 m of each other and one more condition. Asked of each pair: the same as `(condition) IS TRUE`, which is no key. '
                'Both read the tables in each query.\n\n' +
                table(['pairs', 'keys of the index, ms', 'asked of each pair, ms', 'ratio'], rows) + long_stays(psql, rounds))
