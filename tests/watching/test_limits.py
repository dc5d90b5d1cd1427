"""Every limiter keeps its budget, in the process and in its children, and is gone afterwards."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.watching import limits, processes

PROBE = Path(__file__).parents[1] / "support" / "limiter_probe.py"


def probe(limiter):
    choice = next(choice for choice in [*limits.choices(), limits.Rlimit.check()] if choice.name == limiter)
    if not choice.works:
        pytest.skip(f"{limiter}: {choice.reason}")
    result = subprocess.run([sys.executable, PROBE, limiter], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("limiter", ["cgroup v2", "cgroup v1", "watchdog"])
def test_a_limiter_that_kills(limiter):
    small, large, grandchild, after = probe(limiter)
    assert (small["exit_code"], small["ended_by"], small["limiter"]) == (0, None, limiter)
    assert small["peak"] == pytest.approx(50_000_000, rel=0.1)
    for killed in (large, grandchild):
        assert (killed["exit_code"], killed["ended_by"]) == (137, "budget")
        assert 85_000_000 < killed["peak"] < 130_000_000
    assert after == {"groups left": 0}


def test_a_limiter_that_refuses():
    small, large, _ = probe("rlimit")
    assert (small["exit_code"], small["failure"]) == (0, None)
    assert (large["exit_code"], large["failure"]) == (1, "MemoryError")


def test_the_best_limiter_is_the_first_that_works():
    works = [choice.name for choice in limits.choices() if choice.works]
    assert limits.best().name == works[0]
    assert works[-1] == "watchdog"
    assert all(choice.reason for choice in limits.choices())
    assert limits.best("refuse").name == "rlimit"


def test_a_limiter_can_be_asked_for_by_name(monkeypatch):
    assert limits.best(wanted="watchdog").name == "watchdog"
    monkeypatch.setenv("OOM_LIMITER", "watchdog")
    assert limits.best(wanted=limits.wanted_by_name()).name == "watchdog"
    with pytest.raises(ValueError, match='no limiter is called "magic"'):
        limits.best(wanted="magic")


def test_a_family_is_found_and_ended():
    program = "import subprocess; subprocess.run(['sleep', '60'])"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        while len(processes.descendants(process.pid)) < 1:
            pass
        grandchild = processes.descendants(process.pid)[0]
        assert process.pid not in processes.descendants(process.pid)
        process.kill()
        subprocess.run(["kill", "-9", str(grandchild)], check=False)
