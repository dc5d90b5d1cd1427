"""The exercise of notebook 01: a wrong kind is told by log, and the doctor knows the three logs too."""

import pytest

from helpers.course.exercises import exercise
from helpers.course.nb01 import exercise as exercises_01
from helpers.course.nb01.logs import CRASH_LOGS
from helpers.doctor.diagnosis import diagnose


def kind_of(log):
    if "No space left" in log:
        return "disk"
    return "host-ram" if "on host" in log else "vram"


def test_three_logs_of_three_pass():
    assert exercise("01-a", kind_of).passed


def test_the_doctor_agrees_with_the_exercise():
    wanted = [kind for kind, _ in exercises_01.CRASH_KINDS]
    assert [diagnose(log).kind for log in CRASH_LOGS] == wanted


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda log: "vram", "log 1 is not vram: its last line says what there was no more of."),
        (
            lambda log: kind_of(log).replace("vram", "gpu"),
            "log 2: 'gpu' is no kind; the kinds are host-ram, ",
        ),
        (lambda log: "disk" if "space" in log else "vram", "log 3 is not vram: two of its lines say "),
    ],
)
def test_a_wrong_kind_is_told_by_log(answer, sentence):
    kinds = exercises_01.name_kinds(answer, *CRASH_LOGS)
    assert exercises_01.check_kinds(kinds).startswith(sentence)


def test_no_kind_for_any_log_is_no_answer():
    assert exercises_01.name_kinds(lambda log: None, *CRASH_LOGS) is None
