"""`make unit ROOM=...` runs one room's tests and answers a wrong room with the rooms that there are."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def make(*words):
    """Run make with a Python that only repeats what it is asked to do; returns the exit code and the output."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
    ended = subprocess.run(
        ["make", *words, "STAMP=", "PY=echo"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    return ended.returncode, ended.stdout.splitlines()


@pytest.mark.parametrize(
    ("room", "folders"),
    [
        ("", "tests helpers"),
        ("doctor", "tests/doctor helpers/doctor"),
        ("course/nb05", "tests/course/nb05 helpers/course/nb05"),
        ("repo", "tests/repo"),
    ],
)
def test_the_tests_of_a_room_are_run(room, folders):
    code, lines = make("unit", f"ROOM={room}")
    assert (code, lines[-1]) == (0, f"-m pytest {folders} --doctest-modules")


@pytest.mark.parametrize("room", ["doctr", "support"])
def test_a_wrong_room_is_answered_with_the_rooms(room):
    code, lines = make("unit", f"ROOM={room}")
    rooms = "charts course doctor estimator faults jobs repo watching"
    assert (code, lines[-1]) == (2, f'There is no room "{room}"; the rooms are: {rooms}')


def test_everything_is_checked_in_turn():
    code, lines = make("test")
    asked = [line.split()[1] for line in lines if line.startswith("-m ")]
    assert (code, asked) == (0, ["helpers", "ruff", "ruff", "mypy", "pytest", "pytest"])
