"""Inside a Python process: say in which line it is, when its memory grows and when a signal asks. Needs only Python.

Growth asks by itself: the kernel counts the page faults of the main thread (`perf_event_open`) and signals that very
thread at the first one after a line was told. A thread that touches memory is in no system call, so nothing is ever
interrupted. The signal does two things: C code writes the stack at once (`faulthandler`), which survives a kill in
the very next moment; and Python's own handler says between two instructions what the process holds by then, and lets
the next growth ask again. Where the kernel forbids it, as in Docker's default, others ask on a clock.

A signal from outside is handled by Python itself (`ASK`). C code that runs for long keeps it waiting; then a second
one (`STUCK`) lets a thread write its stack at once, which is only safe while the thread stays in C code.
"""

import atexit
import faulthandler
import gc
import os
import resource
import signal
import sys
import threading
import time
from contextlib import suppress

# relative, since the doctor takes these files elsewhere
from . import signal_stack
from .page_faults import LEAST_STEP, PageFaults, identity, out_of_the_way

ASK = signal.SIGRTMAX - 3 if hasattr(signal, "SIGRTMAX") else None
STUCK = signal.SIGRTMAX - 4 if hasattr(signal, "SIGRTMAX") else None
TOUCHED = signal.SIGRTMAX - 5 if hasattr(signal, "SIGRTMAX") else None
"""To a thread beside the main one, by the kernel, when it touches new pages and somebody wants to know its line."""
PIPES = ("told", "stuck", "touched")
FREE, OWN = "free", "own"
"""How the names of folders with pipes begin that wait for a process to take them, and the name of one that it had to
make itself."""
GROWN = getattr(signal, "SIGURG", None)
"""The kernel sends it by itself, so it has to be one that does no harm where a program takes our handler away."""
BEGIN, END = b"\x1e", b"\x1f"
"""Around what Python tells; what stands outside is a stack as `faulthandler` writes it."""
HELLO, THREAD = "hello", "thread"
GENERATED = "__autograph_generated_file"
"""In the name of a file that TensorFlow makes of somebody's function."""
TYPED = ("<stdin>", "<string>", "<python-input-", "<ipython-input-")
"""Names of code that came without a file: from standard input, after -c, at a prompt."""
FLOOR = os.path.join("helpers", "jobs", "child.py")
"""What stands below this in a stack has started the job and is not the job's."""
DEEPEST = 100
"""So many frames of a thread are looked at."""
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
        with signal_stack.of_this_thread() as may_be_signalled:
            if _voice and may_be_signalled:
                _voice.introduce(threading.get_native_id())
            begin(thread)

    threading.Thread._bootstrap_inner = _bootstrap_inner


class Voice:
    """What one process says of itself."""

    def __init__(self, folder, libraries, grows, is_forked=False):
        self.folder, self.libraries, self.grows, self.pid = folder, tuple(libraries), grows, os.getpid()
        name, pipes = _take_pipes(folder, self.pid)
        self._pipes = [out_of_the_way(os.open(path, os.O_RDWR | os.O_NONBLOCK)) for path in pipes]
        self._identities = [identity(pipe) for pipe in self._pipes]
        self._growth, self._is_loud, self._told, self._level = None, False, 0, 0
        signal.signal(ASK, self._answer)
        signal.siginterrupt(ASK, False)  # C code of the program may not know that a call can be interrupted
        _be_deaf_to(STUCK, TOUCHED)
        faulthandler.register(STUCK, file=self._pipes[1], all_threads=False)
        # chained, since only then it leaves `errno` as it was
        faulthandler.register(TOUCHED, file=self._pipes[2], all_threads=False, chain=True)
        if grows and signal.getsignal(GROWN) in (
            signal.SIG_DFL,
            self._answer,
            getattr(_voice, "_answer", None),
        ):
            self._open_growth()
        if grows or is_forked:
            signal_stack.enlarge()
        hello = os.open(os.path.join(folder, HELLO), os.O_WRONLY | os.O_NONBLOCK)
        base = sum(memory(self.pid)[:2]) if is_forked else 0
        places = "".join(f"library {place}\n" for place in self.libraries)
        grows = int(self._growth is not None)
        os.write(hello, f"process {self.pid} {grows} {base} {name}\n{places}".encode())
        os.close(hello)

    def _open_growth(self):
        try:
            self._growth = PageFaults(self.pid, GROWN)
        except (OSError, ImportError, KeyError):
            return
        signal.signal(GROWN, self._answer)
        signal.siginterrupt(GROWN, False)
        self._be_loud(True)

    def _be_loud(self, loud):
        """Whether C code writes the stack when growth asks, before Python hears of it."""
        if loud != self._is_loud:
            self._is_loud = loud
            if loud:
                faulthandler.register(GROWN, file=self._pipes[0], all_threads=False, chain=True)
            else:
                faulthandler.unregister(GROWN)

    def introduce(self, thread):
        """Say that this thread of Python's begins."""
        with suppress(OSError):
            if identity(self._pipes[0]) == self._identities[0]:
                os.write(self._pipes[0], BEGIN + f"{THREAD} {thread}".encode() + END)

    def begin(self):
        """From now on growth asks by itself, where that is possible; what is held by now is the base."""
        if self._growth:
            self._told = self._level = sum(memory(self.pid)[:2])
            self._growth.arm(self._growth.plan(self._told))

    def forget(self):
        """In a forked child: what it has of its parent."""
        for descriptor in (*self._pipes, *([self._growth.event] if self._growth else [])):
            with suppress(OSError):
                os.close(descriptor)

    def _answer(self, number, frame):
        try:
            if [identity(pipe) for pipe in self._pipes] != self._identities:
                self.fall_silent()  # the program has closed them, and opened something else in their place
                return
            held = memory(self.pid)
            level, before = held[0] + held[1], self._level
            self._level = level
            faults = self._growth.plan(level) if self._growth else 0
            if number == ASK or self._is_loud or level - before >= LEAST_STEP:
                self._told = level
                since = before if number == GROWN else level
                own = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
                figures = (*held, faults, since, own)
                text = _words(frame, self.libraries, figures, everybody=number == ASK)
                os.write(self._pipes[0], BEGIN + text.encode("ascii", "backslashreplace") + END)
            elif level - self._told >= LEAST_STEP:
                self._growth.speak_up()
            if faults:  # last of all: what this itself touches asks nobody
                self._be_loud(self._growth.is_loud)
                self._growth.arm(faults)
        except Exception:
            # Nobody listens any more, or the program is at the end of its stack or of its memory. Whatever it is, it
            # must not reach the program.
            pass

    def fall_silent(self):
        """Say nothing from now on."""
        faulthandler.unregister(STUCK)
        faulthandler.unregister(TOUCHED)
        _be_deaf_to(ASK)
        if self._growth:
            self._growth.close()
            self._be_loud(False)
            signal.signal(GROWN, signal.SIG_DFL)
            self._growth = None


def _be_deaf_to(*numbers):
    """Whoever asks has looked whether anybody answers, and asks a moment later: that must not end the process."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


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


def _words(frame, libraries, figures, everybody):
    """A line of figures, and the innermost own line of the main thread, or of each thread of Python.

    `faulthandler` itself must not be asked for all threads of a process that works: it walks their list without a lock,
    and crashes where a C++ library such as TensorFlow starts or ends one that calls Python just then.
    """
    figures = " ".join(map(str, (time.monotonic(), *figures)))
    stacks = {threading.get_ident(): frame}
    if everybody:
        stacks = {**_stacks(), **stacks}
    # Without the lock that the interrupted code may hold; after a fork the main thread's number is stale.
    numbers = {ident: thread.native_id for ident, thread in dict(threading._active).items()}
    numbers[threading.get_ident()] = os.getpid()
    lines = [
        f"{numbers[ident]} {_innermost(stack, libraries)}\n"
        for ident, stack in stacks.items()
        if ident in numbers
    ]
    return f"{figures}\n{''.join(lines)}"


def _stacks():
    """{thread: its frame}. A collection in the midst of this would deadlock on Python before 3.11.5."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()


def _innermost(frame, libraries):
    for _ in range(DEEPEST):
        if frame is None:
            break
        file = frame.f_code.co_filename
        if file.endswith(FLOOR):
            break
        if is_own(file, libraries):
            return f"{frame.f_lineno} {file}"
        frame = frame.f_back
    return ""


def is_own(file, libraries):
    """Code of the program itself: in no library, and made by no other code."""
    if file.startswith("<"):
        return file.startswith(TYPED)
    return not file.startswith(libraries) and GENERATED not in file


def memory(pid):
    """Bytes that a process holds: of its own, shared, of files, the highest total so far; and the pages that it has
    touched for the first time. Zeros where the system does not tell."""
    try:
        with open(f"/proc/{pid}/status", "rb", buffering=0) as status:
            text = status.read(8192)
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as stat:
            faults = int(stat.read(1024).rpartition(b")")[2].split()[7])
        return (
            *(_kilobytes(text, key) for key in (b"RssAnon:", b"RssShmem:", b"RssFile:", b"VmHWM:")),
            faults,
        )
    except (OSError, IndexError, ValueError):
        return 0, 0, 0, 0, 0


def _kilobytes(text, key):
    start = text.index(key) + len(key)
    return int(text[start : text.index(b"kB", start)]) * 1024
