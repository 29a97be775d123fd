"""Parts of make bench: whole queries as users type them (workloads.py) in a private cluster, against what else answers them. What takes
others too long they do for a sample of the left rows, and their time for all of them is extrapolated, and marked so."""
from common import WITHOUT_NODE, WITHOUT_OTHERS, cluster, has_postgis, median_ms, number, ratio, say, table, take_turns, versions
from figures import compare
from sample import load_sample
from workloads import (BITS, BITS_PLAIN, BITS_QUERIES, CATALOGUE_PLAIN, CATALOGUE_QUERIES, DEDUP, drop, load, load_bits, load_catalogues, load_texts,
                       pairs_of, random_of, scaled, sums_by_region, uniform)

HEADER = ['query', 'result', 'ms', 'to gpujoin']


def has_extension(psql, name):
    """Whether it is to be had; and makes it."""
    found = psql(f"SELECT count(*) FROM pg_available_extensions WHERE name = '{name}'").strip() == '1'
    if found:
        psql(f'CREATE EXTENSION {name};')
    else:
        say(f'{name} is not installed: without it')
    return found


def shown(result):
    return ', '.join(f'{int(value):,}' if value.isdigit() else value for value in result.split('|'))


def rows_of(case, turns, peers):
    """The rows of a table, of turns of which the first entrant is gpujoin's, and all have the same result. peers: {name: as the picture
    calls it}"""
    results = {turn[0] for others in turns.values() for turn in others if turn[0]}
    if len(results) > 1:
        raise SystemExit(f'test/bench/run: {case}: {", ".join(results)}')
    own_ms, rows = median_ms(next(iter(turns.values()))), []
    for name, others in turns.items():
        ms = median_ms(others)
        if name in peers:
            compare(case, peers[name], own_ms, ms)
        rows.append([name, shown(others[0][0]), number(ms), ratio(ms / own_ms) if rows else ''])
    return rows


def sampled_row(psql, rounds, case, name, peer, own_ms, sql, table_name, rows, sample):
    """The row of what joins a sample of a table's rows, which sql calls few. gpujoin has to find the same in the sample."""
    psql(f'DROP TABLE IF EXISTS few;\nCREATE TABLE few AS SELECT * FROM {table_name} WHERE id % {rows // sample} = 0;\nANALYZE few;')
    count = int(psql('SELECT count(*) FROM few'))
    say(f'{case}: {name}, {count:,} rows')
    turns = take_turns(psql, rounds, {'own': (sql, WITHOUT_OTHERS), 'other': (sql, WITHOUT_NODE)})
    results = {turn[0] for others in turns.values() for turn in others}
    if len(results) > 1:
        raise SystemExit(f'test/bench/run: {case}, sample: {", ".join(results)}')
    ms = median_ms(turns['other']) * rows / count
    compare(case, f'{peer}, extrapolated', own_ms, ms)
    return [f'{name}, extrapolated from {number(median_ms(turns["other"]))} ms for {count:,} of the {rows:,} left rows', '', number(ms),
            ratio(ms / own_ms)]


def configured(psql, postgis, *more):
    return ', '.join([versions(psql, postgis), *more, 'as configured out of the box'])


# ---- The parts: each returns tables, as Markdown

def sums(rounds, scale):
    eps, rows = 1, []
    with cluster() as psql:
        postgis = has_postgis(psql)
        points = load_sample(psql, postgis, scale)
        extra = "id % 100 AS region, abs(hashint4(id) % 1000)::float8 AS amount"
        psql(f'CREATE TABLE shops AS SELECT id, v, {extra} FROM points;\nVACUUM ANALYZE shops;' +
             (f'CREATE TABLE places AS SELECT id, g, {extra} FROM geometries;\nCREATE INDEX ON places USING gist (g);\nVACUUM ANALYZE places;'
              if postgis else ''))
        by_node = sums_by_region(eps)
        of_pairs = ('SELECT region, sum(amount), avg(d) AS avg FROM (SELECT a.region, b.amount, a.v <-> b.v AS d '
                    f'FROM shops a JOIN shops b ON a.v <-> b.v <= {eps} OFFSET 0) pairs GROUP BY region')
        queries = {'summed by the node': (by_node, {}), 'the node\'s pairs through an aggregate': (of_pairs, {})}
        if postgis:
            queries['PostGIS, `ST_DWithin`, `ST_Distance`, GiST'] = (
                'SELECT a.region, sum(b.amount), avg(ST_Distance(a.g, b.g)) FROM places a JOIN places b '
                f'ON ST_DWithin(a.g, b.g, {eps}) GROUP BY a.region', WITHOUT_NODE)
        say('Sums over neighbours')
        whole = 'SELECT count(*), sum(sum), round(sum(avg)::numeric, 6) FROM ({}) s'
        turns = take_turns(psql, rounds, {name: (whole.format(sql), settings) for name, (sql, settings) in queries.items()})
        pairs = turns['summed by the node'][0][2]['pairs']
        rows = rows_of('sums over neighbours', turns, {name: 'PostGIS' for name in queries if name.startswith('PostGIS')})
        return (f'{configured(psql, postgis)}; {points}. `{by_node}`: {pairs:,} pairs. The result: regions, the sum of their sums, and that of '
                'their mean distances. Below, `a.region, b.amount, a.v <-> b.v` of each pair in a subquery, and the same sums of it.\n\n' +
                table(HEADER, rows))


def pairs(rounds, scale):
    count, eps = scaled(1000000, scale), f'{0.002 / scale ** 0.5:.3g}'
    with cluster() as psql:
        psql('CREATE EXTENSION gpujoin')
        load(psql, 'places', 'v float4[]', count, uniform('places'))
        queries = {}
        for name, sql in pairs_of(eps).items():
            queries[f'`SELECT sum(id1), sum(id2)` of them, {name}'] = (f'SELECT sum(id1), sum(id2) FROM ({sql}) s', {})
            queries[f'`CREATE TABLE AS`, {name}'] = (f'CREATE TABLE found AS {sql}', {})
            queries[f'`INSERT ... SELECT`, {name}'] = (f'INSERT INTO kept {sql}', {})
        pairs = int(psql(f"SELECT count(*) FROM gpu_selfjoin('places', {eps})"))
        queries['`CREATE TABLE AS` of as many rows of `generate_series`'] = (
            f'CREATE TABLE found AS SELECT i AS id1, i AS id2 FROM (SELECT generate_series(1, {pairs}::bigint) AS i) s', {})
        say('Tables of pairs')
        turns = take_turns(psql, rounds, queries, 'DROP TABLE IF EXISTS found, kept;\nCREATE TABLE kept (id1 bigint, id2 bigint)')
        rows = [[name, number(median_ms(others)), number(pairs / median_ms(others) / 1e3)] for name, others in turns.items()]
        return (f'{configured(psql, False)}. The {pairs:,} pairs of {count:,} uniform points within {eps}, read only, and written to a new table.\n\n' +
                table(['statement', 'ms', 'million pairs a second'], rows))


def own_turns(psql, rounds, queries):
    return take_turns(psql, rounds, {f'gpujoin, {name}': (sql, {}) for name, sql in queries.items()})


def duplicates(rounds, scale):
    count, dims = scaled(20000, scale), 384
    with cluster() as psql:
        psql('CREATE EXTENSION gpujoin')
        load_texts(psql, count, dims)
        say('Duplicates')
        turns = own_turns(psql, rounds, {'`gpu_dedup`': DEDUP})
        case = f'duplicates of {count:,}, {dims}-D'
        rows = rows_of(case, turns, {})
        near = 'SELECT count(*) FROM few a JOIN texts b ON a.v <=> b.v <= 0.05'
        own_ms = median_ms(next(iter(turns.values())))
        rows.append(sampled_row(psql, rounds, case, 'PostgreSQL, a nested loop that only counts the pairs', 'PostgreSQL', own_ms, near, 'texts', count,
                                max(1, count // 1000)))
        return (f'{configured(psql, False)}. Duplicates of {count:,} vectors of {dims} dimensions, `float4[]`, within 0.05 by the cosine distance; '
                f'{count // 10:,} are planted.\n\n' + table(HEADER, rows))


def bits(rounds, scale):
    count = scaled(1000000, scale)
    with cluster() as psql:
        psql('CREATE EXTENSION gpujoin')
        load_bits(psql, count)
        say('Hashes')
        turns = own_turns(psql, rounds, BITS_QUERIES)
        case = f'{count:,} x {count:,} hashes'
        rows, few = rows_of(case, turns, {}), BITS_PLAIN.format('few', 'near_hashes')
        rows.append(sampled_row(psql, rounds, case, 'PostgreSQL, `bit_count` of each pair', 'PostgreSQL', median_ms(next(iter(turns.values()))),
                                few, 'hashes', count, 10))
        return (f'{configured(psql, False)}. {count:,} x {count:,} hashes of 64 bits, `bigint`, within {BITS} bits; {count // 10:,} pairs are '
                'planted.\n\n' + table(HEADER, rows))


def catalogue(rounds, scale, large):
    count = scaled(10000000 if large else 1000000, scale)
    with cluster() as psql:
        psql('CREATE EXTENSION gpujoin')
        q3c = has_extension(psql, 'q3c')
        load_catalogues(psql, count)
        say('Two catalogues')
        turns = own_turns(psql, rounds, CATALOGUE_QUERIES)
        case = f'{count:,} x {count:,} stars'
        rows, own_ms = rows_of(case, turns, {}), median_ms(next(iter(turns.values())))
        few = CATALOGUE_PLAIN.format('few')
        rows.append(sampled_row(psql, rounds, case, 'PostgreSQL, the distance of each pair', 'PostgreSQL', own_ms, few, 'stars', count, 10))
        if q3c:
            psql(''.join(f'CREATE TABLE {name}_sky AS SELECT id, degrees(atan2(v[2], v[1])) + CASE WHEN v[2] < 0 THEN 360 ELSE 0 END AS ra, '
                         f'degrees(asin(v[3])) AS dec FROM {name};\n' for name in ('stars', 'observed')) +
                 'CREATE INDEX ON observed_sky (q3c_ang2ipix(ra, dec));\nVACUUM ANALYZE stars_sky, observed_sky;')
            near = 'SELECT count(*) FROM few a JOIN observed_sky b ON q3c_join(a.ra, a.dec, b.ra, b.dec, 1 / 3600.0::float8)'
            rows.append(sampled_row(psql, rounds, case, 'q3c, `q3c_join`, index', 'q3c', own_ms, near, 'stars_sky', count, count // 20))
        return (f'{configured(psql, False, *["q3c " + psql("SELECT q3c_version()").split(",")[0].strip()] * q3c)}. {count:,} x {count:,} unit '
                'vectors, `float8[]`, within a second of arc by the cosine distance; nine of ten are some 0.3 seconds from one of the other '
                'table.\n\n' + table(HEADER, rows))


def geography(rounds, scale):
    """Uniform over 3 degrees of longitude and latitude, where a point has some ten neighbours within 500 m."""
    count, metres = scaled(1000000, scale), f'{500 / scale ** 0.5:.0f}'
    with cluster() as psql:
        if not has_postgis(psql):
            return 'PostGIS is not installed.\n\n'
        psql('CREATE EXTENSION gpujoin;\nCREATE EXTENSION postgis;')
        for name in 'shops', 'homes':
            load(psql, f'{name}_raw', 'v float8[]', count, lambda chunk, ids, name=name: [
                [10, 47] + 3 * random_of(name, chunk).random((len(ids), 2))], key=False)
            psql(f'CREATE TABLE {name} AS SELECT id, ST_SetSRID(ST_MakePoint(v[1], v[2]), 4326)::geography AS g FROM {name}_raw;\n'
                 f'CREATE INDEX ON {name} USING gist (g);\nVACUUM ANALYZE {name};')
            drop(psql, f'{name}_raw')
        say('Geography')
        near = f'SELECT count(*) FROM {{}} a JOIN homes b ON ST_DWithin(a.g, b.g, {metres})'
        turns = own_turns(psql, rounds, {'`ST_DWithin` by the node': near.format('shops')})
        case = f'{count:,} x {count:,} on the Earth'
        rows, few = rows_of(case, turns, {}), near.format('few')
        rows.append(sampled_row(psql, rounds, case, 'PostGIS, GiST', 'PostGIS', median_ms(next(iter(turns.values()))), few, 'shops', count,
                                min(count, 5000)))
        return (f'{configured(psql, True)}. {count:,} x {count:,} places, `geography`, uniform between 10 and 13 degrees east, 47 and 50 north, within '
                f'{metres} m.\n\n' + table(HEADER, rows))
