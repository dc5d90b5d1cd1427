"""Lets the C library hand freed memory back to the system at once, so that what a process holds can be measured."""

import ctypes

from helpers.units import parse_bytes

MMAP_THRESHOLD = -3
"""M_MMAP_THRESHOLD of glibc's malloc.h."""


def return_freed_memory(from_size="128 KiB"):
    """Let the C library hand every freed block of `from_size` or more back to the system; True if it could be asked.

    glibc starts with 128 KiB, but raises it whenever a larger block is freed, up to 32 MB, and keeps smaller ones in
    a heap for each thread: batches that are long gone still count as memory of the process. The same without code,
    before the start: `MALLOC_MMAP_THRESHOLD_=131072 python train.py`. Nothing happens without glibc.
    """
    try:
        return ctypes.CDLL("libc.so.6").mallopt(MMAP_THRESHOLD, parse_bytes(from_size, name="from_size")) == 1
    except OSError:  # macOS, musl
        return False
