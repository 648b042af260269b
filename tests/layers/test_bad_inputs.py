"""Every layer that is built works on an input of its call, or names it."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import tree

from tests.subjects.layers import CASES, HIDDEN, IDS, make_relative_block
from tfeff import layers

BAD = {
    "a rank less": lambda x: x[0],
    "a rank more": lambda x: x[None],
    "another width": lambda x: x[..., :4],
    "integers": lambda x: x.astype("int32"),
    "floats": lambda x: x.astype("float32"),
}
NAMED = (
    r"(?s)`(hidden|inputs|hidden_states\[0\]|token_ids|relative_positions)` must "
    r".*Received: \1\."
)
# Of these layers the sizes are all known from their weights.
STRICT = {
    name
    for name, case in CASES.items()
    if isinstance(case.inputs, list)
    or any(part in name for part in ("Attention", "Block", "FeedForward"))
}
LISTS = {
    "padding_mask": (layers.SelfAttention(2), HIDDEN),
    "padding_mask of a block": (make_relative_block(), HIDDEN),
    "segment_ids": (make_relative_block(), HIDDEN),
    "segment_ids of an embedding": (layers.EncoderEmbedding(9, 8), IDS),
    "segment_ids of a pooling": (layers.SegmentPooling(), HIDDEN),
    "ranks": (layers.TwoStreamBlocks([make_relative_block()]), HIDDEN),
    "target_positions": (layers.TwoStreamBlocks([make_relative_block()]), HIDDEN),
}


def symbolic(x):
    return keras.Input(batch_shape=x.shape, dtype=str(x.dtype))


def error_of(layer, *inputs, **others):
    """The error of a call, which must name an input; `None` if it works."""
    try:
        layer(*inputs, **others)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error), match=NAMED):
            raise
        return error
    return None


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("name", CASES)
def test_an_input_is_named(name, kind):
    case = CASES[name]
    layer = case.make()
    layer(case.inputs, **case.others)
    bad = tree.map_structure(BAD[kind], case.inputs)
    error = error_of(layer, bad, **case.others)
    bad, others = tree.map_structure(symbolic, [bad, case.others])
    assert type(error_of(layer, bad, **others)) is type(error)
    if name in STRICT and kind in ("a rank less", "a rank more", "another width"):
        assert isinstance(error, ValueError)


@pytest.mark.parametrize("what", LISTS)
def test_lists_are_tensors(what):
    layer, first = LISTS[what]
    name = what.split()[0]
    others = dict.fromkeys(("segment_ids", "ranks"), IDS)
    accepted = layer.call.__code__.co_varnames
    others = {key: x for key, x in others.items() if key in accepted}
    expected = layer(first, **{**others, name: IDS})
    found = layer(first, **{**others, name: IDS.tolist()})
    tree.map_structure(np.testing.assert_array_equal, found, expected)
    ragged = [[0], *IDS.tolist()[1:]]
    with pytest.raises(TypeError, match=f"`{name}` must .*Received: {name}="):
        layer(first, **{**others, name: ragged})


@pytest.mark.parametrize("name", sorted(set(CASES) - {"Dropout"}))
def test_a_ragged_tensor_is_named(name):
    case = CASES[name]
    ragged = tree.map_structure(tf.RaggedTensor.from_tensor, case.inputs)
    with pytest.raises(TypeError, match="must be dense, with a padding mask.*Received"):
        case.make()(ragged, **case.others)
    layer, mask = layers.SelfAttention(2), tf.RaggedTensor.from_tensor(IDS)
    with pytest.raises(TypeError, match="`padding_mask` must be dense"):
        layer(HIDDEN, padding_mask=mask)


@pytest.mark.parametrize(
    "layer, values",
    [
        (layers.SelfAttention(2), ("score", "probabilities")),
        (layers.OneHeadAttention(4), ("scores",)),
        (layers.DynamicConv1D(2), ("scores", "kernels")),
    ],
)
def test_a_kind_of_scores_that_a_layer_has_not_is_named(layer, values):
    for value in values:
        with pytest.raises(ValueError, match="`return_attention_scores` must be True"):
            layer(HIDDEN, return_attention_scores=value)
    for value in (True, np.True_):
        assert len(layer(HIDDEN, return_attention_scores=value)) == 2


@pytest.mark.parametrize("built", [(3, 8), (2, 5, 8), (2, 3, 5, 8)])
@pytest.mark.parametrize("called", [(3, 8), (2, 5, 8), (2, 3, 5, 8), (2, 0, 8)])
def test_grouped_dense_takes_any_rank(built, called):
    layer = layers.GroupedDense(6, num_groups=2)
    layer(np.ones(built))
    inputs = np.random.default_rng(0).normal(size=called).astype("float32")
    fresh = layers.GroupedDense(6, num_groups=2)
    fresh.build(called)
    fresh.set_weights(layer.get_weights())
    np.testing.assert_allclose(layer(inputs), fresh(inputs), rtol=1e-6)
