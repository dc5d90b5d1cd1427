"""What is around a job beside its budget: the memory limits of control groups, and the kernel that kills at them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from helpers import machine
from helpers.units import format_bytes
from helpers.watching.cgroups import Mark
from helpers.watching.pages import number_after

if TYPE_CHECKING:
    from helpers.watching.limits import Limiter

KILLS = b"\noom_kill "
OF_THE_MACHINE = Path("/proc/vmstat")


@dataclass(frozen=True)
class Killer:
    """Who killed a job for want of memory: "budget", "limit around" with its size in bytes, or "kernel" if neither of
    these was full: the machine was, or a group that cannot be seen from here."""

    name: str
    limit: int | None = None


def limit_around(size: int) -> str:
    """A limit around a job in words.

    >>> limit_around(620_000_000)
    "the memory limit around it (a container's or control group's, 620 MB)"
    """
    return f"the memory limit around it (a container's or control group's, {format_bytes(size)})"


class Enclosure:
    """What is around this process from now on: ask later who killed what it had started, then `close` it."""

    def __init__(self) -> None:
        self._limits = [(Mark(folder), limit) for folder, limit in machine.memory_limits()]
        self._counter = _counter_of_kills()
        self._before = self._kills()

    def killer(self, limiter: Limiter | None = None) -> Killer | None:
        """Who killed, if anybody did: asked for a job that its limiter has ended, or that somebody else's SIGKILL did.
        The outermost limit that was passed counts: the groups further down hear of it, too."""
        if limiter and limiter.hit and not limiter.in_kernel:
            return Killer("budget")
        if not (limiter and limiter.ended()) and self._kills() == self._before:
            return None
        passed = [limit for mark, limit in self._limits if mark.was_passed()]
        if passed:
            return Killer("limit around", passed[-1])
        return Killer("budget" if limiter and limiter.was_full() else "kernel")

    def close(self) -> None:
        for mark, _ in self._limits:
            mark.close()

    def _kills(self) -> int:
        with suppress(OSError):
            return number_after(b"\n" + self._counter.read_bytes(), KILLS)
        return 0


def _counter_of_kills() -> Path:
    """The file in which the kernel counts its kills in the control group of this process, or on the whole machine."""
    for folder in machine.memory_groups():
        for name in ("memory.events.local", "memory.events", "memory.oom_control"):
            with suppress(OSError):
                if KILLS in (folder / name).read_bytes():
                    return folder / name
    return OF_THE_MACHINE
