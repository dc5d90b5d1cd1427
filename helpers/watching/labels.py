"""Who took some bytes: a line, two lines that share them, or nobody who is known; it may become known later."""


class Label:
    """Who took some bytes, which may become known only later: a line, two lines, or None as long as nobody is known.
    `otherwise` is the label that counts if it never does; `either` are labels of which one is right."""

    def __init__(self, line=None, otherwise=None, either=()):
        self._line, self._otherwise, self._either = line, otherwise, either

    @property
    def line(self):
        if self._either:
            return both(*(label.line for label in self._either))
        return self._otherwise.line if self._line is None and self._otherwise else self._line

    @line.setter
    def line(self, line):
        self._line = line

    @property
    def root(self):
        """The label that counts as long as this one's line is not known."""
        return self._otherwise.root if self._line is None and self._otherwise else self


def both(*places):
    """The place of bytes that lines share; one that is not known is left out. Of more than two none is known."""
    lines = sorted({line for place in filter(None, places) for line in _lines_of(place)})
    if len(lines) == 2:
        return tuple(lines)
    return lines[0] if len(lines) == 1 else None


def _lines_of(place):
    return [place] if isinstance(place[0], str) else place
