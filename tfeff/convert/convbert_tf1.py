"""ConvBERT in its authors' format, which extends that of ELECTRA."""

from collections.abc import Iterator

from tfeff.convert import convbert, electra_tf1
from tfeff.convert.config import Config
from tfeff.convert.electra_tf1 import DISCRIMINATOR, dense, layer_name
from tfeff.convert.weights import Weight


def config_of(tensors: dict, config: Config) -> Config:
    """As `electra_tf1.config_of`."""
    sizes = electra_tf1.sizes_of(tensors, config)
    shape = electra_tf1.shapes_of(tensors, config)
    own = f"{layer_name(DISCRIMINATOR)(0)}/attention/self"
    hidden_size, attention_size = shape(f"{own}/query/kernel")
    kernel_size = shape(f"{own}/conv_attn_key/depthwise_kernel")[0]
    own_heads = shape(f"{own}/conv_attn_kernel/bias")[0] // kernel_size
    num_heads = hidden_size * own_heads // attention_size
    return electra_tf1.with_values(
        config,
        sizes
        | dict(
            num_attention_heads=num_heads,
            head_ratio=num_heads // own_heads,
            conv_kernel_size=kernel_size,
        ),
    )


def arguments(config: Config) -> dict:
    """The arguments of `Encoder` for the configuration."""
    # Other ratios change the width here, unlike in Hugging Face's.
    config.only("head_ratio", 2, default=2)
    return convbert.arguments(config)


LEFT_OUT = electra_tf1.LEFT_OUT
pretraining_heads = electra_tf1.pretraining_heads
HEADS = electra_tf1.HEADS
TASKS = electra_tf1.TASKS


def weights(encoder) -> Iterator[Weight]:
    """The encoder's weights and their tensors in the checkpoint."""
    yield from electra_tf1.embedding(encoder)
    layer = layer_name(DISCRIMINATOR)
    for index, block in enumerate(encoder.blocks):
        own = f"{layer(index)}/attention/self"
        convolution = block.attention.convolution
        yield from electra_tf1.projections(block.attention, own)
        yield from dense(convolution.value_dense, f"{own}/conv_attn_point")
        yield from dense(convolution.kernel_dense, f"{own}/conv_attn_kernel")
        span_key, key = convolution.span_key, f"{own}/conv_attn_key"
        yield Weight(span_key.depthwise_kernel, f"{key}/depthwise_kernel")
        yield Weight(span_key.pointwise_kernel, f"{key}/pointwise_kernel")
        yield Weight(span_key.bias, f"{key}/bias")
        yield from electra_tf1.rest_of_block(block, layer(index))
