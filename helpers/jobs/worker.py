"""The caller's end of the warm worker: start it early, keep it warm, hand it a job, never lose one."""

import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from multiprocessing.connection import Connection

from helpers import machine
from helpers.jobs.loss import Heard, cause_of_death, open_errors
from helpers.jobs.task import JOB_ENVIRONMENT
from helpers.watching import leftovers, limits, names, processes
from helpers.watching.enclosure import Enclosure

SECONDS_TO_STOP = 15
WARM_ENVIRONMENT = {**JOB_ENVIRONMENT, "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""For the warm process: that of a job, and no allocator of pyarrow's own, whose thread a fork would lose."""
MARKED = """
import os, sys
variable, prefix, realm, program = sys.argv[1:]
os.environ[variable] = f"{prefix}-{os.getpid()}-{realm}-"
os.execv(sys.executable, [sys.executable, "-c", program])
"""
"""Becomes the warm process with its own number in its environment, and so in that of all that comes from it."""
_idle = []
_all = weakref.WeakSet()
_lock = threading.Lock()


def fork_is_safe():
    """Fork keeps TensorFlow warm on Linux; macOS and Windows must start a fresh process for each job."""
    wanted = os.environ.get("OOM_START")
    return wanted != "spawn" if wanted else sys.platform == "linux"


class WorkerIsGone(Exception):
    """It has ended, or is about to."""


class Worker:
    """A running supervisor process and the connection to it."""

    def __init__(self):
        if not hasattr(socket, "AF_UNIX") or not hasattr(os, "fork"):
            raise OSError(
                "jobs need Linux or macOS; on Windows use WSL 2 or Docker, where everything here works"
            )
        here, there = socket.socketpair()
        # ours, whatever else is called helpers on this path
        program = (
            f"import sys; sys.path.insert(0, {str(machine.PROJECT)!r}); "
            f"from helpers.jobs.supervisor import main; main({there.fileno()}, {fork_is_safe()}, {os.getpid()})"
        )
        marked = [MARKED, machine.JOB_VARIABLE, names.PREFIX, names.realm(), program]
        self.owner = os.getpid()
        self.warm = False
        self.errors, self.enclosure = open_errors(), Enclosure()
        self.process = subprocess.Popen(
            [*limits.scope_command(), sys.executable, "-ISc", *marked],
            pass_fds=[there.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.errors or subprocess.DEVNULL,
            start_new_session=True,
            cwd=machine.PROJECT,
            env={**WARM_ENVIRONMENT, **os.environ},
        )
        there.close()
        self.connection = Connection(here.detach())
        _all.add(self)

    def alive(self):
        return self.owner == os.getpid() and self.process.poll() is None

    def close(self):
        """Without its caller the supervisor ends its job, cleans up and leaves. One that never had a job may be in the
        midst of its imports, where it hears nothing, and has nothing to clean up."""
        self.let_go()
        if self.owner != os.getpid():
            return
        if not self.warm:
            self.process.kill()
        try:
            self.process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self._force()

    def let_go(self):
        """Close what this process holds of it."""
        self.connection.close()
        self.enclosure.close()
        if self.errors:
            self.errors.close()

    def bury(self):
        """It has ended too early: clean up in its place. Returns the reason, as far as it is known."""
        self.connection.close()
        try:
            self.process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self._force()
        leftovers.sweep()
        cause = cause_of_death(self.process.returncode, self.errors, self.enclosure)
        self.let_go()
        return cause

    def send(self, message):
        try:
            self.connection.send(message)
        except OSError:
            raise WorkerIsGone from None

    def receive(self):
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            raise WorkerIsGone from None

    def _force(self):
        family = [*processes.descendants(self.process.pid), self.process.pid]
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        leftovers.sweep()


class Interrupts:
    """Ctrl-C while a job runs is noted, so that the job can be ended in order; it is raised on the way out."""

    def __enter__(self):
        """Who ignores Ctrl-C, as a shell's background jobs do, goes on ignoring it."""
        self.pending = False
        is_main = threading.current_thread() is threading.main_thread()
        self._here = is_main and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
        if self._here:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number, frame):
        self.pending = True

    def __exit__(self, kind, error, trace):
        if self._here:
            signal.signal(signal.SIGINT, self._before)
        if self.pending and kind is None:
            raise KeyboardInterrupt


def warm_up():
    """Start a worker now, so that it is warm by the time that a job comes."""
    with _lock:
        if not _idle:
            _idle.append(Worker())


def perform(task, on_message):
    """Run one task; `on_message(kind, facts)` hears what happens. Returns its `Ending`; OSError says why the job could
    not be started."""
    with Interrupts() as interrupts:
        kind, facts = _converse_with_any(task, on_message, interrupts)
        if kind == "refused":
            raise OSError(facts)
    return facts


def _converse_with_any(task, on_message, interrupts):
    """The last message of the worker that did it: one that died while it waited for work is replaced."""
    while True:
        worker, heard = _take(), Heard(on_message)
        was_warm = worker.warm
        try:
            kind, facts = _converse(worker, task, heard, interrupts)
        except WorkerIsGone:
            cause = worker.bury()
            if heard.anything:
                return "end", heard.ending(cause)
            if not was_warm:
                raise RuntimeError(
                    f"the worker process, in which jobs run, could not start: it {cause}"
                ) from None
            continue
        except BaseException:
            worker.close()
            raise
        if kind == "stopped":
            worker.close()
        else:
            _give_back(worker)
        return kind, facts


def _converse(worker, task, on_message, interrupts):
    """The last message of the worker: "end" or "refused"; or "stopped", if it did not listen."""
    stopping_since = None
    asked = False
    while True:
        if worker.warm and not asked:
            worker.send(task)
            asked = True
        if interrupts.pending and stopping_since is None:
            if not asked:
                return "stopped", None
            stopping_since = time.monotonic()
            worker.send("stop")
        if stopping_since and time.monotonic() - stopping_since > SECONDS_TO_STOP:
            return "stopped", None
        if not worker.connection.poll(0.05):
            if not worker.warm:
                on_message("cold", None)
            continue
        kind, facts = worker.receive()
        if kind in ("end", "refused"):
            return kind, facts
        worker.warm = worker.warm or kind == "warm"
        on_message(kind, facts)


def _take():
    with _lock:
        while _idle:
            worker = _idle.pop()
            if worker.alive():
                return worker
            worker.let_go()
    return Worker()


def _give_back(worker):
    with _lock:
        if not _idle:
            _idle.append(worker)
            return
    worker.close()


def _forget_all():
    """A fork of the caller gets workers of its own; held here, the caller's would not hear that it has ended."""
    global _lock
    _lock = threading.Lock()  # some other thread may have held it
    _idle.clear()
    for worker in list(_all):
        worker.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


@atexit.register
def _close_all():
    with _lock:
        while _idle:
            _idle.pop().close()
