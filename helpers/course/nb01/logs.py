"""Three logs of dead jobs, shortened; each of them names something else than what it died of."""

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
