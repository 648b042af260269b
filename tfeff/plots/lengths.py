"""Figures of how long the paragraphs of data sets are."""

import os
from collections.abc import Mapping, Sequence

import numpy as np

from tfeff.plots.figure import check_figure_path, figure_axes, legend_beside, shown
from tfeff.storage.arguments import REPLACE, paths
from tfeff.utils.checks import check_integer, check_mapping


@paths(path=REPLACE)
def length_distribution(
    lengths: Mapping[str, Sequence[int]],
    path: str | os.PathLike,
    longest: int = 2048,
    bins: int = 64,
) -> None:
    """Draws how long the paragraphs of data sets are, one line for each data set.

    The height of a line is the share of the data set's paragraphs in a bin of lengths;
    the legend has their mean.

    Args:
        lengths: from the name of a data set to the lengths of its paragraphs in tokens,
            as from `tfeff.data.passage_lengths`.
        path: the PNG file to write; replaced if it is there.
        longest: integer, where the axis ends; longer paragraphs count in the last bin.
        bins: integer, number of bins.

    Raises:
        ValueError: if there is no data set or one has no paragraph, a number is below
            1, a length below 0, or the folder of `path` is missing.
        TypeError: if `lengths` is not a mapping to integers, `path` not a path, or a
            number not an integer.
        ImportError: if matplotlib is not installed.

    Example:
    ```python
    import numpy as np
    import tfeff

    rng = np.random.default_rng(0)
    lengths = {"short": rng.poisson(150, 1000), "long": rng.poisson(900, 1000)}
    tfeff.plots.length_distribution(lengths, "lengths.png")
    ```

    Reference:
        Qiu et al., "Blockwise self-attention for long document understanding", figure
        6.
    """
    check_mapping("lengths", lengths, "data sets to lengths")
    if not lengths:
        raise ValueError("`lengths` must hold a data set. Received: none")
    arrays = {name: _checked(name, values) for name, values in lengths.items()}
    longest = check_integer("longest", longest)
    bins = check_integer("bins", bins)
    check_figure_path(path)
    edges = np.linspace(0, longest, bins + 1)
    with figure_axes(path) as (axes,):
        for name, values in arrays.items():
            counts, _ = np.histogram(np.minimum(values, longest), edges)
            axes.stairs(
                counts / len(values),
                edges,
                label=shown(f"{name}, mean {values.mean():.0f}"),
            )
        axes.set(xlabel="length of a paragraph (tokens)", ylabel="share of paragraphs")
        legend_beside(axes)


def _checked(name, values):
    values = np.asarray(values)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise TypeError(
            f"`lengths` must map to lists of integers. Received: {values!r:.80} "
            f"for {name!r}"
        )
    if not values.size or values.min() < 0:
        raise ValueError(
            "`lengths` must hold lengths of at least 0 for each data set. "
            f"Received: {values!r:.80} for {name!r}"
        )
    return values.astype("int64")
