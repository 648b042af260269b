"""Recipes as programs: their environment, and the flags of a small pretraining."""

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
SMALL = (
    "--vocabulary_size=400",
    "--sequence_length=24",
    "--batch_size=4",
    "--steps=9",
    "--eval_every=3",
    "--warmup_steps=2",
    "--validation_fraction=0.1",
    "--override=hidden_dim=16",
    "--override=intermediate_dim=32",
)
