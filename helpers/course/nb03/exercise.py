"""The exercise of notebook 03: the colour statistics of a folder whose pixels do not fit."""

import functools
from pathlib import Path

import numpy

from helpers.course import datasets
from helpers.course.task import Exercise, number, with_article

COLOURS = ("red", "green", "blue")
TOLERANCE = 0.002
"""Of 0 to 1: JPEG decoders differ by a small part of a grey level, and a wrong answer is farther off."""


def training_folder():
    """The folder of training images, whose pixels are twice the budget as bytes and eight times as float32."""
    return (str(datasets.digits() / "train"),)


@functools.cache
def expected_statistics(folder):
    """Compute the means and the standard deviations of the colours, one image at a time."""
    from PIL import Image

    sums, squares = numpy.zeros(3), numpy.zeros(3)
    paths = list(Path(folder).glob("*/*.jpg"))
    for path in paths:
        pixels = numpy.asarray(Image.open(path)).reshape(-1, 3) / 255
        sums += pixels.mean(axis=0)
        squares += (pixels**2).mean(axis=0)
    means = sums / len(paths)
    return {"mean": means, "standard deviation": numpy.sqrt(squares / len(paths) - means**2)}


def check_statistics(value, folder):
    """Judge the mean and the standard deviation of each colour."""
    try:
        found = numpy.asarray(value, dtype="float64")
    except (TypeError, ValueError):
        found = None
    if found is None or found.shape != (2, 3):
        return f"it returned {with_article(value)}; return (means, deviations), three numbers each."
    for (name, wanted), row in zip(expected_statistics(folder).items(), found, strict=True):
        for colour, one, right in zip(COLOURS, row.tolist(), wanted.tolist(), strict=True):
            if not abs(one - right) < TOLERANCE:
                return f"the {name} of {colour} is {number(one)}, not {right:.3f}{_hint(name, one, right)}."
    return None


def _hint(name, found, right):
    """A reason for two mistakes that are often made."""
    if abs(found / 255 - right) < TOLERANCE:
        return "; scale the values to 0..1"
    if name == "standard deviation" and 0 < found < right:
        return "; deviations of single images have no mean that helps: add up the squares of all pixels"
    return ""


EXERCISES = {
    "03-a": Exercise(
        statement=(
            "write answer(folder) that returns the mean and the standard deviation of red, green and blue "
            "over all pixels in folder/*/*.jpg, scaled to 0..1, as (means, deviations), on 60 MB of RAM."
        ),
        arguments=training_folder,
        check=check_statistics,
        ram="60 MB",
    ),
}
