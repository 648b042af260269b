"""ELECTRA in its authors' format: TensorFlow 1 variables, no configuration.

A checkpoint of pretraining holds a discriminator and a generator with the same tables;
`scope` is the name of either network.
"""

from collections.abc import Callable, Iterator, Mapping

from tfeff.convert import bert, electra
from tfeff.convert.config import Config
from tfeff.convert.weights import Weight, part
from tfeff.objectives.heads import Head

DISCRIMINATOR = "electra"
GENERATOR = "generator"
LEFT_OUT = {
    r".*/adam_[mv]$": "training state",
    r"global_step$": "training state",
    r"generator/": "generator",
    r"generator_predictions/": "masked language model head",
    r"discriminator_predictions/": "replaced token head",
    r"task_specific/": "task head",
}
_TABLE = f"{DISCRIMINATOR}/embeddings/{{}}_embeddings"
_HEAD_SIZE = 64  # Of all models that the authors published.


def config_of(tensors: dict, config: Config) -> Config:
    """The configuration that the shapes of the variables imply.

    Args:
        tensors: the variables of the checkpoint.
        config: the values in a file beside it, which take precedence.

    Raises:
        ValueError: if a variable that determines a size is missing, or the number of
            heads is not known.
    """
    implied = sizes_of(tensors, config)
    hidden_size = implied["hidden_size"]
    if hidden_size % _HEAD_SIZE == 0:
        implied["num_attention_heads"] = hidden_size // _HEAD_SIZE
    elif config.get("num_attention_heads", None) is None:
        raise ValueError(
            f"{config.path!r} must have 'num_attention_heads' in a configuration "
            f"beside it: heads of {_HEAD_SIZE}, as in the authors' models, do not fit "
            f"hidden_size={hidden_size}"
        )
    return with_values(config, implied)


def sizes_of(tensors: dict, config: Config, scope: str = DISCRIMINATOR) -> dict:
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
    groups = f"{layer(0)}/intermediate/g_dense"  # Of ConvBERT medium-small.
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


arguments = electra.arguments


def weights(encoder, scope: str = DISCRIMINATOR) -> Iterator[Weight]:
    """The encoder's weights and their tensors in the checkpoint."""
    yield from embedding(encoder, scope)
    layer = layer_name(scope)
    for index, block in enumerate(encoder.blocks):
        yield from projections(block.attention, f"{layer(index)}/attention/self")
        yield from rest_of_block(block, layer(index))


def embedding(encoder, scope: str = DISCRIMINATOR) -> Iterator[Weight]:
    """The embedding tables, their layer norm and the projection."""
    layer = encoder.embedding
    yield Weight(layer.token_embedding.embeddings, _TABLE.format("word"))
    yield Weight(layer.position_embedding.embeddings, _TABLE.format("position"))
    yield Weight(layer.segment_embedding.embeddings, _TABLE.format("token_type"))
    yield from norm(layer.norm, f"{DISCRIMINATOR}/embeddings")
    if encoder.embedding_dim != encoder.hidden_dim:
        yield from dense(layer.projection, f"{scope}/embeddings_project")


def projections(attention, name: str) -> Iterator[Weight]:
    """The query, key and value projections of an attention."""
    yield from dense(attention.query_dense, f"{name}/query")
    yield from dense(attention.key_dense, f"{name}/key")
    yield from dense(attention.value_dense, f"{name}/value")


def rest_of_block(block, name: str) -> Iterator[Weight]:
    """The attention's output projection, the feed-forward network and both norms."""
    yield from dense(block.attention.output_dense, f"{name}/attention/output/dense")
    yield from norm(block.attention_norm, f"{name}/attention/output")
    feedforward = block.feedforward
    for layer, place in (
        (feedforward.intermediate_dense, f"{name}/intermediate"),
        (feedforward.output_dense, f"{name}/output"),
    ):
        if feedforward.num_groups == 1:
            yield from dense(layer, f"{place}/dense")
        else:
            yield Weight(layer.dense.kernel, f"{place}/g_dense/kernel")
            yield Weight(layer.bias, f"{place}/g_dense/bias")
    yield from norm(block.feedforward_norm, f"{name}/output")


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


def pretraining_heads(encoder) -> dict[str, Head]:
    """The heads that pretrained models may have, with the encoder's activation."""
    activation = bert.head_settings(encoder)["activation"]
    return electra.pretraining_heads(encoder, activation)


def masked_lm_head(weights: Mapping) -> Iterator[Weight]:
    """The weights of the masked language model head and their tensors."""
    yield from dense(part(weights, "dense"), "generator_predictions/dense")
    yield from norm(part(weights, "norm"), "generator_predictions")
    yield Weight(weights["bias"], "generator_predictions/output_bias")


def replaced_token_head(weights: Mapping) -> Iterator[Weight]:
    """The weights of the discriminator's head and their tensors."""
    yield from dense(part(weights, "hidden"), "discriminator_predictions/dense")
    yield from dense(part(weights, "output"), "discriminator_predictions/dense_1")


HEADS = {"masked_lm": masked_lm_head, "replaced_token": replaced_token_head}
TASKS: dict[str, dict] = {}


def dense(layer, name: str) -> Iterator[Weight]:
    """A `Dense` layer."""
    yield Weight(layer.kernel, f"{name}/kernel")
    yield Weight(layer.bias, f"{name}/bias")


def norm(layer, name: str) -> Iterator[Weight]:
    """A layer norm."""
    yield Weight(layer.gamma, f"{name}/LayerNorm/gamma")
    yield Weight(layer.beta, f"{name}/LayerNorm/beta")
