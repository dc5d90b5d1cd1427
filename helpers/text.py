"""Text for people: cleaned, cut and escaped; times, shares and signals in words; tracebacks without the long paths."""

import html
import linecache
import re
import signal
import sys
import unicodedata

LIBRARY_FOLDER = re.compile(r"/lib/python3\.\d+/(?:site-packages/)?|/(?:site|dist)-packages/")
LONGEST_PATH = 300
CELL_FRAME = re.compile(r'^  File "([^"\n]*ipykernel_\d+[/\\][^"\n]+)", line (\d+), in (.*)$', re.MULTILINE)


def clean(text):
    r"""Make any text safe to draw: one line, no control characters, no broken characters.

    >>> clean("total =\n\t1\x00 + \ud800")
    'total = 1 + ?'
    """
    text = " ".join(str(text).split()).encode("utf-8", "replace").decode("utf-8")
    return "".join(character for character in text if unicodedata.category(character)[0] != "C")


def shorten(text, length):
    """Cut text to `length` characters, with an ellipsis where something is missing.

    >>> shorten("frame = pandas.read_csv(path)", 16)
    'frame = pandas.…'
    """
    text = clean(text)
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def format_seconds(seconds):
    """Turn seconds into short text.

    >>> [format_seconds(seconds) for seconds in (0.049, 0.52, 3.04, 59.6, 600, None)]
    ['0.05 s', '0.5 s', '3 s', '60 s', '600 s', '-']
    """
    if seconds is None:
        return "-"
    digits = 2 if seconds < 0.1 else 1 if seconds < 9.95 else 0
    text = f"{seconds:.{digits}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + " s"


def percent(fraction):
    """Write a fraction in per cent, or a dash for what was not measured.

    >>> percent(0.153), percent(None)
    ('15 %', '-')
    """
    return "-" if fraction is None or fraction != fraction else f"{100 * fraction:.0f} %"


def signal_name(exit_code):
    """The signal that an exit code stands for, as a shell writes it or as Python does, or None.

    >>> signal_name(137), signal_name(-9), signal_name(1)
    ('SIGKILL', 'SIGKILL', None)
    """
    try:
        return signal.Signals(-exit_code if exit_code < 0 else exit_code - 128).name
    except ValueError:
        return None


def escape(text):
    """Make text of a job harmless in HTML, quotes and broken characters included."""
    return html.escape(clean(text))


class Code(str):
    """Text that an HTML table sets as code."""


def html_table(header, rows):
    """Write a small HTML table; everything in it is escaped."""
    head = "".join(f'<th style="text-align: left">{escape(name)}</th>' for name in header)
    body = "\n".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _cell(value):
    text = f"<code>{escape(value)}</code>" if isinstance(value, Code) else escape(value)
    return f'<td style="text-align: left">{text}</td>'


def cell_number(file):
    """The number of the notebook cell whose code has this file name, or None."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)


def readable(text):
    """Tracebacks as a reader wants them: cells by their number, libraries without the path to them."""
    return _without_library_folders(CELL_FRAME.sub(_cell_frame, text))


def _without_library_folders(text):
    """In one pass: a job may have printed megabytes without a space."""
    kept, position = [], 0
    for match in LIBRARY_FOLDER.finditer(text):
        window = max(position, match.start() - LONGEST_PATH)
        begin = max(text.rfind(edge, window, match.start()) for edge in " \t\n\"':") + 1
        kept.append(text[position : max(begin, position)])
        position = match.end()
    return "".join([*kept, text[position:]])


def _cell_frame(match):
    """A frame in a notebook cell, with its source, which only the notebook's own process has."""
    file, line, name = match.groups()
    frame = f'  File "cell {cell_number(file) or "?"}", line {line}, in {name}'
    source = linecache.getline(file, int(line)).strip()
    return f"{frame}\n    {source}" if source else frame
