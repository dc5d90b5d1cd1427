"""Makes one array of images in every format of notebook 06: .npy, HDF5, TFRecord and Parquet, in one folder.

`arrays()` is the folder `data/arrays`. Its array has 3,000 images of 128 x 128 pixels in three colours, one byte per
value, and a label for each: the 1,200 training digits of `digit_images`, drawn in three versions each, without the
noise, in a random order that is the same in every file. The last 600 in that order are left out. `arrays(copies=2)` has
twice as many images, from twice as many versions.
"""

import bisect
import contextlib
import errno
import gzip
import importlib.util
import io
import json
import os
import shutil

import numpy as np

from helpers.course.datasets import digit_images
from helpers.course.datasets.kind import Kind
from helpers.course.datasets.whole import whole_folder
from helpers.course.records import example

ARRAYS = Kind("arrays")
SHAPE = (digit_images.SIZE, digit_images.SIZE, 3)
IMAGE_BYTES = SHAPE[0] * SHAPE[1] * SHAPE[2]
IMAGES = 3000
VERSIONS = 3
SHARDS = 8
ROW_GROUP = 96
PIECE = 96
"""Images that a writer holds at a time."""
SEED = 0
RECIPE = 1
"""Raise it when the files change: a folder of another recipe is made again."""
ROOM_PER_IMAGE = 4.2 * IMAGE_BYTES
"""Three files hold the bytes as they are, and four hold them compressed."""


def arrays(copies=1):
    """The path of the folder with the array in every format."""
    return ARRAYS.find(copies)


def make_arrays(copies=1):
    """Make the folder with the array in every format, unless it is there whole, and return its path."""
    from tqdm import tqdm

    path = ARRAYS.path(copies)
    if _is_whole(path):
        return path
    if importlib.util.find_spec("tensorflow") is None:
        advice = 'install it with: pip install "oom-on-purpose[course]"'
        raise ModuleNotFoundError(f"TensorFlow writes the TFRecord files of {path.name}; {advice}")
    planned = _planned(copies)
    steps = len(planned) * (1 + len(WRITERS))
    with (
        whole_folder(path, int(ROOM_PER_IMAGE * len(planned))) as part,
        tqdm(total=steps, desc=path.name, unit=" images", delay=2, disable=None) as progress,
        _full_disks_named(),
    ):
        labels = _write_npy(part, planned, progress)
        images = np.load(part / "images.npy", mmap_mode="r")
        for write in WRITERS:
            write(part, _pieces(images, labels, progress), len(images))
        about = {"recipe": RECIPE, "images": len(images), "files": _sizes(part)}
        (part / "about.json").write_text(json.dumps(about, indent=1))
    return path


def tfrecord_name(shard):
    """The name of one of the TFRecord files, which says how many there are.

    >>> tfrecord_name(3)
    'images-00003-of-00008.tfrecord'
    """
    return f"images-{shard:05}-of-{SHARDS:05}.tfrecord"


def _is_whole(path):
    """True if every file has the size that it was made with, by the recipe of today."""
    try:
        about = json.loads((path / "about.json").read_text())
    except (OSError, ValueError):
        return False
    return about.get("recipe") == RECIPE and about.get("files") == _sizes(path)


def _sizes(path):
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != "about.json")
    return {file.relative_to(path).as_posix(): file.stat().st_size for file in files}


def _planned(copies):
    """Which images come in which order: numbers of originals and their versions."""
    _, labels = digit_images.originals()
    plan = digit_images.plan(labels, VERSIONS * copies)
    varied = [(number, version) for number, version, _ in plan if version is not None]
    order = np.random.default_rng(SEED).permutation(len(varied))
    return [varied[place] for place in order[: IMAGES * copies]]


def _pieces(images, labels, progress):
    """The images and labels, some at a time; the progress counts those that the writer has taken."""
    for start in range(0, len(images), PIECE):
        piece = slice(start, start + PIECE)
        yield start, images[piece], labels[piece]
        progress.update(len(labels[piece]))


def _write_npy(folder, planned, progress):
    """Draw the images into images.npy, one after the other, write labels.npy, and return the labels.

    Written as a stream: a full disk is an error here, and would end the process if the file were mapped.
    """
    originals, all_labels = digit_images.originals()
    labels = np.array([all_labels[number] for number, _ in planned], "uint8")
    header = {"descr": "|u1", "fortran_order": False, "shape": (len(planned), *SHAPE)}
    with open(folder / "images.npy", "xb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for number, version in planned:
            file.write(digit_images.drawn(originals[number], number, version, noisy=False).data)
            progress.update()
    np.save(folder / "labels.npy", labels)
    return labels


def _write_hdf5(folder, pieces, count, name, **options):
    """Make the file in memory and write it then: HDF5 crashes the interpreter when a disk fills up under its hands."""
    import h5py

    made = io.BytesIO()
    with h5py.File(made, "w") as file:
        images = file.create_dataset("images", (count, *SHAPE), "uint8", track_times=False, **options)
        labels = file.create_dataset("labels", (count,), "uint8", track_times=False)
        # A chunk that spans many images is written once if all of them come together.
        for start, some_images, some_labels in _joined(pieces, images.chunks[0]):
            images[start : start + len(some_images)] = some_images
            labels[start : start + len(some_labels)] = some_labels
    with open(folder / name, "xb") as file:
        file.write(made.getbuffer())


def _joined(pieces, least):
    """Pieces with at least as many images, a multiple of `least` but for the last."""
    waiting = []
    for piece in pieces:
        waiting.append(piece)
        length = sum(len(labels) for _, _, labels in waiting)
        if length % least == 0 or length > 8 * least:
            yield _together(waiting)
            waiting = []
    if waiting:
        yield _together(waiting)


def _together(pieces):
    starts, images, labels = zip(*pieces, strict=True)
    return starts[0], np.concatenate(images), np.concatenate(labels)


def _write_plain_hdf5(folder, pieces, count):
    _write_hdf5(folder, pieces, count, "images.h5", chunks=(1, *SHAPE))


def _write_gzip_hdf5(folder, pieces, count):
    _write_hdf5(folder, pieces, count, "images-gzip.h5", chunks=(1, *SHAPE), compression=1)


def _write_default_chunks_hdf5(folder, pieces, count):
    """Compressed without a chunk shape: h5py has to choose one."""
    _write_hdf5(folder, pieces, count, "images-default-chunks.h5", compression=1)


def _write_tfrecords(folder, pieces, count):
    """The same shards twice: as they are, and compressed."""
    with _errors_unseen():
        import tensorflow as tf  # tells about itself, whatever its log level

    shards, ends = _shards(folder / "tfrecord"), [count * (shard + 1) // SHARDS for shard in range(SHARDS)]
    with contextlib.ExitStack() as open_files:
        writers = [open_files.enter_context(tf.io.TFRecordWriter(str(path))) for path in shards]
        for start, images, labels in pieces:
            for place, (image, label) in enumerate(zip(images, labels, strict=True), start):
                writers[bisect.bisect_right(ends, place)].write(example(int(label), "image", image.tobytes()))
    for path, packed in zip(shards, _shards(folder / "tfrecord-gzip"), strict=True):
        # No name and no time in the header: the same images give the same bytes.
        with (
            open(path, "rb") as plain,
            open(packed, "xb") as file,
            gzip.GzipFile("", "wb", 1, file, mtime=0) as target,
        ):
            shutil.copyfileobj(plain, target)


@contextlib.contextmanager
def _errors_unseen():
    """What libraries write to the standard error goes nowhere, also what their C++ code writes."""
    shown = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(shown, 2)
        os.close(shown)


def _shards(folder):
    folder.mkdir()
    return [folder / tfrecord_name(shard) for shard in range(SHARDS)]


def _write_parquet(folder, pieces, count):
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema({"image": pyarrow.binary(IMAGE_BYTES), "label": pyarrow.uint8()})
    options = {
        "compression": "zstd",
        "compression_level": 3,
        "use_dictionary": False,
        "write_statistics": False,
    }
    with parquet.ParquetWriter(folder / "images.parquet", schema, **options) as writer:
        for _, images, labels in pieces:
            buffers = [None, pyarrow.py_buffer(np.ascontiguousarray(images))]
            column = pyarrow.FixedSizeBinaryArray.from_buffers(
                schema.field("image").type, len(images), buffers
            )
            table = pyarrow.table([column, pyarrow.array(labels)], schema)
            writer.write_table(table, row_group_size=ROW_GROUP)


WRITERS = (
    _write_plain_hdf5,
    _write_gzip_hdf5,
    _write_default_chunks_hdf5,
    _write_tfrecords,
    _write_parquet,
)


@contextlib.contextmanager
def _full_disks_named():
    """A full disk is an OSError with its number, whichever library met it."""
    full = os.strerror(errno.ENOSPC)
    try:
        yield
    except Exception as error:
        if full in str(error) and getattr(error, "errno", None) != errno.ENOSPC:
            raise OSError(errno.ENOSPC, full) from error
        raise
