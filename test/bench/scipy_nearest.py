#!/usr/bin/env python3
"""Times scipy's cKDTree on random points, uniform or exponential, of which each asks for its k nearest others:

  test/bench/scipy_nearest.py unif|expo DIMENSIONS POINTS K THREADS

Prints a line of JSON: milliseconds for building the tree and asking, and scipy's version."""
import json
import sys
import time

import numpy
import scipy
from scipy.spatial import cKDTree

kind, (dims, count, k, threads) = sys.argv[1], map(int, sys.argv[2:])
random = numpy.random.default_rng(1)
# Of an exponential distribution (lambda 40) the part below 1.
points = random.random((count, dims)) if kind == 'unif' else -numpy.log1p(random.random((count, dims)) * numpy.expm1(-40)) / 40
start = time.perf_counter()
cKDTree(points).query(points, k=k + 1, workers=threads)  # the point itself is the first
print(json.dumps({'ms': (time.perf_counter() - start) * 1e3, 'version': scipy.__version__}))
