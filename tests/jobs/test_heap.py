"""A job that frees many blocks keeps their pages in its heap, until they are handed back."""

import platform
from unittest.mock import Mock

import pytest

from helpers import run
from helpers.jobs.heap import give_back

MB = 10**6
GLIBC = platform.libc_ver()[0] == "glibc"


def give_back_after_freeing():
    """Free every second of many blocks that are too small to be handed back one by one."""
    import psutil

    give_back()
    blocks = [b"x" * (100_000 + number) for number in range(1000)]
    del blocks[::2]
    before = psutil.Process().memory_info().rss
    gave = give_back()
    return gave, before - psutil.Process().memory_info().rss


@pytest.mark.skipif(not GLIBC, reason="this is about glibc's malloc")
def test_free_pages_in_the_heap_can_be_handed_back():
    gave, difference = run(give_back_after_freeing, ram="300 MB").value
    assert gave
    assert difference == pytest.approx(50 * MB, rel=0.2)


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", Mock(side_effect=OSError("cannot open shared object file")))
    assert give_back() is False
