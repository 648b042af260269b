"""Training around a model: optimizers, strategies, runs that resume."""

from tfeff.training.agreement import check_equal_settings
from tfeff.training.checkpoint_file import load_checkpoint, save_checkpoint
from tfeff.training.checkpoint_folder import latest_checkpoint
from tfeff.training.checkpoints import Checkpoints
from tfeff.training.distribution import distribute, make_strategy
from tfeff.training.divergence import Diverged, StopWhenDiverged, is_finite
from tfeff.training.double_depth import double_depth
from tfeff.training.grid import Grid
from tfeff.training.head_importance import HeadImportance, head_importance
from tfeff.training.keep_best import KeepBest
from tfeff.training.lost_workers import LostWorker, lost_workers_named
from tfeff.training.model import DistributedModel
from tfeff.training.optimizers import AdamW, adamw
from tfeff.training.progress import TrainingProgress
from tfeff.training.run import RunDirectory
from tfeff.training.schedules import LinearWarmupDecay
from tfeff.training.scores import write_metrics
from tfeff.training.stacking import train_by_stacking

__all__ = [
    "AdamW",
    "Checkpoints",
    "DistributedModel",
    "Diverged",
    "Grid",
    "HeadImportance",
    "KeepBest",
    "LinearWarmupDecay",
    "LostWorker",
    "RunDirectory",
    "StopWhenDiverged",
    "TrainingProgress",
    "adamw",
    "check_equal_settings",
    "distribute",
    "double_depth",
    "head_importance",
    "is_finite",
    "latest_checkpoint",
    "load_checkpoint",
    "lost_workers_named",
    "make_strategy",
    "save_checkpoint",
    "train_by_stacking",
    "write_metrics",
]
