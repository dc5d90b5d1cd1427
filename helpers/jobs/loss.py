"""A worker that ended too early: what was heard of its job until then, and what it died of."""

import os
import signal
import time

from helpers.jobs.task import Ending, Failure
from helpers.jobs.vram_log import open_file
from helpers.text import signal_name
from helpers.units import format_bytes
from helpers.watching.enclosure import limit_around
from helpers.watching.record import Curves, Log

try:
    import resource
except ImportError:  # Windows
    resource = None

LONGEST = 4_000
MANY_PROCESSES = 4_096
LITTLE_ROOM = 16 * 2**30


class Heard:
    """Passes the messages of a worker on, and keeps enough of them for an ending without it."""

    def __init__(self, on_message):
        self._on_message, self._log, self._live = on_message, Log(), []
        self._asked_at = time.monotonic()

    @property
    def anything(self):
        """Whether the job had begun, as far as is known here."""
        return bool(self._live or self._log.size)

    def __call__(self, kind, facts):
        if kind == "output":
            self._log.add(facts)
        elif kind == "live":
            self._live.append((facts["seconds"], facts["ram"], facts["peak"]))
        self._on_message(kind, facts)

    def ending(self, cause):
        seconds, ram, peaks = zip(*self._live, strict=True) if self._live else ((), (), (None,))
        sentence = f"the process that watched this job {cause}, and the job with it"
        return Ending(
            status=9,
            ended_by=None,
            seconds=seconds[-1] if seconds else time.monotonic() - self._asked_at,
            log=bytes(self._log),
            limiter="",
            failure=Failure("worker", "WorkerIsGone", sentence),
            peak_ram=peaks[-1],
            curves=Curves(seconds, ram),
        )


def open_errors():
    """A file for what a worker says when it cannot go on; None where there is none to be had."""
    try:
        return open_file(b"")
    except OSError:
        return None


def cause_of_death(code, errors, enclosure):
    """What a process died of, as the end of a sentence."""
    name = signal_name(code)
    if name:
        return f"was ended by {name}{_want_of_memory(enclosure) if code == -signal.SIGKILL else ''}"
    said = _last_line(errors)
    return f"ended with exit code {code}" + (f" ({said})" if said else "") + _known_limits()


def _want_of_memory(enclosure):
    killer = enclosure.killer()
    if killer is None:
        return ""
    return f" at {limit_around(killer.limit)}" if killer.limit else " when the kernel ran out of memory"


def _last_line(errors):
    if not errors:
        return ""
    text = os.pread(errors.fileno(), LONGEST, max(0, os.fstat(errors.fileno()).st_size - LONGEST))
    lines = text.decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _known_limits():
    """Limits of this process, inherited by the worker, that are too small for it."""
    found = []
    for name, option, small, show in (
        ("RLIMIT_AS", "ulimit -v", LITTLE_ROOM, format_bytes),
        ("RLIMIT_NPROC", "ulimit -u", MANY_PROCESSES, str),
    ):
        limit = resource.getrlimit(getattr(resource, name))[0] if hasattr(resource, name) else -1
        if 0 <= limit < small:
            found.append(f"; here {option} allows no more than {show(limit)}")
    return "".join(found)
