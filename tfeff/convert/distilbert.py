"""DistilBERT in Hugging Face's format."""

from collections.abc import Iterator, Mapping

from tfeff.convert import bert
from tfeff.convert.config import Config, activation_name
from tfeff.convert.weights import Models, Weight, dense, dense_head, norm, part
from tfeff.objectives.heads import Head
from tfeff.objectives.masked_lm import MaskedLM

CLASS, PREFIX = "DistilBert", "distilbert."
LEFT_OUT = {
    r"vocab_(transform|layer_norm|projector)\.": "masked language model head",
    r"(pre_classifier|classifier|qa_outputs)\.": "task head",
    r"embeddings\.position_ids$": "buffer",
}


def arguments(config: Config) -> dict:
    """The arguments of `Encoder` for the configuration.

    With `sinusoidal_pos_embds` too, the positions are a table of the checkpoint.
    """
    config.only("pruned_heads", {}, default={})
    return dict(
        vocabulary_size=config.integer("vocab_size"),
        num_layers=config.integer("n_layers"),
        num_heads=config.integer("n_heads"),
        hidden_dim=config.integer("dim"),
        intermediate_dim=config.integer("hidden_dim"),
        max_sequence_length=config.integer("max_position_embeddings", 512),
        num_segments=0,
        attention="self",
        feedforward=dict(activation=config.activation("activation")),
        **bert.rates(config, "dropout", "attention_dropout"),
        layer_norm_epsilon=1e-12,
    )


def configuration(encoder) -> dict:
    """The inverse of `arguments`, as `bert.configuration`."""
    block = encoder.blocks[0]
    return dict(
        vocab_size=encoder.vocabulary_size,
        n_layers=encoder.num_layers,
        n_heads=encoder.num_heads,
        dim=encoder.hidden_dim,
        hidden_dim=encoder.intermediate_dim,
        max_position_embeddings=encoder.max_sequence_length,
        activation=activation_name(block.feedforward.get_config()["activation"]),
        dropout=encoder.dropout,
        attention_dropout=block.attention.dropout,
    )


def unused(encoder) -> dict[str, tuple[int, ...]]:
    """Shapes of the format's tensors that this encoder does not use, by their names."""
    return {}


def weights(encoder) -> Iterator[Weight]:
    """The encoder's weights and their tensors in the checkpoint."""
    yield from bert.embedding(encoder)
    for index, block in enumerate(encoder.blocks):
        layer = f"transformer.layer.{index}"
        attention, feedforward = block.attention, block.feedforward
        yield from dense(attention.query_dense, f"{layer}.attention.q_lin")
        yield from dense(attention.key_dense, f"{layer}.attention.k_lin")
        yield from dense(attention.value_dense, f"{layer}.attention.v_lin")
        yield from dense(attention.output_dense, f"{layer}.attention.out_lin")
        yield from norm(block.attention_norm, f"{layer}.sa_layer_norm")
        yield from dense(feedforward.intermediate_dense, f"{layer}.ffn.lin1")
        yield from dense(feedforward.output_dense, f"{layer}.ffn.lin2")
        yield from norm(block.feedforward_norm, f"{layer}.output_layer_norm")


def pretraining_heads(encoder) -> dict[str, Head]:
    """The heads that pretrained models may have."""
    return MaskedLM(encoder, **bert.head_settings(encoder)).heads()


def masked_lm_head(weights: Mapping) -> Iterator[Weight]:
    """The weights of the masked language model head and their tensors."""
    yield from dense(part(weights, "dense"), "vocab_transform")
    yield from norm(part(weights, "norm"), "vocab_layer_norm")
    yield Weight(weights["bias"], "vocab_projector.bias")


def task_arguments(config: Config, kind: str) -> dict:
    """The arguments of the task for a kind of fine-tuned model."""
    if kind == "TokenClassification":
        return dict(dropout=config.rate("dropout", 0.1))
    return dict(
        dropout=config.rate("seq_classif_dropout", 0.2), pooler_activation="relu"
    )


def task_configuration(arguments: Mapping, kind: str) -> dict:
    """The inverse of `task_arguments`."""
    if kind not in ("SequenceClassification", "MultipleChoice"):
        return {}
    return dict(seq_classif_dropout=arguments["dropout"])


MODELS: Models = (
    ("ForMaskedLM", {"masked_lm"}),
    ("Model", set()),
)
_POOLED = {"pooler": dense_head("pre_classifier"), "logits": dense_head("classifier")}
HEADS = {"masked_lm": masked_lm_head}
TASKS = bert.TASKS | {"SequenceClassification": _POOLED, "MultipleChoice": _POOLED}
