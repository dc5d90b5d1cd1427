"""Exercise 07-a: a batch that fits and makes use of the card passes; any other hears why not."""

import pytest

from helpers.course.exercises import EXERCISES
from helpers.course.nb07 import exercise as exercises_07

MB = 10**6


@pytest.mark.parametrize("peak", [210 * MB, 250 * MB, 299 * MB])
def test_a_batch_that_makes_use_of_the_card_passes(peak):
    assert exercises_07.check_batch({"batch": 14, "peak": peak}, 192, "300 MB") is None


def test_a_batch_that_leaves_most_of_the_card_free_hears_how_much():
    sentence = exercises_07.check_batch({"batch": 4, "peak": 80 * MB}, 192, "300 MB")
    assert sentence == "a batch of 4 uses 80 MB of 300 MB; take one that uses 210 MB at least."


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (12.5, "it returned a float; return the batch, a whole number."),
        ("12", "it returned a str; return the batch, a whole number."),
        (True, "it returned a bool; return the batch, a whole number."),
        (0, "it returned 0; a batch has at least one image."),
    ],
)
def test_what_is_no_batch_is_not_trained_with(answer, sentence):
    value = exercises_07.train_with(lambda size, card: answer, 192, "300 MB")
    assert value == sentence
    assert exercises_07.check_batch(value, 192, "300 MB") == sentence


@pytest.mark.parametrize("unsolved", [None, ...])
def test_an_unsolved_answer_goes_back_as_it_is(unsolved):
    assert exercises_07.train_with(lambda size, card: unsolved, 192, "300 MB") is unsolved


def test_a_batch_is_trained_with_and_its_peak_is_read():
    from helpers import run

    trial = run(exercises_07.train_with, lambda size, card: 2, 32, "100 MB", vram="100 MB")
    assert trial.value["batch"] == 2
    assert trial.value["peak"] == trial.peak_vram
    assert EXERCISES["07-a"].vram == "300 MB"
    assert "300 MB of VRAM and uses 210 MB" in EXERCISES["07-a"].statement
