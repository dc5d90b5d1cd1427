"""The kernel counts the page faults of a thread, and signals this very thread when it grows. Needs only Python."""

import fcntl
import os
import platform
import struct
import time

HIGH = 600
"""Descriptors are put where ordinary programs have none."""
FINE, SPARING, COARSE = 4, 8, 1024
"""Page faults until growth asks again: the first ones (less would be what the answer itself touches), a few more, or
many in a loop that grows with every turn. A page may be a huge one."""
LOUD, QUIET, BELOW_PEAK = (50, 20), (1000, 50), (20, 2)
"""How often it may ask so: at once, and per second. A training loop takes and gives back the same memory all the time;
once it has used up what is allowed below its peak, it is asked on a clock."""
PAGE = 4096
LEAST_STEP = 2**20
SMALL_STEP, SMALL_STEPS = 2**18, 8
"""After so many steps of less than that it goes on quietly."""
SECONDS_BETWEEN = 0.002
"""A loop that grows faster than that is asked coarsely, once it has used up what is allowed."""
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
PERF_SOFTWARE, PERF_PAGE_FAULTS, PERF_CLOEXEC = 1, 2, 8
PERF_REFRESH, PERF_PERIOD = 0x2402, 0x40082404
PERF_DISABLED, PERF_USER_ONLY = 1, 1 << 5 | 1 << 6
F_SETSIG, F_SETOWN_EX, F_OWNER_TID = 10, 15, 0


def out_of_the_way(descriptor):
    """The same file at a high number."""
    try:
        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, HIGH)
    except OSError:  # this process may not have so many
        return descriptor
    os.close(descriptor)
    return high


def identity(descriptor):
    """Which file it leads to: a program may close what it did not open, and open something else in its place."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


class Allowance:
    """A bucket of permissions that fills again at a steady rate; `take` one, or be refused.

    >>> allowance = Allowance(burst=2, per_second=1)
    >>> [allowance.take(moment) for moment in (0.0, 0.1, 0.2, 1.3)]
    [True, True, False, True]
    """

    def __init__(self, burst, per_second):
        self.burst, self.per_second = burst, per_second
        self._left, self._counted = float(burst), None

    def take(self, now):
        """True if it may happen at the moment `now`, in seconds of any clock."""
        if self._counted is not None:
            self._left = min(self.burst, self._left + (now - self._counted) * self.per_second)
        self._counted = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class PageFaults:
    """Those of the main thread, in the program's own code and not in the kernel's on its behalf: they send a signal.

    While it `is_loud` the stack is written at once, which takes a tenth of a millisecond. Where memory grows in many
    small steps, as while modules are imported, it is quiet: only what Python tells after a larger step counts.
    """

    def __init__(self, pid, number):
        self.event = out_of_the_way(page_fault_event(pid))
        self._identity = identity(self.event)
        send_signal_of(self.event, number, pid)
        self.is_loud, self._small_steps, self._level, self._highest, self._moment = True, 0, 0, 0, 0.0
        self._loud, self._quiet, self._below_peak = (Allowance(*rate) for rate in (LOUD, QUIET, BELOW_PEAK))

    def plan(self, level):
        """After how many faults the next growth is to ask, 0 for never; `level` is what the process holds now."""
        now, step, before = time.monotonic(), level - self._level, self._moment
        self._moment, self._level = now, level
        self._small_steps = 0 if step >= SMALL_STEP else self._small_steps + 1
        below, self._highest = level <= self._highest, max(level, self._highest)
        self.is_loud = self._small_steps < SMALL_STEPS and not (below and not self._below_peak.take(now))
        if not self.is_loud:
            return SPARING if self._quiet.take(now) else 0 if below else COARSE
        if below:
            return FINE
        if self._loud.take(now):
            return FINE
        return SPARING if now - before > SECONDS_BETWEEN else COARSE

    def speak_up(self):
        """Small steps have become much: the next one is loud, and tells whose they are as a sample does."""
        self.is_loud = True

    def arm(self, faults):
        """Let growth ask once, after so many faults."""
        if identity(self.event) == self._identity:
            fcntl.ioctl(self.event, PERF_PERIOD, struct.pack("Q", faults))
            fcntl.ioctl(self.event, PERF_REFRESH, 1)

    def close(self):
        """Let it ask no more."""
        if identity(self.event) == self._identity:
            os.close(self.event)


def are_counted():
    """Whether the kernel lets us count page faults here."""
    try:
        os.close(page_fault_event(0))
        return True
    except (OSError, ImportError, KeyError):
        return False


def page_fault_event(thread):
    """A descriptor that counts the page faults of a thread; OSError where the kernel refuses."""
    import ctypes  # here, since it takes longer than all the rest, and where the kernel forbids this nobody needs it

    number = PERF_EVENT_OPEN[platform.machine()]
    size = 112
    flags = PERF_DISABLED | PERF_USER_ONLY
    attributes = struct.pack("IIQQQQQ", PERF_SOFTWARE, size, PERF_PAGE_FAULTS, FINE, 0, 0, flags).ljust(
        size, b"\0"
    )
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.syscall(number, attributes, thread, -1, -1, PERF_CLOEXEC)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "perf_event_open")
    return descriptor


def send_signal_of(event, number, thread):
    """Whenever the event overflows, this thread gets this signal."""
    fcntl.fcntl(event, F_SETOWN_EX, struct.pack("ii", F_OWNER_TID, thread))
    fcntl.fcntl(event, F_SETSIG, int(number))
    fcntl.fcntl(event, fcntl.F_SETFL, fcntl.fcntl(event, fcntl.F_GETFL) | os.O_ASYNC)
