"""Inside a Python process: say in which line it is, when its memory grows and when a signal asks. Needs only Python.

Growth asks by itself: the kernel counts the page faults of the main thread (`perf_event_open`) and signals that very
thread. A thread that touches memory is in no system call, so nothing is ever interrupted. After the first few faults
Python's own handler says between two instructions what the process holds by then, if that is much, and lets the next
growth ask again. After some more within one call, C code writes the stack at once (`faulthandler`), which survives a
kill in the very next moment. Where the kernel forbids it, as in Docker's default, others ask on a clock.

A signal from outside is handled by Python itself (`ASK`). C code that runs for long keeps it waiting; then a second
one (`STUCK`) lets a thread write its stack at once, which is only safe while the thread stays in C code.
"""

import atexit
import faulthandler
import os
import resource
import signal
from contextlib import suppress

# relative, since the doctor takes these files elsewhere
from . import signal_stack
from .own_lines import words
from .own_memory import memory, quick_look
from .own_threads import BEGIN, END, Threads, be_deaf_to, do_nothing_at, introduce_all, write_stack_at
from .page_faults import LEAST_OF_FILES, LEAST_STEP, PageFaults, identity, out_of_the_way

ASK = signal.SIGRTMAX - 3 if hasattr(signal, "SIGRTMAX") else None
STUCK = signal.SIGRTMAX - 4 if hasattr(signal, "SIGRTMAX") else None
PIPES = ("told", "stuck", "touched")
FREE, OWN = "free", "own"
"""How the names of folders with pipes begin that wait for a process to take them, and the name of one that it had to
make itself."""
GROWN, MUCH = getattr(signal, "SIGURG", None), getattr(signal, "SIGWINCH", None)
"""The kernel sends them by itself, so they have to do no harm where a program takes our handlers away."""
HELLO = "hello"
_voice = None


def listen(folder, libraries=(), grows=True):
    """Say who this process is in the pipe `hello` of a folder, and from now on, in pipes that it takes there, in which
    line it is, in files that do not begin with one of `libraries`; its forked children do the same. Call it in the
    main thread. Returns a `Voice`, or None if this system cannot."""
    global _voice
    if ASK is None:
        return None
    if _voice is None:
        os.register_at_fork(after_in_child=_renew)
        atexit.register(_end)
        introduce_all(lambda: _voice and _voice.threads)
    _voice = Voice(folder, libraries, grows)
    return _voice


def _end():
    """A signal that comes when the interpreter is half gone would crash it."""
    if _voice:
        _voice.say_the_last()
        _voice.fall_silent()


def _renew():
    """In a forked child: its own pipes and its own page faults."""
    global _voice
    try:
        _voice.forget()
        _voice = Voice(_voice.folder, _voice.libraries, _voice.grows, is_forked=True)
        _voice.begin()
    except (OSError, ValueError, AttributeError):  # nobody listens any more
        _voice = None


class Voice:
    """What one process says of itself."""

    def __init__(self, folder, libraries, grows, is_forked=False):
        self.folder, self.libraries, self.grows, self.pid = folder, tuple(libraries), grows, os.getpid()
        name, pipes = _take_pipes(folder, self.pid)
        self._pipes = [out_of_the_way(os.open(path, os.O_RDWR | os.O_NONBLOCK)) for path in pipes]
        self._identities = [identity(pipe) for pipe in self._pipes]
        self._growth, self._told, self._level, self._small = None, 0, 0, None
        signal.signal(ASK, self._answer)
        signal.siginterrupt(ASK, False)  # C code of the program may not know that a call can be interrupted
        do_nothing_at(STUCK)
        write_stack_at(STUCK, self._pipes[1])
        self.threads = Threads(folder, self._pipes[2])
        if grows and self._may_have(GROWN):
            self._open_growth()
        if grows or is_forked:
            signal_stack.enlarge()
        hello = os.open(os.path.join(folder, HELLO), os.O_WRONLY | os.O_NONBLOCK)
        anonymous, shared, *_, faults = memory(self.pid)
        base = anonymous + shared if is_forked else 0
        places = "".join(f"library {place}\n" for place in self.libraries)
        grows = int(self._growth is not None)
        os.write(hello, f"process {self.pid} {grows} {base} {faults} {name}\n{places}".encode())
        os.close(hello)

    def _may_have(self, number):
        """Whether the program does nothing with this signal, as far as Python knows."""
        before = getattr(_voice, "_answer", None)
        return signal.getsignal(number) in (signal.SIG_DFL, self._answer, before)

    def _open_growth(self):
        may_write = self._may_have(MUCH)
        try:
            self._growth = PageFaults(self.pid, GROWN, MUCH if may_write else None)
        except (OSError, ImportError, KeyError):
            return
        signal.signal(GROWN, self._answer)
        signal.siginterrupt(GROWN, False)
        if may_write:
            write_stack_at(MUCH, self._pipes[0])
        self.threads.say_lines = True

    def begin(self):
        """From now on growth asks by itself, where that is possible; what is held by now is the base."""
        if self._growth:
            self._read()
            self._growth.arm(*self._growth.plan(self._level))

    def _read(self):
        """All figures; a quick look is enough until they have changed."""
        held = memory(self.pid)
        self._told = self._level = held[0] + held[1]
        self._small = quick_look()[1], held[1]
        return held

    def forget(self):
        """In a forked child: what it has of its parent."""
        for descriptor in self._pipes:
            with suppress(OSError):
                os.close(descriptor)
        self.threads.forget()
        if self._growth:
            with suppress(OSError):
                self._growth.close()

    def _answer(self, number, frame):
        try:
            if self._growth and not self._growth.is_intact():
                self.fall_silent()
                return
            # first of all, since this itself may touch pages enough, and what is written is always followed by words
            before, has_written = self._level, bool(self._growth) and self._growth.stop_writing()
            if number == ASK or has_written or self._has_changed():
                self._tell(number, frame, before, has_written)
            if self._growth:  # last of all: what this itself touches asks nobody
                if signal.getsignal(MUCH) is not signal.SIG_DFL:
                    self._growth.write_no_more()
                self._growth.arm(*self._growth.plan(self._level, has_written))
        except Exception:
            # Nobody listens any more, or the program is at the end of its stack or of its memory. Whatever it is, it
            # must not reach the program.
            pass

    def _has_changed(self):
        """A quick look: whether the process has grown by much since it told anything, or has more or fewer files."""
        resident, files = quick_look()
        files_before, shared = self._small
        self._level = resident - files + shared
        self._told = min(self._told, self._level)
        return self._level - self._told >= LEAST_STEP or abs(files - files_before) >= LEAST_OF_FILES

    def _tell(self, number, frame, before, has_written):
        """What has grown since it was last between two instructions belongs to the present call, if it is much; much
        that has come in small steps to the line of the last one, as to a sample."""
        if [identity(pipe) for pipe in self._pipes] != self._identities:
            self.fall_silent()  # the program has closed them, and opened something else in their place
            return
        told, held = self._told, self._read()
        is_sample = not has_written and self._level - before < LEAST_STEP
        since = self._level if number == ASK else told if is_sample else before
        own = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        figures = (*held, since, own)
        text = words(frame, self.libraries, figures, everybody=number == ASK)
        os.write(self._pipes[0], BEGIN + text.encode("ascii", "backslashreplace") + END)

    def say_the_last(self):
        """What this process holds and has held: nobody may have looked since it grew."""
        with suppress(Exception):
            self._tell(ASK, None, self._level, False)

    def fall_silent(self):
        """Say nothing from now on."""
        be_deaf_to(ASK)
        be_deaf_to(STUCK)
        self.threads.fall_silent()
        if self._growth:
            self._growth.close()
            if signal.getsignal(MUCH) is signal.SIG_DFL:  # else it is the program's own by now
                faulthandler.unregister(MUCH)
            signal.signal(GROWN, signal.SIG_DFL)
            self._growth = None


def _take_pipes(folder, pid):
    """The name of a folder with pipes for this process, and their paths. Whoever listens has made some beforehand and
    has them open: what is written into these is heard even if the writer dies in the next moment."""
    for name in sorted(name for name in os.listdir(folder) if name.startswith(FREE)):
        own = os.path.join(folder, f"{pid}.{name}")
        with suppress(OSError):  # another process was quicker
            os.rename(os.path.join(folder, name), own)
            return name, [os.path.join(own, kind) for kind in PIPES]
    own = os.path.join(folder, f"{pid}.{OWN}")
    return OWN, make_pipes(own)


def make_pipes(folder):
    """Make a folder with the pipes of one process in it; returns their paths."""
    os.mkdir(folder, 0o700)
    paths = [os.path.join(folder, kind) for kind in PIPES]
    for path in paths:
        os.mkfifo(path, 0o600)
    return paths
