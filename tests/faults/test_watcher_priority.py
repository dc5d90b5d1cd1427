"""A watchdog is woken first where the system lets it, and the job does not inherit that."""

import os

import pytest

from helpers import run
from helpers.watching.priority import ahead_of_others


def may_hurry():
    with ahead_of_others():
        return os.getpriority(os.PRIO_PROCESS, 0) < 0


def priorities():
    watcher = os.getppid()
    child = os.fork()
    if child == 0:
        os._exit(100 + os.getpriority(os.PRIO_PROCESS, 0))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return os.getpriority(os.PRIO_PROCESS, watcher), os.getpriority(os.PRIO_PROCESS, 0), code - 100


def test_the_watchdog_hurries_and_its_job_does_not():
    if not may_hurry():
        pytest.skip("this system lets nobody hurry")
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    for _ in range(2):  # the second job is forked by a watcher that has hurried before
        watcher, *family = run(priorities, ram="300 MB", limiter="watchdog").value
        assert watcher < usual
        assert family == [usual, usual]


def test_a_priority_that_is_refused_changes_nothing(monkeypatch):
    def refuse(*arguments):
        raise PermissionError

    before = os.getpriority(os.PRIO_PROCESS, 0)
    monkeypatch.setattr(os, "setpriority", refuse)
    with ahead_of_others():
        assert os.getpriority(os.PRIO_PROCESS, 0) == before
