"""The kernel counts the page faults of a thread, and signals this very thread when it grows. Needs only Python."""

import fcntl
import os
import platform
import resource
import struct
import sys
import time

HIGH = 600
"""Descriptors are put where ordinary programs have none."""
FEW, SPARING, LARGEST = 8, 24, 1024
"""Page faults until growth asks again; more where memory grows by that many again and again."""
LARGE_PAGE = 2**16
"""Where a page brings so many bytes and more, as a huge one does, each asks."""
MANY, MANY_MORE = 12, 48
"""Page faults within one call until its line is written while it goes on: a call of that size may be killed in the
midst, or be over long before Python is between two instructions. More of them where this has happened often."""
OFTEN, OFTEN_BELOW_PEAK = (1000, 200), (1000, 50)
"""How often growth may ask: at once, and per second. While modules are imported it asks all the time."""
EFFORT, DUTY = 5e-5, 0.03
"""Seconds that an answer takes, the signal included, and the share of the time that may go into them beyond that."""
WRITTEN, WRITTEN_BELOW_PEAK = (100, 100), (20, 2)
"""How often a line may be written within a call, which takes a tenth of a millisecond. A training loop takes and gives
back the same memory all the time; once it has used up what is allowed below its peak, it is asked on a clock."""
PAGE = 4096
LEAST_STEP, LEAST_OF_FILES = 2**20, 2**22
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
PERF_SOFTWARE, PERF_PAGE_FAULTS, PERF_CLOEXEC = 1, 2, 8
PERF_ENABLE, PERF_DISABLE, PERF_REFRESH, PERF_PERIOD = 0x2400, 0x2401, 0x2402, 0x40082404
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

    There are two. `asks` comes after a few faults and is answered by Python between two instructions. `writes` comes
    after some more of them, if Python has not been there meanwhile; there need not be one."""

    def __init__(self, pid, asks, writes=None):
        self._few = Event(pid, asks)
        self._many = None if writes is None else Event(pid, writes)
        self._highest, self._is_often, self._moment, self._faults = 0, False, 0.0, FEW
        self._few_pages, self._before = FEW, (0, 0)
        self._asking, self._asking_below = Allowance(*OFTEN), Allowance(*OFTEN_BELOW_PEAK)
        self._writing, self._writing_below = Allowance(*WRITTEN), Allowance(*WRITTEN_BELOW_PEAK)

    def is_intact(self):
        """False once the program has closed what it did not open."""
        return self._few.is_open()

    def stop_writing(self):
        """Write no line until this is armed again; returns whether one was written since it was armed last."""
        if self._many is None:
            return False
        self._many.stop()
        return self._many.has_come()

    def write_no_more(self):
        """The signal for it is the program's own now."""
        if self._many:
            self._many.close()
            self._many = None

    def plan(self, level, has_written=False):
        """After how many faults the next growth is to ask and to write, 0 for never; `level` is what the process holds
        now."""
        now = time.monotonic()
        seconds, self._moment = max(now - self._moment, EFFORT), now
        below, self._highest = level <= self._highest, max(level, self._highest)
        few = self._few_of_such_pages(level)
        if below:
            if self._writing_below.take(now):
                return few, MANY
            return (few, 0) if self._asking_below.take(now) else (0, 0)
        if has_written:
            self._is_often = not self._writing.take(now)
        sparing = min(max(SPARING, int(self._faults / seconds * EFFORT / DUTY)), LARGEST)
        self._faults = few if self._asking.take(now) else sparing
        return self._faults, self._faults - few + (MANY_MORE if self._is_often else MANY)

    def _few_of_such_pages(self, level):
        """How large pages are shows in the growth since it was planned before; what has shrunk says nothing of it."""
        touched = pages_touched()
        (level_before, touched_before), self._before = self._before, (level, touched)
        if level > level_before and touched > touched_before:
            is_large = level - level_before >= LARGE_PAGE * (touched - touched_before)
            self._few_pages = 1 if is_large else FEW
        return self._few_pages

    def arm(self, few, many):
        """Let growth ask once and write once, after so many faults each."""
        if self._many:
            self._many.arm(many)
        self._few.arm(few)

    def close(self):
        """Let it ask no more."""
        self._few.close()
        self.write_no_more()


class Event:
    """Page faults of a thread that are counted by the kernel, and that send this thread a signal once it is armed."""

    def __init__(self, thread, number):
        self.descriptor = out_of_the_way(page_fault_event(thread))
        self._identity = identity(self.descriptor)
        send_signal_of(self.descriptor, number, thread)
        self._period, self._due_at, self._has_one_left = 0, 0, False

    def arm(self, faults):
        """Send the signal once, after so many faults from now on; not at all after 0."""
        self.stop()
        self._due_at = 0
        if not faults:
            return
        if self._has_one_left or faults != self._period:
            fcntl.ioctl(self.descriptor, PERF_PERIOD, struct.pack("Q", faults))
            self._period = faults
        self._due_at = self._count() + faults
        fcntl.ioctl(self.descriptor, *((PERF_ENABLE, 0) if self._has_one_left else (PERF_REFRESH, 1)))
        self._has_one_left = False

    def stop(self):
        """Send it no more. It counts no more faults, either: whether it `has_come` will not change."""
        if self._is_armed():
            fcntl.ioctl(self.descriptor, PERF_DISABLE, 0)
            self._has_one_left = self._is_armed()

    def repeat(self, faults, times):
        """Send the signal after so many faults each, so often."""
        fcntl.ioctl(self.descriptor, PERF_PERIOD, struct.pack("Q", faults))
        fcntl.ioctl(self.descriptor, PERF_REFRESH, times)

    def _is_armed(self):
        return self._due_at > 0 and not self.has_come()

    def has_come(self):
        """Whether there were so many."""
        return 0 < self._due_at <= self._count()

    def is_open(self):
        return identity(self.descriptor) == self._identity

    def _count(self):
        return int.from_bytes(os.read(self.descriptor, 8), sys.byteorder)

    def close(self):
        if self.is_open():
            os.close(self.descriptor)


def pages_touched():
    """By this thread, each for the first time."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


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
    attributes = struct.pack("IIQQQQQ", PERF_SOFTWARE, size, PERF_PAGE_FAULTS, FEW, 0, 0, flags).ljust(
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
