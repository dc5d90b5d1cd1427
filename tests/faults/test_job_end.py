"""A job ends as a Python program does: threads are waited for, exit handlers run, what was written is on disk."""

import atexit
import ctypes
import gzip
import logging.handlers
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from helpers import run

HERE = Path(__file__).parents[2]


def leave_files_open(folder):
    sys.left_open = [Path(folder, "text").open("w"), Path(folder, "bytes").open("wb")]  # noqa: SIM115
    sys.left_open[0].write("written")
    sys.left_open[1].write(b"written")
    sys.left_packed = gzip.open(Path(folder, "packed"), "wb")  # noqa: SIM115
    sys.left_packed.write(b"packed")


def test_files_that_were_never_closed_are_written(tmp_path):
    assert run(leave_files_open, tmp_path).outcome == "finished"
    assert Path(tmp_path, "text").read_text() == Path(tmp_path, "bytes").read_text() == "written"
    assert gzip.decompress(Path(tmp_path, "packed").read_bytes()) == b"packed"


def leave_work_to_do(folder, fails):
    def late():
        threading.main_thread().join()
        Path(folder, "thread").touch()

    threading.Thread(target=late).start()
    atexit.register(lambda: Path(folder, "handler").touch())
    memory = logging.handlers.MemoryHandler(100, target=logging.FileHandler(Path(folder, "log")))
    logging.getLogger("own").addHandler(memory)
    logging.getLogger("own").error("logged")
    if fails:
        raise KeyError("own")


@pytest.mark.parametrize(("fails", "outcome"), [(False, "finished"), (True, "error")])
def test_threads_exit_handlers_and_logs_come_to_their_end(tmp_path, fails, outcome):
    assert run(leave_work_to_do, tmp_path, fails, timeout=60).outcome == outcome
    assert Path(tmp_path, "thread").exists()
    assert Path(tmp_path, "handler").exists()
    assert Path(tmp_path, "log").read_text() == "logged\n"


def leave_children(folder):
    context = multiprocessing.get_context("fork")
    context.Process(target=wait_and_touch, args=(0.3, Path(folder, "child"))).start()
    context.Process(target=wait_and_touch, args=(600, Path(folder, "daemon")), daemon=True).start()
    sys.kept_folder = tempfile.TemporaryDirectory(dir=folder)


def wait_and_touch(seconds, path):
    time.sleep(seconds)
    path.touch()


def test_child_processes_are_waited_for_daemons_ended_and_temporary_folders_removed(tmp_path):
    trial = run(leave_children, tmp_path, timeout=60)
    assert trial.outcome == "finished", trial.verdict
    assert [path.name for path in tmp_path.iterdir()] == ["child"]


def wait_forever():
    threading.Thread(target=threading.Event().wait).start()
    return 1


def test_a_thread_that_never_ends_falls_under_the_timeout():
    assert run(wait_forever, timeout=1).outcome == "timeout"


def crash_at_exit():
    atexit.register(os.abort)
    return 1


def test_a_crash_at_the_end_is_not_called_finished():
    assert (run(crash_at_exit).outcome, run(crash_at_exit).exit_code) == ("error", 134)


PRINTING = """
import ctypes
from helpers import run

def say():
    ctypes.CDLL(None).printf(b"said by C\\n")

print(run(say).log)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "printf"), reason="no C library with this name")
def test_what_c_code_printed_is_in_the_log():
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    environment.pop("PYTHONUNBUFFERED", None)  # with it C's output is not buffered either
    result = subprocess.run(
        [sys.executable, "-c", PRINTING], env=environment, capture_output=True, text=True, timeout=300
    )
    assert result.stdout == "said by C\nsaid by C\n\n", result.stderr
