"""The folder of arrays: the same images in every format, the same bytes each time, whole or not at all."""

import errno
import gc
import hashlib
import json
import os
import sys
import time

import h5py
import numpy as np
import pytest
from pyarrow import parquet

from disks import mounted
from helpers import run
from helpers.__main__ import main
from helpers.course import datasets
from helpers.course.datasets import digit_arrays, digit_images, whole

FEW = 30


@pytest.fixture
def few(folder, monkeypatch):
    """A small array, which is quick to draw."""
    monkeypatch.setattr(digit_arrays, "IMAGES", FEW)
    monkeypatch.setattr(digit_arrays, "PIECE", 12)
    return folder


def digests(path):
    found = sorted(file for file in path.rglob("*") if file.is_file())
    return {
        file.relative_to(path).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in found
    }


def read_records(folder, compression):
    import tensorflow as tf

    parsed = [
        tf.train.Example.FromString(record.numpy()).features.feature
        for record in tf.data.TFRecordDataset([str(path) for path in sorted(folder.iterdir())], compression)
    ]
    images = [np.frombuffer(each["image"].bytes_list.value[0], "uint8").tolist() for each in parsed]
    return images, [each["label"].int64_list.value[0] for each in parsed]


def test_every_format_holds_the_same_images_and_labels(few):
    path = datasets.make("arrays")
    images, labels = np.load(path / "images.npy"), np.load(path / "labels.npy")
    assert images.shape == (FEW, 128, 128, 3)
    assert images.dtype == labels.dtype == "uint8"
    for name in ("images.h5", "images-gzip.h5", "images-default-chunks.h5"):
        with h5py.File(path / name) as file:
            assert (file["images"][:] == images).all(), name
            assert (file["labels"][:] == labels).all(), name
    table = parquet.read_table(path / "images.parquet")
    assert [np.frombuffer(each, "uint8").tolist() for each in table["image"].to_pylist()] == images.reshape(
        FEW, -1
    ).tolist()
    assert table["label"].to_pylist() == labels.tolist()
    for name, compression in (("tfrecord", ""), ("tfrecord-gzip", "GZIP")):
        found = run(read_records, path / name, compression).value  # TensorFlow checks the checksums
        assert found == (images.reshape(FEW, -1).tolist(), labels.tolist()), name


def test_the_chunks_are_what_the_notebook_says(few):
    path = datasets.make("arrays")
    with h5py.File(path / "images-gzip.h5") as good, h5py.File(path / "images-default-chunks.h5") as bad:
        assert good["images"].chunks == (1, 128, 128, 3)
        assert bad["images"].chunks[0] > 1
        assert bad["images"].chunks[1] < 128
        assert good["images"].compression == bad["images"].compression == "gzip"
    assert parquet.ParquetFile(path / "images.parquet").num_row_groups == 3
    assert len(list((path / "tfrecord").iterdir())) == 8


def test_the_images_are_training_digits_without_noise_in_a_random_order():
    planned = digit_arrays._planned(1)
    _, labels = digit_images.originals()
    held_out = {number for number, version, _ in digit_images.plan(labels, 1) if version is None}
    assert len(planned) == len(set(planned)) == 3000
    assert {version for _, version in planned} == {0, 1, 2}
    assert held_out.isdisjoint(number for number, _ in planned)
    assert planned != sorted(planned)
    assert len(digit_arrays._planned(2)) == 6000


def test_an_image_is_its_digit_drawn_without_noise(few):
    path = datasets.make("arrays")
    originals, _ = digit_images.originals()
    number, version = digit_arrays._planned(1)[7]
    expected = digit_images.drawn(originals[number], number, version, noisy=False)
    image = np.load(path / "images.npy", mmap_mode="r")[7]
    assert (image == expected).all()
    noisy = digit_images.drawn(originals[number], number, version).astype(int)
    assert 1 < np.abs(noisy - image).mean() < 20


def test_the_bytes_are_the_same_each_time(few):
    path = datasets.make("arrays")
    first = digests(path)
    (path / "about.json").unlink()
    time.sleep(1.1)  # a time stamp in whole seconds would differ now
    assert digests(datasets.make("arrays")) == first
    assert len(first) == 6 + 2 * 8 + 1
    assert datasets.arrays() == path


def test_a_whole_folder_is_left_alone(few, monkeypatch):
    path = datasets.make("arrays")
    monkeypatch.setattr(digit_arrays, "_planned", lambda copies: pytest.fail("it was made again"))
    assert datasets.make("arrays") == path


@pytest.mark.parametrize("damage", ["lose", "cut", "no about", "other recipe"])
def test_a_folder_that_is_not_whole_is_made_again(few, monkeypatch, damage):
    path = datasets.make("arrays")
    before = digests(path)
    if damage == "lose":
        (path / "images.h5").unlink()
    elif damage == "cut":
        os.truncate(path / "tfrecord" / digit_arrays.tfrecord_name(3), 100)
    elif damage == "no about":
        (path / "about.json").write_text("{")
    else:
        about = json.loads((path / "about.json").read_text())
        (path / "about.json").write_text(json.dumps(about | {"recipe": 99}))
    datasets.make("arrays")
    assert digests(path) == before
    assert [entry.name for entry in few.iterdir()] == ["arrays"]


def test_a_missing_tensorflow_is_named_before_anything_is_made(folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert main(["data", "arrays"]) == 1
    assert capsys.readouterr().err == (
        'TensorFlow writes the TFRecord files of arrays; install it with: pip install "oom-on-purpose[course]"\n'
    )
    assert list(folder.iterdir()) == []


def test_a_missing_folder_names_the_command_that_makes_it(folder):
    with pytest.raises(FileNotFoundError, match=r"arrays is missing; .*: python -m helpers data$"):
        datasets.arrays()


WRITERS = ["_write_npy", *(writer.__name__ for writer in digit_arrays.WRITERS)]


def stop_in(monkeypatch, name, error):
    """Let a writer do its work, and raise before it returns."""
    writer = getattr(digit_arrays, name)

    def stopping(*arguments):
        writer(*arguments)
        raise error

    monkeypatch.setattr(digit_arrays, name, stopping)
    changed = tuple(getattr(digit_arrays, each.__name__) for each in digit_arrays.WRITERS)
    monkeypatch.setattr(digit_arrays, "WRITERS", changed)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, RuntimeError])
@pytest.mark.parametrize("name", ["_write_npy", "_write_tfrecords"])
def test_an_interruption_half_way_leaves_nothing(few, monkeypatch, name, interruption):
    stop_in(monkeypatch, name, interruption)
    with pytest.raises(interruption):
        datasets.make("arrays")
    assert list(few.iterdir()) == []


@pytest.mark.parametrize("name", WRITERS)
def test_a_disk_that_fills_up_in_any_format_is_named_and_the_part_removed(few, monkeypatch, name):
    """Each writer in turn finds the disk too small for what it writes, and says so in its library's own way."""
    monkeypatch.setattr(whole, "_check_room", lambda path, size: None)
    chosen = [writer for writer in digit_arrays.WRITERS if writer.__name__ == name]
    monkeypatch.setattr(digit_arrays, "WRITERS", chosen)
    room = "1m" if name == "_write_npy" else "1600k"
    with mounted(few, f"size={room}"):
        with pytest.raises(OSError, match=r"arrays needs .* and the disk has .* left; free some room"):
            datasets.make("arrays")
        assert list(few.iterdir()) == []
        gc.collect()  # the error's traceback still holds the map of images.npy, and a disk in use stays mounted


def test_a_full_disk_needs_no_mount_to_be_explained(few, monkeypatch):
    stop_in(monkeypatch, "_write_parquet", RuntimeError(f"write failed: {os.strerror(errno.ENOSPC)}"))
    with pytest.raises(OSError, match=r"arrays needs .* and the disk has .* left"):
        datasets.make("arrays")
    assert list(few.iterdir()) == []
