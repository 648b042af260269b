"""BERT and ALBERT in the format of TensorFlow's Model Garden."""

import os
import re
from collections.abc import Iterator, Mapping

from tfeff.convert import albert, bert
from tfeff.convert.config import Config
from tfeff.convert.format import Format
from tfeff.convert.weights import Weight, attention_by_heads, part

# Model Garden's "gelu" is the approximation by tanh.
_ACTIVATIONS = {
    "gelu": "gelu_tanh",
    "relu": "relu",
    "swish": "silu",
}
_TABLE = "_embedding_layer/embeddings"
# Prefixes of the encoder's names: as its trainer saves it, within a model, alone.
_AROUND = (
    "encoder/",
    "model/encoder_network/",
    "encoder_network/",
    "model/layer_with_weights-0/",
    "layer_with_weights-0/",
    "model/",
    "",
)
_POSITIONS = r"(_position_embedding_layer|layer_with_weights-1)/embeddings"


def is_albert(config: Config) -> bool:
    """Whether the configuration is ALBERT's."""
    name = os.path.basename(config.path)
    return "num_hidden_groups" in config.values or name.startswith("albert")


def _masked_lm_head(weights: Mapping) -> Iterator[Weight]:
    yield from _dense(part(weights, "dense"), "masked_lm/dense")
    yield from _norm(part(weights, "norm"), "masked_lm/layer_norm")
    yield Weight(weights["bias"], "masked_lm/output_bias.Sbias")


def _pooler(weights: Mapping) -> Iterator[Weight]:
    yield from _dense(part(weights), "_pooler_layer")


class ModelGarden(Format):
    """BERT, and ALBERT: `rename` gives the names of its tensors."""

    left_out = {
        r".*/\.OPTIMIZER_SLOT/": "training state",
        r"(optimizer|global_step|save_counter)": "training state",
        r"_pooler_layer/": "pooler",
        r"masked_lm/": "masked language model head",
        r"(classification_heads|head)/|[^/]*\.\.pooler_dense/": "task head",
        r"untrained/": "untrained pooler",
    }
    pairs = "next"
    heads = {"masked_lm": _masked_lm_head, "pooler": _pooler}

    def arguments(self, config: Config) -> dict:
        sizes = bert.sizes(config, _ACTIVATIONS)
        config.only("norm_first", False, default=False)
        if config.get("embedding_size", None) is not None:
            sizes["embedding_dim"] = config.integer("embedding_size")
        if is_albert(config):
            config.only("num_hidden_groups", 1, default=1)
            return albert.shared(config, sizes)
        return sizes | dict(
            max_sequence_length=config.integer("max_position_embeddings", 512),
            attention="self",
        )

    def weights(self, encoder) -> Iterator[Weight]:
        embedding = encoder.embedding
        for name, table in (
            ("", embedding.token_embedding),
            ("_position", embedding.position_embedding),
            ("_type", embedding.segment_embedding),
        ):
            yield Weight(table.embeddings, f"{name}_embedding_layer/embeddings")
        yield from _norm(embedding.norm, "_embedding_norm_layer")
        if encoder.embedding_dim != encoder.hidden_dim:
            yield from _dense(embedding.projection, "_embedding_projection")
        for index, block in enumerate(dict.fromkeys(encoder.blocks)):
            layer = f"_transformer_layers/{index}"
            place = f"{layer}/_attention_layer/_{{}}_dense"
            names = (f"{place}/kernel", f"{place}/bias")
            yield from attention_by_heads(block.attention, encoder, *names)
            yield from _norm(block.attention_norm, f"{layer}/_attention_layer_norm")
            feedforward = block.feedforward
            yield from _dense(
                feedforward.intermediate_dense, f"{layer}/_intermediate_dense"
            )
            yield from _dense(feedforward.output_dense, f"{layer}/_output_dense")
            yield from _norm(block.feedforward_norm, f"{layer}/_output_layer_norm")


def rename(tensors: dict, config: Config) -> dict:
    """Renames the tensors to the attributes of Model Garden's encoder.

    Checkpoints of its functional encoders name layers by their order. A head that has a
    pooler of its own has trained that one, not the encoder's.
    """
    hidden_dim = config.integer("hidden_size")
    projected = config.get("embedding_size", None) not in (None, hidden_dim)
    num_blocks = 1 if is_albert(config) else config.integer("num_hidden_layers")
    places = [
        "_embedding_layer",
        "_position_embedding_layer",
        "_type_embedding_layer",
        "_embedding_norm_layer",
        *["_embedding_projection"] * projected,
        *(f"_transformer_layers/{index}" for index in range(num_blocks)),
        "_pooler_layer",
    ]

    around = next(
        (x for x in _AROUND if any(re.fullmatch(x + _POSITIONS, y) for y in tensors)),
        "",
    )

    def renamed(name):
        if not name.startswith(around):
            name = name.removeprefix("model/")
            return re.sub(r"^layer_with_weights-\d+/", "head/", name)
        name = name.removeprefix(around)
        if match := re.match(r"layer_with_weights-(\d+)/(.*)", name):
            place = int(match[1])
            if place < len(places):
                name = f"{places[place]}/{match[2]}"
        # An earlier version of the block has another name for this layer.
        return name.replace(
            "/_attention_output_dense/", "/_attention_layer/_output_dense/"
        )

    tensors = {renamed(name): tensor for name, tensor in tensors.items()}
    poolers = {x.partition("..")[0] for x in tensors if "..pooler_dense/" in x}
    if len(poolers) == 1 or "next_sentence" in poolers:
        trained = "next_sentence" if "next_sentence" in poolers else min(poolers)
        for name in ("kernel", "bias"):
            if (pooler := f"_pooler_layer/{name}") in tensors:
                tensors[f"untrained/{name}"] = tensors.pop(pooler)
            if (pooler := f"{trained}..pooler_dense/{name}") in tensors:
                tensors[f"_pooler_layer/{name}"] = tensors.pop(pooler)
    # A masked language model stores the shared table under the head's name.
    if _TABLE not in tensors and "masked_lm/embedding_table" in tensors:
        tensors[_TABLE] = tensors.pop("masked_lm/embedding_table")
    return tensors


def _dense(layer, name):
    yield Weight(layer.kernel, f"{name}/kernel")
    yield Weight(layer.bias, f"{name}/bias")


def _norm(layer, name):
    yield Weight(layer.gamma, f"{name}/gamma")
    yield Weight(layer.beta, f"{name}/beta")
