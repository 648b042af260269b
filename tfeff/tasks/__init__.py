"""Models to fine-tune, and metrics and prediction files of the benchmarks.

The names are imported when first used.
"""

import importlib

_HOMES = {
    "Classifier": "classifier",
    "MultipleChoice": "multiple_choice",
    "Regressor": "regressor",
    "SpanQA": "span_qa",
    "glue_metrics": "metrics",
    "load_pretrained": "pretrained",
    "race_metrics": "metrics",
    "save_pretrained": "pretrained",
    "squad_v1_metrics": "squad_metrics",
    "squad_v2_metrics": "squad_metrics",
    "superglue_metrics": "metrics",
    "write_glue": "predictions",
    "write_json": "predictions",
    "write_superglue": "predictions",
}

__all__ = list(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
