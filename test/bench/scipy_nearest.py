#!/usr/bin/env python3
"""Times scipy's cKDTree on uniform random points, of which each asks for its k nearest others:

  test/bench/scipy_nearest.py DIMENSIONS POINTS K THREADS

Prints a line of JSON: milliseconds for building the tree and asking, and scipy's version."""
import json
import sys
import time

import numpy
import scipy
from scipy.spatial import cKDTree

dims, count, k, threads = map(int, sys.argv[1:])
points = numpy.random.default_rng(1).random((count, dims))
start = time.perf_counter()
cKDTree(points).query(points, k=k + 1, workers=threads)  # the point itself is the first
print(json.dumps({'ms': (time.perf_counter() - start) * 1e3, 'version': scipy.__version__}))
