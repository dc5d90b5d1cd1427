"""The exercises of notebook 02: a mean per carrier and batches of flights, from a file that does not fit."""

import functools
import math

import numpy
import pandas

from helpers.course import datasets
from helpers.course.task import Exercise, close, number, once_solved, with_article

BATCH = 1024
FEATURES = ["dep_delay", "distance", "hour"]
LABEL = "arr_delay"


def grown_flights():
    """The flights of four years, whose frame is several times the budgets below."""
    return (str(datasets.flights(copies=4)),)


@functools.cache
def mean_delays(path):
    """Compute the mean arrival delay per carrier, reading the file in pieces."""
    pieces = pandas.read_csv(path, usecols=["carrier", "arr_delay"], chunksize=200_000)
    parts = [piece.groupby("carrier")["arr_delay"].agg(["sum", "count"]) for piece in pieces]
    total = pandas.concat(parts).groupby(level=0).sum()
    return (total["sum"] / total["count"]).to_dict()


def check_mean_delays(value, path):
    """Judge the mean delays that an answer returned, carrier by carrier."""
    if not isinstance(value, dict | pandas.Series):
        return f"it returned {with_article(value)}; return a dict or a Series with the mean of each carrier."
    expected = mean_delays(path)
    found = dict(value.items())
    if missing := sorted(set(expected) - set(found)):
        return f"{len(missing)} of {len(expected)} carriers are missing: {', '.join(missing[:5])}."
    if unknown := sorted(map(str, set(found) - set(expected))):
        return f"the file has no carrier {', '.join(unknown[:5])}."
    for carrier, mean in expected.items():
        if not close(found[carrier], mean):
            return f"the mean of {carrier} is {number(found[carrier])}, not {number(mean)}."
    return None


def totals(batches, limit=math.inf):
    """Go over all batches and add up what shows that each row came once; a sentence if a batch is wrong."""
    rows, size, sums, cross = 0, BATCH, numpy.zeros(len(FEATURES) + 1), 0.0
    for place, batch in enumerate(_each(batches)):
        if rows >= limit:
            return f"the batches go on after {limit:,} rows, which is all that the file has."
        if problem := _shape_problem(batch):
            return f"batch {place} {problem}"
        features, labels = (numpy.asarray(part, dtype="float64") for part in batch)
        if size != BATCH or len(labels) > BATCH:
            wrong = (place, len(labels)) if size == BATCH else (place - 1, size)
            return f"batch {wrong[0]} has {wrong[1]:,} rows; give each batch but the last {BATCH:,}."
        size = len(labels)
        rows += size
        sums += [*features.sum(axis=0), labels.sum()]
        cross += float(features[:, 1] @ labels.reshape(-1))
    return {"rows": rows, "sums": sums.tolist(), "cross": cross}


def _shape_problem(batch):
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        return f"is {with_article(batch)}; make each batch a pair (features, labels)."
    features, labels = (tuple(numpy.shape(part)) for part in batch)
    rows = features[:1]
    if features == (*rows, len(FEATURES)) and labels in (rows, (*rows, 1)):
        return None
    return f"has shapes {features} and {labels}; make them (rows, {len(FEATURES)}) and (rows,)."


def _each(batches):
    """Go over a PyDataset by its length, and over anything else as Python does."""
    if (
        hasattr(batches, "__getitem__")
        and hasattr(batches, "__len__")
        and not hasattr(batches, "element_spec")
    ):
        return (batches[index] for index in range(len(batches)))
    return iter(batches)


@once_solved
def go_over_batches(answer, path, limit):
    """Make a learner's batches and go over all of them, in the process that has the budget."""
    batches = answer(path)
    if not hasattr(batches, "__iter__") and not hasattr(batches, "__getitem__"):
        return f"it returned {with_article(batches)}; return batches: a PyDataset, a tf.data.Dataset or a generator."
    return totals(batches, limit)


@functools.cache
def expected_totals(path):
    """Compute what the batches of a file add up to, reading the file in pieces."""
    pieces = pandas.read_csv(path, usecols=[*FEATURES, LABEL], chunksize=BATCH * 200)
    filled = (piece.fillna(0) for piece in pieces)
    return totals(_batches(filled))


def _batches(pieces):
    for piece in pieces:
        for start in range(0, len(piece), BATCH):
            rows = piece.iloc[start : start + BATCH]
            yield rows[FEATURES].to_numpy(), rows[LABEL].to_numpy()


def path_and_rows():
    """The grown flights and how many rows they have, so that endless batches end."""
    (path,) = grown_flights()
    return path, expected_totals(path)["rows"]


def check_batches(value, path, limit):
    """Judge the totals of an answer's batches: each row once, in the right columns, beside its own label."""
    if isinstance(value, str):
        return value
    expected = expected_totals(path)
    if value["rows"] != limit:
        return f"the batches have {value['rows']:,} rows, not {limit:,}."
    for name, found, wanted in zip([*FEATURES, LABEL], value["sums"], expected["sums"], strict=True):
        if not close(found, wanted):
            return f"{name} adds up to {number(found)}, not {number(wanted)}; a missing value counts as 0."
    if not close(value["cross"], expected["cross"]):
        return "features and labels do not belong together: a row's label is its own arr_delay."
    return None


EXERCISES = {
    "02-a": Exercise(
        statement="write answer(path) that returns the mean arr_delay of each carrier on 60 MB of RAM.",
        arguments=grown_flights,
        check=check_mean_delays,
        ram="60 MB",
    ),
    "02-b": Exercise(
        statement=(
            f"write answer(path) that returns batches of {BATCH:,} rows, features ({', '.join(FEATURES)}) "
            f"and label {LABEL}, on 60 MB of RAM."
        ),
        arguments=path_and_rows,
        check=check_batches,
        ram="60 MB",
        job=go_over_batches,
    ),
}
