"""The command as a process: it waits for the word to start, gets the signals that are sent to the doctor, its output is
passed on, and its end is told at once."""

import os
import selectors
import signal
import time
from contextlib import suppress

from helpers.doctor import launch, signals
from helpers.doctor.reception import ENDED, STARTED, STOPPED, WENT_ON
from helpers.watching import processes
from helpers.watching.record import Log

GO = b"!"
NEWS = os.WNOHANG | os.WUNTRACED | os.WCONTINUED


class Child:
    """A new process that becomes the command once it may; `step` until it `has_ended`, and then `finish`."""

    def __init__(self, words, variables, desk):
        self.words, self.desk, self.outputs = words, desk, desk.outputs
        self.log, self.usage, self.exit_code = Log(), None, None
        self.is_stopped, self._is_finished = False, False
        self._children_tell = signals.ChildrenTell()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self._children_tell.reading, selectors.EVENT_READ, self._children_tell.read)
        self.selector.register(desk.orders, selectors.EVENT_READ, self._hand_signals_on)
        self.outputs.register(self.selector, self.log.add)
        self._fork(variables)

    def _fork(self, variables):
        go, gone = os.pipe(), os.pipe()  # the word to start; closed by a successful exec
        self.pid = os.fork()
        if self.pid == 0:
            os.close(go[1])
            self._become_the_command(variables, go[0], gone[1])
        os.close(go[0])
        os.close(gone[1])
        self._go, self._gone = go[1], gone[0]
        self.desk.tell(STARTED, self.pid)
        self.outputs.command_has_them()

    def _become_the_command(self, variables, go, gone):
        """In the new process. Nothing here may return."""
        exit_code = launch.NOT_EXECUTABLE
        try:
            if os.read(go, 1) == GO:  # or the watching process is gone, and nothing shall run unwatched
                self.outputs.connect()
                signals.restore_for_exec(self.desk.inherited)
                launch.execute(self.words, variables)
        except OSError as error:
            os.write(gone, bytes([error.errno]))
            exit_code = launch.CannotStart(self.words[0], error.errno).exit_code
        finally:
            os._exit(exit_code)

    @property
    def has_ended(self):
        return self.exit_code is not None

    def let_it_start(self):
        """Give the word, once; `CannotStart` if there is no such command."""
        if self._go is None:
            return
        go, self._go = self._go, None
        with suppress(BrokenPipeError):  # it was killed
            os.write(go, GO)
        os.close(go)
        number = os.read(self._gone, 1)
        os.close(self._gone)
        if number:
            raise launch.CannotStart(self.words[0], number[0])

    def step(self, seconds=None):
        """Wait so long for anything to happen, and see to it."""
        self._look()
        if not self.has_ended:
            for key, _ in self.selector.select(seconds):
                key.data()
            self._look()

    def _look(self):
        """Take what the system tells of the process: it ended, or stopped, or went on."""
        if self.has_ended:
            return
        pid, status, usage = os.wait4(self.pid, NEWS)
        if not pid:
            return
        if os.WIFSTOPPED(status):
            self.is_stopped = True
            self.desk.tell(STOPPED)
        elif os.WIFCONTINUED(status):
            self._went_on()
        else:
            self.exit_code, self.usage = processes.exit_code_of(status), usage
            self.ended = time.monotonic()
            self.desk.tell(ENDED, self.exit_code)

    def _went_on(self):
        """It went on, and the first process with it, also if somebody continued the command alone."""
        if self.is_stopped:  # and not held still for a moment by whoever reads its memory
            self.is_stopped = False
            self.desk.tell(WENT_ON)
            self.desk.wake()

    def _hand_signals_on(self):
        numbers = self.desk.read_signals()
        if numbers is None:  # as if the command had been killed in its place
            self.selector.unregister(self.desk.orders)
            numbers = [signal.SIGKILL]
        for number in numbers:
            if number == signal.SIGWINCH:
                self.outputs.copy_sizes()
            if (
                not signals.all_got(number) or number == signal.SIGWINCH
            ):  # once more, now that the size is right
                os.kill(self.pid, number)

    def finish(self):
        """It has ended: see its output through, however slow its reader is. Whoever loses patience may end us now."""
        if self._is_finished:
            return
        self._is_finished = True
        signals.give_up(self.desk.inherited)
        self.outputs.command_has_ended()
        while self.outputs.are_open(self.selector):
            for key, _ in self.selector.select():
                key.data()

    def close(self):
        self.selector.close()
