"""Exercise 04-a: a buffer that the job lives with and that makes use of the budget passes; any other hears why not."""

import pytest

from helpers.course.exercises import EXERCISES, exercise
from helpers.course.nb04 import exercise as exercises_04

BATCH, BUDGET = exercises_04.batch_and_budget()


@pytest.mark.parametrize("size", [8, 10, 13])
def test_a_buffer_that_makes_use_of_the_budget_passes(size):
    assert exercises_04.check_buffer(size, BATCH, BUDGET) is None


def test_a_buffer_that_leaves_most_of_the_budget_free_hears_how_much():
    sentence = exercises_04.check_buffer(2, BATCH, BUDGET)
    assert sentence == "a buffer of 2 holds 25 MB; take one that holds 90 MB at least."


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (9.5, "it returned a float; return the number of batches, a whole number."),
        ("9", "it returned a str; return the number of batches, a whole number."),
        (True, "it returned a bool; return the number of batches, a whole number."),
        (0, "it returned 0; a buffer has at least one batch."),
        (-1, "it returned -1; a buffer has at least one batch."),
    ],
)
def test_what_is_no_size_is_not_trained_with(answer, sentence):
    value = exercises_04.train_with(lambda batch_bytes, budget: answer, BATCH, BUDGET)
    assert value == sentence
    assert exercises_04.check_buffer(value, BATCH, BUDGET) == sentence


@pytest.mark.parametrize("unsolved", [None, ...])
def test_an_unsolved_answer_goes_back_as_it_is(unsolved):
    assert exercises_04.train_with(lambda batch_bytes, budget: unsolved, BATCH, BUDGET) is unsolved


def test_a_buffer_for_all_batches_is_killed_on_the_budget():
    """38 batches of 12.6 MB are 478 MB, almost twice the budget."""
    from helpers import run

    trial = run(
        exercises_04.train_with, lambda batch_bytes, budget: 38, BATCH, BUDGET, ram=exercises_04.BUDGET
    )
    assert trial.outcome == "killed"
    assert EXERCISES["04-a"].ram == "256 MB"


def test_the_stub_is_not_solved():
    def buffer_size(batch_bytes, budget):
        raise NotImplementedError

    assert str(exercise("04-a", buffer_size)).startswith("Not solved yet: write answer(batch_bytes, budget)")
