"""Who killed a job for want of memory: its budget, a limit around it, or the kernel with neither full."""

import pytest

from helpers import machine
from helpers.watching import enclosure
from helpers.watching.enclosure import Enclosure, Killer
from helpers.watching.limits import CgroupV2, Watchdog

LIMIT = 620_000_000


@pytest.fixture
def container(tmp_path, monkeypatch):
    """Pretend to be in the control group /box/job of version 2; returns a function that sets its counters."""
    monkeypatch.setattr(machine, "CGROUPS", tmp_path)
    monkeypatch.setattr(machine, "OWN_CGROUPS", tmp_path / "own")
    (tmp_path / "own").write_text("0::/box/job\n")
    (tmp_path / "box" / "job").mkdir(parents=True)
    (tmp_path / "box" / "memory.max").write_text(f"{LIMIT}\n")
    (tmp_path / "box" / "job" / "memory.max").write_text("max\n")

    def count(box_full=0, killed=0):
        for folder, full in ((tmp_path / "box", box_full), (tmp_path / "box" / "job", 0)):
            text = f"low 0\nhigh 0\nmax 900\noom {full}\noom_kill {killed}\n"
            (folder / "memory.events.local").write_text(text)

    count(box_full=3, killed=7)
    return count


class InKernel(CgroupV2):
    """A limiter whose group is not there, and which knows nothing but what it is told."""

    def __init__(self, ended=False, was_full=False):
        self.hit, self._ended, self._was_full = ended, ended, was_full

    def ended(self):
        return self._ended

    def was_full(self):
        return self._was_full


@pytest.mark.parametrize(
    ("limiter", "counters", "killer"),
    [
        (InKernel(), {"box_full": 3, "killed": 7}, None),
        (InKernel(ended=True, was_full=True), {"box_full": 3, "killed": 7}, Killer("budget")),
        (InKernel(ended=True, was_full=False), {"box_full": 4, "killed": 7}, Killer("limit around", LIMIT)),
        (InKernel(ended=True, was_full=False), {"box_full": 3, "killed": 7}, Killer("kernel")),
        (Watchdog(1), {"box_full": 4, "killed": 8}, Killer("limit around", LIMIT)),
        (Watchdog(1), {"box_full": 3, "killed": 8}, Killer("kernel")),
        (Watchdog(1), {"box_full": 4, "killed": 7}, None),
        (None, {"box_full": 4, "killed": 8}, Killer("limit around", LIMIT)),
    ],
)
def test_the_one_that_killed_is_found(container, limiter, counters, killer):
    around = Enclosure()
    container(**counters)
    assert around.killer(limiter) == killer
    around.close()


def test_a_watchdog_that_was_first_keeps_its_word(container):
    watchdog, around = Watchdog(1), Enclosure()
    watchdog.arm(100)
    assert watchdog.exceeded(101)
    container(box_full=4, killed=8)
    assert around.killer(watchdog) == Killer("budget")


def test_without_control_groups_the_machine_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "OWN_CGROUPS", tmp_path / "none")
    monkeypatch.setattr(enclosure, "OF_THE_MACHINE", tmp_path / "vmstat")
    (tmp_path / "vmstat").write_text("thp_split 1\noom_kill 2\n")
    around = Enclosure()
    assert around.killer() is None
    (tmp_path / "vmstat").write_text("thp_split 1\noom_kill 3\n")
    assert around.killer() == Killer("kernel")


def test_a_system_that_counts_nothing_blames_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "OWN_CGROUPS", tmp_path / "none")
    monkeypatch.setattr(enclosure, "OF_THE_MACHINE", tmp_path / "none")
    assert Enclosure().killer() is None
