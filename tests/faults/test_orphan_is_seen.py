"""A process that a resting job starts is seen at the next reading, and not only when a full one is due."""

import os
import signal

import pytest

from helpers.watching import processes
from helpers.watching.limits import Watchdog
from helpers.watching.sampler import Sampler

pytestmark = pytest.mark.skipif(
    processes.newest_pid() is None, reason="this system tells nothing of new processes"
)


def rest_and_start_one(go, told):
    """A child that rests until it hears a word, then starts another and rests again."""
    child = os.fork()
    if child == 0:
        os.read(go, 1)
        grandchild = os.fork()
        if grandchild:
            os.write(told, f"{grandchild}\n".encode())
        while True:
            signal.pause()
    return child


def test_a_child_of_a_resting_job_is_seen_at_once():
    (go, word), (answer, told) = os.pipe(), os.pipe()
    job = rest_and_start_one(go, told)
    grandchild = None
    try:
        sampler = Sampler(job, Watchdog(job))
        sampler.limiter.arm(10**9)
        sampler.start()
        for _ in range(5):
            sampler.tick()
        sampler._full_at = float("inf")
        sampler._look_until = 0.0
        sampler.tick()
        sampler.tick()
        os.write(word, b"!")
        grandchild = int(os.read(answer, 20))
        sampler.tick()
        assert grandchild in sampler.family
    finally:
        for pid in filter(None, (grandchild, job)):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(job, 0)
        for end in (go, word, answer, told):
            os.close(end)
