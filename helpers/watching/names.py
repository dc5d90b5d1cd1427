"""Names of what a watcher makes outside itself, groups and folders: they tell who made it, so that it can be swept."""

import functools
import hashlib
import itertools
import os
import platform
from contextlib import suppress
from pathlib import Path

import psutil

PREFIX = "oom-on-purpose"
PATTERN = f"{PREFIX}-*-*-*"
_numbers = itertools.count()


def new_prefix(pid=None):
    """How the names begin of all that a process makes; this one, if none is named."""
    return f"{PREFIX}-{pid or os.getpid()}-{realm()}-"


def new_name():
    """A name for something that this process makes, a new one each time."""
    return f"{new_prefix()}{next(_numbers)}"


def owner_is_gone(path):
    """True if the process that made this died before it could remove it. What comes from another container or another
    machine that shares this folder is left alone: their numbers of processes say nothing here."""
    owner, where, *_ = [*path.name.removeprefix(f"{PREFIX}-").split("-"), ""]
    return where == realm() and owner.isdigit() and not is_running(int(owner))


def is_running(pid):
    """False also for a process that has ended and that nobody reaps, as in a container whose first process does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@functools.cache
def realm():
    """Where the number of a process means the same: one start of one machine, one container on it."""
    facts = [platform.node()]
    with suppress(OSError):
        facts = [Path("/proc/sys/kernel/random/boot_id").read_text(), os.readlink("/proc/self/ns/pid")]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
