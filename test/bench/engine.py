"""The engine part of make bench, the CPU engine against libraries that find the same pairs, and the dimensions part, the digits
against scikit-learn."""
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from statistics import median

from common import THREADS, has_module, number, output_of, program, ratio, say, table
from figures import compare
from sample import unpacked

DIGITS = '../shared/data/mnist-t10k-images-idx3-ubyte.gz'
NAMES = {'nanoflann': 'nanoflann', 'rtree': 'Boost R-tree'}


def run_engine(rounds, ionosphere, only):
    """What gpujoin_bench prints: {group: {(set, rows, eps): {entrant: [turn, ...]}}}"""
    command = [program('gpujoin_bench'), '--only', only, '--rounds', str(rounds), '--threads', str(THREADS)]
    if ionosphere:
        command += ['--ionosphere', ionosphere]
    results = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as bench:
        for line in bench.stdout:
            turn = json.loads(line)
            case = (turn['set'], turn['rows'], turn['eps'])
            entrants = results.setdefault(turn['group'], {}).setdefault(case, {})
            turns = entrants.setdefault(turn['entrant'], [])
            turns.append(turn)
            if len(entrants) == 1 and len(turns) == 1:
                say(f'{case[0]}, {case[1]} points, eps {case[2]:g}')
    if bench.returncode:
        sys.exit('gpujoin_bench failed')
    return results


def medians(turns):
    return median(t['total_ms'] for t in turns), median(t['index_ms'] for t in turns)


def case_cells(case, pairs):
    name, rows, eps = case
    return [name, f'{rows:,}', f'{eps:g}', number(pairs / rows)]


def library_table(cases):
    rows = []
    for case, entrants in cases.items():
        own = entrants.pop('gpujoin')
        own_ms, own_index_ms = medians(own)
        row = case_cells(case, own[0]['pairs']) + [f'{number(own_ms)} ({number(own_index_ms)})']
        for name, turns in entrants.items():
            ms, index_ms = medians(turns)
            compare(' '.join(row[:3]), NAMES[name], own_ms, ms)
            row += [f'{number(ms)} ({number(index_ms)})', ratio(ms / own_ms)]
            if turns[0]['pairs'] != own[0]['pairs']:
                row[-1] += f' and {turns[0]["pairs"] - own[0]["pairs"]:+,} pairs'
        rows.append(row)
        details = [turns[0]['detail'] for turns in entrants.values()]
    return (f'Total number of pairs, {THREADS} threads each, milliseconds (of them building the index). '
            f'gpujoin ran on {own[0]["detail"]}; nanoflann is {details[0]}, Boost {details[1]}.\n\n' +
            table(['points', 'number', 'eps', 'neighbours a point', 'gpujoin', 'nanoflann', 'ratio',
                   'Boost R-tree', 'ratio'], rows))


def output_table(cases):
    header = ['points', 'number', 'eps', 'neighbours a point']
    rows = []
    for case, entrants in cases.items():
        pairs = entrants['total'][0]['pairs']
        row = case_cells(case, pairs)
        for name, turns in entrants.items():
            ms = medians(turns)[0]
            row.append(f'{number(ms)} ({number(pairs / ms / 1e3)})')
            if turns[0]['pairs'] != pairs:
                row[-1] += f' and {turns[0]["pairs"] - pairs:+,} pairs'
        rows.append(row)
    return (f'What gpujoin delivers, milliseconds (million pairs a second), {THREADS} threads.\n\n' +
            table(header + list(entrants), rows))


# ---- Many dimensions

def measured(path, *knobs):
    """What gpujoin_measure says of the digits: milliseconds for all pairs, and how many there are."""
    line = output_of(program('gpujoin_measure'), 'rounds=1', 'scalar=float32', f'threads={THREADS}', *knobs,
                     f'{path},784,0,1000').splitlines()[-1]
    cells = [cell.strip() for cell in line.split('|')]
    return {'ms': float(cells[6]) * 1e3, 'pairs': int(cells[4])}


def dimensions_table(rounds):
    """The digits joined by each index, and by scikit-learn where it is installed."""
    if not os.path.exists(DIGITS):
        say(f'{DIGITS} is not there: without the digits')
        return ''
    with tempfile.NamedTemporaryFile('wb', suffix='-ubyte') as file:
        with gzip.open(DIGITS) as packed:
            shutil.copyfileobj(packed, file)
        file.flush()
        entrants = {'gpujoin': lambda: measured(file.name)}
        for index in 'tiles', 'reference_points', 'grid', 'none':
            entrants[f'gpujoin, `index = {index}`'] = lambda index=index: measured(file.name, f'index={index}')
        version = ''
        for scalar in 'float32', 'float64':
            command = [sys.executable, 'test/bench/sklearn_digits.py', file.name, '1000', scalar, str(THREADS)]
            if has_module('sklearn'):
                entrants[f'scikit-learn, {scalar}'] = lambda command=command: json.loads(output_of(*command))
        turns = {name: [] for name in entrants}
        for _ in range(rounds):
            for name, run in entrants.items():
                say(f'Digits, {name}')
                turns[name].append(run())
                version = turns[name][-1].get('version', version)
    own_ms = median(turn['ms'] for turn in turns['gpujoin'])
    rows = []
    for name, results in turns.items():
        ms = median(turn['ms'] for turn in results)
        if name.startswith('scikit-learn'):
            compare('digits ' + name.split(', ')[1], 'scikit-learn', own_ms, ms)
        rows.append([name, f'{results[0]["pairs"]:,}', number(ms), '' if name == 'gpujoin' else ratio(ms / own_ms)])
    return (f'The 10,000 digits, 784 dimensions, all pairs within 1,000; {THREADS} threads, single-precision numbers; '
            f'scikit-learn {version or "is not installed"}, `radius_neighbors` by brute force with the BLAS that NumPy has '
            'here, without distances.\n\n' + table(['', 'pairs', 'ms', 'to gpujoin'], rows))


def tables(rounds, scale):
    """The tables, as Markdown; in a trial of the sample alone."""
    with unpacked() as sample:
        results = run_engine(rounds, sample, '' if scale == 1 else 'ionosphere')
    return library_table(results['libraries']) + output_table(results['outputs'])
