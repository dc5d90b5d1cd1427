"""One job, watched from its start until nothing of it is left."""

import os
import select
import selectors
import shutil
import signal
import tempfile
import time
from contextlib import suppress

from helpers.gpu import Utilisation
from helpers.jobs.channel import Receiver
from helpers.jobs.job_lines import JobLines
from helpers.jobs.launch import Job
from helpers.jobs.task import Ending
from helpers.jobs.told import Told
from helpers.watching import limits, names, processes
from helpers.watching.enclosure import Enclosure
from helpers.watching.priority import ahead_of_others
from helpers.watching.record import Curves, Log
from helpers.watching.sampler import INTERVAL, Sampler

PIECE = 65_536
LIVE_INTERVAL = 0.2
SECONDS_TO_PREPARE = 120
SECONDS_OF_A_WORD = 0.001  # until a thread that has begun to say something has said it


class CallerIsGone(Exception):
    """Nobody waits for this job any more."""


class Watch:
    """Runs one `Task`; `caller` is told what it prints and how much it uses, and in the end how it ended."""

    def __init__(self, caller, task, fork, parent=None):
        self.caller, self.task, self.fork, self.parent = caller, task, fork, parent or os.getppid()
        self.log, self.receiver, self.unsent = Log(), Receiver(), []
        self.told, self.vram, self.device, self.peak_vram = Told(), [], None, None
        self.ended_by = self.limit_around = self.status = self.rusage = None
        self.job = self.limiter = self.sampler = self.job_lines = self.end = None
        self.temporary_folder = self.enclosure = None
        self.lines = []
        self.ready, self.returned, self.current_vram, self.mapped = False, False, 0, 0
        self.selector, self.utilisation = selectors.DefaultSelector(), Utilisation()
        self.handlers = {
            "ready": self._on_ready,
            "mapped": self._on_mapped,
            **self.told.handlers,
        }

    def run(self):
        """Watch the job to its end and tell the caller; a job that could not even start is told as an OSError."""
        try:
            self._start()
        except OSError as error:
            self._clean_up()
            self.caller.send(("refused", str(error)))
            return
        except BaseException:
            self._clean_up()
            raise
        try:
            with ahead_of_others():  # the job is there by now, and starts nothing of this process
                while not self._reaped():
                    self._step()
            self.ended = time.monotonic()
        finally:
            self._clean_up()
        self.caller.send(("end", self._ending()))

    def _start(self):
        self.began = self.next_tick = self.last_live = time.monotonic()
        limiter = limits.best(self.task.on_limit, self.task.limiter).limiter
        self.temporary_folder = tempfile.mkdtemp(prefix=names.new_prefix())
        self.job_lines = JobLines()
        self.job_lines.register(self.selector, self._look_soon)
        folders = (self.temporary_folder, self.job_lines.folder)
        self.job = Job(self.task, folders, self.fork, self.caller.fileno())
        self.limiter = limiter(self.job.pid)
        self.limiter.admit()
        self.sampler = Sampler(self.job.pid, self.limiter)
        for pipe, read in ((self.job.output, self._read_output), (self.job.reports, self._read_reports)):
            self.selector.register(pipe.reading, selectors.EVENT_READ, read)
        self.selector.register(self.caller, selectors.EVENT_READ, self._read_caller)
        self.may_have_ended = True
        self.end = processes.open_pidfd(self.job.pid)
        if self.end:  # tells of the job's end, so that nobody has to ask all the time
            self.selector.register(self.end, selectors.EVENT_READ, self._on_end)

    def _on_end(self, end):
        self.may_have_ended = True

    def _look_soon(self):
        self.next_tick = min(self.next_tick, time.monotonic() + SECONDS_OF_A_WORD)

    def _step(self):
        for key, _ in self.selector.select(max(0.0, self.next_tick - time.monotonic())):
            key.data(key.fileobj)
        now = time.monotonic()
        if now - self.began > self.task.timeout + (0 if self.ready else SECONDS_TO_PREPARE):
            self._end("timeout")
        if now < self.next_tick:
            return
        if self.ready:
            self._tick(now)
        pause = self.sampler.pause() if self.ready else INTERVAL
        self.next_tick = max(self.next_tick, now - pause) + pause  # in step, unless it is very late

    def _tick(self, now, in_full=False):
        if self.device:
            self._read_vram()
        used = self.sampler.tick(in_full)
        self.utilisation.tick(now - self.began)
        if self.limiter.exceeded(used):
            self._end("budget")
        self.job_lines.follow(self.sampler, self.current_vram)
        self._show(now, used)

    def _end(self, why):
        self.ended_by = self.ended_by or why
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(self.job.pid, signal.SIGKILL)

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

    def _show(self, now, used):
        """Pass on what is new, but never wait for the caller: a watchdog that waits does not watch."""
        if now - self.last_live > LIVE_INTERVAL:
            self.last_live = now
            if os.getppid() != self.parent:  # and some process that it left behind holds its end of the line
                raise CallerIsGone
            facts = {"seconds": now - self.began, "ram": used, "peak": self.sampler.peak}
            self.unsent.append(("live", facts))
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

    def _read_reports(self, end):
        piece = self._read(end)
        for message in self.receiver.feed(piece):
            self.handlers[message.kind](message)
        if self.receiver.is_broken or end not in self.selector.get_map():
            self.job.go.writing.close()  # what the job tells is not heard any more: it shall not wait for an answer
        return piece

    def _on_ready(self, message):
        """The job is prepared: from here on its memory and its time count."""
        self.device = message.facts["device"]
        self.sampler.start()
        began, baseline = time.monotonic(), self.sampler.held
        follows_vram = self.device is not None and self.task.ram is None
        self.job_lines.begin(self.job.pid, follows_vram, baseline, began)
        self.limiter.arm(self.task.ram or self.task.spare)
        self.enclosure = Enclosure()
        self.began = self.told.began = time.monotonic()
        self.ready = True
        self._let_go_on()

    def _let_go_on(self):
        with suppress(BrokenPipeError, ValueError):  # it has just died, or is not waited for any more
            self.job.go.writing.write(b"!")

    def _read_vram(self):
        for moment, current, peak in self.job.vram.read():
            self.vram.append((moment - self.began, current))
            self.current_vram, self.peak_vram = current, max(self.peak_vram or 0, peak)

    def _on_mapped(self, message):
        """Its function is over, and it waits: a kill that is counted by now, of a child perhaps, came before."""
        self._tick(time.monotonic(), in_full=True)
        self.job_lines.settle(self.sampler, self.current_vram)
        self.mapped = message.facts["files"]
        self.returned = message.facts["returned"] and not self.limiter.ended()
        self._let_go_on()

    def _clean_up(self):
        """Leave nothing behind, however far it came: processes, what they still had to say, shared memory, groups,
        files."""
        self.utilisation.close()
        processes.end_descendants(os.getpid())
        if self.job:
            self._read_the_rest()
            self.job.close()
        if self.end:
            self.end.close()
        self.selector.close()
        if self.ready:
            self._close_the_account()
        if self.job_lines:
            self.job_lines.close()
        if self.limiter:
            self.limiter.release()
        if self.temporary_folder:
            shutil.rmtree(self.temporary_folder, ignore_errors=True)

    def _read_the_rest(self):
        for read, pipe in ((self._read_output, self.job.output), (self._read_reports, self.job.reports)):
            while pipe.reading in self.selector.get_map() and read(pipe.reading):
                pass
        self._read_vram()

    def _close_the_account(self):
        killer = self._killer()
        self.enclosure.close()
        if killer:
            self.ended_by, self.limit_around = killer.name, killer.limit
            self.status = int(signal.SIGKILL)  # the kernel may kill one process; the job is all of them
        filled = killer is not None and killer.name == "budget"
        self.sampler.finish(self.rusage, self.mapped, killed_at=self.limiter.budget if filled else 0)
        self.sampler.shared_files.remove()
        self.lines = self.job_lines.lines(self.sampler, self.peak_vram)

    def _killer(self):
        """Who killed the job for want of memory, if that is what ended it."""
        if self.ended_by in ("timeout", "caller"):
            return None
        was_killed = self.limiter.ended() or self.status == signal.SIGKILL
        return self.enclosure.killer(self.limiter) if was_killed else None

    def _ending(self):
        for kind, facts in self.unsent:
            if kind == "output":
                self.caller.send((kind, facts))
        return Ending(
            status=self.status,
            ended_by=self.ended_by,
            limit_around=self.limit_around,
            seconds=self.ended - self.began,
            log=bytes(self.log),
            limiter=self.limiter.name,
            returned=self.returned,
            value=self.told.value,
            failure=self.told.failure,
            device=self.device,
            peak_ram=self.sampler.peak if self.ready else None,
            peak_vram=self.peak_vram,
            idle=self.told.idle,
            lines=self.lines,
            phases=tuple(self.told.phases),
            curves=Curves(
                *self.sampler.curve(), tuple(self.vram), tuple(self.utilisation.readings), self.told.waiting
            ),
        )
