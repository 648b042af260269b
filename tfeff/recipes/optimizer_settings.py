"""Settings of the optimizer and of adapters, which several recipes have."""

from tfeff.recipes.callback_settings import CallbackSettings
from tfeff.recipes.settings import setting, settings


@settings
class OptimizerSettings(CallbackSettings):
    """Settings of AdamW beside its rate and decay."""

    beta_1: float = setting(
        "What Adam's mean of gradients keeps from step to step.",
        0.9,
        minimum=0.0,
        maximum=1.0,
    )
    beta_2: float = setting(
        "What its mean of their squares keeps.", 0.999, minimum=0.0, maximum=1.0
    )
    epsilon: float = setting("Added to Adam's denominator.", 1e-6, minimum=0.0)
    bias_correction: bool = setting("Whether Adam corrects its means.", True)
    global_clipnorm: float | None = setting(
        "Largest norm of the batch's gradient; none leaves it as it is.", 1.0
    )

    def adam(self) -> dict:
        """These settings, as arguments of `tfeff.training.adamw`."""
        return {
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "bias_correction": self.bias_correction,
            "global_clipnorm": self.global_clipnorm,
        }


@settings
class TuningSettings(OptimizerSettings):
    """Settings of what is trained of a pretrained encoder."""

    lora_rank: int | None = setting(
        "Rank of LoRA adapters, which train with the head in place of the encoder's "
        "weights; default: none.",
        None,
        minimum=1,
    )
    save_lora: bool = setting(
        "Whether adapters and head are also saved alone, as lora.safetensors.", False
    )
