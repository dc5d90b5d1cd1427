"""Peaks side by side: one bar for each way of doing a job, with what it costs written beside it."""

from helpers import plots_chart as look
from helpers.units import format_bytes, parse_bytes

ROW, TOP, BOTTOM, NAMES, NOTES = 30, 66, 44, 190, 250


@look.in_style
def peaks_by_name(peaks, budget=None, notes=None, title=None):
    """Draw the peak of each job as a bar, in the order given.

    `peaks` maps names to bytes, `notes` names to a few words beside the bar. A peak above the budget is red.

    >>> peaks_by_name({"Flatten": 758_000_000, "pooling": 226_000_000}, "448 MB").alt
    'Bars of peak memory. 1 of 2 stay within 448 MB; least: pooling, 226 MB. Flatten 758 MB, pooling 226 MB.'
    """
    if not peaks:
        raise ValueError('peaks_by_name needs peaks in bytes: {"pooling": trial.peak_vram}')
    budget = None if budget is None else parse_bytes(budget, name="budget")
    names = [look.clean(name) for name in peaks]
    sizes = list(peaks.values())
    chart = look.Chart("peak memory by name", height=TOP + BOTTOM + ROW * len(sizes))
    axes = chart.box(NAMES, BOTTOM, 900 - NAMES - NOTES, ROW * len(sizes))
    axes.set(xlim=(0, 1.05 * max(*sizes, budget or 0)), ylim=(len(sizes) - 0.5, -0.5))
    look.byte_axis(axes.xaxis, axes.get_xlim()[1])
    axes.set_yticks(range(len(names)), [look.shorten(name, 26) for name in names])
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    _draw_bars(axes, sizes, budget, [look.clean((notes or {}).get(name, "")) for name in peaks])
    if budget:
        _draw_budget(axes, budget)
    message = title or _message(names, sizes, budget)
    chart.heading(message)
    listed = ", ".join(f"{name} {format_bytes(size)}" for name, size in zip(names, sizes, strict=True))
    chart.alt = f"Bars of peak memory. {message}. {listed}."
    return chart


def _draw_bars(axes, sizes, budget, notes):
    right = axes.get_xlim()[1]
    for row, (size, text) in enumerate(zip(sizes, notes, strict=True)):
        over = budget is not None and size > budget
        axes.barh(row, size, height=0.62, color=look.LIMIT if over else look.VRAM, zorder=3)
        beside = f"{format_bytes(size)}   {text}".rstrip()
        look.fit(look.note(axes, beside, (right, row), (10, 0), va="center"), NOTES - 24)


def _draw_budget(axes, budget):
    style = {"color": look.LIMIT, "path_effects": look.HALO}
    axes.axvline(budget, linewidth=1.6, linestyle=look.DASHED, color=look.LIMIT, zorder=4)
    place = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
    look.note(axes, f"budget {format_bytes(budget)}", (budget, 1), (0, 3), weight="bold", **place, **style)


def _message(names, sizes, budget):
    least = min(range(len(sizes)), key=sizes.__getitem__)
    end = f"least: {names[least]}, {format_bytes(sizes[least])}"
    if budget is None:
        return end[0].upper() + end[1:]
    within = sum(size <= budget for size in sizes)
    return f"{within} of {len(sizes)} stay within {format_bytes(budget)}; {end}"
