"""Stages in bytes: a bar for what was measured, a mark for the formula, a title that says how far they are apart."""

import pytest

from helpers.plots_stages import stage_bars

MB = 10**6
STAGES = {"prefetch(9): 8 more batches": (200 * MB, 210 * MB), "cache(): 2400 images": (472 * MB, 425 * MB)}


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
