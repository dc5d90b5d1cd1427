"""What a job prints cannot end it, whatever the caller's own streams are."""

import io
import sys

import pytest

from helpers import run


def speak():
    print("é\u20ac")
    return "spoken"


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


class Full(io.StringIO):
    """A disk without space, or a pipe that nobody reads."""

    def write(self, text):
        raise OSError("nothing can be written")


@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize(
    "stream", [lambda: None, closed, Full, lambda: io.TextIOWrapper(io.BytesIO(), encoding="ascii")]
)
def test_a_job_may_print_what_the_callers_stream_cannot_take(monkeypatch, stream, name):
    monkeypatch.setattr(sys, name, stream())
    trial = run(speak)
    assert (trial.outcome, trial.value, trial.log) == ("finished", "spoken", "é\u20ac\n")


def test_a_stream_of_another_encoding_gets_what_it_can_take(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    run(speak)
    assert stream.buffer.getvalue() == b"\\xe9\\u20ac\n"
