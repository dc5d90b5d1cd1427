"""The charts: what they show, for every shape of trial, and that their texts stay apart and inside."""

import io
import itertools
from types import SimpleNamespace

import matplotlib
import numpy
import pandas
import pytest
from IPython.core.formatters import DisplayFormatter
from matplotlib.colors import to_hex
from matplotlib.image import imread
from matplotlib.text import Text

from helpers import plots, tables
from helpers.plots_chart import LIMIT, format_seconds, spread
from helpers.plots_timeline import POINTS, curve, thin

MB = 10**6


def a_trial(outcome="finished", peak=90, budget=600, seconds=4.0, shape=lambda share: share, **changes):
    """A stand-in for a trial; peaks and budgets in MB, RAM as `shape` of the share of the time."""
    vram, waiting = changes.pop("vram_shape", None), changes.pop("waiting_shape", None)
    share = numpy.linspace(0, 1, changes.pop("points", 200))
    curves = {
        "seconds": share * seconds,
        "ram": [peak * MB * 0.98 * shape(moment) for moment in share],
        "vram": [changes["peak_vram"] * vram(moment) if vram else numpy.nan for moment in share],
        "waiting": [waiting(moment) if waiting else numpy.nan for moment in share],
    }
    facts = {
        "label": "job",
        "outcome": outcome,
        "out_of_memory": outcome in ("killed", "memory-error", "vram-oom"),
        "verdict": "One stable sentence.",
        "exit_code": 137 if outcome == "killed" else 0,
        "seconds": seconds,
        "ram_budget": budget and budget * MB,
        "vram_budget": None,
        "peak_ram": peak * MB,
        "peak_vram": None,
        "idle": None,
        "throughput": None,
        "error": None,
        "samples": pandas.DataFrame(curves),
        "lines": (),
        "phases": (),
    }
    return SimpleNamespace(**facts | changes)


def a_line(size, source="frame = pandas.read_csv(path)", where="cell 5, line 3"):
    return SimpleNamespace(bytes=size * MB, source=source, where=where)


def a_phase(name, start, end):
    return SimpleNamespace(name=name, start=start, end=end, items=None)


NO_SAMPLES = a_trial(points=0).samples
ONE_SAMPLE = pandas.DataFrame({"seconds": [0.02], "ram": [3e8], "vram": [numpy.nan], "waiting": [numpy.nan]})
LONG_TEXT = "result = function(" + "argument, " * 60 + ")"
ODD_TEXT = "price = '$5' + \"$x^2$\" + r'\\frac{1}{2}' + '日本語 \ud800'"
ODD_LINES = (a_line(60, LONG_TEXT, "folder/" * 20), a_line(20, ODD_TEXT), a_line(10, "", "(other processes)"))
OVERLAPPING = (a_phase("$x_$ and $y^$" * 9, 0.1, 2), a_phase("inner", 0.2, 0.3), a_phase("open", 0.2, None))
PLATEAU = {"shape": lambda share: min(1, 4 * share)}
ON_DEVICE = {"peak_vram": 500 * MB, "vram_budget": 512 * MB, "vram_shape": lambda share: min(1, 3 * share)}

SHAPES = {
    "killed": a_trial("killed", 600, lines=tuple(a_line(size) for size in (300, 120, 80, 50, 40, 5))),
    "finished": a_trial(phases=(a_phase("load", 0, 0.1), a_phase("fit", 0.1, 3.9)), **PLATEAU),
    "out of VRAM": a_trial("vram-oom", 700, None, lines=(a_line(500),), **ON_DEVICE),
    "two budgets": a_trial(peak=400, idle=0.8, waiting_shape=lambda share: share, **ON_DEVICE, **PLATEAU),
    "equal budgets": a_trial(peak=495, budget=512, **ON_DEVICE, **PLATEAU),
    "near budgets": a_trial(peak=400, budget=530, **ON_DEVICE, **PLATEAU),
    "refused": a_trial("memory-error", 320, shape=lambda share: share if share < 0.9 else 0.1),
    "failed": a_trial("error", 100, error="ValueError: " + LONG_TEXT),
    "timeout": a_trial("timeout", 500, seconds=600.0, points=60_000),
    "no samples": a_trial("killed", 600, samples=NO_SAMPLES),
    "nothing known": a_trial("error", seconds=0.0, budget=None, peak_ram=None, samples=NO_SAMPLES),
    "one sample": a_trial("killed", 600, seconds=0.05, samples=ONE_SAMPLE),
    "very short": a_trial("killed", 600, seconds=0.05, points=5),
    "far below": a_trial(peak=6, budget=1200, lines=(a_line(6),)),
    "far above": a_trial("killed", 2600),
    "short spike": a_trial(peak=90, peak_ram=300 * MB),
    "long texts": a_trial(label="job" * 60, lines=ODD_LINES),
    "overlapping phases": a_trial("killed", 600, phases=OVERLAPPING),
    "many phases": a_trial(phases=tuple(a_phase(f"epoch {n}", n / 15, n / 15 + 0.05) for n in range(60))),
}


def texts_of(chart):
    """All texts that the picture shows, with the box that each takes."""
    chart.png()
    texts = [*chart.texts]
    for axes in chart.axes:
        texts += axes.texts
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            low, high = axis.get_view_interval()
            texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    # The extent of an annotation would include its arrow.
    return [(text.get_text(), Text.get_window_extent(text)) for text in texts if text.get_text().strip()]


def title_of(chart):
    return chart.texts[0].get_text()


def crosses_of(chart):
    """Where the red crosses stand, as (x, y)."""
    lines = [line for axes in chart.axes for line in axes.lines]
    red = [line for line in lines if line.get_marker() == "x" and to_hex(line.get_color()) == LIMIT.lower()]
    return [(line.get_xdata()[0], line.get_ydata()[0]) for line in red]


def assert_readable(chart):
    """Every text lies inside the picture, and no two texts cover each other."""
    texts = texts_of(chart)
    width, height = chart.bbox.size
    for text, box in texts:
        assert box.x0 >= 0, f"{text!r} begins left of the picture"
        assert box.x1 <= width, f"{text!r} ends {box.x1 - width:.0f} pixels right of the picture"
        assert box.y0 >= 0, f"{text!r} ends below the picture"
        assert box.y1 <= height, f"{text!r} begins above the picture"
    for (one, first), (other, second) in itertools.combinations(texts, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        up = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert min(across, up) < 3, f"{one!r} covers {other!r}"


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.filterwarnings("error")
def test_every_shape_of_trial_gives_a_readable_picture(name):
    chart = plots.plot(SHAPES[name])
    assert imread(io.BytesIO(chart.png())).shape[1] == 900
    assert_readable(chart)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.filterwarnings("error")
def test_every_shape_of_trial_can_be_compared(name):
    comparison = plots.compare(SHAPES["killed"], SHAPES[name], SHAPES["finished"])
    assert_readable(comparison.figure)


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
    assert title_of(plots.plot(SHAPES[name])) == title


def test_a_job_that_died_below_its_budget_is_explained():
    words = [text for text, _ in texts_of(plots.plot(SHAPES["refused"]))]
    assert "job: the next allocation did not fit into the 280 MB that were left" in words
    assert "job" in [text for text, _ in texts_of(plots.plot(SHAPES["killed"]))]


def test_a_crash_is_marked_where_the_job_died_and_nowhere_else():
    assert crosses_of(plots.plot(SHAPES["killed"])) == [(4.0, 600 * MB)]
    assert crosses_of(plots.plot(SHAPES["finished"])) == []
    assert crosses_of(plots.plot(SHAPES["timeout"])) == []
    [(second, size)] = crosses_of(plots.plot(SHAPES["refused"]))
    assert 3.5 < second < 3.7, "a refused job dies before it lets go of its memory"
    assert size > 250 * MB
    assert crosses_of(plots.plot(SHAPES["out of VRAM"])) == [(4.0, 500 * MB)]


def test_a_higher_peak_long_before_the_refusal_is_not_the_crash():
    spike = ON_DEVICE | {"vram_shape": lambda share: 1 if share < 0.1 else 0.7}
    [(second, size)] = crosses_of(plots.plot(a_trial("vram-oom", 700, None, seconds=14.0, **spike)))
    assert (second, size) == (14.0, pytest.approx(350 * MB))


@pytest.mark.parametrize("name", ["finished", "far below", "far above", "two budgets"])
def test_memory_starts_at_zero_and_leaves_room_for_peaks_and_budgets(name):
    trial = SHAPES[name]
    low, high = plots.plot(trial).axes[0].get_ylim()
    assert low == 0
    assert high > max(trial.ram_budget, trial.peak_ram, trial.vram_budget or 0)


def test_budgets_are_dashed_lines_with_their_names_on_them():
    chart = plots.plot(SHAPES["two budgets"])
    heights = {
        line.get_ydata()[0] for line in chart.axes[0].lines if to_hex(line.get_color()) == LIMIT.lower()
    }
    assert heights == {600 * MB, 512 * MB}
    words = [text for text, _ in texts_of(chart)]
    assert {"RAM budget 600 MB", "VRAM budget 512 MB"} <= set(words)
    words = [text for text, _ in texts_of(plots.plot(SHAPES["equal budgets"]))]
    assert "RAM and VRAM budget 512 MB" in words


def test_the_strip_for_waiting_is_there_only_if_waiting_was_measured():
    assert "80 % of\nthe time" in [text for text, _ in texts_of(plots.plot(SHAPES["two budgets"]))]
    assert not any("waiting" in text for text, _ in texts_of(plots.plot(SHAPES["finished"])))


def test_the_largest_lines_are_listed_and_the_small_ones_put_together():
    words = [text for text, _ in texts_of(plots.plot(SHAPES["killed"]))]
    assert words.count("frame = pandas.read_csv(path)") == 5
    assert "5 MB" not in words, "less than 5 % of the total has no place on the chart"
    lines = (a_line(60), *[a_line(4) for _ in range(10)])
    words = [text for text, _ in texts_of(plots.plot(a_trial(lines=lines)))]
    assert "all other lines" in words
    assert "40 MB" in words


def test_dollars_are_not_mathematics():
    trial = a_trial(lines=(a_line(80, "price = '$x_$'"),), phases=(a_phase("in $_$", 0, 1),))
    words = [text for text, _ in texts_of(plots.plot(trial))]
    assert {"price = '$x_$'", "in $_$"} <= set(words)


def test_phases_in_a_crowd_are_named_in_one_row_as_far_as_there_is_room():
    boxes = [box for text, box in texts_of(plots.plot(SHAPES["many phases"])) if text.startswith("epoch")]
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


def test_the_same_trial_gives_the_same_bytes():
    assert plots.plot(SHAPES["killed"]).png() == plots.plot(SHAPES["killed"]).png()


def test_a_notebook_shows_a_chart_once_with_alt_text_and_stable_plain_text():
    chart = plots.plot(SHAPES["killed"])
    data, metadata = DisplayFormatter().format(chart)
    assert set(data) == {"image/png", "text/plain"}
    assert data["text/plain"] == "<Chart: memory of job over time>"
    assert "Killed at 600 MB after 4 s" in metadata["image/png"]["alt"]
    assert "cell 5, line 3" in metadata["image/png"]["alt"]


def test_drawing_leaves_pyplot_and_its_settings_alone():
    from matplotlib import pyplot

    with matplotlib.rc_context({"font.size": 31, "axes.grid": True}):
        chart = plots.plot(SHAPES["finished"])
        assert matplotlib.rcParams["font.size"] == 31
        assert pyplot.get_fignums() == []
    assert chart.png() == plots.plot(SHAPES["finished"]).png()


def test_html_of_a_trial_escapes_all_that_comes_from_the_job():
    attack = "<script>alert('x')</script>\"&"
    lines = (a_line(80, attack, attack),)
    html = plots.trial_html(a_trial("error", label=attack, verdict=attack, error=attack, lines=lines))
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 5
    assert 'alt="Chart of memory over time of &lt;script&gt;' in html


def test_html_of_a_trial_has_its_figures_and_one_picture():
    html = plots.trial_html(SHAPES["two budgets"])
    for fact in ("One stable sentence.", "400 MB of 600 MB", "500 MB of 512 MB", "80 %", "4 s"):
        assert fact in html
    assert html.count("<img ") == 1


def test_text_of_a_trial_has_its_verdict_and_lines_in_columns():
    trial = a_trial(lines=(a_line(412), a_line(8, "labels = frame.pop('label')", "train.py:12")))
    assert plots.trial_text(trial).split("\n") == [
        "One stable sentence.",
        "Lines that took the memory:",
        "  412 MB  cell 5, line 3  frame = pandas.read_csv(path)",
        "    8 MB  train.py:12     labels = frame.pop('label')",
    ]
    assert plots.trial_text(a_trial()) == "One stable sentence."


def test_a_comparison_leaves_out_what_nobody_measured():
    comparison = plots.compare(SHAPES["killed"], a_trial(label="stream", seconds=7.0, throughput=1234.5))
    assert list(comparison.table) == [
        "job",
        "outcome",
        "peak RAM",
        "of RAM budget",
        "time",
        "items per second",
    ]
    assert comparison.table.iloc[1].tolist() == ["stream", "finished", "90 MB", "15 %", "7 s", "1,234"]
    assert str(comparison).split("\n")[1].split() == ["job", "killed", "600", "MB", "100", "%", "4", "s", "-"]


def test_a_comparison_states_before_and_after():
    comparison = plots.compare(SHAPES["killed"], a_trial(label="stream"))
    assert title_of(comparison.figure) == "job: killed at 600 MB after 4 s; stream stays at 90 MB"
    assert crosses_of(comparison.figure) == [(4.0, 600 * MB)]


def test_a_comparison_in_a_notebook_is_one_output_with_stable_plain_text():
    data, _ = DisplayFormatter().format(plots.compare(SHAPES["killed"], SHAPES["finished"]))
    assert set(data) == {"text/html", "text/plain"}
    assert data["text/plain"] == "<Comparison: job 1 killed, job 2 finished>"
    assert data["text/html"].count("<img ") == 1
    assert "<td" in data["text/html"]


def test_comparing_nothing_or_no_trials_says_what_to_do():
    with pytest.raises(ValueError, match="at least one trial"):
        plots.compare()
    with pytest.raises(TypeError, match=r"takes trials.* not int"):
        plots.compare(SHAPES["killed"], 5)


def grown(*outcomes_and_peaks):
    return [(31 * MB * (number + 1), a_trial(*pair)) for number, pair in enumerate(outcomes_and_peaks)]


def test_peaks_against_size_puts_deaths_on_the_budget_line():
    groups = {
        "in memory": grown(("finished", 120), ("finished", 250), ("killed", 297)),
        "streaming": grown(("finished", 60), ("finished", 61), ("finished", 63)),
    }
    chart = plots.peaks_against_size(groups, budget="300 MB")
    assert crosses_of(chart) == [(93 * MB, 300 * MB)]
    assert title_of(chart) == "in memory dies at 93 MB; streaming stays at 63 MB"
    assert_readable(chart)
    growing = plots.peaks_against_size({"frame": grown(("finished", 60), ("finished", 90))}, budget=300 * MB)
    assert title_of(growing) == "frame grows to 90 MB"


def test_peaks_against_size_needs_trials_and_a_unit():
    with pytest.raises(ValueError, match="needs trials"):
        plots.peaks_against_size({"in memory": []}, budget="300 MB")
    with pytest.raises(ValueError, match='budget="300" has no unit'):
        plots.peaks_against_size({"in memory": grown(("finished", 60))}, budget="300")


@pytest.mark.parametrize("measured", [None, 700 * MB, 520 * MB])
@pytest.mark.parametrize("count", [1, 4, 12])
def test_stacked_bytes_add_up(count, measured):
    parts = {f"part number {number}": 4**number * 100_000 for number in range(count)}
    chart = plots.stacked_bytes(parts, measured=measured, budget="512 MB")
    assert sum(bar.get_width() for bar in chart.axes[0].patches) == sum(parts.values())
    assert_readable(chart)


def test_stacked_bytes_name_the_largest_part_and_what_was_measured():
    chart = plots.stacked_bytes({"weights": 100 * MB, "activations": 300 * MB}, measured=410 * MB)
    assert title_of(chart) == "400 MB, of which activations 75 %; measured 410 MB"
    assert "weights 100 MB, activations 300 MB" in chart.alt


def test_stacked_bytes_reject_what_cannot_be_drawn():
    with pytest.raises(ValueError, match="needs parts"):
        plots.stacked_bytes({})
    with pytest.raises(ValueError, match="slack has -5"):
        plots.stacked_bytes({"weights": 5, "slack": -5})


def test_labels_are_moved_apart_only_as_far_as_needed():
    assert spread([10, 50, 90], gap=10, low=0, high=100) == [10, 50, 90]
    moved = spread([99, 98, 97, 50], gap=10, low=0, high=100)
    assert sorted(moved) == [50, 80, 90, 100]
    assert moved[2] < moved[1] < moved[0], "labels keep the order of their curves"


def test_equal_labels_are_numbered():
    trials = [a_trial(label="load"), a_trial(label="stream"), a_trial(label="load")]
    assert tables.distinct_labels(trials) == ["load 1", "stream", "load 2"]


def test_seconds_are_short():
    assert [format_seconds(seconds) for seconds in (0.049, 0.5, 3.04, 12.3, 600.4)] == [
        "0.05 s",
        "0.5 s",
        "3 s",
        "12 s",
        "600 s",
    ]
