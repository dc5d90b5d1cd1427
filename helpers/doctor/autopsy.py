"""Running somebody's own command, unchanged, and watching its memory until it ends."""

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass

from helpers import gpu
from helpers.doctor.child import Child
from helpers.doctor.hook import PythonProcesses
from helpers.doctor.launch import CannotStart
from helpers.doctor.reception import say
from helpers.doctor.relay import NOT_WRITTEN
from helpers.doctor.secrets import command_without_secrets
from helpers.doctor.surroundings import Surroundings
from helpers.watching import limits, processes
from helpers.watching.record import Curves, Recording, located
from helpers.watching.sampler import Sampler
from helpers.watching.shared_memory import SharedFiles

WHILE_IT_GROWS = 0.04  # seconds between two readings
WHILE_IT_RESTS = 0.1
MUCH = 2**20  # bytes that make a difference
POINTS = 20_000  # readings of a long run: the longer it runs, the rarer they are
UNLIMITED = 2**62
READER_HAD_ENOUGH = 128 + signal.SIGPIPE


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Watched(Recording):
    """What was seen of a command, and around it."""

    evidence: tuple[str, ...] = ()
    over_budget: bool = False
    kernel_killed: bool = False

    @property
    def calls_for_a_report(self):
        """It died; or something of it was killed for its memory, though it ended well itself."""
        if self.over_budget or self.kernel_killed:
            return True
        if self.exit_code == READER_HAD_ENOUGH:
            return NOT_WRITTEN in self.log
        return self.exit_code != 0


class Command:
    """One run of a command: `run` passes its output on, watches it, and tells what was seen."""

    def __init__(self, words, ram_budget=None, vram_budget=None, *, desk):
        self.words, self.ram_budget, self.vram_budget = tuple(words), ram_budget, vram_budget
        self.desk, self.child, self.limiter = desk, None, None
        self.over_budget, self.rests = False, False
        self.pids = set()

    @property
    def exit_code(self):
        return self.child.exit_code

    def run(self):
        """Run the command to its end; returns a `Watched`, or None where it could not be watched to its end."""
        limiter = self._limiter()
        self.pythons, self.surroundings, self.card = PythonProcesses(), Surroundings(), gpu.Holdings()
        self.child = Child(self.words, self._variables(), self.desk)
        try:
            self._start(limiter)
            self._watch()
            self._close_the_account()
            return self._watched()
        except CannotStart as error:
            self._see_it_through()
            say(str(error))
        except Exception as error:
            self._go_on_without_watching(error)
        finally:
            self._release()
            for used in (self.child, self.pythons, self.card):
                used.close()

    def _limiter(self):
        if not self.ram_budget:
            return limits.NoLimit
        return limits.best(wanted=limits.wanted_by_name()).limiter

    def _variables(self):
        more = self.pythons.environment()
        if self.vram_budget:
            more |= gpu.virtual_environment(self.vram_budget)
        return more

    def _start(self, limiter):
        self.pythons.register(self.child.selector)
        self.limiter = limiter(self.child.pid)
        self.limiter.admit()
        self.child.let_it_start()
        self.sampler = Sampler(self.child.pid, self.limiter)
        self.sampler.start()
        self.sampler.shared_files = _OthersFiles()
        self.limiter.arm(self.ram_budget or UNLIMITED)

    def _watch(self):
        self.began = next_tick = time.monotonic()
        while not self.child.has_ended:
            self.child.step(max(0.0, next_tick - time.monotonic()))
            now = time.monotonic()
            next_tick = min(next_tick, now + self.pythons.seconds_to_the_next_look)
            if now >= next_tick and not self.child.has_ended:
                self._tick(now - self.began)
                next_tick = now + self._pause(now - self.began)

    def _tick(self, seconds):
        if self.child.is_stopped:  # to read it exactly would let it go on
            return
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

    def _close_the_account(self):
        """It has ended: say whether by its budget, and let go of what it left running."""
        self.over_budget = self.over_budget or bool(self.ram_budget and self.limiter.ended())
        self.sampler.finish(self.child.usage, killed_at=self.ram_budget if self.over_budget else 0)
        self._release()

    def _release(self):
        limiter, self.limiter = self.limiter, None
        if limiter:
            if limiter.in_kernel:
                limiter.group.let_out()
            limiter.release()

    def _see_it_through(self):
        while not self.child.has_ended:
            self.child.step()
        self.child.finish()

    def _go_on_without_watching(self, error):
        """The watching failed, not the command: it goes on, but not beyond a budget that nobody keeps."""
        if self.child.has_ended:
            what_now = "there is no report"
        elif self.ram_budget:
            self._kill()
            what_now = "the command was ended: nobody keeps its budget any more"
        else:
            what_now = "the command runs on unwatched"
            with suppress(CannotStart):
                self.child.let_it_start()
        say(f"doctor: the watching failed ({error!r}); {what_now}.")
        self._see_it_through()

    def _watched(self):
        self.child.finish()
        self.pythons.read()
        evidence = tuple(self.surroundings.evidence({self.child.pid, *self.pids}))
        return Watched(
            label=command_without_secrets(self.words),
            outcome=_outcome(self.exit_code),
            exit_code=self.exit_code,
            seconds=self.child.ended - self.began,
            log=bytes(self.child.log).decode("utf-8", "replace"),
            evidence=evidence,
            over_budget=self.over_budget,
            kernel_killed=self.surroundings.saw_a_kill,
            ram_budget=self.ram_budget,
            vram_budget=self.vram_budget,
            peak_ram=self.sampler.peak,
            peak_vram=self.card.peak,
            lines=tuple(located(place, size) for place, size in self.pythons.lines(self.sampler.peak)),
            curves=Curves(*self.sampler.curve(), vram=tuple(self.card.readings)),
        )


def _outcome(exit_code):
    """As far as the exit code tells; the diagnosis knows more."""
    if exit_code == 0:
        return "finished"
    return "killed" if exit_code == 128 + signal.SIGKILL else "error"


class _OthersFiles(SharedFiles):
    """The command's files in /dev/shm are counted, and stay: no record is kept by which others would remove them."""

    def _keep_record(self):
        pass
