"""Figures. They need matplotlib: `pip install 'tfeff[plots]'`.

The numbers of each are in a separate function, which does not need it.
"""

from tfeff.plots.attention import average_attention, diagonal_concentration
from tfeff.plots.attention_maps import AttentionMaps, attention_maps
from tfeff.plots.draw_all import draw_all
from tfeff.plots.head_maps import (
    attention_heads,
    head_maps,
    head_similarity,
    similar_heads,
)
from tfeff.plots.layer_changes import LayerChanges, layer_changes, layer_stability
from tfeff.plots.learning_curves import learning_curves
from tfeff.plots.lengths import length_distribution
from tfeff.plots.partitions import partition_functions, partition_values
from tfeff.plots.relative_tables import relative_embeddings, relative_tables
from tfeff.plots.score_curves import score_curves

__all__ = [
    "AttentionMaps",
    "LayerChanges",
    "attention_heads",
    "attention_maps",
    "average_attention",
    "diagonal_concentration",
    "draw_all",
    "head_maps",
    "head_similarity",
    "layer_changes",
    "layer_stability",
    "learning_curves",
    "length_distribution",
    "partition_functions",
    "partition_values",
    "relative_embeddings",
    "relative_tables",
    "score_curves",
    "similar_heads",
]
