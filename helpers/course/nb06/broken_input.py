"""Input that cannot be read: skip it, count it, say what was lost, and stop when it is too much."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


class TooMuchLost(RuntimeError):
    """More of the input is gone than training should go on without."""


@dataclass
class Losses:
    """Counts what a pipeline read and what it had to skip; `limit` is the share that may be lost.

    >>> losses = Losses(expected=1000, limit=0.01)
    >>> losses.read(998)
    >>> losses.skip("train/7/0042-1.jpg", 1, "InvalidArgumentError")
    >>> print(losses)
    998 of 1,000 read, 1 skipped, 1 not reached
    train/7/0042-1.jpg: 1 (InvalidArgumentError)
    """

    expected: int
    limit: float = 0.01
    seen: int = 0
    skipped: list = field(default_factory=list)

    def read(self, count=1):
        self.seen += count

    def skip(self, source, count, reason):
        """Note what is lost and why; raises `TooMuchLost` as soon as that is over the limit."""
        self.skipped.append((str(source), count, reason))
        if self.lost > self.limit * self.expected:
            raise TooMuchLost(f"over {self.limit:.0%} of the input is lost; stopped.\n{self}")

    @property
    def lost(self):
        return sum(count for _, count, _ in self.skipped)

    def __str__(self):
        first = f"{self.seen:,} of {self.expected:,} read, {self.lost:,} skipped"
        if rest := self.expected - self.seen - self.lost:
            first += f", {rest:,} not reached"
        return "\n".join(
            [first, *(f"{source}: {count} ({reason})" for source, count, reason in self.skipped)]
        )


def surviving_records(shards, losses, compression=""):
    """The records of TFRecord files, shard by shard, without what cannot be read.

    `shards` maps each path to the number of records that were written. Behind a broken record the reader cannot go
    on, so the rest of that shard is lost. A file that was cut between two records gives no error at all: only
    the number tells.
    """
    import tensorflow as tf

    for path, written in shards.items():
        found, reason = 0, "ends early, without an error"
        try:
            for record in tf.data.TFRecordDataset(str(path), compression):
                found += 1
                losses.read()
                yield record
        except (tf.errors.DataLossError, tf.errors.OutOfRangeError) as error:
            reason = type(error).__name__
        if found < written:
            losses.skip(path.name, written - found, reason)


def surviving_images(paths, losses):
    """The decoded JPEG files, without those that cannot be decoded."""
    import tensorflow as tf

    for path in paths:
        try:
            image = tf.io.decode_jpeg(tf.io.read_file(str(path)), channels=3)
        except tf.errors.InvalidArgumentError as error:
            losses.skip(path.name, 1, type(error).__name__)
            continue
        losses.read()
        yield image


def cut_copy(path, folder, size):
    """A copy of a file that stops after `size` bytes, as an interrupted copy does."""
    return _copy(path, folder, path.read_bytes()[:size])


def flipped_copy(path, folder, place):
    """A copy of a file with one bit changed, as a bad disk or bad memory leaves it."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    return _copy(path, folder, content)


def _copy(path, folder, content):
    copy = Path(folder, path.name)
    copy.write_bytes(content)
    return copy


def count_or_error(read, *arguments):
    """How many records a reader gives, or the error that it ends with, without TensorFlow's words about itself."""
    try:
        return f"{sum(1 for _ in read(*arguments)):,} read, no error"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).split('}} ')[-1].split(' [Op:')[0]}"


def shorten_while_mapped(path):
    """Map a .npy file, let it be cut short, and touch its end: there is no page to fetch any more."""
    images = np.load(path, mmap_mode="r")
    os.truncate(path, 2**20)
    return images[-1].sum()
