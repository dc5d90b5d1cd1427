"""A card that several processes share: who holds how much of it, and what is left for the next one.

Without a GPU the card is a ledger: a file in which every process books what its pool reserves, before it creates its
device. A booking ends with its process and no sooner, as the memory of a real card does. With a GPU the card itself
keeps this account, and NVML reads it out.
"""

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil

from helpers import gpu
from helpers.jobs import device
from helpers.units import format_bytes, parse_bytes

LEAST = f"{device.SMALLEST_POOL // gpu.MIB} MiB"
LEFT_TO_THE_SYSTEM = 0.1
"""The share of the card that TensorFlow does not take for itself. On GPUs it leaves 225 MiB to 1.8 GiB, by their size
and age; a card of a few hundred MB gets a share instead."""

CLOCK_MAY_DIFFER = 10
"""Seconds by which the system may correct its clock, and with it what it says about the start of a process."""


class CardIsFull(RuntimeError):
    """The card has less left than a process needs to start, or to grow."""


@dataclass(frozen=True)
class Holder:
    """A process on the card: what it has reserved, what it uses of that, and the most that it may reserve."""

    pid: int
    born: float
    name: str
    limit: int
    reserved: int
    used: int = 0

    def alive(self):
        """Whether this very process still runs; its number may belong to another one by now."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.born) < CLOCK_MAY_DIFFER
            return same and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False


def size_of_card(size):
    """Bytes of a card given as text or as a number; a card must have room for one device.

    >>> size_of_card("512 MB")
    512000000
    """
    size = parse_bytes(size, name="card")
    if size < device.SMALLEST_POOL:
        raise ValueError(
            f'a card of {format_bytes(size)} has no room for a device, which needs {LEAST}; write "512 MB"'
        )
    return size


def open_card(size, folder):
    """The card that the processes of this `folder` share: the GPU if there is one, else a ledger of `size` bytes."""
    return GraphicsCard(folder) if gpu.has_gpu() else Card(size, folder)


class Card:
    """A card of `size` bytes, shared by all processes that open it in the same `folder`."""

    def __init__(self, size, folder):
        self.size = size_of_card(size)
        self._file = Path(folder, "card.json")

    def holders(self):
        """The processes that hold a part of the card now, in the order in which they came."""
        with self._account() as holders:
            return list(holders.values())

    def free(self):
        """Bytes that nobody has reserved."""
        with self._account() as holders:
            return self._free(holders)

    def book(self, name, memory_limit=None, growth=False):
        """Give this process a share of the card, before it creates its device; returns the bytes that it may have.

        By default a process takes what is free, but for what TensorFlow leaves to the system. A `memory_limit` takes
        that much, or what is left of it. With `growth` nothing is taken yet: `follow` books what the pool reserves.
        """
        if growth and memory_limit is not None:
            raise ValueError(
                "a process has a memory limit or memory growth, not both: a limit switches growth off"
            )
        wanted = None if memory_limit is None else parse_bytes(memory_limit, name="memory_limit")
        with self._account() as holders:
            free = self._free(holders)
            limit = self._usual_share(free) if wanted is None else min(wanted, free)
            if limit < device.SMALLEST_POOL:
                raise CardIsFull(self._refusal(f"a device needs {LEAST}", free, holders))
            own = psutil.Process()
            holders[own.pid] = Holder(own.pid, own.create_time(), name, limit, 0 if growth else limit)
        return limit

    def follow(self, reserved, used):
        """Book what the pool of this process has reserved by now; CardIsFull if the card does not have as much."""
        with self._account() as holders:
            own = holders.get(os.getpid())
            if own is None:
                raise LookupError("this process holds no part of the card; book it first")
            free = self._free(holders)
            grown = max(own.reserved, reserved)
            if grown - own.reserved > free:
                raise CardIsFull(self._refusal(f"{own.name} grows to {format_bytes(grown)}", free, holders))
            holders[own.pid] = replace(own, reserved=grown, used=used)

    def _usual_share(self, free):
        rest = int(LEFT_TO_THE_SYSTEM * self.size)
        return free - rest if free > rest else free

    def _free(self, holders):
        return self.size - sum(holder.reserved for holder in holders.values())

    def _refusal(self, need, free, holders):
        held = ", ".join(f"{holder.name} {format_bytes(holder.reserved)}" for holder in holders.values())
        return (
            f"{need}, and the card has {format_bytes(free)} of {format_bytes(self.size)} left; "
            f"it is held by {held or 'nobody'}"
        )

    @contextmanager
    def _account(self):
        """The holders that are alive, by process; what is done to them is written down before anybody else looks."""
        with self._file.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            before = [Holder(**entry) for entry in json.loads(file.read() or "[]")]
            holders = {holder.pid: holder for holder in before if holder.alive()}
            yield holders
            if list(holders.values()) != before:
                file.seek(0)
                file.truncate()
                file.write(json.dumps([asdict(holder) for holder in holders.values()]))


class GraphicsCard(Card):
    """A real card. TensorFlow and the driver hand out its memory; the file keeps names and what tensors use."""

    def __init__(self, folder):
        super().__init__(gpu.gpus()[0].total, folder)

    def book(self, name, memory_limit=None, growth=False):
        with self._account() as holders:
            own = psutil.Process()
            holders[own.pid] = Holder(own.pid, own.create_time(), name, memory_limit, 0)
        return memory_limit

    def follow(self, reserved, used):
        with self._account() as holders:
            holders[os.getpid()] = replace(holders[os.getpid()], used=used)

    def holders(self):
        held = gpu.processes_on_the_gpu()
        return [replace(holder, reserved=held.get(holder.pid) or 0) for holder in super().holders()]
