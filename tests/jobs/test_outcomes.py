"""The facts of a job's end become the right outcome."""

import pytest

from helpers.jobs.outcomes import outcome_of, verdict_of
from helpers.jobs.task import Ending, Failure, Task


def ending(**given):
    facts = {"status": 0, "ended_by": None, "seconds": 1.0, "log": b"", "limiter": "watchdog"}
    return Ending(**facts | given)


def failure(kind):
    return Failure(kind, "SomeError", "some words")


def task(ram, vram):
    return Task(b"", b"", ram, 10**9, vram, False, "kill", None, 60, {}, [], "")


BAD_ALLOC = b"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"
POOL_FULL = b"W0000 bfc_allocator.cc:502] Allocator (bfc) ran out of memory trying to allocate 400.00MiB\n"


@pytest.mark.parametrize(
    ("given", "exit_code", "outcome"),
    [
        (ending(value=b"pickled"), 0, "finished"),
        (ending(ended_by="budget"), 137, "killed"),
        (ending(ended_by="timeout"), 137, "timeout"),
        (ending(), 137, "error"),
        (ending(), 0, "error"),
        (ending(failure=failure("memory")), 1, "memory-error"),
        (ending(failure=failure("device"), device="virtual"), 1, "vram-oom"),
        (ending(failure=failure("device")), 1, "memory-error"),
        (ending(failure=failure("")), 1, "error"),
        (ending(failure=failure("result")), 1, "error"),
        (ending(log=BAD_ALLOC), 134, "memory-error"),
        (ending(log=BAD_ALLOC), 1, "error"),
        (ending(), 134, "error"),
        (ending(log=POOL_FULL, device="virtual"), 139, "vram-oom"),
        (ending(device="virtual"), 139, "error"),
    ],
)
def test_the_outcome(given, exit_code, outcome):
    assert outcome_of(given, exit_code) == outcome
    sentence = verdict_of(outcome, given, exit_code, task(600_000_000, 512_000_000))
    assert sentence
    assert "\n" not in sentence


def test_a_job_without_a_budget_that_took_the_whole_machine_is_told_so():
    sentence = verdict_of("killed", ending(ended_by="budget"), 137, task(None, None))
    assert (
        sentence == "Killed: it went over all the RAM that this machine could spare (SIGKILL, exit code 137)."
    )
