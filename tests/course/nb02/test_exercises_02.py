"""The exercises of notebook 02: means and batches of flights are judged, and what is wrong with them is said."""

import pandas
import pytest

from helpers.course.exercises import exercise
from helpers.course.nb02 import exercise as exercises_02

COLUMNS = ["dep_delay", "distance", "hour"]


def batches(path, rows=1024):
    for chunk in pandas.read_csv(path, usecols=[*COLUMNS, "arr_delay"], chunksize=rows):
        filled = chunk.fillna(0)
        yield filled[COLUMNS].to_numpy("float32"), filled["arr_delay"].to_numpy("float32")


def judge_batches(answer, path):
    limit = exercises_02.expected_totals(path)["rows"]
    return exercises_02.check_batches(exercises_02.go_over_batches(answer, path, limit), path, limit)


def test_batches_are_gone_over_on_the_budget(flights):
    assert exercise("02-b", batches).passed


def test_mean_delays_are_judged_carrier_by_carrier(flights):
    right = exercises_02.mean_delays(flights)
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
    assert exercises_02.go_over_batches(lambda path: None, flights, 5_000) is None
