"""Random searches: rows of one table by their distance from a value, in the positions of a query where that can stand."""
import re

from query import Query
from tree import Items, Limit, Part


class Search(Query):
    """The value comes from a subquery, or from the row `o` of a query around the search."""

    def select(self):
        rng = self.rng
        self.kind = rng.choice(self.schema.kinds)
        self.around = rng.choice(self.schema.tables).name
        self.literals = {}
        forms = [self.within] * 3 + [self.counted] * 3 + [self.either, self.changed_by]
        if self.kind.distance:
            forms += [self.first] * 4 + [self.first_of_all] * 2 + [self.each_first] * 3 + [self.each_array, self.ranks, self.nearest_of_each]
        if self.wrapper in ('union', 'correlated', 'narrow', 'array', 'delete'):
            forms = [self.within]
        elif self.wrapper not in ('plain', 'prepared'):
            forms = [form for form in forms if form not in (self.first, self.changed_by)]
        return rng.choice(forms)()

    def statements(self, full=False, plan_mode=None):
        changes = self.text().startswith('UPDATE')
        return ['BEGIN', self.text(), 'ROLLBACK'] if changes else super().statements(full, plan_mode)

    def one_value(self):
        """A value of no row of the search."""
        rng, table = self.rng, self.rng.choice(self.schema.tables).name
        if self.kind.takes_literals and rng.random() < 0.4:
            return 'literal'
        return f"(SELECT {self.kind.operand('c')} FROM {table} c WHERE c.id = {rng.randint(1, 25)} LIMIT 1)"

    def with_literals(self, text):
        """The text with a number for each column of the row `literal`, degrees where it is one of degrees."""
        def literal(column):
            degrees = {'hx': ['10', '10.25', '180', '-179.5'], 'hy': ['50', '49.75', '-50', '89.9']}
            return self.literals.setdefault(column, self.rng.choice(degrees.get(column, ['0', '1', '2', '2.5', '-3', "'1.5'::float8", '7::real', '-1e9'])))
        return re.sub(r'\bliteral\.(\w+)', lambda match: literal(match[1]), text)

    def other_conditions(self):
        return [self.on_one('a') for _ in range(self.rng.choice([0, 0, 0, 1, 2]))]

    def near(self, value):
        """Conditions, with a radius."""
        return self.other_conditions() + [self.with_literals(self.kind.test(*self.rng.sample([self.kind.operand('a'), value], 2), self.radius()))]

    def where(self, value, bounded):
        return Items(self.near(value) if bounded else self.other_conditions(), ' AND ', ' WHERE ')

    def distance_from(self, value):
        distance = self.with_literals(self.kind.distance(self.kind.operand('a'), value))
        order, self.way = self.rng.choice([('{}', '')] * 8 + [('({}) * 2', ''), ('1 + ({})', ''), ('1 - ({})', ' DESC'), ('-({}) * 3', ' DESC NULLS LAST'),
                                                              ('{}', ' NULLS FIRST'), ('{}', ' DESC')])
        return order.format(distance)

    def table(self):
        return self.rng.choice(self.schema.tables).name

    def most(self):
        rng = self.rng
        return f' LIMIT {rng.choice([1, 1, 2, 5, 30])}' + rng.choice(['', '', '', f' OFFSET {rng.randint(0, 9)}'])

    # ---- Forms

    def within(self):
        columns = 'count(*) AS c0' if self.wrapper == 'correlated' else 'a.id AS c0'
        return Part(f'SELECT {columns} FROM {self.table()} a', self.where(self.one_value(), True))

    def first(self):
        self.mode, self.keys = 'keys', 1
        value = self.one_value()
        limit = self.limit() if self.rng.random() < 0.8 else Limit(f' FETCH FIRST {self.rng.randint(1, 9)} ROWS WITH TIES')
        return Part(f'SELECT {self.distance_from(value)} AS c0, a.id FROM {self.table()} a', self.where(value, self.rng.random() < 0.3),
                    ' ORDER BY c0' + self.way, limit)

    def first_of_all(self):
        """Further keys decide among equal distances."""
        value = self.one_value()
        return Part(f'SELECT a.id AS c0 FROM {self.table()} a', self.where(value, self.rng.random() < 0.3),
                    f' ORDER BY {self.distance_from(value)}{self.way}, a.id', self.most())

    def counted(self):
        o = self.kind.operand('o')
        return Part(f"SELECT o.id AS c0, (SELECT {self.rng.choice(['count(*)', 'max(a.id)', 'sum(a.grp)'])} FROM {self.table()} a", self.where(o, True),
                    f') AS c1 FROM {self.around} o')

    def either(self):
        o = self.kind.operand('o')
        return Part(f'SELECT o.id AS c0 FROM {self.around} o WHERE o.grp = 1 OR EXISTS (SELECT FROM {self.table()} a', self.where(o, True), ')')

    def changed_by(self):
        o = self.kind.operand('o')
        self.wrapper = 'plain'
        return Part(f'UPDATE {self.around} o SET grp = (SELECT count(*) FROM {self.table()} a', self.where(o, True), ') WHERE o.id < 20 RETURNING id, grp')

    def each_first(self):
        o = self.kind.operand('o')
        inner = Part(f'SELECT {self.distance_from(o)} AS d FROM {self.table()} a', self.where(o, self.rng.random() < 0.3), ' ORDER BY 1' + self.way + self.most())
        if self.rng.random() < 0.4:
            inner = Part('SELECT count(d) AS d FROM (', inner, ') f')
        return Part(f'SELECT o.id AS c0, s.d FROM {self.around} o LEFT JOIN LATERAL (', inner, ') s ON true')

    def each_array(self):
        o = self.kind.operand('o')
        return Part(f'SELECT o.id AS c0, ARRAY(SELECT {self.distance_from(o)} FROM {self.table()} a', self.where(o, self.rng.random() < 0.3), ' ORDER BY 1' + self.way,
                    self.most(), f') AS c1 FROM {self.around} o')

    def nearest_of_each(self):
        o = self.kind.operand('o')
        return Part(f'SELECT o.id AS c0, (SELECT a.id FROM {self.table()} a', self.where(o, False), f' ORDER BY {self.distance_from(o)}{self.way}, a.id',
                    f' LIMIT 1) AS c1 FROM {self.around} o')

    def ranks(self):
        distance = self.distance_from(self.one_value())
        return Part(f'SELECT rn AS c0, d FROM (SELECT rank() OVER (ORDER BY {distance}) AS rn, {distance} AS d FROM {self.table()} a',
                    Items(self.other_conditions(), ' AND ', ' WHERE '), f') s WHERE rn <= {self.rng.randint(1, 9)}')
