"""Settings of pretraining by progressive stacking."""

from collections.abc import Mapping
from typing import ClassVar

from tfeff.recipes.configurations import find
from tfeff.recipes.fields import setting
from tfeff.recipes.pretrain_settings import PretrainSettings
from tfeff.recipes.settings import settings


@settings
class StackSettings(PretrainSettings):
    """Pretrains a deep encoder through shallower ones: progressive stacking.

    It takes the settings of `tfeff pretrain`, but for those of a pretrained encoder,
    and those of the stages. Here 1, 2 and at last 4 layers, for 200 steps each:

        tfeff stack --run_dir=runs/stacked --num_layers=4 --doublings=2 \\
            --steps=600 --eval_every=100

    BERT-base in the paper's way, from 3 layers, with new moments in each stage:

        tfeff stack --run_dir=runs/bert --preset=bert_base --num_layers=12 \\
            --doublings=2 --switch_steps=50000,120000 --steps=400000 \\
            --eval_every=10000 --optimizer=reset --corpus='corpus/*.txt'

    The run directory is that of `tfeff pretrain`; `metrics.csv` has the depth of each
    row. Layers that all share their weights, as ALBERT's, cannot be stacked; those that
    share them in groups (`--override=sharing_group_size=N`) can.
    """

    command = "stack"
    # No settings here: a pretrained encoder has no shallower one to begin with.
    pretrained: ClassVar[None] = None  # type: ignore[misc]
    swap_positions: ClassVar[None] = None  # type: ignore[misc]

    preset: str | None = setting(  # type: ignore[assignment]
        "A name of tfeff.encoders.presets(); default: shatter_tiny.", None
    )
    num_layers: int | None = setting(  # type: ignore[misc]
        "Layers in the end; default: those of the preset where one is named, else 4.",
        None,
        minimum=1,
    )
    doublings: int = setting("How often the depth doubles on the way.", 1, minimum=1)
    switch_steps: tuple[int, ...] | None = setting(
        "Steps after which it doubles; by default equal stages.", None, minimum=1
    )
    patience: int | None = setting(
        "Validations without a new lowest loss after which it doubles earlier; the "
        "last stage runs to its end.",
        None,
        minimum=1,
    )
    optimizer: str = setting(
        "Adam's moments copied with their layers, or new ones; the rate goes on.",
        "copy",
        choices=["copy", "reset"],
    )

    @classmethod
    def filled(cls, name: str, given: Mapping) -> dict:
        if find("pretrain", name).continues:
            raise ValueError(
                "`config` must be of a training that begins with a new encoder. "
                f"Received: config={name!r}, which goes on from a pretrained one"
            )
        return super().filled(name, given)
