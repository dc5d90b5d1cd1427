"""The small integers that steer a graph (lengths, shapes, loop counters), worked out while it is replayed."""

import numpy

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
