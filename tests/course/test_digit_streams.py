"""The digits as a stream: names and images belong together, whichever way they are read."""

import numpy

from helpers import run
from helpers.course.datasets import digits, read_images
from helpers.course.digit_streams import COUNT, IMAGE


def stream_facts():
    from helpers.course import digit_streams as streams

    names = streams.image_names()
    low = names.filter(streams.is_low_name).map(streams.read_image)
    first = next(iter(names.map(streams.read_image)))
    return {
        "count": len(names),
        "some": [name.decode() for name in streams.image_names(30).as_numpy_iterator()],
        "labels": sorted({int(label) for _, label in low.as_numpy_iterator()}),
        "high": sum(1 for _ in names.filter(streams.is_low_name)),
        "low": sum(1 for _ in names.map(streams.read_file).filter(streams.is_low_digit)),
        "first": first[0].numpy(),
    }


def test_names_labels_and_pixels_are_those_of_the_folder():
    facts = run(stream_facts, ram="300 MB").value
    paths = sorted((digits() / "train").glob("*/*.jpg"))
    assert facts["count"] == len(paths) == COUNT
    assert len(facts["some"]) == len(set(facts["some"])) == 30
    assert {name.split("/")[-2] for name in facts["some"]} == set("0123456789")
    assert facts["labels"] == [0, 1, 2, 3, 4]
    assert facts["low"] == facts["high"] == sum(int(path.parent.name) < 5 for path in paths)
    assert facts["first"].nbytes == IMAGE
    # decoders of JPEG round differently
    assert numpy.abs(facts["first"] - read_images(paths[:1])[0][0] / 255).mean() < 0.01


def accuracies_of_a_constant_answer():
    from helpers.course.digit_streams import accuracies_on_test_images
    from helpers.course.models import digit_model

    weights = [0 * part for part in digit_model().get_weights()]
    weights[-1][3] = 1  # the bias of the digit 3
    return accuracies_on_test_images({"always 3": weights})


def test_a_model_that_always_answers_3_is_right_about_every_3():
    share = len(list((digits() / "test" / "3").glob("*.jpg"))) / len(
        list((digits() / "test").glob("*/*.jpg"))
    )
    found = run(accuracies_of_a_constant_answer, ram="600 MB").value
    assert abs(found["always 3"] - share) < 1e-6
