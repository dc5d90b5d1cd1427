"""Trains a small network on images that a pipeline delivers, and says how long its device waited for them.

Without a GPU one core is the device: it runs the steps of the model and nothing else. The input has the other cores.
"""

import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from helpers.course import digit_streams
from helpers.course.records import parse_example
from helpers.gpu import has_gpu
from helpers.jobs.channel import phase
from helpers.jobs.input_clock import InputClock

SIDE = 32
"""Pixels of a small picture, each way."""
FILTERS = (16, 64, 80)
THREADS = Path("/proc/self/task")


@dataclass(frozen=True)
class Feed:
    """How a model was fed: images per second, and the fraction of the time in which the device waited."""

    rate: float
    idle: float


def decode(jpeg, label):
    """For `map`: the pixels of an image, made small, with values from 0 to 1."""
    import tensorflow as tf

    return tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (SIDE, SIDE)) / 255, label


def decode_record(record):
    """For `map`: the same from a record of a TFRecord shard."""
    return decode(*parse_example(record, "jpeg"))


def decode_whole(record):
    """For `map`: all pixels of the image in a record, as numbers with a point."""
    return digit_streams.decode(*parse_example(record, "jpeg"))


def shrink(image, label):
    """For `map`: a small picture of a whole one."""
    import tensorflow as tf

    return tf.image.resize(image, (SIDE, SIDE)), label


def vary(images, labels):
    """For `map`: vary contrast and brightness at random, for one image or for each image of a batch."""
    import tensorflow as tf

    one_each = tf.concat([tf.shape(images)[:-3], [1, 1, 1]], axis=0)
    contrast, brightness = tf.random.uniform(one_each, 0.8, 1.2), tf.random.uniform(one_each, -0.1, 0.1)
    middle = tf.reduce_mean(images, (-3, -2, -1), keepdims=True)
    return tf.clip_by_value((images - middle) * contrast + middle + brightness, 0, 1), labels


def train(pipeline, steps, prefetch=0, one_core=False):
    """Train on `steps` batches of `pipeline()`, a dataset without an end; returns a `Feed`.

    `prefetch` is how many batches are made ready ahead of the model. `one_core` leaves the input no core of its own:
    it shares the device's.
    """
    with device_core(one_core) as move_input:
        dataset = pipeline()
        return _fit(_model(dataset), dataset, steps, prefetch, move_input)


def side_by_side(pipelines, steps, prefetch, rounds):
    """Train one model by turns on several pipelines, given by name; returns a list of `Feed`s for each name.

    Every second round goes the other way round, so that whatever drifts hits all alike.
    """
    with device_core() as move_input:
        datasets = {name: pipeline() for name, pipeline in pipelines.items()}
        model = _model(next(iter(datasets.values())))
        feeds = {name: [] for name in pipelines}
        for number in range(rounds):
            for name in list(datasets)[:: -1 if number % 2 else 1]:
                feeds[name].append(_fit(model, datasets[name], steps, prefetch, move_input))
    return feeds


def _model(dataset):
    """A model that is compiled for the batches of a dataset: one step on zeros traces it."""
    import tensorflow as tf

    from helpers.course.models import image_cnn

    model = image_cnn(SIDE, filters=FILTERS, head=32)
    zeros = tf.nest.map_structure(lambda spec: tf.zeros(spec.shape, spec.dtype), dataset.element_spec)
    with phase("compile"):
        model.fit(tf.data.Dataset.from_tensors(zeros), shuffle=False, verbose=0)
    return model


def _fit(model, dataset, steps, prefetch, move_input):
    from keras.callbacks import LambdaCallback

    clock = InputClock()
    batch = int(dataset.element_spec[0].shape[0])
    watched = clock.watch(dataset)  # a batch counts as delivered when it comes to lie in the buffer
    watched = (watched.prefetch(prefetch) if prefetch else watched).with_options(plain_options())
    callbacks = [clock, LambdaCallback(on_train_batch_end=move_input)]
    with phase("fit", items=steps * batch):
        model.fit(watched, steps_per_epoch=steps, callbacks=callbacks, shuffle=False, verbose=0)
    return Feed(rate=(clock.steps - 1) * batch / clock.trained, idle=clock.idle)


def plain_options():
    """TensorFlow does what the pipeline says and no more, with the same number of threads on every machine."""
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    options.threading.private_threadpool_size = 8
    return options


@contextmanager
def device_core(one_core=False):
    """Run the steps of a model on one core, the device. Gives a function, to call after a step, that moves the
    threads of the input, which come with it, to the other cores."""
    import tensorflow as tf

    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2 or not THREADS.exists() or has_gpu():
        yield lambda *arguments: None
        return
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    os.sched_setaffinity(0, cores[:1])
    tf.function(tf.zeros)((1,))  # starts the one thread that runs the steps
    model_threads = _threads()

    def move_input(step, logs=None):
        if not one_core and step < 2:
            for thread in _threads() - model_threads:
                _move(thread, cores[1:])

    try:
        yield move_input
    finally:
        os.sched_setaffinity(0, cores)


def _threads():
    return {int(thread.name) for thread in THREADS.iterdir()}


def _move(thread, cores):
    with suppress(ProcessLookupError):  # it has ended
        os.sched_setaffinity(thread, cores)
