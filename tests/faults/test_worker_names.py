"""Two containers that share a folder leave each other's files alone; what dead workers of this one left is removed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import run
from helpers.watching import names

HERE = Path(__file__).parents[2]
IN_ITS_OWN_NUMBERS = ["unshare", "--pid", "--fork", "--mount-proc"]
"""As a container is: a namespace in which the processes are numbered anew."""
FIRST_JOB = "from helpers import run; print(run(int, ram='100 MB').outcome)"


def can_unshare():
    try:
        return subprocess.run([*IN_ITS_OWN_NUMBERS, "true"], capture_output=True, timeout=20).returncode == 0
    except OSError:
        return False


def first_job(folder, *before):
    """The first run of a new caller, whose worker sweeps."""
    result = subprocess.run(
        [*before, sys.executable, "-c", FIRST_JOB],
        cwd=HERE,
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.stdout.split() == ["finished"], result.stderr


def ended_process():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_a_folder_of_a_dead_worker_is_swept(tmp_path):
    left = tmp_path / f"{names.new_prefix(ended_process())}0"
    left.mkdir()
    first_job(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_another_container_is_left_alone(tmp_path):
    if not can_unshare():
        pytest.skip("this system lets us make no namespace")
    theirs = Path(run(lambda: os.environ["TMPDIR"]).value).name
    running = tmp_path / theirs.replace(
        theirs.split("-")[3], "999999", 1
    )  # a number that no container reaches
    running.mkdir()
    first_job(tmp_path, *IN_ITS_OWN_NUMBERS)
    assert list(tmp_path.iterdir()) == [running]
