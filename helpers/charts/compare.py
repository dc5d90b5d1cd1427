"""Trials side by side, and one trial as a notebook shows it: words, tables and the chart in HTML."""

import base64
from dataclasses import dataclass

import pandas

from helpers.charts import timeline, words
from helpers.charts.look import Chart
from helpers.text import escape, html_table


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Trials side by side: `figure` shows them on one axis, `table` has a row for each."""

    trials: tuple
    figure: Chart
    table: pandas.DataFrame

    def __str__(self):
        return self.table.to_string(index=False)

    def __repr__(self):
        outcomes = zip(self.table["job"], self.table["outcome"], strict=True)
        return "<Comparison: " + ", ".join(f"{job} {outcome}" for job, outcome in outcomes) + ">"

    def _repr_html_(self):
        return picture(self.figure) + "\n" + html_table(self.table.columns, self.table.values.tolist())


def compare(*trials):
    """Draw trials on one axis and put their figures into one table."""
    if not trials:
        raise ValueError("compare needs at least one trial: compare(naive, fixed)")
    for trial in trials:
        if not hasattr(trial, "samples"):
            raise TypeError(f"compare takes trials, as run(...) returns them, not {type(trial).__name__}")
    labels = words.distinct_labels(trials)
    return Comparison(trials, timeline.overlay(trials, labels), words.comparison_table(trials, labels))


def trial_html(trial):
    """Show a trial in a notebook: its verdict, its figures, its largest lines and its chart."""
    return words.trial_tables(trial) + "\n" + picture(timeline.plot(trial))


def picture(chart):
    """Put a chart into HTML, with its alt text."""
    encoded = base64.b64encode(chart.png()).decode("ascii")
    return f'<img src="data:image/png;base64,{encoded}" alt="{escape(chart.alt)}">'
