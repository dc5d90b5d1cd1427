"""Which lines of a process's own code took its memory: when to ask it, how it answers, what that adds up to."""

import ctypes
import re
import sysconfig
import time

from helpers import machine
from helpers.watching import answering, processes
from helpers.watching.attribution import Attribution

SECONDS_TO_ANSWER = 0.008
EFFORT_TO_ANSWER = 0.004
LEAST_GROWTH = 2**20
QUESTIONS_BELOW_PEAK = 20, 1
"""At once, and per second: a training loop takes and gives back the same memory again and again. Above the highest
point so far every growth is asked for."""
LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
OURS = (str(machine.HERE), "<")
ELSEWHERE = ("(other processes)", 0)


def is_own_code(filename, libraries=LIBRARIES):
    """Code of the job itself: neither Python's, nor a library's, nor ours."""
    return not filename.startswith((*libraries, *OURS)) and answering.GENERATED not in filename


class LineFollower:
    """Follows the lines of one process: tell it every reading with `look`, ask with `ask`, feed it what the process
    answers; `lines` has the sum. The memory is that of the process, or of its device."""

    def __init__(self, pid, baseline=0, least_growth=LEAST_GROWTH, libraries=LIBRARIES, on_device=False):
        self.attribution = Attribution(baseline)
        self._question = Question(pid, libraries)
        self._least, self._on_device = least_growth, on_device
        self._highest, self._below_peak = baseline, Allowance(*QUESTIONS_BELOW_PEAK)
        self.level, self._faults = baseline, None

    @property
    def is_asked(self):
        """True while an answer is due."""
        return self._question.is_open

    def look(self, level, faults=None):
        """Take a reading; returns the bytes for which no line answers yet."""
        self.level, self._faults = level, faults
        if level - self.attribution.level < -self._least:
            # whoever gives memory back, it is what was taken last
            self.attribution.add(level, None, faults)
        return level - self.attribution.level

    def ask(self):
        """Ask for the line if it is owed: always at new heights, and now and then below them. True if it was asked."""
        if not answering.ASK or self.level - self.attribution.level < self._least:
            return False
        if not self._question.may_be_asked():
            return False
        if self.level < self._highest + self._least and not self._below_peak.take(time.monotonic()):
            return False
        self._highest = max(self._highest, self.level)
        self._question.ask((self.level, self._faults))
        return True

    def hear(self, piece):
        """Take bytes of the process's answers."""
        for line, readings, held in self._question.hear(piece):
            for level, faults in readings:
                self.attribution.add(level, line, faults)
            if held and not self._on_device:
                self.attribution.add(held[0], line, held[1], told_itself=True)

    def lines(self, peak):
        """[((file, line), bytes)] at the peak, the largest first."""
        return self.attribution.finish(peak)


class Allowance:
    """A bucket of permissions that fills again at a steady rate; `take` one, or be refused.

    >>> allowance = Allowance(burst=2, per_second=1)
    >>> [allowance.take(moment) for moment in (0.0, 0.1, 0.2, 1.3)]
    [True, True, False, True]
    """

    def __init__(self, burst, per_second):
        self.burst, self.per_second = burst, per_second
        self._left, self._counted = float(burst), None

    def take(self, now):
        """True if it may happen at the moment `now`, in seconds of any clock."""
        if self._counted is not None:
            self._left = min(self.burst, self._left + (now - self._counted) * self.per_second)
        self._counted = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Question:
    """From outside: asks one process, one question at a time, which line is running, and never harms it."""

    def __init__(self, pid, libraries=LIBRARIES):
        self.pid = pid
        self._readings, self._asked_at, self._busiest = [], None, None
        self._python_threads = {pid}
        self._dumps = DumpReader(libraries)
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

    def ask(self, reading):
        """Ask for the line that answers for a reading; see `may_be_asked`."""
        if self.is_open:
            self._readings.append(reading)
            thread, number = self._stuck_thread(), answering.STUCK
        else:
            self._busiest = self._busiest_thread()
            self._readings = [reading]
            self._effort = processes.thread_effort(self.pid, self._stuck_thread())
            thread, number = self.pid, answering.ASK
        self._asked_at = time.monotonic()
        _send(self.pid, thread, number)

    def hear(self, piece):
        """What was told in these bytes: [(line, readings, held)]. The line answers for the `readings` that were asked
        for, and for what the process `held` when it answered, (bytes, pages touched), if it could tell: Python answers
        before it goes on to another line."""
        told = []
        for answer in self._dumps.feed(piece):
            held = answer.pop("held", None)
            if "stuck" not in answer:
                self._python_threads = {self.pid, *answer}
                self._asked_at = None
            line = answer.get("stuck") or answer.get(self._busiest) or answer.get(self.pid)
            if line:
                told.append((line, self._readings, held))
                self._readings = []
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

    def __init__(self, libraries=LIBRARIES):
        self.libraries = libraries
        self._partial, self._found, self._thread = b"", {}, None

    @property
    def is_reading(self):
        """True in the middle of an answer."""
        return bool(self._partial or self._found)

    def feed(self, piece):
        """One dict for each answer: {number of a thread: its line, "held": (bytes, pages touched) of the process}, or
        {"stuck": line} of a thread in C code."""
        answers = []
        *texts, self._partial = (self._partial + piece).split(b"\n")
        for text in texts:
            frame, headline = self.FRAME.match(text), self.HEADLINE.match(text)
            if headline:
                self._thread = headline[1].decode()
            elif text.startswith(b"Stack"):
                self._thread = "stuck"
            elif text.startswith(b"end"):
                answers += self._finish(text)
                self._found = {}
            elif frame and self._thread not in self._found:
                answers += self._take(_file_name(frame[1]), int(frame[2]))
        return answers

    def _finish(self, text):
        """The last line of an answer: what the process holds, and which thread has which number."""
        try:
            names = dict(name.split("=") for name in text.decode().split()[1:])
            numbers = {name: int(number) for name, number in names.items()}
            held = numbers.pop("held"), numbers.pop("faults")
        except (ValueError, KeyError):  # somebody else wrote to this pipe
            return []
        found = {numbers[thread]: line for thread, line in self._found.items() if thread in numbers}
        return [{"held": held if held[0] else None, **found}]

    def _take(self, filename, line):
        if not is_own_code(filename, self.libraries):
            return []
        if self._thread != "stuck":
            self._found[self._thread] = (filename, line)
            return []
        self._thread = None
        return [{"stuck": (filename, line)}]


def _file_name(text):
    """Python escapes what is not ASCII."""
    return text.decode("unicode_escape" if b"\\" in text else "ascii", "replace")
