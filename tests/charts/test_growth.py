"""Peaks as the data grows: deaths stand on the budget line, and the title says what grows."""

import pytest

from drawn import MB, a_trial, assert_readable, crosses_of, title_of
from helpers.charts.growth import peaks_against_size


def grown(*outcomes_and_peaks):
    return [(31 * MB * (number + 1), a_trial(*pair)) for number, pair in enumerate(outcomes_and_peaks)]


def test_peaks_against_size_puts_deaths_on_the_budget_line():
    groups = {
        "in memory": grown(("finished", 120), ("finished", 250), ("killed", 297)),
        "streaming": grown(("finished", 60), ("finished", 61), ("finished", 63)),
    }
    chart = peaks_against_size(groups, budget="300 MB")
    assert crosses_of(chart) == [(93 * MB, 300 * MB)]
    assert title_of(chart) == "in memory dies at 93 MB; streaming stays at 63 MB"
    assert_readable(chart)
    growing = peaks_against_size({"frame": grown(("finished", 60), ("finished", 90))}, budget=300 * MB)
    assert title_of(growing) == "frame grows to 90 MB"


def test_peaks_against_size_needs_trials_and_a_unit():
    with pytest.raises(ValueError, match="needs trials"):
        peaks_against_size({"in memory": []}, budget="300 MB")
    with pytest.raises(ValueError, match='budget="300" has no unit'):
        peaks_against_size({"in memory": grown(("finished", 60))}, budget="300")
