"""What the command prints under the doctor: in its order, as fast as its reader reads, and kept from nobody."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from doctored import DOCTOR, PYTHON, doctor, environment, is_running, script, shell, start, wait_for
from helpers.watching.limits import CgroupV1, CgroupV2, Watchdog

LIMITERS = [limiter.name for limiter in (CgroupV2, CgroupV1, Watchdog) if limiter.check().works]
IN_TURNS = """
import os
for number in range(2000):
    os.write(1, b"out %d\\n" % number)
    os.write(2, b"err %d\\n" % number)
"""
EXPECTED = [f"{stream} {number}" for number in range(2000) for stream in ("out", "err")]


def test_both_streams_into_one_file_keep_their_order(tmp_path):
    script(tmp_path, IN_TURNS)
    shell(tmp_path, "doctor -- python train.py > both 2>&1")
    assert (tmp_path / "both").read_text().split("\n")[:-1] == EXPECTED


def test_both_streams_into_one_pipe_keep_their_order(tmp_path):
    script(tmp_path, IN_TURNS)
    assert (
        shell(tmp_path, "doctor -- python train.py 2>&1 | cat").stdout.decode().split("\n")[:-1] == EXPECTED
    )


def test_both_streams_on_one_terminal_keep_their_order(tmp_path):
    script(tmp_path, IN_TURNS)
    words = f"{' '.join(DOCTOR)} -- {PYTHON} train.py"
    done = subprocess.run(
        ["script", "-qec", words, "typescript"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.decode().split() == " ".join(EXPECTED).split()


def test_two_files_get_what_is_theirs(tmp_path):
    script(tmp_path, IN_TURNS)
    shell(tmp_path, "doctor -- python train.py > out 2> err")
    for place, name in enumerate(("out", "err")):
        assert (tmp_path / name).read_text().split("\n")[:-1] == EXPECTED[place::2]


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_is_closed_for_the_command(tmp_path, redirection):
    job = "exec 9> $1; for number in 0 1 2; do test -e /proc/$$/fd/$number && echo $number >&9; done; true"
    script(tmp_path, job, "job.sh")
    shell(tmp_path, f"sh job.sh plain {redirection}; doctor -- sh job.sh watched {redirection}")
    assert (tmp_path / "watched").read_text() == (tmp_path / "plain").read_text()


PRINTS_AND_GROWS = """
import os, threading
def speak():
    while True:
        os.write(1, b"x" * 4096)
threading.Thread(target=speak, daemon=True).start()
rows = []
while True:
    rows.append(os.urandom(1_000_000))
"""


@pytest.mark.parametrize("limiter", LIMITERS)
def test_a_reader_that_does_not_read_keeps_no_budget_from_being_kept(tmp_path, limiter):
    reading, writing = os.pipe()
    words = ("--ram", "300 MB", "--", PYTHON, script(tmp_path, PRINTS_AND_GROWS))
    process = start(
        tmp_path,
        *words,
        stdout=writing,
        stderr=subprocess.PIPE,
        environment={"OOM_LIMITER": limiter},
    )
    os.close(writing)
    with process:
        pid = wait_for(lambda: command_of(process.pid, "train.py"))
        wait_for(lambda: not is_running(pid))  # though nothing was read so far
        while os.read(reading, 2**20):
            pass
        os.close(reading)
        assert process.wait(60) == 137
        peak = re.search(rb"Peak RAM (\d+) MB", process.stderr.read())
    assert 290 <= int(peak[1]) <= 345  # the watchdog may be late on a busy machine


def command_of(pid, name):
    """The number of a descendant that runs this script."""
    import psutil

    for child in psutil.Process(pid).children(recursive=True):
        try:
            words = child.cmdline()
        except psutil.Error:
            continue
        if name in str(words[-1:]) and "doctor" not in words:
            return child.pid
    return None


def test_a_slow_reader_slows_the_command_down_and_gets_everything(tmp_path):
    program = "import os, sys\nfor number in range(200_000):\n    print(number)\nopen('done', 'w')\n"
    script(tmp_path, program)
    with start(tmp_path, "--", PYTHON, "train.py", stdout=subprocess.PIPE) as process:
        time.sleep(1)  # it fills the pipes meanwhile, whose room is far less than what it prints
        assert not (tmp_path / "done").exists()
        assert process.stdout.read().split() == [b"%d" % number for number in range(200_000)]
        assert process.wait(60) == 0


BACKGROUND = """
import os, sys, time
from pathlib import Path
if os.fork() == 0:
    Path("new").write_text(str(os.getpid()))
    os.replace("new", "child")
    while not Path("go").exists():
        time.sleep(0.02)
    for number in range(100):
        print("later", number, flush=True)
    Path("printed").touch()
    while not Path("end").exists():
        time.sleep(0.02)
    os._exit(0)
while not Path("child").exists():
    time.sleep(0.02)
print("first", flush=True)
os._exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("limiter", ["none", *LIMITERS])
def test_a_background_process_holds_nobody_up_and_goes_on_printing(tmp_path, limiter):
    options = [] if limiter == "none" else ["--ram", "300 MB"]
    chosen = {} if limiter == "none" else {"OOM_LIMITER": limiter}
    words = (*options, "--", PYTHON, script(tmp_path, BACKGROUND), "5")
    with start(
        tmp_path, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, environment=chosen
    ) as process:
        lines = [process.stdout.readline()]
        wait_for((tmp_path / "child").exists)
        child = int((tmp_path / "child").read_text())
        assert process.wait(60) == 5
        assert is_running(child)
        assert groups_of(child) == groups_of(os.getpid())  # not in one that waits for its end
        (tmp_path / "go").touch()
        lines += [process.stdout.readline() for _ in range(100)]
        wait_for((tmp_path / "printed").exists)
        (tmp_path / "end").touch()
        assert process.stdout.read() == b""  # the pipe ends with its last writer
    assert lines == [b"first\n", *(b"later %d\n" % number for number in range(100))]


def groups_of(pid):
    return Path(f"/proc/{pid}/cgroup").read_text()


def test_the_end_of_the_command_does_not_wait_for_a_background_process_that_prints_all_the_time(tmp_path):
    program = "import os\nif os.fork() == 0:\n    while True:\n        os.write(1, b'x' * 1000)\n"
    script(tmp_path, f"{program}os.write(1, b'first')\nos._exit(3)\n")
    line = "(doctor -- python train.py; echo $? > code) | (sleep 3; head -c 1000000) | wc -c"
    done = shell(tmp_path, line)
    assert done.stdout.strip() == b"1000000"
    wait_for((tmp_path / "code").exists)
    assert (tmp_path / "code").read_text() == "3\n"


def test_a_full_disk_is_named(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "wb") as full:
        job = "echo 1; sleep 1; echo 2; exit 4"
        done = doctor(tmp_path, "--", "sh", "-c", job, capture_output=False, stdout=full)
    assert done.returncode != 0
    assert "could not be written: No space left on device" in (tmp_path / "oom-report.txt").read_text()
