"""The exercise of notebook 08: limits that do not fit are refused with the reason, before any job runs."""

import pytest

from helpers.course.exercises import exercise
from helpers.course.nb08 import exercise as exercises_08

GOOD = {"small": "100 MB", "medium": "140 MB", "large": "230 MB"}


def test_limits_under_which_all_three_finish_pass():
    assert exercises_08.limits_problem(GOOD, exercises_08.CARD) is None
    assert exercises_08.check_three_jobs((dict.fromkeys(GOOD, True), {}), exercises_08.CARD) is None


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ("160 MB", "it returned a str; return a dict"),
        ({"small": "100 MB"}, "it has limits for small; give one to small, medium, large."),
        ({}, "it has limits for nobody"),
        (GOOD | {"large": "330 MB"}, "the limits add up to 570 MB, and the card has 480 MB."),
        (GOOD | {"large": "230"}, 'large="230" has no unit; write "230 MB".'),
        (GOOD | {"large": None}, 'large must be text such as "600 MB"'),
    ],
)
def test_limits_that_cannot_work_hear_why(limits, words):
    assert words in exercises_08.limits_problem(limits, exercises_08.CARD)


def test_a_job_that_died_is_named_with_what_it_had():
    sizes = {"small": 160_000_000, "medium": 160_000_000, "large": 160_000_000}
    found = exercises_08.check_three_jobs(({"small": True, "medium": True, "large": False}, sizes), "480 MB")
    assert found == "large died on 160 MB; it needs more."


def test_an_answer_is_judged_from_end_to_end():
    result = exercise("08-a", lambda: GOOD | {"large": "330 MB"})
    assert not result.passed
    assert str(result) == "Not yet: the limits add up to 570 MB, and the card has 480 MB."
