"""How true InputClock is: fits whose input and whose steps take known times, and the fraction that it reads."""

from benchmarks import spread, table, take_turns
from benchmarks._delayed_fit import fit
from helpers import run

DELAYS = [(0.160, 0.040), (0.080, 0.080), (0.040, 0.160)]
MOST_OFF = 0.03
ROUNDS, STEPS = 5, 20


def report(quick=False):
    """The section of RESULTS.md; a quick one has one short round."""
    rounds, steps = (1, 5) if quick else (ROUNDS, STEPS)
    cases = [(*delays, overlapped) for overlapped in (False, True) for delays in DELAYS]
    variants = {case: lambda case=case: run(reading, *case, steps).value for case in cases}
    found = take_turns("known delays", variants, rounds)
    rows = [_row(case, readings) for case, readings in found.items()]
    worst = max(abs(reading - waiting(*case)) for case, readings in found.items() for reading in readings)
    kept = "yes" if worst <= MOST_OFF else "**no**"
    head = ["input is read", "input", "step", "idle by the delays", "read", "off at most"]
    return f"""## How true InputClock is

The input and the step of each fit sleep for known times: {steps} steps a fit, {rounds} of them for each pair of delays.
Beside the sleeps Keras takes about 2 ms a step; the delays are long enough that this does not count.

{table(["promise", "measured", "at most", "kept"], [("error of the idle fraction", f"{worst:.3f}", MOST_OFF, kept)])}

{table(head, rows)}
"""


def reading(data_seconds, step_seconds, overlapped, steps):
    """What the clock reads, in a job."""
    clock, _ = fit(data_seconds, step_seconds, overlapped, steps=steps)
    return clock.idle


def waiting(data_seconds, step_seconds, overlapped):
    """The fraction of waiting that follows from the delays.

    >>> waiting(0.16, 0.04, overlapped=False), waiting(0.16, 0.04, overlapped=True)
    (0.8, 0.75)
    """
    if not overlapped:
        return data_seconds / (data_seconds + step_seconds)
    return max(0.0, 1 - step_seconds / data_seconds)


def _row(case, readings):
    data_seconds, step_seconds, overlapped = case
    expected = waiting(*case)
    return (
        "during the steps" if overlapped else "between the steps",
        f"{1000 * data_seconds:.0f} ms",
        f"{1000 * step_seconds:.0f} ms",
        f"{expected:.2f}",
        spread(readings, "{:.3f}"),
        f"{max(abs(found - expected) for found in readings):.3f}",
    )
