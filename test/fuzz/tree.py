"""SQL text as a tree of which parts can be left out, and the search for the smallest text that still shows a
difference. The search knows no SQL: what does not parse any more fails on both sides alike, so it is no difference."""
import time


class Part:
    """Texts and parts, one after the other. `simpler`: lists of pieces that may take their place."""

    def __init__(self, *pieces, simpler=()):
        self.pieces, self.simpler = list(pieces), list(simpler)

    def sql(self, full=False):
        """The text; with `full` without the LIMIT of the whole query."""
        return ''.join(piece.sql(full) if isinstance(piece, Part) else str(piece) for piece in self.pieces)

    def parts(self):
        return [piece for piece in self.pieces if isinstance(piece, Part)]

    def reductions(self):
        """Yields functions; each makes the part simpler and returns one that undoes it."""
        for number in range(len(self.simpler)):
            def replace(number=number):
                before = self.pieces, self.simpler
                self.pieces, self.simpler = list(self.simpler[number]), self.simpler[:number]
                return lambda: vars(self).update(pieces=before[0], simpler=before[1])
            yield replace


class Items(Part):
    """A list any of whose members may be left out."""

    def __init__(self, items, separator=', ', before='', after='', empty=''):
        super().__init__(*items)
        self.separator, self.before, self.after, self.empty = separator, before, after, empty

    def sql(self, full=False):
        texts = [piece.sql(full) if isinstance(piece, Part) else str(piece) for piece in self.pieces]
        texts = [text for text in texts if text]
        return self.before + self.separator.join(texts) + self.after if texts else self.empty

    def reductions(self):
        """The whole, then halves, quarters, ... down to single members, from the end."""
        size = len(self.pieces)
        while size >= 1:
            for start in reversed(range(0, len(self.pieces), size)):
                def drop(start=start, size=size):
                    before = self.pieces
                    self.pieces = before[:start] + before[start + size:]
                    return lambda: setattr(self, 'pieces', before)
                yield drop
            size //= 2


class Limit(Part):
    """LIMIT and OFFSET of the whole query."""

    def sql(self, full=False):
        return '' if full else super().sql()


def walk(part):
    yield part
    for child in part.parts():
        yield from walk(child)


def reduce(root, still_fails, seconds):
    """Simplifies the tree in place as long as still_fails() holds, for that long at most."""
    deadline = time.monotonic() + seconds
    changed = True
    while changed:
        changed = False
        for part in list(walk(root)):
            for simplify in part.reductions():
                if time.monotonic() > deadline:
                    return
                before = root.sql()
                undo = simplify()
                if root.sql() == before:
                    continue
                if still_fails():
                    changed = True
                else:
                    undo()
