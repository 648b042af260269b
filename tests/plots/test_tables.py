"""Partitions and tables of relative positions: their numbers, and as drawn."""

import numpy as np
import pytest

from tests.reference import partition as reference
from tests.reference.relative import table_row
from tests.subjects.encoders import tiny
from tests.subjects.partitions import TENTS
from tfeff import plots


def test_partitions_are_those_of_each_layers_index(tmp_path, figures):
    boundaries = [-2, 0, 3]
    soft, hard = "one_head", {"name": "partitioned", "boundaries": boundaries}
    encoder = tiny("no_position_base", num_layers=3, attention=[soft, "self", hard])
    values = plots.partition_values(encoder, 5)
    assert list(values) == [0, 2]
    for h in range(4):
        for x in range(-5, 6):
            soft = reference.partition_function(h, x, 4, 0, 3)
            hard = reference.bucket_function(h, x, boundaries)
            assert values[0][h, x + 5] == pytest.approx(soft, abs=1e-6)
            assert values[2][h, x + 5] == hard
    # Blocks that share all weights still have the partitions of their own indices.
    shared = plots.partition_values(
        tiny("no_position_base", attention="one_head", sharing="all"), 5
    )
    assert shared[1][1, 8] == pytest.approx(
        reference.partition_function(1, 3, 4, 1, 2), abs=1e-6
    )
    plots.partition_functions(encoder, tmp_path / "partition.png", max_distance=5)
    first, second = figures[0].axes
    assert (first.get_title(), second.get_title()) == ("layer 0", "layer 2")
    for axes, functions in ((first, values[0]), (second, values[2])):
        assert len(axes.lines) == 4
        for h, (line, function) in enumerate(zip(axes.lines, functions)):
            np.testing.assert_array_equal(line.get_xdata(), range(-5, 6))
            np.testing.assert_array_equal(line.get_ydata(), function)
            # Its label stands at its largest value, in its colour.
            assert line.get_label() == axes.texts[h].get_text() == f"$f_{{{h}}}$"
            assert line.get_color() == axes.texts[h].get_color()
            assert axes.texts[h].xy[1] == np.delete(function, 5).max()
    # Of steps, above their middle but for 0: -5 to -3, -2 and -1, 1 and 2, 3 to 5.
    assert [text.xy[0] for text in second.texts] == [-4, -1.5, 1.5, 4]


def test_figure_2_of_shatter(tmp_path, figures):
    """There "f_0 concentrates at x = 1 and f_2 peaks around x = 4"."""
    encoder = tiny(
        "no_position_base",
        num_layers=12,
        num_heads=8,
        attention=["one_head", *["self"] * 11],
    )
    plots.partition_functions(encoder, tmp_path / "figure_2.png", max_distance=10)
    (axes,) = figures[0].axes
    peaks = {text.get_text(): text.xy[0] for text in axes.texts}
    assert list(peaks) == [f"$f_{{{h}}}$" for h in range(8)]
    assert (peaks["$f_{0}$"], peaks["$f_{2}$"]) == (1, 4)
    assert (peaks["$f_{4}$"], peaks["$f_{6}$"]) == (-1, -4)


def test_own_and_registered_functions(tmp_path, figures):
    constants = {"name": "one_head", "alpha": -2.0, "beta": -0.5, "layer_index": 1}
    tents = {"name": "partitioned", "partition": TENTS}
    encoder = tiny("no_position_base", attention=[constants, tents])
    values = plots.partition_values(encoder, 6)
    for h in range(4):
        for x in range(-6, 7):
            own = reference.partition_function(h, x, 4, 1, 2, -2.0, -0.5)
            assert values[0][h, x + 6] == pytest.approx(own, abs=1e-6)
            tent = reference.tent(h, x, 4, 1.5)
            assert values[1][h, x + 6] == pytest.approx(tent, abs=1e-6)
    plots.partition_functions(encoder, tmp_path / "own.png", max_distance=6)
    for axes, functions in zip(figures[0].axes, values.values(), strict=True):
        drawn = [line.get_ydata() for line in axes.lines]
        np.testing.assert_array_equal(drawn, functions)


# Arguments of the attention; heads and width of its table; how rows are found.
TABLES = [
    (dict(method="huang4"), 4, 2, "signed", 5),
    (dict(method="shaw", shared_heads=True), 1, 2, "signed", 5),
    (dict(method="rpe", max_distance=3), 1, 8, "signed", 3),
    (dict(method="huang1"), 4, 1, "distance", 5),
    (dict(method="huang2", shared_heads=True), 1, 1, "signed", 5),
    (dict(method="bias"), 4, 1, "t5", 128),
    (dict(method="bias"), None, None, None, None),  # T5's layers share one table.
]


def test_tables_of_relative_positions(tmp_path, figures):
    attention = [{"name": "relative", **arguments} for arguments, *_ in TABLES]
    encoder = tiny(
        "no_position_base",
        num_layers=len(TABLES),
        attention=attention,
        max_sequence_length=6,
    )
    for block in encoder.blocks:
        table = block.attention.relative_embedding.embeddings
        table.assign(np.random.normal(size=table.shape))
    tables = plots.relative_tables(encoder, 7)
    assert list(tables) == [0, 1, 2, 3, 4, 5]
    plots.relative_embeddings(encoder, tmp_path / "a.png", 7)
    panels = [axes for axes in figures[0].axes if axes.get_title()]
    for axes, (layer, rows) in zip(panels, tables.items(), strict=True):
        _, heads, width, index, clip = TABLES[layer]
        assert axes.get_title() == f"layer {layer}"
        assert rows.shape == (15, heads, width)
        table = encoder.blocks[layer].attention.relative_embedding.embeddings.numpy()
        for x in range(-7, 8):
            row = table[table_row(x, index, clip)]
            np.testing.assert_array_equal(rows[x + 7], row.reshape(heads, width))
        if width == 1:
            lines = [line.get_xydata() for line in axes.lines]
            expected = [np.stack([np.arange(-7, 8), r], 1) for r in rows[..., 0].T]
            np.testing.assert_array_equal(lines, expected)
        else:
            (image,) = axes.images
            np.testing.assert_array_equal(image.get_array(), rows[:, 0].T)
            assert image.get_cmap().name == "Blues_r"  # White is high, as in figure 4.
            assert tuple(image.get_extent()) == (-7.5, 7.5, width - 0.5, -0.5)


def test_another_head_and_a_head_too_many(tmp_path, figures):
    encoder = tiny(
        "no_position_base",
        num_layers=1,
        attention={"name": "relative", "method": "huang4"},
    )
    plots.relative_embeddings(encoder, tmp_path / "a.png", head=3)
    image = figures[0].axes[0].images[0].get_array()
    assert image.shape == (2, 101)
    np.testing.assert_array_equal(image, plots.relative_tables(encoder)[0][:, 3].T)
    plots.relative_embeddings(encoder, tmp_path / "a.png", layer=0)
    assert [axes.get_title() for axes in figures[1].axes] == ["layer 0", ""]
    with pytest.raises(ValueError, match="at most 0. Received: layer=1"):
        plots.relative_embeddings(encoder, tmp_path / "b.png", layer=1)
    attention = ["self", {"name": "relative", "method": "huang4"}]
    mixed = tiny("no_position_base", attention=attention)
    with pytest.raises(ValueError, match=r"of \[1\]. Received: layer=0"):
        plots.relative_embeddings(mixed, tmp_path / "b.png", layer=0)
    with pytest.raises(ValueError, match="at most 3. Received: head=4"):
        plots.relative_embeddings(encoder, tmp_path / "b.png", head=4)
    with pytest.raises(ValueError, match="max_distance=0"):
        plots.relative_embeddings(encoder, tmp_path / "b.png", max_distance=0)
    with pytest.raises(ValueError, match="`path` must be a file in a folder"):
        plots.relative_embeddings(encoder, tmp_path / "none" / "b.png")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_encoders_without_them_are_named(tmp_path):
    plain = tiny("no_position_base", num_layers=1, attention="self")
    assert plots.partition_values(plain) == {} and plots.relative_tables(plain) == {}
    with pytest.raises(ValueError, match="'one_head'. Received: .*'self'"):
        plots.partition_functions(plain, tmp_path / "a.png")
    with pytest.raises(ValueError, match="'huang4'. Received: .*'self'"):
        plots.relative_embeddings(plain, tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []
