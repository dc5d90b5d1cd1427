"""What crosses the pipes between the caller, the supervisor and the job: `Task` one way, `Ending` the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from helpers.watching.record import Curves, Phase, Place

WARM_IMPORTS = ("numpy", "pandas", "tensorflow", "keras")
"""Imported before a job starts, if they are installed, and not counted as the job's."""
JOB_ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "1", "TF_ENABLE_ONEDNN_OPTS": "0"}
"""Unless the caller says otherwise: errors and warnings only, and the same kernels on every machine. On some CPUs
TensorFlow takes oneDNN's, whose scratch memory makes other peaks."""


@dataclass(frozen=True)
class Task:
    """A job, packed, with its budgets and the surroundings of its caller."""

    function: bytes
    arguments: bytes
    ram: int | None
    spare: int | None
    """What a job without a RAM budget may take, so that the machine survives."""
    vram: int | None
    growth: bool
    on_limit: str
    limiter: str | None
    timeout: float
    environment: dict[str, str]
    path: list[str]
    folder: str
    main: dict[str, str] = field(default_factory=dict)
    """Where the caller's `__main__` came from."""
    command_line: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Failure:
    """How a job failed by itself: `kind` is "memory", "device", "result" or "" for anything else."""

    kind: str
    type: str
    message: str
    traceback: str = ""
    refused_by: str = ""
    """The limit that refused memory, in words, if it is known and not the budget."""


@dataclass(frozen=True)
class Ending:
    """How a job ended and what was seen of it; sizes are in bytes, times in seconds."""

    status: int
    """As `wait4` has it."""
    ended_by: str | None
    """ "budget", "limit around", "kernel", "timeout" or "caller"; None if it ended by itself."""
    seconds: float
    log: bytes
    limiter: str
    limit_around: int | None = None
    """The limit of a control group around the job that was reached before its budget, if that ended it."""
    returned: bool = False
    """Whether the job's function came to its end, whatever happened then."""
    value: bytes | None = None
    failure: Failure | None = None
    device: str | None = None
    peak_ram: int | None = None
    peak_vram: int | None = None
    idle: float | None = None
    lines: list[tuple[Place, int]] = field(default_factory=list)
    phases: tuple[Phase, ...] = ()
    curves: Curves = field(default_factory=Curves)
