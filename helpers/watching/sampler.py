"""The memory of a running tree of processes over time, and its true peak."""

import os
import time
from array import array

from helpers.watching import processes, thread_state
from helpers.watching.page_faults import Allowance
from helpers.watching.pages import reach
from helpers.watching.shared_memory import SharedFiles

INTERVAL, LATER, READINGS = 0.009, 0.04, 200
"""Seconds between two readings, at first and in the end, and how many of them the curve of a job has at least: the
longer it runs, the rarer they are."""
GROWING = 0.002
FASTEST = 0.001
SECONDS_TO_LOOK = 0.1
SECONDS_BETWEEN_FULL = 0.05
"""Between two full readings there are glances, which tell neither the highest point nor files from shared memory."""
LEAST_GROWTH = 2**20
LEAST_SHARED = 2**18
FAST_READINGS_BELOW_PEAK = 200, 5
"""At once, and per second: memory that is given back and taken again is read as closely as new heights, so that the low
point between the two is seen; a training loop that does so all the time is not."""
FASTEST_GROWTH = 8e9
"""Bytes per second: memory fills no faster, so a watchdog may sleep until a job could reach its budget."""
MANY_READINGS = 5
WORTH_A_WORD = 0.05
EXACT_DUTY = 0.01
"""The share of the time that may go into exact readings of a family of processes."""


def pause_after(seconds):
    """Between two readings of a job that has run for so long.

    >>> pause_after(1), pause_after(5), pause_after(3600)
    (0.009, 0.025, 0.04)
    """
    return min(LATER, max(INTERVAL, seconds / READINGS))


class Sampler:
    """Watches one job: `start` it, `tick` it often, `finish` it."""

    def __init__(self, pid, limiter):
        self.pid, self.limiter = pid, limiter
        self.used = self.peak = self._peak_alone = 0
        self._seconds, self._ram = array("d"), array("d")
        self.family, self._newest_pid, self._had_children = [pid], None, False
        self._births, self._offset, self._exact_after = {}, 0, 0.0
        self._growing, self._look_until = False, 0.0
        self._fast_below_peak = Allowance(*FAST_READINGS_BELOW_PEAK)
        self._full_at, self._seen, self._looked, self._files = 0.0, b"", False, 0
        self._anchor, self._of_others = None, (0, 0)

    def start(self):
        """Take the baseline: what the process holds now is not the job's."""
        self.started = self.moment = time.monotonic()
        self._meter = processes.Meter(self.pid)
        self.shared_files = SharedFiles()
        self._last = self._base = self._read()
        self.faults = self._meter.faults()
        self._base_bytes = self._base.anonymous + self._base.shared_memory
        self._charged_base = self.limiter.charged()
        self._exact_base = None if self.limiter.in_kernel else self._exact()

    def tick(self, in_full=False):
        """Take one reading; returns the bytes that the job's whole tree has added."""
        now = time.monotonic()
        self._full_at = 0.0 if in_full else self._full_at
        spike = 0
        if self._is_as_before(now):
            self._growing = False
        else:
            anchor = self._anchor
            memory = self._glance(now) or self._full_reading(now)
            if memory.resident == 0:  # it has just ended
                self._anchor, self._seen = (
                    anchor,
                    b"",
                )  # this is no reading, and the next one is not as before
                return self.used
            spike = max(0, self._take(memory, now, anchor))
        self.moment = now
        self._seconds.append(now - self.started)
        self._ram.append(self.used + spike)
        return self.used

    def _is_as_before(self, now):
        """Nothing has changed, as often in a training loop, and others than the job were looked at a moment ago."""
        before, self._seen = self._seen, self._meter.glance()
        if now >= self._full_at or len(self.family) > 1 or not self._looked or self._may_have_children(now):
            return False
        self._looked = not before or self._seen != before
        return not self._looked

    def _may_have_children(self, now):
        """Where nobody else guards the budget, a job that rests may have started one that does not."""
        if self.limiter.in_kernel:
            return False
        return now < self._look_until or processes.newest_pid() != self._newest_pid

    def _take(self, memory, now, anchor):
        """Count a reading; returns the bytes by which memory was higher since the last one."""
        files = self._look_around(now)
        alone = self._added(memory.anonymous, memory.shared_memory, files)
        used = alone if len(self.family) <= 1 else self._used_by_family(memory, alone, files)
        spike = self._spike(memory, anchor) - alone
        before, self.used = self.used, max(0, used)
        self._growing = self._is_worth_a_close_look(self.used - before, now)
        self.peak = max(self.peak, self.used + max(0, spike))
        self._peak_alone = max(self._peak_alone, alone + max(0, spike))
        self._last, self.faults = memory, self._meter.faults()
        return spike

    def _is_worth_a_close_look(self, change, now):
        """Memory grows to new heights, or moves below them and has not done so for long."""
        if change > LEAST_GROWTH and self.used > self.peak:
            return True
        return abs(change) > LEAST_GROWTH and self._fast_below_peak.take(now)

    def pause(self):
        """Seconds until the next reading: short at new heights, and when a watchdog's budget is near."""
        pause = GROWING if self._growing else pause_after(self.moment - self.started)
        if self.limiter.in_kernel:
            return pause
        seconds_to_fill = (self.limiter.budget - self.used) / FASTEST_GROWTH
        if pause > INTERVAL:  # children of the job may be found only with the reading after the next
            pause = max(INTERVAL, min(pause, seconds_to_fill / MANY_READINGS))
        return min(pause, max(FASTEST, seconds_to_fill))

    @property
    def held(self):
        """All bytes of the job's own process at the last reading, those before its start included."""
        return self._last.anonymous + self._last.shared_memory

    def finish(self, rusage=None, mapped=0, killed_at=0):
        """The job has ended; `rusage` has the kernel's figures from `wait4`, `mapped` is the bytes of files that were
        in it at last: both may have risen since the last reading. A job that the kernel killed at its budget had
        filled it, whatever was seen of that."""
        self._meter.close()
        highest_resident = rusage.ru_maxrss * 1024 if rusage else 0
        if highest_resident > self._last.highest and not self._had_children:
            last_rise = highest_resident - max(mapped, self._last.files)
            most = self._most_held(self._anchor, reach(rusage.ru_minflt, rusage.ru_majflt))
            last_rise = min(last_rise, most) - self._base_bytes
            self.peak = max(self.peak, last_rise)
            self._peak_alone = max(self._peak_alone, last_rise)
        if killed_at > self.peak:
            self.peak = killed_at
            if not self._had_children:
                self._peak_alone = killed_at

    def curve(self):
        return self._seconds, self._ram

    @property
    def peak_held(self):
        """All bytes of the job's own process at its peak, those before its start included."""
        return self._base_bytes + self._peak_alone

    @property
    def peak_elsewhere(self):
        """The bytes at the peak that other processes of the tree held, if they were much."""
        elsewhere = self.peak - self._peak_alone
        return elsewhere if self._had_children and elsewhere > WORTH_A_WORD * self.peak else 0

    def _added(self, anonymous, shared_memory, files):
        return anonymous - self._base.anonymous + max(shared_memory - self._base.shared_memory, files)

    def _glance(self, now):
        """A quick reading of a job that has no children; None when it is time for a full one."""
        if now >= self._full_at or len(self.family) > 1:
            return None
        seen = processes.parse_glance(self._seen)
        known = self._last.shared_memory + self._last.files
        if seen is None or abs(seen[1] - known) > LEAST_SHARED:
            return None
        return processes.Memory(seen[0], self._last.shared_memory, self._last.files, self._last.highest)

    def _full_reading(self, now):
        self._full_at = now + SECONDS_BETWEEN_FULL
        return self._read()

    def _read(self):
        """A full reading is also the anchor of what can have been reached until the next one."""
        reach_before = self._meter.reach()
        memory = self._without_files_of_others(self._meter.read())
        self._anchor = memory.anonymous + memory.shared_memory, reach_before
        return memory

    def _without_files_of_others(self, memory):
        """What others keep in shared memory and the job has mapped counts as a file, and not as memory of the job."""
        before, now = self._of_others, (0, 0)
        if memory.shared_memory >= LEAST_SHARED:
            now = self.shared_files.of_others(self.pid) or before
        self._of_others = now
        # a mapping that is given up has gone from the list of mappings before its pages go from the kernel's count
        others = min(memory.shared_memory, max(before[0], now[0]))
        return memory._replace(shared_memory=memory.shared_memory - others, files=memory.files + others)

    def _spike(self, memory, anchor):
        """The highest point since the last reading, which may lie between the two. The kernel's figure has files in
        it, and those that were mapped and left in between nobody saw: it counts as far as the job can have reached."""
        if memory.highest <= self._last.highest:
            return 0
        highest = memory.highest - max(memory.files, self._last.files)
        if highest > memory.anonymous + memory.shared_memory:
            highest = min(highest, self._most_held(anchor, self._meter.reach()))
        return highest - self._base_bytes

    @staticmethod
    def _most_held(anchor, reach_now):
        """The bytes that a process can have held since an anchor, at the most."""
        held, reach_then = anchor
        return float("inf") if None in (reach_now, reach_then) else held + reach_now - reach_then

    def _look_around(self, now):
        """Find children and shared files; returns the bytes of these. With every reading that finds a change if nobody
        else guards the budget, else with every other."""
        self._looked = not self._looked or not self.limiter.in_kernel
        if self._looked:
            self._refresh_family(now)
            self._files = self.shared_files.size(self.family)
        return self._files

    def _refresh_family(self, now):
        """Look for children for a while after some process was started somewhere, and not all the time. One look is
        not enough: a grandchild whose parent ends in that very moment is nowhere to be seen."""
        newest = processes.newest_pid()
        if newest != self._newest_pid:
            self._newest_pid, self._look_until = newest, now + SECONDS_TO_LOOK
        if len(self.family) > 1 or now < self._look_until or newest is None:
            self.family = processes.descendants(os.getpid())
            self._had_children = self._had_children or len(self.family) > 1

    def _used_by_family(self, memory, alone, files):
        """Bytes of a whole tree: the kernel's account where it keeps one, else a quick sum that is kept exact.

        After a fork a page counts in parent and child, so the quick sum takes only what a child added since it was
        first seen. Exact shares are read now and then, and always before a budget counts as exceeded; for that
        the family is held still, since the reading takes long enough to fill much memory.
        """
        charged = self.limiter.charged()
        if charged is not None:
            return charged - self._charged_base
        quick = alone + self._added_by_children(memory.anonymous)
        began = time.monotonic()
        if began >= self._exact_after or quick + self._offset > self.limiter.budget:
            found = self._exact()
            if found and self._exact_base:
                exact = found[0] - self._exact_base[0] + max(found[1] - self._exact_base[1], files)
                self._offset = exact - quick
                self._exact_after = began + (time.monotonic() - began) / EXACT_DUTY
        return quick + self._offset

    def _added_by_children(self, most):
        """What children hold beyond what they got from their parent: at most what any process held before them."""
        added, before = 0, dict(self._births)
        for pid in self.family:
            if pid != self.pid:
                anonymous = processes.memory_of(pid).anonymous
                # a fork that becomes another program gives back what it shared
                self._births[pid] = min(anonymous, before.get(pid, most))
                added += anonymous - self._births[pid]
                most = max(most, anonymous) if pid in before else most
        return added

    def _exact(self):
        """All memory of this watcher and the family together, each page counted once; None if the family changed
        meanwhile: the share of whoever comes or goes would be missing, or count twice."""
        with processes.held_still(self.family):
            before = {pid for pid in processes.descendants(os.getpid()) if processes.memory_of(pid).resident}
            if any(map(thread_state.borrows_memory, before)):
                return None
            shares = {pid: self._exact_share(pid) for pid in (os.getpid(), *before)}
            after = {pid for pid in processes.descendants(os.getpid()) if processes.memory_of(pid).resident}
        if before != after or any(map(thread_state.borrows_memory, after)):
            return None
        return tuple(map(sum, zip(*shares.values(), strict=True)))

    def _exact_share(self, pid):
        own, shared = processes.exact_share(pid)
        of_others = self.shared_files.of_others(pid) if shared > LEAST_SHARED else None
        return own, shared - (of_others[1] if of_others else 0)
