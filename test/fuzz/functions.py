"""Calls of gpujoin's functions, compared with what Python computes of the same rows, pair by pair: IEEE double
precision in column order, as the definition has it."""
import math
import sys
from collections import Counter

import spanning
from compare import TIMEOUT, Difference, is_slow_by_settings
from pq import CONNECTION_LOST, HANGS
from query import Query
from tree import Part

NO_NUMBER = float('nan')
UNSUPPORTED = '0A000'
CLUSTERS = ('gpu_dbscan', 'gpu_components', 'gpu_cluster_dbscan')
DIVIDED = CLUSTERS + ('gpu_dedup',)  # have partitions
NUMBERS = CLUSTERS + ('gpu_density',)  # a number for each row
PARTITIONS = {'grp': 'grp', 't': 't', 'n': 'trim_scale(n)', 's': 's + 0'}  # by the column: a text that equal values share
TREES = ('gpu_spanning_tree', 'gpu_hdbscan')


def limits_of(function):
    """Under so many kB a function of a few hundred rows goes in parts; None: not for sure."""
    return [12, 12, 14, 16, 20] if function in CLUSTERS else [60, 80, 100, 140] if function in TREES else None


BITS = {'bs': 'bs', 'bv': 'bv', 'bi': 'bi::bit(64)', 'bc': 'bc::bit(32)'}  # as bit strings, by the column


RADIUS = 6371008.771415059


def turn(degrees):
    """Sine and cosine."""
    quarters = round(degrees / 90)
    rest = (degrees - 90 * quarters) * (math.pi / 180)
    sine, cosine = math.sin(rest), math.cos(rest)
    return [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)][quarters % 4]


def place(longitude, latitude):
    if not (math.isfinite(longitude) and math.isfinite(latitude)):
        return [NO_NUMBER] * 3
    (east, along), (north, out) = turn(longitude), turn(latitude)
    return [RADIUS * (out * along), RADIUS * (out * east), RADIUS * north]


def are_degrees(numbers):
    return len(numbers) == 2 and all(not math.isfinite(x) or abs(x) <= most for x, most in zip(numbers, (360, 90)))


def arcsine(x):
    total = 1.0
    for n in range(26, 0, -1):
        total = 1 + ((2.0 * n - 1) * (2.0 * n - 1)) / (2.0 * n * (2.0 * n + 1)) * (x * x) * total
    return x * total


def arc(chord):
    half = chord / (2 * RADIUS)
    if not half > 0.5:
        return 2 * RADIUS * arcsine(half)
    rest = math.sqrt((1 - half) / 2) if half < 1 else 0.0
    return 2 * RADIUS * max(math.pi / 2 - 2 * arcsine(rest), arcsine(0.5))


class Arc(float):
    """An arc, in the order of the straight lines below arcs: of two lines that differ the arcs may print alike."""

    def __new__(cls, line):
        self = super().__new__(cls, arc(line))
        self.line = line
        return self

    def __eq__(self, other):
        return self.line == other.line if isinstance(other, Arc) else float(self) == other

    def __lt__(self, other):
        return self.line < other.line if isinstance(other, Arc) else float(self) < other

    def __gt__(self, other):
        return self.line > other.line if isinstance(other, Arc) else float(self) > other

    __hash__ = float.__hash__


def without_lines(row):
    """The row with arcs as plain numbers, and neighbours in their order: two arcs of different lines may be equal."""
    return tuple(float(value) if isinstance(value, Arc) else
                 tuple(sorted((float(apart), other) for apart, other in value)) if isinstance(value, tuple) else value for value in row)


def distance(metric, a, b):
    if metric == 'haversine':
        return Arc(distance('l2', place(*a), place(*b)))
    if metric == 'cosine':
        dot, aa, bb = sum_up(x * y for x, y in zip(a, b)), sum_up(x * x for x in a), sum_up(y * y for y in b)
        if not (0 < aa < math.inf and 0 < bb < math.inf):
            return NO_NUMBER
        cosine = dot / (math.sqrt(aa) * math.sqrt(bb))
        return 1 - (cosine if math.isnan(cosine) else max(-1.0, min(1.0, cosine)))
    if metric == 'hamming':
        return float(sum(x != y for x, y in zip(a, b)))
    if metric == 'jaccard':
        both = sum(x and y for x, y in zip(a, b))
        return 1 - both / sum(x or y for x, y in zip(a, b)) if both else 1.0
    gaps = [abs(x - y) for x, y in zip(a, b)]
    if metric == 'l2':
        return math.sqrt(sum_up(gap * gap for gap in gaps))
    if metric == 'l1':
        return sum_up(gaps)
    return NO_NUMBER if any(math.isnan(gap) for gap in gaps) else max(gaps)


def sum_up(numbers):
    total = 0.0  # sum() of newer Pythons compensates
    for number in numbers:
        total += number
    return total


class Call(Part):
    """A SELECT from a function; expected(connection) is its definition. Takes the place of a Query in a Case."""
    mode, keys, wrapper = 'bag', 0, 'plain'

    def text(self, full=False):
        return super().sql(full)

    def sql(self, full=False):
        return self.text() + ';\n'

    def statements(self, full=False):
        return [self.text()]

    def explained(self):
        return ['EXPLAIN (COSTS OFF) ' + self.text()]

    def read(self, connection, tables, columns):
        """(id, further columns) of the rows of each table, or a message why the call is refused."""
        sides = []
        for table in tables:
            result = connection.run(f'SELECT id, {columns} FROM {table}')
            if result.state:
                return result.state
            sides.append(result.rows)
        return sides


def numbers_of(vector):
    """The elements of an array, which may have a lower bound other than 1."""
    elements = vector.split('=')[-1].strip('{}')
    return [float(element) for element in elements.split(',')] if elements else []


class PointCall(Call):
    """Pairs of points within a distance."""

    def __init__(self, rng, schema):
        self.rng = rng
        kinds = [kind for kind in schema.kinds if kind.columns[0].split()[0] in ('f8', 'f4', 'p', *BITS)]
        self.kind = rng.choice(kinds) if kinds else None
        self.left, self.right = (rng.choice(small(schema)).name for _ in range(2))
        self.function = rng.choice(['gpu_selfjoin', 'gpu_selfjoin_distance', 'gpu_join', 'gpu_join_distance', 'gpu_neighbors',
                                    'gpu_topk_join', 'gpu_knn_join', 'gpu_dbscan', 'gpu_components', 'gpu_cluster_dbscan', 'gpu_density', 'gpu_dedup', 'gpu_dedup',
                                    'gpu_spanning_tree', 'gpu_hdbscan'])
        bits = self.kind is not None and self.kind.columns[0].split()[0] in BITS
        if bits and self.function in ('gpu_cluster_dbscan',) + TREES:
            self.function = 'gpu_selfjoin_distance'  # these know no bits
        if self.function in ('gpu_selfjoin', 'gpu_selfjoin_distance', 'gpu_neighbors', 'gpu_dedup') + TREES + NUMBERS:
            if self.function in CLUSTERS and rng.random() < 0.5:  # rows that a low limit has join in parts
                self.left = max(schema.tables, key=lambda table: len(table.rows.pieces)).name
            self.right = self.left
        self.metric = rng.choice(['l2', 'l2', 'l1', 'linf', 'cosine', 'haversine'])
        self.eps = rng.choice([schema.numbers.radius(), schema.numbers.radius(), 0.0, 1e-15, 0.5])
        if self.metric == 'haversine':
            self.eps = min(self.eps * 100000, 1e300)
        if bits:
            self.metric, self.eps = rng.choice([('hamming', rng.choice([0.0, 1.0, 3.0, 6.0, 10.5, 30.0, 64.0])),
                                                ('jaccard', rng.choice([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.8, 1.0, 3.0]))])
        self.pairs = rng.choice(['all', 'distinct'] + ['unordered'] * (self.function not in ('gpu_neighbors', 'gpu_knn_join') + NUMBERS))
        self.number = rng.choice(['s', 'id', 'id', 'grp'])
        self.score, self.best = rng.choice(['sum', 'product', 'min', 'max', 'distance']), rng.choice(['highest', 'lowest'])
        self.count = rng.choice([1, 2, 5, 50])
        self.columns = self.kind.columns[0].split()[0] if self.kind else rng.choice(['x,y', 'x', 'z,x,y'])
        self.anywhere = rng.random() < 0.5
        self.ranked, self.ties = rng.random() < 0.7, False
        self.min_points = rng.choice([1, 2, 3, 5]) if self.function in ('gpu_dbscan', 'gpu_cluster_dbscan') + TREES else 1
        self.min_size = rng.choice([2, 3, 5])
        self.partition = rng.choice([None, None, *PARTITIONS]) if self.function in DIVIDED else None
        self.partitions, self.skipped = [], []
        super().__init__(self.call())

    def window(self):
        value = f"ARRAY[{self.columns}]" if ',' in self.columns or self.columns == 'x' else self.columns
        over = f"PARTITION BY {self.partition} ORDER BY id" if self.partition else 'ORDER BY id'
        return (f"SELECT id, gpu_cluster_dbscan({value}, '{self.eps!r}', {self.min_points}, '{self.metric}') OVER ({over}) "
                f"FROM {self.left} WHERE id IS NOT NULL")

    def call(self):
        if self.function == 'gpu_cluster_dbscan':
            return self.window()
        sides = [f"'{self.left}'"]
        named = [f"metric => '{self.metric}'"]
        two = self.function in ('gpu_join', 'gpu_join_distance', 'gpu_topk_join', 'gpu_knn_join')
        if two:
            sides.append(f"'{self.right}'")
        for prefix in ('left_', 'right_') if two else ('',):
            named += [f"{prefix}vector_columns => '{{{self.columns}}}'", f"{prefix}id_column => 'id'"]
        if self.function == 'gpu_knn_join':
            sides += [str(self.count), 'NULL' if self.anywhere else f"'{self.eps!r}'"]
            named.append(f"pairs => '{self.pairs}'")
            return f"SELECT * FROM gpu_knn_join({', '.join(sides + named)})"
        if self.function in TREES:
            named += [f'min_points => {self.min_points}'] + [f'min_cluster_size => {self.min_size}'] * (self.function == 'gpu_hdbscan')
            return f"SELECT * FROM {self.function}({', '.join(sides + named)})"
        sides.append(f"'{self.eps!r}'")
        if self.function == 'gpu_topk_join':
            sides.append(str(self.count))
            named += [f"left_score_column => '{self.number}'", f"right_score_column => '{self.number}'", f"score => '{self.score}'", f"best => '{self.best}'"]
        elif self.function == 'gpu_dbscan':
            sides.append(str(self.min_points))
        elif self.function == 'gpu_dedup':
            named += [f"keep_column => '{self.number}'"] * self.ranked + [f"keep => '{self.best}'"]
        if self.partition:
            named.append(f"partition_column => '{self.partition}'")
        if not two and self.function not in DIVIDED:
            named.append(f"pairs => '{self.pairs}'")
        return f"SELECT * FROM {self.function}({', '.join(sides + named)})"

    # ---- The definition

    def points(self, connection, table):
        """(id, coordinates, score) of the rows that have a vector, or a message why such rows are refused."""
        if self.metric == 'haversine' and self.columns in ('x', 'z,x,y') and self.function != 'gpu_cluster_dbscan':
            return 'no degrees'
        if self.metric == 'haversine' and self.function == 'gpu_hdbscan':
            return 'lengths of lines'
        if ',' in self.columns or self.columns == 'x':
            value = f"CASE WHEN {' OR '.join(c + ' IS NULL' for c in self.columns.split(','))} THEN NULL ELSE ARRAY[{self.columns}] END"
        else:
            value = f'string_to_array({BITS[self.columns]}::text, NULL)::float8[]' if self.columns in BITS else {'p': 'CASE WHEN p IS NOT NULL THEN ARRAY[p[0], p[1]] END'}.get(self.columns, self.columns + '::float8[]')
        sides = self.read(connection, [table], f"{value}, {self.number}, {PARTITIONS.get(self.partition, 'NULL')}")
        if isinstance(sides, str):
            return sides
        found, self.partitions, self.skipped = [], [], []
        for identity, vector, score, part in sides[0]:
            if identity is None and self.function == 'gpu_cluster_dbscan':
                continue
            if identity is None:
                return 'NULL id'
            if vector is None or (score is None and self.needs_number()) or 'NULL' in vector:
                self.skipped.append(int(identity))
                continue
            if vector == '{}':
                return 'odd array'
            if self.metric == 'haversine' and not are_degrees(numbers_of(vector)):
                return 'no degrees'
            self.partitions.append(part)
            found.append((identity, numbers_of(vector), None if score is None else float(score)))
        return found

    def needs_number(self):
        return self.function == 'gpu_topk_join' and self.score != 'distance' or self.function == 'gpu_dedup' and self.ranked

    def expected(self, connection):
        """The rows as text, or a message why the call is refused."""
        left = self.points(connection, self.left)
        right = left if self.left == self.right else self.points(connection, self.right)
        for side in (left, right):
            if isinstance(side, str):
                return side
        parts = self.partitions if self.function in DIVIDED else [None] * len(left)
        for part in set(parts) if self.function == 'gpu_cluster_dbscan' else (None,):
            some = [row for row, its in zip(left, parts) if its == part or self.function != 'gpu_cluster_dbscan']
            if len({len(vector) for _, vector, _ in some + (right if self.left != self.right else [])}) > 1:
                return 'dimensions'
        pairs = []
        for number, (id1, a, s1) in enumerate(left):
            for other, (id2, b, s2) in enumerate(right):
                if self.function in DIVIDED and parts[number] != parts[other]:
                    continue
                gap = distance(self.metric, a, b)
                if gap <= (sys.float_info.max if self.is_anywhere() else self.eps):
                    pairs.append((number, other, int(id1), int(id2), gap, s1, s2))
        return self.rows(pairs, left, right)

    def is_anywhere(self):
        return self.function == 'gpu_knn_join' and self.anywhere or self.function in TREES

    def nearest_rows(self, pairs):
        found = {}
        for number, other, id1, id2, gap, _, _ in pairs:
            if self.pairs == 'all' or self.left != self.right or number != other:
                found.setdefault(number, []).append((gap, id2, id1))
        return [(id1, id2, gap, rank) for near in found.values()
                for rank, (gap, id2, id1) in enumerate(sorted(near)[:self.count], 1)]

    def rows(self, pairs, left, right):
        if self.function == 'gpu_knn_join':
            return self.nearest_rows(pairs)
        if self.function == 'gpu_topk_join':
            return self.best_rows(pairs, left, right)
        if self.function in CLUSTERS:
            return self.cluster_rows(pairs, left)
        if self.function == 'gpu_dedup':
            return self.duplicate_rows(pairs, left)
        if self.function in TREES:
            return self.tree_rows(pairs, left)
        if self.function in ('gpu_join', 'gpu_join_distance'):
            chosen = pairs
        elif self.pairs == 'all':
            chosen = pairs
        elif self.pairs == 'distinct':
            chosen = [pair for pair in pairs if pair[0] != pair[1]]
        else:
            chosen = [pair for pair in pairs if pair[2] < pair[3] or (pair[2] == pair[3] and pair[0] < pair[1])]
        if self.function == 'gpu_neighbors':
            found = {number: [] for number in range(len(left))}
            for pair in chosen:
                found[pair[0]].append((pair[4], pair[3]))
            return [(int(left[number][0]), tuple(sorted(near))) for number, near in found.items()]
        if self.function == 'gpu_density':
            counts = Counter(pair[0] for pair in chosen)
            return [(int(row[0]), counts[number]) for number, row in enumerate(left)]
        width = 5 if self.function.endswith('distance') else 4
        return [pair[2:width] for pair in chosen]

    def duplicate_rows(self, pairs, left):
        if self.ranked and any(math.isnan(score) or math.isinf(score) for _, _, score in left):
            return 'score'
        sign = -1 if self.best == 'highest' else 1
        ranks = {number: (sign * row[2] if self.ranked else 0, int(row[0]), number) for number, row in enumerate(left)}
        self.ties = len({rank[:2] for rank in ranks.values()}) < len(ranks)
        near = {number: [] for number in ranks}
        for number, other, _, id2, gap, _, _ in pairs:
            if ranks[other] < ranks[number]:
                near[number].append((gap, id2, other))
        stays, found = set(), []
        for number in sorted(ranks, key=ranks.get):
            kept = min((pair for pair in near[number] if pair[2] in stays), default=None)
            if kept:
                found.append((int(left[number][0]), kept[1], kept[0]))
            else:
                stays.add(number)
        # rows of one rank and id come in the order in which they are read
        return [] if self.ties else found

    def tree_rows(self, pairs, left):
        ids = [int(row[0]) for row in left]
        self.repeat = len(set(ids)) < len(ids)
        tree = spanning.tree_of({pair[:2]: pair[4] for pair in pairs}, ids, self.min_points)
        if self.function == 'gpu_spanning_tree':
            return [(gap,) if self.repeat else (id1, id2, gap) for gap, id1, id2, _, _ in tree]
        clusters = spanning.Clusters(len(ids), ids, tree, self.min_size).of_rows
        self.repeat = self.repeat or clusters is None
        return [(number,) if self.repeat else (number, clusters[row]) for row, number in enumerate(ids)]

    def parsed_tree_rows(self, rows):
        if self.function == 'gpu_spanning_tree':
            return [(float(row[2]),) if self.repeat else (int(row[0]), int(row[1]), float(row[2])) for row in rows]
        return [(int(row[0]),) if self.repeat else (int(row[0]), -1 if row[1] is None else int(row[1])) for row in rows]

    def cluster_rows(self, pairs, left):
        near = {number: [] for number in range(len(left))}
        for number, other, _, id2, gap, _, _ in pairs:
            if number != other:
                near[number].append((gap, id2, other))
        core = {number for number, found in near.items() if len(found) + 1 >= self.min_points}
        group = {}
        for start in core:
            todo = [] if start in group else [start]
            while todo:
                number = todo.pop()
                if number not in group:
                    group[number] = start
                    todo += [other for _, _, other in near[number] if other in core]
        for number in set(near) - core:
            cores = [neighbor for neighbor in near[number] if neighbor[2] in core]
            if cores:
                group[number] = group[min(cores)[2]]
        first = {}
        for number, root in group.items():
            first[root] = min(first.get(root, math.inf), int(left[number][0]))
        clusters, sizes = {}, Counter()
        for root in sorted(first, key=first.get):
            clusters[root] = sizes[self.partitions[root]]
            sizes[self.partitions[root]] += 1
        rows = [(int(row[0]), clusters.get(group.get(number), -1), 'core' if number in core else 'border' if number in group else 'noise')
                for number, row in enumerate(left)]
        if self.function == 'gpu_cluster_dbscan':
            rows = [row[:2] for row in rows] + [(number, -1) for number in self.skipped]
        return self.without_choices(rows)

    def without_choices(self, rows):
        """Clusters as the function returns them; where ids repeat, what does not depend on them."""
        repeat = len({row[0] for row in rows}) < len(rows)
        if self.function in ('gpu_components', 'gpu_cluster_dbscan'):
            return [row[:1] if repeat else row[:2] for row in rows]
        return [(row[0], row[2]) if repeat else row for row in rows]

    def best_rows(self, pairs, left, right):
        combine = {'sum': lambda x, y: x + y, 'product': lambda x, y: x * y, 'min': min, 'max': max}.get(self.score)
        if combine:
            scores = [score for _, _, score in left + right if score is not None]
            if any(math.isnan(score) or math.isinf(score) for score in scores):
                return 'score'
            pairs = [pair for pair in pairs if pair[5] is not None and pair[6] is not None]
        if self.left == self.right:
            pairs = [pair for pair in pairs if pair[2] < pair[3] or (pair[2] == pair[3] and pair[0] < pair[1])]
        rows = [(pair[2], pair[3], combine(pair[5], pair[6]) if combine else pair[4]) for pair in pairs]
        sign = -1 if self.best == 'highest' else 1
        return sorted(rows, key=lambda row: (sign * row[2], row[0], row[1]))[:self.count]


    def parse(self, rows):
        """Rows of the server as expected() has them."""
        if self.function in CLUSTERS:
            return self.without_choices([(int(row[0]), -1 if row[1] is None else int(row[1])) + tuple(row[2:]) for row in rows])
        if self.function == 'gpu_dedup' and self.ties:
            return []
        if self.function in TREES:
            return self.parsed_tree_rows(rows)
        if self.function != 'gpu_neighbors':
            return [(int(row[0]), int(row[1])) + tuple(float(value) for value in row[2:]) for row in rows]
        return [(int(row[0]), tuple(sorted(zip(numbers_of(row[2]), map(int, numbers_of(row[1])))))) for row in rows]


MOST_BOX_DIMENSIONS = 8
CORNERS = {  # low and high corner, by the column
    'bx': 'ARRAY[(bx[1])[0], (bx[1])[1]], ARRAY[(bx[0])[0], (bx[0])[1]]',
    'c': 'ARRAY(SELECT least(cube_ll_coord(c, i), cube_ur_coord(c, i)) FROM generate_series(1, cube_dim(c)) i), '
         'ARRAY(SELECT greatest(cube_ll_coord(c, i), cube_ur_coord(c, i)) FROM generate_series(1, cube_dim(c)) i)',
    'g': 'ARRAY[ST_XMin(g), ST_YMin(g)], ARRAY[ST_XMax(g), ST_YMax(g)]'}


class BoxCall(Call):
    """Pairs of boxes that intersect, or are within a distance."""

    def __init__(self, rng, schema, column):
        self.column = column
        self.left, self.right = (rng.choice(small(schema)).name for _ in range(2))
        self.metric, self.eps = rng.choice(['l2', 'l1', 'linf']), rng.choice([0, 0, schema.numbers.radius()])
        self.pairs = rng.choice(['all', 'distinct', 'unordered']) if self.left == self.right else 'all'
        named = ''.join(f", {side}_box_columns => '{{{column}}}', {side}_id_column => 'id'" for side in ('left', 'right'))
        super().__init__(f"SELECT * FROM gpu_box_join('{self.left}', '{self.right}', '{self.eps!r}'{named}, "
                         f"metric => '{self.metric}', pairs => '{self.pairs}')")

    def expected(self, connection):
        sides = self.read(connection, [self.left, self.right], f'{CORNERS[self.column]}, {self.column} IS NULL')
        if isinstance(sides, str):
            return sides
        if any(row[0] is None for side in sides for row in side):
            return 'NULL id'
        boxes = [[(identity, numbers_of(low), numbers_of(high)) for identity, low, high, is_null in side
                  if is_null == 'f' and 'NULL' not in low] for side in sides]
        dimensions = {len(low) for side in boxes for _, low, _ in side}
        if len(dimensions) > 1 or not dimensions <= set(range(1, MOST_BOX_DIMENSIONS + 1)):
            return 'dimensions'
        found = []
        for number, (id1, low1, high1) in enumerate(boxes[0]):
            for other, (id2, low2, high2) in enumerate(boxes[1]):
                gaps = [0.0 if l1 <= h2 and l2 <= h1 else max(l1 - h2, l2 - h1, key=lambda gap: (math.isnan(gap), gap))
                        for l1, h1, l2, h2 in zip(low1, high1, low2, high2)]
                # with an eps of 0 bounds are compared: gaps whose squares underflow are still gaps
                if distance('linf' if self.eps == 0 else self.metric, gaps, [0.0] * len(gaps)) <= self.eps:
                    id1, id2 = int(id1), int(id2)
                    if self.pairs == 'all' or (self.pairs == 'distinct' and number != other) or \
                            (self.pairs == 'unordered' and (id1 < id2 or (id1 == id2 and number < other))):
                        found.append((id1, id2))
        return found

    def parse(self, rows):
        return [(int(row[0]), int(row[1])) for row in rows]


class CellCall(Call):
    """Pairs of points within a distance, by a join on equal cells: each row in its own with rows in all cells of their halos."""

    def __init__(self, rng, schema):
        self.left, self.right = (rng.choice(small(schema)).name for _ in range(2))
        self.metric, self.eps = rng.choice(['l2', 'l1', 'linf']), min(schema.numbers.radius(), 1e300)
        width = max(self.eps, 1e-150) * rng.choice([0.3, 1.0, 3.0, 1e3])
        dimensions = rng.choice([1, 2])
        a, b = (f"(SELECT id, v, {cells} AS cell FROM (SELECT id, ARRAY[x, y]::float8[] AS v FROM {table} WHERE id IS NOT NULL) t)"
                for table, cells in ((self.left, f"gpu_cell(v, '{width!r}', {dimensions})"),
                                     (self.right, f"unnest(gpu_halo(v, '{width!r}', '{self.eps!r}', {dimensions}))")))
        super().__init__(f"SELECT a.id, b.id FROM {a} a JOIN {b} b ON a.cell = b.cell AND gpu_within(a.v, b.v, '{self.eps!r}', '{self.metric}')")

    def expected(self, connection):
        sides = self.read(connection, [self.left, self.right], 'ARRAY[x, y]::float8[]')
        if isinstance(sides, str):
            return sides
        points = [[(int(identity), numbers_of(v)) for identity, v in side if identity is not None and 'NULL' not in v] for side in sides]
        return [(id1, id2) for id1, a in points[0] for id2, b in points[1] if distance(self.metric, a, b) <= self.eps]

    def parse(self, rows):
        return [(int(row[0]), int(row[1])) for row in rows]


class PairGroupsCall(Call):
    """The groups that pairs of ids connect."""

    def __init__(self, rng, schema):
        left, right = (rng.choice(small(schema)).name for _ in range(2))
        self.pairs = (f"SELECT a.id::bigint AS id1, b.id::bigint AS id2 FROM {left} a, {right} b "
                      f"WHERE abs(a.x - b.y) <= '{schema.numbers.radius()!r}'{rng.choice(['', ' AND a.id IS NOT NULL AND b.id IS NOT NULL'])}")
        super().__init__(f"SELECT c.* FROM (SELECT array_agg(id1) AS a, array_agg(id2) AS b FROM ({self.pairs}) p) s, gpu_components(s.a, s.b) c")

    def expected(self, connection):
        result = connection.run(self.pairs)
        if result.state:
            return result.state
        if any(identity is None for row in result.rows for identity in row):
            return 'NULL id'
        group = {}
        for a, b in ((int(a), int(b)) for a, b in result.rows):
            one, other = group.setdefault(a, {a}), group.setdefault(b, {b})
            if one is not other:
                one |= other
                group.update({member: one for member in other})
        numbers = {least: number for number, least in enumerate(sorted({min(members) for members in group.values()}))}
        return [(member, numbers[min(members)]) for member, members in group.items()]

    def parse(self, rows):
        return [(int(row[0]), int(row[1])) for row in rows]


def small(schema):
    """Tables whose pairs Python can look at."""
    return [table for table in schema.tables if len(table.rows.pieces) <= 80]


def random_call(rng, schema):
    """A call, or another query where all tables are too large."""
    if not small(schema):
        return Query(rng, schema)
    if rng.random() < 0.2:
        return CellCall(rng, schema)
    if rng.random() < 0.1:
        return PairGroupsCall(rng, schema)
    columns = [kind.columns[0].split()[0] for kind in schema.kinds]
    boxes = [column for column in columns if column in CORNERS]
    return BoxCall(rng, schema, rng.choice(boxes)) if boxes and rng.random() < 0.6 else PointCall(rng, schema)


def is_for_cpu(connection, outcome):
    """Whether the CUDA engine, the only one of the session, has no such join, which a function then refuses."""
    return ('gpujoin.engine=cuda' in connection.parameters and outcome.state == UNSUPPORTED
            and outcome.message.startswith(('the device ', 'the CUDA engine ')))


def compare_call(connection, case, run, counts):
    """With the node, without it, and the definition."""
    call = case.query
    found, without = run(connection, case, True), run(connection, case, False)
    if found.state == CONNECTION_LOST or found.state == HANGS or (found.state or '').startswith('XX'):
        return Difference(f'function error {found.state}', found.message)
    if TIMEOUT in (found.state, without.state) and is_slow_by_settings(connection, case):
        counts['slow by its settings'] += 1
        return None
    if is_for_cpu(connection, found) and is_for_cpu(connection, without):
        counts['joins for the CPU'] += 1
        return None
    if found.state != without.state:
        return Difference('function', f'{found.state} {found.message}; without the node: {without.state} {without.message}')
    if found.state == '53400' and 'memory_limit' in case.settings.sql():
        counts['calls beyond their memory'] += 1
        return None
    expected = call.expected(connection)
    if isinstance(expected, str) or found.state:
        counts['calls refused'] += 1
        if isinstance(expected, str) == bool(found.state):
            return None
        return Difference('function', f'{found.state or "no error"} {found.message}; the definition: {str(expected)[:80]}')
    expected = Counter(map(without_lines, expected))
    for rows in (found.rows[0], without.rows[0]):
        rows = Counter(call.parse(rows))
        if rows != expected:
            return Difference('function', f'{sum(rows.values())} rows, {sum(expected.values())} by the definition; only found: '
                              f'{list((rows - expected).items())[:3]}, missing: {list((expected - rows).items())[:3]}')
    return None
