"""The kernel's pages: how much memory page faults can have brought."""

import functools
import os
from contextlib import suppress
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage")
LONGEST_VMSTAT = 65_536


def reach(minor_faults, major_faults):
    """An account in bytes that rises by at least as much as a process can have grown: memory comes by page faults, one
    page each, or by huge pages, which the kernel counts for the whole machine. A file comes many pages to a fault.
    None where the system does not count huge pages.
    """
    huge = _huge_pages()
    return None if huge is None else (minor_faults + major_faults) * _largest_small_page() + huge


def _huge_pages():
    """Bytes of all huge pages of memory that anybody was ever given."""
    try:
        text = os.pread(_counters_of_the_machine(), LONGEST_VMSTAT, 0)
    except OSError:
        return None
    counts = (number_after(text, key) for key in (b"\nthp_fault_alloc ", b"\nthp_collapse_alloc "))
    return sum(counts) * _huge_page()


def number_after(text, key):
    """The number behind a key in a text of the kernel's, or 0: not every kernel counts everything."""
    start = text.find(key)
    return int(text[start + len(key) :].split(None, 1)[0]) if start >= 0 else 0


@functools.cache
def _counters_of_the_machine():
    return os.open("/proc/vmstat", os.O_RDONLY | os.O_CLOEXEC)


@functools.cache
def _huge_page():
    with suppress(OSError, ValueError):
        return int(HUGE_PAGES.joinpath("hpage_pmd_size").read_text())
    return 0


@functools.cache
def _largest_small_page():
    """The bytes that one fault can bring beside huge pages: newer kernels have sizes in between, if they are set to."""
    sizes = [PAGE]
    for folder in HUGE_PAGES.glob("hugepages-*kB"):
        size = int(folder.name[len("hugepages-") : -len("kB")]) * 1024
        with suppress(OSError):
            if size != _huge_page() and "[never]" not in folder.joinpath("enabled").read_text():
                sizes.append(size)
    return max(sizes)
