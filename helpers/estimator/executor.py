"""A training step replayed without running it: the order of TensorFlow's executor, buffer by buffer."""

import math
from collections import deque

from helpers.estimator.buffers import DEAD, size_of
from helpers.estimator.loops import Loop


class Iteration:
    """Where a node runs: one pass through a loop body, or the step itself, which has no loop around it.

    It knows what has arrived, what is still waited for, and the loops that were started in it.
    """

    __slots__ = ("loop", "number", "weight", "loops", "pending", "inputs", "dead", "under_way")

    def __init__(self, program, loop=None, number=0, weight=0):
        self.loop = loop
        self.number = number
        self.weight = weight
        self.loops = {}
        self.pending = program.pending.copy()
        self.inputs = [DEAD] * program.slots
        self.dead = set()
        self.under_way = 0


class Executor:
    """Runs the nodes of a program in the order of `executor.cc` with one inter-op thread.

    Cheap nodes run at once, first come first served. Of the expensive ones that become ready together the
    last runs next and the others go to the front of the thread's queue: last in, first out.
    """

    def __init__(self, program, memory, variables, threads):
        self.program = program
        self.memory = memory
        self.variables = variables
        self.threads = threads
        """How many of them a kernel can spread its work over."""
        self.constants = {}
        self.take_batch = None
        """Called for the tensors of the batch that a step works on."""
        self.fetch_batch = None
        """Called when the next batch arrives on the device, while the step is under way."""
        self.predicate = True
        """What a condition says whose value only the data knows."""

    def run(self):
        """Run every node once, those of a loop once per iteration."""
        self.queue = deque()
        self.delayed = deque()
        step = Iteration(self.program)
        self._work([(node, step) for node in self.program.roots])
        arrives_at = math.inf
        while self.queue or self.delayed:
            if self.queue:
                self._work([self.queue.popleft()])
            else:
                arrives_at = self._deliver_batch()
            if self.memory.allocator.in_use > arrives_at:
                self.fetch_batch()
                arrives_at = math.inf
        if arrives_at < math.inf:
            self.fetch_batch()

    def _deliver_batch(self):
        """Go on with the batch; returns how much is in use when the next one will have arrived.

        That takes another thread some time: the step has computed more than a batch by then.
        """
        node, iteration, outputs = self.delayed.popleft()
        self._activate(node, iteration, outputs, False, self.queue)
        self._release(outputs)
        return self.memory.allocator.in_use + sum(map(size_of, outputs))

    def _work(self, ready):
        inline = deque()
        while True:
            expensive = []
            for task in ready:
                node, iteration = task
                (inline if node.cheap or node.index in iteration.dead else expensive).append(task)
            if expensive:
                if not inline:
                    inline.append(expensive.pop())
                self.queue.extendleft(expensive)
            if not inline:
                return
            ready = self._process(*inline.popleft())

    def _process(self, node, iteration):
        """Run a node and hand its outputs on; returns who has all that it needs now."""
        inputs = iteration.inputs[node.first : node.last]
        dead = node.index in iteration.dead
        if dead:
            outputs = [DEAD] * node.output_count
        else:
            self.memory.weight = iteration.weight
            outputs = node.kernel(node, inputs, self)
        ready = []
        move = MOVES.get(node.op)
        if move is None:
            self._activate(node, iteration, outputs, dead, ready)
        else:
            move(self, node, iteration, outputs, dead, ready)
        self._release(inputs)
        for tensor in outputs:
            if tensor.buffer is not None and not tensor.buffer.references:
                self.memory.free(tensor.buffer)
        if move is not None or not ready:
            self._count(ready, iteration)
        elif iteration.loop is not None:
            _add_under_way(iteration, len(ready) - 1)
        return ready

    def _release(self, tensors):
        for tensor in tensors:
            self.memory.release(tensor)

    def _delay(self, node, iteration, outputs, dead, ready):
        """A batch arrives when all else is done."""
        for tensor in outputs:
            self.memory.hold(tensor)
        self.delayed.append((node, iteration, outputs))

    def _enter(self, node, outside, outputs, dead, ready):
        loop = outside.loops.get(node.frame)
        if loop is None:
            loop = outside.loops[node.frame] = Loop(self.program, node, outside)
            self._start(loop, ready)
        loop.awaited -= 1
        if dead:
            self._skip(node.frame, loop, ready)
            return
        loop.entered[node.index] = outputs[0].value
        if node.constant:
            loop.invariants.append((node, outputs))
            for tensor in outputs:
                self.memory.hold(tensor)
            for iteration in loop.iterations:
                self._activate(node, iteration, outputs, False, ready)
        else:
            self._activate(node, loop.iterations[0], outputs, False, ready)

    def _skip(self, frame, loop, ready):
        """A loop in a branch that is not taken: its results are dead."""
        if not loop.dead:
            loop.dead = True
            for node in self.program.exits[frame]:
                self._activate(node, loop.outside, [DEAD], True, ready)

    def _exit(self, node, iteration, outputs, dead, ready):
        self._activate(node, iteration.loop.outside, outputs, dead, ready)

    def _next_iteration(self, node, iteration, outputs, dead, ready):
        """Start the next iteration, unless too many are under way: then the value waits."""
        if dead:
            return
        loop, following = iteration.loop, iteration.number + 1
        outputs = loop.counted(node, outputs, following)
        if following == len(loop.iterations):
            if following - loop.oldest >= loop.parallel:
                loop.deferred.append((node, outputs))
                for tensor in outputs:
                    self.memory.hold(tensor)
                return
            self._start(loop, ready)
        self._activate(node, loop.iterations[following], outputs, False, ready)

    def _condition(self, node, iteration, outputs, dead, ready):
        """The condition of a loop; when it is asked first, all that says how long the loop is has arrived."""
        if not dead and not iteration.number:
            iteration.loop.plan()
            iteration.weight = iteration.loop.weight(0)
        self._activate(node, iteration, outputs, dead, ready)

    def _start(self, loop, ready):
        number = len(loop.iterations)
        iteration = Iteration(self.program, loop, number, loop.weight(number))
        loop.iterations.append(iteration)
        for node, outputs in loop.invariants:
            self._activate(node, iteration, outputs, False, ready)

    def _count(self, ready, iteration):
        """Keep account of what is under way in each loop; go on with those that wait, end those that are done."""
        for _, where in ready:
            _add_under_way(where, 1)
        idle = []
        while iteration.loop is not None:
            iteration.under_way -= 1
            if not iteration.under_way:
                idle.append(iteration.loop)
            iteration = iteration.loop.outside
        for loop in reversed(idle):
            loop.advance()
            if loop.deferred and len(loop.iterations) - loop.oldest < loop.parallel:
                self._resume(loop, ready)
            if loop.done:
                for _, outputs in loop.invariants:
                    self._release(outputs)
                loop.invariants = []

    def _resume(self, loop, ready):
        """Only the iteration after the newest has values that wait."""
        resumed = []
        waiting, loop.deferred = loop.deferred, []
        self._start(loop, resumed)
        for node, outputs in waiting:
            self._activate(node, loop.iterations[-1], outputs, False, resumed)
            self._release(outputs)
        for _, iteration in resumed:
            _add_under_way(iteration, 1)
        ready.extend(resumed)

    def _activate(self, node, iteration, outputs, dead, ready):
        """Deliver the outputs to those who wait for them, and note who has all that it needs."""
        pending, inputs = iteration.pending, iteration.inputs
        for port, consumer, slot in node.consumers:
            tensor = outputs[port]
            if tensor is DEAD:
                arrived = self._arrive_dead(iteration, consumer)
            elif consumer.merges and not pending[consumer.index]:
                continue
            else:
                if tensor.buffer is not None:
                    tensor.buffer.references += 1
                inputs[slot] = tensor
                pending[consumer.index] = 0 if consumer.merges else pending[consumer.index] - 1
                arrived = not pending[consumer.index]
            if arrived:
                ready.append((consumer, iteration))
        for consumer in node.control_consumers:
            if dead:
                arrived = self._arrive_dead(iteration, consumer)
            else:
                pending[consumer.index] -= 1
                arrived = not pending[consumer.index]
            if arrived:
                ready.append((consumer, iteration))

    @staticmethod
    def _arrive_dead(iteration, consumer):
        """Whatever has a dead input is dead; a merge only if all are. An exit that is dead does nothing."""
        pending = iteration.pending
        if consumer.op == "Exit" or not pending[consumer.index]:
            return False
        pending[consumer.index] -= 1
        if not consumer.merges or not pending[consumer.index]:
            iteration.dead.add(consumer.index)
        return not pending[consumer.index]


def _add_under_way(iteration, count):
    while iteration.loop is not None:
        iteration.under_way += count
        iteration = iteration.loop.outside


MOVES = {
    "Enter": Executor._enter,
    "Exit": Executor._exit,
    "NextIteration": Executor._next_iteration,
    "LoopCond": Executor._condition,
    "IteratorGetNext": Executor._delay,
}
"""Nodes whose outputs go elsewhere than to their consumers in the same iteration, or later."""
