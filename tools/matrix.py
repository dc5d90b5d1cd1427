"""Runs the tests on every Python that is installed and in other surroundings; keeps the results in docs/matrix.md.

`matrix.py` runs every row, `matrix.py 3.12 spawn` these; the others keep what they have, with its date. A row that this
machine cannot run says so and is left as it was.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from matrix_page import COLUMNS, OF_A_RUN, Page

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
NOTEBOOKS = ("00", "02", "07")
UNIT_TESTS = ("tests", "helpers", "--doctest-modules")
JOB_TESTS = ("tests/watching", "tests/jobs", "tests/faults")
"""What depends on the surroundings: who runs it, how jobs start, how busy the machine is."""
V2_TESTS = (
    "tests/watching/test_limits.py",
    "tests/watching/test_shared_memory.py",
    "tests/faults/test_limit_around.py",
    "tests/faults/test_shared_files_of_others.py",
)
NOBODY = 65534
STARTS_ITSELF = "import subprocess, sys; subprocess.run([sys.executable, '-c', ''], check=True)"
MEMORY_TESTS = (
    "tests/watching",
    "tests/faults/test_line_races.py",
    "tests/jobs/test_trial.py",
    "tests/jobs/test_containment.py",
    "tests/jobs/test_device.py",
)
"""What reads memory: these were the first to be red on a busy machine."""
COUNTED = re.compile(r"(\d+) (passed|failed|skipped|error)s?\b")


class CannotRun(Exception):
    """Why a row cannot be run on this machine."""


@dataclass
class Row:
    """One line of the table: how to make its Python, what to run with it, and what to change around it."""

    name: str
    what: str
    python: object
    commands: tuple = ()
    environment: dict = field(default_factory=dict)
    surroundings: object = None
    """A context manager that gives (what to put before each command, the folder to run in, more environment)."""
    busy: tuple = ()
    """Of a row that repeats: for each run whether every core is busy meanwhile."""

    def run(self, keep=lambda cells: None):
        """Run it; returns the cells of its line. One that repeats gives those of each run to `keep` as it ends."""
        python, counts, began = self.python(), Counter(), time.monotonic()
        for number, is_busy in enumerate(self.busy, 1):
            begins = time.monotonic()
            moment = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
            print(f"-- run {number} of {len(self.busy)}", flush=True)
            of_run = self._counts(python, on_busy_cores if is_busy else None)
            counts += of_run
            first = [self.name, str(number), "busy" if is_busy else "quiet", moment]
            keep(dict(zip(OF_A_RUN, [*first, *cells_of(of_run, begins)], strict=True)))
        if not self.busy:
            counts = self._counts(python, self.surroundings)
        date = datetime.now(timezone.utc).strftime("%Y-%m-%d")
        first = [self.name, self.what, version_of(python), date]
        return dict(zip(COLUMNS, [*first, *cells_of(counts, began)], strict=True))

    def _counts(self, python, surroundings):
        counts = Counter()
        with ExitStack() as stack:
            before, folder, more = stack.enter_context(surroundings()) if surroundings else ((), ROOT, {})
            environment = {**os.environ, "PYTHONPATH": str(folder), **self.environment, **more}
            for command in self.commands:
                counts += passed_and_failed(
                    [*before, python, "-m", "pytest", "-q", *command], folder, environment
                )
        return counts


def cells_of(counts, began):
    """The last four cells of a line."""
    failed = counts["failed"] + counts["error"]
    return [
        str(counts["passed"]),
        str(failed),
        str(counts["skipped"]),
        f"{time.monotonic() - began:.0f}",
    ]


def passed_and_failed(command, folder, environment):
    """Run pytest, show what it prints, and count what its last line says. One that could not run counts as failed."""
    print("$", shlex.join(map(str, command)), flush=True)
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    last = ""
    for line in process.stdout:
        print(line, end="", flush=True)
        last = line if COUNTED.search(line) else last
    counts = Counter({word: int(number) for number, word in COUNTED.findall(last)})
    if process.wait() and not counts["failed"] + counts["error"]:
        counts["failed"] += 1
    return counts


def version_of(python):
    """The version of an interpreter, or nothing if it is not one that runs: a shim may be there and refuse."""
    program = "import platform; print(platform.python_version())"
    try:
        found = subprocess.run([python, "-Sc", program], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""


def interpreter(version):
    """An installed Python of this version: on the PATH, or one of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [
        shutil.which(f"python{version}"),
        *sorted(pyenv.glob(f"versions/{version}.*/bin/python"), reverse=True),
    ]
    for candidate in filter(None, candidates):
        if version_of(candidate).startswith(f"{version}."):
            return candidate
    raise CannotRun(f"no Python {version} is installed")


def environment_of(version):
    """An environment of its own for this version, made as .venv is; `interpreter` of it."""
    folder = ROOT / ".matrix" / version
    stamp = folder / f"installed-{stamp_of(folder)}"
    if not stamp.exists():
        folder.parent.mkdir(exist_ok=True)
        subprocess.run(
            ["sh", "tools/make_venv.sh", folder, stamp],
            cwd=ROOT,
            env={**os.environ, "PYTHON": str(interpreter(version))},
            check=True,
        )
    return folder / "bin" / "python"


def stamp_of(folder):
    """What an environment was made from and where it stands, as a number."""
    import zlib

    texts = [
        str(folder).encode(),
        *((ROOT / name).read_bytes() for name in ("requirements.lock", "pyproject.toml")),
    ]
    return zlib.crc32(b"".join(texts))


def own_python():
    return Path(sys.executable)


def as_root():
    if os.getuid():
        raise CannotRun("it needs root")
    return own_python()


@contextmanager
def as_nobody():
    """A user without rights, in a copy of the project that is theirs."""
    if os.getuid() or not shutil.which("setpriv"):
        raise CannotRun("it needs root and setpriv, to become somebody else")
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    with tempfile.TemporaryDirectory(prefix="matrix-") as folder:
        project, temporary = Path(folder, "project"), Path(folder, "tmp")
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (project / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, project / name)
        temporary.mkdir()
        for path in (Path(folder), *Path(folder).rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        yield become_nobody(), project, {"HOME": folder, "TMPDIR": str(temporary), "USER": "nobody"}


def become_nobody():
    """The words before a command that make it another user's. Where this Python lies in a private folder, that user may
    read every file, and write none."""
    before = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    only = "-all,+dac_read_search"
    reader = [f"--inh-caps={only}", f"--ambient-caps={only}", f"--bounding-set={only}"]
    for words in ([*before, "--bounding-set=-all"], [*before, *reader]):
        if subprocess.run([*words, sys.executable, "-c", STARTS_ITSELF], capture_output=True).returncode == 0:
            return words
    raise CannotRun(f"another user cannot run {sys.executable}")


@contextmanager
def on_busy_cores():
    """Something else runs on each core."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield (), ROOT, {}
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextmanager
def in_machine(command):
    """A machine that runs a script with `command SCRIPT` and has this machine's files: cgroup v2 elsewhere."""
    if not command:
        raise CannotRun("name a command that runs a script under cgroup v2: make matrix VM=...")
    with tempfile.TemporaryDirectory(prefix="matrix-") as folder:
        script = Path(folder, "script.sh")
        script.write_text(
            f'cd {shlex.quote(str(ROOT))} && export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$PWD"\n'
            f'"$(dirname {shlex.quote(sys.executable)})/python" tests/support/limiter_probe.py choices\n'
            f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider {shlex.join(V2_TESTS)}\n"
        )
        script.chmod(0o755)
        # the words of the row's own command go to a shell that does not need them
        yield ["sh", "-c", f"exec {command} {shlex.quote(str(script))}", "sh"], ROOT, {}


def rows(machine_command):
    """Every row, in the order of the table."""
    notebooks = tuple(
        str(path.relative_to(ROOT))
        for number in NOTEBOOKS
        for path in ROOT.glob(f"notebooks/{number}_*.ipynb")
    )
    everything = (UNIT_TESTS, ("--nbval", *notebooks))
    jobs = (JOB_TESTS,)
    of_pythons = [
        Row(
            version,
            f"unit tests, notebooks {', '.join(NOTEBOOKS)}",
            lambda version=version: environment_of(version),
            everything,
        )
        for version in PYTHONS
    ]
    return [
        *of_pythons,
        Row("root", "tests of watching and jobs, as root", as_root, jobs),
        Row(
            "user",
            "the same as a user without rights or control groups",
            own_python,
            jobs,
            surroundings=as_nobody,
        ),
        Row("spawn", "the same, each job in a fresh process", own_python, jobs, {"OOM_START": "spawn"}),
        Row("busy", "the same, with every core busy", own_python, jobs, surroundings=on_busy_cores),
        Row(
            "cgroup v2",
            "limits and faults under cgroup v2",
            own_python,
            ((),),
            surroundings=lambda: in_machine(machine_command),
        ),
        Row(
            "unit tests",
            "all unit tests, ten times in a row",
            own_python,
            (UNIT_TESTS,),
            busy=(False,) * 5 + (True,) * 5,
        ),
        Row(
            "memory",
            "the tests that read memory, thirty times in a row",
            own_python,
            (MEMORY_TESTS,),
            busy=(False,) * 15 + (True,) * 15,
        ),
        Row(
            "notebooks",
            "all notebooks, three times in a row",
            own_python,
            (("--nbval", "notebooks"),),
            busy=(False,) * 3,
        ),
    ]


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="these rows and no others")
    parser.add_argument("--vm", default="", help="a command that runs a script under cgroup v2")
    options = parser.parse_args(arguments)
    every = rows(options.vm)
    names = [row.name for row in every]
    wanted = [row for row in every if not options.rows or row.name in options.rows]
    if unknown := set(options.rows) - set(names):
        parser.error(f"there is no row {', '.join(sorted(unknown))}; the rows are: {', '.join(names)}")
    failed, page = False, Page(names)
    for row in wanted:
        print(f"\n== {row.name} ==", flush=True)
        try:
            result = row.run(page.keep_run)
        except CannotRun as reason:
            print(f"not run: {reason}")
            continue
        page.keep(result)
        failed = failed or result["failed"] != "0"
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
