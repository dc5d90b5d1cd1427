"""The house keeps every rule of its architecture, and each rule can fail."""

import json

import pytest

import architecture
from architecture import ROOT, RULES, Tree

HOUSE = {
    "helpers/__init__.py": "if TYPE_CHECKING:\n    from helpers.jobs.trial import run",
    "helpers/__main__.py": "from helpers.doctor import cli",
    "helpers/units.py": "import re",
    "helpers/gpu.py": "def cards():\n    import pynvml\n    from helpers import units",
    "helpers/machine.py": "OWN = '/proc/self/cgroup'",
    "helpers/watching/__init__.py": '"""Watches."""',
    "helpers/watching/limits.py": "from helpers import machine",
    "helpers/charts/__init__.py": '"""Draws."""',
    "helpers/charts/look.py": "from helpers.units import format_bytes",
    "helpers/jobs/__init__.py": '"""Runs."""',
    "helpers/jobs/trial.py": "from helpers.jobs import worker\nfrom helpers.charts.look import Chart",
    "helpers/jobs/worker.py": "from . import task\nfrom ..watching import limits",
    "helpers/jobs/task.py": "",
    "helpers/doctor/__init__.py": '"""Diagnoses."""',
    "helpers/doctor/cli.py": "",
    "helpers/doctor/rules/__init__.py": '"""Tables."""',
    "helpers/doctor/rules/killed.py": "RULES = ()\n" * 400,
    "helpers/estimator/__init__.py": '"""Predicts."""',
    "helpers/estimator/explorer.py": "",
    "helpers/course/__init__.py": '"""Teaches."""',
    "helpers/course/models.py": "from helpers.jobs.trial import run",
    "helpers/course/datasets/__init__.py": "from helpers.course.datasets import kind",
    "helpers/course/datasets/kind.py": "",
    "helpers/course/nb05/__init__.py": '"""Lesson."""',
    "helpers/course/nb05/feeding.py": "",
    "helpers/course/nb05/exercise.py": "from helpers.course.nb05.feeding import train",
    "tests/course/nb05/test_feeding.py": "from helpers.course.nb05 import feeding",
    "benchmarks/core.py": "from helpers.jobs.trial import run",
    "notebooks/05_keep.ipynb": "%timeit 1\n!ls\nfrom helpers import run\n"
    "from helpers.course.nb05.feeding import train\n"
    "from helpers.charts.look import Chart\nfrom helpers.estimator.explorer import explore\n"
    "from helpers.units import format_bytes",
}


def build(folder, files):
    """Write files; the text of a notebook is that of its one code cell."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".ipynb":
            cells = [{"cell_type": kind, "source": [text]} for kind in ("code", "markdown")]
            text = json.dumps({"cells": cells})
        path.write_text(text)
    return Tree(folder)


def problems(tree):
    return {rule.__name__: found for rule in RULES if (found := list(rule(tree)))}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house(rule):
    found = list(rule(Tree(ROOT)))
    assert not found, "\n".join(["", *found])


def test_a_small_house_that_keeps_every_rule_is_accepted(tmp_path):
    assert problems(build(tmp_path, HOUSE)) == {}


BREACHES = [
    ("everything_stands_in_a_room", "helpers/tools.py", "", "helpers/tools.py stands in no room"),
    (
        "everything_stands_in_a_room",
        "helpers/cellar/wine.py",
        '"""Old."""',
        "cellar/wine.py stands in no room",
    ),
    (
        "imports_go_down_or_stay",
        "helpers/units.py",
        "def f():\n    from helpers.watching import limits",
        "helpers/units.py:2 imports helpers.watching.limits, which goes up from ground to watching",
    ),
    (
        "imports_go_down_or_stay",
        "helpers/watching/limits.py",
        "import helpers.charts.look",
        "which goes sideways from watching to charts",
    ),
    (
        "imports_go_down_or_stay",
        "helpers/doctor/cli.py",
        "from ..jobs.worker import start",
        "which goes sideways from doctor to jobs",
    ),
    (
        "imports_go_down_or_stay",
        "helpers/charts/look.py",
        "from helpers import plot",
        "which goes up from charts to front",
    ),
    (
        "imports_go_down_or_stay",
        "helpers/jobs/task.py",
        "if TYPE_CHECKING:\n    from helpers.course.datasets import kind",
        "which goes up from jobs to course",
    ),
    (
        "there_is_no_circle",
        "helpers/jobs/task.py",
        "def f():\n    from helpers.jobs import trial",
        "a circle of imports: ",
    ),
    ("there_is_no_circle", "helpers/units.py", "from helpers.gpu import cards", "helpers.units"),
    (
        "a_lesson_is_used_by_its_notebook_alone",
        "helpers/course/nb06/exercise.py",
        "from helpers.course.nb05 import feeding",
        "helpers/course/nb06/exercise.py:1 imports helpers.course.nb05.feeding",
    ),
    (
        "a_lesson_is_used_by_its_notebook_alone",
        "helpers/course/models.py",
        "import helpers.course.nb05.feeding",
        "which is the lesson code of notebook 05",
    ),
    (
        "a_lesson_is_used_by_its_notebook_alone",
        "notebooks/06_leave.ipynb",
        "def job():\n    from helpers.course.nb05.feeding import train",
        "notebooks/06_leave.ipynb:2",
    ),
    (
        "a_lesson_is_used_by_its_notebook_alone",
        "benchmarks/input.py",
        "from helpers.course.nb05 import feeding",
        "benchmarks/input.py:1",
    ),
    (
        "a_lesson_is_used_by_its_notebook_alone",
        "tests/course/test_all.py",
        "from helpers.course.nb05 import feeding",
        "tests/course/test_all.py:1",
    ),
    (
        "modules_are_short",
        "helpers/jobs/task.py",
        "import os\n" * 301,
        "helpers/jobs/task.py has 301 lines, more than 300",
    ),
    (
        "rooms_open_with_a_docstring_alone",
        "helpers/jobs/__init__.py",
        '"""Runs."""\nfrom helpers.jobs.trial import run',
        "helpers/jobs/__init__.py is not one docstring",
    ),
    (
        "rooms_open_with_a_docstring_alone",
        "helpers/course/nb05/__init__.py",
        "",
        "nb05/__init__.py is not one",
    ),
    (
        "only_gpu_opens_the_driver",
        "helpers/watching/limits.py",
        "def f():\n    from pynvml import nvmlInit",
        "helpers/watching/limits.py:2 imports pynvml.nvmlInit; only helpers/gpu.py does",
    ),
    (
        "two_modules_know_the_control_groups",
        "helpers/doctor/cli.py",
        "open('/proc/self/cgroup')",
        "helpers/doctor/cli.py names /proc/self/cgroup",
    ),
    (
        "notebooks_import_what_is_for_them",
        "notebooks/05_keep.ipynb",
        "from helpers.jobs.worker import start",
        "notebooks/05_keep.ipynb:1 imports helpers.jobs.worker, which is not for notebooks",
    ),
    (
        "notebooks_import_what_is_for_them",
        "notebooks/05_keep.ipynb",
        "from helpers import jobs",
        "imports helpers.jobs, which is not for notebooks",
    ),
]


@pytest.mark.parametrize(
    ("rule", "file", "text", "sentence"), BREACHES, ids=[f"{rule}-{file}" for rule, file, *_ in BREACHES]
)
def test_a_breach_is_found_by_its_rule_and_by_no_other(tmp_path, rule, file, text, sentence):
    found = problems(build(tmp_path, HOUSE | {file: text}))
    assert list(found) == [rule]
    assert sentence in found[rule][0]


def test_every_rule_is_broken_once():
    assert {rule for rule, *_ in BREACHES} == {rule.__name__ for rule in RULES}


def test_every_table_is_there():
    assert all(list(ROOT.glob(table)) for table in architecture.TABLES)
