"""environment.yml, pyproject.toml, requirements.lock and what is installed say the same."""

import platform
import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from helpers import machine

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("course", "dev")
"""What the lock, environment.yml and the two commands of the README install beside the core."""
EVERYTHING = f"-e .[{','.join(EXTRAS)}]"
HOST = re.compile(r"https?://|\b[a-z0-9-]+\.(?:org|com|io|net|dev)\b|index-url|find-links")


def project(folder):
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def wanted(folder, *extras):
    """What an installation with these extras needs: {name: requirement}; an extra may name others of the project."""
    described = project(folder)
    found, waiting = {}, list(described["dependencies"])
    for extra in extras:
        waiting += described["optional-dependencies"][extra]
    for requirement in map(Requirement, waiting):
        if requirement.name == described["name"]:
            found |= wanted(folder, *requirement.extras)
        else:
            found[canonicalize_name(requirement.name)] = requirement
    return found


def environment_problems(folder):
    """Where environment.yml disagrees with pyproject.toml."""
    entries = yaml.safe_load((folder / "environment.yml").read_text())["dependencies"]
    through_conda = {
        entry.name: entry for entry in (Requirement(entry) for entry in entries if isinstance(entry, str))
    }
    through_pip = next(entry["pip"] for entry in entries if isinstance(entry, dict))
    if through_pip != [EVERYTHING]:
        yield f"environment.yml installs {', '.join(through_pip) or 'nothing'} and not {EVERYTHING}"
    if through_conda["python"].specifier != SpecifierSet(project(folder)["requires-python"]):
        yield f"environment.yml wants {through_conda['python']}, pyproject.toml another Python"


def installed_problems(folder):
    """Where what is installed disagrees with pyproject.toml."""
    if platform.python_version() not in SpecifierSet(project(folder)["requires-python"]):
        yield f"this is Python {platform.python_version()}"
    for requirement in wanted(folder, *EXTRAS).values():
        if requirement.marker and not requirement.marker.evaluate():
            continue
        installed = machine.version(requirement.name)
        if installed is None:
            yield f"{requirement} is wanted and not installed"
        elif not requirement.specifier.contains(installed, prereleases=True):
            yield f"{requirement} is wanted, {installed} is installed"


def lock_entries(folder):
    """The entries of the lock: each requirement with the number of its hashes."""
    text = (folder / "requirements.lock").read_text().replace("\\\n", " ")
    for line in re.findall(r"^[a-z0-9].*", text, flags=re.IGNORECASE | re.MULTILINE):
        requirement, *hashes = re.split(r"\s+--hash=sha256:(?=[0-9a-f]{64}\b)", line.strip())
        yield Requirement(requirement), len(hashes)


def lock_problems(folder):
    """Where requirements.lock does not do what pyproject.toml asks for."""
    if host := HOST.search((folder / "requirements.lock").read_text()):
        yield f"requirements.lock names a host: {host[0]}"
    pins = {}
    for pin, hashes in lock_entries(folder):
        pins.setdefault(canonicalize_name(pin.name), []).append(pin)
        if not hashes:
            yield f"requirements.lock has no hash for {pin}"
    for name, requirement in wanted(folder, *EXTRAS).items():
        if name not in pins:
            yield f"requirements.lock has no pin for {requirement}; run: make lock"
        for pin in pins.get(name, []):
            (version,) = (clause.version for clause in pin.specifier)
            if version not in requirement.specifier:
                yield f"requirements.lock pins {pin}, pyproject.toml wants {requirement}; run: make lock"


def all_problems(folder):
    return [*environment_problems(folder), *installed_problems(folder), *lock_problems(folder)]


def test_the_three_files_and_the_installed_packages_agree():
    assert all_problems(ROOT) == []


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13"])
def test_every_supported_python_finds_a_pin_of_every_dependency(python):
    def names(requirements):
        return {
            canonicalize_name(requirement.name)
            for requirement in requirements
            if requirement.marker is None or requirement.marker.evaluate(surroundings)
        }

    surroundings = {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": "linux"}
    needed = names(wanted(ROOT, *EXTRAS).values())
    assert needed - names(pin for pin, _ in lock_entries(ROOT)) == set()


@pytest.mark.parametrize(
    ("file", "text", "replacement", "problem"),
    [
        ("environment.yml", "[course,dev]", "", "installs -e . and not"),
        ("environment.yml", "[course,dev]", "[course]", r"installs -e .\[course\] and not"),
        ("environment.yml", "dev]", "dev]\n      - left-pad>=1", "installs .*left-pad"),
        ("environment.yml", "python >=3.10,<3.14", "python >=3.9", "another Python"),
        ("pyproject.toml", '"pytest>=8', '"left-pad>=1",\n    "pytest>=8', "left-pad.* not installed"),
        ("pyproject.toml", "keras>=3.12,<4", "keras>=9", "keras.* is installed"),
        ("pyproject.toml", "numpy>=1.26,<3", "numpy>=1.26,<1.27", "numpy.* is installed"),
        ("pyproject.toml", "tqdm>=4.66,<5", "tqdm>=4.66,<4.67", "pins tqdm.* run: make lock"),
        ("requirements.lock", "tqdm==", "not-tqdm==", "has no pin for tqdm"),
        ("requirements.lock", "tqdm==", "left-pad==1.0\ntqdm==", "has no hash for left-pad"),
        ("requirements.lock", "tqdm==", "--index-url x\ntqdm==", "names a host"),
    ],
)
def test_a_doctored_copy_is_rejected(tmp_path, file, text, replacement, problem):
    for name in ("environment.yml", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    original = (tmp_path / file).read_text()
    assert original.count(text) >= 1
    (tmp_path / file).write_text(original.replace(text, replacement, 1))
    assert any(re.search(problem, found) for found in all_problems(tmp_path))
