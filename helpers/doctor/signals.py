"""Signals: what is sent to the doctor alone is handed on to the command, what all got is not, and the command starts
with the signals as they were before the doctor.

Ctrl-C at a terminal and `kill -INT -GROUP` reach the command by themselves, since it is in the doctor's process group.
So there is a witness in that group: the watching process keeps these signals waiting and looks whether it got it too.
"""

import os
import signal
from contextlib import contextmanager, suppress
from typing import NamedTuple

NAMES = "HUP INT QUIT TERM USR1 USR2 ALRM XCPU TSTP TTIN TTOU CONT WINCH"
PASSED_ON = tuple(getattr(signal, f"SIG{name}") for name in NAMES.split() if hasattr(signal, f"SIG{name}"))
SET_BY_PYTHON = tuple(getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name))
"""Python ignores these from its first moment, and a program would inherit that."""


class Inherited(NamedTuple):
    """How this process had its signals from whoever started it."""

    mask: set
    ignored: frozenset


def hold():
    """Keep the signals waiting, also in the processes that are forked from now on; returns how they were before."""
    ignored = frozenset(
        number for number in (*PASSED_ON, signal.SIGCHLD) if signal.getsignal(number) == signal.SIG_IGN
    )
    return Inherited(signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON), ignored)


def let_go(inherited):
    """They come again, as they did before `hold`; those that waited come now."""
    signal.pthread_sigmask(signal.SIG_SETMASK, inherited.mask)


def restore_for_exec(inherited):
    """In a process that is about to become the command."""
    _restore((*PASSED_ON, signal.SIGCHLD, *SET_BY_PYTHON), inherited)


def give_up(inherited):
    """In the process that watched: the command has ended, and from now on each signal is meant for this process."""
    for number in signal.sigpending() & set(PASSED_ON):
        signal.sigwait({number})
    _restore(PASSED_ON, inherited)


def _restore(numbers, inherited):
    for number in numbers:
        signal.signal(number, signal.SIG_IGN if number in inherited.ignored else signal.SIG_DFL)
    let_go(inherited)


@contextmanager
def written_to(orders, inherited):
    """In a `with` block, the number of each signal that this process gets goes to a pipe. An ignored one stays so."""

    def write(number, frame):
        with suppress(OSError):  # the watching process has ended
            os.write(orders, bytes([number]))

    taken = [number for number in PASSED_ON if number not in inherited.ignored]
    before = {number: signal.signal(number, write) for number in taken}
    let_go(inherited)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def all_got(number):
    """Whether this process, which keeps it waiting, got this signal too; takes it."""
    if number not in signal.sigpending():
        return False
    signal.sigwait({number})
    return True


def stop():
    """Stop this process as Ctrl-Z would, until somebody continues it."""
    before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, before)


class ChildrenTell:
    """A file that can be read whenever a child ended, stopped or went on."""

    def __init__(self):
        self.reading, self._writing = os.pipe()
        for end in (self.reading, self._writing):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})

    def read(self):
        with suppress(BlockingIOError):
            while os.read(self.reading, 512):
                pass
