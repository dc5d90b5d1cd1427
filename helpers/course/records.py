"""A sample as a record of a TFRecord file: a serialised `tf.train.Example` with a label and some bytes.

TensorFlow is imported in the functions: a notebook may import this module without waiting for it.
"""


def example(label, name, content):
    """The record of one sample, its bytes under that name beside the label; the same record each time."""
    import tensorflow as tf

    features = {
        name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[content])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    sample = tf.train.Example(features=tf.train.Features(feature=features))
    return sample.SerializeToString(deterministic=True)


def parse_example(record, name):
    """The bytes of that name in a record, and its label; for `map`."""
    import tensorflow as tf

    features = {name: tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    found = tf.io.parse_single_example(record, features)
    return found[name], found["label"]
