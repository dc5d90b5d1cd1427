"""InputClock reads the waiting that was built in, and nothing else."""

import pytest

from benchmarks._delayed_fit import fit
from helpers import InputClock, run

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
