"""The exercise of notebook 03: right statistics pass, and wrong ones hear which number is wrong, and why."""

from pathlib import Path

import numpy
import pytest
from PIL import Image

from helpers.course.exercises import exercise
from helpers.course.nb03 import exercise as exercises_03


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A few images of one colour each, in place of the digits."""
    folder = tmp_path_factory.mktemp("data")
    random = numpy.random.default_rng(0)
    for number in range(20):
        path = folder / "digits" / "train" / str(number % 10) / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        noise = random.integers(-20, 20, (32, 32, 3))
        Image.fromarray((random.integers(30, 220, 3) + noise).astype("uint8")).save(path, quality=95)
    return folder


@pytest.fixture(autouse=True)
def folder(data, monkeypatch):
    monkeypatch.setenv("OOM_DATA", str(data))
    return str(data / "digits" / "train")


def all_pixels(folder):
    images = [numpy.asarray(Image.open(path)) for path in Path(folder).glob("*/*.jpg")]
    return numpy.concatenate([image.reshape(-1, 3) for image in images]) / 255


def statistics(folder):
    pixels = all_pixels(folder)
    return pixels.mean(axis=0), pixels.std(axis=0)


def mean_of_deviations(folder):
    images = [numpy.asarray(Image.open(path)).reshape(-1, 3) / 255 for path in Path(folder).glob("*/*.jpg")]
    return all_pixels(folder).mean(axis=0), numpy.mean([image.std(axis=0) for image in images], axis=0)


def test_the_right_statistics_pass_on_the_budget():
    result = exercise("03-a", statistics)
    assert result.passed, str(result)
    assert " of 60 MB" in str(result)


def test_lists_will_do_and_another_decoder_may_differ_a_little(folder):
    means, deviations = statistics(folder)
    assert exercises_03.check_statistics([list(means), list(deviations)], folder) is None
    assert exercises_03.check_statistics((means + 0.001, deviations - 0.001), folder) is None


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda folder: tuple(255 * part for part in statistics(folder)), "; scale the values to 0..1."),
        (mean_of_deviations, "; deviations of single images have no mean that helps: add up the squares"),
        (lambda folder: (statistics(folder)[0][::-1], statistics(folder)[1]), "the mean of red is "),
        (lambda folder: (statistics(folder)[0], [float("nan")] * 3), "the standard deviation of red is nan"),
        (lambda folder: statistics(folder)[0], "it returned a ndarray; return (means, deviations)"),
        (lambda folder: {"red": 0.5}, "it returned a dict; return (means, deviations)"),
        (lambda folder: ([0.5, 0.5], [0.1]), "it returned a tuple; return (means, deviations)"),
    ],
)
def test_wrong_statistics_hear_what_is_wrong(folder, wrong, sentence):
    assert sentence in exercises_03.check_statistics(wrong(folder), folder)


def test_an_answer_that_stacks_all_images_hears_how_much_it_used():
    def stacked(folder):
        pixels = numpy.ones((2400, 128, 128, 3), "uint8")
        return pixels.mean(axis=(0, 1, 2)), pixels.std(axis=(0, 1, 2))

    result = exercise("03-a", stacked)
    assert not result.passed
    assert "of 60 MB RAM" in str(result)
