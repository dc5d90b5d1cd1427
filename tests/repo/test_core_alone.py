"""With the core alone, budgets, charts and the doctor work; what needs TensorFlow says what to install."""

import struct

import pytest

INSTALL = 'needs TensorFlow; install it: pip install "oom-on-purpose[tensorflow]"'
FILL = """
def fill():
    return [bytearray(b"x") * 10_000_000 for _ in range(1000)]
"""


def run_program(core, folder, program):
    """What a program prints that is run as a file; its jobs' lines are those of the file."""
    (folder / "program.py").write_text(program)
    code, printed = core.python("program.py", folder=folder)
    assert code == 0, printed
    return printed.splitlines()


@pytest.mark.parametrize(
    "package", ["tensorflow", "keras", "IPython", "ipywidgets", "tqdm", "pytest", "sklearn"]
)
def test_the_environment_has_the_core_alone(core, tmp_path, package):
    code, printed = core.python("-c", f"import {package}", folder=tmp_path)
    assert code == 1
    assert f"No module named '{package}'" in printed


def test_the_package_is_the_built_one_and_knows_its_version(core, tmp_path):
    program = (
        "import helpers, importlib.metadata;"
        "print(helpers.__file__, helpers.__version__ == importlib.metadata.version('oom-on-purpose'))"
    )
    assert core.python("-c", program, folder=tmp_path) == (0, f"{core.packages}/helpers/__init__.py True")


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_job_on_a_ram_budget_finishes(core, tmp_path, start):
    program = "from helpers import run; print(run(sum, [1, 2, 3], ram='200 MB').value)"
    assert core.python("-c", program, folder=tmp_path, OOM_START=start) == (0, "6")


def test_a_job_over_its_ram_budget_is_killed_and_its_line_known(core, tmp_path):
    program = FILL + (
        "from helpers import run\n"
        "trial = run(fill, ram='200 MB')\n"
        "print(trial.outcome, trial.exit_code, trial.lines[0].source)"
    )
    assert run_program(core, tmp_path, program) == ["killed 137 " + FILL.splitlines()[-1].strip()]


def test_charts_are_drawn(core, tmp_path):
    program = FILL + (
        "from pathlib import Path\n"
        "from helpers import compare, phase, plot, run\n"
        "naive, fixed = run(fill, ram='200 MB'), run(int, ram='200 MB')\n"
        "Path('plot.png').write_bytes(plot(naive).png())\n"
        "Path('compare.png').write_bytes(compare(naive, fixed).figure.png())\n"
        "print(compare(naive, fixed).table['outcome'].tolist())"
    )
    assert run_program(core, tmp_path, program) == ["['killed', 'finished']"]
    for name in ("plot.png", "compare.png"):
        picture = (tmp_path / name).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert struct.unpack(">I", picture[16:20]) == (900,)


def test_the_doctor_reads_a_log(core, tmp_path):
    (tmp_path / "train.log").write_text("MemoryError: Unable to allocate 3.0 GiB for an array")
    code, printed = core.python("-m", "helpers", "doctor", "train.log", folder=tmp_path)
    assert code == 0, printed
    assert printed.startswith("host-ram: ")


def test_the_doctor_watches_a_command_and_writes_its_report(core, tmp_path):
    (tmp_path / "train.py").write_text(f"{FILL}\nfill()")
    words = ["--ram", "200 MB", "--", str(core.executable), "train.py"]
    code, printed = core.python("-m", "helpers", "doctor", *words, folder=tmp_path)
    assert code == 137, printed
    assert "doctor: see oom-report.html" in printed
    assert "bytearray" in (tmp_path / "oom-report.txt").read_text()
    assert "data:image/png" in (tmp_path / "oom-report.html").read_text()


def test_the_check_says_what_the_machine_has(core, tmp_path):
    code, printed = core.python("-m", "helpers", "check", folder=tmp_path)
    assert code in (0, 1)
    assert "RAM limiter" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    ("what", "program"),
    [
        ("run(vram=...)", "from helpers import run; run(int, vram='200 MB')"),
        ("estimate", "from helpers import estimate; estimate(None, batch_size=1)"),
        ("InputClock", "from helpers import InputClock; InputClock().watch(None)"),
    ],
)
def test_what_needs_tensorflow_says_so_in_a_sentence(core, tmp_path, what, program):
    code, printed = core.python("-c", program, folder=tmp_path)
    assert code == 1
    sentence = printed.splitlines()[-1]
    assert sentence.startswith("ImportError: ")
    assert sentence.endswith(INSTALL), what


def test_the_command_estimate_says_it_without_a_traceback(core, tmp_path):
    code, printed = core.python("-m", "helpers", "estimate", "models:build", "--batch", "1", folder=tmp_path)
    assert (code, printed) == (1, f"estimate {INSTALL}")
