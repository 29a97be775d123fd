"""Random queries over the tables of a schema: what is asked of a join, and how it is sent (WRAPPERS: alone, prepared, in a
cursor, below another query, ...)."""
from joins import Joins
from tree import Items, Limit, Part


class Query(Joins):
    """`mode` says how results compare: 'bag', 'keys' (the first `keys` columns in order; which of equal ones is open)
    or 'some' (LIMIT without ORDER BY)."""

    def __init__(self, rng, schema):
        self.rng, self.schema, self.numbers = rng, schema, schema.numbers
        self.mode, self.keys = 'bag', 0
        self.rough = False  # sums of floats, whose last digits are open
        self.guards = 0.12
        self.wrapper = rng.choice(WRAPPERS)
        self.outer = OUTER.get(self.wrapper)
        self.values = [self.literal_radius() for _ in range(2)]
        self.limits = [rng.choice([0, 1, 3, 10, 1000]) for _ in range(2)]
        self.plan_mode = rng.choice(['auto', 'force_generic_plan', 'force_custom_plan'])
        self.outer_table = rng.choice(schema.tables).name
        super().__init__(self.select())
        if self.wrapper == 'union':
            self.pieces += [' UNION ALL ', Part(self.select())]

    # ---- SELECT

    def select(self):
        rng = self.rng
        if self.wrapper == 'union':
            ask = rng.choice([self.count, self.one_column])
        elif self.wrapper == 'correlated':
            ask = rng.choice([self.count, self.count, self.total])
        elif self.wrapper in ('counted', 'narrow'):
            ask = rng.choice([self.by_groups] * 3 + [self.sums] * 3 + [self.by_key, self.distinct, self.ranked])
        elif self.wrapper in ('plain', 'prepared'):
            ask = rng.choice([self.rows] * 5 + [self.count] * 3 + [self.by_key] * 3 + [self.by_groups] + [self.sums] * 3 + [self.distinct] +
                             [self.window] + [self.ranked] * 3 + [self.best] * 5 + [self.some] + [self.clusters] * 4 * bool(self.geometry()))
        else:
            ask = rng.choice([self.rows] * 4 + [self.count] * 2 + [self.by_key] * 2 + [self.by_groups, self.distinct] +
                             [self.sums, self.sums, self.best, self.ranked] * (self.wrapper == 'lateral'))
        simple = ask in (self.count, self.by_key, self.best, self.sums, self.total, self.by_groups) and rng.random() < 0.5
        source, where, aliases = self.ranked_pair() if ask == self.ranked else self.pair() if simple else self.joined()
        return ask(source, Items(where, ' AND ', ' WHERE '), aliases)

    @staticmethod
    def named(columns):
        return Items([f'{column} AS c{number}' for number, column in enumerate(columns)])

    def columns(self, aliases):
        found = [f'{t}.id' for t in aliases]
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            found.append(self.rng.choice(aliases) + '.' + self.rng.choice(['grp', 's', 't', 'n', 'x']))
        if self.schema.wide and self.rng.random() < 0.7:
            found += [f'md5({t}.w)' for t in self.rng.choice([aliases, aliases[:1], aliases[-1:]])]
        return found

    def rows(self, source, where, aliases):
        columns = self.columns(aliases)
        distance = self.distance() if len(aliases) == 2 and self.rng.random() < 0.2 else None
        return Part('SELECT ', self.named(columns + ([distance] if distance else [])), ' FROM ', source, where)

    def one_column(self, source, where, aliases):
        return Part('SELECT ', self.rng.choice(aliases), '.id AS c0 FROM ', source, where)

    def count(self, source, where, aliases):
        what = self.rng.choice(['count(*)'] * 6 + [f'count({aliases[-1]}.id)', f'count({aliases[-1]}.s)',
                                                    f'count(DISTINCT {aliases[-1]}.id)'])
        return Part('SELECT ', what, ' AS c0 FROM ', source, where)

    def by_key(self, source, where, aliases):
        rng, t = self.rng, self.rng.choice(aliases)
        keys = [f'{t}.id'] + rng.choice([[], [], [f'{t}.grp'], [f'{t}.t', f'{t}.grp'], [f'{t}.id % 2'], ['1 + 0'], ['random()']])
        shown = [key for key in keys if key != 'random()' and key != '1 + 0']
        having = Items([rng.choice(['count(*) > 1', f'count(*) < 5 AND {t}.id > 3'])] if rng.random() < 0.2 else [], before=' HAVING ')
        return Part('SELECT ', self.named(shown + ['count(*)']), ' FROM ', source, where, Items(keys, before=' GROUP BY '), having)

    def by_groups(self, source, where, aliases):
        rng = self.rng
        keys = [self.moved(f'{rng.choice(aliases)}.{name}') for name in rng.sample(['grp', 't', 'id', 'm'], rng.choice([1, 2]))]
        aggregate = rng.choice([None, None, 'count(*)', f'min({aliases[0]}.id)', f'count(DISTINCT {aliases[-1]}.id)', f'sum({aliases[-1]}.id)',
                                f'bool_or({aliases[0]}.grp = 1)', f'array_agg({aliases[-1]}.id ORDER BY {aliases[-1]}.id)'])
        grouping = rng.choice([' GROUP BY ', ' GROUP BY ', ' GROUP BY ROLLUP (', ' GROUP BY CUBE ('])
        after = ')' if '(' in grouping else ''
        return Part('SELECT ', self.named(keys + [aggregate] * bool(aggregate)), ' FROM ', source, where, Items(keys, before=grouping, after=after))

    def sums(self, source, where, aliases):
        """Aggregates that the node may add up."""
        rng, self.rough = self.rng, True
        t = rng.choice(aliases)
        keys = rng.choice([[], [f'{t}.grp'], [f'{t}.id'], [f'{t}.grp', f'{t}.t'], [f'{t}.id % 3'], [f'{t}.s > 0'], [f'coalesce({t}.grp, 1)']])
        keys = [self.moved(key) for key in keys]
        found = [self.moved(self.aggregate(aliases)) for _ in range(rng.choice([1, 1, 2, 3]))]
        having = Items([f'count(*) > {rng.randint(0, 3)}'] if rng.random() < 0.15 else [], before=' HAVING ')
        return Part('SELECT ', self.named(keys + found), ' FROM ', source, where, Items(keys, before=' GROUP BY ' if keys else ''), having)

    def total(self, source, where, aliases):
        self.rough = True
        return Part('SELECT ', self.moved(self.aggregate(aliases)), ' AS c0 FROM ', source, where)

    def aggregate(self, aliases):
        rng, t = self.rng, self.rng.choice(aliases)
        if self.schema.zeros and rng.random() < 0.4:
            return f'sum({t}.s)'
        distance = self.distance() if len(aliases) == 2 else None
        whole = [f'{t}.id', f'{t}.grp', f'{t}.id::bigint * 4611686018427', f'{t}.grp::smallint', f'{t}.id * 100000000',
                 f'({t}.n)::numeric(12, 2)', f'{t}.m', f'10 / {t}.grp']
        # Numbers so large that sums in another order are others are NULL.
        s, x = f'nullif({t}.s, 1e200)', f'least(greatest({aliases[-1]}.x, -1e3), 1e3)'
        real = [s, x, f'({s})::real', f'nullif({aliases[0]}.s, 1e200) * {x}', f'{s} / {aliases[0]}.grp']
        real += [distance, f'exp(-({distance}))', f'{s} * ({distance})', f'1 - ({distance}) / 2', f'sqrt({distance})'] if distance else []
        kind = rng.random()
        if kind < 0.4:
            call = f"{rng.choice(['sum', 'avg', 'count'])}({rng.choice(whole)})"
        elif kind < 0.5:
            call = f"{rng.choice(['variance', 'stddev_pop'])}({t}.{rng.choice(['grp', 'id'])})"
        elif kind < 0.6:
            call = f"{rng.choice(['min', 'max'])}({rng.choice(whole[:5] + real[:2])})"
        elif kind < 0.7 and len(aliases) > 1:
            u = rng.choice(aliases)
            both = [f'{t}.id * {u}.id', f'{t}.grp - {u}.id', f'{t}.id * 100000000 + {u}.id * 10000000', f'{t}.id * ({u}.id::bigint * 1000000)',
                    f'{t}.id::smallint * {u}.grp::smallint', f'{t}.grp::smallint * ({u}.n)::numeric(8, 2)', f'{t}.id * (10 / {u}.grp)']
            call = f"{rng.choice(['sum', 'sum', 'avg', 'min', 'max', 'count'])}({rng.choice(both)})"
        elif kind < 0.75:
            call = rng.choice([f'bool_and({t}.grp > 0)', f'bool_or({t}.s > 1)', 'count(*)', f'count({t}.t)'])
        else:
            call = f"{rng.choice(['sum', 'avg', 'sum', 'stddev'])}({rng.choice(real)})"
        if rng.random() < 0.1:
            call = f'count(DISTINCT {t}.id)'
        if rng.random() < 0.25:
            call += f' FILTER (WHERE {rng.choice(aliases)}.{rng.choice(["grp > 1", "s > 0", "t IS NOT NULL", "id < 30"])})'
        if call.startswith(('min', 'max')):
            call += ' + 0'  # which of 0 and -0 is found is open
        return call

    def distinct(self, source, where, aliases):
        columns = [f'{self.rng.choice(aliases)}.{name}' for name in self.rng.sample(['id', 'grp', 't'], 2)]
        return Part('SELECT DISTINCT ', self.named(columns), ' FROM ', source, where)

    def window(self, source, where, aliases):
        return Part('SELECT ', self.named([f'{t}.id' for t in aliases] + [f'count(*) OVER (PARTITION BY {aliases[0]}.id)']),
                    ' FROM ', source, where)

    def geometry(self):
        return next((kind for kind in self.schema.kinds if type(kind).__name__ == 'Geometry'), None)

    def clusters(self, source, where, aliases):
        """PostGIS's clusters of the rows of one table, each row with the first row of its own: their numbers are open. The
        order of rows is not, for border points follow it."""
        rng, value = self.rng, self.geometry().operand('a')
        if rng.random() < 0.3:  # of shapes alone
            value = rng.choice([f'ST_Envelope(ST_Buffer({value}, {rng.choice(["0.5", "1", "3"])}))', f'ST_Collect({value}, ST_Translate({value}, 1, 0.5))',
                                f'ST_MakeLine(ST_Centroid({value}), ST_MakePoint(a.y, a.x))', f'ST_Difference(ST_Buffer({value}, 2, 2), ST_Buffer({value}, 1, 1))'])
        source, where = self.relation('a'), Items([self.on_one('a')] if rng.random() < 0.25 else [], before=' WHERE ')
        part = rng.choice(['a.grp', 'a.grp', 'a.t', 'a.id % 3', 'true', 'true'])
        eps = rng.choice([self.literal_radius()] * 3 + [self.outer[0] if self.outer else "'1'", 'a.s', 'a.grp * 0.5'])
        points = rng.choice(['0', '1', '2', '2', '3', '5', '9', 'NULL', '-1', 'a.grp'])
        more = rng.choice(['', '', ', lag(a.id) OVER w AS l', f', ST_ClusterDBSCAN({value}, 1, 2) OVER (ORDER BY a.id) IS NULL AS l'])
        return Part('SELECT id AS c0, CASE WHEN c IS NOT NULL THEN min(rn) OVER (PARTITION BY p, c) END AS c1 FROM (SELECT a.id, ', part,
                    f' AS p, row_number() OVER w AS rn, ST_ClusterDBSCAN({value}, {eps}::float8, {points}) OVER w AS c', Part(more, simpler=[['']]), ' FROM ', source, where,
                    f' WINDOW w AS (PARTITION BY {part} ORDER BY a.id, a.s, a.x, a.y, a.g::text)) s')

    def ranked(self, source, where, aliases):
        """The first rows of each row of a by their distance."""
        rng, distance = self.rng, self.distance() or 'a.s'
        key = rng.choice(['a.id'] * 6 + ['a.id, a.grp', 'a.grp', 'a.id, b.grp'])
        order = f'{distance}, b.id, b.grp, b.s, b.t'
        if distance == 'a.s':  # 0 equals -0, which is shown otherwise
            order += ', a.s::text'
        if key == 'a.grp':  # rows of a group may be equally far from one
            order += ', a.id, a.s, a.t'
        if rng.random() < 0.3:
            return Part(f'SELECT DISTINCT ON ({key}) ', self.named(['a.id', 'b.id', distance]), ' FROM ', source, where, f' ORDER BY {key}, {order}')
        rank = rng.choice(['row_number()'] * 6 + ['rank()', 'count(*)'])
        limit = rng.choice([f'rn <= {k}' for k in (1, 1, 2, 5, 30, 1000)] + ['rn < 3', '4 > rn', 'rn = 1', 'rn BETWEEN 2 AND 4', 'rn <= 2::smallint', 'rn <= $2'])
        return Part('SELECT * FROM (SELECT ', self.named(['a.id', 'b.id', distance]), f', {rank} OVER (PARTITION BY {key} ORDER BY {order}) AS rn FROM ',
                    source, where, f') s WHERE {limit}')

    def limit(self):
        if self.wrapper == 'prepared':
            return Limit(' LIMIT $2')
        offset = f' OFFSET {self.rng.randint(0, 5)}' if self.rng.random() < 0.25 and self.wrapper != 'lateral' else ''
        return Limit(f' LIMIT {self.limits[0]}', Part(offset, simpler=[['']]))

    def best(self, source, where, aliases):
        self.mode, self.keys = 'keys', 2 if self.wrapper == 'lateral' else 1
        score = self.moved(self.score()) if len(aliases) == 2 else 'a.s'
        order = self.rng.choice(['c0', 'c0', 'c0 DESC', 'c0 DESC NULLS LAST', 'c0 NULLS FIRST'])
        more = [f', {t}.id' for t in aliases] if self.rng.random() < 0.4 else []
        return Part('SELECT ', Items([f'{score} AS c0'] + [f'{t}.id' for t in aliases]), ' FROM ', source, where,
                    f' ORDER BY {order}', Items(more, ''), self.limit())

    def some(self, source, where, aliases):
        self.mode = 'some'
        return Part('SELECT ', self.named(self.columns(aliases)), ' FROM ', source, where, self.limit())

    def distance(self):
        if not self.last or not self.last[0].distance:
            return None
        kind, a, b = self.last
        return kind.distance(a, b)

    def score(self):
        rng, distance = self.rng, self.distance()
        return rng.choice([distance or 'a.x + b.x'] * 6 + [
            'a.s + b.s', 'a.s + b.s', 'a.s - b.s', 'a.s * b.s', 'least(a.s, b.s)', 'greatest(b.s, a.s)', 'a.n + b.n', 'b.s - a.n::float8',
            'a.n::float8 + b.grp', 'a.m + b.m', 'b.m * 2 - a.n', 'a.s * a.s + b.grp', 'a.s / 2 + b.s * 3', 'a.id + b.id', 'a.x + b.y', 'coalesce(a.s, 0) + b.s',
            'a.grp * b.n', 'CASE WHEN a.grp = 1 THEN a.s ELSE 1 END + b.s', '-a.s + b.s', 'a.n * 1e200 + b.n', 'a.s::real + b.s'])

    # ---- Statements

    def reductions(self):
        if self.wrapper != 'plain':
            def make_plain():
                before = self.wrapper
                self.wrapper = 'plain'
                return lambda: setattr(self, 'wrapper', before)
            yield make_plain

    def sql(self, full=False):
        return ';\n'.join(self.statements(full)) + ';\n'

    def text(self, full=False):
        text = super().sql(full)
        return text if self.wrapper == 'prepared' else self.with_values(text)

    def with_values(self, text, call=0):
        return text.replace('$1', f'{self.values[call]}::float8').replace('$2', str(self.limits[call]))

    def joins_of_two(self):
        """Lists of statements with the joins that may come first in a join of three, which the DELETE adds to, and with all
        pairs of those that end at the first one; for each call of a prepared one, whose plan must know no value either."""
        joins = [f'SELECT count(*) AS c0 FROM {join.sql()}' for join in self.whole_joins]
        if self.wrapper == 'prepared':
            return [['SET plan_cache_mode = force_generic_plan', f'PREPARE j(float8, int) AS {join}', f'EXECUTE j({value}, {limit})']
                    for join in joins for value, limit in zip(self.values, self.limits)]
        calls = [self.with_values(join, call) for join in joins for call in range(len(self.values))]
        return [[self.wrapped(join)] for join in calls + [self.text()] * (self.wrapper == 'delete')]

    def outer_values(self):
        return self.values + ["'1'"]

    def statements(self, full=False, plan_mode=None):
        """Those that run; the rows of each that returns any are compared. With `full` nothing ends the query early; with
        `plan_mode` a prepared one has other plans."""
        text, wrapper = self.text(full), 'plain' if full and self.wrapper == 'exists' else self.wrapper
        if wrapper == 'prepared':
            calls = [f'EXECUTE q({value}, {limit})' for value, limit in zip(self.values, self.limits)]
            plan_mode = plan_mode or self.plan_mode
            if plan_mode == 'auto':
                calls = [calls[0]] * 5 + calls
            return [f'SET plan_cache_mode = {plan_mode}', f'PREPARE q(float8, int) AS {text}'] + calls
        if wrapper == 'cursor':
            return ['BEGIN', f'DECLARE c SCROLL CURSOR FOR {text}', 'FETCH ALL FROM c', 'MOVE ABSOLUTE 0 FROM c', 'FETCH ALL FROM c',
                    'COMMIT']
        if wrapper == 'table':
            return [f'CREATE TEMP TABLE result AS {text}', 'TABLE result']
        if wrapper == 'insert':
            return [f'CREATE TEMP TABLE result AS {text} WITH NO DATA', f'INSERT INTO result {text}', 'TABLE result']
        if wrapper == 'serializable':
            return ['BEGIN ISOLATION LEVEL SERIALIZABLE', text, 'COMMIT']
        if wrapper == 'delete':
            return ['BEGIN', f'WITH r AS ({text}), d AS (DELETE FROM {self.outer_table} WHERE id IN (SELECT c0 FROM r) RETURNING id) '
                    f'SELECT count(*) FROM d', f'SELECT count(*) FROM {self.outer_table}', 'ROLLBACK']
        return [self.wrapped(text, wrapper)]

    def wrapped(self, text, wrapper=None):
        values = ', '.join(f'({value}::float8)' for value in self.outer_values())
        return WRAPPED.get(wrapper or self.wrapper, '{}').format(text, table=self.outer_table, values=values)

    def explained(self):
        """Statements of which the last one explains the plan."""
        text = self.text()
        if self.wrapper == 'prepared':
            return self.statements()[:2] + [f'EXPLAIN EXECUTE q({self.values[0]}, {self.limits[0]})']
        wrapped = WRAPPED.get(self.wrapper, '{}').format(text, table=self.outer_table, values="('1'::float8)")
        return ['EXPLAIN (COSTS OFF) ' + wrapped]


WRAPPED = {
    'subquery': 'SELECT * FROM ({}) s', 'barrier': 'SELECT * FROM ({} OFFSET 0) s',
    'cte': 'WITH s AS ({}) SELECT * FROM s', 'materialized': 'WITH s AS MATERIALIZED ({}) SELECT x.* FROM s x, (SELECT 1) y',
    'exists': 'SELECT EXISTS ({})', 'twice': 'SELECT count(*) FROM ({0}) s UNION ALL SELECT count(*) FROM ({0}) s',
    'lateral': 'SELECT o.r, s.* FROM (VALUES {values}) o(r), LATERAL ({} OFFSET 0) s',
    'correlated': 'SELECT o.id, ({}) FROM {table} o WHERE o.id < 6',
    'gathered': 'SELECT o.id, ARRAY(SELECT s::text FROM ({}) s ORDER BY 1) FROM {table} o WHERE o.id < 6',
    'counted': 'SELECT count(*) FROM ({}) s', 'narrow': 'SELECT s.c0 FROM ({}) s',
    'array': 'SELECT cardinality(ARRAY(SELECT c0 FROM ({}) s))'}
WRAPPERS = (['plain'] * 24 + ['prepared'] * 7 + ['subquery', 'barrier', 'cte', 'materialized', 'exists', 'twice', 'array', 'table', 'insert',
                                                  'serializable', 'delete', 'union', 'union', 'union'] +
            ['lateral'] * 5 + ['correlated'] * 4 + ['gathered'] * 3 + ['counted', 'narrow'] + ['cursor'] * 2)
OUTER = {'lateral': ['o.r'], 'correlated': ['o.s', 'o.id / 2.0::float8'], 'gathered': ['o.s', 'o.id / 2.0::float8'], 'prepared': ['$1']}  # numbers from above
