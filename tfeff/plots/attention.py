"""Figures of attention averaged over a data set."""

import os
from collections.abc import Iterable

import keras
import numpy as np

from tfeff.plots.attention_maps import AttentionMaps, attention_maps
from tfeff.plots.figure import (
    check_figure_path,
    check_layer,
    figure_axes,
    legend_beside,
)
from tfeff.storage.arguments import REPLACE, paths
from tfeff.utils.checks import check_integer


@paths(path=REPLACE)
def average_attention(
    encoder: keras.Model,
    batches: Iterable,
    path: str | os.PathLike,
    length: int = 50,
    layer: int | None = None,
) -> None:
    """Draws the attention of each layer, averaged over heads and examples.

    One panel for each layer shows the attention of every position (down) to every
    position (across); the last panel shows the attention by relative position.

    Args:
        encoder: `tfeff.encoders.Encoder`.
        batches: finitely many batches, as for `tfeff.plots.attention_maps`.
        path: the PNG file to write; replaced if it is there.
        length: integer, how many positions, and how large a distance, to show.
        layer: integer, the index of the only layer to show, without the last panel;
            `None` for all layers.

    Raises:
        ValueError: as `attention_maps`, if `length` is below 1, there is no such
            layer, or the folder of `path` is missing.
        TypeError: if `path` is not a path, or a number not an integer.
        ImportError: if matplotlib is not installed.

    Example:
    ```python
    import tfeff

    encoder, _ = tfeff.tasks.load_pretrained("runs/first")
    cache = tfeff.data.open_cache("runs/first/cache/validation")
    batches = cache.batches(tfeff.data.MaskedTokens(), 16, repeat=False).take(8)
    tfeff.plots.average_attention(encoder, batches, "attention.png")
    ```

    Reference:
        Huang et al., "Improve Transformer models with better relative position
        embeddings", figure 5: the first layer (`layer=0`), 50 tokens.
    """
    length = check_integer("length", length)
    layer = check_layer(layer, encoder)
    check_figure_path(path)
    draw_average(attention_maps(encoder, batches), path, length, layer)


def draw_average(
    maps: AttentionMaps,
    path: str | os.PathLike,
    length: int,
    layer: int | None = None,
) -> None:
    """`average_attention` of maps that are computed already."""
    mean = maps.mean()
    length = min(length, len(maps.pairs))
    reach = slice(len(maps.pairs) - length, len(maps.pairs) + length - 1)
    shown = range(len(mean)) if layer is None else [layer]
    curves = int(layer is None)
    with figure_axes(path, len(shown) + curves, size=(3.6, 3)) as panels:
        for index, axes in zip(shown, panels):
            image = axes.imshow(
                mean[index, :length, :length],
                cmap="Blues",
                vmin=0,
                interpolation="nearest",
            )
            axes.set(title=f"layer {index}", xlabel="attended", ylabel="attending")
            axes.figure.colorbar(image, ax=axes)
        if not curves:
            return
        positions = np.arange(1 - length, length)
        for index, curve in enumerate(maps.by_distance()[:, reach]):
            panels[-1].plot(positions, curve, label=f"layer {index}", linewidth=1)
        panels[-1].set(title="by distance", xlabel="relative position (tokens)")
        legend_beside(panels[-1])


@paths(path=REPLACE)
def diagonal_concentration(
    encoder: keras.Model, batches: Iterable, path: str | os.PathLike, distance: int = 4
) -> None:
    """Draws how near the diagonal the attention of each layer is.

    The number is that of `tfeff.plots.AttentionMaps.concentration`: of all attention
    from real tokens to real tokens, that over at most `distance` tokens, divided by the
    rest. A line shows that of the map averaged over the layers.

    Args:
        encoder: `tfeff.encoders.Encoder`.
        batches: finitely many batches, as for `tfeff.plots.attention_maps`.
        path: the PNG file to write; replaced if it is there.
        distance: integer, in tokens.

    Raises:
        ValueError: as `attention_maps`, if `distance` is below 0, or if the folder of
            `path` is missing.
        TypeError: if `path` is not a path, or `distance` not an integer.
        ImportError: if matplotlib is not installed.

    Example:
    ```python
    import tfeff

    encoder, _ = tfeff.tasks.load_pretrained("runs/first")
    cache = tfeff.data.open_cache("runs/first/cache/validation")
    batches = cache.batches(tfeff.data.MaskedTokens(), 16, repeat=False).take(8)
    tfeff.plots.diagonal_concentration(encoder, batches, "concentration.png")
    ```

    Reference:
        Jiang et al., "ConvBERT", section 6.5 and Table 8: 0.941 of BERT, 0.608 of
        ConvBERT, with a distance of 4.
    """
    distance = check_integer("distance", distance, 0)
    check_figure_path(path)
    draw_concentration(attention_maps(encoder, batches), path, distance)


def draw_concentration(
    maps: AttentionMaps, path: str | os.PathLike, distance: int
) -> None:
    """`diagonal_concentration` of maps that are computed already."""
    layers = maps.concentration(distance)
    (together,) = maps.over_layers().concentration(distance)
    with figure_axes(path) as (axes,):
        # A layer without far attention has no bar.
        axes.bar(range(len(layers)), np.where(np.isfinite(layers), layers, np.nan))
        if np.isfinite(together):
            axes.axhline(together, color="black", linewidth=1, label="all layers")
            legend_beside(axes)
        axes.set(
            xlabel="layer",
            ylabel=f"attention within {distance} tokens / beyond",
            xticks=range(len(layers)),
        )
