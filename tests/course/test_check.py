"""The check of the course: every item that is not well says what to do."""

import psutil
import pytest
from packaging.requirements import Requirement

from helpers import gpu, machine
from helpers.course import check


@pytest.mark.parametrize(
    ("cards", "line"),
    [
        (
            [gpu.Gpu("Old Card", 8 * 10**9, 0), gpu.Gpu("New Card", 24 * 10**9, 0)],
            "[ OK ] GPU: Old Card (8.00 GB), New Card (24.00 GB)",
        ),
        ([], "[NOTE] GPU: none found; nothing to do, the virtual GPU stands in"),
    ],
)
def test_cards_are_named_and_none_is_needed(monkeypatch, cards, line):
    monkeypatch.setattr(gpu, "gpus", lambda: cards)
    monkeypatch.setattr(check.shutil, "which", lambda program: None)
    assert str(check._check_gpu()) == line


@pytest.mark.parametrize(
    ("requirement", "complaint"),
    [
        ("psutil>=1", None),
        ("psutil<1", f"psutil is {psutil.__version__} and not <1"),
        ("no-such-package-of-anyone", "no-such-package-of-anyone is missing"),
    ],
)
def test_a_wrong_package_is_named(requirement, complaint):
    assert check._complaint(Requirement(requirement)) == complaint


@pytest.mark.parametrize(
    ("requirement", "needed"),
    [
        ("psutil>=5.9", True),
        ("keras>=3; extra == 'tensorflow'", True),
        ("jupyterlab; extra == 'course'", True),
        ("pytest; extra == 'dev'", False),
        ("tomli; python_version < '3' and extra == 'course'", False),
    ],
)
def test_the_sets_of_the_course_are_needed_and_those_of_its_authors_are_not(requirement, needed):
    assert check._applies(Requirement(requirement)) == needed


@pytest.mark.parametrize(("available", "status"), [(8 * 10**9, "OK"), (3 * 10**9, "NOTE"), (10**9, "FAIL")])
def test_little_ram_is_noted_and_less_fails(monkeypatch, available, status):
    monkeypatch.setattr(machine, "ram_available", lambda: available)
    assert check._check_ram().status == status


def test_missing_data_and_a_full_disk_say_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("OOM_DATA", str(tmp_path))
    monkeypatch.setattr(machine, "disk_free", lambda folder: 10**6)
    data, disk = check._check_data()
    assert data.status == "NOTE"
    assert "python -m helpers data" in data.advice
    assert disk.status == "FAIL"
    assert "OOM_DATA" in disk.advice


def test_every_item_that_is_not_ok_says_what_to_do():
    items = check.check()
    assert {item.status for item in items} <= {"OK", "NOTE", "FAIL"}
    assert all(item.advice for item in items if item.status != "OK")
    assert all("\n" not in str(item) for item in items)


def test_the_command_prints_the_items_and_fails_when_one_does(monkeypatch, capsys):
    monkeypatch.setattr(check, "check", lambda: [check.Item("OK", "fine")])
    assert check.command(None) == 0
    monkeypatch.setattr(check, "check", lambda: [check.Item("FAIL", "no RAM", "buy some")])
    assert check.command(None) == 1
    assert capsys.readouterr().out == "[ OK ] fine\n[FAIL] no RAM; buy some\n"
