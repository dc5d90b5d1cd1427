"""Measurements side by side with the peers, and what they share: fair turns, the middle and the spread, tables."""

import contextlib
import importlib
import inspect
import io
import multiprocessing
import statistics
import threading

from tqdm import tqdm

# A process that forks has no thread beside it, and needs no semaphore to draw a bar.
tqdm.monitor_interval = 0
tqdm.set_lock(threading.RLock())


def report_of(name, quick=False):
    """The section that a benchmark module returns from `report()`, or prints from `main([])`; None if it has neither.

    A quick one takes as little as the module lets it: `report(quick=True)`, or `main` with the first of its `CASES`.
    """
    module = importlib.import_module(f"benchmarks.{name}")
    if hasattr(module, "report"):
        can_be_quick = "quick" in inspect.signature(module.report).parameters
        return module.report(quick=quick) if can_be_quick else module.report()
    if hasattr(module, "main"):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            module.main(list(getattr(module, "CASES", ()))[:1] if quick else [])
        return printed.getvalue()
    return None


def in_child(start, job, *args, beside=None):
    """`job(*args)` in a child process that nobody watches; `start` is "fork" or "spawn".

    With `beside`, a function of the child's process id that runs here meanwhile, both results come back.

    >>> in_child("fork", max, 1, 2)
    2
    """
    context = multiprocessing.get_context(start)
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(target=_send_result, args=(sending, job, args))
    child.start()
    sending.close()
    seen = beside(child.pid) if beside else None
    try:
        value = receiving.recv()
    except EOFError:
        child.join()
        raise RuntimeError(
            f"{job.__name__}{args} ended with exit code {child.exitcode} and no result"
        ) from None
    child.join()
    return (value, seen) if beside else value


def _send_result(sending, job, args):
    sending.send(job(*args))


def take_turns(title, variants, rounds):
    """Call every variant once in each round, another one first each time: {name: [what it returned]}.

    What disturbs the machine for a while then disturbs all of them alike, and no variant always goes last.

    >>> take_turns("sums", {"small": lambda: 1, "large": lambda: 9}, rounds=2)
    {'small': [1, 1], 'large': [9, 9]}
    """
    names = list(variants)
    results = {name: [] for name in names}
    with tqdm(total=rounds * len(names), desc=title, unit="run") as bar:
        for turn in range(rounds):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                bar.set_postfix_str(name if isinstance(name, str) else ", ".join(map(str, name)))
                results[name].append(variants[name]())
                bar.update()
    return results


def ratios(numbers, baseline):
    """Each number over the one of the baseline in the same round.

    >>> ratios([2.0, 3.0], [1.0, 2.0])
    [2.0, 1.5]
    """
    return [number / base for number, base in zip(numbers, baseline, strict=True)]


def spread(numbers, form):
    """The median, and the lowest and highest in brackets.

    >>> spread([1.0, 4.0, 2.0], "{:.1f} s")
    '2.0 s (1.0 s to 4.0 s)'
    """
    middle, low, high = (
        form.format(number) for number in (statistics.median(numbers), min(numbers), max(numbers))
    )
    return middle if low == high else f"{middle} ({low} to {high})"


def table(head, rows, texts=1):
    """A Markdown table; the first columns are texts, the others figures.

    >>> print(table(["job", "time"], [["small", "1 s"]]))
    | job | time |
    |---|---:|
    | small | 1 s |
    """
    rule = "|---" * texts + "|---:" * (len(head) - texts) + "|"
    return "\n".join([_row(head), rule, *(_row(row) for row in rows)])


def _row(cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
