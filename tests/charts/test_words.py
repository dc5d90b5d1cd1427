"""Trials in words: the text, the table, the labels, and that no chart is loaded to write them."""

import subprocess
import sys

from drawn import a_line, a_trial
from helpers.charts.words import distinct_labels, trial_text

PRINT = """
import sys
from helpers import run
print(run(sum, [1, 2, 3], label="add"))
print("matplotlib" in sys.modules)
"""


def test_printing_a_trial_loads_no_matplotlib():
    done = subprocess.run([sys.executable, "-c", PRINT], capture_output=True, text=True, check=True)
    first, *_, last = done.stdout.splitlines()  # between them, it may be, a line that took some pages
    assert (first, last) == ("Finished.", "False")


def test_text_of_a_trial_has_its_verdict_and_lines_in_columns():
    trial = a_trial(lines=(a_line(412), a_line(8, "labels = frame.pop('label')", "train.py:12")))
    assert trial_text(trial).split("\n") == [
        "One stable sentence.",
        "Lines that took the memory:",
        "  412 MB  cell 5, line 3  frame = pandas.read_csv(path)",
        "    8 MB  train.py:12     labels = frame.pop('label')",
    ]
    assert trial_text(a_trial()) == "One stable sentence."


def test_equal_labels_are_numbered():
    trials = [a_trial(label="load"), a_trial(label="stream"), a_trial(label="load")]
    assert distinct_labels(trials) == ["load 1", "stream", "load 2"]
