"""Tensors and the buffers that they share, counted as TensorFlow counts its references."""

import math
from dataclasses import dataclass


class Buffer:
    """Memory that tensors share; it goes back to the allocator when the last of them is gone."""

    __slots__ = ("chunk", "references", "size", "elements")

    def __init__(self, chunk, size, elements=None):
        self.chunk = chunk
        self.size = size
        self.references = 0
        self.elements = elements
        """The tensors of a tensor list; None for a plain tensor."""


@dataclass(slots=True)
class Tensor:
    """What travels along an edge: a shape, a buffer, sometimes a known value; `dead` in an untaken branch."""

    shape: tuple = None
    dtype: str = None
    buffer: Buffer = None
    value: object = None
    dead: bool = False


DEAD = Tensor(dead=True)


class Memory:
    """Buffers on an allocator, counted as TensorFlow counts its references."""

    def __init__(self, allocator):
        self.allocator = allocator

    def new(self, size, owner):
        """A buffer for that many bytes; an empty tensor has none."""
        if not size:
            return None
        return Buffer(self.allocator.allocate(size, owner), size)

    def hold(self, tensor):
        """One more place refers to the tensor."""
        if tensor.buffer is not None:
            tensor.buffer.references += 1

    def release(self, tensor):
        """One place less; the last one frees the buffer."""
        if tensor.buffer is not None:
            tensor.buffer.references -= 1
            self.collect(tensor)

    def hand_over(self, tensor):
        """Give up a reference to somebody who will hold the tensor next."""
        if tensor.buffer is not None:
            tensor.buffer.references -= 1
        return tensor

    def collect(self, tensor):
        """Free the buffer if nothing refers to it."""
        buffer = tensor.buffer
        if buffer is None or buffer.references > 0:
            return
        if buffer.chunk is not None:
            self.allocator.free(buffer.chunk)
            buffer.chunk = None
        elements, buffer.elements = buffer.elements or (), None
        for element in elements:
            if element is not None:
                self.release(element)


def size_of(tensor):
    """Bytes of a tensor; handles and lists have none of their own."""
    if tensor.dtype is None or tensor.shape is None or tensor.dtype.name in ("resource", "variant", "string"):
        return 0
    return math.prod(tensor.shape) * tensor.dtype.size
