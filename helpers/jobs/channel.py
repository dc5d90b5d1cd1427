"""What a job tells about itself while it runs: its phases, its waiting times, its result."""

import json
import os
import struct
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace
from typing import NamedTuple

_channel = None
_writing = threading.Lock()
HEADER = struct.Struct("!II")
"""Two lengths: of the message, which is JSON, and of the bytes after it."""
FACTS = {
    "ready": {"device"},
    "phase_begin": {"name"},
    "phase_end": {"name", "items"},
    "waiting": {"stretches", "idle"},
    "mapped": {"files"},
    "value": set(),
    "failure": {"kind", "type", "message", "traceback"},
}
"""What can be told, and the facts that belong to it."""


class Message(NamedTuple):
    """One thing told: at a moment of the machine's monotonic clock, with facts, and with bytes that nobody looks into
    on the way (a job's result is pickled, and whoever unpickled it would run the job's code)."""

    kind: str
    moment: float
    facts: dict
    payload: bytes = b""


def open_channel(descriptor):
    """Called once in the job's process, before the job starts."""
    global _channel
    _channel = descriptor


def is_open():
    """True in a job's own process, as long as somebody listens."""
    return _channel is not None


def tell(kind, payload=b"", /, **facts):
    """Send one fact to whoever watches this job; outside a job nothing happens."""
    if _channel is None:
        return
    message = json.dumps((kind, time.monotonic(), facts)).encode()
    _send(HEADER.pack(len(message), len(payload)) + message + payload)


def _send(message):
    global _channel
    view = memoryview(message)
    with _writing:
        try:
            while view:
                view = view[os.write(_channel, view) :]
        except (OSError, TypeError):  # the job closed the channel
            _channel = None


class Receiver:
    """Puts the bytes of a channel together into messages again.

    A job may do anything to its own descriptors. Bytes that make no message end the conversation, not the watcher.
    """

    LONGEST = 256 * 2**20

    def __init__(self):
        self._buffer = bytearray()
        self._broken = False

    def feed(self, piece):
        """The messages that are whole with this piece."""
        messages = []
        self._buffer += piece
        while not self._broken and len(self._buffer) >= HEADER.size:
            lengths = HEADER.unpack_from(self._buffer)
            middle, end = HEADER.size + lengths[0], HEADER.size + sum(lengths)
            if sum(lengths) > self.LONGEST:
                self._broken = True
            elif len(self._buffer) < end:
                break
            else:
                messages += self._read(self._buffer[HEADER.size : middle], bytes(self._buffer[middle:end]))
                del self._buffer[:end]
        if self._broken:
            self._buffer.clear()
        return messages

    def _read(self, text, payload):
        try:
            kind, moment, facts = json.loads(text)
            if isinstance(moment, float) and FACTS[kind] == facts.keys():
                return [Message(kind, moment, facts, payload)]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass
        self._broken = True
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
    except (TypeError, ValueError):
        raise TypeError(f"items of a phase is a number, such as len(rows), not {items!r:.60}") from None
    return int(number) if number.is_integer() else number
