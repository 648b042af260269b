"""Figures of the tables of relative positions of an encoder."""

import os

import keras
import numpy as np
from keras import ops

from tfeff.layers.encoder_block import blocks_of
from tfeff.layers.relative_attention import METHODS
from tfeff.plots.figure import check_layer, figure_axes
from tfeff.storage.arguments import REPLACE, paths
from tfeff.utils.checks import check_integer


def relative_tables(
    encoder: keras.Model, max_distance: int = 50
) -> dict[int, np.ndarray]:
    """The table of relative positions of every layer that has one.

    Args:
        encoder: `tfeff.encoders.Encoder`.
        max_distance: integer `X`, largest distance in tokens.

    Returns:
        Dict from the index of the layer, from 0, to the rows `a_x` at the relative
        positions `x = -X … X`, float32 `[2X + 1, heads, width]`; one head if all
        share the rows, width 1 if they are scalars. Positions beyond a table's end
        have its last row. A table that several layers share is listed once, for the
        first of them. The dict of an encoder without tables is empty.

    Raises:
        ValueError: if `max_distance` is below 1.
        TypeError: if it is not an integer.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build(
    ...     "huang4_base", vocabulary_size=50, num_layers=1, hidden_dim=24
    ... )
    >>> relative_tables(encoder, 3)[0].shape
    (7, 12, 2)
    """
    max_distance = check_integer("max_distance", max_distance)
    positions = ops.arange(-max_distance, max_distance + 1, dtype="int32")
    tables = {}
    seen: list[keras.layers.Layer] = []
    for index, block in enumerate(blocks_of(encoder)):
        attention = block.attention
        table = getattr(attention, "relative_embedding", None)
        if table is None or any(table is other for other in seen):
            continue
        seen.append(table)
        rows = np.asarray(ops.convert_to_numpy(table(positions)), "float32")
        width = 1 if METHODS[attention.method].row == "scalar" else rows.shape[-1]
        tables[index] = rows.reshape(len(rows), -1, width)
    return tables


@paths(path=REPLACE)
def relative_embeddings(
    encoder: keras.Model,
    path: str | os.PathLike,
    max_distance: int = 50,
    head: int = 0,
    layer: int | None = None,
) -> None:
    """Draws the tables of relative positions, one panel for each.

    A table of vectors is drawn as an image for one head, relative positions across and
    features down, from dark blue for the lowest values to white for the highest; a
    table of scalars as one line for each head.

    Args:
        encoder: `tfeff.encoders.Encoder` with relative attention that has tables.
        path: the PNG file to write; replaced if it is there.
        max_distance: integer, largest distance in tokens to show.
        head: integer, the head of the images, from 0.
        layer: integer, the index of the only layer to show; `None` for all tables.

    Raises:
        ValueError: if no layer has a table, `max_distance` is below 1, there is no such
            head, no such layer or no table of it, or the folder of `path` is missing.
        TypeError: if `path` is not a path, or a number not an integer.
        ImportError: if matplotlib is not installed.

    Example:
    ```python
    import tfeff

    encoder = tfeff.encoders.build("huang4_base")
    tfeff.plots.relative_embeddings(encoder, "embeddings.png")
    ```

    Reference:
        Huang et al., "Improve Transformer models with better relative position
        embeddings", figure 4: the first head of the first layer (`layer=0`).
    """
    head = check_integer("head", head, 0)
    layer = check_layer(layer, encoder)
    tables = relative_tables(encoder, max_distance)
    if not tables:
        raise ValueError(
            "`encoder` must have relative attention with a table: 'relative' by the "
            "method 'shaw', 'rpe', 'bias', 'huang1', 'huang2', 'huang3' or 'huang4'. "
            f"Received: encoder with attention={encoder.attention!r}"
        )
    if layer is not None:
        if layer not in tables:
            raise ValueError(
                f"`layer` must be one with a table of its own, of {list(tables)}. "
                f"Received: layer={layer}"
            )
        tables = {layer: tables[layer]}
    for rows in tables.values():
        if rows.shape[2] > 1:
            head = check_integer("head", head, 0, rows.shape[1] - 1)
    positions = np.arange(-max_distance, max_distance + 1)
    with figure_axes(path, len(tables), size=(4, 2.8)) as panels:
        for axes, (index, rows) in zip(panels, tables.items()):
            axes.set(title=f"layer {index}", xlabel="relative position (tokens)")
            if rows.shape[2] > 1:
                _draw_vectors(axes, rows[:, head].T, max_distance)
            else:
                axes.plot(positions, rows[..., 0], linewidth=1)


def _draw_vectors(axes, features, max_distance):
    largest = float(np.abs(features).max()) or 1.0
    image = axes.imshow(
        features,
        cmap="Blues_r",
        vmin=-largest,
        vmax=largest,
        aspect="auto",
        interpolation="nearest",
        extent=(-max_distance - 0.5, max_distance + 0.5, len(features) - 0.5, -0.5),
    )
    axes.set_ylabel("feature")
    axes.figure.colorbar(image, ax=axes)
