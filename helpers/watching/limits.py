"""Enforcing a RAM budget on a process tree: cgroup v2, cgroup v1, rlimit, or a watchdog.

Every limiter has the same life: `admit` the process before it does anything, `arm` it with a budget on top of
what the process holds by then, ask `exceeded` after each reading, `release` what it took from the system.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from helpers.watching import processes
from helpers.watching.cgroups import Group, GroupV1, GroupV2

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Choice:
    """A limiter that works here (or does not), and the sentence that says why."""

    limiter: type[Limiter]
    works: bool
    reason: str

    @property
    def name(self) -> str:
        return self.limiter.name


class Limiter:
    """What all limiters share; on its own it counts and ends nobody."""

    name = ""
    in_kernel = False

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.budget = 0
        self.hit = False

    @classmethod
    def check(cls) -> Choice:
        raise NotImplementedError

    def admit(self) -> None:
        """Put the process under this limiter, before it does anything."""

    def arm(self, budget: int) -> None:
        """From now on the process may add so many bytes."""
        self.budget = budget

    def exceeded(self, used: int) -> bool:
        """True once the job, which now uses `used` bytes, is over its budget; the caller then ends it."""
        self.hit = self.hit or used > self.budget
        return self.hit

    def ended(self) -> bool:
        """True if it was this limiter that ended the job, or the kernel in its place; asked once the job is over."""
        return self.hit

    def was_full(self) -> bool:
        """True if nothing was left of the budget when the job was ended."""
        return self.hit

    def charged(self) -> int | None:
        """What the kernel itself counts for the tree, where it keeps such an account."""
        return None

    def release(self) -> None:
        """Give back what it took from the system."""


class Watchdog(Limiter):
    """Reads the tree's memory every few milliseconds and kills it over the budget. Needs no rights at all."""

    name = "watchdog"

    @classmethod
    def check(cls) -> Choice:
        return Choice(cls, True, "reads the memory of the job every few milliseconds; needs no rights")


class NoLimit(Limiter):
    """Measures a family of processes and never touches it: pages shared since a fork are counted once."""

    name = "none"
    DUTY = 0.003
    """The share of the time that may go into it."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self._last, self._next = 0, 0.0

    def charged(self) -> int:
        began = time.monotonic()
        if began >= self._next:
            family = processes.descendants(os.getpid())
            self._last = sum(sum(processes.exact_share(pid)) for pid in family)
            self._next = began + (time.monotonic() - began) / self.DUTY
        return self._last

    def exceeded(self, used: int) -> bool:
        return False


class Rlimit(Limiter):
    """Makes allocations fail (`MemoryError`, `std::bad_alloc`), as `ulimit` does, for each process on its own.

    The system counts what a process asks for, touched or not. A tree that together exceeds the budget is killed.
    """

    name = "rlimit"
    SLACK = 1.1

    @classmethod
    def check(cls) -> Choice:
        works = resource is not None and hasattr(resource, "prlimit") and hasattr(resource, "RLIMIT_DATA")
        reason = "RLIMIT_DATA makes allocations fail" if works else "this system has no prlimit(RLIMIT_DATA)"
        return Choice(cls, works, reason)

    def arm(self, budget: int) -> None:
        super().arm(int(budget * self.SLACK))
        before = resource.prlimit(self.pid, resource.RLIMIT_DATA)
        lower = [limit for limit in before if limit != resource.RLIM_INFINITY]
        limit = min([_data_size(self.pid) + budget, *lower])
        resource.prlimit(self.pid, resource.RLIMIT_DATA, (limit, limit))


def _data_size(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} is gone")


class Cgroup(Limiter):
    """The kernel kills the job at its budget.

    The kernel also charges page tables, and the copies of inherited pages that a forked job makes by merely
    looking at them. Neither is the job's own, so the limit follows them.
    """

    group_type: type[Group]
    in_kernel = True
    STEP = 2**18
    SECONDS, GROWTH = 0.06, 2**22
    """The limit is moved after this time, and after this growth to a new height."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self.group = self.group_type()
        self._next, self._highest, self._base, self._limit = 0.0, 0, 0, 0

    @classmethod
    def check(cls) -> Choice:
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

    def admit(self) -> None:
        self.group.add(self.pid)

    def arm(self, budget: int) -> None:
        super().arm(budget)
        self._base = self.group.charged()
        self.group.start()
        self._follow(0)

    def exceeded(self, used: int) -> bool:
        now = time.monotonic()
        if now >= self._next or used > self._highest + self.GROWTH:
            self._next, self._highest = now + self.SECONDS, max(used, self._highest)
            self._follow(used)
            self.hit = self.hit or self.group.kills() > 0
        return self.hit

    def ended(self) -> bool:
        return self.group.kills() > 0

    def was_full(self) -> bool:
        return self.group.was_full()

    def charged(self) -> int:
        return self.group.charged()

    def release(self) -> None:
        self.group.remove()

    def _follow(self, used: int) -> None:
        copies = max(0, self.group.charged() - self._base - used)
        limit = self._base + self.budget + copies + self.group.kernel()
        if abs(limit - self._limit) > self.STEP:
            with suppress(OSError):  # cgroup v1 lowers no limit below what is in use; the next time it may
                self.group.limit(limit)
                self._limit = limit


class CgroupV2(Cgroup):
    """In a delegated subtree, or anywhere as root."""

    name = "cgroup v2"
    group_type = GroupV2


class CgroupV1(Cgroup):
    """On older Linux and in some containers; needs root."""

    name = "cgroup v1"
    group_type = GroupV1


KILLING: tuple[type[Limiter], ...] = (CgroupV2, CgroupV1, Watchdog)
REFUSING: tuple[type[Limiter], ...] = (Rlimit, Watchdog)
_checked: dict[type[Limiter], Choice] = {}


def check(limiter: type[Limiter]) -> Choice:
    """Whether a limiter works in this process; tried out once, since that makes control groups."""
    if limiter not in _checked:
        _checked[limiter] = limiter.check()
    return _checked[limiter]


def choices() -> list[Choice]:
    """Every limiter with what keeps it from working here, the best first."""
    return [check(limiter) for limiter in KILLING]


def candidates(on_limit: str = "kill", wanted: str | None = None) -> Sequence[type[Limiter]]:
    """The limiters that may be used, the best first; ValueError if none has the name that is `wanted`."""
    if on_limit == "refuse":
        return REFUSING
    found = [limiter for limiter in KILLING if wanted in (None, limiter.name)]
    if not found:
        raise ValueError(f'no limiter is called "{wanted}"; there are cgroup v2, cgroup v1 and watchdog')
    return found


def best(on_limit: str = "kill", wanted: str | None = None) -> Choice:
    """The limiter to use in this process; `wanted` asks for one by its name.

    >>> best("refuse").name
    'rlimit'
    """
    for limiter in candidates(on_limit, wanted):
        choice = check(limiter)
        if choice.works:
            return choice
    raise OSError(f'the limiter "{choice.name}" does not work here: {choice.reason}')


def wanted_by_name() -> str | None:
    """The limiter that the environment variable OOM_LIMITER asks for."""
    return os.environ.get("OOM_LIMITER") or None


def scope_command() -> list[str]:
    """How to start a process in a delegated cgroup of its own where only systemd can give one, else nothing."""
    command = ["systemd-run", "--user", "--scope", "--quiet", "--collect", "--property=Delegate=yes"]
    if not shutil.which(command[0]) or check(CgroupV2).works or check(CgroupV1).works:
        return []
    try:
        works = subprocess.run([*command, "true"], capture_output=True, timeout=5).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return []
    return command if works else []
