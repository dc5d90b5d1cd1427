"""The peak memory of training a Keras model, predicted before the first step runs."""

import html
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace

from helpers.machine import in_job, need_tensorflow
from helpers.units import format_bytes, parse_bytes

THREADS = 2
"""The threads that an estimate is for, on whatever machine it is made: as many as the machines have on which the course
was measured. A card has no such threads, and of the CPU's kernels only a convolution's gradient depends on them."""


@dataclass(frozen=True)
class Estimate:
    """What training is going to need at its worst moment, and who holds it then.

    `parts` and `layers` each add up to `peak`. Layers that hold nothing at that moment are left out;
    beside the layers' names there are `optimizer`, `loss`, `metrics`, `batch` and `allocator`.
    """

    peak: int
    parts: dict
    layers: dict
    batch_size: int
    optimizer: str
    precision: str
    accumulation: int
    _peak_of: object = field(repr=False, compare=False)

    def __str__(self):
        rows = [(name, format_bytes(size), f"{size / self.peak:.0%}") for name, size in self.parts.items()]
        rows.append(("peak", format_bytes(self.peak), "100%"))
        lines = [f"{name:<12} {size:>8} {share:>5}" for name, size, share in rows]
        return "\n".join([self._title(), *lines])

    def _repr_html_(self):
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{format_bytes(size)}</td><td>{size / self.peak:.0%}</td></tr>"
            for name, size in (*self.parts.items(), ("peak", self.peak))
        )
        return f"<table><caption>{html.escape(self._title())}</caption>{rows}</table>"

    def _title(self):
        extra = f", {self.accumulation} accumulated" if self.accumulation > 1 else ""
        return f"batch of {self.batch_size}, {self.optimizer}, {self.precision}{extra}"

    def plot(self, card=None):
        """Draw the parts as one bar, against the size of a card such as "8 GB"."""
        from helpers.charts.parts import bar_of_parts

        size = None if card is None else parse_bytes(card, name="card")
        return bar_of_parts(self.parts, "B" + self._title().removeprefix("b"), size)

    def fits(self, card):
        """Whether the peak stays below the size of a card such as "8 GB"."""
        return self.peak <= parse_bytes(card, name="card")

    def largest_batch(self, card, limit=65536):
        """The largest batch that fits on a card such as "8 GB", to within a percent; 0 if none does.

        Each size that is tried is traced anew, with the next one chosen on the line through the last two.
        """
        budget = parse_bytes(card, name="card")
        peaks = {self.batch_size: self.peak}
        fitting, failing = 0, limit + 1
        trial = self.batch_size
        with _progress("batch sizes tried") as bar:
            while True:
                if trial not in peaks:
                    peaks[trial] = self._peak_of(trial)
                    bar.update()
                if peaks[trial] <= budget:
                    fitting = max(fitting, trial)
                else:
                    failing = min(failing, trial)
                if failing - fitting <= max(1, fitting // 100):
                    return fitting
                trial = min(max(_where(peaks, budget), fitting + 1), failing - 1)


def estimate(
    model,
    batch_size,
    optimizer=None,
    precision=None,
    accumulation=1,
    *,
    loss=None,
    input_shape=None,
    samples=None,
    threads=THREADS,
):
    """Predict the peak memory of `model.fit` from the traced training step; nothing is run.

    - `model`: a Keras model that has its weights, compiled or not. It is left as it is.
    - `batch_size`: what goes through the model at once (with accumulation: the micro batch).
    - `optimizer`: a name or a Keras optimizer. Without one, the compiled model's own, else Adam.
    - `precision`: a dtype policy such as "mixed_float16". Without one, the layers keep their own.
    - `accumulation`: how many steps Keras adds up gradients for (`gradient_accumulation_steps`).
    - `loss`: without one, the compiled model's own, else one that suits the last activation.
    - `input_shape`: one sample's shape, or a list or dict of shapes, for a model that does not know it.
    - `samples`: how many samples are passed to `fit` as arrays, which it copies to the device as a whole.
      Without it the data is a stream (`tf.data`), of which only a few batches are there at a time, and the
      peak is the one that a longer training comes to: the allocator loses more to gaps for a dozen steps.
    - `threads`: the cores of the machine that is going to train, if it trains on them: from their number TensorFlow
      decides how much scratch memory the gradient of a convolution gets.
    """
    need_tensorflow("estimate")
    from helpers.estimator import inputs
    from helpers.estimator.replay import replay

    inputs.check(model, batch_size=batch_size, accumulation=accumulation, samples=samples, threads=threads)
    inputs.check_precision(precision)
    chosen = inputs.optimizer(model, optimizer, accumulation, precision)
    chosen_loss = inputs.loss(model, loss)
    shapes = inputs.shapes(model, input_shape)

    def replayed(size):
        with _progress("estimate", unit="pass") as bar:
            step = _trace(model, shapes, size, chosen, chosen_loss, precision)
            bar.update()
            return replay(step, size, samples, threads, progress=bar.update)

    result = replayed(int(batch_size))
    parts, layers = _add_up(result)
    return Estimate(
        peak=result.peak,
        parts=parts,
        layers=layers,
        batch_size=int(batch_size),
        optimizer=inputs.name_of(chosen),
        precision=precision or model.dtype_policy.name,
        accumulation=accumulation,
        _peak_of=lambda size: replayed(size).peak,
    )


def _trace(model, shapes, batch_size, optimizer, loss, precision):
    from helpers.estimator import inputs
    from helpers.estimator.trace import trace

    problem = None
    try:
        batches, outputs = inputs.batches(model, shapes, batch_size, loss)
        for batch in batches:
            try:
                return trace(model, batch, outputs, inputs.fresh(optimizer), loss, precision)
            except Exception as error:
                problem = problem or error
        raise problem
    except Exception as error:
        reason = " ".join(str(error).strip().splitlines()[-1:])
        raise ValueError(
            f"the training step of {model.name!r} cannot be traced ({type(error).__name__}: {reason}). "
            "Check that model.fit runs on one small batch with run_eagerly=False; "
            "pass loss= and input_shape= if the model does not know them"
        ) from error


def _progress(name, unit="it"):
    """A bar for whoever waits longer than two seconds; a job has a live line of its own already."""
    try:
        from tqdm import tqdm
    except ImportError:  # somebody's own TensorFlow, without the rest of the set
        return nullcontext(SimpleNamespace(update=lambda: None))
    return tqdm(desc=name, unit=unit, leave=False, delay=2, disable=in_job())


def _where(peaks, budget):
    """The batch size at which the line through the two nearest known peaks meets the budget."""
    nearest = sorted(peaks, key=lambda size: abs(peaks[size] - budget))[:2]
    if len(nearest) < 2:
        return nearest[0] * 2 if peaks[nearest[0]] <= budget else nearest[0] // 2
    (low, high) = sorted(nearest)
    slope = (peaks[high] - peaks[low]) / (high - low)
    return low + int((budget - peaks[low]) / slope) if slope > 0 else (low + high) // 2


def _add_up(replay):
    from helpers.charts.parts import PARTS

    parts = dict.fromkeys(PARTS, 0)
    layers = {}
    for (part, layer), size in replay.shares().items():
        parts[part] += size
        layers[layer] = layers.get(layer, 0) + size
    return parts, dict(sorted(layers.items(), key=lambda item: -item[1]))
