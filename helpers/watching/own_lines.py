"""In which lines of its own code a process is, in each thread of Python. Needs only Python."""

import gc
import os
import sys
import threading
import time

GENERATED = "__autograph_generated_file"
"""In the name of a file that TensorFlow makes of somebody's function."""
TYPED = ("<stdin>", "<string>", "<python-input-", "<ipython-input-")
"""Names of code that came without a file: from standard input, after -c, at a prompt."""
FLOOR = os.path.join("helpers", "jobs", "child.py")
"""What stands below this in a stack has started the job and is not the job's."""
DEEPEST = 100
"""So many frames of a thread are looked at."""


def words(frame, libraries, figures, everybody):
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
