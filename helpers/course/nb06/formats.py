"""Formats side by side: peak memory, size on disk and reading speed of each, on one chart and in one table."""

from dataclasses import dataclass

import pandas

from helpers.charts import look, rows
from helpers.course.datasets.whole import total_size
from helpers.text import shorten
from helpers.units import format_bytes, parse_bytes

ROW, TOP, BOTTOM = 38, 92, 44
PANELS = {"peak RAM": (214, 150), "on disk": (410, 140), "samples per second": (596, 284)}
ORDERS = {"sequential": (look.RAM, -0.17), "shuffled": (look.WAITING, 0.17)}


@dataclass(frozen=True)
class FormatFigures:
    """What was measured of one way to read one format; sizes in bytes, `speeds` as `reading_speeds` returns them."""

    name: str
    peak_ram: int
    on_disk: int
    speeds: dict

    def rate(self, order, cache):
        return self.speeds[order, cache].samples_per_second


def format_figures(name, trial, path):
    """Put together what a trial of `reading_speeds` showed and what its file or folder takes on disk."""
    return FormatFigures(name, trial.peak_ram, total_size(path), trial.value)


def formats_table(figures):
    """A row for each format."""
    figures = list(figures)
    columns = {
        "format": [each.name for each in figures],
        "peak RAM": [format_bytes(each.peak_ram) for each in figures],
        "on disk": [format_bytes(each.on_disk) for each in figures],
    }
    for order in ORDERS:
        for cache in ("cold", "warm"):
            columns[f"{order}, {cache}"] = [f"{each.rate(order, cache):,.0f}/s" for each in figures]
    return pandas.DataFrame(columns)


@look.in_style
def formats_chart(figures, budget, title=None):
    """Draw the formats in rows: two bars, and how many samples a second they give, cold (hollow) and warm (filled)."""
    figures = list(figures)
    if not figures:
        raise ValueError("formats_chart needs FormatFigures, one for each format")
    budget = parse_bytes(budget, name="budget")
    height = ROW * len(figures)
    chart = look.Chart("formats side by side", height=TOP + BOTTOM + height)
    panels = {name: chart.box(left, BOTTOM, width, height) for name, (left, width) in PANELS.items()}
    memory, disk, speed = panels.values()
    names = [shorten(each.name, 30) for each in figures]
    _draw_bars(memory, [each.peak_ram for each in figures], budget, names)
    _draw_bars(disk, [each.on_disk for each in figures])
    rows.draw_upright(memory, budget, f"budget {format_bytes(budget)}", rise=5)
    _draw_speeds(speed, figures)
    _name_panels(panels)
    message = title or _message(figures, budget)
    chart.heading(message)
    chart.alt = f"Bars and dots for {len(figures)} formats. {message}. " + " ".join(map(_sentence, figures))
    return chart


def _draw_bars(axes, sizes, budget=None, names=()):
    colours = rows.over_budget(sizes, budget, "#8FA9BA")
    rows.draw_rows(axes, sizes, 1.45 * max(*sizes, budget or 0), colours, names, height=0.6)
    look.byte_axis(axes.xaxis, max(sizes))
    axes.xaxis.get_major_locator().set_params(nbins=3)
    for row, size in enumerate(sizes):
        label = look.note(axes, format_bytes(size), (size, row), (5, 0), va="center")
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.5})


def _draw_speeds(axes, figures):
    rows.frame_rows(axes, len(figures))
    rates = [speed.samples_per_second for each in figures for speed in each.speeds.values()]
    axes.set_xscale("log")
    axes.set_xlim(min(rates) / 2, max(rates) * 2)
    axes.xaxis.set_major_formatter(lambda rate, _: f"{rate:g}" if rate < 1000 else f"{rate / 1000:g}k")
    axes.minorticks_off()
    axes.grid(axis="x", visible=True)
    for row, each in enumerate(figures):
        for order, (colour, shift) in ORDERS.items():
            cold, warm = (each.rate(order, cache) for cache in ("cold", "warm"))
            axes.plot([cold, warm], [row + shift] * 2, color=colour, linewidth=2, zorder=3)
            axes.plot(warm, row + shift, "o", color=colour, markersize=8, zorder=4)
            style = {"markerfacecolor": "white", "markeredgewidth": 2, "markersize": 8, "zorder": 5}
            axes.plot(cold, row + shift, "o", color=colour, **style)


def _name_panels(panels):
    """The name of each panel above it, and what dots and colours mean."""
    for name, axes in panels.items():
        place = {"xycoords": "axes fraction", "va": "bottom", "weight": "bold"}
        look.note(axes, name, (0, 1), (0, 22 if name == "peak RAM" else 5), **place)
    speed = panels["samples per second"]
    place = {"xycoords": "axes fraction", "va": "bottom"}
    for (order, (colour, _)), shift in zip(ORDERS.items(), (0, 66), strict=True):
        look.note(speed, order, (0, 1), (shift, 22), color=look.ink(colour), weight="bold", **place)
    look.note(speed, "○ cold   ● warm", (0, 1), (122, 22), color=look.QUIET, **place)


def _message(figures, budget):
    within = sum(each.peak_ram <= budget for each in figures)
    rates = sorted((each.rate("shuffled", "warm"), each.name) for each in figures if each.peak_ram <= budget)
    message = f"{within} of {len(figures)} stay within {format_bytes(budget)}"
    if len(rates) < 2:
        return message
    factor = _round(rates[-1][0] / rates[0][0])
    return f"{message}; shuffled, one is {factor:,} times slower than another"


def _round(factor):
    """Two digits that matter are enough for a message."""
    digits = len(str(int(factor))) - 1
    return int(round(factor, -max(0, digits - 1)))


def _sentence(each):
    return (
        f"{each.name}: peak {format_bytes(each.peak_ram)}, {format_bytes(each.on_disk)} on disk, "
        f"{each.rate('sequential', 'warm'):,.0f} samples per second in order and "
        f"{each.rate('shuffled', 'warm'):,.0f} shuffled."
    )


@look.in_style
def mapped_memory(touched, budget, title=None):
    """Draw what a process holds while it touches more and more of a memory map.

    `touched` has pairs of bytes touched and what `page_cache.memory_now` said then, less what it said at first.
    """
    budget = parse_bytes(budget, name="budget")
    chart = look.Chart("memory while a map is touched", height=340)
    axes = chart.box(82, 56, 600, 212)
    sizes = [size for size, _ in touched]
    kinds = {"resident": ("RSS: all that is resident", look.RAM), "own": ("its own memory", look.VRAM)}
    highest = max(memory["resident"] for _, memory in touched)
    axes.set(xlim=(0, max(sizes)), ylim=(0, 1.15 * max(highest, budget)), xlabel="bytes of the map touched")
    look.byte_axis(axes.xaxis, max(sizes))
    look.byte_axis(axes.yaxis, axes.get_ylim()[1])
    look.budget_line(axes, budget, "budget")
    names = []
    for kind, (name, colour) in kinds.items():
        values = [max(0, memory[kind]) for _, memory in touched]
        axes.plot(sizes, values, color=colour, marker="o", markersize=6, zorder=5, clip_on=False)
        names.append((f"{name}\n{format_bytes(values[-1])}", colour, sizes[-1], values[-1]))
    axes.fill_between(
        sizes, [memory["own"] for _, memory in touched], [m["resident"] for _, m in touched], alpha=0.12
    )
    look.name_curves(axes, names)
    own, resident = (format_bytes(max(0, touched[-1][1][kind])) for kind in ("own", "resident"))
    message = title or f"{resident} resident, {own} of it the job's own; the rest is page cache"
    chart.heading(message)
    chart.alt = f"Chart of memory against the bytes touched. {message}. The budget is {format_bytes(budget)}."
    return chart
