"""What follows from what is known while a graph is replayed: shapes inside loops, and the integers that steer it."""

import math

import numpy
import tensorflow as tf

ARITHMETIC = {
    "Add": numpy.add,
    "AddV2": numpy.add,
    "Sub": numpy.subtract,
    "Mul": numpy.multiply,
    "FloorDiv": numpy.floor_divide,
    "FloorMod": numpy.mod,
    "Minimum": numpy.minimum,
    "Maximum": numpy.maximum,
    "Less": numpy.less,
    "LessEqual": numpy.less_equal,
    "Greater": numpy.greater,
    "GreaterEqual": numpy.greater_equal,
    "Equal": numpy.equal,
    "NotEqual": numpy.not_equal,
    "LogicalAnd": numpy.logical_and,
    "LogicalOr": numpy.logical_or,
    "LogicalNot": numpy.logical_not,
}
STEERING = frozenset(
    ("Shape", "ShapeN", "Size", "Cast", "Identity", "Reshape", "Pack", "StridedSlice", *ARITHMETIC)
)
"""Operations whose values are worked out."""
ELEMENTWISE = frozenset(
    """
    Add AddV2 AddN Sub Mul Div RealDiv DivNoNan Maximum Minimum Pow SquaredDifference Select SelectV2 Square Sqrt Neg
    Exp Log Tanh Sigmoid Relu TanhGrad SigmoidGrad ReluGrad Cast ZerosLike OnesLike Rsqrt Less Greater Equal LogicalAnd
    """.split()
)


def known_value(node, port, inputs):
    """The value of one of a node's outputs if it follows from known shapes and values; else None."""
    if node.op in ("Shape", "ShapeN"):
        shape = inputs[port].shape
        return None if shape is None else numpy.array(shape, dtype=numpy.int64)
    if node.op == "Size":
        return None if inputs[0].shape is None else numpy.prod(inputs[0].shape, dtype=numpy.int64)
    if not inputs or any(tensor.value is None or isinstance(tensor.value, str) for tensor in inputs):
        return None
    values = [numpy.asarray(tensor.value) for tensor in inputs]
    if node.op in ARITHMETIC:
        return ARITHMETIC[node.op](*values)
    if node.op in ("Cast", "Identity", "Reshape"):
        return values[0] if node.op != "Reshape" else values[0].reshape(values[1])
    if node.op == "Pack":
        return numpy.stack(values)
    if node.op == "StridedSlice":
        return _slice(node, *values)
    return None


def _slice(node, data, begin, end, stride):
    attributes = node.attributes
    if data.ndim != 1 or attributes["new_axis_mask"].i or attributes["ellipsis_mask"].i:
        return None
    if attributes["shrink_axis_mask"].i:
        return data[int(begin[0])]
    first = None if attributes["begin_mask"].i else int(begin[0])
    last = None if attributes["end_mask"].i else int(end[0])
    return data[first : last : int(stride[0])]


def shape_from(node, port, inputs):
    """The shape of an output in a loop, where inference gives up, from those of the inputs."""
    shapes = [tensor.shape for tensor in inputs if tensor.shape is not None]
    try:
        if node.op in ELEMENTWISE and shapes:
            return numpy.broadcast_shapes(*shapes)
        rule = SHAPES.get(node.op)
        shape = rule(node, inputs, shapes) if rule is not None and shapes else None
        if shape is None:
            shape = _ask_tensorflow(node, inputs)[port]
    except (ValueError, IndexError):  # a guess further up was wrong
        shape = None
    return max(shapes, key=math.prod, default=()) if shape is None else shape


def _ask_tensorflow(node, inputs):
    """What TensorFlow makes of the operation when it is told the shapes and the small values that go in."""
    if any(tensor.dtype is None for tensor in inputs):
        return [None] * node.output_count
    about = tuple(
        (
            tensor.dtype,
            tensor.shape,
            None if tensor.value is None else tuple(numpy.ravel(tensor.value).tolist()),
        )
        for tensor in inputs
    )
    if about not in node.inferred:
        node.inferred[about] = _infer(node, about)
    return node.inferred[about]


def _infer(node, about):
    """The shapes of the outputs; None for one that does not follow from what is known."""
    with tf.Graph().as_default() as graph:
        given = [_symbol(*one) for one in about]
        attributes = {name: value for name, value in node.attributes.items() if not name.startswith("_")}
        dtypes = [dtype for _, dtype, _ in node.outputs]
        try:
            operation = graph.create_op(node.op, given, dtypes, attrs=attributes)
        except (ValueError, TypeError):
            return [None] * len(dtypes)
        return [
            tuple(output.shape) if output.shape.is_fully_defined() else None for output in operation.outputs
        ]


def _symbol(dtype, shape, value):
    if value is not None and not any(isinstance(one, str) for one in value):
        return tf.constant(value, dtype, shape)
    return tf.compat.v1.placeholder(dtype, shape)


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
