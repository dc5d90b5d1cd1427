"""The readings of the machine, with stand-ins for containers and cards that this machine has not."""

import subprocess
import sys
import types

import psutil
import pytest
from packaging.requirements import Requirement

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


class NvmlError(Exception):
    """Stands in for pynvml.NVMLError."""


def stand_in_for_nvml(initialise=lambda: None):
    calls = []
    return types.SimpleNamespace(
        NVMLError=NvmlError,
        nvmlInit=initialise,
        nvmlShutdown=lambda: calls.append("shutdown"),
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda handle: [b"Old Card", "New Card"][handle],
        nvmlDeviceGetMemoryInfo=lambda handle: types.SimpleNamespace(total=8 * 10**9, free=6 * 10**9),
        calls=calls,
    )


def test_cards_are_found_through_nvml_which_is_shut_down(monkeypatch):
    nvml = stand_in_for_nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert [gpu.name for gpu in machine.gpus()] == ["Old Card", "New Card"]
    assert machine.gpus()[0].total == 8 * 10**9
    assert nvml.calls == ["shutdown", "shutdown"]
    assert str(machine._check_gpu()) == "[ OK ] GPU: Old Card (8.00 GB), New Card (8.00 GB)"


def test_nvml_without_a_driver_means_no_card(monkeypatch):
    def initialise():
        raise NvmlError("driver not loaded")

    monkeypatch.setitem(sys.modules, "pynvml", stand_in_for_nvml(initialise))
    assert machine.gpus() == []
    assert machine._check_gpu().status == "NOTE"


def test_no_nvml_means_no_card(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert machine.gpus() == []


def test_importing_machine_does_not_import_tensorflow():
    script = (
        "import sys, helpers.machine as m; m.gpus(), m.version('keras'); print('tensorflow' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_disk_is_measured_for_a_folder_that_is_not_there_yet(tmp_path):
    assert machine.disk_free(tmp_path / "not" / "there") > 0


def test_version_of_a_missing_package_is_none():
    assert machine.version("no-such-package-of-anyone") is None


@pytest.mark.parametrize(
    ("requirement", "complaint"),
    [
        ("psutil>=1", None),
        ("psutil<1", f"psutil is {psutil.__version__} and not <1"),
        ("no-such-package-of-anyone", "no-such-package-of-anyone is missing"),
    ],
)
def test_a_wrong_package_is_named(requirement, complaint):
    assert machine._complaint(Requirement(requirement)) == complaint


@pytest.mark.parametrize(("available", "status"), [(8 * 10**9, "OK"), (3 * 10**9, "NOTE"), (10**9, "FAIL")])
def test_little_ram_is_noted_and_less_fails(monkeypatch, available, status):
    monkeypatch.setattr(machine, "ram_available", lambda: available)
    assert machine._check_ram().status == status


def test_missing_data_and_a_full_disk_say_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("OOM_DATA", str(tmp_path))
    monkeypatch.setattr(machine, "disk_free", lambda folder: 10**6)
    data, disk = machine._check_data()
    assert data.status == "NOTE"
    assert "python -m helpers data" in data.advice
    assert disk.status == "FAIL"
    assert "OOM_DATA" in disk.advice


def test_every_item_that_is_not_ok_says_what_to_do():
    items = machine.check()
    assert {item.status for item in items} <= {"OK", "NOTE", "FAIL"}
    assert all(item.advice for item in items if item.status != "OK")
    assert all("\n" not in str(item) for item in items)


def test_the_command_prints_the_items_and_fails_when_one_does(monkeypatch, capsys):
    monkeypatch.setattr(machine, "check", lambda: [machine.Item("OK", "fine")])
    assert machine.command(None) == 0
    monkeypatch.setattr(machine, "check", lambda: [machine.Item("FAIL", "no RAM", "buy some")])
    assert machine.command(None) == 1
    assert capsys.readouterr().out == "[ OK ] fine\n[FAIL] no RAM; buy some\n"
