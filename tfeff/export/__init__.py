"""Trained models as SavedModels that take text."""

from tfeff.export.serving import save_for_serving

__all__ = ["save_for_serving"]
