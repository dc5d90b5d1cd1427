"""TFRecord files without TensorFlow: the bytes are TensorFlow's own."""

import numpy as np
import pytest

from helpers import run
from helpers.tfrecord_files import crc32c, example, tfrecords


def written_by_tensorflow(images, labels, path):
    import tensorflow as tf

    def feature(**kind):
        return tf.train.Feature(**kind)

    with tf.io.TFRecordWriter(str(path)) as writer:
        for image, label in zip(images, labels, strict=True):
            features = {
                "image": feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
                "label": feature(int64_list=tf.train.Int64List(value=[label])),
            }
            whole = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(whole.SerializeToString(deterministic=True))


@pytest.mark.parametrize("shape", [(5, 4, 4, 3), (3, 128, 128, 3)])
def test_records_are_those_that_tensorflow_writes(tmp_path, shape):
    images = np.random.default_rng(0).integers(0, 256, shape, "uint8")
    labels = [0, 9, 127, 1, 2][: shape[0]]
    assert run(written_by_tensorflow, images, labels, tmp_path / "theirs").outcome == "finished"
    assert b"".join(tfrecords(images, labels)) == (tmp_path / "theirs").read_bytes()


def test_the_checksum_has_the_values_of_its_standard():
    """From RFC 3720, section B.4."""
    rows = np.array([[0] * 32, [255] * 32, range(32), range(31, -1, -1)], "uint8")
    assert [hex(value) for value in crc32c(rows)] == ["0x8a9136aa", "0x62a8ab43", "0x46dd794e", "0x113fdb5c"]


@pytest.mark.parametrize("length", [4, 5, 8, 127, 128, 129, 1000])
def test_the_checksum_does_not_depend_on_how_a_row_is_cut(length):
    row = np.random.default_rng(length).integers(0, 256, length, "uint8")
    value = 0xFFFFFFFF
    for byte in row.tolist():
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    assert crc32c(row[None])[0] == value ^ 0xFFFFFFFF


def test_other_bytes_give_another_example():
    assert example(b"abc", 1) != example(b"abd", 1) != example(b"abd", 2)
