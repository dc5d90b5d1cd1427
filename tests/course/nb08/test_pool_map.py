"""The pool of TensorFlow's allocator: what it has reserved, and its map in the log of a failed allocation."""

import pytest

from helpers import run
from helpers.course.nb08 import charts
from helpers.course.nb08.pool_map import read_pool_map

MIB = 2**20
STAMP = "I0000 00:00:1794811581.805014    8026 bfc_allocator.cc:1105] "
FAILURE = (
    "W0000 00:00:1794811581.80    8026 bfc_allocator.cc:502] Allocator (bfc_cpu_allocator_for_gpu) ran out of memory "
    "trying to allocate 48.00MiB (rounded to 50331648)requested by op Fill\n"
)
MAP = [
    "Next region of size 67108864",
    "InUse at 7f7bf4efb040 of size 30199040 next 8",
    "Free  at 7f7bf562e440 of size 36909824 next 18446744073709551615",
    "Next region of size 8388608",
    "InUse at 7f7bf5efc040 of size 3774976 next 6",
    "Free  at 7f7bf6295a40 of size 4613632 next 18446744073709551615",
    "Total size in pool: 72.00MiB memory_limit_: 100.00MiB available size: 28.00MiB",
]
LOG = FAILURE + "\n".join(STAMP + line for line in MAP)


def test_a_map_is_read_out_of_a_log():
    found = read_pool_map("Epoch 1\n" + LOG)
    assert (found.request, found.limit, found.reserved) == (48 * MIB, 100 * MIB, 72 * MIB)
    assert found.used == 30199040 + 3774976
    assert found.free == 36909824 + 4613632
    assert (found.largest_free, found.not_reserved) == (36909824, 28 * MIB)


def test_the_last_failure_counts():
    assert read_pool_map(LOG.replace("50331648", "1") + "\n" + LOG).request == 48 * MIB


@pytest.mark.parametrize(
    ("log", "words"), [("", "no failed allocation"), (FAILURE, "TF_CPP_MIN_LOG_LEVEL=0")]
)
def test_a_log_without_a_map_says_what_to_do(log, words):
    with pytest.raises(ValueError, match=words):
        read_pool_map(log)


def test_the_chart_of_a_map_names_the_request_and_the_largest_piece():
    chart = charts.draw_pool(read_pool_map(LOG))
    assert "42 MB are free in the pool, and 50 MB find no place" in chart.alt
    assert "The largest free piece has 37 MB" in chart.alt


def reserve(*sizes):
    import tensorflow as tf

    from helpers.course.nb08 import allocator_stats

    seen = []
    for size in sizes:
        tensor = tf.zeros(size // 4)
        seen.append(allocator_stats.reserved())
        del tensor
    return seen


def test_a_growing_pool_is_read_region_by_region():
    trial = run(reserve, 4 * MIB, 30 * MIB, 60 * MIB, 10 * MIB, vram="200 MB", growth=True)
    assert trial.value == [6 * MIB, 38 * MIB, 102 * MIB, 102 * MIB]  # regions of 2, 4, 32 and 64 MiB


def test_a_pool_that_reserves_at_once_stays_as_it_is():
    first, second = run(reserve, 4 * MIB, 60 * MIB, vram="200 MB").value
    assert first == second == pytest.approx(190 * MIB, rel=0.1)


def test_without_a_virtual_gpu_there_is_no_pool_to_read():
    assert run(reserve, MIB).value == [None]
