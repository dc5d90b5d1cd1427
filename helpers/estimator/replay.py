"""A short training run replayed on the allocator: build the model, load the data, make the slots, take steps."""

import contextlib
import gc
import math
import random
from collections import defaultdict, deque

from helpers.estimator.allocator import Allocator
from helpers.estimator.buffers import Memory, Tensor, size_of
from helpers.estimator.executor import Executor
from helpers.estimator.graph import CALL
from helpers.estimator.program import Program

STEPS = 12
"""Steps that are replayed, if the data has so many: from step to step the free places are cut up further, and the peak
grows with that for some steps."""
STEPS_WITH_LOOPS = 1
"""A step of a model with loops takes long to replay: it gets one, with the slots as they are from the second on."""
DECIDED = (True, True, False)
"""What a condition on data says in one step after the other, such as whether accumulated gradients are applied."""
AHEAD = 2
"""Batches of a stream that are ready when a step begins, its own among them; of arrays, which are cut in parallel, one
more. While the step runs, the next one arrives."""
LARGEST_CONSTANT = 64 * 2**20
"""Zeros below this size become constants when the optimizer is built, and are made before the larger ones."""
ORDERS = range(3)
"""Short replays that differ where TensorFlow leaves the order open: which nodes without inputs come first."""
SHORT = 4


def replay(step, batch_size, samples, threads, progress):
    """The typical replay of a few: the median. A long one, or that of a model with loops, is made once."""
    program = Program(step, batch_size)
    results = []
    once = program.entries or _steps(batch_size, samples) > SHORT
    with _no_collection():
        for order in ORDERS[:1] if once else ORDERS:
            results.append(Replay(step, program, batch_size, samples, threads, order))
            progress()
    return sorted(results, key=lambda result: result.peak)[len(results) // 2]


@contextlib.contextmanager
def _no_collection():
    """Python looks through all of TensorFlow's objects for garbage whenever many new ones were made."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class Replay:
    """The memory of a training run, without the run."""

    def __init__(self, step, program, batch_size, samples, threads, order):
        self.step = step
        self.allocator = Allocator()
        self.memory = Memory(self.allocator)
        self.variables = {}
        self.ready = deque()
        self.samples = samples
        self.batches = math.inf
        self.threads = threads
        self.order = order
        self.batch_size = batch_size
        self.program = program
        self._create_weights()
        self._load_data()
        self._create_slots()
        self._train()

    @property
    def peak(self):
        """The most bytes in use at one time."""
        return self.allocator.peak

    def shares(self):
        """Who held how much at the peak: {(part, layer): bytes}, adding up to the peak."""
        shares = defaultdict(int)
        for owner, requested, size in self.allocator.holders():
            shares[self._share(owner)] += requested
            shares["unused", "allocator"] += size - requested
        return dict(shares)

    def _create_weights(self):
        """Random initial values take two more buffers of their size while they are drawn and scaled."""
        for name, (shape, dtype, kind, layer) in self.step.variables.items():
            if kind == "weights":
                tensor = Tensor(shape, dtype)
                copies = range(2 if len(shape) > 1 else 0)
                drawn = [self.allocator.allocate(size_of(tensor), ("weights", layer)) for _ in copies]
                self._create(name, tensor, (kind, layer))
                for chunk in reversed(drawn):
                    self.allocator.free(chunk)

    def _create(self, name, tensor, owner):
        tensor.buffer = self.memory.new(size_of(tensor), owner)
        self._store(name, tensor)

    def _store(self, name, tensor):
        self.memory.hold(tensor)
        self.variables[name] = tensor

    def _create_slots(self):
        """Zeros of one shape are made once; the variables share them until the first step writes to them."""
        slots = [(name, *about) for name, about in self.step.variables.items() if about[2] == "optimizer"]
        shared = {}
        slots.sort(key=lambda slot: size_of(Tensor(*slot[1:3])) >= LARGEST_CONSTANT)
        for name, shape, dtype, _, layer in slots:
            same = shared.get((shape, dtype)) if shape and not self.program.entries else None
            if same is None:
                self._create(name, Tensor(shape, dtype), ("optimizer", layer))
                shared[shape, dtype] = self.variables[name]
            else:
                self._store(name, Tensor(same.shape, same.dtype, same.buffer))

    def _load_data(self):
        """Arrays are copied to the device as a whole; a stream of batches is not."""
        self.batch = next(node for node in self.program.nodes if node.op == "IteratorGetNext").outputs
        if self.samples is not None:
            for shape, dtype, _ in self.batch:
                whole = Tensor((self.samples, *shape[1:]), dtype)
                self.allocator.allocate(size_of(whole), ("batch", "batch"))
            self.batches = -(-self.samples // self.batch_size)

    def _fetch(self):
        """One more batch is ready on the device, unless it was the last."""
        if self.batches == 0:
            return
        self.batches -= 1
        tensors = []
        for shape, dtype, _ in self.batch:
            tensor = Tensor(shape, dtype)
            tensor.buffer = self.memory.new(size_of(tensor), ("batch", "batch"))
            self.memory.hold(tensor)
            tensors.append(tensor)
        self.ready.append(tensors)

    def _take(self):
        """What the iterator delivers; when the arrays are at their end it starts again."""
        if not self.ready:
            self.batches = math.inf
            self._fetch()
        return [self.memory.hand_over(tensor) for tensor in self.ready.popleft()]

    def _train(self):
        executor = Executor(self.program, self.memory, self.variables, self.threads)
        executor.take_batch, executor.fetch_batch = self._take, self._fetch
        for _ in range(AHEAD if self.samples is None else AHEAD + 1):
            self._fetch()
        if self.order:
            random.Random(self.order).shuffle(self.program.roots)
        steps = STEPS_WITH_LOOPS if self.program.entries else _steps(self.batch_size, self.samples)
        undecided = any(node.op == "Switch" for node in self.program.nodes) and not self.program.entries
        for number in range(max(steps, len(DECIDED) + 1) if undecided else steps):
            executor.predicate = DECIDED[number % len(DECIDED)] if undecided else True
            executor.run()

    def _share(self, owner):
        node, role = owner
        if isinstance(node, str):
            return node, role
        name = node.name.removeprefix(CALL + "/")
        backward = name.startswith("gradient_tape/")
        layer = self._layer(name.removeprefix("gradient_tape/"))
        if role != "output":
            return "temporaries", layer
        if backward:
            feeds_optimizer = any("gradient_tape/" not in consumer.name for _, consumer, _ in node.consumers)
            return ("gradients" if feeds_optimizer else "temporaries"), layer
        return ("temporaries" if layer == "optimizer" else "activations"), layer

    def _layer(self, name):
        scope = name
        while scope:
            if scope in self.step.scopes:
                return self.step.scopes[scope]
            scope = scope.rpartition("/")[0]
        return "loss" if name.startswith("compile_loss") else "optimizer"


def _steps(batch_size, samples):
    return STEPS if samples is None else min(STEPS, -(-samples // batch_size))
