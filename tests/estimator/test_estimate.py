"""The estimate: close to the truth, adding up, harmless to the model, and clear about what it cannot do."""

import argparse
import gc
import os
import subprocess
import sys

import keras
import numpy
import pytest
import tensorflow
from keras import layers
from matplotlib.text import Text

from benchmarks.estimate import error_of, measured, predicted, section, summary
from helpers import run
from helpers.__main__ import main
from helpers.charts.parts import against_card
from helpers.estimator import loops, trace
from helpers.estimator.cli import add_arguments, command
from helpers.estimator.estimate import estimate


def small_cnn(**head):
    return keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10, **(head or {"activation": "softmax"})),
        ]
    )


def wide_dense():
    return keras.Sequential([keras.Input((256,)), layers.Dense(1024), layers.Dense(10)])


def deep_dense():
    hidden = [layers.Dense(128, activation="relu") for _ in range(6)]
    return keras.Sequential([keras.Input((64, 128)), *hidden, layers.Dense(1)])


def frozen_convolution():
    """It has a gradient for its input, whose scratch depends on the threads, and none for its filters."""
    convolution = layers.Conv2D(16, 3, padding="same", trainable=False)
    return keras.Sequential(
        [keras.Input((32, 32, 3)), layers.Dense(16), convolution, layers.GlobalAveragePooling2D()]
    )


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = layers.Dense(64, activation="relu")
        self.head = layers.Dense(3)

    def call(self, inputs):
        return self.head(self.hidden(inputs))


@pytest.mark.parametrize("name", ["CNN, strides", "MLP 1024"])
def test_the_estimate_is_within_ten_percent_of_a_peak_that_the_model_has(name):
    """A batch that is late is missing in the peak, so the training waits for its input; still a model can have more
    than one peak, by what TensorFlow does first, and the estimate has to be one of these."""
    peaks = [measured(name, pause=0.2)["bytes"] for _ in range(3)]
    assert abs(error_of(predicted(name)["bytes"], peaks)) <= 0.10, peaks


def test_a_table_compares_an_estimate_with_the_nearest_of_the_peaks():
    def turns(*sizes):
        return [{"bytes": size, "seconds": 1.0} for size in sizes]

    results = {"MLP 1024": {"predicted": turns(148e6, 148e6, 148e6), "measured": turns(100e6, 100e6, 150e6)}}
    assert "-1.3%" in section("Models", results)


def test_parts_and_layers_each_add_up_to_the_peak():
    guess = estimate(small_cnn(), 8)
    assert sum(guess.parts.values()) == guess.peak
    assert sum(guess.layers.values()) == guess.peak
    assert {"weights", "gradients", "optimizer", "activations", "temporaries", "batch"} <= guess.parts.keys()
    assert "conv2d" in " ".join(guess.layers)


def test_the_model_and_keras_are_left_as_they_were():
    model = small_cnn()
    model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    compiled, weights = model.optimizer, model.get_weights()
    attributes, policy = dict(vars(model)), keras.config.dtype_policy()
    estimate(model, 4, optimizer="adam", precision="mixed_float16", accumulation=2)
    assert vars(model) == attributes
    assert model.optimizer is compiled
    assert not compiled.built
    assert keras.config.dtype_policy() == policy
    assert {layer.dtype_policy.name for layer in model.layers} == {"float32"}
    for before, after in zip(weights, model.get_weights(), strict=True):
        numpy.testing.assert_array_equal(before, after)


def test_slots_are_counted_by_the_optimizer():
    weights = wide_dense().count_params() * 4
    slots = {name: estimate(wide_dense(), 4, optimizer=name).parts["optimizer"] for name in ("sgd", "adam")}
    assert slots["sgd"] < 10_000
    assert slots["adam"] == pytest.approx(2 * weights, rel=0.05)


def test_a_compiled_model_brings_its_own_optimizer_and_loss():
    model = wide_dense()
    model.compile(optimizer="sgd", loss="mse")
    assert estimate(model, 4).optimizer == "SGD"
    assert estimate(model, 4, optimizer="adam").optimizer == "Adam"
    assert estimate(wide_dense(), 4).optimizer == "Adam"


def test_activations_grow_with_the_batch_and_shrink_with_the_precision():
    small, large = (estimate(deep_dense(), size, "sgd").parts["activations"] for size in (8, 32))
    half = estimate(deep_dense(), 32, "sgd", precision="mixed_float16").parts["activations"]
    assert large == pytest.approx(4 * small, rel=0.05)
    assert large >= 5 * 32 * 64 * 128 * 4
    assert half < 0.7 * large


def test_a_stream_has_three_batches_on_the_device_and_arrays_are_there_as_a_whole():
    batch = 32 * 64 * (128 + 1) * 4
    stream, arrays = (estimate(deep_dense(), 32, "sgd", samples=samples) for samples in (None, 320))
    assert stream.parts["batch"] == pytest.approx(3 * batch, rel=0.05)
    assert arrays.parts["batch"] == pytest.approx((10 + 4) * batch, rel=0.05)


def test_accumulation_keeps_at_least_one_more_copy_of_the_gradients():
    plain, accumulated = (estimate(wide_dense(), 4, accumulation=steps) for steps in (1, 4))
    weights = wide_dense().count_params() * 4
    assert accumulated.parts["optimizer"] - plain.parts["optimizer"] >= 0.95 * weights


def test_the_machine_that_asks_changes_nothing(monkeypatch):
    guesses = []
    for cores in (1, 2, 64):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        guesses.append(estimate(frozen_convolution(), 4, samples=4).parts)
    assert guesses[0] == guesses[1] == guesses[2]


def test_threads_that_share_a_convolution_get_scratch_for_several_images():
    unfolded = 32 * 32 * (3 * 3 * 16) * 4
    few, many = (estimate(frozen_convolution(), 4, samples=4, threads=threads).peak for threads in (2, 64))
    assert many - few > 10 * unfolded


def test_the_largest_batch_fits_and_the_next_does_not():
    guess = estimate(small_cnn(), 8)
    largest = guess.largest_batch("20 MB")
    assert estimate(small_cnn(), largest).fits("20 MB")
    assert not estimate(small_cnn(), largest + 1 + largest // 100).fits("20 MB")
    assert guess.largest_batch("1 MB") == 0


def test_several_inputs_and_a_subclass_are_understood():
    first, second = keras.Input((16,)), keras.Input((8,))
    joined = layers.Dense(4)(layers.Concatenate()([first, second]))
    assert estimate(keras.Model([first, second], joined), 4).peak > 0
    model = Subclassed()
    model(numpy.zeros((2, 32), "float32"))
    assert estimate(model, 4).parts["weights"] >= model.count_params() * 4


def test_a_recurrent_model_is_followed_through_its_loop():
    model = keras.Sequential([keras.Input((20, 8)), layers.LSTM(16), layers.Dense(1)])
    states_kept = 20 * 16 * 4 * 32
    assert estimate(model, 32).peak > 4 * states_kept


def test_a_longer_loop_keeps_more_for_the_backward_pass():
    peaks = []
    for steps in (20, 40):
        model = keras.Sequential([keras.Input((steps, 8)), layers.GRU(64), layers.Dense(1)])
        peaks.append(estimate(model, 64, "sgd").parts["activations"])
    assert peaks[1] == pytest.approx(2 * peaks[0], rel=0.15)


def recurrent(steps, layer=layers.LSTM, **options):
    return keras.Sequential([keras.Input((steps, 8)), layer(24, **options), layers.Dense(1)])


@pytest.mark.parametrize(
    ("layer", "options", "tolerance"),
    [
        (layers.LSTM, {}, 0.001),
        (layers.LSTM, {"go_backwards": True}, 0.001),
        (layers.GRU, {"return_sequences": True}, 0.05),
        (layers.SimpleRNN, {"return_sequences": True}, 0.05),
    ],
)
def test_a_long_loop_in_a_few_steps_has_the_peak_of_all_its_iterations(
    monkeypatch, layer, options, tolerance
):
    quick = estimate(recurrent(300, layer, **options), 16)
    monkeypatch.setattr(loops, "STEPS", 10_000)
    whole = estimate(recurrent(300, layer, **options), 16)
    assert quick.peak == pytest.approx(whole.peak, rel=tolerance)
    assert sum(quick.parts.values()) == quick.peak


def test_the_steps_of_a_long_loop_stand_for_all_of_it_and_fit_together(monkeypatch):
    planned = []
    plan = loops.Loop.plan

    def plan_and_note(loop):
        plan(loop)
        planned.append(loop)

    monkeypatch.setattr(loops.Loop, "plan", plan_and_note)
    estimate(recurrent(1000), 4)
    forward, backward = planned
    weights = [[loop.weight(number) for number in range(len(loop.iterations) - 1)] for loop in planned]
    assert (forward.length, backward.length) == (1000, 1000)
    assert [sum(one) for one in weights] == [1000, 1000]
    assert weights[0] == weights[1][::-1]
    assert len(weights[0]) < 50


def test_a_short_loop_is_replayed_as_it_is(monkeypatch):
    short = estimate(recurrent(30), 16).peak
    monkeypatch.setattr(loops, "STEPS", 10_000)
    assert estimate(recurrent(30), 16).peak == short


def test_a_loop_of_convolutions_keeps_images_and_not_their_shapes():
    model = keras.Sequential(
        [
            keras.Input((6, 16, 16, 2)),
            layers.ConvLSTM2D(8, 3, padding="same"),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )
    measured_peak = run(fit_once, model, (6, 16, 16, 2), 8, vram="1 GB").peak_vram
    guess = estimate(model, 8, "adam", loss="mse", samples=8, threads=os.cpu_count())
    assert guess.peak == pytest.approx(measured_peak, rel=0.15)


def test_a_convolution_in_groups_has_the_filter_of_all_channels_as_scratch():
    model = keras.Sequential(
        [
            keras.Input((16, 16, 3)),
            layers.Conv2D(192, 1),
            layers.Conv2D(192, 5, padding="same", groups=192),
            layers.GlobalAveragePooling2D(),
            layers.Dense(1),
        ]
    )
    measured_peak = run(fit_once, model, (16, 16, 3), 4, vram="1 GB").peak_vram
    guess = estimate(model, 4, "adam", loss="mse", samples=4, threads=os.cpu_count())
    assert guess.peak == pytest.approx(measured_peak, rel=0.15)


def fit_once(model, shape, count):
    model.compile(optimizer="adam", loss="mse", jit_compile=False)
    model.fit(numpy.zeros((count, *shape), "float32"), numpy.zeros((count, 1)), batch_size=count, verbose=0)


@pytest.mark.parametrize("collecting", [True, False])
def test_garbage_collection_is_left_as_it_was(collecting):
    (gc.enable if collecting else gc.disable)()
    try:
        estimate(wide_dense(), 4)
        assert gc.isenabled() is collecting
    finally:
        gc.enable()


def test_what_misses_a_target_is_named():
    text = summary({"LSTM": 0.02, "CNN": -0.2, "MLP": 0.0}, {"LSTM": 1.5, "CNN": 0.5, "MLP": 0.9})
    assert "too high: CNN -20.0%." in text
    assert "Slower than the first step: LSTM 1.50." in text
    assert "worst -20.0%, lowest -20.0%" in text
    assert summary({"MLP": 0.0}, {"MLP": 0.9}).count("none") == 2


def test_a_model_with_a_list_of_outputs_is_traced_with_its_losses():
    inputs = keras.Input((16,))
    model = keras.Model(inputs, [layers.Dense(1)(inputs), layers.Dense(4)(inputs)])
    model.compile(loss=["mse", keras.losses.SparseCategoricalCrossentropy(from_logits=True)])
    assert estimate(model, 4).parts["weights"] >= model.count_params() * 4


class OwnStep(Subclassed):
    """A train_step that is fed with `want`: features and targets, a tuple of features, or features."""

    def train_step(self, data):
        if self.want == "pair":
            features, _ = data
        elif self.want == "tuple":
            (features,) = data
        else:
            features = data
            assert not isinstance(data, tuple)
        with tensorflow.GradientTape() as tape:
            loss = keras.ops.mean(self(features) ** 2)
        self.optimizer.apply_gradients(
            zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables, strict=True)
        )
        return {"loss": loss}


@pytest.mark.parametrize("want", ["pair", "tuple", "features"])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_train_step_of_the_models_own_gets_what_it_wants(want, compiled):
    model = OwnStep()
    model.want = want
    model(numpy.zeros((2, 32), "float32"))
    if compiled:
        model.compile(optimizer="adam")
    assert estimate(model, 4).parts["optimizer"] >= 2 * 4 * model.count_params()


@pytest.mark.parametrize("optimizer", ["adafactor", "lion", "muon", "adamw", "ftrl"])
def test_every_optimizer_is_counted(optimizer):
    assert estimate(wide_dense(), 4, optimizer=optimizer).peak > 3 * wide_dense().count_params() * 4


def test_strings_that_become_numbers_are_no_obstacle():
    words = layers.TextVectorization(output_sequence_length=8)
    words.adapt(["one two three"])
    model = keras.Sequential(
        [keras.Input((1,), dtype="string"), words, layers.Embedding(10, 4), layers.Flatten(), layers.Dense(1)]
    )
    assert estimate(model, 4).parts["weights"] >= 4 * model.count_params()


def test_constants_that_a_layer_brings_along_are_no_obstacle():
    def with_first(layer):
        normalized = layers.LayerNormalization()
        rest = [layers.Conv2D(24, 3, padding="same"), normalized, layers.GlobalAveragePooling2D()]
        return keras.Sequential([keras.Input((16, 16, 3)), layer, *rest, layers.Dense(1)])

    constants = layers.Normalization(mean=[0.4, 0.5, 0.6], variance=[0.1, 0.2, 0.3])
    peaks = [estimate(with_first(layer), 8, "sgd").peak for layer in (constants, layers.Rescaling(0.5))]
    assert peaks[0] == pytest.approx(peaks[1], rel=0.1)


def test_inputs_of_any_length_need_a_length():
    model = keras.Sequential(
        [keras.Input((None,)), layers.Embedding(100, 8), layers.GlobalAveragePooling1D()]
    )
    with pytest.raises(ValueError, match="input_shape="):
        estimate(model, 4)
    assert estimate(model, 4, input_shape=(12,), loss="mse").peak > 0


@pytest.mark.parametrize(
    ("model", "arguments", "error", "message"),
    [
        (Subclassed, {"batch_size": 4}, ValueError, "has no weights yet"),
        (small_cnn, {"batch_size": 0}, ValueError, "batch_size=0 is too small"),
        (small_cnn, {"batch_size": -8}, ValueError, "at least 1"),
        (small_cnn, {"batch_size": 2.5}, TypeError, "whole number"),
        (small_cnn, {"batch_size": 4, "threads": 0}, ValueError, "threads=0 is too small"),
        (small_cnn, {"batch_size": 4, "optimizer": "adamm"}, ValueError, "the known ones are .*adam"),
        (small_cnn, {"batch_size": 4, "optimizer": 3}, TypeError, "a name or a Keras optimizer"),
        (small_cnn, {"batch_size": 4, "precision": "float17"}, ValueError, "no precision 'float17'; write"),
        (dict, {"batch_size": 4}, TypeError, "needs a Keras model"),
    ],
)
def test_what_cannot_be_estimated_is_refused_with_a_reason(model, arguments, error, message):
    with pytest.raises(error, match=message):
        estimate(model(), **arguments)


def test_a_model_that_cannot_be_traced_says_what_to_do():
    class Broken(Subclassed):
        def train_step(self, data):
            raise RuntimeError("no such luck")

    model = Broken()
    model(numpy.zeros((2, 32), "float32"))
    with pytest.raises(ValueError, match=r"cannot be traced .*no such luck.*run_eagerly=False"):
        estimate(model, 4)


@pytest.mark.parametrize("name", trace.PRIVATE)
def test_a_private_name_that_is_gone_is_named_with_the_versions(name, monkeypatch):
    monkeypatch.setattr(trace, "PRIVATE", [*trace.PRIVATE, f"{name}_as_it_was"])
    missing = f"{name}_as_it_was".replace(":", ".")
    versions = f"TensorFlow {tensorflow.__version__} with Keras {keras.__version__}"
    with pytest.raises(ImportError, match=f"estimate needs {missing}, which {versions} does not have"):
        trace.find_private()


@pytest.mark.parametrize("path", trace.ON_MODELS)
def test_a_private_attribute_that_is_gone_is_named_too(path, monkeypatch):
    monkeypatch.setattr(trace, "ON_MODELS", [*trace.ON_MODELS, f"{path}_as_it_was"])
    model = wide_dense()
    model.compile(loss="mse", metrics=["mae"])
    with pytest.raises(ImportError, match=rf"estimate needs \w+\.{path.split('.')[-1]}_as_it_was"):
        estimate(model, 4)


@pytest.mark.parametrize("package", ["tensorflow", "keras"])
def test_without_tensorflow_a_sentence_says_what_to_install(package, monkeypatch, capsys):
    sentence = 'estimate needs TensorFlow; install it: pip install "oom-on-purpose[tensorflow]"'
    model = wide_dense()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError) as refused:
        estimate(model, 4)
    assert str(refused.value) == sentence
    assert main(["estimate", "helpers.course.models:image_cnn", "--batch", "4"]) == 1
    assert capsys.readouterr().err == f"{sentence}\n"


def test_a_card_needs_a_unit():
    with pytest.raises(ValueError, match="has no unit"):
        estimate(wide_dense(), 4).fits("8")


def test_it_prints_and_draws_itself_against_a_card():
    guess = estimate(wide_dense(), 4)
    assert "batch of 4, Adam" in str(guess)
    assert "<table>" in guess._repr_html_()
    words = [text.get_text() for text in guess.plot(card="100 MB").findobj(Text)]
    assert f"Batch of 4, Adam, float32: {against_card(guess.peak, 100_000_000)}" in words
    assert any("card 100 MB" in word for word in words)
    assert any("optimizer" in word for word in words)
    with pytest.raises(ValueError, match="has no unit"):
        guess.plot(card="8")


def test_the_command_answers_with_an_exit_code(tmp_path, monkeypatch, capsys):
    (tmp_path / "my_models.py").write_text(
        "import keras\ndef build():\n"
        "    return keras.Sequential([keras.Input((256,)), keras.layers.Dense(1024)])\n"
    )
    monkeypatch.chdir(tmp_path)
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    fits = parser.parse_args(["my_models:build", "--batch", "4", "--card", "1 GB"])
    assert command(fits) == 0
    assert "It fits" in capsys.readouterr().out
    assert command(parser.parse_args(["my_models:build", "--batch", "4", "--card", "2 MB"])) == 1
    with pytest.raises(ValueError, match="does not name a function"):
        command(parser.parse_args(["my_models", "--batch", "4"]))


def test_a_job_that_estimates_prints_no_progress_bar():
    def is_disabled():
        from helpers.estimator.estimate import _progress

        return _progress("estimate").disable

    assert run(is_disabled).value
    assert not is_disabled()


@pytest.mark.parametrize(
    "first", ["helpers.estimator.estimate", "helpers.estimator.cli", "helpers.estimator"]
)
def test_the_package_exports_the_function_whatever_was_imported_first(first):
    script = (
        f"import {first}\nfrom helpers import estimate\nprint(type(estimate).__name__, estimate.__module__)"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["function", "helpers.estimator.estimate"]


def test_a_job_can_use_the_name_that_the_package_exports():
    from helpers import estimate as exported

    def predict():
        return exported(wide_dense(), 4).batch_size

    assert run(predict).value == 4
