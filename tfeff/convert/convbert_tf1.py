"""ConvBERT in its authors' format, which extends that of ELECTRA."""

import dataclasses
import re
from collections.abc import Iterator

from tfeff.convert import electra_tf1
from tfeff.convert.config import Config
from tfeff.convert.convbert import ConvBert
from tfeff.convert.tf1_names import in_authors_format
from tfeff.convert.weights import Weight

_HUGGING_FACE = ConvBert()


class ConvBertTf1(electra_tf1.ElectraTf1):
    """ConvBERT's discriminator."""

    def config_of(self, tensors: dict, config: Config) -> Config:
        sizes = electra_tf1.sizes_of(tensors, config)
        shape = electra_tf1.shapes_of(tensors, config)
        own = f"{electra_tf1.layer_name(self.scope)(0)}/attention/self"
        hidden_size, attention_size = shape(f"{own}/query/kernel")
        kernel_size = shape(f"{own}/conv_attn_key/depthwise_kernel")[0]
        own_heads = shape(f"{own}/conv_attn_kernel/bias")[0] // kernel_size
        num_heads = hidden_size * own_heads // attention_size
        implied = sizes | dict(
            num_attention_heads=num_heads,
            head_ratio=num_heads // own_heads,
            conv_kernel_size=kernel_size,
        )
        return electra_tf1.with_values(config, implied)

    def arguments(self, config: Config) -> dict:
        # Other ratios change the width here, unlike in Hugging Face's.
        config.only("head_ratio", 2, default=2)
        return _HUGGING_FACE.arguments(config)

    def weights(self, encoder) -> Iterator[Weight]:
        is_grouped = encoder.blocks[0].feedforward.num_groups > 1
        names = electra_tf1.names_in(self.scope)
        for weight in _HUGGING_FACE.weights(encoder):
            weight = in_authors_format(weight, names)
            if is_grouped:
                name = re.sub(r"(layer_\d+/\w+)/dense/", r"\1/g_dense/", weight.name)
                weight = dataclasses.replace(weight, name=name)
            yield weight
