"""Bytes and the parts that add up to them: as one bar, against a card, and beside the curve of a training step."""

from helpers.charts import look, marks, timeline
from helpers.text import clean, shorten
from helpers.units import format_bytes, parse_bytes

PARTS = ("weights", "gradients", "optimizer", "activations", "temporaries", "batch", "unused")
COLOURS = dict(zip(PARTS, look.SERIES, strict=True))
"""A part keeps its colour, also where another one is missing."""
MOST_PARTS = 7
SMALLEST_NAMED = 0.01
SMALLEST_SHOWN = 0.001
LEFT, BOTTOM, CURVE, GAP, BAR = 76, 50, 500, 34, 86


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
    chart.alt = f"Bar of bytes. {message}. {listed(parts)}." + (
        f" {limit.capitalize()} {format_bytes(budget)}." if budget else ""
    )
    return chart


def _parts(parts):
    """Check the parts, and put the smallest of very many together."""
    parts = {clean(name): int(size) for name, size in parts.items() if size}
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
            outside.append((middle, f"{shorten(name, 20)}\n{format_bytes(size)}"))
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
    side, shift = ("right", -6) if size > 0.7 * axes.get_xlim()[1] else ("left", 6)
    look.note(axes, f"{name} {format_bytes(size)}", (size, top), (shift, -4), weight="bold", ha=side, **style)


def bar_of_parts(parts, title, card=None, end=None):
    """Draw the parts as one bar, against a card of so many bytes; the title says how the two compare.

    `end` is where the axis ends, for bars that are to be compared.
    """
    peak = sum(parts.values())
    shown = {name: size for name, size in parts.items() if size > SMALLEST_SHOWN * peak}
    title = f"{title}: {format_bytes(peak) if card is None else against_card(peak, card)}"
    return stacked_bytes(shown, budget=card, title=title, colours=COLOURS, limit="card", end=end)


def against_card(peak, card):
    """What a peak is beside a card.

    >>> against_card(400_000_000, 512_000_000), against_card(1_280_000_000, 512_000_000)
    ('400 MB, 78 % of the card', '1.28 GB, 2.5 times the card')
    """
    share = f"{100 * peak / card:.0f} % of" if peak <= card else f"{peak / card:.1f} times"
    return f"{format_bytes(peak)}, {share} the card"


@look.in_style
def step_anatomy(trial, parts, budget=None):
    """Draw the VRAM of a trial over time, and beside it, on the same axis, the parts predicted for its peak."""
    samples = timeline.thin(trial.samples)
    seconds, sizes = timeline.curve(trial, samples, "vram")
    if not len(sizes):
        raise ValueError("step_anatomy needs a trial that measured VRAM: run(job, vram=...)")
    budget = None if budget is None else parse_bytes(budget, name="budget")
    chart = look.Chart("one training step and its parts")
    end = timeline.end_of(trial, samples)
    rows = marks.phase_rows(trial.phases, end, CURVE)
    height = chart.bbox.height - timeline.HEADING - 17 * len(set(rows.values())) - BOTTOM
    axes = chart.box(LEFT, BOTTOM, CURVE, height)
    top = 1.12 * max(trial.peak_vram, sum(parts.values()), budget or 0)
    axes.set(xlim=(0, end), ylim=(0, top))
    look.byte_axis(axes.yaxis, top)
    marks.draw_phases(axes, trial.phases, rows, end)
    axes.fill_between(seconds, sizes, color=look.VRAM, alpha=0.2, linewidth=0, zorder=2)
    timeline.draw_curve(axes, seconds, sizes, look.VRAM)
    timeline.time_axis(axes)
    bar = _draw_bar(chart.box(LEFT + CURVE + GAP, BOTTOM, BAR, height, sharey=axes), parts)
    if budget:
        look.budget_line(axes, budget, "budget")
        bar.axhline(budget, color=look.LIMIT, linewidth=1.6, linestyle=look.DASHED, zorder=4)
    message = f"Predicted {format_bytes(sum(parts.values()))}, measured {format_bytes(trial.peak_vram)}"
    chart.heading(message, "VRAM in use during one step, and the parts that the estimate expects at the peak")
    chart.alt = f"Chart of VRAM during one training step. {message}. {listed(parts)}."
    return chart


def _draw_bar(axes, parts):
    """Stack the parts, and name those that can be seen beside the bar."""
    axes.set(xlim=(0, 1), xticks=[])
    axes.tick_params(labelleft=False)
    axes.set_xlabel("predicted")
    start, names = 0, []
    for name, size in parts.items():
        colour = COLOURS.get(name, look.QUIET)
        axes.bar(0.5, size, bottom=start, width=0.8, color=colour, edgecolor="white", linewidth=1, zorder=3)
        if size >= SMALLEST_NAMED * axes.get_ylim()[1]:
            names.append((f"{name} {format_bytes(size)}", colour, 0.9, start + size / 2))
        start += size
    look.name_curves(axes, names, gap=20)
    return axes


def listed(parts):
    """The parts as a sentence has them.

    >>> listed({"weights": 2_000_000, "gradients": 0, "batch": 1_000_000})
    'weights 2 MB, batch 1 MB'
    """
    return ", ".join(f"{name} {format_bytes(size)}" for name, size in parts.items() if size)
