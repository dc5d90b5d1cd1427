"""Pauses of a training loop that last until the input pipeline has nothing left to do."""

import time
from contextlib import suppress

import psutil

from helpers.jobs.channel import phase

WINDOW = 0.2
IDLE = 0.08
"""A family of processes is idle when it computes for less than this share of a window."""


def checkpoints(steps):
    """A Keras callback that stops the training after each of these steps until every buffer is full.

    It stands for a checkpoint on a slow disk, a long validation, or a model that is slower than its input.
    """
    import keras

    def pause(step, logs):
        if step in steps:
            with phase("checkpoint"):
                wait_until_idle()

    return keras.callbacks.LambdaCallback(on_train_batch_end=pause)


def wait_until_idle(window=WINDOW, longest=30):
    """Wait until this process and its children compute no more; False if they still do after `longest` seconds."""
    deadline = time.monotonic() + longest
    before = computing_seconds()
    while time.monotonic() < deadline:
        time.sleep(window)
        after = computing_seconds()
        if after - before < IDLE * window:
            return True
        before = after
    return False


def computing_seconds():
    """The seconds that this process and its children have computed so far, on all cores together."""
    total = 0.0
    process = psutil.Process()
    for member in (process, *process.children(recursive=True)):
        with suppress(psutil.Error):  # it ended meanwhile
            spent = member.cpu_times()
            total += spent.user + spent.system
    return total
