"""Predicted against measured: the peak of a few training steps on the virtual GPU, model by model.

`python -m benchmarks estimate` writes the whole table; `python -m benchmarks.estimate "ResNet50" "LSTM"` prints some
of it. Each measurement and each prediction has a process of its own, and they take turns.
"""

import os
import statistics
import sys
import time
from functools import partial

from tqdm import tqdm

from benchmarks import ratios, spread, table, take_turns
from benchmarks._estimate_cases import CASES, DEVELOPMENT, HELD_OUT, SPARSE
from helpers import run

CARD = "6 GB"
STEPS = 3
ROUNDS = 3
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


def predict(name, streamed=None):
    """The estimate of a case, in bytes, and the seconds that it took; `streamed` is as for `train`."""
    from helpers.estimator.estimate import estimate

    build, batch_size, optimizer, loss, extra = CASES[name]
    model, samples = build(), None if streamed else STEPS * batch_size
    began = time.monotonic()
    extra = {"loss": loss, "samples": samples, "threads": os.cpu_count(), **extra}
    guess = estimate(model, batch_size, make_optimizer(optimizer), **extra)
    return {"bytes": guess.peak, "seconds": time.monotonic() - began}


def train(name, streamed=None, pause=0):
    """Build the model and take a few steps of `fit`; returns the seconds until the first step was over.

    The data are arrays, or a stream of as many batches as `streamed` says. A `pause` before each step, in seconds, lets
    the input have its batches ready, which otherwise is a matter of chance.
    """
    import keras

    build, batch_size, optimizer, loss, extra = CASES[name]
    if "precision" in extra:
        keras.config.set_dtype_policy(extra["precision"])
    model = build()
    chosen = make_optimizer(optimizer, extra.get("accumulation", 1))
    model.compile(optimizer=chosen, loss=loss, jit_compile=False)
    data = {"x": batches(model, batch_size, loss, streamed)} if streamed else {"batch_size": batch_size}
    if not streamed:
        data["x"], data["y"] = make_arrays(model, STEPS * batch_size, loss)
    ends = []
    note = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: time.sleep(pause),
        on_train_batch_end=lambda batch, logs: ends.append(time.monotonic()),
    )
    began = time.monotonic()
    model.fit(**data, verbose=0, shuffle=False, callbacks=[note])
    return ends[0] - began


def batches(model, batch_size, loss, count):
    """A stream of so many batches, each a copy of its own, two of them prefetched."""
    import keras
    import tensorflow as tf

    features, targets = make_arrays(model, batch_size, loss)
    batch = tuple(features) if isinstance(features, list) else features, targets
    specs = keras.tree.map_structure(lambda array: tf.TensorSpec(array.shape, array.dtype), batch)
    stream = tf.data.Dataset.from_generator(lambda: [batch] * count, output_signature=specs)
    return stream.apply(tf.data.experimental.assert_cardinality(count)).prefetch(2)


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
        each = model.output_shape[1:-1] if getattr(model, "outputs", None) else ()
        targets = generator.integers(0, 4, (count, *each)).astype("int32")
    else:
        targets = generator.random((count, *model.output_shape[1:]), dtype="float32")
    return features if len(features) > 1 else features[0], targets


def predicted(name, streamed=None):
    """The prediction of a case, made in a job."""
    return _finished(run(predict, name, streamed)).value


def measured(name, streamed=None, pause=0):
    """The allocator's own peak over building the model and a few steps, in bytes, and the seconds of the first."""
    trial = _finished(run(train, name, streamed, pause, vram=CARD))
    return {"bytes": trial.peak_vram, "seconds": trial.value}


def _finished(trial):
    if trial.outcome != "finished":
        raise RuntimeError(f"{trial.label} did not finish: {trial.verdict}\n{trial.log[-2000:]}")
    return trial


def error_of(predicted, peaks):
    """How far an estimate is off: as a share of the nearest of the peaks that were measured. A model may have more than
    one, by what TensorFlow does first; none of them is more right than the others, and what lies between is not one.

    >>> [round(error_of(predicted, [100, 130]), 3) for predicted in (104, 115)]
    [0.04, -0.115]
    """
    return min((predicted / peak - 1 for peak in peaks), key=abs)


def section(title, results):
    """One Markdown table with its summary."""
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
    errors, slowness = {}, {}
    rows = []
    for name, turns in results.items():
        _, batch_size, optimizer, _, _ = CASES[name]
        sizes = {kind: [one["bytes"] / 1e6 for one in found] for kind, found in turns.items()}
        seconds = {kind: [one["seconds"] for one in found] for kind, found in turns.items()}
        errors[name] = error_of(statistics.median(sizes["predicted"]), sizes["measured"])
        slowness[name] = statistics.median(ratios(seconds["predicted"], seconds["measured"]))
        rows.append(
            [
                name,
                batch_size,
                optimizer,
                spread(sizes["predicted"], "{:.1f}"),
                spread(sizes["measured"], "{:.1f}"),
                f"{errors[name]:+.1%}",
                f"{statistics.median(seconds['predicted']):.2f}",
                f"{statistics.median(seconds['measured']):.2f}",
            ]
        )
    return "\n\n".join([f"### {title}", table(head, rows), summary(errors, slowness)])


def summary(errors, slowness):
    """What a table says as a whole, and which models miss a target; both arguments are by model."""
    middle = statistics.median(map(abs, errors.values()))
    far = [f"{name} {error:+.1%}" for name, error in errors.items() if not LOWEST <= error <= HIGHEST]
    slow = [f"{name} {ratio:.2f}" for name, ratio in slowness.items() if ratio > 1]
    return (
        f"Median error {middle:.1%}, worst {max(errors.values(), key=abs):+.1%}, lowest {min(errors.values()):+.1%}. "
        f"An estimate takes {statistics.median(slowness.values()):.2f} times as long as the first step in the median, "
        f"{max(slowness.values()):.2f} times at the most. "
        f"More than {-LOWEST:.0%} too low or {HIGHEST:.0%} too high: {', '.join(far) or 'none'}. "
        f"Slower than the first step: {', '.join(slow) or 'none'}."
    )


def in_turns(names, rounds, streamed=None):
    """Predict and measure each model in turns: {name: {"predicted": [...], "measured": [...]}}."""
    results = {}
    for name in tqdm(names, desc="models", unit="model"):
        ways = {
            "predicted": partial(predicted, name, streamed),
            "measured": partial(measured, name, streamed),
        }
        results[name] = take_turns(name, ways, rounds)
    return results


def report(quick=False, names=()):
    """The section of RESULTS.md: every model, or a few for a smoke run."""
    wanted = list(names) or (["CNN, strides", "MLP 1024"] if quick else list(CASES))
    results = in_turns(wanted, 1 if quick else ROUNDS)
    sections = [
        "## Training memory: the estimate against the measured peak",
        f"`fit` on {STEPS} batches, given as arrays, on the virtual GPU with one region and one inter-op thread: the "
        f"median of {ROUNDS} runs in turns with the estimates, with the lowest and the highest where they differ. Some "
        "models have more than one peak: when the next batch arrives differs from run to run, and with it which free "
        "chunks the allocator finds for the next tensors, and how much larger than these they are. The error of an "
        "estimate is that to the nearest of the measured peaks.",
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
