"""From how a job ended to its outcome and to one sentence about it."""

import signal

from helpers.text import signal_name
from helpers.units import format_bytes
from helpers.watching.enclosure import limit_around


def outcome_of(ending, exit_code):
    """One of "killed", "memory-error", "vram-oom", "finished", "error", "timeout"."""
    if ending.ended_by == "timeout":
        return "timeout"
    if ending.ended_by in ("budget", "limit around", "kernel"):
        return "killed"
    if ending.failure:
        kinds = {"memory": "memory-error", "device": _device_outcome(ending)}
        return kinds.get(ending.failure.kind, "error")
    if exit_code == 0 and ending.value is not None:
        return "finished"
    return _outcome_of_signal(ending, exit_code)


def _device_outcome(ending):
    """Without an accelerator of its own TensorFlow's allocator gives out RAM."""
    return "vram-oom" if ending.device else "memory-error"


def _outcome_of_signal(ending, exit_code):
    """C++ does not raise MemoryError. It aborts, or crashes, and leaves a line in the log."""
    if exit_code == 128 + signal.SIGABRT and b"std::bad_alloc" in ending.log:
        return "memory-error"
    crashed = exit_code in (128 + signal.SIGSEGV, 128 + signal.SIGBUS, 128 + signal.SIGABRT)
    if crashed and b"ran out of memory trying to allocate" in ending.log:
        return _device_outcome(ending)
    return "error"


def verdict_of(outcome, ending, exit_code, task):
    """One sentence without a figure that changes from run to run."""
    if outcome == "killed":
        return f"Killed: {_passing(task.ram, ending)} (SIGKILL, exit code {exit_code})."
    if outcome == "memory-error":
        what = ending.failure.type if ending.failure else f"std::bad_alloc, exit code {exit_code}"
        return f"Out of memory: an allocation was refused{_by_which_limit(task.ram, ending)} ({what})."
    if outcome == "vram-oom":
        what = ending.failure.type if ending.failure else _name(exit_code)
        return (
            f"Out of memory on the device: it needs more than its {format_bytes(task.vram)} of VRAM ({what})."
        )
    if outcome == "timeout":
        return f"Stopped: it had not finished after {task.timeout:g} s."
    if outcome == "finished":
        return "Finished" + _within(task.ram, task.vram) + "."
    return _sentence_of_error(ending, exit_code)


def _passing(ram, ending):
    what = _limit_that_was_reached(ram, ending)
    if not ending.returned:
        return what
    then = "while its result was packed" if ending.value is None else "in what Python runs at the end"
    return f"its function had returned, and then {what} {then}"


def _limit_that_was_reached(ram, ending):
    budget = f"its RAM budget of {format_bytes(ram)}" if ram else "all the RAM that this machine could spare"
    if ending.ended_by == "limit around":
        return f"{limit_around(ending.limit_around)} was reached before {budget}"
    if ending.ended_by == "kernel":
        return f"the kernel ran out of memory before it had reached {budget}"
    return f"it went over {budget}"


def _by_which_limit(ram, ending):
    budget = f"its RAM budget of {format_bytes(ram)}"
    if ending.failure and ending.failure.refused_by:
        before = f" before {budget} was reached" if ram else ""
        return f" by the limit around it ({ending.failure.refused_by}){before}"
    if not ram:
        return ""
    return f" on {budget}" if ending.limiter == "rlimit" else f", and not on {budget}"


def _within(ram_budget, vram_budget):
    budgets = [(ram_budget, "RAM"), (vram_budget, "VRAM")]
    texts = [f"{format_bytes(budget)} of {kind}" for budget, kind in budgets if budget]
    return f" within its budget of {' and '.join(texts)}" if texts else ""


def _sentence_of_error(ending, exit_code):
    failure = ending.failure
    if failure and failure.kind in ("result", "worker"):
        return f"Failed: {failure.message}."
    if failure:
        first_line = failure.message.strip().split("\n")[0][:200]
        return f"Failed: {failure.type}: {first_line}" if first_line else f"Failed: {failure.type}."
    if exit_code > 128:
        return f"Failed: it was ended by {_name(exit_code)} (exit code {exit_code}), not by its budget."
    return f"Failed: it ended with exit code {exit_code} before it returned a result."


def _name(exit_code):
    return signal_name(exit_code) or f"exit code {exit_code}"
