"""A process tells on a signal where its threads are, and keeps nothing for it."""

import gc
import os
import signal
import threading
import weakref

import pytest

from helpers import answering
from helpers.lines import DumpReader

pytestmark = pytest.mark.skipif(answering.ASK is None, reason="no real-time signals on this system")


@pytest.fixture
def asked():
    """Ask this very process; returns what it wrote."""
    reading, writing = os.pipe()
    before = signal.getsignal(answering.ASK)
    answering.listen(writing)

    def ask():
        signal.raise_signal(answering.ASK)
        try:
            return os.read(reading, 1_000_000)
        except BlockingIOError:
            return b""

    os.set_blocking(reading, False)

    yield ask
    signal.signal(answering.ASK, before)
    answering.faulthandler.unregister(answering.STUCK)
    os.close(reading)
    os.close(writing)


def test_an_answer_has_the_line_of_each_thread(asked):
    done, started = threading.Event(), threading.Event()

    def wait():
        started.set()
        done.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    started.wait()
    (answer,) = DumpReader().feed(asked())
    done.set()
    thread.join()
    assert answer["held"] > 1_000_000
    assert {file for file, _ in (answer[os.getpid()], answer[thread.native_id])} == {__file__}
    assert answer[thread.native_id][1] == wait.__code__.co_firstlineno + 2


class Something:
    """What a function of the job holds."""


def test_what_a_function_held_goes_when_it_ends_though_it_was_asked(asked):
    kept = []

    def work():
        something = Something()
        kept.append(weakref.ref(something))
        asked()

    gc.disable()
    try:
        work()
        assert kept[0]() is None
    finally:
        gc.enable()


def test_a_deep_stack_is_cut_and_a_failed_answer_does_not_reach_the_job(asked):
    def deep(levels):
        return deep(levels - 1) if levels else asked()

    assert asked().count(b"  File ") < deep(500).count(b"  File ") <= 100 * threading.active_count()

    def endless():
        asked()
        endless()

    with pytest.raises(RecursionError):
        endless()


def test_nobody_listens(asked):
    reading, writing = os.pipe()
    answering.listen(writing)
    os.close(writing)
    signal.raise_signal(answering.ASK)
    os.close(reading)
