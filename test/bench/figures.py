"""What make pictures draws: docs/pictures/*.csv, measured by the parts of make bench. A file has blocks, each of which begins with
a comment that says where its lines come from. The first column says what a line belongs to; who measures that again replaces
its lines."""
import csv
import os

from common import say

COLUMNS = {'rows': ['line', 'rows', 'seconds', 'pairs'], 'eps': ['line', 'eps', 'seconds', 'pairs'],
           'first': ['line', 'rows', 'seconds', 'pairs'], 'cores': ['machine', 'case', 'threads', 'seconds'],
           'peers': ['part', 'case', 'peer', 'seconds of gpujoin', 'seconds of the peer']}
folder = 'docs/pictures'
compared = []  # lines of peers.csv without the part, of the part that runs


def path_of(name):
    return f'{folder}/{name}.csv'


def read_blocks(name):
    """[(comment, [line, ...]), ...], none where nothing was measured."""
    blocks = []
    if os.path.exists(path_of(name)):
        with open(path_of(name), newline='') as file:
            for line in file:
                if line.startswith('#'):
                    blocks.append((line.rstrip(), []))
                elif line.strip() and blocks:
                    blocks[-1][1].extend(csv.reader([line]))
    return blocks


def lines_of(name):
    return [line for _, lines in read_blocks(name) for line in lines]


def text_of(comment, lines):
    return comment + '\n' + ''.join(','.join([f'"{line[0]}"', *(f'"{value}"' if ',' in str(value) else str(value) for value in line[1:])]) +
                                    '\n' for line in lines)


def replace_lines(name, comment, lines):
    """Writes the block, instead of what the file has of the same things."""
    measured = {line[0] for line in lines}
    blocks = [(c, [line for line in others if line[0] not in measured]) for c, others in read_blocks(name)]
    blocks = [block for block in blocks if block[1]] + [(comment, lines)]
    os.makedirs(folder, exist_ok=True)
    with open(path_of(name), 'w') as file:
        file.write(''.join(text_of(*block) for block in blocks))
    say(f'Wrote {path_of(name)}')


def compare(case, peer, own_ms, peer_ms):
    """Keeps a line of peers.csv."""
    compared.append([case, peer, f'{own_ms / 1e3:.4g}', f'{peer_ms / 1e3:.4g}'])


def by_line(name):
    """A table of what the file has, as [titles, rows]: a row for each value of the second column, the third by line."""
    lines = lines_of(name)
    names = list(dict.fromkeys(line[0] for line in lines))
    cells = {(line[0], float(line[1])): line[2] for line in lines}
    values = sorted({float(line[1]) for line in lines})
    return [COLUMNS[name][1], *names], [[f'{value:,g}' if value < 1 else f'{value:,.15g}'] + [cells.get((line, value), '') for line in names]
                                        for value in values]


def origins(name):
    """Which lines were measured where, as a list in Markdown."""
    return ''.join(f'- {"; ".join(dict.fromkeys(line[0] for line in lines))}: {comment.removeprefix("# ")}.\n'
                   for comment, lines in read_blocks(name)) + '\n'


def peers_text():
    """The section that shows the picture of all parts."""
    return '### All parts in one picture\n\n![How many times as long others take](pictures/peers.svg)\n\n' + origins('peers')
