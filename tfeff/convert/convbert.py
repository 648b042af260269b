"""ConvBERT in Hugging Face's format."""

from collections.abc import Iterator

from tfeff.convert import bert
from tfeff.convert.config import Config
from tfeff.convert.weights import Weight, dense

PREFIX = "convbert."
LEFT_OUT = {
    r"(generator_predictions|generator_lm_head)\.": "masked language model head",
    r"discriminator_predictions\.": "replaced token head",
    r"(classifier|qa_outputs|sequence_summary)\.": "task head",
    r"embeddings\.(position|token_type)_ids$": "buffer",
}


def arguments(config: Config) -> dict:
    """The arguments of `Encoder` for the configuration."""
    sizes = bert.sizes(config)
    config.only("head_ratio", 2, default=2)
    if sizes["num_heads"] % 2:
        raise ValueError(
            f"{config.path!r} asks for num_attention_heads={sizes['num_heads']} with "
            "head_ratio=2, which tfeff does not support. It supports even numbers of "
            "heads"
        )
    sizes["feedforward"]["num_groups"] = config.integer("num_groups", 1)
    return sizes | dict(
        embedding_dim=config.integer("embedding_size", 768),
        max_sequence_length=config.integer("max_position_embeddings", 512),
        attention=dict(
            name="mixed",
            head_ratio=2,
            kernel_size=config.integer("conv_kernel_size", 9),
            mask_conv=False,  # As in published models, whose convolutions read padding.
        ),
    )


def ignored(encoder) -> dict[str, str]:
    """Kinds of tensors that this encoder does not use, by patterns of their names."""
    return LEFT_OUT


def weights(encoder) -> Iterator[Weight]:
    """The encoder's weights and their tensors in the checkpoint."""
    yield from bert.embedding(encoder)
    if encoder.embedding_dim != encoder.hidden_dim:
        yield from dense(encoder.embedding.projection, "embeddings_project")
    for index, block in enumerate(encoder.blocks):
        layer = f"encoder.layer.{index}"
        attention, convolution = block.attention, block.attention.convolution
        own = f"{layer}.attention.self"
        yield from bert.projections(attention, own)
        yield from dense(convolution.value_dense, f"{own}.conv_out_layer")
        yield from dense(convolution.kernel_dense, f"{own}.conv_kernel_layer")
        yield from _separable(convolution.span_key, f"{own}.key_conv_attn_layer")
        yield from bert.rest_of_block(block, layer)


def _separable(layer, name):
    yield Weight(layer.depthwise_kernel, f"{name}.depthwise.weight", axes=(2, 0, 1))
    yield Weight(layer.pointwise_kernel, f"{name}.pointwise.weight", axes=(2, 1, 0))
    yield Weight(layer.bias, f"{name}.bias", shape=(*layer.bias.shape, 1))
