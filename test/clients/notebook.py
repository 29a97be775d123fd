"""docs/tour.ipynb: runs it, and compares what its cells print with what it holds.

  test/clients/notebook.py --write   puts what they print now into it (in a session whose PGHOST and the like lead to a server)"""
import os
import sys

import nbformat
from nbconvert.preprocessors import ExecutePreprocessor

from dbapi import NODE, claim

NOTEBOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../docs/tour.ipynb')
MOST_BYTES = 200_000


def printed(cell):
    """The texts of a cell's outputs; a picture is a text with its size. What is written to one stream may come in pieces."""
    texts, last = [], None
    for output in cell.outputs:
        stream = output.get('name')
        if stream and stream == last:
            texts[-1] += output.text
        else:
            texts.append(output.get('text') or output.get('data', {}).get('text/plain'))
        last = stream
    return texts


os.environ['MPLBACKEND'] = 'module://matplotlib_inline.backend_inline'
before = nbformat.read(NOTEBOOK, 4)
after = nbformat.read(NOTEBOOK, 4)
executor = ExecutePreprocessor(timeout=120, record_timing=False)
try:
    executor.preprocess(after, {'metadata': {'path': os.path.dirname(NOTEBOOK)}})
    claim('the notebook runs', True)
except Exception as error:  # CellExecutionError, or one of a kernel
    claim('the notebook runs', False, error)
    sys.exit()
if '--write' in sys.argv:
    after.metadata = before.metadata
    nbformat.write(after, NOTEBOOK)
    before = after
cells = [(old, new) for old, new in zip(before.cells, after.cells) if new.cell_type == 'code']
for number, (old, new) in enumerate(cells, 1):
    claim(f'cell {number} prints what it shows', printed(old) == printed(new), f'{printed(old)}\nand now\n{printed(new)}')
claim('the node is in a plan', any(NODE in text for _, cell in cells for text in printed(cell)))
pictures = [output for _, cell in cells for output in cell.outputs if 'image/png' in output.get('data', {})]
claim('there are two pictures', len(pictures) == 2, len(pictures))
claim('it is a small file', os.path.getsize(NOTEBOOK) < MOST_BYTES, os.path.getsize(NOTEBOOK))
