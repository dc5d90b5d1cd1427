"""The page cache: put files out of it or into it, and see how much of a process is it."""

import os
from pathlib import Path

import psutil


def drop(*paths):
    """Put files, or all files in folders, out of the page cache, so that the next reader waits for the disk.

    Nothing is lost and no rights are needed: what is not on the disk yet is written first. A disk may have a cache
    of its own; nothing happens on a file system in memory, or where the system cannot be asked (macOS).
    """
    for file in _files(paths):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def fill(*paths):
    """Read files, or all files in folders, once, so that they lie in the page cache."""
    for path in _files(paths):
        with open(path, "rb") as file:
            while file.read(2**20):
                pass


def _files(paths):
    for path in map(Path, paths):
        yield from sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def memory_now():
    """The bytes of this process by kind: resident, and of that its own (anonymous) and pages of files."""
    memory = psutil.Process().memory_info()
    return {"resident": memory.rss, "own": memory.rss - memory.shared, "pages of files": memory.shared}
