"""Predicted against measured: the peak of a few training steps on the virtual GPU, model by model.

`python -m benchmarks estimate` writes the whole table; `python -m benchmarks.estimate "ResNet50" "LSTM"` prints some
of it. Each measurement and each prediction has a process of its own.
"""

import statistics
import sys
import time

from tqdm import tqdm

from benchmarks import table
from benchmarks._estimate_cases import CASES, DEVELOPMENT, HELD_OUT, SPARSE
from helpers import run

CARD = "6 GB"
STEPS = 3
LOWEST, HIGHEST = -0.10, 0.15
"""How far an estimate may be off."""


def make_optimizer(name, accumulation=1):
    """The optimizer of a case."""
    import keras

    steps = accumulation if accumulation > 1 else None
    if name == "momentum":
        return keras.optimizers.SGD(0.001, momentum=0.9, gradient_accumulation_steps=steps)
    return {"adam": keras.optimizers.Adam, "sgd": keras.optimizers.SGD}[name](
        gradient_accumulation_steps=steps
    )


def predict(name):
    """The estimate of a case, in bytes, and the seconds that it took."""
    from helpers.estimate import estimate

    build, batch_size, optimizer, loss, extra = CASES[name]
    model, samples = build(), STEPS * batch_size
    began = time.monotonic()
    guess = estimate(model, batch_size, make_optimizer(optimizer), loss=loss, samples=samples, **extra)
    return {"bytes": guess.peak, "seconds": time.monotonic() - began}


def train(name):
    """Build the model and take a few steps of `fit`; returns the seconds until the first step was over."""
    import keras

    build, batch_size, optimizer, loss, extra = CASES[name]
    if "precision" in extra:
        keras.config.set_dtype_policy(extra["precision"])
    model = build()
    chosen = make_optimizer(optimizer, extra.get("accumulation", 1))
    model.compile(optimizer=chosen, loss=loss, jit_compile=False)
    features, targets = make_arrays(model, STEPS * batch_size, loss)
    ends = []
    note = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: ends.append(time.monotonic())
    )
    began = time.monotonic()
    model.fit(features, targets, batch_size=batch_size, verbose=0, callbacks=[note])
    return ends[0] - began


def make_arrays(model, count, loss):
    """Random samples in the shapes that the model takes and returns."""
    import numpy

    generator = numpy.random.default_rng(0)
    shapes = [(tensor.shape[1:], tensor.dtype) for tensor in getattr(model, "inputs", None) or ()]
    shapes = shapes or [(shape[1:], "float32") for shape in model.get_build_config().values()]
    features = [
        generator.integers(0, 50, (count, *shape)).astype("int32")
        if dtype == "int32"
        else generator.random((count, *shape), dtype="float32")
        for shape, dtype in shapes
    ]
    if loss == SPARSE:
        targets = generator.integers(0, 4, count).astype("int32")
    else:
        targets = generator.random((count, *model.output_shape[1:]), dtype="float32")
    return features if len(features) > 1 else features[0], targets


def predicted(name):
    """The prediction of a case, made in a job."""
    return _finished(run(predict, name)).value


def measured(name):
    """The allocator's own peak over building the model and a few steps, in bytes, and the seconds of the first."""
    trial = _finished(run(train, name, vram=CARD))
    return {"bytes": trial.peak_vram, "seconds": trial.value}


def _finished(trial):
    if trial.outcome != "finished":
        raise RuntimeError(f"{trial.label} did not finish: {trial.verdict}\n{trial.log[-2000:]}")
    return trial


def section(title, results):
    """One Markdown table with its summary."""
    rows = []
    errors, ratios = [], []
    for name, (predicted, measured) in results.items():
        _, batch_size, optimizer, _, _ = CASES[name]
        errors.append(predicted["bytes"] / measured["bytes"] - 1)
        ratios.append(predicted["seconds"] / measured["seconds"])
        sizes = [f"{found['bytes'] / 1e6:.1f}" for found in (predicted, measured)]
        seconds = [f"{found['seconds']:.1f}" for found in (predicted, measured)]
        rows.append([name, batch_size, optimizer, *sizes, f"{errors[-1]:+.1%}", *seconds])
    middle = statistics.median(map(abs, errors))
    summary = (
        f"Median error {middle:.1%}, worst {max(errors, key=abs):+.1%}, lowest {min(errors):+.1%}. "
        f"An estimate takes {statistics.median(ratios):.2f} times as long as the first step in the median, "
        f"{max(ratios):.2f} times at the most."
    ) + exceptions(list(results), errors, ratios)
    head = [
        "model",
        "batch",
        "optimizer",
        "predicted MB",
        "measured MB",
        "error",
        "estimate s",
        "first step s",
    ]
    return "\n\n".join([f"### {title}", table(head, rows), summary])


LOOPS = ("LSTM", "GRU")
"""Models whose names begin like this have a loop, each iteration of which the estimate replays in Python."""


def exceptions(names, errors, ratios):
    """Name the models that miss a target, with the reason where there is one."""
    far = [
        f"{name} {error:+.1%}"
        for name, error in zip(names, errors, strict=True)
        if not LOWEST <= error <= HIGHEST
    ]
    slow = [
        f"{name} ({'each iteration of its loop is replayed in Python' if name.startswith(LOOPS) else 'near its limit'})"
        for name, ratio in zip(names, ratios, strict=True)
        if ratio > 1
    ]
    text = f" More than {-LOWEST:.0%} too low or {HIGHEST:.0%} too high: {', '.join(far) or 'none'}."
    return f"{text} Slower than the first step: {', '.join(slow) or 'none'}."


def report(quick=False, names=()):
    """The section of RESULTS.md: every model, or a few for a smoke run."""
    wanted = list(names) or (["CNN, strides", "MLP 1024"] if quick else list(CASES))
    results = {}
    for name in tqdm(wanted, desc="models", unit="model"):
        results[name] = predicted(name), measured(name)
    sections = [
        "## Training memory: the estimate against the measured peak",
        f"`fit` on {STEPS} batches, given as arrays, on the virtual GPU with one region and one inter-op thread. "
        "The first step includes tracing, as the estimate does. Estimates are for the kernels that TensorFlow has on "
        "every CPU, which jobs use. Some CPUs make it choose oneDNN's instead (`TF_ENABLE_ONEDNN_OPTS=1`): their "
        "scratch memory is mostly smaller, so that the estimate of a small convolutional network can be more than "
        "twice too high there.",
    ]
    for title, cases in (("Held-out models", HELD_OUT), ("Development models", DEVELOPMENT)):
        chosen = {name: results[name] for name in cases if name in results}
        if chosen:
            sections.append(section(title, chosen))
    return "\n\n".join(sections)


if __name__ == "__main__":
    print(report(names=sys.argv[1:]))
