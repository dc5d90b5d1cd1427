"""A storage that is slow on purpose, and how slow the disk of this machine really is.

The latency is emulated: a step of the input pipeline that waits. It is TensorFlow's own and not Python, so that threads
wait side by side, as they do for a network, and another process can be handed the pipeline.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from helpers.course import page_cache
from helpers.course.digit_streams import read_file
from helpers.course.records import example

COUNT, SIZE = 400, 5_000
"""The files that a disk is timed with: as many and as large as the images of a few batches."""


@dataclass(frozen=True)
class SlowStorage:
    """A folder of images as a network share shows it: to open a file takes `seconds` more than on this disk."""

    seconds: float

    def read(self, path):
        """For `map`: the bytes of an image file and its label."""
        return read_file(self._found(path).get_single_element())

    def open(self, path):
        """For `interleave`: a dataset with the bytes of one image file and its label."""
        return self._found(path).map(read_file)

    def records(self, path):
        """For `interleave`: a dataset with the records of one TFRecord shard; only to open it takes its time."""
        import tensorflow as tf

        return self._found(path).flat_map(tf.data.TFRecordDataset)

    def _found(self, path):
        """A dataset with this path in it, which comes out after the latency."""
        import tensorflow as tf

        # Without `take` the end of the dataset would be waited for as well.
        return _delayed(tf.data.Dataset.from_tensors(path), self.seconds).take(1)


def _delayed(paths, seconds):
    """The same dataset of paths, each of which comes `seconds` later."""
    import tensorflow as tf

    delayed = tf.raw_ops.SleepDataset(
        input_dataset=tf.data.experimental.to_variant(paths),
        sleep_microseconds=tf.constant(round(seconds * 1e6), tf.int64),
        output_types=[paths.element_spec.dtype],
        output_shapes=[paths.element_spec.shape],
    )
    return tf.data.experimental.from_variant(delayed, paths.element_spec)


def write_shards(paths, folder, per_shard=200):
    """Copy image files into a few large ones, TFRecord shards; returns their paths. A record has a label and a JPEG."""
    import tensorflow as tf

    shards = []
    for start in range(0, len(paths), per_shard):
        shards.append(str(Path(folder, f"{start // per_shard:03}.tfrecord")))
        with tf.io.TFRecordWriter(shards[-1]) as writer:
            for path in map(Path, paths[start : start + per_shard]):
                writer.write(example(int(path.parent.name), "jpeg", path.read_bytes()))
    return shards


def time_reads(folder, count=COUNT, size=SIZE):
    """Write files and read each from the disk itself, then from the page cache; seconds per file of both.

    Whether anything below the page cache, the drive or the host of a virtual machine, has kept a copy, nobody can see
    from here.
    """
    paths = [Path(folder, f"{number}.bin") for number in range(count)]
    for path in paths:
        path.write_bytes(os.urandom(size))
        page_cache.drop(path)
    return {"cold": _seconds_per_file(paths), "warm": _seconds_per_file(paths)}


def _seconds_per_file(paths):
    began = time.perf_counter()
    for path in paths:
        path.read_bytes()
    return (time.perf_counter() - began) / len(paths)
