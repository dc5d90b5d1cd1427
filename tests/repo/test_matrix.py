"""The matrix of Pythons and surroundings: rows are run and counted, and the table keeps those that were not."""

import sys

import pytest

import matrix

RESULT = {
    "row": "3.12",
    "what runs": "unit tests",
    "Python": "3.12.1",
    "date": "2026-01-02",
    "passed": "5",
    "failed": "0",
    "skipped": "1",
    "seconds": "7",
}


@pytest.fixture
def table(tmp_path, monkeypatch):
    path = tmp_path / "matrix.md"
    path.write_text(matrix.write_table({"3.12": RESULT}, ["3.12"]))
    monkeypatch.setattr(matrix, "TABLE", path)
    return path


def a_row(text, folder):
    folder.joinpath("test_it.py").write_text(text)
    return matrix.Row("user", "a little", matrix.own_python, ((str(folder / "test_it.py"),),))


def test_a_row_counts_what_pytest_says(tmp_path):
    text = "import pytest\ndef test_a(): pass\ndef test_b(): assert 0\ndef test_c(): pytest.skip()\n"
    result = a_row(text, tmp_path).run()
    assert [result[name] for name in ("passed", "failed", "skipped")] == ["1", "1", "1"]
    assert result["Python"] == matrix.version_of(sys.executable)


def test_tests_that_cannot_even_start_have_failed(tmp_path):
    assert a_row("import no_such_module_of_anyone", tmp_path).run()["failed"] == "1"


def test_rows_that_were_not_run_stay(table, monkeypatch, tmp_path):
    monkeypatch.setattr(matrix, "rows", lambda machine: [a_row("def test_a(): pass", tmp_path)])
    assert matrix.main(["user"]) == 0
    rows = matrix.read_table(table.read_text())
    assert rows == {"user": rows["user"]}  # in the order of the rows that there are
    monkeypatch.setattr(
        matrix,
        "rows",
        lambda machine: [matrix.Row("3.12", "", refuse), a_row("def test_a(): assert 0", tmp_path)],
    )
    table.write_text(matrix.write_table({"3.12": RESULT}, ["3.12"]))
    assert matrix.main([]) == 1
    rows = matrix.read_table(table.read_text())
    assert (rows["3.12"], rows["user"]["failed"]) == (RESULT, "1")


def refuse():
    raise matrix.CannotRun("not here")


def test_a_wrong_row_is_answered_with_the_rows(table, capsys):
    with pytest.raises(SystemExit):
        matrix.main(["3.9"])
    assert (
        "the rows are: 3.10, 3.11, 3.12, 3.13, root, user, spawn, busy, cgroup v2" in capsys.readouterr().err
    )


def test_an_interpreter_that_is_there_and_does_not_run_is_passed_over(tmp_path, monkeypatch):
    shim = tmp_path / "python3.10"
    shim.write_text("#!/bin/sh\necho 'not selected' >&2\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    with pytest.raises(matrix.CannotRun, match=r"no Python 3\.10 is installed"):
        matrix.interpreter("3.10")
    real = tmp_path / "versions" / "3.10.1" / "bin" / "python"
    real.parent.mkdir(parents=True)
    real.write_text("#!/bin/sh\necho 3.10.1\n")
    real.chmod(0o755)
    assert matrix.interpreter("3.10") == real
