"""Settings of the optimizer, which several recipes have."""

from tfeff.recipes.fields import setting
from tfeff.recipes.run_settings import RunSettings
from tfeff.recipes.settings import settings


@settings
class OptimizerSettings(RunSettings):
    """Settings of AdamW beside its rate and decay."""

    beta_1: float = setting(
        "Decay rate of Adam's running mean of gradients.",
        0.9,
        minimum=0.0,
        below=1.0,
    )
    beta_2: float = setting(
        "Decay rate of Adam's running mean of squared gradients.",
        0.999,
        minimum=0.0,
        below=1.0,
    )
    epsilon: float = setting("Added to Adam's denominator.", 1e-6, above=0.0)
    bias_correction: bool = setting(
        "Whether Adam corrects its running means for their start at 0.", True
    )
    global_clipnorm: float | None = setting(
        "Largest norm, to which the batch's gradient is clipped; none: not clipped.",
        1.0,
        above=0.0,
    )

    def adam(self) -> dict:
        """These settings, as arguments of `tfeff.training.adamw`."""
        names = ("beta_1", "beta_2", "epsilon", "bias_correction", "global_clipnorm")
        return {name: getattr(self, name) for name in names}
