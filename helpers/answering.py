"""Inside a Python process: answer, when a signal asks, in which line every thread is. Needs nothing but Python.

Two signals, because no single way is both safe and always heard. The first is handled by Python itself between two
instructions, when all stacks are in order. C code that runs for long keeps it waiting; then a second one lets a
thread write its stack at once. That is only safe while the thread stays in C code, so whoever asks has to make sure.
"""

import faulthandler
import os
import signal
import sys
import threading

ASK = signal.SIGRTMAX - 3 if hasattr(signal, "SIGRTMAX") else None
STUCK = signal.SIGRTMAX - 4 if hasattr(signal, "SIGRTMAX") else None
DEEPEST = 100


def listen(descriptor):
    """Write the stacks to `descriptor` whenever asked; call it in the main thread. False if this system cannot."""
    if ASK is None:
        return False

    def answer(number, frame):
        try:
            os.write(descriptor, _answer(frame).encode("ascii", "backslashreplace"))
        except Exception:
            return  # nobody listens any more, or the job is at the end of its memory or of its stack

    signal.signal(ASK, answer)
    faulthandler.register(STUCK, file=descriptor, all_threads=False)
    return True


def _answer(interrupted):
    """All stacks in the words of faulthandler, and which thread is which, to be written in one piece."""
    frames = sys._current_frames()
    # Not the frame of this function: it would keep itself, and with it whatever the job's functions hold.
    frames[threading.get_ident()] = interrupted
    stacks = [text for ident in frames for text in _stack(ident, frames[ident])]
    threads = dict(threading._active)  # without the lock that the interrupted code may hold
    numbers = {ident: thread.native_id for ident, thread in threads.items()}
    numbers[threading.get_ident()] = os.getpid()  # this is the main thread; after a fork its number is stale
    names = " ".join(f"{ident:x}={number}" for ident, number in numbers.items())
    return "".join([*stacks, f"end held={_held()} {names}\n"])


def _stack(ident, frame):
    yield f"Thread 0x{ident:x} (most recent call first):\n"
    for _ in range(DEEPEST):
        if frame is None:
            break
        yield f'  File "{frame.f_code.co_filename}", line {frame.f_lineno} in {frame.f_code.co_name}\n'
        frame = frame.f_back


def _held():
    """The bytes that this process holds at this moment; 0 where the system does not tell."""
    try:
        with open("/proc/self/status", "rb", buffering=0) as status:
            fields = dict(line.split()[:2] for line in status.read(8192).splitlines() if b" kB" in line)
        return 1024 * (int(fields[b"RssAnon:"]) + int(fields[b"RssShmem:"]))
    except (OSError, KeyError):
        return 0
