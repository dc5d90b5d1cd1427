"""System calls that old kernels lack and strict containers refuse: jobs run all the same, with what is left."""

import errno as errors
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import seccomp

HERE = Path(__file__).parents[2]
FILTER = HERE / "tests" / "support" / "seccomp.py"
CALLS = tuple(seccomp.NUMBERS["x86_64"])
EVERY_WAY = [*(("EPERM", (call,)) for call in CALLS), ("EPERM", CALLS), ("ENOSYS", CALLS)]
PROGRAM = """
import json, os, sys
from helpers import run

def fill():
    blocks = []
    for number in range(100):
        blocks.append(b"x" * (5_000_000 + number))

def fail():
    raise KeyError("reason")

def fork_and_fill():
    if os.fork() == 0:
        fill()
        os._exit(0)
    os.wait()

for limiter in (None, "watchdog"):
    jobs = ((sum, ([1, 2],)), (fill, ()), (fail, ()), (fork_and_fill, ()))
    trials = [run(job, *arguments, ram="150 MB", limiter=limiter, timeout=100) for job, arguments in jobs]
    print(json.dumps([(trial.outcome, trial.exit_code, trial.value, trial.verdict) for trial in trials]))
"""
KILLED = ["killed", 137, None, "Killed: it went over its RAM budget of 150 MB (SIGKILL, exit code 137)."]
EXPECTED = [
    ["finished", 0, 3, "Finished within its budget of 150 MB of RAM."],
    KILLED,
    ["error", 1, None, "Failed: KeyError: 'reason'"],
    KILLED,
]


def name(way):
    error, calls = way
    return f"{error}-{calls[0] if len(calls) == 1 else 'all'}"


@pytest.fixture(autouse=True)
def _a_system_that_takes_a_filter():
    if not seccomp.is_known() or under("EPERM", ["tgkill"], sys.executable, "-c", "").returncode:
        pytest.skip("this system takes no seccomp filter")


def under(error, calls, *command, folder=HERE):
    filtered = [sys.executable, FILTER, error, ",".join(calls), "--", *command]
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    return subprocess.run(filtered, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(("error", "calls"), EVERY_WAY, ids=map(name, EVERY_WAY))
def test_jobs_run_without_these_calls(error, calls):
    ended = under(error, calls, sys.executable, "-c", PROGRAM)
    assert ended.returncode == 0, ended.stderr
    found = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("[[")]
    assert found == [EXPECTED, EXPECTED]


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
def test_the_doctor_watches_a_command_without_these_calls(error, tmp_path):
    Path(tmp_path, "fill.py").write_text("blocks = [b'x' * (5_000_000 + number) for number in range(100)]\n")
    doctor = [sys.executable, "-m", "helpers", "doctor", "--ram", "150 MB", "--", sys.executable, "fill.py"]
    ended = under(error, CALLS, *doctor, folder=tmp_path)
    assert ended.returncode == 137, ended.stderr
    assert "container-limit" in ended.stdout + ended.stderr


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
def test_the_filter_does_refuse(error):
    program = (
        "import ctypes; print(ctypes.CDLL(None, use_errno=True).memfd_create(b'', 0), ctypes.get_errno())"
    )
    ended = under(error, ["memfd_create"], sys.executable, "-c", program)
    assert ended.stdout.split() == ["-1", str(getattr(errors, error))]
