"""The heart of `helpers`, measured: the start of a job, the truth of its readings, its budget."""

import gc
import linecache
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from benchmarks import in_child, ratios, spread, table, take_turns
from helpers import run
from helpers.jobs.launch import WARM_IMPORTS
from helpers.units import format_bytes
from helpers.watching import limits, processes

MB = 10**6
BUDGET = 1_000 * MB
SPIKES = (20 * MB, 100 * MB, 400 * MB)
FIRST, SECOND, TOO_LITTLE = 300 * MB, 600 * MB, 700 * MB
SCRIPT = f"""import numpy as np

@profile
def two_lines():
    first = np.ones({FIRST}, np.uint8)
    second = np.ones({SECOND}, np.uint8)
    return int(first[0] + second[0])

two_lines()
"""


@dataclass(frozen=True)
class Effort:
    """How often each thing is measured."""

    starts: int = 5
    fills: int = 5
    spikes: int = 4
    splits: int = 5


QUICK = Effort(starts=1, fills=1, spikes=1, splits=1)


@dataclass(frozen=True)
class Target:
    """A promise, what was measured, and the most that keeps it."""

    promise: str
    measured: float
    most: float
    form: str

    def row(self):
        kept = "yes" if self.measured <= self.most else "**no**"
        return self.promise, self.form.format(self.measured), self.form.format(self.most), kept


def report(quick=False):
    """The section of RESULTS.md: a table of promises, then one part for each measurement."""
    effort = QUICK if quick else Effort()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    prepare_to_fork()
    run(int, label="warm up")
    texts, targets = [], []
    for measurement in (warm_start, overshoot, peak_accuracy, which_line, after_the_kill):
        text, *kept = measurement(effort)
        texts.append(text)
        targets += kept
    promises = table(["promise", "measured", "at most", "kept"], [target.row() for target in targets])
    how = "Variants take turns within one run. Figures are medians, with the lowest and the highest in brackets."
    return "\n\n".join(["## The core: start, readings, budget", how, promises, *texts])


# --- Beside `run`: the same function in a forked child that nobody watches -------------------------------


def prepare_to_fork():
    """Make this process what the warm worker is, so that its children start alike."""
    for name in WARM_IMPORTS:
        __import__(name)
    gc.collect()
    gc.freeze()


def unwatched(job, *args):
    return in_child("fork", job, *args)


def working_limiters():
    return [choice.name for choice in limits.choices() if choice.works]


# --- 1. How long until a job runs ------------------------------------------------------------------------


def warm_start(effort):
    warm = {
        f"`run(int)`, {name}": lambda name=name: _seconds(lambda: run(int, limiter=name))
        for name in working_limiters()
    }
    program = [sys.executable, "-c", "import tensorflow"]
    cold = "cold: `python -c 'import tensorflow'`"
    variants = {
        **warm,
        cold: lambda: _seconds(lambda: subprocess.run(program, check=True, stderr=subprocess.DEVNULL)),
    }
    took = take_turns("warm start", variants, effort.starts)
    rows = [
        (name, spread(times, "{:.2f} s"), spread(ratios(took[cold], times), "{:.0f}x"))
        for name, times in took.items()
    ]
    text = "### A trivial job, from call to result\n\n" + table(["variant", "time", "faster than cold"], rows)
    slowest = max(statistics.median(took[name]) for name in warm)
    return text, Target("a trivial job through the warm worker", slowest, 0.5, "{:.2f} s")


def _seconds(action):
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


# --- 2. How far over its budget a job gets ---------------------------------------------------------------


def fill(size, threads):
    """Fill memory as fast as `threads` cores can."""
    fillers = [threading.Thread(target=np.ones, args=(size // threads, np.uint8)) for _ in range(threads)]
    for filler in fillers:
        filler.start()
    for filler in fillers:
        filler.join()


def overshoot(effort):
    variants = {
        (name, threads): lambda name=name, threads=threads: _over_budget(name, threads)
        for name in working_limiters()
        for threads in (1, 2)
    }
    over = take_turns("overshoot", variants, effort.fills)
    rows = [
        (name, threads, f"{statistics.median(shares):.2%}", f"{max(shares):.2%}")
        for (name, threads), shares in over.items()
    ]
    budget = format_bytes(BUDGET)
    head = ["limiter", "threads that fill", "median", "highest"]
    text = f"### How far a job gets over a budget of {budget}\n\n" + table(head, rows)
    worst = {
        name: max(max(shares) for (other, _), shares in over.items() if other == name) for name, _ in over
    }
    return text, *(
        Target(f"overshoot of a {budget} budget, {name}", share, 0.05, "{:.2%}")
        for name, share in worst.items()
    )


def _over_budget(limiter, threads):
    trial = run(fill, 4 * BUDGET, threads, ram=BUDGET, limiter=limiter)
    if trial.outcome != "killed":
        raise RuntimeError(f"a job of four times its budget was not killed: {trial.verdict}")
    return max(0.0, trial.peak_ram / BUDGET - 1)


# --- 3. Whether the peak is the true one -----------------------------------------------------------------


def spike(size, before):
    """Hold `size` bytes for 5 ms, some time into a job of 0.7 s: the resident size before, and what the kernel says
    was added at the highest."""
    import resource

    resident = psutil.Process().memory_info().rss
    time.sleep(before)
    block = np.ones(size, np.uint8)
    time.sleep(0.005)
    del block
    time.sleep(0.7 - before)
    return resident, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - resident


def polled_spike(interval, size, before):
    from memory_profiler import memory_usage

    readings, (resident, kernel) = memory_usage((spike, (size, before)), interval=interval, retval=True)
    return max(readings) * 2**20 - resident, kernel


def poll_with_psutil(pid):
    readings = []
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        while process.status() != psutil.STATUS_ZOMBIE:
            readings.append(process.memory_info().rss)
            time.sleep(0.1)
    return max(readings)


def peak_accuracy(effort):
    ours = {
        f"`peak_ram`, {name}": lambda size, name=name: _run_spike(size, name) for name in working_limiters()
    }
    methods = {
        **ours,
        "memory_usage, 10 ms": lambda size: unwatched(polled_spike, 0.01, size, _moment()),
        "memory_usage, 100 ms (default)": lambda size: unwatched(polled_spike, 0.1, size, _moment()),
        "psutil, every 100 ms": _psutil_spike,
    }
    variants = {
        (name, format_bytes(size)): lambda method=method, size=size: method(size)
        for name, method in methods.items()
        for size in SPIKES
    }
    found = take_turns("peak accuracy", variants, effort.spikes)
    worst = {key: max(pairs, key=lambda pair: abs(pair[0] - pair[1])) for key, pairs in found.items()}
    head = ["method", *map(format_bytes, SPIKES)]
    rows = [(name, *(_off(*worst[name, size]) for size in head[1:])) for name in methods]
    note = (
        "The worst error against the kernel's own figure (`ru_maxrss` less the size before). Filling the "
        "memory comes before the 5 ms, so a poll catches a large spike more often; -100% is one missed."
    )
    text = f"### The peak of a spike that lasts 5 ms\n\n{note}\n\n" + table(head, rows)
    highest = max(_share_of_allowance(*worst[name, size]) for name in ours for size in head[1:])
    return text, Target("error of a spike's peak, of the 2% or 2 MB allowed", highest, 1.0, "{:.0%}")


def _off(measured, kernel):
    return f"{(measured - kernel) / MB:+.1f} MB ({measured / kernel - 1:+.1%})"


def _share_of_allowance(measured, kernel):
    return abs(measured - kernel) / max(0.02 * kernel, 2 * MB)


def _moment():
    """Some time into the job, so that no poll is always in step with the spike."""
    return random.uniform(0.2, 0.4)


def _run_spike(size, limiter):
    trial = run(spike, size, _moment(), ram=BUDGET, limiter=limiter)
    return trial.peak_ram, trial.value[1]


def _psutil_spike(size):
    (resident, kernel), highest = in_child("fork", spike, size, _moment(), beside=poll_with_psutil)
    return highest - resident, kernel


# --- 4. Which line took the memory -----------------------------------------------------------------------


def two_lines():
    first = np.ones(FIRST, np.uint8)
    second = np.ones(SECOND, np.uint8)
    return int(first[0] + second[0])


def traced_lines():
    """What memory_profiler says: {source: bytes}."""
    from memory_profiler import LineProfiler

    profiler = LineProfiler()
    profiler(two_lines)()
    [(filename, lines)] = profiler.code_map.items()
    return {linecache.getline(filename, line).strip(): seen[0] * 2**20 for line, seen in lines if seen}


def which_line(effort):
    ours = {f"`trial.lines`, {name}": lambda name=name: _split_of_run(name) for name in working_limiters()}
    variants = {**ours, "memory_profiler, lines": lambda: _split_error(unwatched(traced_lines))}
    errors = take_turns("which line", variants, effort.splits)
    rows = [(name, f"{statistics.median(found):.1%}", f"{max(found):.1%}") for name, found in errors.items()]
    sizes = f"{format_bytes(FIRST)} and {format_bytes(SECOND)}"
    head = ["method", "median error", "highest error"]
    text = f"### Two lines that take {sizes}\n\n" + table(head, rows)
    highest = max(max(errors[name]) for name in ours)
    return text, Target("error of the bytes of a line", highest, 0.10, "{:.1%}")


def _split_of_run(limiter):
    trial = run(two_lines, ram=2 * BUDGET, limiter=limiter)
    return _split_error({line.source: line.bytes for line in trial.lines})


def _split_error(found):
    """The larger of the two lines' errors."""
    sizes = {"first = ": FIRST, "second = ": SECOND}
    return max(
        abs(sum(size for source, size in found.items() if source.startswith(text)) / expected - 1)
        for text, expected in sizes.items()
    )


# --- 5. What is left when the kernel kills ----------------------------------------------------------------


def after_the_kill(effort):
    trial = run(two_lines, ram=TOO_LITTLE)
    lines = ", ".join(f"{line.source.split(' =')[0]} {format_bytes(line.bytes)}" for line in trial.lines[:2])
    rows = [("`run`", trial.exit_code, trial.verdict, lines, f"{len(trial.samples)} readings")]
    for tool in ("memory_profiler", "mprof run"):
        rows.append((f"`python -m {tool} script.py`", *_left_by(tool)))
    note = (
        f"The two lines on a budget of {format_bytes(TOO_LITTLE)}, {limits.best().name}; "
        "the process that is killed is the one that holds the memory."
    )
    head = ["tool", "exit code", "what it says", "lines", "curve"]
    return f"### What is left after SIGKILL\n\n{note}\n\n" + table(head, rows, texts=len(head)), *()


def _left_by(tool):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "script.py").write_text(SCRIPT)
        command = [sys.executable, "-m", *tool.split(), "script.py"]
        code, output = end_at_budget(command, folder, TOO_LITTLE)
        said = output.strip().splitlines()
        lines = ", ".join(line.split("=")[0].split()[-1] for line in said if "np.ones" in line)
        curves = "".join(file.read_text() for file in folder.glob("mprofile_*.dat"))
    return code, said[-1] if said else "nothing", lines or "none", f"{curves.count('MEM ')} readings"


def end_at_budget(command, folder, budget):
    """Run a command whose largest process is killed at the budget, as the kernel does: (exit code, output)."""
    with open(folder / "output", "w+b") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, start_new_session=True)
        limiter = limits.best().limiter(process.pid)
        try:
            limiter.admit()
            limiter.arm(budget)
            _watch_until_the_end(process, limiter)
        finally:
            processes.end_descendants(process.pid)
            process.kill()
            process.wait()
            limiter.release()
        output.seek(0)
        code = process.returncode
        return code if code >= 0 else 128 - code, output.read().decode("utf-8", "replace")


def _watch_until_the_end(process, limiter):
    killed = False
    while process.poll() is None:
        family = [process.pid, *processes.descendants(process.pid)]
        held = {pid: processes.memory_of(pid).anonymous for pid in family}
        if limiter.exceeded(sum(held.values())) and not limiter.in_kernel and not killed:
            killed = True
            with suppress(ProcessLookupError):
                os.kill(max(held, key=held.get), signal.SIGKILL)
        time.sleep(0.002)
