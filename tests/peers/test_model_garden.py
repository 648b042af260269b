"""XLNet and T5's bias against Model Garden's, on the same random weights."""

from pathlib import Path

import numpy as np
import pytest

from tests.checks import assert_close
from tfeff.encoders import build
from tfeff.layers import RelativeEmbedding, TwoStreamBlocks
from tfeff.ops import bias_scores, relative_positions

GOLDENS = Path(__file__).parent / "goldens"


@pytest.fixture(scope="module")
def golden():
    with np.load(GOLDENS / "garden_xlnet.npz") as file:
        return dict(file)


@pytest.fixture(scope="module")
def encoder(golden):
    encoder = build(
        "xlnet_base",
        vocabulary_size=30,
        num_layers=2,
        num_heads=4,
        hidden_dim=16,
        intermediate_dim=24,
        dropout=0.0,
        attention={
            "name": "relative",
            "method": "xlnet",
            "relative_segments": True,
            "sinusoid": "concatenated",
        },
    )
    weights = {
        name.removeprefix("weights/"): value
        for name, value in golden.items()
        if name.startswith("weights/")
    }
    encoder.token_embedding.embeddings.assign(weights["word_embedding/embeddings"])
    for index, block in enumerate(encoder.blocks):
        below = f"transformer_xl/layer_{index}"
        attention = block.attention
        for name, dense in (
            ("query", attention.query_dense),
            ("key", attention.key_dense),
            ("value", attention.value_dense),
            ("encoding", attention.relative_dense),
            ("attention_output", attention.output_dense),
        ):
            dense.kernel.assign(
                weights[f"{below}/rel_attn/{name}/kernel"].reshape(16, 16)
            )
        attention.content_bias.assign(weights["content_attention_bias"][index])
        attention.position_bias.assign(weights["positional_attention_bias"][index])
        attention.segment_bias.assign(weights["segment_attention_bias"][index])
        attention.segment_embeddings.assign(weights["seg_embed"][index])
        for name, layer in (
            ("self_attention_layer_norm", block.attention_norm),
            ("output_layer_norm", block.feedforward_norm),
        ):
            layer.gamma.assign(weights[f"{below}/{name}/gamma"])
            layer.beta.assign(weights[f"{below}/{name}/beta"])
        for name, dense in (
            ("inner", block.feedforward.intermediate_dense),
            ("output", block.feedforward.output_dense),
        ):
            dense.kernel.assign(weights[f"{below}/{name}/kernel"])
            dense.bias.assign(weights[f"{below}/{name}/bias"])
    return encoder


def test_xlnet(golden, encoder):
    inputs = {k: golden[k] for k in ("token_ids", "segment_ids", "padding_mask")}
    visible = golden["padding_mask"].astype(bool)
    output = np.asarray(encoder(inputs)["sequence_output"])
    assert_close(output[visible], golden["content"][visible], 1e-5)


def test_xlnet_query_stream(golden, encoder):
    streams = TwoStreamBlocks(encoder.blocks)
    streams.build(encoder.embedding(golden["token_ids"]).shape)
    streams.mask_embedding.assign(golden["weights/mask_emb/mask_emb"].reshape(-1))
    _, query = streams(
        encoder.embedding(golden["token_ids"]),
        golden["ranks"],
        padding_mask=golden["padding_mask"],
        target_positions=golden["target_positions"],
        segment_ids=golden["segment_ids"],
    )
    assert_close(query, golden["query"], 1e-5)


def test_t5_bias():
    with np.load(GOLDENS / "garden_t5_bias.npz") as file:
        table, first, last = file["table"], file["first_row"], file["last_row"]
    embed = RelativeEmbedding(128, shape=(2,), index="t5")
    embed.build()
    embed.embeddings.assign(table)
    length = first.shape[1]
    nothing = np.zeros((1, 2, length, 4), "float32")
    rows = embed(relative_positions(length))
    scores = np.asarray(bias_scores(nothing, nothing, rows))[0]
    np.testing.assert_array_equal(scores[:, 0], first)
    np.testing.assert_array_equal(scores[:, -1], last)
