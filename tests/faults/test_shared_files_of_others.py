"""Files of others in /dev/shm that a job reads, maps or writes stay there and are not its memory; its own go."""

import mmap
import os
import threading
import time
from multiprocessing import resource_tracker, shared_memory
from pathlib import Path

import numpy as np
import pytest

from helpers import run
from helpers.watching import openings
from helpers.watching import shared_memory as shared_files

pytestmark = pytest.mark.skipif(not shared_files.FOLDER.is_dir(), reason="this system has no /dev/shm")

SIZE, PIECE = 60_000_000, 1_000_000
MORE = 25_000_000
"""What a job here takes beside the file, with the process that Python starts to keep track of segments."""
NAME = "oom-test-of-shared-files"
PATH = shared_files.FOLDER / NAME
SECONDS = 60


def wait_for(path):
    deadline = time.monotonic() + SECONDS
    while not Path(path).exists():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def grow():
    """Memory that moves is looked at closely."""
    for _ in range(40):
        block = np.ones(3_000_000, np.uint8)
        time.sleep(0.01)
    return len(block)


def read():
    with open(PATH, "rb") as file:
        found = len(file.read(1_000_000))
        grow()
    return found


def map_for_reading():
    with open(PATH, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as block:
        found = sum(block[start] for start in range(0, SIZE, 4096))
        grow()
    return found


def attach():
    block = shared_memory.SharedMemory(name=NAME)
    resource_tracker.unregister(block._name, "shared_memory")
    found = int(np.frombuffer(block.buf, np.uint8).sum(dtype=np.int64))
    grow()
    return found


def write():
    with open(PATH, "r+b") as file:
        file.write(b"y" * 1_000_000)
        grow()
    return True


def use_what_comes(use, folder):
    Path(folder, "started").touch()
    wait_for(Path(folder, "made"))
    return use()


@pytest.fixture
def made_by_somebody_else(tmp_path):
    """A function that makes the file, at once or as soon as the job has started; it is removed in the end."""

    def make():
        with open(PATH, "wb") as file:
            file.write(b"x" * SIZE)
        (tmp_path / "made").touch()

    def make_later():
        wait_for(tmp_path / "started")
        make()

    def begin(before):
        if before:
            return make()
        return threading.Thread(target=make_later).start()

    yield begin
    PATH.unlink()


@pytest.mark.parametrize("use", [read, map_for_reading, attach, write])
@pytest.mark.parametrize("before", [True, False], ids=["made before the job", "made while it ran"])
def test_a_file_of_somebody_else_stays_and_is_not_the_jobs_memory(
    made_by_somebody_else, use, before, tmp_path
):
    made_by_somebody_else(before)
    trial = run(use_what_comes, use, tmp_path, ram="300 MB", limiter="watchdog", timeout=100)
    assert trial.outcome == "finished", trial.log
    assert trial.value
    assert PATH.stat().st_size == SIZE
    assert trial.peak_ram < MORE


def fill(file):
    for _ in range(SIZE // PIECE):
        file.write(b"x" * PIECE)


def leave_a_segment():
    block = shared_memory.SharedMemory(create=True, size=SIZE, name=NAME)
    resource_tracker.unregister(block._name, "shared_memory")
    for start in range(0, SIZE, PIECE):
        block.buf[start : start + PIECE] = b"x" * PIECE
    grow()


def leave_a_file():
    with open(PATH, "wb") as file:
        fill(file)
        grow()


def leave_a_mapped_array():
    block = np.memmap(PATH, np.uint8, "w+", shape=(SIZE,))
    block[:] = 1
    grow()


def leave_a_renamed_file():
    with open(f"{PATH}.new", "wb") as file:
        fill(file)
        grow()
    os.rename(f"{PATH}.new", PATH)
    grow()


@pytest.mark.parametrize("leave", [leave_a_segment, leave_a_file, leave_a_mapped_array, leave_a_renamed_file])
def test_what_a_job_leaves_is_its_memory_and_goes_with_it(leave):
    trial = run(leave, ram="300 MB", limiter="watchdog")
    assert trial.outcome == "finished", trial.log
    assert not PATH.exists()
    assert SIZE <= trial.peak_ram < SIZE + MORE


def test_a_system_that_tells_nothing_of_files_costs_no_file(monkeypatch, tmp_path):
    monkeypatch.setattr(shared_files, "FOLDER", tmp_path)
    monkeypatch.setattr(openings.ctypes, "CDLL", lambda name: object())
    files = shared_files.SharedFiles()
    with open(tmp_path / "file", "wb") as file:
        file.write(b"x" * 10_000)
        file.flush()
        assert files.size([os.getpid()]) == 0
    files.remove()
    assert (tmp_path / "file").exists()
