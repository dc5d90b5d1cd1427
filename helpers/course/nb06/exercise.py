"""The exercises of notebook 06: mean images out of an array that does not fit, and an HDF5 file put right."""

import functools
import tempfile
from pathlib import Path

import numpy

from helpers.course import datasets, page_cache
from helpers.course.nb06.reading_speed import bytes_asked_for
from helpers.course.task import Exercise, with_article

LABELS = 10
TOLERANCE = 0.5
"""Of 0 to 255: a mean in float32 is off by far less, and that of other images by more."""
SAMPLES = 12
MOST_BYTES = 100_000


def folder_of_arrays():
    """The folder with the array, which is more than twice the budget.

    The file is put into the page cache first: a group of the kernel charges a job for the pages that it is the first to
    read, and its own memory would compete with them.
    """
    folder = datasets.arrays()
    page_cache.fill(folder / "images.npy")
    return (folder,)


@functools.cache
def expected_means(folder):
    """Compute the mean image of each label, reading the array in pieces."""
    images, labels = numpy.load(folder / "images.npy", mmap_mode="r"), numpy.load(folder / "labels.npy")
    sums = numpy.zeros((LABELS, *images.shape[1:]))
    for start in range(0, len(images), 100):
        piece = slice(start, start + 100)
        numpy.add.at(sums, labels[piece], images[piece])
    return sums / numpy.bincount(labels, minlength=LABELS)[:, None, None, None]


def check_means(value, folder):
    """Judge the mean image of each label."""
    expected = expected_means(folder)
    if not hasattr(value, "shape"):
        return f"it returned {with_article(value)}; return one array of shape {expected.shape}."
    if tuple(value.shape) != expected.shape:
        return f"it returned an array of shape {tuple(value.shape)}, not {expected.shape}."
    for label in range(LABELS):
        if not numpy.allclose(value[label], expected[label], rtol=0, atol=TOLERANCE):
            found, wanted = (float(numpy.mean(means[label])) for means in (value, expected))
            return f"the image of label {label} is not the mean: its values average {found:.1f}, not {wanted:.1f}."
    return None


def badly_chunked_file():
    """The HDF5 file with the chunks that h5py chose, and the same images to compare with."""
    folder = datasets.arrays()
    return folder / "images-default-chunks.h5", folder / "images.npy"


def rechunk_and_read(answer, source, images):
    """Let a learner's function write its file, then read some images of it and count the bytes."""
    import h5py

    target = Path(tempfile.gettempdir(), "rechunked.h5")
    if (returned := answer(source, target)) is ...:
        return returned
    if not target.exists():
        return "it wrote no file at target."
    wanted = numpy.load(images, mmap_mode="r")
    with h5py.File(target) as file:
        if "images" not in file:
            return 'the new file has no dataset "images".'
        found = file["images"]
        if found.shape != wanted.shape or found.dtype != wanted.dtype:
            return (
                f"the images are {found.dtype} of shape {found.shape}, not {wanted.dtype} of {wanted.shape}."
            )
        places = numpy.random.default_rng(1).permutation(len(wanted))[:SAMPLES]
        before = bytes_asked_for()
        same = all((found[place] == wanted[place]).all() for place in places)
        read = None if before is None else (bytes_asked_for() - before) / SAMPLES
        return {"same": same, "compression": found.compression, "read": read, "chunks": found.chunks}


def check_rechunked(value, source, images):
    """Judge the new file: the same images, compressed, and few bytes for one of them."""
    if isinstance(value, str):
        return value
    if not value["same"]:
        return "the new file has other images than the old one, or has them in another order."
    if value["compression"] is None:
        return "the new file is not compressed."
    if value["read"] is not None and value["read"] > MOST_BYTES:
        return f"one image reads {value['read'] / 1e3:,.0f} KB; its chunks are {value['chunks']}."
    return None


EXERCISES = {
    "06-a": Exercise(
        statement=(
            "write answer(folder) that returns the mean image of each label as an array of shape "
            "(10, 128, 128, 3), from images.npy and labels.npy, on 60 MB of RAM."
        ),
        arguments=folder_of_arrays,
        check=check_means,
        ram="60 MB",
    ),
    "06-b": Exercise(
        statement=(
            "write answer(source, target) that copies the dataset images into a new HDF5 file, compressed, so "
            "that one image reads less than 100 KB, on 60 MB of RAM and within a minute."
        ),
        arguments=badly_chunked_file,
        check=check_rechunked,
        ram="60 MB",
        timeout=60,
        job=rechunk_and_read,
    ),
}
