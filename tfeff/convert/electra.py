"""ELECTRA in Hugging Face's format: discriminators and generators."""

from collections.abc import Iterator, Mapping

from tfeff.convert import bert, convbert
from tfeff.convert.config import Config
from tfeff.convert.weights import Models, Weight, dense, part
from tfeff.objectives.heads import Head
from tfeff.objectives.masked_lm import MaskedLM
from tfeff.objectives.replaced_token import discriminator_head

CLASS, PREFIX = "Electra", "electra."
LEFT_OUT = bert.UNUSED_TABLE | convbert.LEFT_OUT


def arguments(config: Config) -> dict:
    """The arguments of `Encoder` for the configuration."""
    return bert.arguments(config) | dict(
        embedding_dim=config.integer("embedding_size", 128)
    )


def configuration(encoder) -> dict:
    """The inverse of `arguments`, as `bert.configuration`."""
    return bert.configuration(encoder) | dict(embedding_size=encoder.embedding_dim)


unused = bert.unused


def weights(encoder) -> Iterator[Weight]:
    """The encoder's weights and their tensors in the checkpoint."""
    yield from bert.weights(encoder)
    if encoder.embedding_dim != encoder.hidden_dim:
        yield from dense(encoder.embedding.projection, "embeddings_project")


def pretraining_heads(encoder, activation: str = "gelu") -> dict[str, Head]:
    """The heads that pretrained models may have: a generator's, a discriminator's.

    Args:
        encoder: the encoder.
        activation: of the generator's head, which in Hugging Face's is fixed.
    """
    own = bert.head_settings(encoder)
    generator = MaskedLM(encoder, **own | dict(activation=activation))
    head = discriminator_head(encoder, own["activation"])
    return {**generator.heads(), "replaced_token": head}


def replaced_token_head(weights: Mapping) -> Iterator[Weight]:
    """The weights of the discriminator's head and their tensors."""
    name = "discriminator_predictions"
    yield from dense(part(weights, "hidden"), f"{name}.dense")
    yield from dense(part(weights, "output"), f"{name}.dense_prediction")


def task_arguments(config: Config, kind: str) -> dict:
    """The arguments of the task for a kind of fine-tuned model."""
    if kind == "MultipleChoice":
        return convbert.summary_arguments(config.with_defaults(**_SUMMARY))
    arguments = bert.task_arguments(config, kind)
    if kind == "SequenceClassification":
        arguments["pooler_activation"] = "gelu"
    return arguments


_SUMMARY = dict(summary_type="first", summary_use_proj=True, summary_activation="gelu")
task_configuration = convbert.task_configuration
HEADS = convbert.HEADS | {"replaced_token": replaced_token_head}
MODELS: Models = (
    ("ForPreTraining", {"replaced_token"}),
    ("ForMaskedLM", {"masked_lm"}),
    ("Model", set()),
)
TASKS = convbert.TASKS
