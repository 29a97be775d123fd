"""Spanning trees by mutual reachability and the clusters in them, by their definitions: Kruskal's tree of all pairs, taken apart from the top."""

import math
import sys


def tree_of(gaps, ids, min_points):
    """(distance, smaller id, larger id, row, row) in order. `gaps`: by (row, other row), those that are finite."""
    rows = range(len(ids))
    core = [0.0] * len(ids)
    if min_points > 1:
        for row in rows:
            near = sorted(gaps[row, other] for other in rows if other != row and (row, other) in gaps)
            core[row] = near[min_points - 2] if len(near) >= min_points - 1 else math.inf
    edges = sorted((max(gap, core[row], core[other]), min(ids[row], ids[other]), max(ids[row], ids[other]), row, other)
                   for (row, other), gap in gaps.items() if row < other)
    root, tree = list(rows), []
    for edge in edges:
        a, b = find(root, edge[3]), find(root, edge[4])
        if a != b and edge[0] <= sys.float_info.max:
            root[a] = b
            tree.append(edge)
    return tree


def find(root, row):
    while root[row] != row:
        row = root[row]
    return row


class Clusters:
    """Of each row its cluster, -1 for noise, or None where two choices are about equally stable."""

    def __init__(self, rows, ids, tree, min_size):
        self.min_size, self.tree = min_size, tree
        self.close = any(0 < edge[0] < 1e-300 for edge in tree)  # whose densities are beyond numbers
        self.parent, self.begin, self.stability, self.chosen, self.left = [-1], [0.0], [0.0], [False], {}
        self.take_apart(set(range(rows)), 0, math.inf)
        self.choose(0)
        first = {}
        for row in sorted(range(rows), key=lambda row: ids[row]):
            chosen, node = -1, self.left[row]
            while node >= 0:
                chosen = node if self.chosen[node] else chosen
                node = self.parent[node]
            self.left[row] = first.setdefault(chosen, len(first)) if chosen >= 0 else -1
        self.of_rows = None if self.close else [self.left[row] for row in range(rows)]

    def take_apart(self, rows, node, cut):
        """Without its edges from a distance on."""
        edges = [edge for edge in self.tree if edge[0] < cut and edge[3] in rows]
        root = {row: row for row in rows}
        for edge in edges:
            root[find(root, edge[3])] = find(root, edge[4])
        parts = {}
        for row in rows:
            parts.setdefault(find(root, row), set()).add(row)
        density = 0.0 if cut == math.inf else 1 / cut if cut >= 1e-300 else math.inf
        large = [part for part in parts.values() if len(part) >= self.min_size]
        for part in parts.values():
            if len(part) < self.min_size:
                for row in part:
                    self.left[row] = node
                    self.stability[node] += density - self.begin[node]
        for part in large:
            inner = node
            if len(large) > 1:
                inner = len(self.parent)
                self.parent.append(node)
                self.begin.append(density)
                self.stability.append(0.0)
                self.chosen.append(False)
                self.stability[node] += len(part) * (density - self.begin[node])
            self.take_apart(part, inner, max(edge[0] for edge in edges if edge[3] in part))

    def choose(self, node):
        within = sum(self.choose(child) for child in range(len(self.parent)) if self.parent[child] == node)
        own = self.stability[node]
        if node == 0:
            return 0
        if node in self.parent and (not own < math.inf or not within < math.inf or abs(own - within) <= 1e-9 * abs(own)):
            self.close = True
        self.chosen[node] = own >= within
        return max(own, within)
