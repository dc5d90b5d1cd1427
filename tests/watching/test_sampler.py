"""The peak between two readings: memory that came and went counts, a file that was mapped and left does not."""

import multiprocessing
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from helpers.watching.limits import Limiter
from helpers.watching.sampler import Sampler

MB = 1_000_000
SIZE = 60 * MB
OBEDIENT = """
import mmap, sys
import numpy as np
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""
ARRAY = f"block = np.ones({SIZE}, np.uint8); del block"
SMALL_PAGES = (
    f"block = mmap.mmap(-1, {SIZE}, flags=mmap.MAP_PRIVATE); block[::4096] = bytes({-(-SIZE // 4096)})"
)
MAPPED = "mapped = np.load(sys.argv[1], mmap_mode='r'); total = int(mapped[::4096].sum()); del mapped"


@contextmanager
def process(*arguments):
    """A process that does what it is told, line by line, and ends when nothing more is said."""
    command = [sys.executable, "-c", OBEDIENT, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        child.stdout.readline()
        child.stdin.reconfigure(line_buffering=True)

        def do(line):
            child.stdin.write(line + "\n")
            assert child.stdout.readline() == "done\n"

        child.do = do
        yield child


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "ones.npy", np.ones(SIZE, np.uint8))
    return tmp_path / "ones.npy"


def peak_of(line, *arguments):
    """As a supervisor watches: from a process whose only child is the one that it watches."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as watcher:
        return watcher.submit(watch, line, *arguments).result()


def watch(line, *arguments):
    with process(*arguments) as child:
        child.do("np.ones(10)[::2].sum()")  # whatever numpy sets up once
        sampler = Sampler(child.pid, Limiter(child.pid))
        sampler.start()
        child.do(line)  # begins and ends between two readings
        sampler.tick()
    sampler.finish()
    return sampler.peak


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="other systems do not tell the highest point"
)
@pytest.mark.parametrize("line", [ARRAY, SMALL_PAGES + "; del block"], ids=["huge pages", "small pages"])
def test_memory_that_came_and_went_between_two_readings_is_in_the_peak(line):
    assert peak_of(line) == pytest.approx(SIZE, rel=0.02, abs=4 * MB)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not tell files apart")
def test_a_file_that_was_mapped_and_left_between_two_readings_is_not(file):
    assert peak_of(MAPPED, file) < SIZE / 4
    assert peak_of(f"{ARRAY}; {MAPPED}", file) == pytest.approx(SIZE, rel=0.1, abs=4 * MB)
