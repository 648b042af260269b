"""Names of the files and folders of a run directory, which several packages read."""

CONFIG = "config.json"
METRICS = "metrics.json"
METRICS_TABLE = "metrics.csv"
DEV_METRICS_TABLE = "dev_metrics.csv"
MODEL = "model.keras"
READ_DATA = "read_data.json"
LOCK = "run.lock"
TOKENIZER_FILE = "tokenizer.spm"
TOKENIZER_FOLDER = "tokenizer"
CACHE = "cache"
CELLS = "cells"
CHECKPOINTS = "checkpoints"
EXPORT = "export"
# What a training saves at a signal, to resume from; of a distillation the first part.
INTERRUPTED = "interrupted"
INTERRUPTED_LAYERS = "interrupted_layers"
PLOTS = "plots"
PREDICTIONS = "predictions"
PRESET = "preset"
TENSORBOARD = "tensorboard"
# The folders that hold neither the model of a run nor its tokenizer. Checkpoints hold
# the model of a run without a preset.
BESIDE_MODEL = (
    *(CACHE, CELLS, EXPORT, INTERRUPTED, INTERRUPTED_LAYERS, PLOTS, PREDICTIONS),
    TENSORBOARD,
)
# What a run would make anew if it were missing.
MADE = (
    *(CONFIG, METRICS, METRICS_TABLE, DEV_METRICS_TABLE, MODEL, READ_DATA),
    *(TOKENIZER_FILE, TOKENIZER_FOLDER, CHECKPOINTS, PRESET, *BESIDE_MODEL),
)


def checkpoint_name(step: int) -> str:
    """The file name of the checkpoint after `step` steps."""
    return f"step-{step:08d}.keras"


def is_in(name: str, *folders: str) -> bool:
    """Whether a path relative to the run directory is in one of its folders."""
    return name.partition("/")[0] in folders
