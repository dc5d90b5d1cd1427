"""Trials side by side: one axis, one table, one output; and a trial in HTML, escaped."""

import pytest
from IPython.core.formatters import DisplayFormatter

from drawn import MB, SHAPES, a_line, a_trial, assert_readable, crosses_of, title_of
from helpers.charts.compare import compare, trial_html


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.filterwarnings("error")
def test_every_shape_of_trial_can_be_compared(name):
    comparison = compare(SHAPES["killed"], SHAPES[name], SHAPES["finished"])
    assert_readable(comparison.figure)


def test_html_of_a_trial_escapes_all_that_comes_from_the_job():
    attack = "<script>alert('x')</script>\"&"
    lines = (a_line(80, attack, attack),)
    html = trial_html(a_trial("error", label=attack, verdict=attack, error=attack, lines=lines))
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 5
    assert 'alt="Chart of memory over time of &lt;script&gt;' in html


def test_html_of_a_trial_has_its_figures_and_one_picture():
    html = trial_html(SHAPES["two budgets"])
    for fact in ("One stable sentence.", "400 MB of 600 MB", "500 MB of 512 MB", "80 %", "4 s"):
        assert fact in html
    assert html.count("<img ") == 1


def test_a_comparison_leaves_out_what_nobody_measured():
    comparison = compare(SHAPES["killed"], a_trial(label="stream", seconds=7.0, throughput=1234.5))
    assert list(comparison.table) == [
        "job",
        "outcome",
        "peak RAM",
        "of RAM budget",
        "time",
        "items per second",
    ]
    assert comparison.table.iloc[1].tolist() == ["stream", "finished", "90 MB", "15 %", "7 s", "1,234"]
    assert str(comparison).split("\n")[1].split() == ["job", "killed", "600", "MB", "100", "%", "4", "s", "-"]


def test_a_comparison_states_before_and_after():
    comparison = compare(SHAPES["killed"], a_trial(label="stream"))
    assert title_of(comparison.figure) == "job: killed at 600 MB after 4 s; stream stays at 90 MB"
    assert crosses_of(comparison.figure) == [(4.0, 600 * MB)]


def test_a_comparison_in_a_notebook_is_one_output_with_stable_plain_text():
    data, _ = DisplayFormatter().format(compare(SHAPES["killed"], SHAPES["finished"]))
    assert set(data) == {"text/html", "text/plain"}
    assert data["text/plain"] == "<Comparison: job 1 killed, job 2 finished>"
    assert data["text/html"].count("<img ") == 1
    assert "<td" in data["text/html"]


def test_comparing_nothing_or_no_trials_says_what_to_do():
    with pytest.raises(ValueError, match="at least one trial"):
        compare()
    with pytest.raises(TypeError, match=r"takes trials.* not int"):
        compare(SHAPES["killed"], 5)
