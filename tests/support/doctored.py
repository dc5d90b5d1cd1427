"""The doctor as a user calls it: `python -m helpers doctor ...`, in a folder that is not the project's."""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCTOR = [sys.executable, "-m", "helpers", "doctor"]
PYTHON = sys.executable
SECONDS_TO_HANG = 60


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def start(folder, *words, **options):
    """The doctor as a `Popen`."""
    more = options.pop("environment", {})
    command = [*DOCTOR, *map(str, words)]
    return subprocess.Popen(command, cwd=folder, env=environment(**more), **options)


def doctor(folder, *words, **options):
    """The doctor to its end, with what it printed."""
    more = options.pop("environment", {})
    return subprocess.run(
        [*DOCTOR, *map(str, words)],
        cwd=folder,
        env=environment(**more),
        timeout=3 * SECONDS_TO_HANG,
        check=False,
        **{"capture_output": True, **options},
    )


def shell(folder, line, **options):
    """A line of bash in which `doctor` is the doctor and `python` this one."""
    functions = f'doctor() {{ "{PYTHON}" -m helpers doctor "$@"; }}\npython() {{ "{PYTHON}" "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", f"{functions}{line}"],
        cwd=folder,
        env=environment(),
        timeout=3 * SECONDS_TO_HANG,
        check=False,
        **{"capture_output": True, **options},
    )


def wait_for(question):
    """Ask until the answer is true, and return it."""
    deadline = time.monotonic() + SECONDS_TO_HANG
    while not (answer := question()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return answer


def script(folder, text, name="train.py"):
    path = Path(folder) / name
    path.write_text(text)
    return path


def is_running(pid):
    """False also for one that has ended and that nobody has reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
