"""How long the device waits for input while a Keras model trains."""

import threading
import time
from collections import deque

from helpers import machine
from helpers.jobs.channel import tell

TELL_EVERY = 0.5


class InputClock:
    """Measures the waiting inside `model.fit`, where batch callbacks alone cannot see it.

        clock = InputClock()
        model.fit(clock.watch(dataset), callbacks=[clock])
        clock.idle   # fraction of the training time in which the device waited for input

    `watch` adds a last stage to the dataset that notes when each batch is delivered. A step waits from its beginning
    until then, or not at all if its batch was there before. The very first step is left out: it traces the model.
    """

    def __init__(self):
        self.steps = 0
        self.waited = self.trained = 0.0
        self._delivered = deque()
        self._lock = threading.Lock()
        self._untold, self._told_at = [], 0.0
        self._began = self._ended = None

    @property
    def idle(self):
        """The fraction of the time that went into waiting; None before a second step has ended."""
        return self.waited / self.trained if self.trained else None

    def watch(self, dataset):
        """The same dataset, whose batches are noted as they are delivered."""
        machine.need_tensorflow("InputClock")
        import tensorflow as tf

        if not isinstance(dataset, tf.data.Dataset):
            kind = type(dataset).__name__
            raise TypeError(f"watch needs a tf.data.Dataset, not {kind}; see tf.data.Dataset.from_generator")

        def note(number, batch):
            noted = tf.numpy_function(self._deliver, [number], tf.bool, stateful=True)
            with tf.control_dependencies([noted]):
                return tf.nest.map_structure(tf.identity, batch)

        return dataset.enumerate().map(note)

    def _deliver(self, number):
        with self._lock:
            if (
                number == 0
            ):  # a new iterator: what the one before delivered and nobody took is no step's batch
                self._delivered.clear()
            self._delivered.append(time.monotonic())
        return True

    def set_model(self, model):
        """Keras calls this first; steps that run several at once cannot be told apart."""
        if getattr(model, "steps_per_execution", 1) != 1:
            raise ValueError("InputClock needs steps_per_execution=1: compile the model without it")

    def set_params(self, params):
        pass

    def on_train_batch_begin(self, batch, logs=None):
        now = time.monotonic()
        if self._ended is not None:
            self.trained += now - self._ended  # between two steps: callbacks, metrics
        self._began = now

    def on_train_batch_end(self, batch, logs=None):
        self._ended = time.monotonic()
        with self._lock:
            delivered = self._delivered.popleft() if self._delivered else self._began
        self.steps += 1
        if self.steps == 1:
            return
        self.trained += self._ended - self._began
        if delivered > self._began:
            self.waited += delivered - self._began
            self._untold.append((self._began, delivered))
        if self._ended - self._told_at > TELL_EVERY:
            self._tell()

    def on_epoch_begin(self, epoch, logs=None):
        self._ended = None

    def on_train_end(self, logs=None):
        if self.idle is not None:
            self._tell()

    def _tell(self):
        """A trial takes these over into its samples and its `idle`."""
        tell("waiting", stretches=self._untold, idle=self.idle)
        self._untold, self._told_at = [], time.monotonic()

    def __getattr__(self, name):
        """Keras asks for more hooks than are needed here."""
        if name.startswith("on_"):
            return lambda *arguments, **keywords: None
        raise AttributeError(f"InputClock has no attribute {name!r}")
