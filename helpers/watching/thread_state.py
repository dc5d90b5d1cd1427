"""The threads of a process from outside: what they do just now, which pages they have touched, what may reach them."""

import os
import platform
from contextlib import suppress
from pathlib import Path

from helpers.watching.processes import minor_faults

FUTEX = {"x86_64": "202", "aarch64": "98"}.get(platform.machine())


def page_faults(pid, threads=None):
    """{thread: how many pages it has touched for the first time}, of these threads or of all: memory grows by these."""
    faults = {}
    for thread in threads or _threads(pid):
        # a thread may have just ended
        with suppress(OSError), open(f"/proc/{pid}/task/{thread}/stat", "rb", buffering=0) as stat:
            faults[int(thread)] = minor_faults(stat.read(1024))
    return faults


def all_page_faults(pid):
    """The same of all its threads together, those included that have ended; 0 if the process has."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as stat:
            return minor_faults(stat.read(1024))
    except (OSError, IndexError):
        return 0


def thread_effort(pid, thread):
    """The state of a thread (R runs, S sleeps, ...) and the seconds that it has worked."""
    try:
        with open(f"/proc/{pid}/task/{thread}/stat", "rb", buffering=0) as stat:
            state = stat.read(1024).rpartition(b")")[2].split()[0].decode()
        with open(f"/proc/{pid}/task/{thread}/schedstat", "rb", buffering=0) as schedstat:
            return state, int(schedstat.read(128).split()[0]) / 1e9
    except (OSError, IndexError):
        return "?", 0.0


def may_be_interrupted(pid, thread):
    """Whether a signal breaks nothing in this thread: it works, or waits for a lock. Other calls of the system that
    wait may be cut short by a signal, and C code may not expect that."""
    with suppress(OSError, IndexError):
        call = Path(f"/proc/{pid}/task/{thread}/syscall").read_text().split()[0]
        return call in ("running", FUTEX)
    return thread_effort(pid, thread)[0] == "R"


def catches(pid, number):
    """Whether a process has a handler for this signal."""
    with suppress(OSError, IndexError, ValueError):
        text = Path(f"/proc/{pid}/status").read_text()
        return bool(int(text.split("SigCgt:")[1].split()[0], 16) >> (number - 1) & 1)
    return False


def _threads(pid):
    with suppress(OSError):
        return os.listdir(f"/proc/{pid}/task")
    return []


def borrows_memory(pid):
    """Whether a process may be between its start and its own program (vfork): until then it lives in the memory of its
    parent, which would count twice, and a thread of that sleeps so deeply (D) that no signal wakes it."""
    try:
        parent = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return False
    return any(thread_effort(parent, thread)[0] == "D" for thread in _threads(parent))
