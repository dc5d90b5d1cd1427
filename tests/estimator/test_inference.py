"""What is inferred while a graph is replayed is what TensorFlow itself says."""

import numpy
import pytest
import tensorflow as tf

from helpers.estimator import inference
from helpers.estimator.buffers import Tensor
from helpers.estimator.inference import ARITHMETIC, STEERING, known_value, shape_from
from helpers.estimator.program import Node


def node_of(op, outputs=1, dtype=tf.float32, **attributes):
    attr = tf.compat.v1.NodeDef().attr
    for name, value in attributes.items():
        if isinstance(value, bool):
            attr[name].b = value
        elif isinstance(value, tf.DType):
            attr[name].type = value.as_datatype_enum
        elif isinstance(value, list):
            attr[name].list.i.extend(value)
        elif isinstance(value, bytes):
            attr[name].s = value
        else:
            attr[name].i = value
    return Node(0, op.lower(), op, attr, [(None, dtype, None)] * outputs)


def of_values(*values):
    return [Tensor(numpy.shape(value), tf.int64, value=value) for value in values]


def of_shapes(*shapes):
    return [Tensor(shape, tf.float32) for shape in shapes]


@pytest.mark.parametrize("op", sorted(ARITHMETIC.keys() - {"LogicalAnd", "LogicalOr", "LogicalNot"}))
@pytest.mark.parametrize("values", [(7, 3), (-7, 3), ([4, 5, 6], [6, 5, 4]), ([1, 2], 2)])
def test_arithmetic_on_known_values_is_tensorflows(op, values):
    first, second = (numpy.array(value, "int64") for value in values)
    wanted = getattr(tf.raw_ops, op)(x=first, y=second)
    numpy.testing.assert_array_equal(known_value(node_of(op), 0, of_values(first, second)), wanted)


@pytest.mark.parametrize(
    "masks",
    [
        {},
        {"begin_mask": 1},
        {"end_mask": 1},
        {"shrink_axis_mask": 1},
    ],
)
@pytest.mark.parametrize(("begin", "end", "stride"), [(1, 3, 1), (0, 4, 2), (-2, 4, 1)])
def test_a_slice_of_known_values_is_tensorflows(masks, begin, end, stride):
    values = [numpy.array(value) for value in ([10, 20, 30, 40], [begin], [end], [stride])]
    wanted = tf.raw_ops.StridedSlice(
        **dict(zip(("input", "begin", "end", "strides"), values, strict=True)), **masks
    )
    numpy.testing.assert_array_equal(
        known_value(node_of("StridedSlice", **masks), 0, of_values(*values)), wanted
    )


def test_shapes_become_values():
    images, labels = of_shapes((8, 32, 32, 3), (8,))
    assert known_value(node_of("Shape"), 0, [images]).tolist() == [8, 32, 32, 3]
    assert known_value(node_of("ShapeN", outputs=2), 1, [images, labels]).tolist() == [8]
    assert known_value(node_of("Size"), 0, [images]) == 8 * 32 * 32 * 3
    assert known_value(node_of("Pack"), 0, of_values(8, 96)).tolist() == [8, 96]
    assert known_value(node_of("Reshape"), 0, of_values([1, 2, 3, 4], [2, 2])).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("op", sorted(STEERING))
def test_what_is_not_known_stays_unknown(op):
    assert known_value(node_of(op), 0, [Tensor(None, tf.int64)] * 4) is None


@pytest.mark.parametrize(
    ("op", "attributes", "shapes", "wanted"),
    [
        ("AddV2", {}, [(8, 1, 16), (4, 16)], (8, 4, 16)),
        ("SelectV2", {}, [(8, 1), (8, 4), ()], (8, 4)),
        ("MatMul", {}, [(8, 16), (16, 4)], (8, 4)),
        ("MatMul", {"transpose_a": True}, [(16, 8), (16, 4)], (8, 4)),
        ("MatMul", {"transpose_b": True}, [(8, 16), (4, 16)], (8, 4)),
        ("BiasAddGrad", {}, [(8, 32, 32, 64)], (64,)),
        ("Relu", {}, [(8, 3)], (8, 3)),
    ],
)
def test_shapes_follow_from_shapes(op, attributes, shapes, wanted):
    assert shape_from(node_of(op, **attributes), 0, of_shapes(*shapes)) == wanted


@pytest.mark.parametrize(
    ("op", "outputs", "inputs", "wanted"),
    [
        ("Reshape", 1, [*of_shapes((8, 6)), *of_values([4, -1])], (4, 12)),
        ("BroadcastTo", 1, [*of_shapes((1, 6)), *of_values([8, 6])], (8, 6)),
        ("Fill", 1, [*of_values([8, 6]), *of_shapes(())], (8, 6)),
        ("ConcatV2", 1, [*of_shapes((8, 2), (8, 3)), *of_values(1)], (8, 5)),
        ("Transpose", 1, [*of_shapes((2, 3, 4)), *of_values([2, 0, 1])], (4, 2, 3)),
        ("Split", 4, [*of_values(1), *of_shapes((8, 96))], (8, 24)),
    ],
)
def test_shapes_follow_from_shapes_and_values(op, outputs, inputs, wanted):
    assert shape_from(node_of(op, outputs), outputs - 1, inputs) == wanted


def test_tensorflow_is_asked_about_other_operations_once_for_each_shape(monkeypatch):
    asked, infer = [], inference._infer
    monkeypatch.setattr(inference, "_infer", lambda node, about: asked.append(about) or infer(node, about))
    convolution = node_of("Conv2D", T=tf.float32, strides=[1, 2, 2, 1], padding=b"SAME")
    for _ in range(2):
        assert shape_from(convolution, 0, of_shapes((8, 32, 32, 3), (3, 3, 3, 16))) == (8, 16, 16, 16)
        assert shape_from(convolution, 0, of_shapes((4, 32, 32, 3), (3, 3, 3, 16))) == (4, 16, 16, 16)
    assert len(asked) == 2


def test_where_a_guess_was_wrong_the_largest_input_stands_in():
    assert shape_from(node_of("AddV2"), 0, of_shapes((8, 3), (8, 5))) == (8, 5)
    convolution = node_of("Conv2D", T=tf.float32, strides=[1, 1, 1, 1], padding=b"SAME")
    assert shape_from(convolution, 0, of_shapes((8, 32, 32, 3), (3, 3, 5, 16))) == (8, 32, 32, 3)
