"""Random numbers, and the kinds of values that joins compare: their columns, literals, operands, conditions and
distances. A kind that gpujoin learns gets an entry here."""
import math
import re
import struct

# How a number of the query above moves a column, by the column's name. Any other column is NULL by it.
MOVES = {column: move for columns, move in [
    ('id grp i wi ws wb bi bc n m q wn', '({} + ({} > 1)::int)'), ('x y z s r wr lo la ra de er', '({} + least({}, 3))'), ('f8', 'moved({}, least({}, 3))'),
    ('p bx', '({} + point({}, 0))'), ('g', 'ST_Translate({}, {}, 0)'), ('c', 'cube_enlarge({}, {}, 1)')] for column in columns.split()}
ANY_MOVE = 'CASE WHEN {1} > 1 THEN {0} END'
COLUMN = re.compile(r'\b(?:[abc]|t\d)[.](\w+)')

ODD = ['NaN', 'Infinity', '-Infinity', '-0', '5e-324', '1e-160', '1e200', '-1e308', '1e9', '3.4e38', '1e160', '16777217']


class Numbers:
    """Coordinates of one style, for a whole schema, so that values lie near each other."""

    def __init__(self, rng):
        self.rng = rng
        self.style = rng.choice(['grid'] * 3 + ['half', 'uniform', 'uniform', 'cluster', 'huge', 'tiny', 'same', 'far'])
        self.scale = {'huge': 2.0 ** 60, 'tiny': 2.0 ** -530}.get(self.style, 1.0)
        self.odd_share = rng.choice([0, 0, 0, 0.003, 0.02])
        self.centers = [rng.uniform(0, 50) for _ in range(4)]

    def number(self, odd=True):
        rng = self.rng
        if odd and rng.random() < self.odd_share:
            return float(rng.choice(ODD))
        if self.style in ('grid', 'huge', 'tiny'):
            return rng.randint(0, 7) * self.scale
        if self.style == 'half':
            return rng.randint(-9, 9) / 2
        if self.style == 'same':
            return rng.choice([1.0, 1.0, 1.0, math.nextafter(1.0, 2), 2.0])
        if self.style == 'far':
            return rng.choice([0.0, 1e6]) + rng.randint(0, 3)
        if self.style == 'cluster':
            return rng.choice(self.centers) + rng.gauss(0, 0.5)
        return rng.uniform(0, 10)

    def radius(self):
        """A radius that lets some pairs pass, as a number."""
        near = {'uniform': [0.3, 1, 2.5], 'cluster': [0.2, 1, 4], 'same': [2.0 ** -52, 0.5, 1]}
        radii = near.get(self.style, [1, 1, math.sqrt(2), math.sqrt(5), 2, 0.5])
        return self.rng.choice(radii + [0, 3, 100]) * self.scale


def float8(value):
    if math.isnan(value) or math.isinf(value):
        return {'nan': 'NaN', 'inf': 'Infinity', '-inf': '-Infinity'}[str(value)]
    return repr(value)


def float4(value):
    """The literal of the nearest single, or infinity beyond the largest."""
    try:
        return float8(struct.unpack('f', struct.pack('f', value))[0])
    except OverflowError:
        return float8(math.copysign(math.inf, value))


class Intervals:
    """Columns since and until, of one type, and during, a range of it."""
    TYPES = {'int': ('int4range', '{}', ['2147483600'], '2'), 'bigint': ('int8range', '{}::bigint', ['(1::bigint << 60)', '(-1::bigint << 58)'], '3'),
             'numeric': ('numrange', '{} / 4.0', ["'NaN'::numeric", "'Infinity'::numeric", '1e400'], '0.7'),
             'date': ('daterange', "date '2026-03-01' + {}", ["date 'infinity'", "date '9999-12-31'"], '4'),
             'timestamp': ('tsrange', "timestamp '2026-03-28' + {} * interval '30 min'", ["timestamp 'infinity'", "timestamp '9999-12-31'"], "interval '1 hour'"),
             'timestamptz': ('tstzrange', "timestamptz '2026-03-28' + {} * interval '30 min'", ["timestamptz 'infinity'"], "interval '1 day'"),
             'float8': (None, '{} / 7::float8', ["'NaN'::float8", "'Infinity'::float8", '1e305::float8'], '0.3::float8'),
             'float4': (None, '({} / 7.0)::float4', ["'NaN'::float4", "'Infinity'::float4"], '0.3::float4')}

    def __init__(self, rng):
        self.rng = rng
        self.type = rng.choice(list(self.TYPES))
        self.range, self.literal, self.odd, self.offset = self.TYPES[self.type]
        self.columns = [f'since {self.type}', f'until {self.type}'] + ([f'during {self.range}'] if self.range else [])
        self.odd_share = rng.choice([0, 0, 0.02, 0.2])
        self.longest = rng.choice([0, 3, 10, 60])
        self.long_share = rng.choice([0, 0.02, 0.1])  # of intervals far longer than the others, or without an end

    def values(self):
        """Literals of columns."""
        rng = self.rng
        low, length = rng.randint(0, 60), rng.randint(0, self.longest)
        is_long = rng.random() < self.long_share
        if is_long:
            length = rng.choice([1000, 100000])
        ends = [self.literal.format(number) for number in (low, low + length)]
        row = {'since': ends[0], 'until': ends[1]}
        if rng.random() < self.odd_share:
            row[rng.choice(['since', 'until'])] = rng.choice(self.odd + [self.literal.format(0)])
        if self.range:
            if rng.random() < (0.5 if is_long else self.odd_share):
                ends[1] = rng.choice([self.odd[0], 'NULL'])
            if rng.random() < self.odd_share:
                ends[0] = 'NULL'
            bounds = rng.choice(['[)'] * 5 + ['[]', '()', '(]'])
            row['during'] = "'empty'" if rng.random() < self.odd_share / 2 else f"{self.range}({ends[0]}, {ends[1]}, '{bounds}')"
        return row

    def condition(self, a, b):
        rng = self.rng
        less, other, more = rng.choice(['<', '<=']), rng.choice(['<', '<=']), rng.choice(['>', '>='])
        found = [f'{a}.since {less} {b}.until AND {b}.since {other} {a}.until'] * 2 + [
            f'{a}.since {less} {b}.until AND {a}.until {more} {b}.since', f'{a}.until {more} {b}.since AND {b}.until {more} {a}.since',
            f'{b}.since BETWEEN {a}.since AND {a}.until', f'{a}.since {less} {b}.since AND {a}.until {more} {b}.until',
            f'{a}.since {less} {b}.until + {self.offset} AND {b}.since - {self.offset} {other} {a}.until',
            f'{a}.since - {b}.until {less} {self.limit()} AND {b}.since - {a}.until {other} {self.limit()}']
        if self.range:
            brackets = rng.choice(['', '', ", '[]'", ", '(]'"])
            made = f'{self.range}({a}.since, {a}.until{brackets})'
            found += [f'{a}.during && {b}.during'] * 4 + [
                f'{made} && {b}.during', f'{b}.until <@ {made}', f'{made} && {self.range}({b}.since, {b}.until)', f'{a}.during @> {b}.since',
                f'{b}.until <@ {a}.during', f'{a}.during && {b}.during AND {a}.during @> {b}.since', f'{a}.during @> {b}.during', f'{a}.during -|- {b}.during']
        return rng.choice(found)

    def limit(self):
        return '2' if self.type == 'date' else self.offset


def array(numbers, text=float8):
    return "'{" + ','.join(text(number) for number in numbers) + "}'"


class Kind:
    """`columns`: definitions; odd_values: literals that few rows get, some of which make comparing raise errors."""
    columns, distances, needs = (), (), None
    takes_literals = False  # numbers stand for columns of an operand

    def __init__(self, rng, numbers, dimensions):
        self.rng, self.numbers, self.dimensions = rng, numbers, dimensions

    def point(self, dimensions=None, odd=True):
        return [self.numbers.number(odd) for _ in range(dimensions or self.dimensions)]

    def test(self, left, right, eps):
        """A condition that the planner knows; left and right are operands of this kind."""
        distance, swapped = self.distance(left, right), self.distance(right, left)
        return self.rng.choice([f'{distance} <= {eps}'] * 4 + [
            f'{distance} < {eps}', f'{eps} >= {swapped}', f'{eps} > {distance}', f'NOT {distance} > {eps}',
            f'{distance} BETWEEN 0 AND {eps}', f'{distance} <= ({eps})::real',
            f'({distance} <= {eps} OR {distance} <= {self.numbers.radius()!r}::float8)'])

    def distance(self, left, right):
        return f'({left} {self.rng.choice(self.distances)} {right})'


class Float8Array(Kind):
    columns, distances = ('f8 float8[]',), ('<->', '<->', '<->', '<=>', '<+>')

    def values(self):
        return [array(self.point())]

    def odd_values(self):
        return [self.rng.choice([array(self.point(self.dimensions + 1)), "'{}'", "'{NULL,1}'", "'[0:1]={1,2}'"])]

    def operand(self, t):
        plain = f'{t}.f8'
        more = [f'({t}.f8 || ARRAY[]::float8[])', f'CASE WHEN {t}.grp <> 2 THEN {t}.f8 END',
                f"coalesce({t}.f8, {array([1.0] * self.dimensions)})", f'picky({t}.f8, coalesce({t}.grp, 0) + 1)']
        if self.dimensions <= 3:
            columns = [f'{t}.x', f'{t}.y', f'{t}.z'][:self.dimensions]
            more += [f"ARRAY[{', '.join(columns)}]"] * 6
            more.append(f"ARRAY[{', '.join(c + ' * 0.5' for c in columns)}]")
            numeric = [f'{t}.m', f'{t}.n', f'{t}.m'][:self.dimensions]
            more += [f"ARRAY[{', '.join(numeric)}]::float8[]", f"ARRAY[{', '.join(c + '::float8' for c in numeric)}]"]
        return self.rng.choice([plain] * 8 + more)

    def guarded(self, t):
        """A condition on a row, and an operand that raises an error or is NULL where it does not hold."""
        rest = ''.join(', 1' for _ in range(self.dimensions - 1))
        return self.rng.choice([
            (f'{t}.grp <> 0', f'ARRAY[{t}.x / {t}.grp{rest}]'),
            (f'{t}.grp <> 0', f'ARRAY[(10 / {t}.grp)::float8{rest}]'),
            (f"{t}.t <> 'no'", f'ARRAY[{t}.t::float8{rest}]'),
            (f"{t}.t <> 'no'", f"('{{' || {t}.t || '{rest}}}')::float8[]"),
            (f'{t}.grp <> 0', f'picky(ARRAY[{t}.x{rest}], {t}.grp)'),
            (f'{t}.grp <> 0', f'picky({t}.f8, {t}.grp)'),
            (f'{t}.x IS NOT NULL', f'ARRAY[{t}.x{rest}]'),
            (f'cardinality({t}.f8) = {self.dimensions}', f'{t}.f8')])

    def test(self, left, right, eps):
        eps = self.rng.choice([eps] * 5 + [f'{eps} / 16'])  # angles are small
        if self.rng.random() < 0.25:
            return f'gpu_within({left}, {right}, {eps}{self.metric()})'
        return Kind.test(self, left, right, eps)

    def distance(self, left, right):
        metric = self.metric()
        return f'gpu_distance({left}, {right}{metric})' if metric else Kind.distance(self, left, right)

    def metric(self):
        return self.rng.choice([''] * 6 + [f", '{metric}'" for metric in ('l2', 'l1', 'linf', 'cosine')])


class Float4Array(Float8Array):
    columns = ('f4 float4[]',)

    def values(self):
        return [array(self.point(), float4)]

    def odd_values(self):
        return [self.rng.choice([array(self.point(self.dimensions + 1), float4), "'{}'", "'{NULL,1}'"])]

    def operand(self, t):
        return self.rng.choice([f'{t}.f4'] * 6 + [f'({t}.f4 || ARRAY[]::float4[])', f'CASE WHEN {t}.grp <> 2 THEN {t}.f4 END'])

    def guarded(self, t):
        return f'cardinality({t}.f4) = {self.dimensions}', f'{t}.f4'


class IntegerArray(Float8Array):
    columns = ('i4 int4[]',)

    def values(self):
        return [array([0 if x != x else round(max(-1e9, min(1e9, x))) for x in self.point()])]

    def odd_values(self):
        return [self.rng.choice(["'{}'", "'{NULL,1}'", "'{1}'"])]

    def operand(self, t):
        return f'{t}.i4'

    def guarded(self, t):
        return f'cardinality({t}.i4) = {self.dimensions}', f'{t}.i4'


class NumericArray(Float8Array):
    columns = ('ns numeric[]',)

    def operand(self, t):
        return self.rng.choice([f'{t}.ns', f'{t}.ns', f'({t}.ns || ARRAY[]::numeric[])'])

    def guarded(self, t):
        return f'cardinality({t}.ns) = {self.dimensions}', f'{t}.ns'


class Columns(Float8Array):
    """Several columns of several types, as one array."""
    columns = ('i int', 'q numeric', 'r real')

    def values(self):
        x, y, z = self.point(3, odd=False)
        return [str(max(-2 ** 31, min(2 ** 31 - 1, int(x)))), float8(y), f"'{float4(z)}'"]

    def odd_values(self):
        return ['2147483647', "'NaN'", "'Infinity'"]

    def operand(self, t):
        return self.rng.choice([f'ARRAY[{t}.i, {t}.q, {t}.r]::float8[]', f'ARRAY[{t}.i::float8, {t}.q::float8, {t}.r::float8]'])

    def guarded(self, t):
        return f'{t}.i <> 0', f'ARRAY[{t}.q::float8 / {t}.i, {t}.r, 1]'


class WrittenOut(Kind):
    """Columns whose distance the condition itself computes. An operand is a table."""
    columns, takes_literals = ('wr real', 'wi int', 'ws smallint', 'wb bigint', 'wn numeric'), True

    def values(self):
        r, i, s = self.point(3, odd=False)
        return [f"'{float4(r)}'", str(max(-2 ** 15, min(2 ** 15 - 1, int(i)))), str(max(-2 ** 7, min(2 ** 7 - 1, int(s)))),
                str(max(-2 ** 31, min(2 ** 31 - 1, int(s)))), float8(r)]

    def odd_values(self):
        return [self.rng.choice(["'NaN'", "'Infinity'", "'1e-30'", "'3e38'"]), '2147483647', '-32768', self.rng.choice(['9007199254740993', '4503599627370497', '4611686018427387904', '-4503599627370496']),
                self.rng.choice(["'NaN'", "'Infinity'", '1e30', '1e-150', '100000000000.0000000001', '1e-400'])]

    def operand(self, t):
        return t

    def guarded(self, t):
        return f'{t}.grp <> 0', t

    def difference(self, left, right):
        rng = self.rng
        columns = rng.choice([('x', 'x')] * 4 + [('m', 'm'), ('n', 'm'), ('y', 'y'), ('z', 'z'), ('wr', 'wr'), ('wi', 'wi'), ('ws', 'ws'), ('wb', 'wb'), ('wb', 'wb'), ('wn', 'wn'), ('wn', 'wn'), ('wb', 'wi'), ('wn', 'ws'), ('wr', 'x'), ('wi', 'y'), ('ws', 'wi')])
        one, other = f'{left}.{columns[0]}', f'{right}.{columns[1]}'
        if rng.random() < 0.1:
            one = rng.choice([f'{left}.x * 0.5', f'{left}.x / {left}.grp', f'coalesce({left}.y, 1)'])
        return f'({one} - {other})' if rng.random() < 0.5 else f'({other} - {one})'

    def square(self, left, right):
        difference = self.difference(left, right)
        return self.rng.choice([f'{difference}^2', f'power({difference}, 2)', f'{difference} * {difference}'])

    def taxicab(self, left, right):
        return ' + '.join(f'abs({self.difference(left, right)})' for _ in range(self.rng.choice([2, 2, 3])))

    def test(self, left, right, eps):
        rng = self.rng
        if rng.random() < 0.3:
            bands = [f'abs({self.difference(left, right)}) {rng.choice(["<", "<="])} {eps}' for _ in range(rng.choice([2, 2, 3]))]
            return ' AND '.join(bands)
        squares = [self.square(left, right) for _ in range(rng.choice([1, 2, 2, 2, 3, 4]))]
        whole = ' + '.join(squares)
        if len(squares) == 3 and rng.random() < 0.3:
            whole = f'{squares[0]} + ({squares[1]} + {squares[2]})'
        value = rng.choice([whole, f'sqrt({whole})', f'sqrt({whole})', f'|/ ({whole})', self.taxicab(left, right)])
        return rng.choice([f'{value} <= {eps}'] * 3 + [f'{value} < {eps}', f'{eps} >= {value}', f'NOT {value} > {eps}', f'{value} BETWEEN 0 AND {eps}',
                           f'{value} <= 5', f'{value} <= ({eps})::real'])

    def distance(self, left, right):
        whole = ' + '.join(self.square(left, right) for _ in range(self.rng.choice([1, 2, 2, 3])))
        return self.rng.choice([f'sqrt({whole})', f'sqrt({whole})', f'({whole})', f'abs({self.difference(left, right)})::float8', f'({self.taxicab(left, right)})::float8'])


class Bands(WrittenOut):
    """Boxes and bands around a row by BETWEEN. An operand is a table."""
    columns = ('ba float8', 'bb real', 'bn numeric', 'bl bigint')

    def values(self):
        x, y, z = self.point(3, odd=False)
        return [f"'{float8(x)}'", f"'{float4(y)}'", float8(z), str(max(-2 ** 31, min(2 ** 31 - 1, int(x))))]

    def odd_values(self):
        return [self.rng.choice(["'NaN'", "'Infinity'", "'1e15'", "'-0'"]), self.rng.choice(["'NaN'", "'3e38'", "'1e-30'"]), self.rng.choice(["'NaN'", '1e30', '1e-150']),
                self.rng.choice(['9007199254740993', '-4503599627370497'])]

    def band(self, left, right):
        rng = self.rng
        one, other = rng.choice([('ba', 'ba'), ('ba', 'ba'), ('ba', 'x'), ('bb', 'bb'), ('bb', 'ba'), ('bn', 'bn'), ('bl', 'bl'), ('bl', 'grp'), ('id', 'id')])
        x, y = f'{left}.{one}', f'{right}.{other}'
        below, above = (rng.choice(['0.5', '1', '2', '2', '10']) for _ in range(2))
        if one in ('bl', 'id'):
            below, above = (rng.choice(['1', '2', '5']) for _ in range(2))
        return rng.choice([f'{x} BETWEEN {y} - {below} AND {y} + {above}'] * 4 + [f'{x} > {y} - {below} AND {x} < {y} + {above}', f'{x} - {y} <= {above} AND {y} - {x} < {below}',
                           f'{y} >= {x} - {above} AND {x} <= {y} + {below}', f'{x} BETWEEN {y} AND {y} + {above}'])

    def test(self, left, right, eps):
        return ' AND '.join(self.band(left, right) for _ in range(self.rng.choice([1, 2, 2, 2, 3])))

    distance = None


class Point(Kind):
    columns, distances = ('p point',), ('<->',)

    def values(self):
        x, y = self.point(2)
        return [f"'({float8(x)},{float8(y)})'"]

    def odd_values(self):
        return [self.rng.choice(["'(1e160,0)'", "'(Infinity,1)'", "'(NaN,1)'", "'(-Infinity,Infinity)'"])]

    def operand(self, t):
        return self.rng.choice([f'{t}.p'] * 4 + [f'point({t}.x, {t}.y)', f'point({t}.m, {t}.n)', f'point({t}.m::float8, {t}.y)'])

    def guarded(self, t):
        return f'{t}.grp <> 0', f'point({t}.x / {t}.grp, 1)'

    def test(self, left, right, eps):
        if self.rng.random() < 0.25:
            return f'gpu_within({left}, {right}, {eps})'
        return Kind.test(self, left, right, eps)


class Disc(Kind):
    """Circles, and the points and polygons in them. An operand is a table."""
    columns = ('ci circle', 'cp point', 'po polygon')

    def values(self):
        x, y = self.point(2)
        radius = abs(self.numbers.number()) * self.rng.choice([0, 0.1, 0.5])
        return [f"'<({float8(x)},{float8(y)}),{float8(radius)}>'", f"'({float8(y)},{float8(x)})'",
                f"'(({float8(x)},{float8(y)}),({float8(x + radius)},{float8(y)}),({float8(x)},{float8(y + 2 * radius)}))'"]

    def odd_values(self):
        return [self.rng.choice(["'<(NaN,1),1>'", "'<(1,1),NaN>'", "'<(0,0),Infinity>'", "'<(1e160,0),1>'"]), self.rng.choice(["'(NaN,1)'", "'(Infinity,1)'", "'(1e300,-1e300)'"]),
                self.rng.choice(["'((0,0),(NaN,1),(1,0))'", "'((0,0),(Infinity,1),(1,0))'", "'((-1e6,-1e6),(1e6,0),(0,1e6))'"])]

    def operand(self, t):
        return t

    def guarded(self, t):
        return f'{t}.grp <> 0', t

    def test(self, left, right, eps):
        rng = self.rng
        radius = '1' if 'SELECT' in eps or '.' in eps and "'" not in eps else eps
        return rng.choice([f'{left}.cp <@ {right}.ci', f'{left}.ci @> {right}.cp', f'{left}.ci && {right}.ci', f'{left}.ci @> {right}.ci', f'{right}.cp <@ circle({left}.cp, {radius})',
                           f'circle({left}.cp, 1) && circle({right}.cp, {right}.grp)', f'{left}.po @> {right}.cp', f'{left}.cp <@ {right}.po', f'{left}.po && {right}.po', f'{left}.po <@ {right}.po',
                           f'{left}.cp <@ box({right}.po)', f'box({left}.ci) @> {right}.cp'])

    distance = None


class Degrees(Kind):
    columns, distances, needs = ('dg point',), (), 'earthdistance'

    def values(self):
        x, y = (c if math.isfinite(c) else 0 for c in self.point(2, odd=False))
        x, y = math.remainder(x, 40) * 0.01, math.remainder(y, 40) * 0.01
        return ['point({!r}, {!r})'.format(*self.rng.choice([(10 + x, 50 + y)] * 5 + [(180 + x, y), (x * 900, 90 - abs(y))]))]

    def odd_values(self):
        return [self.rng.choice(["point(400, 10)", "point(10, 95)", "point('NaN', 1)", "point('Infinity', 1)"])]

    def operand(self, t):
        return self.rng.choice([f'{t}.dg'] * 5 + [f'({t}.dg + point(0.5, 0))'])

    def guarded(self, t):
        return f'{t}.grp <> 0', f'point(10 + 0.1 / {t}.grp, 50)'

    def test(self, left, right, eps):
        return f'{left} <@> {right} {self.rng.choice(["<", "<="])} {self.rng.choice([0, 3, 10, 10, 200, 12000])}'

    distance = None


class Places(Degrees):
    """Longitudes and latitudes in columns of their own, compared as arrays by the metric haversine."""
    columns, needs, longest = ('lo float8', 'la float8'), None, 180

    def values(self):
        x, y = (math.remainder(c, 40) * 0.01 if math.isfinite(c) else 0 for c in self.point(2, odd=False))
        return [repr(c) for c in self.rng.choice([(10 + x, 50 + y)] * 5 + [(self.longest + x, y), (x * 900, 90 - abs(y))])]

    def odd_values(self):
        return list(self.rng.choice([('400', '10'), ('10', '95'), ("'NaN'", '1'), ('1', "'Infinity'"), ("'-Infinity'", "'NaN'")]))

    def operand(self, t):
        return self.rng.choice([f'ARRAY[{t}.lo, {t}.la]'] * 5 + [f'ARRAY[{t}.lo + 0.5, {t}.la]'])

    def guarded(self, t):
        return f'{t}.grp <> 0', f'ARRAY[10 + 0.1 / {t}.grp, 50]'

    def test(self, left, right, eps):
        metres = self.rng.choice([0, 1e-9, 1000, 5000, 5000, 200000, 19999999, 20100000])
        if self.rng.random() < 0.25:
            return f"gpu_within({left}, {right}, {metres}, 'haversine')"
        return Kind.test(self, left, right, metres)

    def distance(self, left, right):
        return f"gpu_distance({left}, {right}, 'haversine')"


class ByHand(Places):
    """Columns of degrees whose great circle the condition computes. An operand is a table."""
    columns, takes_literals = ('hx float8', 'hy float8'), True

    def operand(self, t):
        return t

    def guarded(self, t):
        return f'{t}.grp <> 0', t

    def angle(self, left, right):
        rng = self.rng
        east, north = f'({left}.hx - {right}.hx)', f'({right}.hy - {left}.hy)'
        one, other = f'radians({left}.hy)', f'radians({right}.hy)'
        share = rng.choice([f'power(sin(radians{north} / 2), 2) + cos({one}) * cos({other}) * power(sin(radians{east} / 2), 2)',
                            f'sin({north} * pi() / 360) ^ 2 + cos({other}) * cos({one}) * sin({east} * pi() / 360) ^ 2'])
        cosine = f'cos({one}) * cos({other}) * cos(radians{east}) + sin({one}) * sin({other})'
        return rng.choice([f'2 * asin(sqrt({share}))', f'2 * asin(least(1, sqrt({share})))', f'2 * atan2(sqrt({share}), sqrt(greatest(0, 1 - ({share}))))',
                           f'acos(greatest(-1, least(1, {cosine})))', f'acos(least(1.0, {cosine}))'])

    def test(self, left, right, eps):
        rng, angle = self.rng, self.angle(left, right)
        kilometres = rng.choice([0, 1e-9, 1, 5, 5, 200, 20010, 20020])
        return rng.choice([f'6371 * {angle} <= {kilometres}', f'degrees({angle}) * 111.19 < {kilometres}', f'{kilometres} >= 6371 * ({angle})', f'{kilometres} - 6371 * {angle} >= 0',
                           f'6371 * {angle} < {left}.s', f'round((6371 * {angle})::numeric, 1) <= {kilometres}'])

    def distance(self, left, right):
        return self.rng.choice(['6371 * ({})', '({})', 'degrees({})']).format(self.angle(left, right))


class EarthColumns(Places):
    """What earthdistance computes of columns, and its own values. An operand is a table."""
    columns, needs = ('el float8', 'ea float8', 'ee earth'), 'earthdistance'

    def values(self):
        longitude, latitude = Places.values(self)
        return [longitude, latitude, f'll_to_earth({latitude}, {longitude})']

    def odd_values(self):
        return [*self.rng.choice([('400', '10'), ('10', '95'), ("'NaN'", '1'), ('1', "'Infinity'")]), "cube(ARRAY[6378168.0::float8, 0, 0])"]

    def operand(self, t):
        return t

    def guarded(self, t):
        return f'{t}.grp <> 0', t

    def earth(self, t):
        return self.rng.choice([f'll_to_earth({t}.ea, {t}.el)'] * 3 + [f'{t}.ee'])

    def test(self, left, right, eps):
        metres = self.rng.choice([-1, 0, 1e-9, 1000, 5000, 5000, 200000, 20030000, 20040000])
        left, right = self.rng.choice([(self.earth(left), self.earth(right)), (f'll_to_earth({left}.ea, {left}.el)', f'll_to_earth({right}.ea, {right}.el)')])
        condition = f'earth_distance({left}, {right}) {self.rng.choice(["<", "<="])} {metres}'
        if self.rng.random() < 0.2:
            t, u = re.sub(r'^.*?(\w+)[.].*$', r'\1', left), re.sub(r'^.*?(\w+)[.].*$', r'\1', right)
            return self.rng.choice([f'earth_box({left}, {metres}) @> {right}', f'{right} <@ earth_box({left}, {metres})', f'earth_distance({left}, {right}) < {t}.s',
                                    f'earth_distance({left}, {right}) <= {u}.id', f'{t}.grp >= earth_distance({left}, {right})'])
        return self.rng.choice([condition] * 3 + [f'{condition} AND earth_box({left}, {metres}) @> {right}', f'NOT earth_distance({left}, {right}) > {metres}'])

    distance = None


class Sky(Places):
    """Catalogues that q3c compares, with a radius in each row, too. An operand is a table."""
    columns, needs, longest = ('ra float8', 'de float8', 'er float8'), 'q3c', 360

    def values(self):
        return Places.values(self) + [self.rng.choice(['0', '0.01', '0.05', '0.05', '0.2'])]

    def odd_values(self):
        return [*self.rng.choice([('400', '10'), ('10', '95'), ('-30', '5')]), self.rng.choice(['-0.05', "'NaN'", '1'])]

    def operand(self, t):
        return t

    def guarded(self, t):
        return f'{t}.grp <> 0', t

    def test(self, left, right, eps):
        rng = self.rng
        radius = rng.choice(['0', '1e-9', '0.01', '0.05', '0.2', '2', f'{left}.er', f'{right}.er', f'{left}.er + {right}.er'])
        distance = self.distance(left, right)
        return rng.choice([f'q3c_join({left}.ra, {left}.de, {right}.ra, {right}.de, {radius})'] * 2 + [f'{distance} < {radius}', f'{radius} >= {distance}'])

    def distance(self, left, right):
        return f'q3c_dist({left}.ra, {left}.de, {right}.ra, {right}.de)'


class Spoint(Places):
    """Points of pgsphere, and circles around them, whose radius may be the row's."""
    columns, distances, needs, longest = ('sp spoint', 'sr float8'), ('<->',), 'pg_sphere', 360

    def values(self):
        longitude, latitude = Places.values(self)
        return [f'spoint(radians({longitude}), radians({latitude}))', self.rng.choice(['0', '1e-9', '0.0002', '0.001', '0.001', '0.004'])]

    def odd_values(self):
        # Radii below 0 and beyond a right angle raise internal errors of pgsphere.
        return [self.rng.choice(["spoint('NaN'::float8, 1)", "spoint(1, 'Infinity'::float8)", 'spoint(1, 2)']), self.rng.choice(["'NaN'", '1.5', '0'])]

    def operand(self, t):
        return t

    def guarded(self, t):
        return f'{t}.grp <> 0', t

    def test(self, left, right, eps):
        rng = self.rng
        radius = rng.choice(['0', '1e-9', '0.0002', '0.001', '0.004', '1.5', f'{left}.sr', f'{right}.sr'])
        distance = self.distance(left, right)
        return rng.choice([f'{distance} <= {radius}', f'{distance} < {left}.sr + {right}.sr', f'{left}.sp <@ scircle({right}.sp, {radius})', f'scircle({right}.sp, {radius}) @> {left}.sp'])

    def distance(self, left, right):
        return f'({left}.sp <-> {right}.sp)'


class Box(Kind):
    columns = ('bx box',)

    def values(self):
        x, y = self.point(2)
        width, height = (abs(self.numbers.number()) * self.rng.choice([0, 0.1, 1]) for _ in range(2))
        return [f"'({float8(x)},{float8(y)}),({float8(x + width)},{float8(y + height)})'"]

    def odd_values(self):
        return [self.rng.choice(["'(-Infinity,0),(Infinity,1)'", "'(NaN,0),(1,1)'", "'(0,0),(1e7,1e7)'"])]

    def operand(self, t):
        return self.rng.choice([f'{t}.bx'] * 4 + [f'box(point({t}.x, {t}.y), point({t}.x, {t}.y))'])

    def guarded(self, t):
        return f'{t}.grp <> 0', f'box(point({t}.x / {t}.grp, 1), point(2, 2))'

    def test(self, left, right, eps):
        return self.rng.choice([f'{left} && {right}'] * 3 + [f'{left} @> {right}', f'{left} <@ {right}'])

    distance = None


class Cube(Kind):
    columns, distances, needs = ('c cube',), ('<->', '<#>', '<=>'), 'cube'

    def values(self):
        low = self.point(min(self.dimensions, 8))
        if self.rng.random() < 0.6:
            return [f'cube({array(low)}::float8[])']
        return [f'cube({array(low)}::float8[], {array([c + self.rng.choice([0, 1, 2]) for c in low])}::float8[])']

    def odd_values(self):
        return [self.rng.choice([f'cube({array(self.point(self.dimensions + 1))}::float8[])', "cube('NaN'::float8)",
                                 "cube('Infinity'::float8)", "cube('-Infinity'::float8, 'Infinity'::float8)",
                                 "'()'::cube", f'cube({array(self.point(12))}::float8[])'])]

    def operand(self, t):
        return self.rng.choice([f'{t}.c'] * 5 + [f'cube(ARRAY[{t}.x, {t}.y])', f'cube_union({t}.c, {t}.c)'])

    def guarded(self, t):
        return f'{t}.grp <> 0', f'cube({t}.x / {t}.grp)'

    def test(self, left, right, eps):
        if self.rng.random() < 0.3:
            return f'{left} && {right}'
        return super().test(left, right, eps)


class Geometry(Kind):
    columns, distances, needs = ('g geometry',), ('<->',), 'postgis'
    others = ("'SRID=4326;POINT EMPTY'", "'SRID=3857;POINT(5e6 5e6)'")  # of another SRID, which meet no other row
    has_nan = False  # some shape so far has one

    def values(self):
        start, end = self.point(2, odd=False), self.point(2, odd=False)
        x, y = map(float8, start)
        x2, y2 = map(float8, end)
        # PostGIS answers differently when shapes are prepared and when not: shapes without an extent, and corners that are
        # rounded and lie on a line.
        size = max(1.0, self.numbers.scale)
        shapes = [f"ST_MakePoint('{x}', '{y}')"] * 5 + [
            f"ST_MakeEnvelope('{x}', '{y}', '{x}'::float8 + {size}, '{y}'::float8 + {size})",
            f"ST_Buffer(ST_MakePoint('{x}', '{y}'), {self.rng.choice([0.52, 1.03, 3.07]) * size}, 2)"]
        if start != end:
            shapes.append(f"ST_MakeLine(ST_MakePoint('{x}', '{y}'), ST_MakePoint('{x2}', '{y2}'))")
        return [self.rng.choice(shapes)]

    def odd_values(self):
        odd = self.rng.choice([
            "'POINT EMPTY'", *self.others, *self.others, "ST_SetSRID(ST_MakePoint(1, 1), 4326)", "ST_MakePoint('Infinity', 1)",
            "ST_MakePoint('NaN', 1)", "ST_MakePoint(1e9, 1)", 'ST_MakeEnvelope(-1000, -1000, 1000, 1000)',
            "ST_MakePoint(1, 2, 3)", "'POLYGON EMPTY'", "'MULTIPOINT(1 1, 2 2)'", "ST_MakePoint(3e38, 1e300)"])
        self.has_nan = self.has_nan or 'NaN' in odd
        return [odd]

    def operand(self, t):
        return self.rng.choice([f'{t}.g'] * 5 + [f'ST_MakePoint({t}.x, {t}.y)'])

    def guarded(self, t):
        # Longitudes and latitudes as they come: some are none, and some rows have a SRID already.
        return self.rng.choice([
            (f'{t}.grp <> 0', f'ST_MakePoint({t}.x / {t}.grp, 1)'),
            (f'abs({t}.y) < 80', f'ST_SetSRID(ST_Transform(ST_SetSRID(ST_MakePoint({t}.x, {t}.y), 4326), 32631), 0)'),
            (f'ST_SRID({t}.g) <> 0', f'ST_SetSRID(ST_Transform({t}.g, 3857), 0)')])

    def test(self, left, right, eps):
        if self.rng.random() < 0.15:
            return super().test(left, right, eps)
        # PostGIS answers differently for lines on a border by rounding, too.
        relations = ('Contains', 'Within', 'Covers', 'CoveredBy', 'Touches', 'Overlaps', 'Crosses', 'ContainsProperly') * (self.numbers.style not in ('same', 'huge'))
        # PostGIS 3.3 crashes where it intersects shapes with a NaN.
        crashes = self.has_nan or not (left.endswith('.g') and right.endswith('.g'))
        intersect = f'NOT ST_Disjoint({left}, {right})' if crashes else f'ST_Area(ST_Intersection({left}, {right})) > 0'
        if self.rng.random() < 0.2:
            return self.rng.choice([f'ST_Equals({left}, {right})', f'{left} ~= {right}', f'ST_OrderingEquals({left}, {right})', f"ST_Relate({left}, {right}, 'T********')", f'ST_DFullyWithin({left}, {right}, {eps})', f'{left} ~ {right}',
                                    f'{left} @ {right}', f'{left} &&& {right}', f'NOT ST_Disjoint({left}, {right})', intersect, f'ST_Distance({left}, {right}) = 0',
                                    f'ST_MaxDistance({left}, {right}) < {eps}', f'ST_HausdorffDistance({left}, {right}) <= {eps}', f'ST_3DDistance({left}, {right}) <= {eps}'])
        return self.rng.choice([f'ST_DWithin({left}, {right}, {eps})'] * 3 + [f'{left} && {right}'] * 2 +
                               [f'ST_Intersects({left}, {right})'] * 2 + [f'ST_{name}({left}, {right})' for name in relations])

    def distance(self, left, right):
        return self.rng.choice([f'({left} <-> {right})', f'ST_Distance({left}, {right})'])


class Geography(Kind):
    columns, distances, needs = ('gg geography',), (), 'postgis'

    def near(self):
        x, y = (math.remainder(c, 40) * 0.001 if math.isfinite(c) else 0 for c in self.point(2, odd=False))
        return x, y

    def place(self, x, y):
        return f'ST_SetSRID(ST_MakePoint({x!r}, {y!r}), 4326)'

    def values(self):
        x, y = self.near()
        town = self.place(10 + x, 50 + y)
        elsewhere = self.place(*self.rng.choice([(math.remainder(180 + x, 360), y), (x * 9000, 90 - abs(y)), (x * 9000, y * 4000)]))
        # Shapes in one region: PostGIS finds that some touch at antipodes, unless it has an index.
        return [self.rng.choice([f'{town}::geography'] * 5 + [f'{elsewhere}::geography'] * 2 + [
            f'ST_Buffer({town}::geography, {self.rng.choice([10, 300, 2000])})',
            f'ST_MakeLine({town}, ST_Translate({town}, 0.01, {self.rng.choice([-0.005, 0, 0.01])}))::geography'])]

    def odd_values(self):
        return [self.rng.choice(["'POINT EMPTY'", "'POINT Z (10 50 9)'", 'ST_SetSRID(ST_MakePoint(10, 50), 4267)::geography',
                                 "'SRID=4267;POINT EMPTY'", "'SRID=4267;POINT(-120 -70)'",
                                 "'POLYGON EMPTY'", "'MULTIPOINT(10 50, 10.01 50)'", "'LINESTRING(-90 80, 90 80)'"])]

    def operand(self, t):
        return self.rng.choice([f'{t}.gg'] * 5 + [f'{t}.gg::geometry::geography'])

    def guarded(self, t):
        return f'{t}.grp <> 0', f'ST_SetSRID(ST_MakePoint(10 + 0.01 / {t}.grp, 50), 4326)::geography'

    def test(self, left, right, eps):
        metres = self.rng.choice([0, 0.001, 100, 1500, 1500, 50000, 3e6])
        sphere = self.rng.choice(['', '', ', false', ', true'])
        return self.rng.choice([f'ST_DWithin({left}, {right}, {metres}{sphere})'] * 2 +
                               [f'ST_Distance({left}, {right}{sphere}) <= {metres}', f'{left} <-> {right} < {metres}',
                                f'ST_DistanceSpheroid({self.middle(left)}, {self.middle(right)}) <= {metres}'])

    def middle(self, value):
        """A point: that a line touches a polygon ST_DistanceSpheroid finds only sometimes."""
        return f'ST_Centroid(({value})::geometry)'

    distance = None


class Vector(Kind):
    needs, distances = 'vector', ('<->', '<+>', '<=>', '<#>')

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.columns = (f'vc vector({self.dimensions})',)

    def text(self, most, odd=()):
        numbers = [max(-most, min(most, 0.0 if math.isnan(c) else c)) for c in self.point()]
        if odd:
            numbers[0] = self.rng.choice(odd)
        return ["'[" + ','.join(float4(c) for c in numbers) + "]'"]

    def values(self):
        return self.text(3e38)

    def odd_values(self):
        return self.text(3e38, odd=[1e-23, 1e19, -3e38, 0.0, 1e-45])

    def operand(self, t):
        return self.rng.choice([f'{t}.vc'] * 5 + [f'({t}.vc + {t}.vc)'])

    def guarded(self, t):
        return f"{t}.t <> 'no'", f"ARRAY[{', '.join([f'{t}.t::real'] * self.dimensions)}]::vector"

    def test(self, left, right, eps):
        """Inner products that are large have operands and words of their own."""
        if self.rng.random() < 0.7:
            return Kind.test(self, left, right, eps)
        least = self.rng.choice([eps, eps, f'4 * {eps}', '20', '100', '1e6', '-3', "'NaN'::float8"])
        return self.rng.choice([f'{left} <#> {right} <= -({least})', f'{left} <#> {right} < -({least})', f'-({least}) > {right} <#> {left}',
                                f'-({left} <#> {right}) >= {least}', f'{least} < -({right} <#> {left})',
                                f'inner_product({left}, {right}) >= {least}', f'{least} < inner_product({left}, {right})'])


class Halfvec(Vector):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.columns = (f'hv halfvec({self.dimensions})',)

    def values(self):
        return self.text(60000.0)

    def odd_values(self):
        return self.text(60000.0, odd=[65504.0, 6e-8, 0.0])

    def operand(self, t):
        return f'{t}.hv'

    def guarded(self, t):
        return f"{t}.t <> 'no'", f"ARRAY[{', '.join([f'{t}.t::real'] * self.dimensions)}]::vector::halfvec"


class Sparsevec(Vector):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.columns = (self.rng.choice(['sv sparsevec', f'sv sparsevec({self.dimensions})']),)

    def text(self, most, odd=()):
        numbers = Vector.text(self, most, odd)[0].strip("[']").split(',')
        elements = [f'{d}:{number}' for d, number in enumerate(numbers, 1) if self.rng.random() < 0.6]
        return ["'{" + ','.join(elements) + '}/' + str(self.dimensions) + "'"]

    def operand(self, t):
        return f'{t}.sv'

    def guarded(self, t):
        return f"{t}.t <> 'no'", f"ARRAY[{', '.join([f'{t}.t::real'] * self.dimensions)}]::vector::sparsevec"


class BitString(Kind):
    """Bits that differ in a few places from one of some rows, or anywhere."""
    columns, bits, difference = ('bs bit(64)',), 64, '{} # {}'

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.bases = [self.rng.getrandbits(self.bits) for _ in range(4)]

    def word(self):
        word = self.rng.choice(self.bases + [self.rng.getrandbits(self.bits)])
        for _ in range(self.rng.choice([0, 0, 1, 2, 3, 6, 9])):
            word ^= 1 << self.rng.randrange(self.bits)
        return word

    def values(self):
        return [f"B'{self.word():0{self.bits}b}'"]

    def odd_values(self):
        return [self.rng.choice([f"B'{'0' * self.bits}'", f"B'{'1' * self.bits}'"])]

    def operand(self, t):
        return self.rng.choice([f'{t}.bs'] * 5 + [f'(~ {t}.bs)', f'{t}.id::bit(64)'])

    def guarded(self, t):
        return f'{t}.grp <> 0', f'(10 / {t}.grp)::bit(64)'

    def test(self, left, right, eps):
        count, limit = self.distance(left, right), self.rng.choice([0, 1, 3, 6, 10, 40, 64, -1])
        if '.grp' in eps and "'" not in eps and not re.search(r'[.]s|[.]x|0[.]5|CASE', eps):
            return self.rng.choice([f'{count} <= {eps}', f'{count} < {eps}', f'{eps} + 2 >= {count}'])
        return self.rng.choice([f'{count} <= {limit}'] * 5 + [
            f'{count} < {limit}', f'{limit} >= {count}', f'{limit}::bigint > {count}', f'{count} <= {limit}::smallint',
            f'NOT {count} > {limit}', f'{count} BETWEEN 0 AND {limit}', f'{count} <= {limit}.5', f'{count} <= ({eps})::bigint',
            f'({count} <= {limit} OR {count} <= 2)', f'{count} = {limit}', f"length(replace(({self.difference.format(left, right)})::text, '0', '')) <= {limit}", *self.shares(left, right)])

    def shares(self, left, right):
        common, union = f'bit_count({left} & {right})', f'nullif(bit_count({right} | {left}), 0)'
        return [f'{common}::float8 / {union} >= 0.8', f'1.0 * {common} / {union} > 0.5', f'1 - {common}::numeric / {union} <= 0.25']

    def distance(self, left, right):
        return f'bit_count({self.difference.format(left, right)})'


class VaryingBits(BitString):
    """Some are of another length, which cannot be compared."""
    columns, bits = ('bv bit varying',), 70

    def odd_values(self):
        return [self.rng.choice(["B''", "B'1'", f"B'{self.word():070b}1'", f"B'{'0' * 128}'"])]

    def operand(self, t):
        return f'{t}.bv'

    def guarded(self, t):
        return f'length({t}.bv) = 70', f'{t}.bv'


class VectorBits(BitString):
    """Bits that pgvector's operators compare."""
    columns, distances, needs = ('vb bit(64)',), ('<~>', '<%>'), 'vector'

    def operand(self, t):
        return self.rng.choice([f'{t}.vb'] * 5 + [f'(~ {t}.vb)'])

    def test(self, left, right, eps):
        return Kind.test(self, left, right, self.rng.choice([eps, '0', '0.2', '0.5', '3', '6', '10']))

    def distance(self, left, right):
        return Kind.distance(self, left, right)


class Int8Bits(BitString):
    columns, difference = ('bi int8',), '({} # {})::bit(64)'

    def shares(self, left, right):
        return []

    def values(self):
        return [str(self.word() - 2 ** 63)]

    def odd_values(self):
        return [self.rng.choice(['0', '-1', str(-2 ** 63)])]

    def operand(self, t):
        return self.rng.choice([f'{t}.bi'] * 5 + [f'(- {t}.bi)', f'({t}.bi # 1)'])

    def guarded(self, t):
        return f'{t}.grp <> 0', f'({t}.bi / {t}.grp)'


class Int4Bits(Int8Bits):
    columns, bits, difference = ('bc int4',), 32, '({} # {})::bit(32)'

    def values(self):
        return [str(self.word() - 2 ** 31)]

    def odd_values(self):
        return [self.rng.choice(['0', '-1', '2147483647'])]

    def operand(self, t):
        return f'{t}.bc'

    def guarded(self, t):
        return f'{t}.grp <> 0', f'({t}.bc / {t}.grp)'


KINDS = [Float8Array, Float8Array, Float4Array, IntegerArray, NumericArray, Columns, WrittenOut, WrittenOut, Bands, Point, Point, Disc, Degrees, Places, Places, ByHand, EarthColumns, Sky, Spoint, Box, Cube, Cube, Geometry, Geometry, Geography, Vector, Vector, Halfvec, Sparsevec,
         BitString, VaryingBits, VectorBits, Int8Bits, Int4Bits]
