"""Inside the job's own process: prepare it, run the function, say how it ended."""

import faulthandler
import os
import resource
import signal
import sys
import tempfile
import traceback
from contextlib import suppress

import cloudpickle

from helpers import machine
from helpers.jobs import channel, heap
from helpers.jobs.device import Reporter, open_device
from helpers.jobs.failures import failure_kind, text_of, traceback_of
from helpers.jobs.task import JOB_ENVIRONMENT
from helpers.jobs.vram_log import VramLog
from helpers.watching import answering, processes
from helpers.watching.lines import LIBRARIES, OURS

LARGEST_RESULT = 50 * 10**6


def main(task, temporary_folder, reports, stacks, vram, go):
    """Run a `Task`; never returns. The last four are descriptors: what the job tells, where its lines are written,
    where the memory of its device, and where the word to begin comes from."""
    code = 1
    try:
        channel.open_channel(reports)
        _move_in(task, temporary_folder)
        device = None
        if task.vram is not None:
            device = open_device(task.vram, growth=task.growth, touch=task.ram is not None)
        reporter = Reporter(device, VramLog(vram)) if device else None
        answering.listen(stacks, (*LIBRARIES, *OURS))
        function = cloudpickle.loads(task.function)  # and the modules that it lives in
        heap.give_back()
        _forget_the_peak()
        channel.tell("ready", device=device.kind if device else None)
        if os.read(go, 1):
            code = _perform(function, task.arguments, reporter)
    except BaseException as error:
        code = _tell_failure(error)
    finally:
        _leave(code)


def _move_in(task, temporary_folder):
    """Take over the caller's surroundings, so that the job behaves as it would there."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash on purpose leaves no core file
    os.environ.clear()
    os.environ.update({**JOB_ENVIRONMENT, **task.environment, machine.JOB_VARIABLE: "1"})
    os.environ["TMPDIR"] = tempfile.tempdir = temporary_folder
    sys.path[:] = task.path
    os.chdir(task.folder)


def _forget_the_peak():
    """The kernel's highest point starts anew: a fork begins with all that the warm process held, and may have given
    some of it back by now, beneath which a spike would not show."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _perform(function, arguments, reporter):
    if reporter:
        reporter.start()
    try:
        arguments, keywords = cloudpickle.loads(arguments)
        value = function(*arguments, **keywords)
    finally:
        if reporter:
            reporter.report()
        channel.tell("mapped", files=processes.memory_of(os.getpid()).files)
    return _tell_value(value)


def _tell_value(value):
    try:
        pickled = cloudpickle.dumps(value)
    except MemoryError:
        raise
    except Exception as error:
        sentence = (
            f"the job finished, but its result ({type(value).__name__}) cannot be sent back: {error}; "
            "return numbers, text, arrays or a DataFrame"
        )
        channel.tell("failure", kind="result", type=type(error).__name__, message=sentence, traceback="")
        return 1
    if len(pickled) > LARGEST_RESULT:
        sentence = (
            f"the job finished, but its result is {len(pickled) // 10**6} MB, more than the "
            f"{LARGEST_RESULT // 10**6} MB that are sent back; return a summary, or write it to a file"
        )
        channel.tell("failure", kind="result", type="ValueError", message=sentence, traceback="")
        return 1
    channel.tell("value", pickled)
    return 0


def _tell_failure(error):
    """Returns the exit code of a Python program that ends with this error."""
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return _tell_value(None)
    traceback.clear_frames(error.__traceback__)  # whatever the job held is not needed any more
    text, kind = traceback_of(error), failure_kind(error)
    channel.tell("failure", kind=kind, type=type(error).__name__, message=text_of(error), traceback=text)
    sys.stderr.write(text)
    return error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1


def _leave(code):
    """End at once: no exit handlers, no waiting for threads; the watcher takes care of the rest."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:
        pass  # the job closed them
    faulthandler.disable()
    os._exit(code)
