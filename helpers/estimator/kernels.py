"""What TensorFlow's CPU kernels do with memory: which outputs are new, which share a buffer, which are in place."""

import math

import numpy

from helpers.estimator import lists
from helpers.estimator.buffers import DEAD, Tensor, size_of
from helpers.estimator.inference import STEERING, known_value, shape_from
from helpers.estimator.scratch import SCRATCH

CHEAP = frozenset(
    """
    _Arg _Retval VarHandleOp Const NoOp Identity IdentityN Reshape Shape ShapeN Size Rank ExpandDims Squeeze
    StopGradient PreventGradient Switch Merge Enter Exit NextIteration LoopCond ControlTrigger VariableShape
    """.split()
)
"""Kernels that the executor runs at once; all others count as expensive for the first steps."""

PASSING = frozenset(
    """
    Identity Enter Exit NextIteration StopGradient PreventGradient _Arg _Retval VarHandleOp Assign AssignAdd
    DestroyTemporaryVariable
    """.split()
)
"""Kernels that hand on what they are given, some of them after they have written into it."""
RESHAPING = frozenset("Reshape Squeeze ExpandDims EnsureShape Bitcast".split())

FIRST, FIRST_TWO, LAST_TWO, ALL = slice(1), slice(2), slice(1, 3), slice(None)
IN_PLACE = {
    **dict.fromkeys(
        """
        Abs Ceil Cos Elu Erf Erfc Exp Expm1 Floor Log Log1p LogicalNot Neg Reciprocal Relu Relu6 Round Rsqrt
        Selu Sigmoid Sign Sin Softplus Softsign Sqrt Square Tan Tanh LeakyRelu BiasAdd Softmax LogSoftmax
        ZerosLike OnesLike CheckNumerics Cumsum _UnaryOpsComposition ClipByValue FusedBatchNorm FusedBatchNormV2
        FusedBatchNormV3 SparseSoftmaxCrossEntropyWithLogits SoftmaxCrossEntropyWithLogits
        """.split(),
        FIRST,
    ),
    **dict.fromkeys(
        """
        Add AddV2 Sub Mul Div RealDiv DivNoNan MulNoNan FloorDiv FloorMod Maximum Minimum Pow SquaredDifference
        Xlogy Xdivy Xlog1py LogicalAnd LogicalOr ReluGrad Relu6Grad EluGrad SeluGrad LeakyReluGrad SigmoidGrad
        TanhGrad SqrtGrad RsqrtGrad SoftplusGrad SoftsignGrad ReciprocalGrad InvGrad
        """.split(),
        FIRST_TWO,
    ),
    **dict.fromkeys(("Select", "SelectV2"), LAST_TWO),
    "AddN": ALL,
}
"""Kernels that write into an input of the same size which nobody else needs, and the inputs they try."""
WRITTEN = {"SparseSoftmaxCrossEntropyWithLogits": 1, "SoftmaxCrossEntropyWithLogits": 1}
"""Which output they write there, if it is not the first."""
OUTPUT_FIRST = frozenset(("Conv2DBackpropFilter", "Conv2DBackpropInput"))
"""Kernels that take their scratch when they have their output; the others take it before."""


def kernel(op):
    """What an operation does with memory: a function of a node, its inputs and the executor, which returns outputs."""
    return KERNELS.get(op, _plain)


def _pass_on(node, inputs, executor):
    return [inputs[0] if inputs else Tensor(value=node.name)]


def _reshape(node, inputs, executor):
    return [_like(node, 0, inputs, buffer=inputs[0].buffer)]


def _plain(node, inputs, executor):
    """New outputs, the first one in place where the kernel can; scratch lives as long as the kernel runs."""
    held = [] if node.op in OUTPUT_FIRST else _scratch(node, inputs, executor)
    outputs = []
    for port in range(node.output_count):
        tensor = _like(node, port, inputs)
        if node.op in IN_PLACE and port == WRITTEN.get(node.op, 0):
            tensor.buffer = _forward(inputs[IN_PLACE[node.op]], tensor)
        if tensor.buffer is None:
            tensor.buffer = executor.memory.new(size_of(tensor), (node, "output"))
        outputs.append(tensor)
    if node.op in OUTPUT_FIRST:
        held = _scratch(node, inputs, executor)
    for buffer in held:
        if buffer is not None:
            executor.memory.allocator.free(buffer.chunk)
    return outputs


def _scratch(node, inputs, executor):
    sizes = SCRATCH.get(node.op)
    if sizes is None or any(tensor.shape is None for tensor in inputs):
        return []
    return [executor.memory.new(size, (node, "scratch")) for size in sizes(node, inputs, executor.threads)]


def _forward(inputs, tensor):
    """The buffer of an input that the kernel may overwrite: same type and size, and nobody else holds it."""
    for given in inputs:
        if (
            given.buffer is not None
            and given.buffer.references == 1
            and given.buffer.elements is None
            and given.dtype == tensor.dtype
            and given.shape is not None
            and math.prod(given.shape) == math.prod(tensor.shape or (0,))
        ):
            return given.buffer
    return None


def _like(node, port, inputs, buffer=None):
    """An output tensor with its shape: the one inferred for the graph, else worked out from the inputs."""
    shape, dtype, value = node.outputs[port]
    if value is None and node.op in STEERING:
        value = known_value(node, port, inputs)
    if shape is None:
        shape = numpy.shape(value) if value is not None else shape_from(node, port, inputs)
    return Tensor(shape, dtype, buffer, value)


def _constant(node, inputs, executor):
    """The kernel keeps the value as long as the function lives."""
    if node.name not in executor.constants:
        tensor = _like(node, 0, inputs)
        tensor.buffer = executor.memory.new(size_of(tensor), (node, "constant"))
        executor.memory.hold(tensor)
        executor.constants[node.name] = tensor
    return [executor.constants[node.name]]


def _read(node, inputs, executor):
    return [executor.variables[inputs[0].value]]


def _variable_shape(node, inputs, executor):
    tensor = _like(node, 0, inputs)
    tensor.value = numpy.array(executor.variables[inputs[0].value].shape, dtype=numpy.int64)
    tensor.buffer = executor.memory.new(size_of(tensor), (node, "output"))
    return [tensor]


def _assign(node, inputs, executor):
    """The variable takes over the buffer of its new value."""
    old, new = executor.variables[inputs[0].value].buffer, inputs[1].buffer
    if old is not None and new is not None and not isinstance(new.chunk.owner[0], str):
        executor.memory.allocator.own(new.chunk, old.chunk.owner)
    _replace(executor, inputs[0].value, new)
    return []


def _update(node, inputs, executor):
    """In place, unless somebody still reads the old value: then the variable moves to a new buffer."""
    variable = executor.variables[inputs[0].value]
    if variable.buffer is not None and variable.buffer.references > 1:
        owner = variable.buffer.chunk.owner
        _replace(executor, inputs[0].value, executor.memory.new(variable.buffer.size, owner))
    return []


def _replace(executor, name, buffer):
    old = executor.variables[name]
    new = Tensor(old.shape, old.dtype, buffer)
    executor.memory.hold(new)
    executor.variables[name] = new
    executor.memory.release(old)


def _switch(node, inputs, executor):
    data, predicate = inputs
    taken = executor.predicate if predicate.value is None else bool(predicate.value)
    return [DEAD, data] if taken else [data, DEAD]


def _merge(node, inputs, executor):
    live = next(tensor for tensor in inputs if not tensor.dead)
    index = Tensor((), node.outputs[1][1], executor.memory.new(4, (node, "output")))
    return [live, index]


def _loop_condition(node, inputs, executor):
    """A loop whose length only the data knows is not run."""
    return [Tensor((), inputs[0].dtype, None, False)] if inputs[0].value is None else inputs


def _next_batch(node, inputs, executor):
    return executor.take_batch()


def _each(node, inputs, executor):
    return list(inputs)


def _unchanged(node, inputs, executor):
    """Kernels that hand their input on when there is nothing to do."""
    tensor = _like(node, 0, inputs)
    if tensor.shape == inputs[0].shape and tensor.dtype == inputs[0].dtype:
        tensor.buffer = inputs[0].buffer
        return [tensor]
    return _plain(node, inputs, executor)


def _transpose(node, inputs, executor):
    permutation = inputs[1].value
    shape = inputs[0].shape
    if permutation is None or shape is None:
        return _plain(node, inputs, executor)
    moved = [side for side in permutation if shape[side] != 1]
    if moved == sorted(moved):
        return [_like(node, 0, inputs, buffer=inputs[0].buffer)]
    return _plain(node, inputs, executor)


def _rows(node, inputs, executor):
    """Slices of whole rows share the buffer if each row fills whole cache lines."""
    data = inputs[1] if node.op == "Split" else inputs[0]
    if data.shape is None or data.dtype is None or not data.shape:
        return _plain(node, inputs, executor)
    row = math.prod(data.shape[1:]) * data.dtype.size
    outputs = [
        _like(node, port, inputs[1:] if node.op == "Split" else inputs) for port in range(node.output_count)
    ]
    whole = all(
        tensor.shape is not None and (node.op == "Unpack" or tuple(tensor.shape[1:]) == tuple(data.shape[1:]))
        for tensor in outputs
    )
    axis = node.attributes["axis"].i if node.op == "Unpack" else 0
    if node.op == "Split":
        axis = inputs[0].value if inputs[0].value is not None else 1
    if axis == 0 and row and row % 64 == 0 and whole:
        for tensor in outputs:
            tensor.buffer = data.buffer
        return outputs
    return _plain(node, inputs, executor)


def _of_lists(kernel_of_lists):
    """A kernel that also takes tensor lists, and does something else with them."""

    def kernel_of_both(node, inputs, executor):
        buffer = inputs[0].buffer
        is_list = buffer is not None and buffer.elements is not None
        return (kernel_of_lists if is_list else _plain)(node, inputs, executor)

    return kernel_of_both


KERNELS = {
    **dict.fromkeys(PASSING, _pass_on),
    **dict.fromkeys(RESHAPING, _reshape),
    **dict.fromkeys(("Cast", "Tile", "BroadcastTo", "Pad", "Sum", "Mean"), _unchanged),
    **dict.fromkeys(("Split", "Slice", "Unpack"), _rows),
    "Transpose": _transpose,
    "Const": _constant,
    "ReadVariableOp": _read,
    "VariableShape": _variable_shape,
    "AssignVariableOp": _assign,
    "AssignAddVariableOp": _update,
    "AssignSubVariableOp": _update,
    "Switch": _switch,
    "Merge": _merge,
    "LoopCond": _loop_condition,
    "IdentityN": _each,
    "IteratorGetNext": _next_batch,
    "AddN": _of_lists(lists.add),
    "ZerosLike": _of_lists(lists.zeros),
    **lists.KERNELS,
}
"""Kernels that are not plain."""
