"""ELECTRA in its authors' format: TensorFlow 1 variables, no configuration.

A checkpoint of pretraining holds a discriminator and a generator with the same tables;
`scope` is the name of either network.
"""

from collections.abc import Callable, Iterator

from tfeff.convert.config import Config
from tfeff.convert.electra import Electra
from tfeff.convert.format import HeadWeights
from tfeff.convert.tf1_names import (
    TRAINING_STATE,
    heads_in_authors_format,
    in_authors_format,
)
from tfeff.convert.weights import Weight

_TABLE = "electra/embeddings/{}_embeddings"
_HEAD_SIZE = 64  # All models that the authors published have it.
# Replacements in Hugging Face's names, made one after another.
_NAMES = {
    r"^embeddings\.": "electra.embeddings.",
    r"^(embeddings_project|encoder)\.": r"{scope}.\1.",
    r"key_conv_attn_layer\.(depthwise|pointwise)\.weight$": (
        r"key_conv_attn_layer.\1_kernel"
    ),
    r"key_conv_attn_layer": "conv_attn_key",
    r"conv_kernel_layer": "conv_attn_kernel",
    r"conv_out_layer": "conv_attn_point",
    r"generator_lm_head\.bias": "generator_predictions.output_bias",
    r"dense_prediction": "dense_1",
}


def names_in(scope: str) -> dict[str, str]:
    """The replacements that are ELECTRA's own, in a scope."""
    return {pattern: new.format(scope=scope) for pattern, new in _NAMES.items()}


class ElectraTf1(Electra):
    """The discriminator, or an encoder alone."""

    left_out = {
        **TRAINING_STATE,
        r"generator/": "generator",
        r"generator_predictions/": "masked language model head",
        r"discriminator_predictions/": "replaced token head",
        r"task_specific/": "task head",
    }
    scope = "electra"
    head_activation = None
    heads: HeadWeights = heads_in_authors_format(Electra.heads, names_in("electra"))
    tasks = {}

    def config_of(self, tensors: dict, config: Config) -> Config:
        """The configuration that the shapes of the variables imply.

        Args:
            tensors: the variables of the checkpoint.
            config: the values in a file beside it, which take precedence.

        Raises:
            ValueError: if a variable that determines a size is missing, or the number
                of heads is not known.
        """
        implied = sizes_of(tensors, config)
        hidden_size = implied["hidden_size"]
        if hidden_size % _HEAD_SIZE == 0:
            implied["num_attention_heads"] = hidden_size // _HEAD_SIZE
        elif config.get("num_attention_heads", None) is None:
            raise ValueError(
                f"{config.path!r} must have 'num_attention_heads' in a configuration "
                f"beside it: heads of {_HEAD_SIZE}, as in the authors' models, do not "
                f"fit hidden_size={hidden_size}"
            )
        return with_values(config, implied)

    def weights(self, encoder) -> Iterator[Weight]:
        names = names_in(self.scope)
        return (in_authors_format(weight, names) for weight in super().weights(encoder))


def sizes_of(tensors: dict, config: Config, scope: str = "electra") -> dict:
    """The sizes of a network that ELECTRA and ConvBERT have alike."""
    shape = shapes_of(tensors, config)
    layer = layer_name(scope)
    vocabulary, embedding_size = shape(_TABLE.format("word"))
    num_layers = 0
    while f"{layer(num_layers)}/output/LayerNorm/gamma" in tensors:
        num_layers += 1
    sizes = dict(
        vocab_size=vocabulary,
        embedding_size=embedding_size,
        hidden_size=shape(f"{layer(0)}/attention/self/query/kernel")[0],
        num_hidden_layers=num_layers,
        max_position_embeddings=shape(_TABLE.format("position"))[0],
        type_vocab_size=shape(_TABLE.format("token_type"))[0],
    )
    groups = f"{layer(0)}/intermediate/g_dense"  # ConvBERT medium-small has it.
    if f"{groups}/kernel" in tensors:
        sizes["num_groups"] = shape(f"{groups}/kernel")[0]
        return sizes | dict(intermediate_size=shape(f"{groups}/bias")[0])
    bias = shape(f"{layer(0)}/intermediate/dense/bias")
    return sizes | dict(intermediate_size=bias[0])


def shapes_of(tensors: dict, config: Config) -> Callable[[str], tuple[int, ...]]:
    """The function from a variable's name to its shape, which names a missing one."""

    def shape(name):
        if name not in tensors:
            raise ValueError(
                f"{config.path!r} must hold the variables of an ELECTRA or a "
                f"ConvBERT. Missing: {name!r}"
            )
        return tensors[name].shape

    return shape


def with_values(config: Config, implied: dict) -> Config:
    """The configuration with implied values where it has none."""
    said = {name: value for name, value in config.values.items() if value is not None}
    return Config(implied | said, config.path)


def layer_name(scope: str) -> Callable[[int], str]:
    """The function from a layer's index to its name."""
    return f"{scope}/encoder/layer_{{}}".format


def rename(tensors: dict) -> dict:
    """Renames the head of a generator, if there is one, to one of its variables.

    Without a generator the head belongs to the encoder.
    """
    if not any(name.startswith("generator/") for name in tensors):
        return tensors
    return {
        name.replace("generator_predictions/", "generator/predictions/", 1): tensor
        for name, tensor in tensors.items()
    }
