"""A stack of their own for the signals of a thread. Needs only Python.

A signal is handled on the stack of the thread that it interrupts, below all that this thread has there; below that
there should be nothing. Code of TensorFlow's, in whatever thread it computes, has something there on some processors
(seen with AVX-512): any signal then corrupts its memory. So only threads with a stack for signals are ever signalled.
"""

import functools
from contextlib import contextmanager, suppress

SIZE = 2**18
"""Bytes, of which a signal takes 4 to 16 kB, more where the processor has wider registers to save. Python's own, which
`faulthandler` brings for the main thread, has room for two or three at a time; one more would write over the heap."""
READ_AND_WRITE_OWN_MEMORY = 0x1 | 0x2, 0x02 | 0x20
NO_ADDRESS = 2**64 - 1
DISABLED = 2


def enlarge():
    """The stack for signals of this thread is large enough from now on, to the end of the process and in its forks."""
    library, stack_type = _library()
    present = stack_type()
    library.sigaltstack(None, present)
    if present.flags & DISABLED or present.size < SIZE:
        _begin(library, stack_type)


@contextmanager
def of_this_thread():
    """For the length of a `with` block this thread has a stack for signals; gives whether that worked."""
    address = None
    with suppress(ImportError):  # a Python without ctypes
        library, stack_type = _library()
        address = _begin(library, stack_type)
    try:
        yield address is not None
    finally:
        if address is not None:
            library.sigaltstack(stack_type(None, DISABLED, 0), None)
            library.munmap(address, SIZE)


def _begin(library, stack_type):
    """Memory for it comes from the system and not from Python, which gives back what nobody refers to."""
    address = library.mmap(None, SIZE, *READ_AND_WRITE_OWN_MEMORY, -1, 0)
    if address in (None, NO_ADDRESS):
        return None
    library.sigaltstack(stack_type(address, 0, SIZE), None)
    return address


@functools.cache
def _library():
    import ctypes  # here, since it takes longer than all the rest, and where nobody asks nobody needs it

    class Stack(ctypes.Structure):
        _fields_ = (("address", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))

    library = ctypes.CDLL(None)
    pointer = ctypes.POINTER(Stack)
    library.sigaltstack.argtypes = pointer, pointer
    library.mmap.restype = ctypes.c_void_p
    numbers = ctypes.c_int, ctypes.c_int, ctypes.c_int
    library.mmap.argtypes = ctypes.c_void_p, ctypes.c_size_t, *numbers, ctypes.c_long
    library.munmap.argtypes = ctypes.c_void_p, ctypes.c_size_t
    return library, Stack
