"""Inside the job's own process: prepare it, run the function, say how it ended."""

import faulthandler
import os
import re
import resource
import signal
import sys
import tempfile
import traceback
from contextlib import suppress

import cloudpickle

from helpers import answering, freed_memory, reports
from helpers.device import Reporter, open_device
from helpers.figures import Figures
from helpers.launch import JOB_ENVIRONMENT
from helpers.lines import is_own_code

LARGEST_RESULT = 50 * 10**6
FRAME = re.compile(r'^  File "([^"\n]+)", line \d+, in [^\n]*\n(?:    [^\n]*\n)?\n?', re.MULTILINE)


def main(task, reports_descriptor, stacks_descriptor, figures_descriptor, go_descriptor):
    """Never returns. `task` is a dict of the job (pickled) and its surroundings."""
    code = 1
    try:
        reports.open_channel(reports_descriptor)
        _move_in(task)
        device = None
        if task["vram"] is not None:
            device = open_device(task["vram"], growth=task["growth"], touch=task["ram"] is not None)
        reporter = Reporter(device, Figures(figures_descriptor)) if device else None
        answering.listen(stacks_descriptor)
        function = cloudpickle.loads(task["function"])  # and the modules that it lives in
        freed_memory.give_back()
        _forget_the_peak()
        reports.tell("ready", device=device.kind if device else None)
        if os.read(go_descriptor, 1):
            code = _perform(function, task["arguments"], reporter)
    except BaseException as error:
        code = _tell_failure(error)
    finally:
        _leave(code)


def _move_in(task):
    """Take over the caller's surroundings, so that the job behaves as it would there."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash on purpose leaves no core file
    os.environ.clear()
    os.environ.update({**JOB_ENVIRONMENT, **task["environment"]})
    os.environ["TMPDIR"] = tempfile.tempdir = task["temporary_folder"]
    sys.path[:] = task["path"]
    os.chdir(task["folder"])


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
        reports.tell("failure", kind="result", type=type(error).__name__, message=sentence, traceback="")
        return 1
    if len(pickled) > LARGEST_RESULT:
        sentence = (
            f"the job finished, but its result is {len(pickled) // 10**6} MB, more than the "
            f"{LARGEST_RESULT // 10**6} MB that are sent back; return a summary, or write it to a file"
        )
        reports.tell("failure", kind="result", type="ValueError", message=sentence, traceback="")
        return 1
    reports.tell("value", pickled=pickled)
    return 0


def _tell_failure(error):
    """Returns the exit code of a Python program that ends with this error."""
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return _tell_value(None)
    traceback.clear_frames(error.__traceback__)  # whatever the job held is not needed any more
    text, kind = _traceback_of(error), failure_kind(error)
    reports.tell("failure", kind=kind, type=type(error).__name__, message=text_of(error), traceback=text)
    sys.stderr.write(text)
    return error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1


def failure_kind(error):
    """Say which memory an error is about, its causes included: "memory", "device", or "" for none."""
    if _chain_has(error, _is_memory_error):
        return "memory"
    return "device" if _chain_has(error, _is_device_error) else ""


def _traceback_of(error):
    """The traceback through the job's own code; the frames of libraries explain little and hide much."""
    try:
        summary = traceback.TracebackException.from_exception(error, compact=True)
        _keep_own_frames(summary)
        return _without_other_frames("".join(summary.format()))
    except Exception:  # an exception whose own text cannot be made
        return f"{type(error).__name__}: {text_of(error)}\n"


def _keep_own_frames(summary):
    while summary is not None:
        summary.stack[:] = [frame for frame in summary.stack if is_own_code(frame.filename)]
        summary = summary.__cause__ or summary.__context__


def _without_other_frames(text):
    """TensorFlow writes into its messages where a node was made: fifty frames, most of them of libraries."""
    return FRAME.sub(lambda frame: frame[0] if is_own_code(frame[1]) else "", text)


def text_of(error):
    """The message of an error, whatever it is made of."""
    try:
        return _without_other_frames(str(error).encode("utf-8", "backslashreplace").decode())
    except Exception:
        return "(its message cannot be shown)"


def _chain_has(error, test):
    seen = set()
    while error is not None and id(error) not in seen:
        if test(error):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _is_memory_error(error):
    return isinstance(error, MemoryError)


def _is_device_error(error):
    """TensorFlow's ResourceExhaustedError, unless it speaks of another resource than memory."""
    names = {base.__name__ for base in type(error).__mro__}
    other = ("No space left", "Too many open files", "larger than max", "quota")
    return "ResourceExhaustedError" in names and not any(words in text_of(error) for words in other)


def _leave(code):
    """End at once: no exit handlers, no waiting for threads; the watcher takes care of the rest."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:
        pass  # the job closed them
    faulthandler.disable()
    os._exit(code)
