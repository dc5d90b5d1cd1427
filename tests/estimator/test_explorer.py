"""The explorer: right at the corners, close between them, at once when a slider moves, a picture without widgets."""

import itertools

import pytest

from helpers import run
from helpers.course.models import image_cnn
from helpers.estimator.explorer import SLOTS, WIDGET, Explorer, Grid, explore, trace_grid

MB = 10**6
BATCHES, SIZES = (1, 64), (64, 256)
SETTINGS = {"size": 256, "optimizer": "Adam", "precision": "float32"}


def by_formula(batch, size, slots, precision):
    """Parts that are straight lines in the batch, in the pixels and in the slots, as those of a real model are."""
    weights = size**2 * 2048
    activations = batch * size**2 * (256 if precision == "float32" else 128)
    return {"weights": weights, "optimizer": slots * weights, "activations": activations}


@pytest.fixture
def grid():
    corners = {
        precision: {
            (batch, size, slots): by_formula(batch, size, slots, precision)
            for batch, size, slots in itertools.product(BATCHES, SIZES, (0, 2))
        }
        for precision in ("float32", "mixed_float16")
    }
    return Grid(BATCHES, SIZES, corners)


@pytest.mark.parametrize("batch", [1, 7, 64])
@pytest.mark.parametrize("size", [64, 160, 256])
@pytest.mark.parametrize("optimizer", SLOTS)
@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_what_is_linear_is_interpolated_to_the_byte(grid, batch, size, optimizer, precision):
    wanted = by_formula(batch, size, SLOTS[optimizer], precision)
    assert grid.parts(batch, size, optimizer, precision) == pytest.approx(wanted, abs=1)


def test_the_largest_batch_fits_and_the_next_does_not(grid):
    card = 600 * MB
    largest = grid.largest_batch(card, **SETTINGS)
    assert sum(grid.parts(largest, **SETTINGS).values()) <= card
    assert sum(grid.parts(largest + 1, **SETTINGS).values()) > card
    assert grid.largest_batch("100 MB", **SETTINGS) == 0
    assert grid.largest_batch("8 GB", **SETTINGS) == 64


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"batch": 65}, "batch=65 is outside of what was traced, 1 to 64"),
        ({"size": 32}, "size=32 is outside of what was traced, 64 to 256"),
        ({"optimizer": "Lion"}, 'there is no optimizer "Lion" here; take one of SGD, momentum, Adam'),
        ({"precision": "int4"}, 'there is no precision "int4" here; take one of float32, mixed_float16'),
    ],
)
def test_what_was_not_traced_is_refused(grid, changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        grid.parts(**{"batch": 8, **SETTINGS, **changes})


@pytest.mark.parametrize(
    ("name", "value"),
    [("batch", 9), ("size", 128), ("optimizer", "SGD"), ("precision", "mixed_float16"), ("card", "1 GB")],
)
def test_every_control_moves_the_picture(grid, name, value):
    explorer = explore(grid)
    before = explorer.picture.value
    explorer.controls[name].value = value
    assert explorer.settings[name] == value
    assert explorer.picture.value != before
    assert explorer.picture.value == explorer.chart().png()


def test_the_sentence_names_the_largest_batch_or_says_that_there_is_none(grid):
    explorer = explore(grid, card="1 GB")
    largest = grid.largest_batch("1 GB", **SETTINGS)
    assert f"The largest batch that fits: {largest}." in explorer.sentence.value
    explorer.controls["card"].value = "256 MB"
    assert "Not even one image fits." in explorer.sentence.value


def test_the_title_and_the_alt_text_say_what_is_shown(grid):
    explorer = explore(grid, batch=1, card="8 GB")
    peak = sum(explorer.parts.values())
    assert "Batch 1, 256 x 256, Adam, float32" in explorer.chart().alt
    assert f"{peak / MB:.0f} MB, {100 * peak / 8e9:.0f} % of the card" in explorer.chart().alt
    assert "Card 8.00 GB" in explorer.chart().alt


def test_a_reader_without_widgets_gets_the_picture(grid):
    explorer = explore(grid)
    data, metadata = explorer._repr_mimebundle_()
    assert {"image/png", WIDGET, "text/plain"} == data.keys()
    assert data["text/plain"] == repr(explorer)
    assert data[WIDGET]["model_id"] == explorer.box.model_id
    assert metadata["image/png"]["alt"] == explorer.chart().alt


def test_a_part_keeps_its_colour_when_another_one_vanishes(grid):
    def colours(optimizer):
        bars = explore(grid, optimizer=optimizer).chart().axes[0].patches
        return [bar.get_facecolor() for bar in bars]

    with_slots, without = colours("Adam"), colours("SGD")
    assert without == [with_slots[0], with_slots[2]]


def traced_and_direct():
    """The grid of notebook 07's network, and estimates of their own for a place between its corners."""
    import keras

    from helpers import estimate

    grid = trace_grid(image_cnn, precisions=("float32",), flatten=True)
    model, momentum = image_cnn(160, flatten=True), keras.optimizers.SGD(momentum=0.9)
    direct = {"Adam": estimate(model, 24, "adam").peak, "momentum": estimate(model, 24, momentum).peak}
    return grid, direct


def test_between_the_corners_the_bars_are_close_to_an_estimate_of_their_own():
    grid, direct = run(traced_and_direct).value
    for optimizer, peak in direct.items():
        found = sum(grid.parts(24, 160, optimizer, "float32").values())
        assert found == pytest.approx(peak, rel=0.2)
    assert isinstance(explore(grid), Explorer)
