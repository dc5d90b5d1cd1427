"""An allocation that is refused by somebody else's limit is not said to be refused by the budget."""

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

from helpers import run

HERE = Path(__file__).parents[2]
GB = 10**9
PROGRAM = """
import sys
import numpy
from helpers import run
print(run(numpy.empty, 9 * 10**9, "uint8", ram="3 GB", on_limit=sys.argv[1]).verdict)
"""


def verdict_under(limit, on_limit="kill"):
    command = ["sh", "-c", f'{limit}; exec "$@"', "sh", sys.executable, "-c", PROGRAM, on_limit]
    ended = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()[-1]


def test_a_limit_on_addresses_is_named():
    assert verdict_under("ulimit -v 8000000") == (
        "Out of memory: an allocation was refused by the limit around it (ulimit -v, 8.19 GB) "
        "before its RAM budget of 3.00 GB was reached (MemoryError)."
    )


def test_a_limit_on_data_that_is_below_the_budget_is_kept_and_named():
    def set_before(soft, hard):
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
        return np.empty(9 * GB, np.uint8)

    trial = run(set_before, 8 * GB, resource.RLIM_INFINITY, ram="3 GB")
    assert trial.verdict == (
        "Out of memory: an allocation was refused by the limit around it (ulimit -d, 8.00 GB) "
        "before its RAM budget of 3.00 GB was reached (MemoryError)."
    )


def test_the_budget_is_named_where_it_was_the_nearer_one():
    assert verdict_under("ulimit -v 80000000", "refuse") == (
        "Out of memory: an allocation was refused on its RAM budget of 3.00 GB (MemoryError)."
    )


def refuse_by_oneself():
    raise MemoryError


def test_a_refusal_by_nobody_known_is_not_the_budgets():
    assert run(refuse_by_oneself, ram="200 MB").verdict == (
        "Out of memory: an allocation was refused, and not on its RAM budget of 200 MB (MemoryError)."
    )
    assert run(refuse_by_oneself).verdict == "Out of memory: an allocation was refused (MemoryError)."
