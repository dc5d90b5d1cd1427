"""The threads of a process beside its main one: how much of the growth is theirs, and in which lines they are."""

import time
from collections import Counter, deque
from contextlib import suppress

from helpers.watching import answering, page_faults, thread_state
from helpers.watching.attribution import Label, both
from helpers.watching.page_faults import Allowance
from helpers.watching.voices import Ended, Started

LEAST_FAULTS = 8
SMALL_PAGE, HUGE_PAGE = 2**13, int(0.95 * 2**21)
"""Pages are small ones below, huge ones above; in between there are both, and the bytes of a fault are not known."""
NEXT_TO_NOTHING = 0.1
"""Of the pages: a thread that has touched no more than that beside one that grows has not grown itself."""
BYTES_BETWEEN, FEW, MOST_FAULTS, MUCH = 2**21, 8, 32, 2**22
"""So many bytes are between two words of a thread, where these are many more than its few first pages."""
AT_ONCE, WORDS = 16, 16
"""So many threads are asked at a time, and each says its line so often until it is asked again."""
AGAIN = 20, 5
"""How often those that have spoken are asked again, at once and per second, while nothing grows."""
PATIENCE = 0.03
"""Seconds for which growth may wait for a word about it."""
MOST_WAITING = 100


class OtherThreads:
    """Pass what they say to `hear`, and call `look` when memory has grown: `shares` says which part is theirs. Those
    that Python starts say their first lines of themselves; from then on they are asked by the kernel, which lets them
    say their lines as they touch pages (`ask`). Other threads that have Python may not be signalled (see
    `signal_stack`): they are `found` in a line when the process is asked. The rest works for the main thread."""

    def __init__(self, pid, grows):
        self.pid, self._grows = pid, grows
        self._started, self._found = set(), set()
        self._faults, self._faults_before, self._touched, self._ended = {}, {}, {}, 0
        self._before = Faults(0, 0, 0)
        self._before = self._count()
        self._page, self._grew = 0.0, False
        self._events, self._period = {}, FEW
        self._heard, self._heard_before, self._line = Counter(), Counter(), None
        self._waiting, self._has_spoken, self._again = deque(maxlen=MOST_WAITING), False, Allowance(*AGAIN)
        self._waits_since = None
        self.shares = []

    @property
    def busiest(self):
        """The thread that touched most pages of late, of those that may be signalled."""
        return max((self.pid, *self._started), key=lambda thread: self._touched.get(thread, 0))

    def hear(self, said):
        """Those that Python starts have said that they begin, where they grow, and that they end."""
        for word in said:
            if isinstance(word, Started):
                self._started.add(word.thread)
            elif isinstance(word, Ended):
                self._end(word.thread, word.faults)
            else:
                self._grew = self._has_spoken = True
                self._hear(word.line)

    def _end(self, thread, faults):
        if thread in self._started:
            self._started.remove(thread)
            self._faults.pop(thread, None)
            self._ended += faults

    def look(self, main, grown, main_grows, must=True):
        """Find out whose the page faults since the last look were, in which the process has grown by `grown` bytes;
        `main` is the label of what the main thread takes, which has said so if it `main_grows`. If they are about to
        say it, this looks again later unless it `must` be now: returns whether the `shares` are known."""
        faults = self._count()
        if faults and not must and self._are_about_to_speak(faults):
            return False
        self._waits_since = None
        if faults:  # else it has ended, and all is as it was
            self._share(main, grown, main_grows, faults)
        return True

    def _are_about_to_speak(self, faults):
        """A thread says its line when its page is there, and pages are counted before. Each page has its word: what is
        looked at late adds up."""
        if not (self._grows and self._started) or self._heard or faults.theirs <= self._before.theirs:
            return False
        now = time.monotonic()
        self._waits_since = self._waits_since or now
        return now - self._waits_since < PATIENCE

    def told(self, main, grown, main_grows, told):
        """The same for the moment at which the process told something, as far as can be known of it: the shares."""
        if not self._started and not self._ended and not self._found:
            return []
        self._take(thread_state.page_faults(self.pid, self._started | self._found))
        others = told.faults - told.own_faults
        theirs = min(others, self._ended + sum(self._known().values()))
        before = self._before
        self._share(main, grown, main_grows, Faults(told.own_faults, theirs, others - theirs))
        return self.shares if self._before != before else []

    def _known(self):
        """The page faults of each of them when they were last counted."""
        return {thread: self._faults.get(thread, 0) for thread in self._started | self._found}

    def _count(self):
        """The page faults so far; None if the process has ended."""
        total = thread_state.all_page_faults(self.pid)  # first: later it would have more of the main thread's
        now = thread_state.page_faults(self.pid)
        if self.pid not in now:
            return None
        for thread in self._found - now.keys():
            self._ended += self._faults.get(thread, 0)
        self._found &= now.keys()  # a number may be another thread's later
        self._take(now)
        theirs = self._ended + sum(self._known().values())
        return Faults(now[self.pid], theirs, max(0, total - now[self.pid] - theirs))

    def _take(self, now):
        """Some of them may have ended: those that Python starts tell how many these were in all."""
        self._faults = {**self._known(), **now}
        before = self._faults_before
        self._touched = {
            thread: max(0, count - before.get(thread, 0)) for thread, count in self._faults.items()
        }

    def _share(self, main, grown, main_grows, faults):
        """What is neither the main thread's nor that of silent ones is theirs."""
        new = faults - self._before
        total = sum(new)
        if total <= 0:  # they were counted before
            return
        self._before, self._faults_before = self._before + new, self._faults
        self._page, share = grown / total, new.theirs / total
        self._period = FEW if grown < MUCH else min(max(1, int(BYTES_BETWEEN / self._page)), MOST_FAULTS)
        both_grow, self._grew = self._grew and main_grows, False
        if 0 < share < 1 and self._pages_are_of_both_kinds():
            if both_grow or (main_grows and share > NEXT_TO_NOTHING):
                self.shares = [(Label(either=(main, label)), part) for label, part in self._labels(main)]
                return
            share = min(share, new.theirs * page_faults.PAGE / grown) if main_grows else 1.0
        self.shares = [(label, share * part) for label, part in self._labels(main)] if share else []

    def _labels(self, main):
        """Their lines since the last look, with the part of each."""
        heard = self._heard + self._heard_before
        self._heard, self._heard_before = Counter(), Counter()
        if heard:
            (self._line, _), *others = heard.most_common(2)
            if self._had_more_to_say():
                other = Label(others[0][0]) if others else self._next(None)
                return [(Label(either=(Label(self._line), other)), 1.0)]
            return [(Label(line), count / heard.total()) for line, count in heard.items()]
        return [(self._next(self._line, otherwise=Label(self._line, otherwise=main)), 1.0)]

    def _next(self, before, **otherwise):
        """The label of bytes whose line is the one that is heard next, or the one before."""
        self._waiting.append((Label(**otherwise), before))
        return self._waiting[-1][0]

    def _pages_are_of_both_kinds(self):
        """Then their number does not say who had the huge ones."""
        return SMALL_PAGE < self._page < HUGE_PAGE

    def _had_more_to_say(self):
        """Several have touched pages, and these are of both kinds, or more than one of them had words for: how often a
        line was said does not tell how much is its own."""
        touched = [count for thread in self._started if (count := self._touched.get(thread, 0))]
        return len(touched) > 1 and (self._pages_are_of_both_kinds() or max(touched) > WORDS * self._period)

    def rest(self):
        """Nothing has grown: what they said a while ago was about nothing, and they may say more of what comes."""
        self._heard_before, self._heard = self._heard, Counter()
        if self._has_spoken and self._again.take(time.monotonic()):
            self.ask()

    def ask(self):
        """Let those that touched most pages say their lines when they go on."""
        self._stop_asking()
        self._has_spoken = False
        if self._grows and thread_state.catches(self.pid, answering.TOUCHED):
            for thread in sorted(self._started, key=lambda thread: self._touched.get(thread, 0))[-AT_ONCE:]:
                with suppress(OSError, KeyError):  # it may have ended
                    self._events[thread] = page_faults.Event(thread, answering.TOUCHED)
                    self._events[thread].repeat(self._period, WORDS)

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
            event.close()
        self._events = {}

    def close(self):
        self._stop_asking()


class Faults(tuple):
    """Page faults of the main thread, of those that have Python beside it, and of the rest."""

    def __new__(cls, own, theirs, silent):
        return super().__new__(cls, (own, theirs, silent))

    @property
    def theirs(self):
        return self[1]

    def __sub__(self, before):
        return Faults(*(max(0, count - earlier) for count, earlier in zip(self, before, strict=True)))

    def __add__(self, new):
        return Faults(*map(sum, zip(self, new, strict=True)))
