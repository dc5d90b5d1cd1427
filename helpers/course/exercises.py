"""Checks a learner's function by running it on a budget, and says what fell short and by how much."""

import re
import types
from dataclasses import dataclass

from helpers import gpu, machine
from helpers.charts import words
from helpers.charts.compare import trial_html
from helpers.course.task import all_exercises, with_article
from helpers.jobs.trial import run
from helpers.text import clean, escape, shorten
from helpers.units import format_bytes

EXERCISES = all_exercises()
ROOM_TO_MEASURE = 10


@dataclass(frozen=True, eq=False)
class Result:
    """What became of an answer; `trial` is its run on the budget, or None if it was not run."""

    passed: bool
    message: str
    trial: object = None

    def __str__(self):
        return self.message

    __repr__ = __str__

    def _repr_html_(self):
        parts = [f"<p><strong>{escape(self.message)}</strong></p>"]
        if self.trial is not None and self.trial.out_of_memory:
            parts.append(trial_html(self.trial))
        return "\n".join(parts)


def exercise(name, answer):
    """Run a learner's function as the exercise `name` asks, on its budget, and judge what it returns.

    >>> exercise("02-z", print)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: There is no exercise "02-z"; there are 01-a, 02-a, ...
    """
    if name not in EXERCISES:
        raise ValueError(f'There is no exercise "{name}"; there are {", ".join(sorted(EXERCISES))}')
    if not callable(answer):
        raise TypeError(
            f'exercise("{name}", answer) takes your function itself, without brackets, '
            f"not {with_article(answer)}"
        )
    task = EXERCISES[name]
    if _is_empty(answer):
        return Result(False, f"Not solved yet: {task.statement}")
    arguments = task.arguments()
    trial = _attempt(task, answer, arguments, ram=task.ram, vram=task.vram)
    if _is_stub(trial):
        return Result(False, f"Not solved yet: {task.statement}", trial)
    if problem := _problem(task, answer, arguments, trial):
        return Result(False, f"Not yet: {problem}", trial)
    return Result(True, f"Passed: it used {words.used(trial)}.", trial)


def _attempt(task, answer, arguments, ram, vram):
    job, inputs = (answer, arguments) if task.job is None else (task.job, (answer, *arguments))
    return run(job, *inputs, ram=ram, vram=vram, timeout=task.timeout, label="answer")


def _problem(task, answer, arguments, trial):
    """Say in a sentence what is wrong with an attempt, or return None if nothing is."""
    if trial.out_of_memory:
        return _needs(task, answer, arguments, trial)
    if trial.outcome == "timeout":
        return f"it ran longer than {task.timeout} s."
    if trial.outcome != "finished":
        return f"it {_failure(answer, trial)}."
    if trial.value is None:
        return "it returned None: does your function return its result?"
    return task.check(trial.value, *arguments)


def _needs(task, answer, arguments, trial):
    """Say how much memory an answer needs, and in which line, by running it once more with room to spare."""
    kind = "vram" if trial.outcome == "vram-oom" else "ram"
    budget = getattr(trial, f"{kind}_budget")
    room = {"ram": task.ram, "vram": task.vram, kind: _room(kind, budget)}
    measured = _attempt(task, answer, arguments, **room)
    peak = getattr(measured, f"peak_{kind}") or 0
    verb = "used" if peak > budget else "used more than"
    sentence = f"it {verb} {format_bytes(max(peak, budget))} of {format_bytes(budget)} {kind.upper()}."
    if measured.lines:
        line = measured.lines[0]
        sentence += f" Most of it came from {line.where}: {shorten(line.source, 60)}"
    return sentence


def _room(kind, budget):
    """Allow ten times the budget, but leave the machine half of what it has."""
    cards = gpu.gpus() if kind == "vram" else ()
    total = cards[0].total if cards else machine.ram_total()
    return max(budget, min(ROOM_TO_MEASURE * budget, total // 2))


def _failure(answer, trial):
    """Say how an answer broke: with which exception and in which of its lines, or by which exit code."""
    if not trial.error:
        return f"ended with exit code {trial.exit_code}"
    file = re.escape(getattr(getattr(answer, "__code__", None), "co_filename", "unknown"))
    places = re.findall(rf'File "{file}", line (\d+)', trial.log)
    where = f" in line {places[-1]}" if places else ""
    return f"raised {clean(trial.error).rstrip('.')}{where}"


def _is_stub(trial):
    return trial.value is ... or (trial.error or "").startswith("NotImplementedError")


def _is_empty(answer):
    """Tell a function that has no body yet: nothing but a docstring, `...` or `raise NotImplementedError`."""
    if not isinstance(answer, types.FunctionType):
        return False
    code = answer.__code__
    if code.co_names == ("NotImplementedError",):
        return True
    constants = set(code.co_consts) - {None, ..., answer.__doc__}
    return not constants and code.co_code in {_empty.__code__.co_code, _documented.__code__.co_code}


def _empty():
    pass


def _documented():
    """Stands for a function that has a docstring and nothing else."""
