"""BERT in Hugging Face's format: absolute or relative positions."""

from collections.abc import Iterator, Mapping

from tfeff.convert.config import ACTIVATIONS, Config, activation_name
from tfeff.convert.format import Format, HeadWeights, Models, activation_of
from tfeff.convert.weights import (
    Weight,
    dense,
    dense_head,
    grouped,
    masked_lm_head,
    norm,
)

# The table of absolute positions, which Hugging Face stores beside relative ones.
UNUSED_TABLE = {r"embeddings\.position_embeddings\.weight$": "unused position table"}
_METHODS = {
    "absolute": None,
    "relative_key": "shaw",
    "relative_key_query": "huang4",
}
_POOLED = {"pooler": dense_head("pooler.dense"), "logits": dense_head("classifier")}


class Bert(Format):
    """BERT.

    Attributes:
        unused_rows: the rows of the position table that precede the encoder's.
    """

    name, prefix = "Bert", "bert."
    left_out = UNUSED_TABLE | {
        r"pooler\.": "pooler",
        r"cls\.predictions\.": "masked language model head",
        r"cls\.seq_relationship\.": "next sentence head",
        r"(classifier|qa_outputs)\.": "task head",
        r"embeddings\.(position|token_type)_ids$": "buffer",
    }
    pairs = "next"
    heads = {
        "masked_lm": masked_lm_head(
            "cls.predictions.transform.dense",
            "cls.predictions.transform.LayerNorm",
            "cls.predictions.bias",
        ),
        "pooler": dense_head("pooler.dense"),
        "next_sentence": dense_head("cls.seq_relationship"),
    }
    models: Models = (
        ("ForPreTraining", {"masked_lm", "pooler", "next_sentence"}),
        ("ForMaskedLM", {"masked_lm"}),
        ("ForNextSentencePrediction", {"pooler", "next_sentence"}),
        ("Model", {"pooler"}),
        ("Model", set()),
    )
    tasks: dict[str, HeadWeights] = {
        "SequenceClassification": _POOLED,
        "MultipleChoice": _POOLED,
        "TokenClassification": {"token_logits": dense_head("classifier")},
        "QuestionAnswering": {"span_logits": dense_head("qa_outputs")},
    }
    unused_rows = 0

    def arguments(self, config: Config) -> dict:
        method = _METHODS[
            config.only("position_embedding_type", *_METHODS, default="absolute")
        ]
        table = config.integer("max_position_embeddings", 512)
        return sizes(config) | dict(
            max_sequence_length=table,
            position="absolute" if method is None else "none",
            attention="self"
            if method is None
            else dict(
                name="relative",
                method=method,
                max_distance=max(table - 1, 1),
                shared_heads=True,
            ),
        )

    def configuration(self, encoder) -> dict:
        method = getattr(encoder.blocks[0].attention, "method", None)
        kinds = {ours: kind for kind, ours in _METHODS.items()}
        return configured_sizes(encoder) | dict(
            max_position_embeddings=encoder.max_sequence_length,
            position_embedding_type=kinds.get(method, "absolute"),
        )

    def weights(self, encoder) -> Iterator[Weight]:
        yield from embedding(encoder, self.unused_rows)
        for index, block in enumerate(encoder.blocks):
            layer = f"encoder.layer.{index}"
            yield from attention_projections(block.attention, f"{layer}.attention.self")
            if encoder.position == "none":
                # Hugging Face's index is query minus key, tfeff's is key minus query.
                table = block.attention.relative_embedding.embeddings
                yield Weight(
                    table,
                    f"{layer}.attention.self.distance_embedding.weight",
                    rows=range(table.shape[0])[::-1],
                )
            yield from rest_of_block(block, layer)

    def unused(self, encoder) -> dict[str, tuple[int, ...]]:
        if encoder.position == "absolute":
            return {}
        shape = (self.unused_rows + encoder.max_sequence_length, encoder.embedding_dim)
        return {"embeddings.position_embeddings.weight": shape}

    def task_arguments(self, config: Config, kind: str) -> dict:
        rate = config.get("classifier_dropout", None)
        if rate is None:
            return dict(dropout=config.rate("hidden_dropout_prob", 0.1))
        return dict(dropout=config.rate("classifier_dropout"))

    def task_configuration(self, arguments: Mapping, kind: str) -> dict:
        if kind == "QuestionAnswering":
            return {}
        return dict(classifier_dropout=arguments["dropout"])


def sizes(config: Config, activations: dict = ACTIVATIONS) -> dict:
    """The arguments that BERT, ALBERT and ConvBERT configure alike.

    Args:
        config: the configuration.
        activations: tfeff's activations by their names in the checkpoint's format.
    """
    config.only("is_decoder", False, default=False)
    config.only("add_cross_attention", False, default=False)
    config.only("pruned_heads", {}, default={})
    return dict(
        vocabulary_size=config.integer("vocab_size"),
        num_layers=config.integer("num_hidden_layers"),
        num_heads=config.integer("num_attention_heads"),
        hidden_dim=config.integer("hidden_size"),
        intermediate_dim=config.integer("intermediate_size"),
        num_segments=config.integer("type_vocab_size", 2),
        feedforward=dict(activation=config.activation("hidden_act", activations)),
        **rates(config),
        layer_norm_epsilon=config.positive("layer_norm_eps", 1e-12),
    )


def rates(
    config: Config,
    hidden: str = "hidden_dropout_prob",
    attention: str = "attention_probs_dropout_prob",
) -> dict:
    """The dropout rates; that of attention alone only where it is another one.

    Args:
        config: the configuration.
        hidden, attention: the names of the rates.
    """
    rate, of_attention = config.rate(hidden, 0.1), config.rate(attention, 0.1)
    return dict(
        dropout=rate, attention_dropout=None if of_attention == rate else of_attention
    )


def configured_sizes(encoder) -> dict:
    """The inverse of `sizes`."""
    block = encoder.blocks[0]
    return dict(
        vocab_size=encoder.vocabulary_size,
        num_hidden_layers=encoder.num_layers,
        num_attention_heads=encoder.num_heads,
        hidden_size=encoder.hidden_dim,
        intermediate_size=encoder.intermediate_dim,
        type_vocab_size=max(encoder.num_segments, 1),
        hidden_act=activation_name(activation_of(encoder)),
        hidden_dropout_prob=encoder.dropout,
        attention_probs_dropout_prob=block.attention.dropout,
        layer_norm_eps=encoder.layer_norm_epsilon,
    )


def embedding(encoder, unused_rows: int = 0) -> Iterator[Weight]:
    """The embedding tables and their layer norm; `unused_rows` as of `Bert`."""
    layer = encoder.embedding
    name = "embeddings.{}_embeddings.weight".format
    yield Weight(layer.token_embedding.embeddings, name("word"))
    if encoder.num_segments:
        yield Weight(layer.segment_embedding.embeddings, name("token_type"))
    if encoder.position == "absolute":
        yield Weight(
            layer.position_embedding.embeddings,
            name("position"),
            unused_rows=unused_rows,
        )
    yield from norm(layer.norm, "embeddings.LayerNorm")


def attention_projections(attention, name: str) -> Iterator[Weight]:
    """The query, key and value projections of an attention."""
    yield from dense(attention.query_dense, f"{name}.query")
    yield from dense(attention.key_dense, f"{name}.key")
    yield from dense(attention.value_dense, f"{name}.value")


def rest_of_block(block, name: str) -> Iterator[Weight]:
    """The attention's output projection, the feed-forward network and both norms."""
    yield from dense(block.attention.output_dense, f"{name}.attention.output.dense")
    yield from norm(block.attention_norm, f"{name}.attention.output.LayerNorm")
    yield from feedforward(block.feedforward, name)
    yield from norm(block.feedforward_norm, f"{name}.output.LayerNorm")


def feedforward(layer, name: str) -> Iterator[Weight]:
    """The feed-forward network."""
    matrix = dense if layer.num_groups == 1 else grouped
    yield from matrix(layer.intermediate_dense, f"{name}.intermediate.dense")
    yield from matrix(layer.output_dense, f"{name}.output.dense")
