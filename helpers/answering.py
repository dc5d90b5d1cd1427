"""Inside a Python process: answer, when a signal asks, in which line every thread is. Needs nothing but Python.

Two signals, because no single way is both safe and always heard. The first is handled by Python itself between two
instructions, when all stacks are in order. C code that runs for long keeps it waiting; then a second one lets a
thread write its stack at once. That is only safe while the thread stays in C code, so whoever asks has to make sure.
"""

import faulthandler
import os
import signal
import threading

ASK = signal.SIGRTMAX - 3 if hasattr(signal, "SIGRTMAX") else None
STUCK = signal.SIGRTMAX - 4 if hasattr(signal, "SIGRTMAX") else None


def listen(descriptor):
    """Write the stacks to `descriptor` whenever asked; call it in the main thread. False if this system cannot."""
    if ASK is None:
        return False

    def answer(number, frame):
        try:
            faulthandler.dump_traceback(file=descriptor, all_threads=True)
            threads = dict(threading._active)  # without the lock that the interrupted code may hold
            numbers = {ident: thread.native_id for ident, thread in threads.items()}
            # This is the main thread; after a fork its number is stale.
            numbers[threading.get_ident()] = os.getpid()
            names = " ".join(f"{ident:x}={number}" for ident, number in numbers.items())
            os.write(descriptor, f"end held={_held()} {names}\n".encode())
        except (OSError, RecursionError, MemoryError):
            pass  # nobody listens any more, or the job is at the end of its stack or of its memory

    signal.signal(ASK, answer)
    faulthandler.register(STUCK, file=descriptor, all_threads=False)
    return True


def _held():
    """The bytes that this process holds at this moment; 0 where the system does not tell."""
    try:
        with open("/proc/self/status", "rb", buffering=0) as status:
            fields = dict(line.split()[:2] for line in status.read(8192).splitlines() if b" kB" in line)
        return 1024 * (int(fields[b"RssAnon:"]) + int(fields[b"RssShmem:"]))
    except (OSError, KeyError):
        return 0
