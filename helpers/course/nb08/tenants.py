"""Inside a run: several processes on one card at once, each with a job, and the one that starts and watches them."""

import multiprocessing
import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import cloudpickle

from helpers.course.nb08 import allocator_stats
from helpers.course.nb08.ledger import CardIsFull, open_card
from helpers.jobs.device import open_device
from helpers.jobs.failures import failure_kind, text_of
from helpers.jobs.worker import fork_is_safe

INTERVAL = 0.020
LONGEST_LOG = 200_000
_card = _doors = None
WORDS = {"true": True, "false": False}


def host(size, jobs, memory_limits, growth, environment, after, pause):
    """Start the jobs one after the other, watch the card until all have ended; returns what became of each."""
    card = open_card(size, tempfile.gettempdir())
    context = multiprocessing.get_context("fork" if fork_is_safe() else "spawn")
    tenants = {
        name: Process(context, name, (card, name, job, memory_limits.get(name), growth, environment))
        for name, job in jobs.items()
    }
    samples, began = [], time.monotonic()
    while not all(tenant.ended for tenant in tenants.values()):
        now = time.monotonic() - began
        held = {holder.name: holder for holder in card.holders()}
        samples += [
            (now, name, held[name].reserved, held[name].used) if name in held else (now, name, 0, 0)
            for name in tenants
        ]
        _start_the_next(tenants, held, after, pause, now)
        for tenant in tenants.values():
            tenant.look(now)
        time.sleep(INTERVAL)
    return {"size": card.size, "samples": samples, "tenants": [tenant.facts() for tenant in tenants.values()]}


def _start_the_next(tenants, held, after, pause, now):
    """A job starts when the one that it comes after has ended, else when the one before it lets it in."""
    before = None
    for name, tenant in tenants.items():
        if tenant.began is None:
            waits_for = tenants.get(after.get(name))
            if waits_for.ended if waits_for else before is None or before.lets_in(held, pause, now):
                tenant.start(now)
            return
        if tenant.ended and before:
            before.visitor_gone.set()
        before = tenant


class Process:
    """One process on the card, from the side of the one that started it."""

    def __init__(self, context, name, arguments):
        self.name, self._context, self._arguments = name, context, arguments
        self.began = self.ended = self._in_since = None
        self.result = {}
        self.door_open, self.visitor_gone = context.Event(), context.Event()

    def start(self, now):
        self.began = now
        handle, self._log = tempfile.mkstemp()
        os.close(handle)
        self._hear, say = self._context.Pipe(duplex=False)
        doors = self.door_open, self.visitor_gone
        self._process = self._context.Process(target=live, args=(*self._arguments, self._log, doors, say))
        self._process.start()
        say.close()

    def lets_in(self, held, pause, now):
        """Whether the next one may start: some time after this one uses the card, or when this one says so."""
        if pause is None:
            return self.door_open.is_set() or self.ended
        if self._in_since is None and (self.ended or (self.name in held and held[self.name].used)):
            self._in_since = now
        return self._in_since is not None and now - self._in_since >= pause

    def look(self, now):
        """Take what it says, and notice when it is gone."""
        if self.began is None or self.ended:
            return
        gone = not self._process.is_alive()
        with suppress(EOFError):  # it died without a word
            if self._hear.poll():
                self.result = self._hear.recv()
        if gone:
            self.ended = now

    def facts(self):
        return {
            "name": self.name,
            "began": self.began,
            "ended": self.ended,
            "exit_code": self._process.exitcode,
            "log": Path(self._log).read_text(encoding="utf-8", errors="replace")[-LONGEST_LOG:],
            **self.result,
        }


def live(card, name, job, memory_limit, growth, environment, log, doors, say):
    """The life of a process on the card: take a share, create the device, do the job, tell what became of it."""
    global _card, _doors
    _card, _doors = card, doors
    _write_errors_to(log)
    os.environ.update(environment)
    facts = {"limit": None, "peak": None}
    try:
        growth = _forced_growth(growth)
        facts["limit"] = card.book(name, memory_limit, growth)
        device = open_device(facts["limit"], growth=growth)
        Follower(card, device, facts, say).start()
        value = cloudpickle.loads(job)()
        facts |= {"value": cloudpickle.dumps(value), "peak": device.read()[1]}
    except BaseException as error:
        facts |= _failure(error)
    say.send(facts)
    sys.exit("error" in facts)


def holding():
    """In a job on the card: what its own process has reserved at this moment and uses of it."""
    time.sleep(3 * INTERVAL)  # the follower's next reading
    return next(holder for holder in _card.holders() if holder.pid == os.getpid())


def let_in(seconds=60):
    """In a job on the card: let the next job start, and do nothing until it has ended."""
    door_open, visitor_gone = _doors
    door_open.set()
    visitor_gone.wait(seconds)


def guest_is_gone():
    """In a job on the card: whether the job that started after it has ended."""
    return _doors[1].is_set()


def _write_errors_to(file):
    """What TensorFlow has to say belongs to this process, not to the cell that shows all of them."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def _forced_growth(growth):
    """On a GPU TensorFlow itself obeys this variable, over whatever the program says; the ledger does it here."""
    word = os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH")
    return growth if word is None else WORDS.get(word, growth)


def _failure(error):
    kind = "device" if isinstance(error, CardIsFull) else failure_kind(error)
    return {"kind": kind, "error": f"{type(error).__name__}: {text_of(error)}"}


class Follower(threading.Thread):
    """In a process on the card: keeps its booking at what its pool has reserved and says what tensors use of it."""

    def __init__(self, card, device, facts, say):
        super().__init__(name="card-follower", daemon=True)
        self.card, self.device, self.facts, self.say = card, device, facts, say

    def run(self):
        while True:
            used, peak = self.device.read()
            try:
                self.card.follow(allocator_stats.reserved() or peak, used)
            except CardIsFull as error:
                # A GPU refuses the memory; here the pool has it already, so that the process has to go.
                self.say.send(self.facts | _failure(error))
                os._exit(1)
            time.sleep(INTERVAL)
