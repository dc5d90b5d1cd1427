"""The scratch memory of TensorFlow's CPU kernels: taken when a kernel starts and given back when it ends."""

import math

from helpers.estimator.buffers import size_of

CACHE = 30 * 2**20
"""The convolution kernels size their scratch for a cache of 30 MiB, whatever the machine has."""
SMALL_CACHE = 256 * 2**10


def _filter_scratch(node, inputs, threads):
    """Unfolded images, as many as the cache is meant to hold, whatever the batch."""
    filter_shape, _, _ = node.outputs[0]
    if filter_shape is None:
        return []
    image, filters, depth, item = _convolution(filter_shape, inputs[2])
    unit = image * filters + image * depth + filters * depth
    return [-(-(CACHE // item) // unit) * image * filters * item]


def _input_scratch(node, inputs, threads):
    """One unfolded image if it keeps all threads busy, else as many as the cache is meant to hold."""
    image, filters, depth, item = _convolution(inputs[1].shape, inputs[2])
    unit = image * filters + image * depth + filters * depth
    parallel = inputs[2].shape[0] == 1 or unit // threads >= SMALL_CACHE // item
    shards = 1 if parallel else -(-(CACHE // item) // unit)
    return [shards * image * filters * item]


def _convolution(filter_shape, gradient):
    image = math.prod(gradient.shape[1:-1])
    return image, math.prod(filter_shape[:-1]), filter_shape[-1], gradient.dtype.size


def _pooling_scratch(node, inputs, threads):
    """The positions of the maxima, and the pooled values again if their buffer is still needed."""
    pooled = inputs[1]
    positions = [math.prod(pooled.shape) * 8]
    again = [] if pooled.buffer is not None and pooled.buffer.references == 1 else [size_of(pooled)]
    return again + positions


def _einsum_scratch(node, inputs, threads):
    """Operands and results whose labels stand in the wrong order are transposed into a copy."""
    terms, result = node.attributes["equation"].s.decode().replace(" ", "").split("->")
    terms = terms.split(",")
    if len(terms) != 2 or "." in result:
        return [size_of(tensor) for tensor in inputs]
    both = set(terms[0]) & set(terms[1])
    batch = [label for label in result if label in both]
    copies = []
    for term, tensor in zip(terms, inputs, strict=True):
        inner = [label for label in term if label in both and label not in result]
        outer = [label for label in term if label not in both]
        if list(term) not in ([*batch, *outer, *inner], [*batch, *inner, *outer]):
            copies.append(size_of(tensor))
    left, right = ([label for label in term if label not in both] for term in terms)
    if list(result) not in ([*batch, *left, *right], [*batch, *right, *left]):
        shape, dtype, _ = node.outputs[0]
        copies.append(math.prod(shape) * dtype.size)
    return copies


def _row_scratch(node, inputs, threads):
    return [inputs[0].shape[0] * inputs[0].dtype.size]


def _compiled_scratch(node, inputs, threads):
    """XLA computes the gradients of a convolution in groups with a filter that joins all channels, mostly zeros.

    Keras has XLA compile such convolutions, because TensorFlow has no kernel for them on a CPU.
    """
    if node.body is None:
        return []
    given = dict(zip((one.name for one in node.body.signature.input_arg), inputs, strict=False))
    operations = {operation.op: operation for operation in node.body.node_def}
    if "Conv2DBackpropInput" not in operations or "Conv2DBackpropFilter" not in operations:
        return []
    filters = given.get(operations["Conv2DBackpropInput"].input[1])
    images = given.get(operations["Conv2DBackpropFilter"].input[0])
    if filters is None or images is None:
        return []
    groups = images.shape[-1] // filters.shape[2]
    joined = groups * size_of(filters)
    return [joined * (2 if filters.shape[2] == 1 else 1), size_of(images)]


SCRATCH = {
    "PartitionedCall": _compiled_scratch,
    "StatefulPartitionedCall": _compiled_scratch,
    "Conv2DBackpropFilter": _filter_scratch,
    "Conv2DBackpropInput": _input_scratch,
    "MaxPoolGrad": _pooling_scratch,
    "Einsum": _einsum_scratch,
    "SparseSoftmaxCrossEntropyWithLogits": _row_scratch,
    "SoftmaxCrossEntropyWithLogits": _row_scratch,
}
