"""A command that cannot be executed: the doctor answers as a shell does, in a sentence, and writes no report."""

import os
import subprocess

import pytest

from doctored import DOCTOR, ROOT, doctor


def make(folder, name, text, mode=0o755):
    path = folder / name
    path.write_bytes(text)
    path.chmod(mode)
    return f"./{name}"


@pytest.mark.parametrize("options", [(), ("--ram", "200 MB")], ids=["", "on a budget"])
@pytest.mark.parametrize(
    ("name", "exit_code", "sentence"),
    [
        ("trian", 127, "there is no command 'trian'; check its name and the PATH"),
        ("./trian", 127, "there is no command './trian'"),
        ("./plain", 126, "'./plain' may not be executed; `chmod +x` it"),
        ("./folder", 126, "'./folder' cannot be executed: it is a folder"),
        (
            "./orphan",
            127,
            "'./orphan' cannot be executed: the interpreter that its first line names is not there",
        ),
        ("./binary", 126, "'./binary' cannot be executed: Exec format error"),
    ],
)
def test_it_says_why_with_the_exit_code_of_a_shell(tmp_path, name, exit_code, sentence, options):
    make(tmp_path, "plain", b"echo hello\n", 0o644)
    make(tmp_path, "orphan", b"#!/no/such/interpreter\n")
    make(tmp_path, "binary", b"\x00\x01\x02\n")
    (tmp_path / "folder").mkdir()
    before = sorted(path.name for path in tmp_path.iterdir())
    done = doctor(tmp_path, *options, "--", name)
    assert (done.returncode, done.stdout) == (exit_code, b"")
    assert sentence in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    shell = subprocess.run(["bash", "-c", name], cwd=tmp_path, capture_output=True, check=False)
    assert shell.returncode == exit_code


def test_a_script_without_a_first_line_is_run_by_the_shell(tmp_path):
    make(tmp_path, "job", b'echo "$1 and $2"; exit 6\n')
    done = doctor(tmp_path, "--", "./job", "one", "two words")
    assert (done.returncode, done.stdout) == (6, b"one and two words\n")


def test_the_command_has_the_environment_that_the_doctor_was_given(tmp_path):
    bare = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LANG": "C"}
    plain, watched = (
        subprocess.run(
            [*before, "env"], cwd=tmp_path, env=bare, capture_output=True, check=True
        ).stdout.split()
        for before in ((), (*DOCTOR, "--"))
    )
    changed = {
        line for line in set(plain) ^ set(watched) if not line.startswith((b"PYTHONPATH=", b"OOM_DOCTOR="))
    }
    assert changed == set()
