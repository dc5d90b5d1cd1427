"""Signals under the doctor: the command starts with those that it would have without, and gets what is sent to the
doctor, once."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from doctored import DOCTOR, PYTHON, doctor, environment, script, shell, start, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")

# Writes down each signal that it gets, and ends when there is a file "end".
LISTENER = """
import os, signal, sys, time
from pathlib import Path
names = sys.argv[1:]
def note(number, frame):
    with open("got", "a") as got:
        got.write(signal.Signals(number).name + "\\n")
for name in names:
    signal.signal(getattr(signal, name), note)
Path("pid").write_text(str(os.getpid()))
Path("ready").touch()
while not Path("end").exists():
    time.sleep(0.02)
sys.exit(7)
"""


def got(folder):
    path = Path(folder, "got")
    return path.read_text().split() if path.exists() else []


def listen(folder, *names, **options):
    """The doctor on a program that notes these signals; it listens by now."""
    process = start(folder, "--", PYTHON, script(folder, LISTENER), *names, **options)
    wait_for(Path(folder, "ready").exists)
    return process


def end(folder, process):
    Path(folder, "end").touch()
    return process.wait(60)


def test_the_command_ignores_the_signals_that_it_would_ignore_without_the_doctor(tmp_path):
    question = ["grep", "-E", "Sig(Ign|Blk|Cgt)", "/proc/self/status"]
    plain = subprocess.run(question, capture_output=True, check=True).stdout
    assert doctor(tmp_path, "--", *question).stdout == plain


def test_what_whoever_started_the_doctor_ignores_stays_ignored(tmp_path):
    line = "trap '' INT HUP USR1; {}grep SigIgn /proc/self/status"
    plain, watched = (shell(tmp_path, line.format(before)).stdout for before in ("", "doctor -- "))
    assert plain == watched
    assert plain.split()[1] != b"0" * 16


def test_a_reader_that_had_enough_ends_the_command_as_without_the_doctor(tmp_path):
    line = "set -o pipefail; {}yes | head -1; echo ${{PIPESTATUS[0]}}"
    plain, watched = (shell(tmp_path, line.format(before)) for before in ("", "doctor -- "))
    assert watched.stdout == plain.stdout == b"y\n141\n"
    assert watched.stderr == b""
    assert sorted(path.name for path in tmp_path.iterdir()) == []


def test_a_python_program_learns_that_its_reader_is_gone(tmp_path):
    program = "import itertools\nfor number in itertools.count():\n    print(number, flush=True)\n"
    script(tmp_path, program)
    done = shell(tmp_path, "doctor -- python train.py | head -1")
    assert done.stdout == b"0\n"
    assert b"BrokenPipeError" in done.stderr


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "CONT", "ALRM"])
def test_a_signal_to_the_doctor_alone_reaches_the_command_once(tmp_path, name):
    name = f"SIG{name}"
    with listen(tmp_path, name) as process:
        process.send_signal(getattr(signal, name))
        wait_for(lambda: got(tmp_path))
        assert end(tmp_path, process) == 7
    assert got(tmp_path) == [name]


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2"])
def test_a_signal_to_all_of_the_group_reaches_the_command_once(tmp_path, name):
    name = f"SIG{name}"
    with listen(tmp_path, name, start_new_session=True) as process:
        os.killpg(process.pid, getattr(signal, name))
        wait_for(lambda: got(tmp_path))
        process.send_signal(signal.SIGCONT)  # has taken its turn behind the other one when the command ends
        assert end(tmp_path, process) == 7
    assert got(tmp_path) == [name]


@pytest.mark.parametrize(("name", "exit_code"), [("INT", 130), ("TERM", 143), ("USR1", 138), ("QUIT", 131)])
def test_a_command_without_a_handler_is_ended_by_the_signal_and_the_doctor_says_so(tmp_path, name, exit_code):
    program = "from pathlib import Path\nimport signal, time\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    program += "Path('ready').touch()\ntime.sleep(300)\n"
    with start(tmp_path, "--", PYTHON, script(tmp_path, program), stderr=subprocess.PIPE) as process:
        wait_for((tmp_path / "ready").exists)
        process.send_signal(getattr(signal, f"SIG{name}"))
        assert process.wait(60) == exit_code
    assert (tmp_path / "oom-report.txt").exists()


def test_kill_9_on_the_doctor_ends_the_command(tmp_path):
    with listen(tmp_path) as process:
        pid = int((tmp_path / "pid").read_text())
        process.kill()
    wait_for(lambda: not Path(f"/proc/{pid}").exists())


class Terminal:
    """A program on a terminal of its own, as a shell starts it."""

    def __init__(self, folder, *words):
        self.pid, self.keyboard = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, environment())

    def type(self, text):
        os.write(self.keyboard, text)

    def resize(self, rows, columns):
        fcntl.ioctl(self.keyboard, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait(self):
        """Read until the end; returns the exit code."""
        try:
            while os.read(self.keyboard, 10_000):
                pass
        except OSError:
            pass
        os.close(self.keyboard)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_ctrl_c_at_a_terminal_reaches_the_command_once(tmp_path):
    terminal = Terminal(tmp_path, *DOCTOR, "--", PYTHON, str(script(tmp_path, LISTENER)), "SIGINT")
    wait_for((tmp_path / "ready").exists)
    terminal.type(b"\x03")
    wait_for(lambda: got(tmp_path))
    terminal.type(b"\x03")
    wait_for(lambda: len(got(tmp_path)) > 1)
    (tmp_path / "end").touch()
    assert terminal.wait() == 7
    assert got(tmp_path) == ["SIGINT", "SIGINT"]


def test_the_command_sees_the_new_size_of_the_window(tmp_path):
    program = """
import os, signal, time
from pathlib import Path
changes = [0]
signal.signal(signal.SIGWINCH, lambda *_: changes.append(0))
while not Path("end").exists():
    if changes:
        changes.pop()
        size = os.get_terminal_size(1)
        Path("new").write_text(f"{size.lines} {size.columns}")
        os.replace("new", "size")
    time.sleep(0.02)
"""
    terminal = Terminal(tmp_path, *DOCTOR, "--", PYTHON, str(script(tmp_path, program)))
    wait_for((tmp_path / "size").exists)
    for size in ("33 77", "44 99"):
        terminal.resize(*map(int, size.split()))
        wait_for(lambda size=size: (tmp_path / "size").read_text() == size)
    (tmp_path / "end").touch()
    assert terminal.wait() == 0


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("to", ["the doctor", "the command", "the group"])
def test_stopped_and_continued_the_two_go_together(tmp_path, to):
    with listen(tmp_path, start_new_session=True) as process:
        # in a session of its own a group is orphaned, and Ctrl-Z does nothing to it; SIGSTOP nobody can refuse
        pid = int((tmp_path / "pid").read_text())
        if to == "the group":
            os.killpg(process.pid, signal.SIGSTOP)
            wait_for(lambda: state(pid) == state(process.pid) == "T")
            os.killpg(process.pid, signal.SIGCONT)
        elif to == "the command":
            os.kill(pid, signal.SIGSTOP)
            wait_for(lambda: state(pid) == "T")
            process.send_signal(signal.SIGCONT)
        else:
            process.send_signal(signal.SIGCONT)
        wait_for(lambda: state(pid) != "T" and state(process.pid) != "T")
        assert end(tmp_path, process) == 7


def test_ctrl_z_stops_both_and_fg_lets_both_go_on(tmp_path):
    words = [*DOCTOR, "--", PYTHON, str(script(tmp_path, LISTENER))]
    terminal = Terminal(tmp_path, "bash", "--norc", "--noprofile", "-i")
    terminal.type((" ".join(words) + "; echo $? > code\n").encode())
    wait_for((tmp_path / "ready").exists)
    pid = int((tmp_path / "pid").read_text())
    first = int(Path(f"/proc/{parent(pid)}/stat").read_text().rpartition(")")[2].split()[1])
    terminal.type(b"\x1a")
    wait_for(lambda: state(pid) == state(first) == "T")
    terminal.type(b"fg; echo $? > code\n")
    wait_for(lambda: state(pid) != "T" and state(first) != "T")
    (tmp_path / "end").touch()
    wait_for(lambda: (tmp_path / "code").exists() and (tmp_path / "code").read_text() == "7\n")
    terminal.type(b"exit\n")
    terminal.wait()


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
