"""The doctor itself fails after it has started the command: the command is ended if it is on a budget, else its output
and its exit code are passed on; either way it is said."""

import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from doctored import PYTHON, environment, is_running, script, start, wait_for

# Breaks a part of the doctor, and calls it as from the command line.
MAIN = """
import sys
from helpers.__main__ import main
from helpers.doctor import autopsy
def fail(*_, **__):
    raise {error}
autopsy.{part} = fail
sys.exit(main(["doctor", *sys.argv[1:]]))
"""
JOB = """
import os, time
from pathlib import Path
Path("pid").write_text(str(os.getpid()))
for number in range(10):
    print(number, flush=True)
    time.sleep(0.1)
Path("done").touch()
raise SystemExit(42)
"""
PARTS = [
    "Sampler",
    "Sampler.start",
    "Sampler.tick",
    "limits.NoLimit.admit",
    "PythonProcesses.ask",
    "Surroundings.look",
]
ON_A_BUDGET = ["Sampler.tick", "limits.Watchdog.admit", "limits.Watchdog.arm", "limits.Watchdog.exceeded"]


def broken(folder, part, *words, error="OSError('broken')"):
    program = MAIN.format(part=part, error=error)
    return subprocess.run(
        [PYTHON, "-c", program, *map(str, words)],
        cwd=folder,
        env=environment(OOM_LIMITER="watchdog"),
        capture_output=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("error", ["OSError('broken')", "MemoryError()"])
@pytest.mark.parametrize("part", PARTS)
def test_without_a_budget_the_command_goes_on(tmp_path, part, error):
    done = broken(tmp_path, part, "--", PYTHON, script(tmp_path, JOB), error=error)
    assert done.stdout == b"".join(b"%d\n" % number for number in range(10))
    assert done.returncode == 42
    assert b"doctor: the watching failed (" in done.stderr
    assert b"; the command runs on unwatched.\n" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("part", ON_A_BUDGET)
def test_on_a_budget_the_command_is_ended(tmp_path, part):
    done = broken(tmp_path, part, "--ram", "200 MB", "--", PYTHON, script(tmp_path, JOB))
    assert done.returncode == 137
    assert b"the command was ended: nobody keeps its budget any more." in done.stderr
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize("part", ["PythonProcesses.lines", "Surroundings.evidence", "Watched"])
def test_after_the_end_of_the_command_its_exit_code_is_kept(tmp_path, part):
    done = broken(tmp_path, part, "--", PYTHON, script(tmp_path, JOB))
    assert done.returncode == 42
    assert b"doctor: the watching failed (OSError('broken')); there is no report." in done.stderr


@pytest.mark.parametrize("budget", [(), ("--ram", "200 MB")], ids=["", "on a budget"])
def test_a_watching_process_that_is_killed_takes_the_command_with_it(tmp_path, budget):
    job = JOB.replace("range(10)", "range(3000)")
    words = (*budget, "--", PYTHON, script(tmp_path, job))
    with start(tmp_path, *words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        pid = int((tmp_path / "pid").read_text())
        watcher = psutil.Process(pid).ppid()
        assert psutil.Process(watcher).ppid() == process.pid
        psutil.Process(watcher).send_signal(signal.SIGKILL)
        assert process.wait(60) == 137
        assert (
            b"the process that watched the command was killed, so the command was ended"
            in process.stderr.read()
        )
    wait_for(lambda: not is_running(pid))
    assert not Path(tmp_path, "done").exists()
