"""From outside: hear what the Python processes of a tree say of themselves, each in pipes in a folder of ours."""

import fcntl
import itertools
import os
import re
import shutil
import tempfile
from contextlib import suppress
from typing import NamedTuple

from helpers.watching import names
from helpers.watching.answering import (
    BEGIN,
    BEGINS,
    END,
    ENDS,
    FREE,
    HELLO,
    OWN,
    PIPES,
    make_pipes,
)
from helpers.watching.own_lines import FLOOR, is_own

PIECE = 2**16
WAITING = 4
"""So many processes may introduce themselves and die before anybody has looked, and what they said is heard."""
ROOM = 2**20
"""Of a pipe, where the system allows that much: what does not fit is lost."""
F_SETPIPE_SZ = 1031
FRAME = re.compile(rb'  File "(.*)", line (\d+) in ')


class Told(NamedTuple):
    """What a process said between two instructions, at a moment of the monotonic clock: what it held in bytes, and in
    which line each of its threads was."""

    moment: float
    anonymous: int
    shared_memory: int
    files: int
    highest: int
    faults: int
    since: int
    """What it held when it was last between two instructions; what it has taken since belongs to the present call."""
    own_faults: int
    """Of the main thread alone."""
    lines: dict

    @property
    def held(self):
        return self.anonymous + self.shared_memory


class Growing(NamedTuple):
    """What a thread said in the midst of growing: its line."""

    line: tuple


class Started(NamedTuple):
    """A thread of Python's has begun, and may be signalled."""

    thread: int


class Ended(NamedTuple):
    """It has ended, after so many page faults."""

    thread: int
    faults: int


OF_THREADS = {BEGINS.encode(): Started, ENDS.encode(): Ended}


class Voices:
    """The folder in which processes introduce themselves: `new` are those that have done so since the last time."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix=names.new_prefix())
        os.mkfifo(self._path(HELLO), 0o600)
        self._hello = os.open(self._path(HELLO), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._partial, self._libraries = b"", []
        self._free, self._numbers = {}, itertools.count()
        self._prepare()

    def fileno(self):
        """Can be read when a process has introduced itself."""
        return self._hello

    def new(self):
        """(voice, bytes that it had of its parent) of each process that has introduced itself."""
        found = []
        *texts, self._partial = (self._partial + read_all(self._hello)).split(b"\n")
        for text in texts:
            kind, _, value = text.decode("utf-8", "replace").partition(" ")
            if kind == "process":
                with suppress(OSError, ValueError):
                    *numbers, name = value.split()
                    pid, grows, inherited = map(int, numbers)
                    self._libraries = []
                    found.append(
                        (Voice(pid, bool(grows), self._taken(pid, name), self._libraries), inherited)
                    )
            elif kind == "library":
                self._libraries.append(value)
        self._prepare()
        return found

    def close(self):
        for pipe in itertools.chain([self._hello], *self._free.values()):
            os.close(pipe)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _prepare(self):
        """Pipes for those that are to come, open already: a process that is killed a moment after its first words
        takes with it whatever lies in pipes that nobody else has open."""
        while len(self._free) < WAITING:
            name = f"{FREE}{next(self._numbers)}"
            self._free[name] = _open_all(make_pipes(self._path(name)))

    def _taken(self, pid, name):
        """The pipes that a process has taken, or has made itself."""
        folder = self._path(f"{pid}.{name}")
        pipes = self._free.pop(name, None)
        if pipes is None:
            if name != OWN:
                raise ValueError(f"no pipes have the name {name!r}")
            pipes = _open_all(os.path.join(folder, kind) for kind in PIPES)
        shutil.rmtree(folder, ignore_errors=True)
        return pipes

    def _path(self, name):
        return os.path.join(self.folder, name)


def _open_all(paths):
    return [os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC) for path in paths]


class Voice:
    """What one process says: `hear` it now and then."""

    def __init__(self, pid, grows, pipes, libraries):
        """`libraries` is a list that may still grow: what belongs to none of them is the process's own."""
        self.pid, self.grows, self._pipes = pid, grows, pipes
        for pipe in pipes:
            with suppress(OSError):
                fcntl.fcntl(pipe, F_SETPIPE_SZ, ROOM)
        self._readers = Talk(libraries), StackReader(libraries), Talk(libraries)

    def hear(self):
        """What the main thread said, in order, `Growing` and `Told`; the lines of threads that were asked at once; and
        what other threads said: that they `Started`, that they are `Growing`, that they `Ended`."""
        return [reader.feed(read_all(pipe)) for reader, pipe in zip(self._readers, self._pipes, strict=True)]

    @property
    def of_threads(self):
        """A descriptor that can be read when a thread beside the main one has said something."""
        return self._pipes[2]

    def close(self):
        for pipe in self._pipes:
            os.close(pipe)


def read_all(pipe):
    """All that is in a pipe now."""
    pieces = []
    with suppress(BlockingIOError):
        while piece := os.read(pipe, PIECE):
            pieces.append(piece)
    return b"".join(pieces)


class Talk:
    """Stacks as `faulthandler` writes them, in small pieces, and between them what Python told."""

    def __init__(self, libraries):
        self._libraries = libraries
        self._stacks, self._partial = StackReader(libraries), b""

    def feed(self, piece):
        said, text = [], self._partial + piece
        while True:
            stack, begin, rest = text.partition(BEGIN)
            said += map(Growing, self._stacks.feed(stack))
            told, end, text = rest.partition(END)
            if not end:
                self._partial = begin + rest
                return said
            said += self._parse(told)

    def _parse(self, told):
        figures, *texts = told.split(b"\n")
        try:
            moment, *numbers = figures.split()
            if kind := OF_THREADS.get(moment):
                return [kind(*map(int, numbers))]
            lines = dict(filter(None, map(self._line, texts)))
            return [Told(float(moment), *map(int, numbers), lines)]
        except (ValueError, TypeError):  # somebody else wrote to this pipe
            return []

    def _line(self, text):
        thread, _, rest = text.partition(b" ")
        number, _, file = rest.partition(b" ")
        return (int(thread), (file_name(file), int(number))) if file else None


class StackReader:
    """Finds in stacks the innermost line of the process's own code."""

    def __init__(self, libraries):
        self._libraries = libraries
        self._partial, self._searches = b"", False

    def feed(self, piece):
        """One (file, line) for each stack that has one."""
        found = []
        *texts, self._partial = (self._partial + piece).split(b"\n")
        for text in texts:
            if text.startswith(b"Stack"):
                self._searches = True
            elif self._searches and (frame := FRAME.match(text)):
                file = file_name(frame[1])
                self._searches = not file.endswith(FLOOR)
                if self._searches and is_own(file, tuple(self._libraries)):
                    found.append((file, int(frame[2])))
                    self._searches = False
        return found


def file_name(text):
    """Python escapes what is not ASCII."""
    return text.decode("unicode_escape" if b"\\" in text else "ascii", "replace")
