"""What a job tells about itself while it runs: its phases, its waiting times, its result."""

import fcntl
import json
import os
import struct
import threading
import time
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import NamedTuple

from helpers.watching.page_faults import identity, out_of_the_way

_channel = _pipe = _owner = None
"""The descriptor, which file it leads to, and the process that is the job; children of that one may tell as well."""
_writing = threading.Lock()
HEADER = struct.Struct("!II")
"""Two lengths: of the message, which is JSON, and of the bytes after it."""
FACTS = {
    "ready": {"device"},
    "phase_begin": {"name"},
    "phase_end": {"name", "items"},
    "waiting": {"stretches", "idle"},
    "mapped": {"files", "returned"},
    "value": set(),
    "failure": {"kind", "type", "message", "traceback", "refused_by"},
}
"""What can be told, and the facts that belong to it."""
FROM_ANYBODY = ("phase_begin", "phase_end", "waiting")
"""What children of the job may tell; the rest is about the job itself."""


class Message(NamedTuple):
    """One thing told: at a moment of the machine's monotonic clock, with facts, and with bytes that nobody looks into
    on the way (a job's result is pickled, and whoever unpickled it would run the job's code)."""

    kind: str
    moment: float
    facts: dict
    payload: bytes = b""


def open_channel(descriptor):
    """Called once in the job's process, before the job starts. The channel is put out of the way of programs that
    close whatever they find."""
    global _channel, _pipe, _owner
    _channel = out_of_the_way(descriptor)
    _pipe, _owner = identity(_channel), os.getpid()


def is_open():
    """True in a job's own process, as long as somebody listens."""
    return _channel is not None


def tell(kind, /, *payload, **facts):
    """Send one fact to whoever watches this job, with bytes in any number of pieces; outside a job nothing happens."""
    if _channel is None or (kind not in FROM_ANYBODY and _owner not in (None, os.getpid())):
        return
    message = json.dumps((kind, time.monotonic(), facts)).encode()
    size = sum(memoryview(piece).nbytes for piece in payload)
    _send(HEADER.pack(len(message), size) + message, *payload)


def _send(*pieces):
    global _channel
    with _writing:
        try:
            with _alone():
                for piece in pieces:
                    view = memoryview(piece)
                    while view:
                        view = view[os.write(_channel, view) :]
        except (OSError, TypeError):  # the job closed the channel
            _channel = None


@contextmanager
def _alone():
    """No other process of the job writes in the meantime; the lock of one that dies is given back by the system."""
    if _pipe is not None and identity(_channel) != _pipe:
        raise OSError("the job has opened something else in the place of the channel")
    with suppress(OSError):  # not every system locks a pipe
        fcntl.lockf(_channel, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.lockf(_channel, fcntl.LOCK_UN)


def _renew_the_lock():
    """In a forked child: another thread of its parent may have held the lock, and is not here to give it back."""
    global _writing
    _writing = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_the_lock)


class Receiver:
    """Puts the bytes of a channel together into messages again.

    A job may do anything to its own descriptors. Bytes that make no message end the conversation, not the watcher.
    """

    LONGEST = 256 * 2**20

    def __init__(self):
        self._buffer = bytearray()
        self.is_broken = False

    def feed(self, piece):
        """The messages that are whole with this piece."""
        messages = []
        self._buffer += piece
        while not self.is_broken and len(self._buffer) >= HEADER.size:
            lengths = HEADER.unpack_from(self._buffer)
            middle, end = HEADER.size + lengths[0], HEADER.size + sum(lengths)
            if sum(lengths) > self.LONGEST:
                self.is_broken = True
            elif len(self._buffer) < end:
                break
            else:
                messages += self._read(self._buffer[HEADER.size : middle], bytes(self._buffer[middle:end]))
                del self._buffer[:end]
        if self.is_broken:
            self._buffer.clear()
        return messages

    def _read(self, text, payload):
        try:
            kind, moment, facts = json.loads(text)
            if isinstance(moment, float) and FACTS[kind] == facts.keys():
                return [Message(kind, moment, facts, payload)]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass
        self.is_broken = True
        return []


@contextmanager
def phase(name, items=None):
    """Name a stretch of the job on the chart; `items` (rows, images) gives the trial a throughput.

    >>> with phase("load") as load:
    ...     load.items = sum(1 for row in range(3))  # known only at the end
    """
    stretch = SimpleNamespace(items=items)
    tell("phase_begin", name=str(name))
    try:
        yield stretch
    except BaseException:
        tell("phase_end", name=str(name), items=None)
        raise
    tell("phase_end", name=str(name), items=_number(stretch.items))


def _number(items):
    """A count as a plain number: it may come as numpy's or TensorFlow's."""
    if items is None:
        return None
    try:
        number = float(items)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"items of a phase is a number, such as len(rows), not {items!r:.60}") from None
    return int(number) if number.is_integer() else number
