"""A control group with a memory limit, as a container has one, and programs that run inside it."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from helpers.watching.cgroups import GroupV1, GroupV2

HERE = Path(__file__).parents[2]
ENTER = 'echo $$ >"$0/cgroup.procs" && exec "$@"'


class Enclosure:
    """A group with a limit; in version 2 programs run one group further down, so that there is room beside them."""

    def __init__(self, group, limit):
        self.group = group
        group.limit(limit)
        self.inside = group.folder / "inside" if isinstance(group, GroupV2) else group.folder
        self.inside.mkdir(exist_ok=True)

    def python(self, program, *arguments, **options):
        """Run a Python program in it, to its end; returns what it printed."""
        command = [sys.executable, "-c", program, *map(str, arguments)]
        ended = subprocess.run(
            ["sh", "-c", ENTER, self.inside, *command],
            cwd=HERE,
            capture_output=True,
            text=True,
            timeout=300,
            **options,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def remove(self):
        if self.inside != self.group.folder:
            self.inside.rmdir()
        self.group.remove()


@contextmanager
def limited_to(size):
    """An `Enclosure` for the length of a `with` block; the test is skipped where none can be made."""
    for kind in (GroupV2, GroupV1):
        try:
            group = kind()
        except OSError:
            continue
        enclosure = Enclosure(group, size)
        try:
            yield enclosure
        finally:
            enclosure.remove()
        return
    pytest.skip("this system lets us make no control group")
