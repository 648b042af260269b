from tfeff.training.optimizers import AdamW
from tfeff.training.optimizers import adamw
from tfeff.training.schedules import LinearWarmupDecay

__all__ = ["AdamW", "LinearWarmupDecay", "adamw"]
