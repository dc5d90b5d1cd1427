"""From the bare facts of a job's end to its outcome and to one sentence about it."""

import os
import signal

from helpers.units import format_bytes

OUT_OF_MEMORY = ("killed", "memory-error", "vram-oom")


def exit_code_of(status):
    """The exit code that a shell would show: 137 for a process that was killed by signal 9."""
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def outcome_of(facts, exit_code):
    """One of "killed", "memory-error", "vram-oom", "finished", "error", "timeout"."""
    if facts["ended_by"] == "timeout":
        return "timeout"
    if facts["ended_by"] == "budget":
        return "killed"
    failure = facts["failure"]
    if failure:
        return {"memory": "memory-error", "device": _device_outcome(facts)}.get(failure["kind"], "error")
    if exit_code == 0 and facts["value"] is not None:
        return "finished"
    return _outcome_of_signal(facts, exit_code)


def _device_outcome(facts):
    """Without an accelerator of its own TensorFlow's allocator gives out RAM."""
    return "vram-oom" if facts["device"] else "memory-error"


def _outcome_of_signal(facts, exit_code):
    """C++ does not raise MemoryError. It aborts, or crashes, and leaves a line in the log."""
    if exit_code == 128 + signal.SIGABRT and b"std::bad_alloc" in facts["log"]:
        return "memory-error"
    crashed = exit_code in (128 + signal.SIGSEGV, 128 + signal.SIGBUS, 128 + signal.SIGABRT)
    if crashed and b"ran out of memory trying to allocate" in facts["log"]:
        return _device_outcome(facts)
    return "error"


def verdict_of(outcome, facts, exit_code, ram_budget, vram_budget, timeout):
    """One sentence without a figure that changes from run to run."""
    ram, vram = format_bytes(ram_budget), format_bytes(vram_budget)
    if outcome == "killed":
        budget = f"its RAM budget of {ram}" if ram_budget else "all the RAM that this machine could spare"
        return f"Killed: it went over {budget} (SIGKILL, exit code {exit_code})."
    if outcome == "memory-error":
        what = facts["failure"]["type"] if facts["failure"] else f"std::bad_alloc, exit code {exit_code}"
        return f"Out of memory: an allocation was refused on its RAM budget of {ram} ({what})."
    if outcome == "vram-oom":
        what = facts["failure"]["type"] if facts["failure"] else _signal_name(exit_code)
        return f"Out of memory on the device: it needs more than its {vram} of VRAM ({what})."
    if outcome == "timeout":
        return f"Stopped: it had not finished after {timeout:g} s."
    if outcome == "finished":
        return "Finished" + _within(ram_budget, vram_budget) + "."
    return _sentence_of_error(facts, exit_code)


def _within(ram_budget, vram_budget):
    budgets = [(ram_budget, "RAM"), (vram_budget, "VRAM")]
    texts = [f"{format_bytes(budget)} of {kind}" for budget, kind in budgets if budget]
    return f" within its budget of {' and '.join(texts)}" if texts else ""


def _sentence_of_error(facts, exit_code):
    failure = facts["failure"]
    if failure and failure["kind"] == "result":
        return f"Failed: {failure['message']}."
    if failure:
        first_line = failure["message"].strip().split("\n")[0][:200]
        return f"Failed: {failure['type']}: {first_line}" if first_line else f"Failed: {failure['type']}."
    if exit_code > 128:
        return (
            f"Failed: it was ended by {_signal_name(exit_code)} (exit code {exit_code}), not by its budget."
        )
    return f"Failed: it ended with exit code {exit_code} before it returned a result."


def _signal_name(exit_code):
    try:
        return signal.Signals(exit_code - 128).name
    except ValueError:
        return f"exit code {exit_code}"
