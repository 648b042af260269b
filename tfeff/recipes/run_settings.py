"""Settings of a training, which every recipe that trains has."""

from tfeff.recipes.fields import setting
from tfeff.recipes.settings import Settings, settings


@settings
class RunSettings(Settings):
    """Settings of where a training runs, and of what watches it."""

    accumulation_steps: int = setting(
        "Batches in a step, which makes one update by all of their examples.",
        1,
        minimum=1,
    )
    strategy: str = setting(
        "Where to train: on one device, on all GPUs of the machine (mirrored), or on a "
        "TPU.",
        "default",
        choices=("default", "mirrored", "tpu"),
        fixed=False,
    )
    tpu: str = setting("Name or address of the TPU.", "", fixed=False)
    plots: bool = setting(
        "Whether to draw attention, partitions and tables in the end.",
        False,
        fixed=False,
    )
    callbacks: tuple[str, ...] = setting(
        "A Keras callback by the name of its class, with arguments: "
        "package.Class(name=value). Once for each.",
        (),
        fixed=False,
        repeated=True,
    )

    def __post_init__(self):
        super().__post_init__()
        if self.tpu and self.strategy != "tpu":
            raise ValueError(
                "`tpu` can be given with `strategy='tpu'` only. Received: "
                f"tpu={self.tpu!r}, strategy={self.strategy!r}"
            )
