"""Sliders that move the bars: training memory against batch, resolution, optimizer, precision and card.

The parts are estimated at the corners of a grid; between the corners they are interpolated.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import product

import ipywidgets as widgets

from helpers.charts.parts import bar_of_parts
from helpers.estimator.estimate import estimate
from helpers.units import parse_bytes

SLOTS = {"SGD": 0, "momentum": 1, "Adam": 2}
"""How many numbers an optimizer keeps for each weight."""
TRACED = ("SGD", "Adam")
PRECISIONS = ("float32", "mixed_float16")
CARDS = ("256 MB", "512 MB", "1 GB", "2 GB", "4 GB", "8 GB")
STEP = 16
NAMES = {
    "batch": "batch",
    "size": "resolution",
    "optimizer": "optimizer",
    "precision": "precision",
    "card": "card",
}
WIDGET = "application/vnd.jupyter.widget-view+json"
NAME_WIDTH, ROW_WIDTH, BUTTON_WIDTH = "90px", "500px", "130px"
ROOM = 1.25
"""How far the axis goes beyond the card."""


@dataclass(frozen=True)
class Grid:
    """What `trace_grid` found: `corners[precision][batch, size, slots]` has the parts in bytes.

    Between the corners the parts are straight lines: in the batch, in the pixels, in the optimizer's slots.
    """

    batches: tuple
    sizes: tuple
    corners: dict

    def parts(self, batch, size, optimizer, precision):
        """The parts of the peak in bytes at any place between the corners."""
        _check("optimizer", optimizer, SLOTS)
        _check("precision", precision, self.corners)
        places = product(
            _between("batch", self.batches, batch),
            _between("size", self.sizes, size, power=2),
            _between("slots", tuple(SLOTS[name] for name in TRACED), SLOTS[optimizer]),
        )
        parts = {}
        for (near_batch, first), (near_size, second), (slots, third) in places:
            for name, size_of_part in self.corners[precision][near_batch, near_size, slots].items():
                parts[name] = parts.get(name, 0) + first * second * third * size_of_part
        return {name: round(size_of_part) for name, size_of_part in parts.items()}

    def largest_batch(self, card, size, optimizer, precision):
        """The largest batch between the corners that fits on a card such as "8 GB"; 0 if none does."""
        budget = parse_bytes(card, name="card")
        batches = range(self.batches[0], self.batches[-1] + 1)

        def is_too_large(batch):
            return sum(self.parts(batch, size, optimizer, precision).values()) > budget

        place = bisect_left(batches, True, key=is_too_large)
        return batches[place - 1] if place else 0


def _check(name, value, known):
    if value not in known:
        raise ValueError(f'there is no {name} "{value}" here; take one of {", ".join(known)}')


def _between(name, stops, value, power=1):
    """The stops on both sides of a value, each with its share."""
    if not stops[0] <= value <= stops[-1]:
        raise ValueError(f"{name}={value} is outside of what was traced, {stops[0]} to {stops[-1]}")
    place = min(max(1, bisect_left(stops, value)), len(stops) - 1)
    low, high = stops[place - 1], stops[place]
    share = (value**power - low**power) / (high**power - low**power)
    return (low, 1 - share), (high, share)


def trace_grid(build, batches=(1, 64), sizes=(64, 256), precisions=PRECISIONS, **settings):
    """Estimate the model `build(size, **settings)` at every corner, in a job: `run(trace_grid, build).value`."""
    corners = {precision: {} for precision in precisions}
    for size in sizes:
        model = build(size, **settings)
        for precision, batch, optimizer in product(precisions, batches, TRACED):
            guess = estimate(model, batch, optimizer, precision)
            corners[precision][batch, size, SLOTS[optimizer]] = dict(guess.parts)
    return Grid(tuple(batches), tuple(sizes), corners)


def explore(grid, batch=8, size=256, optimizer="Adam", precision="float32", card="512 MB"):
    """Show the parts of a `Grid` with a slider for each setting; where there are no widgets, as a picture.

    Nothing is traced when a slider moves: the parts between the corners of the grid are interpolated.
    """
    return Explorer(grid, batch, size, optimizer, precision, card)


class Explorer:
    """The sliders and the picture that follows them; `controls` has the widgets by name."""

    def __init__(self, grid, batch, size, optimizer, precision, card):
        self.grid = grid
        self.controls = {
            "batch": _slider(batch, grid.batches),
            "size": _slider(size, grid.sizes, STEP),
            "optimizer": _buttons(optimizer, SLOTS),
            "precision": _buttons(precision, grid.corners),
            "card": widgets.SelectionSlider(options=CARDS, value=card, **_look()),
        }
        self.sentence = widgets.HTML()
        self.picture = widgets.Image(format="png", layout=widgets.Layout(width="900px", max_width="100%"))
        rows = [_row(NAMES[name], control) for name, control in self.controls.items()]
        self.box = widgets.VBox([*rows, self.sentence, self.picture])
        self._redraw()
        for control in self.controls.values():
            control.observe(self._redraw, names="value")

    def __repr__(self):
        return "<Explorer: training memory by batch, resolution, optimizer, precision and card>"

    @property
    def settings(self):
        """What the sliders say now."""
        return {name: control.value for name, control in self.controls.items()}

    @property
    def parts(self):
        """The bytes of each part at the settings of now."""
        return self.grid.parts(**{name: value for name, value in self.settings.items() if name != "card"})

    def chart(self):
        """The picture for the settings of now."""
        settings, parts = self.settings, self.parts
        card = parse_bytes(settings["card"])
        title = "Batch {batch}, {size} x {size}, {optimizer}, {precision}".format(**settings)
        return bar_of_parts(parts, title, card, end=axis_end(sum(parts.values()), card))

    def _redraw(self, change=None):
        self.picture.value = self.chart().png()
        settings = {name: value for name, value in self.settings.items() if name != "batch"}
        largest = self.grid.largest_batch(**settings)
        self.sentence.value = f'<span role="status">{advice(largest, self.grid.batches[-1])}</span>'

    def _repr_mimebundle_(self, include=None, exclude=None):
        """The widget for those who can run it, and the picture for those who only read."""
        data, metadata = self.chart()._repr_mimebundle_()
        view = {"version_major": 2, "version_minor": 0, "model_id": self.box.model_id}
        return {**data, WIDGET: view, "text/plain": repr(self)}, metadata


def _slider(value, stops, step=1):
    return widgets.IntSlider(value, stops[0], stops[-1], step, **_look())


def _buttons(value, options):
    return widgets.ToggleButtons(options=tuple(options), value=value, **_look(button_width=BUTTON_WIDTH))


def _look(**style):
    return {"style": style, "layout": widgets.Layout(width=ROW_WIDTH)}


def _row(name, control):
    """A control with its name in front; ipywidgets itself would put the name of buttons above them."""
    return widgets.HBox([widgets.Label(name, layout=widgets.Layout(width=NAME_WIDTH)), control])


def advice(largest, highest):
    """The largest batch, in a sentence.

    >>> advice(0, 64), advice(12, 64), advice(64, 64)
    ('Not even one image fits.', 'The largest batch that fits: 12.', 'The largest batch that fits: 64 or more.')
    """
    if largest < 1:
        return "Not even one image fits."
    return f"The largest batch that fits: {largest}{' or more' if largest == highest else ''}."


def axis_end(peak, card):
    """Where the axis ends: it stays while the bar moves, and doubles when the bar would leave it.

    >>> [axis_end(peak, 100) for peak in (10, 120, 130, 600)]
    [125, 125, 250, 1000]
    """
    doublings = math.ceil(math.log2(max(peak, 1) / (ROOM * card)))
    return int(ROOM * card * 2 ** max(0, doublings))
