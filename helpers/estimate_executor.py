"""A training step replayed without running it: the order of TensorFlow's executor, buffer by buffer."""

from collections import defaultdict, deque

from helpers import estimate_kernels as kernels
from helpers.estimate_memory import DEAD

ROOT = ()
"""Where a node runs: a path of (loop, iteration); the empty path is outside all loops."""


class Iteration:
    """One pass through a loop body (or the step itself): what has arrived and what is still waited for."""

    __slots__ = ("pending", "inputs", "dead", "merged")

    def __init__(self):
        self.pending = {}
        self.inputs = {}
        self.dead = {}
        self.merged = set()


class Loop:
    """One execution of a loop: its invariants, what is under way in it, and what waits for its turn."""

    def __init__(self, awaited, parallel):
        self.awaited = awaited
        self.parallel = parallel
        self.under_way = defaultdict(int)
        self.invariants = []
        self.deferred = []
        self.oldest = 0
        self.newest = 0
        self.dead = False

    def advance(self):
        """Retire the iterations in which nothing is left to do."""
        while self.oldest <= self.newest and not self.under_way[self.oldest] and not self.awaited:
            self.oldest += 1

    @property
    def done(self):
        """Whether nothing will happen in this loop any more."""
        return self.oldest > self.newest and not self.deferred


class Executor:
    """Runs the nodes of a program in the order of `executor.cc` with one inter-op thread.

    Cheap nodes run at once, first come first served. Of the expensive ones that become ready together the
    last runs next and the others go to the front of the thread's queue: last in, first out.
    """

    def __init__(self, program, memory, variables):
        self.program = program
        self.memory = memory
        self.variables = variables
        self.constants = {}
        self.next_batch = None
        self.predicate = True
        """What a condition says whose value only the data knows."""

    def run(self):
        """Run every node once, those of a loop once per iteration."""
        self.iterations = {ROOT: Iteration()}
        self.loops = {}
        self.queue = deque()
        self.delayed = deque()
        self._work([(node, ROOT) for node in self.program.roots])
        while self.queue or self.delayed:
            if self.queue:
                self._work([self.queue.popleft()])
            else:
                self.queue.extend(self._propagate(*self.delayed.popleft()))

    def _work(self, ready):
        inline = deque()
        self._schedule(ready, inline)
        while inline:
            node, path = inline.popleft()
            self._schedule(self._process(node, path), inline)

    def _schedule(self, ready, inline):
        expensive = []
        for node, path in ready:
            if node.cheap or node.index in self.iterations[path].dead:
                inline.append((node, path))
            else:
                expensive.append((node, path))
        if expensive and not inline:
            inline.append(expensive.pop())
        self.queue.extendleft(expensive)

    def _process(self, node, path):
        iteration = self.iterations[path]
        received = iteration.inputs.pop(node.index, {})
        inputs = [received.get(slot, DEAD) for slot in range(node.input_count)]
        dead = iteration.dead.pop(node.index, 0) > 0
        outputs = [DEAD] * node.output_count if dead else kernels.compute(node, inputs, self)
        for tensor in outputs:
            self.memory.hold(tensor)
        for tensor in inputs:
            self.memory.release(tensor)
        if node.op == "IteratorGetNext":
            self.delayed.append((node, path, outputs, dead))
            return []
        return self._propagate(node, path, outputs, dead)

    def _propagate(self, node, path, outputs, dead):
        ready = []
        if node.op == "Enter":
            self._enter(node, path, outputs, dead, ready)
        elif node.op == "NextIteration":
            if not dead:
                self._next_iteration(node, path, outputs, ready)
        elif node.op == "Exit":
            if not dead:
                self._activate(node, path[:-1], outputs, dead, ready)
        else:
            self._activate(node, path, outputs, dead, ready)
        for tensor in outputs:
            self.memory.release(tensor)
        self._count(ready, path)
        return ready

    def _enter(self, node, path, outputs, dead, ready):
        first = (*path, (node.frame, 0))
        loop = self.loops.get((path, node.frame))
        if loop is None:
            loop = self.loops[path, node.frame] = Loop(self.program.entries[node.frame], node.parallel)
            self.iterations[first] = Iteration()
        loop.awaited -= 1
        if dead:
            self._skip(node.frame, loop, path, ready)
        elif node.constant:
            loop.invariants.append((node, outputs))
            for tensor in outputs:
                self.memory.hold(tensor)
            for number in range(loop.newest + 1):
                self._activate(node, (*path, (node.frame, number)), outputs, dead, ready)
        else:
            self._activate(node, first, outputs, dead, ready)

    def _skip(self, frame, loop, path, ready):
        """A loop in a branch that is not taken: its results are dead."""
        if not loop.dead:
            loop.dead = True
            for node in self.program.exits[frame]:
                self._activate(node, path, [DEAD], True, ready)

    def _next_iteration(self, node, path, outputs, ready):
        """Start the next iteration, unless too many are under way: then the value waits."""
        parent, (frame, number) = path[:-1], path[-1]
        loop = self.loops[parent, frame]
        following = (*parent, (frame, number + 1))
        if following in self.iterations:
            self._activate(node, following, outputs, False, ready)
        elif number + 1 - loop.oldest < loop.parallel:
            self._start(loop, following, ready)
            self._activate(node, following, outputs, False, ready)
        else:
            loop.deferred.append((node, outputs, following))
            for tensor in outputs:
                self.memory.hold(tensor)

    def _start(self, loop, path, ready):
        self.iterations[path] = Iteration()
        loop.newest = path[-1][1]
        for node, outputs in loop.invariants:
            self._activate(node, path, outputs, False, ready)

    def _count(self, ready, path):
        """Keep account of what is under way in each loop; go on with those that wait, end those that are done."""
        self._add_under_way(ready)
        for depth in reversed(range(len(path))):
            loop = self.loops[path[:depth], path[depth][0]]
            loop.under_way[path[depth][1]] -= 1
        for depth in range(len(path)):
            loop = self.loops[path[:depth], path[depth][0]]
            loop.advance()
            if loop.deferred and loop.newest + 1 - loop.oldest < loop.parallel:
                self._resume(loop, ready)
            if loop.done:
                for _, outputs in loop.invariants:
                    for tensor in outputs:
                        self.memory.release(tensor)
                loop.invariants = []

    def _resume(self, loop, ready):
        resumed = []
        waiting, loop.deferred = loop.deferred, []
        self._start(loop, waiting[0][2], resumed)
        for node, outputs, path in waiting:
            self._activate(node, path, outputs, False, resumed)
            for tensor in outputs:
                self.memory.release(tensor)
        self._add_under_way(resumed)
        ready.extend(resumed)

    def _add_under_way(self, ready):
        for _, path in ready:
            for depth in range(len(path)):
                self.loops[path[:depth], path[depth][0]].under_way[path[depth][1]] += 1

    def _activate(self, node, path, outputs, dead, ready):
        iteration = self.iterations[path]
        for port, consumer, slot in node.consumers:
            tensor = DEAD if dead else outputs[port]
            deliver = self._deliver_to_merge if consumer.op == "Merge" else self._deliver
            if deliver(iteration, consumer, slot, tensor):
                ready.append((consumer, path))
        for consumer in node.control_consumers:
            if consumer.op != "Merge" and self._deliver(iteration, consumer, None, DEAD if dead else None):
                ready.append((consumer, path))

    def _deliver(self, iteration, consumer, slot, tensor):
        index = consumer.index
        if tensor is DEAD:
            iteration.dead[index] = iteration.dead.get(index, 0) + 1
        elif slot is not None:
            iteration.inputs.setdefault(index, {})[slot] = tensor
            self.memory.hold(tensor)
        pending = iteration.pending.pop(index, consumer.pending) - 1
        if pending:
            iteration.pending[index] = pending
        return not pending

    def _deliver_to_merge(self, iteration, consumer, slot, tensor):
        """A merge takes the first live input; it is dead when all its inputs are."""
        index = consumer.index
        if index in iteration.merged:
            return False
        if tensor is DEAD:
            pending = iteration.pending.pop(index, consumer.input_count) - 1
            iteration.pending[index] = pending
            if pending:
                return False
            iteration.dead[index] = 1
        else:
            iteration.inputs[index] = {slot: tensor}
            self.memory.hold(tensor)
        iteration.merged.add(index)
        return True
