"""The exercise of notebook 05: feed a model from a slow storage, so that its device hardly waits."""

from helpers.course.digit_streams import mixed_paths
from helpers.course.nb05.feeding import SIDE, train
from helpers.course.nb05.slow_storage import SlowStorage
from helpers.course.task import Exercise, once_solved, with_article
from helpers.text import percent

LATENCY = 0.0025
BATCH = 256
STEPS = 9
MOST = 0.3
"""The device waits about 85 % of the time for files read one after the other, and next to nothing for a good answer."""


def paths_and_storage():
    """The training images, and the storage that they are on."""
    return mixed_paths(), SlowStorage(LATENCY)


class NotBatches(Exception):
    """What a learner returned cannot be trained on; the argument says why."""


@once_solved
def feed_model(answer, paths, storage):
    """Train on a learner's batches, in the process that has the budget."""
    labels = set()

    def pipeline():  # called once the device has its core: a dataset may be the first thing of TensorFlow's to run
        batches = answer(paths, storage)
        _check_batches(batches)
        return batches.map(_noting(labels))

    try:
        feed = train(pipeline, STEPS)
    except NotBatches as problem:
        return problem.args[0]
    return {"idle": feed.idle, "labels": sorted(labels)}


def _check_batches(batches):
    import tensorflow as tf

    if not isinstance(batches, tf.data.Dataset):
        raise NotBatches(f"it returned {with_article(batches)}; return a tf.data.Dataset.")
    if problem := _shape_problem(batches.element_spec):
        raise NotBatches(problem)


def _shape_problem(spec):
    wanted = ((BATCH, SIDE, SIDE, 3), (BATCH,))
    if not isinstance(spec, tuple) or len(spec) != 2:
        return (
            "a batch is not a pair of images and labels; map with storage.read or storage.open, then decode."
        )
    shapes = tuple(tuple(part.shape) for part in spec)
    if shapes != wanted:
        return (
            f"a batch has the shapes {shapes}, not {wanted}; batch({BATCH}, drop_remainder=True) fixes them."
        )


def _noting(labels):
    """For `map`: pass batches on and remember which labels were among them."""
    import tensorflow as tf

    def remember(found):
        labels.update(found.tolist())
        return True

    def note(images, found):
        noted = tf.numpy_function(remember, [found], tf.bool)
        with tf.control_dependencies([noted]):
            return tf.identity(images), found

    return note


def check_feed(value, paths, storage):
    """Judge how long the device waited, and that all digits came."""
    if isinstance(value, str):
        return value
    if value["labels"] != list(range(10)):
        return f"the batches have the labels {value['labels']}, not all from 0 to 9."
    if value["idle"] > MOST:
        return f"the device waits {percent(value['idle'])} of the time; {percent(MOST)} is the most."
    return None


EXERCISES = {
    "05-a": Exercise(
        statement=(
            f"write answer(paths, storage) that returns a dataset of batches of {BATCH} for which the device "
            f"waits at most {percent(MOST)} of the time, on 300 MB of RAM."
        ),
        arguments=paths_and_storage,
        check=check_feed,
        ram="300 MB",
        job=feed_model,
    ),
}
