"""What all charts share: a figure that shows itself once, the colours, the axes, and text that fits."""

import base64
import functools
import io
import warnings
from pathlib import Path

import matplotlib
from matplotlib import patheffects
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from helpers.text import clean, shorten
from helpers.units import format_bytes

STYLE = Path(__file__).with_name("course.mplstyle")
WIDTH = 900
"""Pixels that every chart is wide."""

# Okabe and Ito's colours, which people with any colour vision can tell apart, and greys. The red of their
# palette, a little darker here, is kept for limits and crashes.
RAM = "#0072B2"
VRAM = "#009E73"
WAITING = "#E69F00"
LIMIT = "#D03A00"
SERIES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#555555", "#AAAAAA")
QUIET = "#6B6B6B"
DASHED = (0, (5, 3))
HALO = (patheffects.withStroke(linewidth=3, foreground="white"),)


class Chart(Figure):
    """A figure that pyplot does not know, so that a notebook shows it once, as a cell's last value."""

    def __init__(self, name, height=420):
        super().__init__(figsize=(WIDTH / 100, height / 100))
        FigureCanvasAgg(self)
        self.name = clean(name)
        self.alt = ""

    def __repr__(self):
        return f"<Chart: {self.name}>"

    def png(self):
        """Return the picture as bytes: the same chart gives the same bytes."""
        picture = io.BytesIO()
        with matplotlib.rc_context(fname=STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            self.savefig(picture, format="png", metadata={"Software": None})
        return picture.getvalue()

    def _repr_mimebundle_(self, include=None, exclude=None):
        encoded = base64.b64encode(self.png()).decode("ascii")
        width, height = (int(pixels) for pixels in self.bbox.size)
        metadata = {"image/png": {"alt": self.alt, "width": width, "height": height}}
        return {"image/png": encoded, "text/plain": repr(self)}, metadata

    def box(self, left, bottom, width, height, **options):
        """Add axes at a place counted in pixels from the lower left corner."""
        across, up = self.bbox.size
        return self.add_axes((left / across, bottom / up, width / across, height / up), **options)

    def heading(self, message, note=""):
        """State the message of the chart in bold, with a quiet note under it."""
        across, up = self.bbox.size
        title = self.text(16 / across, 1 - 14 / up, message, size=13, weight="bold", va="top")
        fit(title, across - 32)
        if note:
            fit(self.text(16 / across, 1 - 39 / up, clean(note), color=QUIET, va="top"), across - 32)


def in_style(draw):
    """Make a drawing function use the course's style and leave the caller's settings alone."""

    @functools.wraps(draw)
    def styled(*arguments, **options):
        with matplotlib.rc_context(fname=STYLE):
            return draw(*arguments, **options)

    return styled


def byte_axis(axis, top):
    """Label an axis that counts bytes from zero to `top` in one unit that suits its size."""
    factor, unit = (10**9, "GB") if top >= 10**9 else (10**6, "MB") if top >= 10**6 else (10**3, "KB")
    axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda size, _: f"{size / factor:g} {unit}" if size else "0"))


def ink(colour):
    """Darken a colour so that text in it can be read on white."""
    return tuple(0.72 * part for part in to_rgb(colour))


def on(colour):
    """Choose white or black text, whichever can be read on a colour."""
    red, green, blue = to_rgb(colour)
    return "white" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.52 else "#111111"


def note(axes, text, place, offset, **style):
    """Write beside a place on the axes, `offset` points away from it, also outside the axes."""
    style = {"textcoords": "offset points", "annotation_clip": False, "zorder": 9} | style
    return axes.annotate(text, place, xytext=offset, **style)


def budget_line(axes, size, name, below=False, side="left"):
    """Draw a limit as a dashed red line across the chart, with its name on it."""
    axes.axhline(size, color=LIMIT, linewidth=1.6, linestyle=DASHED, zorder=4)
    x, shift = {"left": (0, 6), "center": (0.5, 0), "right": (1, -6)}[side]
    style = {"xycoords": ("axes fraction", "data"), "ha": side, "va": "top" if below else "bottom"}
    style |= {"color": LIMIT, "weight": "bold", "path_effects": HALO, "zorder": 6}
    note(axes, f"{name} {format_bytes(size)}", (x, size), (shift, -4 if below else 3), **style)


def crash_cross(axes, x, y):
    """Mark the place where a job died."""
    axes.plot([x], [y], "x", color="white", markersize=15, markeredgewidth=6, clip_on=False, zorder=7)
    axes.plot([x], [y], "x", color=LIMIT, markersize=13, markeredgewidth=3.2, clip_on=False, zorder=8)


def name_curves(axes, names, gap=36):
    """Write names, given as `(text, colour, x, y)`, beside the chart, with a fine line to each curve."""
    low, high = axes.get_ylim()
    right = axes.get_xlim()[1]
    pixel_across, pixel_up = right / axes.bbox.width, (high - low) / axes.bbox.height
    room = gap / 2 * pixel_up
    places = spread([y for *_, y in names], gap * pixel_up, low + room, high - room)
    for (text, colour, x, y), place in zip(names, places, strict=True):
        lead = [x, right, right + 12 * pixel_across], [y, y, place]
        axes.plot(*lead, color=colour, linewidth=1, linestyle=(0, (1, 2)), zorder=3, clip_on=False)
        style = {"va": "center", "color": ink(colour), "weight": "bold", "linespacing": 1.25}
        name = note(axes, text, (right, place), (11, 0), **style)
        fit(name, axes.figure.bbox.width - axes.bbox.x1 - 20)


def fit(text, pixels):
    """Shorten the first line of a text that is already on a figure until it is no wider than `pixels`."""
    first, *others = text.get_text().split("\n")
    length = len(first)
    while length > 2 and (width := width_of(text)) > pixels:
        length = max(2, min(length - 1, int(length * pixels / width)))
        text.set_text("\n".join([shorten(first, length), *others]))
    return text


def width_of(text):
    """Return how many pixels a text on a figure takes from left to right."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        return text.get_window_extent().width


def spread(places, gap, low, high):
    """Move labels apart until they are `gap` from each other, as near to their places as room allows.

    >>> spread([10, 11, 50], gap=10, low=0, high=60)
    [5.5, 15.5, 50.0]
    """
    groups = []
    for index in sorted(range(len(places)), key=lambda index: places[index]):
        members = [index]
        start = _start(members, places, gap, low, high)
        while groups and groups[-1][1] + gap * len(groups[-1][0]) > start:
            members = groups.pop()[0] + members
            start = _start(members, places, gap, low, high)
        groups.append((members, start))
    moved = {member: start + gap * step for members, start in groups for step, member in enumerate(members)}
    return [moved[index] for index in range(len(places))]


def _start(members, places, gap, low, high):
    length = gap * (len(members) - 1)
    middle = sum(places[member] for member in members) / len(members)
    return max(low, min(middle - length / 2, high - length))
