"""ConvBERT in Hugging Face's format."""

from collections.abc import Iterator, Mapping

from tfeff.convert import bert
from tfeff.convert.config import Config
from tfeff.convert.weights import Models, NotKept, Weight, dense, dense_head, norm, part
from tfeff.objectives.heads import Head
from tfeff.objectives.masked_lm import MaskedLM

CLASS, PREFIX = "ConvBert", "convbert."
_RATIO = 2  # Of all heads to those of self-attention.
LEFT_OUT = {
    r"(generator_predictions|generator_lm_head)\.": "masked language model head",
    r"discriminator_predictions\.": "replaced token head",
    r"(classifier|qa_outputs|sequence_summary)\.": "task head",
    r"embeddings\.(position|token_type)_ids$": "buffer",
}


def arguments(config: Config) -> dict:
    """The arguments of `Encoder` for the configuration."""
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
            mask_conv=False,  # As in published models, whose convolutions read padding.
        ),
    )


def _num_heads(config, sizes):
    """The number of heads before the bottleneck, of which self-attention has half.

    In Hugging Face's, the heads of self-attention are the part 1 / `head_ratio` of all,
    at least one, and half the width is theirs, whatever the ratio is.
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


def configuration(encoder) -> dict:
    """The inverse of `arguments`, as `bert.configuration`."""
    block = encoder.blocks[0]
    return bert.configured_sizes(encoder) | dict(
        embedding_size=encoder.embedding_dim,
        max_position_embeddings=encoder.max_sequence_length,
        head_ratio=_RATIO,
        conv_kernel_size=block.attention.kernel_size,
        num_groups=block.feedforward.num_groups,
    )


def unused(encoder) -> dict[str, tuple[int, ...]]:
    """Shapes of the format's tensors that this encoder does not use, by their names."""
    return {}


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


def pretraining_heads(encoder) -> dict[str, Head]:
    """The heads that pretrained models may have."""
    # In Hugging Face's this activation is fixed.
    settings = bert.head_settings(encoder) | dict(activation="gelu")
    return MaskedLM(encoder, **settings).heads()


def masked_lm_head(weights: Mapping) -> Iterator[Weight]:
    """The weights of the masked language model head and their tensors."""
    yield from dense(part(weights, "dense"), "generator_predictions.dense")
    yield from norm(part(weights, "norm"), "generator_predictions.LayerNorm")
    yield Weight(weights["bias"], "generator_lm_head.bias")


def task_arguments(config: Config, kind: str) -> dict:
    """The arguments of the task for a kind of fine-tuned model."""
    if kind == "MultipleChoice":
        return summary_arguments(config)
    arguments = bert.task_arguments(config, kind)
    if kind == "SequenceClassification":
        arguments["pooler_activation"] = config.activation("hidden_act")
    return arguments


def summary_arguments(config: Config) -> dict:
    """The arguments of a task with Hugging Face's `SequenceSummary` as the pooler."""
    summary = config.get("summary_type", "last")
    if summary != "first" or config.get("summary_use_proj", None) is not True:
        raise NotKept(
            f"its pooler has summary_type={summary!r} and "
            f"summary_use_proj={config.get('summary_use_proj', None)!r}. tfeff's has "
            "summary_type='first' and summary_use_proj=True"
        )
    return dict(
        dropout=config.rate("summary_last_dropout", 0.1),
        pooler_activation=config.only("summary_activation", *_SUMMARIES),
    )


def task_configuration(arguments: Mapping, kind: str) -> dict:
    """The inverse of `task_arguments`."""
    if kind != "MultipleChoice":
        return bert.task_configuration(arguments, kind)
    return dict(
        summary_type="first",
        summary_use_proj=True,
        summary_activation=arguments["pooler_activation"],
        summary_last_dropout=arguments["dropout"],
    )


_SUMMARIES = ("gelu", "tanh", "relu")
HEADS = {"masked_lm": masked_lm_head}
MODELS: Models = (
    ("ForMaskedLM", {"masked_lm"}),
    ("Model", set()),
)
TASKS = bert.TASKS | {
    "SequenceClassification": {
        "pooler": dense_head("classifier.dense"),
        "logits": dense_head("classifier.out_proj"),
    },
    "MultipleChoice": {
        "pooler": dense_head("sequence_summary.summary"),
        "logits": dense_head("classifier"),
    },
}


def _separable(layer, name):
    yield Weight(layer.depthwise_kernel, f"{name}.depthwise.weight", axes=(2, 0, 1))
    yield Weight(layer.pointwise_kernel, f"{name}.pointwise.weight", axes=(2, 1, 0))
    yield Weight(layer.bias, f"{name}.bias", shape=(*layer.bias.shape, 1))
