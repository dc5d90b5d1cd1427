"""The public names: lazy for those who run them, visible to editors, each found where it is defined; the version."""

import ast
import re
from pathlib import Path

import pytest

import helpers

ROOT = Path(__file__).resolve().parents[2]
FRONT = (ROOT / "helpers" / "__init__.py").read_text()


def shown_to_editors(source):
    """{name: module} of the imports that only type checkers follow; each is passed on under its own name."""
    blocks = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {
        alias.name: statement.module
        for block in blocks
        for statement in block.body
        for alias in statement.names
        if alias.asname == alias.name
    }


def test_editors_see_every_public_name_in_its_home():
    assert shown_to_editors(FRONT) == helpers._HOME


def test_a_name_that_editors_do_not_see_is_found():
    without = FRONT.replace("import phase as phase", "import phase")
    assert shown_to_editors(without) == {
        name: home for name, home in helpers._HOME.items() if name != "phase"
    }


@pytest.mark.parametrize(("name", "home"), helpers._HOME.items())
def test_a_name_is_defined_in_its_home_and_not_passed_on(name, home):
    source = (ROOT / home.replace(".", "/")).with_suffix(".py").read_text()
    assert name in [getattr(node, "name", None) for node in ast.parse(source).body]


def test_no_room_has_a_public_name():
    rooms = {path.stem for path in (ROOT / "helpers").iterdir()}
    assert rooms.isdisjoint(helpers._HOME)


def test_the_newest_entry_of_the_changelog_is_this_version():
    entries = re.findall(r"^## \[?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert entries[0] == helpers.__version__
