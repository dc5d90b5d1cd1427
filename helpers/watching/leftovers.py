"""What a watcher that was killed could not remove any more: processes, groups, folders, shared memory."""

import os
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from helpers import machine
from helpers.watching import cgroups, names, shared_memory
from helpers.watching.processes import HAS_PROC

SECONDS_TO_END = 10


def sweep():
    """Remove all of it, as far as it was made by watchers of this user that are gone."""
    end_processes()
    cgroups.sweep()
    with suppress(OSError):  # there may be no temporary folder at all
        for path in filter(names.owner_is_gone, Path(tempfile.gettempdir()).glob(names.PATTERN)):
            if path.name.endswith(shared_memory.RECORD):
                shared_memory.remove_recorded(path)
            else:
                shutil.rmtree(path, ignore_errors=True)


def end_processes(seconds=SECONDS_TO_END):
    """Jobs and their children bear the name of their watcher in their environment, whoever is their parent by now.
    They are stopped before they are killed, so that none can start another meanwhile."""
    deadline, ended = time.monotonic() + seconds, set()
    while ((found := _orphans()) or any(map(names.is_running, ended))) and time.monotonic() < deadline:
        for sign in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                with suppress(OSError):
                    os.kill(pid, sign)
        ended |= found  # on their way out they bear no name any more
        time.sleep(0.002)


def _orphans():
    members = [
        pid for group in cgroups.groups() if names.owner_is_gone(group) for pid in cgroups.members(group)
    ]
    return {*members, *(pid for pid in psutil.pids() if _has_lost_its_watcher(pid))}


def _has_lost_its_watcher(pid):
    mark = _mark_of(pid)
    return mark.startswith(names.PREFIX) and names.owner_is_gone(Path(mark))


def _mark_of(pid):
    try:
        if not HAS_PROC:
            return psutil.Process(pid).environ().get(machine.JOB_VARIABLE, "")
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (OSError, psutil.Error):  # gone, or somebody else's
        return ""
    key = f"{machine.JOB_VARIABLE}=".encode()
    return next((entry[len(key) :].decode() for entry in environment if entry.startswith(key)), "")
