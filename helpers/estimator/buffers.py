"""Tensors and the buffers that they share, counted as TensorFlow counts its references."""

import math
from dataclasses import dataclass, replace


class Buffer:
    """Memory that tensors share; it goes back to the allocator when the last of them is gone."""

    __slots__ = ("chunk", "references", "size", "elements", "in_loop", "twins")

    def __init__(self, chunk, size, elements=None, in_loop=False):
        self.chunk = chunk
        self.size = size
        self.references = 0
        self.elements = elements
        """The tensors of a tensor list; None for a plain tensor."""
        self.in_loop = in_loop
        """Whether each iteration of a loop has one like it."""
        self.twins = ()
        """Those of the other iterations, where one iteration is replayed for several."""


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
        self.weight = 0
        """How many iterations of a loop the one stands for that is being replayed; 0 outside of loops."""

    def new(self, size, owner):
        """A buffer for that many bytes; an empty tensor has none."""
        if not size:
            return None
        return Buffer(self.allocator.allocate(size, owner), size, None, self.weight > 0)

    def of_each(self, tensor, most=None):
        """A tensor of the iteration that is being replayed, and what the others have in its place that it stands for.

        What was made in the loop each of them has for itself; what comes from outside they share.
        """
        others = max(0, (self.weight if most is None else min(self.weight, most)) - 1)
        buffer = tensor.buffer
        if not others or buffer is None or buffer.chunk is None or not buffer.in_loop:
            return [tensor] * (1 + others)
        twins = buffer.twins = [twin for twin in buffer.twins if twin.references]
        for _ in range(others - len(twins)):
            twins.append(Buffer(self.allocator.allocate_like(buffer.chunk), buffer.size, None, True))
        return [tensor, *(replace(tensor, buffer=twin) for twin in twins[:others])]

    def hold(self, tensor):
        """One more place refers to the tensor."""
        if tensor.buffer is not None:
            tensor.buffer.references += 1

    def release(self, tensor):
        """One place less; the last one frees the buffer."""
        buffer = tensor.buffer
        if buffer is not None:
            buffer.references -= 1
            if not buffer.references:
                self.free(buffer)

    def hand_over(self, tensor):
        """Give up a reference to somebody who will hold the tensor next."""
        if tensor.buffer is not None:
            tensor.buffer.references -= 1
        return tensor

    def free(self, buffer):
        """Give the memory back, and let go of the elements if it is a list's."""
        if buffer.chunk is not None:
            self.allocator.free(buffer.chunk)
            buffer.chunk = None
        elements, buffer.elements = buffer.elements or (), None
        for element in elements:
            if element is not None:
                self.release(element)


def size_of(tensor):
    """Bytes of a tensor; handles, lists and strings have none of their own."""
    if tensor.dtype is None or tensor.shape is None:
        return 0
    return math.prod(tensor.shape) * tensor.dtype.size
