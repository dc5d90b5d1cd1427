"""docs/matrix.md: a table of what was run where, and one of each run of the rows that repeat."""

from pathlib import Path

TABLE = Path(__file__).resolve().parents[1] / "docs" / "matrix.md"
COLUMNS = ("row", "what runs", "Python", "date", "passed", "failed", "skipped", "seconds")
OF_A_RUN = ("row", "run", "cores", "began (UTC)", "passed", "failed", "skipped", "seconds")
HEAD = """# What was run where

Written by `make matrix` (`tools/matrix.py`); each row has the date of its own run. `make matrix ROW=3.12` runs one row.

"""
HEAD_OF_RUNS = """
## Several runs in a row

Each run of the rows that repeat, in their order. Busy: a loop that counts on each core, beside the tests.

"""


def read_page(text):
    """{row: its cells}, and the cells of each run of those that repeat, of a page that was written before."""
    before, _, after = text.partition(HEAD_OF_RUNS)
    return {cells["row"]: cells for cells in read_table(before, COLUMNS)}, read_table(after, OF_A_RUN)


def read_table(text, columns):
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [dict(zip(columns, map(str.strip, line), strict=True)) for line in lines[2:]]


def write_page(results, order, runs=()):
    """The page with these results, in this order."""
    page = HEAD + table_of([results[name] for name in order if name in results], COLUMNS)
    runs = [cells for name in order for cells in runs if cells["row"] == name]
    return page + (HEAD_OF_RUNS + table_of(runs, OF_A_RUN) if runs else "")


def table_of(rows, columns):
    lines = [columns, ["---"] * len(columns), *([cells[column] for column in columns] for cells in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


class Page:
    """docs/matrix.md: what is not run again stays."""

    def __init__(self, order):
        self.order = order

    def keep(self, result):
        results, runs = self._read()
        self._write(results | {result["row"]: result}, runs)

    def keep_run(self, cells):
        """The first one of a row replaces those of earlier days."""
        results, runs = self._read()
        earlier = [] if cells["run"] == "1" else [run for run in runs if run["row"] == cells["row"]]
        others = [run for run in runs if run["row"] != cells["row"]]
        self._write(results, [*others, *earlier, cells])

    def _read(self):
        return read_page(TABLE.read_text() if TABLE.exists() else "")

    def _write(self, results, runs):
        TABLE.write_text(write_page(results, self.order, runs))
