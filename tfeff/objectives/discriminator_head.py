"""The head that tells replaced tokens from those of the text."""

from tfeff.encoders import Encoder
from tfeff.encoders.layer_names import weight_names
from tfeff.layers.checks import check_activation_name
from tfeff.layers.dense import bert_dense
from tfeff.objectives.heads import Head

PARTS = ("hidden", "output")


def discriminator_head(encoder: Encoder, activation: str = "gelu") -> Head:
    """A new head for a discriminator without a generator, such as a published one."""
    layers = discriminator_layers(encoder, activation)
    for layer in layers:
        layer.build((None, None, encoder.hidden_dim))
    return as_head(layers, activation)


def discriminator_layers(encoder, activation):
    """Both layers of the discriminator's head."""
    settings = (
        (encoder.hidden_dim, check_activation_name("activation", activation)),
        (1, None),
    )
    return [
        bert_dense(
            units,
            activation=function,
            dtype=encoder.dtype_policy,
            name=f"discriminator_{part}",
        )
        for part, (units, function) in zip(PARTS, settings)
    ]


def as_head(layers, activation):
    """The weights and settings of the layers of `discriminator_layers`, to be saved."""
    weights = {
        f"{part}/{name}": weight
        for part, layer in zip(PARTS, layers)
        for name, weight in weight_names(layer).items()
    }
    return Head(weights, {"activation": activation})
