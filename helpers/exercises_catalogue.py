"""The exercises of the course: each notebook has a module `exercises_NN` with a table of its own."""

import importlib
from pathlib import Path

MODULES = sorted(path.stem for path in Path(__file__).parent.glob("exercises_[0-9][0-9].py"))
EXERCISES = {
    name: exercise
    for module in MODULES
    for name, exercise in importlib.import_module(f"helpers.{module}").EXERCISES.items()
}
