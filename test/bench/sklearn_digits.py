#!/usr/bin/env python3
"""Times scikit-learn's radius_neighbors on the images of an IDX file, as bytes become numbers of the given type:

  test/bench/sklearn_digits.py FILE RADIUS TYPE THREADS

Prints a line of JSON: milliseconds of a query for all points, fitting included, and the ordered pairs found."""
import json
import os
import sys
import time

path, radius, scalar, threads = sys.argv[1], float(sys.argv[2]), sys.argv[3], sys.argv[4]
os.environ['OPENBLAS_NUM_THREADS'] = os.environ['OMP_NUM_THREADS'] = threads

import numpy  # noqa: E402  (after the number of threads is set)
import sklearn  # noqa: E402
from sklearn.neighbors import NearestNeighbors  # noqa: E402

points = numpy.fromfile(path, numpy.uint8)[16:].reshape(-1, 784).astype(scalar)
model = NearestNeighbors(radius=radius, algorithm='brute', n_jobs=int(threads))
model.fit(points[:100]).radius_neighbors(points[:100], return_distance=False)  # warms up
start = time.perf_counter()
found = model.fit(points).radius_neighbors(points, return_distance=False)
print(json.dumps({'ms': (time.perf_counter() - start) * 1e3, 'pairs': sum(map(len, found)),
                  'version': sklearn.__version__}))
