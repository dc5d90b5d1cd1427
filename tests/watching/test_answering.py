"""A process tells on a signal where its threads are, and keeps nothing for it."""

import gc
import os
import signal
import subprocess
import sys
import threading
import weakref

import pytest

from helpers.watching import answering
from helpers.watching.lines import LIBRARIES, OURS
from helpers.watching.voices import Told, Voices

pytestmark = pytest.mark.skipif(answering.ASK is None, reason="no real-time signals on this system")


@pytest.fixture
def asked():
    """Ask this very process; returns what it told."""
    before = signal.getsignal(answering.ASK)
    voices = Voices()
    answering.listen(voices.folder, (*LIBRARIES, *OURS), grows=False)
    [(voice, _)] = voices.new()

    def ask():
        signal.raise_signal(answering.ASK)
        return [word for word in voice.hear()[0] if isinstance(word, Told)]

    yield ask
    answering._end()
    answering._voice.forget()
    signal.signal(answering.ASK, before)
    voice.close()
    voices.close()


def test_an_answer_has_the_line_of_each_thread(asked):
    done, started = threading.Event(), threading.Event()

    def wait():
        started.set()
        done.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    started.wait()
    (answer,) = asked()
    done.set()
    thread.join()
    assert answer.held > 1_000_000
    assert answer.highest >= answer.held
    assert answer.faults > 1000
    assert {file for file, _ in (answer.lines[os.getpid()], answer.lines[thread.native_id])} == {__file__}
    assert answer.lines[thread.native_id][1] == wait.__code__.co_firstlineno + 2


def test_hundreds_of_threads_are_told(asked):
    done = threading.Event()
    threads = [threading.Thread(target=done.wait) for _ in range(200)]
    for thread in threads:
        thread.start()
    (answer,) = asked()
    done.set()
    for thread in threads:
        thread.join()
    assert answer.lines[os.getpid()][0] == __file__


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


def test_a_deep_stack_has_one_line_and_a_failed_answer_does_not_reach_the_job(asked):
    def deep(levels):
        return deep(levels - 1) if levels else asked()

    assert deep(500)[0].lines[os.getpid()][0] == __file__

    def endless():
        asked()
        endless()

    with pytest.raises(RecursionError):
        endless()


def test_nobody_listens(asked, tmp_path):
    voices = Voices()
    answering.listen(voices.folder, grows=False)
    voices.close()
    signal.raise_signal(answering.ASK)


def test_where_no_pipe_can_be_made_the_reason_is_told(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        answering.listen(str(tmp_path / "nowhere"))


FOREIGN_THREADS = """
import ctypes, os, signal, threading, time
from helpers.watching import answering, voices

library = ctypes.CDLL(None)
visits, is_over = [], threading.Event()
visit = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(visits.append)


def come_and_go():
    while not is_over.is_set():
        threads = [ctypes.c_ulong() for _ in range(8)]
        for thread in threads:
            library.pthread_create(ctypes.byref(thread), None, visit, None)
        for thread in threads:
            library.pthread_join(thread, None)


folder = voices.Voices()
answering.listen(folder.folder).begin()
makers = [threading.Thread(target=come_and_go) for _ in range(2)]
for maker in makers:
    maker.start()
while len(visits) < 5000:
    signal.raise_signal(answering.ASK)
    time.sleep(0.0001)
is_over.set()
for maker in makers:
    maker.join()
folder.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the names of glibc's functions")
def test_threads_of_a_library_may_come_and_go_while_the_process_is_asked():
    """TensorFlow's do whenever it calls Python; a look at all stacks from C crashed there, in one job of five."""
    done = subprocess.run(
        [sys.executable, "-c", FOREIGN_THREADS], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
