"""What an exercise is, which ones there are, and the words in which their checks speak."""

import functools
import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy

TOLERANCE = 1e-6


@dataclass(frozen=True)
class Exercise:
    """What a learner's function gets, what it may use, and how to judge what it returns.

    `arguments()` makes the arguments when the exercise is checked. `check(value, *arguments)` returns a
    sentence about what is wrong, or None. `job(answer, *arguments)`, if given, runs on the budget in place of
    the answer itself, for what cannot leave the process, such as a dataset.
    """

    statement: str
    arguments: Callable
    check: Callable
    ram: str | None = None
    vram: str | None = None
    timeout: int = 120
    job: Callable | None = None


@functools.cache
def all_exercises():
    """The exercises by name: each notebook's folder may have a module `exercise` with a table of its own."""
    folders = sorted(path.parent.name for path in Path(__file__).parent.glob("nb[0-9][0-9]/exercise.py"))
    modules = [importlib.import_module(f"helpers.course.{folder}.exercise") for folder in folders]
    return {name: exercise for module in modules for name, exercise in module.EXERCISES.items()}


class Unsolved(Exception):
    """A learner's function returned nothing yet: None or `...`, which is the argument."""


def once_solved(job):
    """For the `job` of an exercise: it ends with what the learner's function returns if that is None or `...`.

    >>> once_solved(lambda answer, number: answer(number) + 1)(lambda number: None, 5)
    >>> once_solved(lambda answer, number: answer(number) + 1)(lambda number: number, 5)
    6
    """

    @functools.wraps(job)
    def guarded(answer, *arguments):
        def solved(*inputs):
            value = answer(*inputs)
            if value is None or value is ...:
                raise Unsolved(value)
            return value

        try:
            return job(solved, *arguments)
        except Unsolved as unsolved:
            return unsolved.args[0]

    return guarded


def not_a_count(value, what, least):
    """A sentence about a value that is no whole number from 1 up, or None.

    >>> not_a_count(0, "the batch", "a batch has at least one image")
    'it returned 0; a batch has at least one image.'
    >>> not_a_count(2.0, "the batch", "a batch has at least one image")
    'it returned a float; return the batch, a whole number.'
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return f"it returned {with_article(value)}; return {what}, a whole number."
    return f"it returned {value}; {least}." if value < 1 else None


def close(found, wanted):
    """Whether two numbers agree but for rounding."""
    try:
        return math.isclose(found, wanted, rel_tol=TOLERANCE)
    except TypeError:
        return False


def number(value):
    """A number as a sentence shows it, and anything else as Python does."""
    return f"{value:,.7g}" if isinstance(value, float | int | numpy.number) else repr(value)


def with_article(value):
    """Name the type of a value as a sentence does.

    >>> with_article(5), with_article({})
    ('an int', 'a dict')
    """
    noun = type(value).__name__
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"
