"""InputClock reads the waiting that was built in, and nothing else."""

import time

import pytest

from helpers import InputClock, run


def fit(data_seconds, step_seconds, overlapped, epochs=1, steps=40, per_epoch=None):
    """Fit a model whose input and whose step each sleep for a known time; returns the clock."""
    import keras
    import tensorflow as tf

    class Slow(keras.layers.Layer):
        def call(self, inputs):
            def sleep(values):
                time.sleep(max(0, step_seconds))
                return values

            slept = tf.ensure_shape(tf.numpy_function(sleep, [inputs], tf.float32), inputs.shape)
            return tf.stop_gradient(slept) + inputs - tf.stop_gradient(inputs)

    def load(number):
        time.sleep(max(0, data_seconds))
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
    model.fit(clock.watch(data), callbacks=[clock], epochs=epochs, steps_per_epoch=per_epoch, verbose=0)
    return clock


def readings(overlapped, **settings):
    """The clock's readings of input and steps that take these times in all: what they take beside sleeping, which
    is read off a fit with other delays, comes off the sleep."""
    nominal = 0.03
    trained = fit(nominal, nominal, overlapped=False, steps=20)
    beside_input = trained.waited / 19 - nominal
    beside_step = (trained.trained - trained.waited) / 19 - nominal
    return [
        fit(data - beside_input, step - beside_step, overlapped, **settings).idle for data, step in DELAYS
    ]


DELAYS = [(0.040, 0.010), (0.020, 0.020), (0.010, 0.040)]


def test_input_that_is_read_between_the_steps_is_waited_for():
    trial = run(readings, overlapped=False)
    assert trial.value == pytest.approx([0.80, 0.50, 0.20], abs=0.03)
    assert trial.idle == pytest.approx(trial.value[-1])


def test_input_that_is_read_during_the_steps_is_waited_for_only_when_it_is_slower():
    assert run(readings, overlapped=True).value == pytest.approx([0.75, 0.0, 0.0], abs=0.03)


def seconds_waited(**settings):
    clock = fit(0.040, 0.010, overlapped=False, **settings)
    return clock.steps, clock.waited


@pytest.mark.parametrize("per_epoch", [None, 10])
def test_epochs_add_up_whether_the_iterator_is_new_or_goes_on(per_epoch):
    steps, waited = run(seconds_waited, epochs=2, steps=10, per_epoch=per_epoch).value
    assert steps == 20
    assert waited == pytest.approx(19 * 0.040, rel=0.15)


def test_a_trial_draws_the_waiting():
    trial = run(seconds_waited)
    drawn = trial.samples["waiting"] * trial.samples["seconds"].diff()
    assert drawn.sum() == pytest.approx(trial.value[1], rel=0.1)


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
