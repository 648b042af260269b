"""RoBERTa in Hugging Face's format, with CamemBERT and XLM-RoBERTa."""

from collections.abc import Iterator, Mapping

from tfeff.convert import bert
from tfeff.convert.config import Config
from tfeff.convert.weights import Models, Weight, dense, dense_head, norm, part
from tfeff.objectives.heads import Head
from tfeff.objectives.sentence_pair import SentencePairPrediction

CLASS, PREFIX = "Roberta", "roberta."
LEFT_OUT = bert.UNUSED_TABLE | {
    r"pooler\.": "pooler",
    r"lm_head\.": "masked language model head",
    r"(classifier|qa_outputs)\.": "task head",
    r"embeddings\.(position|token_type)_ids$": "buffer",
}
PADDING_ID = 1
# Positions are counted from the padding id on, whose own row is that of padding.
_UNUSED_ROWS = PADDING_ID + 1


def arguments(config: Config) -> dict:
    """The arguments of `Encoder` for the configuration."""
    config.only("pad_token_id", PADDING_ID, default=PADDING_ID)
    rows = config.integer("max_position_embeddings", 512)
    if rows <= _UNUSED_ROWS:
        raise ValueError(
            f"In {config.path!r}: `max_position_embeddings` must be at least "
            f"{_UNUSED_ROWS + 1}, of which the first {_UNUSED_ROWS} are not used. "
            f"Received: max_position_embeddings={rows}"
        )
    return bert.arguments(config) | dict(max_sequence_length=rows - _UNUSED_ROWS)


def configuration(encoder) -> dict:
    """The inverse of `arguments`, as `bert.configuration`."""
    return bert.configuration(encoder) | dict(
        max_position_embeddings=encoder.max_sequence_length + _UNUSED_ROWS,
        pad_token_id=PADDING_ID,
    )


def unused(encoder) -> dict[str, tuple[int, ...]]:
    """Shapes of the format's tensors that this encoder does not use, by their names."""
    return bert.unused(encoder, unused_rows=_UNUSED_ROWS)


def weights(encoder) -> Iterator[Weight]:
    """The encoder's weights and their tensors in the checkpoint."""
    yield from bert.weights(encoder, unused_rows=_UNUSED_ROWS)


def pretraining_heads(encoder) -> dict[str, Head]:
    """The heads that pretrained models may have."""
    # In Hugging Face's this activation is fixed.
    settings = bert.head_settings(encoder) | dict(activation="gelu")
    return SentencePairPrediction(encoder, **settings).heads()


def masked_lm_head(weights: Mapping) -> Iterator[Weight]:
    """The weights of the masked language model head and their tensors."""
    yield from dense(part(weights, "dense"), "lm_head.dense")
    yield from norm(part(weights, "norm"), "lm_head.layer_norm")
    yield Weight(weights["bias"], "lm_head.bias")


task_arguments, task_configuration = bert.task_arguments, bert.task_configuration
HEADS = {"masked_lm": masked_lm_head, "pooler": dense_head("pooler.dense")}
MODELS: Models = (
    ("ForMaskedLM", {"masked_lm"}),
    ("Model", {"pooler"}),
    ("Model", set()),
)
TASKS = bert.TASKS | {
    "SequenceClassification": {
        "pooler": dense_head("classifier.dense"),
        "logits": dense_head("classifier.out_proj"),
    },
}
