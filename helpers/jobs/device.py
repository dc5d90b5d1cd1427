"""The accelerator of a job: a real GPU, or the virtual GPU; its memory budget and its memory readings."""

import os
import threading
import time
from dataclasses import dataclass

from helpers import gpu
from helpers.watching.sampler import pause_after

POOL_OVERHEAD = 16 * gpu.MIB
"""What the allocator needs beside the one region that holds everything (measured on TensorFlow 2.21)."""
SMALLEST_POOL = 2 * POOL_OVERHEAD


@dataclass(frozen=True)
class Device:
    """An accelerator with a budget, as the job sees it: `kind` is "gpu" or "virtual"."""

    kind: str
    tensorflow_name: str

    def read(self):
        """Bytes in use now and at the most, as TensorFlow's allocator counts them."""
        import tensorflow as tf

        info = tf.config.experimental.get_memory_info(self.tensorflow_name)
        return info["current"], info["peak"]


class Reporter(threading.Thread):
    """In the job: writes down every few milliseconds what only the job itself can read, the memory of its device."""

    def __init__(self, device, log):
        super().__init__(name="memory-reporter", daemon=True)
        self.device, self.log = device, log

    def run(self):
        began = time.monotonic()
        while True:
            self.report()
            time.sleep(pause_after(time.monotonic() - began))

    def report(self):
        current, peak = self.device.read()
        self.log.write(time.monotonic(), current, peak)


def open_device(vram, growth=False, touch=False):
    """Give this process an accelerator with `vram` bytes, before TensorFlow runs its first operation.

    `growth=False` reserves the memory as one region, as TensorFlow does on GPUs by default; peaks repeat.
    `growth=True` lets the pool grow region by region. `touch` makes the machine hand over the memory of the
    virtual GPU at once, so that a RAM budget beside it counts the job's own memory alone. Without `vram` a real GPU
    is left as TensorFlow finds it, and TensorFlow takes nearly all of it.
    """
    if gpu.has_gpu():
        return _open_gpu(vram, growth)
    return _open_virtual(vram, growth, touch)


def _open_gpu(vram, growth):
    import tensorflow as tf

    card = tf.config.list_physical_devices("GPU")[0]
    if growth:
        tf.config.experimental.set_memory_growth(card, True)
    elif vram is not None:
        budget = tf.config.LogicalDeviceConfiguration(memory_limit=vram // gpu.MIB)
        tf.config.set_logical_device_configuration(card, [budget])
    return Device("gpu", "GPU:0")


def _open_virtual(vram, growth, touch):
    if vram < SMALLEST_POOL:
        raise ValueError(
            f"vram is {vram // gpu.MIB} MiB; the virtual GPU needs {SMALLEST_POOL // gpu.MIB} MiB at least"
        )
    os.environ.update(gpu.virtual_environment(vram))
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(1)
    if not growth:
        _reserve_one_region(vram, touch)
    tf.config.experimental.reset_memory_stats("CPU:0")
    return Device("virtual", "CPU:0")


def _reserve_one_region(vram, touch):
    import tensorflow as tf

    count = (vram // gpu.MIB * gpu.MIB - POOL_OVERHEAD) // 4
    with tf.device("CPU:0"):
        region = tf.raw_ops.Empty(shape=[count], dtype=tf.float32, init=touch)
    del region
