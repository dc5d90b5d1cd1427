"""What a run of a process tree showed: curves, peaks, lines, phases, what it printed. `run` and the doctor fill it."""

from __future__ import annotations

import functools
import linecache
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from helpers import text

if TYPE_CHECKING:
    import pandas

OUT_OF_MEMORY = ("killed", "memory-error", "vram-oom")
KEPT_LOG = 1_000_000
Place: TypeAlias = "tuple[str, int] | tuple[tuple[str, int], tuple[str, int]]"
"""A line, as its file and its number; two lines that share bytes; or the reason why there is no line, and 0."""


@dataclass(frozen=True)
class Line:
    """A line of the job's own code and the bytes that were taken while it ran and held at the peak."""

    file: str
    line: int
    source: str
    bytes: int
    where: str


@dataclass(frozen=True)
class Phase:
    """A named stretch of a job, in seconds since its start; `end` is None if the job died in it."""

    name: str
    start: float
    end: float | None = None
    items: int | None = None


def located(place: Place, size: int) -> Line:
    """A line with its source and where a reader finds it: by the number of its cell, or by its file. Bytes that two
    lines share have both."""
    if isinstance(place[0], tuple):
        either = " or ".join(located(line, size).where for line in place)
        return Line(either, 0, "", size, either)
    file, number = place
    if number == 0:  # not a line, but a reason why there is none
        return Line(file, 0, "", size, file)
    cell = text.cell_number(file)
    where = f"cell {cell}, line {number}" if cell else f"{Path(file).name}:{number}"
    return Line(file, number, linecache.getline(file, number).strip(), size, where)


class Log:
    """The beginning and the end of what a job prints; a job may print more than anyone wants to keep."""

    def __init__(self) -> None:
        self.head, self.tail, self.size = bytearray(), bytearray(), 0

    def add(self, piece: bytes) -> bytes:
        """Keep a piece; returns the part of it that still belongs to the beginning."""
        room = max(0, KEPT_LOG - len(self.head))
        self.head += piece[:room]
        self.tail += piece[room:]
        del self.tail[:-KEPT_LOG]
        self.size += len(piece)
        return piece[:room]

    def __bytes__(self) -> bytes:
        lost = self.size - len(self.head) - len(self.tail)
        gap = b"\n[... %d bytes left out ...]\n" % lost if lost else b""
        return bytes(self.head) + gap + bytes(self.tail)


@dataclass(frozen=True)
class Curves:
    """Readings over time as they cross a process: RAM at `seconds`, and pairs of seconds and a value of the rest."""

    seconds: Any = ()
    ram: Any = ()
    vram: tuple = ()
    utilisation: tuple = ()
    waiting: tuple | None = None
    """Stretches (start, end) in which the device waited; None if nobody measured that."""

    def table(self) -> pandas.DataFrame:
        """One row for each reading of the RAM: seconds, ram, vram, waiting, and utilisation where there is a GPU."""
        import numpy
        import pandas

        columns: dict = {"seconds": numpy.asarray(self.seconds, float), "ram": numpy.asarray(self.ram, float)}
        samples = pandas.DataFrame(columns | {"vram": numpy.nan, "waiting": numpy.nan})
        if not len(samples):
            return samples
        if self.vram:
            samples["vram"] = _newest(self.vram, samples["seconds"])
        if self.utilisation:
            samples["utilisation"] = _newest(self.utilisation, samples["seconds"])
        if self.waiting is not None:
            inside = numpy.zeros(len(samples))
            for start, end in self.waiting:
                first, last = samples["seconds"].searchsorted([start, end])
                inside[first:last] = 1
            samples["waiting"] = inside
        return samples


def _newest(readings: tuple, seconds: Any) -> Any:
    """For each moment the newest of the readings, which are pairs of seconds and a value."""
    import numpy

    times, levels = zip(*readings, strict=True)
    newest = numpy.searchsorted(times, seconds, side="right") - 1
    return numpy.where(newest >= 0, numpy.take(levels, newest.clip(0)), numpy.nan)


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Recording:
    """What one run showed; sizes are in bytes, times in seconds."""

    label: str
    outcome: str
    exit_code: int
    seconds: float
    ram_budget: int | None
    vram_budget: int | None
    peak_ram: int | None
    peak_vram: int | None
    idle: float | None = None
    error: str | None = None
    log: str = ""
    lines: tuple[Line, ...] = ()
    phases: tuple[Phase, ...] = ()
    curves: Curves = field(default_factory=Curves)

    @functools.cached_property
    def samples(self) -> pandas.DataFrame:
        """The curves as a table: seconds, ram, vram, waiting."""
        return self.curves.table()

    @property
    def out_of_memory(self) -> bool:
        return self.outcome in OUT_OF_MEMORY

    @property
    def throughput(self) -> float | None:
        """Items per second over the phases that counted items, or None."""
        counted = [
            (phase.items, phase.end - phase.start) for phase in self.phases if phase.items and phase.end
        ]
        seconds = sum(took for _, took in counted)
        return sum(items for items, _ in counted) / seconds if seconds else None
