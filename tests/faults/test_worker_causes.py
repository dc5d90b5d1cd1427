"""A worker that cannot start says what kept it from starting."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
JOB = "from helpers import run; print(run(sum, [1, 2], ram='100 MB').verdict)"


def first_job(*before, **environment):
    return subprocess.run(
        [*before, sys.executable, "-c", JOB],
        cwd=HERE,
        env={**os.environ, "PYTHONPATH": str(HERE), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_safe_path_makes_no_difference():
    assert first_job(PYTHONSAFEPATH="1").stdout == "Finished within its budget of 100 MB of RAM.\n"


def test_too_little_room_for_addresses_is_named():
    result = first_job("sh", "-c", 'ulimit -v 1500000; exec "$@"', "sh")
    if not result.stderr:
        pytest.skip("this much is enough here")
    assert "could not start: it " in result.stderr
    assert "ulimit -v allows no more than 1.54 GB" in result.stderr


def test_a_temporary_folder_that_cannot_be_written_is_named():
    mounts = " && ".join(f"mount -t tmpfs -o ro none {folder}" for folder in ("/tmp", "/var/tmp"))
    here = f"mount -o bind {HERE} {HERE} && mount -o remount,ro,bind {HERE}"
    wrap = ["unshare", "-m", "sh", "-c", f'{mounts} && {here} && cd {HERE} && exec "$@"', "sh"]
    if subprocess.run([*wrap, "true"], capture_output=True).returncode:
        pytest.skip("this system lets us mount nothing")
    assert "No usable temporary directory found in" in first_job(*wrap, TMPDIR="/tmp").stderr
