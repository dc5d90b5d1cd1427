"""Growth asks for its line: in the thread that touches memory, and not more often than it is worth."""

import mmap
import os
import signal
import sys
import threading

import pytest

from helpers.watching import page_faults
from helpers.watching.page_faults import COARSE, FINE, SPARING, PageFaults

pytestmark = pytest.mark.skipif(not page_faults.are_counted(), reason="page faults cannot be counted here")
MB = 2**20


@pytest.fixture
def faults():
    counted = PageFaults(os.getpid(), signal.SIGURG)
    yield counted
    counted.close()


def touch(pages):
    with mmap.mmap(-1, pages * page_faults.PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            block.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(pages):
            block[page * page_faults.PAGE] = 1


def test_growth_sends_one_signal_after_so_many_faults(faults):
    heard = []
    before = signal.signal(signal.SIGURG, lambda number, frame: heard.append(number))
    try:
        faults.arm(200)
        touch(100)
        assert heard == []
        touch(2000)
        assert heard == [signal.SIGURG]
    finally:
        signal.signal(signal.SIGURG, before)


def test_the_growth_of_another_thread_is_not_the_main_threads(faults):
    heard = []
    before = signal.signal(signal.SIGURG, lambda number, frame: heard.append(number))
    try:
        faults.arm(1000)
        thread = threading.Thread(target=touch, args=(5000,))
        thread.start()
        thread.join()
        assert heard == []
    finally:
        signal.signal(signal.SIGURG, before)


def test_who_grows_in_large_steps_is_heard_at_once_until_it_is_often(faults):
    found = [faults.plan((turn + 1) * 2 * MB) for turn in range(200)]
    assert found[:40] == [FINE] * 40
    assert COARSE in found
    assert faults.is_loud


def test_who_grows_in_small_steps_goes_on_quietly(faults):
    found = [faults.plan(turn * 4096) for turn in range(20)]
    assert found[-1] == SPARING
    assert not faults.is_loud
    faults.plan(100 * MB)
    assert faults.is_loud


def test_a_loop_that_takes_and_gives_back_the_same_is_heard_quietly_and_then_left_alone(faults):
    faults.plan(500 * MB)
    loud = 0
    found = []
    for turn in range(3000):
        found.append(faults.plan((100 + turn % 2 * 300) * MB))
        loud += faults.is_loud
    assert loud < 30
    assert found[100] == SPARING
    assert 0 in found


def test_a_descriptor_that_became_another_file_is_not_armed(faults, tmp_path):
    os.dup2(os.open(tmp_path / "own", os.O_CREAT | os.O_RDWR), faults.event)
    faults.arm(1)
    faults.close()
    os.fstat(faults.event)


def test_nothing_of_it_needs_this_package():
    """The doctor's hook takes both files into other people's programs."""
    for name in ("answering", "page_faults"):
        with open(os.path.join(os.path.dirname(page_faults.__file__), f"{name}.py")) as file:
            imports = [line for line in file if line.lstrip().startswith(("import ", "from "))]
        modules = {line.split()[1].split(".")[0] for line in imports} - {""}
        assert modules <= sys.stdlib_module_names, modules
