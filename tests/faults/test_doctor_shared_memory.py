"""The doctor removes nothing from /dev/shm, and leaves nothing by which others would: neither the command's own
results, nor what a daemon of it holds, nor a stranger's."""

import os
import subprocess
from pathlib import Path

import pytest

from doctored import PYTHON, doctor, environment, script, wait_for

SHARED = Path("/dev/shm")
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="this system has no /dev/shm")
# Makes a file as its result, another one that a daemon goes on holding, waits for a stranger's, and ends as told.
JOB = """
import mmap, os, sys, time
from pathlib import Path

def make(name):
    file = open(name, "w+b")
    file.write(bytes(10**6))
    file.flush()
    return mmap.mmap(file.fileno(), 0)

name, exit_code = sys.argv[1], int(sys.argv[2])
result = make(name + "-result")
if os.fork() == 0:
    os.setsid()
    held = make(name + "-daemon")
    Path("daemon").touch()
    while not Path("end").exists():
        time.sleep(0.02)
    os._exit(0)
Path("ready").touch()
while not Path("go").exists() or not Path("daemon").exists():
    time.sleep(0.02)
time.sleep(0.5)
os._exit(exit_code)
"""
DAEMON = """
import os, time
from pathlib import Path
if os.fork() == 0:
    os.setsid()
    Path("daemon").touch()
    while not Path("end").exists():
        time.sleep(0.02)
    Path("ended").touch()
    os._exit(0)
while not Path("daemon").exists():
    time.sleep(0.02)
"""
SWEEP = "from helpers.watching.leftovers import sweep; sweep()"


@pytest.mark.parametrize(
    "ending", [("--", 0), ("--", 1), ("--ram", "500 MB", "--", 0), ("--ram", "500 MB", "--", 1)]
)
def test_every_file_stays_also_after_the_next_worker_has_swept_up(tmp_path, ending):
    *options, exit_code = ending
    name = f"/dev/shm/left-{tmp_path.name}-{os.getpid()}"
    stranger = subprocess.Popen(
        ["sh", "-c", f"until test -e ready; do sleep 0.02; done; echo stranger > {name}-stranger; touch go"],
        cwd=tmp_path,
    )
    try:
        with stranger:
            done = doctor(
                tmp_path, *options, PYTHON, script(tmp_path, JOB), name, exit_code, capture_output=False
            )
            assert done.returncode == exit_code
        subprocess.run([PYTHON, "-c", SWEEP], cwd=tmp_path, env=environment(), check=True, timeout=120)
        assert Path(f"{name}-result").stat().st_size == 10**6
        assert Path(f"{name}-daemon").stat().st_size == 10**6
        assert Path(f"{name}-stranger").read_text() == "stranger\n"
    finally:
        (tmp_path / "end").touch()
        for kind in ("result", "daemon", "stranger"):
            Path(f"{name}-{kind}").unlink(missing_ok=True)


def test_a_daemon_of_the_command_survives_the_sweep(tmp_path):
    """It was in a group of the doctor's, if that was on a budget; nobody ends it for that."""
    words = ("--ram", "500 MB", "--", PYTHON, script(tmp_path, DAEMON))
    assert doctor(tmp_path, *words, capture_output=False).returncode == 0
    subprocess.run([PYTHON, "-c", SWEEP], cwd=tmp_path, env=environment(), check=True, timeout=120)
    (tmp_path / "end").touch()
    wait_for((tmp_path / "ended").exists)


def test_the_doctor_keeps_no_record_of_files_to_be_removed(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    name = f"/dev/shm/left-{tmp_path.name}-{os.getpid()}"
    (tmp_path / "go").touch()
    try:
        doctor(
            tmp_path,
            "--",
            *(PYTHON, script(tmp_path, JOB), name, 0),
            capture_output=False,
            environment={"TMPDIR": str(temporary)},
        )
        assert os.listdir(temporary) == []
    finally:
        (tmp_path / "end").touch()
        for kind in ("result", "daemon"):
            Path(f"{name}-{kind}").unlink(missing_ok=True)
