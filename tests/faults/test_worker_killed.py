"""A worker that is itself killed in the middle of a job: the caller gets a trial, nothing stays, the next run works."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from helpers import run
from helpers.jobs import worker
from helpers.watching import cgroups, names
from helpers.watching.limits import CgroupV1, CgroupV2, Watchdog

HERE = Path(__file__).parents[2]
LIMITERS = [limiter.name for limiter in (CgroupV2, CgroupV1, Watchdog) if limiter.check().works]
SECONDS_TO_HANG = 60


def wait_for(question, seconds=SECONDS_TO_HANG):
    deadline = time.monotonic() + seconds
    while not question():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def start_children(folder):
    """A child that was forked, one in a session of its own, and one that became another program."""
    started = []
    for begin in (int, os.setsid):
        child = os.fork()
        if child == 0:
            begin()
            time.sleep(300)
            os._exit(0)
        started.append(child)
    started.append(subprocess.Popen(["sleep", "300"], start_new_session=True).pid)
    Path(folder, "pids").write_text(" ".join(map(str, [os.getpid(), *started])))


def lose_the_watcher(folder, sign):
    from multiprocessing import resource_tracker, shared_memory

    print("so far so good", flush=True)
    start_children(folder)
    block = shared_memory.SharedMemory(create=True, size=30_000_000)
    resource_tracker.unregister(block._name, "shared_memory")
    block.buf[:] = bytes(block.size)
    Path(folder, "block").write_text(block.name)
    time.sleep(1)
    os.kill(os.getppid(), sign)
    time.sleep(300)


def left_in_system(supervisor):
    """Groups and folders whose names say that this supervisor made them."""
    import tempfile

    prefix = names.new_prefix(supervisor)
    files = [*cgroups.groups(), *Path(tempfile.gettempdir()).iterdir()]
    return [path.name for path in files if path.name.startswith(prefix)]


@pytest.mark.parametrize("limiter", LIMITERS)
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_watcher_is_told_and_everything_of_its_job_is_removed(sign, limiter, tmp_path):
    run(int)
    supervisor = worker._idle[0].process.pid
    trial = run(lose_the_watcher, tmp_path, sign, ram="300 MB", limiter=limiter, timeout=SECONDS_TO_HANG)
    assert (trial.outcome, trial.out_of_memory, trial.value) == ("error", False, None)
    assert (
        trial.verdict
        == f"Failed: the process that watched this job was ended by {sign.name}, and the job with it."
    )
    assert trial.log == "so far so good\n"
    assert trial.peak_ram > 20_000_000
    assert len(trial.samples) > 0
    pids = list(map(int, tmp_path.joinpath("pids").read_text().split()))
    wait_for(lambda: not any(map(is_running, pids)))  # who is killed may still be on the way out
    assert left_in_system(supervisor) == []
    assert not Path("/dev/shm", tmp_path.joinpath("block").read_text()).exists()
    after = run(sum, [1, 2], ram="200 MB", limiter=limiter)
    assert after.value == 3


BOTH_KILLED = """
import os, signal, sys, time
sys.path.insert(0, {tests!r})
import test_worker_killed as test
from helpers import run
from helpers.jobs import worker

def lose_both(folder, caller):
    test.start_children(folder)
    os.kill(caller, signal.SIGKILL)
    os.kill(os.getppid(), signal.SIGKILL)

run(lose_both, {folder!r}, os.getpid(), limiter={limiter!r})
"""


@pytest.mark.parametrize("limiter", LIMITERS)
def test_what_a_killed_caller_and_its_killed_watcher_left_is_swept_by_the_next_worker(limiter, tmp_path):
    program = BOTH_KILLED.format(tests=str(Path(__file__).parent), folder=str(tmp_path), limiter=limiter)
    first = subprocess.run(
        [sys.executable, "-c", program], cwd=HERE, capture_output=True, text=True, timeout=120
    )
    assert first.returncode == -signal.SIGKILL, first.stderr
    wait_for(tmp_path.joinpath("pids").exists)
    job, *children = map(int, tmp_path.joinpath("pids").read_text().split())
    wait_for(lambda: not is_running(job))
    second = subprocess.run(
        [sys.executable, "-c", "from helpers import run; print(run(int).outcome)"],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert second.stdout.split() == ["finished"], second.stderr
    assert [pid for pid in children if is_running(pid)] == []


def test_a_worker_that_is_killed_while_it_waits_for_work_is_replaced():
    run(int)
    waiting = worker._idle[0].process
    for sign in (signal.SIGTERM, signal.SIGKILL):
        waiting = worker._idle[0].process
        waiting.send_signal(sign)
        assert run(sum, [1, 2]).value == 3  # whether it was still seen alive or not
        assert worker._idle[0].process.pid != waiting.pid


def test_the_job_itself_is_ended_by_sigterm_as_any_program():
    trial = run(lambda: os.kill(os.getpid(), signal.SIGTERM), label="terminated")
    assert (trial.outcome, trial.exit_code) == ("error", 143)
