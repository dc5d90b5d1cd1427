"""A result is sent back without being copied, and one that cannot be taken costs its value and not the trial."""

import numpy as np
import pytest

from helpers import run

MB = 1_000_000


def large_array():
    return np.ones(300 * MB, np.uint8)


def large_bytes():
    return {"bytes": b"x" * 300 * MB}


@pytest.mark.parametrize("job", [large_array, large_bytes])
def test_a_result_that_is_too_large_is_told_without_going_over_the_budget(job):
    trial = run(job, ram="500 MB")
    assert trial.outcome == "error", trial.verdict
    assert (
        "the job finished, but its result is 300 MB, more than the 50 MB that are sent back" in trial.verdict
    )
    assert trial.peak_ram < 400 * MB


def several_arrays():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    return {
        "rows": array,
        "columns": np.asfortranarray(array),
        "words": ["a"],
        "none": np.empty(0),
        "same": array,
    }


def test_arrays_arrive_as_they_were_and_can_be_written_to():
    value = run(several_arrays).value
    expected = several_arrays()
    for name in ("rows", "columns", "none", "same"):
        np.testing.assert_array_equal(value[name], expected[name])
        assert value[name].flags.writeable
    assert value["words"] == ["a"]
    assert value["same"] is value["rows"]
    assert value["columns"].flags.f_contiguous


def strided():
    """What lies in memory with gaps is copied to be packed."""
    return np.ones((2, 200 * MB), np.uint8)[:, ::2]


def test_a_job_that_is_killed_while_its_result_is_packed_is_told_so():
    trial = run(strided, ram="500 MB")
    assert (trial.outcome, trial.exit_code) == ("killed", 137)
    assert trial.verdict == (
        "Killed: its function had returned, and then it went over its RAM budget of 500 MB while its result was packed "
        "(SIGKILL, exit code 137)."
    )


class Trap:
    """Can be packed and not unpacked."""

    def __reduce__(self):
        return divide, (1, 0)


def divide(numerator, denominator):
    return numerator / denominator


def test_a_value_that_cannot_be_unpacked_here_is_told_when_it_is_read():
    trial = run(Trap, ram="200 MB")
    assert (trial.outcome, trial.verdict) == ("finished", "Finished within its budget of 200 MB of RAM.")
    assert trial.peak_ram is not None
    for _ in range(2):
        with pytest.raises(
            ValueError, match="cannot be unpacked in this process: ZeroDivisionError: division by zero"
        ):
            _ = trial.value
