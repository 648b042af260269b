"""What training needs besides a model: optimizers, strategies, runs that resume."""

from tfeff.training.checkpoints import (
    Checkpoints,
    latest_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from tfeff.training.distribution import make_strategy
from tfeff.training.grid import Grid, write_metrics
from tfeff.training.growing import grow
from tfeff.training.keep_best import KeepBest
from tfeff.training.model import DistributedModel
from tfeff.training.optimizers import AdamW, adamw
from tfeff.training.progress import TrainingProgress
from tfeff.training.run import Run
from tfeff.training.schedules import LinearWarmupDecay
from tfeff.training.stacking import train_by_stacking

__all__ = [
    "AdamW",
    "Checkpoints",
    "DistributedModel",
    "Grid",
    "KeepBest",
    "LinearWarmupDecay",
    "Run",
    "TrainingProgress",
    "adamw",
    "grow",
    "latest_checkpoint",
    "load_checkpoint",
    "make_strategy",
    "save_checkpoint",
    "train_by_stacking",
    "write_metrics",
]
