"""The exercise of notebook 05: what is not a batch of pictures hears why, and waiting is judged by the target."""

import pytest

from helpers.course.exercises import exercise
from helpers.course.nb05 import exercise as exercises_05

ALL = list(range(10))


def test_little_waiting_passes_and_much_does_not():
    assert exercises_05.check_feed({"idle": 0.05, "labels": ALL}, [], None) is None
    found = exercises_05.check_feed({"idle": 0.85, "labels": ALL}, [], None)
    assert found == "the device waits 85 % of the time; 30 % is the most."


def test_labels_that_are_missing_are_noticed():
    assert "not all from 0 to 9" in exercises_05.check_feed({"idle": 0.05, "labels": [0, 1]}, [], None)


def as_an_array(paths, storage):
    return [1, 2, 3]


def undecoded(paths, storage):
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(paths).map(storage.read).batch(256, drop_remainder=True)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (as_an_array, "it returned a list; return a tf.data.Dataset."),
        (undecoded, "a batch has the shapes ((256,), (256,)), not ((256, 32, 32, 3), (256,))"),
    ],
)
def test_answers_that_are_no_batches_of_pictures_hear_why(answer, words):
    result = exercise("05-a", answer)
    assert not result.passed
    assert words in str(result)
