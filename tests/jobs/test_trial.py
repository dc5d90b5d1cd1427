"""A trial says what a job used, on which line, how it ended; and a call that cannot work says why."""

import gc
import json
import linecache
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from helpers import phase, run
from helpers.jobs import heap

MB = 1_000_000
HERE = Path(__file__).parents[2]


def hold(size, seconds=0.005):
    block = np.ones(size, np.uint8)
    time.sleep(seconds)
    del block


def kernel_figure(size):
    """What the kernel says itself: the highest resident size minus the one before, in the process."""
    import resource

    before = psutil.Process().memory_info().rss
    hold(size)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before


@pytest.mark.parametrize("limiter", [None, "watchdog"])
@pytest.mark.parametrize("size", [20 * MB, 100 * MB, 400 * MB])
def test_the_peak_of_a_short_spike_is_the_kernels_own_figure(size, limiter):
    trial = run(kernel_figure, size, ram="1 GB", limiter=limiter)
    assert trial.peak_ram == pytest.approx(trial.value, rel=0.02, abs=2 * MB)
    assert trial.peak_ram == pytest.approx(size, rel=0.02, abs=4 * MB)


def read_a_file(path):
    return len(Path(path).read_bytes())


def map_a_file(path):
    return int(np.load(path, mmap_mode="r").sum())


def test_files_that_are_mapped_or_cached_are_not_memory_of_the_job(tmp_path):
    path = tmp_path / "ones.npy"
    np.save(path, np.ones(200 * MB, np.uint8))
    trial = run(map_a_file, path, ram="100 MB")
    assert (trial.outcome, trial.value) == ("finished", 200 * MB)
    assert trial.peak_ram < 5 * MB
    assert run(read_a_file, path, ram="100 MB").outcome == "killed"


def map_a_little(path):
    mapped = sys.mapped = np.load(path, mmap_mode="r")
    return int(mapped[::4_096].sum())


def test_files_that_a_job_mapped_just_before_its_end_are_not_its_memory(tmp_path):
    path = tmp_path / "ones.npy"
    np.save(path, np.ones(40 * MB, np.uint8))
    for _ in range(5):  # each in a few milliseconds, mostly between two readings
        assert run(map_a_little, path, ram="100 MB").peak_ram < 5 * MB


def test_what_an_earlier_job_left_in_the_warm_process_is_not_taken_off_the_next_ones_peak():
    def large_result():  # nested functions travel whole: nothing is imported that would collect garbage early
        return np.ones(20 * MB, np.uint8)

    def collect_and_hold():
        gc.collect()
        heap.give_back()
        return np.ones(30 * MB, np.uint8).nbytes

    for _ in range(3):
        run(large_result, ram="200 MB")
        trial = run(collect_and_hold, ram="200 MB")
        assert trial.peak_ram == pytest.approx(30 * MB, rel=0.02, abs=4 * MB)


def test_a_short_job_is_read_every_ten_milliseconds():
    trial = run(time.sleep, 1)
    gaps = trial.samples["seconds"].diff().dropna()
    assert gaps.median() < 0.010
    assert list(trial.samples.columns) == ["seconds", "ram", "vram", "waiting"]


@pytest.mark.parametrize("limiter", [None, "watchdog"])
def test_a_budget_of_a_gigabyte_is_kept_while_a_job_fills_memory_at_full_speed(limiter):
    trial = run(hold, 4_000 * MB, ram="1 GB", limiter=limiter)
    assert trial.outcome == "killed"
    assert trial.peak_ram < 1.05 * trial.ram_budget


def two_lines():
    first = np.ones(300 * MB, np.uint8)
    second = np.ones(600 * MB, np.uint8)
    return int(first[0] + second[0])


def bytes_at(trial, text):
    return sum(line.bytes for line in trial.lines if text in line.source)


def test_each_line_gets_the_bytes_that_it_took():
    trial = run(two_lines, ram="1.2 GB")
    assert bytes_at(trial, "first = ") == pytest.approx(300 * MB, rel=0.1)
    assert bytes_at(trial, "second = ") == pytest.approx(600 * MB, rel=0.1)
    assert sum(line.bytes for line in trial.lines) == pytest.approx(trial.peak_ram, rel=0.05)
    largest = trial.lines[0]
    assert linecache.getline(largest.file, largest.line).strip() == largest.source
    assert largest.where == f"test_trial.py:{largest.line}"


def keep_some_then_die():
    kept = np.ones(600 * MB, np.uint8)
    return kept, b"x" * (2_000 * MB)  # one call of C code, which never lets another thread run


def test_the_lines_survive_the_kill_and_see_into_c_code():
    trial = run(keep_some_then_die, ram="1.2 GB")
    assert trial.outcome == "killed"
    assert bytes_at(trial, "kept = ") == pytest.approx(600 * MB, rel=0.1)
    assert bytes_at(trial, "return kept") == pytest.approx(600 * MB, rel=0.1)


def give_back_and_take_more():
    first = np.ones(300 * MB, np.uint8)
    time.sleep(0.1)
    del first
    time.sleep(0.1)
    second = np.ones(500 * MB, np.uint8)
    time.sleep(0.1)
    return int(second[0])


def test_memory_that_was_given_back_is_not_held_against_its_line():
    trial = run(give_back_and_take_more, ram="800 MB")
    assert bytes_at(trial, "first = ") < 50 * MB
    assert bytes_at(trial, "second = ") == pytest.approx(500 * MB, rel=0.1)


def take_less_after_a_peak():
    first = np.ones(800 * MB, np.uint8)
    del first
    second = np.ones(400 * MB, np.uint8)
    third = np.ones(500 * MB, np.uint8)
    return int(second[0] + third[0])


def test_lines_below_an_earlier_peak_are_told_apart():
    trial = run(take_less_after_a_peak, ram="1.2 GB")
    assert bytes_at(trial, "second = ") == pytest.approx(400 * MB, rel=0.1)
    assert bytes_at(trial, "third = ") == pytest.approx(500 * MB, rel=0.1)


def call_often(size, times=200):
    """The biggest array is local to a function that ends; nobody else may keep it, not even who asks for the line."""

    def use():
        array = np.ones(size, np.uint8)
        return int(array[0])

    return sum(use() for _ in range(times))


def test_who_asks_for_the_line_keeps_nothing_of_what_the_job_gave_back():
    trial = run(call_often, 20 * MB, ram="300 MB")
    assert trial.value == 200
    assert trial.peak_ram < 30 * MB


def fill_in_a_thread():
    import threading

    kept = []
    thread = threading.Thread(target=lambda: kept.extend(np.ones(MB, np.uint8) for _ in range(200)))
    thread.start()
    thread.join()
    return len(kept)


def test_the_line_of_another_thread_is_found():
    trial = run(fill_in_a_thread, ram="600 MB")
    assert bytes_at(trial, "kept.extend") == pytest.approx(200 * MB, rel=0.15)


def refuse_numpy():
    return np.ones(800 * MB, np.uint8).sum()


def refuse_pandas():
    import pandas

    return pandas.Series(np.arange(10 * MB)).repeat(50).sum()


def throw_bad_alloc():
    import ctypes

    ctypes.CDLL("libstdc++.so.6")["_ZSt17__throw_bad_allocv"]()


def test_a_refused_allocation_is_a_memory_error():
    for job in (refuse_numpy, refuse_pandas):
        trial = run(job, ram="200 MB", on_limit="refuse")
        assert trial.outcome == "memory-error"
        assert trial.limiter == "rlimit"
        assert trial.out_of_memory
        assert "MemoryError" in trial.error


def test_bad_alloc_in_c_code_is_a_memory_error():
    trial = run(throw_bad_alloc, ram="200 MB", on_limit="refuse")
    assert (trial.outcome, trial.exit_code) == ("memory-error", 134)
    assert "std::bad_alloc" in trial.verdict


def work_in_phases():
    with phase("load"):
        time.sleep(0.05)
    with phase("train", items=100):
        time.sleep(0.1)
    print("done")
    return {"rows": 100}


def test_a_finished_job_has_a_value_a_log_phases_and_a_throughput(capsys):
    trial = run(work_in_phases, ram="200 MB", label="phases")
    assert (trial.outcome, trial.exit_code, trial.error) == ("finished", 0, None)
    assert trial.value == {"rows": 100}
    assert trial.log == "done\n" == capsys.readouterr().out
    assert [stretch.name for stretch in trial.phases] == ["load", "train"]
    assert 0 < trial.phases[0].start < trial.phases[0].end <= trial.phases[1].start
    assert 500 < trial.throughput <= 1000
    assert trial.verdict == "Finished within its budget of 200 MB of RAM."
    assert repr(trial) == "<Trial phases: finished>"


def die_in_a_phase():
    with phase("load"):
        return np.ones(500 * MB, np.uint8).sum()


def test_the_phase_in_which_a_job_died_stays_open():
    trial = run(die_in_a_phase, ram="100 MB")
    assert trial.phases[0].end is None


def fail_in_a_graph():
    import tensorflow as tf

    def check(number):
        return tf.ensure_shape(tf.range(number), [2])

    return tf.function(check, autograph=False)(tf.constant(3))


def test_the_error_of_a_graph_names_the_jobs_own_lines_and_none_of_a_library():
    trial = run(fail_in_a_graph)
    assert trial.outcome == "error"
    for text in (trial.error, trial.log):
        assert "is not compatible with" in text
        assert "Detected at node" in text
        assert re.search(r'test_trial.py", line \d+, in check$', text, re.MULTILINE)
        assert not re.search(r'File ".*(tensorflow|helpers|<string>)', text)


def surroundings():
    return os.environ["OOM_TEST"], os.getcwd(), sys.path[0]


def test_a_job_lives_in_the_callers_surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("OOM_TEST", "heard")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert run(surroundings).value == ("heard", str(tmp_path), str(tmp_path))


SPAWNED = r"""
import json
import numpy as np
from helpers import run

def fill(size):
    print("no text: \udcff")
    return int(np.ones(size, np.uint8)[0])

if __name__ == "__main__":
    finished = run(fill, 50_000_000, ram="100 MB", limiter="watchdog")
    killed = run(fill, 500_000_000, ram="300 MB")
    lines = [line.source for line in killed.lines]
    print(json.dumps([finished.outcome, finished.peak_ram, finished.log, killed.outcome, lines]))
"""


def test_jobs_are_spawned_where_fork_is_not_to_be_had(tmp_path):
    program = tmp_path / "spawned.py"
    program.write_text(SPAWNED)
    environment = {**os.environ, "OOM_START": "spawn", "PYTHONPATH": str(HERE)}
    result = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, timeout=300
    )
    finished, peak, log, killed, lines = json.loads(result.stdout.splitlines()[-1])
    assert (finished, killed) == ("finished", "killed"), result.stderr
    assert 48 * MB <= peak <= 60 * MB
    assert log == "no text: \\udcff\n"  # and nothing of what TensorFlow says while it is imported
    assert lines[0] == "return int(np.ones(size, np.uint8)[0])"


huge = np.zeros(60 * MB, np.uint8)
lock = __import__("threading").Lock()


def shipped(function):
    """The same function as a notebook would ship it: by value, not by the name of its module."""
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return function


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda: run(int, ram="600"), ValueError, 'ram="600" has no unit; write "600 MB"'),
        (lambda: run(int, ram="6 MX"), ValueError, 'unknown unit "MX"'),
        (lambda: run(int, ram="900 TB"), ValueError, "is more than this machine has"),
        (lambda: run(int, vram="900 TB"), ValueError, "where the virtual GPU lives"),
        (lambda: run(int, ram=600), ValueError, 'write "600 MB" if you mean megabytes'),
        (lambda: run(int, on_limit="explode"), ValueError, 'neither "kill" nor "refuse"'),
        (lambda: run(int, timeout=0), ValueError, "not a positive number of seconds"),
        (lambda: run(42), TypeError, "run needs a function, not int"),
        (lambda: run(None), TypeError, "not run(load(path))"),
        (lambda: run(len, huge), ValueError, "the argument obj is larger than 50 MB"),
        (lambda: run(shipped(lambda: huge.sum())), ValueError, "the variable huge, which it uses, is larger"),
        (lambda: run(shipped(lambda: lock.locked())), TypeError, "the variable lock, which it uses, cannot"),
        (lambda: run(int, limiter="magic"), ValueError, 'no limiter is called "magic"'),
    ],
)
def test_a_call_that_cannot_work_says_why(call, kind, sentence):
    with pytest.raises(kind) as caught:
        call()
    assert sentence in str(caught.value)
