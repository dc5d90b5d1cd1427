"""A training loop that times itself while its watcher runs and while it is stopped.

It imports nothing that starts processes: a program under the doctor is alone.
"""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np

STEPS = 16


def small_cnn():
    """A compiled model and a batch for it."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(0)
    generator = np.random.default_rng(0)
    images, labels = generator.random((32, 32, 32, 3), dtype="float32"), generator.integers(0, 10, 32)
    convolutions = [layers.Conv2D(filters, 3, strides=2, activation="relu") for filters in (16, 32, 64)]
    model = keras.Sequential([*convolutions, layers.GlobalAveragePooling2D(), layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, jit_compile=False)
    return model, images, labels


def in_windows(windows, watcher):
    """Train in short windows, of which every other one stops the process `watcher`. Returns the ratios of watched to
    unwatched windows, four by four, and the share of a core that the watcher took while it ran."""
    model, images, labels = small_cnn()
    gate = _reporter_behind_a_gate()
    seconds, effort = {True: [], False: []}, 0.0
    for _ in range(STEPS):
        model.train_on_batch(images, labels)
    try:
        for number in range(windows):
            watched = number % 4 in (0, 3)
            (gate.set if watched else gate.clear)()
            os.kill(watcher, signal.SIGCONT if watched else signal.SIGSTOP)
            time.sleep(0.005)
            before, began = _worked(watcher), time.perf_counter()
            for _ in range(STEPS):
                model.train_on_batch(images, labels)
            seconds[watched].append(time.perf_counter() - began)
            effort += _worked(watcher) - before
    finally:
        os.kill(watcher, signal.SIGCONT)
    pairs = (list(zip(times[::2], times[1::2], strict=True)) for times in seconds.values())
    found = [sum(watched) / sum(unwatched) for watched, unwatched in zip(*pairs, strict=True)]
    return found, effort / sum(seconds[True])


def _worked(pid):
    """Seconds that a process has worked, to the nanosecond: what psutil tells is too coarse for a short window."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _reporter_behind_a_gate():
    """What the job itself reports belongs to the watching: it rests while the gate is closed."""
    from helpers.jobs.device import Reporter

    gate, report = threading.Event(), Reporter.report

    def report_when_watched(self):
        gate.wait()
        report(self)

    Reporter.report = report_when_watched
    return gate
