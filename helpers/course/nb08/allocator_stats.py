"""The pool of TensorFlow's allocator on the virtual GPU: how much it has reserved, which Python's API leaves out.

`tf.config.experimental.get_memory_info` tells what tensors use. The rest of the allocator's own account is asked in
C++, with the declarations that TensorFlow ships for custom operations (xla/tsl/framework/allocator.h).
"""

import ctypes
import functools
import os
from pathlib import Path

PROCESS_STATE = "_ZN10tensorflow12ProcessState9singletonEv"
CPU_ALLOCATOR = "_ZN10tensorflow12ProcessState15GetCPUAllocatorEi"
STATISTICS = "_ZN3tsl12BFCAllocator8GetStatsEv"
KIND = "_ZTVN3tsl12BFCAllocatorE"


class _Maybe(ctypes.Structure):
    """std::optional<int64_t>"""

    _fields_ = [("value", ctypes.c_int64), ("known", ctypes.c_bool)]


class _Statistics(ctypes.Structure):
    """std::optional<tsl::AllocatorStats>"""

    _fields_ = [
        ("allocations", ctypes.c_int64),
        ("used", ctypes.c_int64),
        ("peak_used", ctypes.c_int64),
        ("largest_allocation", ctypes.c_int64),
        ("limit", _Maybe),
        ("set_aside", ctypes.c_int64),
        ("peak_set_aside", ctypes.c_int64),
        ("limit_set_aside", _Maybe),
        ("largest_free", ctypes.c_int64),
        ("reserved", _Maybe),
        ("peak_reserved", _Maybe),
        ("known", ctypes.c_bool),
    ]


@functools.cache
def _question():
    """A function that asks the allocator; None in a TensorFlow that does not have it under these names, or in a
    process whose allocator is of another kind."""
    import tensorflow as tf

    folder = Path(tf.__file__).parent
    try:
        library = ctypes.CDLL(str(next(folder.glob("libtensorflow_framework.so*"))))
        state, allocator, statistics = (
            getattr(library, name) for name in (PROCESS_STATE, CPU_ALLOCATOR, STATISTICS)
        )
        kind = ctypes.addressof(ctypes.c_char.in_dll(library, KIND))
    except (StopIteration, OSError, AttributeError, ValueError):
        return None
    state.restype = allocator.restype = ctypes.c_void_p
    allocator.argtypes = [ctypes.c_void_p, ctypes.c_int]
    statistics.restype, statistics.argtypes = _Statistics, [ctypes.c_void_p]
    pool = allocator(state(), 0)
    if ctypes.c_void_p.from_address(pool).value != kind + 2 * ctypes.sizeof(ctypes.c_void_p):
        return None
    return functools.partial(statistics, pool)


def reserved():
    """Bytes that the pool of this process's virtual GPU has taken so far; None where TensorFlow does not tell.

    The answer counts only if it names the very limit that the pool was given: then both speak of the same thing.
    """
    ask = _question()
    found = ask() if ask else None
    limit = int(os.environ.get("TF_CPU_BFC_MEM_LIMIT_IN_MB", 0)) * 2**20
    if not found or not found.known or found.limit.value != limit:
        return None
    return found.reserved.value if found.used <= found.reserved.value <= limit else None
