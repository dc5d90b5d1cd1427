"""What a run showed: its curves as a table, its log cut in the middle, its throughput."""

import numpy
import pytest

from helpers.watching import record
from helpers.watching.record import Curves, Line, Log, Phase, Recording, located


def test_the_table_has_the_newest_reading_of_the_device_and_nothing_before_the_first():
    curves = Curves([0.0, 0.1, 0.2, 0.3], [1.0, 2.0, 3.0, 4.0], vram=((0.05, 7), (0.25, 9)))
    samples = curves.table()
    assert samples["vram"].tolist() == pytest.approx([numpy.nan, 7, 7, 9], nan_ok=True)
    assert list(samples) == ["seconds", "ram", "vram", "waiting"]
    assert samples["waiting"].isna().all()


def test_there_is_no_column_for_a_card_that_is_not_there():
    busy = Curves([0.0, 0.3], [1.0, 2.0], utilisation=((0.1, 0.4),)).table()
    assert busy["utilisation"].tolist() == pytest.approx([numpy.nan, 0.4], nan_ok=True)


def test_waiting_is_one_inside_its_stretches_and_unknown_if_nobody_measured_it():
    samples = Curves([0.0, 0.1, 0.2, 0.3], [1.0] * 4, waiting=((0.05, 0.25),)).table()
    assert samples["waiting"].tolist() == [0, 1, 1, 0]
    assert Curves([0.0], [1.0], waiting=()).table()["waiting"].tolist() == [0]


def test_no_reading_at_all_is_an_empty_table():
    assert len(Curves(vram=((0.1, 5),), waiting=()).table()) == 0


def test_the_middle_of_a_long_log_is_left_out_and_said(monkeypatch):
    monkeypatch.setattr(record, "KEPT_LOG", 4)
    log = Log()
    assert [log.add(piece) for piece in (b"abc", b"def", b"ghijkl")] == [b"abc", b"d", b""]
    assert bytes(log) == b"abcd\n[... 4 bytes left out ...]\nijkl"


def recording(**changes):
    facts = {"label": "job", "outcome": "finished", "exit_code": 0, "seconds": 2.0, "ram_budget": None}
    return Recording(**facts | {"vram_budget": None, "peak_ram": 5, "peak_vram": None} | changes)


def test_throughput_counts_phases_that_ended_and_counted():
    phases = (Phase("load", 0.0, 1.0, 30), Phase("fit", 1.0, 2.0, None), Phase("save", 1.5, None, 9))
    assert recording(phases=phases).throughput == 30
    assert recording().throughput is None


@pytest.mark.parametrize("outcome", ["killed", "memory-error", "vram-oom"])
def test_three_outcomes_are_out_of_memory(outcome):
    assert recording(outcome=outcome).out_of_memory
    assert not recording(outcome="timeout").out_of_memory


def test_a_line_is_found_by_its_file_and_a_reason_stays_one(tmp_path):
    (tmp_path / "train.py").write_text("one = 1\n  two = 2\n")
    file = str(tmp_path / "train.py")
    assert located((file, 2), 70) == Line(file, 2, "two = 2", 70, "train.py:2")
    assert located(("(other processes)", 0), 7) == Line("(other processes)", 0, "", 7, "(other processes)")
