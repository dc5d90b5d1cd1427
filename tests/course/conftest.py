"""What tests of exercises share: flights that are read at once."""

import numpy
import pandas
import pytest


@pytest.fixture(scope="session")
def flights_folder(tmp_path_factory):
    """A folder with a small file in place of the grown flights, with the same columns and some gaps."""
    folder = tmp_path_factory.mktemp("data")
    rows, random = 5_000, numpy.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "carrier": random.choice(["AA", "DL", "UA"], rows),
            "dep_delay": random.integers(-10, 90, rows).astype(float),
            "arr_delay": random.integers(-30, 120, rows).astype(float),
            "distance": random.integers(80, 5000, rows),
            "hour": random.integers(0, 24, rows),
        }
    )
    frame.loc[::50, ["dep_delay", "arr_delay"]] = numpy.nan
    frame.to_csv(folder / "flights-4.csv", index=False, na_rep="NA")
    return folder


@pytest.fixture
def flights(flights_folder, monkeypatch):
    """The path of that file, which is all that data/ has."""
    monkeypatch.setenv("OOM_DATA", str(flights_folder))
    return str(flights_folder / "flights-4.csv")
