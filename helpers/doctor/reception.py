"""The doctor's first process: it has the number that others know, so it takes their signals, stops and goes on when
the command does, and ends with its exit code. A second process watches; if that fails, the first sees to the rest."""

import os
import signal
import sys
from contextlib import suppress

from helpers.doctor import signals
from helpers.doctor.streams import Outputs
from helpers.watching import processes

STARTED, STOPPED, WENT_ON, ENDED = "started", "stopped", "went-on", "ended"
LONGEST_WORD = 4096


class Desk:
    """What the watching process has of the first one: the signals that it got, and how to tell it what happened."""

    def __init__(self, orders, news, outputs, inherited):
        self.orders, self._news, self._first = orders, news, os.getppid()
        self.outputs, self.inherited = outputs, inherited

    def tell(self, what, number=0):
        with suppress(OSError):  # it was killed
            os.write(self._news, f"{what} {number}\n".encode())

    def wake(self):
        """The first process goes on, if it was stopped."""
        with suppress(OSError):
            os.kill(self._first, signal.SIGCONT)

    def read_signals(self):
        """The numbers of the signals that came; None once the first process is gone."""
        return list(os.read(self.orders, LONGEST_WORD)) or None


def attend(watch):
    """Call `watch(desk)` in a process of its own; returns the exit code of the command that it watches."""
    for stream in (sys.stdout, sys.stderr):
        if stream:
            stream.flush()  # or each process would print it
    outputs = None
    inherited = signals.hold()
    try:
        outputs = Outputs()
        orders, news = os.pipe(), os.pipe()
        watcher = os.fork()
        if watcher == 0:
            for end in (orders[1], news[0]):
                os.close(end)
            _watch(watch, Desk(orders[0], news[1], outputs, inherited))
        for end in (orders[0], news[1]):
            os.close(end)
        outputs.hand_over()
        with signals.written_to(orders[1], inherited):
            command, exit_code = _follow(news[0])
        return _end_with(watcher, command, exit_code)
    finally:
        signals.let_go(inherited)


def _watch(watch, desk):
    """The second process. Nothing here returns."""
    exit_code = 1
    try:
        exit_code = watch(desk)
    except (ImportError, OSError, ValueError) as error:
        say(str(error))
    except BaseException as error:
        say(f"doctor: it failed ({error!r})")
    finally:
        os._exit(exit_code)


def _follow(news):
    """Read what the watching process tells, to its end or to the command's: the command's number and exit code."""
    command = exit_code = None
    unread = b""
    while exit_code is None and (piece := os.read(news, LONGEST_WORD)):
        *words, unread = (unread + piece).split(b"\n")
        told = [word.decode().split() for word in words]
        for what, number in told:
            if what == STARTED:
                command = int(number)
            elif what == ENDED:
                exit_code = int(number)
        if told and told[-1][0] == STOPPED:
            signals.stop()
    return command, exit_code


def _end_with(watcher, command, exit_code):
    """Wait for the watching process, which may have a report to write. The command's exit code is kept in any case."""
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(watcher, 0)[1])
    except KeyboardInterrupt:
        os.kill(watcher, signal.SIGTERM)
        status = exit_code
    if exit_code is not None:
        return exit_code
    if status < 0 and command is not None:
        _end(command)
        say("doctor: the process that watched the command was killed, so the command was ended.")
    return 128 - status if status < 0 else status


def _end(command):
    for pid in (command, *processes.descendants(command)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def say(text):
    """One sentence on standard error, whoever still reads it."""
    with suppress(OSError):
        os.write(2, f"{text}\n".encode())
