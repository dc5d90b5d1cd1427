"""Inside a Python process: its threads say that they begin, in which lines they touch pages, and that they end.

Each has a signal of its own, as long as there are enough, and with it a pipe of its own: what several write at once
into one pipe can often not be read, and how often a thread says its line tells how much it took there. Beyond that
some share theirs. Needs only Python.
"""

import faulthandler
import itertools
import os
import resource
import signal
import threading
from contextlib import contextmanager, nullcontext, suppress

# relative, since the doctor takes these files elsewhere
from . import signal_stack
from .page_faults import Event, identity, out_of_the_way

SLOTS = tuple(int(signal.SIGRTMAX) - number for number in range(5, 21)) if hasattr(signal, "SIGRTMAX") else ()
"""Signals to threads beside the main one, by the kernel, when they touch new pages. The first one's pipe is there from
the beginning, the others' are made when a thread needs them."""
NO_SLOT = 0
FIRST_FAULTS, FIRST_WORDS = 8, 32
"""A thread that begins says its line after so many page faults each, and so often, before anybody has asked it: it may
have taken all it ever takes by then."""
BEGIN, END = b"\x1e", b"\x1f"
"""Around what Python tells; what stands outside is a stack as `faulthandler` writes it."""
BEGINS, ENDS = "begins", "ends"


def introduce_all(present):
    """Those that Python starts from now on get a stack for signals and say so to `present()`, a `Threads` or None;
    others must not be signalled."""
    begin = threading.Thread._bootstrap_inner

    def _bootstrap_inner(thread):
        with signal_stack.of_this_thread() as works:
            threads = present() if works else None
            with threads.of_this_one() if threads else nullcontext():
                begin(thread)

    threading.Thread._bootstrap_inner = _bootstrap_inner


def name_of_pipe(pid, slot):
    """In the folder of all pipes."""
    return f"{pid}.slot{slot}"


class Threads:
    """Those of one process; `pipe` is the first slot's, and in it each says that it begins and ends."""

    def __init__(self, folder, pipe):
        self._folder, self._pid, self._first = folder, os.getpid(), SLOTS[0]
        self._pipes, self._identity = {self._first: pipe}, identity(pipe)
        self._taken, self._events, self._shared = {}, {}, itertools.cycle(SLOTS)
        self.say_lines = False
        for slot in SLOTS:
            do_nothing_at(slot)
        write_stack_at(self._first, pipe)

    @contextmanager
    def of_this_one(self):
        """For the length of a `with` block this thread may be signalled."""
        thread = threading.get_native_id()
        slot = self._slot(thread) if self.say_lines else NO_SLOT
        self._tell(f"{BEGINS} {thread} {slot}")
        if slot:
            with suppress(OSError):
                self._events[thread] = Event(thread, slot)
                self._events[thread].repeat(FIRST_FAULTS, FIRST_WORDS)
        try:
            yield
        finally:
            if thread in self._events:  # else this is a forked child of its own by now
                self._events.pop(thread).close()
            if self._taken.get(slot) == thread:
                del self._taken[slot]
            self._tell(f"{ENDS} {thread} {resource.getrusage(resource.RUSAGE_THREAD).ru_minflt}")

    def _slot(self, thread):
        for slot in SLOTS:
            if self._taken.setdefault(slot, thread) == thread:
                with suppress(OSError):
                    self._open(slot)
                    return slot
                del self._taken[slot]
                return NO_SLOT
        return next(self._shared)

    def _open(self, slot):
        if slot in self._pipes:
            return
        path = os.path.join(self._folder, name_of_pipe(self._pid, slot))
        with suppress(FileNotFoundError):
            os.unlink(path)  # of a program that this process was before
        os.mkfifo(path, 0o600)
        self._pipes[slot] = out_of_the_way(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        write_stack_at(slot, self._pipes[slot])

    def _tell(self, words):
        with suppress(OSError, KeyError):
            if self._pid == os.getpid() and identity(self._pipes[self._first]) == self._identity:
                os.write(self._pipes[self._first], BEGIN + words.encode() + END)

    def forget(self):
        """In a forked child: what it has of its parent, but for the first pipe, which somebody else has opened."""
        others = [pipe for slot, pipe in self._pipes.items() if slot != self._first]
        for close in (
            *[event.close for event in self._events.values()],
            *[_closing(pipe) for pipe in others],
        ):
            with suppress(OSError):
                close()
        self._pipes, self._taken, self._events = {}, {}, {}

    def fall_silent(self):
        """Say nothing from now on."""
        self.say_lines = False
        for slot in SLOTS:
            be_deaf_to(slot)


def _closing(pipe):
    return lambda: os.close(pipe)


def write_stack_at(number, pipe):
    """Who gets this signal writes its stack into a pipe. Chained, since only then `errno` stays as it was."""
    faulthandler.register(number, file=pipe, all_threads=False, chain=True)


def do_nothing_at(number):
    """For what is chained to it, and not SIG_IGN: each stack puts back for a moment what was there, and to ignore a
    signal throws away those that are on their way to other threads."""
    faulthandler.unregister(number)  # of this process's parent, before it was forked
    signal.signal(number, _do_nothing)
    signal.siginterrupt(number, False)  # C code of the program may not know that a call can be interrupted


def _do_nothing(number, frame):
    pass


def be_deaf_to(number):
    """Whoever asks has looked whether anybody answers, and asks a moment later: that must not end the process."""
    faulthandler.unregister(number)
    signal.signal(number, signal.SIG_IGN)
