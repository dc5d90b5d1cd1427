"""The caller's end of the warm worker: start it early, keep it warm, hand it a job, never lose one."""

import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection

from helpers import machine
from helpers.jobs.task import JOB_ENVIRONMENT
from helpers.watching import cgroups, limits, processes

SECONDS_TO_STOP = 15
WARM_ENVIRONMENT = {**JOB_ENVIRONMENT, "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""For the warm process: that of a job, and no allocator of pyarrow's own, whose thread a fork would lose."""
_idle = []
_lock = threading.Lock()


def fork_is_safe():
    """Fork keeps TensorFlow warm on Linux; macOS and Windows must start a fresh process for each job."""
    wanted = os.environ.get("OOM_START")
    return wanted != "spawn" if wanted else sys.platform == "linux"


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
            f"from helpers.jobs.supervisor import main; main({there.fileno()}, fork={fork_is_safe()})"
        )
        self.owner = os.getpid()
        self.warm = False
        self.process = subprocess.Popen(
            [*limits.scope_command(), sys.executable, "-c", program],
            pass_fds=[there.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=machine.PROJECT,
            env={**WARM_ENVIRONMENT, **os.environ},
        )
        there.close()
        self.connection = Connection(here.detach())

    def alive(self):
        return self.owner == os.getpid() and self.process.poll() is None

    def close(self):
        """Without its caller the supervisor ends its job, cleans up and leaves."""
        self.connection.close()
        if self.owner != os.getpid():
            return
        try:
            self.process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self._force()

    def _force(self):
        family = [*processes.descendants(self.process.pid), self.process.pid]
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        cgroups.sweep()


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
        worker = _take()
        try:
            kind, facts = _converse(worker, task, on_message, interrupts)
        except BaseException:
            worker.close()
            raise
        if kind == "stopped":
            worker.close()
        else:
            _give_back(worker)
        if kind == "refused":
            raise OSError(facts)
    return facts


def _converse(worker, task, on_message, interrupts):
    """The last message of the worker: "end" or "refused"; or "stopped", if it did not listen."""
    stopping_since = None
    asked = False
    while True:
        if worker.warm and not asked:
            worker.connection.send(task)
            asked = True
        if interrupts.pending and stopping_since is None:
            if not asked:
                return "stopped", None
            stopping_since = time.monotonic()
            worker.connection.send("stop")
        if stopping_since and time.monotonic() - stopping_since > SECONDS_TO_STOP:
            return "stopped", None
        if not worker.connection.poll(0.05):
            if not worker.warm:
                on_message("cold", None)
            continue
        kind, facts = _receive(worker)
        if kind in ("end", "refused"):
            return kind, facts
        worker.warm = worker.warm or kind == "warm"
        on_message(kind, facts)


def _receive(worker):
    try:
        return worker.connection.recv()
    except (EOFError, OSError):
        code = worker.process.wait(SECONDS_TO_STOP)
        raise RuntimeError(
            f"the worker process ended with exit code {code} while it watched a job; "
            "run `python -m helpers check` to see whether TensorFlow can be imported"
        ) from None


def _take():
    with _lock:
        while _idle:
            worker = _idle.pop()
            if worker.alive():
                return worker
            worker.connection.close()
    return Worker()


def _give_back(worker):
    with _lock:
        if not _idle:
            _idle.append(worker)
            return
    worker.close()


@atexit.register
def _close_all():
    with _lock:
        while _idle:
            _idle.pop().close()
