"""A card over time: what each process on it has reserved, and what it uses of that; and a pool, piece by piece."""

import pandas

from helpers.charts import look
from helpers.charts.timeline import BOTTOM, HEADING, LEFT, time_axis
from helpers.text import shorten
from helpers.units import format_bytes

LABELS = 170
ENVELOPE = 15
"""Readings in a row whose highest is drawn: the use of a training job goes up and down with every step."""


@look.in_style
def reserved_and_used(sharing, title=None):
    """Draw the card as a stack: a pale band for what a process has reserved and, dark in it, what it uses."""
    chart = look.Chart("reserved and used memory of a card over time")
    axes = chart.box(LEFT, BOTTOM, look.WIDTH - LEFT - LABELS, chart.bbox.height - HEADING - BOTTOM)
    axes.set(xlim=(0, max(tenant.ended for tenant in sharing.tenants)), ylim=(0, 1.12 * sharing.size))
    look.byte_axis(axes.yaxis, axes.get_ylim()[1])
    time_axis(axes)
    look.budget_line(axes, sharing.size, "card")
    names, floor = [], 0
    for number, tenant in enumerate(sharing.tenants):
        colour = look.SERIES[number % len(look.SERIES)]
        own = sharing.samples[sharing.samples["name"] == tenant.name].reset_index(drop=True)
        names.append((_label(tenant), colour, *_draw_band(axes, own, floor, colour)))
        if tenant.outcome != "finished":
            look.crash_cross(axes, *names[-1][2:])
        floor = floor + own["reserved"]
    look.name_curves(axes, names, gap=54)
    message = title or "; ".join(_sentence(tenant) for tenant in sharing.tenants)
    chart.heading(message, "Pale: reserved on the card. Dark: used by tensors.")
    listed = " ".join(f"{_label(tenant)}.".replace("\n", ", ") for tenant in sharing.tenants)
    chart.alt = f"Chart of a card of {format_bytes(sharing.size)} over time. {message}. {listed}"
    return chart


def _draw_band(axes, own, floor, colour):
    """Draw one process on top of those before it; returns the last place of what it used."""
    inside = own["reserved"] > 0
    used = own["used"].rolling(ENVELOPE, min_periods=1, center=True).max().clip(upper=own["reserved"])
    # nobody moves when a neighbour leaves
    floor = pandas.Series(floor, index=own.index).where(inside).cummax()
    style = {"where": inside, "step": "post", "color": colour, "linewidth": 0}
    axes.fill_between(own["seconds"], floor, floor + own["reserved"], alpha=0.22, zorder=2, **style)
    axes.fill_between(own["seconds"], floor, floor + used, alpha=0.8, zorder=3, **style)
    if not inside.any():
        return own["seconds"].iloc[-1], 0
    last = own.index[inside][-1]
    return own["seconds"][last], floor[last] + used[last]


def _label(tenant):
    end = "" if tenant.outcome == "finished" else " dies"
    share = f"reserved {format_bytes(tenant.reserved)}\nused {format_bytes(tenant.used)}"
    return f"{shorten(tenant.name, 14)}{end}\n{share}"


def _sentence(tenant):
    """State what one process held, and whether it died of it."""
    name, reserved = shorten(tenant.name, 20), format_bytes(tenant.reserved)
    if tenant.outcome == "finished":
        return f"{name} reserved {reserved} and used {format_bytes(tenant.used)}"
    return f"{name} got {reserved} and dies"


@look.in_style
def draw_pool(found):
    """Draw a pool region by region, used pieces dark and free ones pale, over the request that found no place."""
    chart = look.Chart("regions of a memory pool", height=250)
    axes = chart.box(24, 34, 852, 130)
    gap = 0.006 * found.limit
    axes.set(xlim=(0, found.limit + gap * (len(found.regions) + 1)), ylim=(0, 3))
    axes.set_axis_off()
    start, largest = 0, None
    for region in sorted(found.regions, key=lambda region: -sum(piece.size for piece in region)):
        for piece in region:
            _draw_piece(axes, start, piece.size, color=look.VRAM, alpha=0.9 if piece.used else 0.2)
            if not piece.used and piece.size == found.largest_free:
                largest = start + piece.size / 2
            start += piece.size
        start += gap
    if found.not_reserved > 0:
        _draw_piece(axes, start, found.not_reserved, fill=False, edgecolor=look.QUIET, linewidth=0.8)
    _name_pieces(axes, found, largest)
    message = (
        f"{format_bytes(found.free)} are free in the pool, and {format_bytes(found.request)} find no place"
    )
    chart.heading(
        message, "Dark: used by tensors. Pale: free. A gap ends a region. Outlined: not reserved yet."
    )
    chart.alt = (
        f"A memory pool of {len(found.regions)} regions. {message}. "
        f"The largest free piece has {format_bytes(found.largest_free)}."
    )
    return chart


def _draw_piece(axes, start, size, row=2, **style):
    axes.barh(row, size, left=start, height=0.9, **{"linewidth": 0} | style)


def _name_pieces(axes, found, largest):
    """Name the largest free piece, and draw under the pool, to scale, what was asked for."""
    _draw_piece(axes, 0, found.request, row=0.5, color=look.LIMIT, alpha=0.9)
    style = {"va": "center", "weight": "bold"}
    asked = f"asked for in one piece: {format_bytes(found.request)}"
    axes.text(1.02 * found.request, 0.5, asked, color=look.LIMIT, **style)
    if largest is not None:
        free = f"largest free piece: {format_bytes(found.largest_free)}"
        axes.text(largest, 2.85, free, ha="center", color=look.ink(look.VRAM), **style)
