"""Growth asks for its line: in the thread that touches memory, and not more often than it is worth."""

import mmap
import os
import signal
import sys
import threading

import pytest

from helpers.watching import page_faults
from helpers.watching.page_faults import FEW, LARGEST, MANY, MANY_MORE, SPARING, PageFaults

pytestmark = pytest.mark.skipif(not page_faults.are_counted(), reason="page faults cannot be counted here")
MB = 2**20


@pytest.fixture
def faults():
    counted = PageFaults(os.getpid(), signal.SIGURG, signal.SIGWINCH)
    yield counted
    counted.close()


@pytest.fixture
def heard():
    """The signals that came."""
    found = []
    before = {
        number: signal.signal(number, lambda number, frame: found.append(number))
        for number in (signal.SIGURG, signal.SIGWINCH)
    }
    yield found
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def plan(faults, monkeypatch):
    """The plan for a level that was reached in pages of a size."""

    def planned(level, page=page_faults.PAGE, **options):
        touched[0] += max(1, abs(level - before[0]) // page)
        before[0] = level
        return faults.plan(level, **options)

    touched, before = [1000], [0]
    monkeypatch.setattr(page_faults, "pages_touched", lambda: touched[0])
    return planned


def touch(pages):
    with mmap.mmap(-1, pages * page_faults.PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            block.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(pages):
            block[page * page_faults.PAGE] = 1


def test_growth_sends_one_signal_of_each_kind_after_so_many_faults(faults, heard):
    faults.arm(200, 1000)
    touch(100)
    assert heard == []
    touch(400)
    assert heard == [signal.SIGURG]
    touch(5000)
    assert heard == [signal.SIGURG, signal.SIGWINCH]
    assert faults.stop_writing()


def test_whoever_has_stopped_the_writing_knows_whether_something_was_written(faults, heard):
    faults.arm(0, 1000)
    touch(500)
    assert not faults.stop_writing()
    touch(5000)
    assert not faults.stop_writing()
    assert heard == []
    faults.arm(0, 1000)
    touch(5000)
    assert faults.stop_writing()
    assert heard == [signal.SIGWINCH]


def test_what_is_armed_anew_counts_from_there_and_comes_once(faults, heard):
    for _ in range(20):
        faults.arm(0, 1000)
        touch(200)
    assert heard == []
    touch(5000)
    assert heard == [signal.SIGWINCH]
    faults.arm(0, 1000)
    faults.arm(0, 0)
    touch(5000)
    assert heard == [signal.SIGWINCH]
    faults.arm(0, 2000)
    touch(5000)
    assert heard == [signal.SIGWINCH] * 2


def test_the_growth_of_another_thread_is_not_the_main_threads(faults, heard):
    faults.arm(1000, 2000)
    thread = threading.Thread(target=touch, args=(5000,))
    thread.start()
    thread.join()
    assert heard == []


def test_growth_asks_at_once_until_it_is_very_often(plan, monkeypatch):
    now, level = [1.0], [0]
    monkeypatch.setattr(page_faults.time, "monotonic", lambda: now[0])

    def plans(count, faults_per_second):
        found = [FEW]
        for _ in range(count):
            now[0] += found[-1] / faults_per_second
            level[0] += 2 * MB
            found.append(plan(level[0])[0])
        return found[1:]

    assert set(plans(900, 24_000)) == {FEW}
    assert 30 < max(plans(3000, 24_000)) < 50  # so that the answers take a few per cent of the time
    assert max(plans(3000, 10_000_000)) == LARGEST
    assert set(plans(100, 1000)[1:]) <= {FEW, SPARING}


def test_a_line_is_written_in_the_midst_of_a_call_unless_that_comes_very_often(plan):
    found = [plan((turn + 1) * MB, has_written=True)[1] for turn in range(300)]
    assert found[:90] == [MANY] * 90
    assert found[-1] == MANY_MORE


def test_a_loop_that_takes_and_gives_back_the_same_is_heard_quietly_and_then_left_alone(plan):
    plan(500 * MB)
    found = [plan((100 + turn % 2 * 300) * MB) for turn in range(3000)]
    assert found[:20] == [(FEW, MANY)] * 20
    assert found[100] == (FEW, 0)
    assert (0, 0) in found


def test_where_pages_are_huge_each_of_them_asks(plan):
    """Eight of them would be 16 MB that came without a word."""
    assert plan(100 * MB)[0] == FEW
    assert plan(120 * MB, page=2 * MB)[0] == 1
    assert plan(110 * MB, page=2 * MB)[0] == 1  # what has shrunk says nothing of it
    assert plan(140 * MB)[0] == FEW


def test_a_descriptor_that_became_another_file_is_noticed_and_not_closed(faults, tmp_path):
    assert faults.is_intact()
    descriptor = faults._few.descriptor
    os.dup2(os.open(tmp_path / "own", os.O_CREAT | os.O_RDWR), descriptor)
    assert not faults.is_intact()
    faults.close()
    os.fstat(descriptor)


def test_nothing_of_it_needs_this_package():
    """The doctor's hook takes these files into other people's programs."""
    for name in ("answering", "own_lines", "own_memory", "own_threads", "page_faults", "signal_stack"):
        with open(os.path.join(os.path.dirname(page_faults.__file__), f"{name}.py")) as file:
            imports = [line for line in file if line.lstrip().startswith(("import ", "from "))]
        modules = {line.split()[1].split(".")[0] for line in imports} - {""}
        assert modules <= sys.stdlib_module_names, modules
