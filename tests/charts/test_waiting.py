"""The ladder and the strips: what they show, and that a GPU's utilisation is drawn where it was read."""

from types import SimpleNamespace

import numpy
import pandas
import pytest

from helpers.charts.look import RAM, WAITING
from helpers.charts.timeline import plot
from helpers.charts.waiting import ladder, strips


def a_trial(share, seconds=4.0, utilisation=None):
    """A trial whose device waits for a share of every half second, from one second on, when it starts to fit."""
    moments = numpy.arange(0, seconds, 0.01)
    waiting = ((moments % 0.5) / 0.5 < share) & (moments >= 1)
    samples = pandas.DataFrame(
        {"seconds": moments, "ram": 1e8, "vram": numpy.nan, "waiting": waiting.astype(float)}
    )
    if utilisation is not None:
        samples["utilisation"] = utilisation
    fit = SimpleNamespace(name="fit", start=1.0, end=seconds, items=None)
    facts = {
        "label": "job",
        "outcome": "finished",
        "out_of_memory": False,
        "verdict": "Finished.",
        "exit_code": 0,
    }
    facts |= {
        "seconds": seconds,
        "ram_budget": None,
        "vram_budget": None,
        "peak_ram": 10**8,
        "peak_vram": None,
    }
    return SimpleNamespace(
        **facts, idle=share, error=None, throughput=None, samples=samples, lines=(), phases=(fit,)
    )


def drawn(axes, colour):
    """The share of a strip that has a colour."""
    (area,) = [
        patch
        for patch in axes.collections
        if tuple(patch.get_facecolor()[0][:3]) == pytest.approx(_rgb(colour), abs=0.01)
    ]
    corners = area.get_paths()[0].vertices
    across, up = corners[:, 0], corners[:, 1]
    surface = 0.5 * abs(numpy.dot(across, numpy.roll(up, 1)) - numpy.dot(up, numpy.roll(across, 1)))
    return surface / axes.get_xlim()[1]


def _rgb(colour):
    return tuple(int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))


@pytest.mark.parametrize("share", [0.8, 0.1])
def test_a_strip_is_filled_by_the_share_of_waiting(share):
    (axes,) = strips({"naive": a_trial(share)}).axes
    assert drawn(axes, WAITING) == pytest.approx(share, abs=0.03)
    assert drawn(axes, RAM) == pytest.approx(1 - share, abs=0.03)


def test_strips_share_one_axis_and_name_their_jobs():
    chart = strips({"naive": a_trial(0.86), "cache": a_trial(0.0)}, seconds=1.5)
    assert [axes.get_xlim() for axes in chart.axes] == [(0, 1.5), (0, 1.5)]
    assert chart.alt == "Strips of time, 1.5 s each. naive waits 86 %; cache waits 0 %."


@pytest.mark.parametrize("draw", [lambda trial: strips({"job": trial}), plot], ids=["strips", "plot"])
def test_utilisation_is_a_line_over_the_strip_only_where_a_gpu_was_read(draw):
    with_gpu, without = draw(a_trial(0.5, utilisation=0.25)), draw(a_trial(0.5))
    (line,) = with_gpu.axes[-1].lines
    assert set(line.get_ydata()) == {0.25}
    assert not without.axes[-1].lines


def test_a_ladder_has_a_bar_for_each_rung_and_the_goal():
    feeds = {"naive": SimpleNamespace(rate=400, idle=0.88), "cache": SimpleNamespace(rate=3900, idle=0.01)}
    speed, waiting = ladder(feeds, goal=4000).axes
    assert [bar.get_width() for bar in speed.patches] == [400, 3900]
    assert [bar.get_width() for bar in waiting.patches] == [0.88, 0.01]
    assert [line.get_xdata()[0] for line in speed.lines] == [4000]


def test_a_ladder_without_rungs_says_what_to_give():
    with pytest.raises(ValueError, match="ladder needs at least one rung"):
        ladder({})
