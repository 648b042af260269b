"""The generator of an ELECTRA in its authors' format."""

from functools import partial

from tfeff.convert import electra_tf1
from tfeff.convert.config import Config

_TRAINING = "training state"
LEFT_OUT = {
    r".*/adam_[mv]$": _TRAINING,
    r"global_step$": _TRAINING,
    r"electra/(embeddings_project|encoder)/": "discriminator",
    r"discriminator_predictions/": "replaced token head",
}
arguments = electra_tf1.arguments
weights = partial(electra_tf1.weights, scope=electra_tf1.GENERATOR)
pretraining_heads = electra_tf1.pretraining_heads
HEADS = {"masked_lm": electra_tf1.masked_lm_head}
TASKS: dict[str, dict] = {}


def config_of(tensors: dict, config: Config) -> Config:
    """As `electra_tf1.config_of`; its heads have the size of the discriminator's."""
    discriminator = electra_tf1.config_of(tensors, config)
    num_heads = discriminator.integer("num_attention_heads")
    sizes = electra_tf1.sizes_of(tensors, config, electra_tf1.GENERATOR)
    sizes["num_attention_heads"] = max(
        1, num_heads * sizes["hidden_size"] // discriminator.integer("hidden_size")
    )
    return Config(discriminator.values | sizes, config.path)
