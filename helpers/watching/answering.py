"""Inside a Python process: answer, when a signal asks, in which line every thread is. Needs nothing but Python.

Two signals, because no single way is both safe and always heard. The first is handled by Python itself between two
instructions, when all stacks are in order. C code that runs for long keeps it waiting; then a second one lets a
thread write its stack at once. That is only safe while the thread stays in C code, so whoever asks has to make sure.
"""

import faulthandler
import fcntl
import gc
import os
import signal
import sys
import threading

try:
    import resource
except ImportError:  # Windows
    resource = None

ASK = signal.SIGRTMAX - 3 if hasattr(signal, "SIGRTMAX") else None
STUCK = signal.SIGRTMAX - 4 if hasattr(signal, "SIGRTMAX") else None
GENERATED = "__autograph_generated_file"
"""In the name of a file that TensorFlow makes of somebody's function."""
DEEPEST = 100
"""So many frames of a thread are looked at."""
HIGH = 600
"""Descriptors are put where ordinary programs have none."""


def listen(descriptor, libraries=()):
    """Write to `descriptor`, whenever asked, where every thread is, in files that do not begin with one of
    `libraries`; call it in the main thread. False if this system cannot."""
    if ASK is None:
        return False

    pipe = identity(descriptor)

    def answer(number, frame):
        try:
            if identity(descriptor) == pipe:
                os.write(descriptor, _answer(frame, libraries).encode("ascii", "backslashreplace"))
            else:  # the program has closed it, and opened something else in its place
                faulthandler.unregister(STUCK)
        except (OSError, RecursionError, MemoryError):
            pass  # nobody listens any more, or the job is at the end of its stack or of its memory

    signal.signal(ASK, answer)
    faulthandler.register(STUCK, file=descriptor, all_threads=False)
    return True


def out_of_the_way(descriptor):
    """The same file at a high number."""
    try:
        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, HIGH)
    except OSError:  # this process may not have so many
        return descriptor
    os.close(descriptor)
    return high


def identity(descriptor):
    """Which file it leads to: a program may close what it did not open, and open something else in its place."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _answer(frame, libraries):
    """The innermost line of each thread, as faulthandler writes it, and a last line with figures.

    faulthandler itself must not be asked for all threads of a process that works: it walks their list without a lock,
    and crashes where a C++ library such as TensorFlow starts or ends one that calls Python just then.
    """
    stacks = {**_stacks(), threading.get_ident(): frame}
    lines = [f"Thread 0x{ident:x}\n{_innermost(stack, libraries)}" for ident, stack in stacks.items()]
    threads = dict(threading._active)  # without the lock that the interrupted code may hold
    numbers = {ident: thread.native_id for ident, thread in threads.items()}
    # This is the main thread; after a fork its number is stale.
    numbers[threading.get_ident()] = os.getpid()
    names = " ".join(f"{ident:x}={number}" for ident, number in numbers.items())
    return "".join(lines) + f"end held={_held()} faults={_faults()} {names}\n"


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
        if not file.startswith(libraries) and GENERATED not in file:
            return f'  File "{file}", line {frame.f_lineno} in {frame.f_code.co_name}\n'
        frame = frame.f_back
    return ""


def _held():
    """The bytes that this process holds at this moment; 0 where the system does not tell."""
    try:
        with open("/proc/self/status", "rb", buffering=0) as status:
            fields = dict(line.split()[:2] for line in status.read(8192).splitlines() if b" kB" in line)
        return 1024 * (int(fields[b"RssAnon:"]) + int(fields[b"RssShmem:"]))
    except (OSError, KeyError):
        return 0


def _faults():
    """How many pages this process has touched for the first time; 0 where the system does not tell."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt if resource else 0
