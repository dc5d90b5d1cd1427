"""Every data file of the course, whole or not at all: Ctrl-C while it is made, a disk without room, a read-only one."""

import signal
import subprocess
import sys
import time

import pytest

from disks import mounted
from helpers.course import datasets
from helpers.course.datasets import digit_arrays, digit_images, flight_tables


@pytest.mark.parametrize(
    ("name", "part", "size"),
    [
        ("flights-20.csv", ".*.part", 10**6),
        ("digits-20", ".digits-20.*.part/train/*/*.jpg", 0),
        ("arrays", ".arrays.*.part/images.npy", 10**6),
    ],
)
def test_ctrl_c_leaves_nothing(folder, name, part, size):
    maker = subprocess.Popen(
        [sys.executable, "-m", "helpers", "data", name],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell has it ignored
    )
    deadline = time.monotonic() + 60
    while not any(file.stat().st_size > size for file in folder.glob(part)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    maker.send_signal(signal.SIGINT)
    assert maker.communicate(timeout=60)[1].endswith("Stopped.\n")
    assert maker.returncode == 130
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "module", "maker", "needed"),
    [
        ("flights.csv", flight_tables, "_pieces", "31 MB"),
        ("digits", digit_images, "_jpeg", "25 MB"),
        ("arrays", digit_arrays, "_write_npy", "619 MB"),
    ],
)
def test_a_disk_without_room_is_named_before_anything_is_made(
    folder, monkeypatch, name, module, maker, needed
):
    monkeypatch.setattr(module, maker, lambda *arguments: pytest.fail("it started"))
    with mounted(folder, "size=5m"):
        with pytest.raises(OSError, match=rf"{name} needs {needed} and the disk has 5 MB left; free some"):
            datasets.make(name)
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["flights.csv", "digits", "arrays"])
def test_a_read_only_folder_is_named(folder, name):
    with mounted(folder, "size=700m,ro"), pytest.raises(PermissionError, match=rf"{name} .*set OOM_DATA"):
        datasets.make(name)
