"""The charts of the course, in one look: a trial over time, trials side by side, bytes against bytes."""

import base64
from dataclasses import dataclass

import pandas

from helpers import tables
from helpers.plots_chart import Chart
from helpers.plots_ladder import ladder, strips
from helpers.plots_peaks import peaks_by_name
from helpers.plots_sizes import peaks_against_size, stacked_bytes
from helpers.plots_timeline import overlay, plot
from helpers.tables import trial_text

__all__ = [
    "Comparison",
    "compare",
    "ladder",
    "peaks_against_size",
    "peaks_by_name",
    "plot",
    "stacked_bytes",
    "strips",
    "trial_html",
    "trial_text",
]


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
        return picture(self.figure) + "\n" + tables.html_table(self.table.columns, self.table.values.tolist())


def compare(*trials):
    """Draw trials on one axis and put their figures into one table."""
    if not trials:
        raise ValueError("compare needs at least one trial: compare(naive, fixed)")
    for trial in trials:
        if not hasattr(trial, "samples"):
            raise TypeError(f"compare takes trials, as run(...) returns them, not {type(trial).__name__}")
    labels = tables.distinct_labels(trials)
    return Comparison(trials, overlay(trials, labels), tables.comparison_table(trials, labels))


def trial_html(trial):
    """Show a trial in a notebook: its verdict, its figures, its largest lines and its chart."""
    return tables.trial_tables(trial) + "\n" + picture(plot(trial))


def picture(chart):
    """Put a chart into HTML, with its alt text."""
    encoded = base64.b64encode(chart.png()).decode("ascii")
    return f'<img src="data:image/png;base64,{encoded}" alt="{tables.escape(chart.alt)}">'
