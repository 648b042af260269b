"""Attention with near and far keys equals attention over all keys."""

import functools

import keras
import numpy as np
import pytest

from tests.checks import assert_close, randomize, variables_of
from tests.subjects.attention import D, check, run
from tests.subjects.partitions import TENTS
from tfeff import layers, ops
from tfeff.compat.layers import other_policies
from tfeff.layers import scored_attention

LENGTH = 40
HIDDEN = np.random.default_rng(0).normal(size=(2, LENGTH, D))
VISIBLE = np.arange(LENGTH) < [[LENGTH], [25]]
RELATIVE = functools.partial(layers.RelativeAttention, 2)
HARD = functools.partial(layers.OneHeadAttention, 4, boundaries=[-2, 0, 2])
ATTENTIONS = {
    "hard Part_Mask": functools.partial(
        layers.PartitionedAttention, 4, boundaries=[-2, 0, 2]
    ),
    "hard Shatter": HARD,
    "hard Part_Bias": functools.partial(HARD, partition_value=False),
    "hard 1H_Softmax": functools.partial(
        HARD, normalizer="softmax", partition_bias=False, partition_value=False
    ),
    "one value matrix": functools.partial(
        HARD, key_projection=True, values_by_part=False
    ),
    "registered Part_Mask": functools.partial(
        layers.PartitionedAttention, 4, partition=TENTS
    ),
    "registered Shatter": functools.partial(
        layers.OneHeadAttention, 4, partition=TENTS
    ),
    **{
        method: functools.partial(RELATIVE, method, 3)
        for method in ("shaw", "rpe", "huang1", "huang2", "huang3", "huang4", "xlnet")
    },
    "bias": functools.partial(RELATIVE, "bias", 3, num_buckets=4),
    "xlnet without biases": functools.partial(RELATIVE, "xlnet", 3, query_bias=False),
    "shared huang3": functools.partial(RELATIVE, "huang3", 3, True),
    "shared huang4": functools.partial(RELATIVE, "huang4", 3, True),
}


def make(make_layer, dtype="float64", **arguments):
    layer = make_layer(dtype=dtype, dropout=0.3, **arguments)
    layer.build((None, None, D))
    randomize(variables_of(layer))
    return layer


@pytest.fixture(autouse=True)
def parted(monkeypatch):
    """Sizes that short sequences have; the sizes of near parts, as they are made."""
    monkeypatch.setattr(scored_attention, "KEYS", 2)
    monkeypatch.setattr(scored_attention, "NEAR_SHARE", 0.9)
    sizes = []
    original = scored_attention.ScoredAttention._near_and_far

    def record(self, *arguments):
        sizes.append(arguments[-1])
        return original(self, *arguments)

    monkeypatch.setattr(scored_attention.ScoredAttention, "_near_and_far", record)
    return sizes


# Under XLA, what differs most in what it computes; the others are slow tests.
QUICK_XLA = {"hard Shatter", "shaw", "rpe", "bias"}


@pytest.mark.quick("registered Shatter-4-graph", "xlnet without biases-4-graph")
@pytest.mark.parametrize(
    "name, size, way",
    [(name, 4, "graph") for name in ATTENTIONS]
    + [
        pytest.param(
            *(name, 7, "XLA"), marks=[pytest.mark.slow] * (name not in QUICK_XLA)
        )
        for name in ATTENTIONS
    ],
)
def test_equals_attention_at_once(name, size, way, parted):
    expected = run(make(ATTENTIONS[name], query_block_size=None), HIDDEN, VISIBLE)
    assert not parted
    layer = make(ATTENTIONS[name], query_block_size=size)
    check(run(layer, HIDDEN, VISIBLE, way), expected, 1e-11)
    assert parted


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Part_Mask", "Shatter"])
@pytest.mark.parametrize("layer_index", [0, 2])
def test_soft_partitions_to_the_rounding_of_their_dtype(name, layer_index, parted):
    attention = {
        "Part_Mask": layers.PartitionedAttention,
        "Shatter": layers.OneHeadAttention,
    }[name]
    make_layer = functools.partial(attention, 8, layer_index, 3)
    if name == "Shatter":
        make_layer = functools.partial(
            attention, 8, layer_index=layer_index, num_layers=3
        )
    length = 700
    hidden = np.random.default_rng(0).normal(size=(1, length, D)).astype("float32")
    visible = np.arange(length)[None] < 650
    exact = make(make_layer, query_block_size=None)
    expected = run(exact, hidden.astype("float64"), visible, "graph")
    expected = [expected[0], *expected[1]]

    def errors(size):
        layer = make(make_layer, "float32", query_block_size=size)
        output, gradients = run(layer, hidden, visible, "graph")
        return [
            np.linalg.norm(np.asarray(one, "float64") - np.asarray(other))
            for one, other in zip([output, *gradients], expected, strict=True)
        ]

    of_whole = errors(None)
    parted.clear()
    of_parted = errors(64)
    assert parted
    sizes = np.array([np.linalg.norm(value) for value in expected])
    # Some gradients vanish, such as that of a key's bias under a softmax.
    sizes = np.where(sizes > 1e-9 * max(sizes), sizes, max(sizes))
    for error, other, size in zip(of_parted, of_whole, sizes):
        assert error < 2 * other + 1e-6 * size


@pytest.mark.parametrize("num_parts, layer_index", [(2, 0), (4, 0), (12, 0), (12, 11)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_beyond_its_reach_a_partition_has_one_part_a_side(
    num_parts, layer_index, dtype
):
    reach = ops.partition_reach(num_parts, layer_index, 12, dtype)
    layer = layers.PartitionOfUnityMask(num_parts, layer_index, 12, dtype="float64")
    left, right = layer.outer_parts
    functions = np.asarray(layer.functions(np.arange(reach, reach + 500.0)))
    inner = 1 - functions[right]
    rounding = keras.ops.convert_to_numpy(_epsilon(dtype)) / 2
    assert (inner[1:] <= rounding + 1e-16).all()
    if num_parts > 4 and dtype != "float64":
        assert inner[0] > rounding - 1e-16
    mirrored = np.asarray(layer.functions(-np.arange(reach, reach + 500.0)))
    if reach:
        assert_close(mirrored[left], functions[right], 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        dict(alpha=-3.0, beta=-0.5),
        dict(layer_index=11, spacing=4.0),
        dict(num_parts=12, alpha=-30.0, beta=-2.0),
    ],
)
def test_the_reach_follows_own_constants(arguments, parted):
    """Attention with near keys only differs from the whole by rounding."""
    arguments = dict(num_parts=8) | arguments
    make_layer = functools.partial(layers.OneHeadAttention, **arguments)
    size = 4 * 3
    hidden = np.random.default_rng(0).normal(size=(2, 700, 24))
    outputs = []
    for block_size in (None, size):
        layer = make_layer(dtype="float64", query_block_size=block_size)
        layer.build(hidden.shape)
        randomize(variables_of(layer))
        outputs.append(layer(hidden))
    ((reach, _),) = {x for x in parted}
    assert reach == layer.partition_layer.reach() > 0
    assert_close(*outputs, 1e-12)


def _epsilon(dtype):
    return np.array({"float64": 2**-52, "float32": 2**-23, "bfloat16": 2**-7}[dtype])


@pytest.mark.parametrize("index, distance", [("signed", 5), ("distance", 5)])
def test_the_reach_of_a_clipped_table(index, distance):
    table = layers.RelativeEmbedding(distance, (2,), index=index)
    _check_reach(table, distance)


@pytest.mark.parametrize("buckets, distance", [(32, 128), (4, 3), (8, 20)])
def test_the_reach_of_buckets(buckets, distance):
    table = layers.RelativeEmbedding(distance, (2,), index="t5", num_buckets=buckets)
    if (buckets, distance) == (32, 128):
        assert table.reach == 91
    _check_reach(table, distance)


def _check_reach(table, distance):
    far = np.arange(table.reach, 4 * distance + table.reach)
    for positions in (far, -far):
        rows = np.asarray(table(keras.ops.convert_to_tensor(positions)))
        assert (rows == rows[0]).all()


def test_without_a_reach_keys_are_not_separated(parted):
    for make_layer in (
        functools.partial(layers.SelfAttention, 2),
        functools.partial(layers.OneHeadAttention, 4, "softmax", False, False),
        functools.partial(RELATIVE, "xlnet"),
        functools.partial(layers.OneHeadAttention, 4, partition="tents_without_reach"),
        functools.partial(RELATIVE, "shaw", 30),  # Nearly all keys are near.
    ):
        make(make_layer, query_block_size=8)(HIDDEN)
    assert not parted


def test_the_reach_is_that_of_the_policy_of_now():
    """A model in half precision is exported in float32, by its policy for that time."""
    half, exact = (
        layers.PartitionOfUnityMask(8, num_layers=4, dtype=dtype)
        for dtype in ("bfloat16", "float32")
    )
    assert half.reach(0) < exact.reach(0)
    with other_policies([(half, keras.dtype_policies.DTypePolicy("float32"))]):
        assert half.reach(0) == exact.reach(0)
