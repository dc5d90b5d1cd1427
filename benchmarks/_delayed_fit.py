"""A fit whose input and whose steps sleep for known times, and the record of what really happened in it."""

import time

from helpers import InputClock


class Record:
    """What really happened in a fit, noted where it happened: on a busy machine a sleep lasts longer than asked."""

    def __init__(self):
        self.asked, self.read, self.computing, self.ended = [], [], [], []

    def sleep(self, seconds, before=None, after=None):
        if before is not None:
            before.append(time.monotonic())
        time.sleep(seconds)
        if after is not None:
            after.append(time.monotonic())

    def waited(self):
        """The least and the most that the steps after the first can have waited: until their input was read, and
        until they computed with it."""
        least = sum(
            max(0.0, read - asked) for asked, read in zip(self.asked[1:], self.read[1:], strict=False)
        )
        most = sum(begun - asked for asked, begun in zip(self.asked[1:], self.computing[1:], strict=True))
        return least, most

    def shares_waited(self):
        return [seconds / (self.ended[-1] - self.ended[0]) for seconds in self.waited()]


def fit(data_seconds, step_seconds, overlapped=False, epochs=1, steps=15, per_epoch=None):
    """Fit a model whose input and whose step each sleep for a known time; returns the clock and the record."""
    import keras
    import tensorflow as tf

    record = Record()

    class Slow(keras.layers.Layer):
        def call(self, inputs):
            def sleep(values):
                record.sleep(step_seconds, before=record.computing)
                return values

            slept = tf.ensure_shape(tf.numpy_function(sleep, [inputs], tf.float32), inputs.shape)
            return tf.stop_gradient(slept) + inputs - tf.stop_gradient(inputs)

    def load(number):
        record.sleep(data_seconds, after=record.read)
        return number

    def batch(number):
        read = tf.reshape(tf.numpy_function(load, [number], tf.int64), ())
        return tf.fill((4, 2), tf.cast(read, tf.float32)), tf.zeros((4, 1))

    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = overlapped
    data = tf.data.Dataset.range(steps).map(batch).with_options(options)
    data = data.repeat() if per_epoch else data
    model = keras.Sequential([keras.Input((2,)), Slow(), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    clock = InputClock()
    noted = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: record.asked.append(time.monotonic()),
        on_train_batch_end=lambda batch, logs: record.ended.append(time.monotonic()),
    )
    data = clock.watch(data)
    callbacks, lengths = [clock, noted], {"epochs": epochs, "steps_per_epoch": per_epoch}
    model.fit(data, callbacks=callbacks, shuffle=False, verbose=0, **lengths)
    return clock, record
