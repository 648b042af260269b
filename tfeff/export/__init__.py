"""Trained models as SavedModels that take text."""

from tfeff.export.check import check_export
from tfeff.export.serving import save_for_serving

__all__ = ["check_export", "save_for_serving"]
