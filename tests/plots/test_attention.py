"""Attention averaged over examples, against loops over every pair."""

import math
import os

import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.subjects.encoders import tiny
from tests.subjects.plots import LENGTHS, batches_of
from tests.subjects.stores import make_store
from tfeff import plots


def by_loops(encoder, lengths=LENGTHS):
    """Sums over examples and heads of what every layer's attention returns."""
    size = max(max(sizes) for sizes in lengths) + 1
    totals = np.zeros((encoder.num_layers, size, size))
    pairs = np.zeros((size, size))
    for sizes, batch in zip(lengths, batches_of(lengths)):
        states = encoder(batch)["hidden_states"]
        for layer, block in enumerate(encoder.blocks):
            place = {}
            if hasattr(block.attention, "partition_layer"):
                place["layer_index"] = layer
            _, scores = block.attention(
                states[layer],
                padding_mask=batch["padding_mask"],
                return_attention_scores=True,
                **place,
            )
            scores = scores.numpy()
            heads = scores.shape[1]
            for b, length in enumerate(sizes):
                for i in range(length):
                    for j in range(length):
                        for h in range(heads):
                            totals[layer, i, j] += scores[b, h, i, j] / heads
                        pairs[i, j] += layer == 0
    return totals, pairs


@pytest.mark.parametrize(
    "attention",
    [
        "self",
        {"name": "mixed", "kernel_size": 3},
        # Padding leaks into these kernels; the attention beside them needs positions.
        [
            "one_head",
            {"name": "lightweight_conv", "kernel_size": 3, "mask_conv": False},
        ],
    ],
)
def test_maps_distances_and_concentration(attention):
    encoder = tiny("no_position_base", attention=attention, dropout=0.5)
    for weight in encoder.weights:
        weight.assign(weight + 0.3 * np.random.normal(size=weight.shape))
    maps = plots.attention_maps(encoder, batches_of(labels=True))
    totals, pairs = by_loops(encoder)
    np.testing.assert_array_equal(maps.pairs, pairs)
    np.testing.assert_allclose(maps.totals, totals, rtol=1e-5, atol=1e-7)

    mean, distances = maps.mean(), maps.by_distance()
    size = len(pairs)
    assert mean.shape == (2, size, size) and distances.shape == (2, 2 * size - 1)
    for layer in range(2):
        sums, counts = {}, {}
        for i in range(size):
            for j in range(size):
                if pairs[i, j]:
                    expected = totals[layer, i, j] / pairs[i, j]
                    assert mean[layer, i, j] == pytest.approx(expected, rel=1e-4)
                    sums[j - i] = sums.get(j - i, 0) + totals[layer, i, j]
                    counts[j - i] = counts.get(j - i, 0) + pairs[i, j]
                else:
                    assert math.isnan(mean[layer, i, j])
        for x in range(1 - size, size):
            value = distances[layer, x + size - 1]
            if x in sums:
                assert value == pytest.approx(sums[x] / counts[x], rel=1e-4, abs=1e-7)
            else:
                assert math.isnan(value)
        for reach in (0, 2, size):
            near = sum(value for x, value in sums.items() if abs(x) <= reach)
            far = sum(value for x, value in sums.items() if abs(x) > reach)
            share = maps.near_share(reach)[layer]
            assert share == pytest.approx(near / (near + far), rel=1e-5)
            quotient = maps.concentration(reach)[layer]
            expected = near / far if far else math.inf
            assert quotient == pytest.approx(expected, rel=1e-5)
    assert maps.near_share(size) == pytest.approx([1, 1])
    together = maps.over_layers()
    np.testing.assert_allclose(together.mean()[0], mean.mean(0))
    # Of sums: not the mean of the layers' quotients.
    near, far = 0.0, 0.0
    for i in range(size):
        for j in range(size):
            if abs(i - j) <= 2:
                near += totals[:, i, j].sum()
            else:
                far += totals[:, i, j].sum()
    assert together.concentration(2) == pytest.approx([near / far], rel=1e-5)


def test_drawn_numbers(tmp_path, figures):
    encoder = tiny("no_position_base", attention="one_head")
    maps = plots.attention_maps(encoder, batches_of())
    plots.average_attention(encoder, batches_of(), tmp_path / "a.png", length=5)
    first, second, curves = (axes for axes in figures[0].axes if axes.get_title())
    for layer, axes in enumerate((first, second)):
        image = axes.images[0].get_array().filled(np.nan)
        np.testing.assert_allclose(image, maps.mean()[layer, :5, :5])
        line = curves.lines[layer]
        np.testing.assert_array_equal(line.get_xdata(), range(-4, 5))
        np.testing.assert_array_equal(line.get_ydata(), maps.by_distance()[layer, 3:12])
    plots.diagonal_concentration(encoder, batches_of(), tmp_path / "b.png", distance=2)
    bars = [bar.get_height() for bar in figures[1].axes[0].patches]
    np.testing.assert_array_equal(bars, maps.concentration(2))
    (line,) = figures[1].axes[0].lines
    assert line.get_ydata()[0] == maps.over_layers().concentration(2)[0]
    # Huang's figure 5: one layer alone.
    plots.average_attention(encoder, batches_of(), tmp_path / "c.png", 5, layer=1)
    (panel,) = (axes for axes in figures[2].axes if axes.get_title())
    assert panel.get_title() == "layer 1"
    image = panel.images[0].get_array().filled(np.nan)
    np.testing.assert_allclose(image, maps.mean()[1, :5, :5])
    # Nothing is far: no bar.
    plots.diagonal_concentration(encoder, batches_of(), tmp_path / "d.png", distance=9)
    assert all(np.isnan(bar.get_height()) for bar in figures[3].axes[0].patches)
    assert not figures[3].axes[0].lines


def test_draw_all(tmp_path, figures):
    always = [
        *("average_attention.png", "diagonal_concentration.png"),
        *("attention_heads.png", "similar_heads.png", "layer_stability.png"),
    ]
    folder = tmp_path / "of" / "one"
    # Longer than 50: the map is cut there.
    batches = batches_of([(60, 3)])
    encoder = tiny("no_position_base", num_layers=1, attention="one_head")
    paths = plots.draw_all(encoder, iter(batches), folder)
    names = [*always, "partition_functions.png"]
    assert paths == [str(folder / name) for name in names]
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    image, curves = figures[0].axes[0].images[0], figures[0].axes[1].lines[0]
    assert image.get_array().shape == (50, 50) and len(curves.get_xdata()) == 99
    encoder = tiny(
        "no_position_base",
        num_layers=1,
        attention={"name": "relative", "method": "huang2"},
    )
    paths = plots.draw_all(encoder, iter(batches), tmp_path)
    names = [*always, "relative_embeddings.png"]
    assert paths == [str(tmp_path / name) for name in names]


def test_draw_all_at_a_url_replaces_figures(tmp_path, figures, monkeypatch):
    store = make_store(tmp_path / "store", monkeypatch)
    encoder = tiny("bert_base", num_layers=1)
    for count in (5, 10):
        paths = plots.draw_all(encoder, batches_of([(4, 3)]), "store://bucket/plots")
        assert paths[0] == "store://bucket/plots/average_attention.png"
        assert len(paths) == 5 and len(figures) == count
    assert os.path.isfile(f"{store.root}/bucket/plots/average_attention.png")


@tfeff.encoders.register_attention("without_scores")
class _WithoutScores(tfeff.layers.SelfAttention):
    def call(self, hidden, padding_mask=None, training=None):
        return super().call(hidden, padding_mask, training)


def test_bad_input_is_named(tmp_path):
    (good,) = batches_of([(2,)])
    encoder = tiny("no_position_base", num_layers=1, attention="self")
    with pytest.raises(ValueError, match="Received: encoder with _WithoutScores"):
        plots.attention_maps(
            tiny("no_position_base", num_layers=1, attention="without_scores"), [good]
        )
    endless = tf.data.Dataset.from_tensors(good).repeat()
    empty = {**good, "padding_mask": 0 * good["padding_mask"]}
    short = {name: good[name] for name in ("token_ids", "padding_mask")}
    for batches, message in (
        (endless, "infinite data set"),
        ([], "`batches` must hold real tokens"),
        ([empty], "`batches` must hold real tokens"),
        ([short], "without segment_ids"),
    ):
        with pytest.raises(ValueError, match=message):
            plots.draw_all(encoder, batches, tmp_path / "folder")
    for batches in ([np.ones((2, 3))], [()]):
        with pytest.raises(TypeError, match="`batches` must hold dicts of inputs"):
            plots.average_attention(encoder, batches, tmp_path / "a.png")
    with pytest.raises(ValueError, match="length=0"):
        plots.average_attention(encoder, [good], tmp_path / "a.png", length=0)
    with pytest.raises(ValueError, match="`layer` must be.* at most 0"):
        plots.average_attention(encoder, [good], tmp_path / "a.png", layer=1)
    with pytest.raises(ValueError, match="distance=-1"):
        plots.diagonal_concentration(encoder, [good], tmp_path / "a.png", distance=-1)
    with pytest.raises(ValueError, match="a folder that exists"):
        plots.diagonal_concentration(encoder, [good], tmp_path / "none" / "a.png")
    assert list(tmp_path.iterdir()) == []
