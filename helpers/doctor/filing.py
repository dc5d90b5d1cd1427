"""Where a report goes: into files of its own that replace no other, in a folder that can be written to."""

import itertools
import os
import tempfile
from pathlib import Path

NAME = "oom-report"


def file_away(texts, folder="."):
    """Write {kind of file: text}; returns the paths. A report that is already there stays, and this one gets a number;
    a folder that cannot be written to is replaced by a temporary one."""
    try:
        return _write(texts, Path(folder))
    except OSError:
        return _write(texts, Path(tempfile.mkdtemp(prefix=f"{NAME}-")))


def _write(texts, folder):
    for number in itertools.count(1):
        name = NAME if number == 1 else f"{NAME}-{number}"
        paths = [folder / f"{name}.{kind}" for kind in texts]
        if any(map(os.path.lexists, paths)):
            continue
        try:
            return _write_all(dict(zip(paths, texts.values(), strict=True)))
        except FileExistsError:  # another doctor has just taken this number
            continue


def _write_all(files):
    """All of them or none, and never through a link or over a file that is there."""
    written = []
    try:
        for path, text in files.items():
            with path.open("x", encoding="utf-8", errors="replace") as file:
                written.append(path)
                file.write(text)
        return written
    except OSError:
        for path in written:
            path.unlink()
        raise
