"""How true the lines are that took the memory: under `run` and the doctor, on a quiet machine and on a busy one."""

import os
import re
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks import table, take_turns
from benchmarks._line_scripts import SCRIPTS
from helpers import run
from helpers.units import parse_bytes

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 10
MEDIAN, WORST, WORST_BUSY = 0.02, 0.05, 0.10
LINE = re.compile(r"^ +([\d.]+ [KMG]?B)  \S+\.py:(\d+)  ", re.MULTILINE)


def report(quick=False):
    """The section of RESULTS.md."""
    rounds = 1 if quick else ROUNDS
    run(int, label="warm up")
    quiet = _errors("lines, quiet", rounds)
    with busy_cores():
        busy = _errors("lines, busy", rounds)
    promises = [
        ("error of a line, quiet, median", statistics.median(_all(quiet)), MEDIAN),
        ("error of a line, quiet, at the worst", max(_all(quiet)), WORST),
        ("error of a line, both cores busy, at the worst", max(_all(busy)), WORST_BUSY),
    ]
    kept = [
        (name, f"{found:.1%}", f"{most:.0%}", "yes" if found <= most else "**no**")
        for name, found, most in promises
    ]
    rows = [(*key, *_middle_and_worst(quiet[key]), *_middle_and_worst(busy[key])) for key in quiet]
    head = ["program", "watcher", "quiet, median", "quiet, worst", "busy, median", "busy, worst"]
    return f"""## The lines that took the memory

Small programs whose lines take known bytes, {rounds} runs of each in turns: the error of a run is that of its worst
line, as a share of that line's bytes. Bytes that are shown as shared by two lines, or as nobody's, count as missing.
Busy: a loop that counts on each core, beside them.

{table(["promise", "measured", "at most", "kept"], kept)}

{table(head, rows, texts=2)}
"""


def _middle_and_worst(found):
    return f"{statistics.median(found):.1%}", f"{max(found):.1%}"


def _all(errors):
    return [error for found in errors.values() for error in found]


def _errors(title, rounds):
    watchers = {"`run`": _under_run, "doctor": _under_doctor}
    variants = {
        (script.name, watcher): partial(error_of, script, measure)
        for script in SCRIPTS
        for watcher, measure in watchers.items()
    }
    return take_turns(title, variants, rounds)


def error_of(script, measure):
    """The error of the worst line: what was found of it against the truth."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text(script.text)
        numbers = measure(program)
    marks = script.lines()
    found = dict.fromkeys(script.truth, 0)
    for number, size in numbers:
        if number in marks:
            found[marks[number]] += size
    return max(abs(found[mark] / size - 1) for mark, size in script.truth.items())


def execute(path):
    """A program as a job: its own file is in the frames, as it would be without."""
    source = Path(path).read_text()
    exec(compile(source, path, "exec"), {"__name__": "__main__"})


def _under_run(program):
    trial = run(execute, str(program), ram="2 GB")
    return [(line.line, line.bytes) for line in trial.lines]


def _under_doctor(program):
    command = [sys.executable, "-m", "helpers", "doctor", "--", sys.executable, str(program)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=program.parent, env=environment, capture_output=True, check=False)
    text = program.with_name("oom-report.txt").read_text()
    _, _, lines = text.partition("The lines that held the growth")
    return [(int(number), parse_bytes(size, name="size")) for size, number in LINE.findall(lines)]


@contextmanager
def busy_cores():
    """A loop that counts on each core."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
