"""What happens around a command while it runs: kills by the kernel, /dev/shm, the machine's memory."""

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from helpers import machine
from helpers.units import format_bytes

SHARED_MEMORY = Path("/dev/shm")
COUNTERS = (("memory.events", "oom_kill"), ("memory.oom_control", "oom_kill"))
FULL = 0.98
USED_UP = 0.03
PLENTY = 0.2
INTERVAL = 0.2
DUTY = 0.002
"""The share of the time that may go into looking around, unless the command has grown or shrunk by this much:"""
MUCH = 0.01
"""Of the machine's memory."""


class Surroundings:
    """Look around with `look` now and then; in the end `evidence` says what was seen, as lines of a log, and then
    `saw_a_kill` whether the kernel killed for want of memory."""

    def __init__(self):
        self._kills_before = kernel_kills()
        self._messages = KernelMessages()
        self._least_available = machine.ram_available()
        self._most_shared = (0.0, 0)
        self._total = machine.ram_total()
        self._next, self._used = 0.0, 0
        self.saw_a_kill = False

    def look(self, used):
        """Look around if it is time to; `used` are the bytes that the command uses now."""
        now = time.monotonic()
        if now < self._next and abs(used - self._used) < MUCH * self._total:
            return
        self._look()
        took = time.monotonic() - now
        self._next, self._used = now + max(INTERVAL, took / DUTY), used

    def _look(self):
        self._least_available = min(self._least_available, machine.ram_available())
        with suppress(OSError):
            room = os.statvfs(SHARED_MEMORY)
            size = room.f_blocks * room.f_frsize
            if size:
                self._most_shared = max(self._most_shared, (1 - room.f_bavail / room.f_blocks, size))

    def evidence(self, pids):
        """Lines that `diagnose` understands."""
        named = re.compile(rf"\b(?:{'|'.join(map(str, pids))})\b")
        found = [message for message in self._messages.read() if named.search(message)]
        kills = kernel_kills() - self._kills_before
        self.saw_a_kill = kills > 0 or any("Killed process" in message for message in found)
        if kills > 0:
            found.append(f"memory.events: oom_kill {kills}")
        share, size = self._most_shared
        if share >= FULL:
            found.append(f"the doctor saw /dev/shm full: {share:.0%} of {format_bytes(size)}")
        left = f"{format_bytes(self._least_available)} of {format_bytes(self._total)} available"
        if self._least_available < USED_UP * self._total:
            found.append(f"the doctor saw the machine's memory used up: {left}")
        elif self._least_available > PLENTY * self._total and not found:
            found.append(f"the doctor saw no shortage of memory: {left} all the time")
        return found


def kernel_kills():
    """How often the kernel has killed in this process's own control group, where it tells."""
    count = 0
    for folder in _own_groups():
        for name, key in COUNTERS:
            with suppress(OSError):
                for line in (folder / name).read_text().splitlines():
                    if line.split()[:1] == [key]:
                        count = max(count, int(line.split()[1]))
    return count


def _own_groups():
    folders = [machine.CGROUPS]
    for controllers, path in machine.own_cgroups():
        if not controllers:
            folders.append(machine.CGROUPS / path)
        elif "memory" in controllers:
            folders += [machine.CGROUPS / "memory", machine.CGROUPS / "memory" / path]
    return folders


class KernelMessages:
    """The kernel's log from now on, where it may be read."""

    KILLS = re.compile(r"[Oo]ut of memory|oom-kill|Killed process|segfault")

    def __init__(self):
        self._log = None
        with suppress(OSError):
            self._log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._log, 0, os.SEEK_END)

    def read(self):
        """What it says of kills, one message each."""
        found = []
        with suppress(OSError, TypeError):
            while record := os.read(self._log, 8192):
                message = record.decode("utf-8", "replace").partition(";")[2].partition("\n")[0]
                if self.KILLS.search(message):
                    found.append(message)
        if self._log is not None:
            os.close(self._log)
            self._log = None
        return found
