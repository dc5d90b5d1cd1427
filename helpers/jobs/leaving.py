"""The end of a job's process, as a Python program ends: it waits for threads, runs exit handlers, writes files out."""

import _io
import atexit
import ctypes
import faulthandler
import gc
import logging
import os
import sys
import threading
import weakref
from contextlib import suppress
from multiprocessing import util


def forget_the_warm_ones():
    """Before the job begins: what the warm process wanted done at its own end is not the job's to do, except what
    Python itself does for every program."""
    atexit._clear()
    for finalizer in weakref.finalize._registry:
        finalizer.atexit = False
    weakref.finalize._registered_with_atexit = False  # the job's first one registers them again
    util._finalizer_registry.clear()
    atexit.register(logging.shutdown)
    atexit.register(util._exit_function)


def leave(code):
    """Never returns. Whatever hangs here is still under the timeout of the job."""
    try:
        for step in (threading._shutdown, atexit._run_exitfuncs, gc.collect, _close_files):
            with suppress(Exception, KeyboardInterrupt, SystemExit):
                step()
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # the job closed it
                stream.flush()
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).fflush(None)
    finally:
        faulthandler.disable()
        os._exit(code)


def _close_files():
    """Files that are still open are written out: first what lies on top of other files, and buffers of bytes last."""
    files = [thing for thing in gc.get_objects() if issubclass(type(thing), _io._IOBase)]
    for file in files:
        if type(file).__module__ != "_io":
            with suppress(Exception):
                file.close()
    for kind in (_io.TextIOWrapper, _io._BufferedIOBase):
        for file in files:
            if isinstance(file, kind):
                with suppress(Exception):
                    file.flush()
