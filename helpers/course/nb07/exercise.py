"""The exercise of notebook 07: a batch that suits a card."""

import numpy

from helpers.course.models import image_cnn
from helpers.course.task import Exercise, not_a_count, once_solved
from helpers.gpu import has_gpu
from helpers.units import format_bytes, parse_bytes

SIZE, CARD, LEAST = 192, "300 MB", 0.7
STEPS = 2


def size_and_card():
    """What the learner's function gets."""
    return SIZE, CARD


@once_solved
def train_with(answer, size, card):
    """Ask a learner's function for a batch, and train with it, in the process that has the card."""
    batch = answer(size, card)
    if wrong := not_a_count(batch, "the batch", "a batch has at least one image"):
        return wrong
    images = _images(int(batch), size)
    image_cnn(size).fit(images, steps_per_epoch=STEPS, shuffle=False, verbose=0)
    return {"batch": int(batch), "peak": _peak()}


def _images(batch, size):
    for _ in range(STEPS):
        yield numpy.zeros((batch, size, size, 3), "float32"), numpy.zeros(batch, "int32")


def _peak():
    import tensorflow as tf

    return tf.config.experimental.get_memory_info("GPU:0" if has_gpu() else "CPU:0")["peak"]


def check_batch(value, size, card):
    """Judge a batch that trained: it has to make use of the card."""
    if isinstance(value, str):
        return value
    least = int(LEAST * parse_bytes(card))
    if value["peak"] >= least:
        return None
    used, wanted = format_bytes(value["peak"]), format_bytes(least)
    return f"a batch of {value['batch']} uses {used} of {card}; take one that uses {wanted} at least."


EXERCISES = {
    "07-a": Exercise(
        statement=(
            f"write answer(size, card) that returns a batch for image_cnn({SIZE}) that trains on {CARD} of VRAM "
            f"and uses {format_bytes(int(LEAST * parse_bytes(CARD)))} of it at least."
        ),
        arguments=size_and_card,
        check=check_batch,
        vram=CARD,
        job=train_with,
    ),
}
