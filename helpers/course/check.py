"""Checks that this machine has what the course needs, and says what to do about what is missing."""

import platform
import shutil
from dataclasses import dataclass
from importlib import metadata

from packaging.requirements import Requirement

from helpers import gpu, machine
from helpers.course import datasets
from helpers.units import format_bytes
from helpers.watching import limits

PACKAGE = "oom-on-purpose"
SETS = ("", "tensorflow", "course")
ENOUGH_RAM = 4 * 10**9
LEAST_RAM = 2 * 10**9
ENOUGH_DISK = 2 * 10**9


@dataclass(frozen=True)
class Item:
    """One line of the check: OK, NOTE or FAIL, what was found, and what to do about it."""

    status: str
    found: str
    advice: str = ""

    def __str__(self):
        sentence = f"{self.found}; {self.advice}" if self.advice else self.found
        return f"[{self.status:^4}] {sentence}"


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
    tensorflow, keras = map(machine.version, ("tensorflow", "keras"))
    return Item("OK", f"TensorFlow {tensorflow}, Keras {keras} and all other packages")


def _applies(requirement):
    """Whether the course needs it: the core, and the sets `tensorflow` and `course`."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in SETS)


def _complaint(requirement):
    installed = machine.version(requirement.name)
    if installed is None:
        return f"{requirement.name} is missing"
    if not requirement.specifier.contains(installed, prereleases=True):
        return f"{requirement.name} is {installed} and not {requirement.specifier}"
    return None


def _check_ram():
    available = machine.ram_available()
    found = f"RAM: {format_bytes(available)} of {format_bytes(machine.ram_total())} available"
    if available >= ENOUGH_RAM:
        return Item("OK", found)
    advice = f"close other programs; the notebooks want {format_bytes(ENOUGH_RAM)}"
    return Item("NOTE" if available >= LEAST_RAM else "FAIL", found, advice)


def _check_cores():
    if machine.cores() > 1:
        return Item("OK", f"cores: {machine.cores()}")
    return Item("NOTE", "cores: 1", "everything works, at about half the speed that the notebooks state")


def _check_limiter():
    best = limits.best(wanted=limits.wanted_by_name())
    return Item("OK", f"RAM limiter: {best.name}", best.reason)


def _check_gpu():
    found = gpu.gpus()
    if found:
        return Item("OK", "GPU: " + ", ".join(f"{card.name} ({format_bytes(card.total)})" for card in found))
    if shutil.which("nvidia-smi") and machine.version("nvidia-ml-py") is None:
        installer = "python -m pip" if machine.version("pip") else "uv pip"
        advice = f'to use it run, in the environment of this course: {installer} install -e ".[gpu]"'
        return Item("NOTE", "GPU: a driver is there, but nvidia-ml-py is missing", advice)
    return Item("NOTE", "GPU: none found", "nothing to do, the virtual GPU stands in")


def _check_data():
    folder = datasets.folder()
    free = machine.disk_free(folder)
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


def add_arguments(parser):
    """`python -m helpers check` takes no arguments."""


def command(arguments):
    """Run `python -m helpers check`; the exit code is 1 when something fails."""
    items = check()
    for item in items:
        print(item)
    return int(any(item.status == "FAIL" for item in items))
