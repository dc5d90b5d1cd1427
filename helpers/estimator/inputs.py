"""What an estimate is asked for: the model's inputs and targets, its optimizer and its loss, checked."""

import keras
import tensorflow as tf

from helpers.estimator.trace import check_private, flatten_layers


def check(model, **numbers):
    """Refuse what cannot be estimated, and say what to do."""
    if not isinstance(model, keras.Model):
        raise TypeError(f"estimate needs a Keras model, not {type(model).__name__}; pass the model itself")
    check_private(model)
    for name, number in numbers.items():
        if number is None and name == "samples":
            continue
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            raise TypeError(f"{name} must be a whole number, not {number!r}")
        if number < 1:
            raise ValueError(f"{name}={number} is too small; it must be at least 1")
    if not model.built or any(_unbuilt(layer) for layer in flatten_layers(model)):
        raise ValueError(
            f"model {model.name!r} has no weights yet; call it on one batch of data, "
            "or call model.build((None, ...)) with the shape of its input, and estimate again"
        )


def check_precision(name):
    """Refuse a dtype policy that Keras does not know; None stands for the layers' own."""
    try:
        keras.dtype_policies.get(name)
    except (ValueError, TypeError):
        raise ValueError(
            f'there is no precision {name!r}; write "float32", "mixed_float16" or "mixed_bfloat16"'
        ) from None


def _unbuilt(layer):
    """A layer that still has to make weights: it was not built, and it has a way of its own to do so."""
    return not layer.built and type(layer).build is not keras.layers.Layer.build


def optimizer(model, wanted, accumulation, precision):
    """The optimizer that training would use."""
    if wanted is None:
        wanted = model.optimizer if getattr(model, "compiled", False) and model.optimizer else "adam"
    if isinstance(wanted, str):
        wanted = _by_name(wanted)
    if not isinstance(wanted, keras.optimizers.Optimizer):
        raise TypeError(f"optimizer must be a name or a Keras optimizer, not {wanted!r}")
    wanted = fresh(wanted)
    if accumulation > 1:
        wanted = type(wanted).from_config(
            {**wanted.get_config(), "gradient_accumulation_steps": accumulation}
        )
    scaled = isinstance(wanted, keras.optimizers.LossScaleOptimizer)
    if precision == "mixed_float16" and not scaled:
        wanted = keras.optimizers.LossScaleOptimizer(wanted)
    return wanted


def _by_name(name):
    try:
        return keras.optimizers.get(name)
    except ValueError:
        known = sorted(
            entry.lower()
            for entry, kind in vars(keras.optimizers).items()
            if isinstance(kind, type)
            and issubclass(kind, keras.optimizers.Optimizer)
            and entry != "Optimizer"
        )
        raise ValueError(f"there is no optimizer {name!r}; the known ones are {', '.join(known)}") from None


def fresh(chosen):
    """A copy of an optimizer that has no variables yet."""
    return type(chosen).from_config(chosen.get_config())


def name_of(chosen):
    """The name by which people know an optimizer."""
    inner = getattr(chosen, "inner_optimizer", chosen)
    return inner.__class__.__name__


def loss(model, wanted):
    """The loss that training would use: the one given, the compiled one, or one that suits the output."""
    if wanted is not None:
        return wanted
    if getattr(model, "compiled", False):
        return getattr(model, "loss", None)
    last = [layer for layer in flatten_layers(model, include_self=False) if hasattr(layer, "activation")]
    activation = getattr(last[-1].activation, "__name__", "") if last else ""
    guesses = {"softmax": "sparse_categorical_crossentropy", "sigmoid": "binary_crossentropy"}
    return guesses.get(activation, "mean_squared_error")


def shapes(model, given):
    """Shape and dtype of each input for one sample, in the structure in which the model takes them."""
    if given is not None:
        return _given(given)
    known = _symbols(model)
    if known is not None:
        found = keras.tree.map_structure(lambda tensor: (tuple(tensor.shape[1:]), tensor.dtype), known)
    else:
        found = _shapes_when_built(model)
    for shape, _ in _pairs(found):
        if None in shape:
            example = tuple(128 if side is None else side for side in shape)
            raise ValueError(
                f"model {model.name!r} takes inputs of any size {shape}; say which one with "
                f"input_shape=, for example input_shape={example}"
            )
    return found


def _symbols(model):
    """The inputs as a model has them that was built of symbols; None if it was built otherwise."""
    if isinstance(model, keras.Function):
        return model.input
    # a sequential model has one input, or none that it knows
    return model.inputs[0] if isinstance(model, keras.Sequential) and hasattr(model, "inputs") else None


def _shapes_when_built(model):
    config = model.get_build_config() or {}
    shape = config.get("input_shape") or next(iter(config.get("shapes_dict", {}).values()), None)
    if shape is None:
        raise ValueError(
            f"model {model.name!r} does not know the shape of its input; pass input_shape= (without the batch)"
        )
    return _without_batch(shape)


def _without_batch(shape):
    if isinstance(shape, dict):
        return {name: _without_batch(one) for name, one in shape.items()}
    if shape and isinstance(shape[0], (list, tuple, dict)):
        return [_without_batch(one) for one in shape]
    return tuple(shape[1:]), "float32"


def _given(shape):
    if isinstance(shape, dict):
        return {name: _given(one) for name, one in shape.items()}
    if all(isinstance(side, int) for side in shape):
        return tuple(shape), "float32"
    return [_given(one) for one in shape]


def _pairs(found):
    """All (shape, dtype) pairs of a nested structure."""
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], str):
        return [found]
    children = found.values() if isinstance(found, dict) else found
    return [pair for child in children for pair in _pairs(child)]


def _map_pairs(function, found):
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], str):
        return function(*found)
    if isinstance(found, dict):
        return {name: _map_pairs(function, child) for name, child in found.items()}
    return tuple(_map_pairs(function, child) for child in found)


def batches(model, found, batch_size, chosen_loss):
    """The specs of what `fit` may feed, the likeliest first, and the model's outputs.

    That is inputs, with targets that suit the loss. A `train_step` of the model's own may want to be fed otherwise.
    """
    features = _map_pairs(lambda shape, dtype: tf.TensorSpec((batch_size, *shape), dtype), found)
    symbols = keras.tree.map_structure(lambda spec: keras.KerasTensor(spec.shape, spec.dtype.name), features)
    outputs = model.compute_output_spec(symbols)
    flat = keras.tree.flatten(outputs)
    losses = _losses(chosen_loss, outputs, len(flat))
    targets = [_target(tensor, one) for tensor, one in zip(flat, losses, strict=False)]
    pair = features, _without_lists(keras.tree.pack_sequence_as(outputs, targets))
    if type(model).train_step is not keras.Model.train_step:
        return [pair, (features,), features], outputs
    return [(features,) if chosen_loss is None else pair], outputs


def _without_lists(structure):
    """A data set has tuples where a model has lists."""
    if isinstance(structure, dict):
        return {name: _without_lists(one) for name, one in structure.items()}
    return tuple(map(_without_lists, structure)) if isinstance(structure, (list, tuple)) else structure


def _losses(chosen, outputs, count):
    if isinstance(chosen, dict):
        return [chosen.get(name) for name in outputs] if isinstance(outputs, dict) else list(chosen.values())
    return list(chosen) if isinstance(chosen, (list, tuple)) else [chosen] * count


def _target(tensor, chosen):
    """Class numbers for a sparse loss, else one value for each value of the output."""
    name = chosen if isinstance(chosen, str) else getattr(chosen, "name", getattr(chosen, "__name__", ""))
    if "sparse" in str(name):
        return tf.TensorSpec(tensor.shape[:-1], "int32")
    return tf.TensorSpec(tensor.shape, "float32")
