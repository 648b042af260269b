"""The post-norm block and its feed-forward network against the equations."""

from functools import partial

import keras
import numpy as np
import pytest

from tests.checks import (
    arrays_of,
    assert_close,
    check_gradients,
    check_layer,
    randomize,
    variables_of,
)
from tests.reference import (
    batched,
    encoder_block,
    feed_forward,
    gelu,
    one_head_attention,
    partition_mask,
    self_attention,
)
from tests.subjects.blocks import block_variables
from tfeff import ops
from tfeff.layers import (
    EncoderBlock,
    FeedForward,
    OneHeadAttention,
    RelativeAttention,
    SelfAttention,
)
from tfeff.ops import kernels


def bert_attention(hidden, visible, weights):
    return self_attention(hidden, visible, weights, num_heads=2)


def shatter_attention(hidden, visible, weights):
    mask = partition_mask(len(hidden), 4, 1, 3)
    return one_head_attention(hidden, visible, weights, mask, "sigmoid_l2", True, True)


@pytest.mark.quick("shatter")
@pytest.mark.parametrize(
    "make_attention, attention",
    [
        (partial(SelfAttention, 2), bert_attention),
        (partial(OneHeadAttention, 4, layer_index=1, num_layers=3), shatter_attention),
    ],
    ids=["bert", "shatter"],
)
def test_encoder_block(make_attention, attention):
    def make_block(dtype="float32", dropout=0.0):
        return EncoderBlock(
            make_attention(dtype=dtype),
            FeedForward(12, dtype=dtype),
            dropout=dropout,
            dtype=dtype,
        )

    check_layer(
        make_block,
        batched(partial(encoder_block, attention=attention)),
        variables=block_variables,
    )


def test_dropout_acts_on_both_branches():
    """With one branch silent, the other's dropout must still show."""
    hidden = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32")
    for silent in ("attention", "feedforward"):
        keras.utils.set_random_seed(0)
        block = EncoderBlock(SelfAttention(2), FeedForward(12), dropout=0.5)
        block(hidden)
        randomize(block_variables(block))
        for name, variable in variables_of(getattr(block, silent)).items():
            if name.startswith("output"):
                variable.assign(np.zeros(variable.shape))
        assert not np.allclose(block(hidden, training=True), block(hidden))


OTHERS = {"float32": "mixed_bfloat16", "mixed_bfloat16": "float32"}


@pytest.mark.parametrize("parts", [".*attention.*", ".*feedforward.*", ".*norm.*"])
@pytest.mark.parametrize("dtype", OTHERS)
def test_parts_in_another_dtype(dtype, parts):
    """By a map of policies; the output is in the block's dtype."""
    hidden = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    policies = keras.dtype_policies.DTypePolicyMap(dtype)
    policies[parts] = keras.DTypePolicy(OTHERS[dtype])
    for attention in (SelfAttention, OneHeadAttention):
        block, exact = (
            EncoderBlock(attention(2, **given), FeedForward(12, **given), **given)
            for given in ({"dtype": policies}, {})
        )
        inputs = keras.Input((None, 8))
        model = keras.Model(inputs, block(inputs))
        exact(hidden)
        exact.set_weights(block.get_weights())
        output = model(hidden)
        assert keras.backend.standardize_dtype(output.dtype) == block.compute_dtype
        assert_close(output, exact(hidden), 0.1)


def test_norm_epsilon_is_used():
    hidden = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32")
    for epsilon in (1e-12, 1.0):
        block = EncoderBlock(
            SelfAttention(2), FeedForward(12), layer_norm_epsilon=epsilon
        )
        block(hidden)
        assert block.get_config()["layer_norm_epsilon"] == epsilon
        for norm in (block.attention_norm, block.feedforward_norm):
            assert norm.epsilon == epsilon


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
def test_feed_forward(dtype, tolerance):
    layer = FeedForward(12, dtype=dtype)
    hidden = np.random.default_rng(0).normal(size=(2, 5, 8)).astype(dtype)
    layer(hidden)
    variables = variables_of(layer)
    assert set(variables) == {
        "intermediate/kernel",
        "intermediate/bias",
        "output/kernel",
        "output/bias",
    }
    randomize(variables)
    expected = feed_forward(hidden.astype("float64"), arrays_of(variables))
    assert_close(layer(hidden), expected, tolerance)
    assert_close(layer(hidden[:, :1]), expected[:, :1], tolerance)
    if dtype == "float64":
        check_gradients(
            lambda hidden: layer(hidden),
            lambda arrays: feed_forward(arrays["hidden"], arrays),
            variables,
            {"hidden": hidden},
        )


def test_default_activation_is_the_exact_gelu():
    """At 2 the tanh approximation is 3e-4 off."""
    x = np.linspace(-4, 4, 33).reshape(1, 3, 11)
    activation = FeedForward(4).activation
    assert_close(activation(keras.ops.convert_to_tensor(x)), gelu(x), 1e-12)


def test_other_activations():
    layer = FeedForward(12, activation="relu")
    hidden = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    layer(hidden)
    randomize(variables_of(layer))
    w = arrays_of(variables_of(layer))
    inner = hidden @ w["intermediate/kernel"] + w["intermediate/bias"]
    expected = np.maximum(inner, 0) @ w["output/kernel"] + w["output/bias"]
    assert_close(layer(hidden), expected, 1e-5)
    copy = FeedForward.from_config(layer.get_config())
    copy(hidden)
    copy.set_weights(layer.get_weights())
    np.testing.assert_array_equal(copy(hidden), layer(hidden))


@pytest.mark.parametrize("num_groups, fast", [(1, "activated_product"), (2, None)])
@pytest.mark.parametrize("name", ["gelu", "gelu_tanh"])
def test_an_equation_as_activation(name, num_groups, fast, monkeypatch):
    """It takes the fast version, and is saved by name."""
    fast, calls = fast or name, []
    kernel = getattr(kernels, fast)
    monkeypatch.setattr(kernels, fast, lambda *x: calls.append(fast) or kernel(*x))
    layer = FeedForward(12, getattr(ops, name), num_groups, dtype="float64")
    hidden = np.random.default_rng(0).normal(size=(2, 5, 8))
    layer(hidden)
    randomize(variables_of(layer))
    calls.clear()
    output = layer(hidden)
    assert calls == [fast]
    inner = layer.intermediate_dense(hidden)
    assert_close(output, layer.output_dense(getattr(ops, name)(inner)), 1e-12)
    assert layer.get_config()["activation"] == name
    copy = FeedForward.from_config(layer.get_config())
    copy.build(hidden.shape)
    copy.set_weights(layer.get_weights())
    np.testing.assert_array_equal(copy(hidden), output)


@pytest.mark.parametrize("intermediate_dim", [0, -1, 2.5, "4"])
def test_feed_forward_names_a_bad_width(intermediate_dim):
    with pytest.raises((ValueError, TypeError), match="`intermediate_dim` must .*Rec"):
        FeedForward(intermediate_dim)


def test_block_names_a_bad_argument():
    with pytest.raises((ValueError, TypeError), match="`attention` must .*Received: "):
        EncoderBlock("self", FeedForward(4))
    with pytest.raises((ValueError, TypeError), match="`feedforward` must .*Received"):
        EncoderBlock(SelfAttention(2), None)
    with pytest.raises((ValueError, TypeError), match="`dropout` must .*Received: "):
        EncoderBlock(SelfAttention(2), FeedForward(4), dropout=1.5)
    with pytest.raises((ValueError, TypeError), match="`layer_norm_epsilon` must .*R"):
        EncoderBlock(SelfAttention(2), FeedForward(4), layer_norm_epsilon=-1.0)


def test_block_names_parts_that_do_not_fit():
    """A residual would be broadcast."""
    with pytest.raises(ValueError, match="`attention` must take a `padding_mask`"):
        EncoderBlock(keras.layers.MultiHeadAttention(2, 4), FeedForward(4))
    x = np.ones((2, 5, 8), "float32")
    for size in (1, 16):
        block = EncoderBlock(SelfAttention(2), keras.layers.Dense(size))
        with pytest.raises(ValueError, match="`feedforward` must give .* 8.*Received"):
            block(x)
    block = EncoderBlock(Narrow(), FeedForward(4))
    with pytest.raises(ValueError, match="`attention` must give .* 8.*Received"):
        block(x)


class Merged(keras.layers.Layer):
    """An attention whose last size is not known in a graph."""

    def call(self, hidden, padding_mask=None):
        shape = keras.ops.shape(hidden)
        heads = keras.ops.reshape(hidden, (*shape[:2], 2, -1))
        return keras.ops.reshape(heads, (*shape[:2], -1))


class OwnCall(EncoderBlock):
    """A block that calls its attention in its own way."""

    def call(self, hidden, **kwargs):
        return hidden + self.attention(hidden, hidden)


def test_a_size_that_is_not_known_is_no_other_size():
    x = keras.Input((None, 8))
    model = keras.Model(x, EncoderBlock(Merged(), FeedForward(4))(x))
    model.compile("sgd", "mse", jit_compile=False)
    rows = np.ones((4, 5, 8), "float32")
    model.fit(rows, rows, batch_size=2, verbose=0)
    assert model.predict(rows, verbose=0).shape == rows.shape


def test_a_subclass_calls_its_attention_as_it_likes():
    OwnCall(keras.layers.MultiHeadAttention(2, 4), FeedForward(4))


class Narrow(keras.layers.Layer):
    """An attention that gives one number a position."""

    def call(self, hidden, **masks):
        return hidden[..., :1]


class LateAttention(keras.layers.Layer):
    """An attention whose own layers are built when it is called."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(8)

    def call(self, hidden, padding_mask=None, training=None):
        return self.dense(hidden)


@pytest.mark.quick(
    "False-shape0-float32",
    "False-shape0-bfloat16",
    "False-shape1-mixed_float16",
    "True-shape0-mixed_bfloat16",
    "True-shape1-float64",
)
@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "mixed_bfloat16", "mixed_float16", "bfloat16"]
)
@pytest.mark.parametrize("shape", [(None, None, 8), (2, 5, 8)])
@pytest.mark.parametrize("memory_efficient", [False, True])
def test_declared_output_is_that_of_the_call(dtype, shape, memory_efficient):
    block = EncoderBlock(
        OneHeadAttention(4, dtype=dtype),
        FeedForward(12, dtype=dtype),
        memory_efficient=memory_efficient,
        dtype=dtype,
    )
    hidden = keras.Input(batch_shape=shape, dtype="float32")
    mask = keras.Input(batch_shape=shape[:2], dtype="int32")
    declared = block(hidden, padding_mask=mask, layer_index=1)
    hidden = keras.KerasTensor(shape, dtype=block.compute_dtype)
    traced = keras.Operation.compute_output_spec(
        block, hidden, padding_mask=mask, layer_index=1, training=True
    )
    assert declared.shape == traced.shape == shape
    assert declared.dtype == traced.dtype == block.compute_dtype


def test_symbolic_call_traces_no_attention_that_is_built(monkeypatch):
    block = EncoderBlock(OneHeadAttention(4), FeedForward(12))
    monkeypatch.setattr(block, "call", None)
    assert block(keras.Input((None, 8))).shape == (None, None, 8)


def test_symbolic_call_builds_what_is_built_late():
    block = EncoderBlock(LateAttention(), FeedForward(12))
    with pytest.warns(UserWarning, match="unbuilt state"):
        assert block(keras.Input((None, 8))).shape == (None, None, 8)
    assert block.attention.dense.built
    assert len(block.weights) == 2 + 4 + 4


def test_symbolic_call_names_a_bad_mask():
    hidden, mask = keras.Input((None, 8)), keras.Input((None, 2), dtype="int32")
    with pytest.raises(ValueError, match="`padding_mask` must .*Received: "):
        EncoderBlock(SelfAttention(2), FeedForward(12))(hidden, padding_mask=mask)


def test_a_symbolic_call_without_needed_segments_is_refused():
    attention = RelativeAttention(2, "xlnet", relative_segments=True)
    block = EncoderBlock(attention, FeedForward(16))
    block.build((None, None, 8))
    hidden, segments = keras.Input((5, 8)), keras.Input((5,), dtype="int32")
    with pytest.raises(ValueError, match="`segment_ids` must be given"):
        block(hidden)
    assert block(hidden, segment_ids=segments).shape == (None, 5, 8)
