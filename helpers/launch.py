"""Starting the process of a job: forked from the warm process, or spawned where fork is not to be had."""

import ctypes
import os
import pickle
import signal
import subprocess
import sys
from io import FileIO, TextIOWrapper

from helpers.figures import Figures, open_file

WARM_IMPORTS = ("numpy", "pandas", "tensorflow", "keras")
JOB_ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "1", "TF_ENABLE_ONEDNN_OPTS": "0"}
"""Unless the caller says otherwise: errors and warnings only, and the same kernels on every machine. On some CPUs
TensorFlow takes oneDNN's, whose scratch memory makes other peaks."""
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

SPAWNED_PROGRAM = f"""
import pickle, sys
task = pickle.load(sys.stdin.buffer)
sys.path[:] = task["path"]
for name in {WARM_IMPORTS!r}:
    __import__(name)
from helpers import child
child.main(task, *map(int, sys.argv[1:]))
"""


class Pipe:
    """Two ends, each closed once; closing again does no harm."""

    def __init__(self):
        reading, writing = os.pipe()
        self.reading, self.writing = FileIO(reading, "r"), FileIO(writing, "w")

    def close(self):
        self.reading.close()
        self.writing.close()


class Job:
    """A started process and what connects with it: pipes for its output, its reports, its stacks and the word to go,
    and shared memory for its figures."""

    def __init__(self, task, fork, stranger):
        """`stranger` is a descriptor that the job must not inherit."""
        self.output, self.reports, self.stacks, self.go = (Pipe() for _ in range(4))
        self._file = open_file()
        self.figures = Figures(self._file.fileno())
        self.pid = self._fork(task, stranger) if fork else self._spawn(task)
        for pipe in (self.output, self.reports, self.stacks):
            pipe.writing.close()
            os.set_blocking(pipe.reading.fileno(), False)
        self.go.reading.close()
        self._file.close()

    def close(self):
        self.figures.close()
        for pipe in (self.output, self.reports, self.stacks, self.go):
            pipe.close()

    def _fork(self, task, stranger):
        pid = os.fork()
        if pid:
            return pid
        try:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.setsid()
            os.close(stranger)
            self._dress()
            from helpers import child

            child.main(task, *self._descriptors())
        finally:
            os._exit(1)

    def _descriptors(self):
        ends = (self.reports.writing, self.stacks.writing, self._file, self.go.reading)
        return tuple(end.fileno() for end in ends)

    def _dress(self):
        """In the new process: standard streams of its own, and only its own ends of the pipes."""
        nothing, output = os.open(os.devnull, os.O_RDONLY), self.output.writing.fileno()
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        os.close(nothing)
        for end in (self.output.reading, self.output.writing, self.reports.reading, self.stacks.reading):
            end.close()
        self.go.writing.close()
        sys.stdout, sys.stderr = (
            TextIOWrapper(FileIO(target, "w", closefd=False), "utf-8", "backslashreplace", write_through=True)
            for target in (1, 2)
        )

    def _spawn(self, task):
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
            pickle.dump(task, process.stdin)
        process.returncode = 0  # the watcher reaps it, not this object
        return process.pid


def prctl(option, value):
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
