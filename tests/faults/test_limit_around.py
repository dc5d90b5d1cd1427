"""A memory limit around a job that is smaller than its budget: the verdict names the limit that was reached."""

import json

import pytest

from enclosures import limited_to

LIMIT = 1_024_000_000
HELD = 300_000_000
PROGRAM = """
import json, os, sys
from helpers import run

limiter, behaviour, held = sys.argv[1], sys.argv[2], b"x" * int(sys.argv[3])

def fill():
    blocks = []
    for number in range(1, 1000):
        blocks.append(b"x" * (2_000_000 + number))
        print(2 * number)

def fill_in_a_child():
    if os.fork() == 0:
        fill()
        os._exit(0)
    os.wait()
    while True:
        pass

def fill_and_save_oneself():
    for pid, score in ((os.getpid(), 0), (os.getppid(), 1000)):
        with open(f"/proc/{pid}/oom_score_adj", "w") as file:
            file.write(str(score))
    fill()

class Large:
    def __reduce__(self):
        return fill, ()

trial = run({"alone": fill, "child": fill_in_a_child, "saved": fill_and_save_oneself, "result": Large}[behaviour],
            ram="900 MB", limiter=limiter or None, timeout=120)
trial_of_another = run(sum, [1, 2], ram="100 MB")
facts = ("outcome", "exit_code", "verdict", "peak_ram", "limiter", "out_of_memory")
print(json.dumps({**{name: getattr(trial, name) for name in facts}, "after": trial_of_another.value,
                  "filled": int(([0] + [line for line in trial.log.split() if line.isdigit()])[-1])}))
"""
REACHED = (
    "the memory limit around it (a container's or control group's, 1.02 GB) "
    "was reached before its RAM budget of 900 MB"
)


def outcome_inside(limit, limiter, behaviour="alone", held=HELD):
    with limited_to(limit) as enclosure:
        return json.loads(enclosure.python(PROGRAM, limiter, behaviour, held).splitlines()[-1])


@pytest.mark.parametrize("limiter", ["", "watchdog"])
def test_the_limit_around_a_job_is_named_and_its_peak_is_what_it_reached(limiter):
    seen = outcome_inside(LIMIT, limiter)
    assert (seen["outcome"], seen["exit_code"], seen["out_of_memory"]) == ("killed", 137, True)
    assert seen["verdict"] == f"Killed: {REACHED} (SIGKILL, exit code 137)."
    assert seen["peak_ram"] == pytest.approx(seen["filled"] * 1e6, rel=0.1)
    assert seen["peak_ram"] < 700_000_000
    assert seen["after"] == 3


def test_a_child_that_is_killed_at_the_limit_around_its_job_ends_the_job():
    seen = outcome_inside(LIMIT, "", "child")
    if seen["limiter"] == "watchdog":
        pytest.skip("the kernel counts no kills of this job alone here")
    assert (seen["outcome"], seen["verdict"]) == ("killed", f"Killed: {REACHED} (SIGKILL, exit code 137).")
    assert seen["peak_ram"] < 700_000_000


def test_a_budget_that_is_reached_first_is_named_although_there_is_a_limit_around():
    seen = outcome_inside(4 * LIMIT, "")
    assert seen["verdict"] == "Killed: it went over its RAM budget of 900 MB (SIGKILL, exit code 137)."


def test_a_worker_that_is_killed_instead_of_its_job_says_at_which_limit():
    seen = outcome_inside(LIMIT, "watchdog", "saved")
    assert seen["outcome"] == "error"
    assert seen["verdict"] == (
        "Failed: the process that watched this job was ended by SIGKILL at the memory limit around it "
        "(a container's or control group's, 1.02 GB), and the job with it."
    )
    assert seen["after"] == 3


REFUSED = """
from helpers import run
try:
    run(sum, [1, 2], ram="900 MB")
except ValueError as error:
    print(error)
"""


def test_a_budget_that_no_job_could_reach_is_refused_and_the_limit_named():
    with limited_to(620_000_000) as enclosure:
        assert enclosure.python(REFUSED) == (
            "ram=900 MB is more than the memory limit around this process allows "
            "(a container's or control group's, 620 MB)\n"
        )
