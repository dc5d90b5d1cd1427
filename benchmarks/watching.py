"""What it costs a program to be watched: a job under `run`, a command under the doctor, and the peers.

Two runs of the same program differ by several percent here, more than what is to be measured. So a training loop
times itself while its watcher is stopped and while it runs, in short windows that take turns within one run. And how
the system spreads threads over cores in one run is luck, so there are several runs, whose scatter is the error.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks import in_child, ratios, spread, table, take_turns
from benchmarks._watched_loop import STEPS, in_windows, small_cnn
from helpers import run
from helpers.watching import limits

ROOT = Path(__file__).resolve().parent.parent
BUDGET, VRAM = "4 GB", "1 GB"
MOST_UNDER_RUN, MOST_UNDER_DOCTOR = 1.01, 1.01
JOB_SECONDS = 60
WINDOWS, RUNS = 1000, 4
SEVERAL = 5
PROGRAM = """
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
from benchmarks._watched_loop import in_windows
print(json.dumps(in_windows(int(sys.argv[2]), os.getppid())))
"""


def report(quick=False):
    """The section of RESULTS.md; a quick one has a few short windows."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    windows, runs, several = (8, 1, 1) if quick else (WINDOWS, RUNS, SEVERAL)
    run(int, label="warm up")
    variants = {name: partial(_under_run, windows, given) for name, given in _budgets().items()}
    variants["`python -m helpers doctor -- python ...`"] = partial(_under_doctor, windows)
    found = {name: _summary(runs) for name, runs in take_turns("watched loops", variants, runs).items()}
    *under_run, under_doctor = (slowdown for slowdown, _, _ in found.values())
    start = _start_of_doctor(several)
    worst = max(under_run)
    whole = under_doctor + start / JOB_SECONDS
    rows = [
        (name, f"{slowdown:.3f}", f"{error:.3f}", f"{share:.1%}")
        for name, (slowdown, error, share) in found.items()
    ]
    promises = [
        ("a training loop under `run`, ratio", worst, MOST_UNDER_RUN),
        (f"a job of {JOB_SECONDS} s under the doctor, its start included, ratio", whole, MOST_UNDER_DOCTOR),
    ]
    kept = [
        (promise, f"{measured:.3f}", f"{most:.3f}", "yes" if measured <= most else "**no**")
        for promise, measured, most in promises
    ]
    head = ["watcher", "ratio", "standard error", "of one core"]
    return f"""## What watching costs

`train_on_batch` of a small CNN, {STEPS} steps a window, {windows} windows a run, with the watcher stopped in every
other one: the ratio of windows that are watched to their neighbours that are not, as the geometric mean of the middle
nine tenths (in the median rare costs would not count). Each watcher has {runs} runs, in turns; the standard error is
that of their mean. The last column is the processor time of the watcher while it runs. The doctor's start and end take
{start:.2f} s (median of {several}).

{table(["promise", "measured", "at most", "kept"], kept)}

{table(head, rows)}

{_peers(several)}
"""


def _budgets():
    """What a job is run with: each limiter that works here, and the virtual GPU."""
    names = [choice.name for choice in limits.choices() if choice.works]
    budgets = {f"`run(ram=)`, {name}": {"ram": BUDGET, "limiter": name} for name in names}
    return {**budgets, "`run(vram=)`": {"vram": VRAM}}


# --- A loop that times itself while its watcher runs and while it is stopped ------------------------------


def in_windows_of_a_job(windows):
    return in_windows(windows, os.getppid())


def _under_run(windows, given):
    trial = run(in_windows_of_a_job, windows, **given)
    if trial.outcome != "finished":
        raise RuntimeError(f"the training did not finish: {trial.verdict}\n{trial.log}")
    return trial.value


def _under_doctor(windows):
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "train.py")
        program.write_text(PROGRAM)
        done = _doctor(folder, [sys.executable, program, ROOT, windows])
    return json.loads(done.stdout.splitlines()[-1])


def _summary(runs):
    """From (ratios, share) of several runs: the mean slowdown, its standard error, and the mean share."""
    slowdowns, shares = [_middle(found) for found, _ in runs], [share for _, share in runs]
    error = statistics.stdev(slowdowns) / len(slowdowns) ** 0.5 if len(slowdowns) > 1 else 0.0
    return statistics.mean(slowdowns), error, statistics.mean(shares)


def _middle(found):
    """The geometric mean of the middle nine tenths.

    >>> round(_middle([0.001, *[1.01] * 18, 5]), 4)
    1.01
    """
    return statistics.geometric_mean(sorted(found)[len(found) // 20 : len(found) - len(found) // 20])


def _start_of_doctor(several):
    """What a command that does nothing takes longer under the doctor."""
    command = [sys.executable, "-c", "pass"]
    with tempfile.TemporaryDirectory() as folder:
        variants = {
            "alone": lambda: _seconds(lambda: subprocess.run(command, check=True)),
            "doctor": lambda: _seconds(lambda: _doctor(folder, command)),
        }
        took = take_turns("start of the doctor", variants, several)
    return statistics.median(
        doctor - alone for doctor, alone in zip(took["doctor"], took["alone"], strict=True)
    )


def _doctor(folder, command):
    watched = [sys.executable, "-m", "helpers", "doctor", "--report", folder, "--", *command]
    return subprocess.run([*map(str, watched)], cwd=ROOT, capture_output=True, text=True, check=True)


def _seconds(action):
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


# --- The peers, which cannot be stopped: whole runs in turns ----------------------------------------------


def train():
    """Seconds of some steps, without the first, which traces."""
    model, images, labels = small_cnn()
    model.train_on_batch(images, labels)
    began = time.perf_counter()
    for _ in range(30 * STEPS):
        model.train_on_batch(images, labels)
    return time.perf_counter() - began


def train_polled():
    from memory_profiler import memory_usage

    return memory_usage((train, ()), interval=0.01, multiprocess=True, retval=True)[1]


def train_traced():
    from memory_profiler import LineProfiler

    return LineProfiler()(train)()


def train_watched():
    return run(train, ram=BUDGET).value


def _peers(several):
    alone = "nobody watches"
    variants = {
        alone: lambda: in_child("spawn", train),
        "`run(ram=)`": train_watched,
        "memory_usage, 10 ms": lambda: in_child("spawn", train_polled),
        "memory_profiler, lines": lambda: in_child("spawn", train_traced),
    }
    took = take_turns("peers", variants, several)
    rows = [
        (
            name,
            spread(times, "{:.2f} s"),
            "1" if name == alone else spread(ratios(times, took[alone]), "{:.2f}"),
        )
        for name, times in took.items()
    ]
    note = "Whole runs in turns, for the peers too; the ratio is to the run of the same turn that nobody watches."
    return f"### Beside the peers\n\n{note}\n\n" + table(["variant", "time", "ratio"], rows)
