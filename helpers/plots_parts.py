"""The parts of training memory: their colours, their bar against a card, and one training step beside that bar."""

from helpers import plots_chart as look
from helpers import plots_marks as marks
from helpers import plots_timeline as timeline
from helpers.plots_sizes import stacked_bytes
from helpers.units import format_bytes, parse_bytes

PARTS = ("weights", "gradients", "optimizer", "activations", "temporaries", "batch", "unused")
COLOURS = dict(zip(PARTS, look.SERIES, strict=True))
"""A part keeps its colour, also where another one is missing."""
SMALLEST_NAMED = 0.01
SMALLEST_SHOWN = 0.001
LEFT, BOTTOM, CURVE, GAP, BAR = 76, 50, 500, 34, 86


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
