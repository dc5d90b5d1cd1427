"""Small disks of memory, to see what happens on one that is full or read-only."""

import contextlib
import subprocess

import pytest


@contextlib.contextmanager
def mounted(folder, options):
    """Mount a small file system of memory on the folder, where this machine lets us."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        mount = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("this machine has no mount command")
    if mount.returncode:
        pytest.skip(f"this needs the right to mount a file system: {mount.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
