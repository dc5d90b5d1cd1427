"""Every command of the README, typed as it stands there."""

import re
import subprocess
from pathlib import Path

import pytest

from doctored import PYTHON, ROOT, environment, script

README = (ROOT / "README.md").read_text()
NAMED = sorted(set(re.findall(r"(?:python -m helpers|oom-on-purpose) (?=[a-z])[^`\n$&]*[^`\n$&\s]", README)))
LOADS = """
import os
images = []
for number in range(20_000):
    if number % 50 == 0:
        print(f"loading images: {number} of 20000", flush=True)
    images.append(os.urandom(600_000))
"""
KILLED = "Epoch 1/9\nslurmstepd: error: Detected 1 oom_kill event in StepId=7.0.\n"
ENDS_WELL = "print('trained')\n"


def type_in(folder, line, **options):
    """A line in a shell whose `python` and `oom-on-purpose` are this project's."""
    programs = folder / "programs"
    programs.mkdir()
    for name, words in (("python", ""), ("oom-on-purpose", f"{ROOT / 'oom_on_purpose.py'} ")):
        script(programs, f'#!/bin/sh\nexec "{PYTHON}" {words}"$@"\n', name).chmod(0o755)
    path = f"{programs}:{environment()['PATH']}"
    return subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env=environment(PATH=path),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        **options,
    )


def test_no_command_of_the_readme_is_without_a_test():
    assert {command.replace('"', "") for command in NAMED} == {
        "python -m helpers check",
        "python -m helpers data",
        "python -m helpers doctor --ram 800 MB -- python train.py",
        "python -m helpers doctor -",
        "python -m helpers doctor train.log",
        "python -m helpers estimate helpers.course.models:image_cnn --batch 32 --card 512 MB",
        "oom-on-purpose doctor -- python train.py",
    }
    for option in ("--exit-code 137", "`--ram` and `--vram`"):
        assert option in README


@pytest.mark.parametrize("program", ["python -m helpers", "oom-on-purpose"])
class TestTheDoctor:
    def test_on_a_log(self, tmp_path, program):
        script(tmp_path, KILLED, "train.log")
        done = type_in(tmp_path, f"{program} doctor train.log")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("container-limit: memory-limit-kill")

    def test_on_what_another_command_prints(self, tmp_path, program):
        script(tmp_path, KILLED, "train.log")
        done = type_in(tmp_path, f"cat train.log | {program} doctor -")
        assert done.stdout.startswith("container-limit: memory-limit-kill")

    @pytest.mark.parametrize("words", ["train.log", "-"])
    def test_with_what_the_shell_said(self, tmp_path, program, words):
        script(tmp_path, "Epoch 1/9\n", "train.log")
        done = type_in(tmp_path, f"{program} doctor --exit-code 137 {words} < train.log")
        assert done.returncode == 0
        assert "137 (SIGKILL)" in done.stdout

    def test_on_a_command_that_ends_well(self, tmp_path, program):
        script(tmp_path, ENDS_WELL)
        done = type_in(tmp_path, f"{program} doctor -- python train.py")
        assert (done.returncode, done.stdout, done.stderr) == (0, "trained\n", "")
        assert not list(tmp_path.glob("oom-report*"))

    def test_on_a_command_with_options_of_its_own(self, tmp_path, program):
        script(tmp_path, "import sys\nprint(sys.argv[1:])\nraise SystemExit(3)\n")
        done = type_in(tmp_path, f"{program} doctor -- python train.py --ram 3 -- --exit-code -x")
        assert (done.returncode, done.stdout) == (3, "['--ram', '3', '--', '--exit-code', '-x']\n")

    def test_on_a_budget(self, tmp_path, program):
        script(tmp_path, LOADS)
        done = type_in(tmp_path, f'{program} doctor --ram "200 MB" -- python train.py')
        assert done.returncode == 137
        assert done.stdout.startswith("loading images: 0 of 20000\n")
        assert "\ndoctor: container-limit: " in done.stderr
        assert "see oom-report.html, oom-report.txt and notebook " in done.stderr
        report = (tmp_path / "oom-report.txt").read_text()
        assert re.search(r" MB  train\.py:7  images\.append\(", report)


def test_the_doctor_gives_tensorflow_a_virtual_gpu(tmp_path):
    script(tmp_path, "import os\nprint(os.environ['TF_CPU_BFC_MEM_LIMIT_IN_MB'])\n")
    done = type_in(tmp_path, 'python -m helpers doctor --vram "512 MiB" -- python train.py')
    assert (done.returncode, done.stdout) == (0, "512\n")


def test_check_says_what_this_machine_has(tmp_path):
    done = type_in(tmp_path, "python -m helpers check")
    assert "RAM" in done.stdout
    assert "Traceback" not in done.stderr


def test_data_lists_what_it_makes(tmp_path):
    done = type_in(tmp_path, "python -m helpers data --help")
    assert done.returncode == 0
    unknown = type_in(Path(tmp_path, "programs"), "python -m helpers data fligths.csv")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "is no data file of the course" in unknown.stderr


def test_estimate_predicts_a_peak_and_a_batch_that_fits(tmp_path):
    pytest.importorskip("tensorflow")
    line = 'python -m helpers estimate helpers.course.models:image_cnn --batch 32 --card "512 MB"'
    done = type_in(tmp_path, line)
    assert done.returncode == 1  # it does not fit
    assert done.stdout.startswith("batch of 32, Adam, float32\n")
    assert done.stdout.endswith("It does not fit on a card of 512 MB; the largest batch is 13.\n")
