"""Run a job on a memory budget, see what filled the memory, and prove that the fix holds."""

import importlib

_HOME = {
    "run": "helpers.trial",
    "Trial": "helpers.trial",
    "plot": "helpers.plots",
    "compare": "helpers.plots",
    "phase": "helpers.reports",
    "estimate": "helpers.estimate",
    "diagnose": "helpers.doctor",
    "InputClock": "helpers.idle",
    "exercise": "helpers.exercises",
}

__all__ = list(_HOME)


def __getattr__(name):
    """Import a name's module when it is first asked for: a job that needs `phase` does not need the charts."""
    if name not in _HOME:
        raise AttributeError(f"module 'helpers' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__():
    return sorted([*globals(), *_HOME])
