"""Rows of bars, one for each name: peaks side by side, what the stages of a pipeline hold, and how rows are drawn."""

from helpers.charts import look
from helpers.text import clean, shorten
from helpers.units import format_bytes, parse_bytes

BOTTOM = 44


def frame_rows(axes, count, names=()):
    """Give axes a line for each of `count` rows, the first on top, with the names on the left."""
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)


def draw_rows(axes, sizes, end, colours, names=(), height=0.62):
    """Draw a bar for each size, the first on top, on an axis from zero to `end`, in one colour or one for each."""
    frame_rows(axes, len(sizes), names)
    axes.set_xlim(0, end)
    axes.barh(range(len(sizes)), sizes, height=height, color=colours, zorder=3)


def draw_upright(axes, size, text, line=look.LIMIT, rise=3, **style):
    """Draw a dashed line through all rows, such as their budget, with its name above them."""
    axes.axvline(size, color=line, linewidth=1.6, linestyle=look.DASHED, zorder=4)
    place = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom", "weight": "bold"}
    look.note(axes, text, (size, 1), (0, rise), **place, **{"color": line} | style)


def over_budget(sizes, budget, colour):
    """The colours of bars: the given one, and red for those above a budget."""
    return [look.LIMIT if budget is not None and size > budget else colour for size in sizes]


def _chart_of_rows(name, count, row, top, left, right):
    """A chart with a place for rows of so many pixels each, and around them what is kept free."""
    chart = look.Chart(name, height=top + BOTTOM + row * count)
    return chart, chart.box(left, BOTTOM, look.WIDTH - left - right, row * count)


def _write_beside(axes, texts):
    """Write a text on the right of each row, as far as there is room."""
    for row, text in enumerate(texts):
        shown = look.note(axes, text, (axes.get_xlim()[1], row), (10, 0), va="center")
        look.fit(shown, look.WIDTH - axes.bbox.x1 - 24)


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
    names, sizes = [clean(name) for name in peaks], list(peaks.values())
    chart, axes = _chart_of_rows("peak memory by name", len(sizes), row=30, top=66, left=190, right=250)
    end = 1.05 * max(*sizes, budget or 0)
    draw_rows(axes, sizes, end, over_budget(sizes, budget, look.VRAM), [shorten(name, 26) for name in names])
    look.byte_axis(axes.xaxis, end)
    words = {name: clean(text) for name, text in (notes or {}).items()}
    _write_beside(axes, [f"{format_bytes(peaks[name])}   {words.get(name, '')}".rstrip() for name in peaks])
    if budget:
        draw_upright(axes, budget, f"budget {format_bytes(budget)}", path_effects=look.HALO)
    message = title or _least(names, sizes, budget)
    chart.heading(message)
    listed = ", ".join(f"{name} {format_bytes(size)}" for name, size in zip(names, sizes, strict=True))
    chart.alt = f"Bars of peak memory. {message}. {listed}."
    return chart


def _least(names, sizes, budget):
    least = min(range(len(sizes)), key=sizes.__getitem__)
    end = f"least: {names[least]}, {format_bytes(sizes[least])}"
    if budget is None:
        return end[0].upper() + end[1:]
    within = sum(size <= budget for size in sizes)
    return f"{within} of {len(sizes)} stay within {format_bytes(budget)}; {end}"


@look.in_style
def stage_bars(stages, title=None):
    """Draw for each stage of a pipeline the bytes that it held, and a mark where its formula puts them.

    `stages` maps names to pairs (formula, measured), both in bytes.

    >>> stage_bars({"prefetch(8)": (100_000_000, 104_000_000)}).alt
    'Bars of bytes per stage, formula in brackets. Measured within 4 % of the formula. prefetch(8) 104 MB (100 MB).'
    """
    if not stages:
        raise ValueError('stage_bars needs bytes: {"prefetch(8)": (formula, measured)}')
    names = [clean(name) for name in stages]
    formulas, sizes = zip(*stages.values(), strict=True)
    chart, axes = _chart_of_rows("bytes held by each stage", len(names), row=34, top=76, left=292, right=208)
    end = 1.08 * max(*formulas, *sizes)
    draw_rows(axes, sizes, end, look.RAM, [_fitting(axes, name) for name in names], height=0.56)
    look.byte_axis(axes.xaxis, end)
    for row, formula in enumerate(formulas):
        _draw_mark(axes, row, formula)
    _write_beside(
        axes, [f"{format_bytes(size)}, formula {format_bytes(formula)}" for formula, size in stages.values()]
    )
    message = title or _farthest(stages)
    chart.heading(message, "Bar: measured. Black mark: the formula, worked out on paper")
    listed = ", ".join(
        f"{name} {format_bytes(size)} ({format_bytes(formula)})"
        for name, (formula, size) in zip(names, stages.values(), strict=True)
    )
    chart.alt = f"Bars of bytes per stage, formula in brackets. {message}. {listed}."
    return chart


def _fitting(axes, name):
    """As much of a name as there is room for on the left of the bars."""
    text = look.fit(axes.figure.text(0, 0, name), axes.bbox.x0 - 16)
    text.remove()
    return text.get_text()


def _draw_mark(axes, row, size):
    ends = [size, size], [row - 0.4, row + 0.4]
    axes.plot(*ends, color="white", linewidth=5, zorder=4)
    axes.plot(*ends, color="#222222", linewidth=2.5, zorder=5)


def _farthest(stages):
    farthest = max(abs(measured / formula - 1) for formula, measured in stages.values())
    return f"Measured within {max(1, round(100 * farthest))} % of the formula"
