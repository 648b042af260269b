"""Figures. They need matplotlib: `pip install tfeff[plots]`.

The numbers of each are in a separate function, which does not need it.
"""

from tfeff.plots.attention import average_attention, diagonal_concentration
from tfeff.plots.attention_maps import AttentionMaps, attention_maps
from tfeff.plots.draw_all import draw_all
from tfeff.plots.learning_curves import learning_curves
from tfeff.plots.partitions import partition_functions, partition_values
from tfeff.plots.relative_tables import relative_embeddings, relative_tables

__all__ = [
    "AttentionMaps",
    "attention_maps",
    "average_attention",
    "diagonal_concentration",
    "draw_all",
    "learning_curves",
    "partition_functions",
    "partition_values",
    "relative_embeddings",
    "relative_tables",
]
