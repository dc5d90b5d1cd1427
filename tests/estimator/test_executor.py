"""The executor: TensorFlow's order, no work in branches that are not taken, as many iterations as the loop has."""

import pytest
import tensorflow as tf

from helpers.estimator.allocator import Allocator
from helpers.estimator.buffers import Memory
from helpers.estimator.executor import Executor
from helpers.estimator.program import Program
from helpers.estimator.trace import Step

VALUES = 1024
BYTES = 4 * VALUES


class Graph:
    """A graph that is written down node by node, loops included, and replayed once."""

    def __init__(self):
        self.graph_def = tf.compat.v1.GraphDef()
        self.ran = []

    def add(self, name, op, *inputs, dtype=tf.float32, **attributes):
        node = self.graph_def.node.add(name=name, op=op, input=inputs)
        if op != "NoOp":
            node.attr["dtype" if op in ("Placeholder", "Const") else "T"].type = dtype.as_datatype_enum
        for key, value in attributes.items():
            node.attr[key].CopyFrom(value)
        if op == "LoopCond":
            del node.attr["T"]

    def source(self, name):
        shape = tf.TensorShape((VALUES,)).as_proto()
        self.add(name, "Placeholder", shape=tf.compat.v1.AttrValue(shape=shape))

    def constant(self, name, value, dtype):
        self.add(
            name,
            "Const",
            dtype=dtype,
            value=tf.compat.v1.AttrValue(tensor=tf.make_tensor_proto(value, dtype)),
        )

    def replay(self):
        program = Program(Step(self.graph_def, {}, {}), batch_size=1)
        for node in program.nodes:
            node.kernel = self._noted(node.kernel)
        self.allocator = Allocator()
        executor = Executor(program, Memory(self.allocator), {}, threads=1)
        executor.run()
        return executor

    def _noted(self, kernel):
        def note(node, inputs, executor):
            self.ran.append(node.name)
            return kernel(node, inputs, executor)

        return note


@pytest.fixture
def graph():
    return Graph()


def test_of_those_that_become_ready_together_the_last_runs_first(graph):
    graph.source("source")
    for name in ("first", "second", "third"):
        graph.add(name, "Exp", "source")
    graph.replay()
    assert graph.ran == ["source", "third", "second", "first"]


def test_cheap_nodes_run_before_expensive_ones(graph):
    graph.source("source")
    for name, op in (("expensive", "Exp"), ("cheap", "Identity"), ("last", "Exp")):
        graph.add(name, op, "source")
    graph.replay()
    assert graph.ran == ["source", "cheap", "last", "expensive"]


def test_a_node_waits_for_all_that_it_needs_also_for_what_only_controls_it(graph):
    graph.source("source")
    graph.source("other")
    graph.add("sum", "AddV2", "source", "other")
    graph.add("after", "Exp", "source", "^sum")
    graph.replay()
    assert graph.ran.index("sum") > max(graph.ran.index("source"), graph.ran.index("other"))
    assert graph.ran[-1] == "after"


def test_a_chain_overwrites_one_buffer_and_gives_it_back(graph):
    graph.source("source")
    for name, given in (("one", "source"), ("two", "one"), ("three", "two")):
        graph.add(name, "Exp", given)
    graph.replay()
    assert graph.allocator.peak == BYTES
    assert graph.allocator.in_use == 0


def test_what_somebody_still_needs_is_not_overwritten(graph):
    graph.source("source")
    graph.add("one", "Exp", "source")
    graph.add("sum", "AddV2", "source", "one")
    graph.replay()
    assert graph.allocator.peak == 2 * BYTES
    assert graph.allocator.in_use == 0


@pytest.mark.parametrize(("taken", "side"), [(True, "yes"), (False, "no")])
def test_a_branch_that_is_not_taken_does_nothing(graph, taken, side):
    graph.source("source")
    graph.constant("condition", taken, tf.bool)
    graph.add("switch", "Switch", "source", "condition")
    graph.add("no", "Exp", "switch")
    graph.add("yes", "Exp", "switch:1")
    graph.add("merge", "Merge", "no", "yes", N=tf.compat.v1.AttrValue(i=2))
    graph.add("end", "Exp", "merge")
    graph.replay()
    assert {"yes", "no"} & set(graph.ran) == {side}
    assert graph.ran[-1] == "end"


def add_loop(graph, length):
    frame = {"frame_name": tf.compat.v1.AttrValue(s=b"loop")}
    constant = {**frame, "is_constant": tf.compat.v1.AttrValue(b=True)}
    for name, value in (("zero", 0), ("one", 1), ("length", length)):
        graph.constant(name, value, tf.int32)
    graph.source("source")
    graph.add("start", "Enter", "zero", dtype=tf.int32, **frame)
    graph.add("step", "Enter", "one", dtype=tf.int32, **constant)
    graph.add("end", "Enter", "length", dtype=tf.int32, **constant)
    graph.add("values", "Enter", "source", **constant)
    graph.add("counter", "Merge", "start", "next", dtype=tf.int32, N=tf.compat.v1.AttrValue(i=2))
    graph.add("less", "Less", "counter", "end", dtype=tf.int32)
    graph.add("condition", "LoopCond", "less")
    graph.add("switch", "Switch", "counter", "condition", dtype=tf.int32)
    graph.add("body", "Identity", "switch:1", dtype=tf.int32)
    graph.add("work", "Exp", "values", "^body")
    graph.add("more", "AddV2", "body", "step", dtype=tf.int32)
    graph.add("next", "NextIteration", "more", "^work", dtype=tf.int32)
    graph.add("exit", "Exit", "switch", dtype=tf.int32)
    graph.add("after", "Identity", "exit", dtype=tf.int32)


@pytest.mark.parametrize("length", [0, 1, 5, 15])
def test_a_loop_runs_its_body_as_often_as_its_counter_says(graph, length):
    add_loop(graph, length)
    executor = graph.replay()
    assert graph.ran.count("work") == length
    assert graph.ran.count("after") == 1
    constants = sum(tensor.buffer.chunk.size for tensor in executor.constants.values())
    assert graph.allocator.in_use == constants


def test_a_long_loop_runs_its_body_a_few_times_only(graph):
    add_loop(graph, 10_000)
    graph.replay()
    assert 8 < graph.ran.count("work") < 50
    assert graph.ran.count("after") == 1
