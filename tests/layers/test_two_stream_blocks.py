"""XLNet's two streams against a literal version; the tokens that each attends to."""

from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checks import (
    arrays_of,
    assert_close,
    check_gradients,
    randomize,
)
from tests.reference import (
    one_head_pairs,
    pair_attention,
    part_of,
    partition_mask,
    relative_pair_attention,
    sparse_pairs,
    two_stream_blocks,
)
from tests.subjects.blocks import block_variables
from tfeff.layers import (
    BlockwiseAttention,
    EncoderBlock,
    FeedForward,
    MixedAttention,
    OneHeadAttention,
    PartitionedAttention,
    RelativeAttention,
    SelfAttention,
    SpanDynamicConv1D,
    SparseAttention,
    TwoStreamBlocks,
)

# Five real tokens; three; none; two with a hole. The last has non-targets, which
# all attend to each other and to no target.
VISIBLE = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0], [0, 1, 0, 1, 1]])
RANKS = np.array(
    [[3, 0, 4, 1, 2], [1, 2, 0, 4, 3], [0, 1, 2, 3, 4], [-1, -1, 0, 1, -1]], "int32"
)


def self_attend(queries, hidden, sees, weights, place, segment_ids):
    return pair_attention(queries, hidden, np.stack([sees] * 2), weights)[0]


def partitioned_attend(queries, hidden, sees, weights, place, segment_ids):
    mask = partition_mask(len(hidden), 4, place, 2)
    every = np.stack([sees] * 4)
    return pair_attention(queries, hidden, every, weights, factor=mask)[0]


def one_head_attend(queries, hidden, sees, weights, place, segment_ids):
    mask = partition_mask(len(hidden), 4, place, 2)
    return one_head_pairs(queries, hidden, sees, weights, mask, "sigmoid_l2")


def sparse_attend(queries, hidden, sees, weights, place, segment_ids):
    kept = sparse_pairs(len(hidden), 2, 1, "fairseq")
    return pair_attention(queries, hidden, np.stack([sees & kept] * 2), weights)[0]


def relative(name, **options):
    """The layer and its reference."""

    def attend(queries, hidden, sees, weights, place, segment_ids):
        given = {"segment_ids": segment_ids} if name == "xlnet" else {}
        return relative_pair_attention(
            queries, hidden, sees, weights, 2, name, **given, **options
        )[0]

    segments = {"relative_segments": True} if name == "xlnet" else {}
    return partial(RelativeAttention, 2, name, **segments, **options), attend


ATTENTIONS = {
    "self": (partial(SelfAttention, 2), self_attend),
    # A block's partition is that of its index.
    "partitioned": (partial(PartitionedAttention, 4, num_layers=2), partitioned_attend),
    "one_head": (partial(OneHeadAttention, 4, num_layers=2), one_head_attend),
    "sparse": (partial(SparseAttention, 2, stride=2, expressivity=1), sparse_attend),
    "xlnet": relative("xlnet", max_distance=None),
    "xlnet, sines first": relative("xlnet", sinusoid="concatenated"),
    "xlnet, clipped": relative("xlnet", max_distance=2),
    "xlnet, without biases": relative("xlnet", max_distance=None, query_bias=False),
    **{
        name: relative(name, max_distance=2)
        for name in ("shaw", "rpe", "huang1", "huang3", "huang4")
    },
}
ATTENTION_NAMED = "Blockwise|Mixed|SpanDynamic"
SEGMENTS = np.array(
    [[0, 0, 1, 1, 2], [0, 1, 1, 3, 3], [0] * 5, [0, 1, 0, 1, 1]], "int32"
)


def two_streams(name, num_blocks=2, dtype="float32", size=8, **kwargs):
    """The layer, built, with random weights, and these by the reference's names."""
    make = ATTENTIONS[name][0]
    blocks = [
        EncoderBlock(make(dtype=dtype), FeedForward(6, dtype=dtype), dtype=dtype)
        for _ in range(num_blocks)
    ]
    layer = TwoStreamBlocks(blocks, dtype=dtype, **kwargs)
    layer(
        np.zeros((1, 2, size)),
        np.zeros((1, 2), "int32"),
        segment_ids=np.zeros((1, 2), "int32"),
    )
    named = {"mask_embedding": layer.mask_embedding}
    for i, block in enumerate(blocks):
        named |= {f"{i}/{n}": v for n, v in block_variables(block).items()}
    assert len(named) == len(layer.weights)
    randomize(named)
    return layer, named


def reference(name, arrays, ranks=RANKS, visible=VISIBLE, segments=SEGMENTS):
    """(content, query) [B, T, D] each."""
    num_blocks = 1 + max(int(key.split("/")[0]) for key in arrays if key[0].isdigit())
    streams = [
        two_stream_blocks(
            arrays["hidden"][b],
            visible[b],
            ranks[b],
            arrays["mask_embedding"],
            [part_of(arrays, str(i)) for i in range(num_blocks)],
            partial(ATTENTIONS[name][1], segment_ids=segments[b]),
        )
        for b in range(len(ranks))
    ]
    return [np.stack(stream) for stream in zip(*streams)]


def inputs_of(batch=4, length=5, size=8, dtype="float32"):
    return np.random.default_rng(0).normal(size=(batch, length, size)).astype(dtype)


def call(layer, hidden, **kwargs):
    arguments = {"padding_mask": VISIBLE, "segment_ids": SEGMENTS, **kwargs}
    return layer(hidden, RANKS, **arguments)


@pytest.mark.quick("self", "shaw")
@pytest.mark.parametrize("name", ATTENTIONS)
def test_both_streams(name):
    hidden = inputs_of()
    for dtype, tolerance in (("float32", 2e-5), ("float64", 1e-10)):
        layer, named = two_streams(name, dtype=dtype)
        arrays = {**arrays_of(named), "hidden": hidden.astype("float64")}
        for actual, expected in zip(
            call(layer, hidden.astype(dtype)), reference(name, arrays)
        ):
            assert actual.dtype == dtype
            assert_close(actual, expected, tolerance)


@pytest.mark.quick("xlnet", "self")
@pytest.mark.parametrize("name", ["self", "xlnet", "xlnet, without biases", "one_head"])
def test_gradients_of_both_streams(name):
    """One block in full; deeper ones go through the same code."""
    layer, named = two_streams(name, num_blocks=1, size=4, dtype="float64")
    rows = [0, 3]
    hidden = inputs_of(2, 4, 4, "float64")
    places = {
        "ranks": np.array([[2, 0, 3, 1], [-1, 0, -1, 1]], "int32"),
        "visible": np.array([[1, 1, 1, 1], [1, 1, 0, 1]]),
        "segments": SEGMENTS[rows, :4],
    }

    def both(hidden):
        content, query = layer(
            hidden,
            places["ranks"],
            padding_mask=places["visible"],
            segment_ids=places["segments"],
        )
        return tf.concat([content, query], axis=-1)

    check_gradients(
        both,
        lambda arrays: np.concatenate(reference(name, arrays, **places), axis=-1),
        named,
        {"hidden": hidden},
    )


TARGETS = np.array([[4, 0, 2], [2, 2, 1], [0, 0, 0], [3, 2, 2]], "int32")


@pytest.mark.quick("xlnet", "huang4", "partitioned", "self")
@pytest.mark.parametrize("name", ATTENTIONS)
def test_queries_at_targets_only(name):
    """In any order, and more than once."""
    hidden = inputs_of()
    for dtype, tolerance in (("float32", 2e-5), ("float64", 1e-10)):
        layer, named = two_streams(name, dtype=dtype)
        content, query = reference(
            name, {**arrays_of(named), "hidden": hidden.astype("float64")}
        )
        same, rows = call(layer, hidden.astype(dtype), target_positions=TARGETS)
        assert_close(same, content, tolerance)
        expected = np.take_along_axis(query, TARGETS[..., None], axis=1)
        assert rows.shape == (4, 3, 8) and rows.dtype == dtype
        assert_close(rows, expected, tolerance)


@pytest.mark.quick("one_head")
@pytest.mark.parametrize("name", ["xlnet", "one_head"])
def test_gradients_of_queries_at_targets(name):
    layer, named = two_streams(name, num_blocks=1, size=4, dtype="float64")
    targets = np.array([[2, 0], [3, 3]], "int32")
    places = {
        "ranks": np.array([[2, 0, 3, 1], [-1, 0, -1, 1]], "int32"),
        "visible": np.array([[1, 1, 1, 1], [1, 1, 0, 1]]),
        "segments": SEGMENTS[[0, 3], :4],
    }

    def at_targets(hidden):
        return layer(
            hidden,
            places["ranks"],
            padding_mask=places["visible"],
            segment_ids=places["segments"],
            target_positions=targets,
        )[1]

    check_gradients(
        at_targets,
        lambda arrays: np.take_along_axis(
            reference(name, arrays, **places)[1], targets[..., None], axis=1
        ),
        named,
        {"hidden": inputs_of(2, 4, 4, "float64")},
    )


def test_quantized_blocks_predict_at_targets():
    """Their kernels cannot be rotated by positions: all positions are computed."""
    layer, _ = two_streams("xlnet", size=16)
    hidden = inputs_of(size=16)
    _, exact = call(layer, hidden)
    for block in layer.blocks:
        block.attention.relative_dense.quantize("int8")
    _, rows = call(layer, hidden, target_positions=TARGETS)
    expected = np.take_along_axis(np.asarray(exact), TARGETS[..., None], axis=1)
    assert np.abs(rows - expected).max() < 0.05 * np.abs(expected).max()


def test_no_mask_means_all_are_real():
    layer, _ = two_streams("self")
    hidden = inputs_of()
    ones = np.ones((4, 5), bool)
    for actual, expected in zip(
        layer(hidden, RANKS), layer(hidden, RANKS, padding_mask=ones)
    ):
        assert_close(actual, expected, 1e-6)


@pytest.mark.parametrize("name", ["self", "huang4"])
def test_identity_permutation_is_causal_attention(name):
    """Content and query rows depend on earlier tokens, as in a left-to-right LM.

    And the content stream's last row sees all: the encoder's own blocks give it.
    """
    layer, named = two_streams(name, num_blocks=1)
    hidden = inputs_of(1, 6)
    ranks = np.arange(6, dtype="int32")[None]
    content, query = (np.asarray(s) for s in layer(hidden, ranks))
    for length in range(1, 7):
        block = layer.blocks[0]
        alone = np.asarray(block(hidden[:, :length]))
        assert_close(content[:, length - 1], alone[:, -1], 1e-5)
    changed = hidden.copy()
    changed[:, 3] += 1.0
    moved = [
        np.flatnonzero(np.abs(new - old).max(axis=(0, 2)) > 1e-5).tolist()
        for new, old in zip(layer(changed, ranks), (content, query))
    ]
    assert moved == [[3, 4, 5], [4, 5]]


@pytest.mark.slow
@settings(max_examples=10)
@given(st.permutations(range(6)), st.integers(0, 5))
def test_what_a_token_changes(ranks, at):
    """A change of x_i reaches the content of rank >= its own, the query of > it."""
    layer, _ = two_streams("xlnet", size=4)
    hidden, order = inputs_of(1, 6, 4), np.array([ranks], "int32")
    changed = hidden.copy()
    changed[0, at] += 1.0
    segments = np.zeros((1, 6), "int32")
    before = layer(hidden, order, segment_ids=segments)
    after = layer(changed, order, segment_ids=segments)
    moved = [
        set(np.flatnonzero(np.abs(a - b).max(axis=(0, 2)) > 1e-6))
        for a, b in zip(after, before)
    ]
    assert moved[0] == {j for j in range(6) if ranks[j] >= ranks[at]}
    assert moved[1] == {j for j in range(6) if ranks[j] > ranks[at]}


def test_non_targets_attend_to_each_other_and_to_no_target():
    layer, _ = two_streams("self")
    hidden, ranks = inputs_of(1, 5), np.array([[-1, 0, -1, 1, -1]], "int32")

    def moved(at):
        changed = hidden.copy()
        changed[0, at] += 1.0
        return [
            np.flatnonzero(np.abs(a - b).max(axis=(0, 2)) > 1e-6).tolist()
            for a, b in zip(layer(changed, ranks), layer(hidden, ranks))
        ]

    assert moved(0) == [[0, 1, 2, 3, 4], [1, 3]]
    assert moved(1) == [[1, 3], [3]]
    assert moved(3) == [[3], []]


def test_a_query_without_visible_keys_has_a_context_of_zeros():
    """The first of the order: W^O's bias alone is added to the residual."""
    layer, named = two_streams("self", num_blocks=1)
    _, query = layer(inputs_of(1, 4), np.array([[2, 0, 1, 3]], "int32"))
    block = layer.blocks[0]
    residual = (
        named["mask_embedding"].numpy() + named["0/attention/output/bias"].numpy()
    )
    y = block.attention_norm(residual[None, None])
    expected = block.feedforward_norm(y + block.feedforward(y))
    assert_close(query[:, 1:2], expected, 1e-5)


@pytest.mark.parametrize("name", ["xlnet", "shaw"])
def test_is_shift_invariant(name):
    """Relative positions count in both streams."""
    layer, _ = two_streams(name)
    hidden = inputs_of()
    front = ((0, 0), (3, 0))
    shifted = layer(
        np.pad(hidden, (*front, (0, 0)), constant_values=9.0),
        np.pad(RANKS, front, constant_values=-1),
        padding_mask=np.pad(VISIBLE, front),
        segment_ids=np.pad(SEGMENTS, front),
    )
    for actual, expected in zip(shifted, call(layer, hidden)):
        assert_close(actual[:, 3:], expected, 1e-5)


@pytest.mark.slow
def test_one_trace_serves_all_shapes_and_compiles():
    layer, named = two_streams("xlnet")
    ids = tf.TensorSpec((None, None), tf.int32)

    @tf.function(input_signature=[tf.TensorSpec((None, None, 8)), *[ids] * 4])
    def run(hidden, ranks, visible, segments, targets):
        return layer(
            hidden,
            ranks,
            padding_mask=visible,
            segment_ids=segments,
            target_positions=targets,
        )

    compiled = tf.function(run.python_function, jit_compile=True)
    for batch, length in ((4, 5), (2, 1), (3, 3)):
        hidden = inputs_of(batch, length)
        ranks, visible, segments = (
            x[:batch, :length].astype("int32") for x in (RANKS, VISIBLE, SEGMENTS)
        )
        targets = np.zeros((batch, 2), "int32") + length - 1
        arrays = {**arrays_of(named), "hidden": hidden.astype("float64")}
        content, query = reference("xlnet", arrays, ranks, visible, segments)
        for function in (run, compiled) if length == 5 else (run,):
            actual = function(hidden, ranks, visible, segments, targets)
            assert_close(actual[0], content, 2e-5)
            assert_close(actual[1], query[:, [-1, -1]], 2e-5)


@pytest.mark.slow
def test_saving(tmp_path):
    layer, _ = two_streams("shaw")
    inputs = [
        keras.Input((None, 8), name="hidden"),
        keras.Input((None,), dtype="int32", name="ranks"),
        keras.Input((None,), dtype="int32", name="visible"),
    ]
    outputs = layer(inputs[0], inputs[1], padding_mask=inputs[2])
    model = keras.Model(inputs, outputs)
    assert [o.shape for o in model.outputs] == [(None, None, 8)] * 2
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    values = [inputs_of(), RANKS, VISIBLE.astype("int32")]
    for actual, expected in zip(loaded(values), model(values)):
        assert_close(actual, expected, 1e-6)


@pytest.mark.parametrize("dtype, tolerance", [("float16", 0.03), ("bfloat16", 0.2)])
def test_half_precision(dtype, tolerance):
    layer, named = two_streams("xlnet", dtype=f"mixed_{dtype}")
    hidden = inputs_of()
    arrays = {**arrays_of(named), "hidden": hidden.astype("float64")}
    content, query = reference("xlnet", arrays)
    some = np.take_along_axis(query, TARGETS[..., None], axis=1)
    for actual, expected in zip(
        (*call(layer, hidden), call(layer, hidden, target_positions=TARGETS)[1]),
        (content, query, some),
    ):
        assert actual.dtype == dtype
        error = np.abs(np.asarray(actual, "float64") - expected).max()
        assert error <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize(
    "make_attention",
    [
        partial(BlockwiseAttention, 2, "1:1"),
        partial(MixedAttention, 2),
        partial(SpanDynamicConv1D, 2),
    ],
)
def test_attentions_without_dense_scores_are_refused(make_attention):
    with pytest.raises((ValueError, TypeError), match=ATTENTION_NAMED):
        layer = TwoStreamBlocks([EncoderBlock(make_attention(), FeedForward(6))])
        layer(inputs_of(), RANKS)


@pytest.mark.parametrize("blocks", [[], [SelfAttention(2)], None, "ab"])
def test_names_bad_blocks(blocks):
    with pytest.raises((ValueError, TypeError), match="`blocks` must .*Received: "):
        TwoStreamBlocks(blocks)


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"ranks": RANKS.astype("float32")}, "ranks"),
        ({"ranks": RANKS[:, :4]}, "ranks"),
        ({"ranks": RANKS[..., None]}, "ranks"),
        ({"padding_mask": VISIBLE[:, :4]}, "padding_mask"),
        ({"padding_mask": VISIBLE.astype("float32")}, "padding_mask"),
        ({"target_positions": np.zeros((4, 2), "float32")}, "target_positions"),
        ({"target_positions": np.zeros((4,), "int32")}, "target_positions"),
        ({"segment_ids": None}, "segment_ids"),
        ({"segment_ids": SEGMENTS[:, :4]}, "segment_ids"),
    ],
)
def test_names_bad_input(arguments, name):
    layer, _ = two_streams("xlnet")
    arguments = {"ranks": RANKS, "segment_ids": SEGMENTS, **arguments}
    with pytest.raises((ValueError, TypeError), match=f"`{name}` .*must .*Received: "):
        layer(inputs_of(), arguments.pop("ranks"), **arguments)


def test_shapes_are_in_the_order_of_the_call():
    layer, _ = two_streams("self")
    whole, some = (4, 5, 8), (4, 2)
    expected = whole, (4, 2, 8)
    assert layer.compute_output_shape(whole, (4, 5), (4, 5), some) == expected
    assert layer.compute_output_shape(whole, (4, 5), (4, 5)) == (whole, whole)
    for name in ("ranks_shape", "segment_ids_shape", "query_shape"):
        named = {name: (4, 5), "target_positions_shape": some}
        assert layer.compute_output_shape(whole, **named) == expected
