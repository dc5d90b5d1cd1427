"""The folder of digits as a `tf.data` stream: names of files, and what is read from them.

TensorFlow is imported in the functions: a notebook may import this module without waiting for it.
"""

import os
import random

from helpers.course.datasets import digits, read_images
from helpers.course.datasets.digit_images import SIZE

COUNT = 2400
IMAGE = SIZE * SIZE * 3 * 4
"""Bytes of one image as float32."""


def mixed_paths():
    """The names of the training images in an order without order that is always the same."""
    paths = _sorted_paths()
    random.Random(0).shuffle(paths)
    return paths


def _sorted_paths():
    return sorted(map(str, (digits() / "train").glob("*/*.jpg")))


def image_names(count=COUNT):
    """A dataset of the names of training images, sorted by label; fewer of them are spread over all labels."""
    import tensorflow as tf

    names = _sorted_paths()
    return tf.data.Dataset.from_tensor_slices(names[:: len(names) // count][:count])


def read_file(name):
    """The bytes of a JPEG file, and its label."""
    import tensorflow as tf

    return tf.io.read_file(name), label_of(name)


def decode(encoded, label):
    """The pixels of a JPEG file as float32 from 0 to 1, and its label."""
    import tensorflow as tf

    image = tf.io.decode_jpeg(encoded, channels=3)
    image.set_shape((SIZE, SIZE, 3))
    return tf.cast(image, tf.float32) / 255, label


def read_image(name):
    """The image of that name as float32 from 0 to 1, and its label."""
    return decode(*read_file(name))


def label_of(name):
    """The digit on an image: its folder is called after it."""
    import tensorflow as tf

    return tf.strings.to_number(tf.strings.split(name, os.sep)[-2], tf.int64)


def is_low_name(name):
    """True for the name of an image with a digit from 0 to 4."""
    return label_of(name) < 5


def is_low_digit(image, label):
    """True for an image with a digit from 0 to 4."""
    return label < 5


def accuracies_on_test_images(trained):
    """{name: accuracy on the held-out images} of `digit_model` with each of the {name: weights} given."""
    from helpers.course.models import digit_model

    images, labels = read_images(sorted((digits() / "test").glob("*/*.jpg")))
    model, found = digit_model(), {}
    for name, weights in trained.items():
        model.set_weights(weights)
        found[name] = model.evaluate(images / 255, labels, verbose=0)[1]
    return found
