"""Several jobs at once on one card: `share` runs them, a `Sharing` says what became of each and who held what."""

import pickle
import re
from dataclasses import dataclass, field

import cloudpickle
import pandas

from helpers.course.nb08 import tenants
from helpers.course.nb08.ledger import size_of_card
from helpers.jobs.trial import run
from helpers.units import format_bytes, parse_bytes

ROOM = 800 * 10**6
"""RAM for each process beside its share of the card: what Keras and its data take."""


@dataclass(frozen=True)
class Tenant:
    """What became of one process on the card; sizes are in bytes, times in seconds since the first one started."""

    name: str
    outcome: str
    began: float
    ended: float
    exit_code: int
    limit: int | None
    reserved: int
    used: int
    error: str | None = None
    log: str = field(default="", repr=False)
    value: object = None

    @property
    def out_of_memory(self):
        return self.outcome == "vram-oom"

    @property
    def seconds(self):
        return self.ended - self.began

    @property
    def verdict(self):
        """One sentence without a figure that changes from run to run."""
        if self.outcome == "finished":
            return f"{self.name} finished."
        what = (self.error or f"exit code {self.exit_code}").split(":")[0]
        if self.out_of_memory:
            full = what == "CardIsFull" or self.limit is None
            had = "the card was full" if full else f"the card had {format_bytes(self.limit)} for it"
            return f"{self.name} ran out of memory: {had} ({what})."
        return f"{self.name} failed ({what})."


@dataclass(frozen=True, repr=False)
class Sharing:
    """Some processes on a card of `size` bytes, and over time what each had reserved and used.

    `peak_ram` is what all of them took of the machine, the virtual card included.
    """

    size: int
    tenants: tuple
    samples: pandas.DataFrame = field(compare=False)
    peak_ram: int = 0

    def __getitem__(self, name):
        return next(tenant for tenant in self.tenants if tenant.name == name)

    def __str__(self):
        return "\n".join(tenant.verdict for tenant in self.tenants)

    __repr__ = __str__

    @property
    def finished(self):
        return all(tenant.outcome == "finished" for tenant in self.tenants)

    def holders(self, name):
        """A table of who held what when the process `name` had taken its share."""
        held = self.samples[self.samples["reserved"] > 0]
        first = held.loc[held["name"] == name, "seconds"].min()
        return held.loc[held["seconds"] == first, ["name", "reserved", "used"]].reset_index(drop=True)


def share(card, jobs, memory_limit=None, growth=False, environment=None, after=None, pause=1.0, timeout=120):
    """Run `jobs`, functions by their names, at the same time on one card, and return a `Sharing`.

    Each job has a process of its own. By default it reserves what is free on the card, as TensorFlow does;
    `memory_limit` gives each a fixed share (or a dict has one for each name), `growth=True` lets it take memory as
    it needs it. `environment` is set in every process before TensorFlow has a device. A job starts `pause` seconds
    after the one before it uses the card; with `pause=None`, when that one calls `tenants.let_in()`; and if
    `after` maps its name to another's, when that one has ended.
    """
    size = size_of_card(card)
    _check_jobs(jobs)
    limits, after, environment = _limits(jobs, memory_limit), after or {}, environment or {}
    _check_settings(jobs, limits, growth, after, environment)
    packed = {name: cloudpickle.dumps(job) for name, job in jobs.items()}
    trial = run(
        tenants.host,
        size,
        packed,
        limits,
        growth,
        environment,
        after,
        pause,
        ram=size + ROOM * len(jobs),
        timeout=timeout,
        label=" and ".join(jobs),
    )
    if trial.outcome != "finished":
        raise RuntimeError(f"the processes on the card could not be watched to their end: {trial.verdict}")
    return _sharing(trial.value, trial.peak_ram)


def _limits(jobs, memory_limit):
    if memory_limit is None:
        return {}
    by_name = memory_limit if isinstance(memory_limit, dict) else dict.fromkeys(jobs, memory_limit)
    return {
        name: parse_bytes(limit, name=f"memory_limit of {name}")
        for name, limit in by_name.items()
        if limit is not None
    }


def _check_jobs(jobs):
    if not isinstance(jobs, dict) or not jobs:
        raise TypeError('share needs jobs by name: {"first": train, "second": train}')
    for name, job in jobs.items():
        if not callable(job):
            raise TypeError(f"the job {name!r} is no function; write train, not train()")


def _check_settings(jobs, limits, growth, after, environment):
    for name in [*limits, *after, *after.values()]:
        if name not in jobs:
            raise ValueError(f"there is no job {name!r}; there are {', '.join(jobs)}")
    if growth and limits:
        raise ValueError(
            "a process has a memory limit or memory growth, not both: a limit switches growth off"
        )
    for name, value in environment.items():
        if not isinstance(value, str):
            raise TypeError(f'the environment holds text; write {{"{name}": "{str(value).lower()}"}}')


def _sharing(facts, peak_ram):
    samples = pandas.DataFrame(facts["samples"], columns=["seconds", "name", "reserved", "used"])
    found = tuple(_tenant(tenant, samples) for tenant in facts["tenants"])
    return Sharing(facts["size"], found, samples, peak_ram)


def _tenant(facts, samples):
    own = samples[samples["name"] == facts["name"]]
    finished = "value" in facts
    return Tenant(
        name=facts["name"],
        outcome=_outcome(facts),
        began=facts["began"],
        ended=facts["ended"],
        exit_code=facts["exit_code"],
        limit=facts.get("limit") or _created_with(facts["log"]),
        reserved=int(own["reserved"].max()),
        used=max(int(own["used"].max()), facts.get("peak") or 0),
        error=facts.get("error"),
        log=facts["log"],
        value=pickle.loads(facts["value"]) if finished else None,
    )


def _created_with(log):
    """Bytes of the GPU that TensorFlow itself found for a process, out of its log."""
    found = re.search(r"Created device \S+GPU:0 with (\d+) MB memory", log)
    return int(found[1]) * 2**20 if found else None


def _outcome(facts):
    """TensorFlow raises an error when its pool is full, or crashes and leaves a line in its log."""
    if "value" in facts:
        return "finished"
    crashed = facts["exit_code"] < 0 and "ran out of memory trying to allocate" in facts["log"]
    return "vram-oom" if crashed or facts.get("kind") == "device" else "error"
