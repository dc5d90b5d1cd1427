"""What the reader sees while a job runs: its output as it comes, and one live line that leaves no trace."""

import codecs
import html
import re
import sys

from helpers.text import readable
from helpers.units import format_bytes

SHOWN = 200_000
TENSORFLOW_LOG = re.compile(
    r"^([IWEF]\d{4} \d\d:\d\d:|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWEF] |WARNING: All log messages"
    r"|Current allocation summary follows|If the cause is memory fragmentation"
    r"|\t \[\[\{\{function_node|Hint: If you want to see a list of allocated tensors"
    r"|(Limit|InUse|MaxInUse|NumAllocs|MaxAllocSize|Reserved|PeakReserved|LargestFreeBlock): +[\d.]+\w*$)"
)
WAITING = "starting TensorFlow in the worker, once (some seconds) ..."


class Live:
    """Takes the messages of a worker; `close` it in the end."""

    def __init__(self, label, ram_budget):
        self.label = label
        self.budget = f" of {format_bytes(ram_budget)}" if ram_budget else ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._partial, self._printed = "", 0
        self._line = _notebook_line() or _terminal_line()

    def __call__(self, kind, facts):
        if kind == "output":
            self._print(self._decoder.decode(facts))
        elif kind == "live":
            ram, peak = format_bytes(facts["ram"]), format_bytes(facts["peak"])
            self._line(f"{self.label}: {facts['seconds']:.0f} s, RAM {ram}, peak {peak}{self.budget}")
        elif kind == "cold":
            self._line(f"{self.label}: {WAITING}")

    def close(self):
        self._print(self._decoder.decode(b"", final=True), last=True)
        self._line("")

    def _print(self, text, last=False):
        """Print whole lines. TensorFlow's own log lines stay in `trial.log`, and so does what is too much."""
        *lines, self._partial = (self._partial + text).split("\n")
        if last and self._partial:
            lines, self._partial = [*lines, self._partial], ""
        shown = [line for line in lines if not TENSORFLOW_LOG.match(line)]
        if not shown or self._printed > SHOWN:
            return
        self._line("")
        piece = readable("\n".join(shown)) + "\n"
        self._printed += len(piece)
        if self._printed > SHOWN:
            piece += "[more was printed; trial.log has it]\n"
        _write(sys.stdout, piece)


def _write(stream, text):
    """Show text as far as the stream can take it; one that is closed, full or missing is no reason to end a job."""
    try:
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except (AttributeError, LookupError, OSError, ValueError):
        pass


def _notebook_line():
    """A display that begins and ends empty, so that a saved notebook does not change from run to run."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython
    from IPython.display import HTML, display

    shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    handle = display(HTML(""), display_id=True)
    shown = [""]

    def show(text):
        if text != shown[0]:
            shown[0] = text
            handle.update(HTML(f"<code>{html.escape(text)}</code>" if text else ""))

    return show


def _terminal_line():
    """A line on a terminal that the next one overwrites; elsewhere nothing."""
    stream = sys.stderr
    try:
        is_terminal = stream.isatty()
    except (AttributeError, ValueError):  # there is none, or it was closed
        is_terminal = False
    return (lambda text: _write(stream, f"\r\x1b[2K{text[:120]}")) if is_terminal else (lambda text: None)
