"""Graphs of ONNX, as ONNX Runtime can and should compute them."""

import onnx
from onnx import helper

# Operators that ONNX lacks, written with those that it has: each is an operator and its
# inputs, `x`, a constant, or the number of an operation before it.
_WRITTEN_OUT = {
    # 1 - erf(x), good to 1e-7 as in Keras' GELU; far out its own digits cancel.
    "Erfc": (("Erf", "x"), ("Sub", 1.0, "0")),
    # tanh(x / 2) (e^x + 1): no digits cancel.
    "Expm1": (
        ("Mul", "x", 0.5),
        ("Tanh", "0"),
        ("Exp", "x"),
        ("Add", "2", 1.0),
        ("Mul", "1", "3"),
    ),
    # It is ln(u) x / (u - 1) with u = 1 + x rounded, or x where u is 1 (Kahan).
    "Log1p": (
        ("Add", "x", 1.0),
        ("Sub", "0", 1.0),
        ("Log", "0"),
        ("Mul", "2", "x"),
        ("Div", "3", "1"),
        ("Equal", "0", 1.0),
        ("Where", "5", "x", "4"),
    ),
}


def write_out(graph):
    """Replaces the operators that ONNX lacks."""
    nodes = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                write_out(attribute.g)
        nodes += _written_out(node)
    del graph.node[:]
    graph.node.extend(nodes)


def unknown_operators(graph) -> list[tuple[str, str]]:
    """Operators that ONNX does not have, with the names of their nodes."""
    return [
        (node.op_type, node.name)
        for node in _nodes(graph)
        if not onnx.defs.has(node.op_type, node.domain)
    ]


def _written_out(node):
    """The nodes that compute what a node does."""
    if node.op_type not in _WRITTEN_OUT:
        return [node]
    nodes, results = [], []
    for operator, *inputs in _WRITTEN_OUT[node.op_type]:
        names = []
        for given in inputs:
            if isinstance(given, float):
                names.append(f"{node.name}/{len(nodes)}")
                nodes.append(
                    helper.make_node("Constant", [], names[-1:], value_float=given)
                )
            else:
                names.append(node.input[0] if given == "x" else results[int(given)])
        results.append(f"{node.name}/{len(nodes)}")
        nodes.append(helper.make_node(operator, names, results[-1:]))
    nodes[-1].output[:] = node.output
    return nodes


def _nodes(graph):
    """The nodes of a graph of ONNX, and those of the graphs within them."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from _nodes(attribute.g)
