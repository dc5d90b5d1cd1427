"""The published lists: kinds of death, and their causes with what to try, in order, and the notebook that shows it."""

from dataclasses import dataclass

NOTEBOOKS = {
    "00": "00_start_here",
    "01": "01_read_the_crash",
    "02": "02_stop_loading_the_whole_csv",
    "03": "03_stream_the_image_folder",
    "04": "04_the_fix_that_crashes_again",
    "05": "05_keep_the_device_busy",
    "06": "06_leave_the_data_on_disk",
    "07": "07_see_where_the_memory_goes",
    "08": "08_share_the_gpu",
    "09": "09_shrink_the_model",
    "10": "10_quantize",
    "11": "11_accumulate_gradients",
    "12": "12_halve_the_precision",
    "13": "13_recompute_activations",
    "14": "14_memory_that_never_comes_back",
    "15": "15_use_more_than_one_machine",
    "16": "16_rescue_the_job",
}


@dataclass(frozen=True)
class Kind:
    """A kind of death: what it means, what it rules out, and what to collect while its cause is open."""

    meaning: str
    is_not: tuple
    collect: tuple
    out_of_memory: bool = False


@dataclass(frozen=True)
class Cause:
    """Why it happened: one sentence, what to try in order, and the number of the notebook."""

    meaning: str
    advice: tuple
    notebook: str


_RUN_IT = "Run it once more as `python -m helpers doctor -- python train.py`: the report has the peak and the killer."
_CONTEXT = "Keep the 50 lines before the end and the exit code (`echo $?`), and diagnose them together."

KINDS = {
    "host-ram": Kind(
        "The machine's memory (RAM) ran out, not the GPU's.",
        ("Not the GPU: a smaller batch alone will not cure it unless the batches are what fills the RAM.",),
        (
            "Ask the kernel: `sudo dmesg -T | grep -i -E 'killed process|out of memory'`.",
            "Watch it grow: a straight line from the start is data being loaded, steps per epoch are a leak.",
            _RUN_IT,
        ),
        out_of_memory=True,
    ),
    "vram": Kind(
        "The memory of the accelerator (VRAM) ran out.",
        ("Not the machine's RAM: more RAM or swap changes nothing.",),
        (
            "Look at `nvidia-smi` before the job starts: memory in use then belongs to someone else.",
            "Halve the batch size until it fits: if batch 1 does not, it is the model or the input.",
            "Note when it dies: in the first step it is size, after epochs it is a leak or pieces.",
        ),
        out_of_memory=True,
    ),
    "shared-memory": Kind(
        "The shared memory in /dev/shm ran out.",
        ("Not the RAM and not the GPU: /dev/shm has a size of its own, 64 MB in a Docker container.",),
        ("Look at its size and use: `df -h /dev/shm`.", _RUN_IT),
        out_of_memory=True,
    ),
    "container-limit": Kind(
        "The memory limit of the container or batch job was reached, and its keeper killed the job.",
        ("Not the whole machine: it may have plenty of free memory.", "Not the GPU's memory."),
        (
            "Read the limit and the peak: `cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.peak`.",
            "Ask the keeper: `docker inspect`, `kubectl describe pod`, `sacct -o MaxRSS,ReqMem,State`.",
            _RUN_IT,
        ),
        out_of_memory=True,
    ),
    "gpu-config": Kind(
        "The GPU's set-up is the trouble, not the amount of memory.",
        ("Not out of memory: smaller batches or models change nothing.",),
        ("Compare the versions of the driver, CUDA, cuDNN and TensorFlow.", "Run `python -m helpers check`."),
    ),
    "disk": Kind(
        "The disk is full.",
        ("Not out of memory, although TensorFlow may call it ResourceExhaustedError.",),
        ("Look at the disks: `df -h` and, for many small files, `df -i`.",),
    ),
    "not-memory": Kind(
        "Memory is not what stopped it.",
        ("Not out of memory.",),
        (_CONTEXT,),
    ),
    "unknown": Kind(
        "The evidence does not say what stopped it.",
        ("Not proven to be out of memory, and not proven to be anything else.",),
        (
            _CONTEXT,
            "Ask the kernel: `sudo dmesg -T | grep -i -E 'killed process|out of memory|segfault'`.",
            "After a segmentation fault: `python -X faulthandler train.py` shows the line.",
            _RUN_IT,
        ),
    ),
}

CANNOT_TELL = "cannot tell"

_SMALLER_STEP = (
    "Take half the batch, and half again; accumulate gradients to keep the effective batch (notebook 11)."
)
_STREAM = "Stream it: tf.data from files, batch by batch, so that the peak does not depend on the number of examples."

MEMORY_CAUSES = {
    "whole-dataset-in-ram": Cause(
        "The whole data set is loaded into RAM before training starts.",
        (
            _STREAM,
            "Keep it on disk and read parts of it: TFRecord, HDF5, Parquet, `np.load(..., mmap_mode='r')`.",
            "Load in the smallest dtype (uint8 for images) and convert each batch.",
        ),
        "02",
    ),
    "numpy-copied-to-device": Cause(
        "A numpy array of the whole data set goes into fit or from_tensor_slices, which copies it, to the device too.",
        (
            "Give `fit` a dataset of files or a PyDataset instead of arrays.",
            "If it has to be an array, build the dataset under `tf.device('CPU:0')` and batch before it moves.",
            "Drop the original (`del X`) once it is on disk.",
        ),
        "03",
    ),
    "dtype-upcast": Cause(
        "A conversion makes a second, larger copy: uint8 or float32 to float64, or `/ 255` on the whole array.",
        (
            "Convert each batch in the pipeline (`map`), not the whole array.",
            "Ask for float32: `X.astype('float32')`, `np.float32(255)`; numpy's default is float64.",
            "Convert in place where there is room for one copy only: `np.divide(X, 255, out=X)`.",
        ),
        "06",
    ),
    "one-hot-or-dense": Cause(
        "One-hot labels, a sparse matrix made dense, or an n x n matrix: its size is a product of two large numbers.",
        (
            "Keep class numbers and use a sparse loss (`sparse_categorical_crossentropy`) or an embedding.",
            "Keep sparse matrices sparse; densify one batch at a time.",
            "Work on n x n in blocks, or do without: nearest neighbours, sampling.",
        ),
        "02",
    ),
    "pandas-dtypes": Cause(
        "pandas holds the table in its default types: object, int64 and float64 take several times the file's size.",
        (
            "Read with `dtype=`, `usecols=` and categories.",
            "Read in pieces (`chunksize=`), or convert once to Parquet and read columns.",
            _STREAM,
        ),
        "02",
    ),
    "shuffle-buffer": Cause(
        "The shuffle buffer holds decoded examples, as many as `buffer_size` says.",
        (
            "Shuffle the file names or the encoded records first, decode after.",
            "Make `buffer_size` as many examples as fit: buffer bytes = buffer_size x bytes per example.",
            "Shuffle before `batch`, not after it: then an element is an example and not a batch.",
        ),
        "04",
    ),
    "cache-in-ram": Cause(
        "`cache()` without a file name keeps every element of the data set in RAM.",
        (
            "Give it a file (`cache('/scratch/cache')`), or leave it out.",
            "Cache before decoding and augmenting, while examples are small.",
        ),
        "04",
    ),
    "prefetch-or-autotune": Cause(
        "Prefetching and parallel maps hold many batches at once, and AUTOTUNE decides how many.",
        (
            "Set `prefetch(1)` and a fixed `num_parallel_calls`.",
            "Cap it: `options.autotune.ram_budget`.",
            "Prefetch once, at the very end, after `batch`.",
        ),
        "04",
    ),
    "workers-times-queue": Cause(
        "Each loader process has its own copy and its own queue: memory is workers x queue x batch.",
        (
            "Fewer workers, a shorter `max_queue_size` or `prefetch_factor`.",
            "Threads instead of processes; open the data inside the worker so that it is not copied.",
            "Use tf.data, which shares one process.",
        ),
        "04",
    ),
    "graph-over-2gb": Cause(
        "A constant or the graph is larger than 2 GB, the most a protobuf can hold: the data is part of the graph.",
        (
            "Keep data out of the graph: `from_generator` or files instead of `from_tensor_slices(array)`.",
            "Feed it in batches.",
        ),
        "03",
    ),
    "batch-too-large": Cause(
        "The activations of one batch do not fit.",
        (
            _SMALLER_STEP,
            "Use mixed precision (notebook 12) or recompute activations (notebook 13).",
            "Smaller images or sequences.",
        ),
        "07",
    ),
    "model-too-large": Cause(
        "The weights do not fit, most often one layer of them (Flatten -> Dense, an embedding).",
        (
            "Look at `model.summary()`: replace Flatten by GlobalAveragePooling2D, shrink the widest layer.",
            "Freeze the base and train a head or LoRA (notebook 10).",
            "Shard the embedding over machines (notebook 15).",
        ),
        "09",
    ),
    "input-too-large": Cause(
        "One example is too large: pixels, frames or sequence length; attention grows with its square.",
        (
            "Smaller images, crops or tiles; shorter sequences, truncated or bucketed.",
            "Recompute activations (notebook 13), mixed precision (notebook 12).",
            "Pool or stride earlier in the model.",
        ),
        "13",
    ),
    "optimizer-slots": Cause(
        "The optimizer's own state does not fit: Adam keeps two more copies of the weights.",
        (
            "SGD or momentum, Lion or Adafactor: none or one copy.",
            "Freeze layers: frozen weights have neither gradients nor state.",
        ),
        "07",
    ),
    "another-process-holds-gpu": Cause(
        "Another process holds most of the card: an older run, a notebook, another user.",
        (
            "Find it: `nvidia-smi`; end your own leftovers, restart idle notebook kernels.",
            "Choose a free card: `CUDA_VISIBLE_DEVICES=1`.",
            "Share: memory growth or a logical device with a limit, in both processes.",
        ),
        "08",
    ),
    "no-memory-growth": Cause(
        "TensorFlow takes the whole card at the start, and the libraries beside it (cuDNN, cuBLAS) find nothing left.",
        (
            "Turn on `tf.config.experimental.set_memory_growth(gpu, True)` before anything uses the GPU.",
            "Or set a limit below the card's size with LogicalDeviceConfiguration.",
            "Check with `nvidia-smi` that no other process holds the card.",
        ),
        "08",
    ),
    "growth-set-too-late": Cause(
        "Memory growth or a limit is set after the GPU was initialised.",
        ("Move it to the first lines of the program, before any tensor, model or `list_logical_devices`.",),
        "08",
    ),
    "growth-differs": Cause(
        "Memory growth is on for one GPU and off for another; TensorFlow wants the same for all.",
        (
            "Set it in a loop over `tf.config.list_physical_devices('GPU')`, or hide the cards you do not use.",
        ),
        "08",
    ),
    "fragmentation": Cause(
        "Enough memory is free in total, but in pieces too small for the request.",
        (
            "Keep shapes constant: pad or bucket, drop the last short batch.",
            "`TF_GPU_ALLOCATOR=cuda_malloc_async`, or `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.",
            "Leave a margin: a slightly smaller batch.",
        ),
        "07",
    ),
    "gpu-memory-not-released": Cause(
        "The process keeps the card's memory after a model is done; TensorFlow gives it back only when it ends.",
        (
            "Run each training in a process of its own.",
            "In a notebook: restart the kernel between models.",
        ),
        "14",
    ),
    "retracing": Cause(
        "A tf.function is traced anew for each new shape or Python value, and every trace is kept.",
        (
            "Pass tensors, not Python numbers; pad to a few shapes; set `input_signature` or `reduce_retracing=True`.",
            "Define the function once, outside the loop.",
        ),
        "14",
    ),
    "models-in-a-loop": Cause(
        "Models are built and trained in a loop of one process; what each leaves behind adds up.",
        (
            "One child process per model.",
            "Build once and reset the weights between folds.",
            "`keras.backend.clear_session()` frees a part, not all.",
        ),
        "14",
    ),
    "tensors-kept": Cause(
        "Tensors, gradients or arrays are kept in a list or history that grows with every step.",
        (
            "Keep numbers, not tensors: `float(loss)`.",
            "Write results to disk as they come; bound replay buffers.",
            "In graph mode build operations once, before the loop (`graph.finalize()` finds the offender).",
        ),
        "14",
    ),
    "predict-on-whole-set": Cause(
        "predict, evaluate or a test step takes the whole set as one batch, or keeps all its outputs.",
        (
            "Give it a `batch_size`, or a batched dataset.",
            "Reduce each batch's output at once (argmax, metric) instead of keeping it.",
        ),
        "07",
    ),
    "pinned-host-memory": Cause(
        "Pinned (page-locked) memory of the host ran out: CUDA reports it, but it is RAM.",
        (
            "Smaller or fewer batches in flight between RAM and card (prefetch, workers).",
            "Free RAM, raise the container's memory or `ulimit -l`.",
            "Do not move the whole data set to the device at once.",
        ),
        "03",
    ),
    "shared-memory-full": Cause(
        "/dev/shm, where loader processes hand over batches, is full.",
        (
            "Start the container with `--shm-size=8g` or `--ipc=host` (Kubernetes: an emptyDir with medium Memory).",
            "Fewer workers, smaller batches, or threads instead of processes.",
            "Remove what dead processes left there.",
        ),
        "01",
    ),
    "memory-limit-kill": Cause(
        "The limit of the container, batch system or hosted notebook was reached, and the job was killed for it.",
        (
            "See what fills it, on a budget: `python -m helpers doctor --ram '2 GB' -- python train.py`.",
            "Ask for more if it has a flat peak (`--mem`, `--memory`, `limits.memory`, a larger runtime).",
            "If it grows without end, more only delays it: see notebooks 02, 04 and 14.",
        ),
        "01",
    ),
    "windows-commit-limit": Cause(
        "Windows has promised all the memory it has: RAM plus paging file.",
        (
            "Fewer worker processes: each imports CUDA's libraries and commits gigabytes.",
            "Enlarge the paging file on the system drive.",
        ),
        "01",
    ),
    "native-allocation-refused": Cause(
        "C++ code asked for memory and the system refused it (std::bad_alloc): no room left, or a ulimit.",
        (
            "Look at `ulimit -v` and at the RAM while it runs.",
            "Smaller batches and a streamed data set, as for any shortage of RAM.",
        ),
        "01",
    ),
    "tflite-converter": Cause(
        "The TFLite converter holds several copies of the model, and of the calibration data, in RAM.",
        (
            "Convert on a machine with more RAM, or from a SavedModel in a fresh process.",
            "Give `representative_dataset` a generator of a few hundred examples.",
        ),
        "10",
    ),
}

# What only looks like running out of memory.
LOOK_ALIKES = {
    "warning-only": Cause(
        "The memory messages are warnings; nothing failed because of them.",
        ("Let it run; look for another error if it stops.",),
        "01",
    ),
    "finished": Cause(
        "The job ended well; whatever it said of memory on the way stopped nothing.",
        ("Nothing to cure; if it retried after a memory error, a smaller batch avoids that.",),
        "01",
    ),
    "levels-off": Cause(
        "Memory rises at first and then stays: allocators keep what they may need again. That is no leak.",
        ("Watch a longer run; only a line that keeps rising is a leak.",),
        "14",
    ),
    "disk-full": Cause(
        "A file could not be written: no space, or no quota, on the disk.",
        ("`df -h`, `df -i`; clear checkpoints and caches; point TMPDIR and checkpoints to a larger disk.",),
        "01",
    ),
    "too-many-open-files": Cause(
        "The process ran out of file handles, not of memory.",
        ("Close files; fewer workers; raise `ulimit -n`.",),
        "01",
    ),
    "process-limit": Cause(
        "No more threads or processes may be started: a limit of the user or the container.",
        (
            "Fewer workers and threads (`OMP_NUM_THREADS=1`); raise `ulimit -u` or the container's pids limit.",
        ),
        "01",
    ),
    "message-too-large": Cause(
        "A message between processes is larger than the protocol allows.",
        ("Send less per message, or raise the limit (`grpc.max_receive_message_length`, IOPub rate).",),
        "01",
    ),
    "quota": Cause(
        "A service refused: its quota or rate is used up. Its word RESOURCE_EXHAUSTED is not about memory.",
        ("Wait, slow down, or ask for a higher quota.",),
        "01",
    ),
    "cuda-setup": Cause(
        "CUDA, cuDNN or the driver is missing, does not match, or finds no card.",
        (
            "Install what matches: `pip install 'tensorflow[and-cuda]'`; compare with `nvidia-smi`.",
            "In a container start with `--gpus all`.",
        ),
        "08",
    ),
    "illegal-instruction": Cause(
        "The binary uses instructions (AVX) that this CPU does not have.",
        ("Install a build for this CPU, or use another machine.",),
        "01",
    ),
    "illegal-memory-access": Cause(
        "A kernel touched memory it does not own: a bug or a wrong index, not a lack of memory.",
        (
            "Look for labels or token ids outside their range.",
            "Run on the CPU, or with `CUDA_LAUNCH_BLOCKING=1`, for a true traceback.",
        ),
        "01",
    ),
    "killed-by-someone": Cause(
        "Someone or something sent the signal: a person, a script, a stop of the container, a shutdown.",
        ("Ask who: the shell history, the scheduler's log, `docker events`.",),
        "01",
    ),
    "time-limit": Cause(
        "The time it was given ran out.",
        ("Ask for more time, or save checkpoints and resume.",),
        "01",
    ),
    "interrupted": Cause(
        "It was interrupted at the keyboard (Ctrl-C).",
        ("Start it again.",),
        "01",
    ),
    "recursion": Cause(
        "The call stack overflowed: endless recursion, not a lack of memory.",
        ("Look at the function that repeats in the traceback.",),
        "01",
    ),
    "another-error": Cause(
        "The program stopped with an error that has nothing to do with memory.",
        ("Read the last line of the traceback; that is the error to cure.",),
        "01",
    ),
}

CAUSES = {**MEMORY_CAUSES, **LOOK_ALIKES}
