"""Heads that are switched off, against the equations and in every attention."""

from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import (
    assert_close,
    check_equations,
    check_layer,
    randomize,
    variables_of,
)
from tests.reference import (
    batched,
    one_head_attention,
    partition_mask,
    self_attention,
)
from tests.subjects.encoders import tiny
from tfeff import layers

D = 8
VISIBLE = np.arange(7) < [[7], [4], [0], [1]]
HIDDEN = np.random.default_rng(0).normal(size=(*VISIBLE.shape, D)).astype("float32")
SEGMENTS = np.arange(7)[None] % 2 + 0 * VISIBLE
# From a name to the attention and the number of its heads at the output projection.
ATTENTIONS = {
    "self": (partial(layers.SelfAttention, 4), 4),
    "partitioned": (partial(layers.PartitionedAttention, 4), 4),
    "part_bias": (partial(layers.OneHeadAttention, 4, partition_value=False), 4),
    "rpe": (partial(layers.RelativeAttention, 4, "rpe", 3), 4),
    "bias": (partial(layers.RelativeAttention, 4, "bias", 20), 4),
    "huang4": (partial(layers.RelativeAttention, 4, "huang4", 3), 4),
    "xlnet": (
        partial(layers.RelativeAttention, 4, "xlnet", relative_segments=True),
        4,
    ),
    "blockwise": (partial(layers.BlockwiseAttention, 4, "3:1"), 4),
    "sparse": (partial(layers.SparseAttention, 4, 3, 1, query_block_size=3), 4),
    "mixed": (partial(layers.MixedAttention, 4, kernel_size=3), 4),
    "separable": (
        partial(layers.MixedAttention, 4, kernel_size=3, convolution="separable"),
        4,
    ),
    "bottleneck": (partial(layers.MixedAttention, 4, convolution="none"), 2),
    "dynamic_conv": (partial(layers.DynamicConv1D, 4, 3), 4),
    "lightweight_conv": (partial(layers.LightweightConv1D, 4, 3), 4),
    "span_dynamic_conv": (partial(layers.SpanDynamicConv1D, 4, 3), 4),
}
SCORED = sorted(set(ATTENTIONS) - {name for name in ATTENTIONS if "conv" in name})


def made(name, **arguments):
    layer = ATTENTIONS[name][0](**arguments)
    layer.build((None, None, D))
    randomize(variables_of(layer))
    return layer


def run(layer, hidden=HIDDEN, **arguments):
    if getattr(layer, "relative_segments", False):
        arguments["segment_ids"] = SEGMENTS
    return layer(hidden, padding_mask=VISIBLE, **arguments)


def scale_rows(layer, head_mask):
    """Multiplies each head's rows of `W^O`: the same as to multiply its output."""
    kernel = layer.output_dense.kernel
    rows = np.repeat(head_mask, kernel.shape[0] // len(head_mask))
    kernel.assign(kernel * rows[:, None].astype("float32"))


@pytest.mark.parametrize("name", ATTENTIONS)
def test_a_head_that_is_missing_is_named_at_once(name):
    make, heads = ATTENTIONS[name]
    for disabled in ([heads], range(heads)):
        with pytest.raises(ValueError, match="`disabled_heads` must .*Received: "):
            make(disabled_heads=disabled)


@pytest.mark.parametrize("base", [layers.SelfAttention, layers.DynamicConv1D])
def test_a_subclass_may_have_other_heads(base):
    class Doubled(base):
        def __init__(self, num_heads, **kwargs):
            super().__init__(num_heads, **kwargs)
            self.times = 2

        @property
        def output_heads(self):
            return self.num_heads * self.times

    assert Doubled(2, disabled_heads=[3]).disabled_heads == (3,)
    with pytest.raises(ValueError, match="`disabled_heads` must "):
        Doubled(2, disabled_heads=[4]).build((None, None, 8))


def test_self_attention_without_two_heads():
    reference = partial(self_attention, num_heads=4, head_mask=[1, 0, 0, 1])
    make = partial(layers.SelfAttention, 4, disabled_heads=[2, 1])
    check_equations(make, batched(reference))


def shatter_without_a_part():
    @batched
    def reference(hidden, visible, weights):
        mask = partition_mask(len(hidden), 4, 1, 3)
        return one_head_attention(
            *(hidden, visible, weights, mask, "sigmoid_l2", True, True),
            head_mask=[1, 1, 0, 1],
        )

    make = partial(
        layers.OneHeadAttention, 4, layer_index=1, num_layers=3, disabled_heads=[2]
    )
    return make, reference


@pytest.mark.slow
def test_a_part_of_common_values_is_switched_off():
    """Where the parts are summed, their weights are multiplied."""

    @batched
    def reference(hidden, visible, weights):
        mask = partition_mask(len(hidden), 4, 1, 3)
        return one_head_attention(
            *(hidden, visible, weights, mask, "sigmoid_l2", True, True),
            value_matrix=True,
            head_mask=[1, 1, 0, 1],
        )

    make = partial(
        layers.OneHeadAttention,
        4,
        layer_index=1,
        num_layers=3,
        values_by_part=False,
        disabled_heads=[2],
    )
    check_equations(make, reference)


@pytest.mark.slow
def test_shatter_without_a_part():
    check_equations(*shatter_without_a_part())


@pytest.mark.slow
def test_shatter_without_a_part_in_every_respect():
    """XLA, half precision, blocks of queries, single queries, saving too."""
    check_layer(*shatter_without_a_part())


@pytest.mark.quick("self", "rpe", "xlnet", "mixed", "dynamic_conv")
@pytest.mark.parametrize("name", ATTENTIONS)
def test_every_attention(name):
    """The heads that are off, and factors in a call, are factors of rows of `W^O`."""
    heads = ATTENTIONS[name][1]
    off = made(name, disabled_heads=[heads - 1])
    assert off.output_heads == heads
    head_mask = np.linspace(-0.5, 2, heads).astype("float32")
    expected = made(name)
    scale_rows(expected, head_mask)
    assert_close(run(made(name), head_mask=head_mask), run(expected), 1e-5)
    expected = made(name)
    scale_rows(expected, np.arange(heads) != heads - 1)
    assert_close(run(off), run(expected), 1e-5)
    both = run(off, head_mask=np.eye(heads, dtype="float32")[0])
    alone = made(name)
    scale_rows(alone, np.eye(heads)[0])
    assert_close(both, run(alone), 1e-5)
    # Maps are those of all heads.
    if name in SCORED:
        _, maps = run(off, return_attention_scores=True)
        np.testing.assert_array_equal(
            maps, run(made(name), return_attention_scores=True)[1]
        )


@pytest.mark.parametrize(
    "way",
    [
        "blocks",
        pytest.param("half", marks=pytest.mark.slow),
        pytest.param("XLA", marks=pytest.mark.slow),
        pytest.param("recomputed", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", ["self", "partitioned", "huang4", "mixed"])
def test_gradients(name, way):
    """In training: of every weight and of the inputs, nothing through a head off."""
    arguments = {"query_block_size": 3 if way == "blocks" else None, "dropout": 0.3}
    dtype = "mixed_bfloat16" if way == "half" else "float32"
    results = []
    for disabled in ([1], []):
        layer = made(name, dtype=dtype, disabled_heads=disabled, **arguments)
        if not disabled:
            scale_rows(layer, np.array([1, 0, 1, 1]))
        layer.dropout_layer.seed_generator.state.assign([3, 5])

        def compute(hidden, layer=layer):
            with tf.GradientTape() as tape:
                tape.watch(hidden)
                output = run(
                    layer, hidden, training=True, recompute=way == "recomputed"
                )
                loss = tf.reduce_sum(tf.sin(tf.cast(output, "float32")))
            return output, tape.gradient(loss, [hidden, *layer.trainable_variables])

        if way == "XLA":
            compute = tf.function(compute, jit_compile=True, autograph=False)
        results.append((*compute(tf.constant(HIDDEN)), layer))
    (output, gradients, layer), (expected, others, other) = results
    tolerance = 0.01 if way == "half" else 1e-4
    assert_close(tf.cast(output, "float32"), tf.cast(expected, "float32"), tolerance)
    kernel = [layer.output_dense.kernel is v for v in layer.trainable_variables]
    rows = slice(D // 4, D // 2)
    for index, (one, other) in enumerate(zip(gradients, others, strict=True)):
        one, other = (np.asarray(tf.convert_to_tensor(x)) for x in (one, other))
        if index and kernel[index - 1]:
            assert not one[rows].any() and other[rows].any()
            one, other = np.delete(one, rows, 0), np.delete(other, rows, 0)
        scale = np.abs(other).max()
        assert np.abs(one - other).max() <= tolerance * max(scale, 1.0)


def inputs_of():
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 19, VISIBLE.shape).astype("int32")
    return {
        "token_ids": ids,
        "segment_ids": SEGMENTS.astype("int32"),
        "padding_mask": VISIBLE.astype("int32"),
    }


def randomized(preset="bert_base", **changes):
    keras.utils.set_random_seed(0)
    encoder = tiny(preset, **changes)
    rng = np.random.default_rng(2)
    for weight in encoder.weights:
        weight.assign(weight + 0.4 * rng.normal(size=weight.shape))
    return encoder


def states(encoder):
    return encoder(inputs_of())["hidden_states"]


def assert_same(encoder, expected):
    for one, other in zip(states(encoder), expected, strict=True):
        assert_close(one, other, 1e-5)


@pytest.mark.quick("bert_base")
@pytest.mark.parametrize("preset", ["bert_base", "shatter_base", "convbert_base"])
def test_an_encoder_without_heads(preset, tmp_path):
    """Off by masks, by the configuration and after loading: all the same."""
    encoder = randomized(preset)
    everything = states(encoder)
    with layers.masked_heads(encoder, [[1, 0, 1, 1], None]):
        expected = states(encoder)
    assert np.abs(expected[1] - everything[1]).max() > 0.01
    assert_same(encoder, everything)
    smaller = tfeff.encoders.disable_heads(encoder, {0: [1]})
    assert [b.attention.disabled_heads for b in smaller.blocks] == [(1,), ()]
    assert_same(smaller, expected)
    assert_same(tfeff.encoders.disable_heads(smaller, {0: []}), everything)
    smaller.save(tmp_path / "e.keras")
    loaded = keras.saving.load_model(tmp_path / "e.keras")
    assert loaded.blocks[0].attention.disabled_heads == (1,)
    assert_same(loaded, expected)


def test_configurations_without_the_argument_still_load():
    layer = made("self")
    config = layer.get_config()
    assert config.pop("disabled_heads") == []
    assert type(layer).from_config(config).disabled_heads == ()


def test_layers_that_share_weights_have_masks_of_their_own():
    shared = randomized("albert_base")
    apart = tiny("albert_base", sharing="none")
    for one, other in zip(shared.embedding.weights, apart.embedding.weights):
        other.assign(one)
    masks = [[1, 1, 0, 1], [0, 1, 1, 0]]
    for index, block in enumerate(apart.blocks):
        for one, other in zip(shared.blocks[index].weights, block.weights):
            other.assign(one)
        scale_rows(block.attention, np.array(masks[index]))
    with layers.masked_heads(shared, masks):
        assert_same(apart, states(shared))
    with pytest.raises(ValueError, match=r"`heads` must be the same.*\[\] in layer 0"):
        tfeff.encoders.disable_heads(shared, {1: [0]})
    smaller = tfeff.encoders.disable_heads(shared, {0: [0], 1: [0]})
    with layers.masked_heads(shared, [[0, 1, 1, 1]] * 2):
        assert_same(smaller, states(shared))


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["bert_base", "xlnet_base", "part_bias_base"])
def test_pooling_and_two_streams(preset):
    encoder, expected = randomized(preset), randomized(preset)
    masks = [np.array([0, 1, 1, 1]), np.array([1, 1, 0, 0])]
    for block, mask in zip(expected.blocks, masks):
        scale_rows(block.attention, mask)
    hidden = tf.constant(HIDDEN)
    ranks = np.argsort(np.random.default_rng(3).random(VISIBLE.shape)).astype("int32")

    def results(encoder):
        keras.utils.set_random_seed(1)
        pooled = layers.LayerwisePooling(encoder)([hidden] * 3, padding_mask=VISIBLE)
        streams = layers.TwoStreamBlocks(encoder)(
            hidden, ranks, padding_mask=VISIBLE, segment_ids=SEGMENTS
        )
        return [pooled, *streams]

    smaller = tfeff.encoders.disable_heads(encoder, {0: [0], 1: [2, 3]})
    with layers.masked_heads(encoder, masks):
        actual = results(encoder)
    for one, two, other in zip(actual, results(smaller), results(expected)):
        assert_close(one, other, 1e-5)
        assert_close(two, other, 1e-5)


@pytest.mark.slow
def test_masks_are_of_one_encoder():
    encoder, other = randomized(), randomized()
    expected = states(other)
    mask = tf.Variable([1.0, 0.0, 1.0, 1.0])
    with layers.masked_heads(encoder, [mask, None]):
        assert_same(other, expected)

        @tf.function
        def compute():
            return encoder(inputs_of())["sequence_output"]

        with_mask = compute()
    mask.assign([1.0] * 4)
    assert_close(compute(), states(encoder)[-1], 1e-5)
    assert np.abs(with_mask - compute()).max() > 0.01


@pytest.mark.parametrize(
    "heads, message",
    [
        ([4], "must be indices of 4 heads, from 0 to 3. Received: .*4"),
        ([0, 1, 2, 3], "must leave at least one of 4 heads"),
        ([1, 1], "must be different heads"),
        ([-1], "must be an integer of at least 0"),
        ([1.5], "must be an integer"),
        ("01", "must be a sequence"),
        (2, "must be a sequence"),
    ],
)
def test_bad_disabled_heads(heads, message):
    for name in ("self", "part_bias", "mixed", "huang4", "dynamic_conv"):
        with pytest.raises((TypeError, ValueError), match="`disabled_heads` .*"):
            made(name, disabled_heads=heads)
    with pytest.raises((TypeError, ValueError), match=f"`disabled_heads` {message}"):
        tiny("bert_base", attention={"name": "self", "disabled_heads": heads})
    with pytest.raises((TypeError, ValueError), match=f"`disabled_heads` {message}"):
        tfeff.encoders.disable_heads(tiny("bert_base"), {0: heads})


def test_bad_masks():
    encoder = tiny("bert_base")
    for masks, message in (
        ([None], "`masks` must be one for each of 2 layers"),
        (None, "`masks` must be one for each of 2 layers"),
        ([None, [1, 0]], r"`masks\[1\]` must have shape \(4,\).*Received.*\(2,\)"),
        ([[0, 0, 0, 0], None], r"`masks\[0\]` must leave at least one head"),
        ([["a"] * 4, None], r"`masks\[0\]` must be numbers"),
    ):
        with (
            pytest.raises(ValueError, match=message),
            layers.masked_heads(encoder, masks),
        ):
            pass
    with (
        pytest.raises(TypeError, match="`encoder` must be"),
        layers.masked_heads(encoder.blocks[0].attention, [None]),
    ):
        pass
    with pytest.raises(ValueError, match=r"`head_mask` must have shape \(4,\)"):
        made("self")(HIDDEN, head_mask=np.ones(3, "float32"))
    with pytest.raises(TypeError, match="`encoder` must be"):
        tfeff.encoders.disable_heads(encoder.blocks[0], {})
    for heads, message in (([0], "mapping of layers"), ({"a": []}, "an integer")):
        with pytest.raises(TypeError, match=f"`heads` must be .*{message}"):
            tfeff.encoders.disable_heads(encoder, heads)
    with pytest.raises(ValueError, match="`heads` must be .*at most 1"):
        tfeff.encoders.disable_heads(encoder, {2: [0]})
