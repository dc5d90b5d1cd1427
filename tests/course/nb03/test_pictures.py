"""Pictures of a folder: a row for each name, every image in its place."""

import numpy
import pytest
from PIL import Image

from helpers.course.nb03.pictures import picture_rows


@pytest.fixture
def paths(tmp_path):
    """Five images, each of one grey."""
    made = [tmp_path / f"{grey}.png" for grey in (0, 60, 120, 180, 240)]
    for path in made:
        Image.new("RGB", (16, 16), (int(path.stem),) * 3).save(path)
    return made


def test_each_row_shows_its_own_images_in_their_order_below_the_row_before(paths):
    chart = picture_rows({"train": paths[:3], "test": paths[3:]}, "Greys")
    greys = [float(numpy.mean(axes.images[0].get_array())) for axes in chart.axes]
    assert greys == pytest.approx([int(path.stem) / 255 for path in paths])
    places = [axes.get_position() for axes in chart.axes]
    assert places[0].x0 < places[1].x0 < places[2].x0
    assert places[3].x0 == places[0].x0
    assert places[3].y1 < places[0].y0
    corners = [corner for place in places for corner in place.extents]
    assert min(corners) >= 0
    assert max(corners) <= 1


def test_the_alt_text_says_what_is_shown(paths):
    assert picture_rows({"train": paths}, "Greys").alt == "Rows of images: 5 of train. Greys."


@pytest.mark.parametrize("rows", [{}, {"train": []}])
def test_a_row_without_images_is_refused_in_a_sentence(rows):
    with pytest.raises(ValueError, match="picture_rows needs paths of images"):
        picture_rows(rows, "Nothing")
