"""Makes the image folder of the course: scikit-learn's handwritten digits, split, enlarged and varied, as JPEG files.

`digits()` is the folder `data/digits`. Of the 1,797 real digits of 8 x 8 grey values that scikit-learn ships, 597 are
held out first. `test/<label>/` has those, black on white and only enlarged. `train/<label>/` has the other 1,200, each
in two versions: turned, shifted, in inks and on papers of different colours and contrast, with noise. Every file is a
colour image of 128 x 128 pixels. `digits(copies=4)` has four times as many versions of the same 1,200, and the same
test images. A file is named after its original, and in train/ after the version: `train/7/0042-1.jpg`.
"""

import io
import json
from dataclasses import dataclass
from importlib import metadata

import numpy as np

from helpers.course.datasets.kind import Kind
from helpers.course.datasets.whole import total_size, whole_folder

DIGITS = Kind("digits")
SIZE = 128
VERSIONS = 2
HELD_OUT = 597
SEED = 0
RECIPE = 1
"""Raise it when the images change: a folder of another recipe is made again."""
ROOM_PER_FILE = 8192
"""What a file of 4 to 5 kB takes on a disk with blocks of 4 KiB."""


@dataclass(frozen=True)
class Look:
    """How a digit is drawn: colours and contrast from 0 to 1, the shift in parts of the image's width."""

    paper: tuple = (1.0, 1.0, 1.0)
    ink: tuple = (0.0, 0.0, 0.0)
    contrast: float = 1.0
    degrees: float = 0.0
    shift: tuple = (0.0, 0.0)
    noise: float = 0.0


def digits(copies=1):
    """The path of the folder of digits with that many times the training images."""
    return DIGITS.find(copies)


def make_digits(copies=1):
    """Make the folder of digits, unless it is there whole, and return its path."""
    from tqdm import tqdm

    path = DIGITS.path(copies)
    if _is_whole(path):
        return path
    images, labels = originals()
    planned = list(plan(labels, VERSIONS * copies))
    with whole_folder(path, ROOM_PER_FILE * len(planned)) as part:
        for number, version, name in tqdm(planned, desc=path.name, unit=" images", delay=2, disable=None):
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            (part / name).write_bytes(_jpeg(drawn(images[number], number, version)))
        about = {"recipe": RECIPE, "files": len(planned), "bytes": total_size(part)}
        (part / "about.json").write_text(json.dumps(about))
    return path


def read_images(paths, dtype="float32"):
    """The images at these paths in one array that is made beforehand, values from 0 to 255, and their labels."""
    from PIL import Image

    images = np.empty((len(paths), SIZE, SIZE, 3), dtype)
    for place, path in enumerate(paths):
        images[place] = Image.open(path)
    return images, np.array([int(path.parent.name) for path in paths])


def _is_whole(path):
    """True if the folder has every byte that was written when it was made, by the recipe of today."""
    try:
        about = json.loads((path / "about.json").read_text())
        sizes = [file.stat().st_size for file in path.glob("*/*/*.jpg")]
    except (OSError, ValueError):
        return False
    return about == {"recipe": RECIPE, "files": len(sizes), "bytes": sum(sizes)}


def originals():
    """The 8 x 8 images, with ink from 0 to 1, and their labels, from the file inside scikit-learn.

    Its own `load_digits` does the same, after an import that takes longer than drawing a thousand images.
    """
    try:
        package = metadata.distribution("scikit-learn")
    except metadata.PackageNotFoundError:
        raise ModuleNotFoundError("scikit-learn ships the digits; install it with: make lab") from None
    table = np.loadtxt(
        package.locate_file("sklearn/datasets/data/digits.csv.gz"), delimiter=",", dtype="uint8"
    )
    return table[:, :-1].reshape(-1, 8, 8) / np.float32(16), table[:, -1]


def plan(labels, versions):
    """What to draw: the number of an original, its version (None if it is held out), and the name of the file."""
    held_out = set(np.random.default_rng(SEED).permutation(len(labels))[:HELD_OUT].tolist())
    for number, label in enumerate(labels.tolist()):
        if number in held_out:
            yield number, None, f"test/{label}/{number:04}.jpg"
            continue
        for version in range(versions):
            yield number, version, f"train/{label}/{number:04}-{version}.jpg"


def drawn(original, number, version, noisy=True):
    """An image for one original: as it is, or as this version varies it. Each has random numbers of its own."""
    random = np.random.default_rng([SEED, number, version or 0])
    look = Look() if version is None else _varied(random)
    strength = look.contrast * _enlarged(original, look)[..., None]
    paper, ink = np.float32(look.paper), np.float32(look.ink)
    image = paper + (ink - paper) * strength
    if look.noise and noisy:
        image += look.noise * random.standard_normal(image.shape, dtype="float32")
    return (255 * image.clip(0, 1) + 0.5).astype("uint8")


def _varied(random):
    return Look(
        paper=tuple(random.uniform(0.75, 1, 3)),
        ink=tuple(random.uniform(0, 0.35, 3)),
        contrast=random.uniform(0.7, 1),
        degrees=random.uniform(-12, 12),
        shift=tuple(random.uniform(-0.08, 0.08, 2)),
        noise=0.03,
    )


def _enlarged(original, look):
    """The ink on a square of 128 x 128 pixels: the digit takes three quarters of it, turned around the middle."""
    from PIL import Image

    margin = 2  # so that ink at the edge fades out
    source = Image.fromarray(np.pad(original, margin))
    step = 8 / (0.75 * SIZE)  # pixels of the original for each of the image
    cosine, sine = (step * turn(np.radians(look.degrees)) for turn in (np.cos, np.sin))
    middle = SIZE / 2
    across, down = (4 + margin - 8 / 0.75 * part for part in look.shift)
    from_image_to_source = (
        *(cosine, sine, across - (cosine + sine) * middle),
        *(-sine, cosine, down - (cosine - sine) * middle),
    )
    method, resampling = Image.Transform.AFFINE, Image.Resampling.BICUBIC
    ink = source.transform((SIZE, SIZE), method, from_image_to_source, resampling)
    return np.asarray(ink).clip(0, 1)


def _jpeg(pixels):
    from PIL import Image

    encoded = io.BytesIO()
    Image.fromarray(pixels).save(encoded, "JPEG", quality=85)
    return encoded.getvalue()
