"""Figures of attention averaged over a data set."""

import os
from collections.abc import Iterable

import numpy as np

from tfeff.plots.attention_maps import AttentionMaps, attention_maps
from tfeff.plots.figure import check_figure_path, figure_axes
from tfeff.utils.checks import check_integer


def average_attention(
    encoder, batches: Iterable, path: str | os.PathLike, length: int = 50
) -> None:
    """Draws the attention of each layer, averaged over heads and examples.

    One panel for each layer shows the attention of every position (down) to every
    position (across); the last panel shows the attention by relative position.

    Args:
        encoder: `tfeff.encoders.Encoder`.
        batches: finitely many batches, as for `tfeff.plots.attention_maps`.
        path: the PNG file to write; replaced if it is there.
        length: integer, how many positions, and how large a distance, to show.

    Raises:
        ValueError: as `attention_maps`, if `length` is below 1, or if the folder of
            `path` is missing.
        TypeError: if `path` is not a path, or `length` not an integer.
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
        embeddings", figure 5: the first layer, 50 tokens.
    """
    length = check_integer("length", length)
    check_figure_path(path)
    draw_average(attention_maps(encoder, batches), path, length)


def draw_average(maps: AttentionMaps, path: str | os.PathLike, length: int) -> None:
    """`average_attention` from its numbers."""
    mean = maps.mean()
    length = min(length, len(maps.pairs))
    reach = slice(len(maps.pairs) - length, len(maps.pairs) + length - 1)
    with figure_axes(path, len(mean) + 1, size=(3.6, 3)) as panels:
        for index, axes in enumerate(panels[:-1]):
            image = axes.imshow(
                mean[index, :length, :length],
                cmap="Blues",
                vmin=0,
                interpolation="nearest",
            )
            axes.set(title=f"layer {index}", xlabel="attended", ylabel="attending")
            axes.figure.colorbar(image, ax=axes)
        positions = np.arange(1 - length, length)
        for index, curve in enumerate(maps.by_distance()[:, reach]):
            panels[-1].plot(positions, curve, label=f"layer {index}", linewidth=1)
        panels[-1].set(title="by distance", xlabel="relative position (tokens)")
        panels[-1].legend(fontsize="x-small")


def diagonal_concentration(
    encoder, batches: Iterable, path: str | os.PathLike, distance: int = 4
) -> None:
    """Draws the share of each layer's attention near the diagonal.

    The share is that of `tfeff.plots.AttentionMaps.concentration`: of all attention
    from real tokens to real tokens, that over at most `distance` tokens.

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
        Jiang et al., "ConvBERT", section 6.5, has a measure of this kind.
    """
    distance = check_integer("distance", distance, 0)
    check_figure_path(path)
    draw_concentration(attention_maps(encoder, batches), path, distance)


def draw_concentration(
    maps: AttentionMaps, path: str | os.PathLike, distance: int
) -> None:
    """`diagonal_concentration` from its numbers."""
    shares = maps.concentration(distance)
    with figure_axes(path) as (axes,):
        axes.bar(range(len(shares)), shares)
        axes.set(
            xlabel="layer",
            ylabel=f"share of attention within {distance} tokens",
            xticks=range(len(shares)),
            ylim=(0, 1),
        )
