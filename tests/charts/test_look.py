"""What all charts share: the same bytes each time, shown once, the caller's settings left alone, labels apart."""

import matplotlib
from IPython.core.formatters import DisplayFormatter

from drawn import SHAPES
from helpers.charts.look import spread
from helpers.charts.timeline import plot


def test_labels_are_moved_apart_only_as_far_as_needed():
    assert spread([10, 50, 90], gap=10, low=0, high=100) == [10, 50, 90]
    moved = spread([99, 98, 97, 50], gap=10, low=0, high=100)
    assert sorted(moved) == [50, 80, 90, 100]
    assert moved[2] < moved[1] < moved[0], "labels keep the order of their curves"


def test_the_same_trial_gives_the_same_bytes():
    assert plot(SHAPES["killed"]).png() == plot(SHAPES["killed"]).png()


def test_a_notebook_shows_a_chart_once_with_alt_text_and_stable_plain_text():
    chart = plot(SHAPES["killed"])
    data, metadata = DisplayFormatter().format(chart)
    assert set(data) == {"image/png", "text/plain"}
    assert data["text/plain"] == "<Chart: memory of job over time>"
    assert "Killed at 600 MB after 4 s" in metadata["image/png"]["alt"]
    assert "cell 5, line 3" in metadata["image/png"]["alt"]


def test_drawing_leaves_pyplot_and_its_settings_alone():
    from matplotlib import pyplot

    with matplotlib.rc_context({"font.size": 31, "axes.grid": True}):
        chart = plot(SHAPES["finished"])
        assert matplotlib.rcParams["font.size"] == 31
        assert pyplot.get_fignums() == []
    assert chart.png() == plot(SHAPES["finished"]).png()
