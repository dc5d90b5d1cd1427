"""docs/architecture.md names what is there: every module and every function of its paths exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PLACE = re.compile(r"((?:\w+/)*\w+\.py)(?::(\w+(?:\.\w+)?))?")
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def places(page):
    """The places that a page names in backticks: (file, name or "") in their order, each once."""
    quoted = re.findall(r"`([^`\n]+)`", FENCED.sub("", page))
    found = [match.groups(default="") for match in map(PLACE.fullmatch, quoted) if match]
    return list(dict.fromkeys(found))


def defined(source):
    """The names of a module: its functions and classes, and their methods as `Class.method`."""
    names = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)
            }
    return names


def missing(file, name, root=ROOT):
    """What is not there of a place, or nothing."""
    path = root / file if (root / file).is_file() else root / "helpers" / file
    if not path.is_file():
        return f"there is no {file}"
    if name and name not in defined(path.read_text()):
        return f"{file} does not define {name}"
    return ""


@pytest.mark.parametrize(("file", "name"), places(PAGE))
def test_a_place_that_the_page_names_is_there(file, name):
    assert not missing(file, name)


def test_the_pictures_name_modules_and_rooms_that_are_there():
    processes, floors = FENCED.findall(PAGE)[:2]
    boxes = re.findall(r"(?<![-\w])[a-z_]+(?![-\w:])", "".join(processes.splitlines(keepends=True)[2:]))
    assert len(boxes) == 17
    assert set(boxes) <= {path.stem for path in (ROOT / "helpers").glob("*/*.py")}
    rooms = re.findall(r"(?:^|(?<=  ))(\w+)/(?=\s)", floors, flags=re.MULTILINE)
    assert set(rooms) == {path.parent.name for path in (ROOT / "helpers").glob("*/__init__.py")}


def test_a_name_without_its_module_is_defined_somewhere():
    names = set(re.findall(r"`(\w+)`", FENCED.sub("", PAGE)))
    assert names
    sources = (path.read_text() for path in (ROOT / "helpers").glob("**/*.py"))
    assert names <= set().union(*map(defined, sources))


def test_a_wrong_place_is_found(tmp_path):
    (tmp_path / "helpers" / "jobs").mkdir(parents=True)
    (tmp_path / "helpers" / "jobs" / "trial.py").write_text("class Trial:\n    def show(self): ...\n")
    page = "`jobs/trial.py:Trial.show` `jobs/trial.py:walk` `jobs/cart.py` `run a.py`\n```\n`jobs/no.py`\n```"
    assert places(page) == [("jobs/trial.py", "Trial.show"), ("jobs/trial.py", "walk"), ("jobs/cart.py", "")]
    answers = [missing(file, name, tmp_path) for file, name in places(page)]
    assert answers == ["", "jobs/trial.py does not define walk", "there is no jobs/cart.py"]
