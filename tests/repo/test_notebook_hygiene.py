"""Every notebook of the course keeps every rule, and its exercises can be solved, but not by their stubs."""

import pytest

import notebooks

NOTEBOOKS = notebooks.all_notebooks()
EXERCISES = [
    pytest.param(exercise, id=exercise.id)
    for notebook in NOTEBOOKS
    if not list(notebooks.has_complete_exercises(notebook))
    for exercise in notebooks.exercises(notebook)
]


@pytest.mark.parametrize("rule", notebooks.RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_the_notebook(notebook, rule):
    problems = list(rule(notebook))
    assert not problems, "\n".join([notebook.name, *problems])


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_solution_passes_and_the_stub_does_not(exercise, monkeypatch):
    import helpers

    monkeypatch.chdir(notebooks.FOLDER)
    monkeypatch.setenv(
        "TF_ENABLE_ONEDNN_OPTS", "0"
    )  # a notebook may ask for others; that ends with this test
    problems = list(notebooks.exercise_problems(exercise, helpers.exercise))
    assert not problems, "\n".join(problems)
