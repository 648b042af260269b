"""Settings of a grid of trainings."""

from typing import Any, ClassVar

from tfeff.recipes.fields import fields_of, setting
from tfeff.recipes.optimizer_settings import OptimizerSettings
from tfeff.recipes.settings import DTYPES, RECOMPUTED, settings
from tfeff.utils.checks import MAX_SEED


@settings
class TuningSettings(OptimizerSettings):
    """Settings of fine-tuning a pretrained encoder."""

    # A setting of `FinetuneSettings` alone: the others begin at the encoder's end.
    pretrained_steps: ClassVar[Any] = ()

    pretrained: str = setting("A preset, a run's folder, or RUN@STEP.")
    swap_positions: str | None = setting(
        "A method of relative positions, such as huang4, to put in place of the "
        "pretrained absolute ones; default: none.",
        None,
    )
    seeds: tuple[int, ...] = setting(
        "Seeds of new weights, order and dropout.", (0,), minimum=0, maximum=MAX_SEED
    )
    steps: int | None = setting(
        "Training steps, each an update, in place of `epochs`.",
        None,
        minimum=1,
        in_place_of="epochs",
    )
    eval_every: int = setting("Steps between evaluations.", 1000, minimum=1)
    learning_rates: tuple[float, ...] = setting(
        "Peak learning rates to try.", (3e-5,), above=0.0
    )
    patience: int | None = setting(
        "Evaluations in a row without a better one after which a training ends; "
        "default: none.",
        None,
        minimum=1,
    )
    warmup: float = setting(
        "Share of the steps in which the learning rate rises to its peak.",
        0.1,
        minimum=0.0,
        below=1.0,
    )
    weight_decay: tuple[float, ...] = setting(
        "Weight decays to try, of all weights but biases and norms.",
        (0.01,),
        minimum=0.0,
    )
    layer_decay: float | None = setting(
        "Factor of the learning rate from a layer to the one below it; default: none.",
        None,
        above=0.0,
        maximum=1.0,
    )
    dropout: float | None = setting(
        "The encoder's dropout rate; default: as pretrained.",
        None,
        minimum=0.0,
        below=1.0,
    )
    attention_dropout: float | None = setting(
        "The dropout rate of attention scores; default: as pretrained.",
        None,
        minimum=0.0,
        below=1.0,
    )
    dtype: str = setting("Precision.", "float32", choices=DTYPES)
    memory_efficient: str | None = setting(
        "What the backward pass recomputes, to save memory: whole blocks, or scores of "
        "attentions; default: as pretrained.",
        None,
        choices=RECOMPUTED,
    )
    lora_rank: int | None = setting(
        "Rank of LoRA adapters, which train with the head in place of the encoder's "
        "weights; default: none.",
        None,
        minimum=1,
    )
    save_lora: bool = setting(
        "Whether adapters and head are also saved alone, as lora.safetensors.", False
    )

    def __post_init__(self):
        super().__post_init__()
        for field in fields_of(type(self)):
            values = getattr(self, field.name)
            is_tried = field.is_tuple and field.kind in (int, float)
            if is_tried and len(set(values)) < len(values):
                raise ValueError(
                    f"`{field.name}` must have each value once. "
                    f"Received: {field.name}={list(values)}"
                )

    def num_steps(self, num_examples: int, in_step: int, epochs: float) -> int:
        """The steps of a training on so many examples, so many in a step."""
        return self.steps or max(1, round(epochs * num_examples / in_step))
