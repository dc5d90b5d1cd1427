"""Exercise 09-a: a network that fits and learns passes, and others are told what fell short."""

import numpy
import pytest

from helpers.course.exercises import exercise
from helpers.course.models import image_cnn
from helpers.course.nb09 import exercise as exercises_09
from helpers.course.nb09.small_digits import small_digits

SMALL = {"filters": (16, 32, 64), "head": 128, "strides": True}


def test_strides_and_fewer_filters_pass():
    result = exercise("09-a", lambda size: image_cnn(size, **SMALL))
    assert result.passed, str(result)
    assert result.trial.peak_vram < 0.85 * result.trial.vram_budget


def test_a_network_that_knows_too_few_digits_hears_how_many():
    sentence = exercises_09.check_share(0.8042, None, None)
    assert sentence == "it fits, but names 80.4% of the digits right, not 93%."
    assert exercises_09.check_share(0.93, None, None) is None
    assert exercises_09.check_share("it is wrong.", None, None) == "it is wrong."


def flat(size):
    import keras

    return keras.Sequential([keras.Input((size, size, 3)), keras.layers.Flatten(), keras.layers.Dense(3)])


def without_input(size):
    import keras

    return keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(10)])


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda size: 5, "it returned an int; return a Keras model."),
        (flat, "answer(16) has (None, 16, 16, 3) to (None, 3); make it (None, 16, 16, 3) to (None, 10)."),
        (without_input, "answer(16) has no shape yet; make it (None, 16, 16, 3) to (None, 10)."),
        (
            lambda size: image_cnn(32, **SMALL),
            "answer(16) has (None, 32, 32, 3) to (None, 10); make it (None, 16, 16, 3) to (None, 10).",
        ),
    ],
)
def test_what_is_no_network_for_the_digits_is_named(answer, sentence):
    images = numpy.zeros((1, 16, 16, 3))
    assert exercises_09.train_small_and_large(answer, (images, [0]), (images, [0])) == sentence


def test_no_network_at_all_is_no_answer():
    images = numpy.zeros((1, 16, 16, 3))
    assert exercises_09.train_small_and_large(lambda size: None, (images, [0]), (images, [0])) is None


def test_the_digits_are_split_before_they_are_used():
    (images, labels), (test_images, test_labels) = small_digits()
    assert len(images) + len(test_images) == 1797
    assert set(labels) == set(test_labels) == set(range(10))
    assert images.min() == 0
    assert images.max() == 1
    known = {image.tobytes() for image in images}
    assert not any(image.tobytes() in known for image in test_images)


def test_digits_of_another_size_say_which_there_are():
    with pytest.raises(ValueError, match="size=12 is no multiple of 8; write 8, 16 or 32"):
        small_digits(12)
