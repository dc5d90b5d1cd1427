"""The exercise of notebook 01: name the kind of three deaths."""

from helpers.course.nb01.logs import CRASH_LOGS
from helpers.course.task import Exercise
from helpers.doctor.catalogue import KINDS


def name_kinds(answer, *logs):
    """Ask a learner's function for the kind of each log."""
    kinds = [answer(log) for log in logs]
    return None if set(kinds) == {None} else kinds


def check_kinds(value, *logs):
    """Judge the kinds that an answer gave, log by log, with the line to look at where one is wrong."""
    for number, (kind, (wanted, hint)) in enumerate(zip(value, CRASH_KINDS, strict=True), start=1):
        if kind not in KINDS:
            return f"log {number}: {kind!r} is no kind; the kinds are {', '.join(KINDS)}."
        if kind != wanted:
            return f"log {number} is not {kind}: {hint}"
    return None


CRASH_KINDS = (
    ("disk", "its last line says what there was no more of."),
    ("vram", "to which device was it copying when that had no room for the copy?"),
    ("host-ram", "two of its lines say on which side the memory was missing, whoever reported it."),
)
EXERCISES = {
    "01-a": Exercise(
        statement="write answer(log) that returns the kind of death of a log, right for three logs of three.",
        arguments=lambda: CRASH_LOGS,
        check=check_kinds,
        job=name_kinds,
    ),
}
