"""The report: it never costs the exit code, replaces no other, and comes also when something of the command was killed
though the command ended well."""

import os
import subprocess
from pathlib import Path

import pytest

from doctored import PYTHON, doctor, environment, script, shell
from helpers.watching import cgroups
from helpers.watching.limits import CgroupV1, CgroupV2, Watchdog

LIMITERS = [limiter.name for limiter in (CgroupV2, CgroupV1, Watchdog) if limiter.check().works]
GROWS = "import os\nrows = []\nwhile True:\n    rows.append(os.urandom(1_000_000))\n"


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def test_an_older_report_stays_and_the_new_one_is_named(tmp_path):
    for name in ("oom-report.txt", "oom-report-2.html"):
        (tmp_path / name).write_text("precious")
    done = doctor(tmp_path, "--", "sh", "-c", "echo one; exit 42")
    assert done.returncode == 42
    assert b"see oom-report-3.html, oom-report-3.txt and" in done.stderr
    assert "one" in (tmp_path / "oom-report-3.txt").read_text()
    assert (
        (tmp_path / "oom-report.txt").read_text()
        == (tmp_path / "oom-report-2.html").read_text()
        == "precious"
    )
    assert not (tmp_path / "oom-report-2.txt").exists()


def test_nothing_is_written_through_a_link(tmp_path):
    (tmp_path / "oom-report.txt").symlink_to(tmp_path / "elsewhere")
    assert doctor(tmp_path, "--", "sh", "-c", "exit 42").returncode == 42
    assert names(tmp_path) == ["oom-report-2.html", "oom-report-2.txt", "oom-report.txt"]


@pytest.mark.parametrize("temporary", ["/dev/null", None], ids=["nowhere", "temporary folder"])
def test_a_report_that_cannot_be_written_keeps_the_exit_code(tmp_path, temporary):
    blocked = script(tmp_path, "", "file")
    place = tmp_path / "temporary"
    place.mkdir()
    # the doctor needs its temporary folder until the command runs
    job = f"rm -r {place}; echo x > {place}; exit 42" if temporary else "exit 42"
    done = doctor(tmp_path, "--report", blocked, "--", "sh", "-c", job, environment={"TMPDIR": str(place)})
    assert done.returncode == 42
    if temporary:
        assert b"doctor: the report could not be written (" in done.stderr
    else:
        assert names(place / names(place)[0]) == ["oom-report.html", "oom-report.txt"]
    assert b"Traceback" not in done.stderr


def test_a_folder_that_the_command_removes_keeps_the_exit_code(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    done = doctor(folder, "--", "sh", "-c", f"rm -r {folder}; exit 42")
    assert done.returncode == 42
    assert b"Traceback" not in done.stderr


def test_standard_error_that_nobody_reads_keeps_the_exit_code(tmp_path):
    done = shell(tmp_path, "doctor -- sh -c 'sleep 1; exit 42' 2> >(exec true); echo $?")
    assert done.stdout == b"42\n"


BROKEN_CHART = """
import sys
import helpers.charts.timeline as timeline
from helpers.__main__ import main
def plot(*_, **__):
    raise {error}
timeline.plot = plot
sys.exit(main(["doctor", "--", sys.executable, "-c", "import time; time.sleep(0.5); raise SystemExit(42)"]))
"""


@pytest.mark.parametrize("error", ["MemoryError", "ValueError('no font')"])
def test_a_chart_that_cannot_be_drawn_costs_neither_the_words_nor_the_exit_code(tmp_path, error):
    program = BROKEN_CHART.format(error=error)
    done = subprocess.run(
        [PYTHON, "-c", program],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 42
    assert "There is no chart: " in (tmp_path / "oom-report.html").read_text()
    assert "Exit code: 42" in (tmp_path / "oom-report.txt").read_text()


@pytest.mark.parametrize("limiter", LIMITERS)
def test_a_child_that_goes_over_the_budget_gives_a_report_though_its_parent_ends_well(tmp_path, limiter):
    grows = script(tmp_path, GROWS)
    job = f"{PYTHON} {grows}; exit 0"
    done = doctor(tmp_path, "--ram", "150 MB", "--", "sh", "-c", job, environment={"OOM_LIMITER": limiter})
    # where the kernel kills one process, the parent may end well before the doctor ends the rest
    assert done.returncode in ((0, 137) if limiter == "cgroup v1" else (137,))
    assert b"doctor: container-limit: " in done.stderr
    assert "This doctor: the command went over its budget" in (tmp_path / "oom-report.txt").read_text()


@pytest.mark.skipif(not CgroupV1.check().works, reason="the kernel lets us make no group of version 1")
def test_a_kill_in_the_container_gives_a_report_though_the_parent_ends_well(tmp_path):
    grows = script(tmp_path, GROWS)
    group = cgroups.GroupV1()
    try:
        group.limit(400_000_000)
        enter = f"echo $$ > {group.folder}/cgroup.procs"
        done = shell(tmp_path, f"{enter}; doctor -- sh -c '{PYTHON} {grows}; echo on; exit 0'")
    finally:
        group.remove()
    assert (done.returncode, done.stdout) == (0, b"on\n")
    assert b"doctor: container-limit: " in done.stderr
    report = (tmp_path / "oom-report.txt").read_text()
    assert report.startswith("Lost a process: sh -c ")
    assert "Exit code: 0" in report


def test_a_command_that_ends_well_gives_no_report(tmp_path):
    assert doctor(tmp_path, "--ram", "200 MB", "--", "true").stderr == b""
    assert os.listdir(tmp_path) == []
