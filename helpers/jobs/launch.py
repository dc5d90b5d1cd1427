"""Starting the process of a job: forked from the warm process, or spawned where fork is not to be had."""

import ctypes
import importlib.util
import os
import pickle
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from io import FileIO, TextIOWrapper

from helpers import machine
from helpers.jobs import child
from helpers.jobs.task import WARM_IMPORTS
from helpers.jobs.vram_log import VramLog, open_file

PR_SET_PDEATHSIG = 1
MOST_LIKELY_TO_BE_KILLED = "1000"
SPAWNED_PROGRAM = f"""
import pickle, sys
sys.path.insert(0, {str(machine.PROJECT)!r})  # before any other package that is called helpers
from helpers.jobs.launch import begin_spawned
begin_spawned(*pickle.load(sys.stdin.buffer), *map(int, sys.argv[1:]))
"""


def import_warm():
    """Import what jobs nearly always need, as far as it is installed."""
    for name in WARM_IMPORTS:
        if importlib.util.find_spec(name):
            importlib.import_module(name)


def begin_spawned(task, folders, *descriptors):
    """In a fresh process: what the warm one has done before it forks. Never returns."""
    _die_first()
    sys.path[:] = task.path
    _open_streams()
    with _silence():
        import_warm()
    child.main(task, folders, *descriptors)


@contextmanager
def _silence():
    """What C++ says while it is imported is not the job's output."""
    nothing, before = os.open(os.devnull, os.O_WRONLY), os.dup(2)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nothing)


def _open_streams():
    """Whatever a job prints goes out at once, and no character of it is an error."""
    sys.stdout, sys.stderr = (
        TextIOWrapper(FileIO(target, "w", closefd=False), "utf-8", "backslashreplace", write_through=True)
        for target in (1, 2)
    )


def _die_first():
    """In the job: it goes when its watcher goes, and where memory runs out around both, the kernel takes it and not
    the watcher or the caller."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write(MOST_LIKELY_TO_BE_KILLED)


class Pipe:
    """Two ends, each closed once; closing again does no harm."""

    def __init__(self):
        reading, writing = os.pipe()
        self.reading, self.writing = FileIO(reading, "r"), FileIO(writing, "w")

    def close(self):
        self.reading.close()
        self.writing.close()


class Job:
    """A started process and what connects with it: pipes for its output, its reports and the word to go, and shared
    memory for the readings of its device."""

    def __init__(self, task, folders, fork, stranger):
        """`folders` are the one for its temporary files, and the one in which it says its lines; `stranger` is a
        descriptor that the job must not inherit."""
        self._task, self._folders = task, folders
        self.output, self.reports, self.go = (Pipe() for _ in range(3))
        self._file = open_file()
        self.vram = VramLog(self._file.fileno())
        self.pid = self._fork(stranger) if fork else self._spawn()
        for pipe in (self.output, self.reports):
            pipe.writing.close()
            os.set_blocking(pipe.reading.fileno(), False)
        self.go.reading.close()
        self._file.close()

    def close(self):
        self.vram.close()
        for pipe in (self.output, self.reports, self.go):
            pipe.close()

    def _fork(self, stranger):
        pid = os.fork()
        if pid:
            return pid
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _die_first()
            os.setsid()
            os.close(stranger)
            self._dress()
            child.main(self._task, self._folders, *self._descriptors())
        finally:
            os._exit(1)

    def _descriptors(self):
        ends = (self.reports.writing, self._file, self.go.reading)
        return tuple(end.fileno() for end in ends)

    def _dress(self):
        """In the new process: standard streams of its own, and only its own ends of the pipes."""
        nothing, output = os.open(os.devnull, os.O_RDONLY), self.output.writing.fileno()
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        os.close(nothing)
        for end in (self.output.reading, self.output.writing, self.reports.reading):
            end.close()
        self.go.writing.close()
        _open_streams()

    def _spawn(self):
        descriptors = self._descriptors()
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", SPAWNED_PROGRAM, *map(str, descriptors)],
            stdin=subprocess.PIPE,
            stdout=self.output.writing,
            stderr=subprocess.STDOUT,
            pass_fds=descriptors,
            start_new_session=True,
        )
        with process.stdin:
            pickle.dump((self._task, self._folders), process.stdin)
        process.returncode = 0  # the watcher reaps it, not this object
        return process.pid


def prctl(option, value):
    """Ask the kernel for something about this process; nothing happens outside Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
