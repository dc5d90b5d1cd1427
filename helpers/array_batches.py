"""Batches of images for Keras, out of anything that can be sliced: an array, a memory map, an HDF5 dataset."""

import math

import numpy as np

BATCH = 16


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
