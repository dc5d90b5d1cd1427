"""Runs small jobs under one limiter, without TensorFlow, and prints how they ended: `limiter_probe.py "cgroup v2"`.

The tests call it in a process of its own; it also runs on its own on a machine that has another kind of cgroup.
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import cloudpickle

from helpers.jobs.launch import prctl
from helpers.jobs.supervisor import PR_SET_CHILD_SUBREAPER
from helpers.jobs.task import Task
from helpers.jobs.watch import Watch
from helpers.watching import cgroups, limits, names
from helpers.watching.processes import exit_code_of

PIECE = 10_000_000


def fill(pieces):
    blocks = [b"x" * (PIECE + number) for number in range(pieces)]
    return len(blocks)


def fill_grandchild(pieces):
    if os.fork() == 0:
        fill(pieces)
        os._exit(0)
    os.wait()


class Ear:
    """Stands in for the caller: it only listens for the end."""

    def __init__(self):
        self.reading, self.writing = os.pipe()

    def fileno(self):
        return self.reading

    def send(self, message):
        kind, facts = message
        if kind == "end":
            self.end = facts


def probe(job, pieces, limiter, on_limit="kill"):
    ear = Ear()
    task = Task(
        function=cloudpickle.dumps(job),
        arguments=cloudpickle.dumps(((pieces,), {})),
        ram=100_000_000,
        spare=None,
        vram=None,
        growth=False,
        on_limit=on_limit,
        limiter=limiter,
        timeout=120,
        environment=dict(os.environ),
        path=sys.path,
        folder=os.getcwd(),
    )
    Watch(ear, task, fork=True).run()
    end = ear.end
    return {
        "job": job.__name__,
        "megabytes": pieces * PIECE // 10**6,
        "limiter": end.limiter,
        "exit_code": exit_code_of(end.status),
        "ended_by": end.ended_by,
        "failure": end.failure.type if end.failure else None,
        "peak": end.peak_ram,
    }


def main(limiter):
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    if limiter == "rlimit":
        cases = [(fill, 5, None, "refuse"), (fill, 30, None, "refuse")]
    else:
        cases = [(fill, 5, limiter), (fill, 30, limiter), (fill_grandchild, 30, limiter)]
    for case in cases:
        print(json.dumps(probe(*case)), flush=True)
    own = [group for group in cgroups.groups() if group.name.startswith(names.new_prefix())]
    print(json.dumps({"groups left": len(own)}))


if __name__ == "__main__":
    if sys.argv[1:] == ["choices"]:
        for choice in limits.choices():
            print(f"{choice.name}: {'works' if choice.works else 'does not work'}, {choice.reason}")
    else:
        main(sys.argv[1])
