"""The readings of the machine, with stand-ins for containers and cards that this machine has not."""

import subprocess
import sys

import psutil
import pytest

from helpers import machine


@pytest.fixture
def cgroups(tmp_path, monkeypatch):
    """Pretend to be in the control group /box/job; gives a function that writes one of its files."""
    root = tmp_path / "cgroup"
    root.mkdir()
    monkeypatch.setattr(machine, "CGROUPS", root)
    monkeypatch.setattr(machine, "OWN_CGROUPS", tmp_path / "own")
    (tmp_path / "own").write_text("5:cpu,cpuacct:/box/job\n4:memory:/box/job\n0::/box/job\n")

    def write(path, text):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)

    return write


def test_ram_is_that_of_the_machine_without_a_container(cgroups):
    assert machine.ram_total() == psutil.virtual_memory().total
    assert 0 < machine.ram_available() <= machine.ram_total()


@pytest.mark.parametrize(
    ("folder", "limit", "used", "cache"),
    [
        ("box/job", "memory.max", "memory.current", "inactive_file"),
        ("box", "memory.max", "memory.current", "inactive_file"),
        ("memory/box/job", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ],
    ids=["v2", "v2 parent", "v1", "v1 root of a container"],
)
def test_a_container_limits_the_ram(cgroups, folder, limit, used, cache):
    cgroups(f"{folder}/{limit}", "100000000\n")
    cgroups(f"{folder}/{used}", "70000000\n")
    cgroups(f"{folder}/memory.stat", f"anon 50000000\n{cache} 20000000\n")
    assert machine.ram_total() == 100_000_000
    assert machine.ram_available() == 50_000_000


def test_a_container_without_a_limit_does_not_limit_the_ram(cgroups):
    cgroups("box/job/memory.max", "max\n")
    cgroups("box/job/memory.current", "70000000\n")
    assert machine.ram_total() == psutil.virtual_memory().total


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"box/job/cpu.max": "150000 100000"}, 2),
        ({"box/cpu.max": "50000 100000"}, 1),
        ({"box/job/cpu.max": "max 100000"}, 8),
        ({"cpu/box/job/cpu.cfs_quota_us": "300000", "cpu/box/job/cpu.cfs_period_us": "100000"}, 3),
        ({"cpu/box/job/cpu.cfs_quota_us": "-1", "cpu/box/job/cpu.cfs_period_us": "100000"}, 8),
    ],
    ids=["v2", "v2 parent", "v2 unlimited", "v1", "v1 unlimited"],
)
def test_a_container_limits_the_cores(cgroups, monkeypatch, files, expected):
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    for path, text in files.items():
        cgroups(path, text)
    assert machine.cores() == expected


def test_importing_machine_does_not_import_tensorflow():
    script = (
        "import sys, helpers.machine as m, helpers.gpu as g; g.gpus(), m.version('keras');"
        "print('tensorflow' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_disk_is_measured_for_a_folder_that_is_not_there_yet(tmp_path):
    assert machine.disk_free(tmp_path / "not" / "there") > 0


def test_version_of_a_missing_package_is_none():
    assert machine.version("no-such-package-of-anyone") is None
