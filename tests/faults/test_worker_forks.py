"""A fork of the caller that lives on does not keep the caller's worker, and has one of its own."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

HERE = Path(__file__).parents[2]
PROGRAM = """
import ctypes, os, sys, time
from helpers import run
from helpers.jobs import worker

run(int)
print(worker._idle[0].process.pid, flush=True)
if {fork} == 0:
    os.close(1)
    if {runs}:
        open({folder!r} + "/value", "w").write(str(run(sum, [1, 2]).value))
    time.sleep(120)
    os._exit(0)
os.kill(os.getpid(), 9)
"""


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for(question, seconds=60):
    deadline = time.monotonic() + seconds
    while not question():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("fork", "runs"),
    [("os.fork()", True), ("ctypes.CDLL(None).fork()", False)],
    ids=["python", "another library"],
)
def test_a_worker_ends_with_its_caller_though_a_fork_lives_on(fork, runs, tmp_path):
    program = PROGRAM.format(fork=fork, runs=runs, folder=str(tmp_path))
    caller = subprocess.Popen(
        [sys.executable, "-c", program], cwd=HERE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        supervisor = int(caller.stdout.readline())
        caller.wait(timeout=90)
        wait_for(lambda: not is_running(supervisor))
        if runs:
            wait_for(
                lambda: tmp_path.joinpath("value").exists() and tmp_path.joinpath("value").read_text() == "3"
            )
    finally:
        caller.stdout.close()
        for pid in [pid for pid in psutil.pids() if _session(pid) == caller.pid]:
            os.kill(pid, 9)


def _session(pid):
    try:
        return os.getsid(pid)
    except OSError:
        return None
