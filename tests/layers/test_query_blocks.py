"""Attention in blocks of queries equals attention at once, dropout included."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import assert_close, randomize, variables_of
from tests.subjects.attention import D, check, run
from tfeff import layers
from tfeff.layers.attention_inputs import AttentionInputs
from tfeff.layers.scored_attention import BLOCK_SIZE, WHOLE_LENGTH, ScoredAttention

SEGMENTS = {"sinusoid": "concatenated", "relative_segments": True}
ATTENTIONS = {
    "self": functools.partial(layers.SelfAttention, 2),
    "partitioned": functools.partial(layers.PartitionedAttention, 4, 1, 3),
    "1H_Softmax": functools.partial(
        layers.OneHeadAttention, 4, "softmax", False, False
    ),
    "1H_Sigmoid": functools.partial(
        layers.OneHeadAttention, 4, partition_bias=False, partition_value=False
    ),
    "Part_Bias": functools.partial(layers.OneHeadAttention, 4, partition_value=False),
    "Shatter": functools.partial(layers.OneHeadAttention, 4),
    "hard": functools.partial(layers.OneHeadAttention, 2, boundaries=[1]),
    "one value matrix": functools.partial(
        layers.OneHeadAttention, 4, key_projection=True, values_by_part=False
    ),
    **{
        method: functools.partial(layers.RelativeAttention, 2, method, distance)
        for method, distance in (
            *(("shaw", 3), ("rpe", 3), ("bias", 20), ("huang1", 3), ("huang2", 3)),
            *(("huang3", 3), ("huang4", 3), ("xlnet", None)),
        )
    },
    "huang3, shared": functools.partial(layers.RelativeAttention, 2, "huang3", 3, True),
    "huang4, shared": functools.partial(layers.RelativeAttention, 2, "huang4", 3, True),
    "xlnet, clipped": functools.partial(layers.RelativeAttention, 2, "xlnet", 3),
    "xlnet, segments": functools.partial(
        layers.RelativeAttention, 2, "xlnet", **SEGMENTS
    ),
    "xlnet, segments without biases": functools.partial(
        layers.RelativeAttention, 2, "xlnet", **SEGMENTS, query_bias=False
    ),
    "mixed": functools.partial(layers.MixedAttention, 4, kernel_size=3),
    "blockwise": functools.partial(layers.BlockwiseAttention, 4, "3:1"),
    "sparse": functools.partial(layers.SparseAttention, 2, 4, 1),
}
VISIBLE = np.arange(11) < [[11], [6], [0]]
HIDDEN = np.random.default_rng(0).normal(size=(*VISIBLE.shape, D))
# Sizes of blocks and ways to run them: a last block that is shorter, one query a block,
# one block that is longer than the sequence.
WAYS = [
    (4, "graph of any length"),
    *(
        pytest.param(*way, marks=pytest.mark.slow)
        for way in ((1, "eager"), (7, "XLA"), (10, "graph"))
    ),
]


def make(name, dtype="float64", **arguments):
    layer = ATTENTIONS[name](dtype=dtype, dropout=0.3, **arguments)
    layer.build((None, None, D))
    randomize(variables_of(layer))
    return layer


@functools.cache
def at_once(name):
    return run(make(name, query_block_size=None), HIDDEN, VISIBLE)


@pytest.mark.quick("self-4-graph of any length")
@pytest.mark.parametrize("size, way", WAYS)
@pytest.mark.parametrize("name", ATTENTIONS)
def test_any_block_size(name, size, way):
    expected = at_once(name)
    assert all(np.isfinite(gradient).all() for gradient in expected[1])
    layer = make(name, query_block_size=size)
    check(run(layer, HIDDEN, VISIBLE, way), expected, 1e-11)


@pytest.mark.quick("Shatter-XLA-False")
@pytest.mark.parametrize("way, apart", [("graph", True), ("XLA", True), ("XLA", False)])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_gradients_at_any_length(name, way, apart):
    """Of a function of its own, too, and where XLA compiles for a length."""
    layer = make(name, query_block_size=4)
    for length in (3, 11):  # At once, and in blocks.
        arguments = HIDDEN[:, :length], VISIBLE[:, :length]
        expected = run(make(name, query_block_size=None), *arguments)
        actual = run(layer, *arguments, f"{way} of any length", apart=apart)
        check(actual, expected, 1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("tape", ["inner", "outer"])
@pytest.mark.parametrize("name", ["self", "sparse", "blockwise", "mixed"])
def test_gradients_of_gradients_at_any_length(name, tape):
    """Of all terms but relative ones, which TensorFlow cannot in blocks."""
    layer = make(name, query_block_size=4)
    signature = [tf.TensorSpec((None, None, D), tf.float64)]

    def gradient(layer, hidden):
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            loss = tf.reduce_sum(tf.sin(layer(hidden)))
        return tape.gradient(loss, hidden)

    def again(gradient, hidden):
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            loss = tf.reduce_sum(tf.sin(gradient(hidden)))
        return tape.gradient(loss, hidden)

    of_layer = functools.partial(gradient, layer)
    compiled = functools.partial(tf.function, input_signature=signature)
    if tape == "inner":
        twice = compiled(functools.partial(again, of_layer))
    else:
        twice = functools.partial(again, compiled(of_layer))
    for length in (3, 11):
        hidden = tf.constant(HIDDEN[:, :length])
        at_once = make(name, query_block_size=None)
        expected = again(functools.partial(gradient, at_once), hidden)
        assert_close(twice(hidden), expected, 1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Shatter", "rpe", "huang4", "xlnet", "huang3"])
def test_blocks_of_128(name):
    """Where kernels have blocks of 128 positions themselves."""
    hidden = np.random.default_rng(0).normal(size=(1, 256, D))
    visible = np.arange(256)[None] < 200
    expected = run(make(name, query_block_size=None), hidden, visible, "graph")
    for size in (128, 100):
        actual = run(make(name, query_block_size=size), hidden, visible, "graph")
        check(actual, expected, 1e-10)


@pytest.mark.quick("rpe-float16")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["self", "Shatter", "rpe", "huang4"])
def test_half_precision(name, dtype):
    """No further from float64 than all at once, where gradients are sums of blocks."""
    check_half_precision(name, dtype, np.arange(64) < [[64], [40]], size=8)


@pytest.mark.quick("shaw", "rpe", "xlnet")
@pytest.mark.parametrize("name", ["shaw", "rpe", "huang3", "huang4", "xlnet"])
def test_half_precision_in_blocks_of_128(name):
    """Of any number of keys, where relative shifts are products in parts of the keys.

    Their scores have 0.43 / 0.17 of the rounding (docs/DECISIONS.md).
    """
    visible = np.arange(257) < [[257], [200]]
    check_half_precision(name, "bfloat16", visible, size=128, factor=2.5)


def check_half_precision(name, dtype, visible, size, factor=1.5):
    hidden = np.random.default_rng(0).normal(size=(*visible.shape, D))
    hidden = tf.cast(hidden, dtype)
    expected = run(
        make(name, query_block_size=None), tf.cast(hidden, "float64"), visible
    )
    expected = [expected[0], *expected[1]]

    def errors(size):
        layer = make(name, f"mixed_{dtype}", query_block_size=size)
        output, gradients = run(layer, hidden, visible)
        assert output.dtype == dtype
        return [
            float(tf.norm(tf.cast(one, "float64") - tf.cast(other, "float64")))
            for one, other in zip([output, *gradients], expected, strict=True)
        ]

    rounding = {"float16": 2**-11, "bfloat16": 2**-8}[dtype]
    for error, of_whole, other in zip(errors(size), errors(None), expected):
        assert error < factor * of_whole + rounding * float(tf.norm(other))


@pytest.mark.quick(
    "self-eager",
    "Part_Bias-eager",
    "shaw-eager",
    "huang2-eager",
    "huang3, shared-eager",
    "xlnet, segments without biases-eager",
)
@pytest.mark.parametrize("way", ["eager", pytest.param("XLA", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_recomputed(name, way):
    layer = make(name, query_block_size=None)
    layer.call = functools.partial(layer.call, recompute=True)
    check(run(layer, HIDDEN, VISIBLE, way), at_once(name), 1e-11)


@pytest.mark.parametrize("name", sorted(ATTENTIONS.keys() - {"blockwise"}))
def test_context_equals_its_equation(name):
    """`context` against `scores`, `attention_weights` and `values`."""
    layer = make(name)
    hidden = tf.constant(HIDDEN)
    inputs = AttentionInputs(
        hidden,
        hidden,
        visible=tf.constant(VISIBLE),
        segment_ids=tf.constant(np.arange(11)[None] % 3 + 0 * VISIBLE),
        training=True,
    )
    if name == "mixed":
        inputs = inputs._replace(query=layer.query_dense(hidden))
    layer.dropout_layer.seed_generator.state.assign([3, 5])
    queries, keys = layer.queries_and_keys(inputs)
    relative = layer._terms(inputs, keys)
    queries = queries._replace(relative=relative)
    differentiable = [queries.vectors, keys.vectors, keys.values, relative]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(differentiable)
        results = [
            function(layer, queries, keys)
            for function in (type(layer).context, ScoredAttention.context)
        ]
    assert_close(*results, 1e-12)
    gradients = [tape.gradient(tf.sin(x), differentiable) for x in results]
    for one, other in zip(*map(tf.nest.flatten, gradients), strict=True):
        if other is not None:
            assert_close(one, other, 1e-11)


@pytest.mark.quick("self", "shaw")
@pytest.mark.parametrize("name", ["self", "Shatter", "xlnet", "shaw", "sparse"])
def test_two_streams_in_blocks(name):
    """Masks of pairs, and queries at a few positions."""
    ranks = np.array([[3, -1, 0, 1, -1, 2, 5, 4, -1, -1, 6]] * 2, "int32")
    results = []
    for size in (None, 4):
        keras.utils.set_random_seed(1)
        attention = ATTENTIONS[name](query_block_size=size, dtype="float64")
        block = layers.EncoderBlock(attention, layers.FeedForward(8), dtype="float64")
        streams = layers.TwoStreamBlocks([block], dtype="float64")
        hidden = tf.constant(np.random.default_rng(0).normal(size=(2, 11, D)))
        for targets in (None, np.array([[0, 2, 2], [7, 10, 5]])):
            results.append(streams(hidden, ranks, target_positions=targets))
    for one, other in zip(results[:2], results[2:]):
        for x, y in zip(one, other):
            assert_close(x, y, 1e-12)


@pytest.mark.slow
def test_auto_decides_by_the_length(monkeypatch):
    sizes = []
    core = "tfeff.layers.scored_attention"
    original = tfeff.ops.kernels.over_query_blocks
    monkeypatch.setattr(
        f"{core}.over_query_blocks",
        lambda *x, **longest: sizes.append(x[-1]) or original(*x, **longest),
    )
    monkeypatch.setattr(f"{core}.WHOLE_LENGTH", 8)
    monkeypatch.setattr(f"{core}.BLOCK_SIZE", 4)
    hidden = np.random.default_rng(0).normal(size=(1, 9, D))
    layer = make("self")
    layer(hidden[:, :8])
    assert sizes == []
    layer(hidden)
    assert sizes == [4]
    # Of unknown length: both, decided when it runs.
    visible = np.ones((1, 9), bool)
    whole = make("self", query_block_size=None)
    for length in (8, 9):
        arguments = hidden[:, :length], visible[:, :length]
        check(
            run(layer, *arguments, "graph of any length"), run(whole, *arguments), 1e-11
        )


@pytest.mark.parametrize("size", [0, -1, 1.5, "all", [4], True])
def test_bad_block_sizes(size):
    with pytest.raises((ValueError, TypeError), match="`query_block_size` must be"):
        layers.SelfAttention(2, query_block_size=size)


@pytest.mark.parametrize("value", ["all", 1, None, "auto"])
def test_bad_memory_efficient(value):
    with pytest.raises(ValueError, match="`memory_efficient` must be"):
        layers.EncoderBlock(
            layers.SelfAttention(2), layers.FeedForward(8), memory_efficient=value
        )
    with pytest.raises(ValueError, match="`memory_efficient` must be"):
        tfeff.encoders.build("bert_tiny", memory_efficient=value)


def test_a_convolution_has_no_scores_to_recompute():
    with pytest.raises(
        ValueError, match="DynamicConv1D, whose `call` has no `recompute`"
    ):
        layers.EncoderBlock(
            layers.DynamicConv1D(2),
            layers.FeedForward(8),
            memory_efficient="attention",
        )


@pytest.mark.parametrize(
    ("method", "first"),
    [("shaw", 1025), ("rpe", 1025), ("bias", 1025), ("huang4", 2560), ("xlnet", None)],
)
def test_the_page_tells_the_lengths_that_have_far_keys(method, first):
    """`docs/ENCODERS.md`, of tables by default."""
    layer = layers.RelativeAttention(2, method)
    layer.build((None, None, 8))
    inputs, size = AttentionInputs(None, None), BLOCK_SIZE
    lengths = range(WHOLE_LENGTH + 1, 4097)
    assert next((n for n in lengths if layer._near(inputs, size, n)), None) == first
    assert layer._near(inputs, size, tf.constant(4096)) is None
