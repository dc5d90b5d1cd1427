"""How well a device is fed: a ladder of pipelines with their speed and their waiting, and strips of time."""

from helpers import plots_chart as look
from helpers import plots_marks as marks
from helpers import tables

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
    names, feeds = [look.clean(name) for name in rungs], list(rungs.values())
    chart = look.Chart("samples per second and waiting, rung by rung", height=TOP + BOTTOM + ROW * len(feeds))
    width = (900 - NAMES - GAP - RIGHT) / 2
    speed = chart.box(NAMES, BOTTOM, width, ROW * len(feeds))
    waiting = chart.box(NAMES + width + GAP, BOTTOM, width, ROW * len(feeds))
    highest = max([*(feed.rate for feed in feeds), goal or 0])
    _bars(speed, [feed.rate for feed in feeds], [f"{feed.rate:,.0f}" for feed in feeds], highest, look.RAM)
    speed.set_yticks(range(len(names)), [look.shorten(name, 26) for name in names])
    _bars(
        waiting, [feed.idle for feed in feeds], [tables.percent(feed.idle) for feed in feeds], 1, look.WAITING
    )
    _name(speed, "samples per second")
    _name(waiting, "time in which the device waits")
    if goal:
        _draw_goal(speed, goal)
    message = title or f"From {tables.percent(feeds[0].idle)} waiting to {tables.percent(feeds[-1].idle)}"
    chart.heading(message)
    listed = "; ".join(
        f"{name} {feed.rate:,.0f}/s, {tables.percent(feed.idle)}"
        for name, feed in zip(names, feeds, strict=True)
    )
    chart.alt = f"Ladder of input pipelines. {message}. {listed}." + (
        f" From RAM: {goal:,.0f}/s." if goal else ""
    )
    return chart


def _bars(axes, sizes, texts, highest, colour):
    axes.set(xlim=(0, 1.02 * highest), ylim=(len(sizes) - 0.5, -0.5), xticks=[], yticks=[])
    axes.grid(False)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.barh(range(len(sizes)), sizes, height=0.66, color=colour, zorder=3)
    for row, (size, text) in enumerate(zip(sizes, texts, strict=True)):
        inside = size > 0.6 * highest
        style = {"ha": "right", "color": look.on(colour)} if inside else {"color": look.ink(colour)}
        look.note(axes, text, (size, row), (-6 if inside else 6, 0), va="center", weight="bold", **style)


def _name(axes, text):
    look.note(axes, text, (0, 1), (0, 20), xycoords="axes fraction", color=look.QUIET, va="bottom")


def _draw_goal(axes, goal):
    axes.axvline(goal, color=look.VRAM, linewidth=1.6, linestyle=look.DASHED, zorder=4)
    place = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
    style = {"color": look.ink(look.VRAM), "weight": "bold"}
    look.note(axes, f"fed from RAM {goal:,.0f}", (goal, 1), (0, 3), **place, **style)


@look.in_style
def strips(trials, seconds=2.0, title=None):
    """Draw for each trial, by name, when its device computed and when it waited, all on one axis of `seconds`.

    The axis begins once the last `fit` is under way. Where an NVIDIA GPU was watched, its utilisation is drawn
    over the strip.
    """
    chart = look.Chart("waiting and computing over time", height=66 + 40 + (STRIP + 14) * len(trials))
    for number, (name, trial) in enumerate(trials.items()):
        bottom = 40 + (STRIP + 14) * (len(trials) - 1 - number) + 7
        axes = chart.box(NAMES, bottom, 900 - NAMES - 118, STRIP)
        _draw_strip(axes, look.clean(name), trial, seconds)
        axes.tick_params(labelbottom=number == len(trials) - 1)
    chart.axes[-1].set_xlabel("seconds")
    message = title or "; ".join(
        f"{name} waits {tables.percent(trial.idle)}" for name, trial in trials.items()
    )
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
    look.note(axes, look.shorten(name, 24), (0, 0.5), (-8, 0), ha="right", **beside)
    text = f"waits\n{tables.percent(trial.idle)}"
    look.note(axes, text, (1, 0.5), (10, 0), color=look.ink(look.WAITING), weight="bold", **beside)
    marks.draw_utilisation(axes, moments, shown)


def _first_step(trial, known):
    """The second in which a strip begins: with the first wait that is known, or soon after the last `fit` began."""
    began = max((phase.start for phase in trial.phases if phase.name == "fit"), default=0.0)
    waits = known[known["seconds"].between(began, began + SETTLED) & (known["waiting"] > 0)]
    return float(waits["seconds"].iloc[0]) if len(waits) else began + SETTLED / 3


def _utilisation_note(trials):
    return (
        " Black: utilisation as NVML reads it."
        if any("utilisation" in t.samples for t in trials.values())
        else ""
    )
