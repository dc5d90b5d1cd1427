"""What the stages of a pipeline hold: a bar for the bytes measured, a mark where the formula puts them."""

from helpers import plots_chart as look
from helpers.units import format_bytes

ROW, TOP, BOTTOM, NAMES, NOTES = 34, 76, 44, 292, 208


@look.in_style
def stage_bars(stages, title=None):
    """Draw for each stage the bytes that it held and those that its formula gives.

    `stages` maps names to pairs (formula, measured), both in bytes.

    >>> stage_bars({"prefetch(8)": (100_000_000, 104_000_000)}).alt
    'Bars of bytes per stage, formula in brackets. Measured within 4 % of the formula. prefetch(8) 104 MB (100 MB).'
    """
    if not stages:
        raise ValueError('stage_bars needs bytes: {"prefetch(8)": (formula, measured)}')
    names = [look.clean(name) for name in stages]
    chart = look.Chart("bytes held by each stage", height=TOP + BOTTOM + ROW * len(names))
    axes = chart.box(NAMES, BOTTOM, 900 - NAMES - NOTES, ROW * len(names))
    axes.set(xlim=(0, 1.08 * max(max(pair) for pair in stages.values())), ylim=(len(names) - 0.5, -0.5))
    look.byte_axis(axes.xaxis, axes.get_xlim()[1])
    axes.set_yticks(range(len(names)), [_fitting(chart, name) for name in names])
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    for row, (formula, measured) in enumerate(stages.values()):
        _draw_stage(axes, row, formula, measured)
    message = title or _message(stages)
    chart.heading(message, "Bar: measured. Black mark: the formula, worked out on paper")
    listed = ", ".join(
        f"{name} {format_bytes(measured)} ({format_bytes(formula)})"
        for name, (formula, measured) in zip(names, stages.values(), strict=True)
    )
    chart.alt = f"Bars of bytes per stage, formula in brackets. {message}. {listed}."
    return chart


def _fitting(chart, name):
    """As much of a name as there is room for on the left of the bars."""
    text = look.fit(chart.text(0, 0, name), NAMES - 16)
    text.remove()
    return text.get_text()


def _draw_stage(axes, row, formula, measured):
    axes.barh(row, measured, height=0.56, color=look.RAM, zorder=3)
    axes.plot([formula, formula], [row - 0.4, row + 0.4], color="white", linewidth=5, zorder=4)
    axes.plot([formula, formula], [row - 0.4, row + 0.4], color="#222222", linewidth=2.5, zorder=5)
    beside = f"{format_bytes(measured)}, formula {format_bytes(formula)}"
    look.fit(look.note(axes, beside, (axes.get_xlim()[1], row), (10, 0), va="center"), NOTES - 16)


def _message(stages):
    farthest = max(abs(measured / formula - 1) for formula, measured in stages.values())
    return f"Measured within {max(1, round(100 * farthest))} % of the formula"
