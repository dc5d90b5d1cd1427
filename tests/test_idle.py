"""InputClock reads the waiting that was built in, and nothing else."""

import time

import pytest

from helpers import InputClock, run


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


def fit(data_seconds, step_seconds, overlapped=False, epochs=1, steps=40, per_epoch=None):
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
    model.fit(data, callbacks=[clock, noted], epochs=epochs, steps_per_epoch=per_epoch, verbose=0)
    return clock, record


DELAYS = [(0.040, 0.010), (0.020, 0.020), (0.010, 0.040)]
SLACK = 0.005
"""Of the whole time: the record and the clock hear of a step one after the other."""


def readings(overlapped):
    """For each pair of delays: the clock's reading, and the least and the most that it may be."""
    fits = [fit(*delays, overlapped) for delays in DELAYS]
    return [(clock.idle, *record.shares_waited()) for clock, record in fits]


def test_input_that_is_read_between_the_steps_is_waited_for():
    trial = run(readings, overlapped=False)
    for reading, least, most in trial.value:
        assert least - SLACK < reading < most + SLACK
    slow, even, quick = (reading for reading, *_ in trial.value)
    assert slow > even > quick > 0
    assert trial.idle == pytest.approx(quick)


def test_input_that_is_read_during_the_steps_is_waited_for_only_when_it_is_slower():
    found = run(readings, overlapped=True).value
    for reading, least, most in found:
        assert least - SLACK < reading < most + SLACK
    assert found[0][0] > found[2][0]


def seconds_waited(**settings):
    clock, record = fit(0.040, 0.010, **settings)
    return clock.steps, clock.waited, *record.waited()


@pytest.mark.parametrize("per_epoch", [None, 10])
def test_epochs_add_up_whether_the_iterator_is_new_or_goes_on(per_epoch):
    steps, waited, least, most = run(seconds_waited, epochs=2, steps=10, per_epoch=per_epoch).value
    assert steps == 20
    assert 0.99 * least < waited < 1.01 * most


def test_a_trial_draws_the_waiting():
    trial = run(seconds_waited)
    drawn = (trial.samples["waiting"] * trial.samples["seconds"].diff()).sum()
    assert drawn == pytest.approx(trial.value[1], rel=0.1)


def fit_several_steps_at_once():
    import keras
    import tensorflow as tf

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=4)
    clock = InputClock()
    data = tf.data.Dataset.from_tensor_slices((tf.ones((8, 2)), tf.ones((8, 1)))).batch(1)
    model.fit(clock.watch(data), callbacks=[clock], verbose=0)


def test_steps_that_cannot_be_told_apart_are_refused_with_a_sentence():
    trial = run(fit_several_steps_at_once)
    assert trial.outcome == "error"
    assert "InputClock needs steps_per_execution=1" in trial.error


def test_what_is_not_a_dataset_is_refused_with_a_sentence():
    with pytest.raises(TypeError, match=r"watch needs a tf\.data\.Dataset, not list"):
        InputClock().watch([1, 2, 3])


def test_before_the_second_step_there_is_no_reading():
    assert InputClock().idle is None
