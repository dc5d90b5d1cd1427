"""What a job tells arrives whole, in any pieces, and garbage ends the conversation without an error."""

import os
import random

from helpers import reports
from helpers.reports import HEADER, Receiver


def told(monkeypatch, action):
    reading, writing = os.pipe()
    monkeypatch.setattr(reports, "_channel", writing)
    action()
    monkeypatch.setattr(reports, "_channel", None)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read()


def test_messages_arrive_whole_in_any_pieces(monkeypatch):
    def job():
        with reports.phase("load", items=3):
            reports.tell("value", pickled=b"x" * 1000)

    stream = told(monkeypatch, job)
    receiver, messages = Receiver(), []
    pieces = random.Random(0)
    while stream:
        size = pieces.randint(1, 50)
        messages += receiver.feed(stream[:size])
        stream = stream[size:]
    assert [kind for kind, _, _ in messages] == ["phase_begin", "value", "phase_end"]
    assert messages[2][2] == {"name": "load", "items": 3}
    assert messages[0][1] <= messages[1][1] <= messages[2][1]


def test_outside_a_job_nothing_is_told():
    assert not reports.in_job()
    with reports.phase("load") as stretch:
        stretch.items = 5


def test_garbage_ends_the_conversation():
    receiver = Receiver()
    assert receiver.feed(HEADER.pack(5) + b"trash") == []
    assert receiver.feed(HEADER.pack(2**31) + b"more") == []
    assert receiver.feed(b"x" * 10_000) == []


def test_a_channel_that_the_job_closed_is_forgotten(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    monkeypatch.setattr(reports, "_channel", writing)
    reports.tell("line", at=None)
    assert not reports.in_job()
