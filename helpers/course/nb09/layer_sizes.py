"""How many bytes each layer of a Keras model holds: its weights, and what it puts out for one image."""

import math

import pandas

VIEWS = ("Flatten", "Reshape")
"""Layers whose output is the memory of their input under another shape."""


def layer_sizes(model):
    """A table with a row for each layer: output shape, parameters, bytes of weights and of one image's activations.

    The columns add up to those of the model; the batch multiplies the activations and nothing else.
    """
    rows = [_row(layer) for layer in model.layers]
    columns = ["layer", "output", "parameters", "weights", "activations"]
    return pandas.DataFrame(rows, columns=columns).set_index("layer")


def _row(layer):
    shape = layer.output.shape[1:]
    weights = sum(math.prod(variable.shape) * _itemsize(variable.dtype) for variable in layer.variables)
    values = 0 if type(layer).__name__ in VIEWS else math.prod(shape) + _values_between(layer)
    activations = values * _itemsize(layer.compute_dtype)
    return layer.name, " x ".join(map(str, shape)), layer.count_params(), weights, activations


def _values_between(layer):
    """What the first half of a separable convolution hands to the second; the backward pass needs it too."""
    if not type(layer).__name__.startswith("SeparableConv"):
        return 0
    return math.prod(layer.output.shape[1:-1]) * layer.input.shape[-1] * layer.depth_multiplier


def _itemsize(dtype):
    return {"bfloat16": 2}.get(dtype) or pandas.api.types.pandas_dtype(dtype).itemsize
