"""A job that frees large blocks keeps them in its heap, unless the C library is told to give them back."""

import platform
from unittest.mock import Mock

import numpy as np
import pytest

from helpers import run
from helpers.course.nb04.heap import return_freed_memory

MB = 10**6
GLIBC = platform.libc_ver()[0] == "glibc"


def free_most(give_back):
    """Fill twenty blocks of 8 MB, then let go of all but the last, which keeps the heap from shrinking."""
    import psutil

    asked = return_freed_memory() if give_back else None
    # What is free in the heap, where the process compiled what it imports, must not take any of them.
    filling = [bytes(100_000) for _ in range(600)]
    before = psutil.Process().memory_info().rss
    np.ones(30 * MB, "uint8")  # glibc now keeps blocks of up to 30 MB
    blocks = [np.ones(8 * MB, "uint8") for _ in range(20)]
    last = blocks.pop()
    del blocks
    return asked, psutil.Process().memory_info().rss - before, last.size + len(filling)


@pytest.mark.skipif(not GLIBC, reason="this is about glibc's malloc")
def test_freed_blocks_stay_in_the_heap_unless_it_is_told_to_give_them_back():
    _, kept, _ = run(free_most, give_back=False, ram="400 MB").value
    asked, left, _ = run(free_most, give_back=True, ram="400 MB").value
    assert asked
    assert kept == pytest.approx(160 * MB, rel=0.1)
    assert left == pytest.approx(8 * MB, rel=0.5)


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", Mock(side_effect=OSError("cannot open shared object file")))
    assert return_freed_memory() is False


def test_a_size_without_a_unit_is_refused():
    with pytest.raises(ValueError, match="from_size"):
        return_freed_memory("5")
