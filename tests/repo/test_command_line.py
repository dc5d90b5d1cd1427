"""`python -m helpers`: the right module runs, errors are sentences, and nothing is imported too early."""

import importlib
import subprocess
import sys

import pytest

from helpers.__main__ import COMMANDS, main
from helpers.course import datasets


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name, capsys):
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    assert f"python -m helpers {name}" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_every_module_in_the_table_can_be_run(command):
    module = importlib.import_module(command.module)
    assert callable(module.add_arguments)
    assert callable(module.command)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["chek"], "check"),
        (["data", "--fast"], "unrecognized arguments: --fast"),
    ],
)
def test_wrong_arguments_are_named(arguments, message, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_an_unknown_data_file_is_answered_with_those_there_are(capsys):
    assert main(["data", "fligths.csv"]) == 1
    assert capsys.readouterr().err == (
        f'"fligths.csv" is no data file of the course; try one of: {", ".join(datasets.names())}\n'
    )


def test_the_doctor_reads_a_log(tmp_path, capsys):
    log = tmp_path / "train.log"
    log.write_text("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 3.0 GiB for an array")
    assert main(["doctor", "--exit-code", "1", str(log)]) == 0
    assert capsys.readouterr().out.startswith("host-ram: ")


@pytest.mark.parametrize("options", [[], ["--report", "."]], ids=["", "options"])
def test_the_doctor_passes_the_exit_code_of_a_command_on(tmp_path, monkeypatch, capfd, options):
    monkeypatch.chdir(tmp_path)
    program = "import sys; print('one'); sys.exit(3)"
    assert main(["doctor", *options, "--", sys.executable, "-c", program]) == 3
    assert capfd.readouterr().out == "one\n"


def test_ctrl_c_ends_a_command_without_a_traceback(monkeypatch, capsys):
    def interrupt(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("helpers.course.datasets.command", interrupt)
    assert main(["data"]) == 130
    assert capsys.readouterr().err == "Stopped.\n"


def test_the_command_line_starts_no_process_and_imports_no_tensorflow():
    script = (
        "import sys, psutil, helpers.__main__;"
        "print(len(psutil.Process().children(recursive=True)), 'tensorflow' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["0", "False"]
