"""The parts of a model's training memory: estimated at a few corners, interpolated in between."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import product

from helpers.units import parse_bytes

SLOTS = {"SGD": 0, "momentum": 1, "Adam": 2}
"""How many numbers an optimizer keeps for each weight."""
TRACED = ("SGD", "Adam")
PRECISIONS = ("float32", "mixed_float16")


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
    from helpers.estimate import estimate

    corners = {precision: {} for precision in precisions}
    for size in sizes:
        model = build(size, **settings)
        for precision, batch, optimizer in product(precisions, batches, TRACED):
            guess = estimate(model, batch, optimizer, precision)
            corners[precision][batch, size, SLOTS[optimizer]] = dict(guess.parts)
    return Grid(tuple(batches), tuple(sizes), corners)
