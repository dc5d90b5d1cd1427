"""The checks can fail: a small notebook that keeps all rules is accepted, each way to break one is caught."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbformat import v4

import notebooks
from clean_notebook import clean, normal_text

ROOT = Path(__file__).resolve().parents[2]
HEADER = "# Count on it\nWhat you'll do: count. What you'll learn: counting. What you'll need: a finger."
SOLUTION = (
    "<details><summary>Solution</summary>\n\n```python\ndef double(n):\n    return 2 * n\n```\n</details>"
)


def markdown(source, *tags):
    return v4.new_markdown_cell(source, metadata={"tags": list(tags)})


def code(source, output="", *tags):
    outputs = [v4.new_output("stream", name="stdout", text=output)] if output else []
    return v4.new_code_cell(source, outputs=outputs, metadata={"tags": list(tags)})


def small_notebook():
    """Cells that keep every rule, as a learner would find them; numbers in the tests count from 1."""
    cells = [markdown(HEADER), code("total = 1 + 2", "", "setup")]
    for section in notebooks.SECTIONS[:-1]:
        cells.append(markdown(f"## About {section}", f"section-{section}"))
    cells += [
        code("def double(n):\n    return n", "", "exercise"),
        code('exercise = print\nexercise("02-a", double)', "", "nbval-ignore-output"),
        markdown(SOLUTION),
        markdown("## What to keep", "section-summary"),
        code('print("total:", total)\nprint("took 0.1 s")', "total: 3\ntook 7.5 s\n"),
    ]
    count = 0
    for cell in cells:
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
    return v4.new_notebook(cells=cells)


def problems(contents, name="02_small.ipynb"):
    return notebooks.problems(notebooks.Notebook(name, normal_text(nbformat.writes(contents))))


def test_a_notebook_that_keeps_the_rules_is_accepted():
    assert problems(small_notebook()) == []


def test_the_start_needs_fewer_sections_than_the_others():
    contents = small_notebook()
    contents.cells = [cell for cell in contents.cells if cell.source != "## About fix"]
    assert problems(contents) == ["the section fix is missing: tag the cell of its heading section-fix"]
    assert problems(contents, "00_small.ipynb") == problems(contents, "01_small.ipynb") == []


def lose_a_count(cells):
    cells[1].execution_count = None


def mix_the_counts(cells):
    cells[1].execution_count = 7


def strip_the_summary(cells):
    cells[-1].outputs = []


def ignore_the_summary(cells):
    cells[-1].metadata.tags.append("nbval-ignore-output")


def ignore_the_summary_by_comment(cells):
    cells[-1].source = "# NBVAL_IGNORE_OUTPUT\n" + cells[-1].source


def write_a_long_cell(cells):
    cells[1].source = "\n\n".join(["total = 3"] * 16)


def empty_a_cell(cells):
    cells[1].source = " \n"


def show_a_home_folder(cells):
    cells[1].outputs = [v4.new_output("stream", text="saved to /home/ada/model.keras\n")]


def show_a_warning_of_a_package(cells):
    html = "<pre>/opt/python/lib/site-packages/keras/x.py:1: UserWarning</pre>"
    cells[1].outputs = [v4.new_output("display_data", {"text/html": html})]


def write_a_temporary_path(cells):
    cells[1].source = 'total = 3; open("/tmp/ada.csv")'


def write_a_windows_path(cells):
    cells[0].source += r" Look in C:\Users\Ada."


def fail_without_a_tag(cells):
    cells[1].outputs = [v4.new_output("error", ename="MemoryError", evalue="", traceback=[])]


def tag_without_failing(cells):
    cells[1].metadata.tags.append("raises-exception")


def lose_the_title(cells):
    cells[0].source = cells[0].source.replace("# Count", "Count")


def lose_the_need(cells):
    cells[0].source = cells[0].source.replace("need", "want")


def tag_a_paragraph(cells):
    cells[2].source = "No heading."


def tag_an_unknown_section(cells):
    cells[0].metadata.tags = ["section-joke"]


def lose_the_function(cells):
    cells[-5].source = "double = None"


def lose_the_check(cells):
    cells[-4].source = "double(2)"


def lose_the_solution(cells):
    cells[-3].source = "No solution."


def solve_another_function(cells):
    cells[-3].source = SOLUTION.replace("double", "halve")


def give_two_solutions(cells):
    cells[-3].source = SOLUTION.replace("</details>", "```python\ndouble = 2\n```\n</details>")


@pytest.mark.parametrize(
    ("doctor", "problem"),
    [
        (lose_a_count, "cell 2 has the execution count None, not 1"),
        (mix_the_counts, "cell 2 has the execution count 7, not 1"),
        (strip_the_summary, "the Summary has no code cell with output"),
        (ignore_the_summary, "cell 16 of the Summary is not compared: it has nbval-ignore-output"),
        (ignore_the_summary_by_comment, "cell 16 of the Summary is not compared: it has NBVAL_IGNORE_OUTPUT"),
        (write_a_long_cell, "cell 2 has 16 lines of code, more than 15"),
        (empty_a_cell, "cell 2 is empty"),
        (show_a_home_folder, "cell 2 has a path of somebody's machine: /home/ada/model.keras"),
        (
            show_a_warning_of_a_package,
            "cell 2 has a path of somebody's machine: /opt/python/lib/site-packages/",
        ),
        (write_a_temporary_path, "cell 2 has a path of somebody's machine: /tmp/ada.csv"),
        (write_a_windows_path, r"cell 1 has a path of somebody's machine: C:\Users\Ada."),
        (fail_without_a_tag, "cell 2 ends in an error and has no tag raises-exception"),
        (tag_without_failing, "cell 2 has the tag raises-exception and no error"),
        (lose_the_title, "the first cell does not start with a title"),
        (lose_the_need, 'the header does not say "What you\'ll need"'),
        (tag_a_paragraph, "cell 3 has the tag section-predict and does not start with a heading"),
        (tag_an_unknown_section, "cell 1 has the unknown tag section-joke"),
        (lose_the_function, "the exercise in cell 12: the stub defines no function"),
        (lose_the_check, 'the exercise in cell 12: the next code cell does not call exercise("...", double)'),
        (lose_the_solution, "the exercise in cell 12: no <details> block beneath"),
        (solve_another_function, "the exercise in cell 12: no <details> block beneath"),
        (give_two_solutions, "the exercise in cell 12: no <details> block beneath"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_broken_rule_is_named(doctor, problem):
    contents = small_notebook()
    doctor(contents.cells)
    assert any(found.startswith(problem) for found in problems(contents)), problems(contents)


@pytest.mark.parametrize("section", notebooks.SECTIONS)
def test_a_missing_section_is_named(section):
    contents = small_notebook()
    contents.cells = [cell for cell in contents.cells if f"section-{section}" not in cell.metadata.tags]
    assert f"the section {section} is missing: tag the cell of its heading section-{section}" in problems(
        contents
    )


@pytest.mark.parametrize(
    "source",
    ["fill /dev/shm", "see /homepage", "echo 1 > /sys/fs/cgroup/memory", "mount /tmp", "../data/a.csv"],
)
def test_paths_that_every_machine_has_are_allowed(source):
    contents = small_notebook()
    contents.cells[0].source += source
    assert problems(contents) == []


def check_double(_, function):
    """Stands in for helpers.exercise."""
    return SimpleNamespace(passed=function(2) == 4)


@pytest.mark.parametrize(
    ("stub", "solution", "expected"),
    [
        ("n", "total - 1 + n - 2 + n", []),
        ("n", "3 * n", ["the solution of 02-a does not pass: namespace(passed=False)"]),
        ("2 * n", "2 * n", ["the stub of 02-a passes"]),
    ],
)
def test_an_exercise_is_judged_by_its_solution_and_its_stub(stub, solution, expected):
    contents = small_notebook()
    contents.cells[-5].source = f"def double(n):\n    return {stub}"
    contents.cells[-3].source = SOLUTION.replace("2 * n", solution)
    (exercise,) = notebooks.exercises(notebooks.Notebook("02_small.ipynb", nbformat.writes(contents)))
    assert list(notebooks.exercise_problems(exercise, check_double)) == expected


def extra_notebook_metadata(raw):
    raw["metadata"]["widgets"] = {}


def extra_cell_metadata(raw):
    raw["cells"][0]["metadata"]["editable"] = True


def another_kernel(raw):
    raw["metadata"]["kernelspec"]["name"] = "my-kernel"


def missing_ids(raw):
    for cell in raw["cells"]:
        del cell["id"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("doctor", "problem"),
    [
        (extra_notebook_metadata, "the notebook has the extra metadata widgets"),
        (extra_cell_metadata, "cell 1 has the extra metadata editable"),
        (another_kernel, "the file is not in its normal form"),
        (missing_ids, "the file is not in its normal form"),
    ],
)
def test_metadata_other_than_the_courses_is_named_and_the_cleaner_mends_it(tmp_path, doctor, problem):
    raw = json.loads(normal_text(nbformat.writes(small_notebook())))
    doctor(raw)
    text = json.dumps(raw, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    found = notebooks.problems(notebooks.Notebook("02_small.ipynb", text))
    assert any(line.startswith(problem) for line in found), found
    path = tmp_path / "02_small.ipynb"
    path.write_text(text, encoding="utf-8")
    clean(path)
    assert notebooks.problems(notebooks.Notebook(path.name, path.read_text(encoding="utf-8"))) == []


def test_text_printed_in_pieces_becomes_one_output():
    contents = small_notebook()
    contents.cells[-1].outputs = [v4.new_output("stream", text=text) for text in ("total: ", "3\n")]
    (output,) = json.loads(normal_text(nbformat.writes(contents)))["cells"][-1]["outputs"]
    assert output["text"] == ["total: 3\n"]


def test_a_widget_leaves_its_picture_only():
    contents = small_notebook()
    data = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "<Explorer>"}
    contents.cells[-1].outputs = [v4.new_output("display_data", data=data)]
    (output,) = json.loads(normal_text(nbformat.writes(contents)))["cells"][-1]["outputs"]
    assert output["data"] == {"text/plain": ["<Explorer>"]}


def test_equal_cells_have_ids_of_their_own_that_never_change():
    contents = v4.new_notebook(cells=[code("total"), code("total"), markdown("total")])
    again = v4.new_notebook(cells=[code("total"), code("total"), markdown("total")])
    text = normal_text(nbformat.writes(contents))
    assert len({cell["id"] for cell in json.loads(text)["cells"]}) == 3
    assert normal_text(nbformat.writes(again)) == text


@pytest.mark.parametrize("layout", [{"indent": 2, "sort_keys": True}, {"indent": 1, "sort_keys": False}])
def test_another_layout_of_the_file_is_named(layout):
    raw = json.loads(normal_text(nbformat.writes(small_notebook())))
    raw = dict(reversed(raw.items()))
    text = json.dumps(raw, **layout) + "\n"
    found = notebooks.problems(notebooks.Notebook("02_small.ipynb", text))
    assert found == ["the file is not in its normal form; run: python tools/clean_notebook.py"]


def run_nbval(folder, contents):
    """Compare the notebook as `make test` does; gives the exit code and the report."""
    path = folder / "02_small.ipynb"
    path.write_text(normal_text(nbformat.writes(contents)), encoding="utf-8")
    settings = ["-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *settings, "--nbval", str(path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return run.returncode, re.sub(r"\x1b\[\d*m", "", run.stdout)


def test_nbval_accepts_the_right_numbers_and_another_time(tmp_path):
    exit_code, report = run_nbval(tmp_path, small_notebook())
    assert exit_code == 0, report
    assert "4 passed" in report


def test_nbval_rejects_a_wrong_number_in_the_summary(tmp_path):
    contents = small_notebook()
    contents.cells[-1].outputs[0].text = "total: 4\ntook 7.5 s\n"
    exit_code, report = run_nbval(tmp_path, contents)
    assert exit_code == 1
    assert "1 failed, 3 passed" in report
    assert "total: 4" in report


def test_only_hygiene_notices_stripped_outputs_and_counts(tmp_path):
    contents = small_notebook()
    for cell in contents.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    exit_code, _ = run_nbval(tmp_path, contents)
    assert exit_code == 0
    assert "the Summary has no code cell with output" in problems(contents)
    assert "cell 2 has the execution count None, not 1; run: make execute" in problems(contents)
