"""Reads images batch by batch: slices of an array, a memory map or an HDF5 dataset, .npy files, TFRecord shards."""

import math

import numpy as np

from helpers.course.records import parse_example

BATCH = 16
BUFFER = 256
FILES_AT_ONCE = 4


def image_batches(images, labels, batch=BATCH):
    """A `PyDataset` that takes one slice at a time, in the order of the file, as numbers from 0 to 1.

    A slice of a memory map or of an HDF5 dataset is read when it is taken.
    """
    import keras

    class ImageBatches(keras.utils.PyDataset):
        def __len__(self):
            return math.ceil(len(images) / batch)

        def __getitem__(self, number):
            some = slice(number * batch, (number + 1) * batch)
            return images[some] / np.float32(255), labels[some]

    return ImageBatches()


def places_in_batches(count, shuffled=False, batch=BATCH):
    """The places from 0 to `count` in batches, in order or in a random order that is the same each time.

    >>> [places.tolist() for places in places_in_batches(5, batch=2)]
    [[0, 1], [2, 3], [4]]
    """
    order = np.random.default_rng(0).permutation(count) if shuffled else np.arange(count)
    return [order[start : start + batch] for start in range(0, count, batch)]


def npy_images(path, shuffled=False, mmap_mode=None):
    """Batches of an array that is loaded, or mapped and read as it is touched."""
    images = np.load(path, mmap_mode=mmap_mode)
    for places in places_in_batches(len(images), shuffled):
        yield images[places]


def parse_image(record):
    """Take one record apart: the image as bytes of 128 x 128 x 3, and its label."""
    import tensorflow as tf

    image, label = parse_example(record, "image")
    return tf.reshape(tf.io.decode_raw(image, tf.uint8), (128, 128, 3)), label


def scale(images, labels):
    """Bytes as numbers from 0 to 1."""
    import tensorflow as tf

    return tf.cast(images, tf.float32) / 255, labels


def shuffled_records(shards, packing=""):
    """Records of all shards, mixed as well as a stream can be: shards in random order, several at once, a buffer."""
    import tensorflow as tf

    files = tf.data.Dataset.from_tensor_slices(shards).shuffle(len(shards), seed=0)
    records = files.interleave(lambda name: tf.data.TFRecordDataset(name, packing), FILES_AT_ONCE)
    return records.shuffle(BUFFER, seed=0)


def tfrecord_images(path, shuffled=False):
    """Batches of the images in a folder of TFRecord shards."""
    import tensorflow as tf

    shards, packing = sorted(map(str, path.iterdir())), "GZIP" if "gzip" in path.name else ""
    records = shuffled_records(shards, packing) if shuffled else tf.data.TFRecordDataset(shards, packing)
    for images, _ in records.map(parse_image).batch(BATCH).prefetch(1):
        yield images.numpy()
