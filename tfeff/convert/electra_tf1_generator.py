"""The generator of an ELECTRA in its authors' format."""

from tfeff.convert import electra_tf1
from tfeff.convert.config import Config
from tfeff.convert.tf1_names import TRAINING_STATE


class ElectraTf1Generator(electra_tf1.ElectraTf1):
    """The generator beside a discriminator, with which it shares the tables."""

    left_out = {
        **TRAINING_STATE,
        r"electra/(embeddings_project|encoder)/": "discriminator",
        r"discriminator_predictions/": "replaced token head",
    }
    scope = "generator"
    heads = {"masked_lm": electra_tf1.ElectraTf1.heads["masked_lm"]}

    def config_of(self, tensors: dict, config: Config) -> Config:
        # Its heads have the size of the discriminator's.
        discriminator = super().config_of(tensors, config)
        num_heads = discriminator.integer("num_attention_heads")
        sizes = electra_tf1.sizes_of(tensors, config, self.scope)
        sizes["num_attention_heads"] = max(
            1, num_heads * sizes["hidden_size"] // discriminator.integer("hidden_size")
        )
        return Config(discriminator.values | sizes, config.path)
