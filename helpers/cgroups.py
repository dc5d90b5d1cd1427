"""Control groups of the Linux kernel, version 2 and 1: make one, put a process in, limit it, read it, remove it."""

import itertools
import os
import subprocess
import time
from pathlib import Path

import psutil

PREFIX = "oom-on-purpose"
_numbers = itertools.count()


class Group:
    """A group of its own beneath the first parent that lets us make one; OSError says why none does."""

    def __init__(self):
        reasons = []
        for parent in self.parents():
            try:
                self.folder = self._make(parent)
                return
            except OSError as error:
                reasons.append(error.strerror or str(error))
        raise OSError(f"no group can be made ({', '.join(dict.fromkeys(reasons)) or 'none is mounted'})")

    def _make(self, parent):
        self.hand_down(parent)
        folder = parent / f"{PREFIX}-{os.getpid()}-{next(_numbers)}"
        folder.mkdir()
        if not folder.joinpath(self.limit_file).exists():
            folder.rmdir()
            raise OSError("it has no memory controller")
        return folder

    def add(self, pid):
        self.write("cgroup.procs", pid)

    def try_out(self):
        """Move a process in; OSError if that is not allowed."""
        with subprocess.Popen(["sleep", "10"]) as process:
            try:
                self.add(process.pid)
            finally:
                process.kill()

    def charged(self):
        """Anonymous and shared memory of all its processes, in bytes; page cache is left out."""
        return sum(self.numbers("memory.stat").get(key, 0) for key in self.charged_keys)

    def remove(self):
        remove(self.folder)

    def write(self, name, value):
        self.folder.joinpath(name).write_text(str(value))

    def numbers(self, name):
        """The file as {key: number}."""
        pairs = (line.split() for line in self.folder.joinpath(name).read_text().splitlines())
        return {key: int(value) for key, value in pairs}


class GroupV2(Group):
    """In a delegated subtree, or anywhere as root."""

    limit_file = "memory.max"
    charged_keys = ("anon", "shmem")
    kernel_keys = ("kernel", "kernel_stack", "pagetables", "slab")

    @staticmethod
    def parents():
        mount = _mount_point("cgroup2")
        if mount is None:
            return []
        own = mount / _own_path("0::").lstrip("/")
        return [folder for folder in (own, *own.parents) if folder.is_relative_to(mount) and folder.is_dir()]

    @staticmethod
    def hand_down(parent):
        """A group can only limit memory when its parent hands the memory controller down."""
        if "memory" not in parent.joinpath("cgroup.controllers").read_text().split():
            raise OSError("it has no memory controller")
        handed_down = parent / "cgroup.subtree_control"
        if "memory" not in handed_down.read_text().split():
            handed_down.write_text("+memory")

    def start(self):
        """Kill all of the group at once, and never swap instead."""
        for name, value in (("memory.oom.group", 1), ("memory.swap.max", 0)):
            if self.folder.joinpath(name).exists():
                self.write(name, value)

    def limit(self, size):
        self.write(self.limit_file, size)

    def kernel(self):
        """What the kernel itself needs for these processes, page tables above all."""
        found = self.numbers("memory.stat")
        total, *parts = (found.get(key, 0) for key in self.kernel_keys)
        return total or sum(parts)

    def kills(self):
        return self.numbers("memory.events").get("oom_kill", 0)


class GroupV1(Group):
    """On older Linux and in some containers; needs root."""

    limit_file = "memory.limit_in_bytes"
    charged_keys = ("total_rss", "total_shmem")

    @staticmethod
    def parents():
        mount = _mount_point("cgroup", option="memory")
        if mount is None:
            return []
        own = mount / _own_path(":memory:").lstrip("/")
        return [folder for folder in (own, mount) if folder.is_dir()]

    @staticmethod
    def hand_down(parent):
        pass

    def start(self):
        self.write("memory.swappiness", 0)

    def limit(self, size):
        self.write(self.limit_file, size)

    def kernel(self):
        file = self.folder / "memory.kmem.usage_in_bytes"
        return int(file.read_text()) if file.exists() else 0

    def kills(self):
        return self.numbers("memory.oom_control").get("oom_kill", 0)


def groups():
    """The groups that any process on this machine made here, its number in their names."""
    parents = [*GroupV2.parents(), *GroupV1.parents()]
    return [folder for parent in parents for folder in parent.glob(f"{PREFIX}-*-*")]


def owner_is_gone(folder):
    """True if the process that made this group or folder died before it could remove it."""
    owner = folder.name.removeprefix(PREFIX).split("-")[1]
    return owner.isdigit() and not psutil.pid_exists(int(owner))


def sweep():
    """Remove groups whose owner died before it could."""
    for folder in filter(owner_is_gone, groups()):
        remove(folder)


def remove(folder, seconds=10):
    """Remove a group; a process that was killed may still be on its way out of it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.005)


def _mount_point(kind, option=None):
    try:
        lines = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, folder, found, options = line.split()[:4]
        if found == kind and (option is None or option in options.split(",")):
            return Path(folder)
    return None


def _own_path(marker):
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if marker in line:
            return line.split(":", 2)[2]
    return "/"
