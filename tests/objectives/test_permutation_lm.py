"""Permutation language modelling against XLNet's equations."""

import numpy as np
import pytest

from tests.checks import arrays_of, assert_close, randomize
from tests.reference import pair_attention, part_of, two_stream_blocks
from tests.reference.attention import linear
from tests.reference.objectives import cross_entropies
from tests.reference.relative import sinusoid
from tests.subjects.blocks import block_variables
from tests.subjects.objectives import arrays, batches, make_encoder, make_model
from tfeff.objectives import PermutationLM


def attend(queries, hidden, sees, weights, place):
    return pair_attention(queries, hidden, np.stack([sees] * 2), weights)[0]


def literal_logits(model, inputs):
    """[B, M, V], with absolute positions in the query stream."""
    encoder = model.encoder
    embedding = encoder.embedding
    hidden = np.asarray(
        embedding(inputs["token_ids"], inputs["segment_ids"]), "float64"
    )
    if encoder.position == "sinusoid":
        width = encoder.embedding_dim
        rows = [sinusoid(i, width, "interleaved") for i in range(hidden.shape[1])]
        positions = np.stack(rows)
    else:
        positions = embedding.position_embedding.embeddings.numpy()[: hidden.shape[1]]
    named = {"w": model.streams.mask_embedding, "c": model.head.bias}
    named["E"] = embedding.token_embedding.embeddings
    for name, layer in (("in", embedding), ("out", model.head)):
        if getattr(layer, "projection", None) is not None:
            named[f"{name}/kernel"] = layer.projection.kernel
            named[f"{name}/bias"] = layer.projection.bias
    for i, block in enumerate(encoder.blocks):
        named |= {f"{i}/{n}": v for n, v in block_variables(block).items()}
    weights = arrays_of(named)
    if "in/kernel" in weights:
        positions = linear(positions, weights, "in")
    targets = inputs["mask_positions"]
    logits = np.zeros((*targets.shape, len(weights["E"])))
    for b, row in enumerate(hidden):
        _, query = two_stream_blocks(
            row,
            inputs["padding_mask"][b],
            inputs["ranks"][b],
            weights["w"] + positions,
            [part_of(weights, str(i)) for i in range(len(encoder.blocks))],
            attend,
        )
        if "out/kernel" in weights:
            query = linear(query, weights, "out")
        logits[b] = query[targets[b]] @ weights["E"].T + weights["c"]
    return logits


@pytest.mark.quick("6-sinusoid")
@pytest.mark.parametrize(
    "embedding_dim, position", [(None, "absolute"), (6, "absolute"), (6, "sinusoid")]
)
def test_logits_loss_and_accuracy_equal_the_literal_ones(embedding_dim, position):
    model = make_model(
        "permutation_lm",
        compiled={"run_eagerly": True},
        num_layers=2,
        embedding_dim=embedding_dim,
        position=position,
    )
    randomize({w.path: w for w in model.weights if "seed" not in w.path})
    dataset = batches("permutation_lm", 2)
    total = count = right = 0.0
    for batch in dataset:
        inputs, labels, weights = arrays(batch)
        assert inputs["ranks"].max() > 0
        expected = literal_logits(model, inputs)
        assert_close(model(inputs), expected, 2e-5)
        loss, targets = cross_entropies(expected, labels, weights)
        total, count = total + loss, count + targets
        right += ((expected.argmax(-1) == labels) * weights).sum()
    logs = model.evaluate(dataset, verbose=0, return_dict=True)
    assert set(logs) == {"loss", "accuracy"}
    assert logs["loss"] == pytest.approx(total / count, rel=1e-5)
    assert logs["accuracy"] == pytest.approx(right / count, rel=1e-5)


@pytest.mark.quick("xlnet_base")
@pytest.mark.parametrize("preset", ["xlnet_base", "shatter_tiny", "bert_tiny"])
def test_a_target_sees_neither_itself_nor_later_ones(preset):
    model = PermutationLM(make_encoder(preset, num_layers=2, num_heads=2))
    randomize({w.path: w for w in model.weights if "seed" not in w.path})
    inputs = {
        "token_ids": np.array([[2, 5, 6, 7, 8, 9, 3]], "int32"),
        "segment_ids": np.zeros((1, 7), "int32"),
        "padding_mask": np.ones((1, 7), "int32"),
        "ranks": np.array([[-1, 2, -1, 0, 1, -1, -1]], "int32"),
        "mask_positions": np.array([[1, 3, 4]], "int32"),
    }
    before = np.asarray(model(inputs))

    def moved(position):
        ids = inputs["token_ids"].copy()
        ids[0, position] += 20
        after = np.asarray(model(inputs | {"token_ids": ids}))
        return np.flatnonzero(np.abs(after - before).max(axis=(0, 2)) > 1e-5).tolist()

    assert [moved(p) for p in (1, 3, 4, 5)] == [[], [0, 2], [0], [0, 1, 2]]


@pytest.mark.parametrize(
    "overrides",
    [
        {"attention": {"name": "blockwise", "head_blocks": "1:1"}},
        {"attention": ["self", "mixed"]},
        {"attention": "span_dynamic_conv"},
    ],
)
def test_attentions_that_cannot_do_it_are_named(overrides):
    encoder = make_encoder(num_layers=2, num_heads=2, **overrides)
    with pytest.raises(ValueError, match="`encoder`.*any pair.*Received: .*[A-Z]"):
        PermutationLM(encoder)


@pytest.mark.parametrize("error", [ValueError, AttributeError])
def test_errors_of_other_kinds_are_not_taken_for_it(error, monkeypatch):
    encoder = make_encoder(num_layers=2, num_heads=2)

    def attend(*_, **__):
        raise error("something else")

    monkeypatch.setattr(type(encoder.blocks[1].attention), "attend", attend)
    with pytest.raises(error, match="something else"):
        PermutationLM(encoder)
