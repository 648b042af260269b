"""The flag --plots and what it draws, for the scripts beside this file."""

import importlib.util

from absl import flags

import tfeff

flags.DEFINE_boolean(
    "plots", False, "Whether to draw attention, partitions and tables in the end."
)
flags.register_validator(
    "plots",
    lambda draws: not draws or importlib.util.find_spec("matplotlib"),
    "Pictures need matplotlib: pip install tfeff[plots].",
)


def draw(encoder, batches, run):
    """Draws the encoder on some batches of a data set, if the flag says so."""
    if flags.FLAGS.plots:
        tfeff.plots.draw_all(encoder, batches.take(8), run.path("plots"))
