"""The shapes of outputs inside loops, where TensorFlow's own inference gives up."""

import math

import numpy


def shape_from(node, inputs):
    """The shape of an output in a loop, where inference gives up."""
    shapes = [tensor.shape for tensor in inputs if tensor.shape is not None]
    rule = SHAPES.get(node.op)
    if rule is not None and shapes:
        shape = rule(node, inputs, shapes)
        if shape is not None:
            return shape
    try:
        return numpy.broadcast_shapes(*shapes)
    except ValueError:
        return max(shapes, key=math.prod)


def _product_shape(node, inputs, shapes):
    rows = shapes[0][1 if node.attributes["transpose_a"].b else 0]
    return rows, shapes[1][0 if node.attributes["transpose_b"].b else 1]


def _given_shape(node, inputs, shapes):
    value = inputs[0 if node.op == "Fill" else 1].value
    return None if value is None else _resolve(value, shapes[0])


def _joined_shape(node, inputs, shapes):
    axis = inputs[-1].value
    if axis is None:
        return None
    sides = list(shapes[0])
    sides[int(axis)] = sum(shape[int(axis)] for shape in shapes[:-1])
    return tuple(sides)


def _last_side(node, inputs, shapes):
    return shapes[0][-1:]


def _split_shape(node, inputs, shapes):
    if inputs[0].value is None:
        return None
    sides = list(inputs[1].shape)
    sides[int(inputs[0].value)] //= node.output_count
    return tuple(sides)


def _moved_shape(node, inputs, shapes):
    return None if inputs[1].value is None else tuple(shapes[0][side] for side in inputs[1].value)


SHAPES = {
    "MatMul": _product_shape,
    "Reshape": _given_shape,
    "BroadcastTo": _given_shape,
    "Fill": _given_shape,
    "ConcatV2": _joined_shape,
    "BiasAddGrad": _last_side,
    "Split": _split_shape,
    "Transpose": _moved_shape,
}


def _resolve(sides, old):
    sides = [int(side) for side in numpy.ravel(sides)]
    if -1 in sides:
        known = -math.prod(sides)
        sides[sides.index(-1)] = math.prod(old) // max(known, 1)
    return tuple(sides)
