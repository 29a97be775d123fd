"""The neighbors part of make bench: the k nearest of each point by the CPU engine and by scipy's k-d tree."""
import itertools
import json
import sys
from statistics import median

from common import THREADS, has_module, number, output_of, program, ratio, say, table
from figures import compare

CASES = [(2, 1000000, 1), (2, 1000000, 8), (2, 1000000, 64), (3, 500000, 1), (3, 500000, 8), (6, 200000, 8)]
SETS = {'unif': 'uniform', 'expo': 'exponential'}


def own_turn(case):
    kind, dims, count, k = case
    line = output_of(program('gpujoin_measure_nearest'), f'threads={THREADS}', 'rounds=1', 'check=0', f'{kind},{dims},{count},0,{k}')
    return {'ms': float(line.splitlines()[-1].split('|')[4]) * 1e3}


def scipy_turn(case):
    return json.loads(output_of(sys.executable, 'test/bench/scipy_nearest.py', *map(str, case), str(THREADS)))


def nearest_table(rounds, scale):
    """The table, as Markdown."""
    version, rows = '', []
    for kind, (dims, count, k) in itertools.product(SETS, CASES):
        case = kind, dims, count, k = kind, dims, round(count * scale), k
        say(f'The {k} nearest of {count:,} {SETS[kind]} points in {dims} dimensions')
        own, others = [], []
        for _ in range(rounds):
            own.append(own_turn(case)['ms'])
            if has_module('scipy'):
                turn = scipy_turn(case)
                others.append(turn['ms'])
                version = turn['version']
        if others:
            compare(f'{k} nearest of {count:,} {SETS[kind]}, {dims}-D', 'scipy cKDTree', median(own), median(others))
        row = [f'{SETS[kind]}, {dims} dimensions', f'{count:,}', str(k), number(median(own))]
        rows.append(row + ([number(median(others)), ratio(median(others) / median(own))] if others else ['', '']))
    return (f'The k nearest others of each of so many random points, uniform or exponential (lambda 40, cut at 1), index included, {THREADS} threads '
            f'each; scipy {version or "is not installed"}, cKDTree, has other such points.\n\n' +
            table(['points', 'number', 'k', 'gpujoin, ms', 'scipy, ms', 'ratio'], rows))
