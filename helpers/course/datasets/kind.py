"""What a kind of data is: the names of its sizes, and where they lie under data/."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from helpers import machine
from helpers.course.datasets.whole import short


def folder():
    """The folder of the data: `OOM_DATA`, or data/ beside the package."""
    return Path(os.environ.get("OOM_DATA") or machine.PROJECT / "data")


@dataclass(frozen=True)
class Kind:
    """A file or a folder that comes in sizes; the notebooks read the sizes in `copies`.

    >>> Kind("flights", ".csv", copies=(1, 4)).names()
    ['flights.csv', 'flights-4.csv']
    """

    stem: str
    ending: str = ""
    copies: tuple = (1,)

    def name(self, copies=1):
        """The name of one size."""
        if isinstance(copies, bool) or not isinstance(copies, int) or copies < 1:
            raise ValueError(
                f"copies={copies!r} must be a whole number from 1 up, such as {self.stem}(copies=10)"
            )
        return self.stem + ("" if copies == 1 else f"-{copies}") + self.ending

    def names(self):
        """The names of the sizes that the notebooks read."""
        return [self.name(copies) for copies in self.copies]

    def copies_in(self, name):
        """The size that a name asks for, or None if it is no name of this kind."""
        match = re.fullmatch(rf"{re.escape(self.stem)}(?:-([1-9][0-9]*))?{re.escape(self.ending)}", name)
        return int(match[1] or 1) if match else None

    def path(self, copies=1):
        """Where one size lies, or will lie."""
        return folder() / self.name(copies)

    def find(self, copies=1):
        """The path of one size that has been made."""
        path = self.path(copies)
        if not path.exists():
            request = "" if copies in self.copies else f" {path.name}"
            raise FileNotFoundError(
                f"{short(path)} is missing; make it with: python -m helpers data{request}"
            )
        return path
