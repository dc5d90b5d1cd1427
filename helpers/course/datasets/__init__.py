"""The data of the course under data/: every kind in one table, made from data that ships in installed packages.

A kind lives in a module of its own (`flight_tables`, `digit_images`, `digit_arrays`), with a `Kind` that knows
its names and a function `make(copies)` that makes one size, unless it is there, and returns its path. `MAKERS` lists
them.
"""

from helpers.course.datasets.digit_arrays import ARRAYS, arrays, make_arrays
from helpers.course.datasets.digit_images import DIGITS, digits, make_digits, read_images
from helpers.course.datasets.flight_tables import FLIGHTS, flights, make_flights
from helpers.course.datasets.kind import folder
from helpers.course.datasets.whole import short, total_size
from helpers.units import format_bytes

__all__ = ["arrays", "digits", "flights", "folder", "make", "names", "read_images"]

MAKERS = {
    FLIGHTS: make_flights,
    DIGITS: make_digits,
    ARRAYS: make_arrays,
}


def make(name):
    """Make one file or folder of data by its name, unless it is there, and return its path."""
    for kind, maker in MAKERS.items():
        if copies := kind.copies_in(name):
            return maker(copies)
    raise ValueError(f'"{name}" is no data file of the course; try one of: {", ".join(names())}')


def names():
    """The files and folders that the notebooks read.

    >>> names()
    ['flights.csv', 'flights-2.csv', 'flights-4.csv', 'flights-10.csv', 'digits', 'arrays']
    """
    return [name for kind in MAKERS for name in kind.names()]


def add_arguments(parser):
    """Describe `python -m helpers data` to argparse."""
    known = ", ".join(names())
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {known}; all if left out")


def command(arguments):
    """Run `python -m helpers data`."""
    for name in arguments.names or names():
        path = make(name)
        print(f"{short(path)}: {format_bytes(total_size(path))}", flush=True)
