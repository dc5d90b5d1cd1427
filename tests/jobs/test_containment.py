"""Whatever a job does, the caller survives, learns what happened, and nothing of the job is left."""

import ctypes
import mmap
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import shared_memory
from pathlib import Path

import numpy as np
import pytest

from helpers import run
from helpers.watching.limits import CgroupV1, CgroupV2, Watchdog

pytestmark = pytest.mark.usefixtures("nothing_left")

BUDGET = "150 MB"
PIECE = 10_000_000
HERE = Path(__file__).parents[2]

MOST = {"cgroup v2": 1.3, "cgroup v1": 1.3, "watchdog": 2}
"""Of the budget. The watchdog reads and then kills, and how late it is depends on what else the machine does: the
README says what was measured (`python -m benchmarks.overshoot`)."""
LIMITERS = [
    pytest.param(
        limiter.name,
        marks=pytest.mark.skipif(
            not limiter.check().works, reason=f"{limiter.name}: {limiter.check().reason}"
        ),
    )
    for limiter in (CgroupV2, CgroupV1, Watchdog)
]


def fill_numpy():
    return sum(int(array[0]) for array in [np.ones(PIECE, np.uint8) for _ in range(100)])


def fill_tensorflow():
    import tensorflow as tf

    return len([tf.ones(PIECE // 4) for _ in range(100)])


def fill_grandchild():
    child = multiprocessing.get_context("fork").Process(target=fill_numpy)
    child.start()
    child.join()


def fill_separate_program():
    program = f"blocks = [bytearray({PIECE}) for _ in range(100)]; import time; time.sleep(30)"
    subprocess.run([sys.executable, "-c", program], check=True)


def fill_orphan():
    """A grandchild whose parent has gone, as a daemon makes itself."""
    if os.fork() == 0:
        if os.fork() == 0:
            fill_numpy()
        os._exit(0)
    time.sleep(30)


def fill_thread():
    thread = threading.Thread(target=fill_numpy)
    thread.start()
    thread.join()


def fill_private_map():
    block = mmap.mmap(-1, 100 * PIECE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for start in range(0, 100 * PIECE, PIECE):
        block[start : start + PIECE] = b"x" * PIECE


def fill_shared_map():
    block = mmap.mmap(-1, 100 * PIECE)
    for start in range(0, 100 * PIECE, PIECE):
        block[start : start + PIECE] = b"x" * PIECE


def fill_shared_memory():
    block = shared_memory.SharedMemory(create=True, size=100 * PIECE)
    for start in range(0, 100 * PIECE, PIECE):
        block.buf[start : start + PIECE] = b"x" * PIECE


def fill_file_in_shared_memory():
    with open("/dev/shm/oom-on-purpose-test", "wb") as file:
        for _ in range(100):
            file.write(b"x" * PIECE)
            file.flush()
    time.sleep(30)


@pytest.mark.parametrize("limiter", LIMITERS)
@pytest.mark.parametrize(
    "job",
    [
        fill_numpy,
        fill_tensorflow,
        fill_grandchild,
        fill_separate_program,
        fill_orphan,
        fill_thread,
        fill_private_map,
        fill_shared_map,
        fill_shared_memory,
        fill_file_in_shared_memory,
    ],
)
def test_a_bomb_is_killed_at_its_budget(job, limiter):
    trial = run(job, ram=BUDGET, limiter=limiter, timeout=60)
    assert (trial.outcome, trial.exit_code) == ("killed", 137), trial.log
    assert trial.limiter == limiter
    assert 0.85 * trial.ram_budget < trial.peak_ram < MOST[limiter] * trial.ram_budget
    assert trial.verdict == "Killed: it went over its RAM budget of 150 MB (SIGKILL, exit code 137)."


def spawn_storm(count):
    for _ in range(count):
        if os.fork() == 0:
            time.sleep(60)
    return len(os.listdir(f"/proc/{os.getpid()}/task"))


@pytest.mark.parametrize("limiter", LIMITERS)
def test_a_storm_of_fifty_children_ends_with_its_job_and_costs_little(limiter):
    trial = run(spawn_storm, 50, ram="400 MB", limiter=limiter)
    assert trial.outcome == "finished", trial.verdict
    assert trial.peak_ram < 0.5 * trial.ram_budget


def wait_for_the_storm():
    spawn_storm(50)
    time.sleep(60)


def test_a_storm_is_ended_by_the_timeout():
    assert run(wait_for_the_storm, ram="400 MB", timeout=2).outcome == "timeout"


def loop_forever():
    while True:
        pass


def test_an_endless_loop_is_stopped():
    trial = run(loop_forever, timeout=0.5)
    assert (trial.outcome, trial.verdict) == ("timeout", "Stopped: it had not finished after 0.5 s.")


@pytest.mark.parametrize(
    ("job", "exit_code", "words"),
    [
        (lambda: os._exit(7), 7, "exit code 7 before it returned a result"),
        (lambda: os._exit(0), 0, "exit code 0 before it returned a result"),
        (lambda: sys.exit(3), 3, "SystemExit: 3"),
        (os.abort, 134, "SIGABRT"),
        (lambda: ctypes.string_at(0), 139, "SIGSEGV"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), 137, "SIGKILL (exit code 137), not by its budget"),
        (lambda: os.killpg(0, signal.SIGTERM), 143, "SIGTERM"),
        (lambda: os.closerange(0, 4096), 0, "exit code 0 before it returned a result"),
        (lambda: Path("/nowhere/at/all").read_text(), 1, "FileNotFoundError"),
    ],
)
def test_a_job_that_ends_badly_is_an_error_and_not_out_of_memory(job, exit_code, words):
    trial = run(job, ram=BUDGET, label="bad end")
    assert (trial.outcome, trial.exit_code, trial.out_of_memory) == ("error", exit_code, False)
    assert words in trial.verdict


def close_the_streams():
    os.close(1)
    os.close(2)
    print("nobody hears this")
    return "still here"


def test_a_job_may_close_its_streams():
    trial = run(close_the_streams)
    assert trial.outcome == "error"
    assert "OSError" in trial.verdict


def print_too_much():
    print("first line")
    for _ in range(1000):
        os.write(1, b"x" * 99_999 + b"\n")
    print("last line")


def test_a_job_may_print_a_hundred_megabytes(capsys):
    trial = run(print_too_much, ram=BUDGET)
    assert trial.outcome == "finished"
    assert len(trial.log) < 3_000_000
    assert trial.log.startswith("first line")
    assert trial.log.rstrip().endswith("last line")
    assert "bytes left out" in trial.log
    assert len(capsys.readouterr().out) < 2_000_000


def print_bytes_that_are_no_text():
    os.write(1, b"\xff\xfe broken \xc3\n")
    print("\ud800 lonely surrogate")
    return 1


def test_output_that_is_no_text_is_kept_as_well_as_it_can_be():
    trial = run(print_bytes_that_are_no_text)
    assert trial.outcome == "finished"
    assert "lonely surrogate" in trial.log


def raise_what_cannot_be_encoded():
    raise ValueError("\ud800 cannot be encoded")


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no text for this error")


def raise_what_cannot_be_told():
    raise Unspeakable


def test_an_exception_whose_message_cannot_be_encoded_is_told():
    assert "ValueError" in run(raise_what_cannot_be_encoded).verdict
    assert "Unspeakable" in run(raise_what_cannot_be_told).verdict


def test_a_result_that_cannot_be_sent_back_is_an_error_that_says_so():
    trial = run(lambda: (number for number in range(3)), label="generator")
    assert trial.outcome == "error"
    assert "its result (generator) cannot be sent back" in trial.verdict


def test_a_result_that_is_too_large_is_an_error_that_says_so():
    trial = run(lambda: np.zeros(60_000_000, np.uint8), label="large")
    assert trial.outcome == "error"
    assert "its result is 60 MB" in trial.verdict


def become_another_program():
    block = np.ones(20_000_000, np.uint8)
    os.execv(sys.executable, [sys.executable, "-c", "blocks = [b'x' * 1_000_000 for _ in range(50)]"])
    return block


def test_a_job_that_becomes_another_program_is_not_hurt_by_the_watching():
    trial = run(become_another_program, ram="300 MB")
    assert (trial.outcome, trial.exit_code) == ("error", 0)


def leave_a_temporary_file():
    import tempfile

    Path(tempfile.mkdtemp(), "left.txt").write_text("left behind")


def test_temporary_files_go_with_the_job():
    assert run(leave_a_temporary_file).outcome == "finished"


INTERRUPTED = """
import os, signal, sys, threading, time
from helpers import run

signal.signal(signal.SIGINT, signal.default_int_handler)  # what a background job of a shell has not

def sleep():
    if os.fork() == 0:
        time.sleep(60)
    time.sleep(60)

try:
    threading.Timer({delay}, os.kill, (os.getpid(), signal.SIGINT)).start()
    run(sleep, ram="150 MB")
except KeyboardInterrupt:
    print("interrupted")
print(run(int, ram="150 MB").outcome)
"""


@pytest.mark.parametrize("delay", [0.0, 0.3, 3, 9, 12])
def test_ctrl_c_at_any_moment_ends_the_job_and_leaves_the_caller_well(delay):
    program = INTERRUPTED.format(delay=delay)
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=HERE, capture_output=True, text=True, timeout=120
    )
    assert result.stdout.split() == ["interrupted", "finished"], result.stderr


def test_a_caller_that_ignores_ctrl_c_goes_on_ignoring_it():
    program = """
import os, signal, threading, time
from helpers import run

signal.signal(signal.SIGINT, signal.SIG_IGN)
run(int)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
print(run(time.sleep, 1).outcome)
"""
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=HERE, capture_output=True, text=True, timeout=120
    )
    assert result.stdout.split() == ["finished"], result.stderr


def test_a_caller_that_is_killed_takes_its_jobs_along():
    program = "import time\nfrom helpers import run\nprint('go', flush=True)\nrun(time.sleep, 60)"
    caller = subprocess.Popen([sys.executable, "-c", program], cwd=HERE, stdout=subprocess.PIPE, text=True)
    caller.stdout.readline()
    worker = _wait_for(lambda: _children(caller.pid))[0]
    job = _wait_for(lambda: _children(worker))[0]
    caller.kill()
    caller.wait()
    _wait_for(lambda: not _alive(worker) and not _alive(job))


def _children(pid):
    from helpers.watching.processes import descendants

    return descendants(pid)


def _alive(pid):
    return Path("/proc", str(pid)).exists()


def _wait_for(question, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = question()
        if answer:
            return answer
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")
