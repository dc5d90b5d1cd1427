"""Bytes per layer, a student that starts anew, and the image network's changes."""

import numpy
import pytest

from helpers.course.models import image_cnn
from helpers.course.nb09 import distillation
from helpers.course.nb09.distillation import Student
from helpers.course.nb09.layer_sizes import layer_sizes


def test_layers_add_up_to_the_network():
    model = image_cnn(32, flatten=True)
    sizes = layer_sizes(model)
    assert sizes.parameters.sum() == model.count_params()
    assert sizes.weights.sum() == 4 * model.count_params()
    assert sizes.loc[sizes.index.str.startswith("flatten"), "activations"].sum() == 0
    assert sizes.activations.iloc[0] == 32 * 32 * 32 * 4
    assert sizes.output.iloc[0] == "32 x 32 x 32"


def test_a_separable_convolution_also_holds_what_lies_between_its_halves():
    plain, separable = (layer_sizes(image_cnn(32, separable=split)).activations for split in (False, True))
    between = 32 * 32 * 3 + 16 * 16 * 32 + 8 * 8 * 64
    assert separable.sum() == plain.sum() + 4 * between


def test_half_precision_takes_two_bytes_for_each_activation():
    import keras

    layers = [keras.layers.Dense(5, dtype="mixed_bfloat16"), keras.layers.Dense(5, dtype="mixed_float16")]
    sizes = layer_sizes(keras.Sequential([keras.Input((3,)), *layers]))
    assert list(sizes.activations) == [10, 10]
    assert list(sizes.weights) == [80, 120]


def names_of(model):
    return [type(layer).__name__ for layer in model.layers]


def test_each_change_of_the_network_is_one_change():
    plain = names_of(image_cnn(32))
    assert plain == ["Conv2D", "MaxPooling2D"] * 3 + ["GlobalAveragePooling2D", "Dense", "Dense"]
    separable = [name.replace("Conv2D", "SeparableConv2D") for name in plain]
    assert names_of(image_cnn(32, separable=True)) == separable
    assert names_of(image_cnn(32, strides=True)) == [name for name in plain if name != "MaxPooling2D"]
    assert names_of(image_cnn(32, normalize=True))[:3] == ["Conv2D", "BatchNormalization", "ReLU"]
    assert image_cnn(32, strides=True).layers[2].output.shape == (None, 4, 4, 128)


def test_a_seed_draws_the_first_weights():
    first, again, other = (image_cnn(32, seed=seed).get_weights()[0] for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()


def test_a_student_starts_anew_with_each_lesson(monkeypatch):
    monkeypatch.setattr(distillation, "STEPS", 5)
    random = numpy.random.default_rng(0)
    images, targets = random.random((40, 16, 16, 3), dtype="float32"), numpy.eye(10)[numpy.arange(40) % 10]
    student = Student(16, filters=(4, 4, 4), head=8, strides=True)
    first = student.learn(images, targets, seed=1).get_weights()
    student.learn(images, targets[::-1], seed=2)
    again = student.learn(images, targets, seed=1).get_weights()
    for before, after in zip(first, again, strict=True):
        assert after == pytest.approx(before, abs=1e-4)
