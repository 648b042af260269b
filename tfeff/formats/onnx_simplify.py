"""ONNX's own operators in place of the groups of operators that tf2onnx writes.

tf2onnx translates TensorFlow's operations one by one. A layer norm becomes twelve
operators, a choice between two tensors seven; products with weights become `Einsum`, or
come with what reshapes and shapes back. ONNX Runtime computes these as they stand,
several times slower, and its quantizers leave them alone. The groups are patterns here.
The values are the same but for rounding.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper, numpy_helper

# A pattern is a name, which stands for one tensor wherever it occurs, or an operator
# with the patterns of its inputs. "Mean" is that over the last axis, "Cast*" any number
# of casts. The inputs of sums and products match in either order.
_EITHER_ORDER = ("Add", "Mul")
_DEVIATION = ("Sub", "x", ("Mean", "x"))
_VARIANCE = ("Mean", ("Mul", _DEVIATION, _DEVIATION))
_SCALE = ("Mul", ("Reciprocal", ("Sqrt", ("Add", _VARIANCE, "epsilon"))), "scale")
_NORM = (
    "Add",
    ("Mul", "x", _SCALE),
    ("Add", ("Mul", ("Neg", ("Mean", "x")), _SCALE), "shift"),
)
_CHOICE = (
    "Add",
    ("Mul", ("Cast", "condition"), "x"),
    ("Mul", ("Cast", ("Not", "condition")), "y"),
)
_SIZES = ("Gather", ("Cast*", ("Shape", "x")), "axes")
_DENSE = (
    "Reshape",
    ("MatMul", ("Reshape", "x", "flat"), "kernel"),
    ("Cast*", ("Concat", _SIZES, "units")),
)


def simplify(model) -> None:
    """Replaces groups of operators in a model of ONNX, which is changed.

    Args:
        model: an `onnx.ModelProto`. The graphs within its loops and conditions stay as
            they are.
    """
    opset = next(x.version for x in model.opset_import if x.domain in ("", "ai.onnx"))
    rules = [_choice, _dense, _einsum, _erf]
    if opset >= 17:
        rules.append(_norm)
    for rule in rules:
        graph = _Graph(model)
        nodes: list = []
        for node in model.graph.node:
            nodes += rule(graph, node) or [node]
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        model.graph.initializer.extend(graph.new_constants)
        _drop_unused(model.graph)
    del model.graph.value_info[:]  # Some of it is about tensors that are gone.


class _Graph:
    """The node that makes each tensor, its value if it is constant, and its rank."""

    def __init__(self, model):
        graph = model.graph
        self.makers = {name: node for node in graph.node for name in node.output}
        self._tensors = {x.name: x for x in graph.initializer} | {
            node.output[0]: node.attribute[0].t
            for node in graph.node
            if node.op_type == "Constant" and node.attribute[0].name == "value"
        }
        self.ranks = _ranks(model)
        self.new_constants = []

    def value(self, name: str) -> np.ndarray | None:
        """The value of a constant; `None` of other tensors."""
        tensor = self._tensors.get(name)
        return None if tensor is None else numpy_helper.to_array(tensor)

    def constant(self, node, suffix: str, value) -> str:
        """The name of a new constant that belongs to a node."""
        name = f"{node.output[0]}/{suffix}"
        self.new_constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def match(self, pattern, name: str, found: dict | None = None) -> Iterator[dict]:
        """Each way in which the tensor `name` matches: the tensors of the pattern."""
        found = found or {}
        if isinstance(pattern, str):
            if found.get(pattern, name) == name:
                yield {**found, pattern: name}
            return
        operator, *inputs = pattern
        node = self.makers.get(name)
        if operator == "Cast*":
            while node is not None and node.op_type == "Cast":
                name = node.input[0]
                node = self.makers.get(name)
            yield from self.match(inputs[0], name, found)
        elif operator == "Mean":
            if node is not None and self._is_mean(node):
                yield from self.match(inputs[0], node.input[0], found)
        elif node is not None and node.op_type == operator:
            if len(node.input) != len(inputs):
                return
            yield from self._match_all(inputs, node.input, found)
            if operator in _EITHER_ORDER:
                yield from self._match_all(inputs, node.input[::-1], found)

    def _match_all(self, patterns, names, found):
        if not patterns:
            yield found
            return
        for more in self.match(patterns[0], names[0], found):
            yield from self._match_all(patterns[1:], names[1:], more)

    def _is_mean(self, node) -> bool:
        rank = self.ranks.get(node.input[0])
        if node.op_type == "GlobalAveragePool":
            return rank == 3
        attributes = _attributes(node)
        return (
            node.op_type == "ReduceMean"
            and attributes.get("keepdims", 1) == 1
            and attributes.get("axes") in ([-1], [(rank or 0) - 1])
        )


def _ranks(model) -> dict[str, int]:
    """The number of axes of each tensor of which ONNX can tell it."""
    graph = model.graph
    # Weights by their shapes alone, as inference would copy them.
    small = [x for x in graph.initializer if np.prod(x.dims) < 100]
    others = [x for x in graph.initializer if np.prod(x.dims) >= 100]
    weights = [
        helper.make_tensor_value_info(x.name, x.data_type, x.dims) for x in others
    ]
    light = helper.make_model(
        helper.make_graph(
            graph.node, graph.name, [*graph.input, *weights], graph.output, small
        ),
        opset_imports=model.opset_import,
    )
    graph = onnx.shape_inference.infer_shapes(light).graph
    return {
        x.name: len(x.type.tensor_type.shape.dim)
        for x in (*graph.input, *graph.value_info, *graph.output)
        if x.type.tensor_type.HasField("shape")
    } | {x.name: len(x.dims) for x in small}


def _norm(graph, node):
    """`scale (x - mean) / sqrt(variance + epsilon) + shift` of the last axis."""
    for found in graph.match(_NORM, node.output[0]):
        values = [graph.value(found[x]) for x in ("scale", "shift", "epsilon")]
        if any(value is None for value in values):
            continue
        scale, shift, epsilon = values
        if {scale.shape[-1], scale.size, shift.size} != {scale.size} or (
            epsilon.size != 1
        ):
            continue
        names = (
            graph.constant(node, "scale", scale.ravel()),
            graph.constant(node, "shift", shift.ravel()),
        )
        return [
            helper.make_node(
                "LayerNormalization",
                [found["x"], *names],
                node.output,
                name=node.name,
                axis=-1,
                epsilon=float(epsilon.item()),
            )
        ]


def _choice(graph, node):
    """`x` where a condition holds, `y` elsewhere."""
    for found in graph.match(_CHOICE, node.output[0]):
        inputs = [found[name] for name in ("condition", "x", "y")]
        return [helper.make_node("Where", inputs, node.output, name=node.name)]


def _dense(graph, node):
    """The product of sequences with a kernel, which needs no reshaping."""
    for found in graph.match(_DENSE, node.output[0]):
        names = ("axes", "units", "flat", "kernel")
        values = [graph.value(found[name]) for name in names]
        if any(value is None for value in values) or values[3].ndim != 2:
            continue
        axes, units, flat, kernel = values
        rank = graph.ranks.get(found["x"])
        if (
            axes.tolist() == list(range((rank or 0) - 1))
            and flat.tolist() == [-1, kernel.shape[0]]
            and units.tolist() == [kernel.shape[1]]
        ):
            inputs = [found["x"], found["kernel"]]
            return [helper.make_node("MatMul", inputs, node.output, name=node.name)]


def _erf(graph, node):
    """`erf(x / sqrt(2))` in place of a product: so ONNX Runtime knows a GELU."""
    for found in graph.match(("Erf", ("Mul", "x", "factor")), node.output[0]):
        factor = graph.value(found["factor"])
        if factor is not None and np.all(abs(factor - 0.5**0.5) < 1e-7):
            divisor = factor.dtype.type(2.0**0.5)
            chain = _Chain(graph, node)
            x = chain.add("Div", found["x"], graph.constant(node, "divisor", divisor))
            return chain.end(chain.add("Erf", x))


def _einsum(graph, node):
    """A product of matrices instead of an `Einsum`, with the axes brought in order."""
    if node.op_type != "Einsum" or len(node.input) != 2:
        return None
    equation = _attributes(node)["equation"].decode().replace(" ", "")
    terms = [x for part in equation.split("->") for x in part.split(",")]
    if len(terms) != 3:
        return None
    if "..." in equation:
        rank = graph.ranks.get(node.input[0])
        if not rank or any("..." not in term for term in terms):
            return None
        # Capital letters for the axes that the dots stand for.
        dots = "".join(chr(ord("A") + i) for i in range(rank + 3 - len(terms[0])))
        terms = [term.replace("...", dots) for term in terms]
    left, right, out = terms
    if any(len(set(term)) < len(term) for term in terms):
        return None
    shared = [x for x in left if x in right]
    batch = "".join(x for x in shared if x in out)
    summed = "".join(x for x in shared if x not in out)
    rows = "".join(x for x in left if x not in right)
    columns = "".join(x for x in right if x not in left)
    if set(out) != set(batch + rows + columns) or not summed:
        return None
    kernel = graph.value(node.input[1])
    if not batch and kernel is not None:
        return _kernel_product(graph, node, kernel, terms, (rows, summed, columns))
    if len(rows) == len(summed) == len(columns) == 1 and batch:
        if graph.ranks.get(node.input[1]) != len(right):
            return None
        chain = _Chain(graph, node)
        first = chain.transpose(node.input[0], left, batch + rows + summed)
        second = chain.transpose(node.input[1], right, batch + summed + columns)
        product = chain.add("MatMul", first, second)
        return chain.end(chain.transpose(product, batch + rows + columns, out))
    return None


def _kernel_product(graph, node, kernel, terms, axes):
    """The nodes of a product with a constant, as one matrix."""
    left, right, out = terms
    rows, summed, columns = axes
    sizes = dict(zip(right, kernel.shape))
    kernel = kernel.transpose([right.index(x) for x in summed + columns])
    kernel = kernel.reshape(int(np.prod([sizes[x] for x in summed])), -1)
    chain = _Chain(graph, node)
    x = chain.transpose(node.input[0], left, rows + summed)
    kept = [0] * len(rows)  # As they are.
    if len(summed) > 1:
        x = chain.reshape(x, [*kept, -1])
    x = chain.add("MatMul", x, graph.constant(node, "kernel", kernel))
    if len(columns) != 1:
        x = chain.reshape(x, [*kept, *(sizes[name] for name in columns)])
    return chain.end(chain.transpose(x, rows + columns, out))


class _Chain:
    """New nodes in place of one."""

    def __init__(self, graph, node):
        self._graph, self._node, self._nodes = graph, node, []

    def add(self, operator: str, *inputs: str, **attributes) -> str:
        """Adds a node; returns the name of its output."""
        name = f"{self._node.output[0]}/{len(self._nodes)}"
        self._nodes.append(
            helper.make_node(operator, inputs, [name], name=name, **attributes)
        )
        return name

    def transpose(self, x: str, axes: str, wanted: str) -> str:
        """`x`, whose axes have letters, with them in another order."""
        if axes == wanted:
            return x
        return self.add("Transpose", x, perm=[axes.index(axis) for axis in wanted])

    def reshape(self, x: str, shape: list[int]) -> str:
        """`x` in another shape."""
        suffix = f"shape_{len(self._nodes)}"
        sizes = self._graph.constant(self._node, suffix, np.array(shape, "int64"))
        return self.add("Reshape", x, sizes)

    def end(self, x: str) -> list:
        """All nodes, the last of which has the output of the one replaced."""
        assert self._nodes[-1].output[0] == x
        self._nodes[-1].output[0] = self._node.output[0]
        return self._nodes


def _drop_unused(graph):
    """Removes nodes and constants that no output needs."""
    needed = {x.name for x in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(_inputs(node))
    del graph.node[:]
    graph.node.extend(reversed(kept))
    constants = [x for x in graph.initializer if x.name in needed]
    del graph.initializer[:]
    graph.initializer.extend(constants)


def _inputs(node):
    """The tensors that a node reads, also in the graphs within it."""
    inner = (x.g.node for x in node.attribute)
    return itertools.chain(
        node.input,
        *(_inputs(other) for nodes in inner for other in nodes),
        *([x.name for x in attribute.g.output] for attribute in node.attribute),
    )


def _attributes(node) -> dict:
    return {x.name: helper.get_attribute_value(x) for x in node.attribute}
