"""What several tests share: the check that a job leaves nothing behind, and a folder for data."""

import os
import signal
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from helpers.watching import cgroups, names, shared_memory

for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    # a shell that starts the tests in the background has them ignore these, and so whatever they start would
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

OWNERS = {str(os.getpid())}
"""This process and every worker that it ever had: what bears their number is ours to remove."""


def leftovers():
    """Everything that a job of this process could leave: processes, groups, temporary files, shared memory."""
    workers = psutil.Process().children()
    OWNERS.update(str(worker.pid) for worker in workers)
    files = Path(tempfile.gettempdir()).glob(names.PATTERN)
    kept = [
        folder
        for folder in [*cgroups.groups(), *files]
        if folder.name.removeprefix(names.PREFIX).split("-")[1] in OWNERS
    ]
    return {
        "processes": {child.pid for worker in workers for child in worker.children(recursive=True)},
        "groups and files": {str(folder) for folder in kept},
        "shared memory": set(shared_memory.listing()),
        "descriptors": len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0,
    }


@pytest.fixture
def nothing_left():
    """The test may do what it likes to jobs; afterwards the machine is as it was before."""
    from helpers import run

    run(int, label="warm up")
    before = leftovers()
    yield
    for _ in range(100):
        after = leftovers()
        if after == before:
            break
        time.sleep(0.02)
    assert after == before


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder that stands in for data/."""
    monkeypatch.setenv("OOM_DATA", str(tmp_path))
    return tmp_path
