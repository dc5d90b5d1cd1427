"""An optimized graph as a program: nodes with shapes for one batch size, their consumers, their loops."""

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

import numpy
import tensorflow as tf

from helpers.estimator.kernels import CHEAP, kernel
from helpers.estimator.trace import infer_shapes


@dataclass(slots=True, eq=False)
class Node:
    """One operation of the graph."""

    index: int
    name: str
    op: str
    attributes: object
    outputs: list
    """(shape, dtype, value) per output; a shape that is not known is None, a value mostly too."""
    inferred: dict = field(default_factory=dict)
    """Shapes of its outputs that were worked out for shapes of its inputs, in loops."""
    kernel: object = None
    """What it does with memory: a function of the node, its inputs and the executor."""
    cheap: bool = False
    merges: bool = False
    """Whether it runs when the first of its inputs is there."""
    first: int = 0
    last: int = 0
    """Its inputs stand in the slots from `first` to before `last`."""
    producers: list = field(default_factory=list)
    """(node, output) per input."""
    consumers: list = field(default_factory=list)
    """(output, node, slot) in the order in which TensorFlow creates the edges."""
    control_consumers: list = field(default_factory=list)
    body: object = None
    """The function that it calls, if it calls one."""
    frame: str = None
    constant: bool = False
    parallel: int = 1

    @property
    def output_count(self):
        return len(self.outputs)


class Program:
    """The nodes of a training step for one batch size."""

    def __init__(self, step, batch_size):
        graph_def = _with_batch(step, batch_size)
        properties = infer_shapes(graph_def)
        self.nodes = [_node(index, node, properties) for index, node in enumerate(graph_def.node)]
        _find_bodies(self.nodes, graph_def.library)
        self.pending, self.slots = _connect(self.nodes, graph_def)
        """How many inputs, data and control, each node waits for, and how many slots the data takes."""
        self.roots = [node for node in self.nodes if not self.pending[node.index]]
        self.entries = Counter(node.frame for node in self.nodes if node.op == "Enter")
        """Frame of a loop -> how many entries it has; frames are the names that TensorFlow gives to loops."""
        self.exits, self.nested, self.backward = _exits(self.nodes)
        """Frame -> its exits; frames that have another loop in them, or are in one; frames that take from lists."""
        self.carried, self.conditions = _loop_variables(self.nodes)
        """Frame -> (entry, merge, next iteration) of each variable that changes; frame -> its condition."""
        if self.entries:
            _let_loops_run_ahead(self.nodes)


def _with_batch(step, batch_size):
    """Give the batch its size, and turn the captured variables back into variables with a shape."""
    graph_def = tf.compat.v1.GraphDef()
    graph_def.CopyFrom(step.graph_def)
    for node in graph_def.node:
        if node.op == "IteratorGetNext":
            for shape in node.attr["output_shapes"].list.shape:
                if shape.dim and shape.dim[0].size == -1:
                    shape.dim[0].size = batch_size
        elif node.op == "_Arg" and node.name in step.variables:
            shape, dtype, _, _ = step.variables[node.name]
            node.op = "VarHandleOp"
            node.attr.clear()
            node.attr["dtype"].type = dtype.as_datatype_enum
            node.attr["shape"].shape.CopyFrom(tf.TensorShape(shape).as_proto())
    return graph_def


def _node(index, definition, properties):
    node = Node(index, definition.name, definition.op, definition.attr, [])
    for output in properties.get(definition.name, ()):
        known = not output.shape.unknown_rank and all(side.size >= 0 for side in output.shape.dim)
        shape = tuple(side.size for side in output.shape.dim) if known else None
        dtype = tf.as_dtype(output.dtype)
        node.outputs.append((shape, dtype, _value(output)))
    node.kernel = kernel(definition.op)
    node.cheap = definition.op in CHEAP
    node.merges = definition.op == "Merge"
    if definition.op == "Enter":
        node.frame = definition.attr["frame_name"].s.decode()
        node.constant = definition.attr["is_constant"].b
        node.parallel = definition.attr["parallel_iterations"].i or 10
    return node


def _find_bodies(nodes, library):
    """Functions that are still called are those that XLA compiles as a whole."""
    functions = {function.signature.name: function for function in library.function}
    for node in nodes:
        if node.op in ("PartitionedCall", "StatefulPartitionedCall"):
            node.body = functions.get(node.attributes["f"].func.name)


def _value(output):
    if not output.value.ByteSize() or output.dtype not in (tf.int32, tf.int64, tf.bool):
        return None
    return numpy.asarray(tf.make_ndarray(output.value))


def _connect(nodes, graph_def):
    """Note who gives what to whom. A merge does not wait for what only controls it."""
    by_name = {node.name: node for node in nodes}
    pending, slots = [], 0
    for node, definition in zip(nodes, graph_def.node, strict=True):
        node.first = slots
        controls = 0
        for text in definition.input:
            if not text.startswith("^"):
                name, _, port = text.partition(":")
                node.producers.append((by_name[name], int(port or 0)))
                by_name[name].consumers.append((int(port or 0), node, slots))
                slots += 1
            elif not node.merges:
                by_name[text[1:]].control_consumers.append(node)
                controls += 1
        node.last = slots
        pending.append(node.last - node.first + controls)
    return pending, slots


def _loop_variables(nodes):
    """The variables of each loop, and its condition.

    The merge at the begin of an iteration only hands on what comes in, from the entry or from the iteration before:
    these two deliver to its consumers themselves.
    """
    carried, conditions = defaultdict(list), {}
    for merge in nodes:
        if not merge.merges:
            continue
        sources = {producer.op: producer for producer, _ in merge.producers}
        if "NextIteration" not in sources:
            continue
        enter, following = sources["Enter"], sources["NextIteration"]
        carried[enter.frame].append((enter, merge, following))
        for source in (enter, following):
            source.consumers = [edge for edge in source.consumers if edge[1] is not merge] + merge.consumers
            source.control_consumers += merge.control_consumers
        for _, consumer, _ in merge.consumers:
            if consumer.op == "Switch":
                conditions[enter.frame] = consumer.producers[1][0]
    return carried, conditions


def _let_loops_run_ahead(nodes):
    """Order the consumers of each result so that what leads into the next iteration comes last, and so runs first.

    TensorFlow leaves open in which order they run. It starts iterations as early as it may, and all that they keep
    for the backward pass is held at the same time.
    """
    producers = defaultdict(list)
    for node in nodes:
        for _, consumer, _ in node.consumers:
            producers[consumer.index].append(node)
    queue = deque(node for node in nodes if node.op == "NextIteration")
    distance = {node.index: 0 for node in queue}
    while queue:
        node = queue.popleft()
        for producer in producers[node.index]:
            if producer.index not in distance:
                distance[producer.index] = distance[node.index] + 1
                queue.append(producer)
    for node in nodes:
        if "while" in node.name:
            node.consumers.sort(key=lambda edge: -distance.get(edge[1].index, len(nodes)))


def _exits(nodes):
    """The exits of each loop, found by following its entries, which loops are nested, and which of a backward pass."""
    exits, nested, backward = defaultdict(list), set(), set()
    for frame in {node.frame for node in nodes if node.op == "Enter"}:
        seen = set()
        todo = [node for node in nodes if node.op == "Enter" and node.frame == frame]
        depth = {node.index: 1 for node in todo}
        while todo:
            node = todo.pop()
            if node.index in seen:
                continue
            seen.add(node.index)
            level = depth[node.index]
            if node.op == "TensorListPopBack":
                backward.add(frame)
            if node.op == "Exit":
                level -= 1
                if level == 0:
                    exits[frame].append(node)
                    continue
            for _, consumer, _ in node.consumers:
                inside = level
                if consumer.op == "Enter" and consumer.frame != frame:
                    nested |= {frame, consumer.frame}
                    inside += 1
                depth.setdefault(consumer.index, inside)
                todo.append(consumer)
    return exits, nested, backward
