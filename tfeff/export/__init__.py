"""Trained models as SavedModels that take text, and as files that take token ids."""

from tfeff.encoders.formats import export_model
from tfeff.export.check import check_export
from tfeff.export.serving import save_for_serving, save_version
from tfeff.export.versions import versions

__all__ = [
    "check_export",
    "export_model",
    "save_for_serving",
    "save_version",
    "versions",
]
