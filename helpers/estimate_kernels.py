"""What TensorFlow's CPU kernels do with memory: which outputs are new, which share a buffer, which are in place."""

import math

import numpy

from helpers import estimate_lists as lists
from helpers.estimate_memory import DEAD, Tensor, size_of
from helpers.estimate_scratch import SCRATCH
from helpers.estimate_shapes import shape_from
from helpers.estimate_values import STEERING, known_value

CHEAP = frozenset(
    """
    _Arg _Retval VarHandleOp Const NoOp Identity IdentityN Reshape Shape ShapeN Size Rank ExpandDims Squeeze
    StopGradient PreventGradient Switch Merge Enter Exit NextIteration LoopCond ControlTrigger VariableShape
    """.split()
)
"""Kernels that the executor runs at once; all others count as expensive for the first steps."""

PASSING = frozenset("Identity Enter Exit NextIteration StopGradient PreventGradient _Arg _Retval".split())
RESHAPING = frozenset("Reshape Squeeze ExpandDims EnsureShape Bitcast".split())

IN_PLACE = {
    **dict.fromkeys(
        """
        Abs Ceil Cos Elu Erf Erfc Exp Expm1 Floor Log Log1p LogicalNot Neg Reciprocal Relu Relu6 Round Rsqrt
        Selu Sigmoid Sign Sin Softplus Softsign Sqrt Square Tan Tanh LeakyRelu BiasAdd Softmax LogSoftmax
        ZerosLike OnesLike CheckNumerics Cumsum _UnaryOpsComposition
        """.split(),
        (0,),
    ),
    **dict.fromkeys(
        """
        Add AddV2 Sub Mul Div RealDiv DivNoNan MulNoNan FloorDiv FloorMod Maximum Minimum Pow SquaredDifference
        Xlogy Xdivy Xlog1py LogicalAnd LogicalOr ReluGrad Relu6Grad EluGrad SeluGrad LeakyReluGrad SigmoidGrad
        TanhGrad SqrtGrad RsqrtGrad SoftplusGrad SoftsignGrad ReciprocalGrad InvGrad
        """.split(),
        (0, 1),
    ),
    "Select": (1, 2),
    "SelectV2": (1, 2),
    "ClipByValue": (0,),
    "FusedBatchNorm": (0,),
    "FusedBatchNormV2": (0,),
    "FusedBatchNormV3": (0,),
}
"""Kernels that write into an input of the same size which nobody else needs, and the inputs they try."""


def kernel(op):
    """What an operation does with memory: a function of a node, its inputs and the executor, which returns outputs."""
    if op in PASSING:
        return _pass_on
    if op in RESHAPING:
        return _reshape
    special = SPECIAL.get(op)
    if special is None:
        return _plain
    if op not in UNDECIDED:
        return special

    def special_or_plain(node, inputs, executor):
        outputs = special(node, inputs, executor)
        return _plain(node, inputs, executor) if outputs is None else outputs

    return special_or_plain


def _pass_on(node, inputs, executor):
    return [inputs[0] if inputs else _handle(node)]


def _reshape(node, inputs, executor):
    return [_like(node, 0, inputs, buffer=inputs[0].buffer)]


def _plain(node, inputs, executor):
    """New outputs, the first one in place where the kernel can; scratch lives as long as the kernel runs."""
    held = [] if node.op in OUTPUT_FIRST else _scratch(node, inputs, executor)
    outputs = []
    for port in range(node.output_count):
        tensor = _like(node, port, inputs)
        if port == PLACE.get(node.op, 0):
            tensor.buffer = _forward(inputs, IN_PLACE.get(node.op, ()), tensor, outputs)
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
    return [executor.memory.new(size, (node, "scratch")) for size in sizes(node, inputs)]


OUTPUT_FIRST = frozenset(("Conv2DBackpropFilter", "Conv2DBackpropInput"))
"""Kernels that take their scratch when they have their output; the others take it before."""
PLACE = {"SparseSoftmaxCrossEntropyWithLogits": 1, "SoftmaxCrossEntropyWithLogits": 1}
IN_PLACE.update(SparseSoftmaxCrossEntropyWithLogits=(0,), SoftmaxCrossEntropyWithLogits=(0,))


def _forward(inputs, candidates, tensor, outputs):
    """The buffer of an input that the kernel may overwrite: same type and size, and nobody else holds it."""
    for slot in candidates:
        if slot < len(inputs):
            given = inputs[slot]
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


def _handle(node):
    return Tensor(value=node.name)


def _variable(node, inputs, executor):
    return [_handle(node)]


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


def _first(node, inputs, executor):
    """Kernels that write into the variable which they are given, and hand it on."""
    return inputs[:1]


def _unchanged(node, inputs, executor):
    """Kernels that hand their input on when there is nothing to do."""
    tensor = _like(node, 0, inputs)
    if tensor.shape == inputs[0].shape and tensor.dtype == inputs[0].dtype:
        tensor.buffer = inputs[0].buffer
        return [tensor]
    return None


def _transpose(node, inputs, executor):
    permutation = inputs[1].value
    shape = inputs[0].shape
    if permutation is None or shape is None:
        return None
    moved = [side for side in permutation if shape[side] != 1]
    if moved == sorted(moved):
        return [_like(node, 0, inputs, buffer=inputs[0].buffer)]
    return None


def _rows(node, inputs, executor):
    """Slices of whole rows share the buffer if each row fills whole cache lines."""
    data = inputs[1] if node.op == "Split" else inputs[0]
    if data.shape is None or data.dtype is None or not data.shape:
        return None
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
    return None


def _add_many(node, inputs, executor):
    if inputs[0].buffer is not None and inputs[0].buffer.elements is not None:
        return lists.add(node, inputs, executor)
    tensor = _like(node, 0, inputs)
    tensor.buffer = _forward(inputs, range(len(inputs)), tensor, [])
    if tensor.buffer is None:
        tensor.buffer = executor.memory.new(size_of(tensor), (node, "output"))
    return [tensor]


def _zeros(node, inputs, executor):
    if inputs[0].buffer is not None and inputs[0].buffer.elements is not None:
        return lists.zeros(node, inputs, executor)
    return None


SPECIAL = {
    "VarHandleOp": _variable,
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
    "Assign": _first,
    "AssignAdd": _first,
    "DestroyTemporaryVariable": _first,
    "IteratorGetNext": _next_batch,
    "Cast": _unchanged,
    "Tile": _unchanged,
    "BroadcastTo": _unchanged,
    "Pad": _unchanged,
    "Sum": _unchanged,
    "Mean": _unchanged,
    "Transpose": _transpose,
    "Split": _rows,
    "Slice": _rows,
    "Unpack": _rows,
    "AddN": _add_many,
    "ZerosLike": _zeros,
    **lists.KERNELS,
}
UNDECIDED = frozenset("Cast Tile BroadcastTo Pad Sum Mean Transpose Split Slice Unpack ZerosLike".split())
"""Kernels of `SPECIAL` that return None where there is nothing special about a node."""
