"""The exercises of notebook 04: a shuffle that mixes names, and a prefetch buffer that suits a budget."""

import functools
from pathlib import Path

import numpy

from helpers import datasets
from helpers.digit_streams import IMAGE, image_names, read_image
from helpers.exercises_task import Exercise, with_article
from helpers.freed_memory import return_freed_memory
from helpers.models import digit_model
from helpers.pauses import checkpoints
from helpers.units import format_bytes, parse_bytes

BATCH, EPOCHS = 64, 2
SHUFFLE_RAM, PREFETCH_RAM = "160 MB", "256 MB"
PREFETCH_BATCH, LEAST = 64, 0.35
FAR = 200
"""Places that an image moves on average, at least: a small buffer of images moves them less."""


def training_folder():
    """The folder of training images, whose pixels as float32 are three times the budget."""
    return (str(datasets.digits() / "train"),)


@functools.cache
def sorted_images(folder):
    """Fingerprint and label of each image in the order of the names, one image at a time."""
    found = [datasets.read_images([path]) for path in sorted(Path(folder).glob("*/*.jpg"))]
    return [(_fingerprint(images[0] / 255), int(labels[0])) for images, labels in found]


def _fingerprint(image):
    """A few numbers that tell images apart, and that decoders of JPEG agree on."""
    return (
        numpy.asarray(image, "float64").reshape(8, 16, 8, 16, 3).mean(axis=(1, 3)).ravel().astype("float32")
    )


def go_over_epochs(answer, folder):
    """Make a learner's batches and go over them twice, in the process that has the budget."""
    batches = answer(folder)
    if batches is None or batches is ...:
        return batches
    if not hasattr(batches, "__iter__"):
        return f"it returned {with_article(batches)}; return a tf.data.Dataset of batches."
    return [_epoch(batches) for _ in range(EPOCHS)]


def _epoch(batches):
    """What one epoch shows, image by image, or a sentence about the first batch that is wrong."""
    prints, labels, size = [], [], BATCH
    for place, batch in enumerate(batches):
        if problem := _batch_problem(batch):
            return f"batch {place} {problem}"
        if size != BATCH or len(batch[1]) > BATCH:
            return f"batch {place} has {len(batch[1])} images after one of {size}; give each but the last {BATCH}."
        size = len(batch[1])
        prints += [_fingerprint(image) for image in numpy.asarray(batch[0])]
        labels += numpy.asarray(batch[1]).tolist()
    return {"prints": numpy.array(prints), "labels": labels}


def _batch_problem(batch):
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        return f"is {with_article(batch)}; make each batch a pair (images, labels)."
    shapes = tuple(tuple(numpy.shape(part)) for part in batch)
    rows = shapes[0][:1]
    if shapes == ((*rows, 128, 128, 3), rows):
        return None
    return f"has shapes {shapes[0]} and {shapes[1]}; make them (rows, 128, 128, 3) and (rows,)."


def check_shuffled(value, folder):
    """Judge two epochs: every image once beside its own label, mixed over the whole folder, and mixed anew."""
    orders = []
    for epoch in value if isinstance(value, list) else [value]:
        if isinstance(epoch, str):
            return epoch
        places = _places(epoch, folder)
        if isinstance(places, str):
            return places
        orders.append(places)
    moved = numpy.abs(orders[0] - numpy.arange(len(orders[0]))).mean()
    if moved < FAR:
        return f"an image moves {moved:.0f} places on average; mix the whole folder, so that it moves {FAR} at least."
    if (orders[0] == orders[1]).all():
        return "both epochs have the same order; mix anew in each epoch."
    return None


def _places(epoch, folder):
    """The place among the sorted names of each image in the order in which it came, or a sentence."""
    expected = sorted_images(folder)
    if len(epoch["labels"]) != len(expected):
        return f"an epoch has {len(epoch['labels']):,} images, not {len(expected):,}."
    known = numpy.array([fingerprint for fingerprint, _ in expected])
    # squared distances of all pairs, without an array of all differences
    found = epoch["prints"]
    distances = (known**2).sum(axis=1) - 2 * found @ known.T + (found**2).sum(axis=1)[:, None]
    places = distances.argmin(axis=1)
    if distances.min(axis=1).max() > 1e-2:
        return "some images are not those of the folder; scale the values to 0..1 and change nothing else."
    if len(set(places.tolist())) != len(expected):
        return "some images come twice in an epoch, and others never."
    if [expected[place][1] for place in places] != epoch["labels"]:
        return "an image has the label of another one: shuffle both together."
    return places


def batch_and_budget():
    """What the learner's function gets."""
    return PREFETCH_BATCH * IMAGE, parse_bytes(PREFETCH_RAM)


def train_with(answer, batch_bytes, budget):
    """Ask a learner's function for a buffer, and train behind it until it was full, in the process with the budget."""
    size = answer(batch_bytes, budget)
    if size is None or size is ...:
        return size
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        return f"it returned {with_article(size)}; return the number of batches, a whole number."
    if size < 1:
        return f"it returned {size}; a buffer has at least one batch."
    return_freed_memory()
    batches = image_names().map(read_image).batch(batch_bytes // IMAGE).prefetch(int(size))
    digit_model().fit(batches, shuffle=False, verbose=0, callbacks=[checkpoints([1])])
    return int(size)


def check_prefetch(value, batch_bytes, budget):
    """Judge a buffer that the job lived with: it has to make use of the budget."""
    if isinstance(value, str):
        return value
    least = int(LEAST * budget)
    if value * batch_bytes >= least:
        return None
    held, wanted = format_bytes(value * batch_bytes), format_bytes(least)
    return f"a buffer of {value} holds {held}; take one that holds {wanted} at least."


EXERCISES = {
    "04-a": Exercise(
        statement=(
            f"write answer(folder) that returns a tf.data.Dataset of batches of {BATCH} (images, labels) from "
            f"folder/*/*.jpg, float32 from 0 to 1, mixed over the whole folder and anew in each epoch, "
            f"on {SHUFFLE_RAM} of RAM."
        ),
        arguments=training_folder,
        check=check_shuffled,
        ram=SHUFFLE_RAM,
        job=go_over_epochs,
    ),
    "04-b": Exercise(
        statement=(
            "write answer(batch_bytes, budget) that returns a size for prefetch with which the job lives on "
            f"{PREFETCH_RAM} of RAM, and which uses {LEAST:.0%} of it at least for the buffer."
        ),
        arguments=batch_and_budget,
        check=check_prefetch,
        ram=PREFETCH_RAM,
        job=train_with,
    ),
}
