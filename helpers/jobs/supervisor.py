"""The warm process: it has imported TensorFlow, runs no operation of it, and serves one job at a time."""

import gc
import os
import signal
import sys
from multiprocessing.connection import Connection, wait

from helpers.jobs.launch import import_warm, prctl
from helpers.jobs.watch import CallerIsGone, Watch
from helpers.watching import leftovers, processes

PR_SET_CHILD_SUBREAPER = 36
SECONDS_TO_LOOK = 1.0


def main(descriptor, fork, parent):
    """Serve the caller at `descriptor`, which is the process `parent`, until it is gone; then leave no child behind."""
    caller = Connection(descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphans of a job come here, where they are found and ended
    leftovers.sweep()
    try:
        if fork:
            import_warm()
        caller.send(("warm", None))
        while True:
            _tidy()
            Watch(caller, _next_task(caller, parent), fork, parent).run()
    except (EOFError, CallerIsGone, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        processes.end_descendants(os.getpid())


def _next_task(caller, parent):
    """The caller's end of the line says when it is gone, unless some process that it left behind holds it too."""
    end = processes.open_pidfd(parent)
    try:
        while caller not in wait([caller, end] if end else [caller], None if end else SECONDS_TO_LOOK):
            if os.getppid() != parent:
                raise CallerIsGone
        return caller.recv()
    finally:
        if end:
            end.close()


def _leave(number, frame):
    """In order, which must not be disturbed by a second signal."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def _tidy():
    """A job starts as a copy of this process. A collection in it would touch, and so copy, every page of what was
    imported, and give back what an earlier job left here, as if this one had held less."""
    gc.collect()
    gc.freeze()
