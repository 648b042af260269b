"""BERT in Hugging Face's format: absolute or relative positions."""

from collections.abc import Iterator, Mapping

from tfeff.convert.config import ACTIVATIONS, Config, activation_name
from tfeff.convert.weights import Models, Weight, dense, dense_head, grouped, norm, part
from tfeff.objectives.heads import Head
from tfeff.objectives.sentence_pair import SentencePairPrediction

CLASS, PREFIX = "Bert", "bert."
# That of absolute positions, which Hugging Face stores with relative ones.
UNUSED_TABLE = {r"embeddings\.position_embeddings\.weight$": "unused position table"}
LEFT_OUT = UNUSED_TABLE | {
    r"pooler\.": "pooler",
    r"cls\.predictions\.": "masked language model head",
    r"cls\.seq_relationship\.": "next sentence head",
    r"(classifier|qa_outputs)\.": "task head",
    r"embeddings\.(position|token_type)_ids$": "buffer",
}
_METHODS = {
    "absolute": None,
    "relative_key": "shaw",
    "relative_key_query": "huang4",
}


def arguments(config: Config) -> dict:
    """The arguments of `Encoder` for the configuration."""
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


def configuration(encoder) -> dict:
    """The configuration that comes closest to an encoder: the inverse of `arguments`.

    What it cannot say, `arguments` gives back with another value.
    """
    method = getattr(encoder.blocks[0].attention, "method", None)
    kinds = {ours: kind for kind, ours in _METHODS.items()}
    return configured_sizes(encoder) | dict(
        max_position_embeddings=encoder.max_sequence_length,
        position_embedding_type=kinds.get(method, "absolute"),
    )


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
        hidden_act=activation_name(block.feedforward.get_config()["activation"]),
        hidden_dropout_prob=encoder.dropout,
        attention_probs_dropout_prob=block.attention.dropout,
        layer_norm_eps=encoder.layer_norm_epsilon,
    )


def unused(encoder, unused_rows: int = 0) -> dict[str, tuple[int, ...]]:
    """Shapes of the format's tensors that this encoder does not use, by their names.

    Args:
        encoder: the encoder.
        unused_rows: as of `weights`.
    """
    if encoder.position == "absolute":
        return {}
    shape = (unused_rows + encoder.max_sequence_length, encoder.embedding_dim)
    return {"embeddings.position_embeddings.weight": shape}


def weights(encoder, unused_rows: int = 0) -> Iterator[Weight]:
    """The encoder's weights and their tensors in the checkpoint.

    Args:
        encoder: the encoder.
        unused_rows: the rows of the position table that precede the encoder's.
    """
    yield from embedding(encoder, unused_rows)
    for index, block in enumerate(encoder.blocks):
        layer = f"encoder.layer.{index}"
        yield from projections(block.attention, f"{layer}.attention.self")
        if encoder.position == "none":
            # Hugging Face's index is query minus key, tfeff's is key minus query.
            table = block.attention.relative_embedding.embeddings
            yield Weight(
                table,
                f"{layer}.attention.self.distance_embedding.weight",
                rows=range(table.shape[0])[::-1],
            )
        yield from rest_of_block(block, layer)


def pretraining_heads(encoder) -> dict[str, Head]:
    """The heads that pretrained models may have."""
    settings = head_settings(encoder)
    return SentencePairPrediction(encoder, kind="next", **settings).heads()


def head_settings(encoder) -> dict:
    """The settings of a masked language model head that is made like its encoder."""
    return dict(
        activation=encoder.blocks[0].feedforward.get_config()["activation"],
        layer_norm_epsilon=encoder.layer_norm_epsilon,
    )


def masked_lm_head(weights: Mapping) -> Iterator[Weight]:
    """The weights of the masked language model head and their tensors."""
    yield from dense(part(weights, "dense"), "cls.predictions.transform.dense")
    yield from norm(part(weights, "norm"), "cls.predictions.transform.LayerNorm")
    yield Weight(weights["bias"], "cls.predictions.bias")


def task_arguments(config: Config, kind: str) -> dict:
    """The arguments of the task for a kind of fine-tuned model."""
    rate = config.get("classifier_dropout", None)
    if rate is None:
        return dict(dropout=config.rate("hidden_dropout_prob", 0.1))
    return dict(dropout=config.rate("classifier_dropout"))


def task_configuration(arguments: Mapping, kind: str) -> dict:
    """The inverse of `task_arguments`."""
    if kind == "QuestionAnswering":
        return {}
    return dict(classifier_dropout=arguments["dropout"])


HEADS = {
    "masked_lm": masked_lm_head,
    "pooler": dense_head("pooler.dense"),
    "next_sentence": dense_head("cls.seq_relationship"),
}
MODELS: Models = (
    ("ForPreTraining", {"masked_lm", "pooler", "next_sentence"}),
    ("ForMaskedLM", {"masked_lm"}),
    ("ForNextSentencePrediction", {"pooler", "next_sentence"}),
    ("Model", {"pooler"}),
    ("Model", set()),
)
_POOLED = {"pooler": dense_head("pooler.dense"), "logits": dense_head("classifier")}
TASKS = {
    "SequenceClassification": _POOLED,
    "MultipleChoice": _POOLED,
    "TokenClassification": {"token_logits": dense_head("classifier")},
    "QuestionAnswering": {"span_logits": dense_head("qa_outputs")},
}


def embedding(encoder, unused_rows: int = 0) -> Iterator[Weight]:
    """The embedding tables and their layer norm; arguments as of `weights`."""
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


def projections(attention, name: str) -> Iterator[Weight]:
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
