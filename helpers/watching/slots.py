"""What is known of threads that say their lines in one pipe, one after the other: their page faults and their lines."""

from collections import Counter, deque

from helpers.watching.attribution import Label, both

SMALL_PAGE = 2**13
MOST_WAITING = 100


class Slot:
    """One of these; `new` are the page faults since it was last begun anew."""

    def __init__(self):
        self.started, self.found, self.ended = set(), set(), 0
        self.faults = self._before = 0
        self._heard, self._heard_before, self._line = Counter(), Counter(), None
        self._waiting = deque(maxlen=MOST_WAITING)
        self._has_spoken, self._asked = False, (0, 0)

    @property
    def new(self):
        return max(0, self.faults - self._before)

    @property
    def heard(self):
        """How often each line was said of late."""
        return self._heard + self._heard_before

    def count(self, faults):
        """Take the page faults of each thread so far; no page is untouched again."""
        alive = sum(faults.get(thread, 0) for thread in self.started | self.found)
        self.faults = max(self.faults, self.ended + alive)

    def hear(self, line):
        """One of them touches pages in this line."""
        self._heard[line] += 1
        self._has_spoken = True
        for label, before in self._waiting:
            label.line = both(before, line)
        self._waiting.clear()

    def labels(self, main, is_unsure):
        """Its lines of late, with the part of each, or the two of which one is right where the number of words does not
        tell; `main` is the label of the main thread, whose bytes these are if nothing is heard at all."""
        heard = self.heard
        if not heard:
            label = Label(otherwise=Label(self._line, otherwise=main))
            self._waiting.append((label, self._line))
            return [(label, 1.0)]
        (self._line, _), *others = heard.most_common(2)
        if is_unsure and others:
            return [(Label(either=(Label(self._line), Label(others[0][0]))), 1.0)]
        return [(Label(line), count / heard.total()) for line, count in heard.items()]

    def begin_anew(self, part=1.0):
        """Its latest page faults are settled, or this part of them."""
        self._before += int(part * self.new)
        if part == 1:
            self._heard, self._heard_before = Counter(), Counter()

    def rest(self):
        """Nothing has grown: what was said a while ago was about nothing. True if anything was said."""
        self._heard_before, self._heard = self._heard, Counter()
        return self._has_spoken

    def may_have_spoken(self, period):
        """Since it was asked, in whatever code: or it was asked to do so after other numbers of page faults."""
        before, faults = self._asked
        return period != before or self.faults - faults >= period

    def is_asked(self, period):
        """To say its line after so many page faults each."""
        if self.may_have_spoken(period):
            self._asked, self._has_spoken = (period, self.faults), False
