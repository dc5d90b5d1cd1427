"""Readings of a device that a job writes and its watcher reads many times a second: shared memory wakes nobody."""

import mmap
import os
import struct
import tempfile

ENTRY = struct.Struct("dqq")
COUNT = struct.Struct("q")
ENTRIES = 1024
SIZE = COUNT.size + ENTRIES * ENTRY.size


def open_file(content=bytes(SIZE)):
    """A file without a name for `VramLog`, in memory where the system can; it belongs to whoever opens it."""
    try:
        file = open(os.memfd_create("vram"), "w+b", buffering=0)  # noqa: SIM115
    except (AttributeError, OSError):
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
    file.write(content)  # not left empty: a disk that is full has to say so here
    return file


class VramLog:
    """One end of it, for the writer or for the reader. The newest thousand are kept until they are read.

    >>> with open_file() as file:
    ...     job, watcher = VramLog(file.fileno()), VramLog(file.fileno())
    >>> job.write(0.5, 100, 120)
    >>> watcher.read(), watcher.read()
    ([(0.5, 100, 120)], [])
    """

    def __init__(self, descriptor):
        self._memory = mmap.mmap(descriptor, SIZE)
        self._count = 0

    def write(self, moment, current, peak):
        ENTRY.pack_into(self._memory, self._place(self._count), moment, current, peak)
        self._count += 1
        COUNT.pack_into(self._memory, 0, self._count)

    def read(self):
        """What was written since the last time, (moment, current, peak) each."""
        (written,) = COUNT.unpack_from(self._memory, 0)
        first = max(self._count, written - ENTRIES)
        self._count = written
        return [ENTRY.unpack_from(self._memory, self._place(number)) for number in range(first, written)]

    def _place(self, number):
        return COUNT.size + number % ENTRIES * ENTRY.size

    def close(self):
        self._memory.close()
