"""BERT in Hugging Face's format: absolute or relative positions."""

from collections.abc import Iterator, Mapping

from tfeff.convert.config import ACTIVATIONS, Config
from tfeff.convert.weights import Weight, dense, dense_head, grouped, norm, part
from tfeff.objectives.objective import Objective
from tfeff.objectives.sentence_pair import SentencePairPrediction

PREFIX = "bert."
LEFT_OUT = {
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


def rates(config: Config) -> dict:
    """The dropout rates; that of attention alone only where it is another one."""
    hidden = config.rate("hidden_dropout_prob", 0.1)
    attention = config.rate("attention_probs_dropout_prob", 0.1)
    return dict(
        dropout=hidden, attention_dropout=None if attention == hidden else attention
    )


def ignored(encoder) -> dict[str, str]:
    """Kinds of tensors that this encoder does not use, by patterns of their names."""
    if encoder.position == "absolute":
        return LEFT_OUT
    # Hugging Face stores the table though nothing reads it.
    return LEFT_OUT | {r"embeddings\.position_embeddings\.": "unused position table"}


def weights(encoder) -> Iterator[Weight]:
    """The encoder's weights and their tensors in the checkpoint."""
    yield from embedding(encoder)
    for index, block in enumerate(encoder.blocks):
        layer = f"encoder.layer.{index}"
        yield from projections(block.attention, f"{layer}.attention.self")
        if encoder.position == "none":
            # Hugging Face's index is query minus key, tfeff's is key minus query.
            yield Weight(
                block.attention.relative_embedding.embeddings,
                f"{layer}.attention.self.distance_embedding.weight",
                reverse=True,
            )
        yield from rest_of_block(block, layer)


def pretraining_model(encoder) -> Objective:
    """The objective whose heads pretrained models have."""
    return SentencePairPrediction(encoder, kind="next", **head_settings(encoder))


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


HEADS = {
    "masked_lm": masked_lm_head,
    "pooler": dense_head("pooler.dense"),
    "next_sentence": dense_head("cls.seq_relationship"),
}
_POOLED = {"pooler": dense_head("pooler.dense"), "logits": dense_head("classifier")}
TASKS = {
    "SequenceClassification": _POOLED,
    "MultipleChoice": _POOLED,
    "TokenClassification": {"token_logits": dense_head("classifier")},
    "QuestionAnswering": {"span_logits": dense_head("qa_outputs")},
}


def embedding(encoder) -> Iterator[Weight]:
    """The embedding tables and their layer norm."""
    tables = {
        "word": encoder.embedding.token_embedding,
        "token_type": encoder.embedding.segment_embedding,
    }
    if encoder.position == "absolute":
        tables["position"] = encoder.embedding.position_embedding
    for name, table in tables.items():
        yield Weight(table.embeddings, f"embeddings.{name}_embeddings.weight")
    yield from norm(encoder.embedding.norm, "embeddings.LayerNorm")


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
