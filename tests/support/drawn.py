"""Trials to draw, and what tests ask of a chart: its title, its texts, its crosses, and that it can be read."""

import itertools
from types import SimpleNamespace

import numpy
import pandas
from matplotlib.colors import to_hex
from matplotlib.text import Text

from helpers.charts.look import LIMIT

MB = 10**6


def a_trial(outcome="finished", peak=90, budget=600, seconds=4.0, shape=lambda share: share, **changes):
    """A stand-in for a trial; peaks and budgets in MB, RAM as `shape` of the share of the time."""
    vram, waiting = changes.pop("vram_shape", None), changes.pop("waiting_shape", None)
    share = numpy.linspace(0, 1, changes.pop("points", 200))
    curves = {
        "seconds": share * seconds,
        "ram": [peak * MB * 0.98 * shape(moment) for moment in share],
        "vram": [changes["peak_vram"] * vram(moment) if vram else numpy.nan for moment in share],
        "waiting": [waiting(moment) if waiting else numpy.nan for moment in share],
    }
    facts = {
        "label": "job",
        "outcome": outcome,
        "out_of_memory": outcome in ("killed", "memory-error", "vram-oom"),
        "verdict": "One stable sentence.",
        "exit_code": 137 if outcome == "killed" else 0,
        "seconds": seconds,
        "ram_budget": budget and budget * MB,
        "vram_budget": None,
        "peak_ram": peak * MB,
        "peak_vram": None,
        "idle": None,
        "throughput": None,
        "error": None,
        "samples": pandas.DataFrame(curves),
        "lines": (),
        "phases": (),
    }
    return SimpleNamespace(**facts | changes)


def a_line(size, source="frame = pandas.read_csv(path)", where="cell 5, line 3"):
    return SimpleNamespace(bytes=size * MB, source=source, where=where)


def a_phase(name, start, end):
    return SimpleNamespace(name=name, start=start, end=end, items=None)


NO_SAMPLES = a_trial(points=0).samples
ONE_SAMPLE = pandas.DataFrame({"seconds": [0.02], "ram": [3e8], "vram": [numpy.nan], "waiting": [numpy.nan]})
LONG_TEXT = "result = function(" + "argument, " * 60 + ")"
ODD_TEXT = "price = '$5' + \"$x^2$\" + r'\\frac{1}{2}' + '日本語 \ud800'"
ODD_LINES = (a_line(60, LONG_TEXT, "folder/" * 20), a_line(20, ODD_TEXT), a_line(10, "", "(other processes)"))
OVERLAPPING = (a_phase("$x_$ and $y^$" * 9, 0.1, 2), a_phase("inner", 0.2, 0.3), a_phase("open", 0.2, None))
PLATEAU = {"shape": lambda share: min(1, 4 * share)}
ON_DEVICE = {"peak_vram": 500 * MB, "vram_budget": 512 * MB, "vram_shape": lambda share: min(1, 3 * share)}

SHAPES = {
    "killed": a_trial("killed", 600, lines=tuple(a_line(size) for size in (300, 120, 80, 50, 40, 5))),
    "finished": a_trial(phases=(a_phase("load", 0, 0.1), a_phase("fit", 0.1, 3.9)), **PLATEAU),
    "out of VRAM": a_trial("vram-oom", 700, None, lines=(a_line(500),), **ON_DEVICE),
    "two budgets": a_trial(peak=400, idle=0.8, waiting_shape=lambda share: share, **ON_DEVICE, **PLATEAU),
    "equal budgets": a_trial(peak=495, budget=512, **ON_DEVICE, **PLATEAU),
    "near budgets": a_trial(peak=400, budget=530, **ON_DEVICE, **PLATEAU),
    "refused": a_trial("memory-error", 320, shape=lambda share: share if share < 0.9 else 0.1),
    "failed": a_trial("error", 100, error="ValueError: " + LONG_TEXT),
    "timeout": a_trial("timeout", 500, seconds=600.0, points=60_000),
    "no samples": a_trial("killed", 600, samples=NO_SAMPLES),
    "nothing known": a_trial("error", seconds=0.0, budget=None, peak_ram=None, samples=NO_SAMPLES),
    "one sample": a_trial("killed", 600, seconds=0.05, samples=ONE_SAMPLE),
    "very short": a_trial("killed", 600, seconds=0.05, points=5),
    "far below": a_trial(peak=6, budget=1200, lines=(a_line(6),)),
    "far above": a_trial("killed", 2600),
    "short spike": a_trial(peak=90, peak_ram=300 * MB),
    "long texts": a_trial(label="job" * 60, lines=ODD_LINES),
    "overlapping phases": a_trial("killed", 600, phases=OVERLAPPING),
    "many phases": a_trial(phases=tuple(a_phase(f"epoch {n}", n / 15, n / 15 + 0.05) for n in range(60))),
}


def texts_of(chart):
    """All texts that the picture shows, with the box that each takes."""
    chart.png()
    texts = [*chart.texts]
    for axes in chart.axes:
        texts += axes.texts
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            low, high = axis.get_view_interval()
            texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    # The extent of an annotation would include its arrow.
    return [(text.get_text(), Text.get_window_extent(text)) for text in texts if text.get_text().strip()]


def title_of(chart):
    return chart.texts[0].get_text()


def crosses_of(chart):
    """Where the red crosses stand, as (x, y)."""
    lines = [line for axes in chart.axes for line in axes.lines]
    red = [line for line in lines if line.get_marker() == "x" and to_hex(line.get_color()) == LIMIT.lower()]
    return [(line.get_xdata()[0], line.get_ydata()[0]) for line in red]


def assert_readable(chart):
    """Every text lies inside the picture, and no two texts cover each other."""
    texts = texts_of(chart)
    width, height = chart.bbox.size
    for text, box in texts:
        assert box.x0 >= 0, f"{text!r} begins left of the picture"
        assert box.x1 <= width, f"{text!r} ends {box.x1 - width:.0f} pixels right of the picture"
        assert box.y0 >= 0, f"{text!r} ends below the picture"
        assert box.y1 <= height, f"{text!r} begins above the picture"
    for (one, first), (other, second) in itertools.combinations(texts, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        up = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert min(across, up) < 3, f"{one!r} covers {other!r}"
