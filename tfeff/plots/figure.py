"""Figures as PNG files, which are complete or missing."""

import contextlib
import math
import os
from collections.abc import Iterator

from tfeff.layers.encoder_block import blocks_of
from tfeff.utils.checks import check_integer
from tfeff.utils.files import atomic_file
from tfeff.utils.paths import check_path


@contextlib.contextmanager
def figure_axes(
    path: str | os.PathLike, panels: int = 1, size: tuple[float, float] = (7, 4.5)
) -> Iterator[list]:
    """Gives the axes of a figure, which becomes a PNG file at the end.

    A `$` in a text is one, and begins no formula.

    Args:
        path: the file, replaced if it is there.
        panels: integer, number of axes, at most four in a row.
        size: width and height of one panel in inches.

    Raises:
        TypeError: if `path` is not a path.
        ValueError: if its folder is missing.
        ImportError: if matplotlib is not installed.
    """
    path = check_figure_path(path)
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Figures need matplotlib. Install it by `pip install 'tfeff[plots]'`"
        ) from error
    columns = min(panels, 4)
    rows = math.ceil(panels / columns)
    with matplotlib.rc_context({"text.parse_math": False}):
        figure = Figure(
            figsize=(columns * size[0], rows * size[1]), layout="constrained", dpi=150
        )
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for unused in axes[panels:]:
            unused.remove()
        yield list(axes[:panels])
        with atomic_file(path) as unfinished:
            figure.savefig(unfinished, format="png")


def shown(label: str) -> str:
    """A label as a legend shows it: Matplotlib leaves those out that begin with "_"."""
    return f"\N{THIN SPACE}{label}" if label.startswith("_") else label


def legend_beside(axes) -> None:
    """Puts the legend beside the axes, where it hides no curve."""
    curves = len(axes.get_legend_handles_labels()[1])
    axes.legend(
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        frameon=False,
        fontsize="small",
        ncols=1 + curves // 16,
    )


def check_layer(layer: int | None, encoder) -> int | None:
    """Returns the index of a layer of the encoder, or None for all, else raises."""
    if layer is None:
        return None
    return check_integer("layer", layer, 0, len(blocks_of(encoder)) - 1)


def check_figure_path(path: object) -> str:
    """Returns `path` as a string if a file may be written there, else raises."""
    path = check_path("path", path)
    if os.path.isdir(path) or not os.path.isdir(os.path.dirname(path) or "."):
        raise ValueError(
            f"`path` must be a file in a folder that exists. Received: path={path!r}"
        )
    return path
