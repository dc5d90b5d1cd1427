"""The graph that TensorFlow optimizes before a first step: the step, inlined into the function that calls it.

Which of the operations that become ready together runs first hangs on the order of the nodes, and that on the exact
graph which grappler is given. So it is built here node by node as the runtime builds it.
"""

import heapq

import tensorflow as tf

CALL = "StatefulPartitionedCall"
"""The name of the call that Keras makes, and the scope of all that is inlined for it."""
RESULT = "identity_RetVal"
"""The name of what the caller returns."""
DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
VARIANT = tf.variant.as_datatype_enum


def argument_names(function):
    """The name in the caller's graph of each placeholder of the traced function."""
    names, numbers = {}, iter(["", *(f"_{number}" for number in range(len(function.graph.inputs)))])
    for tensor in function.graph.inputs:
        captured = any(tensor is inner for _, inner in function.graph.captures)
        names[tensor.op.name] = f"unknown{next(numbers)}" if captured else tensor.op.name
    return names


class Caller:
    """Builds the caller's graph: arguments, the batch, the end of the step, and then the inlined step."""

    def __init__(self, function, variables):
        self.function = function
        self.source = function.graph.as_graph_def()
        self.batch = next(node for node in self.source.node if node.op == "IteratorGetNext")
        self.graph_def = tf.compat.v1.GraphDef(versions=self.source.versions, library=self.source.library)
        self.inputs = {}
        self.numbered = 0
        self._add_arguments(variables)
        self.graph_def.node.append(self.batch)
        self._add_end()
        self._add_inputs()
        self._add_body()
        self._add_outputs()
        library = (node for call in self.graph_def.library.function for node in call.node_def)
        for node in (*self.graph_def.node, *library):
            node.device = node.device or DEVICE

    def _add_arguments(self, variables):
        self.names = argument_names(self.function)
        for index, tensor in enumerate(self.function.graph.inputs):
            node = self.graph_def.node.add(name=self.names[tensor.op.name], op="_Arg")
            node.attr["T"].type = tensor.dtype.as_datatype_enum
            node.attr["index"].i = index
            if node.name in variables:
                shape, dtype, _, _ = variables[node.name]
                node.attr["_handle_shapes"].list.shape.append(tf.TensorShape(shape).as_proto())
                node.attr["_handle_dtypes"].list.type.append(dtype.as_datatype_enum)

    def _add_end(self):
        """What stands after the call: the results packed into an optional."""
        copied = len(self.batch.attr["output_types"].list.type) + len(self.function.graph.inputs) - 1
        results = range(copied, copied + len(self.function.outputs))
        packed = self.graph_def.node.add(name="optional", op="OptionalFromValue")
        packed.input.extend(f"Func/{CALL}/output/_{number}" for number in results)
        packed.attr["Toutput_types"].list.type.extend(
            tensor.dtype.as_datatype_enum for tensor in self.function.outputs
        )
        self.done = f"Func/{CALL}/output_control_node/_{results.stop}"
        self.graph_def.node.add(name="NoOp", op="NoOp", input=[f"^{self.done}", f"^{self.batch.name}"])
        self._copy("optional", VARIANT, "Identity").input.append("^NoOp")
        result = self.graph_def.node.add(name=RESULT, op="_Retval", input=["Identity"])
        result.attr["T"].type = VARIANT

    def _add_inputs(self):
        for index, dtype in enumerate(self.batch.attr["output_types"].list.type):
            name = f"{self.batch.name}:{index}" if index else self.batch.name
            self._copy_input(name, name, dtype)
        for tensor in self.function.graph.inputs:
            if tensor.op.name != self.batch.input[0]:
                name = tensor.op.name
                self._copy_input(name, self.names[name], tensor.dtype.as_datatype_enum)

    def _copy_input(self, name, outside, dtype):
        self.inputs[name] = self._copy(outside, dtype, f"Func/{CALL}/input/_{self.numbered}").name
        self.numbered += 1

    def _copy(self, source, dtype, name):
        node = self.graph_def.node.add(name=name, op="Identity", input=[source])
        node.attr["T"].type = dtype
        return node

    def _add_body(self):
        body = [
            node for node in self.source.node if node.name not in self.names and node.name != self.batch.name
        ]
        for node in _sorted(body):
            inlined = self.graph_def.node.add()
            inlined.CopyFrom(node)
            inlined.name = f"{CALL}/{node.name}"
            data = [self._renamed(name) for name in node.input if not name.startswith("^")]
            control = [self._renamed(name) for name in node.input if name.startswith("^")]
            inlined.input[:] = data + sorted(name for name in control if name != f"^{CALL}/{self.batch.name}")

    def _renamed(self, name):
        if name in self.inputs:
            return self.inputs[name]
        return f"^{CALL}/{name[1:]}" if name.startswith("^") else f"{CALL}/{name}"

    def _add_outputs(self):
        for tensor in self.function.outputs:
            name = self._renamed(tensor.name.removesuffix(":0"))
            self._copy(name, tensor.dtype.as_datatype_enum, f"Func/{CALL}/output/_{self.numbered}")
            self.numbered += 1
        operations = self.function.graph.control_outputs
        control = sorted(f"^{CALL}/{one.name}" for one in operations if one.name != self.batch.name)
        self.graph_def.node.add(name=self.done, op="NoOp", input=control)
        self.graph_def.node.add(name=CALL, op="NoOp", input=[f"^{self.done}"])


def _sorted(nodes):
    """In the order of the list, but each node after its inputs."""
    position = {node.name: index for index, node in enumerate(nodes)}
    waiting, followers = [], [[] for _ in nodes]
    for index, node in enumerate(nodes):
        sources = {name.lstrip("^").partition(":")[0] for name in node.input} & position.keys()
        waiting.append(len(sources))
        for source in sources:
            followers[position[source]].append(index)
    ready = [index for index, count in enumerate(waiting) if not count]
    ordered = []
    while ready:
        index = heapq.heappop(ready)
        ordered.append(nodes[index])
        for follower in followers[index]:
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, follower)
    return ordered
