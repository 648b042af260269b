"""Pictures. They need matplotlib: `pip install tfeff[plots]`."""

from tfeff.plots.learning_curves import learning_curves

__all__ = ["learning_curves"]
