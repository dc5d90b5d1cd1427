"""What stands around a memory curve: phases above it, waiting below it, lines of code beside it."""

from helpers.charts import look, words
from helpers.text import clean, percent, shorten
from helpers.units import format_bytes

NAME_LENGTH = 24
SHOWN_SHARE = 0.05


def phase_rows(phases, end, width):
    """Give names of phases a row above the chart so that none covers another; in a crowd, leave some out.

    Returns the row of each phase that has a name, by the phase's number.
    """
    rows = {}
    taken = [float("-inf")] * (3 if len(phases) <= 8 else 1)
    for number, phase in sorted(enumerate(phases), key=lambda item: item[1].start):
        left = phase.start / end * width
        row = next((row for row, right in enumerate(taken) if left >= right), None)
        if row is not None:
            rows[number] = row
            taken[row] = left + 7.5 * len(shorten(phase.name, NAME_LENGTH)) + 10
    return rows


def draw_phases(axes, phases, rows, end):
    """Draw a grey band for each phase and write its name above; an open phase lasts until the end."""
    for number, phase in enumerate(phases):
        last = end if phase.end is None else phase.end
        grey = 0.05 + 0.04 * (number % 2)
        axes.axvspan(phase.start, last, color="black", alpha=grey, linewidth=0, zorder=0)
        if number in rows:
            name = shorten(phase.name, NAME_LENGTH)
            offset = (2, 3 + 12 * rows[number])
            place = {"place": (phase.start, 1), "xycoords": ("data", "axes fraction")}
            text = look.note(axes, name, offset=offset, color=look.QUIET, **place)
            look.fit(text, (1 - phase.start / end) * axes.bbox.width + 90)


def draw_waiting(axes, samples, idle):
    """Draw the strip that shows when the device waited for input."""
    known = samples[samples["waiting"].notna()]
    axes.set(ylim=(0, 1), yticks=[], facecolor="#F4F4F4")
    axes.grid(False)
    share = known["waiting"].clip(0, 1)
    axes.fill_between(known["seconds"], share, step="post", color=look.WAITING, linewidth=0)
    draw_utilisation(axes, known["seconds"], known)
    beside = {"xycoords": "axes fraction", "va": "center"}
    look.note(axes, "device\nwaiting", (0, 0.5), (-6, 0), ha="right", color=look.QUIET, **beside)
    if idle is not None:
        text = f"{percent(idle)} of\nthe time"
        look.note(axes, text, (1, 0.5), (11, 0), color=look.ink(look.WAITING), weight="bold", **beside)


def draw_utilisation(axes, seconds, samples):
    """Draw over a strip how busy an NVIDIA GPU was, where one was read: from 0 at the bottom to 100 % at the top."""
    if "utilisation" in samples:
        axes.plot(seconds, samples["utilisation"], color="black", linewidth=1.4, zorder=3)


def largest_lines(trial):
    """Return (bytes, where, source) of the lines worth showing, and what all the others took together."""
    total = max(sum(line.bytes for line in trial.lines), 1)
    shown = [line for line in trial.lines[: words.LARGEST] if line.bytes >= SHOWN_SHARE * total]
    # What no line took, such as other processes, has a place but no source.
    rows = [(line.bytes, line.where if line.source else "", line.source or line.where) for line in shown]
    rest = total - sum(line.bytes for line in shown)
    if shown and rest >= SHOWN_SHARE * total:
        rows.append((rest, "", "all other lines"))
    return rows


def draw_lines(axes, lines):
    """List the lines that took the memory, each on a bar as long as its share."""
    width, height = axes.bbox.size
    step = min(46, (height - 26) / len(lines))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    axes.text(0, 8, "Lines that took the memory", weight="bold", va="center")
    largest = max(size for size, _, _ in lines)
    small = {"size": 9, "va": "center_baseline"}
    for number, (size, where, source) in enumerate(lines):
        middle = 36 + number * step
        colour = look.RAM if where else look.QUIET
        axes.barh(middle, max(2, width * size / largest), height=20, color=colour, alpha=0.25)
        family = "monospace" if where else "sans-serif"
        look.fit(axes.text(5, middle, clean(source), family=family, **small), width - 8)
        figure = axes.text(5, middle + 20, format_bytes(size), weight="bold", **small)
        left = 5 + look.width_of(figure) + 8
        look.fit(axes.text(left, middle + 20, clean(where), color=look.QUIET, **small), width - left)
