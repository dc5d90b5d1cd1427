"""What is known of threads that say their lines in one pipe, one after the other: their page faults and their lines."""

from collections import Counter, deque

from helpers.watching.labels import Label, both

MOST_WAITING = 100


class Slot:
    """One of these; `new` are the page faults since it was last begun anew."""

    def __init__(self):
        self.started, self.found, self.ended = set(), set(), 0
        self.faults = self._before = 0
        self.heard, self._line = Counter(), None
        """How often each line was said since it was last begun anew, and the one that was said most before."""
        self._waiting = deque(maxlen=MOST_WAITING)
        self._has_spoken, self._asked = False, (0, 0)

    @property
    def new(self):
        return max(0, self.faults - self._before)

    def count(self, faults):
        """Take the page faults of each thread so far; no page is untouched again."""
        alive = sum(faults.get(thread, 0) for thread in self.started | self.found)
        self.faults = max(self.faults, self.ended + alive)

    def hear(self, line):
        """One of them touches pages in this line."""
        self.heard[line] += 1
        self._has_spoken = True
        for label, before in self._waiting:
            label.line = both(before, line)
        self._waiting.clear()

    def labels(self, main, most, is_mixed=False):
        """Its lines of late, with the part of each, or the two of which one is right where the number of words does not
        tell: pages may be of two sizes (`is_mixed`), or more than there are words for (`most`). `main` is the label of
        the main thread, whose bytes these are if nothing is heard at all."""
        if not self.heard:
            return [(self._next_or(self._line, main), 1.0)]
        (line, _), *others = self.heard.most_common(2)
        if others and (is_mixed or self.new > most):
            return [(Label(either=(Label(line), Label(others[0][0]))), 1.0)]
        if self.new > most and not is_mixed:  # else these are the small pages at the edges of a block
            return [(Label(either=(Label(line), self._next_or(line, main))), 1.0)]
        return [(Label(line), count / self.heard.total()) for line, count in self.heard.items()]

    def _next_or(self, line, main):
        """The label of bytes that are this line's or that of the next one that is heard."""
        label = Label(otherwise=Label(line, otherwise=main))
        self._waiting.append((label, line))
        return label

    def begin_anew(self, part=1.0):
        """Its latest page faults are settled, or this part of them."""
        self._before += int(part * self.new)
        if part > 0.5:  # most of what was said was about these
            self._forget()

    def _forget(self):
        if self.heard:
            self._line = self.heard.most_common(1)[0][0]
        self.heard = Counter()

    def rest(self):
        """Nothing has grown: what was said was about nothing, or about what has just begun. True if anything was."""
        self._forget()
        return self._has_spoken

    def may_have_spoken(self, period):
        """Since it was asked, in whatever code: or it was asked to do so after other numbers of page faults."""
        before, faults = self._asked
        return period != before or self.faults - faults >= period

    def is_asked(self, period):
        """To say its line after so many page faults each."""
        if self.may_have_spoken(period):
            self._asked, self._has_spoken = (period, self.faults), False
