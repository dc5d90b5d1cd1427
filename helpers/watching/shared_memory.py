"""Files that a job makes in /dev/shm: they are memory, they outlive their maker, and other programs make them too."""

import functools
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from helpers.watching import names

FOLDER = Path("/dev/shm")
PATIENCE = 50
"""How often a new file is looked at before it counts as somebody else's."""
RECORD = "shared-memory"
"""How the name ends of the file in which a watcher keeps what it would have to remove, in case it is killed."""


def listing():
    """This user's files there: {path: (inode, bytes)}."""
    found = {}
    with suppress(OSError), os.scandir(FOLDER) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                if status.st_uid == os.getuid():
                    found[entry.path] = (status.st_ino, status.st_blocks * 512)
    return found


def _last_change():
    """When a file came or went there last."""
    try:
        return os.fstat(_folder()).st_mtime_ns
    except OSError:
        return None


@functools.cache
def _folder():
    """Asked so often that the folder stays open."""
    return os.open(FOLDER, os.O_RDONLY | os.O_CLOEXEC)


class SharedFiles:
    """Tells the files that one family of processes made from those of everybody else, by who holds them."""

    def __init__(self):
        self._changed = _last_change()
        self._strangers = set(listing())
        self._own, self._looks, self._recorded = {}, {}, 0

    def size(self, family):
        """The bytes of the family's own files, mapped or not."""
        changed, before = _last_change(), self._changed
        if changed == before and not self._own and not self._looks:
            return 0  # as nearly always: no file has come since the last look
        self._changed, found = changed, listing()
        for path in found.keys() - self._strangers - self._own.keys():
            self._looks[path] = self._looks.get(path, 0) + 1
            if any(holds(pid, found[path][0]) for pid in family):
                self._own[path] = found[path][0]
            elif self._looks[path] > PATIENCE:
                self._strangers.add(path)
        self._looks = {path: looks for path, looks in self._looks.items() if self._is_open(path, found)}
        self._keep_record()
        return sum(size for path, (_, size) in found.items() if path in self._own)

    def _keep_record(self):
        if len(self._own) != self._recorded:
            self._recorded = len(self._own)
            with suppress(OSError):
                _record().write_text(json.dumps(self._own))

    def _is_open(self, path, found):
        """Whether it is not known yet whose file this is."""
        return path in found and path not in self._own and path not in self._strangers

    def remove(self):
        """Remove what the family left."""
        _remove(self._own)
        if self._recorded:
            _record().unlink(missing_ok=True)


def _record():
    return Path(tempfile.gettempdir(), names.new_prefix() + RECORD)


def remove_recorded(record):
    """Remove what a watcher that is gone had recorded, and its record."""
    with suppress(OSError, ValueError):
        _remove(json.loads(record.read_text()))
    record.unlink(missing_ok=True)


def _remove(files):
    """Remove {path: inode}, where it is still that file."""
    for path, inode in files.items():
        with suppress(OSError):
            if os.stat(path, follow_symlinks=False).st_ino == inode:
                os.unlink(path)


def holds(pid, inode):
    """True if a process has this file of /dev/shm open or mapped, under whatever name it was made."""
    device = FOLDER.stat().st_dev
    with suppress(OSError):
        for descriptor in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                status = os.stat(descriptor.path)
                if (status.st_dev, status.st_ino) == (device, inode):
                    return True
        name = f"{os.major(device):02x}:{os.minor(device):02x} {inode} "
        return name in Path(f"/proc/{pid}/maps").read_text()
    return False
