"""The folder of digits: split before it grows, the same bytes each time, whole or not at all."""

import errno
import hashlib
import io
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from disks import mounted
from helpers.course import datasets
from helpers.course.datasets import digit_images, whole

FEW, HELD_OUT = 40, 10
FILES = HELD_OUT + digit_images.VERSIONS * (FEW - HELD_OUT)


@pytest.fixture(scope="session")
def originals():
    return digit_images.originals()


@pytest.fixture
def few(folder, originals, monkeypatch):
    """The first originals only, which are quick to draw."""
    images, labels = originals
    monkeypatch.setattr(digit_images, "originals", lambda: (images[:FEW], labels[:FEW]))
    monkeypatch.setattr(digit_images, "HELD_OUT", HELD_OUT)
    return folder


def contents(path):
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in path.rglob("*.jpg")}


def pixels(encoded):
    return np.asarray(Image.open(io.BytesIO(encoded)))


def test_the_originals_are_those_of_load_digits(originals):
    from sklearn.datasets import load_digits

    images, labels = originals
    assert (images * 16 == load_digits().images).all()
    assert (labels == load_digits().target).all()


def test_a_missing_package_is_named(folder, monkeypatch):
    def missing(name):
        raise digit_images.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(digit_images.metadata, "distribution", missing)
    with pytest.raises(ModuleNotFoundError, match="scikit-learn ships the digits; install it with: make lab"):
        datasets.make("digits")


def test_the_plan_holds_digits_out_before_it_varies_the_others(originals):
    _, labels = originals
    planned = list(digit_images.plan(labels, versions=2))
    held_out = {number for number, version, _ in planned if version is None}
    varied = Counter(number for number, version, _ in planned if version is not None)
    assert len(held_out) == 597
    assert held_out.isdisjoint(varied)
    assert len(held_out) + len(varied) == len(labels) == 1797
    assert set(varied.values()) == {2}
    assert len({name for _, _, name in planned}) == len(planned) == 597 + 2400
    for number, version, name in planned:
        split, label, file = name.split("/")
        assert (split, int(label)) == ("test" if version is None else "train", labels[number])
        assert int(file[:4]) == number


def test_more_copies_are_more_versions_of_the_same_digits(originals):
    _, labels = originals
    small, large = ({name for *_, name in digit_images.plan(labels, versions)} for versions in (2, 8))
    assert small < large
    assert len(large) == 597 + 8 * 1200


def test_the_bytes_are_the_same_each_time(few):
    path = datasets.make("digits")
    first = contents(path)
    (path / "about.json").unlink()
    assert contents(datasets.make("digits")) == first
    assert len(first) == len(set(first.values())) == FILES
    assert datasets.digits() == path


def test_another_process_draws_the_same_bytes(originals):
    images, _ = originals
    program = (
        "import hashlib; from helpers.course.datasets import digit_images as d; image = d.originals()[0][7];"
        "print(hashlib.sha256(d._jpeg(d.drawn(image, 7, 1))).hexdigest())"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    here = digit_images._jpeg(digit_images.drawn(images[7], 7, 1))
    assert shown.strip() == hashlib.sha256(here).hexdigest()


def test_every_file_is_a_colour_image_and_only_training_images_have_colours(few):
    for name, encoded in contents(datasets.make("digits")).items():
        image = pixels(encoded).astype(int)
        assert image.shape == (128, 128, 3)
        colours = np.ptp(image.mean(axis=(0, 1)))
        assert (colours > 1) == name.startswith("train/"), name


def test_a_test_image_is_its_original_enlarged(few, originals):
    images, _ = originals
    path = datasets.make("digits")
    for file in path.glob("test/*/*.jpg"):
        middle = 1 - pixels(file.read_bytes())[16:112, 16:112, 0] / 255
        small = middle.reshape(8, 12, 8, 12).mean(axis=(1, 3))
        assert np.corrcoef(small.ravel(), images[int(file.stem)].ravel())[0, 1] > 0.97


def test_a_training_image_still_shows_its_original(few, originals):
    """Upright and in the middle it would agree best; a small turn and shift leave most of it."""
    images, _ = originals
    path = datasets.make("digits")
    agreements = []
    for file in path.glob("train/*/*.jpg"):
        middle = -pixels(file.read_bytes())[16:112, 16:112].mean(axis=2)
        small = middle.reshape(8, 12, 8, 12).mean(axis=(1, 3))
        agreements.append(np.corrcoef(small.ravel(), images[int(file.stem[:4])].ravel())[0, 1])
    assert 0.5 < np.mean(agreements) < 0.97


def test_a_whole_folder_is_left_alone(few, monkeypatch):
    path = datasets.make("digits")
    monkeypatch.setattr(digit_images, "_jpeg", lambda image: pytest.fail("it was made again"))
    assert datasets.make("digits") == path


@pytest.mark.parametrize("damage", ["lose", "cut", "no about", "other recipe"])
def test_a_folder_that_is_not_whole_is_made_again(few, monkeypatch, damage):
    path = datasets.make("digits")
    before = contents(path)
    file = next(path.glob("train/*/*.jpg"))
    if damage == "lose":
        file.unlink()
    elif damage == "cut":
        os.truncate(file, 100)
    elif damage == "no about":
        (path / "about.json").write_text("{")
    else:
        monkeypatch.setattr(digit_images, "RECIPE", 99)
    datasets.make("digits")
    assert contents(path) == before
    assert [entry.name for entry in few.iterdir()] == ["digits"]


def test_a_missing_folder_names_the_command_that_makes_it(folder):
    with pytest.raises(FileNotFoundError, match=r"digits is missing; .*: python -m helpers data$"):
        datasets.digits()
    with pytest.raises(FileNotFoundError, match=r": python -m helpers data digits-4$"):
        datasets.digits(copies=4)


def stop_half_way(monkeypatch, error):
    """Draw a few images as always, then raise."""
    drawn, jpeg = [], digit_images._jpeg

    def stopping(image):
        drawn.append(image)
        if len(drawn) > FILES // 2:
            raise error
        return jpeg(image)

    monkeypatch.setattr(digit_images, "_jpeg", stopping)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_an_interruption_half_way_leaves_nothing(few, monkeypatch, interruption):
    stop_half_way(monkeypatch, interruption)
    with pytest.raises(interruption):
        datasets.make("digits")
    assert list(few.iterdir()) == []


def test_the_folder_of_a_quicker_process_stays(few, monkeypatch):
    path, put_in_place = few / "digits", whole._put_in_place

    def late(part, path):
        path.mkdir()
        (path / "theirs.jpg").touch()
        put_in_place(part, path)

    monkeypatch.setattr(whole, "_put_in_place", late)
    assert datasets.make("digits") == path
    assert [entry.name for entry in few.iterdir()] == ["digits"]
    assert [entry.name for entry in path.iterdir()] == ["theirs.jpg"]


def test_a_disk_that_fills_up_half_way_is_named_and_the_part_removed(few, monkeypatch):
    monkeypatch.setattr(whole, "_check_room", lambda path, size: None)
    with mounted(few, "size=100k"):
        with pytest.raises(OSError, match=r"digits needs .* and the disk has .* left; free some room"):
            datasets.make("digits")
        assert list(few.iterdir()) == []


def test_a_full_disk_needs_no_mount_to_be_explained(few, monkeypatch):
    stop_half_way(monkeypatch, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    with pytest.raises(OSError, match=r"digits needs .* and the disk has .* left"):
        datasets.make("digits")
    assert list(few.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_a_young_part_is_not(few):
    old, young = few / ".digits.0000.part", few / ".digits.1111.part"
    for part in (old, young):
        (part / "train").mkdir(parents=True)
    os.utime(old, (1, 1))
    datasets.make("digits")
    assert sorted(path.name for path in few.iterdir()) == [young.name, "digits"]


def test_the_command_makes_it_and_says_how_large_it_is(few, capsys):
    from helpers.__main__ import main

    assert main(["data", "digits"]) == 0
    assert capsys.readouterr().out.strip().endswith("KB")
