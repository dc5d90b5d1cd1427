"""What a job tells about itself while it runs: its phases, its waiting times, its result."""

import os
import pickle
import struct
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

_channel = None
_writing = threading.Lock()
HEADER = struct.Struct("!I")


def open_channel(descriptor):
    """Called once in the job's process, before the job starts."""
    global _channel
    _channel = descriptor


def in_job():
    """True in the process of a job."""
    return _channel is not None


def tell(kind, /, **facts):
    """Send one fact to whoever watches this job; outside a job nothing happens."""
    if _channel is None:
        return
    message = pickle.dumps((kind, time.monotonic(), facts))
    _send(HEADER.pack(len(message)) + message)


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
        messages = []
        self._buffer += piece
        while not self._broken and len(self._buffer) >= HEADER.size:
            (length,) = HEADER.unpack_from(self._buffer)
            end = HEADER.size + length
            if length > self.LONGEST:
                self._broken = True
            elif len(self._buffer) < end:
                break
            else:
                messages += self._read(bytes(self._buffer[HEADER.size : end]))
                del self._buffer[:end]
        if self._broken:
            self._buffer.clear()
        return messages

    def _read(self, message):
        try:
            kind, moment, facts = pickle.loads(message)
        except Exception:  # garbage can make unpickling raise anything
            self._broken = True
            return []
        return [(kind, moment, facts)]


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
    finally:
        tell("phase_end", name=str(name), items=stretch.items)
