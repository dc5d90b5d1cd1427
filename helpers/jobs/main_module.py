"""The caller's `__main__` in its job: what is defined there is found there again, as pickle and multiprocessing do."""

import builtins
import sys
from importlib.machinery import ModuleSpec
from multiprocessing import process
from types import FunctionType, ModuleType

import cloudpickle


def describe():
    """In the caller: where its program came from, in plain words."""
    module = sys.modules["__main__"]
    named = {name: vars(module).get(name) for name in ("__file__", "__package__")}
    named["__spec__"] = getattr(getattr(module, "__spec__", None), "name", None)
    named["folder"] = process.ORIGINAL_DIR
    return {name: text for name, text in named.items() if isinstance(text, str)}


def take_over(described, arguments):
    """In the job: an empty `__main__` that says the same of itself, and the arguments of the caller's command line."""
    described = dict(described)
    module = ModuleType("__main__")
    vars(module)["__builtins__"] = builtins
    if name := described.pop("__spec__", None):
        module.__spec__ = ModuleSpec(name, None)
    process.ORIGINAL_DIR = described.pop("folder", process.ORIGINAL_DIR)
    vars(module).update(described)
    sys.modules["__main__"] = module
    sys.argv[:] = arguments


class Namespace:
    """Stands for the names of the caller's `__main__`, and becomes those of the job's where it is unpickled."""

    def __reduce__(self):
        return names, ()


def names():
    return vars(sys.modules["__main__"])


class Pickler(cloudpickle.Pickler):
    """Pickles what `__main__` defines by value, and remembers by which names it is found there."""

    def __init__(self, file, **options):
        super().__init__(file, **options)
        self._names, self.found = names(), {}
        self.globals_ref[id(self._names)] = Namespace()

    def reducer_override(self, thing):
        if isinstance(thing, type | FunctionType):
            name = thing.__name__
            if self._names.get(name) is thing:
                self.found[name] = thing
        return super().reducer_override(thing)
