"""Memory over time: one trial with all that is known of it, or several trials on one axis."""

import numpy
import pandas
from matplotlib.ticker import MaxNLocator

from helpers.charts import look, marks, words
from helpers.text import clean, shorten
from helpers.units import format_bytes

POINTS = 1000
NAMES = {"ram": "RAM", "vram": "VRAM"}
COLOURS = {"ram": look.RAM, "vram": look.VRAM}
DEATHS = {"killed": "killed at", "memory-error": "refused at", "vram-oom": "refused at", "error": "failed at"}
WAITING_FOR_VRAM = 9.5
LEFT, HEADING, BOTTOM, LABELS, PANEL = 76, 66, 50, 110, 310


@look.in_style
def plot(trial):
    """Draw a trial's RAM, VRAM and waiting over time, with its budgets, crash, phases and largest lines."""
    samples = thin(trial.samples)
    waiting = samples["waiting"].notna().any()
    lines = marks.largest_lines(trial)
    end = end_of(trial, samples)
    chart = look.Chart(f"memory of {trial.label} over time", height=476 if waiting else 420)
    width = look.WIDTH - LEFT - LABELS - (PANEL if lines else 0)
    rows = marks.phase_rows(trial.phases, end, width)
    bottom = BOTTOM + (62 if waiting else 0)
    top = chart.bbox.height - HEADING - 17 * len(set(rows.values()))
    axes = memory_axes(chart.box(LEFT, bottom, width, top - bottom), [trial], [samples], NAMES, end)
    marks.draw_phases(axes, trial.phases, rows, end)
    draw_memory(axes, trial, samples)
    if waiting:
        axes.tick_params(labelbottom=False)
        marks.draw_waiting(chart.box(LEFT, BOTTOM, width, 36, sharex=axes), samples, trial.idle)
    time_axis(chart.axes[-1])
    if lines:
        marks.draw_lines(chart.box(look.WIDTH - PANEL, BOTTOM, PANEL - 16, top - BOTTOM), lines)
    chart.heading(words.message(trial), shorten(trial.label, 60) + words.refusal(trial))
    chart.alt = alt_text(trial, lines)
    return chart


def alt_text(trial, lines):
    """Describe the chart for those who cannot see it."""
    parts = [f"Chart of memory over time of {clean(trial.label)}.", words.message(trial) + "."]
    for size, where, source in lines[:3]:
        place = f" ({where})" if where else ""
        parts.append(f"{shorten(source, 60)}{place} took {format_bytes(size)}.")
    return " ".join(parts)


@look.in_style
def overlay(trials, labels):
    """Draw several trials on one time axis, each in its colour and with its name beside its curve."""
    thinned = [thin(trial.samples) for trial in trials]
    kinds = kinds_of(trials)
    end = max(end_of(trial, samples) for trial, samples in zip(trials, thinned, strict=True))
    height = max(300, 40 * len(trials))
    chart = look.Chart("memory of several jobs over time", height=HEADING + BOTTOM + height * len(kinds))
    for row, kind in enumerate(kinds):
        bottom = BOTTOM + height * (len(kinds) - 1 - row)
        box = chart.box(LEFT, bottom, look.WIDTH - LEFT - 176, height - (24 if row else 0))
        axes = memory_axes(box, trials, thinned, [kind], end)
        axes.tick_params(labelbottom=row == len(kinds) - 1)
        draw_overlay(axes, trials, thinned, labels, kind)
    time_axis(chart.axes[-1])
    shown = " and ".join(NAMES[kind] for kind in kinds)
    chart.heading(words.comparison_message(trials, labels, kinds[0]), f"{shown} over time")
    messages = [f"{label}: {words.message(trial)}." for trial, label in zip(trials, labels, strict=True)]
    chart.alt = " ".join([f"Chart of {shown} over time.", *messages])
    return chart


def thin(samples):
    """Keep about a thousand points of a long run, and every peak among them."""
    kept = {"seconds": "last", "ram": "max", "vram": "max", "waiting": "mean", "utilisation": "mean"}
    kept = {name: how for name, how in kept.items() if name in samples}
    samples = samples[list(kept)].apply(pandas.to_numeric, errors="coerce")
    samples = samples.astype(float).dropna(subset="seconds").sort_values("seconds", kind="stable")
    if len(samples) <= POINTS:
        return samples.reset_index(drop=True)
    bucket = numpy.arange(len(samples)) * POINTS // len(samples)
    return samples.groupby(bucket).agg(kept).reset_index(drop=True)


def end_of(trial, samples):
    """Return the last second that a chart of the trial has to show."""
    moments = [trial.seconds or 0, *samples["seconds"].tail(1)]
    moments += [moment for phase in trial.phases for moment in (phase.start, phase.end) if moment is not None]
    return max(*moments, 0.01)


def kinds_of(trials):
    """Say which memories an overlay shows: those with a budget, or else the first that was measured."""
    limited = [kind for kind in NAMES if any(getattr(trial, f"{kind}_budget") for trial in trials)]
    measured = [kind for kind in NAMES if any(peak_of(trial, kind) is not None for trial in trials)]
    return limited or measured[:1] or ["ram"]


def peak_of(trial, kind):
    return getattr(trial, f"peak_{kind}")


def memory_axes(axes, trials, thinned, kinds, end):
    """Give axes the room that the trials and their budgets need, and draw the budgets."""
    budgets = {}
    highest = [10**6]
    for trial, samples in zip(trials, thinned, strict=True):
        for kind in kinds:
            budget = getattr(trial, f"{kind}_budget")
            if budget and NAMES[kind] not in budgets.setdefault(budget, []):
                budgets[budget].append(NAMES[kind])
            highest += [budget or 0, peak_of(trial, kind) or 0, *samples[kind].dropna()]
    axes.set(xlim=(0, end), ylim=(0, 1.12 * max(highest)))
    look.byte_axis(axes.yaxis, axes.get_ylim()[1])
    side = free_side([crash(trial, samples) for trial, samples in zip(trials, thinned, strict=True)], end)
    near = 20 / axes.bbox.height * axes.get_ylim()[1]
    for budget, owners in budgets.items():
        below = any(0 < other - budget < near for other in budgets)
        look.budget_line(axes, budget, f"{' and '.join(owners)} budget", below=below, side=side)
    return axes


def free_side(crashes, end):
    """Say at which side of the chart the name of a budget is not in the way of a crash."""
    moments = [died[1] / end for died in crashes if died]
    if not any(moment < 0.35 for moment in moments):
        return "left"
    return "center" if any(moment > 0.65 for moment in moments) else "right"


def time_axis(axes):
    """Label the axis that counts seconds."""
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10]))
    axes.set_xlabel("seconds")


def curve(trial, samples, kind):
    """Return seconds and bytes to draw; a killed job's curve ends at the kernel's own figure."""
    known = samples[samples[kind].notna()]
    seconds, sizes = list(known["seconds"]), list(known[kind])
    if kind == "ram" and trial.outcome == "killed" and trial.peak_ram is not None:
        seconds.append(seconds[-1] if seconds else trial.seconds)
        sizes.append(trial.peak_ram)
    return numpy.array(seconds), numpy.array(sizes)


def crash(trial, samples):
    """Return the kind of memory, the second and the bytes at which a job died, or None if it did not."""
    if trial.outcome in ("finished", "timeout"):
        return None
    kind = "vram" if trial.outcome == "vram-oom" and trial.peak_vram is not None else "ram"
    seconds, sizes = curve(trial, samples, kind)
    if not len(sizes):
        return kind, trial.seconds, peak_of(trial, kind) or 0
    place = len(sizes) - 1
    if trial.outcome in ("memory-error", "vram-oom"):
        # A refused job lives on a little and frees memory: it died when it last stood near its top. TensorFlow waits
        # for ten seconds before it gives up, so what stood higher before that is not what was refused.
        late = seconds >= seconds[-1] - WAITING_FOR_VRAM if kind == "vram" else seconds >= 0
        place = int(numpy.flatnonzero(late & (sizes >= 0.9 * sizes[late].max()))[-1])
    return kind, seconds[place], sizes[place]


def end_of_curve(seconds, sizes, kind, died):
    """Return where to name a curve: its crash, or the top of its last tenth, since jobs let go at the end."""
    if died and died[0] == kind:
        return died[1:]
    late = seconds >= seconds[-1] - 0.1 * (seconds[-1] - seconds[0])
    return seconds[-1], sizes[late].max()


def draw_curve(axes, seconds, sizes, colour):
    """Draw a curve, with a dot where there is a single moment and so no line to see."""
    marker = "o" if len(set(seconds)) == 1 else None
    axes.plot(seconds, sizes, color=colour, marker=marker, zorder=3, clip_on=False)


def draw_memory(axes, trial, samples):
    """Draw RAM as an area and VRAM as a line, name them, and mark the crash."""
    died = crash(trial, samples)
    names = []
    for kind, colour in COLOURS.items():
        seconds, sizes = curve(trial, samples, kind)
        peak = peak_of(trial, kind)
        if kind == "ram":
            axes.fill_between(seconds, sizes, color=colour, alpha=0.25, linewidth=0, zorder=2)
        draw_curve(axes, seconds, sizes, colour)
        text = f"{NAMES[kind]} peak\n{format_bytes(peak)}"
        if peak is not None and peak > 1.05 * max(sizes, default=0):
            # A spike too short for the samples: a dotted line stands for the kernel's own figure.
            names.append((text, colour, 0, peak))
        elif len(sizes):
            names.append((text, colour, *end_of_curve(seconds, sizes, kind, died)))
    look.name_curves(axes, names)
    if died:
        look.crash_cross(axes, *died[1:])


def draw_overlay(axes, trials, thinned, labels, kind):
    """Draw one kind of memory of several trials, name each, and mark their crashes."""
    names = []
    for number, (trial, samples, label) in enumerate(zip(trials, thinned, labels, strict=True)):
        seconds, sizes = curve(trial, samples, kind)
        colour = look.SERIES[number % len(look.SERIES)]
        axes.fill_between(seconds, sizes, color=colour, alpha=0.12, linewidth=0, zorder=2)
        draw_curve(axes, seconds, sizes, colour)
        died = crash(trial, samples)
        word = "peak"
        if died and died[0] == kind:
            look.crash_cross(axes, *died[1:])
            word = DEATHS[trial.outcome]
        peak = peak_of(trial, kind)
        if peak is not None:
            # A job that ends before the first sample has no curve, and still its name.
            place = end_of_curve(seconds, sizes, kind, died) if len(sizes) else (trial.seconds or 0, peak)
            names.append((f"{label}\n{word} {format_bytes(peak)}", colour, *place))
    look.name_curves(axes, names)
