"""Run a job on a memory budget, see what filled the memory, and prove that the fix holds."""

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers, which cannot follow the table below
    from helpers.charts.compare import compare as compare
    from helpers.charts.timeline import plot as plot
    from helpers.course.exercises import exercise as exercise
    from helpers.doctor.diagnosis import diagnose as diagnose
    from helpers.estimator.estimate import estimate as estimate
    from helpers.jobs.channel import phase as phase
    from helpers.jobs.input_clock import InputClock as InputClock
    from helpers.jobs.trial import Trial as Trial
    from helpers.jobs.trial import run as run

__version__ = "0.2.0"

_HOME = {
    "run": "helpers.jobs.trial",
    "Trial": "helpers.jobs.trial",
    "plot": "helpers.charts.timeline",
    "compare": "helpers.charts.compare",
    "phase": "helpers.jobs.channel",
    "estimate": "helpers.estimator.estimate",
    "diagnose": "helpers.doctor.diagnosis",
    "InputClock": "helpers.jobs.input_clock",
    "exercise": "helpers.course.exercises",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    """Import a name's module when it is first asked for: a job that needs `phase` does not need the charts."""
    if name not in _HOME:
        raise AttributeError(f"module 'helpers' has no attribute {name!r}" + _hidden(name))
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])


class _LastFinder:
    """Asked for a module that nobody has: it may be in another `helpers`, which this one hides."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        package, _, module = name.rpartition(".")
        if package == __name__ and (hidden := _hidden(module)):
            raise ImportError(f"there is no {name}{hidden}", name=name)


def _hidden(name: str) -> str:
    """The rest of the sentence about a missing name if another `helpers` is on the path, else nothing."""
    if name.startswith("__"):  # Python itself asks for `__path__` and the like
        return ""
    here = Path(__file__).resolve().parent
    places = [Path(entry, place).absolute() for entry in sys.path for place in ("helpers.py", "helpers")]
    others = [
        place for place in places if place.resolve() != here and (place.is_file() or any(place.glob("*.py")))
    ]
    if not others:
        return ""
    return (
        f" in {here}, the package of oom-on-purpose, which hides another helpers, {others[0]}; "
        "rename that one, or use the two in different processes"
    )


sys.meta_path.append(_LastFinder)
