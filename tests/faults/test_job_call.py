"""What the caller's surroundings may be when it calls `run`: no timeout, no working folder, a short life."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import run

HERE = Path(__file__).parents[2]


def result_of(program, **keywords):
    """What a program prints that is started in a process of its own, from the folder of the project."""
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    environment.pop("PYTHONUNBUFFERED", None)
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        **keywords,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_without_a_timeout_a_job_may_take_as_long_as_it_likes():
    trial = run(sum, [1, 2], timeout=None)
    assert (trial.outcome, trial.value) == ("finished", 3)


@pytest.mark.parametrize("timeout", ["60", "1 min", [60], -1, float("nan")])
def test_a_timeout_that_is_no_number_of_seconds_is_named(timeout):
    with pytest.raises(ValueError, match="is not a positive number of seconds"):
        run(sum, [1, 2], timeout=timeout)


class Seconds(float):
    """A number whose unpickling is seen: it leaves the number of the process that did it."""

    def __new__(cls, value, folder):
        number = super().__new__(cls, value)
        number.folder = folder
        return number

    def __reduce__(self):
        return unpickled, (float(self), str(self.folder))


def unpickled(value, folder):
    Path(folder, str(os.getpid())).touch()
    return value


def test_nothing_that_the_caller_hands_over_is_unpickled_in_the_warm_process(tmp_path):
    trial = run(os.getpid, timeout=Seconds(60, tmp_path), growth=Seconds(0, tmp_path))
    assert trial.outcome == "finished"
    assert list(tmp_path.iterdir()) == []
    assert run(abs, Seconds(3, tmp_path)).value == 3
    assert len(list(tmp_path.iterdir())) == 1  # the job, which alone may


DELETED_FOLDER = """
import os, tempfile
from helpers import run

def where():
    try:
        return os.getcwd()
    except FileNotFoundError:
        return os.readlink("/proc/self/cwd")

folder = tempfile.mkdtemp()
os.chdir(folder)
os.rmdir(folder)
trial = run(where, ram="200 MB")
print(trial.outcome, trial.value == where(), folder in trial.value)
"""


@pytest.mark.skipif(
    not Path("/proc/self/cwd").exists(), reason="only Linux leads to a folder that is deleted"
)
def test_a_caller_whose_folder_was_deleted_gets_its_job_done():
    assert result_of(DELETED_FOLDER) == "finished True True\n"


SHORT_LIFE = """
import atexit, os
import helpers.jobs.trial
from helpers.jobs import worker

[supervisor] = worker._idle
os.kill(supervisor.process.pid, 19)  # a supervisor that hears nothing, as one does that imports TensorFlow
supervisor._force = lambda: print("waited in vain")
atexit.unregister(worker._close_all)
worker._close_all()
print(supervisor.process.returncode)
"""


def test_a_caller_that_never_ran_a_job_leaves_without_waiting_for_the_warm_process():
    assert result_of(SHORT_LIFE) == "-9\n"
