"""A job that cannot even start leaves nothing behind, and the caller hears why."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import cloudpickle
import pytest

from helpers import run
from helpers.jobs import watch, worker
from helpers.jobs.task import Task
from helpers.watching import limits, processes


class Ear:
    """Stands in for the caller."""

    def __init__(self):
        self.heard = []
        self._reading, self._writing = os.pipe()

    def fileno(self):
        return self._reading

    def send(self, message):
        self.heard.append(message)


class CannotEnter(limits.Watchdog):
    """A limiter that fails once the process is there."""

    def admit(self):
        raise PermissionError("the group may not be entered")


class CannotBeMade(limits.Watchdog):
    """A limiter that fails before."""

    def __init__(self, pid):
        raise OSError("no group can be made")


def a_task():
    job = cloudpickle.dumps(sum), cloudpickle.dumps((([1, 2],), {}))
    return Task(*job, 10**8, None, None, False, "kill", None, 60, dict(os.environ), sys.path, os.getcwd())


@pytest.mark.parametrize("limiter", [CannotEnter, CannotBeMade])
def test_a_limiter_that_fails_is_named_and_nothing_is_left(limiter, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(limits, "best", lambda *wanted: limits.Choice(limiter, True, ""))
    before = processes.descendants(os.getpid())
    ended = []
    monkeypatch.setattr(processes, "end_descendants", lambda pid: ended.extend(_end_new(pid, before)))
    ear = Ear()
    watch.Watch(ear, a_task(), fork=False).run()
    [(kind, sentence)] = ear.heard
    assert (kind, sentence.startswith(("the group may not", "no group can"))) == ("refused", True)
    assert len(ended) == 1
    assert list(tmp_path.iterdir()) == []


def _end_new(pid, before):
    """End what the watch started, and not the workers of other tests."""
    new = [child for child in processes.descendants(pid) if child not in before]
    for child in new:
        os.kill(child, 9)
        os.waitpid(child, 0)
    return new


def test_a_limiter_is_tried_where_it_is_used_and_the_worker_lives_on(monkeypatch):
    """The supervisor may live in another control group than the caller, which therefore is not asked."""
    monkeypatch.setattr(limits, "check", lambda limiter: pytest.fail("asked in the caller's process"))
    trial = run(sum, [1, 2], ram="200 MB")
    assert trial.value == 3
    monkeypatch.undo()
    if limits.check(limits.CgroupV2).works:
        pytest.skip("every limiter works here")
    before = [supervisor.process.pid for supervisor in worker._idle]
    with pytest.raises(OSError, match='the limiter "cgroup v2" does not work here: '):
        run(sum, [1, 2], ram="200 MB", limiter="cgroup v2")
    assert [supervisor.process.pid for supervisor in worker._idle] == before
    assert run(sum, [1, 2], ram="200 MB").value == 3


def test_a_limiter_is_tried_out_once(monkeypatch):
    made = []
    monkeypatch.setattr(limits, "_checked", {})
    monkeypatch.setattr(limits.GroupV1, "__init__", lambda group: made.append(group) or _refuse())
    for _ in range(3):
        limits.choices()
    assert len(made) == 1


def _refuse():
    raise OSError("not here")


def test_the_limiter_of_the_environment_is_the_callers_of_this_moment(monkeypatch):
    monkeypatch.setenv("OOM_LIMITER", "watchdog")
    assert run(sum, [1], ram="200 MB").limiter == "watchdog"
    monkeypatch.setenv("OOM_LIMITER", "magic")
    with pytest.raises(ValueError, match='no limiter is called "magic"'):
        run(sum, [1], ram="200 MB")


def spawn_a_user_of_helpers():
    program = "import psutil, helpers.jobs.trial; print(len(psutil.Process().children()))"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_a_spawned_child_of_a_job_starts_no_worker_inside_the_budget():
    trial = run(spawn_a_user_of_helpers, ram="400 MB", label=Path(__file__).name)
    assert trial.value == "0\n", trial.log


def refused(*arguments):
    raise PermissionError("not allowed")


def test_a_job_runs_where_the_system_refuses_what_only_helps(monkeypatch):
    """As a strict container does: no descriptor of a process, no file in memory."""
    monkeypatch.setattr(os, "pidfd_open", refused, raising=False)
    monkeypatch.setattr(os, "memfd_create", refused, raising=False)
    monkeypatch.setattr(processes, "end_descendants", lambda pid: True)  # the workers of other tests
    monkeypatch.setattr(os, "wait4", lambda pid, flags: _wait_for(ear.watch.job.pid))
    ear = Ear()
    ear.watch = watch.Watch(ear, a_task(), fork=False)
    ear.watch.run()
    kind, ending = ear.heard[-1]
    assert (kind, cloudpickle.loads(ending.value)) == ("end", 3)


WAIT4 = os.wait4


def _wait_for(pid):
    return WAIT4(pid, os.WNOHANG)
