"""How fast a file gives its samples, in order and shuffled, cold and warm, and how many bytes it reads for that."""

import time
from dataclasses import dataclass

import psutil

from helpers.course import page_cache

SECONDS = 0.6
SECONDS_TO_BE_SEEN = 0.05
"""How long a file stays open after a pass, so that whoever watches the memory sees it mapped and knows whose it is."""


@dataclass(frozen=True)
class Speed:
    """Samples per second of one pass, and the bytes that the process asked the system for, per sample.

    Reading a memory map asks for nothing, so it counts no bytes.
    """

    samples_per_second: float
    bytes_per_sample: float | None


def reading_speeds(reader, path, *arguments, samples=3000, seconds=SECONDS):
    """Run a reader four times and return `{("sequential", "cold"): Speed, ...}`; a job for `run`.

    `reader(path, shuffled, *arguments)` is a generator of batches. A pass ends after so many samples, or with the batch
    in which `seconds` are over. Opening the file counts, the first imports do not. A cold pass starts with the file
    out of the page cache, a warm one with all of it there.
    """
    next(iter(reader(path, False, *arguments)))
    speeds = {}
    for order in ("sequential", "shuffled"):
        for cache, prepare in (("cold", page_cache.drop), ("warm", page_cache.fill)):
            prepare(path)
            batches = reader(path, order == "shuffled", *arguments)
            speeds[order, cache] = _one_pass(batches, samples, seconds)
    return speeds


def _one_pass(batches, samples, seconds):
    asked = bytes_asked_for()
    began, seen = time.perf_counter(), 0
    for batch in batches:
        seen += len(batch)
        if seen >= samples or time.perf_counter() - began > seconds:
            break
    took = time.perf_counter() - began
    read = None if asked is None else (bytes_asked_for() - asked) / seen
    time.sleep(SECONDS_TO_BE_SEEN)
    batches.close()  # a page that is still mapped cannot be dropped before the next pass
    return Speed(seen / took, read)


def bytes_asked_for():
    """All bytes that this process read so far, from disk or cache; None where the system does not count them."""
    process = psutil.Process()
    return process.io_counters().read_chars if hasattr(process, "io_counters") else None
