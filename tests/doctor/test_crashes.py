"""The doctor on jobs that really die here, each in a child process inside limits."""

import os
import resource
import shutil
import subprocess
import sys

import pytest

from helpers.doctor.diagnosis import diagnose

MEGABYTE = 10**6
ROOM = 400 * MEGABYTE


@pytest.fixture
def die(tmp_path):
    """A function that runs a program which is to fail, and returns its output and exit code."""
    script = tmp_path / "train.py"

    def run(program, limits=(), environment=None, wrap=()):
        def in_child():
            for limit, value in ((resource.RLIMIT_CORE, 0), *limits):
                resource.setrlimit(limit, (value, value))

        script.write_text(program)
        done = subprocess.run(
            [*wrap, sys.executable, script],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=in_child,
            env={**os.environ, **(environment or {})},
            timeout=120,
            check=False,
        )
        assert done.returncode != 0, done.stdout
        return done.stdout, done.returncode

    return run


def test_python_refuses(die):
    diagnosis = diagnose(
        *die("rows = [bytearray(10**8) for _ in range(100)]", [(resource.RLIMIT_DATA, ROOM)])
    )
    assert diagnosis.kind == "host-ram"
    assert "MemoryError" in diagnosis.evidence


def test_numpy_refuses_the_whole_data_set(die):
    program = "import numpy as np\nX = np.zeros((60_000, 224, 224, 3), dtype='float32')"
    diagnosis = diagnose(*die(program, [(resource.RLIMIT_DATA, ROOM), (resource.RLIMIT_AS, 4 * ROOM)]))
    assert (diagnosis.kind, diagnosis.cause) == ("host-ram", "whole-dataset-in-ram")
    assert "36.13 GB for an array of 60,000 x 224 x 224 x 3 float32" in diagnosis.explanation


def test_c_plus_plus_aborts(die):
    library = "libstdc++.so.6"
    program = f"import ctypes; ctypes.CDLL('{library}')._Znwm(ctypes.c_size_t(2**48))"
    log, code = die(program)
    if b"bad_alloc" not in log:
        pytest.skip(f"no {library} here")
    assert diagnose(log, code).cause == "native-allocation-refused"


def test_a_kill_without_a_word_is_not_guessed_at(die):
    log, code = die("import os; os.kill(os.getpid(), 9)")
    assert code == -9
    diagnosis = diagnose(log, code)
    assert (diagnosis.kind, diagnosis.confidence) == ("unknown", "low")


def test_an_interpreter_that_crashes_is_not_guessed_at(die):
    assert diagnose(*die("import ctypes; ctypes.string_at(0)")).kind == "unknown"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_is_not_memory(die):
    diagnosis = diagnose(*die("with open('/dev/full', 'w') as f: f.write('x' * 10**6)"))
    assert (diagnosis.kind, diagnosis.cause) == ("disk", "disk-full")


def test_too_many_files_are_not_memory(die):
    program = "files = [open('/dev/null') for _ in range(100)]"
    diagnosis = diagnose(*die(program, [(resource.RLIMIT_NOFILE, 30)]))
    assert (diagnosis.kind, diagnosis.cause) == ("not-memory", "too-many-open-files")


def test_endless_recursion_is_not_memory(die):
    assert diagnose(*die("def f(): f()\nf()")).cause == "recursion"


def _own_mounts():
    if os.geteuid() or not shutil.which("unshare"):
        return False
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not _own_mounts(), reason="only root may mount a /dev/shm of its own")
def test_a_full_dev_shm_is_shared_memory(die):
    program = "with open('/dev/shm/batch', 'wb') as file: file.write(bytes(10**7))"
    small = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$@"', "sh")
    diagnosis = diagnose(*die(program, wrap=small))
    assert (diagnosis.kind, diagnosis.cause) == ("shared-memory", "shared-memory-full")


def test_the_virtual_gpu_refuses(die):
    program = "import tensorflow as tf\ntf.zeros([64, 512, 512, 4])"
    limits = {"TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "64"}
    diagnosis = diagnose(*die(program, environment=limits))
    assert (diagnosis.kind, diagnosis.cause) == ("vram", "batch-too-large")
    assert "asked for 268 MB" in diagnosis.explanation
    assert "the device has 67 MB" in diagnosis.explanation
