"""Inside a job everything is as in a process that was started afresh: random numbers, descriptors, its children."""

import os
from pathlib import Path

import numpy as np
import pytest

from helpers import phase, run


def draw():
    return np.random.rand(4).tolist()


def test_jobs_of_one_worker_draw_different_random_numbers():
    assert run(draw).value != run(draw).value


def close_and_reopen(folder, first, last):
    os.closerange(first, last)
    files = [Path(folder, str(number)).open("wb") for number in range(40)]  # noqa: SIM115
    with phase("after"):
        blocks = [np.ones(5_000_000, np.uint8) for _ in range(10)]
    for file in files:
        file.close()
    return len(blocks), sum(Path(folder, str(number)).stat().st_size for number in range(40))


def test_a_job_that_closes_what_it_did_not_open_still_answers_and_its_files_are_its_own(tmp_path):
    trial = run(close_and_reopen, tmp_path, 3, 100, ram="400 MB")
    assert (trial.outcome, trial.value) == ("finished", (10, 0))
    assert [stretch.name for stretch in trial.phases] == ["after"]


def take_the_place_of_the_channel(folder):
    from helpers.jobs import channel

    file = Path(folder, "own").open("wb", buffering=0)  # noqa: SIM115
    os.dup2(file.fileno(), channel._channel)
    with phase("unheard"):
        pass
    return Path(folder, "own").stat().st_size or os._exit(5)


def test_a_file_in_the_place_of_the_channel_gets_no_messages(tmp_path):
    trial = run(take_the_place_of_the_channel, tmp_path)
    assert trial.exit_code == 5
    assert Path(tmp_path, "own").read_bytes() == b""


def tell_from_children():
    """Children that tell long things while the parent sends a result that does not fit into the pipe at once."""
    for _ in range(3):
        if os.fork() == 0:
            while True:
                with phase("x" * 10_000):
                    pass
    with phase("parent"):
        pass
    return b"x" * 20_000_000


def test_children_that_use_phases_do_not_garble_the_result():
    trial = run(tell_from_children, timeout=60)
    assert trial.outcome == "finished", trial.verdict
    assert len(trial.value) == 20_000_000
    assert "parent" in {stretch.name for stretch in trial.phases}


def fork_and_return():
    pid = os.fork()
    if pid == 0:
        return "child"
    os.waitpid(pid, 0)
    return "parent"


def test_a_forked_child_that_returns_from_the_function_is_not_the_job():
    trial = run(fork_and_return)
    assert (trial.outcome, trial.value) == ("finished", "parent")


def fail():
    raise KeyError("the reason")


def test_a_failure_is_told_with_its_reason():
    assert run(fail).verdict == "Failed: KeyError: 'the reason'"


def count_in_tensors():
    import tensorflow as tf

    with phase("load") as load:
        load.items = tf.constant(7)


def use_tensorflow():
    import tensorflow as tf

    return int(tf.reduce_sum(tf.range(4)))


def test_a_count_that_is_a_tensor_leaves_the_warm_process_as_it_was():
    pytest.importorskip("tensorflow")
    trial = run(count_in_tensors, timeout=100)
    assert trial.phases[0].items == 7
    assert run(use_tensorflow, timeout=100).value == 6
