"""The facts of a job's end become the right outcome."""

import pytest

from helpers.outcomes import outcome_of, verdict_of


def facts(**given):
    return {"ended_by": None, "failure": None, "value": None, "log": b"", "device": None, **given}


def failure(kind, type_="SomeError", message="some words"):
    return {"kind": kind, "type": type_, "message": message}


BAD_ALLOC = b"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"
POOL_FULL = b"W0000 bfc_allocator.cc:502] Allocator (bfc) ran out of memory trying to allocate 400.00MiB\n"


@pytest.mark.parametrize(
    ("given", "exit_code", "outcome"),
    [
        (facts(value=b"pickled"), 0, "finished"),
        (facts(ended_by="budget"), 137, "killed"),
        (facts(ended_by="timeout"), 137, "timeout"),
        (facts(), 137, "error"),
        (facts(), 0, "error"),
        (facts(failure=failure("memory")), 1, "memory-error"),
        (facts(failure=failure("device"), device="virtual"), 1, "vram-oom"),
        (facts(failure=failure("device")), 1, "memory-error"),
        (facts(failure=failure("")), 1, "error"),
        (facts(failure=failure("result")), 1, "error"),
        (facts(log=BAD_ALLOC), 134, "memory-error"),
        (facts(log=BAD_ALLOC), 1, "error"),
        (facts(), 134, "error"),
        (facts(log=POOL_FULL, device="virtual"), 139, "vram-oom"),
        (facts(device="virtual"), 139, "error"),
    ],
)
def test_the_outcome(given, exit_code, outcome):
    assert outcome_of(given, exit_code) == outcome
    sentence = verdict_of(outcome, given, exit_code, 600_000_000, 512_000_000, 60)
    assert sentence
    assert "\n" not in sentence


def test_a_job_without_a_budget_that_took_the_whole_machine_is_told_so():
    sentence = verdict_of("killed", facts(ended_by="budget"), 137, None, None, 60)
    assert (
        sentence == "Killed: it went over all the RAM that this machine could spare (SIGKILL, exit code 137)."
    )
