"""The warm process: it has imported TensorFlow, runs no operation of it, and serves one job at a time."""

import gc
import os
import shutil
import signal
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

from helpers.jobs.launch import import_warm, prctl
from helpers.jobs.watch import CallerIsGone, Watch
from helpers.watching import cgroups, processes

PR_SET_CHILD_SUBREAPER = 36


def main(descriptor, fork):
    """Serve the caller at `descriptor` until it is gone; then leave no child behind."""
    caller = Connection(descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphans of a job come here, where they are found and ended
    _sweep()
    try:
        if fork:
            import_warm()
        caller.send(("warm", None))
        while True:
            _tidy()
            Watch(caller, caller.recv(), fork).run()
    except (EOFError, CallerIsGone, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        processes.end_descendants(os.getpid())


def _sweep():
    """Remove what earlier supervisors could not, because they were killed themselves."""
    cgroups.sweep()
    folders = Path(tempfile.gettempdir()).glob(f"{cgroups.PREFIX}-*-*")
    for folder in filter(cgroups.owner_is_gone, folders):
        shutil.rmtree(folder, ignore_errors=True)


def _tidy():
    """A job starts as a copy of this process. A collection in it would touch, and so copy, every page of what was
    imported, and give back what an earlier job left here, as if this one had held less."""
    gc.collect()
    gc.freeze()
