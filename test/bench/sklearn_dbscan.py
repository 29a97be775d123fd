#!/usr/bin/env python3
"""Times scikit-learn's DBSCAN on the points of a CSV file of two columns:

  test/bench/sklearn_dbscan.py FILE EPS MIN_POINTS

Prints a line of JSON: the clusters and the rows in them, milliseconds, and scikit-learn's version."""
import json
import sys
import time

import numpy
import sklearn
from sklearn.cluster import DBSCAN

points = numpy.loadtxt(sys.argv[1], delimiter=',')
start = time.perf_counter()
labels = DBSCAN(eps=float(sys.argv[2]), min_samples=int(sys.argv[3]), n_jobs=-1).fit_predict(points)
ms = (time.perf_counter() - start) * 1e3
print(json.dumps({'result': f'{labels.max() + 1}|{(labels >= 0).sum()}', 'ms': ms, 'version': sklearn.__version__}))
