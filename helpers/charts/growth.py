"""Peaks as the data grows: a line for each way of doing a job, and whether it stays flat."""

from helpers.charts import look
from helpers.text import clean, shorten
from helpers.units import format_bytes, parse_bytes

FLAT = 1.25
FLAT_SLOPE = 0.15
"""Bytes of memory per byte of data: a small peak that varies by a few MB does not grow with the data."""


@look.in_style
def peaks_against_size(groups, budget, memory="ram"):
    """Draw the peak against the size of the data, a line for each way of doing the job.

    `groups` maps the name of each way to its `(size of the data in bytes, trial)` pairs; a job that did not
    finish is a red cross on the budget line. `memory` is "ram" or "vram".
    """
    budget = parse_bytes(budget, name="budget")
    points = {name: _points(pairs, budget, memory) for name, pairs in groups.items() if pairs}
    if not points:
        raise ValueError('peaks_against_size needs trials: {"streaming": [(size in bytes, trial), ...]}')
    chart = look.Chart("peak memory against the size of the data")
    axes = chart.box(82, 56, 638, 298)
    right = 1.04 * max(size for group in points.values() for size, _, _ in group)
    highest = max(peak for group in points.values() for _, peak, _ in group)
    axes.set(xlim=(0, right), ylim=(0, 1.12 * max(highest, budget)), xlabel="size of the data")
    look.byte_axis(axes.xaxis, right)
    look.byte_axis(axes.yaxis, axes.get_ylim()[1])
    look.budget_line(axes, budget, "budget")
    names = []
    for number, (name, group) in enumerate(points.items()):
        colour = look.SERIES[number % len(look.SERIES)]
        _draw_group(axes, group, colour)
        names.append((f"{clean(name)}\n{_end(group)}", colour, *group[-1][:2]))
    look.name_curves(axes, names)
    sentences = [_sentence(name, group) for name, group in points.items()]
    chart.heading("; ".join(sentences), f"Peak {memory.upper()} of each run")
    chart.alt = f"Chart of peak {memory.upper()} against the size of the data. {'. '.join(sentences)}."
    return chart


def _points(pairs, budget, memory):
    """Return size, height and whether the job died; one that died would have gone on past the budget."""
    points = []
    for size, trial in sorted(pairs, key=lambda pair: pair[0]):
        died = trial.outcome != "finished"
        points.append((size, budget if died else getattr(trial, f"peak_{memory}") or 0, died))
    return points


def _draw_group(axes, group, colour):
    """Draw the runs that finished as dots on a line, and a fine line on to those that died."""
    sizes, peaks, _ = zip(*group, strict=True)
    axes.plot(sizes, peaks, color=colour, linestyle=":", linewidth=1.5)
    alive = [(size, peak) for size, peak, died in group if not died]
    if alive:
        axes.plot(*zip(*alive, strict=True), color=colour, marker="o", markersize=7, zorder=5)
    for size, peak, died in group:
        if died:
            look.crash_cross(axes, size, peak)


def _end(group):
    _, peak, died = group[-1]
    return "out of memory" if died else f"peak {format_bytes(peak)}"


def _sentence(name, group):
    """Say in a few words what a group of runs shows."""
    name = shorten(name, 24)
    deaths = [size for size, _, died in group if died]
    peaks = [peak for _, peak, died in group if not died]
    if deaths:
        return f"{name} dies at {format_bytes(min(deaths))}"
    growth = group[-1][0] - group[0][0]
    if max(peaks) > FLAT * min(peaks) and max(peaks) - min(peaks) > FLAT_SLOPE * growth:
        return f"{name} grows to {format_bytes(max(peaks))}"
    return f"{name} stays at {format_bytes(max(peaks))}"
