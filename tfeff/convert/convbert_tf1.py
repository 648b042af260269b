"""ConvBERT in its authors' format: TensorFlow 1 variables, no configuration."""

from collections.abc import Iterator, Mapping

from tfeff.convert import bert, convbert
from tfeff.convert.config import Config
from tfeff.convert.weights import Weight, part
from tfeff.objectives.masked_lm import MaskedLM
from tfeff.objectives.objective import Objective

_LEFT_OUT = {
    r".*/adam_[mv]$": "training state",
    r"global_step$": "training state",
    r"generator/": "generator",
    r"generator_predictions/": "masked language model head",
    r"discriminator_predictions/": "replaced token head",
    r"task_specific/": "task head",
}
_TABLE = "electra/embeddings/{}_embeddings"
_LAYER = "electra/encoder/layer_{}"
_OWN = _LAYER.format(0) + "/attention/self"


def config_of(tensors: dict, config: Config) -> Config:
    """The configuration that the shapes of the variables imply.

    Args:
        tensors: the variables of the checkpoint.
        config: the values in a file beside it, which take precedence.

    Raises:
        ValueError: if a variable that determines a size is missing.
    """

    def shape(name):
        if name not in tensors:
            raise ValueError(
                f"{config.path!r} must hold the variables of a ConvBERT. "
                f"Missing: {name!r}"
            )
        return tensors[name].shape

    vocabulary, embedding_size = shape(_TABLE.format("word"))
    hidden_size, attention_size = shape(f"{_OWN}/query/kernel")
    kernel_size = shape(f"{_OWN}/conv_attn_key/depthwise_kernel")[0]
    num_groups = 1
    own_heads = shape(f"{_OWN}/conv_attn_kernel/bias")[0] // kernel_size
    num_heads = hidden_size * own_heads // attention_size
    intermediate = _LAYER.format(0) + "/intermediate"
    if f"{intermediate}/g_dense/kernel" in tensors:
        num_groups = shape(f"{intermediate}/g_dense/kernel")[0]
        intermediate_size = shape(f"{intermediate}/g_dense/bias")[0]
    else:
        intermediate_size = shape(f"{intermediate}/dense/bias")[0]
    num_layers = 0
    while _LAYER.format(num_layers) + "/output/LayerNorm/gamma" in tensors:
        num_layers += 1
    implied = dict(
        vocab_size=vocabulary,
        embedding_size=embedding_size,
        hidden_size=hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=num_heads,
        head_ratio=num_heads // own_heads,
        conv_kernel_size=kernel_size,
        intermediate_size=intermediate_size,
        num_groups=num_groups,
        max_position_embeddings=shape(_TABLE.format("position"))[0],
        type_vocab_size=shape(_TABLE.format("token_type"))[0],
    )
    said = {name: value for name, value in config.values.items() if value is not None}
    return Config(implied | said, config.path)


def rename(tensors: dict) -> dict:
    """Renames the head of a generator, if there is one, to one of its variables.

    Without a generator the head is of the encoder.
    """
    if not any(name.startswith("generator/") for name in tensors):
        return tensors
    return {
        name.replace("generator_predictions/", "generator/predictions/", 1): tensor
        for name, tensor in tensors.items()
    }


arguments = convbert.arguments


def pretraining_model(encoder) -> Objective:
    """The objective whose heads pretrained models have."""
    return MaskedLM(encoder, **bert.head_settings(encoder))


def ignored(encoder) -> dict[str, str]:
    """Kinds of tensors that this encoder does not use, by patterns of their names."""
    return _LEFT_OUT


def weights(encoder) -> Iterator[Weight]:
    """The encoder's weights and their tensors in the checkpoint."""
    embedding = encoder.embedding
    for name, table in (
        ("word", embedding.token_embedding),
        ("position", embedding.position_embedding),
        ("token_type", embedding.segment_embedding),
    ):
        yield Weight(table.embeddings, _TABLE.format(name))
    yield from _norm(embedding.norm, "electra/embeddings")
    if encoder.embedding_dim != encoder.hidden_dim:
        yield from _dense(embedding.projection, "electra/embeddings_project")
    for index, block in enumerate(encoder.blocks):
        layer = _LAYER.format(index)
        own = f"{layer}/attention/self"
        attention, convolution = block.attention, block.attention.convolution
        yield from _dense(attention.query_dense, f"{own}/query")
        yield from _dense(attention.key_dense, f"{own}/key")
        yield from _dense(attention.value_dense, f"{own}/value")
        yield from _dense(convolution.value_dense, f"{own}/conv_attn_point")
        yield from _dense(convolution.kernel_dense, f"{own}/conv_attn_kernel")
        span_key, key = convolution.span_key, f"{own}/conv_attn_key"
        yield Weight(span_key.depthwise_kernel, f"{key}/depthwise_kernel")
        yield Weight(span_key.pointwise_kernel, f"{key}/pointwise_kernel")
        yield Weight(span_key.bias, f"{key}/bias")
        yield from _dense(attention.output_dense, f"{layer}/attention/output/dense")
        yield from _norm(block.attention_norm, f"{layer}/attention/output")
        feedforward = block.feedforward
        for dense, place in (
            (feedforward.intermediate_dense, "intermediate"),
            (feedforward.output_dense, "output"),
        ):
            if feedforward.num_groups == 1:
                yield from _dense(dense, f"{layer}/{place}/dense")
            else:
                yield Weight(dense.dense.kernel, f"{layer}/{place}/g_dense/kernel")
                yield Weight(dense.bias, f"{layer}/{place}/g_dense/bias")
        yield from _norm(block.feedforward_norm, f"{layer}/output")


def masked_lm_head(weights: Mapping) -> Iterator[Weight]:
    """The weights of the masked language model head and their tensors."""
    yield from _dense(part(weights, "dense"), "generator_predictions/dense")
    yield from _norm(part(weights, "norm"), "generator_predictions")
    yield Weight(weights["bias"], "generator_predictions/output_bias")


HEADS = {"masked_lm": masked_lm_head}
TASKS = {}


def _dense(layer, name):
    yield Weight(layer.kernel, f"{name}/kernel")
    yield Weight(layer.bias, f"{name}/bias")


def _norm(layer, name):
    yield Weight(layer.gamma, f"{name}/LayerNorm/gamma")
    yield Weight(layer.beta, f"{name}/LayerNorm/beta")
