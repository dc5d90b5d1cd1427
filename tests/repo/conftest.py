"""An environment with the core alone: what `pip install .` would make, put together without a network."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("helpers", "oom_on_purpose.py", "pyproject.toml", "README.md", "LICENSE")


class Core:
    """An environment that has the package, as built, and the packages that its core asks for; nothing else."""

    def __init__(self, folder):
        venv.create(folder / "environment", symlinks=True)
        (self.packages,) = folder.glob("environment/lib/python*/site-packages")
        self.executable = folder / "environment" / "bin" / "python"
        with zipfile.ZipFile(build_wheel(folder)) as wheel:
            wheel.extractall(self.packages)
        link_what_is_needed(self.packages)

    def python(self, *arguments, folder, **environment):
        """Run this environment's Python in a folder; returns its exit code and all that it printed."""
        inherited = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        ended = subprocess.run(
            [self.executable, *arguments],
            cwd=folder,
            env=inherited | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return ended.returncode, ended.stdout.strip()


def build_wheel(folder):
    """Build the package from a copy of its sources, since a build leaves files beside them."""
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        (folder / "source").mkdir(exist_ok=True)
        copy(ROOT / name, folder / "source" / name)
    program = "from setuptools import build_meta; build_meta.build_wheel('..')"
    subprocess.run(
        [sys.executable, "-c", program], cwd=folder / "source", check=True, stdout=subprocess.DEVNULL
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def link_what_is_needed(packages):
    """Link what the package there asks for without extras, and what that asks for, out of this environment."""
    linked, waiting = set(), list(metadata.distributions(path=[str(packages)]))
    while waiting:
        for requirement in map(Requirement, waiting.pop().requires or ()):
            if requirement.name in linked or not applies(requirement):
                continue
            linked.add(requirement.name)
            needed = metadata.distribution(requirement.name)
            for name in {file.parts[0] for file in needed.files} - {"..", "__pycache__"}:
                (packages / name).symlink_to(needed.locate_file(name))
            waiting.append(needed)


def applies(requirement):
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


@pytest.fixture(scope="session")
def core(tmp_path_factory):
    return Core(tmp_path_factory.mktemp("core"))
