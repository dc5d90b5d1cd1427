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
from helpers.watching.answering import FREE, HELLO, OWN, PIPES, make_pipes
from helpers.watching.own_lines import FLOOR, is_own
from helpers.watching.own_threads import BEGIN, BEGINS, END, ENDS, NO_SLOT, SLOTS, name_of_pipe

PIECE = 2**16
WAITING = 4
"""So many processes may introduce themselves and die before anybody has looked, and what they said is heard."""
ROOM = 2**20
"""Of a pipe, where the system allows that much: what does not fit is lost."""
F_SETPIPE_SZ = 1031
FRAME = re.compile(rb'  File "([^"]*)", line (\d+) in ')
"""Threads that share a pipe may write into the midst of each other's words, and then these are none."""


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
    """What a thread said in the midst of growing: its line, and its slot if it is not the main thread."""

    line: tuple
    slot: int = 0


class Started(NamedTuple):
    """A thread of Python's has begun, and may be signalled with this number, if it is not 0."""

    thread: int
    slot: int


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
                    pid, grows, inherited, faults = map(int, numbers)
                    self._libraries = []
                    pipes = self._taken(pid, name)
                    voice = Voice(pid, bool(grows), pipes, self._libraries, self.folder, faults)
                    found.append((voice, inherited))
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
            making = self._path(f"making.{name}")  # nobody may take them before they are open
            self._free[name] = _open_all(make_pipes(making))
            os.rename(making, self._path(name))

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

    def __init__(self, pid, grows, pipes, libraries, folder, faults=0):
        """`libraries` is a list that may still grow: what belongs to none of them is the process's own. In `folder` it
        makes pipes for its threads. It had touched so many pages when it introduced itself: its main thread, that is,
        which was alone by then."""
        self.pid, self.grows, self._libraries, self._folder = pid, grows, libraries, folder
        self.first_faults = faults
        self._told, self._stuck = (_Ear(pipes[0], Talk(libraries)), _Ear(pipes[1], StackReader(libraries)))
        self._threads = {SLOTS[0]: _Ear(pipes[2], Talk(libraries, SLOTS[0]))}
        self.tell_of_pipe = None
        """Called with each pipe of threads that is opened."""

    def hear(self):
        """What the main thread said, in order, `Growing` and `Told`; the lines of threads that were asked at once; and
        what other threads said: that they `Started`, that they are `Growing`, that they `Ended`."""
        told, stuck = self._told.hear(), self._stuck.hear()
        # later: whoever had grown when that was told has said that it began
        of_threads = self._threads[SLOTS[0]].hear()
        for word in of_threads:
            if isinstance(word, Started) and word.slot not in (NO_SLOT, *self._threads):
                self._open(word.slot)
        for slot in list(self._threads)[1:]:
            of_threads += self._threads[slot].hear()
        return told, stuck, of_threads

    def _open(self, slot):
        path = os.path.join(self._folder, name_of_pipe(self.pid, slot))
        with suppress(OSError):  # it is gone, or says what is not so
            [pipe] = _open_all([path])
            os.unlink(path)
            self._threads[slot] = _Ear(pipe, Talk(self._libraries, slot))
            if self.tell_of_pipe:
                self.tell_of_pipe(pipe)

    @property
    def pipes_of_threads(self):
        """They can be read when a thread beside the main one has said something."""
        return [ear.pipe for ear in self._threads.values()]

    def close(self):
        for ear in (self._told, self._stuck, *self._threads.values()):
            os.close(ear.pipe)


class _Ear:
    """A pipe, and who understands what comes out of it."""

    def __init__(self, pipe, reader):
        self.pipe, self._reader = pipe, reader
        with suppress(OSError):
            fcntl.fcntl(pipe, F_SETPIPE_SZ, ROOM)

    def hear(self):
        return self._reader.feed(read_all(self.pipe))


def read_all(pipe):
    """All that is in a pipe now."""
    pieces = []
    with suppress(BlockingIOError):
        while piece := os.read(pipe, PIECE):
            pieces.append(piece)
    return b"".join(pieces)


class Talk:
    """Stacks as `faulthandler` writes them, in small pieces, and between them what Python told."""

    def __init__(self, libraries, slot=NO_SLOT):
        self._stacks, self._partial, self._slot = StackReader(libraries), b"", slot

    def feed(self, piece):
        said, text = [], self._partial + piece
        while True:
            stack, begin, rest = text.partition(BEGIN)
            said += [Growing(line, self._slot) for line in self._stacks.feed(stack)]
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
