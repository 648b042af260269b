"""The maps of single heads, and how alike they are, against loops."""

import math

import numpy as np
import pytest

from tests.subjects.encoders import tiny
from tests.subjects.plots import LENGTHS, batches_of
from tfeff import plots

# Four attention heads, then the two that ConvBERT's bottleneck leaves.
ATTENTION = ["self", {"name": "mixed", "kernel_size": 3}]
HEADS = [4, 2]


def randomized():
    encoder = tiny("bert_base", attention=ATTENTION)
    rng = np.random.default_rng(0)
    for weight in encoder.weights:
        weight.assign(weight + 0.5 * rng.normal(size=weight.shape))
    return encoder


def maps_of(encoder):
    """From (example, layer, head) to the map over the real tokens of the example."""
    maps, example = {}, 0
    for sizes, batch in zip(LENGTHS, batches_of()):
        states = encoder(batch)["hidden_states"]
        for layer, block in enumerate(encoder.blocks):
            _, scores = block.attention(
                states[layer],
                padding_mask=batch["padding_mask"],
                return_attention_scores=True,
            )
            for b, size in enumerate(sizes):
                for head in range(HEADS[layer]):
                    key = example + b, layer, head
                    maps[key] = scores.numpy()[b, head, :size, :size]
        example += len(sizes)
    return maps, example


def test_maps_of_heads(tmp_path, figures):
    encoder = randomized()
    maps, examples = maps_of(encoder)
    result = plots.head_maps(encoder, iter(batches_of()), length=6)
    assert [x.shape for x in result] == [(4, 6, 6), (2, 6, 6)]
    for layer, heads in enumerate(result):
        for head in range(HEADS[layer]):
            for i in range(6):
                for j in range(6):
                    seen = [maps[b, layer, head] for b in range(examples)]
                    values = [x[i, j] for x in seen if max(i, j) < len(x)]
                    expected = sum(values) / len(values)
                    assert heads[head, i, j] == pytest.approx(expected, rel=1e-4)
    # The mean over the heads is the map of the layer.
    whole = plots.attention_maps(encoder, batches_of()).mean()[:, :6, :6]
    np.testing.assert_allclose([x.mean(0) for x in result], whole, rtol=1e-4)
    longest = plots.head_maps(encoder, batches_of())[0]
    assert longest.shape == (4, 8, 8) and np.isnan(longest[:, 7]).all()

    plots.attention_heads(encoder, batches_of(), tmp_path / "a.png", length=6)
    first, second = figures[0].axes
    image = first.images[0].get_array().filled(np.nan)
    assert image.shape == (13, 13) and np.isnan(image[6]).all()
    for head in range(4):
        row, column = 7 * (head // 2), 7 * (head % 2)
        drawn = image[row : row + 6, column : column + 6]
        np.testing.assert_allclose(drawn, result[0][head] / result[0][head].max())
    assert second.images[0].get_array().shape == (6, 13)
    plots.attention_heads(encoder, batches_of(), tmp_path / "b.png", layer=1)
    assert [axes.get_title() for axes in figures[1].axes] == ["layer 1"]


def test_similarity(tmp_path, figures):
    encoder = randomized()
    maps, examples = maps_of(encoder)
    similarity, heads = plots.head_similarity(encoder, batches_of(labels=True))
    assert heads == HEADS and similarity.shape == (6, 6)
    places = [(layer, head) for layer in (0, 1) for head in range(HEADS[layer])]

    def product(one, other):
        total = 0.0
        for b in range(examples):
            x, y = maps[(b, *one)], maps[(b, *other)]
            for i in range(len(x)):
                for j in range(len(x)):
                    total += float(x[i, j]) * float(y[i, j])
        return total

    for g, one in enumerate(places):
        for h, other in enumerate(places):
            norms = math.sqrt(product(one, one) * product(other, other))
            expected = product(one, other) / norms
            assert similarity[g, h] == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(np.diag(similarity), 1)
    off = similarity[~np.eye(6, dtype=bool)]
    assert 0 < off.min() < 0.99 and off.max() < 1
    plots.similar_heads(encoder, batches_of(), tmp_path / "a.png")
    axes = figures[0].axes[0]
    np.testing.assert_allclose(axes.images[0].get_array(), similarity)
    assert axes.get_xticks().tolist() == [1.5, 4.5]
    (line,) = {tuple(line.get_ydata()) for line in axes.lines[:1]}
    assert line == (3.5, 3.5)


def test_equal_heads_are_alike():
    encoder = tiny("bert_base", num_layers=1, num_heads=2)
    attention = encoder.blocks[0].attention
    for dense in (attention.query_dense, attention.key_dense):
        kernel = np.random.default_rng(0).normal(size=(8, 4))
        dense.kernel.assign(np.concatenate([kernel, kernel], 1))
    similarity, _ = plots.head_similarity(encoder, batches_of())
    np.testing.assert_allclose(similarity, 1, rtol=1e-6)


def test_bad_input_is_named(tmp_path):
    encoder = randomized()
    with pytest.raises(ValueError, match="`length` must be.*length=0"):
        plots.head_maps(encoder, batches_of(), length=0)
    for draw in (plots.attention_heads, plots.similar_heads):
        with pytest.raises(ValueError, match="a folder that exists"):
            draw(encoder, batches_of(), tmp_path / "none" / "a.png")
        with pytest.raises(ValueError, match="must hold real tokens"):
            draw(encoder, [], tmp_path / "a.png")
    with pytest.raises(ValueError, match="at most 1. Received: layer=2"):
        plots.attention_heads(encoder, batches_of(), tmp_path / "a.png", layer=2)
    assert list(tmp_path.iterdir()) == []
