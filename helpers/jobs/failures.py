"""What an exception that ended a job says: which memory it is about, its text, and its traceback through own code."""

import re
import traceback

from helpers.watching.lines import is_own_code

FRAME = re.compile(r'^  File "([^"\n]+)", line \d+, in [^\n]*\n(?:    [^\n]*\n)?\n?', re.MULTILINE)


def failure_kind(error):
    """Say which memory an error is about, its causes included: "memory", "device", or "" for none."""
    if _chain_has(error, _is_memory_error):
        return "memory"
    return "device" if _chain_has(error, _is_device_error) else ""


def traceback_of(error):
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
