"""Which lines of a Python program hold its growth: a hook in its interpreter, and a signal that asks where it is."""

import os
import selectors
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from helpers import answering, lines
from helpers.allowance import Allowance
from helpers.processes import Meter, page_faults, thread_effort
from helpers.sampler import QUESTIONS_BELOW_PEAK

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
    answering["listen"](pipe)
    places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
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


class Follower:
    """Knows the Python processes of a command and which of their lines ran while they grew."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="oom-doctor-")
        Path(self.folder, "sitecustomize.py").write_text(HOOK)
        shutil.copy(answering.__file__, os.path.join(self.folder, "answering.py"))
        os.mkfifo(os.path.join(self.folder, "pipe"))
        self.pipe = os.open(os.path.join(self.folder, "pipe"), os.O_RDWR | os.O_NONBLOCK)
        lines.LIBRARIES = (*lines.LIBRARIES, self.folder)
        self._growth, self._peaks, self._asked_for = {}, {}, {}
        self._questions, self._meters = {}, {}
        self._below_peak = Allowance(*QUESTIONS_BELOW_PEAK)
        self._asked = None
        self._asked_at = 0.0
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
            self._growth[int(value)] = lines.Attribution()
            self._questions[int(value)] = lines.Question(int(value))
            self._meters[int(value)] = Meter(int(value))
        elif kind == "library":
            lines.LIBRARIES = tuple({*lines.LIBRARIES, value})
        elif self._asked in self._questions:
            for line, _, held in self._questions[self._asked].hear(text + b"\n"):
                self._add(self._asked, line, held)

    def _add(self, pid, line, held):
        if pid in self._growth:
            level = held or self._level(pid)
            self._growth[pid].add(level, line)
            self._peaks[pid] = max(self._peaks.get(pid, 0), level)

    def ask(self):
        """Ask the process that grew most since it was last heard of where it is."""
        now = time.monotonic()
        if now - self._asked_at < SECONDS_BETWEEN or not self._growth:
            return
        grown = {pid: self._grown(pid) for pid in self._growth}
        pid = max(grown, key=grown.get)
        level = self._growth[pid].level + grown[pid]
        is_new_height = level > self._asked_for.get(pid, 0) + GROWTH
        if grown[pid] < GROWTH or not self._questions[pid].may_be_asked():
            return
        if (is_new_height or self._below_peak.take(now)) and _works(pid):
            self._asked, self._asked_at = pid, now
            self._asked_for[pid] = max(level, self._asked_for.get(pid, 0))
            self._questions[pid].ask(level)

    def _level(self, pid):
        memory = self._meters[pid].read()
        return memory.anonymous + memory.shared_memory

    def _grown(self, pid):
        level = self._level(pid)
        self._peaks[pid] = max(self._peaks.get(pid, 0), level)
        if level < self._growth[pid].level:
            self._growth[pid].add(level, None)
        return level - self._growth[pid].level

    def lines(self):
        """[((file, line), bytes)] at the peak of the process that became the largest."""
        if not self._peaks:
            return []
        largest = max(self._peaks, key=self._peaks.get)
        return self._growth[largest].finish(self._peaks[largest])

    def close(self):
        os.close(self.pipe)
        for meter in self._meters.values():
            meter.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _works(pid):
    """Whether one of its threads runs just now: where a process merely rests it does not grow."""
    return any(thread_effort(pid, thread)[0] in "RD" for thread in page_faults(pid))
