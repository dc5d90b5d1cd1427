"""Enforcing a RAM budget on a process tree: cgroup v2, cgroup v1, rlimit, or a watchdog.

Every limiter has the same life: `admit` the process before it does anything, `arm` it with a budget on top of
what the process holds by then, ask `exceeded` after each reading, `release` what it took from the system.
"""

import os
import shutil
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from helpers.cgroups import GroupV1, GroupV2

try:
    import resource
except ImportError:  # Windows
    resource = None


@dataclass(frozen=True)
class Choice:
    """A limiter that works here (or does not), and the sentence that says why."""

    limiter: type
    works: bool
    reason: str

    @property
    def name(self):
        return self.limiter.name


class Watchdog:
    """Reads the tree's memory every few milliseconds and kills it over the budget. Needs no rights at all."""

    name = "watchdog"
    in_kernel = False

    def __init__(self, pid):
        self.pid = pid
        self.budget = None
        self.hit = False

    @classmethod
    def check(cls):
        return Choice(cls, True, "reads the memory of the job every few milliseconds; needs no rights")

    def admit(self):
        pass

    def arm(self, budget):
        self.budget = budget

    def exceeded(self, used):
        """True once the job, which now uses `used` bytes, is over its budget; the caller then ends it."""
        self.hit = self.hit or used > self.budget
        return self.hit

    def ended(self):
        """True if it was this limiter that ended the job; asked once the job is over."""
        return self.hit

    def charged(self):
        """What the kernel itself counts for the tree, where it keeps such an account."""

    def release(self):
        pass


class Rlimit(Watchdog):
    """Makes allocations fail (`MemoryError`, `std::bad_alloc`), as `ulimit` does, for each process on its own.

    The system counts what a process asks for, touched or not. A tree that together exceeds the budget is killed.
    """

    name = "rlimit"
    SLACK = 1.1

    @classmethod
    def check(cls):
        works = resource is not None and hasattr(resource, "prlimit") and hasattr(resource, "RLIMIT_DATA")
        reason = "RLIMIT_DATA makes allocations fail" if works else "this system has no prlimit(RLIMIT_DATA)"
        return Choice(cls, works, reason)

    def arm(self, budget):
        super().arm(budget * self.SLACK)
        limit = _data_size(self.pid) + budget
        resource.prlimit(self.pid, resource.RLIMIT_DATA, (limit, limit))


def _data_size(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} is gone")


class CgroupV2(Watchdog):
    """The kernel kills the job at its budget.

    The kernel also charges page tables, and the copies of inherited pages that a forked job makes by merely
    looking at them. Neither is the job's own, so the limit follows them.
    """

    name = "cgroup v2"
    group_type = GroupV2
    in_kernel = True
    STEP = 2**18
    SECONDS, GROWTH = 0.06, 2**22
    """The limit is moved after this time, and after this growth to a new height."""

    def __init__(self, pid):
        super().__init__(pid)
        self.group = self.group_type()
        self._next, self._highest = 0.0, 0

    @classmethod
    def check(cls):
        try:
            group = cls.group_type()
        except OSError as error:
            return Choice(cls, False, str(error))
        try:
            group.try_out()
            return Choice(cls, True, "the kernel counts the job's memory and kills it at the limit")
        except OSError as error:
            return Choice(cls, False, f"may not move a process into a group of its own ({error.strerror})")
        finally:
            group.remove()

    def admit(self):
        self.group.add(self.pid)

    def arm(self, budget):
        super().arm(budget)
        self._base = self.group.charged()
        self._limit = 0
        self.group.start()
        self._follow(0)

    def exceeded(self, used):
        now = time.monotonic()
        if now >= self._next or used > self._highest + self.GROWTH:
            self._next, self._highest = now + self.SECONDS, max(used, self._highest)
            self._follow(used)
            self.hit = self.hit or self.group.kills() > 0
        return self.hit

    def ended(self):
        return self.group.kills() > 0

    def charged(self):
        return self.group.charged()

    def release(self):
        self.group.remove()

    def _follow(self, used):
        copies = max(0, self.group.charged() - self._base - used)
        limit = self._base + self.budget + copies + self.group.kernel()
        if abs(limit - self._limit) > self.STEP:
            with suppress(
                OSError
            ):  # cgroup v1 does not lower a limit below what is in use; the next time it may
                self.group.limit(limit)
                self._limit = limit


class CgroupV1(CgroupV2):
    """The same on older Linux and in some containers; needs root."""

    name = "cgroup v1"
    group_type = GroupV1


def choices():
    """Every limiter with what keeps it from working here, the best first."""
    return [limiter.check() for limiter in (CgroupV2, CgroupV1, Watchdog)]


def best(on_limit="kill", wanted=None):
    """The limiter to use here; `wanted`, or the environment variable OOM_LIMITER, asks for one by its name.

    >>> best("refuse").name
    'rlimit'
    """
    wanted = wanted or os.environ.get("OOM_LIMITER")
    candidates = (Rlimit, Watchdog) if on_limit == "refuse" else (CgroupV2, CgroupV1, Watchdog)
    if wanted and on_limit == "kill":
        candidates = [limiter for limiter in candidates if limiter.name == wanted]
        if not candidates:
            raise ValueError(f'no limiter is called "{wanted}"; there are cgroup v2, cgroup v1 and watchdog')
    for limiter in candidates:
        choice = limiter.check()
        if choice.works:
            return choice
    raise OSError(f'the limiter "{choice.name}" does not work here: {choice.reason}')


def scope_command():
    """How to start a process in a delegated cgroup of its own where only systemd can give one, else nothing."""
    command = ["systemd-run", "--user", "--scope", "--quiet", "--collect", "--property=Delegate=yes"]
    if not shutil.which(command[0]) or CgroupV2.check().works or CgroupV1.check().works:
        return []
    try:
        works = subprocess.run([*command, "true"], capture_output=True, timeout=5).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return []
    return command if works else []
