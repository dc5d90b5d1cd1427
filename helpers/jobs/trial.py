"""Run a job on a memory budget in a process of its own, and keep what happened as a `Trial`."""

import math
import os
import sys
import time
from dataclasses import dataclass

from helpers import gpu, machine
from helpers.jobs import main_module, outcomes, worker
from helpers.jobs.failures import text_of
from helpers.jobs.live import Live
from helpers.jobs.shipping import pack_job, unpack_result
from helpers.jobs.task import Task
from helpers.text import readable
from helpers.units import format_bytes, parse_bytes
from helpers.watching import limits
from helpers.watching.processes import exit_code_of
from helpers.watching.record import Recording, located

SPARE = 0.9
"""The share of the free RAM that a job without a budget may take, so that the machine survives."""

if not machine.in_job():
    worker.warm_up()


class Value:
    """The field of a trial that may raise when it is read: a value that could not be unpacked costs no trial."""

    def __get__(self, trial, owner):
        value = None if trial is None else vars(trial)["value"]
        if isinstance(value, Unreadable):
            raise ValueError(value.sentence)
        return value

    def __set__(self, trial, value):
        vars(trial)["value"] = value


@dataclass(frozen=True)
class Unreadable:
    """In the place of a value that could not be unpacked: why."""

    sentence: str


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Trial(Recording):
    """What one run of a job showed; sizes are in bytes, times in seconds."""

    verdict: str
    value: object = Value()
    limiter: str = ""
    device: str | None = None
    overhead: float = 0.0

    def __repr__(self):
        return f"<Trial {self.label}: {self.outcome}>"

    def __str__(self):
        from helpers.charts.words import trial_text

        return trial_text(self)

    def _repr_html_(self):
        from helpers.charts.compare import trial_html

        return trial_html(self)


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
    in seconds, None for none. `limiter` asks for one by name; see `helpers.watching.limits`. Files in the job's
    temporary folder go with it.

    >>> run(sum, [1, 2, 3], ram="200 MB").value
    6
    """
    ram_budget, vram_budget, timeout = _ram_budget(ram), _vram_budget(vram), _seconds(timeout)
    if on_limit not in ("kill", "refuse"):
        raise ValueError(f'on_limit={on_limit!r} is neither "kill" nor "refuse"')
    limiter = limiter or limits.wanted_by_name()
    limits.candidates(on_limit, limiter)  # a wrong name is told here; whether it works, where it is used
    function, arguments = pack_job(job, args, kwargs)
    folder = _folder()
    task = Task(
        function=function,
        arguments=arguments,
        ram=ram_budget,
        spare=int(machine.ram_available() * SPARE),
        vram=vram_budget,
        growth=bool(growth),
        on_limit=on_limit,
        limiter=limiter,
        timeout=timeout,
        environment=dict(os.environ),
        path=_path(folder),
        folder=folder,
        main=main_module.describe(),
        command_line=[str(argument) for argument in sys.argv],
    )
    label = label or getattr(job, "__name__", type(job).__name__)
    return _perform(task, label)


def _seconds(timeout):
    """A plain number, since whatever else it is would be unpickled in the warm process."""
    try:
        seconds = math.inf if timeout is None else float(0 if isinstance(timeout, str) else timeout)
    except (TypeError, ValueError):
        seconds = 0
    if not seconds > 0:
        raise ValueError(f"timeout={timeout!r} is not a positive number of seconds")
    return seconds


def _folder():
    """The folder in which the caller is; one that was deleted can still be entered where the kernel leads there."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        folder = f"/proc/{os.getpid()}/cwd"
        if os.path.isdir(folder):
            return folder
        raise FileNotFoundError(
            "the folder in which this program runs was deleted; change to another one"
        ) from None


def _path(folder):
    return [os.path.join(folder, entry) if entry else folder for entry in sys.path]


def _ram_budget(ram):
    if ram is None:
        return None
    budget = parse_bytes(ram, name="ram")
    if budget > machine.ram_total():
        raise ValueError(f"ram={format_bytes(budget)} is more than {_all_there_is()}")
    return budget


def _all_there_is():
    around = [limit for _, limit in machine.memory_limits()]
    if around:
        limit = format_bytes(min(around))
        return f"the memory limit around this process allows (a container's or control group's, {limit})"
    return f"this machine has ({format_bytes(machine.ram_total())})"


def _vram_budget(vram):
    if vram is None:
        return None
    machine.need_tensorflow("run(..., vram=)")
    budget, cards = parse_bytes(vram, name="vram"), gpu.gpus()
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
    live = Live(label, task.ram)
    began = time.monotonic()
    try:
        ending = worker.perform(task, live)
    finally:
        live.close()
    return _trial(task, label, ending, time.monotonic() - began)


def _value(payload):
    try:
        return unpack_result(payload)
    except Exception as error:
        why = f"{type(error).__name__}: {text_of(error)}"
        return Unreadable(f"the job finished, but its result cannot be unpacked in this process: {why}")


def _trial(task, label, ending, took):
    exit_code = exit_code_of(ending.status)
    outcome = outcomes.outcome_of(ending, exit_code)
    failure = ending.failure
    return Trial(
        label=label,
        outcome=outcome,
        verdict=outcomes.verdict_of(outcome, ending, exit_code, task),
        exit_code=exit_code,
        seconds=ending.seconds,
        ram_budget=task.ram,
        vram_budget=task.vram,
        peak_ram=ending.peak_ram,
        peak_vram=ending.peak_vram,
        idle=ending.idle,
        value=_value(ending.value) if outcome == "finished" else None,
        error=readable(f"{failure.type}: {failure.message}") if failure else None,
        log=readable(ending.log.decode("utf-8", "replace")),
        lines=tuple(located(place, size) for place, size in ending.lines),
        phases=ending.phases,
        curves=ending.curves,
        limiter=ending.limiter,
        device=ending.device,
        overhead=took - ending.seconds,
    )
