"""Control groups of the Linux kernel, version 2 and 1: make one, put a process in, limit it, read it, remove it."""

import os
import select
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from helpers import machine
from helpers.watching import names
from helpers.watching.pages import number_after

LONGEST_FILE = 16_384


class Group:
    """A group of its own beneath the first parent that lets us make one; OSError says why none does."""

    limit_file: str
    charged_keys: tuple[bytes, ...]

    def __init__(self) -> None:
        reasons = []
        for parent in self.parents():
            try:
                self.folder, self._files, self._mark = self._make(parent), {}, None
                return
            except OSError as error:
                reasons.append(error.strerror or str(error))
        raise OSError(f"no group can be made ({', '.join(dict.fromkeys(reasons)) or 'none is mounted'})")

    @staticmethod
    def parents() -> list[Path]:
        """Where a group may be made, the best place first."""
        raise NotImplementedError

    @staticmethod
    def hand_down(parent: Path) -> None:
        """Let the groups below a parent limit memory."""

    def start(self) -> None:
        """Settle how the group behaves at its limit."""
        self._mark = Mark(self.folder)

    def kernel(self) -> int:
        """What the kernel itself needs for these processes, page tables above all."""
        raise NotImplementedError

    def kills(self) -> int:
        """How many of its processes the kernel has killed at the limit."""
        raise NotImplementedError

    def was_full(self) -> bool:
        """Whether the kernel killed at the limit of this group, or of one around it."""
        return self._mark is not None and self._mark.was_passed()

    def _make(self, parent):
        self.hand_down(parent)
        folder = parent / names.new_name()
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

    def limit(self, size: int) -> None:
        self.write(self.limit_file, size)

    def charged(self) -> int:
        """Anonymous and shared memory of all its processes, in bytes; page cache is left out."""
        return sum(self.numbers("memory.stat", self.charged_keys))

    def let_out(self, seconds=1):
        """Move the processes that are still in it to where this one is: they go on, without a limit."""
        deadline = time.monotonic() + seconds
        while (inside := members(self.folder)) and time.monotonic() < deadline:
            for pid in inside:
                with suppress(OSError):  # it has just ended
                    self.parents()[0].joinpath("cgroup.procs").write_text(str(pid))

    def remove(self):
        for file in self._files.values():
            os.close(file)
        self._files = {}
        if self._mark:
            self._mark.close()
        remove(self.folder)

    def write(self, name, value):
        self.folder.joinpath(name).write_text(str(value))

    def read(self, name):
        """One of its files; asked so often that the file stays open."""
        if name not in self._files:
            self._files[name] = os.open(self.folder / name, os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._files[name], LONGEST_FILE, 0)

    def numbers(self, name, keys):
        """The numbers behind these keys in one of its files."""
        text = b"\n" + self.read(name)
        return [number_after(text, b"\n" + key + b" ") for key in keys]


class GroupV2(Group):
    """In a delegated subtree, or anywhere as root."""

    limit_file = "memory.max"
    charged_keys = (b"anon", b"shmem")
    kernel_keys = (b"kernel", b"kernel_stack", b"pagetables", b"slab")

    @staticmethod
    def parents():
        mount = _mount_point("cgroup2")
        if mount is None:
            return []
        own = mount / _own_path()
        found = [folder for folder in (own, *own.parents) if folder.is_relative_to(mount) and folder.is_dir()]
        return _within_limits(found)

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
        super().start()
        for name, value in (("memory.oom.group", 1), ("memory.swap.max", 0)):
            if self.folder.joinpath(name).exists():
                self.write(name, value)

    def kernel(self):
        total, *parts = self.numbers("memory.stat", self.kernel_keys)
        return total or sum(parts)

    def kills(self):
        return self.numbers("memory.events", [b"oom_kill"])[0]


class GroupV1(Group):
    """On older Linux and in some containers; needs root."""

    limit_file = "memory.limit_in_bytes"
    charged_keys = (b"total_rss", b"total_shmem")

    @staticmethod
    def parents():
        mount = _mount_point("cgroup", option="memory")
        if mount is None:
            return []
        own = mount / _own_path("memory")
        return _within_limits([folder for folder in (own, mount) if folder.is_dir()])

    def start(self):
        super().start()
        self.write("memory.swappiness", 0)

    def kernel(self):
        try:
            return int(self.read("memory.kmem.usage_in_bytes"))
        except FileNotFoundError:
            return 0

    def kills(self):
        return self.numbers("memory.oom_control", [b"oom_kill"])[0]


class Mark:
    """Set at the limit of a group: tells later whether there was too little room below it since, so that somebody had
    to be killed. Version 1 tells so by an event, which reaches the groups further down as well, and otherwise only how
    often the limit was touched, with cache that could be dropped perhaps."""

    COUNTS = (("memory.events.local", b"oom"), ("memory.events", b"oom"), ("memory.failcnt", None))

    def __init__(self, folder):
        self._folder, self._event = folder, None
        with suppress(OSError, AttributeError):
            self._event = _event_of(folder)
        self._before = self._count()

    def was_passed(self):
        return self._count() > self._before

    def close(self):
        if self._event is not None:
            os.close(self._event)
            self._event = None

    def _count(self):
        if self._event is not None:
            poll = select.poll()
            poll.register(self._event, select.POLLIN)
            return len(poll.poll(0))
        for name, key in self.COUNTS:
            with suppress(OSError):
                text = self._folder.joinpath(name).read_bytes()
                return number_after(b"\n" + text, b"\n" + key + b" ") if key else int(text)
        return 0


def _event_of(folder):
    """A file that can be read once a group of version 1 is out of memory; OSError where there is no such event."""
    with open(folder / "memory.oom_control") as control:
        event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            folder.joinpath("cgroup.event_control").write_text(f"{event} {control.fileno()}")
        except OSError:
            os.close(event)
            raise
    return event


def _within_limits(folders):
    """Those up to the first that has a limit: no job shall escape from a limit that its caller has around it."""
    limited = [folders.index(folder) for folder, _ in machine.memory_limits() if folder in folders]
    return folders[: min(limited, default=len(folders)) + 1]


def groups():
    """The groups that any process on this machine made here, its number in their names."""
    parents = [*GroupV2.parents(), *GroupV1.parents()]
    return [folder for parent in parents for folder in parent.glob(names.PATTERN)]


def members(folder):
    """The processes in a group."""
    try:
        return [int(line) for line in folder.joinpath("cgroup.procs").read_text().split()]
    except OSError:
        return []


def sweep():
    """Remove groups whose owner died before it could."""
    for folder in filter(names.owner_is_gone, groups()):
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


def _own_path(controller=None):
    """Where this process stands in the hierarchy of a controller, or in the unified one."""
    for controllers, path in machine.own_cgroups():
        if controller in controllers if controller else not controllers:
            return path
    return ""
