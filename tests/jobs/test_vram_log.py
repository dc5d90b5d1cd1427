"""Figures in shared memory outlive their writer, and a late reader gets the newest."""

import os
import signal

import pytest

from helpers.jobs.vram_log import ENTRIES, VramLog, open_file


@pytest.fixture
def ends():
    """The end of a writer and that of a reader."""
    with open_file() as file:
        writer, reader = VramLog(file.fileno()), VramLog(file.fileno())
    yield writer, reader
    writer.close()
    reader.close()


def test_each_figure_is_read_once_and_in_order(ends):
    writer, reader = ends
    assert reader.read() == []
    for number in range(3):
        writer.write(number / 2, number, 10 * number)
    assert reader.read() == [(0.0, 0, 0), (0.5, 1, 10), (1.0, 2, 20)]
    writer.write(9.0, 2**40, 2**41)
    assert reader.read() == [(9.0, 2**40, 2**41)]
    assert reader.read() == []


def test_a_reader_that_comes_late_finds_the_newest(ends):
    writer, reader = ends
    for number in range(2 * ENTRIES + 5):
        writer.write(float(number), number, number)
    numbers = [current for _, current, _ in reader.read()]
    assert numbers == list(range(ENTRIES + 5, 2 * ENTRIES + 5))


def test_what_a_killed_process_wrote_is_there(ends):
    writer, reader = ends
    pid = os.fork()
    if pid == 0:
        writer.write(1.0, 7, 8)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert reader.read() == [(1.0, 7, 8)]
