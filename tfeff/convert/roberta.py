"""RoBERTa in Hugging Face's format, with CamemBERT and XLM-RoBERTa."""

from tfeff.convert.bert import UNUSED_TABLE, Bert
from tfeff.convert.config import Config
from tfeff.convert.weights import dense_head, masked_lm_head


class Roberta(Bert):
    """RoBERTa: its positions are counted from the padding id on."""

    name, prefix = "Roberta", "roberta."
    left_out = UNUSED_TABLE | {
        r"pooler\.": "pooler",
        r"lm_head\.": "masked language model head",
        r"(classifier|qa_outputs)\.": "task head",
        r"embeddings\.(position|token_type)_ids$": "buffer",
    }
    padding_id = 1
    unused_rows = padding_id + 1  # The padding id's own row is that of padding.
    head_activation = "gelu"  # The encoder's may be another.
    heads = {
        "masked_lm": masked_lm_head(
            "lm_head.dense", "lm_head.layer_norm", "lm_head.bias"
        ),
        "pooler": dense_head("pooler.dense"),
    }
    models = (
        ("ForMaskedLM", {"masked_lm"}),
        ("Model", {"pooler"}),
        ("Model", set()),
    )
    tasks = Bert.tasks | {
        "SequenceClassification": {
            "pooler": dense_head("classifier.dense"),
            "logits": dense_head("classifier.out_proj"),
        },
    }

    def arguments(self, config: Config) -> dict:
        config.only("pad_token_id", self.padding_id, default=self.padding_id)
        rows, unused = config.integer("max_position_embeddings", 512), self.unused_rows
        if rows <= unused:
            raise ValueError(
                f"In {config.path!r}: `max_position_embeddings` must be at least "
                f"{unused + 1}, of which the first {unused} are not used. "
                f"Received: max_position_embeddings={rows}"
            )
        return super().arguments(config) | dict(max_sequence_length=rows - unused)

    def configuration(self, encoder) -> dict:
        return super().configuration(encoder) | dict(
            max_position_embeddings=encoder.max_sequence_length + self.unused_rows,
            pad_token_id=self.padding_id,
        )
