"""What a notebook of the course has to look like: each rule yields what is wrong with a notebook."""

import ast
import linecache
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path

import nbformat

from clean_notebook import CELL_METADATA, METADATA, normal_text

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
LONGEST_CELL = 15
HEADER = ("What you'll do", "What you'll learn", "What you'll need")
SECTIONS = (
    "predict",
    "crash",
    "look",
    "fix",
    "prove",
    "price",
    "watch-out-for",
    "try-it-yourself",
    "in-practice",
    "summary",
)
# Notebooks that do without some sections, by the number in front of their name.
EXEMPT = {
    "00": set(SECTIONS) - {"summary"},
    "01": {"fix", "prove", "price"},
}
UNCHECKED = re.compile(r"nbval-(ignore-output|skip)|NBVAL_(IGNORE_OUTPUT|SKIP)")
MACHINE_PATHS = re.compile(
    r"(/home/\w|/Users/\w|/root\b|/tmp/\w|/var/folders/|/[\w./-]+/site-packages/|[A-Z]:\\+Users)\S*"
)
SOLUTION = re.compile(r"<details>\s*<summary>Solution</summary>(.*?)</details>", re.DOTALL)
FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Notebook:
    """A notebook file: its name, its text as stored, and its cells."""

    name: str
    text: str

    @cached_property
    def contents(self):
        return nbformat.reads(self.text, as_version=4)

    @cached_property
    def numbered_cells(self):
        """The cells with their numbers, counted from 1."""
        return list(enumerate(self.contents.cells, start=1))

    @cached_property
    def numbered_code(self):
        return [(number, cell) for number, cell in self.numbered_cells if cell.cell_type == "code"]


@dataclass(frozen=True)
class Exercise:
    """An exercise of a notebook: what surrounds it, the learner's stub and the collapsed solution."""

    id: str
    function: str
    setup: str
    stub: str
    solution: str

    def answer(self, source):
        """The function that a learner would hand in, defined as the notebook's kernel would define it."""
        namespace = {"__name__": "__main__"}
        for part, code in (("setup", self.setup), ("answer", source)):
            name = f"<exercise {self.id}, {part}>"
            linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
            exec(compile(code, name, "exec"), namespace)
        return namespace[self.function]


def all_notebooks():
    return [Notebook(path.name, path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.ipynb"))]


def tags(cell):
    return set(cell.metadata.get("tags", []))


def heading_level(cell):
    """1 for a cell that starts with `# `, 2 for `## `, and so on; 0 for any other cell."""
    match = re.match(r"(#+) \S", cell.source) if cell.cell_type == "markdown" else None
    return len(match[1]) if match else 0


def is_in_normal_form(notebook):
    contents = notebook.contents
    extra = sorted(contents.metadata.keys() - METADATA.keys())
    if extra:
        yield f"the notebook has the extra metadata {', '.join(extra)}"
    for number, cell in notebook.numbered_cells:
        if extra := sorted(cell.metadata.keys() - CELL_METADATA):
            yield f"cell {number} has the extra metadata {', '.join(extra)}"
    if notebook.text != normal_text(notebook.text):
        yield "the file is not in its normal form; run: python tools/clean_notebook.py"


def was_executed_in_order(notebook):
    for expected, (number, cell) in enumerate(notebook.numbered_code, start=1):
        count = cell.execution_count
        if count != expected:
            yield f"cell {number} has the execution count {count}, not {expected}; run: make execute"


def fails_only_where_it_says_so(notebook):
    for number, cell in notebook.numbered_code:
        failed = any(output.output_type == "error" for output in cell.outputs)
        if failed and "raises-exception" not in tags(cell):
            yield f"cell {number} ends in an error and has no tag raises-exception"
        if not failed and "raises-exception" in tags(cell):
            yield f"cell {number} has the tag raises-exception and no error"


def names_no_machine(notebook):
    for number, cell in notebook.numbered_cells:
        for text in (cell.source, *map(_text_of_output, cell.get("outputs", []))):
            if found := MACHINE_PATHS.search(text):
                yield f"cell {number} has a path of somebody's machine: {found[0]}"


def _text_of_output(output):
    """The readable part of an output; the letters of an encoded picture spell paths by chance."""
    shown = output.get("data", {}).items()
    readable = [str(data) for kind, data in shown if not kind.startswith("image/") or kind == "image/svg+xml"]
    return "\n".join([output.get("text", ""), *output.get("traceback", []), *readable])


def has_short_cells(notebook):
    for number, cell in notebook.numbered_code:
        lines = sum(bool(line.strip()) for line in cell.source.splitlines())
        if lines > LONGEST_CELL:
            yield f"cell {number} has {lines} lines of code, more than {LONGEST_CELL}; move some into helpers"
        if not lines:
            yield f"cell {number} is empty"


def has_a_header(notebook):
    header = list(takewhile(lambda cell: heading_level(cell) != 2, notebook.contents.cells))
    if not header or heading_level(header[0]) != 1:
        yield "the first cell does not start with a title (# ...)"
    text = "\n".join(cell.source for cell in header)
    for phrase in HEADER:
        if phrase not in text:
            yield f'the header does not say "{phrase}"'


def has_every_section(notebook):
    tagged = {}
    for number, cell in notebook.numbered_cells:
        for tag in tags(cell):
            if tag.startswith("section-"):
                tagged[tag.removeprefix("section-")] = number
                if heading_level(cell) != 2:
                    yield f"cell {number} has the tag {tag} and does not start with a heading (## ...)"
    for section in SECTIONS:
        if section not in tagged and section not in EXEMPT.get(notebook.name[:2], ()):
            yield f"the section {section} is missing: tag the cell of its heading section-{section}"
    for unknown in sorted(tagged.keys() - set(SECTIONS)):
        yield f"cell {tagged[unknown]} has the unknown tag section-{unknown}"


def has_a_checked_summary(notebook):
    cells = notebook.numbered_cells
    starts = [number for number, cell in cells if "section-summary" in tags(cell)]
    summary = takewhile(lambda item: heading_level(item[1]) != 2, cells[starts[-1] :] if starts else [])
    code = [(number, cell) for number, cell in summary if cell.cell_type == "code"]
    if not any(cell.outputs for _, cell in code):
        yield "the Summary has no code cell with output"
    for number, cell in code:
        if found := UNCHECKED.search(" ".join(tags(cell)) + cell.source):
            yield f"cell {number} of the Summary is not compared: it has {found[0]}"


def has_complete_exercises(notebook):
    for number in _stubs(notebook):
        try:
            _exercise_at(notebook, number)
        except (LookupError, SyntaxError) as error:
            yield f"the exercise in cell {number}: {error.args[0]}"


RULES = (
    is_in_normal_form,
    was_executed_in_order,
    fails_only_where_it_says_so,
    names_no_machine,
    has_short_cells,
    has_a_header,
    has_every_section,
    has_a_checked_summary,
    has_complete_exercises,
)


def problems(notebook):
    """Everything that is wrong with a notebook, by all rules."""
    return [problem for rule in RULES for problem in rule(notebook)]


def exercise_problems(exercise, check):
    """What is wrong with an exercise when `check(id, function)` judges its solution and its stub."""
    result = check(exercise.id, exercise.answer(exercise.solution))
    if not result.passed:
        yield f"the solution of {exercise.id} does not pass: {result}"
    if check(exercise.id, exercise.answer(exercise.stub)).passed:
        yield f"the stub of {exercise.id} passes"


def exercises(notebook):
    return [_exercise_at(notebook, number) for number in _stubs(notebook)]


def _stubs(notebook):
    return [number for number, cell in notebook.numbered_code if "exercise" in tags(cell)]


def _exercise_at(notebook, number):
    """The exercise whose stub is in that cell; a LookupError says which part is missing."""
    cells = notebook.contents.cells
    stub, following = cells[number - 1].source, cells[number:]
    defined = _functions(stub)
    if not defined:
        raise LookupError("the stub defines no function")
    checks = [cell.source for cell in following if cell.cell_type == "code"][:1]
    call = re.search(r'\bexercise\("([^"]+)", (\w+)\)', "".join(checks))
    if not call or call[2] not in defined:
        raise LookupError(f'the next code cell does not call exercise("...", {defined[-1]})')
    setup = [cell.source for cell in cells[: number - 1] if "setup" in tags(cell)]
    return Exercise(call[1], call[2], "\n".join(setup), stub, _solution(following, call[2]))


def _solution(following, function):
    """The code of the first collapsed solution beneath the stub, before the next heading or exercise."""
    beneath = takewhile(lambda cell: heading_level(cell) != 2 and "exercise" not in tags(cell), following)
    details = SOLUTION.search("\n".join(cell.source for cell in beneath if cell.cell_type == "markdown"))
    fences = FENCE.findall(details[1]) if details else []
    if len(fences) != 1 or function not in _functions(fences[0]):
        raise LookupError(f"no <details> block beneath has one ```python solution that defines {function}")
    return fences[0]


def _functions(source):
    return [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
