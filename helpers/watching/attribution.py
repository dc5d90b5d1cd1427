"""Adding up: readings of memory, and the lines that ran meanwhile, into bytes per line at the peak."""

UNKNOWN = ("(before the first line)", 0)
SMALLEST_SHARE = 0.01
LARGEST_PAGE = 2**21


class Attribution:
    """Growth goes to the line that ran, what is given back is taken from the most recent growth first (temporaries
    go before what is kept). The answer is for the peak."""

    def __init__(self, baseline=0):
        self.level = self._peak = baseline
        self._held = []
        self._at_peak = {}
        self._line = self._peak_line = UNKNOWN
        self._faults, self._faults_in_drop, self._is_over = None, 0, False

    def add(self, level, line, faults=None, told_itself=False):
        """A reading of `level` bytes was taken while `line` ran; None means that the line before still runs. `faults`
        is how many pages the process has touched for the first time until then, where that is known.

        Between two readings the job went from one line to the next at a moment that nobody saw: they share. But a
        process that `told_itself` what it held did so between two instructions, when the call that took the memory was
        over: what comes after that and before the next line answers is the next line's.
        """
        change, touched = level - self.level, self._count(faults)
        changed_lines = line not in (None, self._line) and self._line != UNKNOWN
        if change > 0 and changed_lines and not self._is_over and not self._faults_in_drop:
            self._grow(change // 2)
            change -= change // 2
        self._line, self._is_over = line or self._line, told_itself
        if change > 0:
            self._grow(change + self._take_again(change, touched, changed_lines))
        elif change < 0:
            self._remember_peak()
            self._shrink(-change)
            self._faults_in_drop = touched
        self.level = level

    def finish(self, peak):
        """[(line, bytes)] at the peak. What no reading saw of it grew while the last line before it ran."""
        self._remember_peak()
        unseen = max(0, peak - self._peak)
        self._at_peak[self._peak_line] = self._at_peak.get(self._peak_line, 0) + unseen
        least = SMALLEST_SHARE * sum(self._at_peak.values())
        found = [(line, size) for line, size in self._at_peak.items() if size > least]
        return sorted(found, key=lambda item: -item[1])

    def _count(self, faults):
        """Pages touched since the last reading."""
        before = self._faults
        if faults is None or before is None:
            self._faults = before if faults is None else faults
            return 0
        self._faults = max(before, faults)
        return self._faults - before

    def _take_again(self, change, touched, changed_lines):
        """Bytes that were given back and taken again between two readings, whose low point nobody saw.

        Memory fell, and yet pages were touched: so more was given back than it fell by, and the rest is new. How
        large a page is, is seen in the growth that follows. Returns what the present line took that still stood
        with the line before.
        """
        in_drop, self._faults_in_drop = self._faults_in_drop, 0
        if not (in_drop and touched and changed_lines and self._held):
            return 0
        page = min(change / touched, LARGEST_PAGE)
        again = min(int(in_drop * page), self._held[-1][1])
        self._shrink(again)
        return again

    def _grow(self, change):
        if self._held and self._held[-1][0] == self._line:
            self._held[-1][1] += change
        else:
            self._held.append([self._line, change])

    def _shrink(self, change):
        while change > 0 and self._held:
            taken = min(change, self._held[-1][1])
            self._held[-1][1] -= taken
            change -= taken
            if self._held[-1][1] == 0:
                self._held.pop()

    def _remember_peak(self):
        if self.level < self._peak:
            return
        self._peak, self._peak_line, self._at_peak = self.level, self._line, {}
        for line, size in self._held:
            self._at_peak[line] = self._at_peak.get(line, 0) + size
