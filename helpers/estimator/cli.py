"""`python -m helpers estimate`: the training memory of a model that a function builds, and whether it fits."""

import importlib
import sys

from helpers.estimator.estimate import THREADS, estimate
from helpers.machine import need_tensorflow
from helpers.units import format_bytes, parse_bytes


def add_arguments(parser):
    """The options of `python -m helpers estimate`."""
    parser.add_argument(
        "model", help="module:function that builds a Keras model, such as my_module:build_model"
    )
    parser.add_argument("--batch", type=int, required=True, help="samples per step")
    parser.add_argument("--card", help='the size of the card, such as "8 GB"')
    parser.add_argument("--optimizer", help="a Keras optimizer's name; the compiled model's own, else adam")
    parser.add_argument("--precision", help="a dtype policy such as mixed_float16")
    parser.add_argument("--accumulation", type=int, default=1, help="gradient accumulation steps")
    parser.add_argument(
        "--threads",
        type=int,
        default=THREADS,
        help="cores of the machine that trains on them, else %(default)s",
    )


def command(arguments):
    """Print the estimate; the exit code is 0 if it fits on the card (or no card is given), else 1."""
    card = None if arguments.card is None else parse_bytes(arguments.card, name="card")
    need_tensorflow("estimate")
    guess = estimate(
        _load(arguments.model)(),
        arguments.batch,
        arguments.optimizer,
        arguments.precision,
        arguments.accumulation,
        threads=arguments.threads,
    )
    print(guess)
    if card is None:
        return 0
    if guess.peak <= card:
        print(f"It fits on a card of {format_bytes(card)}.")
        return 0
    print(
        f"It does not fit on a card of {format_bytes(card)}; the largest batch is {guess.largest_batch(card)}."
    )
    return 1


def _load(path):
    module, separator, function = path.partition(":")
    if not separator or not function:
        raise ValueError(f'"{path}" does not name a function; write "my_module:build_model"')
    sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f'"{path}" cannot be loaded: {error}') from error
