"""The exercise of notebook 09: a network for a small card that still knows its digits."""

import numpy

from helpers.course.nb09.small_digits import accuracy, learn, small_digits
from helpers.course.task import Exercise, once_solved, with_article

SIZE = 256
BATCH = 8
BUDGET = "80 MB"
EPOCHS = 6
WANTED = 0.93


@once_solved
def train_small_and_large(answer, train, test):
    """Learn the digits with the answer's small network, then train its large one for two steps on the budget.

    Returns the accuracy, or a sentence about what is wrong with a network.
    """
    import keras

    keras.utils.set_random_seed(0)
    for size in (train[0].shape[1], SIZE):
        network = answer(size)
        if problem := network_problem(network, size):
            return problem
        if size != SIZE:
            share = accuracy(learn(network, *train, epochs=EPOCHS), *test)
            continue
        network.compile("adam", loss="sparse_categorical_crossentropy", jit_compile=False)
        images = numpy.random.default_rng(0).random((BATCH, SIZE, SIZE, 3), dtype="float32")
        for _ in range(2):
            network.train_on_batch(images, numpy.arange(BATCH) % 10)
    return share


def network_problem(network, size):
    """Say what is wrong with a network that cannot take the images or tell ten digits apart, or return None."""
    import keras

    if not isinstance(network, keras.Model):
        return f"it returned {with_article(network)}; return a Keras model."
    wanted = (None, size, size, 3), (None, 10)
    if not network.built or (network.input_shape, network.output_shape) != wanted:
        found = f"{network.input_shape} to {network.output_shape}" if network.built else "no shape yet"
        return f"answer({size}) has {found}; make it {wanted[0]} to {wanted[1]}."
    return None


def check_share(value, train, test):
    """Judge the share of digits that an answer's network names right."""
    if isinstance(value, str):
        return value
    if value < WANTED:
        return f"it fits, but names {value:.1%} of the digits right, not {WANTED:.0%}."
    return None


EXERCISES = {
    "09-a": Exercise(
        statement=(
            f"write answer(size) that returns a Keras network for ten classes of size x size x 3 images. At {SIZE}, "
            f"two steps with batch {BATCH} and Adam fit into {BUDGET} of VRAM; at 16, it names {WANTED:.0%} "
            f"of the digits right after {EPOCHS} epochs."
        ),
        arguments=small_digits,
        check=check_share,
        vram=BUDGET,
        job=train_small_and_large,
    ),
}
