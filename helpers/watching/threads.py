"""The threads of a process beside its main one: how much of the growth is theirs, and in which lines they are."""

import time
from contextlib import suppress

from helpers.watching import page_faults, thread_state
from helpers.watching.labels import Label
from helpers.watching.own_threads import NO_SLOT
from helpers.watching.page_faults import PAGE, Allowance
from helpers.watching.slots import Slot
from helpers.watching.voices import Ended, Started

LEAST_FAULTS = 8
LARGEST_PAGE = 2**21
SMALL_PAGE, HUGE_PAGE = int(1.25 * PAGE), int(0.95 * LARGEST_PAGE)
"""Pages are all small ones below the first, and nearly all huge ones above the second; in between there are both, and
the bytes of a fault are not known."""
NEXT_TO_NOTHING = 0.1
"""Of the bytes in huge pages: a thread that cannot have touched more of them than that has not grown itself."""
MOST_IN_PAGES = 2
"""Times the bytes that page faults can bring: some of these may have been counted with what came before."""
FEW_LATER = 0.05
"""Of the latest page faults: so many do not matter."""
TO_START = 64
"""Page faults: so many and fewer take the main thread to start another one, in small pages."""
BYTES_BETWEEN, FEW, MOST_FAULTS, MUCH = 2**21, 8, 32, 2**22
"""So many bytes are between two words of a thread, where these are many more than its few first pages."""
WORDS = 64
"""So often each says its line until it is asked again."""
AGAIN = 20, 5
"""How often those that have spoken are asked again, at once and per second, while nothing grows."""
PATIENCE = 0.03
"""Seconds for which growth may wait for a word about it."""


class OtherThreads:
    """Pass what they say to `hear`, and call `look` when memory has grown: `shares` says which part is theirs. Those
    that Python starts say their first lines of themselves; from then on they are asked by the kernel, which lets them
    say their lines as they touch pages (`ask`). Other threads that have Python may not be signalled (see
    `signal_stack`): they are `found` in a line when the process is asked. The rest works for the main thread."""

    def __init__(self, pid, grows, first_faults=None):
        """What counts is what comes after so many page faults of the main thread, or else after this moment."""
        self.pid, self._grows = pid, grows
        self._slots, self._slot_of = {NO_SLOT: Slot()}, {}
        self._faults, self._faults_before = {}, {}
        self._page, self._period, self._events = 0.0, FEW, {}
        self._own, self._silent = first_faults, 0
        self._unknown, self._gone, self._unheard = set(), set(), set()
        if first_faults is None:
            self._own, self._silent, _ = self._count() or (0, 0, 0)
        self._others = self._silent
        self._again, self._waits_since = Allowance(*AGAIN), None
        self.shares = []

    @property
    def busiest(self):
        """The thread that touched most pages of late, of those that may be signalled."""
        started = [thread for slot in self._slots.values() for thread in slot.started]
        return max((self.pid, *started), key=self._touched)

    @property
    def are_awaited(self):
        """Whether a look was put off until they have spoken."""
        return self._waits_since is not None

    def _touched(self, thread):
        return self._faults.get(thread, 0) - self._faults_before.get(thread, 0)

    def hear(self, said):
        """Those that Python starts have said that they begin, where they grow, and that they end."""
        for word in said:
            if isinstance(word, Started):
                # an earlier one of this number could not say that it ended
                self._end(word.thread, self._faults.get(word.thread, 0))
                self._slot_of[word.thread] = slot = self._slots.setdefault(word.slot, Slot())
                slot.started.add(word.thread)
                self._faults.pop(word.thread, None)
                self._faults_before.pop(word.thread, None)
            elif isinstance(word, Ended):
                self._end(word.thread, word.faults)
            else:
                self._slots.setdefault(word.slot, Slot()).hear(word.line)

    def _end(self, thread, faults):
        slot = self._slot_of.pop(thread, None)
        if slot:
            slot.started.discard(thread)
            slot.found.discard(thread)
            slot.ended += faults
            self._close(thread)

    def look(self, main, grown, main_grows, must=True, faults=None, main_tells=False):
        """Find out whose the page faults since the last look were, in which the process has grown by `grown` bytes;
        `main` is the label of what the main thread takes, which has said so if it `main_grows`. If they are about to
        say it, this looks again later unless it `must` be now: returns whether the `shares` are known. The process
        had touched so many pages when these bytes were counted (`faults`); what came since is left for the next time.
        `main_tells` if the main thread would have told of such growth, had it touched pages meanwhile."""
        counted = self._count()
        if counted and not must and self._are_about_to_speak():
            return False
        self._waits_since = None
        if counted:  # else it has ended, and all is as it was
            is_silent = main_tells and self._grows and not main_grows
            until = self._until(None if must else faults, *counted, is_silent)
            self._share(main, grown, main_grows, *until, is_silent)
        return True

    def _until(self, faults, own, silent, total, main_is_silent=False):
        """Of what was counted, what there was when the process had touched so many pages: page faults of the main
        thread, of silent ones, and which part of the threads' latest. Whose those since then are is not known, but
        hardly those of a main thread that says nothing."""
        own_new, silent_new = max(0, own - self._own), max(0, silent - self._silent)
        new = silent_new + sum(slot.new for slot in self._slots.values()) + (0 if main_is_silent else own_new)
        later = 0 if faults is None else max(0, total - faults)
        if later <= FEW_LATER * new:
            return own, silent, 1.0
        part = max(0.0, 1 - later / new) if new else 0.0
        return self._own + (1 if main_is_silent else part) * own_new, self._silent + part * silent_new, part

    def _are_about_to_speak(self):
        """A thread says its line when its page is there, and pages are counted before, perhaps before anybody heard
        that it began. Each page has its word: what is looked at late adds up."""
        silent = [slot for slot in self._speaking() if slot.new >= self._period and not slot.heard]
        are_awaited = bool(silent or (self._grows and self._unheard))
        now = time.monotonic()
        self._waits_since = (self._waits_since or now) if are_awaited else None
        return are_awaited and now - self._waits_since < PATIENCE

    def _speaking(self):
        """The slots of threads that say where they grow."""
        return [slot for number, slot in self._slots.items() if number != NO_SLOT] if self._grows else []

    def told(self, main, grown, main_grows, told):
        """The same for the moment at which the process told something: the shares. Some of the page faults that can be
        counted now came later, and what they brought has not grown yet."""
        self._take(thread_state.page_faults(self.pid, list(self._slot_of)))
        others = max(0, told.faults - told.own_faults - self._others)
        theirs = sum(slot.new for slot in self._slots.values())
        silent = self._silent + max(0, others - theirs)
        part = min(1.0, others / theirs) if theirs else 0.0
        is_new = self._share(main, grown, main_grows, told.own_faults, silent, part)
        return self.shares if is_new else []

    def _count(self):
        """The page faults of the main thread so far, those of threads without Python, and all of them; None if the
        process has ended."""
        total = thread_state.all_page_faults(self.pid)  # first: later it would have more of the main thread's
        now = thread_state.page_faults(self.pid)
        if self.pid not in now:
            return None
        for thread in self._slots[NO_SLOT].found - now.keys():  # a number may be another thread's later
            self._end(thread, self._faults.get(thread, 0))
        self._meet(now)
        self._take(now)
        theirs = sum(slot.faults for slot in self._slots.values())
        return now[self.pid], max(0, total - now[self.pid] - theirs), total

    def _meet(self, now):
        """Those that have grown and were not there the last time may have said by now who they are, and those that are
        there no more how many pages they have touched in all."""
        unknown = now.keys() - self._slot_of.keys() - {self.pid}
        newcomers = {thread for thread in unknown - self._unknown if now[thread] >= self._period}
        gone = self._slot_of.keys() - now.keys()
        self._unheard = newcomers | (gone - self._gone)
        self._unknown, self._gone = unknown, gone

    def _take(self, now):
        """Some of them may have ended: those that Python starts tell how many these were in all."""
        self._faults = {thread: now.get(thread, self._faults.get(thread, 0)) for thread in self._slot_of}
        for slot in self._slots.values():
            slot.count(self._faults)

    def _share(self, main, grown, main_grows, own, silent, part=1.0, main_is_silent=False):
        """What is neither the main thread's nor that of silent ones is theirs, as far as this part of their latest page
        faults goes. A main thread that would have told of more has touched small pages. False if nothing is new."""
        own_new, silent_new = max(0, own - self._own), max(0, silent - self._silent)
        total = own_new + silent_new + part * sum(slot.new for slot in self._slots.values())
        if total <= 0:  # they were counted before
            return False
        mains = min(grown, own_new * PAGE) if main_is_silent else 0
        if main_is_silent:
            total, own_new = total - own_new, 0
        self._page = max(1.0, (grown - mains) / total) if total > 0 else PAGE
        if grown <= MOST_IN_PAGES * total * LARGEST_PAGE:
            # else it was there for a moment between two looks, and belongs to those who grew last
            theirs = 1 - mains / grown if mains else 1.0
            shares = self._divided(main, main_grows, own_new, total, part) if part else []
            self.shares = [(label, share * theirs) for label, share in shares]
        self._settle(own, silent, part)
        self._period = FEW if grown < MUCH else min(max(1, int(BYTES_BETWEEN / self._page)), MOST_FAULTS)
        return True

    def _settle(self, own, silent, part=1.0):
        """Whose the latest page faults are is known, or this part of the threads'."""
        self._own, self._silent = max(own, self._own), max(silent, self._silent)
        for slot in self._slots.values():
            slot.begin_anew(part)
        self._others = self._silent + sum(slot.faults - slot.new for slot in self._slots.values())
        self._faults_before = dict(self._faults)

    def _divided(self, main, main_grows, own, total, part):
        """[(label, share)]: of pages of one kind their number tells. Of others each has brought a small page at least,
        and what the huge ones among them are beyond that may be of whoever has touched enough of them."""
        sure = 1.0 if self._page < SMALL_PAGE or self._page > HUGE_PAGE else PAGE / self._page
        beyond = (1 - sure) * self._page * total
        shares = [
            (label, part * slot.new / total * share * sure)
            for slot in self._slots.values()
            if slot.new
            for label, share in slot.labels(main, WORDS * self._period)
        ]
        if not beyond:
            return shares
        least = NEXT_TO_NOTHING * beyond / LARGEST_PAGE
        growing = [slot for slot in self._slots.values() if part * slot.new > least]
        labels = [slot.labels(main, WORDS * self._period, is_mixed=True) for slot in growing]
        main_grows = main_grows or own > max(least, TO_START)
        if not main_grows and len(labels) == 1:
            return labels[0]
        either = [parts[0][0] for parts in labels] + [main] * main_grows
        return [*shares, (Label(either=tuple(either)), 1 - sure)] if labels else shares

    def rest(self, faults=None):
        """Nothing has grown: what they said a while ago was about nothing, and they may say more of what comes. The
        process had touched so many pages by then; what these have touched since may be the beginning of much."""
        if any(slot.heard for slot in self._slots.values()):
            counted = self._count()
            if counted:  # the few pages at the end of a block, whose bytes are next to nothing
                self._settle(*self._until(faults, *counted))
        has_spoken = [slot.rest() for slot in self._slots.values()]
        if any(has_spoken) and self._again.take(time.monotonic()):
            self.ask()

    def ask(self):
        """Let those that may have used up their words say their lines again when they go on."""
        for number, slot in self._slots.items():
            if number == NO_SLOT or not self._grows:
                continue
            for thread in slot.started:
                if slot.may_have_spoken(self._period) or thread not in self._events:
                    self._let_speak(thread, number)
            slot.is_asked(self._period)

    def _let_speak(self, thread, number):
        self._close(thread)
        if thread_state.catches(self.pid, number):
            with suppress(OSError, KeyError):  # it may have ended
                self._events[thread] = page_faults.Event(thread, number)
                self._events[thread].repeat(self._period, WORDS)

    def found(self, thread, line):
        """A thread was in this line when the process was asked; it counts if nothing better is to be had of a thread
        that has just touched pages."""
        slot = self._slot_of.setdefault(thread, self._slots[NO_SLOT])
        if thread not in slot.started:
            slot.found.add(thread)
        elif slot in self._speaking():
            return
        if self._touched(thread) >= LEAST_FAULTS:
            slot.hear(line)

    def _close(self, thread):
        if thread in self._events:
            self._events.pop(thread).close()

    def close(self):
        for event in self._events.values():
            event.close()
