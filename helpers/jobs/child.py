"""Inside the job's own process: prepare it, run the function, say how it ended."""

import os
import resource
import select
import signal
import sys
import tempfile
import traceback
from contextlib import suppress

from helpers import machine
from helpers.jobs import channel, heap, main_module, shipping
from helpers.jobs.device import Reporter, open_device
from helpers.jobs.failures import failure_kind, text_of, traceback_of
from helpers.jobs.leaving import forget_the_warm_ones, leave
from helpers.jobs.refusals import Refusals
from helpers.jobs.task import JOB_ENVIRONMENT
from helpers.jobs.vram_log import VramLog
from helpers.watching import answering, page_faults, processes
from helpers.watching.lines import LIBRARIES, OURS

SECONDS_FOR_A_WORD = 10


def main(task, folders, reports, vram, go):
    """Run a `Task`; never returns. The folders are for its temporary files and for what it says of its lines; the last
    three are descriptors: what the job tells, where the memory of its device is written, and where the word to go on
    comes from."""
    code, refusals = 1, Refusals(task.on_limit == "refuse")
    try:
        channel.open_channel(reports)
        _move_in(task, folders[0])
        device = None
        if task.vram is not None:
            device = open_device(task.vram, growth=task.growth, touch=task.ram is not None)
        reporter = Reporter(device, VramLog(vram)) if device else None
        voice = _voice(folders[1])
        function = shipping.unpack(task.function)  # and the modules that it lives in
        heap.give_back()
        _forget_the_peak()
        channel.tell("ready", device=device.kind if device else None)
        word = _Word(go)
        if word.wait():
            if voice:
                voice.begin()
            code = _perform(function, task.arguments, reporter, word)
    except BaseException as error:
        code = _tell_failure(error, refusals)
    finally:
        function = None  # a program's own things are gone before its end, too
        leave(code)


def _voice(folder):
    with suppress(OSError):  # without it the lines are not known, and nothing else is lost
        return answering.listen(folder, (*LIBRARIES, *OURS))


class _Word:
    """The watcher's word to go on; a job that has closed the line to it goes on without."""

    def __init__(self, descriptor):
        self._line = page_faults.out_of_the_way(descriptor)
        self._pipe = page_faults.identity(self._line)

    def wait(self, seconds=None):
        """True once it came; False if it does not come any more, or not in time."""
        with suppress(OSError):
            if page_faults.identity(self._line) == self._pipe:
                poll = select.poll()
                poll.register(self._line, select.POLLIN)
                return bool(poll.poll(seconds and 1000 * seconds) and os.read(self._line, 1))
        return False


def _move_in(task, temporary_folder):
    """Take over the caller's surroundings, so that the job behaves as it would there."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash on purpose leaves no core file
    mark = {machine.JOB_VARIABLE: os.environ.get(machine.JOB_VARIABLE, "1")}
    os.environ.clear()
    os.environ.update({**JOB_ENVIRONMENT, **task.environment, **mark})
    os.environ["TMPDIR"] = tempfile.tempdir = temporary_folder
    sys.path[:] = task.path
    os.chdir(task.folder)
    forget_the_warm_ones()
    main_module.take_over(task.main, task.command_line)
    if "numpy.random" in sys.modules:  # other numbers start anew in a fork by themselves, these do not
        sys.modules["numpy.random"].seed()


def _forget_the_peak():
    """The kernel's highest point starts anew: a fork begins with all that the warm process held, and may have given
    some of it back by now, beneath which a spike would not show."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _perform(function, arguments, reporter, word):
    if reporter:
        reporter.start()
    returned = False
    try:
        arguments, keywords = shipping.unpack(arguments)
        value = function(*arguments, **keywords)
        returned = True
    finally:
        if reporter:
            reporter.report()
        channel.tell("mapped", files=processes.memory_of(os.getpid()).files, returned=returned)
        if channel.is_open():
            word.wait(SECONDS_FOR_A_WORD)  # what the watcher sees until then came before the function's end
    return _tell_value(value)


def _tell_value(value):
    try:
        size, pieces = shipping.pack_result(value)
    except MemoryError:
        raise
    except Exception as error:
        sentence = (
            f"the job finished, but its result ({type(value).__name__}) cannot be sent back: {error}; "
            "return numbers, text, arrays or a DataFrame"
        )
        _tell("result", type(error).__name__, sentence)
        return 1
    if size > shipping.LARGEST:
        sentence = (
            f"the job finished, but its result is {size // 10**6} MB, more than the "
            f"{shipping.LARGEST // 10**6} MB that are sent back; return a summary, or write it to a file"
        )
        _tell("result", "ValueError", sentence)
        return 1
    channel.tell("value", *pieces)
    return 0


def _tell(kind, name, message, trace="", refused_by=""):
    channel.tell("failure", kind=kind, type=name, message=message, traceback=trace, refused_by=refused_by)


def _tell_failure(error, refusals):
    """Returns the exit code of a Python program that ends with this error."""
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return _tell_value(None)
    kind = failure_kind(error)
    refused_by = refusals.nearest() if kind else ""
    traceback.clear_frames(error.__traceback__)  # whatever the job held is not needed any more
    text = traceback_of(error)
    _tell(kind, type(error).__name__, text_of(error), text, refused_by)
    sys.stderr.write(text)
    return error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1
