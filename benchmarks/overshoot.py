"""How far a job shoots past its budget before the watchdog has killed it: quiet, and with every core busy.

`python -m benchmarks.overshoot 25` runs each job so many times. A kernel's own limit (cgroups) is not overshot.
"""

import os
import statistics
import subprocess
import sys
from contextlib import contextmanager

from tqdm import tqdm

from benchmarks import table
from helpers import run

BUDGET = 150_000_000
PIECE = 10_000_000
TURNS = 10


def fill():
    """Memory as fast as Python can take it."""
    import numpy

    return len([numpy.ones(PIECE, numpy.uint8) for _ in range(100)])


def fill_in_an_orphan():
    """The same in a grandchild whose parent has gone."""
    import time

    if os.fork() == 0:
        if os.fork() == 0:
            fill()
        os._exit(0)
    time.sleep(30)


@contextmanager
def busy_cores(count):
    """So many endless loops beside it."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def peaks(job, turns):
    """Peaks as shares of the budget."""
    trials = [
        run(job, ram=BUDGET, limiter="watchdog", timeout=60) for _ in tqdm(range(turns), desc=job.__name__)
    ]
    alive = [trial.verdict for trial in trials if trial.outcome != "killed"]
    if alive:
        raise RuntimeError(f"it was not killed: {alive[0]}")
    return [trial.peak_ram / BUDGET for trial in trials]


def report(turns=TURNS):
    """A Markdown table: the peak of a killed job as a share of its budget."""
    rows = []
    for cores in (0, os.cpu_count() or 1):
        with busy_cores(cores):
            for job in (fill, fill_in_an_orphan):
                found = sorted(peaks(job, turns))
                middle = statistics.median(found)
                rows.append([job.__name__, cores, turns, f"{middle:.2f}", f"{found[-1]:.2f}"])
    return table(["job", "busy loops", "runs", "median", "highest"], rows)


if __name__ == "__main__":
    print(report(*map(int, sys.argv[1:])))
