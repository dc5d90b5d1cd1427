"""A tree of processes: who is in it, how much memory it holds, and how to end it."""

import functools
import os
import signal
import time
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

import psutil

from helpers.watching.pages import PAGE, reach

PROC = Path("/proc")
HAS_PROC = PROC.joinpath("self", "status").exists()


class Memory(NamedTuple):
    """What one process holds: bytes of its own, bytes shared with others, and its highest total so far."""

    anonymous: int
    shared_memory: int
    files: int
    highest: int

    @property
    def resident(self):
        return self.anonymous + self.shared_memory + self.files


NOTHING = Memory(0, 0, 0, 0)


def memory_of(pid):
    """Read one process; a process that is gone holds nothing.

    >>> memory_of(os.getpid()).anonymous > 1_000_000
    True
    """
    with Meter(pid) as meter:
        return meter.read()


class Meter:
    """Reads the memory of one process again and again; keeping the files open makes that three times as fast."""

    def __init__(self, pid):
        self.pid, self._file, self._short_file, self._counters = pid, None, None, None
        with suppress(OSError):
            self._file = os.open(f"/proc/{pid}/status", os.O_RDONLY | os.O_CLOEXEC)
            self._short_file = os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)
            self._counters = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)

    def read(self):
        if not HAS_PROC:
            return _memory_from_psutil(self.pid)
        try:
            return _memory_from_status(os.pread(self._file, 8192, 0))
        except (OSError, TypeError):
            return NOTHING

    def glance(self):
        """A fifth of the effort of a full reading: a text that is the same as long as the memory is; see
        `parse_glance`. Empty where the system does not tell."""
        try:
            return os.pread(self._short_file, 256, 0)
        except (OSError, TypeError):
            return b""

    def faults(self):
        """How many pages all its threads have touched for the first time; None where the system does not tell."""
        try:
            return minor_faults(os.pread(self._counters, 1024, 0))
        except (OSError, TypeError, IndexError):
            return None

    def reach(self):
        """The account of `reach` for this process; None where the system does not tell."""
        try:
            return reach(*_all_faults(os.pread(self._counters, 1024, 0)))
        except (OSError, TypeError, IndexError):
            return None

    def close(self):
        for file in (self._file, self._short_file, self._counters):
            if file is not None:
                os.close(file)
        self._file = self._short_file = self._counters = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def parse_glance(text):
    """Bytes of a process's own and all bytes that it shares, files among them; None if it has ended."""
    _, resident, shared, *_ = text.split(None, 3) or (b"", b"0", b"0")
    if resident == b"0":
        return None
    return (int(resident) - int(shared)) * PAGE, int(shared) * PAGE


def _memory_from_status(text):
    return Memory(
        *(_kilobytes(text, key) for key in (b"\nRssAnon:", b"\nRssShmem:", b"\nRssFile:", b"\nVmHWM:"))
    )


def _kilobytes(text, key):
    start = text.find(key)
    if start < 0:  # a zombie has no memory lines
        return 0
    start += len(key)
    return int(text[start : text.index(b"kB", start)]) * 1024


def _memory_from_psutil(pid):
    try:
        info = psutil.Process(pid).memory_info()
    except psutil.Error:
        return NOTHING
    return Memory(info.rss, 0, 0, getattr(info, "peak_wset", info.rss))


def exact_share(pid):
    """Bytes of a process (its own, shared) when pages shared since a fork are divided among those who share them.

    Slow, since it walks the page tables; for the moments in which a plain sum over a family is not enough.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as rollup:
            found = dict(
                line.split()[:2] for line in rollup if line.startswith((b"Pss_Anon:", b"Pss_Shmem:"))
            )
        return int(found[b"Pss_Anon:"]) * 1024, int(found[b"Pss_Shmem:"]) * 1024
    except (OSError, KeyError):
        memory = memory_of(pid)
        return memory.anonymous, memory.shared_memory


def descendants(pid):
    """The process ids of all children, grandchildren and so on; `pid` itself is not among them."""
    if not HAS_PROC:
        try:
            return [child.pid for child in psutil.Process(pid).children(recursive=True)]
        except psutil.Error:
            return []
    found, queue = [], [pid]
    while queue:
        for child in _children(queue.pop()):
            found.append(child)
            queue.append(child)
    return found


def _children(pid):
    children = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as listing:
                children += map(int, listing.read().split())
    except OSError:
        pass  # the process ended while it was being read
    return children


def minor_faults(stat):
    return _all_faults(stat)[0]


def _all_faults(stat):
    fields = stat.rpartition(b")")[2].split()
    return int(fields[7]), int(fields[9])


def exit_code_of(status):
    """The exit code that a shell would show: 137 for a process that was killed by signal 9."""
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def open_pidfd(pid):
    """A file that can be read once this process has ended; None where the system has no such thing or refuses it."""
    try:
        return FileIO(os.pidfd_open(pid), "r")
    except (AttributeError, OSError):
        return None


def newest_pid():
    """A number that changes whenever any process or thread is started; None where the system does not tell."""
    try:
        return os.pread(_load_average(), 128, 0).split()[-1]
    except OSError:
        return None


@functools.cache
def _load_average():
    """Asked so often that the file stays open."""
    return os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)


@contextmanager
def held_still(pids):
    """Stop these processes for the length of a `with` block."""
    for pid in pids:
        _send(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            _send(pid, signal.SIGCONT)


def end_descendants(pid, seconds=10):
    """Kill everything beneath `pid` and reap it; True when nothing is left.

    Processes are stopped before they are killed, so that a fork storm cannot outrun the hunt.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        family = descendants(pid)
        for sign in (signal.SIGSTOP, signal.SIGKILL):
            for member in family:
                _send(member, sign)
        _reap()
        if not descendants(pid):
            return True
        time.sleep(0.002)
    return False


def _send(pid, sign):
    with suppress(OSError):  # it is gone, which is what we want
        os.kill(pid, sign)


def _reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
