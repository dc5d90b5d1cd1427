"""Files in /dev/shm: those of a job are counted and removed, those of everybody else are left alone."""

import multiprocessing
import os
import threading
import time
from multiprocessing import shared_memory

import pytest

from helpers import run
from helpers.watching import shared_memory as shared_files

pytestmark = pytest.mark.skipif(not shared_files.FOLDER.is_dir(), reason="this system has no /dev/shm")


def leave_a_segment(size):
    from multiprocessing import resource_tracker

    block = shared_memory.SharedMemory(create=True, size=size)
    resource_tracker.unregister(block._name, "shared_memory")
    block.buf[:] = b"x" * size
    time.sleep(0.2)
    return block.name


def test_a_segment_that_a_job_leaves_is_counted_and_removed():
    trial = run(leave_a_segment, 40_000_000, ram="300 MB")
    assert trial.peak_ram > 40_000_000
    assert not os.path.exists(f"/dev/shm/{trial.value}")


def remove_a_segment_again(size):
    block = shared_memory.SharedMemory(create=True, size=size)
    block.buf[:] = b"x" * size
    time.sleep(0.2)
    block.close()
    block.unlink()
    time.sleep(0.2)


@pytest.mark.usefixtures("nothing_left")
def test_a_segment_that_a_job_removes_itself_leaves_no_record_behind():
    assert run(remove_a_segment_again, 40_000_000, ram="300 MB").peak_ram > 40_000_000


def test_what_others_make_meanwhile_is_left_alone():
    context = multiprocessing.get_context("spawn")
    made = []

    def others():
        made.append(context.Semaphore())
        made.append(shared_memory.SharedMemory(create=True, size=30_000_000))
        made[1].buf[:] = b"x" * made[1].size
        with open("/dev/shm/oom-test-of-somebody-else", "wb") as file:
            file.write(b"x" * 30_000_000)

    timer = threading.Timer(0.3, others)
    timer.start()
    trial = run(time.sleep, 1, ram="300 MB")
    timer.join()
    try:
        assert trial.peak_ram < 20_000_000
        assert os.path.exists(f"/dev/shm/{made[1].name}")
        assert os.path.exists("/dev/shm/oom-test-of-somebody-else")
        assert made[0].acquire(timeout=1)
    finally:
        made[1].close()
        made[1].unlink()
        os.unlink("/dev/shm/oom-test-of-somebody-else")
