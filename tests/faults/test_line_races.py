"""The line that took the memory is named, whoever wins a race; and who asks for it changes nothing."""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import seccomp
from helpers import run
from helpers.watching.attribution import UNKNOWN

HERE = Path(__file__).parents[2]
MB = 1_000_000
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere lines are asked on a clock alone")


def bytes_of(trial):
    """{the first word of a line: its bytes}"""
    found = {}
    for line in trial.lines:
        word = line.source.split("=")[0].strip() or line.where
        found[word] = found.get(word, 0) + line.bytes
    return found


def within(expected):
    return pytest.approx(expected, rel=0.1)


def allocate_and_sleep():
    block = np.ones(400 * MB, np.uint8)
    time.sleep(0.3)
    return int(block[0])


def add_and_sleep():
    """No call in the line: Python hears of a signal only after the sleep."""
    block = np.ones(200 * MB, np.uint8)
    result = block + 1
    time.sleep(0.3)
    return int(result[0])


def take_again():
    first = np.ones(400 * MB, np.uint8)
    del first
    second = np.ones(200 * MB, np.uint8)
    third = np.ones(300 * MB, np.uint8)
    return int(second[0] + third[0])


def give_back_what_was_taken_first():
    first = np.ones(150 * MB, np.uint8)
    second = np.ones(300 * MB, np.uint8)
    del first
    third = np.ones(250 * MB, np.uint8)
    return int(second[0] + third[0])


def take_one_after_the_other_in_a_thread():
    def work():
        first = np.ones(300 * MB, np.uint8)
        time.sleep(0.1)
        second = np.ones(200 * MB, np.uint8)
        kept.append((first, second))

    kept = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return len(kept)


def grow_among_many_threads():
    is_over = threading.Event()
    threads = [threading.Thread(target=is_over.wait) for _ in range(150)]
    for thread in threads:
        thread.start()
    block = np.ones(300 * MB, np.uint8)
    is_over.set()
    for thread in threads:
        thread.join()
    return int(block[0])


def grow_in_one_of_many_threads():
    def grow():
        block = np.ones(200 * MB, np.uint8)
        time.sleep(0.2)
        return block

    is_over = threading.Event()
    threads = [threading.Thread(target=is_over.wait) for _ in range(150)]
    for thread in threads:
        thread.start()
    growing = threading.Thread(target=grow)
    growing.start()
    growing.join()
    is_over.set()
    for thread in threads:
        thread.join()


def grow_in_each_of_many_threads():
    """In blocks too small for huge pages: all pages are of one size."""

    def grow():
        for _ in range(2):
            blocks.append(np.ones(MB, np.uint8))
        time.sleep(0.5)

    blocks = []
    threads = [threading.Thread(target=grow) for _ in range(120)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def grow_in_a_forked_child():
    parent = np.ones(100 * MB, np.uint8)
    pid = os.fork()
    if pid == 0:
        child = np.ones(300 * MB, np.uint8)
        time.sleep(0.3)
        os._exit(int(child[0]) - 1)
    return os.waitpid(pid, 0)[1], int(parent[0])


def grow_in_a_thread_of_a_forked_child():
    def work():
        child = np.ones(300 * MB, np.uint8)
        kept.append(child)
        time.sleep(0.3)

    kept = []
    if os.fork() == 0:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        os._exit(0)
    return os.wait()[1]


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (allocate_and_sleep, {"block": 400}),
        (add_and_sleep, {"block": 200, "result": 200}),
        (take_again, {"second": 200, "third": 300}),
        (give_back_what_was_taken_first, {"second": 300, "third": 250}),
        (take_one_after_the_other_in_a_thread, {"first": 300, "second": 200}),
        (grow_among_many_threads, {"block": 300}),
        (grow_in_a_forked_child, {"parent": 100, "child": 300}),
    ],
)
def test_each_line_has_the_bytes_that_it_took(job, expected):
    found = bytes_of(run(job, ram="1 GB"))
    for word, size in expected.items():
        assert found.get(word, 0) == within(size * MB), found


@pytest.mark.parametrize(
    ("job", "word", "size", "most_of_others"),
    [
        (grow_in_one_of_many_threads, "block", 200, 0.1),
        (grow_in_a_thread_of_a_forked_child, "child", 300, 0.1),
        (grow_in_each_of_many_threads, "blocks.append(np.ones(MB, np.uint8))", 240, 0.2),
    ],
)
def test_what_a_thread_takes_while_the_main_one_touches_pages_is_its_own_or_shared(
    job, word, size, most_of_others
):
    """To start threads, and to go on in a forked child, the main thread touches pages, too. How large these were is
    not always known, and then both share the bytes. Little is another line's alone."""
    found = bytes_of(run(job, ram="1 GB"))
    alone = found.pop(word, 0)
    of_others = sum(size for where, size in found.items() if " or " not in where and where != UNKNOWN[0])
    assert 0.7 * size * MB < alone < 1.1 * size * MB, found
    assert of_others < most_of_others * size * MB, found


def grow_in_two_threads_at_once():
    def work_on_the_first():
        kept.append(np.ones(300 * MB, np.uint8))

    def work_on_the_second():
        kept.append(np.ones(200 * MB, np.uint8))

    kept = []
    threads = [threading.Thread(target=work) for work in (work_on_the_first, work_on_the_second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(kept)


def test_what_two_threads_take_at_once_is_theirs():
    """Which of them has how much of it cannot always be told, and then they share it."""
    first = grow_in_two_threads_at_once.__code__.co_firstlineno + 2
    lines = run(grow_in_two_threads_at_once, ram="1 GB").lines
    theirs = [line for line in lines if f":{first}" in line.where or f":{first + 3}" in line.where]
    assert sum(line.bytes for line in theirs) == within(500 * MB), lines
    assert all(any(f":{number}" in line.where for line in theirs) for number in (first, first + 3)), lines


def one_allocation():
    block = np.ones(900 * MB, np.uint8)
    return int(block[0])


@pytest.mark.parametrize("budget", ["50 MB", "200 MB"])
@pytest.mark.parametrize("limiter", [None, "watchdog"])
def test_a_single_allocation_that_is_killed_at_once_has_its_line(budget, limiter):
    trial = run(one_allocation, ram=budget, limiter=limiter)
    assert trial.outcome == "killed"
    assert trial.lines[0].source == "block = np.ones(900 * MB, np.uint8)"
    assert trial.lines[0].bytes == within(trial.peak_ram)


def read_while_another_thread_grows():
    """C code that does not know that a call of the system can be interrupted."""
    reading, writing = os.pipe()
    library, buffer = ctypes.CDLL(None), ctypes.create_string_buffer(8)
    blocks = []

    def grow():
        for _ in range(60):
            blocks.append(np.ones(5 * MB, np.uint8))
            time.sleep(0.002)
        os.write(writing, b"x")

    threading.Thread(target=grow).start()
    return library.read(reading, buffer, 8)


def poll_while_another_thread_grows():
    reading, writing = os.pipe()
    library = ctypes.CDLL(None)
    blocks = []

    def grow():
        for _ in range(60):
            blocks.append(np.ones(5 * MB, np.uint8))
            time.sleep(0.002)
        os.write(writing, b"x")

    threading.Thread(target=grow).start()
    question = (ctypes.c_int * 2)(reading, 1)
    return library.poll(question, 1, 60_000)


@pytest.mark.parametrize("job", [read_while_another_thread_grows, poll_while_another_thread_grows])
def test_a_call_of_the_system_is_not_cut_short_because_another_thread_grows(job):
    for _ in range(3):
        assert run(job, ram="1 GB").value == 1


def train_on_what_another_thread_makes():
    import keras

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 80

        def __getitem__(self, number):
            generator = np.random.default_rng(number)
            return generator.random((9000, 127), "float32"), generator.random(9000, "float32")

    model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(Batches(), verbose=0)


@pytest.mark.parametrize("turn", range(3))
def test_threads_that_compute_in_c_code_get_no_signals(turn):
    """On some processors TensorFlow's have data where a signal would be handled: it would corrupt their memory."""
    trial = run(train_on_what_another_thread_makes, ram="500 MB")
    assert trial.outcome == "finished", trial.verdict


def take_all_handlers_away():
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        signal.signal(number, signal.SIG_DFL)
    return len([np.ones(MB, np.uint8) for _ in range(300)])


def test_a_job_that_takes_all_handlers_away_lives():
    trial = run(take_all_handlers_away, ram="1 GB")
    assert (trial.outcome, trial.value) == ("finished", 300), trial.verdict


ON_A_CLOCK = """
import json, time
import numpy as np
from helpers import run

def two_lines():
    first = np.ones(300_000_000, np.uint8)
    time.sleep(0.1)
    second = np.ones(400_000_000, np.uint8)
    time.sleep(0.1)
    return int(first[0] + second[0])

run(int)
for _ in range(3):
    trial = run(two_lines, ram="1 GB")
    print(json.dumps([trial.outcome, [(line.line, line.where, line.bytes) for line in trial.lines]]))
"""


def test_where_page_faults_cannot_be_counted_lines_are_asked_on_a_clock(tmp_path):
    """What the clock cannot tell apart is shared by the two lines or nobody's, and not the wrong line's."""
    if not seccomp.is_known():
        pytest.skip("no filter is known for this machine")
    program = tmp_path / "job.py"
    program.write_text(ON_A_CLOCK)
    filtered = [sys.executable, HERE / "tests/support/seccomp.py", "EPERM", "perf_event_open", "--"]
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    done = subprocess.run(
        [*filtered, sys.executable, program], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        outcome, found = json.loads(line)
        assert outcome == "finished"
        alone = {number: size for number, _, size in found if number}
        assert set(alone) <= {7, 9}, found
        assert alone.get(7, 0) < 1.1 * 300 * MB
        assert alone.get(9, 0) < 1.1 * 400 * MB
        assert sum(alone.values()) > 0.5 * 700 * MB, found


GROW = "import time\nrows = [bytearray(1_000_000) for _ in range(200)]\nraise MemoryError\n"


def lines_of_the_doctor(folder, *words, **options):
    command = [sys.executable, "-m", "helpers", "doctor", "--", sys.executable, *words]
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, **options
    )
    assert done.returncode == 1, done.stderr
    text = folder.joinpath("oom-report.txt").read_text().split("The lines that held the growth")[1]
    return {place: int(size) for size, place in re.findall(r"^ +(\d+) MB  (\S+)", text, re.MULTILINE)}


def test_a_program_after_dash_c_has_lines(tmp_path):
    assert lines_of_the_doctor(tmp_path, "-c", GROW)["<string>:2"] == within(200)


def test_a_program_on_standard_input_has_lines(tmp_path):
    assert lines_of_the_doctor(tmp_path, "-", input=GROW)["<stdin>:2"] == within(200)


def test_forked_children_of_a_command_have_lines(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(
        "import os, time\n"
        "first = bytearray(100_000_000)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    second = bytearray(300_000_000)\n"
        "    time.sleep(0.5)\n"
        "    os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
        "raise MemoryError\n"
    )
    found = lines_of_the_doctor(tmp_path, program)
    assert (found["train.py:2"], found["train.py:5"]) == (within(100), within(300))


def test_an_interpreter_that_ends_while_it_grows_ends_well(tmp_path):
    """Objects that grow when they go, at the very end of the interpreter, where nobody can be asked any more."""
    program = tmp_path / "train.py"
    program.write_text(
        "class Last:\n"
        "    def __init__(self):\n"
        "        self.kept, self.bytearray = [], bytearray\n"
        "    def __del__(self):\n"
        "        self.kept.append(self.bytearray(30_000_000))\n"
        "last = [Last() for _ in range(5)]\n"
        "import sys\n"
        "sys.modules['__main__'].cycle = last.append(last)\n"
        "raise MemoryError\n"
    )
    for _ in range(5):
        found = lines_of_the_doctor(tmp_path, program)
        assert sum(found.values()) >= 150  # MB
        for report in tmp_path.glob("oom-report*"):
            report.unlink()
