"""Trials in words and tables: the message, the figures against the budgets, the lines of code."""

import pandas

from helpers.text import Code, clean, escape, format_seconds, html_table, percent, shorten
from helpers.units import format_bytes

LARGEST = 5
NEAR = 0.03


def message(trial):
    """State what happened in one short line, as the title of a chart does."""
    after = f"after {format_seconds(trial.seconds)}"
    if trial.outcome == "finished":
        return f"Finished: {used(trial)} in {format_seconds(trial.seconds)}"
    if trial.outcome == "vram-oom":
        return f"Out of VRAM{_at(trial.peak_vram, trial.vram_budget)} {after}"
    place = _at(trial.peak_ram, trial.ram_budget)
    if trial.outcome == "killed":
        return f"Killed{place} {after}"
    if trial.outcome == "memory-error":
        return f"Memory refused{place} {after}"
    if trial.outcome == "timeout":
        return f"Stopped by the time limit {after}{place}"
    return f"Failed {after}{place}: {clean(trial.error or f'exit code {trial.exit_code}')}"


def refusal(trial):
    """Say why a job died below its budget: what it asked for next was more than what was left."""
    peaks = {"memory-error": trial.peak_ram, "vram-oom": trial.peak_vram}
    budgets = {"memory-error": trial.ram_budget, "vram-oom": trial.vram_budget}
    peak, budget = peaks.get(trial.outcome), budgets.get(trial.outcome)
    if peak is None or not budget or peak > (1 - NEAR) * budget:
        return ""
    return f": the next allocation did not fit into the {format_bytes(budget - peak)} that were left"


def comparison_message(trials, labels, kind):
    """State what several trials show together; `kind` is the memory to compare, "ram" or "vram"."""
    died = [number for number, trial in enumerate(trials) if trial.out_of_memory]
    alive = [number for number, trial in enumerate(trials) if trial.outcome == "finished"]
    if len(trials) == 1:
        return message(trials[0])
    if len(trials) == 2 and len(died) == len(alive) == 1:
        return _before_and_after(trials, labels, died[0], alive[0])
    if died:
        counted = f"{len(died)} of {len(trials)} ran out of memory"
    else:
        counted = f"{'All' if len(alive) == len(trials) else len(alive)} of {len(trials)} finished"
    peaks = {labels[number]: getattr(trials[number], f"peak_{kind}") for number in alive}
    known = {label: peak for label, peak in peaks.items() if peak is not None}
    if not known:
        return counted
    least = min(known, key=known.get)
    return f"{counted}; least memory: {shorten(least, 24)}, {format_bytes(known[least])}"


def _before_and_after(trials, labels, died, alive):
    end = message(trials[died])
    peak = trials[alive].peak_vram if trials[died].outcome == "vram-oom" else trials[alive].peak_ram
    before = f"{shorten(labels[died], 24)}: {end[0].lower()}{end[1:]}"
    after = "finishes" if peak is None else f"stays at {format_bytes(peak)}"
    return f"{before}; {shorten(labels[alive], 24)} {after}"


def _at(peak, budget):
    """Say where a job died; a kernel's figure within 3 % of the budget is the budget."""
    if peak is None:
        return ""
    if budget and abs(peak - budget) <= NEAR * budget:
        return f" at {format_bytes(budget)}"
    return f" at {format_bytes(peak)}" + (f" of {format_bytes(budget)}" if budget else "")


def used(trial):
    """Write the peaks of a trial against their budgets; RAM needs no name where it stands alone."""
    measured = {
        name: of_budget(peak, budget)
        for name, peak, budget in (
            ("RAM", trial.peak_ram, trial.ram_budget),
            ("VRAM", trial.peak_vram, trial.vram_budget),
        )
        if peak is not None
    }
    if list(measured) == ["RAM"]:
        return measured["RAM"]
    return ", ".join(f"{text} {name}" for name, text in measured.items()) or "an unknown amount"


def of_budget(peak, budget):
    """Write a peak against its budget.

    >>> of_budget(90_000_000, 600_000_000), of_budget(90_000_000, None)
    ('90 MB of 600 MB', '90 MB')
    """
    return format_bytes(peak) + (f" of {format_bytes(budget)}" if budget else "")


def trial_text(trial):
    """Write the verdict and, in columns, the lines that took most of the memory."""
    lines = trial.lines[:LARGEST]
    if not lines:
        return trial.verdict
    rows = [(format_bytes(line.bytes), clean(line.where), shorten(line.source, 70)) for line in lines]
    size, place = (max(len(row[column]) for row in rows) for column in (0, 1))
    listed = [f"  {bytes_:>{size}}  {where:<{place}}  {source}" for bytes_, where, source in rows]
    return "\n".join([trial.verdict, "Lines that took the memory:", *listed])


def trial_tables(trial):
    """Return the verdict, the figures and the largest lines of a trial as HTML, all escaped."""
    facts = [("outcome", trial.outcome), ("exit code", "-" if trial.exit_code is None else trial.exit_code)]
    if trial.peak_ram is not None or trial.ram_budget:
        facts.append(("peak RAM", of_budget(trial.peak_ram, trial.ram_budget)))
    if trial.peak_vram is not None or trial.vram_budget:
        facts.append(("peak VRAM", of_budget(trial.peak_vram, trial.vram_budget)))
    facts.append(("time", format_seconds(trial.seconds)))
    if trial.idle is not None:
        facts.append(("device waiting", percent(trial.idle)))
    verdict = f"<p><strong>{escape(trial.label)}</strong>: {escape(trial.verdict)}</p>"
    parts = [verdict, html_table([name for name, _ in facts], [[value for _, value in facts]])]
    if trial.lines:
        lines = trial.lines[:LARGEST]
        rows = [[format_bytes(line.bytes), line.where, Code(shorten(line.source, 90))] for line in lines]
        parts.append(html_table(["memory", "where", "line"], rows))
    return "\n".join(parts)


def comparison_table(trials, labels):
    """Put trials side by side, a row each; a column that nobody measured is left out."""
    table = pandas.DataFrame(
        {
            "job": labels,
            "outcome": [trial.outcome for trial in trials],
            "peak RAM": [format_bytes(trial.peak_ram) for trial in trials],
            "of RAM budget": [_share(trial.peak_ram, trial.ram_budget) for trial in trials],
            "peak VRAM": [format_bytes(trial.peak_vram) for trial in trials],
            "of VRAM budget": [_share(trial.peak_vram, trial.vram_budget) for trial in trials],
            "time": [format_seconds(trial.seconds) for trial in trials],
            "device waiting": [percent(trial.idle) for trial in trials],
            "items per second": [_rate(trial.throughput) for trial in trials],
        }
    )
    return table.loc[:, [bool((table[column] != "-").any()) for column in table]]


def _share(peak, budget):
    return percent(peak / budget if peak is not None and budget else None)


def _rate(throughput):
    if throughput is None:
        return "-"
    return f"{throughput:,.0f}" if throughput >= 10 else f"{throughput:.2g}"


def distinct_labels(trials):
    """Return the trials' labels, numbered where two are equal.

    >>> from types import SimpleNamespace as Named
    >>> distinct_labels([Named(label="load"), Named(label="load"), Named(label="stream")])
    ['load 1', 'load 2', 'stream']
    """
    labels = [clean(trial.label) for trial in trials]
    seen = {}
    numbered = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        numbered.append(f"{label} {seen[label]}" if labels.count(label) > 1 else label)
    return numbered
