"""How well a device is fed: a ladder of pipelines with their speed and their waiting, and strips of time."""

from helpers.charts import look, marks, rows
from helpers.text import clean, percent, shorten

ROW, TOP, BOTTOM, NAMES, GAP, RIGHT = 34, 92, 26, 190, 84, 70
STRIP = 46
SETTLED = 1.5
"""Seconds after which a `fit` is under way. The first batch is not measured: everything still has to start."""


@look.in_style
def ladder(rungs, goal=None, title=None):
    """Draw a row for each rung: how many samples per second it delivers, and how long the device waits.

    `rungs` maps names to anything with a `rate` and an `idle`; `goal` is the rate of the same model fed from RAM.

    >>> from types import SimpleNamespace as Feed
    >>> ladder({"naive": Feed(rate=400, idle=0.88), "cache": Feed(rate=3900, idle=0.01)}, goal=4000).alt
    'Ladder of input pipelines. From 88 % waiting to 1 %. naive 400/s, 88 %; cache 3,900/s, 1 %. From RAM: 4,000/s.'
    """
    if not rungs:
        raise ValueError('ladder needs at least one rung: {"naive": feed}')
    names, feeds = [clean(name) for name in rungs], list(rungs.values())
    chart = look.Chart("samples per second and waiting, rung by rung", height=TOP + BOTTOM + ROW * len(feeds))
    width = (look.WIDTH - NAMES - GAP - RIGHT) / 2
    speed = chart.box(NAMES, BOTTOM, width, ROW * len(feeds))
    waiting = chart.box(NAMES + width + GAP, BOTTOM, width, ROW * len(feeds))
    highest = max([*(feed.rate for feed in feeds), goal or 0])
    shown = [shorten(name, 26) for name in names]
    _draw_figures(speed, [feed.rate for feed in feeds], "{:,.0f}".format, highest, look.RAM, shown)
    _draw_figures(waiting, [feed.idle for feed in feeds], percent, 1, look.WAITING)
    _name(speed, "samples per second")
    _name(waiting, "time in which the device waits")
    if goal:
        text = f"fed from RAM {goal:,.0f}"
        rows.draw_upright(speed, goal, text, line=look.VRAM, color=look.ink(look.VRAM))
    message = title or f"From {percent(feeds[0].idle)} waiting to {percent(feeds[-1].idle)}"
    chart.heading(message)
    listed = "; ".join(
        f"{name} {feed.rate:,.0f}/s, {percent(feed.idle)}" for name, feed in zip(names, feeds, strict=True)
    )
    chart.alt = f"Ladder of input pipelines. {message}. {listed}." + (
        f" From RAM: {goal:,.0f}/s." if goal else ""
    )
    return chart


def _draw_figures(axes, figures, written, highest, colour, names=()):
    """Draw a row for each figure, written at the end of its bar: inside where the bar is long."""
    rows.draw_rows(axes, figures, 1.02 * highest, colour, names, height=0.66)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    for row, figure in enumerate(figures):
        inside = figure > 0.6 * highest
        style = {"ha": "right", "color": look.on(colour)} if inside else {"color": look.ink(colour)}
        style |= {"va": "center", "weight": "bold"}
        look.note(axes, written(figure), (figure, row), (-6 if inside else 6, 0), **style)


def _name(axes, text):
    look.note(axes, text, (0, 1), (0, 20), xycoords="axes fraction", color=look.QUIET, va="bottom")


@look.in_style
def strips(trials, seconds=2.0, title=None):
    """Draw for each trial, by name, when its device computed and when it waited, all on one axis of `seconds`.

    The axis begins once the last `fit` is under way. Where an NVIDIA GPU was watched, its utilisation is drawn
    over the strip.
    """
    chart = look.Chart("waiting and computing over time", height=66 + 40 + (STRIP + 14) * len(trials))
    for number, (name, trial) in enumerate(trials.items()):
        bottom = 40 + (STRIP + 14) * (len(trials) - 1 - number) + 7
        axes = chart.box(NAMES, bottom, look.WIDTH - NAMES - 118, STRIP)
        _draw_strip(axes, clean(name), trial, seconds)
        axes.tick_params(labelbottom=number == len(trials) - 1)
    chart.axes[-1].set_xlabel("seconds")
    message = title or "; ".join(f"{name} waits {percent(trial.idle)}" for name, trial in trials.items())
    chart.heading(
        message, "Orange: the device waits for input. Blue: it computes." + _utilisation_note(trials)
    )
    chart.alt = f"Strips of time, {seconds:g} s each. {message}."
    return chart


def _draw_strip(axes, name, trial, seconds):
    samples = trial.samples
    known = samples[samples["waiting"].notna()]
    start = _first_step(trial, known)
    shown = known[known["seconds"].between(start, start + seconds)]
    axes.set(xlim=(0, seconds), ylim=(0, 1), yticks=[])
    axes.grid(False)
    axes.spines["left"].set_visible(False)
    moments, waiting = shown["seconds"] - start, shown["waiting"] > 0.5
    for where, colour in ((waiting, look.WAITING), (~waiting, look.RAM)):
        height = where.astype(float)
        axes.fill_between(moments, height, step="post", color=colour, linewidth=0, zorder=2)
    beside = {"xycoords": "axes fraction", "va": "center"}
    look.note(axes, shorten(name, 24), (0, 0.5), (-8, 0), ha="right", **beside)
    text = f"waits\n{percent(trial.idle)}"
    look.note(axes, text, (1, 0.5), (10, 0), color=look.ink(look.WAITING), weight="bold", **beside)
    marks.draw_utilisation(axes, moments, shown)


def _first_step(trial, known):
    """The second in which a strip begins: with the first wait that is known, or soon after the last `fit` began."""
    began = max((phase.start for phase in trial.phases if phase.name == "fit"), default=0.0)
    waits = known[known["seconds"].between(began, began + SETTLED) & (known["waiting"] > 0)]
    return float(waits["seconds"].iloc[0]) if len(waits) else began + SETTLED / 3


def _utilisation_note(trials):
    read = any("utilisation" in trial.samples for trial in trials.values())
    return " Black: utilisation as NVML reads it." if read else ""
