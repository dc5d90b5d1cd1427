"""Adding up: readings of memory, and the lines that ran meanwhile, into bytes per line at the peak.

Growth goes to the line that was growing. Where two lines come into question it is shown as shared by them, and where
none is known, as unknown. What is given back was taken by a block of just that size, or else last (temporaries go
before what is kept).
"""

from helpers.watching.labels import Label, both

UNKNOWN = ("(line not known)", 0)
SMALLEST_SHARE = 0.01
SMALL_PAGE, LARGEST_PAGE = 2**13, 2**21
"""Pages are small ones below the first; above there may be huge ones among them, or these alone."""
LEAST_BLOCK = 2**22
"""A block of at least so many bytes is known again by its size."""
SAME_SIZE = 0.01
LEAST_SPIKE = 2**20
MANY_BLOCKS = 500


class Block:
    """Bytes that were taken one after the other under one label."""

    def __init__(self, label, size):
        self.label, self.size = label, size


class Attribution:
    """The account of one process. In the order in which things happen, tell it: a reading from outside (`read`), that
    the process has been asked (`ask`), that it has said in the midst of growing where it is (`grows`), that it was
    found there later, when it was asked (`found`), and what it said between two instructions (`told`)."""

    def __init__(self, baseline=0):
        self.level = self._peak = self._highest = baseline
        self._blocks, self._many = [], MANY_BLOCKS
        self._at_peak, self._is_recent = [], False
        self._last = None
        self.label, self.is_open = Label(), False
        """Of what grows now, and whether it has said so itself."""
        self._before_question = None
        self._faults = None
        self._drop, self._touched_in_drop = 0, None
        self._recent, self._recent_at_peak, self._grown = {}, 0, 0
        self.owed = 0
        """Bytes for which no line is known yet, and which may still become known."""

    def read(self, level, faults=None, least=0):
        """A reading of `level` bytes; `faults` is how many pages the process has touched for the first time by then.
        A change by less than `least` bytes may be the reading's own error."""
        if abs(level - self.level) < least:
            return
        touched = self._count(faults)
        change, self.level = level - self.level, level
        if change > 0:
            self._settle(change / touched if touched else 0)
            self._grow(self.label, change)
            self._recent[self.label] = self._recent.get(self.label, 0) + change
            self._grown += change
            self.owed += 0 if self.is_open else change
        elif change < 0:
            self._remember_peak(self.level - change)
            self._drop -= change
            if touched:
                self._touched_in_drop = (self.label, touched + (self._touched_in_drop or (None, 0))[1])

    @property
    def recent(self):
        """Bytes that have grown since they were last divided."""
        return sum(self._recent.values())

    def divide(self, shares):
        """Of what has grown since the last time, these shares are other threads': [(their label, share)]."""
        grown, recent, self._recent = self.recent, self._recent, {}
        at_peak, self._recent_at_peak = self._recent_at_peak, 0
        for label, share in shares:
            self._hand_over(recent, label, int(grown * share))
            hand_over(self._at_peak, recent, label, int(at_peak * share))

    def _hand_over(self, labels, to, size):
        """Give bytes that stand under one of some labels to another one, the latest first."""
        self.owed = max(0, self.owed - hand_over(self._blocks, labels, to, size))
        self._merge()

    def ask(self):
        """The process is asked now: what has grown by now grew before the line that will answer was seen."""
        if not self.is_open and self._before_question is None:
            self._before_question, self.label = self.label, Label()

    def grows(self, line):
        """The process has begun to grow in this line, and is there until it tells that it is over."""
        self._resolve(line, before=line)
        self.label, self.is_open, self.owed = Label(line), True, 0

    def found(self, line):
        """The process was asked and is in this line now, and was so for some time."""
        if self._before_question:
            self._before_question.line = self._either(line)  # until it tells more
        self.label.line, self.is_open, self.owed = line, True, 0

    def told(self, line, level=None, faults=None, highest=0, since=None, shares=()):
        """The process is in this line, between two instructions, and holds `level` bytes; `highest` is what it held at
        the most so far, and `since` what it held when it was between two instructions before. What has grown since it
        last told belongs to the line that began to grow, if any did; `shares` are other threads' of what is unseen."""
        if level is not None:
            self.ask()
            self.read(level, faults)
        grown = self.label.line if self.is_open else line
        if since is not None:
            self._hand_over({self._before_question, self.label}, Label(grown), max(0, level - since))
            self._take_again(self.level - self._grown - since, Label(grown))
        self._grown = 0
        self._resolve(grown, before=self._either(grown))
        is_new, self._highest = highest > self._highest, max(self._highest, highest)
        if is_new and level is not None:
            self.rises(highest, shares, Label(grown))
        self.label, self.is_open, self._last, self.owed = Label(), False, line or self._last, 0
        self._is_recent = False

    def finish(self, peak):
        """[(place, bytes)] at the peak; a place is a line, two lines that share the bytes, or `UNKNOWN`."""
        self._remember_peak(self.level)
        found = {}
        for block in [*self._at_peak, Block(self.label, max(0, peak - self._peak))]:
            place = block.label.line or UNKNOWN
            found[place] = found.get(place, 0) + block.size
        return largest_places(found)

    def held(self):
        """{place: bytes} at this moment."""
        self._settle(0)
        found = {}
        for block in self._blocks:
            place = block.label.line or UNKNOWN
            found[place] = found.get(place, 0) + block.size
        return found

    def _either(self, line):
        """What two lines share: the one that was told last, and the one that is found now."""
        return both(self._last, line) if line else None

    def _resolve(self, line, before):
        """Now it is known whose the latest bytes are; those `before` the question may be another's."""
        if self._before_question:
            self._before_question.line = before
            self._before_question = None
        elif not self.is_open and self.label.line is None:
            self.label.line = before
            return
        if self.label.line is None:
            self.label.line = line

    def _count(self, faults):
        """Pages touched since the last reading."""
        before, self._faults = self._faults, self._faults if faults is None else faults
        return max(0, self._faults - before) if None not in (faults, before) else 0

    def _settle(self, page):
        """Memory had fallen and grows again: take what was given back from who had it.

        If pages were touched while it fell, more was given back than it fell by, and the rest is new. How large a page
        is shows in the growth that follows.
        """
        if not self._drop:
            return
        dropped, self._drop = self._drop, 0
        touched, self._touched_in_drop = self._touched_in_drop, None
        again = self._again(dropped, page, touched[1]) if touched else 0
        self._shrink(dropped + again)
        if again > 0:
            self._grow(touched[0], again)

    def _again(self, dropped, page, touched):
        """How much of what was given back was taken again at once: at the most as much as the pages that were touched
        could hold. If that makes the size of a block whole, it was that block. Where pages are of both kinds, each of
        those may have been a huge one."""
        room = self._total() - dropped
        most = min(int(touched * min(page, LARGEST_PAGE)), room)
        bound = most if page < SMALL_PAGE else min(touched * LARGEST_PAGE, room)
        rests = [block.size - dropped for block in self._blocks if block.size >= LEAST_BLOCK]
        whole = [rest for rest in rests if -SAME_SIZE * dropped <= rest <= (1 + SAME_SIZE) * bound]
        return max(0, min(whole, key=abs)) if whole else max(0, most)

    def _take_again(self, size, label):
        """The process held so much less when it was last between two instructions than the account has of that time:
        it had given that back, and has taken it again."""
        if size < LEAST_BLOCK:
            return
        self._shrink(self._drop)
        self._drop, self._touched_in_drop = 0, None
        latest, grown = [], self._grown
        while self._blocks and grown > 0:
            block = self._blocks.pop()
            taken = min(grown, block.size)
            grown -= taken
            latest.insert(0, Block(block.label, taken))
            self._blocks += [Block(block.label, block.size - taken)] if block.size > taken else []
        self._shrink(size)
        self._blocks += [Block(label, size), *latest]

    def _total(self):
        return sum(block.size for block in self._blocks)

    def _grow(self, label, size):
        if self._blocks and self._blocks[-1].label is label:
            self._blocks[-1].size += size
        elif size > 0:
            self._blocks.append(Block(label, size))
        self._merge()

    def _merge(self):
        """If there are many, neighbours of the same line become one; the last ones may still get another line."""
        if len(self._blocks) <= self._many:
            return
        merged = self._blocks[:1]
        for block in self._blocks[1 : -MANY_BLOCKS // 10]:
            if block.label.line == merged[-1].label.line is not None:
                merged[-1].size += block.size
            else:
                merged.append(block)
        self._blocks = merged + self._blocks[-MANY_BLOCKS // 10 :]
        self._many = max(MANY_BLOCKS, 2 * len(self._blocks))  # else it would be tried again and again

    def _shrink(self, size):
        same = [block for block in self._blocks if _is_same(block.size, size)]
        if same:
            size -= same[-1].size
            self._blocks.remove(same[-1])
        while size > 0 and self._blocks:
            taken = min(size, self._blocks[-1].size)
            self._blocks[-1].size -= taken
            size -= taken
            if self._blocks[-1].size == 0:
                self._blocks.pop()

    def _remember_peak(self, level):
        if level < self._peak:
            return
        self._settle(0)
        self._peak, self._is_recent = level, True
        self._at_peak = [Block(block.label, block.size) for block in self._blocks]
        self._recent_at_peak = self.recent

    def unseen(self, highest):
        """If it held more for a moment than ever before and than any reading saw: by how much more than the highest of
        late."""
        if highest <= max(self.level, self._peak) + LEAST_SPIKE:
            return 0
        return highest - (max(self.level, self._peak) if self._is_recent else self.level)

    def rises(self, highest, shares, label=None):
        """It held so much for a moment: on top of the highest reading of late. These shares of what is `unseen` are
        other threads', the rest stands under a label, that of what grows now if none is given."""
        unseen = self.unseen(highest)
        if not unseen:
            return
        if not self._is_recent or self.level > self._peak:
            self._peak = 0
            self._remember_peak(self.level)
        parts = [Block(of_thread, int(unseen * share)) for of_thread, share in shares]
        rest = unseen - sum(part.size for part in parts)
        self._at_peak += [*parts, Block(label or self.label, max(0, rest))]
        self._peak = highest


def hand_over(blocks, labels, to, size):
    """In a list of blocks, give bytes under one of some labels to another one, the latest first; returns how many."""
    left = size
    for place in range(len(blocks) - 1, -1, -1):
        if left <= 0:
            break
        block = blocks[place]
        if block.label.root in labels:
            taken = min(left, block.size)
            left -= taken
            parts = [Block(block.label, block.size - taken), Block(to, taken)]
            blocks[place : place + 1] = [part for part in parts if part.size]
    return size - left


def _is_same(block, size):
    return block >= LEAST_BLOCK and abs(block - size) <= SAME_SIZE * size


def largest_places(found):
    """{place: bytes} as a list, the largest first, without those that are next to nothing."""
    least = SMALLEST_SHARE * sum(found.values())
    return sorted(((place, size) for place, size in found.items() if size > least), key=lambda item: -item[1])
