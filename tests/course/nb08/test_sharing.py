"""Several live processes on one card: real allocations in each, and what one reserves is missing for the next."""

import os
import time

import pytest

from helpers.course.nb08 import charts, sharing
from helpers.course.nb08.sharing import share

MIB = 2**20


def hold(size, seconds=0.5):
    import tensorflow as tf

    tensor = tf.zeros(size // 4)
    time.sleep(seconds)
    return len(tensor.shape)


def small():
    return hold(20 * MIB)


def large():
    return hold(100 * MIB)


@pytest.fixture(scope="module")
def crash():
    return share("400 MB", {"first": lambda: hold(20 * MIB, 3), "second": large}, pause=0.1)


def test_the_second_process_dies_although_the_first_uses_a_fraction(crash):
    first, second = crash.tenants
    assert (first.outcome, second.outcome) == ("finished", "vram-oom")
    assert (first.exit_code, second.exit_code) == (0, 1)
    assert "OOM when allocating tensor" in second.error
    assert first.reserved + second.reserved == 400_000_000
    assert first.used == pytest.approx(20 * MIB, rel=0.01)
    assert second.verdict == "second ran out of memory: the card had 40 MB for it (ResourceExhaustedError)."


def test_the_table_of_holders_is_that_of_the_moment_in_which_one_came(crash):
    assert list(crash.holders("second")["name"]) == ["first", "second"]
    assert list(crash.holders("first")["name"]) == ["first"]


def test_the_chart_says_who_holds_what(crash):
    chart = charts.reserved_and_used(crash)
    assert "first reserved 360 MB and used 21 MB; second got 40 MB and dies" in chart.alt
    assert len(chart.png()) > 10_000


@pytest.mark.parametrize(
    "settings",
    [{"growth": True}, {"memory_limit": "120 MB"}, {"environment": {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}}],
)
def test_both_fit_with(settings, nothing_left):
    both = share("256 MB", {"first": small, "second": small}, pause=0.1, **settings)
    assert both.finished, both
    reserved = {tenant.reserved for tenant in both.tenants}
    if "memory_limit" in settings:
        assert reserved == {120_000_000}
    else:  # regions of 2 and 32 MiB
        assert reserved == {34 * MIB}


def test_who_grows_into_a_full_card_dies():
    both = share("256 MB", {"first": lambda: hold(120 * MIB, 2), "second": large}, growth=True, pause=0.1)
    assert [tenant.outcome for tenant in both.tenants].count("vram-oom") == 1


def test_a_share_comes_back_with_the_end_of_its_process():
    one_after_the_other = share("256 MB", {"first": small, "second": large}, after={"second": "first"})
    assert one_after_the_other.finished
    assert one_after_the_other["second"].limit == one_after_the_other["first"].limit


def test_a_job_may_say_when_the_next_one_comes():
    def host():
        from helpers.course.nb08.tenants import guest_is_gone, holding, let_in

        before = guest_is_gone()
        let_in()
        return holding().reserved, before, guest_is_gone()

    found = share("256 MB", {"host": host, "guest": small}, memory_limit="100 MB", pause=None)
    assert found["host"].value == (100_000_000, False, True)
    assert found["host"].began < found["guest"].began < found["guest"].ended < found["host"].ended


def test_a_process_that_dies_without_a_word_is_seen():
    found = share("256 MB", {"first": lambda: os._exit(3)})
    assert (found["first"].outcome, found["first"].exit_code) == ("error", 3)
    assert str(found) == "first failed (exit code 3)."


@pytest.mark.parametrize(
    ("arguments", "settings", "words"),
    [
        (("256", {"first": small}), {}, "has no unit"),
        (("256 MB", []), {}, "share needs jobs by name"),
        (("256 MB", {"first": 5}), {}, "'first' is no function"),
        (("256 MB", {"first": small}), {"memory_limit": {"third": "1 GB"}}, "there is no job 'third'"),
        (("256 MB", {"first": small}), {"memory_limit": "1"}, 'memory_limit of first="1" has no unit'),
        (
            ("256 MB", {"first": small}),
            {"memory_limit": "100 MB", "growth": True},
            "a limit switches growth off",
        ),
        (("256 MB", {"first": small}), {"environment": {"A": True}}, 'write {"A": "true"}'),
        (("256 MB", {"first": small}), {"after": {"first": "nobody"}}, "there is no job 'nobody'"),
    ],
)
def test_what_cannot_be_run_is_refused_with_a_sentence(arguments, settings, words):
    with pytest.raises((TypeError, ValueError)) as refused:
        share(*arguments, **settings)
    assert words in str(refused.value)


def test_a_crash_of_the_allocator_is_out_of_memory_too():
    facts = {"exit_code": -11, "log": "Allocator (x) ran out of memory trying to allocate 1.0MiB"}
    assert sharing._outcome(facts) == "vram-oom"
    assert sharing._outcome({"exit_code": -11, "log": ""}) == "error"


def test_on_a_gpu_tensorflow_says_what_a_process_got():
    line = (
        "gpu_device.cc:2019] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 137 MB memory:"
    )
    assert sharing._created_with(line) == 137 * MIB
    assert sharing._created_with("Epoch 1") is None
