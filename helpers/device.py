"""The accelerator of a job: a real GPU, or the virtual GPU; its memory budget and its memory readings."""

import os
import threading
import time
from dataclasses import dataclass

from helpers import machine

MIB = 2**20
POOL_OVERHEAD = 16 * MIB
"""What the allocator needs beside the one region that holds everything (measured on TensorFlow 2.21)."""


def has_gpu():
    """True if an NVIDIA GPU is there and not hidden. Asks the driver, never CUDA: a process that has touched CUDA
    cannot fork children that use it."""
    return os.environ.get("CUDA_VISIBLE_DEVICES") not in ("", "-1") and bool(machine.gpus())


@dataclass(frozen=True)
class Device:
    """An accelerator with a budget, as the job sees it: `kind` is "gpu" or "virtual"."""

    kind: str
    tensorflow_name: str
    limit: int

    def read(self):
        """Bytes in use now and at the most, as TensorFlow's allocator counts them."""
        import tensorflow as tf

        info = tf.config.experimental.get_memory_info(self.tensorflow_name)
        return info["current"], info["peak"]


class Reporter(threading.Thread):
    """In the job: writes down every few milliseconds what only the job itself can read, the memory of its device."""

    INTERVAL = 0.009

    def __init__(self, device, figures):
        super().__init__(name="memory-reporter", daemon=True)
        self.device, self.figures = device, figures

    def run(self):
        while True:
            self.report()
            time.sleep(self.INTERVAL)

    def report(self):
        current, peak = self.device.read()
        self.figures.write(time.monotonic(), current, peak)


def open_device(vram, growth=False, touch=False):
    """Give this process an accelerator with `vram` bytes, before TensorFlow runs its first operation.

    `growth=False` reserves the memory as one region, as TensorFlow does on GPUs by default; peaks repeat.
    `growth=True` lets the pool grow region by region. `touch` makes the machine hand over the memory of the
    virtual GPU at once, so that a RAM budget beside it counts the job's own memory alone. Without `vram` a real GPU
    is left as TensorFlow finds it, and TensorFlow takes nearly all of it.
    """
    if has_gpu():
        return _open_gpu(vram, growth)
    return _open_virtual(vram, growth, touch)


def _open_gpu(vram, growth):
    import tensorflow as tf

    card = tf.config.list_physical_devices("GPU")[0]
    if growth:
        tf.config.experimental.set_memory_growth(card, True)
    elif vram is not None:
        budget = tf.config.LogicalDeviceConfiguration(memory_limit=vram // MIB)
        tf.config.set_logical_device_configuration(card, [budget])
    return Device("gpu", "GPU:0", vram)


def _open_virtual(vram, growth, touch):
    smallest = 2 * POOL_OVERHEAD
    if vram < smallest:
        raise ValueError(f"vram is {vram // MIB} MiB; the virtual GPU needs {smallest // MIB} MiB at least")
    os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"
    os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(vram // MIB)
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(1)
    if not growth:
        _reserve_one_region(vram, touch)
    tf.config.experimental.reset_memory_stats("CPU:0")
    return Device("virtual", "CPU:0", vram)


def _reserve_one_region(vram, touch):
    import tensorflow as tf

    count = (vram // MIB * MIB - POOL_OVERHEAD) // 4
    with tf.device("CPU:0"):
        region = tf.raw_ops.Empty(shape=[count], dtype=tf.float32, init=touch)
    del region
