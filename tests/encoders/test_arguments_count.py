"""Every argument that is accepted counts: it is seen in what a model computes.

An argument that a test has no value for fails it, so that a new one gets its own.
"""

import inspect

import keras
import numpy as np
import pytest

import tfeff
from tests.checks import randomize, variables_of
from tests.subjects.encoders import TINY
from tests.subjects.partitions import TENTS
from tfeff.encoders import Encoder, attentions, build, register_attention
from tfeff.encoders.attentions import _REGISTRY, _arguments_of
from tfeff.encoders.stack import make_blocks
from tfeff.layers import EncoderBlock, FeedForward, OneHeadAttention, SelfAttention

LENGTH, D = 9, 8
HIDDEN = np.random.default_rng(0).normal(size=(2, LENGTH, D))
VISIBLE = np.arange(LENGTH) < [[LENGTH], [6]]
SEGMENTS = (np.arange(LENGTH) >= [[4], [2]]).astype("int32")

RELATIVE = {"name": "relative", "method": "shaw"}
BIAS = {"name": "relative", "method": "bias", "num_buckets": 8, "max_distance": 7}
XLNET = {"name": "relative", "method": "xlnet"}
# The specification beside which an argument is tried, where the name is not enough.
BESIDE = {
    "relative": RELATIVE,
    "blockwise": {"name": "blockwise", "head_blocks": "3:1"},
    "sparse": {"name": "sparse", "stride": 3, "expressivity": 2, "query_block_size": 3},
    ("relative", "num_buckets"): BIAS,
    ("relative", "sinusoid"): XLNET,
    ("relative", "relative_segments"): XLNET,
    ("relative", "query_bias"): XLNET,
}
# A value other than an encoder's and a layer's own.
VALUES = {
    "num_heads": 2,
    "num_parts": 2,
    "query_block_size": 6,
    "dropout": 0.5,
    "kernel_initializer": "ones",
    "bias_initializer": "ones",
    "dtype": "float64",
    "layer_index": 1,
    "num_layers": 5,
    "max_sequence_length": 3,
    "boundaries": [-2, 0, 3],
    "alpha": -3.0,
    "beta": -1.0,
    "spacing": 5.0,
    "partition": TENTS,
    "normalizer": "softmax",
    "partition_bias": False,
    "partition_value": False,
    "key_projection": True,
    "values_by_part": False,
    "method": "huang4",
    "max_distance": 2,
    "shared_heads": True,
    "num_buckets": 6,
    "sinusoid": "concatenated",
    "relative_segments": True,
    "query_bias": False,
    "disabled_heads": [1],
    "head_blocks": "2:2",
    "stride": 4,
    "expressivity": 1,
    "pattern": "sparse_transformer",
    "head_ratio": 4,
    "kernel_size": 5,
    "convolution": "lightweight",
    "mask_conv": False,
}
# Those that change no number, by what they are for: seen in the configuration.
SAME_NUMBERS = {"query_block_size"}
# The encoder's list of its layers, which is no argument of the user's.
NO_ARGUMENTS = {"name", "earlier"}
# Other tests of this process may have registered some of their own.
BUILT_IN = [
    name for name in attentions() if _REGISTRY[name].__module__.startswith("tfeff.")
]


def of_stack(spec):
    """The first of two layers, and its initial weights and output in training."""
    (block, _) = make_blocks(2, 4, D, 12, max_sequence_length=LENGTH, attention=spec)
    block.build((None, None, D))
    initial = [keras.ops.convert_to_numpy(w) for w in block.attention.weights]
    randomize({w.path: w for w in block.weights})
    output = block(
        HIDDEN.astype("float32"),
        padding_mask=VISIBLE,
        segment_ids=SEGMENTS,
        layer_index=0,
        training=True,
    )
    return block.attention, initial, np.asarray(output)


def is_seen(spec, argument, value):
    """Whether the layer is another one with the argument, in the stack's own call.

    Or whether the argument is refused: that of a blockwise attention's heads.
    """
    try:
        attention, initial, output = of_stack({**spec, argument: value})
    except ValueError as error:
        return f"{argument}={value}" in str(error)
    if argument.endswith("_initializer"):
        kind = argument.removesuffix("_initializer")
        named = [
            value
            for weight, value in zip(attention.weights, initial, strict=True)
            if weight.name == kind
        ]
        ones = [(value == 1).all() for value in named or initial]
        return all(ones) if named else any(ones)
    if argument == "dtype":
        return attention.compute_dtype == value
    plain, plain_initial, plain_output = of_stack(spec)
    if argument in SAME_NUMBERS:
        return attention.get_config()[argument] == value
    if [x.shape for x in initial] != [x.shape for x in plain_initial]:
        return True
    return np.abs(output - plain_output).max() > 1e-4


@pytest.mark.quick("self")
@pytest.mark.parametrize("name", BUILT_IN)
def test_every_argument_of_an_attention(name):
    accepted = _arguments_of(_REGISTRY[name]) - NO_ARGUMENTS
    lost = []
    for argument in sorted(accepted):
        spec = BESIDE.get((name, argument), BESIDE.get(name, {"name": name}))
        value = VALUES[argument]
        if not is_seen(spec, argument, value):
            lost.append(argument)
    assert not lost


def test_arguments_of_other_methods_are_refused():
    for argument, value in (("num_buckets", 8), ("sinusoid", "concatenated")):
        spec = RELATIVE | {argument: value}
        with pytest.raises(ValueError, match=f"`{argument}` must be left out"):
            build("bert_base", **TINY, attention=spec)


@pytest.mark.parametrize("argument", ["kernel_size", "mask_conv"])
def test_arguments_of_a_convolution_are_refused_without_one(argument):
    spec = {"name": "mixed", "convolution": "none", argument: VALUES[argument]}
    with pytest.raises(ValueError, match=f"`{argument}` must be left out where there"):
        build("bert_base", **TINY, attention=spec)


@pytest.mark.parametrize("given", [{"temperature": 4.0}, {"soften": "student"}])
def test_arguments_of_predictions_are_refused_without_them(given):
    encoders = [build("bert_tiny", **TINY) for _ in range(2)]
    classifiers = [tfeff.tasks.Classifier(encoder, 2) for encoder in encoders]
    expected = f"`{next(iter(given))}` must be left out where no predictions"
    for models, more in ((encoders, {}), (classifiers, {"prediction": False})):
        with pytest.raises(ValueError, match=expected):
            tfeff.objectives.Distillation(*models, **more, **given)


def test_a_users_attention_gets_its_index():
    """In its constructor, and in every call of the stack."""
    calls = []

    class Counting(SelfAttention):
        def __init__(self, num_heads, layer_index, **kwargs):
            super().__init__(num_heads, **kwargs)
            calls.append(layer_index)

        def call(self, hidden, padding_mask=None, layer_index=None, training=None):
            calls.append(layer_index)
            return hidden

    register_attention("counting_of_tests", Counting)
    blocks = make_blocks(
        3, 2, 4, 4, attention={"name": "counting_of_tests", "layer_index": 7}
    )
    tfeff.encoders.stack.apply_blocks(blocks, np.ones((1, 2, 4), "float32"))
    assert set(calls) == {7}


def test_every_argument_of_a_block():
    """Those of Keras' own are left out; the layers are tried above."""
    names = set(inspect.signature(EncoderBlock).parameters) - {"kwargs"}
    values = dict(
        dropout=0.5, layer_norm_epsilon=0.5, memory_efficient="block", layer_index=3
    )
    assert names == {"attention", "feedforward", *values}
    outputs = {}
    for name, value in [(None, None), *values.items()]:
        block = EncoderBlock(
            OneHeadAttention(4), FeedForward(12), **{name: value} if name else {}
        )
        block.build((None, None, D))
        randomize(variables_of(block))
        outputs[name] = np.asarray(
            block(HIDDEN.astype("float32"), layer_index=0, training=True)
        )
        if name is not None:
            assert block.get_config()[name] == value
    for name in ("dropout", "layer_norm_epsilon", "layer_index"):
        assert np.abs(outputs[name] - outputs[None]).max() > 1e-4, name


# Values other than those of the encoder below.
ENCODER = dict(
    vocabulary_size=23,
    num_layers=4,
    num_heads=2,
    hidden_dim=16,
    intermediate_dim=20,
    max_sequence_length=9,
    num_segments=2,
    embedding_dim=6,
    attention="one_head",
    feedforward={"activation": "relu"},
    position="none",
    sharing="all",
    embedding_layer_norm=False,
    layer_norm_epsilon=0.5,
    dropout=0.5,
    attention_dropout=0.5,
    memory_efficient="block",
    dtype="float64",
)


@pytest.mark.slow
def test_every_argument_of_an_encoder():
    """Each is in the configuration, and in the weights or in what is computed."""
    left = {"kwargs", "tables_of", "sharing_group_size"}
    assert set(inspect.signature(Encoder).parameters) - left == set(ENCODER)
    ids = np.array([[3, 7, 1, 0], [4, 2, 2, 9]], "int32")
    batch = dict(token_ids=ids, segment_ids=ids % 2, padding_mask=np.ones_like(ids))

    def made(**changes):
        encoder = build("bert_tiny", **TINY | changes)
        randomize({w.path: w for w in encoder.weights})
        output = encoder(batch, training=True)["sequence_output"]
        return encoder, [tuple(w.shape) for w in encoder.weights], np.asarray(output)

    _, shapes, output = made()
    lost = []
    for name, value in ENCODER.items():
        encoder, other_shapes, other = made(**{name: value})
        config = encoder.get_config()[name]
        seen = other_shapes != shapes or other.dtype != output.dtype
        seen = seen or np.abs(other - output).max() > 1e-4
        if name == "memory_efficient":
            seen = all(block.memory_efficient == value for block in encoder.blocks)
        if not seen or (config != value and name != "dtype"):
            lost.append(name)
    assert not lost


def models():
    """Makers of every model around an encoder, by the name of the class."""
    encoder = build("bert_tiny", **TINY)
    other = build("bert_tiny", **TINY)
    objectives, tasks = tfeff.objectives, tfeff.tasks
    return {
        "Encoder": lambda **x: Encoder(**_sizes(), **x),
        "MaskedLM": lambda **x: objectives.MaskedLM(encoder, **x),
        "PermutationLM": lambda **x: objectives.PermutationLM(encoder, **x),
        "SentencePairPrediction": lambda **x: objectives.SentencePairPrediction(
            encoder, **x
        ),
        "ReplacedTokenDetection": lambda **x: objectives.ReplacedTokenDetection(
            other, encoder, **x
        ),
        "Distillation": lambda **x: objectives.Distillation(encoder, other, **x),
        "Classifier": lambda **x: tasks.Classifier(encoder, 2, **x),
        "Regressor": lambda **x: tasks.Regressor(encoder, **x),
        "MultipleChoice": lambda **x: tasks.MultipleChoice(encoder, **x),
        "SpanQA": lambda **x: tasks.SpanQA(encoder, **x),
    }


def _sizes():
    names = ("vocabulary_size", "num_layers", "num_heads", "hidden_dim")
    return {name: TINY[name] for name in (*names, "intermediate_dim")}


@pytest.mark.slow
def test_models_refuse_what_they_do_not_have():
    """Keras' functional models ignore such arguments."""
    for owner, make in models().items():
        expected = f"`droput` must be left out: it is no argument of `{owner}`"
        with pytest.raises(TypeError, match=f"{expected}. Received: droput=0.3"):
            make(droput=0.3)
        assert make(name="own").name == "own"
