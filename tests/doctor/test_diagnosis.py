"""The doctor on short logs: what each kind and cause looks like, and what only looks like it.

`python tests/doctor/test_diagnosis.py` writes answers.tsv anew, after a change that is meant to change answers.
"""

from pathlib import Path

import pytest

from helpers.doctor.catalogue import CANNOT_TELL
from helpers.doctor.diagnosis import diagnose

RECORD = Path(__file__).with_name(
    "answers.tsv"
)  # what the doctor answers to these logs, with other exit codes too
EXIT_CODES = (None, 0, 1, 137, 139)
GPU = "on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"


def oom(shape, node="", device=GPU):
    return f"ResourceExhaustedError: OOM when allocating tensor with shape[{shape}] and type float {device}\n{node}"


def numpy_refusal(size, shape, element="float64"):
    return f"MemoryError: Unable to allocate {size} for an array with shape ({shape}) and data type {element}"


OUT_OF_MEMORY = {
    # the data is in RAM as a whole
    "images stacked": (
        numpy_refusal("12.5 GiB", "87000, 227, 227, 3", "uint8"),
        "host-ram",
        "whole-dataset-in-ram",
    ),
    "images counted": ("Loading images: 24000 of 25000\nKilled", "host-ram", "whole-dataset-in-ram"),
    "table read": ("df = pd.read_csv(path)\nMemoryError", "host-ram", "whole-dataset-in-ram"),
    "table parsed": (
        "pandas.errors.ParserError: Error tokenizing data. C error: out of memory",
        "host-ram",
        "whole-dataset-in-ram",
    ),
    "table merged": (
        '  File "lib/pandas/core/internals/managers.py", line 12, in _interleave\nMemoryError',
        "host-ram",
        "pandas-dtypes",
    ),
    "float64": (
        "    X = X / 255.0\n" + numpy_refusal("28.1 GiB", "50000, 250, 300, 3"),
        "host-ram",
        "dtype-upcast",
    ),
    "one-hot": (
        "    y = to_categorical(y, 50000)\n" + numpy_refusal("186. GiB", "1000000, 50000", "float32"),
        "host-ram",
        "one-hot-or-dense",
    ),
    "n x n": (numpy_refusal("74.5 GiB", "100000, 100000"), "host-ram", "one-hot-or-dense"),
    # the pipeline
    "shuffle": (
        "Filling up shuffle buffer (this may take a while): 1359 of 20480\nKilled",
        "host-ram",
        "shuffle-buffer",
    ),
    "cache": ("ds = ds.map(decode).cache().batch(32)\nEpoch 1/5\nKilled", "host-ram", "cache-in-ram"),
    "workers": (
        "model.fit(seq, workers=8, use_multiprocessing=True)\nKilled",
        "host-ram",
        "workers-times-queue",
    ),
    "fork": (
        "    self.pid = os.fork()\nOSError: [Errno 12] Cannot allocate memory",
        "host-ram",
        "workers-times-queue",
    ),
    "loader killed": (
        "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.",
        "host-ram",
        "workers-times-queue",
    ),
    "loky": (
        "TerminatedWorkerError: A worker process was unexpectedly terminated. Exit codes are {SIGKILL(-9)}",
        "host-ram",
        "workers-times-queue",
    ),
    "graph": (
        "ValueError: Cannot create a tensor proto whose content is larger than 2GB.",
        "host-ram",
        "graph-over-2gb",
    ),
    "tflite": ("    model = converter.convert()\nKilled", "host-ram", "tflite-converter"),
    # RAM by other names
    "pinned": (
        "failed to alloc 4294967296 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        "host-ram",
        "pinned-host-memory",
    ),
    "windows": (
        "OSError: [WinError 1455] The paging file is too small for this operation to complete",
        "host-ram",
        "windows-commit-limit",
    ),
    "bad_alloc": (
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
        "host-ram",
        "native-allocation-refused",
    ),
    "tensor in RAM": (
        oom("24,1,2304,1152,3", device="on /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu"),
        "host-ram",
        "batch-too-large",
    ),
    "colab": ("Your session crashed after using all available RAM.", "host-ram", "memory-limit-kill"),
    "kernel": ("Out of memory: Killed process 77 (python3) anon-rss:30123456kB", "host-ram", CANNOT_TELL),
    "zsh": ("zsh: killed     python train.py", "host-ram", CANNOT_TELL),
    "progress": ("99/100 [====>] - ETA: 0s - loss: 0.2038Killed", "host-ram", CANNOT_TELL),
    "chinese": ("loss: 4116.41:  10%|██   已杀死", "host-ram", CANNOT_TELL),
    # containers and batch systems
    "kubernetes": ("  Reason:       OOMKilled\n  Exit Code:    137", "container-limit", "memory-limit-kill"),
    "cgroup": (
        "Memory cgroup out of memory: Killed process 9 (python) anon-rss:2096000kB",
        "container-limit",
        "memory-limit-kill",
    ),
    "slurm": (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.",
        "container-limit",
        "memory-limit-kill",
    ),
    "lsf": (
        "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.",
        "container-limit",
        "memory-limit-kill",
    ),
    "pbs": (
        "=>> PBS: job killed: vmem 17432576kb exceeded limit 16777216kb",
        "container-limit",
        "memory-limit-kill",
    ),
    "compose": ("train_1 exited with code 137", "container-limit", "memory-limit-kill"),
    "container, shuffling": (
        "Filling up shuffle buffer (this may take a while): 9 of 99999\nOOMKilled",
        "container-limit",
        "shuffle-buffer",
    ),
    # the device, by size
    "batch": (oom("64,372,32,32"), "vram", "batch-too-large"),
    "dense": (oom("25088,4096"), "vram", "model-too-large"),
    "kernel of weights": (oom("7,7,512,4096"), "vram", "model-too-large"),
    "embedding": (oom("400001,300", "[[node embedding_1/embeddings/Assign]]"), "vram", "model-too-large"),
    "image": (oom("1,64,4028,3020"), "vram", "input-too-large"),
    "attention": (oom("8,12,4096,4096"), "vram", "input-too-large"),
    "slots": (oom("20000,768", "in add_variable_from_reference"), "vram", "optimizer-slots"),
    "test set": (oom("10000,28,28,32", "feed_dict={x: mnist.test.images}"), "vram", "predict-on-whole-set"),
    "predict": ("    p = model.predict(X)\n" + oom("60000,32,26,26"), "vram", "predict-on-whole-set"),
    "arrays": ("    model.fit(X, y)\n" + oom("60000,28,28,1"), "vram", "numpy-copied-to-device"),
    "one-hot node": (oom("25000,30522", "[[{{node bert/embeddings/one_hot}}]]"), "vram", "one-hot-or-dense"),
    # the device, in disguise
    "copy": (
        "Failed copying input tensor from device:CPU:0 to device:GPU:0 in order to run _EagerConst: "
        "Dst tensor is not initialized.",
        "vram",
        "numpy-copied-to-device",
    ),
    "cublas": ("failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED", "vram", "no-memory-growth"),
    "cudnn": (
        "UnknownError: Failed to get convolution algorithm. This is probably because cuDNN failed to initialize",
        "vram",
        "no-memory-growth",
    ),
    "xla": (
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7406166528 bytes.",
        "vram",
        CANNOT_TELL,
    ),
    "mps": ("RuntimeError: MPS backend out of memory (MPS allocated: 17.98 GB)", "vram", CANNOT_TELL),
    # the device, shared or in pieces
    "taken": (
        "Total memory: 7.92GiB\nFree memory: 190.31MiB\n"
        "failed to allocate 190.31M (199557120 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY",
        "vram",
        "another-process-holds-gpu",
    ),
    "taken, in torch": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.69 GiB (GPU 0; 14.56 GiB total "
        "capacity; 649.97 MiB already allocated; 1.31 GiB free; 1.01 GiB reserved in total by PyTorch)",
        "vram",
        "another-process-holds-gpu",
    ),
    "pieces": (
        "CUDA out of memory. Tried to allocate 1.20 GiB. GPU 0 has a total capacity of 6.00 GiB of which 0 bytes is "
        "free. Of the allocated memory 2.93 GiB is allocated by PyTorch, and 2.30 GiB is reserved by PyTorch but "
        "unallocated.",
        "vram",
        "fragmentation",
    ),
    "context": (
        "failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        "vram",
        "another-process-holds-gpu",
    ),
    # what grows
    "retracing": (
        "5 out of the last 5 calls to <function train> triggered tf.function retracing.\nKilled",
        "host-ram",
        "retracing",
    ),
    "models": ("Fold 7 of 10\n" + oom("128,64"), "vram", "models-in-a-loop"),
    "names": (oom("3,3,64,64", "[[node sequential_12/conv2d_3/kernel/read]]"), "vram", "models-in-a-loop"),
    "late": ("Epoch 199/500\n" + oom("16,64,256,256"), "vram", CANNOT_TELL),
    # shared memory
    "shm": (
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        "shared-memory",
        "shared-memory-full",
    ),
    "shm file": (
        "RuntimeError: unable to write to file </torch_29_13>: No space left on device (28)",
        "shared-memory",
        "shared-memory-full",
    ),
    "loader's bus error": (
        "RuntimeError: DataLoader worker (pid 13) is killed by signal: Bus error.",
        "shared-memory",
        "shared-memory-full",
    ),
}

LOOK_ALIKES = {
    "ten percent": (
        "Allocation of 553190400 exceeds 10% of free system memory.",
        None,
        "not-memory",
        "warning-only",
    ),
    "no failure": (
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.20GiB. The caller indicates that this is not a "
        "failure, but may mean that there could be performance gains if more memory were available.\nEpoch 2/9",
        None,
        "not-memory",
        "warning-only",
    ),
    "survived": (
        oom("64,99,99,9") + "retry with 32\nEpoch 2/2\nTest accuracy: 0.97",
        0,
        "not-memory",
        "finished",
    ),
    "levels off": (
        "\n".join(f"step {step} rss {500 + 10 * min(step, 20)} MB" for step in range(60)),
        None,
        "not-memory",
        "levels-off",
    ),
    "disk": ("OSError: [Errno 28] No space left on device: 'model.keras'", 1, "disk", "disk-full"),
    "checkpoint": (
        "ResourceExhaustedError: ckpt/part-0.data-00000-of-00001.tempstate49; No space left on device",
        1,
        "disk",
        "disk-full",
    ),
    "old checkpoint": ("ResourceExhaustedError: ./model/model-49.tempstate57875", 1, "disk", "disk-full"),
    "file not read": (
        "ResourceExhaustedError (see above for traceback): ./models/m9/model.ckpt-8.data-00000-of-00001\n"
        "\t [[Node: save/RestoreV2_6 = RestoreV2[dtypes=[DT_FLOAT]]]]",
        1,
        "not-memory",
        "too-many-open-files",
    ),
    "files": (
        "ResourceExhaustedError: /data/73.tfrecords; Too many open files",
        1,
        "not-memory",
        "too-many-open-files",
    ),
    "threads": ("RuntimeError: can't start new thread", 1, "not-memory", "process-limit"),
    "message": (
        'status = StatusCode.RESOURCE_EXHAUSTED\ndetails = "Received message larger than max (52 vs. 4)"',
        1,
        "not-memory",
        "message-too-large",
    ),
    "quota": ("RESOURCE_EXHAUSTED: Quota exceeded for quota metric 'Queries'", 1, "not-memory", "quota"),
    "address": (
        "CUDA error: an illegal memory access was encountered",
        1,
        "not-memory",
        "illegal-memory-access",
    ),
    "assert": ("CUDA error: device-side assert triggered", 1, "not-memory", "illegal-memory-access"),
    "instruction": ("Illegal instruction (core dumped)", 132, "not-memory", "illegal-instruction"),
    "tls": (
        "ImportError: libgomp.so.1: cannot allocate memory in static TLS block",
        1,
        "not-memory",
        "another-error",
    ),
    "recursion": ("RecursionError: maximum recursion depth exceeded", 1, "not-memory", "recursion"),
    "other error": (
        "ValueError: shapes (32, 28) and (784, 10) not aligned",
        1,
        "not-memory",
        "another-error",
    ),
    "ctrl-c": ("KeyboardInterrupt", 130, "not-memory", "interrupted"),
    "time": (
        "slurmstepd: *** JOB 1 CANCELLED AT 10:00 DUE TO TIME LIMIT ***",
        137,
        "not-memory",
        "time-limit",
    ),
    "kill -9": ("$ kill -9 4242\n[1]+  Killed   python train.py", 137, "not-memory", "killed-by-someone"),
    "stop": (
        "Stopping train_1 ... done\ntrain_1 exited with code 137",
        137,
        "not-memory",
        "killed-by-someone",
    ),
    "passing test": (
        "test_it.py::test_raises_MemoryError PASSED\n== 3 passed in 0.1s ==",
        0,
        "not-memory",
        "finished",
    ),
    "drivers": ("failed call to cuInit: CUDA_ERROR_NO_DEVICE", 1, "gpu-config", "cuda-setup"),
    "library": ("Could not load dynamic library 'libcudart.so.11.0'", None, "gpu-config", "cuda-setup"),
    "versions": (
        "Loaded runtime CuDNN library: 7.1.4 but source was compiled with: 7.6.0.\n"
        "Failed to get convolution algorithm. This is probably because cuDNN failed to initialize",
        1,
        "gpu-config",
        "cuda-setup",
    ),
    "too late": (
        "RuntimeError: Physical devices cannot be modified after being initialized",
        1,
        "gpu-config",
        "growth-set-too-late",
    ),
    "differs": (
        "ValueError: Memory growth cannot differ between GPU devices",
        1,
        "gpu-config",
        "growth-differs",
    ),
    "only a signal": ("", 137, "unknown", CANNOT_TELL),
    "only minus nine": ("Epoch 3/10 - loss: 0.3", -9, "unknown", CANNOT_TELL),
    "terminated": ("Terminated", 143, "unknown", CANNOT_TELL),
    "segmentation": ("Segmentation fault (core dumped)", 139, "unknown", CANNOT_TELL),
    "notebook": (
        "The kernel appears to have died. It will restart automatically.",
        None,
        "unknown",
        CANNOT_TELL,
    ),
    "server": (
        "<_InactiveRpcError of RPC that terminated with:\nRESOURCE_EXHAUSTED",
        1,
        "unknown",
        CANNOT_TELL,
    ),
    "prose": (
        "Notes: the paper discusses memory, attention and working memory.",
        None,
        "unknown",
        CANNOT_TELL,
    ),
    "source": ("try:\n    train()\nexcept MemoryError:\n    raise SystemExit", None, "unknown", CANNOT_TELL),
}


@pytest.mark.parametrize("name", OUT_OF_MEMORY)
def test_a_death_by_memory_is_named(name):
    text, kind, cause = OUT_OF_MEMORY[name]
    diagnosis = diagnose(text)
    assert (diagnosis.kind, diagnosis.cause) == (kind, cause)
    assert diagnosis.out_of_memory


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_what_only_looks_like_it_is_not_called_out_of_memory(name):
    text, exit_code, kind, cause = LOOK_ALIKES[name]
    diagnosis = diagnose(text, exit_code)
    assert (diagnosis.kind, diagnosis.cause) == (kind, cause)
    assert not diagnosis.out_of_memory


def test_the_numbers_of_the_log_are_put_side_by_side():
    log = "Created device GPU:0 with 64 MB memory\n" + oom("64,512,512,18")
    assert "It asked for 1.21 GB" in diagnose(log).explanation
    assert "the device has 67 MB" in diagnose(log).explanation
    assert "another process holds the rest" in diagnose(log).explanation


def test_an_exit_code_alone_says_what_to_collect_next():
    diagnosis = diagnose(exit_code=137)
    assert diagnosis.confidence == "low"
    assert any("dmesg" in step for step in diagnosis.advice)
    assert "What to collect next" in str(diagnosis)


def test_a_bare_kill_is_believed_but_not_called_proven():
    assert any("kill -9" in line for line in diagnose("Epoch 1/9\nKilled", 137).is_not)


def test_a_sigkill_under_memory_pressure_is_believed():
    pressure = "W cpu_allocator_impl.cc:83] Allocation of 9707550720 exceeds 10% of free system memory."
    assert diagnose(pressure, 137).kind == "host-ram"
    assert diagnose(pressure, 0).kind == "not-memory"


@pytest.mark.parametrize("code", [-9, 137])
def test_both_ways_to_write_a_signal_mean_the_same(code):
    assert "SIGKILL" in diagnose("", code).evidence[0]


def test_windows_codes_are_read():
    assert diagnose("", 0xC0000017).kind == "host-ram"
    assert diagnose("", -1073741801).kind == "host-ram"  # the same code, signed
    assert diagnose("", 0xC000012D).cause == "windows-commit-limit"
    assert diagnose("", 0xC00000FD).cause == "recursion"
    assert diagnose("", 3221226505).kind == "unknown"


def test_a_pipe_hides_the_exit_code_but_not_the_death():
    assert diagnose("Epoch 1/9\nMemoryError", 0).kind == "host-ram"  # python train.py | tee log


def test_what_stands_before_the_death_weighs_more_than_what_stands_far_above():
    script = "y = to_categorical(y)\n" + "x = 1\n" * 20
    assert diagnose(
        script + "X = X.astype('float64')\n" + numpy_refusal("9.3 GiB", "50000, 200, 250, 1")
    ).cause == ("dtype-upcast")


def test_an_import_is_no_evidence():
    assert diagnose("from keras.utils import to_categorical\nKilled").cause == CANNOT_TELL


def answers():
    """The table of the record: each log, with each exit code, and with another log's lines before it."""
    logs = {name: row[0] for name, row in {**OUT_OF_MEMORY, **LOOK_ALIKES}.items()}
    cases = [(name, log, code) for name, log in logs.items() for code in EXIT_CODES]
    names = list(logs)
    for step in (1, 31):
        for name, other in zip(names, names[step:] + names[:step], strict=True):
            cases.append((f"{other} + {name}", f"{logs[other]}\n{logs[name]}", None))
    for title, log, code in cases:
        diagnosis = diagnose(log, code)
        yield f"{title}\t{code}\t{diagnosis.kind}\t{diagnosis.cause}\t{diagnosis.confidence}"


def test_no_answer_differs_from_the_record():
    assert set(answers()) == set(RECORD.read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    RECORD.write_text("\n".join(answers()) + "\n", encoding="utf-8")
