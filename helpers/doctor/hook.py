"""Which lines of a command's Python programs hold its growth: a hook in their interpreters lets them say it."""

import os
import selectors
import shutil
import time

from helpers.watching import answering, own_lines, own_memory, own_threads, page_faults, signal_stack
from helpers.watching.family_lines import FamilyLines

VARIABLE = "OOM_DOCTOR"
PACKAGE = "oom_doctor_hook"
SECONDS_BETWEEN, SECONDS_IF_URGENT = 0.025, 0.005

# Runs first in every Python of the command. It lets the process say its lines, starts no thread, takes itself out of
# the environment, of the path and of the modules again, and hands over to the sitecustomize it stands before.
HOOK = f'''
import importlib.machinery
import importlib.util
import os
import sys

folder = os.path.dirname(__file__)
sys.path[:] = [entry for entry in sys.path if entry != folder]


def listen(word):
    grows, _, path_before = word.partition("|")
    if path_before:
        os.environ["PYTHONPATH"] = path_before
    else:
        os.environ.pop("PYTHONPATH", None)
    import sysconfig

    sys.path.insert(0, folder)
    try:
        from {PACKAGE} import answering
    finally:
        sys.path.remove(folder)
        for name in [name for name in sys.modules if name.startswith("{PACKAGE}")]:
            del sys.modules[name]
    places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    voice = answering.listen(os.path.dirname(folder), (*places, folder), grows == "grows")
    if voice:
        voice.begin()


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
    """The Python processes of a command: each says who it is when it starts, and in which line it is when it grows."""

    def __init__(self):
        self._family = FamilyLines()
        self.folder = os.path.join(self._family.folder, "hook")
        package = os.path.join(self.folder, PACKAGE)
        os.makedirs(package)
        for module in (answering, own_lines, own_memory, own_threads, page_faults, signal_stack):
            shutil.copy(module.__file__, package)
        with open(os.path.join(self.folder, "sitecustomize.py"), "w") as file:
            file.write(HOOK)
        self._looked_at, self._is_urgent = 0.0, False

    def environment(self):
        """What the command's environment needs beside its own: the hook before its PYTHONPATH."""
        if answering.ASK is None:
            return {}
        before = os.environ.get("PYTHONPATH", "")
        path = os.pathsep.join(part for part in (self.folder, before) if part)
        grows = "grows" if page_faults.are_counted() else "is asked"
        return {"PYTHONPATH": path, VARIABLE: f"{grows}|{before}"}

    def register(self, selector):
        selector.register(self._family.voices, selectors.EVENT_READ, self.read)
        self._family.news.register(selector, self._hear_news)

    def _hear_news(self):
        self._is_urgent = self._family.news.are_urgent() or self._is_urgent

    @property
    def seconds_to_the_next_look(self):
        """At the most, because of what threads have said."""
        wanted = SECONDS_IF_URGENT if self._is_urgent else float("inf")
        return max(0.0, self._looked_at + wanted - time.monotonic())

    def read(self):
        """Take in the processes that have introduced themselves."""
        self._family.welcome()

    def ask(self):
        """Read what they hold and hear what they say, and ask those that grew."""
        now = time.monotonic()
        if self._is_urgent or now - self._looked_at >= SECONDS_BETWEEN:
            self._looked_at, self._is_urgent = now, False
            self._family.look()

    def lines(self, peak=0):
        """[(place, bytes)] at the peak of the processes, which was `peak` bytes if somebody saw more of it."""
        self._family.welcome()
        self._family.look()
        return self._family.largest(peak)

    def close(self):
        self._family.close()
