"""The accelerator: the virtual GPU has TensorFlow's own allocator and limit; a real GPU gets a logical device."""

import os
import sys
from types import ModuleType, SimpleNamespace

import pytest

from helpers import gpu, run
from helpers.jobs import device

MIB = 2**20


def allocate(*sizes):
    import tensorflow as tf

    tensors = [tf.zeros(size // 4) for size in sizes]
    return len(tensors)


def train_three_steps():
    """On one batch, without an input pipeline, whose buffers live in the same pool and come and go as they like; and
    on tensors: of arrays each step takes a copy, which Python's garbage collection lets go now or then."""
    import keras
    import tensorflow as tf
    from keras import layers

    model = keras.Sequential(
        [layers.Input((64, 64, 1)), layers.Conv2D(64, 3), layers.GlobalAveragePooling2D(), layers.Dense(4)]
    )
    model.compile("adam", "mse", jit_compile=False)
    images, answers = tf.ones((16, 64, 64, 1)), tf.ones((16, 4))
    for _ in range(3):
        model.train_on_batch(images, answers)


def test_a_job_over_its_vram_gets_tensorflows_own_error_and_its_peak_is_the_allocators():
    trial = run(allocate, 40 * MIB, 400 * MIB, vram="128 MB")
    assert trial.outcome == "vram-oom"
    assert "ResourceExhaustedError" in trial.error
    assert "OOM when allocating tensor with shape[104857600]" in trial.error
    assert trial.device == "virtual"
    assert trial.peak_vram == pytest.approx(40 * MIB, rel=0.01)
    assert trial.verdict.startswith("Out of memory on the device: it needs more than its 128 MB of VRAM")


def draw(*sizes):
    """Takes as much as `allocate`, and is at work on it for many readings: a device is read on a clock."""
    import tensorflow as tf

    tensors = [tf.raw_ops.RandomPoissonV2(shape=[size // 4], rate=9.0, dtype="float32") for size in sizes]
    return len(tensors)


def test_the_peak_of_known_sizes_is_exact_and_is_held_against_its_line():
    trial = run(draw, 30 * MIB, 20 * MIB, vram="128 MB")
    assert trial.outcome == "finished"
    assert trial.peak_vram == pytest.approx(50 * MIB, rel=0.01)
    assert trial.lines[0].source.startswith("tensors = [tf.raw_ops.RandomPoissonV2(")
    assert trial.lines[0].bytes == pytest.approx(50 * MIB, rel=0.1)


def test_peaks_of_a_training_step_repeat():
    peaks = [run(train_three_steps, vram="400 MB").peak_vram for _ in range(3)]
    assert max(peaks) <= 1.01 * min(peaks)


def test_jobs_use_the_kernels_that_every_cpu_has():
    def uses_onednn():
        from tensorflow.python.util import _pywrap_util_port

        return _pywrap_util_port.IsMklEnabled()

    if "TF_ENABLE_ONEDNN_OPTS" in os.environ:
        pytest.skip("the caller has chosen")
    assert run(uses_onednn).value is False


def test_a_crash_of_the_allocator_is_out_of_memory_too():
    def constant():
        import numpy as np
        import tensorflow as tf

        return tf.constant(np.ones((100, MIB), "float32")).shape

    trial = run(constant, vram="64 MB")
    assert (trial.outcome, trial.exit_code) == ("vram-oom", 139)
    assert trial.verdict.endswith("(SIGSEGV).")


def test_memory_growth_reserves_only_what_is_used():
    trial = run(allocate, 20 * MIB, vram="256 MB", growth=True)
    assert trial.outcome == "finished"
    assert 20 * MIB <= trial.peak_vram < 128 * MIB


def test_ram_beside_vram_counts_the_jobs_own_memory_alone():
    def both():
        import numpy as np

        allocate(100 * MIB)
        return int(np.ones(50 * MIB, "uint8")[0])

    trial = run(both, ram="120 MB", vram="256 MB")
    assert trial.outcome == "finished", trial.verdict
    assert trial.peak_ram < 120e6
    assert trial.peak_vram == pytest.approx(100 * MIB, rel=0.01)


def test_a_card_that_is_too_small_for_the_allocator_says_so():
    trial = run(allocate, MIB, vram="8 MB")
    assert trial.outcome == "error"
    assert "the virtual GPU needs 32 MiB at least" in trial.error


@pytest.fixture
def stand_in(monkeypatch):
    """A TensorFlow that only notes what it is told, beside a driver that reports one card."""
    calls = []
    config = SimpleNamespace(
        list_physical_devices=lambda kind: [f"{kind}:0 of the machine"],
        LogicalDeviceConfiguration=lambda memory_limit: ("limit in MiB", memory_limit),
        set_logical_device_configuration=lambda card, budgets: calls.append((card, budgets)),
        experimental=SimpleNamespace(
            set_memory_growth=lambda card, growth: calls.append((card, growth)),
            get_memory_info=lambda name: {"current": 3, "peak": 5} if name == "GPU:0" else None,
        ),
    )
    tensorflow = ModuleType("tensorflow")
    tensorflow.config = config
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    monkeypatch.setattr(gpu, "gpus", lambda: [gpu.Gpu("A card", 8 * 2**30, 8 * 2**30)])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return calls


def test_a_real_gpu_gets_a_logical_device_of_that_size(stand_in):
    opened = device.open_device(512 * MIB)
    assert stand_in == [("GPU:0 of the machine", [("limit in MiB", 512)])]
    assert (opened.kind, opened.read()) == ("gpu", (3, 5))


def test_a_real_gpu_may_grow(stand_in):
    device.open_device(512 * MIB, growth=True)
    assert stand_in == [("GPU:0 of the machine", True)]


def test_a_real_gpu_without_a_budget_is_left_as_it_is(stand_in):
    assert device.open_device(None).kind == "gpu"
    assert stand_in == []
