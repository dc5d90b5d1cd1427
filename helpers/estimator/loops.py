"""Loops in a replayed graph: how long they are, and how a few iterations stand for many."""

from dataclasses import replace

import numpy

from helpers.estimator.buffers import Tensor
from helpers.estimator.inference import known_value

STEPS = 8
"""A long loop is replayed in so many steps beside what is replayed one by one. Such a step stands for many iterations,
and keeps for the backward pass what they all would keep."""
LONGEST = 2**30


class Loop:
    """One execution of a loop: its invariants, what is under way in it, and what waits for its turn."""

    def __init__(self, program, enter, outside):
        self.program = program
        self.frame = enter.frame
        self.parallel = enter.parallel
        self.one_by_one = enter.parallel + 2
        """Iterations next to the turn from the forward to the backward pass that are not put together: more than are
        under way at a time, because what is under way there makes the peak. The one at the other end, which gets what
        comes from outside, stands for itself too."""
        self.outside = outside
        self.awaited = program.entries[enter.frame]
        self.iterations = []
        self.entered = {}
        """Index of an entry -> the value that came in there, if it is known."""
        self.invariants = []
        self.deferred = []
        self.oldest = 0
        self.dead = False
        self.length = 0
        self.counters = {}
        """Index of a NextIteration -> (value in the first iteration, what an iteration adds), in a long loop."""

    def advance(self):
        """Retire the iterations in which nothing is left to do."""
        if not self.awaited:
            while self.oldest < len(self.iterations) and not self.iterations[self.oldest].under_way:
                self.oldest += 1

    @property
    def done(self):
        """Whether nothing will happen in this loop any more."""
        return self.oldest == len(self.iterations) and not self.deferred

    def plan(self):
        """Find out how long the loop is, once its counters have come in; a long one is replayed in steps."""
        if self.frame in self.program.nested:
            return
        counters = _counters(self.program.carried[self.frame], self.entered)
        length = _length(self.program.conditions[self.frame], counters, self.entered)
        if length is not None and length > self.one_by_one + STEPS + 1:
            self.length = length
            self.counters = {
                following.index: counters[merge.index]
                for _, merge, following in self.program.carried[self.frame]
                if merge.index in counters
            }

    def weight(self, number):
        """How many iterations a replayed one stands for."""
        return self._position(number + 1) - self._position(number) if self.counters else 1

    def _position(self, number):
        """The iteration that a replayed one begins with."""
        if self.frame in self.program.backward:
            return self._distance(number)
        return self.length - self._distance(self.one_by_one + STEPS + 1 - number)

    def _distance(self, number):
        """How many iterations so many replayed ones stand for, counted from the turn."""
        if number <= self.one_by_one:
            return number
        if number > self.one_by_one + STEPS:
            return self.length
        return self.one_by_one + (number - self.one_by_one) * (self.length - self.one_by_one - 1) // STEPS

    def counted(self, node, outputs, number):
        """What a loop variable has at the begin of a replayed iteration: a counter goes ahead by several steps."""
        if node.index not in self.counters:
            return outputs
        first, step = self.counters[node.index]
        return [replace(outputs[0], value=first + step * self._position(number))]


def _counters(carried, entered):
    """The loop variables that change by the same amount in each iteration: {index of the merge: (first, amount)}."""
    first = {merge.index: entered.get(enter.index) for enter, merge, _ in carried}
    states = [{index: value for index, value in first.items() if _is_number(value)}]
    for _ in range(2):
        values = {
            merge.index: _value(following, 0, states[-1], entered, {}) for _, merge, following in carried
        }
        states.append({index: value for index, value in values.items() if _is_number(value)})
    start, second, third = states
    return {
        index: (start[index], second[index] - start[index])
        for index in start
        if index in third and index in second and third[index] - second[index] == second[index] - start[index]
    }


def _is_number(value):
    return value is not None and not isinstance(value, str) and numpy.ndim(value) == 0


def _length(condition, counters, entered):
    """In which iteration the condition becomes false, given how its counters go on; None if that is not known."""

    def goes_on(number):
        state = {index: first + step * number for index, (first, step) in counters.items()}
        return _value(condition, 0, state, entered, {})

    if goes_on(0) is None:
        return None
    low, high = 0, 1
    while goes_on(high):
        low, high = high, 2 * high
        if high > LONGEST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if goes_on(middle) else (low, middle)
    return high


def _value(node, port, state, entered, known):
    """The value of a node in an iteration in which the loop variables have the values of `state`; None if unknown."""
    if node.index in state:
        return state[node.index]
    if node.op == "Enter":
        return entered.get(node.index)
    if node.op == "Merge":
        return None
    if node.index not in known:
        known[node.index] = None
        values = [_value(producer, number, state, entered, known) for producer, number in node.producers]
        if node.op in ("Switch", "NextIteration", "Identity", "LoopCond"):
            known[node.index] = values[0]
        elif port < node.output_count and node.outputs[port][2] is not None:
            known[node.index] = node.outputs[port][2]
        else:
            known[node.index] = known_value(node, port, [Tensor(value=value) for value in values])
    return known[node.index]
