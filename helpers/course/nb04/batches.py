"""The folder of digits as a `PyDataset`, in a module of its own so that worker processes can import it."""

import math

import keras

from helpers.course.datasets import digits, read_images


class DigitBatches(keras.utils.PyDataset):
    """Batches of training images, as float32 from 0 to 1, and their labels, read with Pillow."""

    def __init__(self, batch=32, **settings):
        super().__init__(**settings)
        self.batch = batch
        paths = sorted((digits() / "train").glob("*/*.jpg"))
        count = math.ceil(len(paths) / batch)
        # a batch is one path out of every `count`, so that it has all digits
        self.paths = [path for start in range(count) for path in paths[start::count]]

    def __len__(self):
        return math.ceil(len(self.paths) / self.batch)

    def __getitem__(self, number):
        images, labels = read_images(self.paths[number * self.batch : (number + 1) * self.batch])
        images /= 255
        return images, labels
