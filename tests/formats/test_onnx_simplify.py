"""Groups of operators of ONNX become one operator, and their values stay."""

import collections
import importlib

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed (extra onnx)")
reference = importlib.import_module("onnx.reference")
simplify = importlib.import_module("tfeff.formats.onnx_simplify").simplify
helper, numpy_helper = onnx.helper, onnx.numpy_helper
FLOAT, INT = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def make(nodes, constants, inputs, output=FLOAT, opset=17):
    """A model of nodes `(operator, inputs, output, attributes)`; sizes are unknown."""
    graph = helper.make_graph(
        [
            helper.make_node(kind, names, [out], name=f"of {out}", **attributes)
            for kind, names, out, attributes in nodes
        ],
        "graph",
        [
            helper.make_tensor_value_info(name, kind, [None] * rank)
            for name, (kind, rank) in inputs.items()
        ],
        [helper.make_tensor_value_info(nodes[-1][2], output, None)],
        [numpy_helper.from_array(x, name) for name, x in constants.items()],
    )
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def operators(model):
    return collections.Counter(node.op_type for node in model.graph.node)


def check(model, values, expected, **counts):
    """The model has these operators alone afterwards; its values are as expected."""
    (output,) = model.graph.output
    kind = output.type.tensor_type.elem_type
    output.CopyFrom(
        helper.make_tensor_value_info(output.name, kind, [None] * expected.ndim)
    )
    before = reference.ReferenceEvaluator(model).run(None, values)[0]
    np.testing.assert_allclose(before, expected, atol=1e-5)
    simplify(model)
    onnx.checker.check_model(model, full_check=True)
    assert operators(model) == counts
    names = {x.name for x in model.graph.initializer}
    used = {name for node in model.graph.node for name in node.input}
    assert names <= used
    after = reference.ReferenceEvaluator(model).run(None, values)[0]
    assert after.dtype == before.dtype and after.shape == before.shape
    np.testing.assert_allclose(after, expected, atol=1e-5)


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def norm_nodes(mean="GlobalAveragePool", swapped=False, **attributes):
    def pair(a, b):
        return [b, a] if swapped else [a, b]

    return [
        (mean, ["x"], "mean", attributes),
        ("Neg", ["mean"], "less", {}),
        ("Sub", ["x", "mean"], "apart", {}),
        ("Mul", ["apart", "apart"], "square", {}),
        (mean, ["square"], "variance", attributes),
        ("Add", pair("variance", "epsilon"), "more", {}),
        ("Sqrt", ["more"], "root", {}),
        ("Reciprocal", ["root"], "inverse", {}),
        ("Mul", pair("inverse", "scale"), "factor", {}),
        ("Mul", pair("x", "factor"), "scaled", {}),
        ("Mul", pair("less", "factor"), "shifted", {}),
        ("Add", pair("shifted", "shift"), "rest", {}),
        ("Add", pair("scaled", "rest"), "y", {}),
    ]


def norm_constants(shape=(1, 1, 6)):
    scale, shift = random(*shape), random(*shape) + 1
    epsilon = np.array(1e-3, "float32")
    return {"scale": scale, "shift": shift, "epsilon": epsilon}


def normed(x, constants):
    deviation = x - x.mean(-1, keepdims=True)
    variance = (deviation**2).mean(-1, keepdims=True)
    root = np.sqrt(variance + constants["epsilon"])
    return deviation / root * constants["scale"] + constants["shift"]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("kind", ["pool", "mean", "mean of the last by number"])
def test_layer_norm(kind, swapped):
    nodes = norm_nodes(swapped=swapped)
    if kind != "pool":
        axes = [-1] if kind == "mean" else [2]
        nodes = norm_nodes("ReduceMean", swapped, axes=axes, keepdims=1)
    constants, x = norm_constants(), random(2, 5, 6)
    model = make(nodes, constants, {"x": (FLOAT, 3)})
    check(model, {"x": x}, normed(x, constants), LayerNormalization=1)


def test_what_is_no_layer_norm_stays():
    constants = norm_constants()
    x = random(2, 5, 6)
    earlier = make(norm_nodes(), constants, {"x": (FLOAT, 3)}, opset=15)
    simplify(earlier)  # Which has no operator for it.
    assert operators(earlier)["GlobalAveragePool"] == 2
    nodes = norm_nodes("ReduceMean", axes=[1], keepdims=1)
    over_rows = make(nodes, constants, {"x": (FLOAT, 3)})
    nodes = norm_nodes()
    nodes[3] = ("Mul", ["apart", "x"], "square", {})
    other = make(nodes, constants, {"x": (FLOAT, 3)})
    nodes = norm_nodes()
    images = make(nodes, norm_constants((1, 6, 1, 1)), {"x": (FLOAT, 4)})
    for model in (over_rows, other, images):
        before = operators(model)
        simplify(model)
        assert operators(model) == before
    given = make(norm_nodes(), constants, {"x": (FLOAT, 3), "scale": (FLOAT, 3)})
    del given.graph.initializer[0]  # The scale is an input, no constant.
    simplify(given)
    assert "LayerNormalization" not in operators(given)
    assert x.shape[-1] == constants["scale"].shape[-1]


def test_a_mean_that_others_use_stays():
    nodes = [*norm_nodes(), ("Add", ["y", "mean"], "z", {})]
    constants, x = norm_constants(), random(2, 5, 6)
    model = make(nodes, constants, {"x": (FLOAT, 3)})
    expected = normed(x, constants) + x.mean(-1, keepdims=True)
    check(model, {"x": x}, expected, LayerNormalization=1, GlobalAveragePool=1, Add=1)


@pytest.mark.parametrize("kind", [FLOAT, INT])
def test_a_choice_by_sums_of_products(kind):
    dtype = "float32" if kind == FLOAT else "int64"
    zero = {"zero": np.zeros([], dtype), "y": np.array(7, dtype)}
    nodes = [
        ("Less", ["x", "zero"], "negative", {}),
        ("Not", ["negative"], "positive", {}),
        ("Cast", ["negative"], "one", {"to": kind}),
        ("Cast", ["positive"], "other", {"to": kind}),
        ("Mul", ["x", "other"], "first", {}),
        ("Mul", ["one", "y"], "second", {}),
        ("Add", ["second", "first"], "chosen", {}),
    ]
    x = np.array([[-3, 2, 0], [5, -1, -2]], dtype)
    model = make(nodes, zero, {"x": (kind, 2)}, kind)
    check(model, {"x": x}, np.where(x < 0, 7, x), Less=1, Where=1)


def dense_nodes():
    return [
        ("Shape", ["x"], "shape", {}),
        ("Cast", ["shape"], "shape_32", {"to": onnx.TensorProto.INT32}),
        ("Gather", ["shape_32", "axes"], "kept", {"axis": 0}),
        ("Concat", ["kept", "units"], "all", {"axis": 0}),
        ("Cast", ["all"], "target", {"to": INT}),
        ("Reshape", ["x", "flat"], "rows", {}),
        ("MatMul", ["rows", "kernel"], "product", {}),
        ("Reshape", ["product", "target"], "y", {}),
    ]


def dense_constants():
    return {
        "axes": np.array([0, 1]),
        "units": np.array([4], "int32"),
        "flat": np.array([-1, 6]),
        "kernel": random(6, 4),
    }


def test_dense():
    constants, x = dense_constants(), random(2, 5, 6)
    model = make(dense_nodes(), constants, {"x": (FLOAT, 3)})
    check(model, {"x": x}, x @ constants["kernel"], MatMul=1)


@pytest.mark.parametrize(
    "change",
    [{"axes": np.array([1, 0])}, {"units": np.array([2], "int32")}],
    ids=["axes", "units"],
)
def test_another_reshaping_stays(change):
    model = make(dense_nodes(), dense_constants() | change, {"x": (FLOAT, 3)})
    before = operators(model)
    simplify(model)
    assert operators(model) == before
    two = make(dense_nodes(), dense_constants(), {"x": (FLOAT, 4)})
    simplify(two)
    assert operators(two) == before


@pytest.mark.parametrize(
    ("equation", "left", "right", "counts"),
    [
        # Projections to heads, and from them.
        ("abc,cde->adbe", (2, 5, 6), (6, 3, 4), dict(MatMul=1, Reshape=1, Transpose=1)),
        ("abc,cde->abde", (2, 5, 6), (6, 3, 4), dict(MatMul=1, Reshape=1)),
        (
            "abcd,bde->ace",
            (2, 3, 5, 4),
            (3, 4, 6),
            dict(Transpose=1, Reshape=1, MatMul=1),
        ),
        ("abc,cd->abd", (2, 5, 6), (6, 4), dict(MatMul=1)),
        ("abc,dc->abd", (2, 5, 6), (4, 6), dict(MatMul=1)),
    ],
)
def test_products_with_kernels(equation, left, right, counts):
    kernel, x = random(*right), random(*left)
    nodes = [("Einsum", ["x", "kernel"], "y", {"equation": equation})]
    model = make(nodes, {"kernel": kernel}, {"x": (FLOAT, len(left))})
    check(model, {"x": x}, np.einsum(equation, x, kernel), **counts)


@pytest.mark.parametrize(
    ("equation", "left", "right", "counts"),
    [
        ("abcd,abed->abce", (2, 3, 5, 4), (2, 3, 6, 4), dict(Transpose=1, MatMul=1)),
        ("...ab,...cb->...ac", (2, 3, 5, 4), (2, 3, 6, 4), dict(Transpose=1, MatMul=1)),
        ("...ab,...bc->...ac", (2, 5, 4), (2, 4, 6), dict(MatMul=1)),
        ("abc,bad->bcd", (3, 2, 5), (2, 3, 4), dict(Transpose=1, MatMul=1)),
        ("abc,acd->adb", (2, 5, 4), (2, 4, 6), dict(MatMul=1, Transpose=1)),
        # No product of matrices: a sum of products, an outer one, and a diagonal.
        ("abc,abc->ab", (2, 5, 4), (2, 5, 4), dict(Einsum=1)),
        ("ab,ac->abc", (2, 5), (2, 4), dict(Einsum=1)),
        ("aab,abc->ac", (3, 3, 4), (3, 4, 5), dict(Einsum=1)),
        ("abc,cd->ad", (2, 5, 4), (4, 6), dict(Einsum=1)),
    ],
)
def test_products_of_tensors(equation, left, right, counts):
    values = {"x": random(*left), "y": random(*right)}
    nodes = [("Einsum", ["x", "y"], "z", {"equation": equation})]
    inputs = {"x": (FLOAT, len(left)), "y": (FLOAT, len(right))}
    expected = np.einsum(equation, values["x"], values["y"])
    check(make(nodes, {}, inputs), values, expected, **counts)


def test_what_a_graph_within_reads_stays():
    """A loop or a condition reads tensors of the graph around it."""
    body = helper.make_graph(
        [helper.make_node("Add", ["mean", "y"], ["inner"])],
        "body",
        [],
        [helper.make_tensor_value_info("inner", FLOAT, [None] * 3)],
    )
    nodes = [
        *norm_nodes(),
        ("If", ["condition"], "z", {"then_branch": body, "else_branch": body}),
    ]
    constants, x = norm_constants(), random(2, 5, 6)
    constants["condition"] = np.array(True)
    model = make(nodes, constants, {"x": (FLOAT, 3)})
    expected = normed(x, constants) + x.mean(-1, keepdims=True)
    check(model, {"x": x}, expected, LayerNormalization=1, GlobalAveragePool=1, If=1)
