"""The exercise of notebook 04: a prefetch buffer that suits a budget."""

from helpers.course.digit_streams import IMAGE, image_names, read_image
from helpers.course.models import digit_model
from helpers.course.nb04.heap import return_freed_memory
from helpers.course.nb04.pauses import checkpoints
from helpers.course.task import Exercise, not_a_count, once_solved
from helpers.units import format_bytes, parse_bytes

BATCH, BUDGET, LEAST = 64, "256 MB", 0.35


def batch_and_budget():
    """What the learner's function gets, both in bytes."""
    return BATCH * IMAGE, parse_bytes(BUDGET)


@once_solved
def train_with(answer, batch_bytes, budget):
    """Ask a learner's function for a buffer and train until it was full, in the process that has the budget."""
    size = answer(batch_bytes, budget)
    if wrong := not_a_count(size, "the number of batches", "a buffer has at least one batch"):
        return wrong
    return_freed_memory()
    batches = image_names().map(read_image).batch(batch_bytes // IMAGE).prefetch(int(size))
    digit_model().fit(batches, shuffle=False, verbose=0, callbacks=[checkpoints([1])])
    return int(size)


def check_buffer(value, batch_bytes, budget):
    """Judge a buffer that the job lived with: it has to make use of the budget."""
    if isinstance(value, str):
        return value
    least = int(LEAST * budget)
    if value * batch_bytes >= least:
        return None
    held, wanted = format_bytes(value * batch_bytes), format_bytes(least)
    return f"a buffer of {value} holds {held}; take one that holds {wanted} at least."


EXERCISES = {
    "04-a": Exercise(
        statement=(
            f"write answer(batch_bytes, budget) that returns a size for prefetch with which the job lives on {BUDGET} "
            f"of RAM, and whose batches fill {100 * LEAST:.0f} % of it at least."
        ),
        arguments=batch_and_budget,
        check=check_buffer,
        ram=BUDGET,
        job=train_with,
    ),
}
