"""The exercise of notebook 08: three jobs of different sizes, and one card for all of them."""

import functools

from helpers.course.models import image_cnn
from helpers.course.task import Exercise, once_solved, with_article
from helpers.units import format_bytes, parse_bytes

CARD = "480 MB"
BATCHES = {"small": 8, "medium": 24, "large": 48}


def train_batch(batch, steps=3):
    """Train the course's smaller image network for a few steps; `batch` decides how much memory that takes."""
    import numpy

    random = numpy.random.default_rng(0)
    images, labels = random.random((batch, 128, 128, 3), dtype="float32"), random.integers(0, 10, batch)
    model = image_cnn(size=128, filters=(16, 32, 64), head=128)
    for _ in range(steps):
        model.train_on_batch(images, labels)


THREE_JOBS = {name: functools.partial(train_batch, batch) for name, batch in BATCHES.items()}


@once_solved
def run_three_jobs(answer, card):
    """Run the three jobs at once with the memory limits that an answer returns; a sentence if they are no limits."""
    limits = answer()
    if problem := limits_problem(limits, card):
        return problem
    import cloudpickle

    from helpers.course.nb08 import tenants

    jobs = {name: cloudpickle.dumps(job) for name, job in THREE_JOBS.items()}
    sizes = {name: parse_bytes(limit) for name, limit in limits.items()}
    found = tenants.host(parse_bytes(card), jobs, sizes, growth=False, environment={}, after={}, pause=0)
    return {tenant["name"]: "value" in tenant for tenant in found["tenants"]}, sizes


def limits_problem(limits, card):
    """Say what is wrong with memory limits before any job runs, or return None."""
    if not isinstance(limits, dict):
        return f'it returned {with_article(limits)}; return a dict: {{"small": "100 MB", ...}}.'
    if set(limits) != set(BATCHES):
        return (
            f"it has limits for {', '.join(map(str, limits)) or 'nobody'}; give one to {', '.join(BATCHES)}."
        )
    try:
        total = sum(parse_bytes(limit, name=name) for name, limit in limits.items())
    except (TypeError, ValueError) as error:
        return f"{error}."
    if total > parse_bytes(card):
        return f"the limits add up to {format_bytes(total)}, and the card has {card}."
    return None


def check_three_jobs(value, card):
    """Judge how the three jobs ended."""
    if isinstance(value, str):
        return value
    finished, sizes = value
    died = [f"{name} died on {format_bytes(sizes[name])}" for name, well in finished.items() if not well]
    return f"{', '.join(died)}; it needs more." if died else None


EXERCISES = {
    "08-a": Exercise(
        statement=(
            "write answer() that returns the memory limits of the jobs small, medium and large, so that all three "
            f"finish at once on a card of {CARD}."
        ),
        arguments=lambda: (CARD,),
        check=check_three_jobs,
        job=run_three_jobs,
    ),
}
