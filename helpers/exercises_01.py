"""The exercise of notebook 01: name the kind of three deaths."""

from helpers.doctor_causes import KINDS
from helpers.exercises_task import Exercise


def crash_logs():
    """Three logs of dead jobs, shortened; each of them names something else than what it died of."""
    return CRASH_LOGS


def name_kinds(answer, *logs):
    """Ask a learner's function for the kind of each log."""
    kinds = [answer(log) for log in logs]
    return None if set(kinds) == {None} else kinds


def check_kinds(value, *logs):
    """Judge the kinds that an answer gave, log by log, with the line to look at where one is wrong."""
    for number, (kind, (wanted, hint)) in enumerate(zip(value, CRASH_KINDS, strict=True), start=1):
        if kind not in KINDS:
            return f"log {number}: {kind!r} is no kind; the kinds are {', '.join(KINDS)}."
        if kind != wanted:
            return f"log {number} is not {kind}: {hint}"
    return None


CRASH_LOGS = (
    """\
W cpu_allocator_impl.cc:82] Allocation of 2516582400 exceeds 10% of free system memory.
Epoch 3/10
W save_restore_v2_ops.cc:154] RESOURCE_EXHAUSTED: checkpoints/epoch-3.data-00000; No space left on device
ResourceExhaustedError: checkpoints/epoch-3.data-00000; No space left on device [Op:SaveV2]""",
    """\
I gpu_device.cc:2020] Created device /device:GPU:0 with 6390 MB memory
X_train: (48000, 160, 160, 3) float32, loaded into RAM
InternalError: Failed copying input tensor from CPU:0 to GPU:0 in order to run _EagerConst:
Dst tensor is not initialized.""",
    """\
I gpu_device.cc:2020] Created device /device:GPU:0 with 22290 MB memory
W device_host_allocator.h:50] could not allocate pinned host memory of size: 4294967296
E cuda_driver.cc:1013] failed to alloc 4294967296 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory
Killed""",
)
CRASH_KINDS = (
    ("disk", "its last line says what there was no more of."),
    ("vram", "to which device was it copying when that had no room for the copy?"),
    ("host-ram", "two of its lines say on which side the memory was missing, whoever reported it."),
)
EXERCISES = {
    "01-a": Exercise(
        statement="write answer(log) that returns the kind of death of a log, right for three logs of three.",
        arguments=crash_logs,
        check=check_kinds,
        job=name_kinds,
    ),
}
