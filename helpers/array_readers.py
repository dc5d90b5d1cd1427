"""Reads the images of `datasets.arrays()` batch by batch, out of a .npy file or TFRecord shards."""

import numpy as np

from helpers.array_batches import BATCH, places_in_batches

BUFFER = 256
FILES_AT_ONCE = 4


def npy_images(path, shuffled=False, mmap_mode=None):
    """Batches of an array that is loaded, or mapped and read as it is touched."""
    images = np.load(path, mmap_mode=mmap_mode)
    for places in places_in_batches(len(images), shuffled):
        yield images[places]


def parse_image(record):
    """Take one record apart: the image as bytes of 128 x 128 x 3, and its label."""
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    found = tf.io.parse_single_example(record, features)
    return tf.reshape(tf.io.decode_raw(found["image"], tf.uint8), (128, 128, 3)), found["label"]


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
