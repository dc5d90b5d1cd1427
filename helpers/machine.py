"""What this machine has: RAM, cores, control groups, versions, disk; and whether this is a job of `run`."""

import importlib.util
import math
import os
import shutil
from importlib import metadata
from pathlib import Path

import psutil

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")
HERE = Path(__file__).parent
"""The folder of this package."""
PROJECT = HERE.resolve().parent
JOB_VARIABLE = "OOM_JOB"


def ram_total():
    """The RAM that this process can have, in bytes: the machine's, or its container's limit."""
    return min([psutil.virtual_memory().total, *(limit for _, limit in memory_limits())])


def ram_available():
    """The RAM that is not in use, in bytes; page cache that can be dropped counts as free."""
    rooms = [limit - _used(folder) for folder, limit in memory_limits()]
    return max(0, min([psutil.virtual_memory().available, *rooms]))


def cores():
    """The cores that this process can keep busy: its affinity, or its container's quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *(math.ceil(quota) for quota in _cpu_quotas())]))


def in_job():
    """True in a job of `run` and in every process that it starts."""
    return JOB_VARIABLE in os.environ


def need_tensorflow(what):
    """Say what to install where TensorFlow or Keras is missing; neither is imported."""
    if not all(map(importlib.util.find_spec, ("tensorflow", "keras"))):
        raise ImportError(f'{what} needs TensorFlow; install it: pip install "oom-on-purpose[tensorflow]"')


def version(package):
    """The installed version of a package, without importing it; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def disk_free(folder):
    """Free bytes on the disk that holds `folder`, which need not exist yet."""
    folder = Path(folder).absolute()
    return shutil.disk_usage(next(parent for parent in (folder, *folder.parents) if parent.exists())).free


def memory_groups():
    """The folders of the control groups that count this process's memory, from its own up to the root."""
    return _cgroup_folders("memory")


def memory_limits():
    """Pairs of a control group that holds this process and its limit in bytes, for those that have one."""
    total = psutil.virtual_memory().total
    for folder in memory_groups():
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = _number(folder / name)
            if limit is not None and limit < total:
                yield folder, limit


def _used(folder):
    """What a control group holds, in bytes, without the cache that can be dropped."""
    used = [_number(folder / name) for name in ("memory.current", "memory.usage_in_bytes")]
    return max(filter(None, used), default=0) - _droppable_cache(folder)


def _droppable_cache(folder):
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    statistics = dict(line.split() for line in lines)
    return int(statistics.get("total_inactive_file", statistics.get("inactive_file", 0)))


def _cpu_quotas():
    """The cores' worth of time that the control groups above this process grant."""
    for folder in _cgroup_folders("cpu"):
        try:
            quota, period = (folder / "cpu.max").read_text().split()
        except (OSError, ValueError):
            quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
        if quota not in (None, "max", -1) and period:
            yield int(quota) / int(period)


def own_cgroups():
    """[(controllers, path)] of the control groups that hold this process. The unified hierarchy, version 2, names no
    controllers. Nothing outside Linux."""
    try:
        lines = OWN_CGROUPS.read_text().splitlines()
    except OSError:
        return []
    parts = [line.split(":", 2)[1:] for line in lines]
    return [(controllers.split(",") if controllers else [], path.lstrip("/")) for controllers, path in parts]


def _cgroup_folders(controller):
    """The control groups that hold this process, from its own up to the root."""
    for controllers, path in own_cgroups():
        if controllers and controller not in controllers:
            continue
        root = CGROUPS / (controller if controllers else "")
        group = root / path
        yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(root))


def _number(path):
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # "max" means no limit
        return None
