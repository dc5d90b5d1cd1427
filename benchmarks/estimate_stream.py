"""Predicted against measured for a stream of batches: the peak that a longer training comes to."""

from benchmarks.estimate import ROUNDS, in_turns, section

BATCHES = 30
NAMES = (
    "CNN, no BatchNorm",
    "CNN, BatchNorm, batch 1",
    "CNN, separable",
    "CNN, mixed_float16",
    "U-Net, 3 levels",
    "LSTM to sequence",
    "Conv1D, dilated",
    "Transformer, 4 blocks",
    "MLP 3000",
    "Embedding 200,000",
    "Two inputs",
    "Subclassed",
    "Language model",
)


def report(quick=False):
    """The section of RESULTS.md."""
    results = in_turns(NAMES[-3:-2] if quick else NAMES, 1 if quick else ROUNDS, BATCHES)
    text = (
        f"`fit` on a stream of {BATCHES} batches, two of them prefetched, and `estimate` without `samples=`; all else "
        "is as above. From step to step the allocator's free places are cut up further, so that the peak of a model "
        "grows for some steps. The estimate replays a dozen of them."
    )
    return "\n\n".join(
        ["## Training memory of a longer training", text, section("Some of the held-out models", results)]
    )
