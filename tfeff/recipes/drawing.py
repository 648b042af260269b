"""The figures that recipes draw of an encoder."""

import importlib.util

import tfeff
from tfeff.utils.run_files import PLOTS


def check_plots(plots: bool) -> None:
    """Raises where pictures are wanted and cannot be drawn."""
    if plots and not importlib.util.find_spec("matplotlib"):
        raise ValueError(
            "`plots` must be False without matplotlib: pip install 'tfeff[plots]'. "
            "Received: plots=True"
        )


def draw(encoder, batches, run: tfeff.training.RunDirectory) -> None:
    """Draws the encoder on some batches of a data set."""
    tfeff.plots.draw_all(encoder, batches.take(8), run.path(PLOTS))
