"""The model that a data set fine-tunes, and what its heads depend on."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import tfeff
from tfeff.datasets import registry
from tfeff.recipes.finetune_settings import FinetuneSettings
from tfeff.recipes.heads import assign_heads
from tfeff.recipes.task_scores import has_ratings
from tfeff.tasks.task import PooledTask, without_defaults

# The models whose classes have names.
NAMED = (tfeff.tasks.Classifier, tfeff.tasks.TokenClassifier)


def task_class(dataset: tfeff.datasets.Dataset) -> type:
    """The class of the models that a data set fine-tunes."""
    of_kind = {
        tfeff.data.ChoiceExamples: tfeff.tasks.MultipleChoice,
        tfeff.data.SpanExamples: tfeff.tasks.SpanQA,
        tfeff.data.TokenExamples: tfeff.tasks.TokenClassifier,
    }
    is_rated = dataset.label_names is None
    of_texts = tfeff.tasks.Regressor if is_rated else tfeff.tasks.Classifier
    return of_kind.get(dataset.kind, of_texts)


def head_arguments(
    settings: FinetuneSettings, dataset: tfeff.datasets.Dataset, examples: Any
) -> dict:
    """The arguments of the model that its heads depend on, by name.

    Args:
        settings: what the user has chosen.
        dataset: the `Dataset`.
        examples: those to train on, whose labels give the units of ratings.

    Returns:
        The arguments, as the model's configuration has them; `None` for a default.
    """
    kind = task_class(dataset)
    arguments: dict[str, Any] = {}
    if issubclass(kind, PooledTask):
        arguments["pooling"] = settings.pooling
        if settings.pooler_activation is not None:
            arguments["pooler_activation"] = settings.pooler_activation
    if kind in NAMED:
        arguments["label_names"] = list(dataset.label_names or ())
    if kind is tfeff.tasks.Regressor:
        arguments |= {"scale": None, "offset": None}
        arguments |= rating_units(dataset, examples)
    return arguments


def rating_units(dataset: tfeff.datasets.Dataset, examples: Any) -> dict[str, float]:
    """The scale and the offset of the ratings of a data set of one's own.

    They are the deviation and the mean of the labels to train on. Those of benchmarks
    are learnt as they are, as in the papers.
    """
    if not has_ratings(dataset) or dataset.name in registry.OWN:
        return {}
    labels = np.asarray(examples.labels, "float64")
    # The deviation of equal ones is 0 but for rounding.
    scale = float(labels.std()) if np.ptp(labels) else 1.0
    return without_defaults(scale=(scale, 1.0), offset=(float(labels.mean()), 0.0))


def make_model(
    kind: type,
    encoder: tfeff.encoders.Encoder,
    dropout: float,
    arguments: Mapping[str, Any],
    heads: Mapping[str, Mapping[str, np.ndarray]] | None = None,
) -> tfeff.objectives.Objective:
    """The model of a class, whose heads begin as the given ones.

    Args:
        kind: from `task_class`.
        encoder: the encoder.
        dropout: the rate before the last layer.
        arguments: from `head_arguments`.
        heads: the arrays of the heads to begin with, by name.
    """
    heads = heads or {}
    chosen = {name: value for name, value in arguments.items() if value is not None}
    if "pooler" in heads:
        chosen["pooler_activation"] = heads["pooler"]["activation"].item()
    if "label_names" in chosen:
        chosen["num_classes"] = len(chosen["label_names"])
    model = kind(encoder, dropout=dropout, **chosen)
    assign_heads(model, heads)
    return model
