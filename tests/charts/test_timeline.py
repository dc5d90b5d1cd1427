"""Memory over time: what the chart of a trial shows, for every shape, and that its texts stay apart and inside."""

import io

import pytest
from matplotlib.colors import to_hex
from matplotlib.image import imread

from drawn import (
    MB,
    ON_DEVICE,
    SHAPES,
    a_line,
    a_phase,
    a_trial,
    assert_readable,
    crosses_of,
    texts_of,
    title_of,
)
from helpers.charts.look import LIMIT
from helpers.charts.timeline import POINTS, curve, plot, thin


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.filterwarnings("error")
def test_every_shape_of_trial_gives_a_readable_picture(name):
    chart = plot(SHAPES[name])
    assert imread(io.BytesIO(chart.png())).shape[1] == 900
    assert_readable(chart)


@pytest.mark.parametrize(
    ("name", "title"),
    {
        "killed": "Killed at 600 MB after 4 s",
        "finished": "Finished: 90 MB of 600 MB in 4 s",
        "out of VRAM": "Out of VRAM at 512 MB after 4 s",
        "two budgets": "Finished: 400 MB of 600 MB RAM, 500 MB of 512 MB VRAM in 4 s",
        "refused": "Memory refused at 320 MB of 600 MB after 4 s",
        "timeout": "Stopped by the time limit after 600 s at 500 MB of 600 MB",
        "far above": "Killed at 2.60 GB of 600 MB after 4 s",
        "nothing known": "Failed after 0 s: exit code 0",
    }.items(),
)
def test_the_title_says_what_happened(name, title):
    assert title_of(plot(SHAPES[name])) == title


def test_a_job_that_died_below_its_budget_is_explained():
    words = [text for text, _ in texts_of(plot(SHAPES["refused"]))]
    assert "job: the next allocation did not fit into the 280 MB that were left" in words
    assert "job" in [text for text, _ in texts_of(plot(SHAPES["killed"]))]


def test_a_crash_is_marked_where_the_job_died_and_nowhere_else():
    assert crosses_of(plot(SHAPES["killed"])) == [(4.0, 600 * MB)]
    assert crosses_of(plot(SHAPES["finished"])) == []
    assert crosses_of(plot(SHAPES["timeout"])) == []
    [(second, size)] = crosses_of(plot(SHAPES["refused"]))
    assert 3.5 < second < 3.7, "a refused job dies before it lets go of its memory"
    assert size > 250 * MB
    assert crosses_of(plot(SHAPES["out of VRAM"])) == [(4.0, 500 * MB)]


def test_a_higher_peak_long_before_the_refusal_is_not_the_crash():
    spike = ON_DEVICE | {"vram_shape": lambda share: 1 if share < 0.1 else 0.7}
    [(second, size)] = crosses_of(plot(a_trial("vram-oom", 700, None, seconds=14.0, **spike)))
    assert (second, size) == (14.0, pytest.approx(350 * MB))


@pytest.mark.parametrize("name", ["finished", "far below", "far above", "two budgets"])
def test_memory_starts_at_zero_and_leaves_room_for_peaks_and_budgets(name):
    trial = SHAPES[name]
    low, high = plot(trial).axes[0].get_ylim()
    assert low == 0
    assert high > max(trial.ram_budget, trial.peak_ram, trial.vram_budget or 0)


def test_budgets_are_dashed_lines_with_their_names_on_them():
    chart = plot(SHAPES["two budgets"])
    heights = {
        line.get_ydata()[0] for line in chart.axes[0].lines if to_hex(line.get_color()) == LIMIT.lower()
    }
    assert heights == {600 * MB, 512 * MB}
    words = [text for text, _ in texts_of(chart)]
    assert {"RAM budget 600 MB", "VRAM budget 512 MB"} <= set(words)
    words = [text for text, _ in texts_of(plot(SHAPES["equal budgets"]))]
    assert "RAM and VRAM budget 512 MB" in words


def test_the_strip_for_waiting_is_there_only_if_waiting_was_measured():
    assert "80 % of\nthe time" in [text for text, _ in texts_of(plot(SHAPES["two budgets"]))]
    assert not any("waiting" in text for text, _ in texts_of(plot(SHAPES["finished"])))


def test_the_largest_lines_are_listed_and_the_small_ones_put_together():
    words = [text for text, _ in texts_of(plot(SHAPES["killed"]))]
    assert words.count("frame = pandas.read_csv(path)") == 5
    assert "5 MB" not in words, "less than 5 % of the total has no place on the chart"
    lines = (a_line(60), *[a_line(4) for _ in range(10)])
    words = [text for text, _ in texts_of(plot(a_trial(lines=lines)))]
    assert "all other lines" in words
    assert "40 MB" in words


def test_dollars_are_not_mathematics():
    trial = a_trial(lines=(a_line(80, "price = '$x_$'"),), phases=(a_phase("in $_$", 0, 1),))
    words = [text for text, _ in texts_of(plot(trial))]
    assert {"price = '$x_$'", "in $_$"} <= set(words)


def test_phases_in_a_crowd_are_named_in_one_row_as_far_as_there_is_room():
    boxes = [box for text, box in texts_of(plot(SHAPES["many phases"])) if text.startswith("epoch")]
    assert 5 < len(boxes) < 20
    assert max(box.y0 for box in boxes) - min(box.y0 for box in boxes) < 3


def test_long_runs_are_thinned_out_and_keep_their_peak():
    samples = a_trial(points=60_000).samples
    samples.loc[31_234, "ram"] = 555 * MB
    thinned = thin(samples)
    assert len(thinned) == POINTS
    assert thinned["ram"].max() == 555 * MB
    assert thinned["seconds"].iloc[-1] == samples["seconds"].iloc[-1]


def test_a_killed_job_ends_at_the_figure_of_the_kernel_not_at_the_last_sample():
    trial = SHAPES["killed"]
    _, sizes = curve(trial, trial.samples, "ram")
    assert trial.samples["ram"].iloc[-1] == pytest.approx(588 * MB)
    assert sizes[-1] == 600 * MB
