"""The exercises of notebook 06: right answers pass, wrong ones hear what is wrong."""

import h5py
import numpy
import pytest

from helpers.course.exercises import exercise
from helpers.course.nb06 import exercise as exercises_06

COUNT = 1200


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Less and simpler images in place of the digits, in the two files that the exercises read."""
    folder = tmp_path_factory.mktemp("data") / "arrays"
    folder.mkdir()
    random = numpy.random.default_rng(0)
    labels = random.integers(0, 10, COUNT, "uint8")
    images = (20 * labels[:, None, None, None] + random.integers(0, 50, (COUNT, 32, 32, 3))).astype("uint8")
    numpy.save(folder / "images.npy", images)
    numpy.save(folder / "labels.npy", labels)
    with h5py.File(folder / "images-default-chunks.h5", "w") as file:
        file.create_dataset("images", data=images, chunks=(COUNT, 16, 16, 1), compression=1)
    return folder


@pytest.fixture(autouse=True)
def folder(data, monkeypatch):
    monkeypatch.setenv("OOM_DATA", str(data.parent))
    return data


def means(folder, images_of=lambda images, mine: images[mine]):
    images, labels = numpy.load(folder / "images.npy", mmap_mode="r"), numpy.load(folder / "labels.npy")
    return numpy.stack([images_of(images, labels == label).mean(axis=0) for label in range(10)])


def test_the_right_means_pass_on_the_budget():
    result = exercise("06-a", means)
    assert result.passed, str(result)
    assert " of 60 MB" in str(result)


def test_float32_means_pass(folder):
    assert exercises_06.check_means(means(folder).astype("float32"), folder) is None


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            lambda folder: list(means(folder)),
            "it returned a list; return one array of shape (10, 32, 32, 3).",
        ),
        (lambda folder: means(folder)[:9], "an array of shape (9, 32, 32, 3), not (10, 32, 32, 3)."),
        (lambda folder: means(folder)[::-1], "the image of label 0 is not the mean: its values average 2"),
        (lambda folder: means(folder) / 255, "the image of label 0 is not the mean"),
        (lambda folder: means(folder, lambda images, mine: images[mine][:20]), "is not the mean"),
        (lambda folder: means(folder) * numpy.nan, "is not the mean: its values average nan"),
    ],
)
def test_wrong_means_hear_what_is_wrong(folder, wrong, sentence):
    assert sentence in exercises_06.check_means(wrong(folder), folder)


def test_an_answer_that_loads_everything_hears_how_much_it_used():
    def loaded(folder):
        images = numpy.ones((3000, 128, 128, 3), "uint8")
        return images.mean(axis=0)

    result = exercise("06-a", loaded)
    assert not result.passed
    assert "of 60 MB RAM" in str(result)


def rechunk(source, target, chunks=(1, 32, 32, 3), name="images", compression=1, change=0, count=COUNT):
    with h5py.File(source) as old, h5py.File(target, "w") as new:
        images = old["images"][:count] + numpy.uint8(change)
        new.create_dataset(name, data=images, chunks=chunks, compression=compression)


def test_a_file_with_the_right_chunks_passes():
    result = exercise("06-b", lambda source, target: rechunk(source, target))
    assert result.passed, str(result)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"chunks": (COUNT, 8, 8, 1)}, "one image reads "),
        ({"name": "pictures"}, 'the new file has no dataset "images".'),
        ({"compression": None}, "the new file is not compressed."),
        ({"change": 1}, "the new file has other images than the old one"),
        ({"count": 7}, "the images are uint8 of shape (7, 32, 32, 3), not uint8 of (1200, 32, 32, 3)."),
    ],
)
def test_a_wrong_file_hears_what_is_wrong(options, sentence, tmp_path, monkeypatch):
    assert sentence in judged(
        monkeypatch, tmp_path, lambda source, target: rechunk(source, target, **options)
    )


def test_no_file_is_named(tmp_path, monkeypatch):
    assert "it wrote no file at target" in judged(monkeypatch, tmp_path, lambda source, target: 7)


def judged(monkeypatch, tmp_path, answer):
    """What the check says of an answer, without a budget."""
    monkeypatch.setattr(exercises_06.tempfile, "gettempdir", lambda: str(tmp_path))
    arguments = exercises_06.badly_chunked_file()
    return exercises_06.check_rechunked(exercises_06.rechunk_and_read(answer, *arguments), *arguments)
