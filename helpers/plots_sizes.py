"""Bytes against bytes: peaks as the data grows, and the parts that add up to one figure."""

from helpers import plots_chart as look
from helpers.units import format_bytes, parse_bytes

FLAT = 1.25
FLAT_SLOPE = 0.15
"""Bytes of memory per byte of data: a small peak that varies by a few MB does not grow with the data."""
MOST_PARTS = 7


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
        names.append((f"{look.clean(name)}\n{_end(group)}", colour, *group[-1][:2]))
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
    name = look.shorten(name, 24)
    deaths = [size for size, _, died in group if died]
    peaks = [peak for _, peak, died in group if not died]
    if deaths:
        return f"{name} dies at {format_bytes(min(deaths))}"
    growth = group[-1][0] - group[0][0]
    if max(peaks) > FLAT * min(peaks) and max(peaks) - min(peaks) > FLAT_SLOPE * growth:
        return f"{name} grows to {format_bytes(max(peaks))}"
    return f"{name} stays at {format_bytes(max(peaks))}"


@look.in_style
def stacked_bytes(parts, measured=None, budget=None, title=None, colours=None, limit="budget", end=None):
    """Draw what a number of bytes consists of as one bar, with the measured value and the budget as lines.

    `colours` maps names of parts to theirs, `limit` is what the budget is called, `end` where the axis ends.
    """
    parts = _parts(parts)
    total = sum(parts.values())
    budget = None if budget is None else parse_bytes(budget, name="budget")
    chart = look.Chart("bytes and what they consist of", height=250)
    axes = chart.box(24, 66, 852, 110)
    axes.set(xlim=(0, end or 1.1 * max(total, measured or 0, budget or 0)), ylim=(0, 1))
    axes.set_axis_off()
    _draw_parts(axes, parts, colours or {})
    if measured is not None:
        _mark(axes, measured, "measured", color="#222222")
    if budget is not None:
        _mark(axes, budget, limit, row=int(measured is not None), color=look.LIMIT, linestyle=look.DASHED)
    message = title or _adds_up(parts, total, measured)
    chart.heading(message)
    listed = ", ".join(f"{name} {format_bytes(size)}" for name, size in parts.items())
    chart.alt = f"Bar of bytes. {message}. {listed}." + (
        f" {limit.capitalize()} {format_bytes(budget)}." if budget else ""
    )
    return chart


def _parts(parts):
    """Check the parts, and put the smallest of very many together."""
    parts = {look.clean(name): int(size) for name, size in parts.items() if size}
    if not parts:
        raise ValueError('stacked_bytes needs parts that have bytes: {"weights": 4_000_000, "labels": 128}')
    for name, size in parts.items():
        if size < 0:
            raise ValueError(f"A part cannot have less than no bytes, but {name} has {size}")
    if len(parts) <= MOST_PARTS:
        return parts
    rest = sorted(parts, key=parts.get)[: len(parts) - MOST_PARTS + 1]
    others = {f"{len(rest)} others": sum(parts[name] for name in rest)}
    return {name: size for name, size in parts.items() if name not in rest} | others


def _adds_up(parts, total, measured):
    name = max(parts, key=parts.get)
    message = f"{format_bytes(total)}, of which {name} {100 * parts[name] / total:.0f} %"
    return message if measured is None else f"{message}; measured {format_bytes(measured)}"


def _draw_parts(axes, parts, colours):
    """Draw the bar, and under it the names that are too wide for their part."""
    outside, start = [], 0
    pixels = axes.get_xlim()[1] / axes.bbox.width
    style = {"ha": "center", "va": "center", "weight": "bold", "linespacing": 1.3}
    for default, (name, size) in zip(look.SERIES, parts.items(), strict=False):
        middle, colour = start + size / 2, colours.get(name, default)
        axes.barh(0.5, size, left=start, height=0.62, color=colour, edgecolor="white", linewidth=1.5)
        label = axes.text(middle, 0.5, f"{name}\n{format_bytes(size)}", color=look.on(colour), **style)
        if look.width_of(label) > size / pixels - 10:
            label.remove()
            outside.append((middle, f"{look.shorten(name, 20)}\n{format_bytes(size)}"))
        start += size
    _draw_names_below(axes, outside, pixels)


def _draw_names_below(axes, names, pixels):
    """Write names under the bar, apart from each other, each at the end of a fine line to its part."""
    longest = max((len(row) for _, text in names for row in text.split("\n")), default=0)
    gap = (7.5 * longest + 12) * pixels
    places = look.spread([middle for middle, _ in names], gap, gap / 2, axes.get_xlim()[1] - gap / 2)
    line = {"arrowstyle": "-", "color": "#8c8c8c", "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
    style = {"ha": "center", "va": "top", "linespacing": 1.3, "textcoords": "data", "arrowprops": line}
    for (middle, text), place in zip(names, places, strict=True):
        look.note(axes, text, (middle, 0.19), (place, -0.18), **style)


def _mark(axes, size, name, color, row=0, linestyle="solid"):
    """Draw a line across the bar at a size, with its name at the upper end."""
    top = 1 + 0.2 * row
    style = {"path_effects": look.HALO, "color": color}
    axes.plot([size, size], [0.08, top], linewidth=2, linestyle=linestyle, clip_on=False, zorder=6, **style)
    side = (
        {"ha": "right", "offset": (-6, -4)}
        if size > 0.7 * axes.get_xlim()[1]
        else {"ha": "left", "offset": (6, -4)}
    )
    look.note(axes, f"{name} {format_bytes(size)}", (size, top), weight="bold", **side, **style)
