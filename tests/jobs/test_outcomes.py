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


@pytest.mark.parametrize(
    ("given", "budget", "words"),
    [
        (
            {"ended_by": "limit around", "limit_around": 620_000_000},
            900_000_000,
            "the memory limit around it (a container's or control group's, 620 MB) was reached before its RAM budget "
            "of 900 MB",
        ),
        (
            {"ended_by": "limit around", "limit_around": 620_000_000, "returned": True},
            None,
            "its function had returned, and then the memory limit around it (a container's or control group's, 620 MB) "
            "was reached before all the RAM that this machine could spare while its result was packed",
        ),
        (
            {"ended_by": "kernel"},
            900_000_000,
            "the kernel ran out of memory before it had reached its RAM budget of 900 MB",
        ),
    ],
)
def test_a_kill_by_others_than_the_budget_is_not_put_down_to_it(given, budget, words):
    assert outcome_of(ending(**given), 137) == "killed"
    assert (
        verdict_of("killed", ending(**given), 137, task(budget, None))
        == f"Killed: {words} (SIGKILL, exit code 137)."
    )
