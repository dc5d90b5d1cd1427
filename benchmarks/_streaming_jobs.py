"""The jobs of the streaming benchmark: one model for each kind of data, fed from RAM and streamed in two ways.

They are those of notebooks 02 and 03 in small. Each takes its data, how many samples that has, and the epochs, and
returns the samples that it trained on per second after the first epoch, in which the model is traced.
"""

import io
import math
import time

import numpy as np
import pandas

from helpers.course.datasets import read_images
from helpers.course.models import delay_model, digit_model

NUMBERS, WORDS = ["month", "hour", "distance"], ["carrier", "origin", "dest"]
LINES = 8192
PLACES = 48
BUFFER = 20_000
"""Lines that wait to be shuffled: fewer than the smallest file has, so that all sizes fill it."""
IMAGES = 32


def samples_per_second(model, samples, epochs, *data, **settings):
    """Fit the model; None after a single epoch."""
    import keras

    ends = []
    clock = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: ends.append(time.perf_counter()))
    model.fit(*data, epochs=epochs, callbacks=[clock], verbose=0, **settings)
    return samples * (epochs - 1) / (ends[-1] - ends[0]) if epochs > 1 else None


# --- A CSV file: will this flight be late? -----------------------------------------------------------------


def column_types(path):
    """The columns that the jobs read, as small as they can be; the words in a fixed order."""
    words = pandas.read_csv(path, usecols=WORDS)
    types = {"month": "int8", "day": "int8", "arr_delay": "float32"}
    types |= {name: pandas.CategoricalDtype(sorted(words[name].unique())) for name in words}
    return types | {"distance": "int16", "hour": "int8"}


def width(types):
    """How many features a row has."""
    return len(NUMBERS) + sum(len(types[name].categories) for name in WORDS)


def encoded(source, types):
    """Features and labels of the rows to train on, from a file or a piece of one."""
    rows = pandas.read_csv(source, usecols=list(types), dtype=types)
    features = pandas.get_dummies(rows[NUMBERS + WORDS])
    kept = rows["arr_delay"].notna() & (rows["day"] % 5 != 0)
    return features[kept].to_numpy("float32"), (rows["arr_delay"][kept] > 15).to_numpy("float32")


def csv_from_ram(path, types, samples, epochs):
    features, late = encoded(path, types)
    batch = math.ceil(len(late) * LINES / samples)
    return samples_per_second(delay_model(width(types)), samples, epochs, features, late, batch_size=batch)


def csv_from_py_dataset(path, types, samples, epochs):
    import keras

    batches = math.ceil(samples / LINES)

    class Flights(keras.utils.PyDataset):
        def __len__(self):
            return batches

        def __getitem__(self, number):
            return encoded(spread_lines(path, number, batches), types)

    return samples_per_second(delay_model(width(types)), samples, epochs, Flights())


def spread_lines(path, number, count):
    """The lines of batch `number` of `count`, in short stretches from all over the file, below the header."""
    length = math.ceil(path.stat().st_size / (count * PLACES))
    with path.open("rb") as file:
        pieces = [file.readline()]
        for place in range(PLACES):
            start = (place * count + number) * length
            file.seek(start)
            file.readline()  # began in the stretch before
            pieces.append(file.read(max(0, start + length - file.tell())) + file.readline())
    return io.BytesIO(b"".join(pieces))


def csv_from_lines(path, types, samples, epochs):
    import tensorflow as tf

    lines = tf.data.TextLineDataset(str(path)).skip(1).shuffle(BUFFER).batch(LINES)
    batches = lines.map(line_parser(path, types), num_parallel_calls=2).prefetch(1)
    batches = batches.apply(tf.data.experimental.assert_cardinality(math.ceil(samples / LINES)))
    return samples_per_second(delay_model(width(types)), samples, epochs, batches, shuffle=False)


def line_parser(path, types):
    """A function from lines to features and labels, as `encoded` makes them."""
    import tensorflow as tf
    from keras import layers

    columns = list(pandas.read_csv(path, nrows=0))
    places = [columns.index(name) for name in types]
    defaults = ["" if name in WORDS else float("nan") for name in types]
    lookups = {name: layers.StringLookup(vocabulary=list(types[name].categories)) for name in WORDS}

    def parse(lines):
        lines = tf.strings.regex_replace(lines, r"\bNA\b", "")
        row = dict(zip(types, tf.io.decode_csv(lines, defaults, select_cols=places), strict=True))
        parts = [tf.stack([row[name] for name in NUMBERS], axis=1)]
        parts += [tf.one_hot(lookups[name](row[name]) - 1, len(types[name].categories)) for name in WORDS]
        kept = (row["day"] % 5 != 0) & tf.math.is_finite(row["arr_delay"])
        return tf.boolean_mask(tf.concat(parts, axis=1), kept), tf.boolean_mask(row["arr_delay"] > 15, kept)

    return parse


# --- A folder of JPEGs: which digit is it? -----------------------------------------------------------------


def images_from_ram(paths, epochs):
    images, labels = read_images(paths)
    images /= 255
    return samples_per_second(digit_model(), len(paths), epochs, images, labels, batch_size=IMAGES)


def images_from_py_dataset(paths, epochs):
    import keras

    mixed = np.random.default_rng(0).permutation(paths)

    class Digits(keras.utils.PyDataset):
        def __len__(self):
            return math.ceil(len(mixed) / IMAGES)

        def __getitem__(self, number):
            images, labels = read_images(mixed[number * IMAGES : (number + 1) * IMAGES])
            images /= 255
            return images, labels

    return samples_per_second(digit_model(), len(paths), epochs, Digits())


def images_from_names(paths, epochs):
    import tensorflow as tf

    def read(path):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        label = tf.strings.to_number(tf.strings.split(path, "/")[-2], tf.int32)
        return tf.image.convert_image_dtype(image, "float32"), label

    names = tf.data.Dataset.from_tensor_slices([str(path) for path in paths]).shuffle(len(paths))
    batches = names.map(read, num_parallel_calls=2).batch(IMAGES).prefetch(1)
    return samples_per_second(digit_model(), len(paths), epochs, batches, shuffle=False)
