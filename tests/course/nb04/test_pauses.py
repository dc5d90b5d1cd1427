"""A pause lasts while the job computes, in threads and in children, and ends when nothing is left to do."""

import threading
import time

from helpers import run
from helpers.course.nb04.pauses import computing_seconds, wait_until_idle


def compute(until):
    while not until.is_set():
        sum(range(1000))


def wait_beside_a_busy_thread():
    ended = threading.Event()
    threading.Thread(target=compute, args=(ended,), daemon=True).start()
    while_busy = wait_until_idle(window=0.1, longest=0.5)
    ended.set()
    return while_busy, wait_until_idle(window=0.1, longest=10)


def test_a_pause_waits_for_threads():
    assert run(wait_beside_a_busy_thread, ram="100 MB").value == (False, True)


def wait_beside_a_busy_child():
    import multiprocessing

    context = multiprocessing.get_context("fork")
    ended = context.Event()
    child = context.Process(target=compute, args=(ended,), daemon=True)
    child.start()
    while_busy = wait_until_idle(window=0.1, longest=0.5)
    ended.set()
    child.join()
    return while_busy, wait_until_idle(window=0.1, longest=10)


def test_a_pause_waits_for_children():
    assert run(wait_beside_a_busy_child, ram="100 MB").value == (False, True)


def train_with_pauses():
    import keras
    import numpy

    from helpers.course.nb04.pauses import checkpoints

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(numpy.ones((5, 1)), numpy.ones(5), batch_size=1, verbose=0, callbacks=[checkpoints([1, 3])])


def test_a_checkpoint_is_a_phase_after_each_step_given():
    trial = run(train_with_pauses, ram="200 MB")
    assert [stretch.name for stretch in trial.phases] == ["checkpoint", "checkpoint"]


def test_computing_seconds_count_what_was_computed():
    before, deadline = computing_seconds(), time.process_time() + 0.2
    while time.process_time() < deadline:
        sum(range(1000))
    assert 0.1 < computing_seconds() - before < 5
