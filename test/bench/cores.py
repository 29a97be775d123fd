#!/usr/bin/env python3
"""The cores part of make bench: the CPU engine's joins by the number of threads, written to docs/pictures/cores.csv, of which make
pictures draws a picture.

Run by itself in a folder that test/device/pack made it prints lines to append to that file: so on a machine with more cores
(test/device/run cores)."""
import os
from statistics import median

from common import THREADS, load, measured_by, number, output_of, processor, program, say, table
from figures import read_blocks, replace_lines, text_of

# {case: (program, its arguments, rows, what follows them, the column with the seconds)}
CASES = {
    'range join, 2-D, counted': ('gpujoin_measure', ['output=counts'], 'unif,2', 1000000, '0.003', 5),
    'range join, 2-D, all pairs': ('gpujoin_measure', [], 'unif,2', 1000000, '0.003', 6),
    'range join, 6-D, counted': ('gpujoin_measure', ['output=counts'], 'unif,6', 200000, '0.2', 5),
    '8 nearest, 2-D': ('gpujoin_measure_nearest', ['check=0'], 'unif,2', 1000000, '0,8', 4),
    'DBSCAN, 2-D': ('gpujoin_measure_clusters', [], 'unif,2', 1000000, '0.005,5', 4),
}
MOST_ROWS = 8  # of the table; of more threads each number is twice the one before


def numbers():
    if THREADS <= MOST_ROWS:
        return list(range(1, THREADS + 1))
    return [2 ** i for i in range(THREADS.bit_length()) if 2 ** i < THREADS] + [THREADS]


def seconds_of(case, threads, scale):
    name, arguments, set_of, rows, rest, column = CASES[case]
    line = output_of(program(name), f'threads={threads}', 'rounds=1', *arguments, f'{set_of},{round(rows * scale)},{rest}').splitlines()[-1]
    return float(line.split('|')[column])


def run(rounds, scale, command):
    """A block of the file: a comment, and lines."""
    turns = {}
    for turn in range(rounds):
        for case in CASES:
            for threads in numbers():
                say(f'{case}, {threads} threads, turn {turn + 1}')
                turns.setdefault((case, threads), []).append(seconds_of(case, threads, scale))
    comment = '# ' + measured_by(command, f'medians of {rounds} turns, {load()}')
    return comment, [[f'{processor()}, {THREADS} processors', case, threads, f'{median(turns[case, threads]):.4g}']
                     for case in CASES for threads in numbers()]


def measure(rounds, scale):
    replace_lines('cores', *run(rounds, scale, 'test/bench/run cores'))


def text():
    """All that the file holds, as Markdown."""
    found = ('The CPU engine by the number of threads, from coordinates in memory to the answer there, milliseconds (and how many times as fast as '
             f'one thread): {CASES["range join, 2-D, counted"][3]:,} uniform points of two dimensions within 0.003 of each other, their 8 nearest '
             f'others, their clusters within 0.005, and {CASES["range join, 6-D, counted"][3]:,} of six within 0.2.\n\n'
             '![Threads against the speed of one](pictures/cores.svg)\n\n')
    for comment, lines in read_blocks('cores'):
        seconds = {(case, int(threads)): float(value) for _, case, threads, value in lines}
        rows = [[str(threads)] + [f'{number(seconds[case, threads] * 1e3)} ({seconds[case, 1] / seconds[case, threads]:.1f})' for case in CASES]
                for threads in dict.fromkeys(threads for _, threads in seconds)]
        found += comment.removeprefix('# ') + '.\n\n' + table(['threads', *CASES], rows)
    return found


if __name__ == '__main__':
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
    print(text_of(*run(3, 1, 'test/device/run cores')), end='')
