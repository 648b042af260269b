"""BlockBERT's attention against dense attention over the blocks it keeps."""

import json
from functools import partial

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checks import (
    arrays_of,
    assert_close,
    check_equations,
    randomize,
    variables_of,
)
from tests.checks.layer import (
    check_bad_input,
    check_dynamic_shapes,
    check_mask_types,
)
from tests.checks.programs import largest_tensor
from tests.checks.running import (
    check_dropout,
    check_half_precision,
    check_saving,
    check_xla,
)
from tests.checks.subject import Subject
from tests.reference import (
    batched,
    block_pairs,
    blockwise_attention,
    permuted_pairs,
)
from tfeff.layers import BlockwiseAttention, SelfAttention

# Of three blocks; the first three are no shifts. As the paper writes them, from 1.
PERMUTATIONS = ((1, 3, 2), (1, 3, 2), (3, 2, 1), (2, 3, 1))


def from_zero(permutations):
    return [[block - 1 for block in permutation] for permutation in permutations]


def subject(head_blocks):
    """How the layer is made, and its reference."""
    if isinstance(head_blocks, tuple):
        make = partial(BlockwiseAttention, len(head_blocks), from_zero(head_blocks))
        return make, batched(partial(blockwise_attention, permutations=head_blocks))
    counts = [int(count) for count in str(head_blocks).split(":")]
    make = partial(BlockwiseAttention, sum(counts), head_blocks)
    return make, batched(partial(blockwise_attention, counts=counts))


def check(check, head_blocks, **kwargs):
    check(*subject(head_blocks), **kwargs)


def randomized(num_heads, head_blocks, hidden_dim=8, **kwargs):
    layer = BlockwiseAttention(num_heads, head_blocks, **kwargs)
    layer.build((None, None, hidden_dim))
    randomize(variables_of(layer))
    return layer


def inputs_of(batch, length, size=8):
    return np.random.default_rng(0).normal(size=(batch, length, size)).astype("float32")


@pytest.mark.quick("2:1:1")
@pytest.mark.parametrize("head_blocks", ["3:1", "2:1:1", PERMUTATIONS])
def test_layer(head_blocks):
    """All checks of a layer, but that more padding changes nothing.

    Lengths 5, 1 and 8 are no multiples of 2 or 3, or fewer than the blocks.
    """
    check(check_equations, head_blocks)
    held = Subject(*subject(head_blocks), hidden_dim=8, variables=variables_of)
    for check_it in (
        check_dynamic_shapes,
        check_mask_types,
        check_bad_input,
        check_saving,
        check_xla,
        check_half_precision,
        check_dropout,
    ):
        check_it(held)


def test_padding_changes_nothing_while_the_blocks_stay():
    """Where blocks end depends on the length: 7 and 8 have the same halves."""
    layer = randomized(4, "3:1")
    hidden = inputs_of(2, 7)
    visible = np.array([[1] * 7, [1] * 3 + [0] * 4], bool)
    expected = np.asarray(layer(hidden, padding_mask=visible))
    garbage = np.where(visible[..., None], hidden, np.float32(1e4))
    actual = np.asarray(layer(garbage, padding_mask=visible))
    assert_close(actual[visible], expected[visible], 1e-5)
    longer = layer(
        np.pad(hidden, ((0, 0), (0, 1), (0, 0)), constant_values=1e4),
        padding_mask=np.pad(visible, ((0, 0), (0, 1))),
    )
    assert_close(longer[:, :7], expected, 1e-5)


@pytest.mark.quick("4", "1:2:1")
@pytest.mark.parametrize(
    "head_blocks", ["4", "4:0", "0:4", "1:2:1", "1:0:2", "0:1:0:1"]
)
def test_equations(head_blocks):
    check(check_equations, head_blocks, hidden_dim=6 if head_blocks == "1:0:2" else 4)


def test_more_blocks_than_tokens():
    check(check_equations, "1:0:0:0:0:0:0:0:1:0", hidden_dim=4)


@settings(max_examples=20)
@given(st.data())
def test_equals_masked_dense_attention(data):
    """Any assignment of heads, any length, any mask; scores of all pairs."""
    counts = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=4))
    if not sum(counts):
        counts[0] = 1
    num_heads, length = sum(counts), data.draw(st.integers(1, 11))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    hidden = rng.normal(size=(2, length, 2 * num_heads)).astype("float32")
    visible = rng.random((2, length)) < 0.6
    layer = randomized(num_heads, counts, 2 * num_heads)
    expected = batched(partial(blockwise_attention, counts=counts))(
        hidden.astype("float64"), visible, arrays_of(variables_of(layer))
    )
    output = layer(hidden, padding_mask=visible, return_attention_scores=True)
    for actual, literal in zip(output, expected):
        assert_close(actual, literal, 1e-5)


@settings(max_examples=20)
@given(st.data())
def test_any_permutations_equal_masked_dense_attention(data):
    """Of any number of blocks, another one for each head, by equation 2 as printed."""
    num_heads, num_blocks = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    length = data.draw(st.integers(1, 11))
    order = st.permutations(range(1, num_blocks + 1)).map(tuple)
    permutations = [data.draw(order) for _ in range(num_heads)]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    hidden = rng.normal(size=(2, length, 2 * num_heads)).astype("float32")
    visible = rng.random((2, length)) < 0.6
    layer = randomized(num_heads, from_zero(permutations), 2 * num_heads)
    expected = batched(partial(blockwise_attention, permutations=permutations))(
        hidden.astype("float64"), visible, arrays_of(variables_of(layer))
    )
    output = layer(hidden, padding_mask=visible, return_attention_scores=True)
    for actual, literal in zip(output, expected):
        assert_close(actual, literal, 1e-5)


def test_shifts_are_permutations():
    """σ = (2, 3, 1) of section 3.1 and its powers, to the last bit."""
    shifts = ((1, 2, 3), (1, 2, 3), (2, 3, 1), (3, 1, 2))
    layer, other = randomized(4, "2:1:1"), randomized(4, from_zero(shifts))
    other.set_weights(layer.get_weights())
    visible = np.array([[1] * 8, [1] * 5 + [0] * 3], bool)
    for actual, expected in zip(
        other(inputs_of(2, 8), visible, return_attention_scores=True),
        layer(inputs_of(2, 8), visible, return_attention_scores=True),
    ):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("head_blocks", ["4", [4], (4,), [(0,)] * 4])
def test_one_block_is_self_attention(head_blocks):
    layer = randomized(4, head_blocks)
    plain = SelfAttention(4)
    plain.build((None, None, 8))
    for name, variable in variables_of(plain).items():
        variable.assign(variables_of(layer)[name])
    visible = np.array([[1] * 5, [1, 1, 0, 0, 0]], bool)
    for actual, expected in zip(
        layer(inputs_of(2, 5), visible, return_attention_scores=True),
        plain(inputs_of(2, 5), visible, return_attention_scores=True),
    ):
        assert_close(actual, expected, 1e-6)


def test_heads_attend_to_the_blocks_of_the_paper():
    """10:2 and 8:2:2: identity first, then one and two blocks further on."""
    for counts in ((10, 2), (8, 2, 2)):
        layer = randomized(12, ":".join(map(str, counts)), 12)
        _, scores = layer(inputs_of(1, 6, 12), return_attention_scores=True)
        kept = np.asarray(scores)[0] > 0
        np.testing.assert_array_equal(kept, block_pairs(6, counts))
        assert kept.mean() == pytest.approx(1 / len(counts))
    assert kept[0, 0, 0] and kept[8, 0, 2] and kept[10, 0, 4]
    layer = randomized(4, from_zero(PERMUTATIONS))
    _, scores = layer(inputs_of(1, 6), return_attention_scores=True)
    kept = np.asarray(scores)[0] > 0
    np.testing.assert_array_equal(kept, permuted_pairs(6, PERMUTATIONS))
    assert (kept.mean(axis=(1, 2)) == 1 / 3).all()


def test_forms_of_the_assignment_are_the_same_config():
    configs = [BlockwiseAttention(4, f, name="a").get_config() for f in ("3:1", [3, 1])]
    assert configs[0] == configs[1]
    copy = BlockwiseAttention.from_config(configs[0])
    assert copy.get_config() == configs[0]
    forms = ([(0, 1), (1, 0)], np.array([[0, 1], [1, 0]]), ([0, 1], [1, 0]))
    configs = [BlockwiseAttention(2, f, name="a").get_config() for f in forms]
    assert configs[0]["head_blocks"] == [[0, 1], [1, 0]]
    assert configs[0] == configs[1] == configs[2]
    copy = BlockwiseAttention.from_config(json.loads(json.dumps(configs[0])))
    assert copy.get_config() == configs[0]


@pytest.mark.slow
@pytest.mark.parametrize("length", [64, 61])
def test_never_computes_a_matrix_of_all_pairs(length):
    """The program has the blocks, N T T / n elements, and nothing larger."""

    def largest(layer):
        hidden = inputs_of(1, length, 4)
        layer(hidden)
        visible = np.arange(length)[None] < length - 3
        call = partial(lambda layer, hidden, visible: layer(hidden, visible), layer)
        return largest_tensor(call, layer.trainable_variables, hidden, visible)

    assert largest(SelfAttention(2)) >= 2 * length**2
    permutations = [(1, 0, 3, 2), (3, 1, 2, 0)]
    for head_blocks in ("1:0:1:0", "2:0:0:0", "0:1:1:0", permutations):
        blocks = 2 * 4 * 16 * 16
        assert largest(BlockwiseAttention(2, head_blocks)) == blocks < length**2


@pytest.mark.parametrize(
    "num_heads, head_blocks, name",
    [
        (4, "3:2", "head_blocks"),
        (4, "2:1", "head_blocks"),
        (4, "0:0", "head_blocks"),
        (4, "5:-1", "head_blocks"),
        (4, [5, -1], "head_blocks"),
        (4, [2.0, 2.0], "head_blocks"),
        (4, [], "head_blocks"),
        (4, "", "head_blocks"),
        (4, "2,2", "head_blocks"),
        (4, "a:b", "head_blocks"),
        (4, "2::2", "head_blocks"),
        (4, None, "head_blocks"),
        (4, 4, "head_blocks"),
        (2, [(0, 1)], "head_blocks"),
        (2, [(0, 1), (1, 0), (1, 0)], "head_blocks"),
        (2, [(0, 1), (0, 1, 2)], "head_blocks"),
        (2, [(0, 1), (1, 1)], "head_blocks"),
        (2, [(1, 2), (2, 1)], "head_blocks"),
        (2, [(0, 1), (0, -1)], "head_blocks"),
        (2, [(0, 1), 1], "head_blocks"),
        (2, [(0, 1), (1.0, 0.0)], "head_blocks"),
        (2, [(0, 1), (True, False)], "head_blocks"),
        (2, [(0, 1), "10"], "head_blocks"),
        (2, [(), ()], "head_blocks"),
        (0, "1:1", "num_heads"),
        (2.0, "1:1", "num_heads"),
    ],
)
def test_names_a_bad_argument(num_heads, head_blocks, name):
    with pytest.raises((ValueError, TypeError), match=f"`{name}` must .*Received: "):
        BlockwiseAttention(num_heads, head_blocks)


def test_heads_must_divide_the_hidden_size():
    with pytest.raises(ValueError, match="`num_heads` must divide.*num_heads=3.*dim=8"):
        BlockwiseAttention(3, "2:1")(keras.ops.zeros((1, 2, 8)))
