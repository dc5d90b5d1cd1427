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
import threading
from contextlib import contextmanager, nullcontext, suppress

# relative, since the doctor takes these files elsewhere
from . import signal_stack
from .own_lines import words
from .own_memory import memory, quick_look
from .page_faults import (
    LEAST_OF_FILES,
    LEAST_STEP,
    Event,
    PageFaults,
    identity,
    out_of_the_way,
)

ASK = signal.SIGRTMAX - 3 if hasattr(signal, "SIGRTMAX") else None
STUCK = signal.SIGRTMAX - 4 if hasattr(signal, "SIGRTMAX") else None
TOUCHED = signal.SIGRTMAX - 5 if hasattr(signal, "SIGRTMAX") else None
"""To a thread beside the main one, by the kernel, when it touches new pages and somebody wants to know its line."""
PIPES = ("told", "stuck", "touched")
FREE, OWN = "free", "own"
"""How the names of folders with pipes begin that wait for a process to take them, and the name of one that it had to
make itself."""
GROWN, MUCH = getattr(signal, "SIGURG", None), getattr(signal, "SIGWINCH", None)
"""The kernel sends them by itself, so they have to do no harm where a program takes our handlers away."""
BEGIN, END = b"\x1e", b"\x1f"
"""Around what Python tells; what stands outside is a stack as `faulthandler` writes it."""
HELLO, BEGINS, ENDS = "hello", "begins", "ends"
FIRST_FAULTS, FIRST_WORDS, AT_ONCE = 8, 32, 16
"""A thread that begins says its line after so many page faults each, and so often, before anybody has asked it: it may
have taken all it ever takes by then. Only so many threads at a time, since each needs a descriptor."""
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
        _let_threads_introduce_themselves()
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


def _let_threads_introduce_themselves():
    """Those that Python starts from now on get a stack for signals and say so; others must not be signalled."""
    begin = threading.Thread._bootstrap_inner

    def _bootstrap_inner(thread):
        with (
            signal_stack.of_this_thread() as works,
            _voice.of_a_thread() if _voice and works else nullcontext(),
        ):
            begin(thread)

    threading.Thread._bootstrap_inner = _bootstrap_inner


class Voice:
    """What one process says of itself."""

    def __init__(self, folder, libraries, grows, is_forked=False):
        self.folder, self.libraries, self.grows, self.pid = folder, tuple(libraries), grows, os.getpid()
        name, pipes = _take_pipes(folder, self.pid)
        self._pipes = [out_of_the_way(os.open(path, os.O_RDWR | os.O_NONBLOCK)) for path in pipes]
        self._identities = [identity(pipe) for pipe in self._pipes]
        self._growth, self._told, self._level, self._small = None, 0, 0, None
        self._of_threads = set()
        signal.signal(ASK, self._answer)
        signal.siginterrupt(ASK, False)  # C code of the program may not know that a call can be interrupted
        for number, pipe in ((STUCK, self._pipes[1]), (TOUCHED, self._pipes[2])):
            # and not SIG_IGN: each stack puts back for a moment what was there, and to ignore a signal throws away
            # those that are on their way to other threads
            signal.signal(number, _do_nothing)
            signal.siginterrupt(number, False)
            _write_stacks(number, pipe)
        if grows and self._may_have(GROWN):
            self._open_growth()
        if grows or is_forked:
            signal_stack.enlarge()
        hello = os.open(os.path.join(folder, HELLO), os.O_WRONLY | os.O_NONBLOCK)
        base = sum(memory(self.pid)[:2]) if is_forked else 0
        places = "".join(f"library {place}\n" for place in self.libraries)
        grows = int(self._growth is not None)
        os.write(hello, f"process {self.pid} {grows} {base} {name}\n{places}".encode())
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
            _write_stacks(MUCH, self._pipes[0])

    @contextmanager
    def of_a_thread(self):
        """Say that this thread of Python's begins, and in the end how many pages it has touched."""
        thread, event = threading.get_native_id(), None
        self._say_of_a_thread(f"{BEGINS} {thread}")
        if self._growth and len(self._of_threads) < AT_ONCE:
            with suppress(OSError):
                event = Event(thread, TOUCHED)
                self._of_threads.add(event)
                event.repeat(FIRST_FAULTS, FIRST_WORDS)
        try:
            yield
        finally:
            if event in self._of_threads:  # else this is a forked child of its own by now
                self._of_threads.remove(event)
                event.close()
            self._say_of_a_thread(f"{ENDS} {thread} {resource.getrusage(resource.RUSAGE_THREAD).ru_minflt}")

    def _say_of_a_thread(self, words):
        with suppress(OSError):
            if self is _voice and identity(self._pipes[2]) == self._identities[2]:
                os.write(self._pipes[2], BEGIN + words.encode() + END)

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
        for event in [*([self._growth] if self._growth else []), *self._of_threads]:
            with suppress(OSError):
                event.close()
        self._of_threads.clear()

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
        faulthandler.unregister(STUCK)
        faulthandler.unregister(TOUCHED)
        for number in (ASK, STUCK, TOUCHED):
            # whoever asks has looked whether anybody answers, and asks a moment later: that must not end the process
            signal.signal(number, signal.SIG_IGN)
        if self._growth:
            self._growth.close()
            if signal.getsignal(MUCH) is signal.SIG_DFL:  # else it is the program's own by now
                faulthandler.unregister(MUCH)
            signal.signal(GROWN, signal.SIG_DFL)
            self._growth = None


def _write_stacks(number, pipe):
    """Who gets this signal writes its stack into a pipe. Chained, since only then `errno` stays as it was."""
    faulthandler.register(number, file=pipe, all_threads=False, chain=True)


def _do_nothing(number, frame):
    pass


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
