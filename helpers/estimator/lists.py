"""Tensor lists, in which loops keep what their gradient needs: containers that hold on to buffers."""

from dataclasses import replace
from itertools import zip_longest

from helpers.estimator.buffers import Buffer, Tensor, size_of


def _list(node, elements, port=0):
    return Tensor((), node.outputs[port][1], Buffer(None, 0, elements))


def _empty(node, inputs, executor):
    return [_list(node, [])]


def _reserve(node, inputs, executor):
    count = inputs[1].value
    return [_list(node, [None] * int(count if count is not None else 0))]


def _own(node, tensor, executor):
    """The list itself if nobody else refers to it, else a copy that shares the elements."""
    if tensor.buffer.references == 1:
        return tensor
    for element in tensor.buffer.elements:
        if element is not None:
            executor.memory.hold(element)
    return _list(node, list(tensor.buffer.elements))


def _push(node, inputs, executor):
    """One element, or one for each iteration that the replayed one stands for."""
    result = _own(node, inputs[0], executor)
    for element in executor.memory.of_each(inputs[1]):
        executor.memory.hold(element)
        result.buffer.elements.append(element)
    return [result]


def _pop(node, inputs, executor):
    result = _own(node, inputs[0], executor)
    elements = result.buffer.elements
    for _ in range(min(executor.memory.weight, len(elements)) - 1):
        element = elements.pop()
        if element is not None:
            executor.memory.release(element)
    if not elements or elements[-1] is None:
        return [result, _new(node, 1, (), executor)]
    return [result, executor.memory.hand_over(elements.pop())]


def _set(node, inputs, executor):
    result = _own(node, inputs[0], executor)
    elements = result.buffer.elements
    first = int(inputs[1].value) if inputs[1].value is not None else len(elements)
    elements.extend([None] * (first + 1 - len(elements)))
    for index, element in enumerate(executor.memory.of_each(inputs[2], len(elements) - first), first):
        executor.memory.hold(element)
        if elements[index] is not None:
            executor.memory.release(elements[index])
        elements[index] = element
    return [result]


def _get(node, inputs, executor):
    elements = inputs[0].buffer.elements
    index = int(inputs[1].value) if inputs[1].value is not None else 0
    if index < len(elements) and elements[index] is not None:
        _note_neighbours(elements, index, executor.memory.weight)
        return [elements[index]]
    shape = next((element.shape for element in elements if element is not None), ())
    return [_new(node, 0, shape, executor)]


def _note_neighbours(elements, index, weight):
    """Where one iteration stands for several, the others take the elements beside the one that it takes."""
    buffer = elements[index].buffer
    if weight > 1 and buffer is not None:
        beside = [element for element in elements[index + 1 : index + weight] if element is not None]
        buffer.in_loop = True
        buffer.twins = [element.buffer for element in beside if element.buffer is not None]


def _new(node, port, shape, executor):
    known, dtype, _ = node.outputs[port]
    tensor = Tensor(known if known is not None else shape, dtype)
    tensor.buffer = executor.memory.new(size_of(tensor), (node, "output"))
    return tensor


def _stack(node, inputs, executor):
    elements = inputs[0].buffer.elements
    shape = next((element.shape for element in elements if element is not None), ())
    return [_new(node, 0, (len(elements), *shape), executor)]


def _from_tensor(node, inputs, executor):
    tensor = inputs[0]
    elements = []
    for _ in range(tensor.shape[0]):
        row = Tensor(tuple(tensor.shape[1:]), tensor.dtype)
        row.buffer = executor.memory.new(size_of(row), (node, "output"))
        executor.memory.hold(row)
        elements.append(row)
    return [_list(node, elements)]


def _length(node, inputs, executor):
    tensor = Tensor((), node.outputs[0][1], value=len(inputs[0].buffer.elements))
    tensor.buffer = executor.memory.new(4, (node, "output"))
    return [tensor]


def zeros(node, inputs, executor):
    """A list of zeros like another list."""
    return [_list(node, [_copy(node, element, executor) for element in inputs[0].buffer.elements])]


def add(node, inputs, executor):
    """The sum of lists: an element that was never set adds nothing and costs nothing."""
    sums = []
    for elements in zip_longest(*(tensor.buffer.elements for tensor in inputs)):
        present = [element for element in elements if element is not None]
        if len(present) == 1:
            executor.memory.hold(present[0])
            sums.append(present[0])
        else:
            sums.append(_copy(node, present[0], executor) if present else None)
    return [_list(node, sums)]


def _copy(node, element, executor):
    if element is None:
        return None
    copy = replace(element, buffer=executor.memory.new(size_of(element), (node, "output")))
    executor.memory.hold(copy)
    return copy


KERNELS = {
    "EmptyTensorList": _empty,
    "TensorListReserve": _reserve,
    "TensorListPushBack": _push,
    "TensorListPopBack": _pop,
    "TensorListSetItem": _set,
    "TensorListGetItem": _get,
    "TensorListStack": _stack,
    "TensorListFromTensor": _from_tensor,
    "TensorListLength": _length,
}
