"""Exercises: a right answer passes, and a wrong one is told what fell short and by how much."""

from types import SimpleNamespace

import numpy
import pandas
import pytest

from helpers import exercises, exercises_01, exercises_02
from helpers.doctor import diagnose
from helpers.exercises import EXERCISES, Result, exercise

MB = 10**6
COLUMNS = ["dep_delay", "distance", "hour"]
ROWS = 5_000


@pytest.fixture(scope="session")
def flights_folder(tmp_path_factory):
    """A folder with a small file in place of the grown flights, with the same columns and some gaps."""
    folder = tmp_path_factory.mktemp("data")
    random = numpy.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "carrier": random.choice(["AA", "DL", "UA"], ROWS),
            "dep_delay": random.integers(-10, 90, ROWS).astype(float),
            "arr_delay": random.integers(-30, 120, ROWS).astype(float),
            "distance": random.integers(80, 5000, ROWS),
            "hour": random.integers(0, 24, ROWS),
        }
    )
    frame.loc[::50, ["dep_delay", "arr_delay"]] = numpy.nan
    frame.to_csv(folder / "flights-4.csv", index=False, na_rep="NA")
    return folder


@pytest.fixture(autouse=True)
def flights(flights_folder, monkeypatch):
    monkeypatch.setenv("OOM_DATA", str(flights_folder))
    return str(flights_folder / "flights-4.csv")


def mean_delays(path):
    parts = [
        chunk.groupby("carrier")["arr_delay"].agg(["sum", "count"])
        for chunk in pandas.read_csv(path, usecols=["carrier", "arr_delay"], chunksize=1_000)
    ]
    total = pandas.concat(parts).groupby(level=0).sum()
    return total["sum"] / total["count"]


def batches(path, rows=1024):
    for chunk in pandas.read_csv(path, usecols=[*COLUMNS, "arr_delay"], chunksize=rows):
        filled = chunk.fillna(0)
        yield filled[COLUMNS].to_numpy("float32"), filled["arr_delay"].to_numpy("float32")


def judge_batches(answer, path):
    limit = exercises_02.expected_totals(path)["rows"]
    return exercises_02.check_batches(exercises_02.go_over_batches(answer, path, limit), path, limit)


def test_a_right_answer_passes_on_its_budget():
    result = exercise("02-a", mean_delays)
    assert result.passed
    assert result.trial.outcome == "finished"
    assert str(result).startswith("Passed: it used ")
    assert " of 60 MB" in str(result)


def test_batches_are_gone_over_on_the_budget():
    assert exercise("02-b", batches).passed


def test_an_answer_that_takes_too_much_hears_how_much_and_from_which_line():
    def greedy(path):
        ballast = numpy.ones(25 * MB)
        return {"AA": ballast.sum()}

    result = exercise("02-a", greedy)
    assert not result.passed
    assert result.trial.out_of_memory
    words = str(result).split()
    assert words[:4] == ["Not", "yet:", "it", "used"]
    assert int(words[4]) == pytest.approx(200, rel=0.1)
    assert "of 60 MB RAM" in str(result)
    assert "ballast = numpy.ones(25 * MB)" in str(result)


def test_an_answer_that_raises_hears_what_and_in_which_line():
    def broken(path):
        return {}["AA"]

    line = broken.__code__.co_firstlineno + 1
    assert str(exercise("02-a", broken)) == f"Not yet: it raised KeyError: 'AA' in line {line}."


def nothing(path): ...


def documented(path):
    """Return the mean delays."""


def dots(path):
    return ...


def not_implemented(path):
    raise NotImplementedError("write me")


@pytest.mark.parametrize("stub", [nothing, documented, dots, not_implemented])
@pytest.mark.parametrize("name", EXERCISES)
def test_a_stub_is_not_solved_yet_and_is_not_even_run(name, stub):
    result = exercise(name, stub)
    assert not result.passed
    assert result.trial is None
    assert str(result) == f"Not solved yet: {EXERCISES[name].statement}"
    assert str(result) in result._repr_html_()


@pytest.mark.parametrize("answer", [lambda path: 5, lambda path: path, lambda path: "text"])
def test_a_short_answer_is_not_taken_for_a_stub(answer):
    assert not exercises._is_empty(answer)


def an_attempt(outcome, **changes):
    """A stand-in for the trial of an answer."""
    facts = {
        "outcome": outcome,
        "out_of_memory": outcome in ("killed", "vram-oom"),
        "ram_budget": 60 * MB,
        "vram_budget": None,
        "peak_ram": 20 * MB,
        "peak_vram": None,
        "value": None,
        "error": None,
        "log": "",
        "lines": (),
        "exit_code": 0,
    }
    return SimpleNamespace(**facts | changes)


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (an_attempt("finished"), "Not yet: it returned None: does your function return its result?"),
        (an_attempt("timeout"), "Not yet: it ran longer than 120 s."),
        (an_attempt("error", exit_code=139), "Not yet: it ended with exit code 139."),
        (an_attempt("error", error="ValueError: no.\n\tNo"), "Not yet: it raised ValueError: no. No."),
        (an_attempt("killed", peak_ram=59 * MB), "Not yet: it used more than 60 MB of 60 MB RAM."),
    ],
)
def test_each_way_to_fall_short_has_its_sentence(monkeypatch, attempt, sentence):
    monkeypatch.setattr(exercises, "run", lambda *arguments, **options: attempt)
    assert str(exercise("02-a", mean_delays)) == sentence


def test_a_stub_that_is_reached_only_when_it_runs_is_not_solved_yet(monkeypatch):
    attempt = an_attempt("error", error="NotImplementedError: later")
    monkeypatch.setattr(exercises, "run", lambda *arguments, **options: attempt)
    assert str(exercise("02-a", mean_delays)).startswith("Not solved yet: ")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match='no exercise "2a"; there are 01-a, 02-a'):
        exercise("2a", mean_delays)


def test_an_answer_that_is_no_function_is_told_to_leave_the_brackets_out():
    with pytest.raises(TypeError, match="without brackets, not a dict"):
        exercise("02-a", {"AA": 1.0})


def test_missing_data_say_which_command_makes_them(monkeypatch, tmp_path):
    monkeypatch.setenv("OOM_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="python -m helpers data"):
        exercise("02-a", mean_delays)


def test_mean_delays_are_judged_carrier_by_carrier(flights):
    right = mean_delays(flights).to_dict()
    judge = exercises_02.check_mean_delays
    assert judge(right, flights) is None
    assert judge(pandas.Series(right), flights) is None
    assert judge({**right, "AA": right["AA"] * 1.0001}, flights).startswith("the mean of AA is ")
    assert judge({**right, "AA": float("nan")}, flights).startswith("the mean of AA is nan, not ")
    assert judge({**right, "AA": "5"}, flights).startswith("the mean of AA is '5', not ")
    assert judge({"AA": right["AA"]}, flights) == "2 of 3 carriers are missing: DL, UA."
    assert judge({**right, "ZZ": 1.0}, flights) == "the file has no carrier ZZ."
    assert judge(4.2, flights).startswith("it returned a float; return a dict or a Series")


class ByIndex:
    """Batches by number, as a keras.utils.PyDataset gives them: Python's own iteration would never end."""

    def __init__(self, path):
        self.batches = list(batches(path))

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        return self.batches[index % len(self)]


def test_batches_may_come_from_a_generator_a_list_or_by_index(flights):
    for answer in (batches, ByIndex, lambda path: list(batches(path))):
        assert judge_batches(answer, flights) is None
    columns = [(features, labels[:, None]) for features, labels in batches(flights)]
    assert judge_batches(lambda path: columns, flights) is None


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    {
        "twice": (lambda pairs: pairs * 2, "the batches go on after 5,000 rows"),
        "one missing": (lambda pairs: pairs[1:], "the batches have 3,976 rows, not 5,000."),
        "mixed up": (
            lambda pairs: [(features, labels[::-1]) for features, labels in pairs],
            "features and labels do not belong together",
        ),
        "one row twice": (
            lambda pairs: [(f[[0, 0, *range(2, len(f))]], y[[0, 0, *range(2, len(y))]]) for f, y in pairs],
            "dep_delay adds up to ",
        ),
        "no labels": (lambda pairs: [features for features, _ in pairs], "batch 0 is a ndarray; make each"),
        "too few columns": (lambda pairs: [(f[:, :2], y) for f, y in pairs], "batch 0 has shapes (1024, 2)"),
        "short batches": (
            lambda pairs: [(f[half], y[half]) for f, y in pairs for half in (slice(512), slice(512, None))],
            "batch 0 has 512 rows; give each batch but the last 1,024.",
        ),
    }.values(),
)
def test_batches_are_told_what_is_wrong_with_them(flights, spoil, sentence):
    assert judge_batches(lambda path: spoil(list(batches(path))), flights).startswith(sentence)


def test_what_is_no_batches_at_all_is_named(flights):
    assert judge_batches(lambda path: 5, flights).startswith("it returned an int; return batches")
    assert exercises_02.go_over_batches(nothing, flights, ROWS) is None


def kind_of(log):
    if "No space left" in log:
        return "disk"
    return "host-ram" if "on host" in log else "vram"


def test_three_logs_of_three_pass():
    assert exercise("01-a", kind_of).passed


def test_the_doctor_agrees_with_the_exercise():
    wanted = [kind for kind, _ in exercises_01.CRASH_KINDS]
    assert [diagnose(log).kind for log in exercises_01.CRASH_LOGS] == wanted


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda log: "vram", "log 1 is not vram: its last line says what there was no more of."),
        (
            lambda log: kind_of(log).replace("vram", "gpu"),
            "log 2: 'gpu' is no kind; the kinds are host-ram, ",
        ),
        (lambda log: "disk" if "space" in log else "vram", "log 3 is not vram: two of its lines say "),
    ],
)
def test_a_wrong_kind_is_told_by_log(answer, sentence):
    kinds = exercises_01.name_kinds(answer, *exercises_01.CRASH_LOGS)
    assert exercises_01.check_kinds(kinds).startswith(sentence)


def test_no_kind_for_any_log_is_no_answer():
    assert exercises_01.name_kinds(lambda log: None, *exercises_01.CRASH_LOGS) is None


def test_a_result_is_harmless_in_html():
    assert "&lt;b&gt;" in Result(False, "<b>")._repr_html_()
