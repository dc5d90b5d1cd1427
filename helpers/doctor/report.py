"""The report on a command that died: one page, and the same as text; nothing secret, nothing to be loaded."""

import html
import os
import signal
from dataclasses import replace

from helpers.doctor.diagnosis import diagnose
from helpers.doctor.filing import file_away
from helpers.doctor.log import read_text
from helpers.doctor.secrets import without_secrets
from helpers.text import signal_name
from helpers.units import format_bytes

LAST_LINES = 40
LONGEST_END = 200_000
MOST_LINES = 5
SHARE_WORTH_A_WORD = 0.1  # of what the largest line holds; a print beside it explains nothing
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body {{ font: 15px/1.5 sans-serif; max-width: 920px; margin: 2em auto; padding: 0 1em; }}
pre {{ background: #f4f4f4; padding: 1em; overflow-x: auto; }} img {{ max-width: 100%; }}
td {{ padding: 0 1em 0 0; vertical-align: top; }}</style>
<h1>{title}</h1>
{body}
</html>
"""


def diagnose_watched(watched):
    """Diagnose a command from its output, its exit code, where it grew and what was seen around it."""
    largest = [line for line in watched.lines[:MOST_LINES] if line.source]
    worth = max((line.bytes for line in largest), default=0) * SHARE_WORTH_A_WORD
    lines = [f"it grew at {line.where}: {line.source}" for line in largest if line.bytes >= worth]
    lines += watched.evidence
    if watched.over_budget:
        lines.append(f"the doctor's RAM budget of {format_bytes(watched.ram_budget)} was exceeded")
    # where the command ended well, its exit code is not that of the process which was killed
    return diagnose(watched.log + "".join(f"\n{line}" for line in lines), watched.exit_code or None)


def who_killed(watched):
    """One sentence on who ended the command."""
    text = "\n".join(watched.evidence)
    if watched.over_budget:
        return f"This doctor: the command went over its budget of {format_bytes(watched.ram_budget)}."
    if "oom_kill" in text or "Memory cgroup" in text:
        return "The kernel, at the memory limit of this container or control group."
    if "Killed process" in text:
        return "The kernel's OOM killer: the machine was out of memory."
    if watched.exit_code > 128:
        name = signal_name(watched.exit_code) or f"number {watched.exit_code - 128}"
        return f"A signal, {name}; the kernel's log says nothing of it, or may not be read."
    return f"Nobody: the program ended by itself with exit code {watched.exit_code}."


def summary(watched, folder="."):
    """Write the report, and say in a few lines what it says and where it is. Whatever fails here is said as well."""
    try:
        diagnosis = _shown_diagnosis(diagnose_watched(watched))
        shown = _shown_watched(watched)
    except Exception as error:
        return f"\ndoctor: there is no report: the diagnosis failed ({error!r})"
    return (
        f"\ndoctor: {diagnosis.kind}: {diagnosis.cause} ({diagnosis.confidence} confidence)"
        f"\ndoctor: {diagnosis.explanation} Peak RAM {format_bytes(watched.peak_ram)}."
        f"\ndoctor: {_where(shown, diagnosis, folder)}"
    )


def _where(watched, diagnosis, folder):
    try:
        page, text = write(watched, diagnosis, folder)
    except Exception as error:
        return f"the report could not be written ({error}); see notebook {diagnosis.notebook}"
    return f"see {_relative(page)}, {_relative(text)} and notebook {diagnosis.notebook}"


def _relative(path):
    try:
        return os.path.relpath(path)
    except OSError:  # the command has removed the folder that we are in
        return path


def _shown_watched(watched):
    """Without secrets, and no more of the log than its end."""
    return replace(
        watched,
        label=without_secrets(watched.label),
        log=without_secrets(watched.log[-LONGEST_END:]),
        evidence=tuple(map(without_secrets, watched.evidence)),
        lines=tuple(replace(line, source=without_secrets(line.source)) for line in watched.lines),
    )


def _shown_diagnosis(diagnosis):
    return replace(
        diagnosis,
        explanation=without_secrets(diagnosis.explanation),
        evidence=tuple(map(without_secrets, diagnosis.evidence)),
    )


def write(watched, diagnosis, folder="."):
    """Write both files; returns their paths."""
    return file_away({"html": _page(watched, diagnosis), "txt": as_text(watched, diagnosis)}, folder)


def as_text(watched, diagnosis):
    """The report as plain text."""
    parts = [
        _title(watched),
        "",
        *(f"{name}: {value}" for name, value in _facts(watched)),
        "",
        str(diagnosis),
    ]
    largest = watched.lines[:MOST_LINES]
    if largest:
        parts += ["", "The lines that held the growth, at the peak"]
        parts += [f"  {format_bytes(line.bytes):>8}  {line.where}  {line.source}" for line in largest]
    if watched.evidence:
        parts += ["", "Seen around it", *(f"  {line}" for line in watched.evidence)]
    parts += ["", "The last lines of its output", *(f"  {line}" for line in last_lines(watched))]
    return "\n".join(parts) + "\n"


def _page(watched, diagnosis):
    rows = "".join(
        f"<tr><td>{_shown(name)}</td><td>{_shown(value)}</td></tr>" for name, value in _facts(watched)
    )
    body = [f"<table>{rows}</table>", diagnosis._repr_html_(), _chart(watched, diagnosis)]
    largest = watched.lines[:MOST_LINES]
    if largest:
        lines = "\n".join(f"{format_bytes(line.bytes):>8}  {line.where}  {line.source}" for line in largest)
        body.append(f"<h2>The lines that held the growth, at the peak</h2><pre>{_shown(lines)}</pre>")
    if watched.evidence:
        body.append(f"<h2>Seen around it</h2><pre>{_shown(chr(10).join(watched.evidence))}</pre>")
    body.append(
        f"<h2>The last lines of its output</h2><pre>{_shown(chr(10).join(last_lines(watched)))}</pre>"
    )
    return PAGE.format(title=_shown(_title(watched)), body="\n".join(body))


def _shown(text):
    return html.escape(str(text))


def _title(watched):
    return f"Died: {watched.label}" if watched.exit_code else f"Lost a process: {watched.label}"


def _facts(watched):
    yield "Exit code", str(watched.exit_code)
    yield "Ran for", f"{watched.seconds:.1f} s"
    yield "Peak RAM of the whole tree", format_bytes(watched.peak_ram)
    if watched.peak_vram is not None:
        yield "Peak VRAM", format_bytes(watched.peak_vram)
    if watched.ram_budget:
        yield "RAM budget", format_bytes(watched.ram_budget)
    if watched.vram_budget:
        yield "VRAM budget", format_bytes(watched.vram_budget)
    yield "Who killed it", who_killed(watched)


def last_lines(watched):
    """The end of the command's output, as a terminal would show it."""
    return read_text(watched.log).lines[-LAST_LINES:]


def _chart(watched, diagnosis):
    """The chart as a picture inside the page; a run too short for a curve has none."""
    try:
        from helpers.charts.compare import picture
        from helpers.charts.timeline import plot

        if len(watched.samples) < 2:
            return ""
        return picture(plot(replace(watched, outcome=_outcome(watched, diagnosis))))
    except Exception as error:  # a broken matplotlib shall not cost the words
        return f"<p>{_shown(f'There is no chart: {error!r}')}</p>"


def _outcome(watched, diagnosis):
    if diagnosis.kind == "vram" and watched.peak_vram is not None:
        return "vram-oom"
    if diagnosis.out_of_memory:
        return "killed" if watched.exit_code == 128 + signal.SIGKILL else "memory-error"
    return "error"
