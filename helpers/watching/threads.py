"""The threads of a process beside its main one: how much of the growth is theirs, and in which lines they are."""

import fcntl
import os
import struct
from collections import Counter, deque
from contextlib import suppress

from helpers.watching import answering, page_faults, thread_state
from helpers.watching.attribution import Label, both

LEAST_FAULTS = 8
SMALL_PAGE, HUGE_PAGE = 2**13, 2**20
"""Pages are small ones below, huge ones above; in between there are both, and the bytes of a fault are not known."""
BYTES_BETWEEN = 2**21
AT_ONCE, WORDS = 16, 16
"""So many threads are asked at a time, and each says its line so often until it is looked at again."""
FIRST_FAULTS, FIRST_WORDS = 16, 4
"""Until a thread that has just started says its line, and how often: it may take much before anybody looks."""
MOST_WAITING = 100


class OtherThreads:
    """Call `look` when memory has grown: `shares` says which part is theirs. Those that Python starts are asked by the
    kernel, which lets them say their lines as they touch pages (`ask`; pass what they say to `said`). Other threads
    that have Python may not be signalled (see `signal_stack`): they are `found` in a line when the process is asked.
    The rest, without Python, works for the main thread."""

    def __init__(self, pid, grows):
        self.pid, self._grows = pid, grows
        self._faults, self._touched = thread_state.page_faults(pid), {}
        self._all, self._own = thread_state.all_page_faults(pid), self._faults.get(pid, 0)
        self._page, self._grew = 0.0, False
        self._started, self._found, self._events = set(), set(), {}
        self._heard, self._line, self._waiting = Counter(), None, deque(maxlen=MOST_WAITING)
        self.shares = []

    @property
    def busiest(self):
        """The thread that touched most pages before the last look, of those that may be signalled."""
        return max((self.pid, *self._started), key=lambda thread: self._touched.get(thread, 0))

    def look(self, main, grown, main_grows):
        """Find out whose the page faults since the last look were, in which the process has grown by `grown` bytes;
        `main` is the label of what the main thread takes, which has said so if it `main_grows`."""
        before, now = self._faults, thread_state.page_faults(self.pid)
        if now:  # else it has ended, and all is as it was
            self._touched = {thread: max(0, count - before.get(thread, 0)) for thread, count in now.items()}
            self._faults = now
            for known in (self._started, self._found):
                known &= now.keys()  # a number may be another thread's later
            silent = sum(
                count
                for thread, count in self._touched.items()
                if thread not in (self.pid, *self._started, *self._found)
            )
            figures = thread_state.all_page_faults(self.pid), now.get(self.pid, 0), silent
            self._share(main, grown, main_grows, *figures)

    def heard(self, main, grown, main_grows, told):
        """The same for the moment at which the process told something, as far as can be known of it: the shares."""
        has_silent = self._faults.keys() - {self.pid, *self._started, *self._found}
        if not has_silent and told.faults > self._all:
            self._share(main, grown, main_grows, told.faults, told.own_faults, 0)
            return self.shares
        return []

    def _share(self, main, grown, main_grows, faults, own, silent):
        """What is neither the main thread's nor that of silent ones is theirs, or that of others which have ended."""
        total, mains = faults - self._all, max(0, own - self._own) + silent
        if total <= 0:  # they were counted before
            return
        self._all, self._own, self._page = faults, own, grown / total
        share = max(0, total - mains) / total if len(self._faults) > 1 else 0.0
        both_grow, self._grew = self._grew and main_grows, False
        # pages of both kinds: the faults do not say who had the huge ones
        if 0 < share < 1 and SMALL_PAGE < self._page < HUGE_PAGE:
            share = min(share, (total - mains) * page_faults.PAGE / grown) if main_grows else 1.0
            if both_grow:
                self.shares = [(Label(either=(main, label)), part) for label, part in self._labels(main)]
                return
        self.shares = [(label, share * part) for label, part in self._labels(main)] if share else []

    def _labels(self, main):
        """Their lines since the last look, with the part of each."""
        heard, self._heard = self._heard, Counter()
        if heard:
            self._line = heard.most_common(1)[0][0]
            return [(Label(line), count / heard.total()) for line, count in heard.items()]
        self._waiting.append((Label(otherwise=Label(self._line, otherwise=main)), self._line))
        return [(self._waiting[-1][0], 1.0)]

    def starts(self, thread):
        """This thread of Python's begins; it is asked at once, since it may take memory before anybody looks."""
        self._started.add(thread)
        if self._grows and len(self._events) < AT_ONCE:
            self._watch(thread, FIRST_FAULTS, FIRST_WORDS)

    def ask(self):
        """Let those that touched most pages say their lines when they go on."""
        self._stop_asking()
        if self._grows and thread_state.catches(self.pid, answering.TOUCHED):
            faults = max(1, int(BYTES_BETWEEN / max(self._page, page_faults.PAGE)))
            alive = self._started & self._faults.keys()
            for thread in sorted(alive, key=lambda thread: self._touched.get(thread, 0))[-AT_ONCE:]:
                self._watch(thread, faults, WORDS)

    def _watch(self, thread, faults, words):
        with suppress(OSError, KeyError):
            event = self._events[thread] = page_faults.page_fault_event(thread)
            page_faults.send_signal_of(event, answering.TOUCHED, thread)
            fcntl.ioctl(event, page_faults.PERF_PERIOD, struct.pack("Q", faults))
            fcntl.ioctl(event, page_faults.PERF_REFRESH, words)

    def said(self, line):
        """A thread that was asked touches pages in this line."""
        self._grew = True
        self._hear(line)

    def found(self, thread, line):
        """A thread was in this line when the process was asked; it counts if nothing better is to be had of a thread
        that has just touched pages."""
        if thread not in self._started:
            self._found.add(thread)
        elif self._grows:
            return
        if self._touched.get(thread, 0) >= LEAST_FAULTS:
            self._hear(line)

    def _hear(self, line):
        self._heard[line] += 1
        for label, before in self._waiting:
            label.line = both(before, line)
        self._waiting.clear()

    def _stop_asking(self):
        for event in self._events.values():
            os.close(event)
        self._events = {}

    def close(self):
        self._stop_asking()
