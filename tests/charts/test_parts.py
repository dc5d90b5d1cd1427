"""Bytes and their parts: a bar adds up, and the anatomy of a step has its bar and its curve on one axis."""

import itertools

import pytest
from matplotlib.colors import to_hex

from drawn import MB, a_phase, a_trial, assert_readable, title_of
from helpers.charts.parts import COLOURS, PARTS, stacked_bytes, step_anatomy

BYTES = {"weights": 1, "gradients": 0, "optimizer": 2, "activations": 80, "temporaries": 110, "batch": 25}
BYTES = {name: size * MB for name, size in BYTES.items()}


@pytest.fixture
def step():
    hill = {"peak_vram": 200 * MB, "vram_shape": lambda share: 4 * share * (1 - share)}
    phases = (a_phase("forward", 0.2, 2), a_phase("backward", 2, 3.8), a_phase("update", 3.8, 4))
    return a_trial(peak=230, budget=None, phases=phases, **hill)


def test_curve_and_bar_share_an_axis_that_has_room_for_the_budget(step):
    curve, bar = step_anatomy(step, BYTES, budget="512 MB").axes
    assert curve.get_ylim() == bar.get_ylim()
    assert curve.get_ylim()[0] == 0
    assert curve.get_ylim()[1] > 512 * MB


def test_the_bar_adds_up_and_its_parts_have_their_colours(step):
    _, bar = step_anatomy(step, BYTES).axes
    assert sum(patch.get_height() for patch in bar.patches) == sum(BYTES.values())
    colours = [to_hex(patch.get_facecolor()).upper() for patch in bar.patches]
    assert colours == [COLOURS[name] for name in BYTES]
    assert tuple(COLOURS) == PARTS


def test_the_title_has_both_figures_and_the_alt_text_the_parts(step):
    chart = step_anatomy(step, BYTES)
    assert "Predicted 218 MB, measured 200 MB" in chart.alt
    assert "activations 80 MB" in chart.alt
    assert "gradients" not in chart.alt


def test_names_stay_apart_and_inside_the_picture(step):
    chart = step_anatomy(step, BYTES | {"unused": 28 * MB}, budget="512 MB")
    names = [text.get_window_extent() for text in chart.axes[1].texts]
    assert all(box.x1 <= chart.bbox.width for box in names)
    heights = sorted((box.y0, box.y1) for box in names)
    assert all(below[1] <= above[0] + 2 for below, above in itertools.pairwise(heights))


def test_a_trial_without_vram_is_refused():
    with pytest.raises(ValueError, match=r"needs a trial that measured VRAM: run\(job, vram=...\)"):
        step_anatomy(a_trial(), BYTES)


@pytest.mark.parametrize("measured", [None, 700 * MB, 520 * MB])
@pytest.mark.parametrize("count", [1, 4, 12])
def test_stacked_bytes_add_up(count, measured):
    parts = {f"part number {number}": 4**number * 100_000 for number in range(count)}
    chart = stacked_bytes(parts, measured=measured, budget="512 MB")
    assert sum(bar.get_width() for bar in chart.axes[0].patches) == sum(parts.values())
    assert_readable(chart)


def test_stacked_bytes_name_the_largest_part_and_what_was_measured():
    chart = stacked_bytes({"weights": 100 * MB, "activations": 300 * MB}, measured=410 * MB)
    assert title_of(chart) == "400 MB, of which activations 75 %; measured 410 MB"
    assert "weights 100 MB, activations 300 MB" in chart.alt


def test_stacked_bytes_reject_what_cannot_be_drawn():
    with pytest.raises(ValueError, match="needs parts"):
        stacked_bytes({})
    with pytest.raises(ValueError, match="slack has -5"):
        stacked_bytes({"weights": 5, "slack": -5})
