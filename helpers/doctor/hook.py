"""Which lines of a Python program hold its growth: a hook in its interpreter, and a signal that asks where it is."""

import os
import selectors
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from helpers.watching import answering
from helpers.watching.lines import LIBRARIES, LineFollower
from helpers.watching.processes import Meter, page_faults, thread_effort

VARIABLE = "OOM_DOCTOR"
GROWTH = 2**20  # bytes that a process must have gained before it is asked again
SECONDS_BETWEEN = 0.025

# Runs first in every Python of the command. It lets a signal write the stack to the doctor's pipe, starts no thread,
# takes itself out of the environment and of the path again, and hands over to the sitecustomize it stands before.
HOOK = f'''
import importlib.machinery
import importlib.util
import os
import sys

folder = os.path.dirname(__file__)
sys.path[:] = [entry for entry in sys.path if entry != folder]


def listen(word):
    path_before = word.partition("|")[2]
    if path_before:
        os.environ["PYTHONPATH"] = path_before
    else:
        os.environ.pop("PYTHONPATH", None)
    import sysconfig

    answering = {{}}
    with open(os.path.join(folder, "answering.py")) as source:
        exec(source.read(), answering)
    pipe = os.open(os.path.join(folder, "pipe"), os.O_WRONLY | os.O_NONBLOCK)
    places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    answering["listen"](pipe, (*places, folder, "<"))
    hello = ["process " + str(os.getpid())] + ["library " + place for place in places]
    os.write(pipe, "".join(line + "\\n" for line in hello).encode())


try:
    listen(os.environ.pop("{VARIABLE}"))
except Exception:
    pass  # the program comes first: without this its lines are not known, and nothing else is lost

behind = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
if behind is not None:
    sys.modules["sitecustomize"] = module = importlib.util.module_from_spec(behind)
    behind.loader.exec_module(module)
'''


class PythonProcesses:
    """The Python processes of a command: each says who it is when it starts, and in which line it is when asked."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="oom-doctor-")
        Path(self.folder, "sitecustomize.py").write_text(HOOK)
        shutil.copy(answering.__file__, os.path.join(self.folder, "answering.py"))
        os.mkfifo(os.path.join(self.folder, "pipe"))
        self.pipe = os.open(os.path.join(self.folder, "pipe"), os.O_RDWR | os.O_NONBLOCK)
        self._processes, self._introduced = {}, None
        self._asked, self._asked_at = None, 0.0
        self._partial = b""

    def environment(self):
        """What the command's environment needs beside its own: the hook before its PYTHONPATH."""
        if answering.ASK is None:
            return {}
        before = os.environ.get("PYTHONPATH", "")
        path = os.pathsep.join(part for part in (self.folder, before) if part)
        return {"PYTHONPATH": path, VARIABLE: f"listen|{before}"}

    def register(self, selector):
        selector.register(self.pipe, selectors.EVENT_READ, self.read)

    def read(self):
        """Take what the processes wrote: who they are, and where they are."""
        with suppress(BlockingIOError):
            *texts, self._partial = (self._partial + os.read(self.pipe, 65_536)).split(b"\n")
            for text in texts:
                self._take(text)

    def _take(self, text):
        kind, _, value = text.decode("utf-8", "replace").partition(" ")
        if kind == "process" and value.isdigit():
            self._introduced = _Process(int(value), self.folder)
            self._processes[int(value)] = self._introduced
        elif kind == "library" and self._introduced:  # of the process before: it says all of this at once
            self._introduced.libraries.append(value)
        elif self._asked:
            self._asked.hear(text + b"\n")

    def ask(self):
        """Ask the process that grew most since it was last heard of where it is. One at a time: they share a pipe."""
        now = time.monotonic()
        if now - self._asked_at < SECONDS_BETWEEN or not self._processes:
            return
        grown = {process: process.look() for process in self._processes.values()}
        most = max(grown, key=grown.get)
        if grown[most] >= GROWTH and _works(most.pid) and most.follower.ask():
            self._asked, self._asked_at = most, now

    def lines(self):
        """[((file, line), bytes)] at the peak of the process that became the largest."""
        largest = max(self._processes.values(), key=lambda process: process.peak, default=None)
        return largest.follower.lines(largest.peak) if largest and largest.peak else []

    def close(self):
        os.close(self.pipe)
        for process in self._processes.values():
            process.meter.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class _Process:
    """One of them: its memory and its lines."""

    def __init__(self, pid, folder):
        self.pid, self.meter, self.peak = pid, Meter(pid), 0
        self.libraries = [*LIBRARIES, folder]  # grows while it introduces itself
        self.follower = LineFollower(pid, least_growth=GROWTH, libraries=self.libraries)

    def look(self):
        """Read its memory; returns the bytes for which no line answers yet."""
        memory = self.meter.read()
        level = memory.anonymous + memory.shared_memory
        self.peak = max(self.peak, level)
        return self.follower.look(level, self.meter.faults())

    def hear(self, text):
        self.follower.hear(text)
        self.peak = max(self.peak, self.follower.attribution.level)


def _works(pid):
    """Whether one of its threads runs just now: where a process merely rests it does not grow."""
    return any(thread_effort(pid, thread)[0] in "RD" for thread in page_faults(pid))
