"""Run a job on a memory budget in a process of its own, and keep what happened as a `Trial`."""

import linecache
import os
import pickle
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas

from helpers import limits, machine, outcomes, reports, worker
from helpers.lines import Line
from helpers.live import Live, cell_number, readable
from helpers.shipping import pack_job
from helpers.units import format_bytes, parse_bytes

SPARE = 0.9
"""The share of the free RAM that a job without a budget may take, so that the machine survives."""

if not reports.in_job():
    worker.warm_up()


@dataclass(frozen=True)
class Phase:
    """A named stretch of a job, in seconds since its start; `end` is None if the job died in it."""

    name: str
    start: float
    end: float | None
    items: int | None


@dataclass(frozen=True, repr=False, eq=False)
class Trial:
    """What one run of a job showed; sizes are in bytes, times in seconds."""

    label: str
    outcome: str
    verdict: str
    exit_code: int
    seconds: float
    ram_budget: int | None
    vram_budget: int | None
    peak_ram: int | None
    peak_vram: int | None
    idle: float | None
    value: object
    error: str | None
    log: str
    samples: pandas.DataFrame
    lines: tuple = ()
    phases: tuple = ()
    limiter: str = ""
    device: str | None = None
    overhead: float = field(default=0.0)

    @property
    def out_of_memory(self):
        return self.outcome in outcomes.OUT_OF_MEMORY

    @property
    def throughput(self):
        """Items per second over the phases that counted items, or None."""
        counted = [stretch for stretch in self.phases if stretch.items and stretch.end]
        seconds = sum(stretch.end - stretch.start for stretch in counted)
        return sum(stretch.items for stretch in counted) / seconds if seconds else None

    def __repr__(self):
        return f"<Trial {self.label}: {self.outcome}>"

    def __str__(self):
        from helpers import plots

        return plots.trial_text(self)

    def _repr_html_(self):
        from helpers import plots

        return plots.trial_html(self)


def run(
    job,
    *args,
    ram=None,
    vram=None,
    growth=False,
    on_limit="kill",
    timeout=600,
    label=None,
    limiter=None,
    **kwargs,
):
    """Run `job(*args, **kwargs)` in a process of its own and return a `Trial`, however it ends.

    `ram` is what the job may add on top of the interpreter and its imports, `vram` the size of its accelerator (a
    real GPU, else the virtual one; `growth=True` lets that grow instead of reserving it). Over `ram` a job is killed
    (`on_limit="kill"`, as the kernel and containers do) or refused memory (`"refuse"`, as ulimit does). `timeout` is
    in seconds. `limiter` asks for one by name; see `helpers.limits`. Files in the job's temporary folder go with it.

    >>> run(sum, [1, 2, 3], ram="200 MB").value
    6
    """
    ram_budget, vram_budget = _ram_budget(ram), _vram_budget(vram)
    if on_limit not in ("kill", "refuse"):
        raise ValueError(f'on_limit={on_limit!r} is neither "kill" nor "refuse"')
    if not timeout > 0:
        raise ValueError(f"timeout={timeout!r} is not a positive number of seconds")
    limits.best(on_limit, limiter)
    function, arguments = pack_job(job, args, kwargs)
    task = {
        "function": function,
        "arguments": arguments,
        "ram": ram_budget,
        "spare": int(machine.ram_available() * SPARE),
        "vram": vram_budget,
        "growth": growth,
        "on_limit": on_limit,
        "limiter": limiter,
        "timeout": timeout,
        "environment": dict(os.environ),
        "path": [str(Path(entry or ".").absolute()) for entry in sys.path],
        "folder": os.getcwd(),
    }
    label = label or getattr(job, "__name__", type(job).__name__)
    return _perform(task, label)


def _ram_budget(ram):
    if ram is None:
        return None
    budget, total = parse_bytes(ram, name="ram"), machine.ram_total()
    if budget > total:
        raise ValueError(f"ram={format_bytes(budget)} is more than this machine has ({format_bytes(total)})")
    return budget


def _vram_budget(vram):
    if vram is None:
        return None
    budget, cards = parse_bytes(vram, name="vram"), machine.gpus()
    total = cards[0].total if cards else machine.ram_total()
    if budget > total:
        holder = (
            f"the GPU has ({format_bytes(total)})"
            if cards
            else (f"this machine has in RAM ({format_bytes(total)}), where the virtual GPU lives")
        )
        raise ValueError(f"vram={format_bytes(budget)} is more than {holder}")
    return budget


def _perform(task, label):
    live = Live(label, task["ram"])
    began = time.monotonic()
    try:
        facts = worker.perform(task, live)
    finally:
        live.close()
    return _trial(task, label, facts, time.monotonic() - began)


def _trial(task, label, facts, took):
    exit_code = outcomes.exit_code_of(facts["status"])
    outcome = outcomes.outcome_of(facts, exit_code)
    failure = facts["failure"]
    return Trial(
        label=label,
        outcome=outcome,
        verdict=outcomes.verdict_of(outcome, facts, exit_code, task["ram"], task["vram"], task["timeout"]),
        exit_code=exit_code,
        seconds=facts["seconds"],
        ram_budget=task["ram"],
        vram_budget=task["vram"],
        peak_ram=facts["peak_ram"],
        peak_vram=facts["peak_vram"],
        idle=facts["idle"],
        value=pickle.loads(facts["value"]) if outcome == "finished" else None,
        error=readable(f"{failure['type']}: {failure['message']}") if failure else None,
        log=readable(facts["log"].decode("utf-8", "replace")),
        samples=_samples(facts),
        lines=tuple(_line(place, size) for place, size in facts["lines"]),
        phases=tuple(Phase(**stretch) for stretch in facts["phases"]),
        limiter=facts["limiter"],
        device=facts["device"],
        overhead=took - facts["seconds"],
    )


def _samples(facts):
    seconds, ram = (np.frombuffer(column) for column in facts["curve"])
    samples = pandas.DataFrame({"seconds": seconds, "ram": ram, "vram": np.nan, "waiting": np.nan})
    if facts["vram"] and len(samples):
        samples["vram"] = _newest(facts["vram"], samples["seconds"])
    if facts["utilisation"] and len(samples):  # only where there is an NVIDIA GPU
        samples["utilisation"] = _newest(facts["utilisation"], samples["seconds"])
    if facts["idle"] is not None:
        inside = np.zeros(len(samples))
        for start, end in facts["waiting"]:
            inside[samples["seconds"].searchsorted(start) : samples["seconds"].searchsorted(end)] = 1
        samples["waiting"] = inside
    return samples


def _newest(readings, seconds):
    """For each moment the newest of the readings, which are pairs of seconds and a value."""
    times, levels = zip(*readings, strict=True)
    newest = np.searchsorted(times, seconds, side="right") - 1
    return np.where(newest >= 0, np.take(levels, newest.clip(0)), np.nan)


def _line(place, size):
    file, number = place
    if number == 0:  # not a line, but a reason why there is none
        return Line(file, 0, "", size, file)
    cell = cell_number(file)
    where = f"cell {cell}, line {number}" if cell else f"{Path(file).name}:{number}"
    return Line(file, number, linecache.getline(file, number).strip(), size, where)
