"""What a job tells arrives whole, in any pieces, and garbage ends the conversation without an error."""

import json
import os
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.jobs import channel
from helpers.jobs.channel import HEADER, Receiver


def told(monkeypatch, action):
    reading, writing = os.pipe()
    monkeypatch.setattr(channel, "_channel", writing)
    action()
    monkeypatch.setattr(channel, "_channel", None)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read()


def test_messages_arrive_whole_in_any_pieces(monkeypatch):
    def job():
        with channel.phase("load", items=3):
            channel.tell("value", b"x" * 1000)

    stream = told(monkeypatch, job)
    receiver, messages = Receiver(), []
    pieces = random.Random(0)
    while stream:
        size = pieces.randint(1, 50)
        messages += receiver.feed(stream[:size])
        stream = stream[size:]
    assert [message.kind for message in messages] == ["phase_begin", "value", "phase_end"]
    assert messages[1].payload == b"x" * 1000
    assert messages[2].facts == {"name": "load", "items": 3}
    assert messages[0].moment <= messages[1].moment <= messages[2].moment


def test_outside_a_job_nothing_is_told():
    assert not channel.is_open()
    with channel.phase("load") as stretch:
        stretch.items = 5


def test_garbage_ends_the_conversation():
    receiver = Receiver()
    assert receiver.feed(HEADER.pack(5, 0) + b"trash") == []
    assert receiver.feed(HEADER.pack(2**31, 7) + b"more") == []
    assert receiver.feed(b"x" * 10_000) == []


def test_a_channel_that_the_job_closed_is_forgotten(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    monkeypatch.setattr(channel, "_channel", writing)
    channel.tell("line", at=None)
    assert not channel.is_open()


@pytest.mark.parametrize(
    ("items", "told_as"), [(np.int64(3), 3), (np.float32(2.5), 2.5), (np.array(7), 7), (True, 1)]
)
def test_items_arrive_as_plain_numbers(monkeypatch, items, told_as):
    def job():
        with channel.phase("load", items=items):
            pass

    messages = Receiver().feed(told(monkeypatch, job))
    assert messages[1].facts["items"] == told_as


def test_items_that_are_no_number_are_named_unless_the_job_has_failed_already():
    with pytest.raises(TypeError, match="items of a phase is a number"), channel.phase("load") as stretch:
        stretch.items = ["a row"]
    with pytest.raises(KeyError), channel.phase("load", items="many"):
        raise KeyError("the job's own error")


@given(st.binary(max_size=200), st.integers(1, 50))
def test_no_bytes_at_all_break_the_receiver(garbage, size):
    receiver = Receiver()
    for start in range(0, len(garbage), size):
        for message in receiver.feed(garbage[start : start + size]):
            assert message.facts.keys() == channel.FACTS[message.kind]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8) | st.sampled_from(sorted(channel.FACTS)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_json_of_another_kind_ends_the_conversation(content):
    text = json.dumps(content).encode()
    receiver = Receiver()
    assert receiver.feed(HEADER.pack(len(text), 0) + text) == []
    proper = json.dumps(["ready", 1.0, {"device": None}]).encode()
    assert receiver.feed(HEADER.pack(len(proper), 0) + proper) == []
