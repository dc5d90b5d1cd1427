"""Running somebody's own command, unchanged, and watching its memory until it ends."""

import errno
import fcntl
import os
import pty
import selectors
import shlex
import signal
import termios
import time
from contextlib import suppress
from dataclasses import dataclass

from helpers import gpu
from helpers.doctor.hook import PythonProcesses
from helpers.doctor.surroundings import Surroundings
from helpers.watching import limits, processes
from helpers.watching.record import Curves, Log, Recording, located
from helpers.watching.sampler import Sampler

WHILE_IT_GROWS = 0.04  # seconds between two readings
WHILE_IT_RESTS = 0.1
MUCH = 2**20  # bytes that make a difference
POINTS = 20_000  # readings of a long run: the longer it runs, the rarer they are
DRAIN_SECONDS = 0.5
UNLIMITED = 2**62
NOT_FOUND, NOT_EXECUTABLE = 127, 126


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Watched(Recording):
    """What was seen of a command, and around it."""

    evidence: tuple[str, ...] = ()
    over_budget: bool = False


class Command:
    """One run of a command: `run` passes its output on, watches it, and tells what was seen."""

    def __init__(self, command, ram_budget=None, vram_budget=None):
        self.command, self.ram_budget, self.vram_budget = tuple(command), ram_budget, vram_budget
        self.log = Log()
        self.over_budget = False
        self.pids, self.end = set(), None
        self._signals = {}

    def run(self):
        """Run the command to its end; returns a `Watched`."""
        self.pythons, self.surroundings, self.card = PythonProcesses(), Surroundings(), gpu.Holdings()
        self.selector = selectors.DefaultSelector()
        try:
            self._start()
            self._watch()
        finally:
            self._close()
        return self._watched()

    def _start(self):
        streams = [_Stream(descriptor) for descriptor in (1, 2)]
        go, gone = os.pipe(), os.pipe()  # the word to start; closed by a successful exec
        self.pid = os.fork()
        if self.pid == 0:
            self._become_the_command(streams, go, gone)
        for stream in streams:
            os.close(stream.inside)
            self.selector.register(
                stream.outside, selectors.EVENT_READ, lambda stream=stream: self._pass(stream)
            )
        self.pythons.register(self.selector)
        self.end = processes.open_pidfd(self.pid)
        if self.end:  # wakes the watcher at once when the command ends
            self.selector.register(self.end, selectors.EVENT_READ, bool)
        self._pass_signals_on()
        self.limiter = self._limiter()(self.pid)
        self.limiter.admit()
        os.close(go[0])
        os.close(gone[1])
        os.write(go[1], b"!")
        os.close(go[1])
        os.read(gone[0], 1)
        os.close(gone[0])
        self.sampler = Sampler(self.pid, self.limiter)
        self.sampler.start()
        self.limiter.arm(self.ram_budget or UNLIMITED)

    def _become_the_command(self, streams, go, gone):
        """In the new process. Nothing here may return."""
        try:
            os.close(go[1])
            os.close(gone[0])
            for target, stream in enumerate(streams, 1):
                os.dup2(stream.inside, target)
            os.read(go[0], 1)
            os.execvpe(self.command[0], self.command, {**os.environ, **self._environment()})
        except OSError as error:
            os.write(2, f"{self.command[0]}: {error.strerror}\n".encode())
            os._exit(NOT_FOUND if error.errno == errno.ENOENT else NOT_EXECUTABLE)
        finally:
            os._exit(NOT_EXECUTABLE)

    def _environment(self):
        more = self.pythons.environment()
        if self.vram_budget:
            more |= gpu.virtual_environment(self.vram_budget)
        return more

    def _limiter(self):
        if not self.ram_budget:
            return limits.NoLimit
        return limits.best(wanted=limits.wanted_by_name()).limiter

    def _pass_signals_on(self):
        """Ctrl-C reaches the command by itself, since both belong to the terminal; others are handed on."""
        self._signals[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._signals[number] = signal.signal(number, lambda number, _: os.kill(self.pid, number))

    def _watch(self):
        self.began = time.monotonic()
        next_tick = self.began
        while not self._ended():
            for key, _ in self.selector.select(max(0.0, next_tick - time.monotonic())):
                key.data()
            now = time.monotonic()
            if now >= next_tick:
                self._tick(now - self.began)
                next_tick = now + self._pause(now - self.began)
        self.seconds = time.monotonic() - self.began
        deadline = time.monotonic() + DRAIN_SECONDS
        while self._read_outputs() and time.monotonic() < deadline:
            pass

    def _read_outputs(self):
        """Whether there was more to read."""
        ready = [key for key, _ in self.selector.select(0) if key.data is not bool]
        for key in ready:
            key.data()
        return bool(ready)

    def _tick(self, seconds):
        before, used = self.sampler.used, self.sampler.tick()
        self.rests = abs(used - before) < MUCH
        if self.limiter.exceeded(used):
            self._kill()
        self.pythons.ask()
        self.surroundings.look(used)
        self.pids.update(self.sampler.family)
        self.card.look(seconds, self.pids)

    def _pause(self, seconds):
        pause = max(WHILE_IT_RESTS if self.rests else WHILE_IT_GROWS, seconds / POINTS)
        return min(pause, self.sampler.pause()) if self.ram_budget else pause

    def _kill(self):
        self.over_budget = True
        for pid in processes.descendants(os.getpid()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _ended(self):
        ended, self.status, self.usage = os.wait4(self.pid, os.WNOHANG)
        return ended != 0

    def _pass(self, stream):
        piece = stream.read()
        if not piece:
            self.selector.unregister(stream.outside)
            return
        self.log.add(piece)
        stream.write(piece)

    def _close(self):
        for number, handler in self._signals.items():
            signal.signal(number, handler)
        self.selector.close()
        if self.end:
            self.end.close()
        self.pythons.read()
        self.found_lines = self.pythons.lines()
        self.pythons.close()
        self.card.close()

    def _watched(self):
        self.sampler.finish(self.usage)
        self.over_budget = self.over_budget or bool(self.ram_budget and self.limiter.ended())
        self.limiter.release()
        exit_code = processes.exit_code_of(self.status)
        return Watched(
            label=shlex.join(self.command),
            outcome=_outcome(exit_code),
            exit_code=exit_code,
            seconds=self.seconds,
            log=bytes(self.log).decode("utf-8", "replace"),
            evidence=tuple(self.surroundings.evidence({self.pid, *self.pids})),
            over_budget=self.over_budget,
            ram_budget=self.ram_budget,
            vram_budget=self.vram_budget,
            peak_ram=self.sampler.peak,
            peak_vram=self.card.peak,
            lines=tuple(located(place, size) for place, size in self.found_lines),
            curves=Curves(*self.sampler.curve(), vram=tuple(self.card.readings)),
        )


def _outcome(exit_code):
    """As far as the exit code tells; the diagnosis knows more."""
    if exit_code == 0:
        return "finished"
    return "killed" if exit_code == 128 + signal.SIGKILL else "error"


class _Stream:
    """One of the command's output streams: a terminal if ours is one, so that progress bars stay, else a pipe."""

    def __init__(self, target):
        self.target = target
        self.outside, self.inside = pty.openpty() if os.isatty(target) else os.pipe()
        if os.isatty(target):
            attributes = termios.tcgetattr(self.inside)
            attributes[1] &= ~termios.OPOST  # our own terminal does what is to be done to line ends
            termios.tcsetattr(self.inside, termios.TCSANOW, attributes)
            size = fcntl.ioctl(target, termios.TIOCGWINSZ, bytes(8))
            fcntl.ioctl(self.inside, termios.TIOCSWINSZ, size)

    def read(self):
        try:
            return os.read(self.outside, 65_536)
        except OSError:  # the end of a terminal
            return b""

    def write(self, piece):
        with suppress(OSError):  # whoever read us is gone; the command shall not notice
            while piece:
                piece = piece[os.write(self.target, piece) :]
