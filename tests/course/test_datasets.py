"""The flights file: the same bytes each time, whole or not at all, and sentences when the disk says no."""

import errno
import hashlib
import os
import subprocess
import sys

import pandas
import pytest

from disks import mounted
from helpers.course import datasets
from helpers.course.datasets import flight_tables, whole

ROWS_2013 = 336_776
DIGEST_2_COPIES = "787bfaaa1a496404d53bd72b11cbb0df3afb218955fd988de48b910acfc907ef"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_bytes_are_the_same_each_time(folder):
    path = flight_tables.make_flights(copies=2)
    first = digest(path)
    path.unlink()
    assert digest(flight_tables.make_flights(copies=2)) == first == DIGEST_2_COPIES


def test_a_grown_file_holds_the_year_again_and_again(folder):
    flight_tables.make_flights(copies=3)
    table = pandas.read_csv(datasets.flights(copies=3))
    assert table["year"].value_counts().to_dict() == dict.fromkeys((2013, 2014, 2015), ROWS_2013)
    first, last = table[:ROWS_2013], table[2 * ROWS_2013 :].reset_index(drop=True)
    unchanged = [name for name in table.columns if name not in ("year", "time_hour")]
    assert len(unchanged) == 17
    pandas.testing.assert_frame_equal(first[unchanged], last[unchanged])
    later = pandas.to_datetime(last["time_hour"]) - pandas.to_datetime(first["time_hour"])
    assert later.unique().tolist() == [pandas.Timedelta(days=2 * 365)]


def test_one_copy_is_the_file_of_the_package(folder):
    path = flight_tables.make_flights()
    with flight_tables._archive() as archive:
        assert path.read_bytes() == archive.read("flights.csv")


def test_a_finished_file_is_left_alone_and_a_cut_one_is_made_again(folder):
    path = flight_tables.make_flights()
    os.utime(path, (1, 1))
    flight_tables.make_flights()
    assert path.stat().st_mtime == 1
    os.truncate(path, 1000)
    flight_tables.make_flights()
    assert path.stat().st_size == 31_053_850


def test_a_missing_file_names_the_command_that_makes_it(folder):
    with pytest.raises(FileNotFoundError, match=r"flights-10\.csv is missing; .*: python -m helpers data$"):
        datasets.flights(copies=10)
    with pytest.raises(FileNotFoundError, match=r": python -m helpers data flights-3\.csv$"):
        datasets.flights(copies=3)


@pytest.mark.parametrize("copies", [0, -1, 2.0, "2", True, None])
def test_a_senseless_number_of_copies_is_refused(copies):
    with pytest.raises(ValueError, match="must be a whole number from 1 up"):
        datasets.flights(copies=copies)


@pytest.mark.parametrize("name", ["flights-0.csv", "flights.txt", "../flights.csv", "flights-2.csv.part"])
def test_a_name_that_is_no_data_file_is_refused(name):
    with pytest.raises(ValueError, match="is no data file of the course"):
        datasets.make(name)


def test_every_known_name_goes_to_the_maker_of_its_kind(monkeypatch):
    monkeypatch.setattr(datasets, "MAKERS", {kind: kind.name for kind in datasets.MAKERS})
    assert len(datasets.names()) >= 5
    assert [datasets.make(name) for name in datasets.names()] == datasets.names()


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_an_interruption_half_way_leaves_nothing(folder, monkeypatch, interruption):
    def pieces(copies):
        yield flight_tables.HEADER
        raise interruption

    monkeypatch.setattr(flight_tables, "_pieces", pieces)
    with pytest.raises(interruption):
        flight_tables.make_flights()
    assert list(folder.iterdir()) == []


def test_two_processes_at_once_both_end_well(folder):
    command = [sys.executable, "-m", "helpers", "data", "flights-2.csv"]
    makers = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [maker.wait(timeout=120) for maker in makers] == [0, 0]
    assert [path.name for path in folder.iterdir()] == ["flights-2.csv"]
    assert digest(folder / "flights-2.csv") == DIGEST_2_COPIES


def test_a_disk_that_fills_up_half_way_is_named_and_the_part_removed(folder, monkeypatch):
    monkeypatch.setattr(whole, "_check_room", lambda path, size: None)
    with mounted(folder, "size=20m"):
        with pytest.raises(
            OSError, match=r"flights\.csv needs 31 MB and the disk has .* left; free some room"
        ):
            flight_tables.make_flights()
        assert list(folder.iterdir()) == []


def test_a_full_disk_needs_no_mount_to_be_explained(folder, monkeypatch):
    def pieces(copies):
        yield flight_tables.HEADER
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(flight_tables, "_pieces", pieces)
    with pytest.raises(OSError, match=r"flights\.csv needs 31 MB and the disk has .* left"):
        flight_tables.make_flights()
    assert list(folder.iterdir()) == []


def test_a_folder_below_a_read_only_one_is_named_too(folder, monkeypatch):
    monkeypatch.setenv("OOM_DATA", str(folder / "data"))
    with mounted(folder, "size=50m,ro"), pytest.raises(PermissionError, match="cannot be written to"):
        flight_tables.make_flights()


def test_what_a_killed_process_left_is_removed_and_a_young_part_is_not(folder):
    old, young = folder / ".flights.csv.0000.part", folder / ".flights.csv.1111.part"
    old.touch()
    young.touch()
    os.utime(old, (1, 1))
    flight_tables.make_flights()
    assert sorted(path.name for path in folder.iterdir()) == [young.name, "flights.csv"]


def test_a_missing_package_is_named(monkeypatch, folder):
    def missing(name):
        raise flight_tables.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(flight_tables.metadata, "distribution", missing)
    with pytest.raises(ModuleNotFoundError, match="install it with: make lab"):
        flight_tables.make_flights()
