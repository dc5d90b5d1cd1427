"""Which lines of a process's own code took its memory: what it says of itself, when to ask it, what that adds up to."""

import ctypes
import sysconfig
import time

from helpers import machine
from helpers.watching import answering, own_lines, thread_state
from helpers.watching.attribution import Attribution
from helpers.watching.page_faults import Allowance
from helpers.watching.threads import OtherThreads
from helpers.watching.voices import Growing

SECONDS_TO_ANSWER = 0.008
EFFORT_TO_ANSWER = 0.004
LEAST_GROWTH = 2**20
LEAST_CHANGE = 2**19
"""The kernel counts pages on each processor, and a quick reading may not have all of them."""
QUESTIONS_BELOW_PEAK = 20, 1
"""At once, and per second: a training loop takes and gives back the same memory again and again. Above the highest
point so far every growth is asked for."""
LARGE_BELOW_PEAK, LARGE_SHARE = (40, 2), 0.02
"""The same for growth by so much of the highest point: that may be a line of its own."""
LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
OURS = (str(machine.HERE),)
ELSEWHERE = ("(other processes)", 0)


def is_own_code(filename, libraries=LIBRARIES):
    """Code of the job itself in a file: neither Python's, nor a library's, nor ours."""
    return not filename.startswith("<") and own_lines.is_own(filename, (*libraries, *OURS))


class LineFollower:
    """Follows the lines of one process, which says them with its `voice`: tell it every reading with `look`, `ask` now
    and then; `lines` has the sum. The memory is that of the process, or of its device."""

    def __init__(self, voice, baseline=0, on_device=False, began=0.0):
        """What was said before it `began` does not count."""
        self.pid, self._voice, self._on_device = voice.pid, voice, on_device
        self.attribution = Attribution(baseline)
        self._threads = OtherThreads(voice.pid, voice.grows, None if began else voice.first_faults)
        self._question = Question(voice.pid)
        self._highest, self._below_peak = baseline, Allowance(*QUESTIONS_BELOW_PEAK)
        self._large_below_peak = Allowance(*LARGE_BELOW_PEAK)
        self._unlooked, self._late, self._latest = 0, [], 0.0
        self._began, self._faults = began, None

    def look(self, level, faults=None, moment=None):
        """Take a reading of a moment, this one if none is given, and hear what the process has said."""
        moment = moment or time.monotonic()
        said, stuck, touched = self._voice.hear()
        self._threads.hear([] if self._on_device else touched)
        for line in stuck:
            self._take_at_once(line)
        self._take([*self._late, *said], moment)
        if moment > self._latest:  # else the process has said more than that since
            self._latest, self._faults = moment, faults
            self._unlooked += max(0, level - self.attribution.level)
            self.attribution.read(level, faults, LEAST_CHANGE)
        self._take(self._late, float("inf"))

    def ask(self):
        """Ask for the line if it is owed: always at new heights, and now and then below them."""
        if not answering.ASK:
            return
        if max(self.attribution.owed, self._unlooked) < LEAST_GROWTH:
            self._threads.rest(self._faults)
            return
        level = self.attribution.level
        is_new = level >= self._highest + LEAST_GROWTH or self._threads.are_awaited
        if not is_new and not self._may_ask_below_peak(time.monotonic()):
            return
        self._highest = max(self._highest, level)
        is_divided = self._divide(must=False, is_new=is_new)
        if not self._on_device:
            self._threads.ask()
        if is_divided and self.attribution.owed >= LEAST_GROWTH and self._question.ask(self._threads.busiest):
            self.attribution.ask()

    def _may_ask_below_peak(self, now):
        is_large = self.attribution.owed > LARGE_SHARE * self._highest
        return (is_large and self._large_below_peak.take(now)) or self._below_peak.take(now)

    def _divide(self, must=True, unseen=0, is_new=False):
        """Find out which part of the latest growth is other threads'; unless it must be known now, that may wait. At
        new heights the main thread asks for its own line after a few pages."""
        if self._on_device:
            return True
        self._unlooked = 0
        is_known = self._threads.look(*self._growth(unseen), must, self._faults, is_new)
        if is_known:
            self.attribution.divide(self._threads.shares)
        return is_known

    def _growth(self, unseen=0):
        return self.attribution.label, self.attribution.recent + unseen, self.attribution.is_open

    def settle(self, peak):
        """Find out now whose the latest growth was, and what was held for a moment at the `peak`."""
        if not self._on_device:
            self._divide(unseen=self.attribution.unseen(peak))
            self.attribution.rises(peak, self._threads.shares)

    def lines(self, peak):
        """[(place, bytes)] at the peak, the largest first; see `Attribution.finish`."""
        self._divide()
        return self.attribution.finish(peak)

    def close(self):
        self._threads.close()
        self._voice.close()

    def _take(self, said, until):
        """What was said up to a moment; what comes after that is kept for later."""
        for place, word in enumerate(said):
            if isinstance(word, Growing):
                self._grows(word.line)
            elif word.moment > until:
                self._late = said[place:]
                return
            elif word.moment > self._began:
                self._take_told(word)
        self._late = []

    def _grows(self, line):
        if not self._on_device:
            self.attribution.grows(line)

    def _take_told(self, told):
        self._latest, self._faults = told.moment, told.faults
        self._question.answered(told.moment)
        for thread, line in told.lines.items():
            if thread != self.pid:
                self._threads.found(thread, line)
        line = told.lines.get(self.pid)
        if self._on_device:
            self.attribution.told(line)
        else:
            self._unlooked += max(0, told.held - self.attribution.level)
            self.attribution.ask()
            self.attribution.read(told.held, told.faults)
            highest, shares = told.highest - told.files, []
            unseen = self.attribution.unseen(highest)
            if self.attribution.recent + unseen >= LEAST_GROWTH:  # before all of it is taken for this line's
                shares = self._threads.told(*self._growth(unseen), told)
                self.attribution.divide(shares)
            self.attribution.told(line, told.held, told.faults, highest, told.since, shares)

    def _take_at_once(self, line):
        """A thread that was asked in the midst of its work has answered."""
        thread = self._question.interrupted
        if thread == self.pid:
            self.attribution.found(line)
        elif thread:
            self._threads.found(thread, line)


class Question:
    """From outside: asks one process, one question at a time, which line is running, and never harms it."""

    def __init__(self, pid):
        self.pid, self.interrupted = pid, None
        self._asked_at = self._efforts = None

    def ask(self, busiest):
        """Ask for the line, or, if an answer is late because C code runs, ask the thread that is the `busiest` at once.
        True if a new question was asked."""
        now = time.monotonic()
        if self._asked_at is None:
            if not thread_state.may_be_interrupted(self.pid, self.pid):
                return False
            self._asked_at, self.interrupted = now, None
            self._efforts = {thread: _worked(self.pid, thread) for thread in (self.pid, busiest)}
            _send(self.pid, self.pid, answering.ASK)
            return True
        if now - self._asked_at > SECONDS_TO_ANSWER:
            self._interrupt(busiest if busiest in self._efforts else self.pid)
        return False

    def answered(self, moment):
        if self._asked_at is not None and moment > self._asked_at:
            self._asked_at = None

    def _interrupt(self, thread):
        """A thread that has worked for a while since it was asked, or waits, is not between two instructions."""
        waits = thread_state.thread_effort(self.pid, thread)[0] in "SD"
        is_in_c_code = waits or _worked(self.pid, thread) - self._efforts[thread] > EFFORT_TO_ANSWER
        if is_in_c_code and thread_state.may_be_interrupted(self.pid, thread):
            self.interrupted, self._asked_at = thread, time.monotonic()
            _send(self.pid, thread, answering.STUCK)


def _worked(pid, thread):
    return thread_state.thread_effort(pid, thread)[1]


def _send(pid, thread, number):
    if thread_state.catches(pid, number):  # a job that has become another program would die of the signal
        ctypes.CDLL(None).tgkill(pid, thread, number)
