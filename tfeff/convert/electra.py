"""ELECTRA in Hugging Face's format: discriminators and generators."""

from collections.abc import Iterator, Mapping

from tfeff.convert.bert import UNUSED_TABLE, Bert
from tfeff.convert.config import Config
from tfeff.convert.format import Models, activation_of
from tfeff.convert.weights import (
    NotKept,
    Weight,
    dense,
    dense_head,
    masked_lm_head,
    part,
)
from tfeff.objectives.discriminator_head import discriminator_head
from tfeff.objectives.heads import Head
from tfeff.objectives.masked_lm import MaskedLM

_SUMMARY = dict(summary_type="first", summary_use_proj=True, summary_activation="gelu")
_SUMMARIES = ("gelu", "tanh", "relu")


def _replaced_token_head(weights: Mapping) -> Iterator[Weight]:
    name = "discriminator_predictions"
    yield from dense(part(weights, "hidden"), f"{name}.dense")
    yield from dense(part(weights, "output"), f"{name}.dense_prediction")


class Electra(Bert):
    """ELECTRA: its embedding may be smaller, and its heads belong to two networks."""

    name, prefix = "Electra", "electra."
    left_out = UNUSED_TABLE | {
        r"(generator_predictions|generator_lm_head)\.": "masked language model head",
        r"discriminator_predictions\.": "replaced token head",
        r"(classifier|qa_outputs|sequence_summary)\.": "task head",
        r"embeddings\.(position|token_type)_ids$": "buffer",
    }
    head_activation: str | None = "gelu"  # The encoder's may be another.
    heads = {
        "masked_lm": masked_lm_head(
            "generator_predictions.dense",
            "generator_predictions.LayerNorm",
            "generator_lm_head.bias",
        ),
        "replaced_token": _replaced_token_head,
    }
    models: Models = (
        ("ForPreTraining", {"replaced_token"}),
        ("ForMaskedLM", {"masked_lm"}),
        ("Model", set()),
    )
    tasks = Bert.tasks | {
        "SequenceClassification": {
            "pooler": dense_head("classifier.dense"),
            "logits": dense_head("classifier.out_proj"),
        },
        "MultipleChoice": {
            "pooler": dense_head("sequence_summary.summary"),
            "logits": dense_head("classifier"),
        },
    }

    def arguments(self, config: Config) -> dict:
        return super().arguments(config) | dict(
            embedding_dim=config.integer("embedding_size", 128)
        )

    def configuration(self, encoder) -> dict:
        return super().configuration(encoder) | dict(
            embedding_size=encoder.embedding_dim
        )

    def weights(self, encoder) -> Iterator[Weight]:
        yield from super().weights(encoder)
        if encoder.embedding_dim != encoder.hidden_dim:
            yield from dense(encoder.embedding.projection, "embeddings_project")

    def pretraining_heads(self, encoder) -> dict[str, Head]:
        generator = MaskedLM(encoder, **self.head_settings(encoder))
        head = discriminator_head(encoder, activation_of(encoder))
        return {**generator.heads(), "replaced_token": head}

    def task_arguments(self, config: Config, kind: str) -> dict:
        if kind == "MultipleChoice":
            return summary_arguments(config.with_defaults(**_SUMMARY))
        arguments = super().task_arguments(config, kind)
        if kind == "SequenceClassification":
            arguments["pooler_activation"] = "gelu"
        return arguments

    def task_configuration(self, arguments: Mapping, kind: str) -> dict:
        if kind != "MultipleChoice":
            return super().task_configuration(arguments, kind)
        return dict(
            summary_type="first",
            summary_use_proj=True,
            summary_activation=arguments["pooler_activation"],
            summary_last_dropout=arguments["dropout"],
        )


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
