"""The models of the papers after Shatter's: every hidden state by the equations."""

from functools import partial

import numpy as np
import pytest

from tests.checks import arrays_of, assert_close, check_encoder, randomize, variables_of
from tests.checks.encoder import (
    batch_of,
    check_compiled,
    check_half_precision,
    check_outputs,
)
from tests.reference import (
    blockwise_attention,
    embedding,
    encoder_block,
    mixed_attention,
    one_head_attention,
    partition_mask,
    relative_attention,
    self_attention,
    sparse_attention,
)
from tests.subjects.blocks import block_variables
from tests.subjects.encoders import SMALLER, TINY, tiny
from tfeff.encoders import Encoder, build, presets

RELATIVE = (
    "bert_rpe_base",
    "bert_rab_base",
    "shaw_base",
    "huang1_base",
    "huang2_base",
    "huang3_base",
    "huang4_base",
    "xlnet_base",
)
SYSTEMS = (
    *RELATIVE,
    *[name for name in SMALLER if name not in RELATIVE],
    "huang_absolute_base",
    "albert_base",
)


def attention_of(preset, segment_ids, index=0):
    """The literal attention of a tiny preset, for one sequence."""
    if preset in RELATIVE:
        options = dict(SMALLER.get(preset, {"max_distance": 15}))
        if preset == "xlnet_base":
            options = {"max_distance": None, "segment_ids": segment_ids}
        method = presets()[preset]["config"]["attention"]["method"]
        return partial(relative_attention, num_heads=4, method=method, **options)
    return {
        "blockbert_n2_base": partial(blockwise_attention, counts=(3, 1)),
        "blockbert_n3_base": partial(blockwise_attention, counts=(2, 1, 1)),
        "sparsebert_base": partial(
            sparse_attention,
            num_heads=4,
            stride=3,
            expressivity=1,
            pattern="fairseq",
        ),
        "huang_absolute_base": partial(self_attention, num_heads=4),
        "albert_base": partial(self_attention, num_heads=4),
        "shatter_base": lambda hidden, visible, weights: one_head_attention(
            hidden,
            visible,
            weights,
            partition_mask(len(hidden), 4, index, 4),
            "sigmoid_l2",
            True,
            True,
        ),
    }.get(preset, partial(mixed_attention, num_heads=2))


def check_hidden_states(encoder, attention):
    """Every hidden state against the reference; `attention` of segments, index."""
    randomize({w.path: w for w in encoder.weights}, scale=0.5)
    batch = batch_of(encoder)
    states = encoder(batch)["hidden_states"]
    weights = arrays_of(variables_of(encoder.embedding))
    for row in range(len(batch["token_ids"])):
        tokens, segments, visible = (
            batch[name][row] for name in ("token_ids", "segment_ids", "padding_mask")
        )
        hidden = embedding(tokens, segments, weights, encoder.position)
        assert_close(states[0][row], hidden, 1e-5, "embedding")
        for index, block in enumerate(encoder.blocks):
            (hidden,) = encoder_block(
                hidden,
                visible.astype(bool),
                arrays_of(block_variables(block)),
                attention(segments, index),
            )
            assert_close(states[index + 1][row], hidden, 2e-5, f"block {index}")


@pytest.mark.quick(
    "bert_rpe_base", "huang2_base", "blockbert_n2_base", "convbert_medium_small"
)
@pytest.mark.parametrize("preset", SYSTEMS)
def test_all_hidden_states_are_those_of_the_equations(preset):
    check_hidden_states(tiny(preset), partial(attention_of, preset))


SINUSOID = dict(position="sinusoid", embedding_dim=6, num_segments=1)
WITHOUT_BIASES = {"name": "relative", "method": "xlnet", "query_bias": False}


@pytest.mark.slow
def test_fixed_sinusoids():
    """Huang, equations 1 and 2; texts are longer than the encoder's length."""
    encoder = tiny("huang_absolute_base", **SINUSOID, max_sequence_length=4)
    assert not any("position" in w.path for w in encoder.weights)
    attention = partial(self_attention, num_heads=4)
    check_hidden_states(encoder, lambda segments, index: attention)
    check_encoder(partial(tiny, "huang_absolute_base", **SINUSOID))


def test_xlnet_without_biases():
    """Huang, section 3.4, in an encoder by a preset's name."""
    encoder = tiny("xlnet_base", attention=WITHOUT_BIASES)
    assert not any("content_bias" in w.path for w in encoder.weights)
    attention = partial(
        relative_attention,
        num_heads=4,
        method="xlnet",
        max_distance=None,
        query_bias=False,
    )
    check_hidden_states(encoder, lambda segments, index: attention)
    assert Encoder.from_config(encoder.get_config()).attention == WITHOUT_BIASES


@pytest.mark.slow
@pytest.mark.parametrize(
    "preset", [name for name in SYSTEMS if not name.startswith("blockbert")]
)
def test_encoder_checks(preset):
    check_encoder(partial(tiny, preset))


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["blockbert_n2_base", "blockbert_n3_base"])
def test_encoder_checks_of_blocks(preset):
    """All but more padding, which moves the borders between the blocks."""
    make_encoder = partial(tiny, preset)
    encoder = make_encoder(dtype="float32")
    randomize({w.path: w for w in encoder.weights}, scale=0.3)
    check_outputs(encoder)
    check_compiled(make_encoder, encoder)
    check_half_precision(make_encoder, encoder)
    batch, other = batch_of(encoder), batch_of(encoder, filler=1)
    visible = batch["padding_mask"].astype(bool)
    assert_close(
        np.asarray(encoder(other)["sequence_output"])[visible],
        np.asarray(encoder(batch)["sequence_output"])[visible],
        1e-5,
        "garbage in padding",
    )


@pytest.mark.parametrize(
    "preset", [name for name in (*RELATIVE, "convbert_base") if "rab" not in name]
)
def test_is_shift_invariant(preset):
    """Padding in front of the text changes no output."""
    encoder = tiny(preset, position="none")
    randomize({w.path: w for w in encoder.weights}, scale=0.5)
    batch = batch_of(encoder)
    output = np.asarray(encoder(batch)["sequence_output"])
    shifted = {name: np.pad(x, ((0, 0), (5, 0))) for name, x in batch.items()}
    actual = np.asarray(encoder(shifted)["sequence_output"])[:, 5:]
    visible = batch["padding_mask"].astype(bool)
    assert_close(actual[visible], output[visible], 1e-5)


@pytest.mark.parametrize("preset", RELATIVE)
def test_takes_sequences_longer_than_the_tables(preset):
    encoder = tiny(preset, max_sequence_length=4, position="none")
    randomize({w.path: w for w in encoder.weights}, scale=0.5)
    output = encoder(batch_of(encoder, lengths=(33, 20), padded_to=33))
    assert np.isfinite(output["sequence_output"]).all()


def test_layers_share_the_table_of_the_attention_bias():
    encoder = tiny("bert_rab_base", num_layers=3)
    tables = {id(block.attention.relative_embedding) for block in encoder.blocks}
    assert len(tables) == 1
    assert sum("relative" in w.path for w in encoder.weights) == 1
    mixed = tiny(
        "bert_rab_base",
        num_layers=3,
        attention=[
            {"name": "relative", "method": "bias"},
            {"name": "relative", "method": "bias", "num_buckets": 16},
            {"name": "relative", "method": "bias"},
        ],
    )
    first, second, third = (b.attention.relative_embedding for b in mixed.blocks)
    assert first is third and first is not second


def test_tables_of_an_encoder_reach_over_its_length():
    for preset in ("shaw_base", "huang2_base", "huang4_base"):
        table = tiny(preset).blocks[0].attention.relative_embedding
        assert table.max_distance == TINY["max_sequence_length"] - 1
    assert tiny("huang4_base", max_sequence_length=1) is not None
    attention = presets()["bert_rpe_base"]["config"]["attention"]
    assert attention["max_distance"] == 127


SHARED = ("attention", "feedforward", "attention_norm", "feedforward_norm")


@pytest.mark.quick(
    "shatter_base-none-shared0",
    "shatter_base-all-shared3",
    "albert_base-feedforward-shared2",
)
@pytest.mark.parametrize(
    ("sharing", "shared"),
    [
        ("none", ()),
        ("attention", ("attention",)),
        ("feedforward", ("feedforward",)),
        ("all", SHARED),
    ],
)
@pytest.mark.parametrize("preset", ["shatter_base", "albert_base"])
def test_sharing_is_equal_weights(preset, sharing, shared):
    """Sharing computes what separate layers with the same weights compute."""
    sizes = dict(num_layers=4, num_segments=3)
    group_size = None if sharing == "none" else 2
    encoder = tiny(preset, **sizes, sharing=sharing, sharing_group_size=group_size)
    check_hidden_states(encoder, partial(attention_of, preset))
    for name in SHARED:
        parts = [id(getattr(block, name)) for block in encoder.blocks]
        groups = [0, 0, 2, 2] if name in shared else [0, 1, 2, 3]
        assert [parts.index(part) for part in parts] == groups, name
    separate = tiny(preset, **sizes, sharing="none")
    for target, source in zip(separate.blocks, encoder.blocks):
        for name in SHARED:
            getattr(target, name).set_weights(getattr(source, name).get_weights())
    separate.embedding.set_weights(encoder.embedding.get_weights())
    batch = batch_of(encoder)
    assert_close(
        separate(batch)["sequence_output"], encoder(batch)["sequence_output"], 1e-6
    )


@pytest.mark.slow
def test_shared_layers_train():
    encoder = tiny("shatter_base", num_layers=4, sharing="all", num_segments=3)
    check_encoder(
        lambda dtype: tiny("shatter_base", num_layers=2, sharing="all", dtype=dtype)
    )
    assert len(encoder.weights) == len(
        tiny("shatter_base", num_layers=1, num_segments=3).weights
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(sharing="some"), "`sharing` must be one of.*'some'"),
        (dict(sharing_group_size=2), "`sharing_group_size` must be None"),
        (
            dict(sharing="all", sharing_group_size=3),
            "`sharing_group_size` must divide.*sharing_group_size=3, num_layers=2",
        ),
        (dict(sharing="all", sharing_group_size=0), "`sharing_group_size`.*=0"),
        (
            dict(sharing="attention", attention=["self", "one_head"]),
            "`attention` must be the same.*'self' in layer 0, 'one_head' in layer 1",
        ),
        (dict(feedforward={"groups": 2}), "`feedforward` must.*groups"),
        (dict(feedforward={"num_groups": 5}), "`num_groups` must divide"),
        (dict(attention="blockwise"), "head_blocks"),
        (
            dict(attention={"name": "blockwise", "head_blocks": "10:2"}),
            "`head_blocks` must add up.*'10:2', num_heads=4",
        ),
        (dict(attention={"name": "mixed", "kernel_size": 4}), "`kernel_size` must be"),
        (dict(attention={"name": "mixed", "head_ratio": 8}), "`head_ratio` must leave"),
        (dict(attention={"name": "mixed", "head_ratio": 3}), "`head_ratio` must div"),
        (
            dict(attention={"name": "relative", "method": "shaw", "max_distance": 0}),
            "`max_distance`.*max_distance=0",
        ),
        (dict(attention={"name": "relative", "method": "huang5"}), "`method` must be"),
        (dict(attention="relative"), "method"),
        (
            dict(attention={**WITHOUT_BIASES, "method": "shaw"}),
            "`query_bias` must be left out.*query_bias=False, method='shaw'",
        ),
        (dict(position="sinusoid", embedding_dim=5), "`embedding_dim`.*even.*=5"),
        (dict(position="sinusoids"), "`position` must be one of.*Did you mean"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        build("bert_base", **TINY | changes)


def test_bad_types_are_named():
    with pytest.raises(TypeError, match="`feedforward` must be a dict.*'grouped'"):
        build("bert_base", **TINY, feedforward="grouped")
