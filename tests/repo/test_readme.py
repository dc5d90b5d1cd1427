"""The front page shows what is there: its links lead somewhere, its map is complete, its picture is the notebook's."""

import re
from pathlib import Path

import pytest

from readme_picture import PICTURE, picture

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_every_link_leads_to_a_file(target):
    assert (ROOT / target).exists()


def test_the_map_links_every_notebook_that_is_there():
    linked = set(re.findall(r"\(notebooks/([^)]+)\)", README))
    assert linked == {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}


def test_the_picture_is_the_one_in_notebook_00():
    assert PICTURE.read_bytes() == picture()
