"""What this machine has: RAM, cores, GPU, versions, disk; and the check that says what is missing."""

import math
import os
import platform
import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psutil
from packaging.requirements import Requirement

from helpers.units import format_bytes

PACKAGE = "oom-on-purpose"
ENOUGH_RAM = 4 * 10**9
LEAST_RAM = 2 * 10**9
ENOUGH_DISK = 2 * 10**9
CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")


@dataclass(frozen=True)
class Gpu:
    """A graphics card as its driver describes it; memory in bytes."""

    name: str
    total: int
    free: int


@dataclass(frozen=True)
class Item:
    """One line of the check: OK, NOTE or FAIL, what was found, and what to do about it."""

    status: str
    found: str
    advice: str = ""

    def __str__(self):
        sentence = f"{self.found}; {self.advice}" if self.advice else self.found
        return f"[{self.status:^4}] {sentence}"


def ram_total():
    """The RAM that this process can have, in bytes: the machine's, or its container's limit."""
    return min([psutil.virtual_memory().total, *(limit for limit, _ in _memory_limits())])


def ram_available():
    """The RAM that is not in use, in bytes; page cache that can be dropped counts as free."""
    rooms = [limit - used for limit, used in _memory_limits()]
    return max(0, min([psutil.virtual_memory().available, *rooms]))


def cores():
    """The cores that this process can keep busy: its affinity, or its container's quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *(math.ceil(quota) for quota in _cpu_quotas())]))


def gpus():
    """The NVIDIA cards, asked through NVML: TensorFlow would start CUDA, and a fork after that breaks."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return [_gpu(pynvml, handle) for handle in handles]
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def _gpu(pynvml, handle):
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    name = pynvml.nvmlDeviceGetName(handle)
    return Gpu(name.decode() if isinstance(name, bytes) else name, memory.total, memory.free)


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


def check():
    """Everything the course needs, as a list of items in the order in which to mend them."""
    return [
        _check_python(),
        _check_packages(),
        _check_ram(),
        _check_cores(),
        _check_limiter(),
        _check_gpu(),
        *_check_data(),
    ]


def _check_python():
    if (3, 10) <= tuple(map(int, platform.python_version_tuple()[:2])) <= (3, 13):
        return Item("OK", f"Python {platform.python_version()}")
    advice = "install Python 3.10 to 3.13 and run: make lab PYTHON=python3.12"
    return Item("FAIL", f"Python {platform.python_version()}", advice)


def _check_packages():
    """Compare what is installed with what the package asks for."""
    try:
        wanted = map(Requirement, metadata.requires(PACKAGE) or [])
    except metadata.PackageNotFoundError:
        return Item("FAIL", "the package of this course is not installed", "run: make lab")
    wrong = [_complaint(requirement) for requirement in wanted if _applies(requirement)]
    wrong = [complaint for complaint in wrong if complaint]
    if wrong:
        return Item("FAIL", ", ".join(wrong), "run: make lab")
    return Item("OK", f"TensorFlow {version('tensorflow')}, Keras {version('keras')} and all other packages")


def _applies(requirement):
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def _complaint(requirement):
    installed = version(requirement.name)
    if installed is None:
        return f"{requirement.name} is missing"
    if not requirement.specifier.contains(installed, prereleases=True):
        return f"{requirement.name} is {installed} and not {requirement.specifier}"
    return None


def _check_ram():
    available = ram_available()
    found = f"RAM: {format_bytes(available)} of {format_bytes(ram_total())} available"
    if available >= ENOUGH_RAM:
        return Item("OK", found)
    advice = f"close other programs; the notebooks want {format_bytes(ENOUGH_RAM)}"
    return Item("NOTE" if available >= LEAST_RAM else "FAIL", found, advice)


def _check_cores():
    if cores() > 1:
        return Item("OK", f"cores: {cores()}")
    return Item("NOTE", "cores: 1", "everything works, at about half the speed that the notebooks state")


def _check_limiter():
    try:
        from helpers import limits
    except ImportError:
        return Item("FAIL", "the RAM limiter is missing", "check out the whole repository again")
    best = limits.best()
    return Item("OK", f"RAM limiter: {best.name}", best.reason)


def _check_gpu():
    found = gpus()
    if found:
        return Item("OK", "GPU: " + ", ".join(f"{gpu.name} ({format_bytes(gpu.total)})" for gpu in found))
    if shutil.which("nvidia-smi") and version("nvidia-ml-py") is None:
        installer = "python -m pip" if version("pip") else "uv pip"
        advice = f'to use it run, in the environment of this course: {installer} install -e ".[gpu]"'
        return Item("NOTE", "GPU: a driver is there, but nvidia-ml-py is missing", advice)
    return Item("NOTE", "GPU: none found", "nothing to do, the virtual GPU stands in")


def _check_data():
    from helpers import datasets

    folder = datasets.folder()
    free = disk_free(folder)
    missing = [name for name in datasets.names() if not (folder / name).exists()]
    if missing:
        yield Item("NOTE", f"data: {', '.join(missing)} not made yet", "run: python -m helpers data")
    else:
        yield Item("OK", f"data: all {len(datasets.names())} files and folders are there")
    if free >= ENOUGH_DISK or not missing:
        yield Item("OK", f"disk: {format_bytes(free)} free for data")
    else:
        advice = f"free {format_bytes(ENOUGH_DISK)} or set OOM_DATA to a folder on a larger disk"
        yield Item("FAIL", f"disk: {format_bytes(free)} free for data", advice)


def _memory_limits():
    """Pairs of limit and use, in bytes, of the control groups above this process."""
    for folder in _cgroup_folders("memory"):
        for limit_name, used_name in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit, used = _number(folder / limit_name), _number(folder / used_name)
            if limit is not None and used is not None:
                yield limit, used - _droppable_cache(folder)


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


def _cgroup_folders(controller):
    """The control groups that hold this process, from its own up to the root; none outside Linux."""
    try:
        lines = OWN_CGROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = CGROUPS / (controller if controllers else "")
        group = root / path.lstrip("/")
        yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(root))


def _number(path):
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # "max" means no limit
        return None


def add_arguments(parser):
    """`python -m helpers check` takes no arguments."""


def command(arguments):
    """Run `python -m helpers check`; the exit code is 1 when something fails."""
    items = check()
    for item in items:
        print(item)
    return int(any(item.status == "FAIL" for item in items))
