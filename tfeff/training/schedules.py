from collections.abc import Iterator

import keras
from keras import ops

from tfeff.compat.optimizers import rate_of
from tfeff.utils.checks import check_integer, check_positive
from tfeff.utils.types import Config


@keras.saving.register_keras_serializable(package="tfeff")
class LinearWarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A straight line up to the peak, then a straight line down to 0.

        rate(s) = peak · s / warmup_steps                                s ≤ warm-up
        rate(s) = peak · (total_steps - s) / (total_steps - warmup_steps)     after
        rate(s) = 0                                                 s ≥ total_steps

    Args:
        peak_rate: float, the highest rate, reached at step `warmup_steps`.
        warmup_steps: integer in [0, total_steps).
        total_steps: integer, the step where the rate is 0.

    Call arguments:
        step: number of updates made so far.

    Raises:
        ValueError: if `peak_rate` is not positive, or the steps are out of order.
        TypeError: if `peak_rate` is no number, or steps are not integers; a share of
            all steps is not one.

    Example:

    >>> schedule = LinearWarmupDecay(1.0, warmup_steps=10, total_steps=30)
    >>> [round(float(schedule(step)), 2) for step in (0, 5, 10, 20, 30)]
    [0.0, 0.5, 1.0, 0.5, 0.0]

    Reference:
        Devlin et al., "BERT", section A.2.
    """

    def __init__(self, peak_rate: float, warmup_steps: int, total_steps: int):
        self.peak_rate = check_positive("peak_rate", peak_rate)
        self.warmup_steps = check_integer("warmup_steps", warmup_steps, 0)
        self.total_steps = check_integer("total_steps", total_steps)
        if warmup_steps >= total_steps:
            raise ValueError(
                "`warmup_steps` must be in [0, total_steps). Received: "
                f"warmup_steps={warmup_steps}, total_steps={total_steps}"
            )
        super().__init__()

    def __call__(self, step):
        step = ops.cast(step, "float32")
        rising = step / max(self.warmup_steps, 1)
        falling = (self.total_steps - step) / (self.total_steps - self.warmup_steps)
        share = ops.where(step < self.warmup_steps, rising, falling)
        return self.peak_rate * ops.clip(share, 0.0, 1.0)

    def get_config(self) -> Config:
        return {
            "peak_rate": self.peak_rate,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
        }


@keras.saving.register_keras_serializable(package="tfeff")
class ResumedSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule that a new optimizer goes on with, from the steps of an earlier one.

        rate(s) = schedule(first_step + s)

    Args:
        schedule: a learning rate schedule of Keras. One that is a `ResumedSchedule`
            itself gives its schedule, and its steps.
        first_step: integer, the number of updates that were made before.

    Call arguments:
        step: number of updates that the new optimizer has made so far.

    Example:

    >>> schedule = ResumedSchedule(LinearWarmupDecay(1.0, 10, 30), first_step=20)
    >>> [round(float(schedule(step)), 2) for step in (0, 5, 10)]
    [0.5, 0.25, 0.0]
    """

    schedule: keras.optimizers.schedules.LearningRateSchedule
    first_step: int

    def __init__(
        self,
        schedule: keras.optimizers.schedules.LearningRateSchedule,
        first_step: int,
    ):
        first_step = check_integer("first_step", first_step, 0)
        if isinstance(schedule, ResumedSchedule):
            first_step += schedule.first_step
            schedule = schedule.schedule
        self.schedule, self.first_step = schedule, first_step
        super().__init__()

    def __call__(self, step):
        return self.schedule(step + self.first_step)

    def get_config(self) -> Config:
        return {
            "schedule": keras.saving.serialize_keras_object(self.schedule),
            "first_step": self.first_step,
        }

    @classmethod
    def from_config(cls, config: Config) -> "ResumedSchedule":
        schedule = keras.saving.deserialize_keras_object(config["schedule"])
        return cls(schedule, config["first_step"])


def schedule_warnings(
    optimizer: keras.optimizers.Optimizer, steps: int | None
) -> Iterator[str]:
    """The text that `fit` warns of, if the rate is 0 in all, or some, of its steps.

    Args:
        optimizer: the optimizer, without what scales the loss.
        steps: how many updates `fit` makes at most; `None` if that is not known.
    """
    schedule = rate_of(optimizer)
    taken = 0
    if isinstance(schedule, ResumedSchedule):
        taken = schedule.first_step
        schedule = schedule.schedule
    if not isinstance(schedule, LinearWarmupDecay):
        return
    taken += int(keras.ops.convert_to_numpy(optimizer.iterations))
    left = schedule.total_steps - taken
    if left <= 0:
        yield (
            f"The optimizer has taken {taken} steps, and its schedule ends after "
            f"{schedule.total_steps}: the rate is 0, and nothing is trained. "
            "Compile the model with a new optimizer to train it on"
        )
    elif steps is not None and steps > left:
        yield (
            f"`fit` takes {steps} steps, and the schedule of the optimizer ends "
            f"after {left}: then the rate is 0, and nothing is trained. Its "
            "`total_steps` are those of all epochs"
        )
