"""Exercises: a right answer passes, and a wrong one is told what fell short and by how much."""

from types import SimpleNamespace

import numpy
import pandas
import pytest

from helpers.course import exercises
from helpers.course.exercises import EXERCISES, Result, exercise

MB = 10**6

pytestmark = pytest.mark.usefixtures("flights")


def mean_delays(path):
    parts = [
        chunk.groupby("carrier")["arr_delay"].agg(["sum", "count"])
        for chunk in pandas.read_csv(path, usecols=["carrier", "arr_delay"], chunksize=1_000)
    ]
    total = pandas.concat(parts).groupby(level=0).sum()
    return total["sum"] / total["count"]


def test_a_right_answer_passes_on_its_budget():
    result = exercise("02-a", mean_delays)
    assert result.passed
    assert result.trial.outcome == "finished"
    assert str(result).startswith("Passed: it used ")
    assert " of 60 MB" in str(result)


def test_an_answer_that_takes_too_much_hears_how_much_and_from_which_line():
    def greedy(path):
        ballast = numpy.ones(25 * MB)
        return {"AA": ballast.sum()}

    result = exercise("02-a", greedy)
    assert not result.passed
    assert result.trial.out_of_memory
    words = str(result).split()
    assert words[:4] == ["Not", "yet:", "it", "used"]
    assert int(words[4]) == pytest.approx(200, rel=0.1)
    assert "of 60 MB RAM" in str(result)
    assert "ballast = numpy.ones(25 * MB)" in str(result)


def test_an_answer_that_raises_hears_what_and_in_which_line():
    def broken(path):
        return {}["AA"]

    line = broken.__code__.co_firstlineno + 1
    assert str(exercise("02-a", broken)) == f"Not yet: it raised KeyError: 'AA' in line {line}."


def nothing(path): ...


def documented(path):
    """Return the mean delays."""


def dots(path):
    return ...


def not_implemented(path):
    raise NotImplementedError("write me")


@pytest.mark.parametrize("stub", [nothing, documented, dots, not_implemented])
@pytest.mark.parametrize("name", EXERCISES)
def test_a_stub_is_not_solved_yet_and_is_not_even_run(name, stub):
    result = exercise(name, stub)
    assert not result.passed
    assert result.trial is None
    assert str(result) == f"Not solved yet: {EXERCISES[name].statement}"
    assert str(result) in result._repr_html_()


@pytest.mark.parametrize("answer", [lambda path: 5, lambda path: path, lambda path: "text"])
def test_a_short_answer_is_not_taken_for_a_stub(answer):
    assert not exercises._is_empty(answer)


def an_attempt(outcome, **changes):
    """A stand-in for the trial of an answer."""
    facts = {
        "outcome": outcome,
        "out_of_memory": outcome in ("killed", "vram-oom"),
        "ram_budget": 60 * MB,
        "vram_budget": None,
        "peak_ram": 20 * MB,
        "peak_vram": None,
        "value": None,
        "error": None,
        "log": "",
        "lines": (),
        "exit_code": 0,
    }
    return SimpleNamespace(**facts | changes)


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (an_attempt("finished"), "Not yet: it returned None: does your function return its result?"),
        (an_attempt("timeout"), "Not yet: it ran longer than 120 s."),
        (an_attempt("error", exit_code=139), "Not yet: it ended with exit code 139."),
        (an_attempt("error", error="ValueError: no.\n\tNo"), "Not yet: it raised ValueError: no. No."),
        (an_attempt("killed", peak_ram=59 * MB), "Not yet: it used more than 60 MB of 60 MB RAM."),
    ],
)
def test_each_way_to_fall_short_has_its_sentence(monkeypatch, attempt, sentence):
    monkeypatch.setattr(exercises, "run", lambda *arguments, **options: attempt)
    assert str(exercise("02-a", mean_delays)) == sentence


def test_a_stub_that_is_reached_only_when_it_runs_is_not_solved_yet(monkeypatch):
    attempt = an_attempt("error", error="NotImplementedError: later")
    monkeypatch.setattr(exercises, "run", lambda *arguments, **options: attempt)
    assert str(exercise("02-a", mean_delays)).startswith("Not solved yet: ")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match='no exercise "2a"; there are 01-a, 02-a'):
        exercise("2a", mean_delays)


def test_an_answer_that_is_no_function_is_told_to_leave_the_brackets_out():
    with pytest.raises(TypeError, match="without brackets, not a dict"):
        exercise("02-a", {"AA": 1.0})


def test_missing_data_say_which_command_makes_them(monkeypatch, tmp_path):
    monkeypatch.setenv("OOM_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="python -m helpers data"):
        exercise("02-a", mean_delays)


def test_a_result_is_harmless_in_html():
    assert "&lt;b&gt;" in Result(False, "<b>")._repr_html_()
