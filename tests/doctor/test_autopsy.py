"""The doctor on a command: it runs unchanged, and if it dies there is a report that says why."""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from helpers.doctor import cli
from helpers.doctor import report as doctor_report
from helpers.doctor.autopsy import Watched
from helpers.doctor.secrets import without_secrets
from helpers.watching.record import located

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="commands are watched on Linux and macOS")
ROOT = Path(__file__).parents[2]
MAIN = """
import argparse, sys
from helpers.doctor import cli
parser = argparse.ArgumentParser()
cli.add_arguments(parser)
sys.exit(cli.command(parser.parse_args()))
"""
# Always in the line that grows, whenever the doctor looks: one that slept between two pieces was missed at times.
GROWS = """
import os
rows = []
while True:
    rows.append(os.urandom(1_000_000))
"""


@pytest.fixture
def doctor(tmp_path):
    """A function that runs the doctor on arguments in a folder of its own."""

    def run(*arguments, **options):
        return subprocess.run(
            [sys.executable, "-c", MAIN, *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), **options.pop("environment", {})},
            capture_output=True,
            timeout=120,
            check=False,
            **options,
        )

    return run


def script(folder, text, name="train.py"):
    path = folder / name
    path.write_text(text)
    return path


def parse(*words):
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    return parser.parse_args(words)


def test_a_log_is_diagnosed(tmp_path, capsys):
    log = script(tmp_path, "Epoch 1/9\nMemoryError\n", "train.log")
    assert cli.command(parse("--exit-code", "1", str(log))) == 0
    assert capsys.readouterr().out.startswith("host-ram: ")


def test_standard_input_is_diagnosed(doctor):
    done = doctor("-", input=b"slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.")
    assert done.stdout.startswith(b"container-limit: memory-limit-kill")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "name a log or a command"),
        (["--"], "name the command after --"),
        (["train.log", "--exit-code", "137"], "options come first"),
        (["--ram", "2", "--", "true"], 'has no unit; write "2 MB"'),
    ],
)
def test_wrong_arguments_are_answered_in_a_sentence(words, sentence):
    with pytest.raises(ValueError, match=sentence):
        cli.command(parse(*words))


def test_a_command_that_is_not_there_is_answered_as_a_shell_does(capfd):
    assert cli.command(parse("--", "trian")) == 127
    assert "there is no command 'trian'" in capfd.readouterr().err


def test_a_command_runs_unchanged(doctor, tmp_path):
    program = "import sys; print(sys.argv[1:]); print('warn', file=sys.stderr); print(sys.stdin.read()); sys.exit(3)"
    done = doctor("--", sys.executable, "-c", program, "--epochs", "3", "-x", input=b"fed")
    assert done.stdout == b"['--epochs', '3', '-x']\nfed\n"
    assert done.stderr.startswith(b"warn\n")
    assert done.returncode == 3


def test_a_command_that_ends_well_leaves_nothing(doctor, tmp_path):
    before = set(os.listdir(tempfile.gettempdir()))
    done = doctor("--", sys.executable, "-c", "print('fine')")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"fine\n", b"")
    assert not list(tmp_path.iterdir())
    left = {name for name in set(os.listdir(tempfile.gettempdir())) - before if name.startswith("oom-doctor")}
    assert not left


def test_a_program_sees_its_own_environment_path_and_sitecustomize(doctor, tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    script(folder, "import builtins\nbuiltins.customised = True\n", "sitecustomize.py")
    program = (
        "import os, sys, sitecustomize, threading; "
        "print(os.environ['PYTHONPATH'], 'OOM_DOCTOR' in os.environ, [p for p in sys.path if 'oom-doctor' in p],"
        " customised, sitecustomize.__file__, threading.active_count())"
    )
    path = f"{folder}{os.pathsep}{ROOT}"
    done = doctor("--", sys.executable, "-c", program, environment={"PYTHONPATH": path})
    assert done.stdout.decode().split() == [
        path,
        "False",
        "[]",
        "True",
        str(folder / "sitecustomize.py"),
        "1",
    ]


@pytest.mark.parametrize("wrap", [False, True], ids=["plain", "in a shell script"])
def test_over_its_budget_a_command_dies_and_the_report_names_the_line(doctor, tmp_path, wrap):
    program = [sys.executable, script(tmp_path, GROWS)]
    if wrap:
        program = ["sh", script(tmp_path, f"{program[0]} {program[1]}\nexit $?\n", "job.sh")]
    done = doctor("--ram", "150 MB", "--", *program)
    assert done.returncode == 137
    assert b"container-limit" in done.stderr
    report = tmp_path.joinpath("oom-report.txt").read_text()
    assert re.search(r"1[0-9]{2} MB  train\.py:5  rows\.append\(os\.urandom\(1_000_000\)\)", report)
    assert re.search(r"Peak RAM of the whole tree: 1[45][0-9] MB", report)
    assert "Who killed it: This doctor: the command went over its budget of 150 MB." in report


def test_a_memory_error_is_reported_with_the_output(doctor, tmp_path):
    program = "print('Epoch 1/9')\nX = bytearray(10**9)\nraise MemoryError\n"
    done = doctor("--", sys.executable, script(tmp_path, program))
    assert done.returncode == 1
    report = tmp_path.joinpath("oom-report.txt").read_text()
    assert report.startswith(f"Died: {sys.executable} ")
    assert "host-ram: " in report
    assert "  Epoch 1/9\n" in report
    assert "Nobody: the program ended by itself with exit code 1." in report


def test_a_plain_kill_is_not_called_out_of_memory(doctor, tmp_path):
    program = "import os\nrows = [bytearray(10**7) for _ in range(9)]\nos.kill(os.getpid(), 9)\n"
    done = doctor("--", sys.executable, script(tmp_path, program))
    assert done.returncode == 137
    assert b"doctor: unknown: cannot tell" in done.stderr


def test_the_page_stands_alone_and_shows_output_as_text(doctor, tmp_path):
    program = "import time\nprint('<script>alert(1)</script>', flush=True)\ntime.sleep(0.5)\nraise MemoryError('<b>')\n"
    doctor("--", sys.executable, script(tmp_path, program))
    page = tmp_path.joinpath("oom-report.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert 'src="data:image/png;base64,' in page
    assert not re.search(r"(?:src|href)=\"(?!data:)", page)


def test_no_secret_gets_into_a_report(doctor, tmp_path):
    program = "print('password: hunter2'); print('https://me:hunter2@host/x'); raise MemoryError"
    secrets = ("--api-key=hunter2", "--hf-token", "hunter2", "hf_hunter2hunter2")
    doctor(
        "--",
        sys.executable,
        "-c",
        program,
        *secrets,
        environment={"AWS_SECRET": "hunter2", "HOME": "/hunter2"},
    )
    for path in (tmp_path / "oom-report.txt", tmp_path / "oom-report.html"):
        assert "hunter2" not in path.read_text()


def test_ordinary_words_are_not_taken_for_secrets():
    text = "tokens per second: 512, token count: 3, 'secretary' and max_tokens=7"
    assert without_secrets("Epoch 1/9 - tokens per second 512") == "Epoch 1/9 - tokens per second 512"
    assert "512" in without_secrets(text)


def test_where_the_report_cannot_be_written_it_goes_elsewhere(doctor, tmp_path):
    blocked = script(tmp_path, "", "file")
    done = doctor("--report", blocked, "--", sys.executable, "-c", "raise MemoryError")
    assert done.returncode == 1
    place = re.search(rb"see (\S+oom-report\.html)", done.stderr)[1].decode()
    assert (tmp_path / place).exists()


def test_a_signal_to_the_doctor_reaches_the_command(tmp_path):
    program = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7));"
        "print('ready', flush=True); time.sleep(60)"
    )
    doctor = subprocess.Popen(
        [sys.executable, "-c", MAIN, "--", sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with doctor:
        assert doctor.stdout.readline() == b"ready\n"
        time.sleep(0.2)
        doctor.send_signal(signal.SIGTERM)
        assert doctor.wait(30) == 7


def test_on_a_terminal_the_command_has_a_terminal(tmp_path):
    import pty

    program = "import sys; print('terminal', sys.stdout.isatty(), sys.stderr.isatty())"
    outside, inside = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "--", sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=inside,
        stderr=inside,
        timeout=60,
        check=False,
    )
    os.close(inside)
    assert done.returncode == 0
    assert b"terminal True True" in os.read(outside, 1000)
    os.close(outside)


def test_a_line_that_held_next_to_nothing_is_no_evidence(tmp_path):
    program = script(tmp_path, 'print("loading data")\nrows.append(np.ones(10**9))\n')
    watched = Watched(
        label="python train.py",
        outcome="killed",
        exit_code=137,
        seconds=1.0,
        ram_budget=700 * 10**6,
        vram_budget=None,
        peak_ram=700 * 10**6,
        peak_vram=None,
        lines=(located((str(program), 2), 700 * 10**6), located((str(program), 1), 20 * 10**6)),
        log="loading data\n",
        over_budget=True,
    )
    evidence = doctor_report.diagnose_watched(watched).evidence
    assert any("train.py:2" in line for line in evidence)
    assert not any("train.py:1" in line for line in evidence)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="this system has no /dev/shm")
def test_what_a_command_leaves_in_shared_memory_stays(tmp_path, doctor):
    left = Path("/dev/shm") / f"left-{tmp_path.name}-{os.getpid()}"
    program = (
        f"import mmap, time; file = open({str(left)!r}, 'w+b'); file.write(bytes(10**6)); file.flush();"
        "mapped = mmap.mmap(file.fileno(), 0); time.sleep(0.5)"
    )
    try:
        assert doctor("--", sys.executable, "-c", program).returncode == 0
        assert left.stat().st_size == 10**6
    finally:
        left.unlink(missing_ok=True)
