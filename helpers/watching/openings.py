"""Who may have made a new file: the kernel tells (inotify) when it came and how often it was opened and closed."""

import ctypes
import os
import struct
from contextlib import suppress

OPENED, CLOSED, MOVED_HERE, CREATED, LOST = 0x20, 0x08 | 0x10, 0x80, 0x100, 0x4000
GONE = 0x40 | 0x200
"""Moved away or deleted."""
EVENT = struct.Struct("iIII")
PIECE = 65_536


class Openings:
    """Watches a folder from now on. Where the system does not tell, no file is known to be held by its maker."""

    def __init__(self, folder):
        self._file = _watch(folder)
        self._opened_once = set()
        self._new = set()

    def held_by_makers(self):
        """Names of files that came since, whose maker has them open (or mapped) and that nobody else ever opened:
        whoever holds such a file made it. What was closed again, or opened twice, may be anybody's."""
        for mask, name in self._events():
            if mask & LOST:
                self._new.clear()
                self._opened_once.clear()
            if mask & (CREATED | MOVED_HERE | GONE):
                self._new.discard(name)
                self._opened_once.discard(name)
            if mask & CREATED:
                self._new.add(name)
            elif mask & OPENED and name in self._new:
                self._new.discard(name)
                self._opened_once.add(name)
            elif mask & (OPENED | CLOSED):
                self._opened_once.discard(name)
        return self._opened_once

    def close(self):
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _events(self):
        """What has happened since it was asked last: pairs of what, as bits, and the name of a file."""
        with suppress(OSError, TypeError):  # there is no more, or there never was
            while piece := os.read(self._file, PIECE):
                place = 0
                while place < len(piece):
                    _, mask, _, length = EVENT.unpack_from(piece, place)
                    place += EVENT.size + length
                    yield mask, os.fsdecode(piece[place - length : place].rstrip(b"\0"))


def _watch(folder):
    """A file that tells what happens in a folder; None where the system has no such thing or refuses it."""
    with suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        file = library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if file >= 0:
            wanted = OPENED | CLOSED | MOVED_HERE | CREATED | GONE
            if library.inotify_add_watch(file, os.fsencode(folder), wanted) >= 0:
                return file
            os.close(file)
    return None
