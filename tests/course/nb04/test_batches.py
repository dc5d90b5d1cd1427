"""The digits in batches: every image once, and all digits from the start."""

import numpy

from helpers import run
from helpers.course.datasets import digits


def batch_facts(batch):
    from helpers.course.nb04.batches import DigitBatches

    batches = DigitBatches(batch, workers=3)
    labels = numpy.concatenate([batches[number][1] for number in range(len(batches))])
    return {"labels": numpy.bincount(labels).tolist(), "first": batches[0], "workers": batches.workers}


def test_batches_have_every_image_once_and_all_digits_from_the_start():
    facts = run(batch_facts, 100, ram="300 MB").value
    folders = [len(list((digits() / "train" / str(label)).glob("*.jpg"))) for label in range(10)]
    assert facts["labels"] == folders
    assert facts["workers"] == 3
    images, labels = facts["first"]
    assert images.dtype == "float32"
    assert 0 <= images.min() < 0.5 < images.max() <= 1
    assert len(set(labels.tolist())) == 10
