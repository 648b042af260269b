"""Gradients in bfloat16 are those of float64, but for the rounding of activations."""

import functools

import keras
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import rounding_to_nearest, variables_of
from tests.subjects.attentions import attention_classes
from tfeff import layers
from tfeff.layers.dense import Dense
from tfeff.layers.relative_attention import METHODS
from tfeff.objectives.masked_lm_head import MaskedLMHead
from tfeff.objectives.token_logits import TokenLogits

LENGTH = 512
WIDTH = 64
VOCABULARY = 50
LIMIT = 0.01
# What follows from rounded scores alone: with exact sums over rounded tensors, the
# gradient of the table is off by 1.0 % ("shaw") to 1.3 % ("huang2"). That of the input
# adds up several rounded products.
INHERENT = {
    "relative/embeddings": 0.02,
    "relative/kernel": 0.02,
    "segment_embeddings": 0.02,
    "hidden": 0.015,
}

VISIBLE = np.arange(LENGTH) < [[LENGTH], [400]]
IDS = np.random.default_rng(4).integers(0, VOCABULARY, VISIBLE.shape)
SEGMENTS = (np.arange(LENGTH) >= 200) * np.ones_like(IDS)
POSITIONS = np.argsort(np.random.default_rng(5).random(VISIBLE.shape))[:, :384]


def attend(layer, hidden):
    return layer(hidden, padding_mask=VISIBLE)


def attend_segments(layer, hidden):
    return layer(hidden, padding_mask=VISIBLE, segment_ids=SEGMENTS)


def block(**kwargs):
    return layers.EncoderBlock(
        layers.SelfAttention(4, name="attention", **kwargs),
        layers.FeedForward(128, name="feedforward", **kwargs),
        **kwargs,
    )


def table(**kwargs):
    return keras.layers.ReversibleEmbedding(VOCABULARY, 32, name="table", **kwargs)


def case(cls, *args, call=attend, **settings):
    return functools.partial(cls, *args, **settings), call


def each(cls, *args, **choices):
    """A case for each value of the one argument given."""
    ((name, values),) = choices.items()
    return {
        f"{cls.__name__}, {value}": case(cls, *args, **{name: value})
        for value in values
    }


def plainly(layer, hidden):
    return layer(hidden)


CASES = {
    "Dense": case(Dense, WIDTH, call=plainly),
    "FeedForward": case(layers.FeedForward, 128, call=plainly),
    "FeedForward, groups": case(layers.FeedForward, 128, num_groups=4, call=plainly),
    "GroupedDense": case(layers.GroupedDense, 128, 4, call=plainly),
    "EncoderEmbedding": case(
        layers.EncoderEmbedding,
        VOCABULARY,
        WIDTH,
        embedding_dim=32,
        call=lambda layer, _: layer(IDS, SEGMENTS),
    ),
    "RelativeEmbedding": case(
        layers.RelativeEmbedding,
        3,
        (WIDTH,),
        call=lambda layer, _: layer(np.arange(-LENGTH, LENGTH)),
    ),
    "SparseAttention": case(layers.SparseAttention, 4, 64, 16),
    "BlockwiseAttention": case(layers.BlockwiseAttention, 4, "3:1"),
    **each(layers.OneHeadAttention, 4, normalizer=("sigmoid_l2", "softmax")),
    "OneHeadAttention, no embeddings": case(
        layers.OneHeadAttention, 4, partition_bias=False, partition_value=False
    ),
    "OneHeadAttention, steps between": case(
        layers.OneHeadAttention, 4, key_projection=True, values_by_part=False
    ),
    **each(layers.RelativeAttention, 4, method=METHODS),
    "RelativeAttention, segments": case(
        layers.RelativeAttention,
        4,
        "xlnet",
        relative_segments=True,
        call=attend_segments,
    ),
    **each(
        layers.MixedAttention,
        4,
        convolution=("span_dynamic", "dynamic", "lightweight", "separable", "none"),
    ),
    "EncoderBlock": case(block),
    "MaskedLMHead": (
        lambda **kwargs: MaskedLMHead(table(**kwargs), **kwargs),
        lambda layer, hidden: layer(hidden, POSITIONS),
    ),
    "TokenLogits": (lambda **kwargs: TokenLogits(table(**kwargs), **kwargs), plainly),
}
LISTED = {name.split(",")[0] for name in CASES}
CASES |= {
    cls.__name__: case(cls, 4)
    for cls in attention_classes()
    if cls.__name__ not in LISTED
}


def rounded(array):
    return np.asarray(array, ml_dtypes.bfloat16).astype("float64")


def normal(seed, shape):
    return rounded(np.random.default_rng(seed).normal(size=shape))


def made(make, call, hidden, dtype):
    layer = make(dtype=dtype)
    call(layer, tf.constant(hidden, layer.compute_dtype))
    return layer


def gradients_of(layer, call, hidden, upstream):
    """Of all weights and, where it is read, of the input, by name."""
    variables = variables_of(layer)

    @rounding_to_nearest
    def gradients(hidden):
        sources = {name: v.value for name, v in variables.items()}
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            output = tf.cast(call(layer, hidden), "float64")
            loss = tf.reduce_sum(output * upstream(output.shape))
        found = tape.gradient(loss, {"hidden": hidden, **sources})
        return {n: tf.convert_to_tensor(g) for n, g in found.items() if g is not None}

    found = gradients(tf.constant(hidden, layer.compute_dtype))
    assert {*found} >= {*variables}
    return {name: np.asarray(g, "float64") for name, g in found.items()}


def size_of_like(name, gradients):
    """The size of gradients by which one that may vanish is judged, or 0."""
    if name in ("content_bias", "position_bias", "segment_bias"):
        # Their sum is the gradient of the query's bias.
        return np.linalg.norm(gradients["query/bias"])
    kernel = gradients.get(f"{name.removesuffix('bias')}kernel")
    if not name.endswith("/bias") or kernel is None:
        return 0.0
    # A key's bias does not count under a softmax. A bias is one more row of the kernel.
    return np.linalg.norm(kernel) / np.sqrt(kernel.shape[0])


def check_gradients_of(make, call, shape):
    hidden, upstream = normal(1, shape), functools.partial(normal, 2)
    keras.utils.set_random_seed(0)
    exact, half = (
        made(make, call, hidden, dtype) for dtype in ("float64", "mixed_bfloat16")
    )
    noise = np.random.default_rng(3)
    sources, targets = variables_of(exact), variables_of(half)
    assert list(sources) == list(targets) and sources
    for name, source in sources.items():
        value = source.numpy()
        if not name.endswith("kernel"):  # Zeros and ones would hide much.
            value = value + 0.1 * noise.normal(size=value.shape)
        source.assign(rounded(value))
        targets[name].assign(rounded(value))
    expected = gradients_of(exact, call, hidden, upstream)
    actual = gradients_of(half, call, hidden, upstream)
    errors = {}
    for name, gradient in expected.items():
        size = max(np.linalg.norm(gradient), size_of_like(name, expected))
        error = np.linalg.norm(actual[name] - gradient) / size
        if not error <= INHERENT.get(name, LIMIT):
            errors[name] = f"{100 * error:.2f} %"
    assert not errors


@pytest.mark.quick("Dense")
@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    make, call = CASES[name]
    check_gradients_of(make, call, (2, LENGTH, WIDTH))


def test_many_rows():
    for activation in (None, "gelu", "tanh"):
        make = functools.partial(Dense, 16, activation=activation)
        check_gradients_of(make, plainly, (16, LENGTH, 8))


def test_every_layer_is_among_them():
    """Others have no weights, or hold and call the blocks that they are given."""
    others = {"Dropout", "LayerwisePooling", "PartitionOfUnityMask", "TwoStreamBlocks"}
    others |= {"MeanPooling", "SegmentPooling"}
    public = {name for name in layers.__all__ if name[0].isupper()}
    assert public - others <= {name.split(",")[0] for name in CASES}


@pytest.mark.parametrize(
    "make",
    [
        lambda encoder: tfeff.tasks.Classifier(encoder, 3),
        lambda encoder: tfeff.tasks.SpanQA(encoder),
        lambda encoder: tfeff.objectives.SentencePairPrediction(encoder),
        lambda encoder: tfeff.objectives.ReplacedTokenDetection(
            tfeff.objectives.generator_for(encoder, 1 / 2), encoder
        ),
    ],
    ids=["Classifier", "SpanQA", "SentencePairPrediction", "ReplacedTokenDetection"],
)
def test_models_have_no_other_dense_layer(make):
    encoder = tfeff.encoders.build(
        "convbert_small", vocabulary_size=VOCABULARY, num_layers=1
    )
    flat = make(encoder)._flatten_layers()
    kinds = {type(one) for one in flat if isinstance(one, keras.layers.Dense)}
    assert kinds == {Dense}
