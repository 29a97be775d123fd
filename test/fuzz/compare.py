"""Runs a query with the node and without it, and says in what the two differ."""
import math
from collections import Counter
from decimal import Decimal, InvalidOperation

from pq import CONNECTION_LOST, HANGS
from tree import Part

TIMEOUT = '57014'
LIKE_NEW = 'ROLLBACK; RESET ROLE; RESET ALL; DEALLOCATE ALL; DISCARD PLANS; DROP TABLE IF EXISTS pg_temp.result'
# What tables are made in: with a function, for operands, that reads a table and raises an error for some rows.
NEW_SCHEMA = [
    'ROLLBACK', 'DISCARD ALL', 'SET statement_timeout = 0', 'DROP SCHEMA IF EXISTS fuzz CASCADE', 'CREATE SCHEMA fuzz', 'GRANT USAGE ON SCHEMA fuzz TO public',
    'CREATE TABLE fuzz.dividends AS SELECT 10 AS dividend', 'GRANT SELECT ON fuzz.dividends TO public',
    'CREATE FUNCTION fuzz.moved(v float8[], by float8) RETURNS float8[] LANGUAGE sql IMMUTABLE AS '
    "'SELECT array_agg(c + by ORDER BY n) FROM unnest(v) WITH ORDINALITY u(c, n)'",
    'CREATE FUNCTION fuzz.picky(v float8[], divisor int) RETURNS float8[] LANGUAGE plpgsql IMMUTABLE AS '
    "'BEGIN RETURN (SELECT CASE WHEN dividend / divisor >= 0 THEN v END FROM fuzz.dividends); END'"]
ABOUT_DATA = ('0A', '21', '22')  # classes of errors: NaN as an integer, cardinality, data
INTERNAL = 'XX000'  # PostGIS's for coordinates that no projection takes
DOMAIN = '23514'  # earthdistance's for coordinates that are no place
MIXED = 'mixed SRID geometries'
ABOUT_GEOMETRIES = (MIXED, 'transform: ', 'converted to GEOS')  # PostGIS has no code of its own for these
JOINS = {'nestloop': 'Nested Loop', 'hashjoin': 'Hash ', 'mergejoin': 'Merge '}
SLOW_TIMES, SLOW_SECONDS = 5, 1.0  # slower than PostgreSQL by so much, and longer than that
ORDINARY = tuple(f'enable_{way} = on' for way in ('nestloop', 'hashjoin', 'mergejoin', 'seqscan', 'material', 'sort', 'hashagg'))
INDEXED = ('enable_nestloop = on', 'enable_hashjoin = off', 'enable_mergejoin = off', 'enable_seqscan = off', 'enable_indexscan = on')
NO_INDEX = ('enable_indexscan = off', 'enable_bitmapscan = off', 'enable_indexonlyscan = off')

OTHER_PLANS = [ORDINARY, ORDINARY + ('join_collapse_limit = 1',), ORDINARY + NO_INDEX,
               ('enable_nestloop = on', 'enable_hashjoin = off', 'enable_mergejoin = off'), ('enable_nestloop = off',),
               ('enable_nestloop = on', 'enable_hashjoin = off', 'enable_mergejoin = off', 'enable_material = off', 'join_collapse_limit = 1')]


class Difference:
    """`kind` stays the same while a case is reduced."""

    def __init__(self, kind, detail):
        self.kind, self.detail = kind, detail


class Outcome:
    """The rows of each statement that returned some, or the first error; the seconds of all."""

    def __init__(self, results):
        self.rows = [result.rows for result in results if result.rows is not None]
        self.state, self.message = results[-1].state, results[-1].message
        self.seconds = sum(result.seconds for result in results)


class Case(Part):
    """Tables, settings and a query: what can be run again, and reduced."""

    def __init__(self, tables, settings, query):
        super().__init__(tables, settings, query)
        self.tables, self.settings, self.query = tables, settings, query

    def set_up(self, connection):
        """Makes the tables; the error that kept them from being made, or None."""
        for statements in (NEW_SCHEMA, self.tables.sql().split(';\n')):
            for statement in filter(None, statements):
                result = connection.run(statement)
                if result.state and not statement.startswith('CREATE INDEX'):  # some values overflow there
                    return f'{result.state} {result.message}: {statement}'
        return None


def run(connection, case, node, full=False, explain=False, more=(), statements=()):
    """Runs the query's statements, or others, in a session that is like new but for temporary tables; with `more`
    settings."""
    while connection.run(LIKE_NEW).state == TIMEOUT:
        pass
    connection.run(f"SET gpujoin.enable_customscan = {'on' if node else 'off'}")
    for setting in list(filter(None, case.settings.sql().split(';\n'))) + [f'SET {setting}' for setting in more]:
        connection.run(setting)
    results = []
    for statement in statements or (case.query.explained() if explain else case.query.statements(full)):
        results.append(connection.run(statement))
        if results[-1].state:
            break
    return Outcome(results)


def plan(connection, case):
    """The lines of the plan with the node."""
    outcome = run(connection, case, node=True, explain=True)
    return [] if outcome.state else [row[0] for rows in outcome.rows for row in rows]


def compare(connection, case, counts=None):
    """The Difference, or None. Counts what raises errors on both sides or without the node alone."""
    counts = Counter() if counts is None else counts
    without = run(connection, case, node=False)
    if without.state in (TIMEOUT, HANGS):
        counts['timeouts'] += 1
        return None
    found = run(connection, case, node=True)
    if found.state and not without.state:
        reason = excuse(connection, case, found)
        if reason:
            counts[reason] += 1
            return None
    if found.state == TIMEOUT and is_slow_by_settings(connection, case):
        counts['slow by its settings'] += 1
        return None
    difference = compare_errors(found, without, counts)
    if difference or found.state or without.state:
        return difference
    difference = compare_rows(connection, case, found, without)
    if difference and differs_by_index(connection, case, found, without):
        counts['PostgreSQL differs from itself'] += 1
        return None
    if difference is None and is_slow(found.seconds, without.seconds):
        if is_slow_by_settings(connection, case):
            counts['slow by its settings'] += 1
            return None
        difference = compare_times(connection, case)
    return difference


def excuse(connection, case, found):
    """Why an error about the data is PostgreSQL's as well as the node's: another way to the same rows raises one. Which of
    several rows is looked at first is open, and which of their errors. Joins compare geometries of two SRIDs only where no
    index keeps them apart; searches also where they scan the table."""
    state = found.state

    def raises(**how):
        other = run(connection, case, node=False, **how).state
        return other and (other == state or other[:2] in ABOUT_DATA)
    if state[:2] not in ABOUT_DATA and state not in (INTERNAL, DOMAIN):
        return None
    if MIXED in found.message:
        joins = [[], *case.query.joins_of_two()]
        if any(raises(full=True, more=INDEXED, statements=join) for join in joins):
            return 'mixed SRIDs that an index finds'
        searches = any('GpuSimilarityScan' in line for line in plan(connection, case))
        return 'mixed SRIDs that a scan finds' if searches and raises(more=ORDINARY + NO_INDEX) else None
    if raises(full=True):
        return 'errors that LIMIT or EXISTS escapes'
    plans = [{'more': more} for more in OTHER_PLANS]
    if case.query.wrapper == 'prepared':
        plans += [{'statements': case.query.statements(plan_mode=mode)} for mode in ('force_generic_plan', 'force_custom_plan')]
    if any(raises(**plan) for plan in plans):
        return 'errors that another plan raises'
    if any(raises(statements=join) for join in case.query.joins_of_two()):
        return 'errors that another order of joins raises'
    return None


def differs_by_index(connection, case, found, without):
    """Whether indexes alone make the difference: PostgreSQL's lose NaN, each one built at random others. Then what was
    found is right without them, or all there is to it is that plans with the node use one as well."""
    right = run(connection, case, False, more=NO_INDEX)

    def is_right(outcome):
        return not outcome.state and not right.state and compare_rows(connection, case, outcome, right, NO_INDEX) is None
    return is_right(found) or (not is_right(without) and is_right(run(connection, case, True, more=NO_INDEX)))


def compare_errors(found, without, counts):
    if found.state == CONNECTION_LOST:
        return Difference('crash', found.message)
    if found.state == TIMEOUT and (without.state or without.seconds > SLOW_SECONDS / SLOW_TIMES * 4):
        counts['timeouts'] += 1
        return None
    if found.state in (HANGS, TIMEOUT):
        return Difference('slow', f'{found.message}; without the node: {without.state or f"{without.seconds:.3f} s"}')
    if found.state and found.state == without.state:
        counts['errors'] += 1
        return None
    if found.state and without.state and (not found.state.startswith('XX') or any(words in found.message for words in ABOUT_GEOMETRIES)):
        counts['other errors'] += 1  # which of several is raised first is open
        return None
    if found.state:
        return Difference(f'error {found.state}', f'{found.message}; without the node: {without.state or "none"}')
    if without.state:
        counts['errors without the node'] += 1
    return None


def compare_rows(connection, case, found, without, more=()):
    query, whole = case.query, None
    if query.mode != 'bag':
        whole = run(connection, case, node=False, full=True, more=more)
    for number, (rows, expected) in enumerate(zip(found.rows, without.rows)):
        if query.mode == 'bag':
            if Counter(rows) != Counter(expected) and not (query.rough and are_close(rows, expected)):
                return Difference('rows', describe(rows, expected))
            continue
        if len(rows) != len(expected):
            return Difference('rows', f'{len(rows)} rows, {len(expected)} without the node')
        arranged = Counter if query.wrapper == 'lateral' else list  # whose values may come in any order
        if query.mode == 'keys' and arranged(keys(rows, query.keys)) != arranged(keys(expected, query.keys)):
            return Difference('order', describe(rows, expected))
        if not whole.state and Counter(rows) - Counter(whole.rows[number]):
            return Difference('rows', 'not in the whole result: ' + describe(rows, whole.rows[number]))
    return None


def are_close(rows, expected):
    """Whether the rows are the expected ones but for the last digits of numbers."""
    rest = list((Counter(expected) - Counter(rows)).elements())
    for row in (Counter(rows) - Counter(expected)).elements():
        found = next((other for other in rest if len(row) == len(other) and all(map(is_close, row, other))), None)
        if found is None:
            return False
        rest.remove(found)
    return not rest


def is_close(one, other):
    if one == other:
        return True
    try:
        if float(one) == float(other) == 0:  # a sum is -0 if all its numbers are, in any order
            return one.startswith('-') == other.startswith('-')
        return math.isclose(float(one), float(other), rel_tol=1e-4, abs_tol=1e-6)
    except (TypeError, ValueError):
        return False


def keys(rows, count):
    return [tuple(map(plain_number, row[:count])) for row in rows]


def plain_number(text):
    """Without the sign of zero and trailing zeros, which ORDER BY does not look at."""
    try:
        number = Decimal(text)
        return text if number.is_nan() or number.is_infinite() else number.normalize() + 0
    except (InvalidOperation, TypeError):
        return text


def describe(rows, expected):
    def some(counter):
        return ', '.join(f'{times} x {row}' for row, times in list(counter.items())[:3])
    more, fewer = Counter(rows) - Counter(expected), Counter(expected) - Counter(rows)
    return (f'{len(rows)} rows, {len(expected)} without the node' + (f'; only with it: {some(more)}' if more else '') +
            (f'; only without it: {some(fewer)}' if fewer else ''))


# ---- Times

def is_slow(seconds, without):
    return seconds > SLOW_SECONDS and seconds > SLOW_TIMES * without


def is_slow_by_settings(connection, case):
    """Whether nobody may expect speed: small batches, parallel workers for a few rows, no memory for the engine, or a plan
    with the node that was chosen because it has fewer joins of kinds that are disabled, whatever they cost."""
    settings = case.settings.sql()
    if any(name in settings for name in ('batch_pairs', 'parallel', "host_memory_limit = ")):
        return True
    return any(f'enable_{join} = off' in settings and name in line for line in plan(connection, case) for join, name in JOINS.items())


def compare_times(connection, case, times=3):
    """Measured again before it is called a difference: the best of some runs each, in turns."""
    best = {True: 1e9, False: 1e9}
    for _ in range(times):
        for node in best:
            outcome = run(connection, case, node)
            if not outcome.state:
                best[node] = min(best[node], outcome.seconds)
    if is_slow(best[True], best[False]):
        return Difference('slow', f'{best[True]:.3f} s, {best[False]:.3f} s without the node')
    return None
