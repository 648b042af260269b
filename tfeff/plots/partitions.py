"""Figures of the partition functions of an encoder."""

import os

import keras
import numpy as np
from keras import ops

from tfeff.layers.encoder_block import blocks_of
from tfeff.plots.figure import figure_axes
from tfeff.storage.arguments import REPLACE, paths
from tfeff.utils.checks import check_integer


def partition_values(
    encoder: keras.Model, max_distance: int = 64
) -> dict[int, np.ndarray]:
    """The partition of every layer that has one.

    Args:
        encoder: `tfeff.encoders.Encoder`.
        max_distance: integer `X`, largest distance in tokens.

    Returns:
        Dict from the index of the layer, from 0, to `f_h(x)` at the relative positions
        `x = -X … X`, float `[n, 2X + 1]`; empty for an encoder without partitions.

    Raises:
        ValueError: if `max_distance` is below 1.
        TypeError: if it is not an integer.

    Example:

    >>> import tfeff
    >>> values = partition_values(tfeff.encoders.build("shatter_tiny"), 3)
    >>> sorted(values), values[0].shape
    ([0, 1], (4, 7))
    """
    max_distance = check_integer("max_distance", max_distance)
    positions = ops.arange(-max_distance, max_distance + 1, dtype="int32")
    # A block that several layers share has a partition for each of them.
    return {
        index: np.asarray(
            ops.convert_to_numpy(
                block.attention.partition_layer.functions(
                    positions, block.attention_index(index)
                )
            )
        )
        for index, block in enumerate(blocks_of(encoder))
        if hasattr(block.attention, "partition_layer")
    }


@paths(path=REPLACE)
def partition_functions(
    encoder: keras.Model, path: str | os.PathLike, max_distance: int = 64
) -> None:
    """Draws the partition functions of every layer, one panel for each.

    The label of a function, `f_0`, `f_1`, …, stands in its colour where the function is
    largest. With eight parts, the first layer of twelve is the paper's figure: `f_0` to
    `f_3` are its four functions, and the others mirror them.

    Args:
        encoder: `tfeff.encoders.Encoder` with partitioned attention, such as Shatter.
        path: the PNG file to write; replaced if it is there.
        max_distance: integer, largest distance in tokens to show.

    Raises:
        ValueError: if no layer has a partition, `max_distance` is below 1, or the
            folder of `path` is missing.
        TypeError: if `path` is not a path, or `max_distance` not an integer.
        ImportError: if matplotlib is not installed.

    Example:
    ```python
    import tfeff

    encoder = tfeff.encoders.build("shatter_base")
    tfeff.plots.partition_functions(encoder, "partition.png")
    ```

    Reference:
        Tian et al., "Shatter", figure 2.
    """
    values = partition_values(encoder, max_distance)
    if not values:
        raise ValueError(
            "`encoder` must have attentions with a partition, 'partitioned' or "
            f"'one_head'. Received: encoder with attention={encoder.attention!r}"
        )
    positions = np.arange(-max_distance, max_distance + 1)
    with figure_axes(path, len(values), size=(4, 2.5)) as panels:
        for axes, (index, functions) in zip(panels, values.items()):
            for h, function in enumerate(functions):
                _draw_labelled(axes, positions, function, f"$f_{{{h}}}$")
            axes.margins(y=0.15)  # Room for the labels.
            axes.set(
                title=f"layer {index}",
                xlabel="relative position (tokens)",
            )
            axes.set_ylabel("$f_h$", parse_math=True)


def _draw_labelled(axes, positions, function, label):
    """A function with its label above the middle of where it is largest."""
    (line,) = axes.plot(positions, function, linewidth=1, label=label)
    # The innermost functions of both sides have the same value at 0.
    outside = positions != 0
    largest = function[outside].max()
    axes.annotate(
        label,
        (positions[outside & (function == largest)].mean(), largest),
        color=line.get_color(),
        fontsize="small",
        ha="center",
        va="bottom",
        parse_math=True,
    )
