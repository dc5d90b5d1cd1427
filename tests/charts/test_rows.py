"""Rows of bars: peaks against a budget, and stages with a mark for the formula; a title says what they show."""

import pytest

from drawn import MB
from helpers.charts.look import Chart
from helpers.charts.rows import draw_rows, peaks_by_name, stage_bars

STAGES = {"prefetch(9): 8 more batches": (200 * MB, 210 * MB), "cache(): 2400 images": (472 * MB, 425 * MB)}


def test_rows_stand_under_each_other_from_zero_the_first_on_top():
    axes = Chart("rows").box(100, 0, 500, 300)
    draw_rows(axes, [3, 0, 5], 6, "black", ["three", "none", "five"])
    assert [bar.get_width() for bar in axes.patches] == [3, 0, 5]
    assert [bar.get_x() for bar in axes.patches] == [0, 0, 0]
    heights = [axes.transData.transform((0, bar.get_y()))[1] for bar in axes.patches]
    assert heights == sorted(heights, reverse=True)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["three", "none", "five"]
    assert (*axes.get_xlim(), *axes.get_ylim()) == (0, 6, 2.5, -0.5)


def test_a_peak_above_the_budget_is_red_and_notes_stand_beside_the_bars():
    chart = peaks_by_name({"Flatten": 758 * MB, "pooling": 226 * MB}, "448 MB", {"pooling": "98 % right"})
    colours = [bar.get_facecolor() for bar in chart.axes[0].patches]
    assert colours[0] != colours[1]
    texts = [text.get_text() for text in chart.axes[0].texts]
    assert "226 MB   98 % right" in texts
    assert "budget 448 MB" in texts
    assert "1 of 2 stay within 448 MB" in chart.alt


def test_bars_without_a_budget_name_the_least():
    assert peaks_by_name({"a": 3 * MB, "b": 2 * MB}).alt.startswith("Bars of peak memory. Least: b, 2 MB.")
    with pytest.raises(ValueError, match="needs peaks in bytes"):
        peaks_by_name({})


def test_the_title_names_the_largest_difference():
    assert "Measured within 10 % of the formula" in stage_bars(STAGES).alt
    assert "cache(): 2400 images 425 MB (472 MB)" in stage_bars(STAGES).alt


def test_a_stage_has_a_bar_as_long_as_measured_and_a_mark_at_the_formula():
    (axes,) = stage_bars(STAGES).axes
    assert [bar.get_width() for bar in axes.patches] == [210 * MB, 425 * MB]
    assert {line.get_xdata()[0] for line in axes.lines} == {200 * MB, 472 * MB}
    assert axes.get_xlim()[0] == 0
    assert axes.get_xlim()[1] > 472 * MB


def test_long_names_and_notes_stay_inside_the_picture():
    chart = stage_bars({"batch(1200).map(slowly).unbatch().filter(few): 2 batches": (472 * MB, 502 * MB)})
    (axes,) = chart.axes
    chart.canvas.draw()
    assert all(label.get_window_extent().x0 >= 0 for label in axes.get_yticklabels())
    assert all(text.get_window_extent().x1 <= chart.bbox.width for text in axes.texts)


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="stage_bars needs bytes"):
        stage_bars({})
