"""A file or a folder appears whole or not at all, and a disk that is full or read-only is named in a sentence."""

import contextlib
import errno
import os
import secrets
import shutil
import time
from pathlib import Path

from helpers.units import format_bytes

STALE_SECONDS = 3600


def short(path):
    """The path as a message shows it: from the current folder, unless the full path is shorter."""
    try:
        return min(os.path.relpath(path), str(path), key=len)
    except ValueError:  # another drive of a Windows machine
        return str(path)


def total_size(path):
    """The bytes of a file, or of all files in a folder."""
    if not path.is_dir():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


@contextlib.contextmanager
def whole_file(path, size):
    """Open a temporary file beside `path` that takes its name when the block ends well.

    `size` is the number of bytes about to be written. When the block fails or is interrupted, the
    temporary file is removed; when the disk is the reason, the error says how much room is needed.
    """
    path = Path(path)
    with _room_for(path, size), _part_of(path) as file:
        yield file


@contextlib.contextmanager
def whole_folder(path, size):
    """Make a temporary folder beside `path` that takes its name when the block ends well; see `whole_file`.

    What stands at `path` before is removed at the start. Two processes that make the same folder both end well.
    """
    path = Path(path)
    with _room_for(path, size), _folder_part_of(path) as part:
        yield part


@contextlib.contextmanager
def _room_for(path, size):
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale_parts(path)
        _check_room(path, size)
        yield
    except OSError as error:
        raise _explained(error, path, size) from error


def _part_name(path):
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


@contextlib.contextmanager
def _part_of(path):
    part = _part_name(path)
    try:
        with open(part, "xb") as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _folder_part_of(path):
    part = _part_name(path)
    try:
        if path.exists():
            path.replace(part)  # a name at once free, however long the removal takes
            _remove(part)
        part.mkdir()
        yield part
        _put_in_place(part, path)
    except BaseException:
        _remove(part)
        raise


def _put_in_place(part, path):
    try:
        part.replace(path)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        _remove(part)  # another process was quicker


def _remove(part):
    if part.is_dir():
        shutil.rmtree(part, ignore_errors=True)
    else:
        part.unlink(missing_ok=True)


def _remove_stale_parts(path):
    """Remove what a killed process left; a younger part may still be in the making."""
    for part in path.parent.glob(f".{path.name}.*.part"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - part.stat().st_mtime > STALE_SECONDS:
                _remove(part)


def _check_room(path, size):
    if shutil.disk_usage(path.parent).free < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _explained(error, path, size):
    """The same kind of error, as a sentence that says what to do."""
    room = f"{short(path)} needs {format_bytes(size)}"
    elsewhere = "set OOM_DATA to a folder"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = format_bytes(shutil.disk_usage(path.parent).free)
        return OSError(f"{room} and the disk has {free} left; free some room or {elsewhere} on a larger disk")
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return PermissionError(f"{room}, and its folder cannot be written to; {elsewhere} that can")
    return error
