"""ConvBERT in Hugging Face's format."""

from collections.abc import Iterator

from tfeff.convert import bert
from tfeff.convert.config import Config
from tfeff.convert.electra import Electra, summary_arguments
from tfeff.convert.weights import Weight, dense
from tfeff.objectives.heads import Head
from tfeff.objectives.masked_lm import MaskedLM

_RATIO = 2  # All heads, divided by those of self-attention.


class ConvBert(Electra):
    """ConvBERT: an ELECTRA with convolutions, published without a discriminator."""

    name, prefix = "ConvBert", "convbert."
    heads = {"masked_lm": Electra.heads["masked_lm"]}
    models = (
        ("ForMaskedLM", {"masked_lm"}),
        ("Model", set()),
    )

    def arguments(self, config: Config) -> dict:
        sizes = bert.sizes(config)
        sizes["num_heads"] = _num_heads(config, sizes)
        sizes["feedforward"]["num_groups"] = config.integer("num_groups", 1)
        return sizes | dict(
            embedding_dim=config.integer("embedding_size", 768),
            max_sequence_length=config.integer("max_position_embeddings", 512),
            attention=dict(
                name="mixed",
                head_ratio=_RATIO,
                kernel_size=config.integer("conv_kernel_size", 9),
                mask_conv=False,  # Published models' convolutions read padding.
            ),
        )

    def configuration(self, encoder) -> dict:
        block = encoder.blocks[0]
        return bert.configured_sizes(encoder) | dict(
            embedding_size=encoder.embedding_dim,
            max_position_embeddings=encoder.max_sequence_length,
            head_ratio=_RATIO,
            conv_kernel_size=getattr(block.attention, "kernel_size", 9),
            num_groups=block.feedforward.num_groups,
        )

    def weights(self, encoder) -> Iterator[Weight]:
        yield from super().weights(encoder)
        for index, block in enumerate(encoder.blocks):
            own = f"encoder.layer.{index}.attention.self"
            convolution = block.attention.convolution
            yield from dense(convolution.value_dense, f"{own}.conv_out_layer")
            yield from dense(convolution.kernel_dense, f"{own}.conv_kernel_layer")
            yield from _separable(convolution.span_key, f"{own}.key_conv_attn_layer")

    def pretraining_heads(self, encoder) -> dict[str, Head]:
        return MaskedLM(encoder, **self.head_settings(encoder)).heads()

    def task_arguments(self, config: Config, kind: str) -> dict:
        if kind == "MultipleChoice":
            return summary_arguments(config)
        arguments = super().task_arguments(config, kind)
        if kind == "SequenceClassification":
            arguments["pooler_activation"] = config.activation("hidden_act")
        return arguments


def _num_heads(config, sizes):
    """The number of heads before the bottleneck, of which self-attention has half.

    In Hugging Face's model, self-attention has `1 / head_ratio` of all heads, at least
    one, and half the width, whatever the ratio is.
    """
    ratio = config.integer("head_ratio", _RATIO)
    heads = _RATIO * max(sizes["num_heads"] // ratio, 1)
    if sizes["hidden_dim"] % heads:
        raise ValueError(
            f"In {config.path!r}: `num_attention_heads` and `head_ratio` must leave a "
            f"number of heads that divides `hidden_size`, {heads} here. Received: "
            f"num_attention_heads={sizes['num_heads']}, head_ratio={ratio}, "
            f"hidden_size={sizes['hidden_dim']}"
        )
    return heads


def _separable(layer, name):
    yield Weight(layer.depthwise_kernel, f"{name}.depthwise.weight", axes=(2, 0, 1))
    yield Weight(layer.pointwise_kernel, f"{name}.pointwise.weight", axes=(2, 1, 0))
    yield Weight(layer.bias, f"{name}.bias", shape=(*layer.bias.shape, 1))
