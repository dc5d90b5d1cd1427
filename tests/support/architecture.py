"""What the house has to look like: each rule yields what is wrong with a tree of sources."""

import ast
import graphlib
import json
import re
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLOORS = (("ground",), ("watching", "charts"), ("jobs", "doctor", "estimator"), ("course",), ("front",))
"""The rooms, the lowest floor first; rooms of one floor do not know one another."""
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
FRONT = ("helpers", "helpers.__main__")
GROUND = ("helpers.units", "helpers.text", "helpers.machine", "helpers.gpu")
MOST_LINES = 300
TABLES = ("helpers/doctor/rules/*.py", "helpers/doctor/catalogue.py")
"""Modules that are read like a table, row by row: they may be as long as the table is."""
INIT_WITH_CODE = ("helpers/__init__.py", "helpers/course/datasets/__init__.py")
CGROUPS = "/proc/self/cgroup"
FOR_NOTEBOOKS = re.compile(r"helpers|helpers\.charts\.\w+|helpers\.estimator\.explorer|helpers\.course\..+")
MAGIC = re.compile(r"^(\s*)[%!].*", re.MULTILINE)
LESSON = re.compile(r"helpers\.course\.(nb\d\d)\b")


@dataclass(frozen=True)
class Import:
    """A line that imports something: of a module or, where no module of the house has the name, of a package."""

    file: str
    line: int
    name: str
    target: str | None

    def __str__(self):
        return f"{self.file}:{self.line} imports {self.target or self.name}"


@dataclass(frozen=True)
class Tree:
    """The sources beneath a folder that is laid out as this project is."""

    root: Path

    @cached_property
    def modules(self):
        """{dotted name: file} of the package."""
        files = sorted(self.root.glob("helpers/**/*.py"))
        return {self._dotted(path): self.file(path) for path in files}

    def _dotted(self, path):
        return self.file(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def file(self, path):
        return path.relative_to(self.root).as_posix()

    def text(self, file):
        return (self.root / file).read_text(encoding="utf-8")

    @cached_property
    def graph(self):
        """{module: its imports}, those inside functions included."""
        return {module: self._imports(file, self.text(file)) for module, file in self.modules.items()}

    @cached_property
    def outside(self):
        """The imports of what uses the package: tests, benchmarks, tools and the notebooks' code."""
        found = []
        for folder in ("tests", "benchmarks", "tools"):
            for path in sorted(self.root.glob(f"{folder}/**/*.py")):
                found += self._imports(self.file(path), self.text(self.file(path)))
        return found + self.notebooks

    @cached_property
    def notebooks(self):
        found = []
        for path in sorted(self.root.glob("notebooks/*.ipynb")):
            for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
                if cell["cell_type"] == "code":
                    source = MAGIC.sub(r"\1pass", "".join(cell["source"]))
                    found += self._imports(self.file(path), source)
        return found

    def _imports(self, file, source):
        parsed = ast.parse(source)
        if file == "helpers/__init__.py":  # what it shows to editors alone is not imported
            parsed.body = [node for node in parsed.body if not isinstance(node, ast.If)]
        return [
            Import(file, node.lineno, name, self.module_of(name))
            for node in ast.walk(parsed)
            for name in _imported(node, file)
        ]

    def module_of(self, name):
        """The module of the package that a dotted name is, or is defined in."""
        while name and name not in self.modules:
            name = name.rpartition(".")[0]
        return name or None


def _imported(node, file):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    above = file.split("/")[: -node.level] if node.level else []
    package = ".".join([*above, *filter(None, [node.module])])
    return [f"{package}.{alias.name}" for alias in node.names]


def room(module):
    """The room of a module, or None if it stands in none."""
    if module in FRONT:
        return "front"
    if module in GROUND:
        return "ground"
    place = module.split(".")[1]
    return place if place in FLOOR else None


def everything_stands_in_a_room(tree):
    for module, file in tree.modules.items():
        if room(module) is None:
            yield f"{file} stands in no room; the rooms are {', '.join(FLOOR)}"


def imports_go_down_or_stay(tree):
    for module, imports in tree.graph.items():
        here = room(module)
        for found in imports:
            there = found.target and room(found.target)
            if not here or not there or here == there or FLOOR[there] < FLOOR[here]:
                continue
            way = "up" if FLOOR[there] > FLOOR[here] else "sideways"
            yield f"{found}, which goes {way} from {here} to {there}"


def there_is_no_circle(tree):
    graph = {
        module: {found.target for found in imports} - {None, module} for module, imports in tree.graph.items()
    }
    while circle := _circle(graph):
        yield f"a circle of imports: {' <- '.join(circle)}"
        graph[circle[1]].remove(circle[0])  # so that the next one shows


def _circle(graph):
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]


def a_lesson_is_used_by_its_notebook_alone(tree):
    for found in [*tree.outside, *(found for imports in tree.graph.values() for found in imports)]:
        lesson = LESSON.match(found.target or "")
        if not lesson:
            continue
        number = lesson[1].removeprefix("nb")
        own = (f"helpers/course/nb{number}/", f"tests/course/nb{number}/", f"notebooks/{number}_")
        if not found.file.startswith(own):
            yield f"{found}, which is the lesson code of notebook {number}"


def modules_are_short(tree):
    for file in tree.modules.values():
        lines = len(tree.text(file).splitlines())
        if lines > MOST_LINES and not any(fnmatch(file, table) for table in TABLES):
            yield f"{file} has {lines} lines, more than {MOST_LINES}"


def rooms_open_with_a_docstring_alone(tree):
    for file in tree.modules.values():
        if file.endswith("/__init__.py") and file not in INIT_WITH_CODE:
            parsed = ast.parse(tree.text(file))
            if len(parsed.body) != 1 or not ast.get_docstring(parsed):
                yield f"{file} is not one docstring and nothing else"


def only_gpu_opens_the_driver(tree):
    for imports in tree.graph.values():
        for found in imports:
            if found.name.split(".")[0] == "pynvml" and found.file != "helpers/gpu.py":
                yield f"{found}; only helpers/gpu.py does"


def two_modules_know_the_control_groups(tree):
    for file in tree.modules.values():
        if file not in ("helpers/machine.py", "helpers/watching/cgroups.py") and CGROUPS in tree.text(file):
            yield f"{file} names {CGROUPS}; only helpers/machine.py and helpers/watching/cgroups.py do"


def notebooks_import_what_is_for_them(tree):
    for found in tree.notebooks:
        if found.target and found.target not in GROUND and not FOR_NOTEBOOKS.fullmatch(found.target):
            yield f"{found}, which is not for notebooks"


RULES = (
    everything_stands_in_a_room,
    imports_go_down_or_stay,
    there_is_no_circle,
    a_lesson_is_used_by_its_notebook_alone,
    modules_are_short,
    rooms_open_with_a_docstring_alone,
    only_gpu_opens_the_driver,
    two_modules_know_the_control_groups,
    notebooks_import_what_is_for_them,
)
