"""What streaming costs and what it saves: samples per second beside RAM, and peaks as the data grows."""

import itertools
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks import _streaming_jobs as jobs
from benchmarks import ratios, spread, table, take_turns
from helpers import run
from helpers.course.datasets import digits, flights
from helpers.units import format_bytes

SHARES = (8, 4, 2, 1)
FROM_RAM = "RAM"


@dataclass(frozen=True)
class Effort:
    """How much of the data is used, and how often each job runs."""

    rows: int = 336_776
    images: int = 2_400
    epochs: int = 3
    rounds: int = 3


QUICK = Effort(rows=16_000, images=64, epochs=2, rounds=1)


@dataclass(frozen=True)
class Feeding:
    """One kind of data, and the jobs that train on one eighth, a quarter, half or all of it."""

    name: str
    ways: dict
    arguments: object

    def run(self, way, epochs, share=1):
        trial = run(self.ways[way], *self.arguments(share), epochs, label=f"{self.name}, {way}")
        if trial.outcome != "finished":
            raise RuntimeError(f"{trial.label} did not finish: {trial.verdict}")
        return trial


def report(quick=False):
    """The section of RESULTS.md: the speed, then the peaks."""
    effort = QUICK if quick else Effort()
    rounds = effort.rounds
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    run(int, label="warm up")
    with tempfile.TemporaryDirectory() as folder:
        kinds = [csv_file(Path(folder), effort), image_folder(effort)]
        speeds = [row for kind in kinds for row in speed_rows(kind, effort)]
        peaks = [row for kind in kinds for row in peak_rows(kind)]
    return f"""## Streaming against RAM

The same model, in batches of the same size, fed from an array in RAM or from the disk. The jobs are those of notebooks
02 and 03 in small.

### Speed

Samples per second in training, after the first epoch; loading into RAM is not counted. The ways take turns in
{rounds} rounds, and a ratio is to RAM in the same round. The files are in the page cache. The models are small: a
larger one hides more of the reading.

{table(["data", "fed from", "samples per second", "of RAM's speed"], speeds, texts=2)}

### Peak RAM as the data grows

One epoch on one eighth of the data, a quarter, half and all of it. Each peak is one run's.

{table(["data", "fed from", "1x", "2x", "4x", "8x", "8x over 1x"], peaks, texts=2)}
"""


def csv_file(folder, effort):
    """The flights, cut to their first rows; the types of the columns are those of the whole year."""
    types = jobs.column_types(flights())
    files = {share: first_rows(flights(), effort.rows // share, folder) for share in SHARES}
    ways = {
        FROM_RAM: jobs.csv_from_ram,
        "`PyDataset`": jobs.csv_from_py_dataset,
        "`tf.data`, lines": jobs.csv_from_lines,
    }

    def arguments(share):
        return files[share], types, effort.rows // share

    return Feeding(f"CSV, {effort.rows:,} rows", ways, arguments)


def first_rows(path, count, folder):
    """A file with the header and the first rows of another one."""
    shortened = folder / f"{count}.csv"
    with path.open("rb") as source, shortened.open("wb") as target:
        target.writelines(itertools.islice(source, count + 1))
    return shortened


def image_folder(effort):
    """The digits, or as many of them as asked for, from all over the folder."""
    found = sorted((digits() / "train").glob("*/*.jpg"))
    paths = found[:: max(1, len(found) // effort.images)][: effort.images]
    ways = {
        FROM_RAM: jobs.images_from_ram,
        "`PyDataset`": jobs.images_from_py_dataset,
        "`tf.data`, names of files": jobs.images_from_names,
    }

    def arguments(share):
        return (paths[::share],)

    return Feeding(f"JPEGs, {len(paths):,} images", ways, arguments)


def speed_rows(kind, effort):
    """One row for each way of feeding: samples per second, and the ratio to RAM."""
    variants = {way: lambda way=way: kind.run(way, effort.epochs).value for way in kind.ways}
    speeds = take_turns(kind.name, variants, effort.rounds)
    for way, found in speeds.items():
        ratio = ratios(found, speeds[FROM_RAM])
        yield kind.name, way, spread(found, "{:,.0f}"), "1" if way == FROM_RAM else spread(ratio, "{:.2f}")


def peak_rows(kind):
    """One row for each way of feeding: the peaks, and how much the last is over the first."""
    for way in kind.ways:
        peaks = [kind.run(way, 1, share).peak_ram for share in SHARES]
        yield kind.name, way, *(format_bytes(peak) for peak in peaks), f"{peaks[-1] / peaks[0]:.1f}x"
