"""Freed memory that the C library keeps in its heap: hand it back to the system."""

import ctypes


def give_back():
    """Hand the free pages of the heap back to the system; True if there were any. Nothing happens without glibc."""
    try:
        return ctypes.CDLL("libc.so.6").malloc_trim(0) == 1
    except (OSError, AttributeError):  # macOS, musl
        return False
