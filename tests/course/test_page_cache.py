"""The page cache: a file that was dropped comes from the disk again, and a touched map is resident but nobody's own."""

import os

import numpy as np
import psutil
import pytest

from helpers import run
from helpers.course import page_cache

MB = 10**6


@pytest.fixture
def array(tmp_path):
    np.save(tmp_path / "array.npy", np.ones(30 * MB, "uint8"))
    return tmp_path / "array.npy"


def test_a_dropped_file_comes_from_the_disk_again(array):
    def read_from_disk():
        before = psutil.Process().io_counters().read_bytes
        array.read_bytes()
        return psutil.Process().io_counters().read_bytes - before

    if not hasattr(psutil.Process(), "io_counters"):
        pytest.skip("this system does not count what is read from disk")
    page_cache.drop(array.parent)
    cold = read_from_disk()
    if cold == 0:
        pytest.skip("this file system lies in memory, or keeps a cache of its own")
    assert cold >= array.stat().st_size * 0.9
    page_cache.fill(array.parent)
    assert read_from_disk() == 0


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="needs posix_fadvise")
def test_the_system_is_asked_to_drop_a_file_and_need_not_be_able_to(array, monkeypatch):
    asked = []
    monkeypatch.setattr(os, "posix_fadvise", lambda *arguments: asked.append(arguments[1:]))
    page_cache.drop(array)
    assert asked == [(0, 0, os.POSIX_FADV_DONTNEED)]
    monkeypatch.delattr(os, "posix_fadvise")
    page_cache.drop(array)


def test_a_touched_map_is_resident_and_not_the_jobs_own(array):
    def touch(path):
        images = np.load(path, mmap_mode="r")
        before = page_cache.memory_now()
        images.max()
        now = page_cache.memory_now()
        return {kind: now[kind] - before[kind] for kind in now}

    added = run(touch, array).value
    assert 29 * MB < added["resident"] < 35 * MB  # some of numpy's own code is touched for the first time
    assert added["own"] < 2 * MB
