"""The training step of a Keras model as the graph that TensorFlow will run, traced and never executed.

No other module of the estimator uses names that Keras and TensorFlow keep to themselves; `PRIVATE` and `ON_MODELS`
have all of them.
"""

import contextlib
import pkgutil
from dataclasses import dataclass, field

import keras
import tensorflow as tf

from helpers.estimator.graph import CALL, RESULT, Caller, argument_names

PRIVATE = (
    "keras.src.backend:compute_output_spec",
    "keras:Model._flatten_layers",
    "tensorflow.python.ops.resource_variable_ops:UninitializedVariable",
    "tensorflow.python.grappler.tf_optimizer:OptimizeGraph",
    "tensorflow.python.grappler.item:Item",
    "keras:Model._compute_loss",
)
ON_MODELS = (
    "_dtype_policy",
    "_compile_loss._user_loss_weights",
    "_compile_metrics._user_metrics",
    "_compile_metrics._user_weighted_metrics",
)
"""Attributes of a model; `_compile_loss` and `_compile_metrics` are None until it is compiled."""
KNOWN = "TensorFlow 2.21 and Keras 3.15"
"""Versions that have all of these names."""
SMALL = 4096
"""Optimizer variables below so many bytes are created for real; larger ones have a shape and no memory."""


@dataclass
class Step:
    """One training step: its optimized graph, and what its names mean."""

    graph_def: object
    variables: dict = field(repr=False)
    """Name of an argument -> (shape, dtype, "weights" or "optimizer", name of the layer)."""
    scopes: dict = field(repr=False)
    """Name scope of operations -> name of the layer that made them."""


def find_private():
    """What the names of `PRIVATE` stand for, in that order."""
    found = []
    for name in PRIVATE:
        try:
            found.append(pkgutil.resolve_name(name))
        except (ImportError, AttributeError):
            raise _missing(name.replace(":", ".")) from None
    return found


def check_private(model):
    """Raise an error if the model does not have the attributes of `ON_MODELS`."""
    for path in ON_MODELS:
        owner = model
        for name in path.split("."):
            if owner is not None and not hasattr(owner, name):
                raise _missing(f"{type(owner).__name__}.{name}")
            owner = getattr(owner, name, None)


def _missing(name):
    return ImportError(
        f"estimate needs {name}, which TensorFlow {tf.__version__} with Keras {keras.__version__} does not have; "
        f"install {KNOWN}, where it works"
    )


compute_output_spec, flatten_layers, UninitializedVariable, OptimizeGraph, Item, *_ = find_private()


def trace(model, batch, outputs, optimizer, loss, precision):
    """Trace `model.train_step` on a batch, and optimize the graph as TensorFlow would.

    `batch` has the specs of what `fit` would feed, `outputs` the symbols of what the model returns for it.
    """
    with _prepared(model, optimizer, loss, precision):
        _create_variables(model, batch, outputs)
        function, scopes = _trace_step(model, batch)
        variables = _describe_variables(model, function)
    return Step(_optimize(function, variables), variables, scopes)


def _optimize(function, variables):
    """Fuse, fold and prune with grappler: the graph as it is executed."""
    options = tf.compat.v1.ConfigProto()
    options.graph_options.rewrite_options.min_graph_nodes = -1
    meta_graph = _meta_graph(Caller(function, variables).graph_def, RESULT, CALL)
    return OptimizeGraph(options, meta_graph, verbose=False)


def infer_shapes(graph_def):
    """What grappler knows about the outputs of each node: {name of the node: [properties of an output]}."""
    return Item(
        _meta_graph(graph_def, graph_def.node[-1].name), ignore_user_placement=False
    ).GetOpProperties()


def _meta_graph(graph_def, *results):
    meta_graph = tf.compat.v1.MetaGraphDef(graph_def=graph_def)
    meta_graph.collection_def["train_op"].node_list.value.extend(results)
    return meta_graph


@contextlib.contextmanager
def _prepared(model, optimizer, loss, precision):
    """Compile the model for the trace; afterwards everything is as the caller left it."""
    layers = flatten_layers(model)
    saved = [(layer, dict(vars(layer))) for layer in layers]
    try:
        if precision is not None:
            for layer in layers:
                vars(layer)["_dtype_policy"] = keras.dtype_policies.get(precision)
        with tf.variable_creator_scope(_variable_without_memory):
            keras.Model.compile(
                model,
                optimizer=optimizer,
                loss=loss,
                loss_weights=getattr(model._compile_loss, "_user_loss_weights", None),
                metrics=getattr(model._compile_metrics, "_user_metrics", None),
                weighted_metrics=getattr(model._compile_metrics, "_user_weighted_metrics", None),
                jit_compile=False,
            )
            yield
    finally:
        for layer, attributes in saved:
            vars(layer).clear()
            vars(layer).update(attributes)


def _variable_without_memory(next_creator, **arguments):
    symbol = arguments["initial_value"]
    if not tf.is_tensor(symbol):
        with tf.Graph().as_default():
            value = symbol() if callable(symbol) else symbol
            symbol = tf.convert_to_tensor(value, dtype=arguments.get("dtype"))
    if symbol.shape.num_elements() * symbol.dtype.size < SMALL:
        return next_creator(**arguments)
    return UninitializedVariable(
        shape=symbol.shape,
        dtype=symbol.dtype,
        trainable=arguments.get("trainable"),
        name=arguments.get("name"),
        aggregation=arguments.get("aggregation"),
        synchronization=arguments.get("synchronization"),
    )


def _create_variables(model, batch, outputs):
    """Let the metrics, the loss and the optimizer make their variables, as `fit` does before its first step."""
    symbols = keras.tree.map_structure(
        lambda spec: keras.KerasTensor(spec.shape, keras.backend.standardize_dtype(spec.dtype)), batch
    )
    features, targets, weights = keras.utils.unpack_x_y_sample_weight(symbols)
    for part, call in (
        (model._compile_metrics, model.compute_metrics),
        (model._compile_loss, model._compute_loss),
    ):
        if targets is not None and part is not None and not part.built:
            compute_output_spec(call, features, targets, outputs, sample_weight=weights)
    model.optimizer.build(model.trainable_variables)


def _trace_step(model, batch):
    @tf.function(autograph=False, jit_compile=False)
    def step(iterator):
        return model.train_step(iterator.get_next())

    scopes = {}
    with _layers_recorded(scopes):
        function = step.get_concrete_function(tf.data.IteratorSpec(batch))
    return function, scopes


@contextlib.contextmanager
def _layers_recorded(scopes):
    """Note for each layer under which name scopes its operations appear in the graph."""
    original = keras.layers.Layer.__call__

    def recorded(layer, *arguments, **keywords):
        graph = tf.compat.v1.get_default_graph()
        before = graph.version
        result = original(layer, *arguments, **keywords)
        for operation in graph.get_operations()[before:] if graph.building_function else ():
            scope = operation.name.rpartition("/")[0]
            scopes.setdefault(scope, layer.name)
        return result

    keras.layers.Layer.__call__ = recorded
    try:
        yield
    finally:
        keras.layers.Layer.__call__ = original


def _describe_variables(model, function):
    layers = {}
    for layer in flatten_layers(model, include_self=False):
        for variable in layer.variables:
            layers[id(variable.value)] = layer.name
    optimizer = {id(variable.value): variable for variable in model.optimizer.variables}
    names = argument_names(function)
    captures = {id(outer): names[inner.op.name] for outer, inner in function.graph.captures}
    ordered = (*model.variables, *model.optimizer.variables)
    created = {id(variable.value): number for number, variable in enumerate(ordered)}
    described = {}
    for variable in sorted(
        function.graph.variables, key=lambda variable: created.get(id(variable), len(created))
    ):
        name = captures.get(id(variable.handle))
        if name is not None:
            kind = "optimizer" if id(variable) in optimizer else "weights"
            layer = layers.get(id(variable), "optimizer" if kind == "optimizer" else "metrics")
            described[name] = (tuple(variable.shape), variable.dtype.base_dtype, kind, layer)
    return described
