"""Trained models as SavedModels that take text, and as files that take token ids."""

from tfeff.export.check import check_export
from tfeff.export.serving import save_for_serving, save_version
from tfeff.export.versions import versions
from tfeff.formats.export_model import export_model

__all__ = [
    "check_export",
    "export_model",
    "save_for_serving",
    "save_version",
    "versions",
]
