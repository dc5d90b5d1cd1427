"""One job, watched from its start until nothing of it is left."""

import os
import select
import selectors
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from io import FileIO

from helpers import answering, cgroups, limits, processes
from helpers.launch import Job
from helpers.lines import Question
from helpers.reports import Receiver
from helpers.sampler import INTERVAL, Sampler
from helpers.utilisation import Utilisation

KEPT_LOG = 1_000_000
PIECE = 65_536
LIVE_INTERVAL = 0.2
SECONDS_TO_PREPARE = 120


class CallerIsGone(Exception):
    """Nobody waits for this job any more."""


class Log:
    """The beginning and the end of what a job prints; a job may print more than anyone wants to keep."""

    def __init__(self):
        self.head, self.tail, self.size = bytearray(), bytearray(), 0

    def add(self, piece):
        room = max(0, KEPT_LOG - len(self.head))
        self.head += piece[:room]
        self.tail += piece[room:]
        del self.tail[:-KEPT_LOG]
        self.size += len(piece)
        return piece[:room]

    def __bytes__(self):
        lost = self.size - len(self.head) - len(self.tail)
        gap = b"\n[... %d bytes left out ...]\n" % lost if lost else b""
        return bytes(self.head) + gap + bytes(self.tail)


class Watch:
    """Runs one task; `caller` is told what it prints and how much it uses, and in the end how it ended."""

    def __init__(self, caller, task, fork):
        self.caller, self.task, self.fork = caller, task, fork
        self.log, self.receiver, self.unsent = Log(), Receiver(), []
        self.phases, self.waiting, self.vram, self.peak_vram = [], [], [], None
        self.value = self.failure = self.device = self.idle = None
        self.ended_by = self.status = self.rusage = self.job = self.limiter = None
        self.ready, self.current_vram = False, 0
        self.utilisation = Utilisation()
        self.handlers = {
            "ready": self._on_ready,
            "phase_begin": self._on_phase_begin,
            "phase_end": self._on_phase_end,
            "waiting": self._on_waiting,
            "value": self._on_value,
            "failure": self._on_failure,
        }

    def run(self):
        self.task["temporary_folder"] = tempfile.mkdtemp(prefix=f"{cgroups.PREFIX}-{os.getpid()}-")
        try:
            self._start()
            while not self._reaped():
                self._step()
            self.ended = time.monotonic()
        finally:
            self._clean_up()
        self.caller.send(("end", self._result()))

    def _start(self):
        self.began = self.next_tick = self.last_live = time.monotonic()
        self.job = Job(self.task, self.fork, self.caller.fileno())
        self.limiter = limits.best(self.task["on_limit"], self.task["limiter"]).limiter(self.job.pid)
        self.limiter.admit()
        self.sampler, self.question = Sampler(self.job.pid, self.limiter), Question(self.job.pid)
        self.selector = selectors.DefaultSelector()
        for pipe, read in ((self.job.output, self._read_output), (self.job.reports, self._read_reports)):
            self.selector.register(pipe.reading, selectors.EVENT_READ, read)
        self.selector.register(self.caller, selectors.EVENT_READ, self._read_caller)
        self.may_have_ended, self.end = True, None
        if hasattr(os, "pidfd_open"):  # tells of the job's end, so that nobody has to ask all the time
            self.end = FileIO(os.pidfd_open(self.job.pid), "r")
            self.selector.register(self.end, selectors.EVENT_READ, self._on_end)

    def _on_end(self, end):
        self.may_have_ended = True

    def _step(self):
        for key, _ in self.selector.select(max(0.0, self.next_tick - time.monotonic())):
            key.data(key.fileobj)
        now = time.monotonic()
        if now - self.began > self.task["timeout"] + (0 if self.ready else SECONDS_TO_PREPARE):
            self._end("timeout")
        if now < self.next_tick:
            return
        if self.ready:
            if self.question.is_open:  # not as it comes: it comes in many small pieces
                self._read_stack(self.job.stacks.reading)
            if self.device:
                self._read_figures()
            used = self.sampler.tick()
            self.utilisation.tick(now - self.began)
            if self.limiter.exceeded(used):
                self._end("budget")
            self._ask_for_the_line()
            self._show(now, used)
        pause = self.sampler.pause() if self.ready else INTERVAL
        self.next_tick = max(self.next_tick, now - pause) + pause  # in step, unless it is very late

    def _end(self, why):
        self.ended_by = self.ended_by or why
        self._signal(signal.SIGKILL)

    def _signal(self, number):
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(self.job.pid, number)

    def _reaped(self):
        """Reap whatever ended; True once the job itself did."""
        if not self.may_have_ended:
            return False
        self.may_have_ended = self.end is None
        try:
            while True:
                pid, status, rusage = os.wait4(-1, os.WNOHANG)
                if pid == self.job.pid:
                    self.status, self.rusage = status, rusage
                if pid == 0:
                    break
        except ChildProcessError:
            pass
        return self.status is not None

    def _ask_for_the_line(self):
        """Memory grows, or is given back: which line does it?"""
        level = self.current_vram if self.follows_vram else self.sampler.held
        if not answering.ASK or not self.sampler.owes_a_line(level):
            return
        if self.question.may_be_asked() and self.sampler.may_ask(level):
            self.question.ask(level)

    def _show(self, now, used):
        """Pass on what is new, but never wait for the caller: a watchdog that waits does not watch."""
        if now - self.last_live > LIVE_INTERVAL:
            self.last_live = now
            self.unsent.append(
                ("live", {"seconds": now - self.began, "ram": used, "peak": self.sampler.peak})
            )
        if self.unsent and select.select([], [self.caller], [], 0)[1]:
            self.caller.send(self.unsent.pop(0))

    def _read_caller(self, caller):
        """A caller that speaks while a job runs wants it stopped."""
        try:
            caller.recv()
        except (EOFError, OSError):
            raise CallerIsGone from None
        self._end("caller")

    def _read(self, end):
        try:
            piece = os.read(end.fileno(), PIECE)
        except OSError:
            return b""
        if not piece and end in self.selector.get_map():
            self.selector.unregister(end)
        return piece

    def _read_output(self, end):
        piece = self._read(end)
        shown = self.log.add(piece)
        if shown:
            self.unsent.append(("output", shown))
        return piece

    def _read_stack(self, end):
        piece = self._read(end)
        for line, levels, held in self.question.hear(piece):
            for level in levels:
                self.sampler.line(line, level)
            if held and not self.follows_vram:
                self.sampler.line(line, held)
        return piece

    def _read_reports(self, end):
        piece = self._read(end)
        for kind, moment, facts in self.receiver.feed(piece):
            self.handlers[kind](moment - self.began, **facts)
        return piece

    def _on_ready(self, seconds, device):
        """The job is prepared: from here on its memory and its time count."""
        self.device = device
        self.follows_vram = device is not None and self.task["ram"] is None
        self.sampler.start(follows_vram=self.follows_vram)
        self.limiter.arm(self.task["ram"] or self.task["spare"])
        self.began = time.monotonic()
        self.ready = True
        with suppress(BrokenPipeError):  # it died in this very moment
            self.job.go.writing.write(b"!")

    def _read_figures(self):
        for moment, current, peak in self.job.figures.read():
            self.vram.append((moment - self.began, current))
            self.current_vram, self.peak_vram = current, max(self.peak_vram or 0, peak)

    def _on_phase_begin(self, seconds, name):
        self.phases.append({"name": name, "start": seconds, "end": None, "items": None})

    def _on_phase_end(self, seconds, name, items):
        for stretch in reversed(self.phases):
            if stretch["name"] == name and stretch["end"] is None:
                stretch.update(end=seconds, items=items)
                break

    def _on_waiting(self, seconds, stretches, idle):
        self.waiting += [(start - self.began, end - self.began) for start, end in stretches]
        self.idle = idle

    def _on_value(self, seconds, pickled):
        self.value = pickled

    def _on_failure(self, seconds, **failure):
        self.failure = failure

    def _clean_up(self):
        """Leave nothing behind: processes, what they still had to say, shared memory, groups, files."""
        self.utilisation.close()
        processes.end_descendants(os.getpid())
        if self.job:
            for read, pipe in ((self._read_output, self.job.output), (self._read_reports, self.job.reports)):
                while pipe.reading in self.selector.get_map() and read(pipe.reading):
                    pass
            while self._read_stack(self.job.stacks.reading):
                pass
            self._read_figures()
            self.job.close()
            self.selector.close()
            if self.end:
                self.end.close()
        if self.ready:
            over_budget = self.limiter.ended()
            if over_budget:
                self.ended_by = self.ended_by or "budget"
                self.status = int(signal.SIGKILL)  # cgroup v1 kills one process; the job is all of them
            highest = self.rusage.ru_maxrss * 1024 if self.rusage else 0
            self.sampler.finish(highest, killed_at=self.limiter.budget if over_budget else 0)
        if self.limiter:
            self.limiter.release()
        shutil.rmtree(self.task["temporary_folder"], ignore_errors=True)

    def _result(self):
        for kind, facts in self.unsent:
            if kind == "output":
                self.caller.send((kind, facts))
        seconds, ram = self.sampler.curve()
        return {
            "status": self.status,
            "ended_by": self.ended_by,
            "seconds": self.ended - self.began,
            "log": bytes(self.log),
            "value": self.value,
            "failure": self.failure,
            "device": self.device,
            "limiter": self.limiter.name,
            "curve": (seconds, ram),
            "vram": self.vram,
            "peak_ram": self.sampler.peak if self.ready else None,
            "peak_vram": self.peak_vram,
            "lines": self.sampler.lines(self.peak_vram) if self.ready else [],
            "phases": self.phases,
            "waiting": self.waiting,
            "idle": self.idle,
            "utilisation": self.utilisation.readings,
        }
