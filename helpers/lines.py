"""Which lines of a job's own code took the memory: sampled inside the job, added up outside it."""

import ctypes
import re
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path

from helpers import answering, processes

SECONDS_TO_ANSWER = 0.008
EFFORT_TO_ANSWER = 0.004
HERE = str(Path(__file__).parent)
LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
ELSEWHERE = ("(other processes)", 0)
UNKNOWN = ("(before the first line)", 0)
SMALLEST_SHARE = 0.01


@dataclass(frozen=True)
class Line:
    """A line of the job's own code and the bytes that were taken while it ran and held at the peak."""

    file: str
    line: int
    source: str
    bytes: int
    where: str


def is_own_code(filename):
    """Code of the job itself: neither Python's, nor a library's, nor ours."""
    return not filename.startswith((*LIBRARIES, HERE, "<")) and "__autograph_generated_file" not in filename


class Question:
    """From outside: asks one process, one question at a time, which line is running, and never harms it."""

    def __init__(self, pid):
        self.pid = pid
        self._levels, self._asked_at, self._busiest = [], None, None
        self._python_threads = {pid}
        self._dumps = DumpReader()
        self._faults = {}

    @property
    def is_open(self):
        """True while an answer is due."""
        return self._asked_at is not None

    def may_be_asked(self):
        """True if no answer is due, or if the thread that owes it is stuck in C code and can be asked at once."""
        if not self.is_open:
            return True
        is_late = time.monotonic() - self._asked_at > SECONDS_TO_ANSWER
        return is_late and not self._dumps.is_reading and self._is_in_c_code()

    def ask(self, level):
        """Ask for the line that answers for `level` bytes; see `may_be_asked`."""
        if self.is_open:
            self._levels.append(level)
            thread, number = self._stuck_thread(), answering.STUCK
        else:
            self._busiest = self._busiest_thread()
            self._levels = [level]
            self._effort = processes.thread_effort(self.pid, self._stuck_thread())
            thread, number = self.pid, answering.ASK
        self._asked_at = time.monotonic()
        _send(self.pid, thread, number)

    def hear(self, piece):
        """What was told in these bytes: [(line, levels, held)]. The line answers for the `levels` that were asked
        for, and for the bytes that the process `held` when it answered, if it could tell: Python answers before it
        goes on to another line."""
        told = []
        for answer in self._dumps.feed(piece):
            held = answer.pop("held", 0)
            if "stuck" not in answer:
                self._python_threads = {self.pid, *answer}
                self._asked_at = None
            line = answer.get("stuck") or answer.get(self._busiest) or answer.get(self.pid)
            if line:
                told.append((line, self._levels, held))
                self._levels = []
        return told

    def _stuck_thread(self):
        return self._busiest if self._busiest in self._python_threads else self.pid

    def _is_in_c_code(self):
        """A thread that has worked for a while since it was asked, or sleeps, is not between two instructions."""
        state, worked = processes.thread_effort(self.pid, self._stuck_thread())
        return state in "SD" or worked - self._effort[1] > EFFORT_TO_ANSWER

    def _busiest_thread(self):
        """The thread of Python that touched most new pages since the last question."""
        if len(self._python_threads) == 1:
            return self.pid
        before, self._faults = self._faults, processes.page_faults(self.pid, self._python_threads)
        touched = {thread: count - before.get(thread, 0) for thread, count in self._faults.items()}
        return max(touched, key=touched.get, default=self.pid)


def _send(pid, thread, number):
    if processes.catches(pid, number):  # a job that has become another program would die of the signal
        ctypes.CDLL(None).tgkill(pid, thread, number)


class DumpReader:
    """Finds, in what a process writes piece by piece when asked, the innermost line of its own code per thread."""

    FRAME = re.compile(rb'  File "(.*)", line (\d+) in ')
    HEADLINE = re.compile(rb"(?:Current thread|Thread) 0x0*([0-9a-f]+)")

    def __init__(self):
        self._partial, self._found, self._thread = b"", {}, None

    @property
    def is_reading(self):
        """True in the middle of an answer."""
        return bool(self._partial or self._found)

    def feed(self, piece):
        """One dict for each answer: {number of a thread: its line, "held": bytes of the process}, or {"stuck": line}
        of a thread in C code."""
        answers = []
        *texts, self._partial = (self._partial + piece).split(b"\n")
        for text in texts:
            frame, headline = self.FRAME.match(text), self.HEADLINE.match(text)
            if headline:
                self._thread = headline[1].decode()
            elif text.startswith(b"Stack"):
                self._thread = "stuck"
            elif text.startswith(b"end"):
                names = dict(name.split("=") for name in text.decode().split()[1:])
                found = {int(names[key]): line for key, line in self._found.items() if key in names}
                answers.append({"held": int(names["held"]), **found})
                self._found = {}
            elif frame and self._thread not in self._found:
                answers += self._take(_file_name(frame[1]), int(frame[2]))
        return answers

    def _take(self, filename, line):
        if not is_own_code(filename):
            return []
        if self._thread != "stuck":
            self._found[self._thread] = (filename, line)
            return []
        self._thread = None
        return [{"stuck": (filename, line)}]


def _file_name(text):
    """Python escapes what is not ASCII."""
    return text.decode("unicode_escape" if b"\\" in text else "ascii", "replace")


class Attribution:
    """Adds up readings into bytes per line: growth goes to the line that ran, what is given back is taken
    from the most recent growth first (temporaries go before what is kept). The answer is for the peak."""

    def __init__(self, baseline=0):
        self.level = self._peak = baseline
        self._held = []
        self._at_peak = {}
        self._line = self._peak_line = UNKNOWN

    def add(self, level, line):
        """A reading of `level` bytes was taken while `line` ran; None means that the line before still runs.

        Between two readings the job went from one line to the next at a moment that nobody saw: they share.
        """
        change = level - self.level
        if change > 0 and line not in (None, self._line) and self._line != UNKNOWN:
            self._grow(change // 2)
            change -= change // 2
        self._line = line or self._line
        if change > 0:
            self._grow(change)
        elif change < 0:
            self._remember_peak()
            self._shrink(-change)
        self.level = level

    def finish(self, peak):
        """[(line, bytes)] at the peak. What no reading saw of it grew while the last line before it ran."""
        self._remember_peak()
        unseen = max(0, peak - self._peak)
        self._at_peak[self._peak_line] = self._at_peak.get(self._peak_line, 0) + unseen
        least = SMALLEST_SHARE * sum(self._at_peak.values())
        found = [(line, size) for line, size in self._at_peak.items() if size > least]
        return sorted(found, key=lambda item: -item[1])

    def _grow(self, change):
        if self._held and self._held[-1][0] == self._line:
            self._held[-1][1] += change
        else:
            self._held.append([self._line, change])

    def _shrink(self, change):
        while change > 0 and self._held:
            taken = min(change, self._held[-1][1])
            self._held[-1][1] -= taken
            change -= taken
            if self._held[-1][1] == 0:
                self._held.pop()

    def _remember_peak(self):
        if self.level < self._peak:
            return
        self._peak, self._peak_line, self._at_peak = self.level, self._line, {}
        for line, size in self._held:
            self._at_peak[line] = self._at_peak.get(line, 0) + size
