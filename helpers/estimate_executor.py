"""A training step replayed without running it: the order of TensorFlow's executor, buffer by buffer."""

from collections import deque

from helpers import estimate_kernels as kernels
from helpers.estimate_memory import DEAD


class Iteration:
    """Where a node runs: one pass through a loop body, or the step itself, which has no loop around it.

    It knows what has arrived, what is still waited for, and the loops that were started in it.
    """

    __slots__ = ("loop", "number", "loops", "pending", "inputs", "dead", "merged")

    def __init__(self, loop=None, number=0):
        self.loop = loop
        self.number = number
        self.loops = {}
        self.pending = {}
        self.inputs = {}
        self.dead = {}
        self.merged = set()


class Loop:
    """One execution of a loop: its invariants, what is under way in it, and what waits for its turn."""

    def __init__(self, outside, awaited, parallel):
        self.outside = outside
        self.awaited = awaited
        self.parallel = parallel
        self.iterations = [Iteration(self)]
        self.under_way = [0]
        self.invariants = []
        self.deferred = []
        self.oldest = 0
        self.dead = False

    @property
    def newest(self):
        return len(self.iterations) - 1

    def start(self):
        """Begin the next iteration."""
        self.iterations.append(Iteration(self, len(self.iterations)))
        self.under_way.append(0)
        return self.iterations[-1]

    def advance(self):
        """Retire the iterations in which nothing is left to do."""
        if not self.awaited:
            while self.oldest <= self.newest and not self.under_way[self.oldest]:
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
        self.queue = deque()
        self.delayed = deque()
        step = Iteration()
        self._work([(node, step) for node in self.program.roots])
        while self.queue or self.delayed:
            if self.queue:
                self._work([self.queue.popleft()])
            else:
                self.queue.extend(self._propagate(*self.delayed.popleft()))

    def _work(self, ready):
        inline = deque()
        self._schedule(ready, inline)
        while inline:
            node, iteration = inline.popleft()
            self._schedule(self._process(node, iteration), inline)

    def _schedule(self, ready, inline):
        expensive = []
        for node, iteration in ready:
            if node.cheap or node.index in iteration.dead:
                inline.append((node, iteration))
            else:
                expensive.append((node, iteration))
        if expensive:
            if not inline:
                inline.append(expensive.pop())
            self.queue.extendleft(expensive)

    def _process(self, node, iteration):
        received = iteration.inputs.pop(node.index, {})
        inputs = [received.get(slot, DEAD) for slot in range(node.input_count)]
        dead = iteration.dead.pop(node.index, 0) > 0
        outputs = [DEAD] * node.output_count if dead else kernels.compute(node, inputs, self)
        for tensor in outputs:
            if tensor.buffer is not None:
                tensor.buffer.references += 1
        for tensor in inputs:
            if tensor.buffer is not None:
                self.memory.release(tensor)
        if node.op == "IteratorGetNext":
            self.delayed.append((node, iteration, outputs, dead))
            return []
        return self._propagate(node, iteration, outputs, dead)

    def _propagate(self, node, iteration, outputs, dead):
        ready = []
        if node.op == "Enter":
            self._enter(node, iteration, outputs, dead, ready)
        elif node.op == "NextIteration":
            if not dead:
                self._next_iteration(node, iteration, outputs, ready)
        elif node.op == "Exit":
            if not dead:
                self._activate(node, iteration.loop.outside, outputs, dead, ready)
        else:
            self._activate(node, iteration, outputs, dead, ready)
        for tensor in outputs:
            if tensor.buffer is not None:
                self.memory.release(tensor)
        self._count(ready, iteration)
        return ready

    def _enter(self, node, outside, outputs, dead, ready):
        loop = outside.loops.get(node.frame)
        if loop is None:
            loop = outside.loops[node.frame] = Loop(outside, self.program.entries[node.frame], node.parallel)
        loop.awaited -= 1
        if dead:
            self._skip(node.frame, loop, ready)
        elif node.constant:
            loop.invariants.append((node, outputs))
            for tensor in outputs:
                self.memory.hold(tensor)
            for iteration in loop.iterations:
                self._activate(node, iteration, outputs, dead, ready)
        else:
            self._activate(node, loop.iterations[0], outputs, dead, ready)

    def _skip(self, frame, loop, ready):
        """A loop in a branch that is not taken: its results are dead."""
        if not loop.dead:
            loop.dead = True
            for node in self.program.exits[frame]:
                self._activate(node, loop.outside, [DEAD], True, ready)

    def _next_iteration(self, node, iteration, outputs, ready):
        """Start the next iteration, unless too many are under way: then the value waits."""
        loop, following = iteration.loop, iteration.number + 1
        if following <= loop.newest:
            self._activate(node, loop.iterations[following], outputs, False, ready)
        elif following - loop.oldest < loop.parallel:
            self._start(loop, ready)
            self._activate(node, loop.iterations[following], outputs, False, ready)
        else:
            loop.deferred.append((node, outputs))
            for tensor in outputs:
                self.memory.hold(tensor)

    def _start(self, loop, ready):
        iteration = loop.start()
        for node, outputs in loop.invariants:
            self._activate(node, iteration, outputs, False, ready)

    def _count(self, ready, iteration):
        """Keep account of what is under way in each loop; go on with those that wait, end those that are done."""
        self._add_under_way(ready)
        around = []
        while iteration.loop is not None:
            iteration.loop.under_way[iteration.number] -= 1
            around.append(iteration.loop)
            iteration = iteration.loop.outside
        for loop in reversed(around):
            loop.advance()
            if loop.deferred and loop.newest + 1 - loop.oldest < loop.parallel:
                self._resume(loop, ready)
            if loop.done:
                for _, outputs in loop.invariants:
                    for tensor in outputs:
                        self.memory.release(tensor)
                loop.invariants = []

    def _resume(self, loop, ready):
        """Only the iteration after the newest has values that wait."""
        resumed = []
        waiting, loop.deferred = loop.deferred, []
        self._start(loop, resumed)
        for node, outputs in waiting:
            self._activate(node, loop.iterations[-1], outputs, False, resumed)
            for tensor in outputs:
                self.memory.release(tensor)
        self._add_under_way(resumed)
        ready.extend(resumed)

    @staticmethod
    def _add_under_way(ready):
        for _, iteration in ready:
            while iteration.loop is not None:
                iteration.loop.under_way[iteration.number] += 1
                iteration = iteration.loop.outside

    def _activate(self, node, iteration, outputs, dead, ready):
        for port, consumer, slot in node.consumers:
            tensor = DEAD if dead else outputs[port]
            deliver = self._deliver_to_merge if consumer.op == "Merge" else self._deliver
            if deliver(iteration, consumer, slot, tensor):
                ready.append((consumer, iteration))
        for consumer in node.control_consumers:
            if consumer.op != "Merge" and self._deliver(iteration, consumer, None, DEAD if dead else None):
                ready.append((consumer, iteration))

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
