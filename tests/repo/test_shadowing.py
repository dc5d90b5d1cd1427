"""Another `helpers` on the path: ours says that it hides it, and works on where theirs comes first."""

import pytest


@pytest.fixture(params=["module", "package", "folder"])
def theirs(tmp_path, request):
    """Somebody else's helpers, in a folder of its own, in each of the three ways to have one."""
    path = tmp_path / "theirs" / "helpers"
    path.mkdir(parents=True)
    if request.param == "module":
        path.rmdir()
        path = path.with_suffix(".py")
        path.write_text("words = 1\n")
        return path
    (path / "words.py").write_text("count = 1\n")
    if request.param == "package":
        (path / "__init__.py").write_text("")
    return path


@pytest.mark.parametrize(
    "statement",
    [
        "from helpers import words",
        "import helpers.words",
        "from helpers.words import count",
        "import helpers; helpers.words",
    ],
)
def test_a_name_of_theirs_is_answered_with_where_both_are(core, theirs, tmp_path, statement):
    program = f"import helpers, sys; sys.path.append({str(theirs.parent)!r}); {statement}"
    code, printed = core.python("-c", program, folder=tmp_path)
    assert code == 1
    assert printed.splitlines()[-1].endswith(
        f" in {core.packages}/helpers, the package of oom-on-purpose, which hides another helpers, {theirs}; "
        "rename that one, or use the two in different processes"
    )


@pytest.mark.parametrize("statement", ["from helpers import words", "import helpers.words"])
def test_without_another_helpers_a_wrong_name_is_only_wrong(core, tmp_path, statement):
    code, printed = core.python("-c", statement, folder=tmp_path)
    assert code == 1
    assert "hides" not in printed


def test_who_asks_whether_a_name_of_theirs_is_there_hears_no(core, theirs, tmp_path):
    program = (
        f"import helpers, sys; sys.path.append({str(theirs.parent)!r}); print(hasattr(helpers, 'words'))"
    )
    assert core.python("-c", program, folder=tmp_path) == (0, "False")


def test_the_command_finds_ours_where_theirs_comes_first(core, theirs):
    (theirs.parent / "train.log").write_text("MemoryError: Unable to allocate 3.0 GiB for an array")
    words = ("-m", "oom_on_purpose", "doctor", "train.log")
    code, printed = core.python(*words, folder=theirs.parent, PYTHONPATH=str(theirs.parent))
    assert code == 0, printed
    assert printed.startswith("host-ram: ")


@pytest.mark.parametrize("theirs", ["module", "package"], indirect=True)
def test_a_command_that_the_doctor_runs_has_its_own_helpers(core, theirs):
    (theirs.parent / "train.py").write_text("import helpers; print(helpers.__file__)")
    words = ("-m", "oom_on_purpose", "doctor", "--", str(core.executable), "train.py")
    code, printed = core.python(*words, folder=theirs.parent)
    assert (code, printed) == (0, str(theirs / "__init__.py" if theirs.is_dir() else theirs))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_job_runs_where_theirs_comes_first_in_new_processes(core, theirs, tmp_path, start):
    program = (
        "import os, sys, helpers;"
        f"os.environ['PYTHONPATH'] = {str(theirs.parent)!r};"
        "sys.path.insert(0, os.environ['PYTHONPATH']);"
        "print(helpers.run(sum, [1, 2, 3], ram='200 MB').value)"
    )
    assert core.python("-c", program, folder=tmp_path, OOM_START=start) == (0, "6")
