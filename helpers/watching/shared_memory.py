"""Files that a job makes in /dev/shm: they are memory, they outlive their maker, and other programs make them too."""

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from helpers.watching import names
from helpers.watching.openings import Openings

FOLDER = Path("/dev/shm")
LITTLE = 2**18
"""Bytes of others' files that make no difference, as semaphores."""
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


class SharedFiles:
    """Tells the files that one family of processes made from those of everybody else. The family's are those that it
    was seen to hold while nobody but their maker had ever opened them; what is not certain is left alone."""

    def __init__(self):
        self._openings = Openings(FOLDER)
        self._inodes, self._own, self._recorded = set(), {}, None

    def size(self, family):
        """The bytes of the family's own files, mapped or not."""
        candidates = set(self._openings.held_by_makers())
        if not candidates and not self._inodes:
            return 0  # as nearly always: nobody makes a file there
        found = listing()
        held = {
            name: inode
            for name in candidates
            for inode, _ in [found.get(str(FOLDER / name), (None, 0))]
            if inode and inode not in self._inodes and any(holds(pid, inode) for pid in family)
        }
        if held:  # and nobody else opened it while we looked
            self._inodes |= {held[name] for name in held.keys() & self._openings.held_by_makers()}
        self._own = {path: inode for path, (inode, _) in found.items() if inode in self._inodes}
        self._keep_record()
        return sum(found[path][1] for path in self._own)

    def of_others(self, pid):
        """(resident, share) bytes of files there that a process has mapped and that the family is not known to have
        made; None if that cannot be told any more."""
        strangers = {inode: size for inode, size in listing().values() if inode not in self._inodes}
        if sum(strangers.values()) < LITTLE:
            return 0, 0
        return mapped(pid, strangers)

    def _keep_record(self):
        if self._own != (self._recorded or {}):
            self._recorded = dict(self._own)
            with suppress(OSError):
                _record().write_text(json.dumps(self._own))

    def remove(self):
        """Remove what the family left."""
        self._openings.close()
        _remove({path: inode for path, (inode, _) in listing().items() if inode in self._inodes})
        if self._recorded is not None:
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
        return f"{_device()} {inode} " in Path(f"/proc/{pid}/maps").read_text()
    return False


def mapped(pid, inodes):
    """(resident, share) bytes of these files of /dev/shm in a process; what it changed for itself alone is its own.
    None of a process that is on its way out, and has no mappings any more though the kernel still counts its memory."""
    resident = share = 0
    is_one_of_them = None
    with suppress(OSError), open(f"/proc/{pid}/smaps") as mappings:
        for line in mappings:
            key, *fields = line.split(None, 5)
            if not key.endswith(":"):
                is_one_of_them = fields[2] == _device() and int(fields[3]) in inodes
            elif is_one_of_them and key in ("Rss:", "Pss:", "Anonymous:"):
                size = int(fields[0]) * 1024 * (-1 if key == "Anonymous:" else 1)
                resident += size if key != "Pss:" else 0
                share += size if key != "Rss:" else 0
    return None if is_one_of_them is None else (resident, share)


def _device():
    device = FOLDER.stat().st_dev
    return f"{os.major(device):02x}:{os.minor(device):02x}"
