"""The matrix of Pythons and surroundings: rows are run and counted, and the table keeps those that were not."""

import sys

import pytest

import matrix
import matrix_page

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
    path.write_text(matrix_page.write_page({"3.12": RESULT}, ["3.12"]))
    monkeypatch.setattr(matrix_page, "TABLE", path)
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
    rows, _ = matrix_page.read_page(table.read_text())
    assert rows == {"user": rows["user"]}  # in the order of the rows that there are
    monkeypatch.setattr(
        matrix,
        "rows",
        lambda machine: [matrix.Row("3.12", "", refuse), a_row("def test_a(): assert 0", tmp_path)],
    )
    table.write_text(matrix_page.write_page({"3.12": RESULT}, ["3.12"]))
    assert matrix.main([]) == 1
    rows, _ = matrix_page.read_page(table.read_text())
    assert (rows["3.12"], rows["user"]["failed"]) == (RESULT, "1")


def test_each_run_of_a_row_that_repeats_is_kept_until_the_row_is_run_again(table, monkeypatch, tmp_path):
    row = a_row("def test_a(): pass", tmp_path)
    monkeypatch.setattr(matrix, "rows", lambda machine: [matrix.Row("3.12", "", refuse), row])
    for row.busy in ((True, False), (False,)):
        assert matrix.main([]) == 0
        rows, runs = matrix_page.read_page(table.read_text())
        assert rows == {"3.12": RESULT, "user": rows["user"]}
        assert rows["user"]["passed"] == str(len(row.busy))
        assert [run["cores"] for run in runs] == ["busy" if is_busy else "quiet" for is_busy in row.busy]
        assert {run["passed"] for run in runs} == {"1"}
    row.commands = ((str(tmp_path / "no_such_test.py"),),)
    assert matrix.main([]) == 1
    assert [run["failed"] for run in matrix_page.read_page(table.read_text())[1]] == ["1"]


def refuse():
    raise matrix.CannotRun("not here")


def test_a_wrong_row_is_answered_with_the_rows(table, capsys):
    with pytest.raises(SystemExit):
        matrix.main(["3.9"])
    assert (
        "the rows are: 3.10, 3.11, 3.12, 3.13, root, user, spawn, busy, cgroup v2, unit tests, memory, notebooks"
        in capsys.readouterr().err
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
